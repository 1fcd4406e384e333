//! Content of an answer on its way to the blocks of the client: text, reasoning and tool calls, and
//! the end of the answer.
//!
//! A protocol's reader delivers what the protocol calls text, reasoning and calls. Depending on the
//! profile and the request, text first passes filters, which may find reasoning or calls in it.
//!
//! | file | what it holds |
//! |---|---|
//! | `mod` | [`Content`]: order in which everything is passed on to the blocks, and counts |
//! | `text`, `text_filter`, `inline_think`, `echo` | text, perhaps with reasoning or calls in it |
//! | `cited` | sources of the text, if the upstream searched the web |
//! | `half_call` | incomplete calls at the end of a text that was cut off |
//! | `reasoning` | reasoning, in any of the fields that servers use |
//! | `summary` | statements of the upstream about the whole answer |
//! | `end` | reason why the model stopped, for the client |

mod cited;
mod echo;
mod end;
mod half_call;
mod inline_think;
mod reasoning;
mod summary;
mod text;
mod text_filter;

use crate::answer::ReaderOutput;
use crate::assemble::call::CallParts;
use crate::assemble::{Assembly, BrokenOff};
use crate::carry::signature::SignatureField;
use crate::dialect::text_calls::{AnswerEnd, Piece};
use crate::error::Error;
use crate::json::{Str, escaped};
use crate::model::request_context::RequestContext;
use crate::text::names::NameSet;
use cited::Cited;
pub(crate) use cited::CitedSource;
pub(crate) use reasoning::{ReasoningState, is_kept};
use summary::Summary;
pub(crate) use text::TextState;

/// Content of one answer, as far as it was received.
#[derive(Debug)]
pub(crate) struct Content {
    text: TextState,
    reasoning: ReasoningState,
    assembly: Assembly,
    summary: Summary,
    /// True if the client's message has begun.
    has_started: bool,
    /// Text that citations refer to, if the upstream may search the web.
    cited: Option<Box<Cited>>,
    /// True if the answer came as one JSON text.
    whole: bool,
    /// True if the text being read belongs to a whole answer that was cut off.
    ends_early: bool,
    /// Facts about the answer's end: whether it was cut off, or is a refusal.
    end: BrokenOff,
    /// Number of pieces of text, reasoning or calls received.
    pieces: u64,
    /// Number of pieces of content that are more than white space.
    telling_pieces: u64,
    /// Number of bytes of the answer's content, used to estimate its tokens.
    bytes: u64,
}

impl Content {
    /// Creates the content of a new answer. `ids_used`: the client's ids of calls in the history.
    pub(crate) fn new(context: &RequestContext, ids_used: NameSet<'static>) -> Self {
        Self {
            text: TextState::new(context),
            reasoning: ReasoningState::new(context),
            assembly: Assembly::new(ids_used),
            summary: Summary::default(),
            has_started: false,
            cited: context.searches.then(Box::default),
            whole: false,
            ends_early: false,
            end: BrokenOff::default(),
            pieces: 0,
            telling_pieces: 0,
            bytes: 0,
        }
    }

    /// Begins the client's message, if it has not begun.
    #[inline]
    pub(crate) fn start(&mut self, to: &mut ReaderOutput<'_>) {
        if !self.has_started {
            self.has_started = true;
            let input_tokens = self.summary.prompt_tokens().unwrap_or(to.context.input_tokens);
            to.start(self.summary.model_for(to.context), input_tokens);
        }
    }

    /// Returns true if the client's message has begun.
    #[inline]
    pub(crate) fn has_started(&self) -> bool {
        self.has_started
    }

    pub(crate) fn set_whole(&mut self) {
        self.whole = true;
        self.assembly.set_whole();
    }

    /// Returns true if the answer came as one JSON text, not as a stream.
    #[inline]
    pub(crate) fn is_whole(&self) -> bool {
        self.whole
    }

    /// Records whether the text being read was cut off; only the text of a whole answer counts.
    pub(crate) fn set_ends_early(&mut self, ends_early: bool) {
        self.ends_early = ends_early && self.whole;
    }

    /// Returns the upstream's statements about the whole answer, such as model and finish reason.
    pub(crate) fn summary(&self) -> &Summary {
        &self.summary
    }

    pub(crate) fn summary_mut(&mut self) -> &mut Summary {
        &mut self.summary
    }

    /// Records why and how the answer ended.
    pub(crate) fn set_end(&mut self, end: BrokenOff) {
        self.end = end;
    }

    pub(crate) fn text(&self) -> &TextState {
        &self.text
    }

    pub(crate) fn text_mut(&mut self) -> &mut TextState {
        &mut self.text
    }

    pub(crate) fn assembly(&self) -> &Assembly {
        &self.assembly
    }

    pub(crate) fn assembly_mut(&mut self) -> &mut Assembly {
        &mut self.assembly
    }

    fn reasoning(&self) -> &ReasoningState {
        &self.reasoning
    }

    pub(crate) fn reasoning_mut(&mut self) -> &mut ReasoningState {
        &mut self.reasoning
    }

    /// Returns the reasoning, and the assembly of blocks that receives it.
    pub(crate) fn reasoning_and_blocks(&mut self) -> (&mut ReasoningState, &mut Assembly) {
        (&mut self.reasoning, &mut self.assembly)
    }

    /// Returns the field that the answer's reasoning comes in; `None` before the first reasoning.
    pub(crate) fn reasoning_field(&self) -> Option<SignatureField> {
        self.reasoning.field()
    }

    /// Returns the number of pieces of content received.
    pub(crate) fn pieces(&self) -> u64 {
        self.pieces
    }

    /// Returns the number of pieces of content that are more than white space.
    pub(crate) fn telling_pieces(&self) -> u64 {
        self.telling_pieces
    }

    /// Returns the number of bytes of the answer's content.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns true if the answer has tool calls, even calls that the client does not get.
    pub(crate) fn has_calls(&self) -> bool {
        !self.assembly.calls().all().is_empty()
    }

    /// Returns true if the answer has more than reasoning: text, a call or a refusal.
    pub(crate) fn answers(&self) -> bool {
        self.text.has_come() || self.has_calls() || !self.text.refusal().is_empty()
    }

    /// Returns true if a call is incomplete although the upstream did not report that the answer
    /// was cut off.
    pub(crate) fn has_half_call(&self) -> bool {
        !self.text.is_cut() && !self.end.is_cut_off && self.assembly.has_half_call()
    }

    /// Returns the number of bytes that wait to be sent, with a fixed number for each block.
    pub(crate) fn waiting_bytes(&self) -> usize {
        let filtered = self.text.held_bytes().saturating_add(self.reasoning.held_bytes());
        self.assembly.waiting_bytes().saturating_add(filtered)
    }

    /// Returns the number of bytes of the answer that are kept in memory.
    pub(crate) fn held_bytes(&self) -> usize {
        let filtered = self.text.held_bytes().saturating_add(self.reasoning.held_bytes());
        let kept = self.reasoning.kept_bytes();
        self.assembly.held_bytes().saturating_add(filtered).saturating_add(kept)
    }

    /// Sends all content that can be sent now.
    pub(crate) fn pump(&mut self, to: &mut ReaderOutput<'_>) {
        self.assembly.pump(false, self.end, to);
    }

    /// Sends a text written by Creole as a block.
    fn send_own_text(&mut self, text: &str, to: &mut ReaderOutput<'_>) {
        self.assembly.send_own_text(text, to);
    }

    /// Sends the reasoning of the answer once more, as text.
    fn send_reasoning_as_text(&mut self, to: &mut ReaderOutput<'_>) {
        let text = self.reasoning.take_text();
        self.assembly.send_own_text(&text, to);
        to.warn("reasoning_as_text");
    }

    /// Sends all content that is still held, at the end of the answer.
    fn finish(&mut self, to: &mut ReaderOutput<'_>) -> Result<(), Error> {
        let is_cut_off = self.end.is_cut_off;
        let end = AnswerEnd { alone: !self.has_calls(), is_cut_off };
        let pieces = self.text.finish(&to.context.tools, end);
        self.take_pieces(pieces, to)?;
        // Calls at the end of the reasoning count if the answer has no other content: some models
        // call a tool before they end their reasoning, and servers take the call for a part of the
        // reasoning.
        let calls = self.end_reasoning(!self.text.is_cut() && !is_cut_off, to);
        self.take_pieces(calls, to)?;
        if self.text.is_cut() {
            // Text behind a stop sequence of the client is no part of the answer, and the end of
            // that text is not the end of the answer.
            self.end = BrokenOff::default();
        }
        self.assembly.finish(self.end, to);
        Ok(())
    }

    /// Handles more of the text of a refusal.
    pub(crate) fn take_refusal(
        &mut self,
        text: Str<'_>,
        to: &mut ReaderOutput<'_>,
    ) -> Result<(), Error> {
        self.text.keep_refusal(&text.decode());
        self.take_text(text, to)
    }

    /// Handles text that was cut out of another text; `raw` is escaped.
    pub(crate) fn take_raw_text(
        &mut self,
        raw: &str,
        to: &mut ReaderOutput<'_>,
    ) -> Result<(), Error> {
        match Str::inside(raw) {
            Some(text) if !raw.is_empty() => self.take_text(text, to),
            _ => Ok(()),
        }
    }

    /// Handles more text of the answer.
    #[inline]
    pub(crate) fn take_text(
        &mut self,
        text: Str<'_>,
        to: &mut ReaderOutput<'_>,
    ) -> Result<(), Error> {
        self.note_progress(text.decoded_len(), text.is_blank(), to);
        let text = self.text.begin(text, self.reasoning.is_before_text());
        if let Some(cited) = &mut self.cited {
            cited.keep(text.raw());
        }
        if !self.ends_early {
            return self.filter_text(text, to);
        }
        let whole = half_call::cut_from(text, to);
        self.filter_text(whole.as_deref().and_then(Str::inside).unwrap_or(text), to)
    }

    #[inline(always)]
    fn filter_text(&mut self, text: Str<'_>, to: &mut ReaderOutput<'_>) -> Result<(), Error> {
        match self.text.filtered(text.raw(), self.whole) {
            Some(pieces) => self.take_pieces(pieces, to),
            None => {
                self.push_text(text.raw(), || text.is_blank(), to);
                Ok(())
            }
        }
    }

    /// Handles the pieces (text, reasoning, calls) that a filter made of the text.
    fn take_pieces(&mut self, pieces: Vec<Piece>, to: &mut ReaderOutput<'_>) -> Result<(), Error> {
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
                    let call = CallParts::named(id, name);
                    let index = self.assembly.add_call(call, to)?;
                    self.note_progress(input.len(), false, to);
                    self.assembly.extend_call(index, |call, _| call.receive_json(&input, true));
                }
            }
        }
        Ok(())
    }

    /// Passes more text, escaped, to the assembly.
    fn push_text(&mut self, raw: &str, is_blank: impl Fn() -> bool, to: &mut ReaderOutput<'_>) {
        if raw.is_empty() {
            return;
        }
        // White space does not end the search for calls. The field `is_watched` is tested first,
        // because text comes here with each chunk, and nearly no answer is searched.
        if self.reasoning.is_watched() && !is_blank() {
            self.end_reasoning(false, to);
        }
        self.assembly.push_text(raw, is_blank, to);
    }

    /// Handles reasoning that was cut out of a text, if the answer's reasoning comes in this field;
    /// `raw` is escaped.
    pub(crate) fn push_raw_reasoning(
        &mut self,
        raw: &str,
        field: SignatureField,
        to: &mut ReaderOutput<'_>,
    ) {
        if self.reasoning.counts(field)
            && let Some(text) = Str::inside(raw)
            && !raw.is_empty()
        {
            self.push_reasoning(text, field, to);
        }
    }

    /// Handles more reasoning, unless it repeats the reasoning so far.
    pub(crate) fn push_reasoning(
        &mut self,
        text: Str<'_>,
        field: SignatureField,
        to: &mut ReaderOutput<'_>,
    ) {
        if self.reasoning.repeats(text.raw()) {
            return;
        }
        let is_blank = text.is_blank();
        self.note_progress(text.decoded_len(), is_blank, to);
        self.reasoning.push(text, is_blank, field, &mut self.assembly, to);
    }

    /// Ends the search for calls in the reasoning, because other content comes or the answer is
    /// over. Returns the calls at the end of the reasoning. These calls count only if the answer
    /// has no other content (`alone`).
    fn end_reasoning(&mut self, alone: bool, to: &mut ReaderOutput<'_>) -> Vec<Piece> {
        let end = AnswerEnd { alone, is_cut_off: self.end.is_cut_off };
        self.reasoning.end_watch(end, &mut self.assembly, to)
    }

    /// Decides about the held text and reasoning, before a call begins. Returns false if the call
    /// comes after a stop sequence of the client, where the answer is over.
    ///
    /// # Errors
    /// The answer has too many tool calls.
    pub(crate) fn begin_call(&mut self, to: &mut ReaderOutput<'_>) -> Result<bool, Error> {
        self.end_watch(to);
        self.release_text(to)?;
        Ok(!self.text.is_cut())
    }

    /// Begins a new text, from whose start the offsets of citations count.
    pub(crate) fn begin_cited(&mut self) {
        if let Some(cited) = &mut self.cited {
            cited.begin();
        }
    }

    /// Adds a citation of the web source to the latest text.
    pub(crate) fn cite(&mut self, source: &CitedSource<'_>) {
        if let Some(citation) = self.cited.as_mut().and_then(|cited| cited.cite(source)) {
            self.assembly.cite(citation);
        }
    }

    /// Decides about the held part of the reasoning, when content other than reasoning comes.
    pub(crate) fn end_watch(&mut self, to: &mut ReaderOutput<'_>) {
        if self.reasoning.is_watched() {
            self.end_reasoning(false, to);
        }
    }

    /// Ends a block of text: later text begins another block.
    ///
    /// # Errors
    /// The text has too many tool calls.
    pub(crate) fn end_text(&mut self, to: &mut ReaderOutput<'_>) -> Result<(), Error> {
        self.release_text(to)?;
        self.assembly.end_text();
        Ok(())
    }

    /// Releases the held part of the text as text, when other content comes.
    fn release_text(&mut self, to: &mut ReaderOutput<'_>) -> Result<(), Error> {
        if self.text.is_filtered() {
            let pieces = self.text.release();
            self.take_pieces(pieces, to)?;
        }
        Ok(())
    }

    /// Counts a piece of content with this number of bytes. Escapes in the content do not add to
    /// the number, since some servers escape every character.
    pub(crate) fn note_progress(
        &mut self,
        bytes: usize,
        is_blank: bool,
        to: &mut ReaderOutput<'_>,
    ) {
        self.pieces = self.pieces.saturating_add(1);
        self.telling_pieces = self.telling_pieces.saturating_add(u64::from(!is_blank));
        self.bytes = self.bytes.saturating_add(bytes as u64);
        to.report.progress = self.pieces;
    }
}
