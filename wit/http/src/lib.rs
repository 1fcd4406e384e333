//! Creole as a `wasi:http` component: a server of component hosts calls it for each request, and it
//! calls the upstream through the same host.
//!
//! A host gives every request an instance of its own, so no executor and no tasks are needed: one
//! function collects, translates, sends on and translates back, and waits in `wasi:io/poll` where
//! data is missing. An answer is written as fast as the client reads; while a write is blocked, the
//! upstream is not read.
//!
//! ```text
//! incoming-handler ─▶ service ─┬▶ calls  ─▶ upstream ─▶ outgoing-handler
//!                              ├▶ answer ─▶ response-outparam
//!                              └▶ pass   (what is not ours)
//! ```

mod answer;
mod calls;
mod clock;
mod headers;
mod live;
mod pass;
mod service;
mod streams;
mod upstream;

use wasip2::exports::http::incoming_handler::Guest;
use wasip2::http::types::{IncomingRequest, ResponseOutparam};

struct Component;

impl Guest for Component {
    fn handle(request: IncomingRequest, out: ResponseOutparam) {
        service::handle(&request, out);
    }
}

wasip2::http::proxy::export!(Component);
