//! Bodies on their way, as JavaScript reads them.

use wasm_bindgen::prelude::*;
use worker::js_sys::{Promise, Uint8Array};
use worker::web_sys::{ReadableStream, Request};

#[wasm_bindgen(raw_module = "./stream.js")]
extern "C" {
    /// A body on its way, in `stream.js`.
    #[wasm_bindgen(js_name = Incoming)]
    pub(crate) type Incoming;

    #[wasm_bindgen(constructor, js_class = "Incoming")]
    pub(crate) fn new(body: &ReadableStream) -> Incoming;

    /// Promises the next piece, or `undefined` at the end.
    #[wasm_bindgen(method)]
    pub(crate) fn read(this: &Incoming) -> Promise;

    /// Keeps the promise of the piece that is being read: there is none.
    #[wasm_bindgen(method)]
    pub(crate) fn stop(this: &Incoming);

    /// Returns the body of an answer that its client has at once, while up to `most` bytes of its
    /// own are read out.
    #[wasm_bindgen(method, js_name = refuse)]
    pub(crate) fn refuse(this: &Incoming, answer: &Uint8Array, most: f64) -> ReadableStream;
}

impl Incoming {
    pub(crate) fn of(request: &Request) -> Option<Self> {
        request.body().map(|body| Self::new(&body))
    }
}
