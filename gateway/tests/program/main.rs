//! The real binary between scripted upstreams and clients: each module starts programs of its own.
// Helpers outside of #[test] functions fail like tests do.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

mod check;
mod check_services;
mod check_window;
mod commands;
mod compressed;
#[cfg(unix)] // it is stopped by a signal
mod demo;
mod documents;
mod doors;
mod envoy_config;
mod flags;
mod health;
mod images;
mod judge;
mod kept;
#[cfg(unix)] // the client is a script
mod launch;
#[cfg(unix)]
mod launched;
mod limits;
#[cfg(unix)]
mod log;
mod mcp;
mod page;
mod proxy;
mod reasoning;
mod refused;
mod reload;
#[path = "../rig/mod.rs"]
mod rig;
mod routes;
mod search;
mod spans;
mod streams;
mod tls;
mod tls_of_clients;
mod vision;
