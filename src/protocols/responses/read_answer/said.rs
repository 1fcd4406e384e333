//! Record of a text that was received in pieces or as a whole, to recognize repetitions.
//!
//! Servers send a text up to five times: in deltas, and at the end of the text, the part, the item
//! and the answer. Any of these can be missing. So each of them adds only text that was not
//! received before.

use std::collections::BTreeMap;

use crate::carry::signature::Fnv;
use crate::json::{self, Str, escaped};
use crate::protocols::responses::wire::PartKind;

/// Number of bytes kept of the beginning of a text, to recognize whether a late delta repeats the
/// text.
const START_BYTES: usize = 64;

/// Length, hash and beginning of the text that was received.
#[derive(Debug, Default)]
pub(super) struct ReceivedText {
    bytes: usize,
    hash: Fnv,
    /// Beginning of the text, at most [`START_BYTES`] long.
    start: String,
    /// State of the deltas that were received after the end of the text.
    late: Late,
    /// First half of a surrogate pair, whose second half the next delta must contain.
    half: String,
    /// True if an event with the whole text was received.
    is_complete: bool,
}

/// Classification of the deltas that are received after the end of a text.
#[derive(Debug, PartialEq, Eq)]
enum Late {
    /// Undecided: the late deltas so far, which equal the beginning of the text.
    Open(String),
    /// Repetition: the late deltas repeat the text and are ignored.
    Repeats,
    /// Continuation of the text: the server reported the end of the text too early.
    GoesOn,
}

impl Default for Late {
    fn default() -> Self {
        Self::Open(String::new())
    }
}

/// New portion of a whole text, compared with the text received before.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum News {
    /// No new text: the whole text was received before.
    Nothing,
    /// Whole text: no part of the text was received before.
    All,
    /// New end of the text, JSON-escaped, after the part received before.
    Rest(String),
    /// Contradiction: the text differs from the text received before.
    Conflict,
}

/// Maximum number of texts of an item that are kept in a list and searched one by one. Nearly every
/// item has one or two texts, for which a tree would be too large.
const FEW: usize = 4;

/// Records of the texts of one item, by kind of part and number.
#[derive(Debug, Default)]
pub(super) struct ItemTexts {
    first: Vec<((PartKind, u64), ReceivedText)>,
    others: BTreeMap<(PartKind, u64), ReceivedText>,
}

impl ItemTexts {
    /// Returns the record of the text of a part, or `None` if nothing of the text was received.
    pub(super) fn get(&self, part: (PartKind, u64)) -> Option<&ReceivedText> {
        let first = self.first.iter().find(|(known, _)| *known == part);
        first.map(|(_, said)| said).or_else(|| self.others.get(&part))
    }

    /// Returns the record of the text of a part. Creates the record and calls `begins` if the part
    /// is new.
    #[inline]
    pub(super) fn enter(
        &mut self,
        part: (PartKind, u64),
        begins: impl FnOnce(),
    ) -> Option<&mut ReceivedText> {
        let found = self.first.iter().position(|(known, _)| *known == part);
        if found.is_none() && self.first.len() >= FEW {
            return Some(self.others.entry(part).or_insert_with(|| {
                begins();
                ReceivedText::default()
            }));
        }
        let at = found.unwrap_or_else(|| {
            begins();
            self.first.reserve_exact(1);
            self.first.push((part, ReceivedText::default()));
            self.first.len().saturating_sub(1)
        });
        self.first.get_mut(at).map(|(_, said)| said)
    }

    /// Returns an iterator over the records of all texts, in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &ReceivedText> {
        self.first.iter().map(|(_, said)| said).chain(self.others.values())
    }
}

impl ReceivedText {
    /// Returns true if no part of the text was received.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes == 0 && self.half.is_empty()
    }

    /// Returns true if an event with the whole text was received.
    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Returns the number of bytes of the unescaped text that were received.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns true if the text received so far is the beginning of `full`, or all of `full`.
    pub(super) fn begins(&self, full: &str) -> bool {
        let start = full.split_at_checked(self.bytes);
        start.is_some_and(|(start, _)| hash(start) == self.hash.finish())
    }

    /// Appends a delta to the record of the text.
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

    /// Handles a delta received after the end of the text. Returns new text, JSON-escaped, or
    /// `None` for a repetition.
    pub(super) fn push_late(&mut self, text: Str<'_>) -> Option<String> {
        if let Late::Open(late) = &mut self.late {
            late.push_str(&text.decode());
            if self.start.is_empty() || late.starts_with(&self.start) {
                self.late = Late::Repeats;
            } else if !self.start.starts_with(late.as_str()) {
                let more = escaped(late);
                self.late = Late::GoesOn;
                self.add_escaped(&more);
                return Some(more);
            }
            return None;
        }
        let goes_on = self.late == Late::GoesOn;
        goes_on.then(|| {
            self.push(text);
            text.raw().to_owned()
        })
    }

    fn add_escaped(&mut self, raw: &str) {
        if let Some(text) = Str::inside(raw) {
            self.push(text);
        }
    }

    /// Replaces the record with a record of the whole text `full`.
    pub(super) fn replace(&mut self, full: &str) {
        *self = Self { is_complete: true, ..Self::default() };
        self.add(full);
    }

    fn add(&mut self, text: &str) {
        if self.start.len() < START_BYTES {
            let room = START_BYTES.saturating_sub(self.start.len());
            self.start.extend(text.char_indices().take_while(|(at, _)| *at < room).map(|it| it.1));
        }
        self.hash.update(text.as_bytes());
        self.bytes = self.bytes.saturating_add(text.len());
    }

    /// Compares the whole text with the text received before, and returns the new portion.
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
                        // The first half of a surrogate pair is already on its way to the client.
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
        let mut said = ReceivedText::default();
        said.push(text("Gr"));
        said.push(text("\\u00fc"));
        assert_eq!(said.complete(text("Grüße")), News::Rest("ße".into()));
        assert_eq!(said.complete(text("Grüße")), News::Nothing);
        assert_eq!(said.complete(text("Gruß")), News::Conflict);
        assert_eq!(ReceivedText::default().complete(text("Grüße")), News::All);
    }

    #[test]
    fn what_comes_behind_the_end_repeats_the_text_or_goes_on() {
        let said = |full: &str| {
            let mut said = ReceivedText::default();
            said.complete(text(full));
            said
        };
        let late = |said: &mut ReceivedText, deltas: &[&str]| -> String {
            deltas.iter().filter_map(|delta| said.push_late(text(delta))).collect()
        };
        assert_eq!(late(&mut said("Hello"), &["H", "el", "lo", "!"]), "");
        let mut one = said("1");
        assert_eq!(late(&mut one, &["\\n", "2", "1"]), "\\n21");
        assert_eq!(one.complete(text("1\\n21")), News::Nothing);
        assert_eq!(late(&mut said("Hello"), &["He", " said"]), "He said");
        assert_eq!(late(&mut ReceivedText::default(), &["Hello"]), "");
    }

    #[test]
    fn a_character_that_two_deltas_share_is_one() {
        let mut said = ReceivedText::default();
        said.push(text("\\ud83d"));
        assert!(!said.is_empty());
        said.push(text("\\ude00"));
        assert_eq!(said.complete(text("😀")), News::Nothing);
    }
}
