#![no_main]
//! See `creole::fuzz::request`.

libfuzzer_sys::fuzz_target!(|data: &[u8]| creole::fuzz::request(data));
