//! Wire types of a Messages request, their readers, and the events of an answer. Module
//! `stop_reason` decides on an answer's `stop_reason`.
//!
//! The body is read once, from left to right, into borrowed structs: texts keep the client's
//! escapes, and schemas and tool inputs stay unparsed. An absent member and `null` mean the same.
//! An unknown member is counted and not refused, because clients add members with each release.

pub mod context_management;
pub mod counts;
pub mod event;
pub mod fetch;
pub mod hosted;
pub mod limits;
pub(crate) mod mcp;
pub(crate) mod mcp_servers;
pub(crate) mod member_places;
pub mod own_tool;
pub mod request_context;
pub mod search;

pub(crate) mod block;
mod cache_mark;
pub(crate) mod image_type;
pub(crate) mod reasoning;
pub(crate) mod request;
pub(crate) mod safeguards;
mod source;
pub(crate) mod stop_reason;
pub(crate) mod tool;
mod tool_names;
pub(crate) mod turn;
pub(crate) mod usage;

pub(crate) use block::{
    Block, DocumentBlock, DocumentSource, Image, ImageSource, SearchResult, ServerResultKind,
    ServerToolResult, ServerToolUse, Text, ToolResult, ToolUse,
};
pub(crate) use cache_mark::CacheMark;
pub(crate) use request::{Message, Request, Role, Thinking, ThinkingMode};
pub(crate) use source::{path_at, unknown_tag};
