//! The state machine: chunks in, blocks out.
//!
//! The two protocols disagree about who ends a block. A Messages stream sends its blocks one after
//! another, each between its start and its stop. A Chat Completions stream names the field that a
//! delta extends (`content`, `tool_calls[1]`) and never says that a field is complete. So deltas
//! extend logical blocks, which wait in a [`Queue`] in the order in which they first appeared:
//!
//! ```text
//!  chunk ──▶ queue:  Text   Tool 0   Tool 1   Thinking        (this file)
//!                     │
//!                     └─ only the head is sent; it is complete    (`pump`)
//!                        when a later block exists, or at the end
//! ```
//!
//! A whole answer is one chunk that says everything, followed by the end.
//!
//! What the client has seen is in [`Progress`](super::sent::Sent) and each call's state: who sends notes it there.
//! Which
//! call a fragment belongs to is decided in `call`.

use super::call::{CallState, Calls};
use super::choices::{Choices, Verdict};
use super::outcome::Outcome;
use super::progress::Phase;
use super::queue::{Block, Queue};
use super::reasoning::{self, Reasoning};
use super::record::{AnswerRecord, BLOCK_BYTES};
use super::sink::Sink;
use super::snapshots::Snapshots;
use super::stop_reason;
use super::text::Text;
use super::watchdog::Ending;
use crate::carry::signature::Field;
use crate::config::Settings;
use crate::error::{Error, Rejection};
use crate::ids::Ids;
use crate::json::Str;
use crate::model::limits;
use crate::model::request_context::RequestContext;
use crate::protocols::chat::wire::{Choice, Chunk, Delta, Part, Pattern, Role};
use crate::upstream_error as error;

/// The state of one answer.
#[derive(Debug)]
pub(super) struct Machine {
    pub(super) record: AnswerRecord,
    /// The answer came as one JSON text.
    pub(super) whole: bool,
    /// The choice of a whole answer that is taken was cut off.
    pub(super) ends_early: bool,
    pub(super) sink: Sink,
    pub(super) queue: Queue,
    pub(super) calls: Calls,
    pub(super) choices: Choices,
    pub(super) reasoning: Reasoning,
    pub(super) text: Text,
    pub(super) outcome: Outcome,
    /// A chunk that only names a role begins the message, too.
    pub(super) begins_early: bool,
    /// A choice has come, though it may have said nothing.
    pub(super) has_choice: bool,
    /// The content that comes is the result of a tool, by the last role.
    in_result: bool,
    /// Pieces of content that have more than white space in them.
    pub(super) telling_pieces: u64,
    pub(super) snapshots: Snapshots,
    /// Bytes of the answer, for an estimate of its tokens.
    pub(super) output_bytes: u64,
    pub(super) scratch: String,
    /// The last chunk, which the next one is likely to repeat.
    pub(super) pattern: Pattern,
}

impl Machine {
    pub(super) fn new(mut context: Box<RequestContext>, settings: &Settings, ids: Ids) -> Self {
        Self {
            whole: false,
            ends_early: false,
            sink: Sink::new(context.stream),
            calls: Calls::new(std::mem::take(&mut context.ids_used)),
            text: Text::new(&context),
            reasoning: Reasoning::new(&context),
            record: AnswerRecord::new(context, settings, ids),
            choices: Choices::default(),
            queue: Queue::default(),
            outcome: Outcome::default(),
            begins_early: false,
            has_choice: false,
            in_result: false,
            telling_pieces: 0,
            snapshots: Snapshots::default(),
            output_bytes: 0,
            scratch: String::new(),
            pattern: Pattern::default(),
        }
    }

    /// A chunk of a stream.
    pub(super) fn handle_chunk(
        &mut self,
        chunk: &Chunk<'_>,
        raw: &str,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        // A `message` beside usage, or after the finish reason, is not a complaint.
        let complains =
            chunk.complains && chunk.usage.is_none() && self.outcome.finish_reason.is_none();
        if chunk.error || (chunk.choices.is_empty() && (chunk.failed || complains)) {
            return self.fail(raw, out);
        }
        if let Some(list) = chunk.exceeded {
            return Err(limits::answer_exceeded(list));
        }
        self.take_chunk(chunk, out)?;
        if self.record.progress.is_final() { Ok(()) } else { self.check_held() }
    }

    /// A chunk that says no more than this.
    pub(super) fn handle_delta(
        &mut self,
        choice: u64,
        delta: &Delta<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        self.record.report.chunks = self.record.report.chunks.saturating_add(1);
        self.start(out);
        if self.choices.are_unknown() {
            let held = self.choices.note_one(choice, false);
            self.take_held(held, out)?;
        }
        // Nothing is to be judged of a text that goes on.
        let goes_on = |machine: &Self| !machine.text.is_cut() && !machine.choices.is_other(choice);
        match delta.content.only() {
            Some(part)
                if self.choices.text() == Some(choice) && !self.in_result && goes_on(self) =>
            {
                self.take_part(*part, delta.is_thought, out)?;
            }
            None if delta.tool_calls.is_empty()
                && self.choices.reasoning() == Some(choice)
                && delta.has_reasoning()
                && goes_on(self) =>
            {
                self.take_reasoning(delta, out);
            }
            _ => self.take_delta(choice, delta, out)?,
        }
        self.pump(false, out);
        self.check_held()
    }

    /// Bytes that wait here, with what each block costs.
    fn waiting_bytes(&self) -> usize {
        let blocks = self.calls.len().saturating_add(self.queue.len());
        let held = self.queue.held_bytes().saturating_add(self.calls.held_bytes());
        let held = held.saturating_add(BLOCK_BYTES.saturating_mul(blocks));
        let filtered = self.text.held_bytes().saturating_add(self.reasoning.held_bytes());
        let snapshots = self.snapshots.held_bytes().saturating_add(self.choices.held_bytes());
        held.saturating_add(filtered).saturating_add(snapshots)
    }

    /// Bytes of the answer that are kept in memory.
    pub(super) fn held_bytes(&self) -> usize {
        let sink = self.sink.held_bytes();
        self.waiting_bytes().saturating_add(sink).saturating_add(self.scratch.capacity())
    }

    /// Whether what waits here is not too much.
    fn check_held(&self) -> Result<(), Error> {
        if self.waiting_bytes() > self.record.rules.waiting_bytes_max
            || self.sink.held_bytes() > self.record.rules.response_bytes_max
        {
            return Err(Error::answer_too_large());
        }
        Ok(())
    }

    /// A whole answer, as one chunk.
    pub(super) fn handle_whole(
        &mut self,
        chunk: &Chunk<'_>,
        raw: &str,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        if chunk.error {
            // Some gateways put an empty answer around an error, or what had come before it.
            let is_finished = |choice: &Choice<'_>| {
                choice.answers() && choice.finish_reason.is_some_and(|word| !word.is_blank())
            };
            if !chunk.choices.iter().any(is_finished) || self.early_failure(chunk).is_some() {
                return self.fail(raw, out);
            }
            self.record.warnings.add("upstream_event_dropped");
        }
        if chunk.choices.is_empty() {
            return if chunk.failed || chunk.complains {
                self.fail(raw, out)
            } else {
                Err(Error::misbehaved("Upstream sent an answer without choices"))
            };
        }
        if let Some(list) = chunk.exceeded {
            return Err(limits::answer_exceeded(list));
        }
        self.whole = true;
        self.choices.note_whole(chunk, |word| stop_reason::says_call(&word.decode()));
        self.take_chunk(chunk, out)?;
        if self.record.progress.is_final() { Ok(()) } else { self.end(out) }
    }

    /// The upstream reports an error. Some are answers: a content filter's, and that there is no room for one.
    pub(super) fn fail(&mut self, raw: &str, out: &mut Vec<u8>) -> Result<(), Error> {
        if self.text.is_cut() {
            return self.end(out);
        }
        let error = error::from_object(raw, &self.record.context);
        // A call of which the client has seen a part must not look complete.
        let answer = error.rejection().and_then(Rejection::stop_reason);
        let Some(stop_reason) = answer.filter(|_| !self.is_in_call()) else { return Err(error) };
        self.start(out);
        self.outcome.finish_reason = Some(stop_reason.to_owned());
        self.end(out)
    }

    /// Whether calls are sent when they are complete. Of a whole answer all is here: a call that was cut off need
    /// not be shown, though the client asked for a stream.
    pub(super) fn is_buffered(&self) -> bool {
        self.whole || self.record.rules.buffered
    }

    /// Whether the upstream has said why it stopped, and nothing speaks against it.
    pub(super) fn is_complete(&self) -> bool {
        self.text.is_cut() || self.outcome.finish.may_end(self.record.report.progress)
    }

    /// Whether the upstream told its counts in place of why it stopped. Some gateways do; and nobody counts what is
    /// not over.
    pub(super) fn is_totalled(&self) -> bool {
        let is_whole = self.calls.iter().all(|call| call.input.has_text());
        is_whole && self.answers() && self.outcome.finish.is_totalled(self.record.report.progress)
    }

    /// Whether a call is not complete that should be, by what the upstream said of its end.
    pub(super) fn has_half_call(&self) -> bool {
        !self.text.is_cut() && !self.outcome.is_cut_off() && self.calls.has_half()
    }

    /// Whether nothing of the answer need follow.
    pub(super) fn ending(&self) -> Ending {
        if self.text.is_cut() {
            return Ending::Cut;
        }
        self.outcome.finish.ending(self.record.report.progress, self.answers())
    }

    /// Whether there is more than reasoning.
    fn answers(&self) -> bool {
        self.text.has_come() || !self.calls.is_empty() || !self.outcome.refusal.is_empty()
    }

    /// Whether the client has seen a part of a call that is not complete.
    pub(super) fn is_in_call(&self) -> bool {
        self.calls.iter().enumerate().any(|(index, call)| {
            call.state == CallState::Open
                && !call.input.may_be_whole()
                && (call.input.has_text() || !self.goes_on(index))
        })
    }

    /// Whether the model went on after the call at `index`.
    pub(super) fn goes_on(&self, index: usize) -> bool {
        let is_it = |block: &Block| matches!(block, Block::Tool(at) if *at == index);
        let mut after = self.queue.iter().skip_while(|block| !is_it(block)).skip(1);
        index.saturating_add(1) < self.calls.len() || after.any(Block::counts)
    }

    fn take_chunk(&mut self, chunk: &Chunk<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
        self.record.report.chunks = self.record.report.chunks.saturating_add(1);
        let before = self.record.report.progress;
        if let (None, Some(id)) = (&self.record.report.upstream_id, chunk.id) {
            self.record.report.upstream_id = Some(id.decode().into_owned());
        }
        self.outcome.take_chunk(chunk);
        if let Some(raw) = chunk.choices.iter().find_map(|choice| choice.error) {
            return self.fail(raw, out);
        }
        if chunk.choices.is_empty() {
            self.take_finish(chunk, before);
            return Ok(());
        }
        if let Some(failure) = self.early_failure(chunk).filter(|_| !self.text.is_cut()) {
            return Err(failure);
        }
        // What only names a role begins no message, so that an error behind it is still told with its status. Nor does
        // a word that nobody knows, which alone is one.
        self.has_choice = true;
        let begins = |choice: &Choice<'_>| match choice.finish_reason {
            _ if choice.says_something() => true,
            Some(word) => !stop_reason::is_unknown(&word.decode()),
            None => self.begins_early,
        };
        if chunk.choices.iter().any(begins) {
            self.start(out);
        }
        if self.choices.are_unknown() {
            let held = self.choices.note(chunk);
            self.take_held(held, out)?;
        }
        let mut has_messages = false;
        for choice in chunk.choices.iter() {
            self.ends_early = self.whole
                && choice.finish_reason.is_some_and(|it| stop_reason::is_cut_off(&it.decode()));
            match (&choice.delta, &choice.message) {
                (delta, Some(message)) if self.whole => {
                    self.take_delta(choice.index, message, out)?;
                    if let Some(delta) = delta.as_ref().filter(|_| message.is_empty()) {
                        self.take_delta(choice.index, delta, out)?;
                    }
                }
                (Some(_), _) if self.record.context.profile.cumulative_text && !self.whole => {
                    has_messages = true;
                }
                (Some(delta), message) if self.whole || !delta.is_empty() || message.is_none() => {
                    self.take_delta(choice.index, delta, out)?;
                }
                _ => has_messages = !self.whole,
            }
            if !self.choices.is_other(choice.index) {
                self.outcome.take_choice(choice);
            }
        }
        if has_messages {
            self.take_messages(chunk, out)?;
        }
        self.take_finish(chunk, before);
        self.pump(false, out);
        let word = self.outcome.finish_reason.as_deref().filter(|_| !self.text.is_cut());
        match word.and_then(|word| stop_reason::failure(word, &self.record.context)) {
            Some(failure) => Err(failure),
            None => Ok(()),
        }
    }

    /// The failure that a chunk ends with, where the client has seen nothing yet or where the chunk's
    /// text is the upstream's word for it.
    fn early_failure(&self, chunk: &Chunk<'_>) -> Option<Error> {
        chunk.choices.iter().find_map(|choice| {
            let word = choice.finish_reason?.decode();
            let failure = stop_reason::failure(&word, &self.record.context)?;
            if stop_reason::is_told_in_text(&word)
                && let Some(Part::Text(text)) = choice.delta.as_ref()?.content.iter().next()
                && !text.is_blank()
            {
                return Some(error::from_object(&text.decode(), &self.record.context));
            }
            (self.record.progress.phase() == Phase::Start).then_some(failure)
        })
    }

    /// Notes whether a chunk says that the answer is over.
    fn take_finish(&mut self, chunk: &Chunk<'_>, before: u64) {
        let finishes = chunk
            .choices
            .iter()
            .any(|choice| choice.finish_reason.is_some() && !self.choices.is_other(choice.index));
        self.outcome.take_finish(chunk, finishes, before, self.record.report.progress);
    }

    /// Takes texts that were held until the numbers of their choices were understood.
    fn take_held(&mut self, held: Vec<String>, out: &mut Vec<u8>) -> Result<(), Error> {
        if self.choices.holds_others() && self.choices.drop_held() {
            self.record.warnings.add("choice_dropped");
        }
        for raw in held {
            if !self.text.is_cut() {
                self.take_raw_text(&raw, out)?;
            }
        }
        Ok(())
    }

    /// One choice of a chunk. Whatever the order of its keys, reasoning comes first and calls last.
    pub(super) fn take_delta(
        &mut self,
        choice: u64,
        delta: &Delta<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        if self.text.is_cut() || self.choices.is_other(choice) {
            return Ok(());
        }
        if let Some(role) = delta.role {
            self.in_result = role == Role::Tool;
        }
        let mut is_left_out = self.in_result && !delta.content.is_empty();
        if delta.content_dropped || is_left_out {
            self.record.warnings.add("content_dropped");
        }
        if delta.has_reasoning() {
            if self.choices.reasoning() != Some(choice)
                && self.choices.judge_reasoning(choice, delta) == Verdict::Other
            {
                self.record.warnings.add("choice_dropped");
                return Ok(());
            }
            self.take_reasoning(delta, out);
        }
        let has_text = !delta.content.is_empty() || delta.refusal.is_some();
        if has_text && self.choices.text() != Some(choice) && !is_left_out {
            match self.choices.judge_text(choice, delta) {
                Verdict::Part => {}
                Verdict::Held => is_left_out = true,
                Verdict::Other => {
                    self.record.warnings.add("choice_dropped");
                    return Ok(());
                }
            }
        }
        if let (Some(part), false) = (delta.content.only(), is_left_out) {
            self.take_part(*part, delta.is_thought, out)?;
        } else if !is_left_out {
            self.take_parts(delta, out)?;
        }
        if let Some(refusal) = delta.refusal.filter(|_| !self.text.is_cut()) {
            self.take_refusal(refusal, out)?;
        }
        if self.text.is_cut() {
            return Ok(());
        }
        self.calls.begin_list();
        for call in delta.tool_calls.iter() {
            self.take_call(choice, call, false, out)?;
        }
        // Where both forms come, they are the same call.
        let structured = self.calls.iter().any(|call| !call.legacy);
        if let Some(call) = delta.function_call.as_ref().filter(|_| !structured) {
            self.take_call(choice, call, true, out)?;
        }
        Ok(())
    }

    /// The content of a choice in several parts. Parts of one kind are one text, as they are to the client: each alone
    /// can be a byte, and would be an event.
    fn take_parts(&mut self, delta: &Delta<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
        let mut parts = delta.content.iter().peekable();
        while let Some(part) = parts.next() {
            if self.text.is_cut() {
                return Ok(());
            }
            let mut joined = String::new();
            while let Some(next) = parts.next_if(|next| next.is_like(part)) {
                if joined.is_empty() {
                    joined.push_str(part.text().raw());
                }
                joined.push_str(next.text().raw());
            }
            match Str::inside(&joined) {
                Some(text) if !joined.is_empty() => {
                    self.take_part(part.saying(text), delta.is_thought, out)?;
                }
                _ => self.take_part(*part, delta.is_thought, out)?,
            }
        }
        Ok(())
    }

    #[inline]
    fn take_part(
        &mut self,
        part: Part<'_>,
        is_thought: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        match part {
            Part::Text(text) if is_thought => self.take_marked(text.raw(), out)?,
            Part::Text(text) if std::mem::take(&mut self.reasoning.in_marked) => {
                self.take_raw_text(reasoning::without_end(text.raw()), out)?;
            }
            Part::Text(text) if !self.whole && self.text.repeats(text.raw()) => {}
            Part::Text(text) => self.take_text(text, out)?,
            Part::Thinking(text) => {
                if self.reasoning.counts(Field::Parts) {
                    self.push_reasoning(text, Field::Parts, out);
                }
            }
            Part::Reasoning(text) => {
                if self.reasoning.counts(Field::Marked) {
                    self.push_reasoning(text, Field::Marked, out);
                }
            }
            Part::Refusal(text) => self.take_refusal(text, out)?,
        }
        Ok(())
    }

    /// A text of so many bytes has come. Escapes, which some servers use for every letter, are none of its length.
    pub(super) fn note_progress(&mut self, bytes: usize, is_blank: bool) {
        self.record.report.progress = self.record.report.progress.saturating_add(1);
        self.telling_pieces = self.telling_pieces.saturating_add(u64::from(!is_blank));
        self.output_bytes = self.output_bytes.saturating_add(bytes as u64);
    }
}
