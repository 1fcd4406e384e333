//! Differences between upstreams of the same protocol that no profile flag describes: dialects of
//! JSON Schema, and tool calls written as text.

pub(crate) mod schema;
pub(crate) mod text_calls;
