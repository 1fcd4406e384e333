//! Requests that ask for one search and nothing else, as Claude Code's `WebSearch` sends them.
//!
//! | `side_query` | what is done |
//! |---|---|
//! | `search` | the search is run, and then the model is asked |
//! | `results` | the search is run, and its results are the answer |
//! | `model` | the model is asked, and must search |

use super::OpeningBlock;
use super::body::NextRequest;
use super::job::OwnOutput;
use crate::config::Settings;
use crate::error::Error;
use crate::json;
use crate::model::event::ServerCall;
use crate::model::{Block, Request, Role};
use crate::observe::report::Report;
use crate::steps::{Came, Change, Question, See, Step};
use crate::text::words;

/// Beginning of the text with which Claude Code asks for a web search.
const CLAUDE_CODE_ASKS: &str = "Perform a web search for the query: ";

/// Returns true if a body can be such a request.
pub(super) fn is_possible(body: &str) -> bool {
    words::has(body, CLAUDE_CODE_ASKS)
}

/// Returns the query of a request in which Claude Code asks for one search.
pub(super) fn query_of(request: &Request<'_>) -> Option<String> {
    // Toolsets of servers that the operator offers do not count.
    let of_client = request.tools.iter().filter(|tool| tool.tool_type != "mcp_toolset");
    let ([message], 1) = (request.messages.as_slice(), of_client.count()) else {
        return None;
    };
    let [Block::Text(text)] = message.content.as_slice() else { return None };
    let text = text.text.decode();
    let query = text.strip_prefix(CLAUDE_CODE_ASKS).filter(|_| message.role == Role::User)?;
    Some(query.trim().to_owned())
}

/// Returns the call that Creole makes in the model's place.
pub(super) fn call_of(query: &str, see: &See<'_>) -> ServerCall {
    let input = json::written(|json| {
        json.begin_object().key("query").text(query).end_object();
    });
    ServerCall { id: see.ids.search(0), name: "web_search".to_owned(), input }
}

/// Returns the text that lists the results of the searches among `blocks`.
pub(super) fn listing(blocks: &[OpeningBlock]) -> OpeningBlock {
    let pages = blocks.iter().filter_map(|block| match block {
        OpeningBlock::Result(_, OwnOutput::Search(Ok(pages)), _) => Some(pages),
        _ => None,
    });
    let mut list = String::new();
    for (at, page) in pages.flatten().enumerate() {
        if at > 0 {
            list.push_str("\n\n");
        }
        list.push_str(&format!("{}. {}\n{}", at.saturating_add(1), page.title, page.url));
        if !page.text.is_empty() {
            list.push('\n');
            list.push_str(&page.text);
        }
    }
    let failed = |block: &OpeningBlock| {
        matches!(block, OpeningBlock::Result(_, OwnOutput::Search(Err(_)), _))
    };
    if list.is_empty() {
        let is_failure = blocks.iter().any(failed);
        list.push_str(if is_failure { "The search failed." } else { "Nothing was found." });
    }
    OpeningBlock::Text(list)
}

/// Step that forces the model to search in the first round.
#[derive(Debug)]
pub(super) struct ForcedSearch;

/// Returns true if a `tool_choice` leaves it to the model whether it searches.
pub(super) fn is_free(choice: &str) -> bool {
    matches!(json::member(choice, "type"), None | Some("\"auto\""))
}

impl Step for ForcedSearch {
    fn timeout_ms(&self, _: &Settings) -> u64 {
        0
    }

    fn questions_left(&self) -> usize {
        0
    }

    fn ask<'s>(&self, _: &See<'s>, _: usize) -> Option<Question<'s>> {
        None
    }

    fn take(&mut self, _: Came, _: &mut Report) {}

    fn done(self: Box<Self>, see: &See<'_>, _: &mut Report) -> Result<Change, Error> {
        let body = see.text().unwrap_or_default();
        let choice = json::member(body, "tool_choice").unwrap_or_default();
        let forced = json::written(|json| {
            json.begin_object().kind("tool").key("name").text("web_search");
            if let Some(one) = json::member(choice, "disable_parallel_tool_use") {
                json.key("disable_parallel_tool_use").raw(one);
            }
            json.end_object();
        });
        let next = NextRequest {
            tool_choice: Some(&forced),
            needs_choice: true,
            ..NextRequest::default()
        };
        Ok(Change::Body(next.written(body)))
    }

    fn held_bytes(&self) -> usize {
        0
    }
}
