//! Calls of tools that an upstream runs by itself.

use super::search::HostedSearch;

/// Call that the upstream ran by itself, with its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostedCall {
    /// Web search that the upstream ran, with its result.
    Search(HostedSearch),
    /// Call of an MCP server's tool that the upstream made, with its result.
    Mcp(McpCall),
}

/// Call of an MCP server's tool, with its result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct McpCall {
    /// Id of the MCP tool's call, as sent to the client.
    pub id: String,
    /// Name of the MCP server's tool.
    pub name: String,
    /// Name of the MCP server, as given by the client.
    pub server: String,
    /// Input of the MCP tool's call, as the JSON text of an object.
    pub input: String,
    /// Result of the MCP server's tool, or its error message; `None` if the call was cut off.
    pub text: Option<String>,
    /// True if the MCP server's tool failed or returned no output.
    pub is_error: bool,
}

impl HostedCall {
    /// Returns the memory size of the hosted call's texts in bytes.
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
