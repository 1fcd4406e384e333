//! Joining of adjacent turns of the same side into one turn.

use super::blanks::is_blank;
use crate::model::Block;
use crate::model::turn::{Turn, User, calls};

/// Joins adjacent turns of one side, and drops empty turns. An empty turn after calls stays if the
/// assistant goes on, because the results of these calls are missing there. Without `alternating`
/// roles, a turn of the assistant with calls stays separate from a text before.
#[must_use]
pub(super) fn join(given: Vec<Turn<'_>>, alternating: bool) -> Vec<Turn<'_>> {
    let mut turns: Vec<Turn<'_>> = Vec::with_capacity(given.len());
    // True if calls wait for the user's answer, after the assistant has spoken.
    let mut called = false;
    // True if the last turn is the assistant's and has text.
    let mut had_words = false;
    for turn in given {
        let is_answer = matches!(turn, Turn::User(_)) && called;
        if is_empty(&turn) && !is_answer {
            continue;
        }
        let has_words = matches!(&turn, Turn::Assistant(blocks) if says_something(blocks));
        let has_calls = matches!(&turn, Turn::Assistant(blocks) if calls(blocks).next().is_some());
        // Many templates drop the text beside calls, but the results of calls must come directly
        // after the calls.
        let joins = alternating || called || !(had_words && has_calls);
        match &turn {
            Turn::User(_) => called = false,
            Turn::Assistant(_) => {
                // If another turn came after the calls, the assistant continues with its own text.
                called &= matches!(turns.last(), Some(Turn::Assistant(_)));
                called |= has_calls;
            }
            Turn::System(_) => {}
        }
        match (turns.last_mut(), turn) {
            (Some(Turn::User(known)), Turn::User(user)) => {
                known.results.extend(user.results);
                known.items.extend(user.items);
            }
            (Some(Turn::Assistant(known)), Turn::Assistant(blocks)) if joins => {
                append(known, had_words, blocks, has_words);
                had_words |= has_words;
            }
            (Some(Turn::System(known)), Turn::System(texts)) => known.extend(texts),
            (_, turn) => {
                had_words = has_words;
                turns.push(turn);
            }
        }
    }
    let _ = turns.pop_if(|turn| matches!(turn, Turn::User(_)) && is_empty(turn));
    turns
}

fn is_empty(turn: &Turn<'_>) -> bool {
    match turn {
        Turn::User(User { results, items }) => results.is_empty() && items.is_empty(),
        Turn::Assistant(blocks) => blocks.is_empty(),
        Turn::System(texts) => texts.is_empty(),
    }
}

fn says_something(blocks: &[Block<'_>]) -> bool {
    !blocks.iter().all(|block| is_blank(block) || matches!(block, Block::Thinking { .. }))
}

/// Joins two messages of the assistant. The first has text if `had_words`, the second if
/// `has_words`.
fn append<'a>(
    known: &mut Vec<Block<'a>>,
    had_words: bool,
    mut blocks: Vec<Block<'a>>,
    has_words: bool,
) {
    match (had_words, has_words) {
        (true, true) => known.push(Block::Note),
        (false, true) => known.retain(|block| !is_blank(block)),
        (_, false) => blocks.retain(|block| !is_blank(block)),
    }
    known.append(&mut blocks);
}
