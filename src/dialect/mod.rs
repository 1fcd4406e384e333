//! Differences between upstreams of one protocol that no flag says: dialects of JSON Schema, tool
//! calls in text.

pub(crate) mod schema;
pub(crate) mod text_calls;
