//! The calls of one answer.

use std::slice::{Iter, IterMut};

use super::fragment::Fragment;
use super::{Call, CallState};
use crate::carry::tool_id;
use crate::error::Error;
use crate::ids::Ids;
use crate::json_schema::input::Budget;
use crate::model::request_context::Tools;
use crate::text::names::NameSet;

/// Most calls in an answer. No upstream allows more in its requests, so they could not come back.
const CALLS_MAX: usize = 1024;

/// All calls that an answer has made, in the order in which they came.
#[derive(Debug)]
pub(crate) struct Calls {
    list: Vec<Call>,
    /// Positions of those that earlier entries of the same `tool_calls` list have named.
    named_in_list: Vec<usize>,
    /// The client's ids in the history and in this answer.
    ids_used: NameSet<'static>,
    /// Bytes of their ids, names and inputs.
    held_bytes: usize,
    /// One was left out by `invalid_tool_call: hold`, or because it never got a name.
    pub(crate) left_out_invalid: bool,
    /// One was left out because a guard withheld its tool.
    pub(crate) left_out_by_guard: bool,
    /// For comparing inputs with the schemas of their tools.
    pub(crate) schema_budget: Budget,
}

impl Calls {
    /// No calls yet. `ids_used` are the client's ids in the history.
    pub(crate) fn new(ids_used: NameSet<'static>) -> Self {
        Self {
            list: Vec::new(),
            named_in_list: Vec::new(),
            ids_used,
            held_bytes: 0,
            left_out_invalid: false,
            left_out_by_guard: false,
            schema_budget: Budget::default(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(crate) fn get(&self, index: usize) -> Option<&Call> {
        self.list.get(index)
    }

    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut Call> {
        self.list.get_mut(index)
    }

    pub(crate) fn last(&self) -> Option<&Call> {
        self.list.last()
    }

    pub(crate) fn iter(&self) -> Iter<'_, Call> {
        self.list.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> IterMut<'_, Call> {
        self.list.iter_mut()
    }

    /// Bytes that are kept until the calls can be sent.
    pub(crate) fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Another `tool_calls` list begins.
    pub(crate) fn begin_list(&mut self) {
        self.named_in_list.clear();
    }

    /// The call that a fragment belongs to; nothing if it begins one.
    pub(super) fn find(&self, fragment: &Fragment<'_>, tools: &Tools) -> Option<usize> {
        fragment.find(&self.list, &self.named_in_list, tools)
    }

    /// An entry of the list names the call at `index`.
    pub(super) fn note_named(&mut self, index: usize) {
        self.named_in_list.push(index);
    }

    /// Adds a call; gives its position.
    pub(super) fn push(&mut self, call: Call) -> Result<usize, Error> {
        let index = self.list.len();
        if index >= CALLS_MAX {
            return Err(Error::misbehaved("Upstream sent too many tool calls"));
        }
        self.list.push(call);
        Ok(index)
    }

    /// Lets `change` add to the call at `index`.
    pub(crate) fn extend<T>(
        &mut self,
        index: usize,
        change: impl FnOnce(&mut Call) -> T,
    ) -> Option<T> {
        let call = self.list.get_mut(index)?;
        let before = call.held_bytes();
        let result = change(call);
        self.held_bytes = self.held_bytes.saturating_sub(before).saturating_add(call.held_bytes());
        Some(result)
    }

    /// Whether a call is not complete, of those that the client gets.
    pub(crate) fn has_half(&self) -> bool {
        self.list.iter().any(|call| call.state != CallState::LeftOut && call.input.is_half())
    }

    /// The client's id of the call at `index`.
    pub(crate) fn client_id(&mut self, index: usize, ids: &Ids) -> String {
        let Some(call) = self.list.get_mut(index) else { return String::new() };
        if let Some(id) = &call.client_id {
            return id.clone();
        }
        let id = tool_id::encode(call.upstream_id(index, ids), &self.ids_used);
        self.ids_used.add(id.clone());
        call.client_id = Some(id.clone());
        id
    }

    /// Whether the client knows a call by this id.
    pub(crate) fn is_id(&self, id: &str) -> bool {
        self.ids_used.contains(id)
    }

    /// An input of which nobody said whose it is belongs to the call before it, if that has none.
    pub(crate) fn give_nameless_inputs(&mut self) {
        for at in 1..self.list.len() {
            if let Some([named, nameless]) = self.list.get_mut(at.saturating_sub(1)..=at)
                && nameless.name.is_empty()
                && nameless.input.is_object()
                && !named.name.is_empty()
                && !named.input.has_text()
            {
                std::mem::swap(&mut named.input, &mut nameless.input);
            }
        }
    }
}
