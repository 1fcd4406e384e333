#![no_main]
//! See `creole::fuzz::evidence`.

libfuzzer_sys::fuzz_target!(|data: &[u8]| creole::fuzz::evidence(data));
