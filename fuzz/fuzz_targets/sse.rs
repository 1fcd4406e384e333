#![no_main]
//! See `creole::fuzz::sse`.

libfuzzer_sys::fuzz_target!(|data: &[u8]| creole::fuzz::sse(data));
