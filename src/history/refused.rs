//! Errors for blocks that are refused: blocks of the wrong side, of an unknown type, or of a type
//! that only Anthropic supports.

use crate::error::Error;
use crate::json::Str;
use crate::model::unknown_tag;

/// Reason for refusing a block.
pub(super) enum NotTaken {
    /// Block that belongs to the other side of the conversation; holds the block's type.
    Side(&'static str),
    /// Block of an unknown type; holds the real API's error message, and the list of known types.
    Tag(String, &'static str),
    /// Thinking block whose text the client changed.
    Modified,
    /// Block of a type that only Anthropic supports; holds the block's type.
    Unsupported(&'static str),
    /// Error that strict mode raises.
    Strict(Error),
}

/// List of block types for the error about an unknown type.
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
