//! Creole as a Cloudflare Worker.
//!
//! ```text
//!  client ──▶ workerd ──▶ fetch ──▶ Exchange ──▶ fetch() ──▶ upstream
//!                ▲                                             │
//!                └── ReadableStream ◀─── Driver ◀─── body ◀────┘
//! ```
//!
//! An isolate serves many requests on one thread and can be thrown away at any moment, so nothing
//! is kept between requests but the configuration, which is read once, and the count of the bytes
//! that are held. A panic costs every stream of its isolate (`shim.js` starts the module anew for
//! the next request), so lints of the workspace forbid panics.
//!
//! The modules with I/O exist only for WebAssembly; the others are also tested natively.
#![forbid(unsafe_code)]
#![cfg_attr(not(target_arch = "wasm32"), allow(dead_code))]

mod budget;
mod configure;

#[cfg(target_arch = "wasm32")]
mod analytics;
#[cfg(target_arch = "wasm32")]
mod body;
#[cfg(target_arch = "wasm32")]
mod driver;
#[cfg(target_arch = "wasm32")]
mod environment;
#[cfg(target_arch = "wasm32")]
mod gone;
#[cfg(all(target_arch = "wasm32", feature = "test-hooks"))]
mod hooks;
#[cfg(target_arch = "wasm32")]
mod http;
#[cfg(target_arch = "wasm32")]
mod incoming;
#[cfg(target_arch = "wasm32")]
mod live;
#[cfg(target_arch = "wasm32")]
mod open_calls;
#[cfg(target_arch = "wasm32")]
mod pass;
#[cfg(target_arch = "wasm32")]
mod serve;
#[cfg(target_arch = "wasm32")]
mod source;
#[cfg(target_arch = "wasm32")]
mod timer;

#[cfg(target_arch = "wasm32")]
pub use {serve::fetch, source::Source};
