//! Images described by another model: what that is shown, what stands in their places, and what
//! happens where it fails.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used
)]

mod asked;
mod failing;
mod places;
mod session;
#[path = "../support/mod.rs"]
mod support;

use serde_json::{Value, json};
use session::{CONFIG, Eyes, JPEG, PNG, Session, history, image, says};
