#![no_main]
//! See `creole::fuzz::stream`.

libfuzzer_sys::fuzz_target!(|data: &[u8]| creole::fuzz::stream(data));
