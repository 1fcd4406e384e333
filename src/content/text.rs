//! Text of an answer, before it becomes blocks.

use super::echo::Echo;
use super::text_filter::TextFilter;
use crate::dialect::text_calls::{AnswerEnd, Piece};
use crate::json::Str;
use crate::model::request_context::{RequestContext, Tools};

/// Maximum number of bytes of a refusal that are sent as its explanation.
const REFUSAL_BYTES_MAX: usize = 1024;

/// Escapes for a line break in a JSON string.
const BREAKS: [&str; 6] = ["\\n", "\\r", "\\u000a", "\\u000A", "\\u000d", "\\u000D"];

/// Returns an escaped text without the line breaks at its start.
fn without_breaks(mut raw: &str) -> &str {
    while let Some(rest) = BREAKS.iter().find_map(|line_break| raw.strip_prefix(line_break)) {
        raw = rest;
    }
    raw
}

/// State of the text of one answer.
#[derive(Debug, Default)]
pub(crate) struct TextState {
    /// Filter that finds reasoning, calls and stop sequences in the text, if one is needed.
    filter: Option<Box<TextFilter>>,
    /// Stop sequence of the client at which the text was cut, by index.
    cut_at: Option<usize>,
    /// True if any text of the answer was received.
    has_come: bool,
    /// True if the first text was received: from now on, line breaks belong to the text.
    has_begun: bool,
    /// Text so far, to detect a delta that repeats all of it.
    echo: Echo,
    /// First kilobyte of the text of a refusal.
    refusal: String,
}

impl TextState {
    pub(crate) fn new(context: &RequestContext) -> Self {
        Self { filter: TextFilter::new(context).map(Box::new), ..Self::default() }
    }

    /// Returns true if the text was cut at a stop sequence; later text is not part of the answer.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut_at.is_some()
    }

    /// Returns the client's stop sequence at which the text was cut, by index.
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

    /// Returns the first kilobyte of the text of a refusal.
    pub(crate) fn refusal(&self) -> &str {
        &self.refusal
    }

    /// Keeps the first kilobyte of the text of a refusal.
    pub(crate) fn keep_refusal(&mut self, text: &str) {
        for letter in text.chars() {
            if self.refusal.len().saturating_add(letter.len_utf8()) > REFUSAL_BYTES_MAX {
                break;
            }
            self.refusal.push(letter);
        }
    }

    /// Returns true if a delta repeats the whole text so far.
    pub(crate) fn repeats(&mut self, raw: &str) -> bool {
        self.echo.repeats(raw)
    }

    /// Handles the next part of the text, and returns this part without leading line breaks that
    /// belong to a template. Some servers send the line breaks between reasoning and text as text.
    /// `after_reasoning`: the answer has reasoning.
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

    /// Returns the pieces that the filter makes of a text; `None` if there is no filter.
    /// `is_whole`: `raw` is the whole text.
    #[inline]
    pub(crate) fn filtered(&mut self, raw: &str, is_whole: bool) -> Option<Vec<Piece>> {
        Some(self.filter.as_mut()?.push(raw, is_whole))
    }

    /// Returns true if the text has a filter, which may hold text back.
    #[inline]
    pub(crate) fn is_filtered(&self) -> bool {
        self.filter.is_some()
    }

    /// Releases the held part of the text as text, when a call comes.
    pub(crate) fn release(&mut self) -> Vec<Piece> {
        self.filter.as_mut().map_or_else(Vec::new, |filter| filter.release())
    }

    /// Ends the text of the answer, and returns the held text, classified as text, reasoning or
    /// calls.
    pub(crate) fn finish(&mut self, tools: &Tools, end: AnswerEnd) -> Vec<Piece> {
        match self.filter.take().filter(|_| !self.is_cut()) {
            Some(mut filter) => filter.finish(tools, end),
            None => Vec::new(),
        }
    }

    /// Returns the number of bytes held by the filter, because they may begin a tag, a call or a
    /// stop sequence.
    pub(crate) fn held_bytes(&self) -> usize {
        self.filter.as_ref().map_or(0, |filter| filter.held_bytes())
    }
}
