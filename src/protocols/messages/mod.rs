//! The Anthropic Messages API.

pub(crate) mod check;
pub(crate) mod models;
pub(crate) mod relay;
