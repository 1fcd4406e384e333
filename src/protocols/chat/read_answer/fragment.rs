//! Search for the tool call that a streamed fragment belongs to.
//!
//! Fragments name their call by index, by id, by name, or not at all. Some servers send the same
//! index or id for every call, or a different id for each fragment of a call. Then facts about
//! earlier fragments ([`CallFacts`]) and the inputs distinguish the calls.

use std::borrow::Cow;

use super::known::{CallFacts, Candidate, Candidates};
use crate::assemble::call::CallParts;
use crate::assemble::tool_input::{Compared, is_half};
use crate::model::request_context::Tools;
use crate::protocols::chat::wire::{Arguments, ToolCall};

/// Tool call, or a fragment of a tool call, as an upstream sent the entry.
pub(super) struct Fragment<'a> {
    entry: &'a ToolCall<'a>,
    id: Option<Cow<'a, str>>,
    name: Option<Cow<'a, str>>,
    /// Index of the choice and index of the call, if the fragment has an index.
    key: Option<(u64, u64)>,
    /// True if the fragment came as `function_call`, which has no index.
    legacy: bool,
}

/// Conflict between the name in a fragment and the name of the call that the fragment belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contradiction {
    None,
    /// Conflict: the name differs from the call's name, but is not the name of another tool.
    Name,
    /// Conflict: the name is the name of another tool, so the fragment's input is for the other
    /// tool, too.
    OtherTool,
}

impl<'a> Fragment<'a> {
    pub(super) fn new(choice: u64, entry: &'a ToolCall<'a>, legacy: bool) -> Self {
        Self {
            entry,
            id: entry.id.map(|id| id.decode()),
            name: entry.name.map(|name| name.decode()),
            key: entry.index.map(|index| (choice, index)).filter(|_| !legacy),
            legacy,
        }
    }

    /// Returns the initial facts about the call that this fragment begins.
    pub(super) fn begun(&self) -> CallFacts {
        CallFacts::new(self.key, self.legacy)
    }

    /// Returns true if the tool call fragment has a name.
    pub(super) fn has_name(&self) -> bool {
        self.name.is_some()
    }

    /// Adds the fragment to the tool call `call`. Returns the conflict between the fragment's name
    /// and the name of the call.
    pub(super) fn give(
        &self,
        call: &mut CallParts,
        known: &mut CallFacts,
        tools: &Tools,
        scratch: &mut String,
    ) -> Contradiction {
        known.learn(call, self.id.as_deref(), self.name.is_some(), self.key);
        call.receive_id(self.id.as_deref());
        let mut contradiction = Contradiction::None;
        if let Some(name) = &self.name
            && call.receive_name(name, tools)
        {
            let is_other = tools.meant_by(name).is_some() && call.contradicts(name, tools);
            contradiction = if is_other { Contradiction::OtherTool } else { Contradiction::Name };
        }
        if contradiction == Contradiction::OtherTool {
            return contradiction;
        }
        if self.entry.custom {
            call.set_custom();
        }
        match self.entry.arguments {
            Arguments::None => {}
            Arguments::Text(text) => call.receive_input(text.raw(), scratch),
            Arguments::Json(raw) => call.receive_json(raw, self.is_named()),
        }
        contradiction
    }

    fn is_named(&self) -> bool {
        self.name.as_ref().is_some_and(|name| !name.is_empty())
    }

    /// Returns the position of the call that the fragment belongs to, or `None` if the fragment
    /// begins a call. `named`: positions of calls named by earlier fragments of the same list.
    pub(super) fn find(
        &self,
        calls: Candidates<'_>,
        named: &[usize],
        tools: &Tools,
    ) -> Option<usize> {
        // Most fragments name the last call by its index alone.
        if let (Some(key), None, None) = (self.key, &self.id, &self.name)
            && calls.last().is_some_and(|last| last.known().key() == Some(key))
        {
            return calls.len().checked_sub(1);
        }
        let found = match self.legacy {
            true => calls.rposition(|call| call.known().is_legacy()),
            false => self.find_named(calls, tools),
        };
        let is_part = |at: &usize| {
            let call = calls.get(*at);
            let is_last = at.saturating_add(1) == calls.len();
            let is_named = named.contains(at);
            call.is_some_and(|call| !self.begins_another(call, is_last, is_named, tools))
        };
        found.filter(is_part).or_else(|| calls.rposition(|call| self.is_twin(call)))
    }

    /// Returns the position of the known call that the fragment's index, id or name refers to, if
    /// any.
    fn find_named(&self, calls: Candidates<'_>, tools: &Tools) -> Option<usize> {
        // If several calls have the same index, the id distinguishes them.
        let by_both = |key| {
            let id = self.id.as_deref()?;
            calls.rposition(|call| call.known().key() == Some(key) && call.id() == Some(id))
        };
        let by_key =
            |key| by_both(key).or_else(|| calls.rposition(|call| call.known().key() == Some(key)));
        if let Some(at) = self.key.and_then(by_key) {
            return Some(at);
        }
        let by_id = |id: &str| calls.rposition(|call| call.id() == Some(id));
        let known = self.id.as_deref().and_then(by_id);
        let last = calls.len().checked_sub(1)?;
        if self.key.is_some() {
            // A new index means a new call, unless the index came late or has changed.
            let at = known.unwrap_or(last);
            let call = calls.get(at)?;
            let joins = match (known, &self.name) {
                // Some servers give every call the same id, and some send one call under several
                // indices.
                (Some(_), Some(name)) => {
                    call.known().key().is_none()
                        || (self.goes_on(call) || self.compare(call) == Some(Compared::Same))
                            && !call.contradicts(name, tools)
                            && !self.is_second_head(call)
                }
                (Some(_), None) => true,
                // If index and id are both new, only the input shows that the fragment is part of a
                // call. A whole input belongs to a call whose name may come later.
                (None, None) => {
                    let is_part = || call.input().is_half() || self.begins_input();
                    self.goes_on(call) && (self.id.is_none() || self.says_more(call) && is_part())
                }
                // The input of a new call begins with `{`, so other text continues the known call.
                (None, Some(name)) => {
                    let is_part = !self.begins_with_brace() && self.says_more(call);
                    is_part
                        && call.name() == *name
                        && call.input().is_half()
                        && !self.is_excluded(call)
                }
            };
            return joins.then_some(at);
        }
        if known.is_some() {
            return known;
        }
        if self.id.is_none() && self.name.is_none() {
            // Some servers leave out index 0: a fragment without an index belongs to the call
            // without one.
            let is_bare =
                |call: Candidate<'_>| call.known().key().is_none() && !call.known().is_legacy();
            return Some(calls.rposition(is_bare).unwrap_or(last));
        }
        // The fragment has an id that may change with each fragment, or only a name.
        calls.get(last).is_some_and(|call| self.continues(call)).then_some(last)
    }

    /// Returns true if the fragment continues the last call, although the fragment has no index,
    /// and an unknown id or no id.
    fn continues(&self, last: Candidate<'_>) -> bool {
        let (other_ids, named) = (last.known().has_other_ids(), last.known().is_named_again());
        let is_end = |pattern: bool| pattern && self.only_repeats(last);
        let Some(name) = &self.name else {
            let is_open = !last.input().is_object() || last.input().can_be_replaced();
            return is_open || is_end(other_ids);
        };
        if last.name() != *name {
            return false;
        }
        match (&self.id, last.id()) {
            (None, None) if is_end(named) => true,
            (Some(_), _) if is_end(other_ids) => !self.is_named_anew(last),
            // The same name twice, without arguments, means two calls.
            (None, None) => {
                !last.input().is_object()
                    && (self.entry.arguments != Arguments::None || last.input().has_text())
            }
            // A server that sends ids sends a different id for each call.
            (None, Some(_)) => self.compare(last) != Some(Compared::Other),
            (Some(_), _) => {
                !last.input().is_object()
                    && (self.fits_end(last) && !self.is_excluded(last) || self.is_within(last))
            }
        }
    }

    /// Returns true if the fragment begins another call although its index or id is that of `call`.
    ///
    /// Some servers give every call index 0, and some give every call the same id, or no id. Then a
    /// name distinguishes calls, but only if the input of `call` is complete or empty. `is_last`:
    /// `call` is the last call; indices distinguish earlier calls. `is_named`: an earlier fragment
    /// of the same list has named `call`.
    fn begins_another(
        &self,
        call: Candidate<'_>,
        is_last: bool,
        is_named: bool,
        tools: &Tools,
    ) -> bool {
        let Some(name) = self.name.as_deref().filter(|_| !call.name().is_empty()) else {
            return false;
        };
        let are_tools = || tools.meant_by(name).is_some() && tools.meant_by(call.name()).is_some();
        let other_name = call.contradicts(name, tools);
        let may_be_two = || call.input().has_text() || are_tools();
        if is_named && (other_name || may_be_two() && !self.goes_on_in_list(call)) {
            return true;
        }
        // An id that equals the name does not identify a call.
        let id = self.id.as_deref().filter(|id| *id != name);
        let known = call.id().filter(|id| *id != call.name());
        let other_id = id.is_some() && known.is_some() && known != id;
        if !call.input().is_object() && (!call.input().may_be_object() || self.fits_end(call)) {
            return match other_name {
                true => are_tools() || other_id && !call.input().has_text(),
                false => other_id && self.is_excluded(call),
            };
        }
        let no_ids = id.is_none() && known.is_none();
        other_name
            || other_id && !(call.known().has_other_ids() && self.only_repeats(call))
            || (no_ids || other_id && is_last) && self.is_named_anew(call)
            || no_ids && self.is_input_anew(call)
    }

    /// Returns true if the fragment continues `call`, although an earlier fragment of the same list
    /// has named `call`. Servers that send several tokens at once put a fragment for each token
    /// into one list.
    fn goes_on_in_list(&self, call: Candidate<'_>) -> bool {
        // An id that equals the name does not identify a call.
        let id = self.id.as_deref().filter(|id| Some(*id) != self.name.as_deref());
        let known = call.id();
        let begins = || matches!(self.entry.arguments, Arguments::Text(text) if !text.is_blank());
        let is_same = id.is_some() && id == known;
        !call.input().is_object()
            && match call.input().has_text() {
                true => {
                    call.input().is_half()
                        && (is_same && !self.is_excluded(call)
                            || id.is_none() && self.fits_end(call))
                }
                false => is_same && self.key == call.known().key() && begins(),
            }
    }

    /// Returns true if both `call` and this fragment, under another index, have a name and no input
    /// yet. Then they are two calls with the same id.
    fn is_second_head(&self, call: Candidate<'_>) -> bool {
        let says_nothing = match self.entry.arguments {
            Arguments::None => true,
            Arguments::Text(text) => text.is_blank(),
            Arguments::Json(_) => false,
        };
        says_nothing
            && self.name.as_deref() == Some(call.name())
            && !call.input().has_text()
            && !call.known().has_other_indices()
    }

    /// Returns true if the fragment repeats the whole `call`. Some servers send a call twice, as
    /// `function_call` and then in `tool_calls`.
    fn is_twin(&self, call: Candidate<'_>) -> bool {
        !self.legacy
            && call.known().is_legacy()
            && self.name.as_deref() == Some(call.name())
            && self.only_repeats(call)
    }

    /// Returns true if the input of `call` is not complete and the fragment can continue the input.
    fn goes_on(&self, call: Candidate<'_>) -> bool {
        let input = &call.input();
        !input.is_object()
            && match self.entry.arguments {
                Arguments::None => true,
                // Text that begins with `{` may begin another call. If the index of `call` has
                // changed before, only text that cannot follow the call's input begins another
                // call.
                Arguments::Text(_) if call.known().has_other_indices() => !self.is_excluded(call),
                Arguments::Text(_) => !input.has_text() || self.fits_end(call),
                Arguments::Json(_) => !input.has_text(),
            }
    }

    /// Returns true if the input in the tool call fragment is text for which `holds` returns true.
    fn is_text(&self, holds: impl FnOnce(&str) -> bool) -> bool {
        matches!(self.entry.arguments, Arguments::Text(text) if holds(&text.decode()))
    }

    /// Returns true if the fragment has text for the input of `call`. White space counts only if
    /// the input has already begun.
    fn says_more(&self, call: Candidate<'_>) -> bool {
        matches!(self.entry.arguments, Arguments::Text(text)
            if !text.is_blank() || call.input().has_text() && !text.is_empty())
    }

    /// Returns true if the fragment's input is text that begins with `{`, or has only white space
    /// so far.
    fn begins_with_brace(&self) -> bool {
        self.is_text(|text| text.trim_start().bytes().next().is_none_or(|first| first == b'{'))
    }

    /// Returns true if the fragment's input is text that can follow the input of `call`.
    fn fits_end(&self, call: Candidate<'_>) -> bool {
        self.is_text(|text| call.input().goes_on_with(text))
    }

    /// Returns true if the fragment's input is text that can be in the middle of the input of
    /// `call`, although the text begins with `{`.
    fn is_within(&self, call: Candidate<'_>) -> bool {
        self.is_text(|text| call.input().can_hold(text))
    }

    /// Returns true if the fragment's input is the first, incomplete part of a JSON object. The
    /// server then sends a name with each part.
    fn begins_input(&self) -> bool {
        self.is_text(is_half)
    }

    /// Returns true if the fragment's input is text that can neither follow the input of `call`,
    /// nor repeat and continue the input.
    fn is_excluded(&self, call: Candidate<'_>) -> bool {
        self.is_text(|text| call.input().excludes(text))
    }

    /// Compares the fragment's input with the input of `call`. Returns `None` while the input of
    /// `call` is not complete.
    fn compare(&self, call: Candidate<'_>) -> Option<Compared> {
        call.input().is_object().then(|| match self.entry.arguments {
            Arguments::None => Compared::Nothing,
            Arguments::Text(text) => call.input().compare(&text.decode()),
            Arguments::Json(raw) => call.input().compare(raw),
        })
    }

    /// Returns true if the input of `call` is complete and the fragment's input is only white space
    /// or the same input again.
    fn only_repeats(&self, call: Candidate<'_>) -> bool {
        matches!(self.compare(call), Some(Compared::Nothing | Compared::Same))
    }

    /// Returns true if the fragment's input belongs to another call. The input then differs from
    /// the complete input of `call`, or starts a new input.
    fn is_input_anew(&self, call: Candidate<'_>) -> bool {
        match self.compare(call) {
            Some(Compared::Other) => true,
            Some(Compared::More) => {
                call.known().is_named_again()
                    && self.is_text(|text| call.input().is_followed_by(text))
            }
            _ => false,
        }
    }

    /// Returns true if the fragment may begin a call, or may only repeat the name of `last` after
    /// the end of `last`. Both are possible if ids change with each fragment.
    pub(super) fn may_only_repeat(&self, last: Candidate<'_>) -> bool {
        let same_name = self.name.as_deref() == Some(last.name());
        let same_key = self.key.is_none() || self.key == last.known().key();
        let only_named = same_name && self.compare(last) == Some(Compared::Nothing);
        last.known().has_other_ids() && same_key && only_named
    }

    /// Returns true if the fragment repeats the name of `call` and thereby begins another call,
    /// because no later fragment of `call` had the name.
    fn is_named_anew(&self, call: Candidate<'_>) -> bool {
        let known = call.known();
        known.is_nameless() && !known.is_named_again() && self.compare(call) != Some(Compared::Same)
    }
}
