//! Data that travels in the client's history: signatures of thinking blocks, ids of tool calls.

pub(crate) mod marks;
pub mod signature;
pub(crate) mod tool_id;
