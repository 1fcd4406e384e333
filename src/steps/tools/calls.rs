//! Calls of server tools in one answer: their results, and the limits of the loop.
//!
//! Each call gets one result, and a failure is a result, too. An equal call is answered from the
//! result of the first one, without another run. A loop ends: the last round has no server tools,
//! so that the model must answer.

use std::ops::Range;
use std::sync::Arc;

use super::OpeningBlock;
use super::body::NextRequest;
use super::job::{CallLimit, Job, OwnOutput, Work};
use super::kinds::{self, BeginCall};
use crate::StopReason;
use crate::config::{ServerTools, Settings};
use crate::error::Error;
use crate::json;
use crate::model::event::{ServerCall, ServerResult};
use crate::model::member_places::MemberPlaces;
use crate::model::own_tool::OwnTool;
use crate::observe::report::{Report, ToolCounts};
use crate::steps::{
    Between, Came, Change, EndedRound, Limit, NextRound, Nothing, Question, ReadLimits, See, Step,
};
use crate::text::words;
use crate::tools::is_of_server;

/// Number of equal calls from which on the model must answer without server tools.
const REPEATS_MAX: u32 = 3;

/// Maximum number of calls that are not run and are compared with later ones.
const REFUSED_MAX: usize = 64;

/// Maximum size of the input of such a call, in bytes.
const REFUSED_BYTES_MAX: usize = 1024;

/// Number of output tokens below which no further round begins.
const TOKENS_MIN: u64 = 16;

/// Calls of server tools in one answer, over all its rounds.
#[derive(Debug)]
pub(crate) struct OwnCalls {
    tools: Vec<UsedTool>,
    begin: BeginCall,
    limits: ServerTools,
    /// Calls of the round, in the order in which the model made them.
    round: Vec<RoundCall>,
    /// Number of calls of the round whose results the client has.
    told: usize,
    /// Runs of tools in all rounds, in the order in which they began.
    runs: Vec<ToolRun>,
    /// Calls that were not run.
    refused: Vec<RefusedCall>,
    /// Number of requests to the upstream for the answer.
    turns: u32,
    calls: u32,
    result_bytes: usize,
    /// True if the client has to run calls of the round, too.
    is_mixed: bool,
    /// Number of output tokens of the round.
    output_tokens: u64,
    /// Numbers of the calls of rounds that are over.
    counts: ToolCounts,
    /// True if the model repeats its calls, so that the next round is the last.
    must_answer: bool,
    /// Places of the members of the round's request that the next round changes.
    places: MemberPlaces,
    /// True if the request already has a message with the beginning of the answer.
    is_begun: bool,
    /// Time left for the calls of the round, in milliseconds.
    left_ms: u64,
    /// True if the number of rounds is told in the header; `None` before the first is.
    tells_turn: Option<bool>,
}

/// Server tool that Creole runs, with its number of uses.
#[derive(Debug)]
struct UsedTool {
    tool: Arc<OwnTool>,
    /// Number of runs of the tool that have begun.
    uses: u64,
}

/// Call of a round.
#[derive(Debug)]
struct RoundCall {
    id: String,
    /// Name of the tool's kind, for the report.
    kind: &'static str,
    /// Run that answers the call, by its index, or the output of a call that is not run.
    outcome: Result<usize, OwnOutput>,
    /// True if the tool is run for this call, and not for an earlier, equal call.
    is_first: bool,
}

/// Run of a server tool, which answers one call or several equal calls.
#[derive(Debug)]
struct ToolRun {
    tool: Arc<OwnTool>,
    /// Input of the calls, in a form that is the same for equal calls.
    key: Option<String>,
    /// Number of calls that the run answers.
    calls: u32,
    progress: RunProgress,
}

/// Progress of a tool's run.
#[derive(Debug)]
enum RunProgress {
    Asking(Box<dyn Job>),
    Done(OwnOutput),
}

/// Call that is not run, with the number of equal ones.
#[derive(Debug)]
struct RefusedCall {
    name: String,
    input: String,
    calls: u32,
}

impl ToolRun {
    fn job(&self) -> Option<&dyn Job> {
        match &self.progress {
            RunProgress::Asking(job) => Some(&**job),
            RunProgress::Done(_) => None,
        }
    }

    fn output(&self) -> Option<&OwnOutput> {
        match &self.progress {
            RunProgress::Done(output) => Some(output),
            RunProgress::Asking(_) => None,
        }
    }

    fn held_bytes(&self) -> usize {
        let work = match &self.progress {
            RunProgress::Asking(job) => job.held_bytes(),
            RunProgress::Done(output) => output.held_bytes(),
        };
        work.saturating_add(self.key.as_ref().map_or(0, String::len))
    }
}

impl OwnCalls {
    pub(super) fn new(tools: Vec<Arc<OwnTool>>, limits: &ServerTools) -> Self {
        Self::with(kinds::begin, tools, limits)
    }

    /// Creates the calls of an answer with another table of kinds of tools.
    pub(super) fn with(begin: BeginCall, tools: Vec<Arc<OwnTool>>, limits: &ServerTools) -> Self {
        Self {
            tools: tools.into_iter().map(|tool| UsedTool { tool, uses: 0 }).collect(),
            begin,
            limits: limits.clone(),
            round: Vec::new(),
            told: 0,
            runs: Vec::new(),
            refused: Vec::new(),
            turns: 1,
            calls: 0,
            result_bytes: 0,
            is_mixed: false,
            output_tokens: 0,
            counts: ToolCounts::default(),
            must_answer: false,
            places: MemberPlaces::default(),
            is_begun: false,
            left_ms: limits.duration_max_ms,
            tells_turn: None,
        }
    }

    /// Adds a call, and decides how the call is answered. A call of another tool is left out.
    pub(super) fn add(&mut self, call: ServerCall, see: &See<'_>) {
        let tool = self.tools.iter().find(|used| used.tool.name() == call.name);
        let Some(tool) = tool.map(|used| Arc::clone(&used.tool)) else { return };
        self.calls = self.calls.saturating_add(1);
        let (outcome, is_first) = match self.run_for(&tool, &call, see) {
            Ok((run, is_first)) => (Ok(run), is_first),
            Err(output) => (Err(output), false),
        };
        if outcome.is_err() {
            self.note_refused(tool.name(), &call.input);
        }
        self.round.push(RoundCall { id: call.id, kind: tool.kind(), outcome, is_first });
    }

    /// Returns the index of the run that answers a call of the tool, and true if the run is new.
    fn run_for(
        &mut self,
        tool: &Arc<OwnTool>,
        call: &ServerCall,
        see: &See<'_>,
    ) -> Result<(usize, bool), OwnOutput> {
        if self.calls > self.limits.calls_max || self.is_full() {
            return Err(OwnOutput::of_limit(tool, CallLimit::OfAnswer));
        }
        let begun = (self.begin)(tool, call, see)?;
        let is_equal = |run: &ToolRun| {
            run.key.is_some() && run.key == begun.key && run.tool.name() == tool.name()
        };
        if let Some((at, run)) = self.runs.iter_mut().enumerate().find(|(_, run)| is_equal(run)) {
            run.calls = run.calls.saturating_add(1);
            self.must_answer |= run.calls >= REPEATS_MAX;
            self.result_bytes = self.result_bytes.saturating_add(run.held_bytes());
            return Ok((at, false));
        }
        let of_tool = |used: &&mut UsedTool| Arc::ptr_eq(&used.tool, tool);
        if let Some(used) = self.tools.iter_mut().find(of_tool) {
            if tool.max_uses().is_some_and(|most| used.uses >= most) {
                return Err(OwnOutput::of_limit(tool, CallLimit::OfTool));
            }
            used.uses = used.uses.saturating_add(1);
        }
        let progress = match begun.work {
            Work::Known(output) => {
                self.result_bytes = self.result_bytes.saturating_add(output.held_bytes());
                RunProgress::Done(output)
            }
            Work::Asks(job) => RunProgress::Asking(job),
        };
        self.runs.push(ToolRun { tool: Arc::clone(tool), key: begun.key, calls: 1, progress });
        Ok((self.runs.len().saturating_sub(1), true))
    }

    /// Notes a call that is not run. The third equal one shows that the model gets nowhere.
    fn note_refused(&mut self, name: &str, input: &str) {
        let has_room = self.refused.len() < REFUSED_MAX && input.len() <= REFUSED_BYTES_MAX;
        let known = self.refused.iter_mut().find(|it| it.name == name && it.input == input);
        if let Some(known) = known {
            known.calls = known.calls.saturating_add(1);
            self.must_answer |= known.calls >= REPEATS_MAX;
        } else if has_room {
            let (name, input) = (name.to_owned(), input.to_owned());
            self.refused.push(RefusedCall { name, input, calls: 1 });
        }
    }

    /// Returns the output of a call of the round, if the call has one.
    fn output_of<'s>(&'s self, call: &'s RoundCall) -> Option<&'s OwnOutput> {
        match &call.outcome {
            Ok(run) => self.runs.get(*run)?.output(),
            Err(output) => Some(output),
        }
    }

    /// Returns true if the results of the answer are so large that no further call is run.
    fn is_full(&self) -> bool {
        self.result_bytes >= self.limits.results_bytes_max
    }

    /// Returns the jobs that have a question.
    fn jobs(&self) -> impl Iterator<Item = &dyn Job> {
        self.runs.iter().filter_map(ToolRun::job)
    }

    /// Returns the results of all calls as blocks with which an answer begins.
    pub(super) fn opening(&self) -> Vec<OpeningBlock> {
        let block = |call: &RoundCall| {
            let output = self.output_of(call)?;
            Some(OpeningBlock::Result(call.id.clone(), output.clone(), call.is_first))
        };
        self.round.iter().filter_map(block).collect()
    }

    /// Ends the calls before the first round. `is_whole`: true if no round follows.
    pub(super) fn end_opening(&mut self, is_whole: bool, see: &See<'_>, report: &mut Report) {
        self.is_begun = true;
        if is_whole {
            self.turns = 0;
            self.tells_turn = Some(false);
        }
        self.end_round(see, report);
    }

    /// Ends the calls of a round, whose results the client has.
    fn end_round(&mut self, see: &See<'_>, report: &mut Report) {
        self.note_time(see, report);
        if let (Some(sessions), Some(memory)) = (see.sessions, see.memory) {
            memory.note_eras(sessions, see.now);
        }
        let mut counts = self.counts;
        for call in &self.round {
            let is_failure = self.output_of(call).is_none_or(OwnOutput::is_failure);
            counts.add(call.kind, is_failure);
        }
        self.counts = counts;
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
        (tools.turns, tools.calls) = (self.turns, self.counts);
        // The guard of the client's turns has the same header.
        let is_free = report.warnings.tool_turn().is_none();
        if *self.tells_turn.get_or_insert(is_free) {
            report.warnings.set_tool_turn(self.turns, self.limits.turns_max);
        }
    }

    /// Returns true if a `tool_choice` forces a call that can be one of a server tool. Forced
    /// again, the model would call that tool for ever.
    pub(super) fn may_be_forced(&self, choice: &str) -> bool {
        match json::member(choice, "type") {
            Some("\"any\"") => true,
            Some("\"tool\"") => {
                let name = json::member(choice, "name").and_then(json::string);
                name.is_some_and(|name| self.tools.iter().any(|used| name == used.tool.name()))
            }
            _ => false,
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

impl Step for OwnCalls {
    fn timeout_ms(&self, _: &Settings) -> u64 {
        self.left_ms
    }

    fn questions_left(&self) -> usize {
        self.jobs().count()
    }

    fn ask<'s>(&self, see: &See<'s>, ahead: usize) -> Option<Question<'s>> {
        self.jobs().nth(ahead)?.ask(see)
    }

    fn question_timeout_ms(&self, ahead: usize, settings: &Settings) -> u64 {
        self.jobs().nth(ahead).map_or(0, |job| job.timeout_ms(settings))
    }

    fn limits(&self, ahead: usize, status: u16, settings: &Settings) -> ReadLimits {
        let none = ReadLimits { bytes_max: 0, is_half_enough: false };
        self.jobs().nth(ahead).map_or(none, |job| job.limits(status, settings))
    }

    fn take(&mut self, came: Came, report: &mut Report) {
        let is_full = self.is_full();
        let waits = |run: &&mut ToolRun| run.job().is_some();
        let Some(run) = self.runs.iter_mut().find(waits) else { return };
        let RunProgress::Asking(job) = &mut run.progress else { return };
        let mut output = job.take(came, report);
        if is_full && output.is_none() {
            // No further question is asked.
            output = job.take(Came::Nothing(Nothing::Unwritten), report);
        }
        let Some(output) = output else { return };
        if output.is_failure() {
            report.warnings.add_named("server_tool_failed", run.tool.kind());
        }
        self.result_bytes = self.result_bytes.saturating_add(output.held_bytes());
        run.progress = RunProgress::Done(output);
    }

    fn settle(&mut self) {
        for run in &mut self.runs {
            if run.job().is_some() {
                let output = OwnOutput::of_limit(&run.tool, CallLimit::OfAnswer);
                run.progress = RunProgress::Done(output);
            }
        }
    }

    fn next_result(&mut self) -> Option<ServerResult<'_>> {
        let call = self.round.get(self.told)?;
        let output = match &call.outcome {
            Ok(run) => self.runs.get(*run)?.output()?,
            Err(output) => output,
        };
        self.told = self.told.saturating_add(1);
        Some(output.result(&call.id, call.is_first))
    }

    fn done(mut self: Box<Self>, see: &See<'_>, report: &mut Report) -> Result<Change, Error> {
        self.end_round(see, report);
        if self.is_mixed {
            return Ok(Change::Stop(StopReason::ToolUse));
        }
        let body = words::utf8(see.body).unwrap_or_default();
        let places = self.places.in_order(body);
        let Needed { max_tokens, tools, choice } = Needed::of(body, places.as_deref());
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
        let keeps_choice = !needs_choice && !self.may_be_forced(choice);
        let choice = choice_of(choice, if needs_choice { "none" } else { "auto" });
        let next = NextRequest {
            blocks: see.said,
            is_begun: std::mem::replace(&mut self.is_begun, true),
            tool_choice: (!keeps_choice).then_some(&choice),
            needs_choice,
            max_tokens: tokens_left,
        };
        let written = places.and_then(|places| next.written_at(body, &places));
        let body = written.unwrap_or_else(|| next.written(body));
        Ok(Change::Round(NextRound { body, step: self, limit }))
    }

    fn held_bytes(&self) -> usize {
        self.runs.iter().map(ToolRun::held_bytes).fold(0, usize::saturating_add)
    }
}

impl Between for OwnCalls {
    fn take_round(&mut self, ended: EndedRound, see: &See<'_>) {
        self.output_tokens = ended.output_tokens;
        self.is_mixed = ended.is_mixed;
        self.places = ended.places;
        self.left_ms = self.limits.duration_max_ms.saturating_sub(ended.since_ms);
        ended.calls.into_iter().for_each(|call| self.add(call, see));
    }
}

/// Members of a request on which its next round depends, as JSON.
#[derive(Default)]
struct Needed<'b> {
    max_tokens: &'b str,
    tools: &'b str,
    choice: &'b str,
}

impl<'b> Needed<'b> {
    /// Finds the members. Without their places, the body is read, which can be large.
    fn of(body: &'b str, places: Option<&[(&str, Range<usize>)]>) -> Self {
        let mut needed = Self::default();
        match places {
            Some(places) => {
                let value = |place: &Range<usize>| body.get(place.clone()).unwrap_or_default();
                places.iter().for_each(|(name, place)| needed.take(name, value(place)));
            }
            None => {
                json::members(body).for_each(|(key, value)| needed.take(&key.decode(), value));
            }
        }
        needed
    }

    fn take(&mut self, name: &str, value: &'b str) {
        match name {
            "max_tokens" => self.max_tokens = value,
            "tools" => self.tools = value,
            "tool_choice" => self.choice = value,
            _ => {}
        }
    }
}

/// Returns true if a request has tools that the client runs.
fn has_other_tools(tools: &str) -> bool {
    json::elements(tools).any(|tool| {
        let kind = json::member(tool, "type").and_then(json::string);
        !kind.is_some_and(|kind| is_of_server(&kind.decode()))
    })
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

#[cfg(test)]
mod tests;
