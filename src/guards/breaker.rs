//! Tools that fail again and again, and calls that are made again and again, as far as the history
//! shows it.
//!
//! ```text
//! call fails      ──▶ +1 for its tool                     3: the result says so      6: the tool
//! call, result as ──▶ +1 for this call       ──count──▶   to the model          ──▶  is withheld
//!   they were before
//! any other success, a person's words,
//!   the end of a background task ──▶ all counts are 0
//! ```
//!
//! A failure of which the input or the result is new is a step of somebody who is searching, not of somebody who is
//! stuck: the model is told so as early, and its tool is withheld later ([`Stuck::news`]). A call that waits, or is
//! made again after another one has waited, is expected to give the same for a while, and a command that sleeps to fail
//! for a while ([`Stuck::weight`]).
//!
//! All failures of a tool in one turn count once: the model learnt nothing between calls that it made
//! together. A success whose result was already known since then does not reset the counts, or two
//! calls could alternate for ever. Everything is computed from the request, so every replica reaches the same
//! verdict, and the words added to a result are added again to each later request until the counts are reset.
//! Then they disappear: a tool that works again must not stay forbidden.

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

/// Why a tool is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// Its calls fail.
    Failing,
    /// One call gives one result, again and again.
    Repeating,
}

/// A tool that does not get on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stuck<'a> {
    /// Its name, as the client knows it.
    pub name: Cow<'a, str>,
    /// Its toolset.
    pub toolset: Option<Cow<'a, str>>,
    /// What is wrong.
    pub why: Why,
    /// How often in a row.
    pub count: u32,
    /// How many of these had an input that was new, or failed in another way than all before them, although the
    /// input had all that the tool requires.
    pub news: u32,
    /// The input of the last one that failed had all that the tool requires.
    pub is_complete: bool,
    /// The calls so far, weighted: one that waited for something counts once, every other [`WAITING`] times.
    pub weight: u32,
}

/// A call that waits may be made so many times as often as others.
const WAITING: u32 = 10;

impl Stuck<'_> {
    /// Whether it has come to a limit that is `most` for calls that do not wait.
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

/// A result that the model must not take for just another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note<'a> {
    /// The turn that it is in.
    pub turn: usize,
    /// Where among the turn's results.
    pub result: usize,
    /// What the tool was up to then.
    pub stuck: Stuck<'a>,
}

/// What is found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict<'a> {
    /// Results that get a word of warning, from `failures_max` on.
    pub notes: Vec<Note<'a>>,
    /// The tools as they stand at the end, without those below `failures_max`.
    pub stuck: Vec<Stuck<'a>>,
}

/// How many successes [`last_reset`] looks up in the history; if it finds no new one among them, counting
/// starts at the last news.
const SEARCHES_MAX: usize = 8;

type Tool<'a> = (Cow<'a, str>, Option<Cow<'a, str>>);

/// A count, and the turn that was counted last.
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

/// The failures of one tool.
#[derive(Default)]
struct Failures {
    all: Count,
    news: Count,
    /// The last input had all that the tool requires.
    is_complete: bool,
    /// The calls, and their results.
    known: NameSet<'static>,
}

/// A call with its result.
struct Pair<'t, 'a> {
    call: &'t ToolUse<'a>,
    result: &'t ToolResult<'a>,
    /// Where the result is.
    at: usize,
    failed: bool,
    /// It waited for something, whatever came of it.
    waited: bool,
    /// What the call and its result are known by, unless it failed.
    succeeded_as: Option<String>,
}

/// Looks at what the tools were up to since all counts were 0. `is_complete` tells whether a
/// call's input has what its tool requires.
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
    /// A person's words came before it, or news of a task: nothing is known yet.
    News(usize),
    /// It has the last success that is new.
    New(usize),
}

/// What was counted since all counts were 0.
#[derive(Default)]
struct Counts<'t, 'a> {
    /// The tools that failed.
    failing: Names<'static, (Tool<'a>, Failures)>,
    /// The calls that did not, by what they and their results are known by.
    done: Names<'static, Option<(&'t ToolUse<'a>, Count)>>,
    /// The last turn with a call that waited.
    waited: Option<usize>,
}

impl<'t, 'a> Counts<'t, 'a> {
    /// Counts a call that failed in a turn, and tells how its tool stands.
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

    /// Counts a call that did not fail, and tells how often it was made.
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

    /// The tools that come to a limit.
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

/// Counts from a turn on.
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

/// The last turn of which it is certain that all counts are 0 before it, however it stood until then.
/// Nearly always that is the last one with calls, so that little of the history is looked at.
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

/// Whether the same call gave the same result before.
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

/// What the model is told in a result. `required` are the required fields of the tool's schema, as a list.
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
