//! Searches for deferred tools: by a regular expression, or by search terms.
//!
//! | file | what it has |
//! |---|---|
//! | `catalogue` | deferred tools of a request, with the texts that are searched |
//! | `pattern` | search by a regular expression |
//! | `terms` | search by terms, with the best match first |

mod catalogue;
mod pattern;
mod terms;

use super::job::{Begun, OwnOutput, Work};
use crate::json;
use crate::model::own_tool::{ToolSearchFailure, ToolSearchMethod};
use crate::steps::See;
use catalogue::DeferredTool;

/// Number of tools that a search loads, unless the model says otherwise.
const LIMIT: usize = 5;
const LIMIT_MAX: usize = 10_000;

/// Maximum number of characters of a regular expression.
const PATTERN_MAX: usize = 200;

/// Maximum number of characters of search terms.
const QUERY_MAX: usize = 500;

/// Search that a model asks for.
struct ToolSearch {
    /// Regular expression, or search terms.
    text: String,
    /// Maximum number of tools that are found.
    limit: usize,
}

/// Runs the search of a call with this input.
///
/// # Errors
/// The output for an input that is no search.
pub(super) fn begin(
    method: ToolSearchMethod,
    input: &str,
    see: &See<'_>,
) -> Result<Begun, OwnOutput> {
    let failed = |failure| OwnOutput::Tools(Err(failure));
    let search = ToolSearch::read(method, input)
        .map_err(|reason| failed(ToolSearchFailure::InvalidToolInput(reason)))?;
    let tools =
        catalogue::of(see.text().unwrap_or_default(), &see.config.settings.server_tools.mcp);
    let found = match method {
        ToolSearchMethod::Regex => pattern::find(&search.text, &tools, search.limit),
        ToolSearchMethod::Bm25 => Ok(terms::find(&search.text, &tools, search.limit)),
    };
    let name = |tool: &&DeferredTool| tool.name.clone();
    let found = found.map_err(failed)?.iter().map(name).collect();
    let key = format!("{} {}", search.limit, search.text);
    Ok(Begun { key: Some(key), work: Work::Known(OwnOutput::Tools(Ok(found))) })
}

impl ToolSearch {
    /// Reads the input of a call.
    ///
    /// # Errors
    /// The words that tell the model what is wrong.
    fn read(method: ToolSearchMethod, input: &str) -> Result<Self, &'static str> {
        if !json::Reader::of(input).is_object() {
            return Err("the input is no object");
        }
        let (name, missing, most, too_long) = match method {
            ToolSearchMethod::Regex => (
                "pattern",
                "pattern: expected a string",
                PATTERN_MAX,
                "pattern: expected at most 200 characters",
            ),
            ToolSearchMethod::Bm25 => (
                "query",
                "query: expected a string",
                QUERY_MAX,
                "query: expected at most 500 characters",
            ),
        };
        let text = json::member(input, name).and_then(json::string).ok_or(missing)?.decode();
        if text.trim().is_empty() {
            return Err(missing);
        }
        if text.chars().nth(most).is_some() {
            return Err(too_long);
        }
        let limit = match json::member(input, "limit") {
            None | Some("null") => LIMIT,
            Some(limit) => limit
                .parse()
                .ok()
                .filter(|limit| (1..=LIMIT_MAX).contains(limit))
                .ok_or("limit: expected an integer from 1 to 10000")?,
        };
        Ok(Self { text: text.into_owned(), limit })
    }
}

#[cfg(test)]
mod tests;
