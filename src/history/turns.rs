//! Builder that collects blocks into turns.

use crate::json::Str;
use crate::model::turn::{Turn, User, UserPart};
use crate::model::{Block, ToolResult};

/// Number of tool results in a message above which their list is allocated in two halves.
const MANY_RESULTS: usize = 1_000;

/// Turns of a conversation that is being read.
#[derive(Debug, Default)]
pub(crate) struct Turns<'a> {
    turns: Vec<Turn<'a>>,
    /// True if the next block is the first block of its message.
    begins: bool,
    /// Number of blocks to reserve capacity for in the message that begins.
    expected: usize,
    /// Tool results to insert after the text with which the assistant continues.
    held: User<'a>,
}

impl<'a> Turns<'a> {
    /// Begins a turn of the user, which may stay empty.
    pub(crate) fn user(&mut self) {
        if !matches!(self.turns.last(), Some(Turn::User(_))) {
            self.turns.push(Turn::User(std::mem::take(&mut self.held)));
        }
    }

    /// Adds a tool result to the user's turn.
    pub(crate) fn result(&mut self, result: ToolResult<'a>) {
        self.user();
        if let Some(Turn::User(user)) = self.turns.last_mut() {
            let begins = user.results.capacity() == 0;
            let is_full = user.results.len() == user.results.capacity();
            if begins || is_full && self.expected >= MANY_RESULTS / 2 {
                // The second half of many results gets its place after the first half was freed.
                let is_half = begins && self.expected > MANY_RESULTS;
                let count = if is_half { self.expected / 2 } else { self.expected };
                self.expected = self.expected.saturating_sub(count);
                user.results.reserve_exact(count);
            }
            user.results.push(result);
        }
    }

    /// Adds a part that is not a tool result to the user's turn.
    pub(crate) fn item(&mut self, item: UserPart<'a>) {
        self.user();
        if let Some(Turn::User(user)) = self.turns.last_mut() {
            user.items.push(item);
        }
    }

    /// Returns true if the last turn is the assistant's.
    pub(crate) fn ends_with_assistant(&self) -> bool {
        matches!(self.turns.last(), Some(Turn::Assistant(_)))
    }

    /// Sets the number of blocks to reserve capacity for in the current message.
    pub(crate) fn expect(&mut self, blocks: usize) {
        self.expected = blocks;
    }

    /// Begins a message of the assistant with at most `blocks` blocks, and perhaps none.
    pub(crate) fn assistant(&mut self, blocks: usize) {
        self.begins = true;
        self.expect(blocks);
    }

    /// Continues the assistant's message before the latest tool results, if nothing else came after
    /// that message.
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

    /// Adds all blocks of a message to the assistant's turn.
    pub(super) fn blocks(&mut self, mut blocks: Vec<Block<'a>>) {
        match self.turns.last_mut() {
            Some(Turn::Assistant(known)) if !self.begins => known.append(&mut blocks),
            _ if blocks.is_empty() => {}
            _ => {
                self.begins = false;
                self.turns.push(Turn::Assistant(blocks));
            }
        }
    }

    /// Adds a system message that keeps its position.
    pub(crate) fn system(&mut self, texts: Vec<Str<'a>>) {
        match self.turns.last_mut() {
            Some(Turn::System(known)) => known.extend(texts),
            _ => self.turns.push(Turn::System(texts)),
        }
    }

    /// Returns the turns in the order of the conversation.
    #[must_use]
    pub(super) fn finish(mut self) -> Vec<Turn<'a>> {
        if !self.held.results.is_empty() {
            self.user();
        }
        self.turns
    }
}
