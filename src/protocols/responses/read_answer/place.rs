//! Position of a text in an answer: the item, the kind of text, and the number of the part.

use crate::protocols::responses::wire::{ItemKind, Of, PartKind, ThoughtKind};

/// Position of a text in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TextPlace {
    pub(super) slot: usize,
    pub(super) of: Of,
    /// Number of the part among the item's parts of the same kind. In a summary, the index that the
    /// server sends.
    pub(super) part: u64,
}

/// Returns the kind of text that a part of the kind `kind` contains.
pub(super) fn of_part(kind: PartKind) -> Of {
    match kind {
        PartKind::Text => Of::Text,
        PartKind::Refusal => Of::Refusal,
        PartKind::Summary => Of::Thought(ThoughtKind::Summary),
        PartKind::Raw => Of::Thought(ThoughtKind::Raw),
    }
}

/// Returns the kind of part for a kind of text. Returns `None` for the input of a call, which is
/// not in a part.
pub(super) fn part_kind(of: Of) -> Option<PartKind> {
    Some(match of {
        Of::Text => PartKind::Text,
        Of::Refusal => PartKind::Refusal,
        Of::Thought(ThoughtKind::Summary) => PartKind::Summary,
        Of::Thought(ThoughtKind::Raw) => PartKind::Raw,
        Of::Arguments | Of::Input => return None,
    })
}

/// Returns the kind of item to which a kind of text belongs.
pub(super) fn kind_of(of: Of) -> ItemKind {
    match of {
        Of::Text | Of::Refusal => ItemKind::Message,
        Of::Thought(_) => ItemKind::Reasoning,
        Of::Arguments => ItemKind::Function,
        Of::Input => ItemKind::Custom,
    }
}
