//! Conversations whose beginning is missing, so that the assistant speaks first. Chat templates
//! require a user's message first. Clients lose that message when they keep only the last messages
//! (n8n), compact the history or drop empty messages.

use crate::json::Str;
use crate::model::turn::{Turn, User, UserPart};
use crate::model::{Block, Text};

/// User's text that replaces the missing beginning of a conversation.
const BEGINNING: &str = "[The beginning of this conversation is missing.]";

/// Returns true if the assistant speaks before the user.
pub(crate) fn is_missing(turns: &[Turn<'_>]) -> bool {
    let first = turns.iter().find(|turn| !matches!(turn, Turn::System(_)));
    matches!(first, Some(Turn::Assistant(_)))
}

/// Inserts a user's turn that says that the beginning is missing.
pub(crate) fn put_before(turns: &mut Vec<Turn<'_>>) {
    let text = Text { text: Str::plain(BEGINNING), cached: None, citations: None };
    insert(turns, UserPart::Block(Block::Text(text)));
}

/// Inserts a part of a user's turn at the beginning of the user's first turn, or as a turn of its
/// own if the assistant speaks first.
pub(crate) fn put_before_first_user<'a>(turns: &mut Vec<Turn<'a>>, item: UserPart<'a>) {
    match turns.first_mut() {
        Some(Turn::User(user)) => user.items.insert(0, item),
        _ => insert(turns, item),
    }
}

fn insert<'a>(turns: &mut Vec<Turn<'a>>, item: UserPart<'a>) {
    turns.insert(0, Turn::User(User { results: Vec::new(), items: vec![item] }));
}
