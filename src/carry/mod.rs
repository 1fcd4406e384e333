//! Data that Creole stores in the client's history: signatures of thinking blocks, ids of tool
//! calls, and texts of search results.

pub(crate) mod marks;
pub(crate) mod sealed;
pub mod signature;
pub(crate) mod tool_id;
