#![no_main]
//! See `creole::fuzz::responses`.

libfuzzer_sys::fuzz_target!(|data: &[u8]| creole::fuzz::responses(data));
