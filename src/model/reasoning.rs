//! Items of reasoning beside its text, which an upstream wants back.

use crate::json::Str;

/// An item of `reasoning_details` (OpenRouter), or of `thinking_blocks` (LiteLLM), which are blocks
/// of the Messages API.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Detail<'a> {
    /// `type`: `reasoning.text`, `reasoning.summary`, `reasoning.encrypted`; `thinking`,
    /// `redacted_thinking`.
    pub(crate) kind: Option<Str<'a>>,
    /// Number of the item: fragments with the same index are one item.
    pub(crate) index: Option<u64>,
    /// Text for people: `text`, `summary` or `thinking`.
    pub(crate) text: Option<Str<'a>>,
    /// `data`: encrypted reasoning.
    pub(crate) data: Option<Str<'a>>,
    /// `signature`
    pub(crate) signature: Option<Str<'a>>,
    /// True if the item is one of `thinking_blocks`, whose text also comes in `reasoning_content`.
    pub(crate) block: bool,
    /// JSON text of the whole item.
    pub(crate) raw: &'a str,
}
