//! Differences between upstreams of one protocol: profiles, dialects of JSON Schema, tool calls in
//! text.

pub(crate) mod effort;
pub mod presets;
pub mod profile;
pub(crate) mod schema;
pub(crate) mod text_calls;
