//! Requests that are prepared before their upstream is called: images on the web that it takes as
//! data alone, and documents of which it takes the text.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used
)]

mod addresses;
mod documents;
mod images;
#[path = "../support/mod.rs"]
mod support;

use creole::{Call, Fetch, To};
use serde_json::{Value, json};

/// The address that a call is for, if it is for one on the web.
fn fetch_of(call: &Call) -> Option<&Fetch> {
    match &call.to {
        To::Web(fetch) => Some(fetch),
        To::Upstream(_) | To::Service(_) | To::Document { .. } => None,
    }
}
