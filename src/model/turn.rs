//! Turns of a conversation, independent of the wire protocol.
//!
//! A turn is all that one side says until the other side speaks, but an assistant message with tool
//! calls is a turn of its own. Tool results are kept separate in a user's turn, because Chat
//! Completions wants them first and as messages of their own.

use super::{Block, ToolResult, ToolUse};
use crate::json::Str;

/// Turn of the user or the assistant, or a system message between turns.
#[derive(Debug)]
pub(crate) enum Turn<'a> {
    /// Turn of the user: all messages until the assistant speaks, with the results of the calls in
    /// the turn before.
    User(User<'a>),
    /// Turn of the assistant. A turn without calls can be followed by a turn with calls. A
    /// [`Block::Note`] separates the client's messages in one turn.
    Assistant(Vec<Block<'a>>),
    /// Texts of a system message in mid conversation that keeps its position.
    System(Vec<Str<'a>>),
}

/// Content of a user's turn.
#[derive(Debug, Default)]
pub(crate) struct User<'a> {
    /// Results of the tool calls in the assistant's turn before.
    pub results: Vec<ToolResult<'a>>,
    /// Parts of the user's turn that are not tool results.
    pub items: Vec<UserPart<'a>>,
}

/// Part of a user's turn that is not a tool result.
#[derive(Debug)]
pub(crate) enum UserPart<'a> {
    /// Block from the client's request.
    Block(Block<'a>),
    /// Texts of a system message that the client put within the user's turn.
    System(Vec<Str<'a>>),
    /// Summary of messages that were compacted.
    Summary(Str<'a>),
    /// Tool result without a matching call.
    Orphan(ToolResult<'a>),
    /// Tool call and its result, which are written as plain text at this position.
    Done(Box<(ToolUse<'a>, ToolResult<'a>)>),
    /// System prompt as a part of the user's turn, for models that have no role for a system
    /// prompt.
    SystemPrompt,
    /// Placeholder for a late tool result that was moved next to its call: [`MOVED`].
    Moved,
}

/// User's text in place of a tool result that was moved next to its call. Without this text the
/// conversation would end with the model's turn, and the model would continue that turn.
pub(crate) const MOVED: &str =
    "[The result of an earlier tool call has come. It stands with its call.]";

/// Returns the tool calls among the blocks of the assistant.
pub(crate) fn calls<'b, 'a>(blocks: &'b [Block<'a>]) -> impl Iterator<Item = &'b ToolUse<'a>> {
    blocks.iter().filter_map(|block| match block {
        Block::ToolUse(call) => Some(&**call),
        _ => None,
    })
}

/// Returns the tool calls among the blocks of the assistant that the client runs.
pub(crate) fn client_calls<'b, 'a>(
    blocks: &'b [Block<'a>],
) -> impl Iterator<Item = &'b ToolUse<'a>> {
    calls(blocks).filter(|call| !call.is_server)
}

/// Returns true if the user speaks first, and no two turns of the assistant are adjacent.
pub(crate) fn alternates(turns: &[Turn<'_>]) -> bool {
    let mut spoke = true;
    turns.iter().filter(|turn| !matches!(turn, Turn::System(_))).all(|turn| {
        let speaks = matches!(turn, Turn::Assistant(_));
        !(std::mem::replace(&mut spoke, speaks) && speaks)
    })
}

/// Returns the user's turn after the assistant's turn at index `at`, and its index. System messages
/// between the two are skipped.
pub(crate) fn answer_to<'t, 'a>(turns: &'t [Turn<'a>], at: usize) -> Option<(usize, &'t User<'a>)> {
    let mut later = turns.iter().enumerate().skip(at.saturating_add(1));
    match later.find(|(_, turn)| !matches!(turn, Turn::System(_))) {
        Some((next, Turn::User(user))) => Some((next, user)),
        _ => None,
    }
}

/// Returns the blocks of the assistant's turn before the user's turn at index `at`; empty if there
/// is none. System messages between the two are skipped.
pub(crate) fn blocks_before<'t, 'a>(turns: &'t [Turn<'a>], at: usize) -> &'t [Block<'a>] {
    let before = turns.get(..at).unwrap_or_default();
    match before.iter().rfind(|turn| !matches!(turn, Turn::System(_))) {
        Some(Turn::Assistant(blocks)) => blocks,
        _ => &[],
    }
}
