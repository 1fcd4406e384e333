//! The content of an answer: text, reasoning and calls, through their filters to blocks.
//!
//! [`Content`] decides in which order they go on to the blocks, and counts them. What is known of each is in `text`,
//! `reasoning` and `calls`.

use super::calls::Fragments;
use super::fragment::Fragment;
use super::half_call;
use super::reasoning::{self, Reasoning};
use super::text::Text;
use crate::answer::Output;
use crate::assemble::call::Call;
use crate::assemble::{Assembly, BrokenOff};
use crate::carry::signature::Field;
use crate::dialect::text_calls::{AnswerEnd, Piece};
use crate::error::Error;
use crate::json::{Str, escaped};
use crate::model::request_context::RequestContext;
use crate::protocols::chat::wire::{Arguments, Delta, Part, ToolCall};
use crate::text::names::NameSet;

/// What has come of the content of one answer.
#[derive(Debug)]
pub(super) struct Content {
    text: Text,
    reasoning: Reasoning,
    assembly: Assembly,
    calls: Fragments,
    /// The answer came as one JSON text.
    whole: bool,
    /// The choice of a whole answer that is taken was cut off.
    ends_early: bool,
    /// What is known of the answer's end.
    end: BrokenOff,
    /// Pieces of content.
    pieces: u64,
    /// Pieces of content that have more than white space in them.
    telling_pieces: u64,
    /// Bytes of the answer, for an estimate of its tokens.
    bytes: u64,
}

impl Content {
    pub(super) fn new(context: &RequestContext, ids_used: NameSet<'static>) -> Self {
        Self {
            text: Text::new(context),
            reasoning: Reasoning::new(context),
            assembly: Assembly::new(ids_used),
            calls: Fragments::default(),
            whole: false,
            ends_early: false,
            end: BrokenOff::default(),
            pieces: 0,
            telling_pieces: 0,
            bytes: 0,
        }
    }

    pub(super) fn set_whole(&mut self) {
        self.whole = true;
        self.assembly.set_whole();
    }

    /// Whether the answer came as one JSON text.
    #[inline]
    pub(super) fn is_whole(&self) -> bool {
        self.whole
    }

    /// Whether the choice that is taken was cut off.
    pub(super) fn set_ends_early(&mut self, ends_early: bool) {
        self.ends_early = ends_early && self.whole;
    }

    /// Notes what is known of the answer's end.
    pub(super) fn set_end(&mut self, end: BrokenOff) {
        self.end = end;
    }

    pub(super) fn text(&self) -> &Text {
        &self.text
    }

    pub(super) fn assembly(&self) -> &Assembly {
        &self.assembly
    }

    /// The field of the reasoning that counts, once one has said something.
    pub(super) fn reasoning_field(&self) -> Option<Field> {
        self.reasoning.field()
    }

    /// Notes the field of the reasoning that counts, unless one is known.
    pub(super) fn note_reasoning_field(&mut self, field: Option<Field>) {
        self.reasoning.note_field(field);
    }

    /// Pieces of content.
    pub(super) fn pieces(&self) -> u64 {
        self.pieces
    }

    /// Pieces of content that have more than white space in them.
    pub(super) fn telling_pieces(&self) -> u64 {
        self.telling_pieces
    }

    /// Bytes of the answer.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether there are calls, be it ones that the client does not get.
    pub(super) fn has_calls(&self) -> bool {
        self.calls.has_calls()
    }

    /// Whether there is more than reasoning.
    pub(super) fn answers(&self) -> bool {
        self.text.has_come() || self.has_calls() || !self.text.refusal().is_empty()
    }

    /// Whether a call is not complete that should be, by what the upstream said of its end.
    pub(super) fn has_half_call(&self) -> bool {
        !self.text.is_cut() && !self.end.is_cut_off && self.assembly.has_half_call()
    }

    /// Bytes that wait here, with what each block costs.
    pub(super) fn waiting_bytes(&self) -> usize {
        let filtered = self.text.held_bytes().saturating_add(self.reasoning.held_bytes());
        self.assembly.waiting_bytes().saturating_add(filtered)
    }

    /// Bytes that are kept in memory.
    pub(super) fn held_bytes(&self) -> usize {
        let filtered = self.text.held_bytes().saturating_add(self.reasoning.held_bytes());
        self.assembly.held_bytes().saturating_add(filtered)
    }

    /// Sends what can be sent.
    pub(super) fn pump(&mut self, to: &mut Output<'_>) {
        self.assembly.pump(false, self.end, to);
    }

    /// Sends a text of Creole's own as a block.
    pub(super) fn send_own_text(&mut self, text: &str, to: &mut Output<'_>) {
        self.assembly.send_own_text(text, to);
    }

    /// The answer is over: sends all that waits.
    pub(super) fn finish(&mut self, to: &mut Output<'_>) -> Result<(), Error> {
        let is_cut_off = self.end.is_cut_off;
        let end = AnswerEnd { alone: !self.has_calls(), is_cut_off };
        let pieces = self.text.finish(&to.context.tools, end);
        self.take_pieces(pieces, to)?;
        // If it says nothing else, it calls what its reasoning ends with: some models call a tool before they end
        // their reasoning, and servers take the call for a part of it.
        let calls = self.end_reasoning(!self.text.is_cut() && !is_cut_off, to);
        self.take_pieces(calls, to)?;
        if self.text.is_cut() {
            // What the model said after a stop sequence of the client, it did not say.
            self.end = BrokenOff::default();
        }
        self.assembly.finish(self.end, to);
        Ok(())
    }

    /// Takes the content of a choice in several parts. Parts of one kind are one text, as they are to the client: each
    /// alone can be a byte, and would be an event.
    pub(super) fn take_parts(
        &mut self,
        delta: &Delta<'_>,
        to: &mut Output<'_>,
    ) -> Result<(), Error> {
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
                    self.take_part(part.saying(text), delta.is_thought, to)?;
                }
                _ => self.take_part(*part, delta.is_thought, to)?,
            }
        }
        Ok(())
    }

    #[inline]
    pub(super) fn take_part(
        &mut self,
        part: Part<'_>,
        is_thought: bool,
        to: &mut Output<'_>,
    ) -> Result<(), Error> {
        match part {
            Part::Text(text) if is_thought => {
                let (thought, text) = reasoning::marked(text.raw());
                self.reasoning.enter_marked();
                self.push_raw_reasoning(thought, Field::Marked, to);
                self.take_raw_text(text, to)
            }
            Part::Text(text) if self.reasoning.leave_marked() => {
                self.take_raw_text(reasoning::without_end(text.raw()), to)
            }
            Part::Text(text) if !self.whole && self.text.repeats(text.raw()) => Ok(()),
            Part::Text(text) => self.take_text(text, to),
            Part::Thinking(text) => self.take_part_of_reasoning(text, Field::Parts, to),
            Part::Reasoning(text) => self.take_part_of_reasoning(text, Field::Marked, to),
            Part::Refusal(text) => self.take_refusal(text, to),
        }
    }

    fn take_part_of_reasoning(
        &mut self,
        text: Str<'_>,
        field: Field,
        to: &mut Output<'_>,
    ) -> Result<(), Error> {
        if self.reasoning.counts(field) {
            self.push_reasoning(text, field, to);
        }
        Ok(())
    }

    pub(super) fn take_refusal(&mut self, text: Str<'_>, to: &mut Output<'_>) -> Result<(), Error> {
        self.text.keep_refusal(&text.decode());
        self.take_text(text, to)
    }

    /// Takes text that was cut out of one, escaped.
    pub(super) fn take_raw_text(&mut self, raw: &str, to: &mut Output<'_>) -> Result<(), Error> {
        match Str::inside(raw) {
            Some(text) if !raw.is_empty() => self.take_text(text, to),
            _ => Ok(()),
        }
    }

    fn take_text(&mut self, text: Str<'_>, to: &mut Output<'_>) -> Result<(), Error> {
        self.note_progress(text.decoded_len(), text.is_blank(), to);
        let text = self.text.begin(text, self.reasoning.is_before_text());
        if !self.ends_early {
            return self.filter_text(text, to);
        }
        let whole = half_call::cut_from(text, to);
        self.filter_text(whole.as_deref().and_then(Str::inside).unwrap_or(text), to)
    }

    #[inline(always)]
    fn filter_text(&mut self, text: Str<'_>, to: &mut Output<'_>) -> Result<(), Error> {
        match self.text.filtered(text.raw(), self.whole) {
            Some(pieces) => self.take_pieces(pieces, to),
            None => {
                self.push_text(text.raw(), || text.is_blank(), to);
                Ok(())
            }
        }
    }

    /// Takes what a filter made of the text.
    fn take_pieces(&mut self, pieces: Vec<Piece>, to: &mut Output<'_>) -> Result<(), Error> {
        for piece in pieces {
            match piece {
                Piece::Text(text) => {
                    self.push_text(&escaped(&text), || text.trim().is_empty(), to);
                }
                Piece::Thinking(field, text) => {
                    self.push_raw_reasoning(&escaped(&text), field, to);
                }
                Piece::Stop(sequence) => {
                    self.text.cut(sequence);
                    return Ok(());
                }
                Piece::Call { id, name, input } => {
                    self.end_reasoning(false, to);
                    let call = Call::named(id, name);
                    let index = self.calls.add(call, &mut self.assembly, to)?;
                    self.note_progress(input.len(), false, to);
                    self.assembly.extend_call(index, |call, _| call.receive_json(&input, true));
                }
            }
        }
        Ok(())
    }

    /// Takes more text, escaped.
    fn push_text(&mut self, raw: &str, is_blank: impl Fn() -> bool, to: &mut Output<'_>) {
        if raw.is_empty() {
            return;
        }
        // White space says nothing. Nearly no answer is watched, and all of them come here for each chunk.
        if self.reasoning.is_watched() && !is_blank() {
            self.end_reasoning(false, to);
        }
        self.assembly.push_text(raw, is_blank, to);
    }

    /// Takes the reasoning of a delta.
    pub(super) fn take_reasoning(&mut self, delta: &Delta<'_>, to: &mut Output<'_>) {
        let (field, said) = self.reasoning.choose(delta);
        if field == Some(Field::ReasoningDetails) {
            for text in reasoning::detail_texts(delta) {
                self.push_reasoning(text, Field::ReasoningDetails, to);
            }
        } else if let Some((field, text)) = said {
            self.push_reasoning(text, field, to);
        }
        self.reasoning.keep_details(delta, field, &mut self.assembly, to);
    }

    /// Takes reasoning that was cut out of a text, escaped, if its field counts.
    fn push_raw_reasoning(&mut self, raw: &str, field: Field, to: &mut Output<'_>) {
        if self.reasoning.counts(field)
            && let Some(text) = Str::inside(raw)
            && !raw.is_empty()
        {
            self.push_reasoning(text, field, to);
        }
    }

    pub(super) fn push_reasoning(&mut self, text: Str<'_>, field: Field, to: &mut Output<'_>) {
        if self.reasoning.repeats(text.raw(), to.context.profile.dedupe_reasoning) {
            return;
        }
        let is_blank = text.is_blank();
        self.note_progress(text.decoded_len(), is_blank, to);
        self.reasoning.push(text, is_blank, field, &mut self.assembly, to);
    }

    /// Something else comes, or the answer is over. Gives the calls at the end of the reasoning, of which there are
    /// none unless the answer says nothing else (`alone`).
    fn end_reasoning(&mut self, alone: bool, to: &mut Output<'_>) -> Vec<Piece> {
        let end = AnswerEnd { alone, is_cut_off: self.end.is_cut_off };
        self.reasoning.end_watch(end, &mut self.assembly, to)
    }

    /// Takes the calls of a delta.
    pub(super) fn take_calls(
        &mut self,
        choice: u64,
        delta: &Delta<'_>,
        to: &mut Output<'_>,
    ) -> Result<(), Error> {
        self.calls.begin_list();
        for call in delta.tool_calls.iter() {
            self.take_call(choice, call, false, to)?;
        }
        // Where both forms come, they are the same call.
        let structured = self.calls.has_structured();
        if let Some(call) = delta.function_call.as_ref().filter(|_| !structured) {
            self.take_call(choice, call, true, to)?;
        }
        Ok(())
    }

    /// Takes a call, or a fragment of one. Entries of a whole answer are calls of their own.
    fn take_call(
        &mut self,
        choice: u64,
        entry: &ToolCall<'_>,
        legacy: bool,
        to: &mut Output<'_>,
    ) -> Result<(), Error> {
        if entry.is_empty() {
            return Ok(());
        }
        if self.reasoning.is_watched() {
            self.end_reasoning(false, to);
        }
        if self.text.is_filtered() {
            let pieces = self.text.release();
            self.take_pieces(pieces, to)?;
        }
        if self.text.is_cut() {
            return Ok(());
        }
        let fragment = Fragment::new(choice, entry, legacy);
        let Some(index) = self.calls.take(&fragment, self.whole, &mut self.assembly, to)? else {
            return Ok(());
        };
        match entry.arguments {
            Arguments::None => {}
            Arguments::Text(text) => self.note_progress(text.decoded_len(), text.is_blank(), to),
            Arguments::Json(raw) => self.note_progress(raw.len(), false, to),
        }
        self.reasoning.keep_signature(index, entry, &mut self.assembly, to);
        Ok(())
    }

    /// A text of so many bytes has come. Escapes, which some servers use for every letter, are none of its length.
    fn note_progress(&mut self, bytes: usize, is_blank: bool, to: &mut Output<'_>) {
        self.pieces = self.pieces.saturating_add(1);
        self.telling_pieces = self.telling_pieces.saturating_add(u64::from(!is_blank));
        self.bytes = self.bytes.saturating_add(bytes as u64);
        to.report.progress = self.pieces;
    }
}
