//! Costs of answers: time that is linear in their bytes however they are cut, and memory within the
//! configured limits whatever an upstream sends. Costs of requests: time and memory that are linear
//! in their bytes, whatever they have many of. With events of 8 MB: `cargo test --release -p
//! creole-cost`.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used
)]

#[path = "../../../../benches/bodies/mod.rs"]
#[allow(dead_code, reason = "only bodies for server tools are needed here")]
mod agents;
mod answers;
mod bodies;
#[path = "../../../../benches/bodies/exchange.rs"]
mod exchange;
mod hostile;
mod meter;
#[path = "../../../../tests/decisions/place.rs"]
#[allow(dead_code, unreachable_pub, missing_docs, reason = "only some of it is needed here")]
mod place;
mod requests;
mod responses;
mod server_tools;
mod smallest;
#[path = "../../../../tests/decisions/spec.rs"]
#[allow(dead_code, unreachable_pub, missing_docs, reason = "only some of it is needed here")]
mod spec;
mod tiny;
