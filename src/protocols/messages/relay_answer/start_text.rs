//! Text of a block from an upstream of the Messages API, which may be in the block's start event,
//! in deltas, or in both.

use std::borrow::Cow;

use crate::json::{self, Str};
use crate::text::words;

/// Text of a block's start event, compared with the texts of the block's deltas.
#[derive(Debug, Default)]
pub(super) struct StartText {
    /// Text in the start event of the content block.
    start: String,
    /// Number of bytes of `start` that deltas have repeated. `None` if `start` is empty, or once
    /// deltas add to `start` or differ from it.
    echo: Option<usize>,
    /// First half of a surrogate pair, held until the next delta brings the second half, because
    /// clients decode each delta by itself.
    half: String,
}

impl StartText {
    pub(super) fn new(start: Str<'_>) -> Self {
        let echo = (!start.is_empty()).then_some(0);
        Self { start: start.decode().into_owned(), echo, half: String::new() }
    }

    /// Returns the text in the start event of the content block.
    pub(super) fn start(&self) -> &str {
        &self.start
    }

    /// Handles a delta of the block's text. Returns the escaped text to send instead of the delta,
    /// or `None` if the delta itself is sent.
    pub(super) fn receive(&mut self, text: Str<'_>) -> Option<String> {
        let Some(repeated) = self.echo else { return self.whole_letters(text.raw()) };
        let decoded: Cow<'_, str> = text.decode();
        let rest = self.start.get(repeated..).unwrap_or_default();
        if rest.starts_with(decoded.as_ref()) {
            self.echo = Some(repeated.saturating_add(decoded.len()));
            return Some(String::new());
        }
        let said = match decoded.strip_prefix(rest) {
            Some(more) => json::escaped(more),
            None => json::escaped(&format!(
                "{}{decoded}",
                self.start.get(..repeated).unwrap_or_default()
            )),
        };
        self.echo = None;
        Some(said)
    }

    /// Joins the halves of surrogate pairs that were split between deltas.
    fn whole_letters(&mut self, raw: &str) -> Option<String> {
        if self.half.is_empty() && json::hold_back(raw) == 0 {
            return None;
        }
        let mut joined = std::mem::take(&mut self.half);
        joined.push_str(raw);
        let end = joined.len().saturating_sub(json::hold_back(&joined));
        self.half = words::split_off(&mut joined, end);
        Some(joined)
    }

    /// Returns the text that is still unsent at the end of the block, escaped.
    pub(super) fn finish(&mut self) -> String {
        match self.echo.take() {
            // Deltas that cover only a part of the start text are not a repetition.
            Some(repeated) if repeated < self.start.len() => {
                json::escaped(self.start.get(..repeated).unwrap_or_default())
            }
            _ if self.half.is_empty() => String::new(),
            _ => "\\ufffd".to_owned(),
        }
    }
}
