//! The parts of an item, each kind numbered in the order in which its parts begin.
//!
//! An event names its part by an index. vLLM raises that index with every event, and through all items. So an index
//! names a part if the part began with it; any other index stands for the last part.

use std::collections::BTreeMap;

use crate::json::Str;
use crate::protocols::responses::wire::PartKind;

/// How many kinds of parts there are.
const KINDS: usize = 4;

/// The parts of an item.
#[derive(Debug, Default)]
pub(super) struct Parts {
    /// The number of each part, by the index with which it began.
    numbers: BTreeMap<(PartKind, u64), u64>,
    /// How many there are of each kind.
    counts: [u64; KINDS],
}

/// What an event brings of a part.
#[derive(Clone, Copy, Debug)]
pub(super) enum Coming<'a> {
    /// The part begins.
    Start,
    /// More of its text.
    More,
    /// All of its text.
    All(Str<'a>),
    /// None of its text.
    Nothing,
}

impl<'a> Coming<'a> {
    /// All of a text, if there is one.
    pub(super) fn all(text: Option<Str<'a>>) -> Self {
        text.map_or(Self::Nothing, Self::All)
    }
}

impl Parts {
    /// The part that began with this index.
    pub(super) fn get(&self, kind: PartKind, index: u64) -> Option<u64> {
        self.numbers.get(&(kind, index)).copied()
    }

    /// How many parts of a kind there are.
    pub(super) fn count(&self, kind: PartKind) -> u64 {
        self.counts.get(kind as usize).copied().unwrap_or(0)
    }

    /// A part begins.
    pub(super) fn begin(&mut self, kind: PartKind, index: u64) -> u64 {
        let number = self.count(kind);
        self.numbers.insert((kind, index), number);
        self.note(kind, number);
        number
    }

    /// A part with this number has come.
    pub(super) fn note(&mut self, kind: PartKind, number: u64) {
        if let Some(count) = self.counts.get_mut(kind as usize) {
            *count = (*count).max(number.saturating_add(1));
        }
    }
}
