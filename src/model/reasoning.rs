//! What an upstream says of its reasoning beside the text, and wants back.

use crate::json::Str;

/// An item of `reasoning_details` (OpenRouter), or of `thinking_blocks` (LiteLLM), which are blocks of the
/// Messages API.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Detail<'a> {
    /// `type`: `reasoning.text`, `reasoning.summary`, `reasoning.encrypted`; `thinking`, `redacted_thinking`.
    pub(crate) kind: Option<Str<'a>>,
    /// Fragments with the same index are one item.
    pub(crate) index: Option<u64>,
    /// Text for people: `text`, `summary` or `thinking`.
    pub(crate) text: Option<Str<'a>>,
    /// Encrypted `data`.
    pub(crate) data: Option<Str<'a>>,
    /// `signature`
    pub(crate) signature: Option<Str<'a>>,
    /// It is one of `thinking_blocks`, whose text also comes in `reasoning_content`.
    pub(crate) block: bool,
    /// The whole item.
    pub(crate) raw: &'a str,
}
