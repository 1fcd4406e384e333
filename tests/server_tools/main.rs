//! Server tools that Creole runs: the loop of rounds, its limits, and what clients and upstreams
//! see of it.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used
)]

mod citations;
mod fetch;
mod history;
mod limits;
mod mcp;
mod rounds;
mod search_tool;
mod session;
mod side_query;
#[path = "../support/mod.rs"]
mod support;
mod tool_search;
mod waits;

use serde_json::{Value, json};

use session::{Search, Session, Turn, found, turn};
