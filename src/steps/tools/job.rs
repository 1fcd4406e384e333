//! Work for calls of server tools: what a tool makes of a call, its questions, and its output.

use std::fmt;

use crate::config::Settings;
use crate::model::event::{ServerOutput, ServerResult};
use crate::model::fetch::{FetchFailure, FetchedPage};
use crate::model::mcp::McpOutput;
use crate::model::own_tool::{OwnTool, ToolSearchFailure};
use crate::model::search::{FoundPage, SearchFailure};
use crate::observe::report::Report;
use crate::steps::{Came, Question, ReadLimits, See};

/// Work for one call of a server tool: questions, one after another, and then the output.
pub(super) trait Job: fmt::Debug + Send + Sync {
    /// Returns the job's question; `None` if it cannot be asked before an earlier job has its
    /// answer.
    fn ask(&self, see: &See<'_>) -> Option<Question<'static>>;

    /// Returns the limits for reading an answer with this HTTP status.
    fn limits(&self, status: u16, settings: &Settings) -> ReadLimits;

    /// Takes the answer to the question. Returns the output, or `None` if the job has another
    /// question.
    fn take(&mut self, came: Came, report: &mut Report) -> Option<OwnOutput>;

    /// Returns the timeout of the job with all its questions, in milliseconds.
    fn timeout_ms(&self, settings: &Settings) -> u64;

    /// Returns the number of bytes that the job keeps in memory.
    fn held_bytes(&self) -> usize;
}

/// Work that a tool begins for a call.
pub(super) struct Begun {
    /// Input of the call in a form that is the same for equal calls, which are answered once;
    /// `None` if each call is run.
    pub(super) key: Option<String>,
    pub(super) work: Work,
}

/// Way to the output of a call.
pub(super) enum Work {
    /// Output that is known without a question.
    Known(OwnOutput),
    Asks(Box<dyn Job>),
}

/// Limit because of which a call is not run.
#[derive(Clone, Copy, Debug)]
pub(super) enum CallLimit {
    /// Limit on the calls of an answer, their results or their time.
    OfAnswer,
    /// Limit that the client sets with `max_uses`.
    OfTool,
}

/// Output of a server tool's call.
#[derive(Clone, Debug)]
pub(crate) enum OwnOutput {
    Search(Result<Vec<FoundPage>, SearchFailure>),
    /// Output of a fetch, and true if a server was asked for the page.
    Page(Result<FetchedPage, FetchFailure>, bool),
    /// Output of an MCP server's tool, or the words for its lack.
    Mcp(McpOutput),
    /// Output of a search for tools: the names of the tools found.
    Tools(Result<Vec<String>, ToolSearchFailure>),
}

impl OwnOutput {
    /// Returns the output of a call that is not run because of a limit.
    pub(super) fn of_limit(tool: &OwnTool, limit: CallLimit) -> Self {
        match (tool, limit) {
            (OwnTool::WebSearch(_), CallLimit::OfAnswer) => {
                Self::Search(Err(SearchFailure::TooManyRequests))
            }
            (OwnTool::WebSearch(_), CallLimit::OfTool) => {
                Self::Search(Err(SearchFailure::MaxUsesExceeded))
            }
            (OwnTool::WebFetch(_), CallLimit::OfAnswer) => {
                Self::Page(Err(FetchFailure::TooManyRequests), false)
            }
            (OwnTool::WebFetch(_), CallLimit::OfTool) => {
                Self::Page(Err(FetchFailure::MaxUsesExceeded), false)
            }
            (OwnTool::ToolSearch(_), _) => Self::Tools(Err(ToolSearchFailure::TooManyRequests)),
            (OwnTool::Mcp(_), _) => Self::Mcp(McpOutput::error("Too many calls.")),
        }
    }

    /// Returns the result of the call with this id. `is_first`: true if the output was made for
    /// this call, and not for an earlier, equal call.
    pub(super) fn result<'r>(&'r self, id: &'r str, is_first: bool) -> ServerResult<'r> {
        let output = match self {
            Self::Search(Ok(pages)) => ServerOutput::Pages(pages),
            Self::Search(Err(failure)) => ServerOutput::SearchFailed(*failure),
            Self::Page(Ok(page), _) => ServerOutput::Page(page),
            Self::Page(Err(failure), _) => ServerOutput::FetchFailed(*failure),
            Self::Mcp(output) => {
                ServerOutput::Mcp { texts: &output.texts, is_error: output.is_error }
            }
            Self::Tools(Ok(names)) => ServerOutput::Tools(names),
            Self::Tools(Err(failure)) => ServerOutput::ToolSearchFailed(*failure),
        };
        ServerResult { id, output, is_counted: is_first && self.counts() }
    }

    /// Returns true if the output is told as a search or a fetch in the token counts: a search that
    /// succeeded, or a page that a server was asked for.
    fn counts(&self) -> bool {
        match self {
            Self::Search(result) => result.is_ok(),
            Self::Page(_, was_asked) => *was_asked,
            Self::Tools(_) | Self::Mcp(_) => false,
        }
    }

    pub(super) fn is_failure(&self) -> bool {
        match self {
            Self::Search(result) => result.is_err(),
            Self::Page(result, _) => result.is_err(),
            Self::Tools(result) => result.is_err(),
            Self::Mcp(output) => output.is_error,
        }
    }

    /// Returns the memory size of the output's texts in bytes.
    pub(super) fn held_bytes(&self) -> usize {
        match self {
            Self::Search(Ok(pages)) => {
                pages.iter().map(FoundPage::held_bytes).fold(0, usize::saturating_add)
            }
            Self::Tools(Ok(names)) => names.iter().map(String::len).fold(0, usize::saturating_add),
            Self::Page(Ok(page), _) => page.held_bytes(),
            Self::Mcp(output) => output.held_bytes(),
            Self::Search(Err(_)) | Self::Page(Err(_), _) | Self::Tools(Err(_)) => 0,
        }
    }
}
