//! Conversations whose beginning is missing. Chat templates want words of the user, and clients cut
//! them off: memories keep the last messages (n8n), compaction and empty first messages leave an
//! assistant that called a tool by itself.

use crate::json::Str;
use crate::model::turn::{Turn, User, UserPart};
use crate::model::{Block, Text};

/// Text of the user before a conversation whose beginning is gone.
const BEGINNING: &str = "[The beginning of this conversation is missing.]";

/// Whether the assistant speaks before the user.
pub(crate) fn is_missing(turns: &[Turn<'_>]) -> bool {
    let first = turns.iter().find(|turn| !matches!(turn, Turn::System(_)));
    matches!(first, Some(Turn::Assistant(_)))
}

/// Has the user say that the beginning is missing.
pub(crate) fn put_before(turns: &mut Vec<Turn<'_>>) {
    let text = Text { text: Str::plain(BEGINNING), cached: None, cited: false };
    insert(turns, UserPart::Block(Block::Text(text)));
}

/// Puts something before the first words of the user.
pub(crate) fn put_before_first_user<'a>(turns: &mut Vec<Turn<'a>>, item: UserPart<'a>) {
    match turns.first_mut() {
        Some(Turn::User(user)) => user.items.insert(0, item),
        _ => insert(turns, item),
    }
}

fn insert<'a>(turns: &mut Vec<Turn<'a>>, item: UserPart<'a>) {
    turns.insert(0, Turn::User(User { results: Vec::new(), items: vec![item] }));
}
