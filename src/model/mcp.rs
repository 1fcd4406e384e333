//! MCP servers that Creole calls itself, and the tools that they list.

use std::fmt;

use crate::json::Writer;

/// MCP server that Creole calls for a request.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct McpTarget {
    /// Name of the MCP server in the request.
    pub name: String,
    /// Address to which each message for the server is posted.
    pub url: String,
    /// Token for this server and no other.
    pub token: Option<String>,
    /// Version of the protocol that the operator names; `None` if the server is asked for it.
    pub revision: Option<&'static str>,
    /// Longest wait for a result of the server's tools, in milliseconds.
    pub timeout_ms: u64,
    /// True if only the request names the server, which must then not be in a private network.
    pub is_public: bool,
    /// Cluster of the MCP server in Envoy; may be empty on other hosts.
    pub cluster: String,
}

// The URL and the token are secrets of the operator or of a client.
impl fmt::Debug for McpTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("McpTarget")
    }
}

/// Tool of an MCP server, as the server lists it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedTool {
    /// Name of the tool at its MCP server.
    pub name: String,
    /// Description of the listed tool, in the server's words.
    pub description: String,
    /// JSON Schema of the listed tool's arguments, as JSON text of an object.
    pub input_schema: String,
}

impl ListedTool {
    /// Writes the listed tool in the form of toolsets and lists of the Messages API.
    pub(crate) fn write(&self, json: &mut Writer<'_>) {
        json.begin_object().key("name").text(&self.name);
        json.key("description").text(&self.description);
        json.key("input_schema").raw(&self.input_schema).end_object();
    }

    /// Returns the memory size of the listed tool's texts in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        [&self.name, &self.description, &self.input_schema].into_iter().map(String::len).sum()
    }
}

/// Prefix of the function of an MCP server's tool.
const PREFIX: &str = "mcp__";

/// Returns the name of the function by which a model calls a tool of an MCP server, before the
/// upstream's rules for names.
pub(crate) fn function_name(server: &str, tool: &str) -> String {
    [PREFIX, server, "__", tool].concat()
}

/// Output of a call of an MCP server's tool.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct McpOutput {
    /// Texts of the output, never empty.
    pub(crate) texts: Vec<String>,
    pub(crate) is_error: bool,
}

// Outputs are data of users.
impl fmt::Debug for McpOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "McpOutput({} bytes)", self.held_bytes())
    }
}

impl McpOutput {
    /// Returns an output that tells an error.
    pub(crate) fn error(text: impl Into<String>) -> Self {
        Self { texts: vec![text.into()], is_error: true }
    }

    /// Returns the memory size of the output's texts in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        self.texts.iter().map(String::len).fold(0, usize::saturating_add)
    }
}
