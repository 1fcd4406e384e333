//! Fast parsing of stream chunks that differ from the previous chunk only in their text.
//!
//! Nearly every chunk of a stream equals the previous chunk except for a few letters of text.
//! Comparing the two chunks costs a small part of parsing, so the comparison is tried first. A
//! chunk that differs in more than the text is parsed as usual.

use crate::json::{Reader, Str, offset_in};
use crate::text::words::is_same;

use crate::protocols::chat::wire::{Arguments, Choice, Chunk, ContentPart, Delta, Few, ToolCall};

/// Maximum length in bytes of a chunk that is kept for comparison. Each stream keeps one chunk in
/// memory.
const LENGTH_MAX: usize = 1024;

/// Maximum number of consecutive chunks that do not repeat the previous chunk. Then no more chunks
/// are kept: some servers put a number or random letters into each chunk.
const MISSES_MAX: u8 = 16;

/// Previous chunk of a stream, kept for comparison: a chunk with a single text and no other
/// content.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChunkPattern {
    /// Part of the chunk before the opening quote of the text. `after` is the part behind the
    /// closing quote.
    before: String,
    after: String,
    /// True if the chunk ends with random letters as padding and a closing brace after `after`.
    padded: bool,
    place: Option<TextTarget>,
    misses: u8,
}

/// Position of the text in a chunk: the choice and the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TextTarget {
    choice: u64,
    field: TextField,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextField {
    Content,
    ReasoningContent,
    Reasoning,
    /// Field `arguments` of the tool call with this index.
    Arguments(Option<u64>),
}

impl ChunkPattern {
    /// Reads a chunk that differs from the previous chunk only in its text. Returns the index of
    /// the choice and the delta, or `None` if the chunk differs in more.
    pub(crate) fn read<'a>(&mut self, data: &'a str) -> Option<(u64, Delta<'a>)> {
        let TextTarget { choice, field } = self.place?;
        let (start, rest) = data.split_at_checked(self.before.len())?;
        if !is_same(start, &self.before) {
            return None;
        }
        let mut reader = Reader::new(rest, 1);
        let text = reader.string().ok()?;
        let (end, padding) = rest.get(reader.offset()..)?.split_at_checked(self.after.len())?;
        if text.is_empty() || !is_same(end, &self.after) || self.padded != is_padding(padding)? {
            return None;
        }
        self.misses = 0;
        let mut delta = Delta::default();
        match field {
            TextField::Content => delta.content.push(ContentPart::Text(text)),
            TextField::ReasoningContent => delta.reasoning_content = Some(text),
            TextField::Reasoning => delta.reasoning = Some(text),
            TextField::Arguments(index) => {
                let arguments = Arguments::Text(text);
                delta.tool_calls.push(ToolCall { index, arguments, ..ToolCall::default() });
            }
        }
        Some((choice, delta))
    }

    /// Keeps the chunk that was parsed from `data` for comparison with the next chunk.
    pub(crate) fn learn(&mut self, data: &str, chunk: &Chunk<'_>) {
        self.place = None;
        if self.misses >= MISSES_MAX || data.len() > LENGTH_MAX {
            return;
        }
        let Some((place, text)) = sole_text(chunk) else { return };
        self.misses = self.misses.saturating_add(1);
        let Some(start) = offset_in(data, text.raw()) else { return };
        let end = start.saturating_add(text.raw().len());
        let before = start.checked_sub(1).and_then(|quote| data.get(..quote));
        let after = data.get(end.saturating_add(1)..);
        if let (Some(before), Some(after)) = (before, after) {
            let unpadded = without_padding(after);
            self.padded = unpadded.is_some();
            before.clone_into(&mut self.before);
            unpadded.unwrap_or(after).clone_into(&mut self.after);
            self.place = Some(place);
        }
    }
}

/// Returns the only text of a chunk that has no other content, and the position of the text.
///
/// Members that name the whole stream, such as the id and the model, are ignored, because they are
/// known from the parsed chunk.
// Long: one pass over the bytes of a chunk that repeats the one before.
fn sole_text<'a>(chunk: &Chunk<'a>) -> Option<(TextTarget, Str<'a>)> {
    // Every member is named, so that a new member cannot be added without a decision here.
    let Chunk {
        id: _,
        model: _,
        service_tier: _,
        well: _,
        choices,
        kind: None,
        usage: None,
        error: false,
        failed: false,
        complains: false,
        exceeded: None,
    } = chunk
    else {
        return None;
    };
    let Choice {
        index,
        delta: Some(delta),
        message: None,
        finish_reason: None,
        stop_sequence: None,
        error: None,
        usage: None,
    } = sole(choices)?
    else {
        return None;
    };
    let Delta {
        role: _,
        reasoning_content,
        reasoning,
        content,
        tool_calls,
        reasoning_text: None,
        thinking: None,
        is_thought: false,
        finish_reason: None,
        error: None,
        reasoning_details,
        content_dropped: false,
        annotations: None,
        refusal: None,
        function_call: None,
    } = delta
    else {
        return None;
    };
    if !reasoning_details.is_empty() {
        return None;
    }
    let counts = [
        !content.is_empty(),
        reasoning_content.is_some(),
        reasoning.is_some(),
        !tool_calls.is_empty(),
    ];
    let (field, text) = match counts {
        [true, false, false, false] => match sole(content)? {
            ContentPart::Text(text) => (TextField::Content, *text),
            _ => return None,
        },
        [false, true, false, false] => (TextField::ReasoningContent, (*reasoning_content)?),
        [false, false, true, false] => (TextField::Reasoning, (*reasoning)?),
        [false, false, false, true] => match sole(tool_calls)? {
            ToolCall {
                index,
                id: None,
                name: None,
                arguments: Arguments::Text(text),
                custom: false,
                signature: None,
            } => (TextField::Arguments(*index), *text),
            _ => return None,
        },
        _ => return None,
    };
    Some((TextTarget { choice: *index, field }, text))
}

/// Returns the end of a chunk without the random letters of a padding member. Some servers (OpenAI,
/// Mistral) add padding so that the sizes of chunks reveal nothing.
fn without_padding(end: &str) -> Option<&str> {
    let end = end.strip_suffix("\"}")?;
    let end = end.get(..end.bytes().rposition(|byte| byte == b'"')?)?;
    (end.ends_with(r#""obfuscation":"#) || end.ends_with(r#""p":"#)).then_some(end)
}

/// Returns true if `text` is padding as removed by [`without_padding`], false if `text` is empty,
/// and `None` otherwise.
fn is_padding(text: &str) -> Option<bool> {
    if text.is_empty() {
        return Some(false);
    }
    let mut reader = Reader::new(text, 1);
    reader.string().ok()?;
    (text.get(reader.offset()..)? == "}").then_some(true)
}

/// Returns the element of a list, if the list has exactly one.
fn sole<T>(list: &Few<T>) -> Option<&T> {
    let mut items = list.iter();
    items.next().filter(|_| items.next().is_none())
}

#[cfg(test)]
mod tests;
