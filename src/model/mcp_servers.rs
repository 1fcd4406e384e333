//! Request member `mcp_servers`: MCP servers whose tools Anthropic's API would call.

use std::fmt;

use crate::json;

/// JSON text of the list of MCP servers. The list holds access tokens, so `Debug` does not show the
/// text.
#[derive(Clone, Copy, Default)]
pub(crate) struct McpServers<'a>(&'a str);

impl<'a> McpServers<'a> {
    /// Wraps `list`, the JSON text of the array of MCP servers.
    pub(crate) fn new(list: &'a str) -> Self {
        Self(list)
    }

    /// Returns true if the request lists no MCP servers.
    pub(crate) fn is_empty(self) -> bool {
        self.elements().next().is_none()
    }

    /// Returns the MCP servers, each as the JSON text of an object.
    pub(crate) fn elements(self) -> impl Iterator<Item = &'a str> {
        json::elements(self.0)
    }
}

impl fmt::Debug for McpServers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("McpServers")
    }
}
