//! Creole: Anthropic Messages clients on any model behind Chat Completions or Responses, or behind
//! a Messages API that needs mending. This crate is the translation core; hosts (Envoy, Workers, a
//! gateway) drive an [`Exchange`] and do all I/O.
//!
//! The page of [`Exchange`] has the order of the calls. `docs/dev/adding-a-host.md` says what else
//! a host can do. A whole host, which streams (`examples/host.rs`):
#![doc = concat!("```no_run\n", include_str!("../examples/host.rs"), "```")]
#![forbid(unsafe_code)]

#[doc(hidden)]
pub mod answer;
pub(crate) mod assemble;
mod budget;
pub mod callers;
#[doc(hidden)]
pub mod carry;
pub(crate) mod content;
pub(crate) mod dialect;
pub(crate) mod guards;
pub mod headers;
pub(crate) mod history;
#[doc(hidden)]
pub mod model;
pub mod observe;
pub mod profile;
#[doc(hidden)]
pub mod protocols;
pub(crate) mod sse;
#[doc(hidden)]
pub mod text;
pub(crate) mod tokens;
pub(crate) mod tools;
pub(crate) mod upstream_error;

pub mod config;
pub mod error;
mod exchange;
#[cfg(any(test, feature = "fuzz"))]
#[doc(hidden)]
#[allow(clippy::expect_used, clippy::panic)]
pub mod fuzz;
#[doc(hidden)]
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
