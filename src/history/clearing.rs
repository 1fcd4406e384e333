//! Clearing of old tool results and old thinking, which the client requests with
//! `context_management.edits`.
//!
//! The cleared parts depend on the request alone, and only grow at their end: the edits are applied
//! as if each earlier request of the conversation were processed in turn. Such a request ended
//! before each answer of the assistant, and had all messages before that answer. If such a request,
//! minus the parts cleared earlier, exceeds the trigger, all tool uses but the last ones are
//! cleared at once. Then nothing changes until the trigger is exceeded again. So two requests of a
//! conversation agree in their common part unless the later one clears, and the upstream's prompt
//! cache stays valid.
//!
//! Results are marked first, and cleared after the guards have run: guards count failures over the
//! whole history.

use super::server_tools::count_pages;
use crate::json::{Raw, Str};
use crate::model::context_management::{
    ClearToolUses, Cleared, ContextManagement, Inputs, Trigger,
};
use crate::model::turn::{Turn, UserPart};
use crate::model::{Block, CacheMark, Message, Role, ServerResultKind, Text, ToolResult, ToolUse};
use crate::text::names::Names;

/// Text that replaces a cleared tool result.
pub(crate) const RESULT_CLEARED: &str = "[This old tool result was cleared to save space.]";
/// Text that replaces a cleared result of a server tool, as JSON.
const RESULT_CLEARED_JSON: &str = "\"[This old tool result was cleared to save space.]\"";

/// Counter of tokens in parts of a request.
pub(crate) trait Tokens {
    /// Returns the number of tokens before the first message.
    fn before_messages(&self) -> u64;
    /// Returns the number of tokens of a whole message.
    fn of_message(&self, blocks: &[Block<'_>]) -> u64;
    /// Returns the number of tokens of a block; 0 for thinking.
    fn of_block(&self, block: &Block<'_>) -> u64;
    /// Returns the number of tokens of a text.
    fn of_text(&self, text: Str<'_>) -> u64;
}

/// Position of a block: index of its message, and index in the message.
type ResultPlace = (usize, usize);

/// Tool use that may be cleared: a call and its result.
struct Use {
    call: ResultPlace,
    result: Option<ResultPlace>,
    clears_input: bool,
}

/// Removes old thinking from the messages, and marks the tool uses that [`clear`] will clear.
pub(crate) fn mark(
    messages: &mut [Message<'_>],
    edits: &ContextManagement<'_>,
    tokens: &impl Tokens,
) -> Cleared {
    let mut cleared = Cleared::default();
    if let Some(kept) = edits.thinking_kept {
        clear_thinking(messages, kept, tokens, &mut cleared);
    }
    if let Some(edit) = &edits.tool_uses {
        let uses = ToolUses::new(messages, edit, tokens).find();
        for tool_use in uses.iter().filter(|tool_use| tool_use.result.is_some()) {
            cleared.tool_uses = cleared.tool_uses.saturating_add(1);
            cleared.tool_tokens =
                cleared.tool_tokens.saturating_add(tokens_of(messages, tool_use, tokens));
            mark_use(messages, tool_use);
        }
    }
    cleared
}

/// Clears the tool results and call inputs that were marked.
pub(crate) fn clear(turns: &mut [Turn<'_>]) {
    for turn in turns {
        match turn {
            Turn::User(user) => {
                user.results.iter_mut().for_each(clear_result);
                for item in &mut user.items {
                    match item {
                        UserPart::Orphan(result) => clear_result(result),
                        UserPart::Done(done) => {
                            clear_input(&mut done.0);
                            clear_result(&mut done.1);
                        }
                        _ => {}
                    }
                }
            }
            Turn::Assistant(blocks) => blocks.iter_mut().for_each(clear_block),
            Turn::System(_) => {}
        }
    }
}

/// Clears the marked blocks of messages that no guard inspects.
pub(crate) fn clear_messages(messages: &mut [Message<'_>]) {
    messages.iter_mut().flat_map(|message| &mut message.content).for_each(clear_block);
}

fn clear_block(block: &mut Block<'_>) {
    match block {
        Block::ToolUse(call) => clear_input(call),
        Block::ToolResult(result) => clear_result(result),
        _ => {}
    }
}

fn clear_result(result: &mut ToolResult<'_>) {
    if result.cleared {
        let cached = result.content.iter().rev().find_map(cached);
        let text = Text { text: Str::plain(RESULT_CLEARED), cached, citations: None };
        result.content = vec![Block::Text(text)];
    }
}

fn cached(block: &Block<'_>) -> Option<CacheMark> {
    match block {
        Block::Text(text) => text.cached,
        _ => None,
    }
}

fn clear_input(call: &mut ToolUse<'_>) {
    if call.cleared {
        call.input = Raw::of("{}");
    }
}

/// Removes the thinking from all turns of the assistant but the last `kept` turns that have
/// thinking. A turn is everything between two messages of a person.
fn clear_thinking(
    messages: &mut [Message<'_>],
    kept: u64,
    tokens: &impl Tokens,
    cleared: &mut Cleared,
) {
    let (mut turns, mut counts) = (0u64, true);
    for message in messages.iter_mut().rev() {
        if is_of_person(message) {
            counts = true;
        }
        let thinks = |block: &&mut Block<'_>| {
            matches!(block, Block::Thinking { .. } | Block::RedactedThinking(_))
        };
        for block in message.content.iter_mut().filter(thinks) {
            turns = turns.saturating_add(u64::from(std::mem::take(&mut counts)));
            if turns <= kept {
                continue;
            }
            if let Block::Thinking { thinking, .. } = block {
                let tokens = tokens.of_text(*thinking);
                cleared.thinking_tokens = cleared.thinking_tokens.saturating_add(tokens);
            }
            // Put a note in place of the thinking: the number of blocks stays the same, and a note
            // is not sent.
            *block = Block::Note;
        }
    }
    cleared.thinking_turns = turns.saturating_sub(kept);
}

fn is_of_person(message: &Message<'_>) -> bool {
    let is_result = |block: &Block<'_>| matches!(block, Block::ToolResult(_));
    message.role == Role::User && !message.content.iter().any(is_result)
}

/// Search for the tool uses to clear, message by message.
struct ToolUses<'m, 'a, 'e, T> {
    messages: &'m [Message<'a>],
    edit: &'e ClearToolUses<'a>,
    tokens: &'e T,
    /// Tool uses that may be cleared, in order.
    uses: Vec<Use>,
    /// Index in `uses` of the last tool use with an id.
    ids: Names<'a, usize>,
    /// Number of tool uses before the latest answer. The model has seen their results.
    seen: usize,
    /// Number of tool uses that are cleared; `looked_at` is the number of tool uses that were
    /// inspected.
    cleared: usize,
    looked_at: usize,
    /// Number of tokens of the tool uses that were inspected and not cleared.
    clearable: u64,
    /// Number of input tokens of the messages read so far, without the cleared parts.
    input: u64,
}

impl<'m, 'a, 'e, T: Tokens> ToolUses<'m, 'a, 'e, T> {
    fn new(messages: &'m [Message<'a>], edit: &'e ClearToolUses<'a>, tokens: &'e T) -> Self {
        Self {
            messages,
            edit,
            tokens,
            uses: Vec::new(),
            ids: Names::default(),
            seen: 0,
            cleared: 0,
            looked_at: 0,
            clearable: 0,
            input: 0,
        }
    }

    /// Returns the tool uses whose results are to be cleared.
    fn find(mut self) -> Vec<Use> {
        let counts_tokens = matches!(self.edit.trigger, Trigger::InputTokens(_));
        if counts_tokens {
            self.input = self.tokens.before_messages();
        }
        let mut answers = false;
        for (at, message) in self.messages.iter().enumerate() {
            if message.role == Role::Assistant && !std::mem::replace(&mut answers, true) {
                self.request();
                self.seen = self.uses.len();
            }
            answers &= message.role != Role::User;
            for (number, block) in message.content.iter().enumerate() {
                self.add((at, number), block);
            }
            if counts_tokens {
                let tokens = self.tokens.of_message(&message.content);
                self.input = self.input.saturating_add(tokens);
            }
        }
        self.request();
        self.uses.truncate(self.cleared);
        self.uses
    }

    fn add(&mut self, at: ResultPlace, block: &Block<'a>) {
        match block {
            Block::ToolUse(call) => {
                let name = call.name.decode();
                if self.edit.exclude_tools.contains(&name) {
                    return;
                }
                let clears_input = match &self.edit.inputs {
                    Inputs::Kept => false,
                    Inputs::Cleared => true,
                    Inputs::Of(names) => names.contains(&name),
                };
                self.ids.insert(call.id.decode(), self.uses.len());
                self.uses.push(Use { call: at, result: None, clears_input });
            }
            Block::ToolResult(result) => {
                let place = self.ids.get(&result.id.decode()).copied();
                self.set_result(place, at);
            }
            Block::ServerToolUse(call)
                if !self.edit.exclude_tools.contains(&call.name.decode()) =>
            {
                self.ids.insert(call.id.decode(), self.uses.len());
                self.uses.push(Use { call: at, result: None, clears_input: false });
            }
            // Results of tool searches must stay.
            Block::ServerToolResult(result) if result.kind != ServerResultKind::ToolSearch => {
                let is_here = |last: &Use| last.call.0 == at.0 && self.is_of_server(last);
                let last = self.uses.len().checked_sub(1);
                let last = last.filter(|_| self.uses.last().is_some_and(is_here));
                let place = match result.id.is_empty() {
                    true => last,
                    false => self.ids.get(&result.id.decode()).copied(),
                };
                self.set_result(place, at);
            }
            _ => {}
        }
    }

    fn is_of_server(&self, tool_use: &Use) -> bool {
        matches!(block_at(self.messages, tool_use.call), Some(Block::ServerToolUse(_)))
    }

    fn set_result(&mut self, place: Option<usize>, at: ResultPlace) {
        if let Some(tool_use) = place.and_then(|place| self.uses.get_mut(place)) {
            tool_use.result.get_or_insert(at);
        }
    }

    /// Clears the tool uses that a request with only the messages read so far would clear.
    fn request(&mut self) {
        let keep = usize::try_from(self.edit.keep).unwrap_or(usize::MAX);
        let end = self.uses.len().saturating_sub(keep).min(self.seen);
        while self.looked_at < end {
            if let Some(tool_use) = self.uses.get(self.looked_at) {
                let tokens = tokens_of(self.messages, tool_use, self.tokens);
                self.clearable = self.clearable.saturating_add(tokens);
            }
            self.looked_at = self.looked_at.saturating_add(1);
        }
        let is_triggered = match self.edit.trigger {
            Trigger::InputTokens(most) => self.input > most,
            Trigger::ToolUses(most) => self.uses.len().saturating_sub(self.cleared) as u64 > most,
        };
        if is_triggered && self.clearable >= self.edit.clear_at_least {
            self.cleared = self.looked_at;
            self.input = self.input.saturating_sub(std::mem::take(&mut self.clearable));
        }
    }
}

fn block_at<'m, 'a>(messages: &'m [Message<'a>], at: ResultPlace) -> Option<&'m Block<'a>> {
    messages.get(at.0)?.content.get(at.1)
}

/// Returns the number of tokens saved by clearing a tool use.
fn tokens_of(messages: &[Message<'_>], tool_use: &Use, tokens: &impl Tokens) -> u64 {
    let Some(result) = tool_use.result.and_then(|at| block_at(messages, at)) else { return 0 };
    let words = tokens.of_text(Str::plain(RESULT_CLEARED));
    let result = tokens.of_block(result).saturating_sub(words);
    let input = block_at(messages, tool_use.call).filter(|_| tool_use.clears_input);
    result.saturating_add(input.map_or(0, |call| tokens.of_block(call)))
}

fn mark_use(messages: &mut [Message<'_>], tool_use: &Use) {
    let places = [Some(tool_use.call).filter(|_| tool_use.clears_input), tool_use.result];
    for (at, number) in places.into_iter().flatten() {
        let block = messages.get_mut(at).and_then(|message| message.content.get_mut(number));
        match block {
            Some(Block::ToolUse(call)) => call.cleared = true,
            Some(Block::ToolResult(result)) => result.cleared = true,
            // Guards do not inspect results of server tools.
            Some(Block::ServerToolResult(result)) => {
                result.first_page = count_pages(result.content);
                result.content = RESULT_CLEARED_JSON;
            }
            _ => {}
        }
    }
}
