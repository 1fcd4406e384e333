#![no_main]
//! See `creole::fuzz::config`.

libfuzzer_sys::fuzz_target!(|data: &[u8]| creole::fuzz::config(data));
