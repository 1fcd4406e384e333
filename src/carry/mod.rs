//! Data that Creole stores in the client's history: signatures of thinking blocks, and ids of tool
//! calls.

pub(crate) mod marks;
pub mod signature;
pub(crate) mod tool_id;
