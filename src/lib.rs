//! Creole: Anthropic Messages clients on any model behind Chat Completions or Responses, or behind
//! a Messages API that needs mending. This crate is the translation core; hosts (Envoy, Workers, a
//! gateway) drive an [`Exchange`] and do all I/O.
//!
//! The page of [`Exchange`] has the order of the calls, and an example. `docs/dev/adding-a-host.md`
//! is for servers.
#![forbid(unsafe_code)]

pub mod answer;
pub(crate) mod assemble;
mod budget;
pub mod callers;
pub mod carry;
pub(crate) mod content;
pub(crate) mod dialect;
pub(crate) mod guards;
pub mod headers;
pub(crate) mod history;
pub mod model;
pub mod observe;
pub mod profile;
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
mod steps;
mod stop_reason;

pub use budget::{Budget, Holding, MemoryFull, Owner, Pace};
pub use config::{Config, ReadDocuments};
pub use exchange::{
    Call, CallId, Cancel, End, Exchange, Failure, Fetch, Head, HostCan, PassedHead, Pings,
    Refusals, Reply, RequestHead, Service, To, Unreachable, passed, with_version,
};
pub use headers::Header;
pub use steps::{DocumentText, Unread};
pub use stop_reason::StopReason;

/// A point in time: milliseconds since the Unix epoch, from the host's clock.
pub type Millis = u64;
