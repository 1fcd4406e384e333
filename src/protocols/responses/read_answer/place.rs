//! Where a text belongs: to which item, as what, and where in it.

use crate::protocols::responses::wire::{ItemKind, Of, PartKind, ThoughtKind};

/// Where a text belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) slot: usize,
    pub(super) of: Of,
    /// Which part of its kind it is; in a summary, the index that the server gives.
    pub(super) part: u64,
}

/// What the part of an item is.
pub(super) fn of_part(kind: PartKind) -> Of {
    match kind {
        PartKind::Text => Of::Text,
        PartKind::Refusal => Of::Refusal,
        PartKind::Summary => Of::Thought(ThoughtKind::Summary),
        PartKind::Raw => Of::Thought(ThoughtKind::Raw),
    }
}

/// The part of an item that a text is; nothing for the input of a call.
pub(super) fn part_kind(of: Of) -> Option<PartKind> {
    Some(match of {
        Of::Text => PartKind::Text,
        Of::Refusal => PartKind::Refusal,
        Of::Thought(ThoughtKind::Summary) => PartKind::Summary,
        Of::Thought(ThoughtKind::Raw) => PartKind::Raw,
        Of::Arguments | Of::Input => return None,
    })
}

/// The kind of the item to which a text belongs.
pub(super) fn kind_of(of: Of) -> ItemKind {
    match of {
        Of::Text | Of::Refusal => ItemKind::Message,
        Of::Thought(_) => ItemKind::Reasoning,
        Of::Arguments => ItemKind::Function,
        Of::Input => ItemKind::Custom,
    }
}
