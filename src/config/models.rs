//! Model map: the upstream and model that serve each model of the client.

use std::cmp::Reverse;

use super::{CLAUDE_CODE_ALIAS, Target};
use crate::observe::metrics::ModelEntry;
use crate::text::names::Names;

/// Upstream and model for each model of the client.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelMap {
    pub(super) exact: Names<'static, Target>,
    /// Targets of the entries `PREFIX*`, by prefix, longest first.
    prefixes: Names<'static, Target>,
    /// Lengths of the prefixes, without repetitions, longest first.
    lengths: Vec<usize>,
    pub(super) any: Option<Target>,
}

impl ModelMap {
    /// Returns true if the configuration has no `models`: then every name passes through.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.prefixes.is_empty() && self.any.is_none()
    }

    /// Returns the names that stand in the map in full, for `/v1/models`.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.exact.keys()
    }

    /// Returns the entries with a `*`: the name before it, and the target.
    pub(crate) fn wildcards(&self) -> impl Iterator<Item = (&str, &Target)> {
        self.prefixes.iter().chain(self.any.as_ref().map(|target| ("", target)))
    }

    /// Returns the targets of all entries.
    pub(super) fn targets_mut(&mut self) -> impl Iterator<Item = &mut Target> {
        self.exact.values_mut().chain(self.prefixes.values_mut()).chain(&mut self.any)
    }

    /// Returns the entry that serves `model`, as a label for metrics.
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

    /// Returns `model` without what clients put around a name: [`CLAUDE_CODE_ALIAS`], and the mark
    /// `[1m]` by which Claude Code and others choose a longer context, which they send in some
    /// places only. An entry of that very name is found first.
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

    /// Returns the target of requests for `model`.
    pub(crate) fn target(&self, model: &str) -> Option<&Target> {
        let model = self.plain(model);
        self.exact
            .get(model)
            .or_else(|| self.prefix(model).map(|(_, target)| target))
            .or(self.any.as_ref())
    }

    /// Sets all prefixes, which differ from each other.
    pub(super) fn set_prefixes(&mut self, mut prefixes: Vec<(String, Target)>) {
        prefixes.sort_by_key(|(prefix, _)| Reverse(prefix.len()));
        self.lengths = prefixes.iter().map(|(prefix, _)| prefix.len()).collect();
        self.lengths.dedup();
        for (prefix, target) in prefixes {
            self.prefixes.insert(prefix, target);
        }
    }

    /// Returns the longest prefix that `model` has, with its target.
    fn prefix<'a>(&self, model: &'a str) -> Option<(&'a str, &Target)> {
        self.lengths.iter().find_map(|length| {
            let prefix = model.get(..*length)?;
            Some((prefix, self.prefixes.get(prefix)?))
        })
    }
}
