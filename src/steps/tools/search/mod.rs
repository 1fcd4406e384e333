//! Web searches: requests to the search service that the operator configured, and the pages in its
//! answers.
//!
//! | file | what it has |
//! |---|---|
//! | `services` | each kind of search service: its requests, and the places of results in its answers |
//! | `request` | the request for a search |
//! | `read` | the pages in an answer |
//! | `mcp_search` | search by a tool of an MCP server |
//! | `domains` | the client's lists of domains: which pages they permit |
//! | `snippet` | texts of pages, without control characters and not too long |

mod domains;
mod mcp_search;
mod read;
mod request;
mod services;
mod snippet;

use super::job::{Begun, Job, OwnOutput, Work};
use crate::config::{Settings, WebSearchService};
use crate::json;
use crate::model::search::{SearchFailure, SearchTool};
use crate::observe::report::Report;
use crate::steps::{Came, Question, ReadLimits, See};
use read::read;
use request::request;

/// Maximum size of a query, in bytes.
const QUERY_BYTES_MAX: usize = 400;

/// Web search for one call.
#[derive(Debug)]
struct SearchJob {
    service: WebSearchService,
    tool: SearchTool,
    query: String,
}

/// Begins the search for a call with this input.
///
/// # Errors
/// The output for an input without a query, or with a query that is too long.
pub(super) fn begin(tool: &SearchTool, input: &str, see: &See<'_>) -> Result<Begun, OwnOutput> {
    let failed = |failure| OwnOutput::Search(Err(failure));
    let unavailable = || failed(SearchFailure::Unavailable);
    let query = query_of(input).ok_or_else(|| failed(SearchFailure::InvalidToolInput))?;
    if query.len() > QUERY_BYTES_MAX {
        return Err(failed(SearchFailure::QueryTooLong));
    }
    let service = see.config.settings.server_tools.web_search.clone();
    if let Some(own) = &service.mcp {
        let job = mcp_search::begin(own, &service, tool, &query, see);
        return Ok(Begun { key: Some(query), work: Work::Asks(job.ok_or_else(unavailable)?) });
    }
    let job = SearchJob { service, tool: tool.clone(), query: query.clone() };
    Ok(Begun { key: Some(query), work: Work::Asks(Box::new(job)) })
}

/// Returns the query in the input of a call; `None` if the input is no object with a query.
fn query_of(input: &str) -> Option<String> {
    if !json::Reader::of(input).is_object() {
        return None;
    }
    let query = json::member(input, "query").and_then(json::string)?.decode();
    Some(query.trim().to_owned()).filter(|query| !query.is_empty())
}

impl Job for SearchJob {
    fn ask(&self, _: &See<'_>) -> Option<Question<'static>> {
        Some(Question::Service(request(&self.service, &self.tool, &self.query)))
    }

    fn limits(&self, status: u16, settings: &Settings) -> ReadLimits {
        // The status of an error is enough.
        let is_good = (200..300).contains(&status);
        let bytes_max = if is_good { settings.server_tools.answer_bytes_max } else { 0 };
        ReadLimits { bytes_max, is_half_enough: false }
    }

    fn take(&mut self, came: Came, _: &mut Report) -> Option<OwnOutput> {
        Some(OwnOutput::Search(match came {
            Came::Web(answer) if answer.is_whole || !(200..300).contains(&answer.status) => {
                read(&self.service, &self.tool, answer.status, &answer.body)
            }
            _ => Err(SearchFailure::Unavailable),
        }))
    }

    fn timeout_ms(&self, _: &Settings) -> u64 {
        self.service.timeout_ms
    }

    fn held_bytes(&self) -> usize {
        self.query.len()
    }
}

#[cfg(test)]
mod tests;
