//! Detection of a person's last message in a history, and the number of turns with tool calls since
//! then.
//!
//! The API does not mark a person's texts. This table distinguishes them from texts that clients
//! insert by themselves:
//!
//! | in a user's turn | a person? |
//! |---|---|
//! | tool results, orphans, summaries, system messages | no |
//! | what the person wrote while the agent worked (`SPOKE`): in a reminder, even at the end of a result, or as a system message (Claude Code) | yes |
//! | a tool result that says that the user did not want the call (Claude Code) | yes |
//! | a text that is nothing but `<system-reminder>…</system-reminder>` (Claude Code) | no |
//! | a text that is only a `<task-notification>` of Claude Code's background agents | no |
//! | beside tool results: a text of nothing but tagged elements (`<environment_details>…`) | no |
//! | beside tool results: `Tool loaded.`, a note on an image, a skill's text (Claude Code) | no |
//! | beside tool results: a text that also came with the previous results (CrewAI) | no |
//! | a text of Claude Code or Cline about an unusable answer, or from a hook (`NUDGES`) | no |
//! | any other text that is not blank | yes |
//! | images and documents without tool results | yes |
//! | images and documents beside tool results, which some clients move out of the results | no |
//!
//! A `<task-notification>` is written by no person, but is news: results of earlier calls may be
//! outdated ([`after_news`]).

use std::cell::Cell;

use super::claude_code::{
    BESIDE_RESULTS, BY_CLIENT, NOTIFICATION, NOTIFIED, NUDGES, OF_CLIENTS, REMINDER, SKILL, SPOKE,
    TOOL_LOADED, is_refused, reminders,
};
use crate::json::{self, Str};
use crate::model::turn::{Turn, User, UserPart, client_calls};
use crate::model::{Block, ToolResult};
use crate::text::words::{self, is_name_byte};

/// Maximum number of parts of a turn, beside earlier tool results, that a text is compared with.
const COMPARED_MAX: usize = 16;

/// Minimum length of a repeated text that is attributed to the client, in bytes. A person repeats
/// shorter texts: `continue`, `yes`, `try again`.
const REPEATED_BYTES_MIN: usize = 40;

/// Author of a turn or text, in the order of weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Voice {
    /// Client's program, or no author.
    Client,
    /// Client's program that reports news of a background task.
    News,
    /// Person who uses the client.
    Person,
}

/// Returns the index of the first turn after a person's last message; the number of turns if no
/// turn follows.
#[must_use]
pub(crate) fn after_person(turns: &[Turn<'_>]) -> usize {
    after(turns, Voice::Person)
}

/// Returns the index of the first turn after a person's last message, or after the last news of a
/// background task.
#[must_use]
pub(crate) fn after_news(turns: &[Turn<'_>]) -> usize {
    after(turns, Voice::News)
}

fn after(turns: &[Turn<'_>], least: Voice) -> usize {
    let mut rest = turns;
    let results = LastResults::default();
    while let Some((turn, earlier)) = rest.split_last() {
        let voice = match turn {
            Turn::User(user) => of_user(user, earlier, &results),
            Turn::System(texts) => of_system(texts),
            Turn::Assistant(_) => Voice::Client,
        };
        if voice >= least {
            break;
        }
        rest = earlier;
    }
    rest.len()
}

/// Returns true if a part of a user's turn, beside tool results, is certainly the client's own: a
/// system message, or a known text of Claude Code and Cline. Elements of other names may wrap a
/// person's text.
#[must_use]
pub(crate) fn is_of_client(item: &UserPart<'_>) -> bool {
    match item {
        UserPart::System(texts) => of_system(texts) < Voice::Person,
        UserPart::Block(Block::Text(text)) => {
            let raw = text.text.raw().trim_start();
            if !raw.starts_with(['<', '\\', '[', 'B', 'T']) {
                return false;
            }
            let text = text.text.decode();
            let text = text.trim();
            let of_elements = || of_elements(text, Some(&OF_CLIENTS), str::trim_start);
            is_beside_results(text) || of_elements().is_some_and(|voice| voice < Voice::Person)
        }
        _ => false,
    }
}

/// Returns the number of the assistant's turns with tool calls, from the turn `from` on.
#[must_use]
pub(crate) fn tool_turns(turns: &[Turn<'_>], from: usize) -> u32 {
    let has_calls = |turn: &&Turn<'_>| match turn {
        Turn::Assistant(blocks) => client_calls(blocks).next().is_some(),
        Turn::User(_) | Turn::System(_) => false,
    };
    let count = turns.iter().skip(from).filter(has_calls).count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn of_user(user: &User<'_>, earlier: &[Turn<'_>], last: &LastResults) -> Voice {
    let is_result = |item: &UserPart<'_>| matches!(item, UserPart::Orphan(_) | UserPart::Done(_));
    let beside_results = !user.results.is_empty() || user.items.iter().any(is_result);
    let has_skill = user.results.iter().any(is_skill);
    let before = || last.beside(earlier);
    let of_item = |item: &UserPart<'_>| match item {
        UserPart::Block(Block::Text(text)) => match of_text(text.text, beside_results) {
            Some(voice) => voice,
            None if has_skill => Voice::Client,
            None if beside_results && is_repeated(text.text, &before) => Voice::Client,
            None => Voice::Person,
        },
        UserPart::Block(Block::Image(_) | Block::Document(_)) if !beside_results => Voice::Person,
        UserPart::System(texts) => of_system(texts),
        _ => Voice::Client,
    };
    let results = user.results.iter().map(of_result).max();
    let items = user.items.iter().map(of_item).max();
    results.max(items).unwrap_or(Voice::Client)
}

/// Cached position of the last tool results. Queries come for ever shorter histories, and the cache
/// prevents reading a turn twice.
#[derive(Default)]
struct LastResults {
    /// Index after the last turn with tool results, or an upper bound of that index; `None` before
    /// that turn was searched for.
    end: Cell<Option<usize>>,
}

impl LastResults {
    /// Returns the parts of a user's turn beside the last tool results in `turns`.
    fn beside<'t, 'a>(&self, turns: &'t [Turn<'a>]) -> &'t [UserPart<'a>] {
        let beside = |turn: &'t Turn<'a>| match turn {
            Turn::User(user) if !user.results.is_empty() => Some(user.items.as_slice()),
            _ => None,
        };
        let end = self.end.get().map_or(turns.len(), |end| end.min(turns.len()));
        let seen = turns.get(..end).unwrap_or_default();
        let at = seen.iter().rposition(|turn| beside(turn).is_some());
        self.end.set(Some(at.map_or(0, |at| at.saturating_add(1))));
        at.and_then(|at| turns.get(at)).and_then(beside).unwrap_or_default()
    }
}

/// Returns true if the same text also came with the previous tool results. CrewAI adds a
/// configurable text after each result to make the model go on.
fn is_repeated<'t, 'a: 't>(text: Str<'_>, before: &impl Fn() -> &'t [UserPart<'a>]) -> bool {
    let is_same = |item: &UserPart<'_>| matches!(item, UserPart::Block(Block::Text(known)) if known.text == text);
    text.raw().len() >= REPEATED_BYTES_MIN && before().iter().take(COMPARED_MAX).any(is_same)
}

fn of_result(result: &ToolResult<'_>) -> Voice {
    if is_refused(result) {
        return Voice::Person;
    }
    let of_block = |block: &Block<'_>| match block {
        Block::Text(text) => match reminders(text.text) {
            "" => None,
            reminders => of_elements(reminders, Some(&BY_CLIENT), json::trim_start_raw),
        },
        _ => None,
    };
    result.content.iter().filter_map(of_block).max().unwrap_or(Voice::Client)
}

fn of_system(texts: &[Str<'_>]) -> Voice {
    let of_text = |text: &Str<'_>| of_inside(json::trim_start_raw(text.raw()));
    texts.iter().map(of_text).max().unwrap_or(Voice::Client)
}

/// Returns true if a tool result is that of a skill call.
fn is_skill(result: &ToolResult<'_>) -> bool {
    matches!(result.content.first(), Some(Block::Text(text)) if text.text.raw().starts_with(SKILL))
}

/// Returns the author of a text in a user's turn; `None` if no known client writes such a text by
/// itself.
fn of_text(text: Str<'_>, beside_results: bool) -> Option<Voice> {
    let raw = text.raw().trim_start();
    // Fast path: the first letter rules out nearly every text of a person.
    if !raw.starts_with(['<', '\\', '[', 'B', 'O', 'S', 'T', 'Y']) {
        return text.is_blank().then_some(Voice::Client);
    }
    // Fast path: nearly every text of a client consists of elements, which the raw JSON string
    // already shows. Its escaped line ends count as white space.
    let names = (!beside_results).then_some(BY_CLIENT.as_slice());
    if let Some(voice) = of_elements(raw, names, json::trim_start_raw) {
        return Some(voice);
    }
    let text = text.decode();
    let text = text.trim();
    let is_nudge = NUDGES.iter().any(|start| text.starts_with(start));
    if is_nudge || beside_results && is_beside_results(text) {
        return Some(of_inside(text));
    }
    of_elements(text, names, str::trim_start)
}

/// Returns true if Claude Code writes this text beside tool results.
fn is_beside_results(text: &str) -> bool {
    text == TOOL_LOADED || BESIDE_RESULTS.iter().any(|start| text.starts_with(start))
}

/// Returns the author of a text that Claude Code wrote for the model, judged by its beginning.
fn of_inside(text: &str) -> Voice {
    match text.as_bytes() {
        [b'T', ..] if text.starts_with(SPOKE) => Voice::Person,
        [b'[', ..] if text.starts_with(NOTIFIED) => Voice::News,
        [b'<', name @ ..] if name.starts_with(NOTIFICATION.as_bytes()) => Voice::News,
        _ => Voice::Client,
    }
}

/// Returns the author of a text that consists only of white space and elements with these names
/// (any name if `None`); otherwise `None`.
fn of_elements(text: &str, names: Option<&[&str]>, after_space: fn(&str) -> &str) -> Option<Voice> {
    let mut voice = Voice::Client;
    let mut rest = after_space(text);
    while !rest.is_empty() {
        let (name, inside, after) = element(rest, names)?;
        let of_element = match name {
            REMINDER => of_inside(after_space(inside)),
            NOTIFICATION => Voice::News,
            _ => Voice::Client,
        };
        voice = voice.max(of_element);
        rest = after_space(after);
    }
    Some(voice)
}

/// Splits off the element at the start of `text`, if its name is one of `names` (any name if
/// `None`). Returns the name, the text after the start tag, and the text after the end tag.
fn element<'t>(text: &'t str, names: Option<&[&str]>) -> Option<(&'t str, &'t str, &'t str)> {
    let tag = text.strip_prefix('<')?;
    let end = tag.bytes().position(|byte| !is_name_byte(byte));
    let (name, mut rest) = tag.split_at_checked(end?)?;
    if name.is_empty() || names.is_some_and(|names| !names.contains(&name)) {
        return None;
    }
    let inside = rest.strip_prefix('>').unwrap_or(rest);
    while let Some((_, after)) = words::split_once(rest, "<") {
        let end = after.strip_prefix('/').and_then(|after| after.strip_prefix(name));
        if let Some(after) = end.and_then(|end| end.strip_prefix('>')) {
            return Some((name, inside, after));
        }
        rest = after;
    }
    None
}

#[cfg(test)]
mod tests;
