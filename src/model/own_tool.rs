//! Server tools that Creole runs, as a request defines them.

use super::fetch::FetchTool;
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
    /// Returns the name of the tool in the request.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::WebSearch(_) => "web_search",
            Self::WebFetch(_) => "web_fetch",
            Self::ToolSearch(ToolSearchMethod::Regex) => "tool_search_tool_regex",
            Self::ToolSearch(ToolSearchMethod::Bm25) => "tool_search_tool_bm25",
        }
    }

    /// Returns the maximum number of calls for one request, if the client sets one.
    #[must_use]
    pub fn max_uses(&self) -> Option<u64> {
        match self {
            Self::WebSearch(search) => search.max_uses,
            Self::WebFetch(fetch) => fetch.max_uses,
            Self::ToolSearch(_) => None,
        }
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
}

impl ToolsRunHere {
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
