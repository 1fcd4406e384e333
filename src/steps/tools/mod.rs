//! Server tools that Creole runs for models: calls between the rounds of an answer, and calls that
//! the history left without a result.
//!
//! ```text
//!  round ──▶ gate: calls of server tools ──▶ SearchCalls ──▶ questions to the search service
//!    ▲                                          │ results, in the order of the calls
//!    └──── request with blocks and results ◀────┘
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `gate` | writer that keeps the client's message open over several rounds |
//! | `calls` | calls of an answer with their results, and the limits of the loop |
//! | `pending` | calls that the history left without a result, and searches of Claude Code |
//! | `body` | request of the next round |
//! | `search` | requests to search services, and their results |

mod body;
mod calls;
mod gate;
mod pending;
pub(crate) mod search;

pub(crate) use pending::begin as begin_pending;

use super::{Between, See};
use crate::headers::Headers as _;
use crate::model::event::{CallKind, CallStart, Event, ServerCall, ServerOutput, ServerResult};
use crate::model::request_context::RequestContext;
use crate::model::search::{FoundPage, SearchFailure};
use crate::protocols::{self, AnswerWriter};
use calls::SearchCalls;
use gate::ToolGate;

/// Result of a web search: the pages found, or the reason why the search failed.
type SearchOutcome = Result<Vec<FoundPage>, SearchFailure>;

/// Block of a server tool with which an answer begins, before the first round.
#[derive(Debug)]
pub(crate) enum OpeningBlock {
    /// Call that Creole makes in the model's place.
    Call(ServerCall),
    /// Result of a web search, by the id of its call.
    Result(String, SearchOutcome),
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
            Self::Result(id, result) => write(Event::ServerResult(written(id, result, true))),
        }
    }

    /// Returns the number of successful searches that the block stands for.
    fn searches(&self) -> u64 {
        u64::from(matches!(self, Self::Result(_, Ok(_))))
    }

    fn held_bytes(&self) -> usize {
        match self {
            Self::Call(call) => call.held_bytes(),
            Self::Result(id, Ok(pages)) => id.len().saturating_add(held_bytes(pages)),
            Self::Result(id, Err(_)) => id.len(),
        }
    }
}

fn held_bytes(pages: &[FoundPage]) -> usize {
    pages.iter().map(FoundPage::held_bytes).fold(0, usize::saturating_add)
}

/// Returns the result of a web search as it is written for the client. `is_first`: true if the
/// search was run for this call, and not for an earlier, equal call.
fn written<'r>(id: &'r str, result: &'r SearchOutcome, is_first: bool) -> ServerResult<'r> {
    match result {
        Ok(pages) => ServerResult { id, output: ServerOutput::Pages(pages), is_counted: is_first },
        Err(failure) => failed(id, *failure),
    }
}

/// Returns the result of a web search that failed.
fn failed(id: &str, failure: SearchFailure) -> ServerResult<'_> {
    ServerResult { id, output: ServerOutput::SearchFailed(failure), is_counted: false }
}

/// Returns the step between the rounds of an answer, if Creole runs tools of the request.
pub(crate) fn begin(see: &See<'_>, context: &RequestContext) -> Option<Box<dyn Between>> {
    let tool = context.search.clone().filter(|_| see.can.ask_services)?;
    Some(Box::new(SearchCalls::new(tool, &see.config.settings.server_tools)))
}

/// Returns the writer of a message that continues over several rounds.
pub(crate) fn writer(
    see: &See<'_>,
    context: &RequestContext,
    opening: Vec<OpeningBlock>,
) -> Box<dyn AnswerWriter> {
    let client = protocols::writer(context.stream, see.ids);
    let record = protocols::writer(false, see.ids);
    let wants_rounds = see.headers.value("anthropic-beta").is_some();
    Box::new(ToolGate::new(client, record, opening, wants_rounds))
}
