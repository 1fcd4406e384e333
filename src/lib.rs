//! Creole: Anthropic Messages clients on any Chat Completions model. This crate is the translation
//! core; hosts (Envoy, Workers, a gateway) drive an [`Exchange`] and do all I/O.
//!
//! # One request and its response
//!
//! ```text
//!  host                               Exchange
//!   │  handle_request_head ──────────▶  ours? translate, pass through, or answer at once
//!   │  handle_request ───────────────▶  the body for the upstream, or an answer at once
//!   │  handle_response_head ─────────▶
//!   │  handle_response_body … ───────▶  bytes for the client, as they are ready
//!   │  handle_response_end ──────────▶  the last bytes
//!   │  handle_retry ─────────────────▶  another request, if the host can send one and it helps
//!   │  handle_timeout ───────────────▶  a ping, or the end of a stalled upstream
//! ```
//!
//! The head of the response is held back until the first byte of the body is known, so that an error in an upstream's
//! first event still becomes an HTTP error. Whichever call makes the first byte ready also gives the [`Head`], once.
//!
//! ```
//! use std::sync::Arc;
//!
//! use creole::{Config, End, Exchange, Pings, RequestHead};
//!
//! let config = Config::from_json(r#"{"upstreams": {"local": {}}}"#, |_| None).unwrap();
//! // Each exchange has a random seed of its own.
//! let mut exchange = Exchange::new(Arc::new(config), 0x5eed, Pings::No);
//!
//! let headers = [("x-api-key".to_owned(), "secret".to_owned())];
//! let head = exchange.handle_request_head("POST", "/v1/messages", &headers);
//! assert_eq!(head, RequestHead::Translate);
//! let body = br#"{"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}"#;
//! let now = 1_790_000_000_000;
//! let request = exchange.handle_request(body, now).unwrap();
//! assert_eq!(request.path, "/v1/chat/completions");
//!
//! let headers = [("content-type".to_owned(), "application/json".to_owned())];
//! exchange.handle_response_head(200, &headers, now);
//! let answer = br#"{"choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}]}"#;
//! let mut out = Vec::new();
//! exchange.handle_response_body(answer, now, &mut out);
//! let head = exchange.handle_response_end(End::Complete, now, &mut out).unwrap();
//! assert_eq!(head.status, 200);
//! let message = String::from_utf8(out).unwrap();
//! assert!(message.contains(r#""content":[{"type":"text","text":"Hello"}]"#));
//! ```
#![forbid(unsafe_code)]

pub mod carry;
pub mod dialect;
pub(crate) mod guards;
pub mod headers;
pub(crate) mod history;
pub mod model;
pub mod observe;
pub mod protocols;
pub(crate) mod sse;
pub mod text;
pub(crate) mod tokens;
pub(crate) mod tools;
pub(crate) mod upstream_error;

pub mod config;
pub mod error;
mod exchange;
#[cfg(any(test, feature = "fuzz"))]
#[allow(clippy::expect_used, clippy::panic)]
pub mod fuzz;
pub mod ids;
pub mod json;
mod json_schema;
mod setting;
pub mod stream;

pub use config::Config;
pub use exchange::{
    End, Exchange, Failure, Head, PassedHead, Pings, Refusals, Reply, RequestHead, ResponseHead,
    Unreachable, UpstreamRequest, passed, with_version,
};
pub use headers::Header;

/// A point in time: milliseconds since the Unix epoch, from the host's clock.
pub type Millis = u64;
