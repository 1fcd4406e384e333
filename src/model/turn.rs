//! Turns: what both sides of a conversation say, in no protocol's form.
//!
//! A turn is everything that one side says until the other one speaks, but a message of the
//! assistant's with calls is a turn of its own. Tool results stand apart from the rest of a user's
//! turn, because Chat Completions wants them first and as messages of their own.

use super::{Block, ToolResult, ToolUse};
use crate::json::Str;

/// Turn of one side of a conversation.
#[derive(Debug)]
pub(crate) enum Turn<'a> {
    /// Turn of the user: everything until the assistant speaks, with the results of the calls in
    /// the turn before.
    User(User<'a>),
    /// Turn of the assistant. If it has no calls, a turn with calls can follow. If it is several
    /// messages of the client's, a [`Block::Note`] stands between them.
    Assistant(Vec<Block<'a>>),
    /// Texts of a system message in mid conversation that stays where it is.
    System(Vec<Str<'a>>),
}

/// A turn of the user.
#[derive(Debug, Default)]
pub(crate) struct User<'a> {
    /// Results of the calls in the turn before.
    pub results: Vec<ToolResult<'a>>,
    /// Parts of the turn that are not tool results.
    pub items: Vec<UserPart<'a>>,
}

/// A part of a user's turn that is not a tool result.
#[derive(Debug)]
pub(crate) enum UserPart<'a> {
    /// Block as the client wrote it.
    Block(Block<'a>),
    /// Texts of a system message that stood in the user's turn.
    System(Vec<Str<'a>>),
    /// Summary of messages that were compacted.
    Summary(Str<'a>),
    /// Tool result without a call.
    Orphan(ToolResult<'a>),
    /// Call and its result, which are written as words in this place.
    Done(Box<(ToolUse<'a>, ToolResult<'a>)>),
    /// System prompt, for models that have no role for it.
    SystemPrompt,
    /// Placeholder for a late result that now stands with its call: [`MOVED`].
    Moved,
}

/// Words of the user in place of a late result. Without them the last turn would be the model's
/// own, and the model would go on with that.
pub(crate) const MOVED: &str =
    "[The result of an earlier tool call has come. It stands with its call.]";

/// Returns the tool calls among the blocks of the assistant.
pub(crate) fn calls<'b, 'a>(blocks: &'b [Block<'a>]) -> impl Iterator<Item = &'b ToolUse<'a>> {
    blocks.iter().filter_map(|block| match block {
        Block::ToolUse(call) => Some(&**call),
        _ => None,
    })
}

/// Returns true if the user begins, and no two of the assistant's turns are neighbours.
pub(crate) fn alternates(turns: &[Turn<'_>]) -> bool {
    let mut spoke = true;
    turns.iter().filter(|turn| !matches!(turn, Turn::System(_))).all(|turn| {
        let speaks = matches!(turn, Turn::Assistant(_));
        !(std::mem::replace(&mut spoke, speaks) && speaks)
    })
}

/// Returns the user's turn after the assistant's turn `at`, and its position. System messages may
/// stand between them.
pub(crate) fn answer_to<'t, 'a>(turns: &'t [Turn<'a>], at: usize) -> Option<(usize, &'t User<'a>)> {
    let mut later = turns.iter().enumerate().skip(at.saturating_add(1));
    match later.find(|(_, turn)| !matches!(turn, Turn::System(_))) {
        Some((next, Turn::User(user))) => Some((next, user)),
        _ => None,
    }
}

/// Returns the blocks of the assistant's turn before the user's turn `at`, if there is one. System
/// messages may stand between them.
pub(crate) fn blocks_before<'t, 'a>(turns: &'t [Turn<'a>], at: usize) -> &'t [Block<'a>] {
    let before = turns.get(..at).unwrap_or_default();
    match before.iter().rfind(|turn| !matches!(turn, Turn::System(_))) {
        Some(Turn::Assistant(blocks)) => blocks,
        _ => &[],
    }
}
