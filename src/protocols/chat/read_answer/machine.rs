//! State machine that turns the chunks of an answer into content blocks.
//!
//! [`ChatMachine`] decides when the message to the client begins, which parts of a chunk belong to
//! the answer, in which order they are added to the content, and when the answer is over.

use super::choices::{ChoiceVerdict, Choices};
use super::content::ChoiceContent;
use super::early_failure;
use super::finish::{Finish, Seen};
use super::snapshots::{self, Snapshots};
use crate::answer::output::failure;
use crate::answer::{AnswerState, Ending, ReaderOutput, WriterPhase};
use crate::carry::signature::SignatureField;
use crate::error::Error;
use crate::model::limits;
use crate::model::request_context::RequestContext;
use crate::model::stop_reason;
use crate::protocols::chat::wire::{Choice, Chunk, Delta, DeltaRole};
use crate::text::names::NameSet;

/// State of one answer that is being read.
#[derive(Debug)]
pub(super) struct ChatMachine {
    content: ChoiceContent,
    choices: Choices,
    /// Finish reasons of the upstream: when they arrived, and whether they mean the end.
    finish: Finish,
    snapshots: Snapshots,
    /// True if a chunk had a choice, even a choice without content.
    has_choice: bool,
    /// True while deltas have the role `tool`: their content is the result of a tool and not text
    /// of the model.
    in_result: bool,
}

impl ChatMachine {
    /// Creates the state of a new answer. `ids_used`: the call ids in the client's history.
    pub(super) fn new(context: &RequestContext, ids_used: NameSet<'static>) -> Self {
        Self {
            content: ChoiceContent::new(context, ids_used),
            choices: Choices::default(),
            finish: Finish::default(),
            snapshots: Snapshots::default(),
            has_choice: false,
            in_result: false,
        }
    }

    /// Handles a chunk that has only one delta of one choice.
    pub(super) fn handle_delta(
        &mut self,
        choice: u64,
        delta: &Delta<'_>,
        to: &mut ReaderOutput<'_>,
    ) -> Result<(), Error> {
        to.report.chunks = to.report.chunks.saturating_add(1);
        self.content.start(to);
        if self.choices.are_unknown() {
            let held = self.choices.note_one(choice, false);
            self.take_held(held, to)?;
        }
        // Text that continues the sent text needs no decision about its choice.
        let goes_on =
            |reader: &Self| !reader.content.text().is_cut() && !reader.choices.is_other(choice);
        match delta.content.only() {
            Some(part)
                if self.choices.text() == Some(choice) && !self.in_result && goes_on(self) =>
            {
                self.content.take_part(*part, delta.is_thought, to)?;
            }
            None if delta.tool_calls.is_empty()
                && self.choices.reasoning() == Some(choice)
                && delta.has_reasoning()
                && goes_on(self) =>
            {
                self.content.take_reasoning(delta, to);
            }
            _ => self.take_delta(choice, delta, to)?,
        }
        self.content.pump(to);
        self.check_held(to)
    }

    /// Handles a chunk of a stream. `raw`: the JSON of the chunk.
    pub(super) fn handle_chunk(
        &mut self,
        chunk: &Chunk<'_>,
        raw: &str,
        to: &mut ReaderOutput<'_>,
    ) -> Result<(), Error> {
        // A `message` beside usage, or after the finish reason, is not a complaint.
        let has_stopped = self.content.summary().finish_reason().is_some();
        let complains = chunk.complains && chunk.usage.is_none() && !has_stopped;
        if chunk.error || (chunk.choices.is_empty() && (chunk.failed || complains)) {
            return self.fail(raw, to);
        }
        if let Some(list) = chunk.exceeded {
            return Err(limits::answer_exceeded(list));
        }
        self.take_chunk(chunk, to)?;
        if to.phase() == WriterPhase::Ended { Ok(()) } else { self.check_held(to) }
    }

    /// Handles a whole answer, parsed as one chunk. `raw`: the JSON of the answer.
    pub(super) fn handle_whole(
        &mut self,
        chunk: &Chunk<'_>,
        raw: &str,
        to: &mut ReaderOutput<'_>,
    ) -> Result<(), Error> {
        if chunk.error {
            // Some gateways put an empty answer, or the content before an error, around the error.
            let is_finished = |choice: &Choice<'_>| {
                choice.answers() && choice.finish_reason.is_some_and(|word| !word.is_blank())
            };
            let is_answer = chunk.choices.iter().any(is_finished);
            if !is_answer
                || early_failure::of(chunk, self.content.has_started(), to.context).is_some()
            {
                return self.fail(raw, to);
            }
            to.warn("upstream_event_dropped");
        }
        if chunk.choices.is_empty() {
            return if chunk.failed || chunk.complains {
                self.fail(raw, to)
            } else {
                Err(Error::misbehaved("Upstream sent an answer without choices"))
            };
        }
        if let Some(list) = chunk.exceeded {
            return Err(limits::answer_exceeded(list));
        }
        self.content.set_whole();
        self.choices.note_whole(chunk, |word| stop_reason::says_call(&word.decode()));
        self.take_chunk(chunk, to)?;
        if to.phase() == WriterPhase::Ended { Ok(()) } else { self.end_answer(to) }
    }

    /// Returns an error if too many bytes of the answer are held back in memory.
    fn check_held(&self, to: &ReaderOutput<'_>) -> Result<(), Error> {
        let held = self.snapshots.held_bytes().saturating_add(self.choices.held_bytes());
        if self.content.waiting_bytes().saturating_add(held) > to.rules.waiting_bytes_max
            || to.writer.held_bytes() > to.rules.response_bytes_max
        {
            return Err(Error::answer_too_large());
        }
        Ok(())
    }

    /// Handles an error that the upstream reports. A content-filter error, or an error about too
    /// little space in the context window, ends the answer with a `stop_reason`.
    pub(super) fn fail(&mut self, raw: &str, to: &mut ReaderOutput<'_>) -> Result<(), Error> {
        if self.content.text().is_cut() {
            return self.end_answer(to);
        }
        self.content.take_failure(raw, to)?;
        self.content.start(to);
        self.end_answer(to)
    }

    fn take_chunk(&mut self, chunk: &Chunk<'_>, to: &mut ReaderOutput<'_>) -> Result<(), Error> {
        to.report.chunks = to.report.chunks.saturating_add(1);
        let before = self.content.pieces();
        to.report.name(chunk.id, chunk.model);
        let summary = self.content.summary_mut();
        let counts_first = summary.usage().is_none() && chunk.usage.is_some();
        summary.take(chunk.model, chunk.service_tier, chunk.usage);
        if let Some(raw) = chunk.choices.iter().find_map(|choice| choice.error) {
            return self.fail(raw, to);
        }
        if chunk.choices.is_empty() {
            self.take_finish(chunk, counts_first, before);
            return Ok(());
        }
        let is_cut = self.content.text().is_cut();
        let early = early_failure::of(chunk, self.content.has_started(), to.context);
        if let Some(failure) = early.filter(|_| !is_cut) {
            return Err(failure);
        }
        // A chunk with only a role begins no message, so that a later error still gets its own
        // status. Neither does a chunk with only an unknown finish reason, which may itself be an
        // error.
        self.has_choice = true;
        let begins = |choice: &Choice<'_>| match choice.finish_reason {
            _ if choice.says_something() => true,
            Some(word) => !stop_reason::is_unknown(&word.decode()),
            None => to.rules.begins_early,
        };
        if chunk.choices.iter().any(begins) {
            self.content.start(to);
        }
        if self.choices.are_unknown() {
            let held = self.choices.note(chunk);
            self.take_held(held, to)?;
        }
        if self.take_choices(chunk, to)? {
            self.take_messages(chunk, to)?;
        }
        self.take_finish(chunk, counts_first, before);
        self.content.pump(to);
        let is_cut = self.content.text().is_cut();
        match self.content.summary().finish_reason().filter(|_| !is_cut) {
            Some(word) => failure(word, to.context).map_or(Ok(()), Err),
            None => Ok(()),
        }
    }

    /// Adds the deltas in the choices of a chunk to the answer. Returns true if the chunk has
    /// messages instead of deltas.
    fn take_choices(
        &mut self,
        chunk: &Chunk<'_>,
        to: &mut ReaderOutput<'_>,
    ) -> Result<bool, Error> {
        let is_whole = self.content.is_whole();
        let mut has_messages = false;
        for choice in chunk.choices.iter() {
            let word = choice.finish_reason.filter(|_| is_whole);
            let ends_early = word.is_some_and(|word| stop_reason::is_cut_off(&word.decode()));
            self.content.set_ends_early(ends_early);
            match (&choice.delta, &choice.message) {
                (delta, Some(message)) if is_whole => {
                    self.take_delta(choice.index, message, to)?;
                    if let Some(delta) = delta.as_ref().filter(|_| message.is_empty()) {
                        self.take_delta(choice.index, delta, to)?;
                    }
                }
                (Some(_), _) if to.context.profile.cumulative_text && !is_whole => {
                    has_messages = true;
                }
                (Some(delta), message) if is_whole || !delta.is_empty() || message.is_none() => {
                    self.take_delta(choice.index, delta, to)?;
                }
                _ => has_messages = !is_whole,
            }
            if !self.choices.is_other(choice.index) {
                self.take_reason(choice);
            }
        }
        Ok(has_messages)
    }

    /// Stores the finish reason and the stop sequence of a choice.
    fn take_reason(&mut self, choice: &Choice<'_>) {
        let summary = self.content.summary_mut();
        if let Some(stop) = choice.stop_sequence {
            summary.set_stop_sequence(&stop.decode());
        }
        let Some(word) = choice.finish_reason else { return };
        let (word, before) = (word.decode(), summary.finish_reason().unwrap_or_default());
        if !stop_reason::outlasts(before, &word) {
            summary.set_finish_reason(&word);
        }
        let end = summary.broken_off();
        self.content.set_end(end);
    }

    /// Updates the evidence for the end of the answer from a chunk. `before`: number of pieces of
    /// content before the chunk.
    fn take_finish(&mut self, chunk: &Chunk<'_>, counts_first: bool, before: u64) {
        let finishes =
            |it: &Choice<'_>| it.finish_reason.is_some() && !self.choices.is_other(it.index);
        let finishes = chunk.choices.iter().any(finishes);
        self.finish.take(
            chunk,
            finishes,
            Seen { before, progress: self.content.pieces(), counts_first },
        );
    }

    /// Adds texts to the answer that were held back until the meaning of their choices' `index` was
    /// known.
    fn take_held(&mut self, held: Vec<String>, to: &mut ReaderOutput<'_>) -> Result<(), Error> {
        if self.choices.holds_others() && self.choices.drop_held() {
            to.warn("choice_dropped");
        }
        for raw in held {
            if !self.content.text().is_cut() {
                self.content.take_raw_text(&raw, to)?;
            }
        }
        Ok(())
    }

    /// Adds a delta or message of one choice to the answer. Reasoning is added first and tool calls
    /// last, in any order of the JSON's keys.
    fn take_delta(
        &mut self,
        choice: u64,
        delta: &Delta<'_>,
        to: &mut ReaderOutput<'_>,
    ) -> Result<(), Error> {
        if self.content.text().is_cut() || self.choices.is_other(choice) {
            return Ok(());
        }
        if let Some(role) = delta.role {
            self.in_result = role == DeltaRole::Tool;
        }
        let mut is_left_out = self.in_result && !delta.content.is_empty();
        if delta.content_dropped || is_left_out {
            to.warn("content_dropped");
        }
        if delta.has_reasoning() {
            if self.choices.reasoning() != Some(choice)
                && self.choices.judge_reasoning(choice, delta) == ChoiceVerdict::Other
            {
                to.warn("choice_dropped");
                return Ok(());
            }
            self.content.take_reasoning(delta, to);
        }
        let has_text = !delta.content.is_empty() || delta.refusal.is_some();
        if has_text && self.choices.text() != Some(choice) && !is_left_out {
            match self.choices.judge_text(choice, delta) {
                ChoiceVerdict::Part => {}
                ChoiceVerdict::Held => is_left_out = true,
                ChoiceVerdict::Other => {
                    to.warn("choice_dropped");
                    return Ok(());
                }
            }
        }
        if let (Some(part), false) = (delta.content.only(), is_left_out) {
            self.content.take_part(*part, delta.is_thought, to)?;
        } else if !is_left_out {
            self.content.take_parts(delta, to)?;
        }
        if let Some(refusal) = delta.refusal.filter(|_| !self.content.text().is_cut()) {
            self.content.take_refusal(refusal, to)?;
        }
        if self.content.text().is_cut() {
            return Ok(());
        }
        self.content.take_calls(choice, delta, to)
    }

    /// Adds the messages of a chunk to the answer. All choices of one chunk are parts of one
    /// answer.
    fn take_messages(&mut self, chunk: &Chunk<'_>, to: &mut ReaderOutput<'_>) -> Result<(), Error> {
        let cumulative = to.context.profile.cumulative_text;
        let mut snapshots = std::mem::take(&mut self.snapshots);
        let known = self.content.reasoning_field();
        let text_has_come = self.content.text().has_come();
        let said = snapshots.said_in(chunk, cumulative, known, text_has_come, &mut self.choices);
        for _ in 0..said.dropped {
            to.warn("choice_dropped");
        }
        self.content.reasoning_mut().note_field(said.field);
        let (reasoning, texts) = snapshots.news(&said, cumulative);
        if let Some(reasoning) = reasoning {
            // White space, which does not show the field of the reasoning, may come first.
            let field = self.content.reasoning_field().unwrap_or(SignatureField::ReasoningContent);
            self.content.push_reasoning(reasoning, field, to);
        }
        self.take_delta(self.choices.text().unwrap_or_default(), &texts, to)?;
        for (choice, message) in snapshots::messages(chunk, cumulative) {
            if self.choices.is_other(choice) {
                continue;
            }
            let takes_calls = snapshots.takes_calls(&said, self.content.has_calls());
            let delta = snapshots.rest_of(message, takes_calls);
            self.take_delta(choice, &delta, to)?;
        }
        self.snapshots = snapshots;
        Ok(())
    }

    /// Ends the answer: sends the remaining content and the stop reason to the client.
    pub(super) fn end_answer(&mut self, to: &mut ReaderOutput<'_>) -> Result<(), Error> {
        if !self.content.has_started() && !self.has_choice {
            return Err(Error::answer_empty());
        }
        self.content.reach_end()?;
        if self.choices.drop_held() {
            to.warn("choice_dropped");
        }
        self.content.end(to)
    }

    /// Returns true if the message to the client has begun.
    pub(super) fn has_started(&self) -> bool {
        self.content.has_started()
    }

    /// Returns true if the upstream sent a finish reason that no later chunk contradicts, or if the
    /// text was cut off.
    pub(super) fn has_stopped(&self) -> bool {
        self.content.text().is_cut() || self.finish.may_end(self.content.pieces())
    }
}

impl AnswerState for ChatMachine {
    fn break_off(&mut self) {
        self.finish.break_off();
    }

    fn begin(&mut self, to: &mut ReaderOutput<'_>) {
        self.content.start(to);
    }

    /// Returns true if the upstream sent a finish reason, or usage instead of a finish reason. Some
    /// gateways send only usage, and a server counts tokens only when the answer is over.
    fn is_complete(&self) -> bool {
        let is_totalled = || {
            let mut calls = self.content.assembly().calls().all().iter();
            calls.all(|call| call.input().has_text())
                && self.content.answers()
                && self.finish.is_totalled(self.content.pieces())
        };
        (self.has_stopped() || is_totalled()) && !self.content.has_half_call()
    }

    fn ending(&self) -> Ending {
        if self.content.text().is_cut() {
            return Ending::Cut;
        }
        self.finish.ending(self.content.pieces(), self.content.answers())
    }

    fn spoken(&self) -> u64 {
        self.content.telling_pieces()
    }

    fn held_bytes(&self) -> usize {
        let held = self.snapshots.held_bytes().saturating_add(self.choices.held_bytes());
        self.content.held_bytes().saturating_add(held)
    }
}
