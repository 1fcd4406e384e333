//! Limits on the number of each thing in a request, and of blocks in an answer of an upstream.
//!
//! A byte of JSON can be hundreds of bytes in memory: `{}` is a tool, and `0,` a part of a text. So
//! the size of a body says little about what it takes to read it. These limits do, and they hold
//! while a body is read, before anything is kept of it. Nobody who means well meets them.
//! `docs/security.md` has the table, and a test compares it with this one.

use crate::error::Error;

/// Thing that a request may have many of. All of one kind in a request count together, wherever
/// they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Many {
    /// `messages`; as many as the Messages API allows.
    Messages,
    /// Blocks in messages, `system`, tool results, documents and search results, and changes of
    /// tools.
    Blocks,
    /// `tool_use` blocks. For each, memory holds which result answers it, and its ids on both
    /// sides.
    Calls,
    /// `tool_result` blocks.
    Results,
    /// `tools`, and definitions in changes of tools.
    Tools,
    /// `stop_sequences`: each is looked for in every piece of the answer's text.
    StopSequences,
    /// `input_examples` of tools.
    Examples,
    /// Members in the `configs` of toolsets.
    Configs,
    /// Members that Creole does not know.
    UnknownFields,
    /// Members of objects, and elements of arrays, that are looked at one by one. Inputs and
    /// schemas are not.
    Fields,
}

impl Many {
    /// List of all kinds, in the order of the documentation.
    pub const ALL: [Self; KINDS] = [
        Self::Messages,
        Self::Blocks,
        Self::Calls,
        Self::Results,
        Self::Tools,
        Self::StopSequences,
        Self::Examples,
        Self::Configs,
        Self::UnknownFields,
        Self::Fields,
    ];

    /// Returns the maximum number of these things in a request.
    #[must_use]
    pub const fn most(self) -> u32 {
        match self {
            Self::Messages | Self::Blocks | Self::UnknownFields => 100_000,
            Self::Calls | Self::Results | Self::Tools | Self::Examples => 10_000,
            Self::StopSequences => 256,
            Self::Configs => 1_000,
            Self::Fields => 1_000_000,
        }
    }

    /// Returns the words for the kind in error messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Messages => "messages",
            Self::Blocks => "content blocks",
            Self::Calls => "tool calls",
            Self::Results => "tool results",
            Self::Tools => "tools",
            Self::StopSequences => "stop sequences",
            Self::Examples => "input examples",
            Self::Configs => "tool configs",
            Self::UnknownFields => "unknown fields",
            Self::Fields => "fields",
        }
    }
}

/// Number of kinds in [`Many`].
const KINDS: usize = 10;

/// Number of things that one request has had so far, by kind.
#[derive(Debug, Default)]
pub(crate) struct Counted([u32; KINDS]);

impl Counted {
    /// Counts one more thing of this kind. Returns true if it is one too many.
    #[inline]
    pub(crate) fn is_exceeded_by(&mut self, many: Many) -> bool {
        let Some(count) = self.0.get_mut(many as usize) else { return true };
        *count = count.saturating_add(1);
        *count > many.most()
    }
}

/// Returns the refusal of a request that has too many things of a kind; `path` is that of the first
/// one too many, or of its list.
#[cold]
pub(crate) fn exceeded(path: &str, many: Many) -> Error {
    // Of the whole body there is no path.
    let path = if path.is_empty() { "request" } else { path };
    Error::invalid(format!(
        "{path}: at most {} {} are allowed in one request",
        many.most(),
        many.name()
    ))
    .with_too_many()
}

/// Maximum number of blocks in a whole message of an upstream that speaks Messages. Each block
/// becomes three events.
pub const ANSWER_BLOCKS_MAX: usize = 2048;

/// Returns the failure of an answer that has too many of `what`.
#[cold]
pub(crate) fn answer_exceeded(what: &str) -> Error {
    Error::misbehaved(format!("Upstream sent too many {what}"))
}

#[cfg(test)]
mod tests;
