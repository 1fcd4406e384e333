#![no_main]
//! See `creole::fuzz::chunk`.

libfuzzer_sys::fuzz_target!(|data: &[u8]| creole::fuzz::chunk(data));
