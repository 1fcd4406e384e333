//! Server tools that Creole runs for models: calls between the rounds of an answer, and calls that
//! the history left without a result.
//!
//! ```text
//!  round ──▶ gate: calls of server tools ──▶ OwnCalls ──▶ questions to the search service
//!    ▲                                          │ results, in the order of the calls
//!    └──── request with blocks and results ◀────┘
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `gate` | writer that keeps the client's message open over several rounds |
//! | `cite` | citations of pages that web searches found |
//! | `calls` | calls of an answer with their results, and the limits of the loop |
//! | `kinds` | kinds of tools: a row for each |
//! | `job` | work for one call, and its output |
//! | `pending` | calls that the history left without a result |
//! | `side_query` | requests of Claude Code that ask for one search |
//! | `body` | request of the next round |
//! | `search` | `web_search`: requests to search services, and their results |
//! | `tool_search` | `tool_search_tool_regex`, `tool_search_tool_bm25`: searches for deferred tools |
//! | `fetch` | `web_fetch`: pages that are fetched |
//! | `mcp` | `mcp_servers`: lists and calls of tools of MCP servers |

mod body;
mod calls;
mod cite;
mod fetch;
mod gate;
mod job;
mod kinds;
pub(crate) mod mcp;
mod pending;
mod search;
mod side_query;
mod tool_search;

pub(crate) use pending::begin as begin_pending;

use std::sync::Arc;

use super::{Between, See};
use crate::headers::Headers as _;
use crate::json;
use crate::model::event::{CallKind, CallStart, Event, McpListing, ServerCall, ServerResult};
use crate::model::own_tool::OwnTool;
use crate::model::request_context::RequestContext;
use crate::protocols::{self, AnswerWriter};
use calls::OwnCalls;
use cite::CitingWriter;
use gate::{Told, ToolGate};
use job::OwnOutput;
use mcp::McpList;

/// Block of a server tool with which an answer begins, before the first round.
#[derive(Debug)]
pub(crate) enum OpeningBlock {
    /// Call that Creole makes in the model's place.
    Call(ServerCall),
    /// Result of a call, by the id of the call, and true if the tool was run for this call.
    Result(String, OwnOutput, bool),
    /// Text that Creole writes in the model's place.
    Text(String),
    /// Tools that an MCP server listed, by the name of the server.
    Listing(String, Arc<McpList>),
}

impl OpeningBlock {
    /// Calls `write` with the events of the block.
    fn write(&self, mut write: impl FnMut(Event<'_>)) {
        match self {
            Self::Call(ServerCall { id, name, input }) => {
                write(Event::CallBegins(CallStart { id, name, kind: CallKind::Server }));
                write(Event::Input(input));
                write(Event::BlockEnds);
            }
            Self::Result(id, output, is_first) => {
                write(Event::ServerResult(output.result(id, *is_first)));
            }
            Self::Listing(server, list) => {
                write(Event::Listing(McpListing { server, tools: &list.tools }));
            }
            Self::Text(text) => {
                write(Event::TextBegins);
                write(Event::Text(&json::escaped(text)));
                write(Event::BlockEnds);
            }
        }
    }

    /// Returns the result in the block, if it is one.
    fn result(&self) -> Option<ServerResult<'_>> {
        match self {
            Self::Call(_) | Self::Text(_) | Self::Listing(..) => None,
            Self::Result(id, output, is_first) => Some(output.result(id, *is_first)),
        }
    }

    /// Returns the memory size of the block's texts in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        match self {
            Self::Call(call) => call.held_bytes(),
            Self::Result(id, output, _) => id.len().saturating_add(output.held_bytes()),
            Self::Text(text) => text.len(),
            Self::Listing(server, list) => server.len().saturating_add(list.held_bytes()),
        }
    }
}

/// Returns the step between the rounds of an answer, if Creole runs tools of the request.
pub(crate) fn begin(see: &See<'_>, context: &RequestContext) -> Option<Box<dyn Between>> {
    if context.own_tools.is_empty() || !see.can.ask_services {
        return None;
    }
    let tools = context.own_tools.clone();
    Some(Box::new(OwnCalls::new(tools, &see.config.settings.server_tools)))
}

/// Returns the writer of a message that continues over several rounds.
pub(crate) fn writer(
    see: &See<'_>,
    context: &RequestContext,
    opening: Vec<OpeningBlock>,
) -> Box<dyn AnswerWriter> {
    let client = see.protocol.writer(context.stream, see.ids);
    let record = protocols::MESSAGES.writer(false, see.ids);
    let wants_rounds = see.headers.value("anthropic-beta").is_some();
    let is_of_web = |tool: &OwnTool| matches!(tool, OwnTool::WebSearch(_) | OwnTool::WebFetch(_));
    let uses = context.own_tools.iter().any(|tool| is_of_web(tool));
    let told = Told { rounds: wants_rounds, uses };
    let gate = ToolGate::new((client, record), opening, told);
    let gate = Box::new(gate.with_mixed(see.config.settings.server_tools.mixed_turns));
    let asks_for_marks =
        |tool: &OwnTool| matches!(tool, OwnTool::WebSearch(search) if search.asks_for_marks);
    match context.own_tools.iter().any(|tool| asks_for_marks(tool)) {
        true => Box::new(CitingWriter::new(gate, context.pages.clone())),
        false => gate,
    }
}
