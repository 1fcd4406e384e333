//! Server tools that Creole runs, as a request defines them.

use super::fetch::FetchTool;
use super::mcp::function_name;
use super::search::SearchTool;

/// Server tool of a request that Creole runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnTool {
    /// Tool `web_search`.
    WebSearch(SearchTool),
    /// Tool `web_fetch`.
    WebFetch(FetchTool),
    /// Tool that searches the deferred tools of the request.
    ToolSearch(ToolSearchMethod),
    /// Tool of an MCP server.
    Mcp(McpToolName),
}

/// Method of a tool that searches deferred tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolSearchMethod {
    /// Regular expression that a text of the tool matches.
    Regex,
    /// Search terms, with the best match first (BM25).
    Bm25,
}

impl OwnTool {
    /// Returns the name of the tool in the request; for a tool of an MCP server, the name of its
    /// function.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::WebSearch(_) => "web_search",
            Self::WebFetch(_) => "web_fetch",
            Self::ToolSearch(ToolSearchMethod::Regex) => "tool_search_tool_regex",
            Self::ToolSearch(ToolSearchMethod::Bm25) => "tool_search_tool_bm25",
            Self::Mcp(name) => &name.function,
        }
    }

    /// Returns the name of the tool's kind in logs and metrics, one of
    /// [`TOOL_KINDS`](crate::observe::report::TOOL_KINDS).
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::WebSearch(_) => "web_search",
            Self::WebFetch(_) => "web_fetch",
            Self::ToolSearch(_) => "tool_search",
            Self::Mcp(_) => "mcp",
        }
    }

    /// Returns the maximum number of calls for one request, if the client sets one.
    #[must_use]
    pub fn max_uses(&self) -> Option<u64> {
        match self {
            Self::WebSearch(search) => search.max_uses,
            Self::WebFetch(fetch) => fetch.max_uses,
            Self::ToolSearch(_) | Self::Mcp(_) => None,
        }
    }
}

/// Names of an MCP server and of one of its tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpToolName {
    /// Name of the MCP server in the request.
    pub server: String,
    /// Name of the tool at the MCP server.
    pub tool: String,
    /// Name of the tool's function, before the upstream's rules for names.
    pub function: String,
}

impl McpToolName {
    pub(crate) fn new(server: &str, tool: &str) -> Self {
        let function = function_name(server, tool);
        Self { server: server.to_owned(), tool: tool.to_owned(), function }
    }
}

/// Reason why a search for tools has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolSearchFailure {
    /// Input of the model that is no search, with the words that tell the model why.
    InvalidToolInput(&'static str),
    /// Search above a limit of Creole.
    TooManyRequests,
    /// Search that would take too long.
    TooSlow,
}

impl ToolSearchFailure {
    /// Returns the error code of the Messages API.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::InvalidToolInput(_) => "invalid_tool_input",
            Self::TooManyRequests => "too_many_requests",
            Self::TooSlow => "execution_time_exceeded",
        }
    }

    /// Returns the words that tell the model why, if there are any.
    #[must_use]
    pub fn message(self) -> Option<&'static str> {
        match self {
            Self::InvalidToolInput(reason) => Some(reason),
            Self::TooManyRequests | Self::TooSlow => None,
        }
    }
}

/// Server tools that Creole runs and that a request offers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ToolsRunHere {
    pub(crate) web_search: bool,
    pub(crate) web_fetch: bool,
    pub(crate) tool_search: bool,
    pub(crate) mcp: bool,
    /// True if the model is asked to mark what it cites of a web search, as `[[1]]`.
    pub(crate) asks_for_marks: bool,
}

impl ToolsRunHere {
    /// Returns true if Creole runs a server tool.
    pub(crate) const fn any(self) -> bool {
        self.web_search || self.web_fetch || self.tool_search || self.mcp
    }

    /// Returns true if Creole runs the server tool of this name.
    pub(crate) fn has(self, name: &str) -> bool {
        match name {
            "web_search" => self.web_search,
            "web_fetch" => self.web_fetch,
            "tool_search_tool_regex" | "tool_search_tool_bm25" => self.tool_search,
            _ => false,
        }
    }
}
