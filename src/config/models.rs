//! Model map: the upstream and model that serve each model name of clients.

use std::cmp::Reverse;

use super::{CLAUDE_CODE_ALIAS, Target};
use crate::observe::metrics::ModelEntry;
use crate::text::names::Names;

/// Map from each model name of clients to an upstream and its model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelMap {
    pub(super) exact: Names<'static, Target>,
    /// Targets of the entries `PREFIX*`, by prefix, longest first.
    prefixes: Names<'static, Target>,
    /// Lengths of the prefixes, without duplicates, longest first.
    lengths: Vec<usize>,
    pub(super) any: Option<Target>,
}

impl ModelMap {
    /// Returns true if the configuration has no `models`, so that every model name passes through.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.prefixes.is_empty() && self.any.is_none()
    }

    /// Returns the complete model names in the map, without entries that have a `*`, for
    /// `/v1/models`.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.exact.keys()
    }

    /// Returns the entries with a `*`: the prefix before it, and the target.
    pub(crate) fn wildcards(&self) -> impl Iterator<Item = (&str, &Target)> {
        self.prefixes.iter().chain(self.any.as_ref().map(|target| ("", target)))
    }

    /// Returns the targets of all entries of the map.
    pub(super) fn targets(&self) -> impl Iterator<Item = &Target> {
        self.exact.values().chain(self.wildcards().map(|(_, target)| target))
    }

    /// Returns the targets of all entries of the map, to change them.
    pub(super) fn targets_mut(&mut self) -> impl Iterator<Item = &mut Target> {
        self.exact.values_mut().chain(self.prefixes.values_mut()).chain(&mut self.any)
    }

    /// Returns the entry that matches `model`, for a label in metrics.
    #[must_use]
    pub fn entry<'a>(&self, model: &'a str) -> ModelEntry<'a> {
        let model = self.plain(model);
        match self.prefix(model) {
            _ if self.exact.contains(model) => ModelEntry::Entry(model.into()),
            Some((prefix, _)) => ModelEntry::Entry(format!("{prefix}*").into()),
            None if self.is_empty() => ModelEntry::NoMap,
            None => ModelEntry::Other,
        }
    }

    /// Returns `model` without the additions of clients: [`CLAUDE_CODE_ALIAS`], and the suffix
    /// `[1m]`. Claude Code and others use this suffix for a longer context, but do not always send
    /// it. If the map has an entry with the complete name, nothing is removed.
    pub(super) fn plain<'a>(&self, model: &'a str) -> &'a str {
        let mut plain = model;
        while !self.exact.contains(plain) {
            let mark = plain.len().checked_sub(4).and_then(|at| plain.split_at_checked(at));
            plain = match (mark, plain.strip_prefix(CLAUDE_CODE_ALIAS)) {
                (Some((before, mark)), _)
                    if mark.eq_ignore_ascii_case("[1m]") && !before.is_empty() =>
                {
                    before
                }
                (_, Some(name)) if !name.is_empty() => name,
                _ => break,
            };
        }
        plain
    }

    /// Returns the target of requests for `model`, if the map has a matching entry.
    pub(crate) fn target(&self, model: &str) -> Option<&Target> {
        let model = self.plain(model);
        self.exact
            .get(model)
            .or_else(|| self.prefix(model).map(|(_, target)| target))
            .or(self.any.as_ref())
    }

    /// Sets all entries of the form `PREFIX*`. Their prefixes must differ.
    pub(super) fn set_prefixes(&mut self, mut prefixes: Vec<(String, Target)>) {
        prefixes.sort_by_key(|(prefix, _)| Reverse(prefix.len()));
        self.lengths = prefixes.iter().map(|(prefix, _)| prefix.len()).collect();
        self.lengths.dedup();
        for (prefix, target) in prefixes {
            self.prefixes.insert(prefix, target);
        }
    }

    /// Returns the longest prefix entry that matches `model`, with its target.
    fn prefix<'a>(&self, model: &'a str) -> Option<(&'a str, &Target)> {
        self.lengths.iter().find_map(|length| {
            let prefix = model.get(..*length)?;
            Some((prefix, self.prefixes.get(prefix)?))
        })
    }
}
