//! Numbers of the parts of an item, counted for each kind of part in the order in which the parts
//! begin.
//!
//! An event refers to a part by an index. vLLM increments this index with every event, across all
//! items. So an index identifies a part only if the part began with this index; any other index
//! stands for the last part.

use std::collections::BTreeMap;

use crate::json::Str;
use crate::protocols::responses::wire::PartKind;

/// Number of kinds of parts that an item can have.
const KINDS: usize = 4;

/// Parts of one item that have begun.
#[derive(Debug, Default)]
pub(super) struct OpenParts {
    /// Number of each part, by the index in the event with which the part began.
    numbers: BTreeMap<(PartKind, u64), u64>,
    /// Number of parts of each kind that have begun.
    counts: [u64; KINDS],
}

/// Portion of a part's text that an event contains.
#[derive(Clone, Copy, Debug)]
pub(super) enum Coming<'a> {
    /// Beginning of a part, perhaps with text.
    Start,
    /// Next piece of the part's text.
    More,
    /// Whole text of the part.
    All(Str<'a>),
    /// No text, for example a source of the text, or an end event without the text.
    Nothing,
}

impl<'a> Coming<'a> {
    /// Returns [`Coming::All`] for a text, and [`Coming::Nothing`] without a text.
    pub(super) fn all(text: Option<Str<'a>>) -> Self {
        text.map_or(Self::Nothing, Self::All)
    }
}

impl OpenParts {
    /// Returns the number of the part that began in an event with the part index `index`.
    pub(super) fn get(&self, kind: PartKind, index: u64) -> Option<u64> {
        self.numbers.get(&(kind, index)).copied()
    }

    /// Returns the number of parts of the kind `kind` that have begun.
    pub(super) fn count(&self, kind: PartKind) -> u64 {
        self.counts.get(kind as usize).copied().unwrap_or(0)
    }

    /// Begins the next part of the kind `kind`, under the part index `index`, and returns the
    /// number of the part.
    pub(super) fn begin(&mut self, kind: PartKind, index: u64) -> u64 {
        let number = self.count(kind);
        self.numbers.insert((kind, index), number);
        self.note(kind, number);
        number
    }

    /// Raises the count of parts so that the count includes the part with this number.
    pub(super) fn note(&mut self, kind: PartKind, number: u64) {
        if let Some(count) = self.counts.get_mut(kind as usize) {
            *count = (*count).max(number.saturating_add(1));
        }
    }
}
