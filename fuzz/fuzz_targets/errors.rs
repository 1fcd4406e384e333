#![no_main]
//! See `creole::fuzz::errors`.

libfuzzer_sys::fuzz_target!(|data: &[u8]| creole::fuzz::errors(data));
