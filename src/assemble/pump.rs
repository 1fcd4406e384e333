//! Sending of an answer's blocks: the first block of the queue as far as it arrived, and the next
//! block when the first is complete.

use super::call::{CallParts, CallState};
use super::calls::{BrokenOff, Calls};
use super::progress::BlockProgress;
use super::queue::{Queue, QueuedBlock};
use super::tool_input::ToolInput;
use crate::answer::ReaderOutput;
use crate::model::event::Event;
use crate::model::request_context::Display;

/// Situation behind the first block of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    /// State: nothing has arrived behind the first block yet.
    Nothing,
    /// State: another block follows the first.
    Block,
    /// State: the answer is over.
    End,
}

/// Borrowed parts of an assembly that are needed to send its blocks.
pub(super) struct Pump<'a> {
    pub(super) queue: &'a mut Queue,
    pub(super) calls: &'a mut Calls,
    pub(super) progress: &'a mut BlockProgress,
    /// Buffer for unescaping, whose memory is reused.
    pub(super) scratch: &'a mut String,
    /// True if calls are sent only when they are complete.
    pub(super) is_buffered: bool,
}

impl Pump<'_> {
    /// Sends the blocks that can be sent now. `flushing`: the answer is over, and no more data
    /// comes.
    pub(super) fn send(mut self, flushing: bool, end: BrokenOff, to: &mut ReaderOutput<'_>) {
        loop {
            let after = if flushing {
                After::End
            } else if self.queue.is_head_over() || self.queue.is_followed() {
                After::Block
            } else {
                After::Nothing
            };
            let followed = after != After::Nothing;
            let done = match self.queue.head() {
                None => return,
                Some(QueuedBlock::Text { .. }) => self.pump_text(followed, to),
                Some(QueuedBlock::Thinking(_)) if !shows_thinking(to) => {
                    if flushing && !self.queue.behind_head().any(QueuedBlock::is_thinking) {
                        self.carry_inputs(to);
                    }
                    self.pump_thinking(flushing, to)
                }
                Some(QueuedBlock::Thinking(_)) => self.pump_thinking(followed, to),
                Some(QueuedBlock::Tool(index)) => self.pump_tool(*index, after, end, to),
                Some(QueuedBlock::Hosted(call)) => {
                    self.progress.open_block(false);
                    call.write(|event| to.write(event));
                    true
                }
            };
            if !done {
                return;
            }
            self.queue.pop();
            self.progress.close_block();
        }
    }

    /// Sends the text block at the head of the queue. Returns true if the block is finished.
    fn pump_text(&mut self, followed: bool, to: &mut ReaderOutput<'_>) -> bool {
        if !self.queue.head().is_some_and(QueuedBlock::counts) {
            return followed;
        }
        if !self.progress.is_in_block() {
            self.progress.open_text(to);
        }
        let text = self.queue.take_ready(followed);
        if !text.is_empty() {
            to.write(Event::Text(&text));
        }
        if followed {
            for citation in self.queue.take_citations() {
                to.write(Event::Citation(&citation));
            }
            to.write(Event::BlockEnds);
        }
        followed
    }

    /// Puts the inputs of all calls into the thinking block at the head of the queue. n8n 2.41
    /// rewrites a turn with thinking: each call gets the input `{}` (its
    /// `buildAnthropicContentBlocks`), but the last signature comes back unchanged.
    fn carry_inputs(&mut self, to: &ReaderOutput<'_>) {
        let inputs = self.calls.inputs(to);
        if let Some(thinking) = self.queue.head_thinking() {
            thinking.carry_inputs(inputs);
        }
    }

    fn pump_thinking(&mut self, followed: bool, to: &mut ReaderOutput<'_>) -> bool {
        let Some(thinking) = self.queue.head_thinking() else { return true };
        let starts = thinking.has_text() || (followed && thinking.has_records());
        if !starts {
            return followed;
        }
        let is_shown = thinking.is_shown();
        if !self.progress.is_in_block() {
            self.progress.open_block(false);
            to.write(Event::ThinkingBegins);
        }
        let text = if is_shown { self.queue.take_ready(followed) } else { String::new() };
        let Some(thinking) = self.queue.head_thinking() else { return true };
        if !text.is_empty() {
            thinking.show(&text, self.scratch);
            to.write(Event::Thinking(&text));
        }
        if !followed {
            return false;
        }
        let signed = thinking.take_carried().into_iter();
        let signed = signed.map(|(call, value)| (self.calls.client_id(call, &to.ids), value));
        let signed = signed.collect();
        let mark = match thinking.is_signed() {
            true => &to.context.thinking.model_mark,
            false => &to.context.thinking.upstream_mark,
        };
        let (signature, fits) = thinking.signature(mark, signed).encode();
        if !fits {
            to.warn("signature_too_long");
        }
        to.write(Event::Signature(&signature));
        to.write(Event::BlockEnds);
        true
    }

    fn pump_tool(
        &mut self,
        index: usize,
        after: After,
        end: BrokenOff,
        to: &mut ReaderOutput<'_>,
    ) -> bool {
        let goes_on = after == After::Block && !self.is_only_announced(index);
        let Some(call) = self.calls.get_mut(index) else { return true };
        let at_end = after == After::End;
        let over = at_end || goes_on && call.input().is_object();
        if call.may_be_none() {
            if at_end {
                call.leave_out();
            }
            return at_end;
        }
        if call.name().is_empty() {
            if at_end {
                self.calls.leave_out_nameless(index);
                to.warn("tool_unknown");
            }
            return at_end;
        }
        let tools = &to.context.tools;
        // A later block does not complete a call's name: parallel calls may each send their name in
        // pieces.
        let settled = call.state() == CallState::Waiting
            && (at_end
                || call.input().has_text()
                || (after == After::Block || call.id().is_some()) && call.name_is_whole(tools));
        // The model can know a withheld tool from the history, and the client still has the tool.
        // Or the request forbids calls, and the server ignores this.
        let is_own = || tools.meant_by(call.name()).is_some_and(|tool| tool.own.is_some());
        if settled && to.context.withholds_own_tools && is_own() {
            self.calls.leave_out_own(index);
            to.warn("withheld_tool_called");
            return over;
        }
        if settled && to.context.withheld.holds(call.name(), tools) {
            self.calls.leave_out_withheld(index);
            to.warn("withheld_tool_called");
            return over;
        }
        if call.state() == CallState::LeftOut {
            return over;
        }
        // A call of a tool that Creole runs is sent whole, because the next round repeats its
        // input, which must be JSON.
        let is_buffered = self.is_buffered || is_own();
        if !is_buffered {
            // At the end of the answer, a tool call may still be left out, so its block is not
            // opened before that is decided.
            if settled && !at_end {
                self.calls.open(index, self.progress, to);
            }
            self.calls.send_input(index, to);
        }
        if over {
            self.finish_call(index, is_buffered, end, to);
        }
        over
    }

    /// Returns true if the `{}` of the call at the head may still be a placeholder: the next call
    /// has no other input either. Servers that send placeholders announce all calls before the
    /// first input.
    fn is_only_announced(&self, index: usize) -> bool {
        let input = |index: usize| self.calls.get(index).map(CallParts::input);
        // A call's signature comes as thinking without a text.
        let says = |block: &&QueuedBlock| match block {
            QueuedBlock::Thinking(thinking) => thinking.has_text(),
            QueuedBlock::Text { .. } | QueuedBlock::Tool(_) | QueuedBlock::Hosted(_) => true,
        };
        let next = match self.queue.behind_head().find(says) {
            Some(QueuedBlock::Tool(next)) => input(*next),
            _ => None,
        };
        input(index).is_some_and(ToolInput::can_be_replaced)
            && next.is_some_and(|next| !next.says_something())
    }

    /// Sends the end of a call whose input is complete, or will not get more complete.
    fn finish_call(
        &mut self,
        index: usize,
        is_buffered: bool,
        end: BrokenOff,
        to: &mut ReaderOutput<'_>,
    ) {
        // A call without arguments is complete if the model went on after it.
        let is_last =
            |call: &CallParts| call.input().has_text() || !goes_on(self.calls, self.queue, index);
        let is_cut_off = end.is_cut_off && self.calls.get(index).is_some_and(is_last);
        self.calls.finish(index, is_buffered, BrokenOff { is_cut_off, ..end }, self.progress, to);
    }
}

/// Returns true if the model produced other content after the call at `index`.
pub(super) fn goes_on(calls: &Calls, queue: &Queue, index: usize) -> bool {
    let is_it = |block: &QueuedBlock| matches!(block, QueuedBlock::Tool(at) if *at == index);
    let mut after = queue.iter().skip_while(|block| !is_it(block)).skip(1);
    index.saturating_add(1) < calls.all().len() || after.any(QueuedBlock::counts)
}

/// Returns true if the client gets thinking blocks, with or without their text.
pub(super) fn shows_thinking(to: &ReaderOutput<'_>) -> bool {
    to.context.thinking.display != Display::Hidden
}
