//! Selects the reasoning in a delta, which servers send in different fields.
//!
//! Google's marked reasoning text ([`Field::Marked`]) also contains tags: `<thought>` at the start,
//! and `</thought>` at the end or at the start of the next text. A tag is never split between two
//! chunks.

use crate::answer::ReaderOutput;
use crate::assemble::Assembly;
use crate::carry::signature::{self, SignatureField};
use crate::content::{ReasoningState, is_kept};
use crate::json::Str;
use crate::protocols::chat::wire::{Delta, ToolCall};
use crate::text::words;

/// Returns the reasoning text in a delta or message, and the field that holds the text. Lists such
/// as `reasoning_details` are ignored. The field is `known`, else the first field with text, else
/// the first field present.
pub(super) fn said<'a>(
    delta: &Delta<'a>,
    known: Option<SignatureField>,
) -> Option<(SignatureField, Str<'a>)> {
    let fields = [
        (SignatureField::ReasoningContent, delta.reasoning_content),
        (SignatureField::Reasoning, delta.reasoning),
        (SignatureField::ReasoningText, delta.reasoning_text),
        (SignatureField::Thinking, delta.thinking),
    ];
    if let Some(known) = known {
        let (field, text) = fields.into_iter().find(|(field, _)| *field == known)?;
        return Some((field, text?));
    }
    let mut present = fields.into_iter().filter_map(|(field, text)| Some((field, text?)));
    // A field with text is preferred, because another field may have only white space.
    present.clone().find(|(_, text)| !text.is_blank()).or_else(|| present.next())
}

/// Returns the texts of the `reasoning_details` in a delta, without blocks of `thinking_blocks`.
pub(super) fn detail_texts<'a>(delta: &Delta<'a>) -> impl Iterator<Item = Str<'a>> {
    let details = delta.reasoning_details.iter().filter(|detail| !detail.block);
    details.filter_map(|detail| detail.text)
}

/// Start and end tags of marked reasoning text: plain, and JSON-escaped as many servers send them.
const MARKED: [(&str, &str); 2] =
    [("<thought>", "</thought>"), ("\\u003cthought\\u003e", "\\u003c/thought\\u003e")];

/// Splits a marked text into the reasoning and the text after the end tag, both JSON-escaped.
pub(super) fn marked(raw: &str) -> (&str, &str) {
    let raw = MARKED.iter().find_map(|(start, _)| raw.strip_prefix(start)).unwrap_or(raw);
    MARKED.iter().find_map(|(_, end)| words::split_once(raw, end)).unwrap_or((raw, ""))
}

/// Returns the JSON-escaped text that follows a marked text, without an end tag at the start.
pub(super) fn without_end(raw: &str) -> &str {
    MARKED.iter().find_map(|(_, end)| raw.strip_prefix(end)).unwrap_or(raw)
}

/// Returns the field that holds the answer's reasoning, and the reasoning text in a delta with the
/// text's field. Lists such as `reasoning_details` give no text.
#[inline]
pub(super) fn choose<'a>(
    delta: &Delta<'a>,
    reasoning: &mut ReasoningState,
) -> (Option<SignatureField>, Option<(SignatureField, Str<'a>)>) {
    let said = said(delta, reasoning.field());
    if said.is_some_and(|(_, text)| !text.is_empty()) {
        reasoning.note_come();
    }
    if reasoning.field().is_none() {
        let has_details = detail_texts(delta).next().is_some();
        let details = has_details.then_some(SignatureField::ReasoningDetails);
        let spoken = said.filter(|(_, text)| !text.is_blank());
        reasoning.note_field(details.or_else(|| spoken.map(|(field, _)| field)));
    }
    (reasoning.field().or_else(|| said.map(|(field, _)| field)), said)
}

/// Stores the reasoning items of a delta that must be sent back to the upstream in later requests.
pub(super) fn keep_details(
    delta: &Delta<'_>,
    field: Option<SignatureField>,
    reasoning: &mut ReasoningState,
    blocks: &mut Assembly,
    to: &ReaderOutput<'_>,
) {
    for detail in delta.reasoning_details.iter() {
        let is_empty = detail.text.is_none() && detail.data.is_none() && detail.signature.is_none();
        if !is_empty && is_kept(to) {
            blocks.push_detail(detail, field.unwrap_or(SignatureField::ReasoningDetails), to);
            reasoning.note_carried(detail.raw.len());
        }
    }
}

/// Stores the signature of the tool call at `index`, if the call has a signature.
pub(super) fn keep_signature(
    index: usize,
    call: &ToolCall<'_>,
    reasoning: &mut ReasoningState,
    blocks: &mut Assembly,
    to: &ReaderOutput<'_>,
) {
    if let Some(signature) = call.signature
        && is_kept(to)
    {
        let placed = signature::placed(signature.place, &signature.text.decode());
        reasoning.note_carried(placed.len());
        let field = reasoning.field().unwrap_or(SignatureField::ReasoningContent);
        blocks.carry_signature(index, placed, field, to);
    }
}
