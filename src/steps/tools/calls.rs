//! Calls of the tool `web_search` in one answer: their results, and the limits of the loop.
//!
//! Each call gets one result, and a failure is a result, too. An equal call is answered from the
//! result of the first one, without another search. A loop ends: the last round has no server
//! tools, so that the model must answer.

use std::sync::Arc;

use super::body::NextRequest;
use super::search;
use super::{OpeningBlock, SearchOutcome, failed, written};
use crate::StopReason;
use crate::config::{ServerTools, Settings};
use crate::error::Error;
use crate::json;
use crate::model::event::{ServerCall, ServerResult};
use crate::model::search::{SearchFailure, SearchTool};
use crate::observe::report::Report;
use crate::steps::{
    Between, Came, Change, EndedRound, Limit, NextRound, Question, ReadLimits, See, Step,
};
use crate::text::words;
use crate::tools::is_of_server;

/// Maximum size of a query, in bytes.
const QUERY_BYTES_MAX: usize = 400;

/// Number of equal calls from which on the model must answer without server tools.
const REPEATS_MAX: u32 = 3;

/// Number of output tokens below which no further round begins.
const TOKENS_MIN: u64 = 16;

/// Number of searches that are run at the same time, for the time that all of them may take.
const AT_ONCE: usize = 4;

/// Calls of web searches in one answer, over all its rounds.
#[derive(Debug)]
pub(crate) struct SearchCalls {
    tool: Arc<SearchTool>,
    limits: ServerTools,
    /// Calls of the round, in the order in which the model made them.
    round: Vec<RoundCall>,
    /// Number of calls of the round whose results the client has.
    told: usize,
    /// Searches of all rounds, in the order in which they are run.
    searches: Vec<Search>,
    /// Number of requests to the upstream for the answer.
    turns: u32,
    calls: u32,
    /// Number of searches for which the search service was asked, or will be.
    uses: u64,
    result_bytes: usize,
    /// Number of output tokens of the round.
    output_tokens: u64,
    failed: u32,
    /// True if the model repeats its calls, so that the next round is the last.
    must_answer: bool,
    /// True if the request already has a message with the beginning of the answer.
    is_begun: bool,
    /// True if the time for further calls is over.
    is_late: bool,
    /// True if the number of rounds is told in the header; `None` before the first is.
    tells_turn: Option<bool>,
}

/// Call of a round.
#[derive(Debug)]
struct RoundCall {
    id: String,
    /// Search that answers the call, by its index, or the reason why nothing is searched.
    outcome: Result<usize, SearchFailure>,
    /// True if the search is run for this call, and not for an earlier, equal call.
    is_first: bool,
}

/// Web search of an answer.
#[derive(Debug)]
struct Search {
    query: String,
    /// Number of calls that the search answers.
    calls: u32,
    /// Result of the search, once known.
    result: Option<SearchOutcome>,
}

impl Search {
    fn held_bytes(&self) -> usize {
        let pages = self.result.as_ref().and_then(|result| result.as_ref().ok());
        self.query.len().saturating_add(pages.map_or(0, |pages| super::held_bytes(pages)))
    }
}

impl SearchCalls {
    pub(super) fn new(tool: Arc<SearchTool>, limits: &ServerTools) -> Self {
        Self {
            tool,
            limits: limits.clone(),
            round: Vec::new(),
            told: 0,
            searches: Vec::new(),
            turns: 1,
            calls: 0,
            uses: 0,
            result_bytes: 0,
            output_tokens: 0,
            failed: 0,
            must_answer: false,
            is_begun: false,
            is_late: false,
            tells_turn: None,
        }
    }

    /// Adds a call, and decides how the call is answered.
    pub(super) fn add(&mut self, call: ServerCall) {
        self.calls = self.calls.saturating_add(1);
        let (outcome, is_first) = match self.search_for(&call) {
            Ok((search, is_first)) => (Ok(search), is_first),
            Err(failure) => (Err(failure), false),
        };
        self.failed = self.failed.saturating_add(u32::from(outcome.is_err()));
        self.round.push(RoundCall { id: call.id, outcome, is_first });
    }

    /// Returns the index of the search that answers a call, and true if the search is new.
    fn search_for(&mut self, call: &ServerCall) -> Result<(usize, bool), SearchFailure> {
        let query = query_of(&call.input).ok_or(SearchFailure::InvalidToolInput)?;
        if query.len() > QUERY_BYTES_MAX {
            return Err(SearchFailure::QueryTooLong);
        }
        let is_full = self.result_bytes >= self.limits.results_bytes_max;
        if self.calls > self.limits.calls_max || is_full || self.is_late {
            return Err(SearchFailure::TooManyRequests);
        }
        let known = self.searches.iter_mut().enumerate().find(|(_, known)| known.query == query);
        if let Some((at, search)) = known {
            search.calls = search.calls.saturating_add(1);
            self.must_answer |= search.calls >= REPEATS_MAX;
            self.result_bytes = self.result_bytes.saturating_add(search.held_bytes());
            return Ok((at, false));
        }
        if self.tool.max_uses.is_some_and(|most| self.uses >= most) {
            return Err(SearchFailure::MaxUsesExceeded);
        }
        self.uses = self.uses.saturating_add(1);
        self.searches.push(Search { query, calls: 1, result: None });
        Ok((self.searches.len().saturating_sub(1), true))
    }

    /// Returns the searches without a result.
    fn waiting(&self) -> impl Iterator<Item = &Search> {
        self.searches.iter().filter(|search| search.result.is_none())
    }

    /// Returns the results of all calls as blocks with which an answer begins.
    pub(super) fn opening(&self) -> Vec<OpeningBlock> {
        let block = |call: &RoundCall| {
            let result = match call.outcome {
                Ok(at) => self.searches.get(at)?.result.clone()?,
                Err(failure) => Err(failure),
            };
            Some(OpeningBlock::Result(call.id.clone(), result))
        };
        self.round.iter().filter_map(block).collect()
    }

    /// Ends the calls before the first round.
    pub(super) fn end_opening(&mut self, see: &See<'_>, report: &mut Report) {
        self.is_begun = true;
        self.end_round(see, report);
    }

    /// Ends the calls of a round, whose results the client has.
    fn end_round(&mut self, see: &See<'_>, report: &mut Report) {
        self.note_time(see, report);
        self.note(report);
        self.round.clear();
        self.told = 0;
    }

    fn note_time(&self, see: &See<'_>, report: &mut Report) {
        if let Some(spent) = see.spent_ms() {
            let tools = report.tools.get_or_insert_default();
            tools.duration_ms = tools.duration_ms.saturating_add(spent);
        }
    }

    /// Notes the calls and their failures in the report.
    fn note(&mut self, report: &mut Report) {
        let tools = report.tools.get_or_insert_default();
        (tools.turns, tools.calls, tools.failed) = (self.turns, self.calls, self.failed);
        // The guard of the client's turns has the same header.
        let is_free = report.warnings.tool_turn().is_none();
        if *self.tells_turn.get_or_insert(is_free) {
            report.warnings.set_tool_turn(self.turns, self.limits.turns_max);
        }
    }

    /// Returns the limit because of which the next round must answer.
    fn limit(&self) -> Option<Limit> {
        if self.must_answer {
            return Some(Limit::Repeats);
        }
        (self.turns >= self.limits.turns_max).then_some(Limit::Rounds)
    }
}

/// Returns the query in the input of a call; `None` if the input is no object with a query.
fn query_of(input: &str) -> Option<String> {
    if !json::Reader::of(input).is_object() {
        return None;
    }
    let query = json::member(input, "query").and_then(json::string)?.decode();
    Some(query.trim().to_owned()).filter(|query| !query.is_empty())
}

impl Step for SearchCalls {
    fn timeout_ms(&self, settings: &Settings) -> u64 {
        let batches = self.waiting().count().div_ceil(AT_ONCE).max(1) as u64;
        settings.server_tools.web_search.timeout_ms.saturating_mul(batches)
    }

    fn questions_left(&self) -> usize {
        self.waiting().count()
    }

    fn ask<'s>(&self, see: &See<'s>, ahead: usize) -> Option<Question<'s>> {
        let search = self.waiting().nth(ahead)?;
        let service = &see.config.settings.server_tools.web_search;
        let question = search::request(service, &self.tool, &search.query);
        Some(Question::Service(question))
    }

    fn limits(&self, status: u16, settings: &Settings) -> ReadLimits {
        // The status of an error is enough.
        let is_good = (200..300).contains(&status);
        let bytes_max = if is_good { settings.server_tools.answer_bytes_max } else { 0 };
        ReadLimits { bytes_max, is_half_enough: false }
    }

    fn take(&mut self, came: Came, report: &mut Report) {
        let service = &self.limits.web_search;
        let is_full = self.result_bytes >= self.limits.results_bytes_max;
        let result = match came {
            _ if is_full => Err(SearchFailure::TooManyRequests),
            Came::Web(answer) if answer.is_whole || !(200..300).contains(&answer.status) => {
                search::read(service, &self.tool, answer.status, &answer.body)
            }
            _ => Err(SearchFailure::Unavailable),
        };
        match &result {
            Ok(pages) => {
                self.result_bytes = self.result_bytes.saturating_add(super::held_bytes(pages));
            }
            Err(_) => {
                self.failed = self.failed.saturating_add(1);
                report.warnings.add_named("server_tool_failed", "web_search");
            }
        }
        if let Some(search) = self.searches.iter_mut().find(|search| search.result.is_none()) {
            search.result = Some(result);
        }
    }

    fn next_result(&mut self) -> Option<ServerResult<'_>> {
        let call = self.round.get(self.told)?;
        let result = match call.outcome {
            Ok(search) => {
                written(&call.id, self.searches.get(search)?.result.as_ref()?, call.is_first)
            }
            Err(failure) => failed(&call.id, failure),
        };
        self.told = self.told.saturating_add(1);
        Some(result)
    }

    fn done(mut self: Box<Self>, see: &See<'_>, report: &mut Report) -> Result<Change, Error> {
        self.end_round(see, report);
        let body = words::utf8(see.body).unwrap_or_default();
        // The body can be large, so it is read once for all members.
        let (mut max_tokens, mut tools, mut choice) = ("", "", "");
        for (key, value) in json::members(body) {
            match key.decode().as_ref() {
                "max_tokens" => max_tokens = value,
                "tools" => tools = value,
                "tool_choice" => choice = value,
                _ => {}
            }
        }
        let max_tokens = max_tokens.parse::<u64>().ok();
        let tokens_left = max_tokens.map(|most| most.saturating_sub(self.output_tokens));
        if tokens_left.is_some_and(|left| left < TOKENS_MIN) {
            return Ok(Change::Stop(StopReason::MaxTokens));
        }
        let since = see.now.saturating_sub(report.requested_at);
        if self.turns >= self.limits.turns_max || since >= self.limits.duration_max_ms {
            return Ok(Change::Stop(StopReason::PauseTurn));
        }
        self.turns = self.turns.saturating_add(1);
        self.note(report);
        let limit = self.limit();
        if limit.is_some() {
            report.warnings.acted("server_turns");
        }
        let needs_choice = limit.is_some() && !has_other_tools(tools);
        let keeps_choice = !needs_choice && !forces_search(choice);
        let choice = choice_of(choice, if needs_choice { "none" } else { "auto" });
        let next = NextRequest {
            blocks: see.said,
            is_begun: std::mem::replace(&mut self.is_begun, true),
            tool_choice: (!keeps_choice).then_some(&choice),
            needs_choice,
            max_tokens: tokens_left,
        };
        let body = next.written(body);
        Ok(Change::Round(NextRound { body, step: self, limit }))
    }

    fn held_bytes(&self) -> usize {
        self.searches.iter().map(Search::held_bytes).fold(0, usize::saturating_add)
    }
}

impl Between for SearchCalls {
    fn take_round(&mut self, ended: EndedRound) {
        self.output_tokens = ended.output_tokens;
        self.is_late = ended.since_ms >= self.limits.duration_max_ms;
        ended.calls.into_iter().for_each(|call| self.add(call));
    }
}

/// Returns true if a request has tools that the client runs.
fn has_other_tools(tools: &str) -> bool {
    json::elements(tools).any(|tool| {
        let kind = json::member(tool, "type").and_then(json::string);
        !kind.is_some_and(|kind| is_of_server(&kind.decode()))
    })
}

/// Returns true if a `tool_choice` forces a call that can be a search. Forced again, the model
/// would search for ever.
fn forces_search(choice: &str) -> bool {
    match json::member(choice, "type") {
        Some("\"any\"") => true,
        Some("\"tool\"") => json::member(choice, "name") == Some("\"web_search\""),
        _ => false,
    }
}

/// Returns a `tool_choice` of this kind, with the member `disable_parallel_tool_use` of the
/// client's.
pub(super) fn choice_of(choice: &str, kind: &'static str) -> String {
    json::written(|json| {
        json.begin_object().kind(kind);
        let one = json::member(choice, "disable_parallel_tool_use").filter(|_| kind != "none");
        if let Some(one) = one {
            json.key("disable_parallel_tool_use").raw(one);
        }
        json.end_object();
    })
}
