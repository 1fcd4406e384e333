//! Place of a text in an answer: its item, its kind, and its number there.

use crate::protocols::responses::wire::{ItemKind, Of, PartKind, ThoughtKind};

/// Place of a text in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) slot: usize,
    pub(super) of: Of,
    /// Number of the part among those of its kind; in a summary, the index that the server gives.
    pub(super) part: u64,
}

/// Returns the kind of text that a part has.
pub(super) fn of_part(kind: PartKind) -> Of {
    match kind {
        PartKind::Text => Of::Text,
        PartKind::Refusal => Of::Refusal,
        PartKind::Summary => Of::Thought(ThoughtKind::Summary),
        PartKind::Raw => Of::Thought(ThoughtKind::Raw),
    }
}

/// Returns the kind of part that has such a text; `None` for the input of a call, which is in no
/// part.
pub(super) fn part_kind(of: Of) -> Option<PartKind> {
    Some(match of {
        Of::Text => PartKind::Text,
        Of::Refusal => PartKind::Refusal,
        Of::Thought(ThoughtKind::Summary) => PartKind::Summary,
        Of::Thought(ThoughtKind::Raw) => PartKind::Raw,
        Of::Arguments | Of::Input => return None,
    })
}

/// Returns the kind of item to which such a text belongs.
pub(super) fn kind_of(of: Of) -> ItemKind {
    match of {
        Of::Text | Of::Refusal => ItemKind::Message,
        Of::Thought(_) => ItemKind::Reasoning,
        Of::Arguments => ItemKind::Function,
        Of::Input => ItemKind::Custom,
    }
}
