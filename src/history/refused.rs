//! Blocks that cannot be taken: on the wrong side, of a type that is not known, or of one that only
//! Anthropic has.

use crate::error::Error;
use crate::json::Str;
use crate::model::unknown_tag;

/// Reason why a block cannot be taken.
pub(super) enum NotTaken {
    /// Block that belongs to the other side.
    Side(&'static str),
    /// Block of an unknown type: the real API's words for it, and the known types.
    Tag(String, &'static str),
    /// Thinking block with another text than the model's.
    Modified,
    /// Block of this type, which needs something that only Anthropic has.
    Unsupported(&'static str),
    /// Strict mode.
    Strict(Error),
}

/// The types of blocks that are named where one is not known.
pub(super) const TAGS: &str =
    "'document', 'image', 'search_result', 'text', 'tool_result', 'tool_use'";
pub(super) const SYSTEM_TAGS: &str = "'text', 'tool_addition', 'tool_removal'";

impl From<Error> for NotTaken {
    fn from(error: Error) -> Self {
        Self::Strict(error)
    }
}

impl NotTaken {
    pub(super) fn tag(tag: Str<'_>, known: &'static str) -> Self {
        Self::Tag(unknown_tag(&tag.decode()), known)
    }

    pub(super) fn at(self, message: usize, block: usize, of_user: bool) -> Error {
        let path = format!("messages.{message}.content.{block}");
        match self {
            Self::Side(kind) => {
                let side = if of_user { "assistant" } else { "user" };
                Error::invalid(format!("{path}: `{kind}` blocks can only be in `{side}` messages"))
            }
            Self::Tag(words, known) => Error::invalid([&path, ": ", &words, ": ", known].concat()),
            Self::Modified => Error::invalid(format!(
                "{path}: `thinking` or `redacted_thinking` blocks in the latest assistant message \
                 cannot be modified. These blocks must remain as they were in the original response."
            )),
            Self::Unsupported(kind) => {
                Error::unsupported_kind(&format!("messages[{message}].content[{block}]"), kind)
            }
            Self::Strict(error) => error,
        }
    }
}
