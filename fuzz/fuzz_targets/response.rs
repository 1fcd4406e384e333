#![no_main]
//! See `creole::fuzz::response`.

libfuzzer_sys::fuzz_target!(|data: &[u8]| creole::fuzz::response(data));
