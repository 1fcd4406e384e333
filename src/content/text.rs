//! The text of an answer, before it becomes blocks.

use super::echo::Echo;
use super::text_filter::TextFilter;
use crate::dialect::text_calls::{AnswerEnd, Piece};
use crate::json::Str;
use crate::model::request_context::{RequestContext, Tools};

/// The first so many bytes of a refusal become its explanation.
const REFUSAL_BYTES_MAX: usize = 1024;

/// Escapes for a line break in a JSON string.
const BREAKS: [&str; 6] = ["\\n", "\\r", "\\u000a", "\\u000A", "\\u000d", "\\u000D"];

/// An escaped text without the line breaks at its start.
fn without_breaks(mut raw: &str) -> &str {
    while let Some(rest) = BREAKS.iter().find_map(|line_break| raw.strip_prefix(line_break)) {
        raw = rest;
    }
    raw
}

/// State of the text of one answer.
#[derive(Debug, Default)]
pub(crate) struct Text {
    /// Looks for what is more than text.
    filter: Option<Box<TextFilter>>,
    /// Stop sequence of the client at which the text was cut, by index.
    cut_at: Option<usize>,
    /// True if text has come.
    has_come: bool,
    /// True if the beginning of the text has come: line breaks belong to the text from now on.
    has_begun: bool,
    /// Text so far, by which a delta is noticed that repeats all of it.
    echo: Echo,
    /// First kilobyte of what the model said as it refused.
    refusal: String,
}

impl Text {
    pub(crate) fn new(context: &RequestContext) -> Self {
        Self { filter: TextFilter::new(context).map(Box::new), ..Self::default() }
    }

    /// Returns true if the text was cut; whatever follows is not part of the answer.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut_at.is_some()
    }

    /// The client's stop sequence at which it was cut.
    pub(crate) fn cut_at(&self) -> Option<usize> {
        self.cut_at
    }

    /// Cuts the text at this stop sequence of the client.
    pub(crate) fn cut(&mut self, sequence: usize) {
        self.cut_at = Some(sequence);
    }

    pub(crate) fn has_come(&self) -> bool {
        self.has_come
    }

    /// Returns the first kilobyte of what the model said as it refused.
    pub(crate) fn refusal(&self) -> &str {
        &self.refusal
    }

    /// Keeps the beginning of a refusal.
    pub(crate) fn keep_refusal(&mut self, text: &str) {
        for letter in text.chars() {
            if self.refusal.len().saturating_add(letter.len_utf8()) > REFUSAL_BYTES_MAX {
                break;
            }
            self.refusal.push(letter);
        }
    }

    /// Returns true if a delta repeats all of the text.
    pub(crate) fn repeats(&mut self, raw: &str) -> bool {
        self.echo.repeats(raw)
    }

    /// Takes more of the text. Behind reasoning, templates write line breaks, and some servers take
    /// them for the beginning of the text. `after_reasoning`: some has come.
    #[inline]
    pub(crate) fn begin<'t>(&mut self, text: Str<'t>, after_reasoning: bool) -> Str<'t> {
        self.has_come = true;
        if self.has_begun {
            return text;
        }
        if !after_reasoning {
            self.has_begun = !text.is_blank();
            return text;
        }
        let text = Str::inside(without_breaks(text.raw())).unwrap_or(text);
        self.has_begun = !text.is_empty();
        text
    }

    /// Returns the pieces that the filter makes of a text; nothing where there is no filter.
    /// `is_whole`: `raw` is all of the text.
    #[inline]
    pub(crate) fn filtered(&mut self, raw: &str, is_whole: bool) -> Option<Vec<Piece>> {
        Some(self.filter.as_mut()?.push(raw, is_whole))
    }

    /// Whether something may be held back.
    #[inline]
    pub(crate) fn is_filtered(&self) -> bool {
        self.filter.is_some()
    }

    /// Returns what was held back as text, when a call comes.
    pub(crate) fn release(&mut self) -> Vec<Piece> {
        self.filter.as_mut().map_or_else(Vec::new, |filter| filter.release())
    }

    /// The text of the answer is over: whatever was held back is decided.
    pub(crate) fn finish(&mut self, tools: &Tools, end: AnswerEnd) -> Vec<Piece> {
        match self.filter.take().filter(|_| !self.is_cut()) {
            Some(mut filter) => filter.finish(tools, end),
            None => Vec::new(),
        }
    }

    /// Returns the bytes that are held back, because more than text may begin with them.
    pub(crate) fn held_bytes(&self) -> usize {
        self.filter.as_ref().map_or(0, |filter| filter.held_bytes())
    }
}
