//! Calls of tools that an upstream runs by itself.

use std::borrow::Cow;

use super::event::{CallKind, CallStart, Event, ServerOutput, ServerResult};
use super::search::{HostedSearch, SearchFailure};
use crate::json;

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
    /// Calls `write` with the events of the hosted call and its result: two blocks.
    pub(crate) fn write(&self, mut write: impl FnMut(Event<'_>)) {
        let (start, input) = self.start();
        write(Event::CallBegins(start));
        write(Event::Input(&input));
        write(Event::BlockEnds);
        let (id, output) = (start.id, self.output());
        // The reader of the upstream's answer counts the searches that the upstream ran.
        write(Event::ServerResult(ServerResult { id, output, is_counted: false }));
    }

    /// Returns the beginning and the input of the hosted call.
    fn start(&self) -> (CallStart<'_>, Cow<'_, str>) {
        match self {
            Self::Search(HostedSearch { id, query, .. }) => {
                let input = json::written(|json| {
                    json.begin_object().key("query").text(query).end_object();
                });
                (CallStart { id, name: "web_search", kind: CallKind::Server }, Cow::Owned(input))
            }
            Self::Mcp(McpCall { id, name, server, input, .. }) => {
                (CallStart { id, name, kind: CallKind::Mcp { server } }, Cow::Borrowed(input))
            }
        }
    }

    fn output(&self) -> ServerOutput<'_> {
        match self {
            Self::Search(HostedSearch { found: Some(found), .. }) => ServerOutput::Pages(found),
            Self::Search(_) => ServerOutput::SearchFailed(SearchFailure::Unavailable),
            Self::Mcp(McpCall { text, is_error, .. }) => {
                ServerOutput::Mcp { texts: text.as_slice(), is_error: *is_error }
            }
        }
    }

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
