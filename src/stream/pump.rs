//! What of the queue can be sent: blocks to the sink, one after another.
//!
//! | block | starts when | is complete when |
//! |---|---|---|
//! | text | it has more than white space | a later block exists, or at the end |
//! | thinking | it has text; without text, when it is complete and carries something | the same |
//! | thinking that the client did not ask for | it is complete | at the end: it [carries](Machine::carry_inputs) the inputs of calls |
//! | tool, live | id and name are known (the name is that of one tool alone, or input has come) | a later block exists and the input is one object (`{}` only if the later block is no call without more than that), or at the end |
//! | tool, buffered | it is complete | the same |
//!
//! An incomplete call is never closed before an error: clients would run it.

use super::call::CallState;
use super::machine::Machine;
use super::progress::Phase;
use super::queue::Block;
use super::tool_input::{Input, ToolInput};

/// Longest input that a thinking block carries: clients keep it, and send it with every request.
const CARRIED_BYTES_MAX: usize = 8 << 10;

/// What comes behind the block at the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    /// Nothing yet.
    Nothing,
    /// Another block.
    Block,
    /// The end of the answer.
    End,
}

impl Machine {
    /// The message begins, if it has not.
    pub(super) fn start(&mut self, out: &mut Vec<u8>) {
        if self.record.progress.phase() != Phase::Start {
            return;
        }
        self.record.progress.start();
        let prompt = self.outcome.usage.and_then(|usage| usage.prompt.or(usage.input));
        // A zero stands for a count that the server does not have yet.
        let input_tokens =
            prompt.filter(|tokens| *tokens > 0).unwrap_or(self.record.context.input_tokens);
        let model = self.outcome.model_for(&self.record.context);
        self.sink.start(self.record.ids, model, input_tokens, out);
    }

    /// Sends what can be sent. `flushing`: nothing more comes.
    pub(super) fn pump(&mut self, flushing: bool, out: &mut Vec<u8>) {
        loop {
            let after = if flushing {
                After::End
            } else if self.queue.is_followed() {
                After::Block
            } else {
                After::Nothing
            };
            let followed = after != After::Nothing;
            let done = match self.queue.head() {
                None => return,
                Some(Block::Text { .. }) => self.pump_text(followed, out),
                Some(Block::Thinking(_)) if !self.shows_thinking() => {
                    if flushing && !self.queue.behind_head().any(Block::is_thinking) {
                        self.carry_inputs();
                    }
                    self.pump_thinking(flushing, out)
                }
                Some(Block::Thinking(_)) => self.pump_thinking(followed, out),
                Some(Block::Tool(index)) => self.pump_tool(*index, after, out),
            };
            if !done {
                return;
            }
            self.queue.pop();
            self.record.progress.close_block();
        }
    }

    /// Says whether the block at the head is done, as the functions below do.
    fn pump_text(&mut self, followed: bool, out: &mut Vec<u8>) -> bool {
        if !self.queue.head().is_some_and(Block::counts) {
            return followed;
        }
        if !self.record.progress.is_in_block() {
            self.open_text(out);
        }
        let text = self.queue.take_ready(followed);
        if !text.is_empty() {
            self.sink.text(&text, out);
        }
        if followed {
            self.sink.close_text(out);
        }
        followed
    }

    /// The text at the head begins.
    pub(super) fn open_text(&mut self, out: &mut Vec<u8>) {
        self.record.progress.open_block(true);
        self.sink.open_text(out);
    }

    /// Puts the inputs of all calls into the thinking block at the head. n8n 2.41 writes a turn with such a
    /// block anew, each call with `{}` for its input (its `buildAnthropicContentBlocks`), and returns the
    /// signature of the last one as it came.
    fn carry_inputs(&mut self) {
        let mut inputs = Vec::new();
        for index in 0..self.calls.len() {
            let Some(call) = self.calls.get(index) else { break };
            if call.state == CallState::LeftOut || call.input.held_bytes() > CARRIED_BYTES_MAX {
                continue;
            }
            // What it is going to be.
            if let Input::Object(input) = call.input.clone().finish(false)
                && input != "{}"
            {
                let input = self.repaired(index, &input).unwrap_or(input);
                inputs.push((self.client_id(index), input));
            }
        }
        if let Some(thinking) = self.queue.head_thinking() {
            thinking.call_inputs = inputs;
        }
    }

    fn pump_thinking(&mut self, followed: bool, out: &mut Vec<u8>) -> bool {
        let Some(thinking) = self.queue.head_thinking() else { return true };
        let starts = thinking.has_text() || (followed && thinking.has_records());
        if !starts {
            return followed;
        }
        if !self.record.progress.is_in_block() {
            self.record.progress.open_block(false);
            self.sink.open_thinking(out);
        }
        let text =
            if thinking.is_shown() { self.queue.take_ready(followed) } else { String::new() };
        let Some(thinking) = self.queue.head_thinking() else { return true };
        if !text.is_empty() {
            thinking.show(&text, &mut self.scratch);
            self.sink.thinking(&text, out);
        }
        if !followed {
            return false;
        }
        let signed = std::mem::take(&mut thinking.calls);
        let signed =
            signed.into_iter().map(|(call, value)| (self.client_id(call), value)).collect();
        let Some(thinking) = self.queue.head_thinking() else { return true };
        let mark = match thinking.is_signed() {
            true => &self.record.context.model_mark,
            false => &self.record.context.upstream_mark,
        };
        let signature = thinking.signature(mark, signed);
        let (signature, fits) = signature.encode();
        if !fits {
            self.record.warnings.add("signature_too_long");
        }
        self.sink.close_thinking(&signature, out);
        true
    }

    fn pump_tool(&mut self, index: usize, after: After, out: &mut Vec<u8>) -> bool {
        let goes_on = after == After::Block && !self.is_only_announced(index);
        let Some(call) = self.calls.get_mut(index) else { return true };
        let at_end = after == After::End;
        let over = at_end || goes_on && call.input.is_object();
        if call.doubtful && !call.input.has_text() {
            if at_end {
                call.state = CallState::LeftOut;
            }
            return at_end;
        }
        if call.name.is_empty() {
            // Without a name there is nothing that a client could run.
            if at_end {
                call.state = CallState::LeftOut;
                self.calls.left_out_invalid = true;
                self.record.warnings.add("tool_unknown");
            }
            return at_end;
        }
        // A later block says nothing about a name: parallel calls may each bring theirs in pieces.
        let settled = call.state == CallState::Waiting
            && (at_end
                || call.input.has_text()
                || (after == After::Block || call.id.is_some())
                    && call.name_is_whole(&self.record.context.tools));
        // The model can know a withheld tool from the history, and the client still has it. Or it is told
        // that it must not call, and the server does not read that.
        if settled && self.record.context.withheld.holds(&call.name, &self.record.context.tools) {
            call.state = CallState::LeftOut;
            self.calls.left_out_by_guard = true;
            self.record.warnings.add("withheld_tool_called");
            return over;
        }
        if call.state == CallState::LeftOut {
            return over;
        }
        if !self.is_buffered() {
            // At the end, `finish_tool` may still leave this call out, so it is not opened here.
            if settled && !at_end {
                self.open_tool(index, out);
            }
            self.send_input(index, out);
        }
        if over {
            self.finish_tool(index, out);
        }
        over
    }

    /// Whether the `{}` of the call at the head may still be a placeholder: the call behind it has no more than that
    /// either. Who sends placeholders announces all calls before the first input.
    fn is_only_announced(&self, index: usize) -> bool {
        let input = |index: usize| self.calls.get(index).map(|call| &call.input);
        // A call's signature comes as thinking without a text.
        let says = |block: &&Block| match block {
            Block::Thinking(thinking) => thinking.has_text(),
            Block::Text { .. } | Block::Tool(_) => true,
        };
        let next = match self.queue.behind_head().find(says) {
            Some(Block::Tool(next)) => input(*next),
            _ => None,
        };
        input(index).is_some_and(ToolInput::can_be_replaced)
            && next.is_some_and(|next| !next.says_something())
    }
}
