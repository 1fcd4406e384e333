//! Hooks for tests (the feature `test-hooks`): panics on demand, and counts of live exchanges and
//! streams.

use std::cell::Cell;

use creole::Head;
use wasm_bindgen::prelude::*;
use worker::js_sys::WebAssembly::Memory;
use worker::js_sys::{ArrayBuffer, Uint8Array};
use worker::web_sys::{Request, Response};

use crate::http;

#[wasm_bindgen(raw_module = "./stream.js")]
extern "C" {
    /// Returns the number of requests and streams that wait for the WebAssembly module, as counted
    /// in `stream.js`.
    fn waiting() -> usize;
}

thread_local! {
    static LIVE: Cell<usize> = const { Cell::new(0) };
}

/// Counts an exchange: `begins` is true at its start, and false at its end.
pub(crate) fn count(begins: bool) {
    let change = if begins { usize::saturating_add } else { usize::saturating_sub };
    LIVE.set(change(LIVE.get(), 1));
}

/// Handles a test request with the header `x-test-hook`: panics, or returns the counts.
pub(crate) fn answer(request: &Request) -> Option<Response> {
    match request.headers().get("x-test-hook").ok()??.as_str() {
        "panic" => panic_now(),
        "figures" => {
            let memory: Memory = wasm_bindgen::memory().unchecked_into();
            let memory: ArrayBuffer = memory.buffer().unchecked_into();
            let bytes = Uint8Array::new(&memory).length();
            // The request for the counts also waits for the module, and is left out.
            let waiting = waiting().saturating_sub(1);
            let live = LIVE.get();
            let body = format!("{{\"live\":{live},\"waiting\":{waiting},\"bytes\":{bytes}}}");
            Some(http::response(&Head { status: 200, headers: Vec::new() }, body.as_bytes()))
        }
        _ => None,
    }
}

/// Panics if the bytes of a stream contain the text `panic-in-stream`.
pub(crate) fn panic_in_stream(out: &[u8]) {
    const WORD: &[u8] = b"panic-in-stream";
    if out.windows(WORD.len()).any(|window| window == WORD) {
        panic_now();
    }
}

#[allow(clippy::panic)] // what this module is for
fn panic_now() -> ! {
    panic!("a test asked for this")
}
