//! Bindings to the JavaScript class `Incoming`, which reads the body of a request or response.

use wasm_bindgen::prelude::*;
use worker::js_sys::{Promise, Uint8Array};
use worker::web_sys::{ReadableStream, Request};

#[wasm_bindgen(raw_module = "./stream.js")]
extern "C" {
    /// JavaScript reader of a body that is still arriving, defined in `stream.js`.
    #[wasm_bindgen(js_name = Incoming)]
    pub(crate) type Incoming;

    #[wasm_bindgen(constructor, js_class = "Incoming")]
    pub(crate) fn new(body: &ReadableStream) -> Incoming;

    /// Returns a promise of the body's next chunk, or of `undefined` at the end.
    #[wasm_bindgen(method)]
    pub(crate) fn read(this: &Incoming) -> Promise;

    /// Stops reading the body: the promise of the pending chunk resolves as if no chunk had come.
    #[wasm_bindgen(method)]
    pub(crate) fn stop(this: &Incoming);

    /// Returns `answer` as a response body that the client gets at once. Meanwhile, up to `most`
    /// bytes of the client's own body are read and thrown away.
    #[wasm_bindgen(method, js_name = refuse)]
    pub(crate) fn refuse(this: &Incoming, answer: &Uint8Array, most: f64) -> ReadableStream;
}

impl Incoming {
    pub(crate) fn of(request: &Request) -> Option<Self> {
        request.body().map(|body| Self::new(&body))
    }
}
