//! Names of items, by which an event tells its item.

use crate::json::{self, Str};
use crate::protocols::responses::wire::{Arguments, Item};

/// Names by which an event tells its item.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Named<'a> {
    pub(super) id: Option<&'a str>,
    pub(super) call_id: Option<&'a str>,
    pub(super) output_index: Option<u64>,
    /// Tool and input of a call that is complete.
    pub(super) call: Option<(&'a str, &'a str)>,
}

impl<'a> Named<'a> {
    /// Borrows the names of an item, which came at `output_index`.
    pub(super) fn of(names: &'a ItemNames, output_index: Option<u64>) -> Self {
        let (id, call_id) = (names.id.as_deref(), names.call_id.as_deref());
        let call = names.tool.as_deref().zip(names.input.as_deref());
        Self { id, call_id, output_index, call }
    }
}

/// Names in an item, decoded.
#[derive(Debug)]
pub(super) struct ItemNames {
    pub(super) id: Option<String>,
    pub(super) call_id: Option<String>,
    pub(super) tool: Option<String>,
    input: Option<String>,
}

impl ItemNames {
    /// Reads the names of an item.
    pub(super) fn of(item: &Item<'_>) -> Self {
        let owned = |text: Option<Str<'_>>| text.map(|text| text.decode().into_owned());
        let input = match item.arguments {
            Arguments::None => None,
            Arguments::Text(text) => owned(Some(text)),
            Arguments::Json(raw) => Some(json::compacted(raw)),
        };
        let (id, call_id) = (owned(item.id), owned(item.call_id));
        Self { id, call_id, tool: owned(item.name), input }
    }
}
