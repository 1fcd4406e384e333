//! Baseline filter that does the minimum work of any translating filter. It takes the request's
//! body out of Envoy chunk by chunk and puts it back whole; it takes out and puts back each
//! response chunk at once.
//!
//! The filter uses the crate `proxy-wasm`, so bodies are limited to Envoy's buffer of 1 MiB: see
//! `docs/dev/decisions/0001-own-guest-abi.md`.

use proxy_wasm::traits::{Context, HttpContext, RootContext};
use proxy_wasm::types::{Action, ContextType};

proxy_wasm::main! {{
    proxy_wasm::set_root_context(|_| Box::new(Root));
}}

struct Root;

impl Context for Root {}

impl RootContext for Root {
    fn create_http_context(&self, _id: u32) -> Option<Box<dyn HttpContext>> {
        Some(Box::new(Stream { request: Vec::new() }))
    }

    fn get_type(&self) -> Option<ContextType> {
        Some(ContextType::HttpContext)
    }
}

struct Stream {
    request: Vec<u8>,
}

impl Context for Stream {}

impl HttpContext for Stream {
    fn on_http_request_headers(&mut self, _count: usize, end_of_stream: bool) -> Action {
        if end_of_stream { Action::Continue } else { Action::Pause }
    }

    fn on_http_request_body(&mut self, size: usize, end_of_stream: bool) -> Action {
        if let Some(piece) = self.get_http_request_body(0, size) {
            self.request.extend_from_slice(&piece);
            self.set_http_request_body(0, size, b"");
        }
        if !end_of_stream {
            return Action::Pause;
        }
        self.set_http_request_body(0, usize::MAX >> 1, &self.request);
        Action::Continue
    }

    fn on_http_response_body(&mut self, size: usize, _end_of_stream: bool) -> Action {
        if let Some(piece) = self.get_http_response_body(0, size) {
            self.set_http_response_body(0, size, &piece);
        }
        Action::Continue
    }
}
