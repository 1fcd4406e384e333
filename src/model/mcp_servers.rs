//! `mcp_servers`: servers whose tools the real API would call.

use std::fmt;

use crate::json;

/// The list, as it was written. It has tokens, so it has no readable `Debug`.
#[derive(Clone, Copy, Default)]
pub(crate) struct McpServers<'a>(&'a str);

impl<'a> McpServers<'a> {
    /// `list`: an array of objects.
    pub(crate) fn new(list: &'a str) -> Self {
        Self(list)
    }

    /// Whether it names none.
    pub(crate) fn is_empty(self) -> bool {
        self.elements().next().is_none()
    }

    /// The servers, each an object.
    pub(crate) fn elements(self) -> impl Iterator<Item = &'a str> {
        json::elements(self.0)
    }
}

impl fmt::Debug for McpServers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("McpServers")
    }
}
