//! Facts about tool calls, learned from the ids, names and indices of their fragments. The facts
//! show which call a fragment belongs to.

use std::ops::Deref;

use crate::assemble::call::CallParts;

/// Facts about one tool call, learned from its fragments.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CallFacts {
    /// Index of the choice and index of the call, if the fragments of the call have an index.
    key: Option<(u64, u64)>,
    /// True if the call was sent as `function_call`.
    legacy: bool,
    /// True if a later fragment of the call had another id. Then a changed id does not mean that
    /// another call begins.
    other_ids: bool,
    /// True if a later fragment of the call repeated the name.
    named: bool,
    /// True if a later fragment of the call had no name. Then a name means that another call
    /// begins.
    nameless: bool,
    /// True if a fragment of this call had another index.
    other_indices: bool,
}

impl CallFacts {
    pub(super) fn new(key: Option<(u64, u64)>, legacy: bool) -> Self {
        Self { key, legacy, ..Self::default() }
    }

    pub(super) fn key(&self) -> Option<(u64, u64)> {
        self.key
    }

    pub(super) fn is_legacy(&self) -> bool {
        self.legacy
    }

    /// Returns true if a later fragment of the call had another id.
    pub(super) fn has_other_ids(&self) -> bool {
        self.other_ids
    }

    /// Returns true if a later fragment of the call repeated the name.
    pub(super) fn is_named_again(&self) -> bool {
        self.named
    }

    /// Returns true if a later fragment of the call had no name.
    pub(super) fn is_nameless(&self) -> bool {
        self.nameless
    }

    /// Returns true if a fragment of the call had another index.
    pub(super) fn has_other_indices(&self) -> bool {
        self.other_indices
    }

    /// Records which of id, name and index a fragment of `call` repeats. Ids and names of the first
    /// fragment, and of fragments after the complete input, are ignored.
    pub(super) fn learn(
        &mut self,
        call: &CallParts,
        id: Option<&str>,
        has_name: bool,
        key: Option<(u64, u64)>,
    ) {
        if !call.name().is_empty() && !call.input().is_object() {
            self.other_ids |= id.is_some() && call.id().is_some() && call.id() != id;
            self.named |= has_name;
            self.nameless |= !has_name;
        }
        self.other_indices |= key.is_some() && self.key.is_some() && self.key != key;
        self.key = self.key.or(key);
    }
}

/// Tool call that a fragment may belong to, with the facts about the call.
#[derive(Clone, Copy)]
pub(super) struct Candidate<'c> {
    call: &'c CallParts,
    known: &'c CallFacts,
}

impl Candidate<'_> {
    pub(super) fn known(&self) -> &CallFacts {
        self.known
    }
}

impl Deref for Candidate<'_> {
    type Target = CallParts;

    fn deref(&self) -> &CallParts {
        self.call
    }
}

/// Tool calls of an answer, with the facts about each call.
#[derive(Clone, Copy)]
pub(super) struct Candidates<'c> {
    calls: &'c [CallParts],
    known: &'c [CallFacts],
}

impl<'c> Candidates<'c> {
    pub(super) fn new(calls: &'c [CallParts], known: &'c [CallFacts]) -> Self {
        debug_assert_eq!(calls.len(), known.len());
        Self { calls, known }
    }

    pub(super) fn len(self) -> usize {
        self.calls.len()
    }

    pub(super) fn get(self, index: usize) -> Option<Candidate<'c>> {
        Some(Candidate { call: self.calls.get(index)?, known: self.known.get(index)? })
    }

    pub(super) fn last(self) -> Option<Candidate<'c>> {
        self.get(self.len().checked_sub(1)?)
    }

    /// Returns the position of the last call for which `holds` returns true.
    pub(super) fn rposition(self, holds: impl Fn(Candidate<'c>) -> bool) -> Option<usize> {
        let pairs = self.calls.iter().zip(self.known);
        pairs.map(|(call, known)| Candidate { call, known }).rposition(holds)
    }
}
