//! How an answer in Chat Completions ends: what still waits is sent, then why the model stopped and what it counted.

use super::call::CallState;
use super::counts::Counts;
use super::frame::Stop;
use super::machine::Machine;
use super::progress::Phase;
use super::queue::Block;
use super::stop_reason::{self, Facts};
use crate::dialect::profile::EmptyContent;
use crate::error::Error;
use crate::model::request_context::Withheld;
use crate::observe::warning::Warning;

/// What the client is told where a model only calls tools that a guard withheld.
const WITHHELD: &str = "[The model called a tool that is withheld, because it went on without getting \
                        anywhere. Say what to do next.]";
/// In place of an answer that consists of a call, where the client forbids calls.
const FORBIDDEN: &str = "[The model called a tool, which this request forbids.]";

impl Machine {
    /// The upstream's answer is over: sends the rest and how it ended.
    pub(super) fn end(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        if self.record.progress.phase() == Phase::Start && !self.has_choice {
            return Err(Error::answer_empty());
        }
        if self.outcome.is_refusal() && self.is_in_call() {
            // It must not look complete, and this end would say so.
            return Err(Error::misbehaved("Upstream's content filter cut a tool call off"));
        }
        if self.choices.drop_held() {
            self.record.warnings.add("choice_dropped");
        }
        self.finish_text(out)?;
        self.finish_reasoning(out)?;
        if let Some(hidden) = self.reasoning.hidden.take()
            && hidden.has_records()
            && !self.calls.is_empty()
        {
            self.queue.push(Block::Thinking(Box::new(hidden)));
        }
        if self.text.is_cut() {
            // What the model said after a stop sequence of the client, it did not say.
            self.outcome.finish_reason = None;
        }
        self.calls.give_nameless_inputs();
        self.pump(true, out);
        for call in self.calls.iter_mut() {
            if call.state == CallState::Closed && call.input.has_leftover() {
                self.record.warnings.add("late_tool_fragment");
            }
        }
        self.tell_of_withheld(out);
        if !self.record.progress.has_said() && self.calls.left_out_invalid {
            return Err(Error::misbehaved("Model produced an invalid tool call"));
        }
        let sequence = self.stop_sequence().cloned();
        let reason = stop_reason::of(Facts {
            finish_reason: self.outcome.finish_reason.as_deref(),
            refused: !self.outcome.refusal.trim().is_empty(),
            has_tool_use: self.record.report.tool_calls > 0,
            has_block: self.record.progress.has_block(),
            at_stop_sequence: sequence.is_some(),
        })?;
        // Where nothing was said, only now: there is an answer.
        self.start(out);
        if self.outcome.finish_reason.as_deref().is_some_and(stop_reason::is_unknown) {
            self.record.warnings.add("finish_reason_unknown");
        }
        let sequence = sequence.filter(|_| reason == "stop_sequence");
        if reason == "end_turn" && self.calls.is_empty() {
            self.note_what_is_missing();
        }
        let counts = Counts::of_chat(self.outcome.usage, &self.record.context, self.output_bytes);
        if counts.estimated {
            self.record.warnings.add("usage_estimated");
        }
        self.stop(reason, sequence.as_deref(), &counts, out);
        Ok(())
    }

    /// Tells that a tool is withheld, where the model must not call and says nothing else, or no more than what it
    /// would do: the client needs an end, and a person a reason.
    fn tell_of_withheld(&mut self, out: &mut Vec<u8>) {
        let stops_midway = self.record.report.tool_calls == 0
            && matches!(self.record.context.withheld, Withheld::These(_));
        if self.calls.left_out_by_guard && (!self.record.progress.has_said() || stops_midway) {
            let forbidden = self.record.context.withheld == Withheld::Forbidden;
            self.send_text(if forbidden { FORBIDDEN } else { WITHHELD }, out);
        }
    }

    /// Sends a text of Creole's own, escaped, as a block.
    pub(super) fn send_text(&mut self, raw: &str, out: &mut Vec<u8>) {
        self.open_text(out);
        self.sink.text(raw, out);
        self.sink.close_text(out);
        self.record.progress.close_block();
    }

    /// The client's stop sequence at which the answer ends, whether this cut it there or the upstream did.
    fn stop_sequence(&self) -> Option<&String> {
        let sequences = &self.record.context.stop_sequences;
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
        let explained =
            self.record.progress.has_said() || self.record.warnings.iter().any(is_dropped);
        let has_thought = self.record.progress.has_block() || self.reasoning.field.is_some();
        if self.outcome.finish_reason.as_deref().is_some_and(stop_reason::says_call) {
            self.record.warnings.add("tool_call_missing");
        } else if !explained && has_thought {
            self.record.warnings.add("answer_only_reasoning");
        } else if !explained {
            self.record.warnings.add("answer_empty");
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
        if !self.record.progress.has_block()
            && self.record.context.profile.empty_content == EmptyContent::TextBlock
        {
            self.sink.open_text(out);
            self.sink.close_text(out);
        }
        self.record.report.stop_reason = Some(reason);
        self.record.report.input_tokens = counts.input;
        self.record.report.cache_read_tokens = counts.cache_read;
        self.record.report.cache_creation_tokens = counts.cache_creation;
        self.record.report.output_tokens = counts.output;
        self.record.report.thinking_tokens = counts.thinking.unwrap_or(0);
        let stop = Stop { reason, sequence, explanation: &self.outcome.refusal };
        let model = self.outcome.model_for(&self.record.context);
        self.sink.finish(self.record.ids, model, &stop, counts, self.outcome.service_tier, out);
        self.record.progress.end();
    }
}
