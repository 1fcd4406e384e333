//! Fast parsing of an event that repeats the previous event of the same stream.
//!
//! Nearly every event equals the previous event except for the text, the sequence number, and
//! random letters. Comparing the two costs a small part of parsing an event, so the comparison is
//! tried first. An event that differs in more is parsed as usual.

use super::event::WireEvent;
use crate::json::{Reader, Str, offset_in};
use crate::text::words::is_same;

/// Maximum length in bytes of an event that is kept for comparison. Each stream keeps one event in
/// memory.
const LENGTH_MAX: usize = 1024;

/// Maximum number of consecutive events that do not repeat the previous event. Then no more events
/// are kept: some servers change the item's id in each event.
const MISSES_MAX: u8 = 16;

/// Last delta event of a stream, split at the values that change with each event.
#[derive(Debug, Default)]
pub(crate) struct EventPattern<T> {
    /// Bytes of the event before the first value that changes.
    start: String,
    /// Values that change, each with the bytes after the value. Quotes of strings belong to the
    /// values.
    values: Vec<(ChangingValue, String)>,
    /// Position of the text in the answer, or `None` if no event is kept.
    place: Option<T>,
    misses: u8,
}

/// Kind of a value that changes with each event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChangingValue {
    /// Sequence number of the event: `sequence_number`.
    Number,
    /// Text of the event: `delta`.
    Text,
    /// Random letters in `obfuscation`, with which servers hide the length of the text.
    Letters,
}

/// Content of an event that repeats the previous event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Repeated<'a, T> {
    /// Position of the text in the answer, known from the previous event.
    pub(crate) place: T,
    /// Text in the `delta` of the event.
    pub(crate) text: Str<'a>,
}

impl<T: Copy> EventPattern<T> {
    /// Creates a pattern that matches no event.
    pub(crate) fn new() -> Self {
        Self { start: String::new(), values: Vec::new(), place: None, misses: 0 }
    }

    /// Returns the text of an event that repeats the previous event, or `None` if the event differs
    /// in more.
    #[inline]
    pub(crate) fn read<'a>(&mut self, data: &'a str) -> Option<Repeated<'a, T>> {
        let place = self.place?;
        let mut rest = behind(data, &self.start)?;
        let mut text = None;
        for (value, end) in &self.values {
            rest = match value {
                ChangingValue::Number => {
                    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
                    rest.get(digits..).filter(|_| digits > 0)?
                }
                ChangingValue::Text | ChangingValue::Letters => {
                    let mut reader = Reader::new(rest, 1);
                    let string = reader.string().ok()?;
                    if *value == ChangingValue::Text {
                        text = Some(string);
                    }
                    rest.get(reader.offset()..)?
                }
            };
            rest = behind(rest, end)?;
        }
        let text = text.filter(|text| !text.is_empty() && rest.is_empty())?;
        self.misses = 0;
        Some(Repeated { place, text })
    }

    /// Keeps the event that was parsed from `data` for comparison with the next event. `place`: the
    /// position of the event's text; without a position no event is kept.
    pub(crate) fn learn(&mut self, data: &str, event: &WireEvent<'_>, place: Option<T>) {
        self.place = None;
        if place.is_none() || self.misses >= MISSES_MAX || data.len() > LENGTH_MAX {
            return;
        }
        self.misses = self.misses.saturating_add(1);
        if self.part(data, event).is_some() {
            self.place = place;
        }
    }

    /// Splits an event at the values that change with each event.
    fn part(&mut self, data: &str, event: &WireEvent<'_>) -> Option<()> {
        let quoted = |text: Str<'_>| {
            let start = offset_in(data, text.raw())?;
            Some((start.checked_sub(1)?, start.checked_add(text.raw().len())?.checked_add(1)?))
        };
        let text = quoted(event.delta.filter(|text| !text.is_empty())?)?;
        let mut places = vec![(text, ChangingValue::Text)];
        if let Some(number) = event.sequence {
            let start = offset_in(data, number)?;
            places.push(((start, start.checked_add(number.len())?), ChangingValue::Number));
        }
        if let Some(letters) = event.obfuscation {
            places.push((quoted(letters)?, ChangingValue::Letters));
        }
        places.sort_unstable_by_key(|((start, _), _)| *start);
        let first = places.first().map(|((start, _), _)| *start)?;
        data.get(..first)?.clone_into(&mut self.start);
        self.values.clear();
        for (at, ((_, end), value)) in places.iter().enumerate() {
            let next =
                places.get(at.saturating_add(1)).map_or(data.len(), |((start, _), _)| *start);
            self.values.push((*value, data.get(*end..next)?.to_owned()));
        }
        Some(())
    }
}

/// Returns the part of `text` after the prefix `start`, or `None` if `text` does not begin with
/// `start`.
#[inline]
fn behind<'a>(text: &'a str, start: &str) -> Option<&'a str> {
    let (before, rest) = text.split_at_checked(start.len())?;
    is_same(before, start).then_some(rest)
}
