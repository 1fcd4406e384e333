//! Calls of tools that an upstream runs by itself.

use super::search::Search;

/// A call that the upstream ran, and its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostedCall {
    /// A search of the web.
    Search(Search),
    /// A call of a tool of an MCP server.
    Mcp(McpCall),
}

/// A call of a tool of an MCP server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct McpCall {
    /// The client's id of the call.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The server, by the name that the client gave it.
    pub server: String,
    /// The input, an object of JSON.
    pub input: String,
    /// What the tool gave, or what failed; nothing where the call was cut off.
    pub text: Option<String>,
    /// There is no result of the tool.
    pub is_error: bool,
}

impl HostedCall {
    /// Bytes that it takes in memory.
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
