//! Ids, indices and names by which an event refers to an output item.

use crate::json::{self, Str};
use crate::protocols::responses::wire::{Item, ItemArguments};

/// Ids, index and call by which an event refers to an output item.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EventNames<'a> {
    pub(super) id: Option<&'a str>,
    pub(super) call_id: Option<&'a str>,
    pub(super) output_index: Option<u64>,
    /// Name of the called tool and complete input of the call.
    pub(super) call: Option<(&'a str, &'a str)>,
}

impl<'a> EventNames<'a> {
    /// Creates a reference from the ids and names of an item. `output_index`: the index in the
    /// item's event.
    pub(super) fn of(names: &'a ItemNames, output_index: Option<u64>) -> Self {
        let (id, call_id) = (names.id.as_deref(), names.call_id.as_deref());
        let call = names.tool.as_deref().zip(names.input.as_deref());
        Self { id, call_id, output_index, call }
    }
}

/// Ids and names in an output item, without JSON escapes.
#[derive(Debug)]
pub(super) struct ItemNames {
    pub(super) id: Option<String>,
    pub(super) call_id: Option<String>,
    pub(super) tool: Option<String>,
    input: Option<String>,
}

impl ItemNames {
    /// Reads the ids and names of an output item.
    pub(super) fn of(item: &Item<'_>) -> Self {
        let owned = |text: Option<Str<'_>>| text.map(|text| text.decode().into_owned());
        let input = match item.arguments {
            ItemArguments::None => None,
            ItemArguments::Text(text) => owned(Some(text)),
            ItemArguments::Json(raw) => Some(json::compacted(raw)),
        };
        let (id, call_id) = (owned(item.id), owned(item.call_id));
        Self { id, call_id, tool: owned(item.name), input }
    }
}
