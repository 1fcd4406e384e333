//! Creole: Anthropic Messages clients on any Chat Completions model. This crate is the translation
//! core; hosts (Envoy, Workers, a gateway) drive an [`Exchange`] and do all I/O.
#![forbid(unsafe_code)]

mod anthropic;
pub mod asked;
pub mod config;
mod conversation;
pub mod error;
mod exchange;
#[cfg(any(test, feature = "fuzz"))]
#[allow(clippy::expect_used, clippy::panic)]
pub mod fuzz;
mod hash;
pub mod ids;
pub mod json;
pub mod log;
pub mod metrics;
pub mod names;
mod openai;
pub mod profile;
pub mod report;
mod setting;
pub mod stream;
mod tool_schema;
pub mod translate;
pub mod warning;
pub mod words;

pub use config::Config;
pub use exchange::{
    End, Exchange, Failure, Head, Pings, Reply, RequestHead, ResponseHead, UpstreamRequest, passed,
};
pub use translate::headers::{self, Header};

/// A point in time: milliseconds since the Unix epoch, from the host's clock.
pub type Millis = u64;
