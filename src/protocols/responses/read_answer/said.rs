//! What has come of one text, so that what repeats it is known.
//!
//! Servers say a text up to five times: in deltas, when the text, its part and its item are done, and when the answer
//! is. Any of these can be missing. So each of them completes what came before, and repeats nothing.

use crate::carry::signature::Fnv;
use crate::json::{self, Str, escaped};

/// What has come of one text.
#[derive(Debug, Default)]
pub(super) struct Said {
    bytes: usize,
    hash: Fnv,
    /// The first half of a surrogate pair, whose second half the next delta must bring.
    half: String,
    /// All of it has come.
    is_complete: bool,
}

/// What is new in a text that is complete.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum News {
    /// Nothing.
    Nothing,
    /// All of it.
    All,
    /// This, escaped, which stands behind what came.
    Rest(String),
    /// It is another text than what came.
    Conflict,
}

impl Said {
    /// Whether nothing has come.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes == 0 && self.half.is_empty()
    }

    /// Whether all of it has come.
    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// How many bytes have come.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether what has come is the beginning of this text, or all of it.
    pub(super) fn begins(&self, full: &str) -> bool {
        let start = full.split_at_checked(self.bytes);
        start.is_some_and(|(start, _)| hash(start) == self.hash.finish())
    }

    /// Takes a delta.
    #[inline]
    pub(super) fn push(&mut self, text: Str<'_>) {
        if self.half.is_empty() && !text.is_escaped() {
            return self.add(text.raw());
        }
        let raw = text.raw();
        let held = json::hold_back(raw);
        let (now, later) =
            raw.split_at_checked(raw.len().saturating_sub(held)).unwrap_or((raw, ""));
        let mut decoded = String::with_capacity(raw.len());
        self.half.push_str(now);
        json::unescape(&mut decoded, &self.half);
        self.half.clear();
        self.half.push_str(later);
        self.add(&decoded);
    }

    /// Takes all of a text in the place of what came.
    pub(super) fn replace(&mut self, full: &str) {
        *self = Self { is_complete: true, ..Self::default() };
        self.add(full);
    }

    fn add(&mut self, text: &str) {
        self.hash.update(text.as_bytes());
        self.bytes = self.bytes.saturating_add(text.len());
    }

    /// Takes all of the text.
    pub(super) fn complete(&mut self, full: Str<'_>) -> News {
        let decoded = full.decode();
        self.is_complete = true;
        let rest = match self.is_empty() {
            true => News::All,
            false => match decoded.split_at_checked(self.bytes) {
                Some((start, rest)) if hash(start) == self.hash.finish() => {
                    if rest.is_empty() {
                        return News::Nothing;
                    }
                    if !self.half.is_empty() {
                        // The half of a character is on its way to the client already.
                        return News::Conflict;
                    }
                    News::Rest(escaped(rest))
                }
                _ => return News::Conflict,
            },
        };
        self.replace(&decoded);
        rest
    }
}

fn hash(text: &str) -> u64 {
    let mut hash = Fnv::new();
    hash.update(text.as_bytes());
    hash.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(raw: &str) -> Str<'_> {
        Str::inside(raw).unwrap()
    }

    #[test]
    fn a_text_that_is_done_completes_what_came_and_repeats_nothing() {
        let mut said = Said::default();
        said.push(text("Gr"));
        said.push(text("\\u00fc"));
        assert_eq!(said.complete(text("Grüße")), News::Rest("ße".into()));
        assert_eq!(said.complete(text("Grüße")), News::Nothing);
        assert_eq!(said.complete(text("Gruß")), News::Conflict);
        assert_eq!(Said::default().complete(text("Grüße")), News::All);
    }

    #[test]
    fn a_character_that_two_deltas_share_is_one() {
        let mut said = Said::default();
        said.push(text("\\ud83d"));
        assert!(!said.is_empty());
        said.push(text("\\ude00"));
        assert_eq!(said.complete(text("😀")), News::Nothing);
    }
}
