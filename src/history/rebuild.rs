//! Removal of tool calls from a conversation, for an upstream that refuses valid pairs of calls and
//! results.
//!
//! The removed calls and results stay as text of the user, so that the model does not repeat the
//! calls.

use super::{Turns, joined};
use crate::model::turn::{Turn, User, UserPart};
use crate::model::{Block, ToolUse};

/// Removes the calls for which `offends` is true, with their results, from a repaired conversation.
/// `UserPart::Done` parts of the user's turn replace them.
pub(crate) fn without_calls<'a>(
    turns: Vec<Turn<'a>>,
    offends: impl Fn(&ToolUse<'a>) -> bool,
) -> Vec<Turn<'a>> {
    let mut rebuilt = Turns::default();
    // Removed calls in reverse order.
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
                // Reasoning that led to a removed call is meaningless alone.
                let is_part = |it: &Block<'_>| matches!(it, Block::Thinking { .. } | Block::Note);
                if taken.is_empty() || !kept.iter().all(is_part) {
                    rebuilt.assistant(kept.len());
                    kept.into_iter().for_each(|block| rebuilt.block(block));
                }
            }
            Turn::User(User { results, items }) => {
                for result in results {
                    // Results are in the order of their calls.
                    match taken.pop_if(|call| call.id == result.id) {
                        Some(call) => rebuilt.item(UserPart::Done(Box::new((call, result)))),
                        None => rebuilt.result(result),
                    }
                }
                items.into_iter().for_each(|item| rebuilt.item(item));
            }
        }
    }
    // If the roles of turns must alternate, they already do.
    joined(rebuilt, false)
}
