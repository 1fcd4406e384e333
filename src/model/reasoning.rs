//! Structured reasoning items, which an upstream sends beside the reasoning text and wants back.

use crate::json::Str;

/// Item of `reasoning_details` (OpenRouter) or of `thinking_blocks` (LiteLLM). The latter are
/// blocks of the Messages API.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Detail<'a> {
    /// Type of the reasoning item: `reasoning.text`, `reasoning.summary`, `reasoning.encrypted`,
    /// `thinking` or `redacted_thinking`.
    pub(crate) kind: Option<Str<'a>>,
    /// Index of the reasoning item. Fragments with the same index belong to one item.
    pub(crate) index: Option<u64>,
    /// Readable text of the reasoning item (member `text`, `summary` or `thinking`).
    pub(crate) text: Option<Str<'a>>,
    /// Encrypted reasoning (member `data`).
    pub(crate) data: Option<Str<'a>>,
    /// Signature of the reasoning text (member `signature`).
    pub(crate) signature: Option<Str<'a>>,
    /// True if the reasoning item is in `thinking_blocks`, whose text also comes in
    /// `reasoning_content`.
    pub(crate) block: bool,
    /// JSON text of the whole reasoning item.
    pub(crate) raw: &'a str,
}
