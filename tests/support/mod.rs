//! Support that several test crates share: checkers that know nothing of the code they check, the
//! fixtures, and a driver for an [`creole::Exchange`].
//!
//! A test crate elsewhere in the workspace includes it by path:
//! `#[path = "../../../tests/support/mod.rs"] mod support;`. Only [`drive`] needs the core; a suite
//! for a host loads the same fixtures and brings its own way of sending them.

// Each test crate uses its own part of this, and checks with plain panics.
#![allow(dead_code, unreachable_pub)]
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used
)]

pub mod blocks;
pub mod chat;
pub mod drive;
pub mod expected;
pub mod fixture;
pub mod fold;
pub mod grammar;
pub mod responses;
pub mod tool_id;
