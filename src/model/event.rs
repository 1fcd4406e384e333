//! Events of an answer: all that an upstream can send, in the order in which the client gets it.
//!
//! The reader of an upstream's protocol turns chunks into events; the writer of the client's
//! protocol turns events into bytes. Blocks come one after another, each between its begin and its
//! end. Texts are borrowed from the upstream's JSON and keep their escapes.

use super::context_management::Cleared;
use super::counts::Counts;
use super::fetch::{FetchFailure, FetchedPage};
use super::mcp::ListedTool;
use super::own_tool::ToolSearchFailure;
use super::search::{Citation, FoundPage, SearchFailure};
use crate::StopReason;

/// Event of an answer, independent of the wire protocol.
#[derive(Clone, Copy, Debug)]
pub enum Event<'e> {
    /// Event: the answer begins. The final token counts are not known yet.
    Started {
        /// Model name that the client uses.
        model: &'e str,
        /// Number of input tokens of the request: an estimate, or the upstream's count.
        input_tokens: u64,
    },
    /// Event: a text block begins.
    TextBegins,
    /// Event: the next piece of the open text block, JSON-escaped. A surrogate pair is never split.
    Text(&'e str),
    /// Event: a reasoning block begins.
    ThinkingBegins,
    /// Event: the next piece of the open reasoning block, JSON-escaped. A surrogate pair is never
    /// split.
    Thinking(&'e str),
    /// Event: the signature of the reasoning, after all its text. The client must send the
    /// signature back with the text.
    Signature(&'e str),
    /// Event: a tool call begins.
    CallBegins(CallStart<'e>),
    /// Event: the next piece of the open call's input, as JSON text that is not escaped.
    Input(&'e str),
    /// Event: a citation, which gives the source of words in the open text block.
    Citation(&'e Citation),
    /// Event: the result of a server tool's call, as a block of its own. The call came before, in
    /// this answer or in an earlier one.
    ServerResult(ServerResult<'e>),
    /// Event: the tools that an MCP server listed, as a block of its own.
    Listing(McpListing<'e>),
    /// Event: the open block is complete.
    BlockEnds,
    /// Event: the answer is complete.
    Stopped(&'e Stop<'e>),
}

/// First part of a tool call: id, name and kind, without the input.
#[derive(Clone, Copy, Debug)]
pub struct CallStart<'e> {
    /// Id of the tool call, as sent to the client.
    pub id: &'e str,
    /// Client's name of the tool; for a tool of an MCP server, the server's name of the tool.
    pub name: &'e str,
    /// Party that runs the tool call.
    pub kind: CallKind<'e>,
}

/// Party that runs a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind<'e> {
    /// Call that the client runs.
    Client {
        /// Client's toolset that the tool belongs to, such as `computer`.
        toolset: Option<&'static str>,
    },
    /// Call of a server tool, such as a web search, which the upstream or Creole runs.
    Server,
    /// Call of an MCP server's tool, which the upstream or Creole runs.
    Mcp {
        /// Name of the MCP server, as given by the client.
        server: &'e str,
    },
}

/// Call of a server tool that Creole runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerCall {
    /// Id of the server tool's call, as sent to the client.
    pub id: String,
    /// Name of the server tool; for a tool of an MCP server, the name of its function.
    pub name: String,
    /// Input of the server tool's call, as the model wrote it; not necessarily JSON.
    pub input: String,
}

impl ServerCall {
    /// Returns the memory size of the call's texts in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        [&self.id, &self.name, &self.input].into_iter().map(String::len).sum()
    }
}

/// Result of a server tool's call.
#[derive(Clone, Copy, Debug)]
pub struct ServerResult<'e> {
    /// Id of the call, as sent to the client.
    pub id: &'e str,
    /// Output of the tool, or its failure.
    pub output: ServerOutput<'e>,
    /// True if the result counts as a web search or a fetch of Creole's own in the token counts.
    pub is_counted: bool,
}

/// List of the tools of an MCP server. The client sends the list back, so that the server is not
/// asked again.
#[derive(Clone, Copy, Debug)]
pub struct McpListing<'e> {
    /// Name of the MCP server in the request.
    pub server: &'e str,
    /// Tools of the MCP server, in the server's order.
    pub tools: &'e [ListedTool],
}

/// Output of a server tool, or its failure.
#[derive(Clone, Copy, Debug)]
pub enum ServerOutput<'e> {
    /// Pages that a web search found.
    Pages(&'e [FoundPage]),
    /// Failure of a web search.
    SearchFailed(SearchFailure),
    /// Page that was fetched.
    Page(&'e FetchedPage),
    /// Failure to fetch a page.
    FetchFailed(FetchFailure),
    /// Names of the tools that a search for tools found.
    Tools(&'e [String]),
    /// Failure of a search for tools.
    ToolSearchFailed(ToolSearchFailure),
    /// Output of an MCP server's tool.
    Mcp {
        /// Texts of the output, or the error message; none if the call was cut off.
        texts: &'e [String],
        /// True if the tool failed or returned no output.
        is_error: bool,
    },
}

/// End of an answer: the stop reason and the token counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stop<'e> {
    /// Member `stop_reason` of the Messages API.
    pub reason: StopReason,
    /// Client's stop sequence that ended the answer, if any.
    pub sequence: Option<&'e str>,
    /// Text in which the model refused to answer, JSON-escaped.
    pub explanation: &'e str,
    /// Model name that the client uses.
    pub model: &'e str,
    /// Token counts of the whole answer.
    pub counts: Counts,
    /// Number of web searches that the upstream or Creole ran; `None` if the request offers no web
    /// search, or the upstream ran none.
    pub searches: Option<u64>,
    /// Number of pages that Creole fetched; `None` if the request offers no tool that fetches.
    pub fetches: Option<u64>,
    /// Token counts of each round, if the answer has several rounds and the client wants them.
    pub iterations: &'e [Counts],
    /// Service tier that served the request, as a value of the Messages API.
    pub service_tier: Option<&'static str>,
    /// Counts of what was cleared from the history; `None` if the client did not ask for clearing.
    pub cleared: Option<Cleared>,
}
