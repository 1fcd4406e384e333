//! Removal of empty and blank texts, which servers refuse and clients keep in the history.

use crate::model::Block;
use crate::model::turn::{Turn, User, UserPart};

/// Drops a turn's empty texts, and blank texts beside other blocks. A blank text between two texts
/// of the assistant stays, because the texts are joined without a gap.
pub(super) fn drop_blanks(turn: &mut Turn<'_>) {
    match turn {
        Turn::User(User { results, items }) => {
            let blank =
                |item: &UserPart<'_>| matches!(item, UserPart::Block(block) if is_blank(block));
            let only_blanks = results.is_empty() && items.iter().all(blank);
            items.retain(|item| match item {
                UserPart::Block(block) => keeps(block, only_blanks),
                _ => true,
            });
        }
        Turn::Assistant(blocks) => {
            let only_blanks = blocks.iter().all(is_blank);
            let says = |block: &Block<'_>| matches!(block, Block::Text(_)) && !is_blank(block);
            let (first, last) = (blocks.iter().position(says), blocks.iter().rposition(says));
            let mut at = 0usize;
            blocks.retain(|block| {
                let is_between = first < Some(at) && Some(at) < last;
                at = at.saturating_add(1);
                keeps(block, only_blanks || is_between)
            });
        }
        Turn::System(_) => {}
    }
}

pub(super) fn is_blank(block: &Block<'_>) -> bool {
    matches!(block, Block::Text(text) if text.text.is_blank())
}

fn keeps(block: &Block<'_>, blanks: bool) -> bool {
    match block {
        Block::Text(text) => !text.text.is_empty() && (blanks || !text.text.is_blank()),
        _ => true,
    }
}
