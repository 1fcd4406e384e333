//! Limits on the number of messages, blocks, tools and other elements in a request, and of blocks
//! in an answer of an upstream.
//!
//! A byte of JSON can become hundreds of bytes in memory: `{}` is a tool, and `0,` a part of a
//! text. So the size of a body does not bound the memory for reading it. These limits do, and they
//! are checked while a body is read, before any part is stored. Normal clients never reach them.
//! `docs/security.md` has the table, and a test compares that table with this one.

use crate::error::Error;

/// Kind of element whose number in a request is limited, such as messages or tools. The limit holds
/// for the whole request, at all levels of nesting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Many {
    /// Elements of `messages`; the limit is that of the Messages API.
    Messages,
    /// Blocks in messages, `system`, tool results, documents and search results, and changes of
    /// tools.
    Blocks,
    /// Blocks `tool_use`. For each call, memory holds which result answers the call, and its ids on
    /// both sides.
    Calls,
    /// Blocks `tool_result`.
    Results,
    /// Elements of `tools`, and tool definitions in changes of tools.
    Tools,
    /// Elements of `stop_sequences`. Every piece of the answer's text is searched for each of them.
    StopSequences,
    /// Elements of `input_examples` of all tools.
    Examples,
    /// Members of the `configs` objects of toolsets.
    Configs,
    /// Members that Creole does not know, in any object.
    UnknownFields,
    /// Members of objects and elements of arrays that are parsed one by one. Tool inputs and
    /// schemas are copied as a whole and do not count.
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

    /// Returns the maximum number of elements of this kind in a request.
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

    /// Returns the name of the kind of elements for error messages.
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

/// Number of elements counted in one request so far, by kind.
#[derive(Debug, Default)]
pub(crate) struct Counted([u32; KINDS]);

impl Counted {
    /// Counts one more element of the kind `many`. Returns true if the limit of the kind is
    /// exceeded.
    #[inline]
    pub(crate) fn is_exceeded_by(&mut self, many: Many) -> bool {
        let Some(count) = self.0.get_mut(many as usize) else { return true };
        *count = count.saturating_add(1);
        *count > many.most()
    }
}

/// Returns the error for a request that exceeds the limit of a kind. `path` is the JSON path of the
/// first excess element, or of its list.
#[cold]
pub(crate) fn exceeded(path: &str, many: Many) -> Error {
    // The JSON path of the whole body is empty.
    let path = if path.is_empty() { "request" } else { path };
    Error::invalid(format!(
        "{path}: at most {} {} are allowed in one request",
        many.most(),
        many.name()
    ))
    .with_too_many()
}

/// Maximum number of blocks in a non-streamed message of an upstream that speaks the Messages API.
/// Each block becomes three events.
pub const ANSWER_BLOCKS_MAX: usize = 2048;

/// Returns the error for an upstream's answer with too many elements; `what` names the elements.
#[cold]
pub(crate) fn answer_exceeded(what: &str) -> Error {
    Error::misbehaved(format!("Upstream sent too many {what}"))
}

#[cfg(test)]
mod tests;
