//! Creole as a proxy-wasm filter for Envoy (and for what is built on it: Istio, Envoy Gateway).
//!
//! ```text
//!  Envoy ── callbacks ──▶ abi ──▶ Filter ──▶ Stream ──▶ creole::Exchange
//!        ◀── hostcalls ── abi ◀── Decision (actions, flow)
//! ```
//!
//! [`filter`] and [`stream`] decide, and know of no host: a callback goes in, a
//! [`action::Decision`] comes out. `abi`, which exists on `wasm32` alone, is the guest side of the
//! proxy-wasm ABI 0.2.1: it reads what a callback is about, asks, and does what was decided. A move
//! to another guest library would change that file only.
//!
//! # How bodies pass
//!
//! Envoy's own buffers are never used, because they are limited (1 MiB by default) and because
//! overrunning them ends the stream from inside a hostcall. Every piece is taken out of Envoy's
//! hands as it comes, and [`action::Flow::Stop`] asks to be called again; the whole translated body
//! is written at the end, in one piece. Events of a stream are written in the callback that they
//! came in.
//!
//! # Two modes
//!
//! With `pause_headers` (the default) heads wait for their bodies, so that a request that cannot be
//! served never reaches an upstream, and the model can choose the route. It needs
//! `allow_on_headers_stop_iteration` in the plugin's configuration. Where that cannot be set, heads
//! leave at once: then there can be one upstream only, and what goes wrong after a head is told in
//! the body.
//!
//! With `deferred_flush`, streams are written from a timer, so that pings and error events can be
//! sent while the upstream is silent: see `deferred`.
#![deny(unsafe_code)]

#[cfg(target_arch = "wasm32")]
mod abi;
pub mod action;
mod collected;
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
