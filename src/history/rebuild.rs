//! A conversation without some of its tool calls, for an upstream that refuses how they are paired
//! although they are right.
//!
//! What the calls were and what they gave stays, as words of the user: the model must not do it all
//! again.

use super::{Turns, joined};
use crate::model::turn::{Turn, User, UserPart};
use crate::model::{Block, ToolUse};

/// Takes the calls that `offends` names, and their results, out of a repaired conversation.
pub(crate) fn without_calls<'a>(
    turns: Vec<Turn<'a>>,
    offends: impl Fn(&ToolUse<'a>) -> bool,
) -> Vec<Turn<'a>> {
    let mut rebuilt = Turns::default();
    // The first call stands last.
    let mut taken: Vec<ToolUse<'a>> = Vec::new();
    for turn in turns {
        match turn {
            Turn::System(texts) => rebuilt.system(texts),
            Turn::Assistant(blocks) => {
                taken.clear();
                let mut kept = Vec::with_capacity(blocks.len());
                for block in blocks {
                    match block {
                        Block::ToolUse(call) if offends(&call) => taken.push(*call),
                        block => kept.push(block),
                    }
                }
                taken.reverse();
                // Reasoning that led to a call means nothing without it.
                let is_part = |it: &Block<'_>| matches!(it, Block::Thinking { .. } | Block::Note);
                if taken.is_empty() || !kept.iter().all(is_part) {
                    rebuilt.assistant(kept.len());
                    kept.into_iter().for_each(|block| rebuilt.block(block));
                }
            }
            Turn::User(User { results, items }) => {
                for result in results {
                    // They stand in the order of their calls.
                    match taken.pop_if(|call| call.id == result.id) {
                        Some(call) => rebuilt.item(UserPart::Done(Box::new((call, result)))),
                        None => rebuilt.result(result),
                    }
                }
                items.into_iter().for_each(|item| rebuilt.item(item));
            }
        }
    }
    // Where they alternate, they do so already.
    joined(rebuilt, false)
}
