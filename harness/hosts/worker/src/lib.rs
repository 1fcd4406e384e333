//! Rig for the tests of the Worker: workerd and a client; the upstream and the texts are in
//! `creole-rig`.
//!
//! The files come from the environment, as `cargo xtask test` sets it: `CREOLE_WORKERD` (the
//! binary), `CREOLE_WORKER_DIR` (the Worker as it is deployed) and `CREOLE_WORKER_HOOKS_DIR` (the
//! same, able to panic on demand).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::missing_panics_doc,
    missing_docs,
    reason = "a test fails by panicking"
)]

pub mod client;
pub mod runtime;

pub use client::{get, open, post, read, read_until};
pub use creole_rig::{
    COMPLETION, EVENT_STREAM, Got, Out, Upstream, chunk, finish, load, messages, nobody, soon,
    until,
};
pub use runtime::Worker;
