//! Calls of tools that an upstream runs by itself.

use super::search::Search;

/// Call that the upstream ran itself, and its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostedCall {
    /// Search of the web.
    Search(Search),
    /// Call of a tool of an MCP server.
    Mcp(McpCall),
}

/// Call of a tool of an MCP server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct McpCall {
    /// Id of the call, as the client gets it.
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// Name of the MCP server, as the client gave it.
    pub server: String,
    /// Input of the call, as the JSON text of an object.
    pub input: String,
    /// Result of the tool, or its error message; `None` where the call was cut off.
    pub text: Option<String>,
    /// True if the tool gave no result.
    pub is_error: bool,
}

impl HostedCall {
    /// Returns the number of bytes of the call's texts in memory.
    pub(crate) fn held_bytes(&self) -> usize {
        match self {
            Self::Search(search) => search.held_bytes(),
            Self::Mcp(call) => {
                let texts = [&call.id, &call.name, &call.server, &call.input];
                let texts = texts.into_iter().chain(&call.text);
                texts.map(String::len).sum()
            }
        }
    }
}
