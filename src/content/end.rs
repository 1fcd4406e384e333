//! End of an answer: the `stop_reason`, and the token counts.

use super::Content;
use crate::StopReason;
use crate::answer::ReaderOutput;
use crate::assemble::BrokenOff;
use crate::error::{Error, Rejection};
use crate::model::counts::{Counts, Estimate};
use crate::model::event::Stop;
use crate::model::request_context::{RequestContext, Withheld};
use crate::model::stop_reason::{self, EndFacts};
use crate::observe::warning::Warning;
use crate::tokens::tokens_of;

/// Text for the client if the model only called tools that a guard withheld.
const WITHHELD: &str = "[The model called a tool that is withheld, because it went on without getting \
                        anywhere. Say what to do next.]";
/// Text for the client if the model only called a tool although the request forbids calls.
const FORBIDDEN: &str = "[The model called a tool, which this request forbids.]";

impl Content {
    /// Handles an error of the upstream. Errors of a content filter, and those that leave no tokens
    /// for an answer, end the answer with a `stop_reason`.
    ///
    /// # Errors
    /// The upstream's error, unless it ends the answer with a `stop_reason`.
    pub(crate) fn take_failure(&mut self, raw: &str, to: &ReaderOutput<'_>) -> Result<(), Error> {
        let error = to.error_of(raw);
        // A call of which the client has seen a part must not look complete.
        let is_in_call = self.assembly().is_in_call();
        let answer = error.rejection().and_then(Rejection::stop_reason);
        let Some(stop_reason) = answer.filter(|_| !is_in_call) else { return Err(error) };
        self.summary_mut().set_finish_reason(stop_reason.word());
        Ok(())
    }

    /// Determines and records whether the answer was broken off.
    ///
    /// # Errors
    /// A content filter cut off a tool call, which must not look complete.
    pub(crate) fn reach_end(&mut self) -> Result<BrokenOff, Error> {
        let end = self.summary().broken_off();
        if end.is_refusal && self.assembly().is_in_call() {
            // A refusal would make the incomplete call look complete.
            return Err(Error::misbehaved("Upstream's content filter cut a tool call off"));
        }
        self.set_end(end);
        Ok(end)
    }

    /// Ends the answer after [`Content::reach_end`]: sends the remaining blocks and the
    /// `stop_reason`.
    ///
    /// # Errors
    /// The answer failed, such as by an invalid tool call and no other content.
    pub(crate) fn end(&mut self, to: &mut ReaderOutput<'_>) -> Result<(), Error> {
        self.finish(to)?;
        if self.text().is_cut() {
            // Text behind a stop sequence of the client does not count, nor does its finish reason.
            self.summary_mut().clear_finish_reason();
        }
        if let Some(text) = self.own_text(to) {
            self.start(to);
            self.send_own_text(text, to);
        }
        if self.is_reasoning_alone(to) {
            self.start(to);
            self.send_reasoning_as_text(to);
        }
        let assembly = self.assembly();
        if !assembly.has_said() && assembly.calls().left_out().invalid {
            return Err(Error::misbehaved("Model produced an invalid tool call"));
        }
        let reason = self.reason(to)?;
        // An answer without content begins here.
        self.start(to);
        self.write_end(reason, to);
        Ok(())
    }

    /// Returns Creole's own text for an answer whose calls a guard withheld or the client forbids.
    /// The text is sent if the model wrote no other text, or only announced the call: the client
    /// needs an end, and a person a reason.
    fn own_text(&self, to: &ReaderOutput<'_>) -> Option<&'static str> {
        let withheld = &to.context.withheld;
        let has_call = to.report.tool_calls > 0 || to.report.server_calls > 0;
        let stops_midway = !has_call && matches!(withheld, Withheld::These(_));
        let assembly = self.assembly();
        let needs = assembly.calls().left_out().by_guard && (!assembly.has_said() || stops_midway);
        let text = if *withheld == Withheld::Forbidden { FORBIDDEN } else { WITHHELD };
        needs.then_some(text)
    }

    /// Returns true if the model ended its turn with nothing but reasoning, and that reasoning is
    /// to be sent as text.
    fn is_reasoning_alone(&self, to: &ReaderOutput<'_>) -> bool {
        self.reasoning().as_text().is_some()
            && !self.answers()
            && !self.assembly().has_said()
            && self.reason(to).is_ok_and(|reason| reason == StopReason::EndTurn)
    }

    /// Returns the `stop_reason` of the answer.
    ///
    /// # Errors
    /// The upstream reported a failure before any content.
    fn reason(&self, to: &ReaderOutput<'_>) -> Result<StopReason, Error> {
        let reason = stop_reason::of(EndFacts {
            finish_reason: self.summary().finish_reason(),
            refused: !self.text().refusal().trim().is_empty(),
            has_tool_use: to.report.tool_calls > 0 || to.report.server_calls > 0,
            has_block: self.assembly().has_block(),
            at_stop_sequence: self.sequence(to.context).is_some(),
        })?;
        let assembly = self.assembly();
        let is_pause = assembly.calls().left_out().own && !assembly.has_said();
        // The client can go on with the conversation where the last round ended.
        Ok(if is_pause && reason == StopReason::EndTurn { StopReason::PauseTurn } else { reason })
    }

    /// Sends the end of the message: `stop_reason`, token counts and warnings.
    fn write_end(&self, reason: StopReason, to: &mut ReaderOutput<'_>) {
        if self.summary().finish_reason().is_some_and(stop_reason::is_unknown) {
            to.warn("finish_reason_unknown");
        }
        if reason == StopReason::EndTurn && !self.has_calls() {
            self.note_what_is_missing(to);
        }
        let output = tokens_of(self.bytes());
        let estimate = Estimate { input: to.context.input_tokens, output };
        let counts = Counts::of_nonzero(self.summary().usage(), estimate);
        if counts.estimated {
            to.warn("usage_estimated");
        }
        let sequence = self.sequence(to.context).filter(|_| reason == StopReason::StopSequence);
        let stop = Stop {
            reason,
            sequence,
            explanation: self.text().refusal(),
            model: self.summary().model_for(to.context),
            counts,
            iterations: &[],
            searches: Some(self.summary().searches()).filter(|searches| *searches > 0),
            fetches: None,
            service_tier: self.summary().service_tier(),
            cleared: to.context.cleared,
        };
        to.stop(&stop);
    }

    /// Returns the client's stop sequence at which the answer ends, whether Creole cut the text
    /// there or the upstream stopped there.
    fn sequence<'a>(&'a self, context: &'a RequestContext) -> Option<&'a str> {
        let sequences = &context.limits.stop_sequences;
        let sequence = match (self.text().cut_at(), self.summary().stop_sequence()) {
            (Some(at), _) => sequences.get(at),
            (None, Some(native)) => sequences.iter().find(|sequence| *sequence == native),
            (None, None) => None,
        };
        sequence.map(String::as_str)
    }

    /// Adds a warning to an answer without text or calls. An agent stops at such an answer, and its
    /// log must tell whether the model was done or a server's parser misread the answer. Such an
    /// answer is no error, because after a tool call there may be nothing to add.
    fn note_what_is_missing(&self, to: &mut ReaderOutput<'_>) {
        let is_dropped = |warning: &Warning| warning.code == "content_dropped";
        let assembly = self.assembly();
        let explained = assembly.has_said() || to.warnings.iter().any(is_dropped);
        let has_thought = assembly.has_block() || self.reasoning_field().is_some();
        if self.summary().finish_reason().is_some_and(stop_reason::says_call) {
            to.warn("tool_call_missing");
        } else if !explained && has_thought {
            to.warn("answer_only_reasoning");
        } else if !explained {
            to.warn("answer_empty");
        }
    }
}
