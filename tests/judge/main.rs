//! Verdicts on tool calls: what the judge is asked, what the client is told, and that nothing
//! passes by failure.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used
)]

mod ends;
mod question;
mod results;
mod session;
#[path = "../support/mod.rs"]
mod support;
mod times;

use serde_json::{Value, json};
use session::{Got, Judge, Session, call, chunks, text};
