//! What the events of a stream have in common.
//!
//! Nearly every event repeats the one before it but for its text, its number, and random letters. Comparing it with
//! that one costs a small part of reading it, so that is tried first; an event that differs is parsed as usual.

use super::event::Event;
use crate::json::{Reader, Str, offset_in};
use crate::text::words::is_same;

/// A longer event is not kept: each stream has allowance of its own for one.
const LENGTH_MAX: usize = 1024;

/// After so many events in a row that did not repeat the one before them, no more are kept: some servers name each
/// event's item anew.
const MISSES_MAX: u8 = 16;

/// An event with one text in it that differs each time.
#[derive(Debug, Default)]
pub(crate) struct Pattern<T> {
    /// What stands before the first value that differs.
    start: String,
    /// The values that differ, each with what stands behind it. Those of texts are without their quotes.
    values: Vec<(Value, String)>,
    /// Where the text belongs.
    place: Option<T>,
    misses: u8,
}

/// A value that differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    /// A number.
    Number,
    /// The text.
    Text,
    /// Random letters.
    Letters,
}

/// An event that repeats the one before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Repeated<'a, T> {
    /// Where its text belongs.
    pub(crate) place: T,
    /// The text.
    pub(crate) text: Str<'a>,
}

impl<T: Copy> Pattern<T> {
    /// No event.
    pub(crate) fn new() -> Self {
        Self { start: String::new(), values: Vec::new(), place: None, misses: 0 }
    }

    /// The text of an event that repeats the one before it.
    #[inline]
    pub(crate) fn read<'a>(&mut self, data: &'a str) -> Option<Repeated<'a, T>> {
        let place = self.place?;
        let mut rest = behind(data, &self.start)?;
        let mut text = None;
        for (value, end) in &self.values {
            rest = match value {
                Value::Number => {
                    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
                    rest.get(digits..).filter(|_| digits > 0)?
                }
                Value::Text | Value::Letters => {
                    let mut reader = Reader::new(rest, 1);
                    let string = reader.string().ok()?;
                    if *value == Value::Text {
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

    /// Takes an event that was read from `data` for the last one; nothing may differ but its text if `place` is none.
    pub(crate) fn learn(&mut self, data: &str, event: &Event<'_>, place: Option<T>) {
        self.place = None;
        if place.is_none() || self.misses >= MISSES_MAX || data.len() > LENGTH_MAX {
            return;
        }
        self.misses = self.misses.saturating_add(1);
        if self.part(data, event).is_some() {
            self.place = place;
        }
    }

    /// Parts an event at the values that differ.
    fn part(&mut self, data: &str, event: &Event<'_>) -> Option<()> {
        let quoted = |text: Str<'_>| {
            let start = offset_in(data, text.raw())?;
            Some((start.checked_sub(1)?, start.checked_add(text.raw().len())?.checked_add(1)?))
        };
        let text = quoted(event.delta.filter(|text| !text.is_empty())?)?;
        let mut places = vec![(text, Value::Text)];
        if let Some(number) = event.sequence {
            let start = offset_in(data, number)?;
            places.push(((start, start.checked_add(number.len())?), Value::Number));
        }
        if let Some(letters) = event.obfuscation {
            places.push((quoted(letters)?, Value::Letters));
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

/// What stands behind `start`, with which a text begins.
#[inline]
fn behind<'a>(text: &'a str, start: &str) -> Option<&'a str> {
    let (before, rest) = text.split_at_checked(start.len())?;
    is_same(before, start).then_some(rest)
}
