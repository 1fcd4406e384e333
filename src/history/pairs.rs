//! Repair of tool calls and their results, so that each call has exactly one result. Chat templates
//! and the real APIs require this, and clients break it when they cut, merge or resume a
//! conversation.
//!
//! After [`repair`], each call has exactly one result, in the user's turn that directly follows:
//!
//! | found | done | warning |
//! |---|---|---|
//! | the result in the turn that follows | nothing | |
//! | two of them there | the last one is kept | `tool_result_duplicate` |
//! | the result in another turn | it is moved | `tool_result_moved` |
//! | no result | a result that says so | `tool_result_missing` |
//! | no result of a call that Creole would run | a result that says so | `server_call_dropped` |
//! | a result without a call | it becomes a text of the user | `tool_result_orphan` |
//! | two calls with one id in one turn | the first one is kept, with the first result | `tool_use_duplicate` |
//!
//! A correct history stays unchanged. [`check`] refuses a history that [`repair`] would change,
//! with the real API's error messages, which clients match on.

use std::borrow::Cow;

use crate::error::Error;
use crate::json::Str;
use crate::model::turn::{Turn, User, UserPart, answer_to, calls};
use crate::model::{Block, Message, Role, Text, ToolResult, ToolUse};
use crate::observe::warning::Warnings;
use crate::text::names::{NameSet, Names};

/// Text of the result that is added for a call without a result.
const MISSING: &str = "Tool result is missing.";

/// Text of the result that is added for a call of a server tool that was not run.
const NOT_RUN: &str = "The call was not run.";

/// Maximum number of calls in a turn whose ids are compared pairwise.
const CALLS_COMPARED_MAX: usize = 16;

/// Results and calls that share an id.
#[derive(Default)]
struct FoundCall {
    /// Indexes of the results with this id in the list of all results.
    results: Vec<usize>,
    /// Number of elements at the beginning of `results` that are already assigned to calls.
    used: usize,
    /// Indexes of the turns that have a call with this id, ascending.
    callers: Vec<usize>,
    /// Indexes of the turns that have two calls with this id.
    repeated: Vec<usize>,
}

/// Tool result, with the turn in which the client sent it.
struct Given<'a> {
    turn: usize,
    /// Tool result; `None` after it was assigned to a call.
    result: Option<ToolResult<'a>>,
}

/// Gives every call exactly one result.
#[must_use]
pub(crate) fn repair<'a>(mut turns: Vec<Turn<'a>>, warnings: &mut Warnings) -> Vec<Turn<'a>> {
    if is_right(&turns) {
        return turns;
    }
    let mut found: Names<'a, FoundCall> = Names::default();
    // List of all results, in the order of the conversation.
    let mut given = Vec::new();
    for (at, turn) in turns.iter_mut().enumerate() {
        match turn {
            Turn::User(user) => {
                for result in std::mem::take(&mut user.results) {
                    found.update(result.id.decode(), |known| add(&mut known.results, given.len()));
                    given.push(Given { turn: at, result: Some(result) });
                }
            }
            Turn::Assistant(blocks) => {
                for id in drop_repeated_calls(blocks, warnings) {
                    found.update(id.decode(), |known| known.repeated.push(at));
                }
                for call in calls(blocks) {
                    found.update(call.id.decode(), |known| add(&mut known.callers, at));
                }
            }
            Turn::System(_) => {}
        }
    }
    let mut answers: Vec<Vec<ToolResult<'a>>> = Vec::with_capacity(turns.len());
    for (at, turn) in turns.iter().enumerate() {
        let mut results = Vec::new();
        if let Turn::Assistant(blocks) = turn {
            results.reserve_exact(calls(blocks).count());
            let answering = answer_to(&turns, at).map(|(next, _)| next);
            for call in calls(blocks) {
                let found = found.get_mut(&call.id.decode());
                let result =
                    found.and_then(|found| found.take(at, answering, &mut given, warnings));
                results.push(result.unwrap_or_else(|| missing(call, warnings)));
            }
        }
        answers.push(results);
    }
    // Results that were not assigned to a call stay in their turn.
    for Given { turn, result } in given {
        if let (Some(result), Some(Turn::User(user))) = (result, turns.get_mut(turn)) {
            warnings.add("tool_result_orphan");
            user.results.push(result);
        }
    }
    assemble(turns, answers)
}

/// Returns true if the history needs no repair, which is the normal case and shows without
/// look-ups. Turns with very many calls always get the full repair.
fn is_right(turns: &[Turn<'_>]) -> bool {
    let mut open: &[Block<'_>] = &[];
    for turn in turns {
        match turn {
            Turn::User(user) => {
                if !is_answered(open, &user.results) {
                    return false;
                }
                open = &[];
            }
            Turn::Assistant(blocks) if calls(open).next().is_none() => open = blocks,
            // A system message must not come between a call and its result.
            Turn::System(_) if calls(open).next().is_none() => {}
            Turn::Assistant(_) | Turn::System(_) => return false,
        }
    }
    calls(open).next().is_none()
}

/// Returns true if the tool results match the tool calls, one for each call, in any order.
fn is_answered(blocks: &[Block<'_>], results: &[ToolResult<'_>]) -> bool {
    let same = |call: &Str<'_>| results.iter().filter(|result| result.id == *call).count() == 1;
    let count = calls(blocks).count();
    let distinct = |at: usize, id: &Str<'_>| calls(blocks).take(at).all(|known| known.id != *id);
    count == results.len()
        && count <= CALLS_COMPARED_MAX
        && calls(blocks).enumerate().all(|(at, call)| same(&call.id) && distinct(at, &call.id))
}

/// Drops calls whose id an earlier call of the same turn has, and returns the dropped ids.
fn drop_repeated_calls<'a>(blocks: &mut Vec<Block<'a>>, warnings: &mut Warnings) -> Vec<Str<'a>> {
    let mut repeated = Vec::new();
    if calls(blocks).nth(1).is_none() {
        return repeated;
    }
    let mut seen = NameSet::default();
    blocks.retain(|block| match block {
        Block::ToolUse(call) if !seen.add(call.id.decode()) => {
            warnings.add("tool_use_duplicate");
            repeated.push(call.id);
            false
        }
        _ => true,
    });
    repeated
}

/// Adds an index to a list that mostly has one element, so no spare capacity is reserved.
fn add(places: &mut Vec<usize>, place: usize) {
    if places.capacity() == 0 {
        places.reserve_exact(1);
    }
    places.push(place);
}

/// Returns the result of a call without one.
fn missing<'a>(call: &ToolUse<'a>, warnings: &mut Warnings) -> ToolResult<'a> {
    let text = if call.is_server {
        warnings.add("server_call_dropped");
        NOT_RUN
    } else {
        warnings.add("tool_result_missing");
        MISSING
    };
    let text = Text { text: Str::plain(text), cached: None, citations: None };
    let content = vec![Block::Text(text)];
    ToolResult { id: call.id, content, is_error: !call.is_server, cleared: false }
}

impl FoundCall {
    /// Takes the result for the call in the turn `at` out of the list `given`.
    fn take<'a>(
        &mut self,
        at: usize,
        answering: Option<usize>,
        given: &mut [Given<'a>],
        warnings: &mut Warnings,
    ) -> Option<ToolResult<'a>> {
        // Results after a later call with the same id belong to that call.
        let next_call = self.callers.partition_point(|caller| *caller <= at);
        let next_call = self.callers.get(next_call).copied().unwrap_or(usize::MAX);
        let later = given.partition_point(|given| given.turn <= at);
        let after = self.results.partition_point(|place| *place < later);
        // The first of two calls with one id was kept, so the first result belongs to that call.
        let first_counts = self.repeated.binary_search(&at).is_ok();
        let mut taken = None;
        for place in self.results.iter().skip(after) {
            let given = given.get_mut(*place)?;
            if Some(given.turn) == answering {
                let Some(result) = given.result.take() else { continue };
                if taken.is_some() {
                    warnings.add("tool_result_duplicate");
                }
                if taken.is_none() || !first_counts {
                    taken = Some(result);
                }
                continue;
            }
            if taken.is_some() || given.turn >= next_call {
                break;
            }
            taken = given.result.take();
            if taken.is_some() {
                warnings.add("tool_result_moved");
                break;
            }
        }
        if taken.is_some() {
            return taken;
        }
        while let Some(place) = self.results.get(self.used) {
            let given = given.get_mut(*place)?;
            if given.turn >= at && given.result.is_some() {
                return None;
            }
            if given.result.is_some() {
                warnings.add("tool_result_moved");
                return given.result.take();
            }
            self.used = self.used.saturating_add(1);
        }
        None
    }
}

/// Puts the assigned results into the turns after their calls. Results still in a user's turn
/// become orphans.
fn assemble<'a>(turns: Vec<Turn<'a>>, answers: Vec<Vec<ToolResult<'a>>>) -> Vec<Turn<'a>> {
    let mut whole = Vec::with_capacity(turns.len());
    // Results that wait for their turn, and system messages that must come after them.
    let mut waiting = Vec::new();
    let mut held = Vec::new();
    // True if the user spoke last.
    let mut answered = false;
    for (turn, answers) in turns.into_iter().zip(answers) {
        match turn {
            Turn::User(mut user) => {
                let results = std::mem::take(&mut waiting);
                let mut items = Vec::new();
                for orphan in user.results {
                    items.push(UserPart::Orphan(orphan));
                }
                items.append(&mut user.items);
                // The content of this turn was moved, and a placeholder keeps the turn. Servers
                // want the user to begin. At the end, the model would continue its own text; in the
                // middle, two answers of the model would be adjacent.
                if results.is_empty() && items.is_empty() && !answered {
                    items.push(UserPart::Moved);
                }
                if !(results.is_empty() && items.is_empty()) {
                    whole.push(Turn::User(User { results, items }));
                }
                whole.append(&mut held);
                answered = true;
            }
            Turn::System(_) if !waiting.is_empty() => held.push(turn),
            Turn::System(_) => whole.push(turn),
            Turn::Assistant(_) => {
                flush(&mut whole, &mut waiting, &mut held);
                whole.push(turn);
                waiting = answers;
                answered = false;
            }
        }
    }
    flush(&mut whole, &mut waiting, &mut held);
    whole
}

fn flush<'a>(
    whole: &mut Vec<Turn<'a>>,
    waiting: &mut Vec<ToolResult<'a>>,
    held: &mut Vec<Turn<'a>>,
) {
    if !waiting.is_empty() {
        let results = std::mem::take(waiting);
        whole.push(Turn::User(User { results, items: Vec::new() }));
    }
    whole.append(held);
}

/// Sorts results in the order of the calls, the order that chat templates assume. Clients send
/// results in the order in which the tools finished.
pub(crate) fn order(turns: &mut [Turn<'_>]) {
    let mut context: &[Block<'_>] = &[];
    for turn in turns {
        match turn {
            Turn::Assistant(blocks) => context = blocks,
            Turn::User(user) if !is_ordered(context, &user.results) => {
                order_results(context, &mut user.results);
            }
            Turn::User(_) | Turn::System(_) => {}
        }
    }
}

fn is_ordered(context: &[Block<'_>], results: &[ToolResult<'_>]) -> bool {
    results.len() < 2
        || calls(context).map(|call| call.id).eq(results.iter().map(|result| result.id))
}

fn order_results<'a>(context: &[Block<'a>], results: &mut Vec<ToolResult<'a>>) {
    let mut position: Names<'_, usize> = Names::default();
    let mut count = 0usize;
    for (at, call) in calls(context).enumerate() {
        let id = call.id.decode();
        if !position.contains(&id) {
            position.insert(id, at);
        }
        count = at.saturating_add(1);
    }
    // Lists for the results of each call, and one list for results of other calls.
    let mut places: Vec<Vec<_>> = (0..=count).map(|_| Vec::new()).collect();
    for result in std::mem::take(results) {
        let place = position.get(&result.id.decode()).copied();
        if let Some(place) = places.get_mut(place.unwrap_or(count)) {
            place.push(result);
        }
    }
    for mut place in places {
        results.append(&mut place);
    }
}

/// Refuses a history whose calls and results do not match. The error tells clients not to retry,
/// and is counted as an action of the pairing guard.
///
/// # Errors
///
/// The calls and results do not match; the message has the real API's wording.
pub(crate) fn reject(messages: &[Message<'_>], warnings: &mut Warnings) -> Result<(), Error> {
    rejected(check(messages, |_| true).and_then(|()| check_server_calls(messages)), warnings)
}

/// Returns the ids of the calls of server tools that have a result anywhere in the conversation.
pub(crate) fn answered_server_calls<'a>(messages: &[Message<'a>]) -> NameSet<'a> {
    let mut answered = NameSet::default();
    for block in messages.iter().flat_map(|message| &message.content) {
        if let Block::ServerToolResult(result) = block {
            answered.add(result.id.decode());
        }
    }
    answered
}

/// Checks that each call of a server tool that can no longer be run has a result.
///
/// # Errors
///
/// A call has no result; the message has the real API's wording.
fn check_server_calls(messages: &[Message<'_>]) -> Result<(), Error> {
    // Results of the client's tools alone leave the assistant's turn open.
    let ends_turn = |message: &Message<'_>| {
        let is_result = |block: &Block<'_>| matches!(block, Block::ToolResult(_));
        message.role != Role::Assistant && !message.content.iter().all(is_result)
    };
    let last = messages.iter().rposition(ends_turn).unwrap_or_default();
    let answered = answered_server_calls(messages);
    for (at, message) in messages.iter().take(last).enumerate() {
        for block in &message.content {
            let Block::ServerToolUse(call) = block else { continue };
            let (id, name) = (call.id.decode(), call.name.decode());
            if !answered.contains(&id) {
                let kind = match &*name {
                    _ if call.server.is_some() => "mcp",
                    name if name.starts_with("tool_search_tool") => "tool_search",
                    name => name,
                };
                return Err(Error::invalid(format!(
                    "messages.{at}: `{name}` tool use with id `{id}` was found without a \
                     corresponding `{kind}_tool_result` block"
                )));
            }
        }
    }
    Ok(())
}

/// Returns the error of a failed [`check`] for the client, and counts the error.
pub(crate) fn rejected(checked: Result<(), Error>, warnings: &mut Warnings) -> Result<(), Error> {
    checked.map_err(|error| {
        warnings.acted("pairing");
        error.with_should_retry(false)
    })
}

/// Checks that calls and results match. Blocks for which `is_kept` is false do not count.
///
/// # Errors
///
/// The calls and results do not match; the message has the real API's wording.
pub(crate) fn check(
    messages: &[Message<'_>],
    is_kept: impl Fn(&Block<'_>) -> bool,
) -> Result<(), Error> {
    let mut ids = NameSet::default();
    // Ids of the calls in the message `caller` that the user's next blocks must answer.
    let mut open: Vec<Cow<'_, str>> = Vec::new();
    let mut known = NameSet::default();
    let mut answered = NameSet::default();
    let mut caller = 0usize;
    // True if results may still come: they must be the first blocks of the user's turn.
    let mut answering = false;
    let mut speaker = Role::System;
    for (at, message) in messages.iter().enumerate() {
        if message.role == Role::System {
            // A system message must not come between a call and its result.
            check_answered(caller, &open, &answered)?;
            open.clear();
        } else if message.role != speaker {
            if speaker == Role::User {
                check_answered(caller, &open, &answered)?;
                open.clear();
                known.clear();
                answered.clear();
            }
            answering = message.role == Role::User;
            speaker = message.role;
        }
        for (number, block) in message.content.iter().filter(|it| is_kept(it)).enumerate() {
            let path = || format!("messages.{at}.content.{number}");
            match block {
                // Only calls in messages of the assistant need results.
                Block::ToolUse(call) if message.role == Role::Assistant => {
                    let id = call.id.decode();
                    if !ids.add(id.clone()) {
                        let rule = "`tool_use` ids must be unique";
                        return Err(Error::invalid(format!("{}: {rule}", path())));
                    }
                    known.add(id.clone());
                    open.push(id);
                    caller = at;
                }
                Block::ToolResult(result) if message.role == Role::User => {
                    let id = result.id.decode();
                    if !known.contains(&id) {
                        return Err(Error::invalid(format!(
                            "{}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. \
                             Each `tool_result` block must have a corresponding `tool_use` block \
                             in the previous message.",
                            path()
                        )));
                    }
                    if answered.contains(&id) {
                        return Err(Error::invalid(format!(
                            "{}: each tool_use must have a single result. Found multiple \
                             `tool_result` blocks with id: {id}",
                            path()
                        )));
                    }
                    if answering {
                        answered.add(id);
                    }
                }
                _ if message.role == Role::User => answering = false,
                _ => {}
            }
        }
    }
    check_answered(caller, &open, &answered)
}

fn check_answered(
    caller: usize,
    open: &[Cow<'_, str>],
    answered: &NameSet<'_>,
) -> Result<(), Error> {
    let ids: Vec<&str> = open.iter().filter(|id| !answered.contains(id)).map(Cow::as_ref).collect();
    if ids.is_empty() {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "messages.{caller}: `tool_use` ids were found without `tool_result` blocks immediately \
         after: {}. Each `tool_use` block must have a corresponding `tool_result` block in the \
         next message.",
        ids.join(", ")
    )))
}
