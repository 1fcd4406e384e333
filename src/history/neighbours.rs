//! Neighbours of one side become one turn.

use super::blanks::is_blank;
use crate::model::Block;
use crate::model::turn::{Turn, User, calls};

/// Joins neighbours, and leaves out turns without anything in them. What follows calls stays a turn
/// all the same if the assistant goes on after it: that is where the results of these calls are
/// missing. Where the roles are `alternating`, all neighbours are one turn.
#[must_use]
pub(super) fn join(given: Vec<Turn<'_>>, alternating: bool) -> Vec<Turn<'_>> {
    let mut turns: Vec<Turn<'_>> = Vec::with_capacity(given.len());
    // Whether calls wait for the user's answer, now that the assistant has spoken.
    let mut called = false;
    // Whether the last turn has words, if it is the assistant's.
    let mut had_words = false;
    for turn in given {
        let is_answer = matches!(turn, Turn::User(_)) && called;
        if is_empty(&turn) && !is_answer {
            continue;
        }
        let has_words = matches!(&turn, Turn::Assistant(blocks) if says_something(blocks));
        let has_calls = matches!(&turn, Turn::Assistant(blocks) if calls(blocks).next().is_some());
        // Many templates leave out the text beside calls, but the results of calls stand directly
        // after them.
        let joins = alternating || called || !(had_words && has_calls);
        match &turn {
            Turn::User(_) => called = false,
            Turn::Assistant(_) => {
                // Else it goes on with its own words.
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

/// Makes two messages one, of which the first has words if `had_words`, and the second if
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
