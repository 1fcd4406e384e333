//! Calls of tools that an upstream runs by itself.

use super::search::HostedSearch;

/// Call that the upstream ran by itself, with its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostedCall {
    /// Web search.
    Search(HostedSearch),
    /// Call of an MCP server's tool.
    Mcp(McpCall),
}

/// Call of an MCP server's tool, with its result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct McpCall {
    /// Id of the call that the client gets.
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// Name of the MCP server, as given by the client.
    pub server: String,
    /// Input of the call, as the JSON text of an object.
    pub input: String,
    /// Result of the tool, or its error message; `None` if the call was cut off.
    pub text: Option<String>,
    /// True if the tool failed or returned no output.
    pub is_error: bool,
}

impl HostedCall {
    /// Returns the memory size of the call's texts in bytes.
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
