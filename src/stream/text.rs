//! The text of an answer: through its filters to blocks.

use super::call::Call;
use super::echo::Echo;
use super::half_call;
use super::machine::Machine;
use super::queue::Block;
use super::text_filter::TextFilter;
use crate::dialect::text_calls::AnswerEnd;
use crate::dialect::text_calls::Piece;
use crate::error::Error;
use crate::json::{self, Str};
use crate::model::request_context::RequestContext;

/// The first so many bytes of a refusal become its explanation.
const REFUSAL_BYTES_MAX: usize = 1024;

/// A text as the inside of a JSON string.
pub(crate) fn escaped(text: &str) -> String {
    let mut raw = Vec::with_capacity(text.len());
    json::escape(&mut raw, text);
    String::from_utf8(raw).unwrap_or_default()
}

/// How a line break is written in a JSON string.
const BREAKS: [&str; 6] = ["\\n", "\\r", "\\u000a", "\\u000A", "\\u000d", "\\u000D"];

/// An escaped text without the line breaks at its start.
fn without_breaks(mut raw: &str) -> &str {
    while let Some(rest) = BREAKS.iter().find_map(|line_break| raw.strip_prefix(line_break)) {
        raw = rest;
    }
    raw
}

/// What is known of the text of one answer.
#[derive(Debug, Default)]
pub(super) struct Text {
    /// Looks for what is more than text.
    filter: Option<Box<TextFilter>>,
    /// The text was cut at this sequence of the client.
    cut_at: Option<usize>,
    /// Some has come, however it came.
    has_come: bool,
    /// Its beginning has come: line breaks belong to it from now on.
    has_begun: bool,
    /// What came of it in deltas.
    echo: Echo,
}

impl Text {
    pub(super) fn new(context: &RequestContext) -> Self {
        Self { filter: TextFilter::new(context).map(Box::new), ..Self::default() }
    }

    /// Whether it was cut; whatever follows is not part of the answer.
    pub(super) fn is_cut(&self) -> bool {
        self.cut_at.is_some()
    }

    /// The client's stop sequence at which it was cut.
    pub(super) fn cut_at(&self) -> Option<usize> {
        self.cut_at
    }

    pub(super) fn has_come(&self) -> bool {
        self.has_come
    }

    /// Whether a delta brings all of it once more.
    pub(super) fn repeats(&mut self, raw: &str) -> bool {
        self.echo.repeats(raw)
    }

    /// Bytes that are held back, as more than text may begin with them.
    pub(super) fn held_bytes(&self) -> usize {
        self.filter.as_ref().map_or(0, |filter| filter.held_bytes())
    }
}

impl Machine {
    pub(super) fn take_refusal(&mut self, text: Str<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
        let mut room = REFUSAL_BYTES_MAX.saturating_sub(self.outcome.refusal.len());
        let decoded = text.decode();
        for letter in decoded.chars() {
            if room < letter.len_utf8() {
                break;
            }
            room = room.saturating_sub(letter.len_utf8());
            self.outcome.refusal.push(letter);
        }
        self.take_text(text, out)
    }

    /// Text that was cut out of one, escaped.
    pub(super) fn take_raw_text(&mut self, raw: &str, out: &mut Vec<u8>) -> Result<(), Error> {
        match Str::inside(raw) {
            Some(text) if !raw.is_empty() => self.take_text(text, out),
            _ => Ok(()),
        }
    }

    pub(super) fn take_text(&mut self, text: Str<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
        self.note_progress(text.decoded_len(), text.is_blank());
        self.text.has_come = true;
        if self.text.has_begun && !self.ends_early {
            return self.filter_text(text, out);
        }
        let text = if self.text.has_begun { text } else { self.beginning(text) };
        let whole = if self.ends_early { self.without_half_call(text) } else { None };
        self.filter_text(whole.as_deref().and_then(Str::inside).unwrap_or(text), out)
    }

    #[inline(always)]
    fn filter_text(&mut self, text: Str<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
        let Some(filter) = &mut self.text.filter else {
            self.push_text(text.raw(), || text.is_blank(), out);
            return Ok(());
        };
        let pieces = filter.push(text.raw(), self.whole);
        self.take_pieces(pieces, out)
    }

    /// The first text of an answer. Behind reasoning, templates write line breaks, and some servers take them for the
    /// beginning of the text.
    fn beginning<'t>(&mut self, text: Str<'t>) -> Str<'t> {
        if self.reasoning.field.is_none() && !self.reasoning.has_come {
            self.text.has_begun = !text.is_blank();
            return text;
        }
        let text = Str::inside(without_breaks(text.raw())).unwrap_or(text);
        self.text.has_begun = !text.is_empty();
        text
    }

    /// A text of an answer that was cut off, escaped, without the call at its end that was cut off with it.
    fn without_half_call(&mut self, text: Str<'_>) -> Option<String> {
        let decoded = text.decode();
        let start = half_call::start(&decoded, &self.record.context.tools)?;
        self.record.warnings.add("tool_call_cut_off");
        Some(escaped(decoded.get(..start)?.trim_end()))
    }

    /// What a filter made of the text.
    pub(super) fn take_pieces(
        &mut self,
        pieces: Vec<Piece>,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        for piece in pieces {
            match piece {
                Piece::Text(text) => {
                    self.push_text(&escaped(&text), || text.trim().is_empty(), out);
                }
                Piece::Thinking(field, text) => {
                    self.push_raw_reasoning(&escaped(&text), field, out);
                }
                Piece::Stop(sequence) => {
                    self.text.cut_at = Some(sequence);
                    return Ok(());
                }
                Piece::Call { id, name, input } => {
                    self.release_reasoning(out);
                    let index = self.add_call(Call { id, name, ..Call::default() })?;
                    self.note_progress(input.len(), false);
                    self.calls.extend(index, |call| call.input.receive_json(&input, true));
                }
            }
        }
        Ok(())
    }

    /// More text, escaped.
    fn push_text(&mut self, raw: &str, is_blank: impl Fn() -> bool, out: &mut Vec<u8>) {
        if raw.is_empty() {
            return;
        }
        // White space says nothing. Nearly no answer is watched, and all of them come here for each chunk.
        if self.reasoning.is_watched() && !is_blank() {
            self.release_reasoning(out);
        }
        if self.record.progress.is_in_block()
            && self.queue.is_sent_text()
            && json::hold_back(raw) == 0
        {
            return self.sink.text(raw, out);
        }
        if self.queue.is_empty() && json::hold_back(raw) == 0 && !is_blank() {
            // The first text of a block is sent without waiting in the queue: it can be large.
            self.queue.push(Block::Text { pending: String::new(), has_text: true });
            self.open_text(out);
            return self.sink.text(raw, out);
        }
        self.queue.push_text(raw, is_blank());
    }

    /// A call comes: what was held back as it could become one is text after all.
    pub(super) fn release_text(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        let Some(filter) = &mut self.text.filter else { return Ok(()) };
        let pieces = filter.release();
        self.take_pieces(pieces, out)
    }

    /// The text of the answer is over: whatever was held back is decided.
    pub(super) fn finish_text(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        let Some(mut filter) = self.text.filter.take() else { return Ok(()) };
        if self.text.is_cut() {
            return Ok(());
        }
        let end = AnswerEnd { alone: self.calls.is_empty(), is_cut_off: self.outcome.is_cut_off() };
        let pieces = filter.finish(&self.record.context.tools, end);
        self.take_pieces(pieces, out)
    }
}
