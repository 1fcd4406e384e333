//! Circuit breaker: finds tools in a request's history that fail repeatedly, and calls that are
//! repeated with the same result.
//!
//! ```text
//! call fails      ──▶ +1 for its tool                     3: the result says so      6: the tool
//! call, result as ──▶ +1 for this call       ──count──▶   to the model          ──▶  is withheld
//!   they were before
//! any other success, a person's words,
//!   the end of a background task ──▶ all counts are 0
//! ```
//!
//! A failure with a new input or a new error message is progress of a model that is searching: the
//! model gets the note as early, but its tool is withheld later ([`Stuck::news`]). A call that
//! waits, or that is repeated after a waiting call, may return the same result for a while, and a
//! command that sleeps may fail for a while ([`Stuck::weight`]).
//!
//! All failures of a tool in one turn count once, because the model learned nothing between calls
//! made together. A success with an already known result does not reset the counts, or else two
//! calls could alternate endlessly. All counts are computed from the request alone, so every
//! replica reaches the same verdict. A note is added again in each later request until the counts
//! are reset. Then the note disappears, because a tool that works again must not stay forbidden.

use std::borrow::Cow;
use std::fmt;

use super::claude_code::is_cancelled;
use super::failure::is_failure;
use super::person::after_news;
use super::same::{KnownCall, KnownResult, of_call, of_result};
use super::waiting::{sleeps, waits};
use crate::model::turn::{Turn, answer_to, blocks_before, calls};
use crate::model::{ToolResult, ToolUse};
use crate::text::names::{NameSet, Names};

/// Reason for stopping a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// Reason: calls of the tool fail repeatedly.
    Failing,
    /// Reason: calls of the tool with the same input give the same result repeatedly.
    Repeating,
}

/// Tool that makes no progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stuck<'a> {
    /// Name of the tool in the client's request.
    pub name: Cow<'a, str>,
    /// Toolset of the tool, if the tool is a member of a toolset.
    pub toolset: Option<Cow<'a, str>>,
    /// Reason for stopping the tool.
    pub why: Why,
    /// Number of consecutive turns in which the tool failed or repeated its result.
    pub count: u32,
    /// Number of failed turns with a complete input in which the input or the error was new.
    pub news: u32,
    /// True if the input of the last failed call had all required members.
    pub is_complete: bool,
    /// Weighted number of turns in which the tool failed or repeated its result. A call that waited
    /// for something adds 1, any other call [`WAITING`].
    pub weight: u32,
}

/// Factor by which waiting calls may be repeated more often than other calls.
const WAITING: u32 = 10;

impl Stuck<'_> {
    /// Returns true if the tool reaches a limit; `most` is the limit for calls that do not wait.
    pub(crate) fn reaches(&self, most: u32) -> bool {
        self.weight >= most.saturating_mul(WAITING)
    }

    fn waits(&self) -> bool {
        self.weight < self.count.saturating_mul(WAITING)
    }
}

impl fmt::Display for Stuck<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, count, .. } = self;
        match self.why {
            Why::Failing => write!(f, "Tool '{name}' failed {count} times in a row"),
            Why::Repeating => {
                write!(f, "Tool '{name}' gave the same result to the same input {count} times")
            }
        }
    }
}

/// Position of a tool result that gets a note for the model, and the reason for the note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotePosition<'a> {
    /// Index of the turn that holds the tool result.
    pub turn: usize,
    /// Index of the tool result among the results of its turn.
    pub result: usize,
    /// State of the stuck tool after the result that gets the note.
    pub stuck: Stuck<'a>,
}

/// Findings of the circuit breaker in a history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BreakerFindings<'a> {
    /// Notes for tool results, one for each failure or repetition once `failures_max` is reached.
    pub notes: Vec<NotePosition<'a>>,
    /// Tools that are stuck at the end of the history and reach `failures_max`.
    pub stuck: Vec<Stuck<'a>>,
}

/// Maximum number of successful calls that [`last_reset`] looks up in the history. If all of them
/// are repetitions, counting starts at the last message of a person or news of a task.
const SEARCHES_MAX: usize = 8;

type ToolOfCall<'a> = (Cow<'a, str>, Option<Cow<'a, str>>);

/// Count of turns with a failure or a repetition, and the index of the turn counted last.
#[derive(Clone, Copy, Default)]
struct TurnCount {
    count: u32,
    weight: u32,
    turn: usize,
}

impl TurnCount {
    fn add(&mut self, turn: usize, waits: bool) {
        if self.count == 0 || self.turn != turn {
            let weight = self.weight.saturating_add(if waits { 1 } else { WAITING });
            *self = Self { count: self.count.saturating_add(1), weight, turn };
        }
    }
}

/// Failures of one tool since the counts were last 0.
#[derive(Default)]
struct Failures {
    all: TurnCount,
    news: TurnCount,
    /// True if the input of the last failed call had all required members.
    is_complete: bool,
    /// Hashes of the failed calls and of their results.
    known: NameSet<'static>,
}

/// Tool call with its result.
struct Pair<'t, 'a> {
    call: &'t ToolUse<'a>,
    result: &'t ToolResult<'a>,
    /// Index of the tool result among the results of its turn.
    at: usize,
    failed: bool,
    /// True if the tool call waited for a process or a person, with or without success.
    waited: bool,
    /// Hash of the tool call and its result; `None` if the call failed.
    succeeded_as: Option<String>,
}

/// Finds stuck tools in the history since all counts were last 0. `is_complete` returns true if a
/// call's input has all required members.
pub(crate) fn inspect<'a>(
    turns: &[Turn<'a>],
    failures_max: u32,
    mut is_complete: impl FnMut(&ToolUse<'a>) -> bool,
) -> BreakerFindings<'a> {
    let from = last_reset(turns, &mut is_complete);
    count(turns, from, failures_max, &mut is_complete)
}

/// Index of a turn before which all counts are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    /// Index of the turn after a person's message or news of a task. No earlier call counts as
    /// known.
    News(usize),
    /// Index of the turn with the last successful call whose result was new.
    New(usize),
}

/// Counts of failures and repetitions since all counts were last 0.
#[derive(Default)]
struct BreakerCounts<'t, 'a> {
    /// Tools that failed, with their failures.
    failing: Names<'static, (ToolOfCall<'a>, Failures)>,
    /// Successful calls, by the hash of call and result.
    done: Names<'static, Option<(&'t ToolUse<'a>, TurnCount)>>,
    /// Index of the last turn with a call that waited.
    waited: Option<usize>,
}

impl<'t, 'a> BreakerCounts<'t, 'a> {
    /// Counts a call that failed in a turn, and returns the state of its tool.
    fn failed(
        &mut self,
        pair: &Pair<'t, 'a>,
        turn: usize,
        is_complete: &mut impl FnMut(&ToolUse<'a>) -> bool,
    ) -> Stuck<'a> {
        let tool = name(pair.call);
        let key = match &tool {
            (name, None) => name.clone().into_owned(),
            (name, Some(toolset)) => format!("{name}\0{toolset}"),
        };
        let made = format!("{:016x}", of_call(pair.call));
        let given = format!("={:016x}", of_result(pair.result));
        let is_complete = is_complete(pair.call);
        let (mut all, mut news) = (TurnCount::default(), 0);
        self.failing.update(key, |(name, failures)| {
            let is_later = failures.all.count > 0 && failures.all.turn != turn;
            let is_new = failures.known.add(made) | failures.known.add(given);
            if is_new && is_later && is_complete {
                failures.news.add(turn, false);
            }
            failures.all.add(turn, pair.waited);
            failures.is_complete = is_complete;
            (all, news) = (failures.all, failures.news.count);
            *name = tool.clone();
        });
        failing(tool, all, news, is_complete)
    }

    /// Counts a call that succeeded, and returns the count of calls with the same input and result.
    fn succeeded(&mut self, pair: &Pair<'t, 'a>, key: &str, turn: usize) -> TurnCount {
        let mut times = TurnCount::default();
        self.done.update(key.to_owned(), |known| {
            let (_, count) = known.get_or_insert((pair.call, TurnCount::default()));
            let since = (count.count > 0).then_some(count.turn);
            count.add(turn, pair.waited || self.waited > since);
            times = *count;
        });
        times
    }

    /// Returns the tools that reach the limit `most` of failures or repetitions.
    fn stuck(self, most: u32) -> Vec<Stuck<'a>> {
        let mut stuck = Vec::new();
        for (tool, Failures { all, news, is_complete, .. }) in self.failing.into_values() {
            stuck.push(failing(tool, all, news.count, is_complete));
        }
        for (call, count) in self.done.into_values().flatten() {
            if count.count >= most {
                stuck.push(repeating(call, count));
            }
        }
        stuck.retain(|stuck| stuck.reaches(most));
        stuck
    }
}

fn failing(
    (name, toolset): ToolOfCall<'_>,
    all: TurnCount,
    news: u32,
    is_complete: bool,
) -> Stuck<'_> {
    let TurnCount { count, weight, .. } = all;
    Stuck { name, toolset, why: Why::Failing, count, news, is_complete, weight }
}

fn repeating<'a>(call: &ToolUse<'a>, all: TurnCount) -> Stuck<'a> {
    let ((name, toolset), TurnCount { count, weight, .. }) = (name(call), all);
    Stuck { name, toolset, why: Why::Repeating, count, news: 0, is_complete: true, weight }
}

/// Counts failures and repetitions from the turn `start` on.
fn count<'a>(
    turns: &[Turn<'a>],
    start: Start,
    failures_max: u32,
    is_complete: &mut impl FnMut(&ToolUse<'a>) -> bool,
) -> BreakerFindings<'a> {
    let mut notes = Vec::new();
    let mut counts = BreakerCounts::default();
    let mut known = NameSet::default();
    let mut pairs = Vec::new();
    let (Start::News(from) | Start::New(from)) = start;
    for (turn, answered) in turns.iter().enumerate().skip(from) {
        let Turn::Assistant(blocks) = answered else { continue };
        let Some((answering, user)) = answer_to(turns, turn) else { continue };
        pairs.clear();
        pair(calls(blocks), &user.results, is_complete, &mut pairs);
        for pair in &mut pairs {
            let key = || format!("{:016x}{:016x}", of_call(pair.call), of_result(pair.result));
            pair.succeeded_as = (!pair.failed).then(key);
            pair.waited = if pair.failed { sleeps(pair.call) } else { waits(pair.call) };
        }
        let mut is_new = start == Start::New(turn);
        if let Start::News(_) = start {
            for key in pairs.iter().filter_map(|pair| pair.succeeded_as.as_ref()) {
                is_new |= known.add(key.clone());
            }
        }
        if is_new {
            counts = BreakerCounts::default();
            notes.clear();
        }
        if pairs.iter().any(|pair| pair.waited) {
            counts.waited = Some(turn);
        }
        for pair in &pairs {
            let stuck = match &pair.succeeded_as {
                None => counts.failed(pair, turn, is_complete),
                Some(key) => match counts.succeeded(pair, key, turn) {
                    TurnCount { count, .. } if count < failures_max => continue,
                    count => repeating(pair.call, count),
                },
            };
            if stuck.reaches(failures_max) {
                notes.push(NotePosition { turn: answering, result: pair.at, stuck });
            }
        }
    }
    BreakerFindings { notes, stuck: counts.stuck(failures_max) }
}

/// Finds the last turn before which all counts are certainly 0. This is nearly always the last turn
/// with calls, so only little of the history is read.
fn last_reset<'a>(turns: &[Turn<'a>], is_complete: &mut impl FnMut(&ToolUse<'a>) -> bool) -> Start {
    let news = after_news(turns);
    let mut searches = SEARCHES_MAX;
    let mut pairs = Vec::new();
    for (at, turn) in turns.iter().enumerate().skip(news).rev() {
        let Turn::Assistant(blocks) = turn else { continue };
        if searches == 0 {
            break;
        }
        let Some((_, user)) = answer_to(turns, at) else { continue };
        pairs.clear();
        pair(calls(blocks), &user.results, is_complete, &mut pairs);
        for pair in pairs.iter().filter(|pair| !pair.failed).take(searches) {
            searches = searches.saturating_sub(1);
            if !was_known(turns.get(news..at).unwrap_or_default(), pair) {
                return Start::New(at);
            }
        }
    }
    Start::News(news)
}

/// Returns true if an earlier call with the same input gave the same result.
fn was_known(earlier: &[Turn<'_>], pair: &Pair<'_, '_>) -> bool {
    let (mut context, answer) = (KnownCall::of(pair.call), KnownResult::of(pair.result));
    for (at, turn) in earlier.iter().enumerate().rev() {
        let Turn::User(user) = turn else { continue };
        if !user.results.iter().any(|known| answer.is_same(known)) {
            continue;
        }
        // Results are in the order of the calls, so one pass is enough for any number of them.
        let mut results = user.results.iter().peekable();
        for call in calls(blocks_before(earlier, at)) {
            let Some(known) = results.next_if(|known| known.id == call.id) else { continue };
            if answer.is_same(known) && context.is_same(call) {
                return true;
            }
        }
    }
    false
}

fn name<'a>(call: &ToolUse<'a>) -> ToolOfCall<'a> {
    (call.name.decode(), call.toolset.map(|toolset| toolset.decode()))
}

/// Pairs calls with their results, in one pass: results are in the order of the calls
/// (`pairs::order`). Calls without a result and cancelled calls are skipped.
fn pair<'t, 'a: 't>(
    calls: impl Iterator<Item = &'t ToolUse<'a>>,
    results: &'t [ToolResult<'a>],
    is_complete: &mut impl FnMut(&ToolUse<'a>) -> bool,
    pairs: &mut Vec<Pair<'t, 'a>>,
) {
    let mut results = results.iter().enumerate().peekable();
    for call in calls {
        let Some((at, result)) = results.next_if(|(_, result)| result.id == call.id) else {
            continue;
        };
        if is_cancelled(result) || call.is_server {
            continue;
        }
        let failed = is_failure(result, || is_complete(call));
        pairs.push(Pair { call, result, at, failed, waited: false, succeeded_as: None });
    }
}

/// Returns the note for the model that is added to a tool result. `required` lists the required
/// members of the tool's schema.
#[must_use]
pub(crate) fn note(stuck: &Stuck<'_>, required: &str) -> String {
    let Stuck { name, count, .. } = stuck;
    let advice = match stuck.why {
        _ if stuck.waits() => "If you wait for something, wait longer between calls.",
        Why::Failing => {
            "Use what the errors say, or do something else. Do NOT make this call again."
        }
        Why::Repeating => "Use the result, or do something else. Do NOT make this call again.",
    };
    match stuck.why {
        Why::Failing if stuck.is_complete => {
            format!("Tool '{name}' has failed {count} times in a row. {advice}")
        }
        Why::Failing => format!(
            "Tool '{name}' has failed schema validation {count} times consecutively. The required \
             fields are: {required}. Do NOT call this tool again without providing all required \
             fields."
        ),
        Why::Repeating => format!(
            "Tool '{name}' was already called {count} times with this input, and gave this result \
             each time. {advice}"
        ),
    }
}

#[cfg(test)]
mod tests;
