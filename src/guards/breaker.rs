//! Circuit breaker: finds tools that fail again and again, and calls that are repeated again and
//! again, in the history of a request.
//!
//! ```text
//! call fails      ──▶ +1 for its tool                     3: the result says so      6: the tool
//! call, result as ──▶ +1 for this call       ──count──▶   to the model          ──▶  is withheld
//!   they were before
//! any other success, a person's words,
//!   the end of a background task ──▶ all counts are 0
//! ```
//!
//! A failure of which the input or the result is new is a step of somebody who is searching, not of
//! somebody who is stuck: the model is told so as early, and its tool is withheld later
//! ([`Stuck::news`]). A call that waits, or is made again after another one has waited, is expected
//! to give the same for a while, and a command that sleeps to fail for a while ([`Stuck::weight`]).
//!
//! All failures of a tool in one turn count once: the model learnt nothing between calls that it
//! made together. A success whose result was already known since then does not reset the counts, or
//! two calls could alternate for ever. Everything is computed from the request, so every replica
//! reaches the same verdict, and the words added to a result are added again to each later request
//! until the counts are reset. Then they disappear: a tool that works again must not stay
//! forbidden.

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

/// Reason why a tool is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// Calls of the tool fail.
    Failing,
    /// Repeated call: the same input gives the same result again and again.
    Repeating,
}

/// Tool that makes no progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stuck<'a> {
    /// Name of the tool, as the client knows it.
    pub name: Cow<'a, str>,
    /// Toolset of the tool, if it is a member of one.
    pub toolset: Option<Cow<'a, str>>,
    /// Reason why the tool is stuck.
    pub why: Why,
    /// Number of turns in a row in which the tool failed or repeated its result.
    pub count: u32,
    /// Number of failed turns that brought something new: an input or a failure unlike all before,
    /// although the input had all that the tool requires.
    pub news: u32,
    /// True if the input of the last failed call had all that the tool requires.
    pub is_complete: bool,
    /// Weighted number of turns in which the tool failed or repeated its result: 1 for a call that
    /// waited for something, else [`WAITING`].
    pub weight: u32,
}

/// Factor by which a call that waits may be made more often than others.
const WAITING: u32 = 10;

impl Stuck<'_> {
    /// Returns true if the tool reaches a limit, which is `most` for calls that do not wait.
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

/// Result that gets a note for the model, so that it is not taken for just another result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note<'a> {
    /// Index of the turn that holds the result.
    pub turn: usize,
    /// Index of the result among the results of the turn.
    pub result: usize,
    /// State of the tool after this result.
    pub stuck: Stuck<'a>,
}

/// Result of inspecting a history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict<'a> {
    /// Notes for results, from `failures_max` on.
    pub notes: Vec<Note<'a>>,
    /// Tools that are stuck at the end of the history, without those below `failures_max`.
    pub stuck: Vec<Stuck<'a>>,
}

/// Maximum number of successes that [`last_reset`] looks up in the history. If no new one is among
/// them, counting starts at the last news.
const SEARCHES_MAX: usize = 8;

type Tool<'a> = (Cow<'a, str>, Option<Cow<'a, str>>);

/// Number of turns with a failure or a repetition, and the turn that was counted last.
#[derive(Clone, Copy, Default)]
struct Count {
    count: u32,
    weight: u32,
    turn: usize,
}

impl Count {
    fn add(&mut self, turn: usize, waits: bool) {
        if self.count == 0 || self.turn != turn {
            let weight = self.weight.saturating_add(if waits { 1 } else { WAITING });
            *self = Self { count: self.count.saturating_add(1), weight, turn };
        }
    }
}

/// Failures of one tool.
#[derive(Default)]
struct Failures {
    all: Count,
    news: Count,
    /// True if the input of the last failed call had all that the tool requires.
    is_complete: bool,
    /// Hashes of the calls that failed, and of their results.
    known: NameSet<'static>,
}

/// Call with its result.
struct Pair<'t, 'a> {
    call: &'t ToolUse<'a>,
    result: &'t ToolResult<'a>,
    /// Index of the result in its turn.
    at: usize,
    failed: bool,
    /// True if the call waited for something, whatever came of it.
    waited: bool,
    /// Hash of the call and its result, unless the call failed.
    succeeded_as: Option<String>,
}

/// Inspects what the tools did since all counts were last 0. `is_complete` tells if a call's input
/// has what its tool requires.
pub(crate) fn inspect<'a>(
    turns: &[Turn<'a>],
    failures_max: u32,
    mut is_complete: impl FnMut(&ToolUse<'a>) -> bool,
) -> Verdict<'a> {
    let from = last_reset(turns, &mut is_complete);
    count(turns, from, failures_max, &mut is_complete)
}

/// A turn before which all counts are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    /// Index of the turn after a person's words or news of a task: no earlier call counts as known.
    News(usize),
    /// Index of the turn with the last success that is new.
    New(usize),
}

/// Counts of failures and repetitions since all counts were last 0.
#[derive(Default)]
struct Counts<'t, 'a> {
    /// Tools that failed.
    failing: Names<'static, (Tool<'a>, Failures)>,
    /// Calls that did not fail, by the hash of call and result.
    done: Names<'static, Option<(&'t ToolUse<'a>, Count)>>,
    /// Index of the last turn with a call that waited.
    waited: Option<usize>,
}

impl<'t, 'a> Counts<'t, 'a> {
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
        let (mut all, mut news) = (Count::default(), 0);
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

    /// Counts a call that did not fail, and returns how often it was made.
    fn succeeded(&mut self, pair: &Pair<'t, 'a>, key: &str, turn: usize) -> Count {
        let mut times = Count::default();
        self.done.update(key.to_owned(), |known| {
            let (_, count) = known.get_or_insert((pair.call, Count::default()));
            let since = (count.count > 0).then_some(count.turn);
            count.add(turn, pair.waited || self.waited > since);
            times = *count;
        });
        times
    }

    /// Returns the tools that reach the limit `most`.
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

fn failing((name, toolset): Tool<'_>, all: Count, news: u32, is_complete: bool) -> Stuck<'_> {
    let Count { count, weight, .. } = all;
    Stuck { name, toolset, why: Why::Failing, count, news, is_complete, weight }
}

fn repeating<'a>(call: &ToolUse<'a>, all: Count) -> Stuck<'a> {
    let ((name, toolset), Count { count, weight, .. }) = (name(call), all);
    Stuck { name, toolset, why: Why::Repeating, count, news: 0, is_complete: true, weight }
}

/// Counts failures and repetitions from a turn on.
fn count<'a>(
    turns: &[Turn<'a>],
    start: Start,
    failures_max: u32,
    is_complete: &mut impl FnMut(&ToolUse<'a>) -> bool,
) -> Verdict<'a> {
    let mut notes = Vec::new();
    let mut counts = Counts::default();
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
            counts = Counts::default();
            notes.clear();
        }
        if pairs.iter().any(|pair| pair.waited) {
            counts.waited = Some(turn);
        }
        for pair in &pairs {
            let stuck = match &pair.succeeded_as {
                None => counts.failed(pair, turn, is_complete),
                Some(key) => match counts.succeeded(pair, key, turn) {
                    Count { count, .. } if count < failures_max => continue,
                    count => repeating(pair.call, count),
                },
            };
            if stuck.reaches(failures_max) {
                notes.push(Note { turn: answering, result: pair.at, stuck });
            }
        }
    }
    Verdict { notes, stuck: counts.stuck(failures_max) }
}

/// Finds the last turn before which all counts are certainly 0, whatever they were until then.
/// Nearly always that is the last turn with calls, so that little of the history is looked at.
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

/// Returns true if the same call gave the same result before.
fn was_known(earlier: &[Turn<'_>], pair: &Pair<'_, '_>) -> bool {
    let (mut context, answer) = (KnownCall::of(pair.call), KnownResult::of(pair.result));
    for (at, turn) in earlier.iter().enumerate().rev() {
        let Turn::User(user) = turn else { continue };
        if !user.results.iter().any(|known| answer.is_same(known)) {
            continue;
        }
        // In step, as in `pair`: a client may send any number of both.
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

fn name<'a>(call: &ToolUse<'a>) -> Tool<'a> {
    (call.name.decode(), call.toolset.map(|toolset| toolset.decode()))
}

/// Finds the results of calls. They stand in the order of the calls (`pairs::order`), so that one
/// pass is enough; a call without a result is passed over, and so is one that was not made.
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
        if is_cancelled(result) {
            continue;
        }
        let failed = is_failure(result, || is_complete(call));
        pairs.push(Pair { call, result, at, failed, waited: false, succeeded_as: None });
    }
}

/// Returns the note for the model that is added to a result. `required`: the required fields of the
/// tool's schema, as a list.
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
