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

use super::call::{Call, CallState};
use super::counts::Counts;
use super::frame::Stop;
use super::machine::{Block, Machine};
use super::sent::Phase;
use super::sink::ToolUse;
use super::stop_reason::{self, Facts};
use super::tool_input::{Input, ToolInput};
use crate::asked::Withheld;
use crate::config::InvalidToolCall;
use crate::error::Error;
use crate::json;
use crate::names::NameSet;
use crate::profile::EmptyContent;
use crate::tool_schema;
use crate::translate::tool_id;
use crate::warning::Warning;

/// What the client is told where a model only calls tools that a guard withheld.
const WITHHELD: &str = "[The model called a tool that is withheld, because it went on without getting \
                        anywhere. Say what to do next.]";
/// The same, where the client forbids calls.
const FORBIDDEN: &str = "[The model called a tool, which this request forbids.]";

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
        if self.sent.phase() != Phase::Start {
            return;
        }
        self.sent.start();
        let prompt = self.outcome.usage.and_then(|usage| usage.prompt.or(usage.input));
        // A zero stands for a count that the server does not have yet.
        let input_tokens = prompt.filter(|tokens| *tokens > 0).unwrap_or(self.asked.input_tokens);
        let model = self.outcome.model_for(&self.asked);
        self.sink.start(self.ids, model, input_tokens, out);
    }

    /// Sends what can be sent. `flushing`: nothing more comes.
    pub(super) fn pump(&mut self, flushing: bool, out: &mut Vec<u8>) {
        loop {
            let after = if flushing {
                After::End
            } else if self.queue.iter().skip(1).any(Block::counts) {
                After::Block
            } else {
                After::Nothing
            };
            let followed = after != After::Nothing;
            let done = match self.queue.front() {
                None => return,
                Some(Block::Text { .. }) => self.pump_text(followed, out),
                Some(Block::Thinking(_)) if !self.shows_thinking() => {
                    if flushing && !self.queue.iter().skip(1).any(Block::is_thinking) {
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
            self.queue.pop_front();
            self.sent.close_block();
        }
    }

    /// Says whether the block at the head is done, as the functions below do.
    fn pump_text(&mut self, followed: bool, out: &mut Vec<u8>) -> bool {
        let Some(Block::Text { pending, has_text }) = self.queue.front_mut() else { return true };
        if !*has_text {
            if followed {
                self.held.texts = self.held.texts.saturating_sub(pending.len());
            }
            return followed;
        }
        if !self.sent.is_in_block() {
            self.open_text(out);
        }
        let Some(Block::Text { pending, .. }) = self.queue.front_mut() else { return true };
        let held = if followed { 0 } else { json::hold_back(pending) };
        let ready = pending.len().saturating_sub(held);
        let text = pending.get(..ready).unwrap_or_default();
        if !text.is_empty() {
            self.sink.text(text, out);
            self.held.texts = self.held.texts.saturating_sub(ready);
            pending.drain(..ready);
        }
        if followed {
            self.sink.close_text(out);
        }
        followed
    }

    /// The text at the head begins.
    pub(super) fn open_text(&mut self, out: &mut Vec<u8>) {
        self.sent.open_block(true);
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
        if let Some(Block::Thinking(thinking)) = self.queue.front_mut() {
            thinking.call_inputs = inputs;
        }
    }

    /// The client's id of a call.
    fn client_id(&mut self, index: usize) -> String {
        let Some(call) = self.calls.get_mut(index) else { return String::new() };
        if let Some(id) = &call.client_id {
            return id.clone();
        }
        let id = tool_id::encode(upstream_id(call, index, &self.ids), &self.ids_used);
        self.ids_used.add(id.clone());
        call.client_id = Some(id.clone());
        id
    }

    fn pump_thinking(&mut self, followed: bool, out: &mut Vec<u8>) -> bool {
        let Some(Block::Thinking(thinking)) = self.queue.front_mut() else { return true };
        let starts = thinking.has_text() || (followed && thinking.has_records());
        if !starts {
            if followed {
                self.held.texts = self.held.texts.saturating_sub(thinking.pending.len());
            }
            return followed;
        }
        if !self.sent.is_in_block() {
            self.sent.open_block(false);
            self.sink.open_thinking(out);
        }
        if thinking.is_shown() {
            let held = if followed { 0 } else { json::hold_back(&thinking.pending) };
            let ready = thinking.pending.len().saturating_sub(held);
            if ready > 0 {
                let rest = thinking.pending.split_off(ready);
                let text = std::mem::replace(&mut thinking.pending, rest);
                thinking.show(&text, &mut self.scratch);
                self.sink.thinking(&text, out);
                self.held.texts = self.held.texts.saturating_sub(ready);
            }
        }
        if !followed {
            return false;
        }
        let signed = std::mem::take(&mut thinking.calls);
        let signed =
            signed.into_iter().map(|(call, value)| (self.client_id(call), value)).collect();
        let Some(Block::Thinking(thinking)) = self.queue.front_mut() else { return true };
        let mark = match thinking.is_signed() {
            true => &self.asked.model_mark,
            false => &self.asked.upstream_mark,
        };
        let signature = thinking.signature(mark, signed);
        self.held.texts = self.held.texts.saturating_sub(thinking.pending.len());
        let (signature, fits) = signature.encode();
        if !fits {
            self.warnings.add("signature_too_long");
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
                self.held_invalid = true;
                self.warnings.add("tool_unknown");
            }
            return at_end;
        }
        // A later block says nothing about a name: parallel calls may each bring theirs in pieces.
        let settled = call.state == CallState::Waiting
            && (at_end
                || call.input.has_text()
                || (after == After::Block || call.id.is_some())
                    && call.name_is_whole(&self.asked.tools));
        // The model can know a withheld tool from the history, and the client still has it. Or it is told
        // that it must not call, and the server does not read that.
        if settled && self.asked.withheld.holds(&call.name, &self.asked.tools) {
            call.state = CallState::LeftOut;
            self.held_by_guard = true;
            self.warnings.add("withheld_tool_called");
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
        let next = match self.queue.iter().skip(1).find(says) {
            Some(Block::Tool(next)) => input(*next),
            _ => None,
        };
        input(index).is_some_and(ToolInput::can_be_replaced)
            && next.is_some_and(|next| !next.says_something())
    }

    fn open_tool(&mut self, index: usize, out: &mut Vec<u8>) {
        let Some(call) = self.calls.get_mut(index) else { return };
        if call.state != CallState::Waiting {
            return;
        }
        call.state = CallState::Open;
        let id = self.client_id(index);
        let Some(call) = self.calls.get_mut(index) else { return };
        let (name, toolset) = match self.asked.tools.meant_by(&call.name) {
            Some(tool) => {
                if tool.outgoing != call.name {
                    self.warnings.add("tool_name_repaired");
                }
                (&tool.name, tool.toolset)
            }
            None => {
                self.warnings.add("tool_unknown");
                (&call.name, None)
            }
        };
        self.sent.open_block(true);
        self.report.tool_calls = self.report.tool_calls.saturating_add(1);
        self.sink.open_tool(&ToolUse { id: &id, name, toolset }, out);
    }

    fn send_input(&mut self, index: usize, out: &mut Vec<u8>) {
        if let Some(call) = self.calls.get_mut(index)
            && call.state == CallState::Open
        {
            self.sink.input(call.input.send(), out);
        }
    }

    /// The call is complete, or as complete as it gets.
    fn finish_tool(&mut self, index: usize, out: &mut Vec<u8>) {
        // A call without arguments is complete if the model went on after it.
        let is_last = |call: &Call| call.input.has_text() || !self.goes_on(index);
        let cut_off = self.outcome.is_cut_off() && self.calls.get(index).is_some_and(is_last);
        let Some(call) = self.calls.get_mut(index) else { return };
        let mut input = call.input.finish(cut_off);
        for _ in 0..call.input.take_conflicts() {
            self.warnings.add("tool_input_conflict");
        }
        if let Input::Object(object) = &mut input
            && let Some(repaired) = self.repaired(index, object)
        {
            *object = repaired;
            self.warnings.add("tool_input_repaired");
        }
        if self.is_left_out(index, &input) {
            if let Some(call) = self.calls.get_mut(index) {
                call.state = CallState::LeftOut;
            }
            return;
        }
        self.open_tool(index, out);
        self.send_end(index, &input, out);
    }

    /// The input of a call as it is sent, where it is not as the model wrote it.
    fn repaired(&mut self, index: usize, object: &str) -> Option<String> {
        let call = self.calls.get(index)?;
        if self.rules.invalid != InvalidToolCall::Repair || call.input.is_sent() {
            return None;
        }
        let tool = self.asked.tools.meant_by(&call.name);
        let schema = tool.and_then(|tool| tool.schema.as_deref());
        let without_id = without_id_echo(object, schema, &self.ids_used);
        let object = without_id.as_deref().unwrap_or(object);
        let budget = &mut self.schema_budget;
        let unquoted = schema
            .filter(|schema| !tool_schema::fits(schema, object, budget))
            .and_then(|schema| tool_schema::unquoted(schema, object, &mut self.schema_budget));
        unquoted.or(without_id)
    }

    /// Judges a call: whether the client does not get it.
    fn is_left_out(&mut self, index: usize, input: &Input) -> bool {
        let Some(call) = self.calls.get(index) else { return false };
        let tool = self.asked.tools.meant_by(&call.name);
        let waits = call.state == CallState::Waiting;
        let refused = self.outcome.is_refusal();
        let unseen = self.is_buffered() || refused && waits;
        // A refusal has no call that the model could mend.
        let cut_off = unseen && (*input == Input::CutOff || refused && *input == Input::Invalid);
        let invalid = !cut_off && *input == Input::Invalid;
        if invalid {
            self.warnings.add("tool_input_invalid");
        }
        let mut violates = false;
        if let (true, Input::Object(object)) = (self.rules.checks_inputs, input) {
            let schema = tool.and_then(|tool| tool.schema.as_deref());
            let budget = &mut self.schema_budget;
            violates = schema.is_some_and(|schema| !tool_schema::fits(schema, object, budget));
            if violates {
                self.warnings.add("tool_input_violates_schema");
            }
        }
        let is_known = tool.is_some();
        let held = self.rules.invalid == InvalidToolCall::Hold
            && waits
            && (!is_known || violates || invalid);
        self.held_invalid |= held;
        if cut_off {
            self.warnings.add("tool_call_cut_off");
        } else if held && is_known {
            self.warnings.add("tool_call_withheld");
        } else if held {
            self.warnings.add("tool_unknown");
        }
        cut_off || held
    }

    /// Sends what of the input was not sent, and the end of the block.
    fn send_end(&mut self, index: usize, input: &Input, out: &mut Vec<u8>) {
        let Some(call) = self.calls.get_mut(index) else { return };
        match input {
            _ if call.input.is_sent() => self.sink.input(call.input.rest(), out),
            Input::Object(object) => self.sink.input(object, out),
            // A text that does not begin as an object means nothing to a client.
            Input::CutOff if call.input.rest().starts_with('{') => {
                self.sink.input(call.input.rest(), out);
            }
            Input::CutOff => {}
            Input::Invalid => {
                let mut object = b"{\"INVALID_JSON\":".to_vec();
                json::quote(&mut object, call.input.rest());
                object.push(b'}');
                self.sink.input(std::str::from_utf8(&object).unwrap_or_default(), out);
            }
        }
        call.state = CallState::Closed;
        self.sink.close_tool(out);
    }

    /// The upstream's answer is over: sends the rest and how it ended.
    pub(super) fn end(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        if self.sent.phase() == Phase::Start {
            return Err(Error::answer_empty());
        }
        if self.outcome.is_refusal() && self.is_in_call() {
            // It must not look complete, and this end would say so.
            return Err(Error::misbehaved("Upstream's content filter cut a tool call off"));
        }
        self.finish_text(out)?;
        self.finish_reasoning(out)?;
        if let Some(hidden) = self.reasoning.hidden.take()
            && hidden.has_records()
            && !self.calls.is_empty()
        {
            self.queue.push_back(Block::Thinking(Box::new(hidden)));
        }
        if self.text.is_cut() {
            // What the model said after a stop sequence of the client, it did not say.
            self.outcome.finish_reason = None;
        }
        self.give_nameless_inputs();
        self.pump(true, out);
        for call in &mut self.calls {
            if call.state == CallState::Closed && call.input.has_leftover() {
                self.warnings.add("late_tool_fragment");
            }
        }
        self.tell_of_withheld(out);
        if !self.sent.has_said() && self.held_invalid {
            return Err(Error::misbehaved("Model produced an invalid tool call"));
        }
        let sequence = self.stop_sequence().cloned();
        let reason = stop_reason::of(Facts {
            finish_reason: self.outcome.finish_reason.as_deref(),
            refused: !self.outcome.refusal.trim().is_empty(),
            has_tool_use: self.report.tool_calls > 0,
            has_block: self.sent.has_block(),
            at_stop_sequence: sequence.is_some(),
        })?;
        if self.outcome.finish_reason.as_deref().is_some_and(stop_reason::is_unknown) {
            self.warnings.add("finish_reason_unknown");
        }
        let sequence = sequence.filter(|_| reason == "stop_sequence");
        if reason == "end_turn" && self.calls.is_empty() {
            self.note_what_is_missing();
        }
        let counts = Counts::of(self.outcome.usage, &self.asked, self.output_bytes);
        if counts.estimated {
            self.warnings.add("usage_estimated");
        }
        self.stop(reason, sequence.as_deref(), &counts, out);
        Ok(())
    }

    /// An input of which nobody said whose it is belongs to the call before it, if that has none.
    fn give_nameless_inputs(&mut self) {
        for at in 1..self.calls.len() {
            if let Some([named, nameless]) = self.calls.get_mut(at.saturating_sub(1)..=at)
                && nameless.name.is_empty()
                && nameless.input.is_object()
                && !named.name.is_empty()
                && !named.input.has_text()
            {
                std::mem::swap(&mut named.input, &mut nameless.input);
            }
        }
    }

    /// Tells that a tool is withheld, where the model must not call and says nothing else, or no more than what it would
    /// do: the client needs an end, and a person a reason.
    fn tell_of_withheld(&mut self, out: &mut Vec<u8>) {
        let stops_midway =
            self.report.tool_calls == 0 && matches!(self.asked.withheld, Withheld::These(_));
        if self.held_by_guard && (!self.sent.has_said() || stops_midway) {
            let forbidden = self.asked.withheld == Withheld::Forbidden;
            self.send_text(if forbidden { FORBIDDEN } else { WITHHELD }, out);
        }
    }

    /// Sends a text of Creole's own, escaped, as a block.
    pub(super) fn send_text(&mut self, raw: &str, out: &mut Vec<u8>) {
        self.open_text(out);
        self.sink.text(raw, out);
        self.sink.close_text(out);
        self.sent.close_block();
    }

    /// The client's stop sequence at which the answer ends, whether this cut it there or the upstream did.
    fn stop_sequence(&self) -> Option<&String> {
        let sequences = &self.asked.stop_sequences;
        match (self.text.cut_at(), &self.outcome.stop_sequence) {
            (Some(at), _) => sequences.get(at),
            (None, Some(native)) => sequences.iter().find(|sequence| *sequence == native),
            (None, None) => None,
        }
    }

    /// An agent stops at an answer that gives it nothing to go on with, and its log must tell whether the model was
    /// done or a parser in front of it took the answer for something else. Not an error: after a tool that was the
    /// answer, there may be nothing to say.
    fn note_what_is_missing(&mut self) {
        let is_dropped = |warning: &Warning| warning.code == "content_dropped";
        let explained = self.sent.has_said() || self.warnings.iter().any(is_dropped);
        let has_thought = self.sent.has_block() || self.reasoning.field.is_some();
        if self.outcome.finish_reason.as_deref().is_some_and(stop_reason::says_call) {
            self.warnings.add("tool_call_missing");
        } else if !explained && has_thought {
            self.warnings.add("answer_only_reasoning");
        } else if !explained {
            self.warnings.add("answer_empty");
        }
    }

    /// Sends how the message ended.
    pub(super) fn stop(
        &mut self,
        reason: &'static str,
        sequence: Option<&str>,
        counts: &Counts,
        out: &mut Vec<u8>,
    ) {
        if !self.sent.has_block() && self.asked.profile.empty_content == EmptyContent::TextBlock {
            self.sink.open_text(out);
            self.sink.close_text(out);
        }
        self.report.stop_reason = Some(reason);
        self.report.input_tokens = counts.input;
        self.report.cache_read_tokens = counts.cache_read;
        self.report.cache_creation_tokens = counts.cache_creation;
        self.report.output_tokens = counts.output;
        self.report.thinking_tokens = counts.thinking.unwrap_or(0);
        let stop = Stop { reason, sequence, explanation: &self.outcome.refusal };
        let model = self.outcome.model_for(&self.asked);
        self.sink.finish(self.ids, model, &stop, counts, self.outcome.service_tier, out);
        self.sent.end();
    }
}

/// The upstream's id of a call; it is minted where the upstream gave none, and stays then.
fn upstream_id<'c>(call: &'c mut Call, index: usize, ids: &crate::ids::Ids) -> &'c str {
    match (&call.id, call.minted.is_some()) {
        (Some(id), false) => id,
        _ => {
            let position = u32::try_from(index).unwrap_or(u32::MAX);
            call.minted.get_or_insert_with(|| ids.call(position))
        }
    }
}

/// `object` without a member `id` that repeats a tool id. n8n adds one to each input in its history,
/// and models imitate it. So it is left out even if no schema is known: nothing else has such a value. `None`
/// where there is nothing to repair.
fn without_id_echo(object: &str, schema: Option<&str>, ids_used: &NameSet<'_>) -> Option<String> {
    tool_schema::without_id(object, schema, &|value| {
        let id = value.decode();
        ids_used.contains(&id) || id.starts_with("toolu_")
    })
}
