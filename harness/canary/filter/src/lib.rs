//! A minimal filter on the crate `proxy-wasm`, for one question: does Envoy survive when a hostcall
//! ends a stream from inside?
//!
//! It takes a response out of Envoy's buffer piece by piece and writes it all at the end. Above
//! Envoy's buffer limit (1 MiB) that write resets the stream, and Envoy calls the filter again while
//! the filter's own callback still runs.

use proxy_wasm::traits::{Context, HttpContext, RootContext};
use proxy_wasm::types::{Action, ContextType};

proxy_wasm::main! {{
    proxy_wasm::set_root_context(|_| Box::new(Root));
}}

struct Root;

impl Context for Root {}

impl RootContext for Root {
    fn create_http_context(&self, _id: u32) -> Option<Box<dyn HttpContext>> {
        Some(Box::new(Stream { body: Vec::new() }))
    }

    fn get_type(&self) -> Option<ContextType> {
        Some(ContextType::HttpContext)
    }
}

struct Stream {
    body: Vec<u8>,
}

impl Context for Stream {}

impl HttpContext for Stream {
    fn on_http_response_headers(&mut self, _count: usize, end_of_stream: bool) -> Action {
        if end_of_stream { Action::Continue } else { Action::Pause }
    }

    fn on_http_response_body(&mut self, size: usize, end_of_stream: bool) -> Action {
        if let Some(piece) = self.get_http_response_body(0, size) {
            self.body.extend_from_slice(&piece);
            self.set_http_response_body(0, size, b"");
        }
        if !end_of_stream {
            return Action::Pause;
        }
        self.set_http_response_body(0, usize::MAX >> 1, &self.body);
        Action::Continue
    }
}
