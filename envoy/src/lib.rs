//! Creole as a proxy-wasm filter for Envoy (and for what is built on it: Istio, Envoy Gateway).
//!
//! ```text
//!  Envoy ── callbacks ──▶ abi ──▶ Filter ──▶ Stream ──▶ creole::Exchange
//!        ◀── hostcalls ── abi ◀── Decision (actions, flow)
//! ```
//!
//! [`filter`] and [`stream`] make the decisions, and never call a host: they get a callback's data
//! and return a [`action::Decision`]. `abi`, which exists on `wasm32` alone, is the guest side of
//! the proxy-wasm ABI 0.2.1: it reads a callback's data, calls the filter, and executes the
//! decision. A move to another guest library would change only that module.
//!
//! # How bodies pass
//!
//! Envoy's own buffers are never used, because they are limited (1 MiB by default) and because
//! overrunning them ends the stream from inside a hostcall. Every chunk is taken out of Envoy's
//! buffer when it arrives, and [`action::Flow::Stop`] waits for the next one; the whole translated
//! body is written at the end, at once. Events of a stream are written in the callback in which
//! they arrived.
//!
//! # Two modes
//!
//! With `pause_headers` (the default) heads wait for their bodies, so that an invalid request never
//! reaches an upstream, and the model can choose the route. This mode needs
//! `allow_on_headers_stop_iteration` in the plugin's configuration. If that cannot be set, heads
//! are sent on at once: then only one upstream is possible, and errors after a head are reported in
//! the body.
//!
//! # Calls
//!
//! Where the configuration names clusters for it ([`creole::Config::cluster_calls`]), a stream
//! makes further requests with `proxy_http_call`: before its own request, which is held meanwhile,
//! and behind the upstream's first answer, whose end is held: see `stream/calls`.
//!
//! With `deferred_flush`, a timer writes the streams, so that pings and error events can be sent
//! while the upstream is silent: see `deferred`.
#![deny(unsafe_code)]

#[cfg(target_arch = "wasm32")]
mod abi;
pub mod action;
mod collected;
mod configured;
mod contexts;
mod deferred;
pub mod details;
pub mod filter;
pub mod heads;
mod memory;
pub mod observe;
pub mod stream;
mod unguarded;
#[cfg(target_arch = "wasm32")]
mod wasi;

pub use filter::Filter;
