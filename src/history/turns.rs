//! Messages become turns: neighbours of one side are joined, and texts that say nothing leave.

use crate::json::Str;
use crate::model::turn::{Turn, User, UserPart, calls};
use crate::model::{Block, ToolResult};

/// The turns of a conversation.
#[derive(Debug, Default)]
pub(crate) struct Turns<'a> {
    turns: Vec<Turn<'a>>,
    /// The next block is the first one of its message.
    begins: bool,
    /// So many blocks the message may have that begins.
    expected: usize,
    /// Results that stand behind what the assistant goes on to say.
    held: User<'a>,
}

impl<'a> Turns<'a> {
    /// Begins the user's turn, in which nothing may come.
    pub(crate) fn user(&mut self) {
        if !matches!(self.turns.last(), Some(Turn::User(_))) {
            self.turns.push(Turn::User(std::mem::take(&mut self.held)));
        }
    }

    /// Adds a tool result to the user's turn.
    pub(crate) fn result(&mut self, result: ToolResult<'a>) {
        self.user();
        if let Some(Turn::User(user)) = self.turns.last_mut() {
            if user.results.capacity() == 0 {
                user.results.reserve_exact(std::mem::take(&mut self.expected));
            }
            user.results.push(result);
        }
    }

    /// Adds anything else to the user's turn.
    pub(crate) fn item(&mut self, item: UserPart<'a>) {
        self.user();
        if let Some(Turn::User(user)) = self.turns.last_mut() {
            user.items.push(item);
        }
    }

    /// Whether the last turn is the assistant's.
    pub(crate) fn ends_with_assistant(&self) -> bool {
        matches!(self.turns.last(), Some(Turn::Assistant(_)))
    }

    /// So many blocks may come in the message that is read.
    pub(crate) fn expect(&mut self, blocks: usize) {
        self.expected = blocks;
    }

    /// Begins a message of the assistant, in which so many blocks may come, or nothing.
    pub(crate) fn assistant(&mut self, blocks: usize) {
        self.begins = true;
        self.expect(blocks);
    }

    /// Goes on with the message of the assistant before the results that came last, if nothing else came.
    pub(crate) fn go_on(&mut self) {
        if let [.., Turn::Assistant(_), Turn::User(user)] = self.turns.as_mut_slice()
            && user.items.is_empty()
        {
            self.held = std::mem::take(user);
            self.turns.pop();
        }
    }

    /// Adds a block to the assistant's turn.
    pub(crate) fn block(&mut self, block: Block<'a>) {
        let begins = std::mem::take(&mut self.begins);
        match self.turns.last_mut() {
            Some(Turn::Assistant(blocks)) if !begins => blocks.push(block),
            _ => {
                let mut blocks = Vec::with_capacity(std::mem::take(&mut self.expected));
                blocks.push(block);
                self.turns.push(Turn::Assistant(blocks));
            }
        }
    }

    /// Adds a system message that stays where it is.
    pub(crate) fn system(&mut self, texts: Vec<Str<'a>>) {
        match self.turns.last_mut() {
            Some(Turn::System(known)) => known.extend(texts),
            _ => self.turns.push(Turn::System(texts)),
        }
    }

    /// All turns, without the texts that say nothing. What follows calls stays a turn all the same if the
    /// assistant goes on after it: that is where the results of these calls are missing. Where the roles are
    /// `alternating`, all neighbours are one turn.
    #[must_use]
    pub(crate) fn finish(mut self, alternating: bool) -> Vec<Turn<'a>> {
        if !self.held.results.is_empty() {
            self.user();
        }
        let mut turns: Vec<Turn<'a>> = Vec::with_capacity(self.turns.len());
        // Whether calls wait for the user's answer, now that the assistant has spoken.
        let mut called = false;
        // Whether the last turn says something, if it is the assistant's.
        let mut said = false;
        for mut turn in self.turns {
            let is_left = drop_blank_texts(&mut turn);
            let is_answer = matches!(turn, Turn::User(_)) && called;
            if !(is_left || is_answer) {
                continue;
            }
            let says = matches!(&turn, Turn::Assistant(blocks) if says_something(blocks));
            let has_calls =
                matches!(&turn, Turn::Assistant(blocks) if calls(blocks).next().is_some());
            // Many templates leave out the text beside calls, but the results of calls stand directly after them.
            let joins = alternating || called || !(said && has_calls);
            match &turn {
                Turn::User(_) => called = false,
                Turn::Assistant(_) => {
                    // Else it goes on with what it said.
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
                    join(known, said, blocks, says);
                    said |= says;
                }
                (Some(Turn::System(known)), Turn::System(texts)) => known.extend(texts),
                (_, turn) => {
                    said = says;
                    turns.push(turn);
                }
            }
        }
        let says_nothing = |turn: &mut Turn<'_>| match turn {
            Turn::User(user) => user.results.is_empty() && user.items.is_empty(),
            _ => false,
        };
        let _ = turns.pop_if(says_nothing);
        turns
    }
}

fn says_something(blocks: &[Block<'_>]) -> bool {
    !blocks.iter().all(|block| is_blank(block) || matches!(block, Block::Thinking { .. }))
}

/// Makes two messages one, of which the first has words if `said`, and the second if `says`.
fn join<'a>(known: &mut Vec<Block<'a>>, said: bool, mut blocks: Vec<Block<'a>>, says: bool) {
    match (said, says) {
        (true, true) => known.push(Block::Note),
        (false, true) => known.retain(|block| !is_blank(block)),
        (_, false) => blocks.retain(|block| !is_blank(block)),
    }
    known.append(&mut blocks);
}

/// Drops texts that are empty, and blank ones beside others. Says whether anything is left. A blank one
/// between two texts of the assistant stays: these are joined without a gap, and it is their line end.
fn drop_blank_texts(turn: &mut Turn<'_>) -> bool {
    match turn {
        Turn::User(User { results, items }) => {
            let blank =
                |item: &UserPart<'_>| matches!(item, UserPart::Block(block) if is_blank(block));
            let only_blanks = results.is_empty() && items.iter().all(blank);
            items.retain(|item| match item {
                UserPart::Block(block) => keeps(block, only_blanks),
                _ => true,
            });
            !(results.is_empty() && items.is_empty())
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
            !blocks.is_empty()
        }
        Turn::System(texts) => !texts.is_empty(),
    }
}

fn is_blank(block: &Block<'_>) -> bool {
    matches!(block, Block::Text(text) if text.text.is_blank())
}

fn keeps(block: &Block<'_>, blanks: bool) -> bool {
    match block {
        Block::Text(text) => !text.text.is_empty() && (blanks || !text.text.is_blank()),
        _ => true,
    }
}
