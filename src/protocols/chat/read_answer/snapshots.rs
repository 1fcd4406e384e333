//! Reads streams whose chunks have a `message` instead of a `delta`, or whose `delta` has the whole
//! text so far (`cumulative_text`).
//!
//! Servers use such chunks in three ways, which only the texts reveal:
//!
//! | chunks | meaning | text of the answer |
//! |---|---|---|
//! | `H`, `Hi`, `Hi!` | each chunk has the whole text so far | the last chunk |
//! | `H`, `i`, `!` | each chunk has the next piece | all chunks joined |
//! | deltas, then `Hi!` | the message repeats the deltas | the deltas |
//!
//! A text that begins with all previous texts is read as the whole text so far, and any other text
//! as the next piece. Text, reasoning and calls of a message are ignored if deltas have already
//! brought them.

use super::choices::{ChoiceVerdict, Choices};
use super::reasoning::{marked, said, without_end};
use crate::carry::signature::SignatureField;
use crate::json::{self, Str};
use crate::protocols::chat::wire::{Chunk, ContentPart, Delta, Detail, ToolCall};
use crate::text::words;

/// Texts of the messages in a stream so far.
#[derive(Debug, Default)]
pub(super) struct Snapshots {
    text: Growing,
    reasoning: Growing,
    refusal: Growing,
    /// True if `reasoning_details` that must be sent back to the upstream were added.
    has_records: bool,
    /// True if calls of messages were added.
    has_calls: bool,
}

impl Snapshots {
    pub(super) fn held_bytes(&self) -> usize {
        let Self { text, reasoning, refusal, .. } = self;
        text.all.len().saturating_add(reasoning.all.len()).saturating_add(refusal.all.len())
    }

    /// Joins the texts of a chunk's messages, except the texts that deltas have already brought.
    /// `known`: the field of the reasoning; `text_has_come`: the answer already has text.
    pub(super) fn said_in(
        &self,
        chunk: &Chunk<'_>,
        cumulative: bool,
        known: Option<SignatureField>,
        text_has_come: bool,
        choices: &mut Choices,
    ) -> ChunkTexts {
        let mut said = ChunkTexts { field: known, ..ChunkTexts::default() };
        let reasoned = known.is_some() && !self.reasoning.is_used();
        for (choice, message) in messages(chunk, cumulative) {
            let has_text = message.content.iter().any(|part| matches!(part, ContentPart::Text(_)));
            if has_text && choices.judge_message(choice) == ChoiceVerdict::Other {
                said.dropped = said.dropped.saturating_add(1);
                continue;
            }
            for part in message.content.iter() {
                match part {
                    ContentPart::Text(part) if message.is_thought => {
                        said.text.push_str(marked(part.raw()).1);
                    }
                    ContentPart::Text(part) if said.field == Some(SignatureField::Marked) => {
                        said.text.push_str(without_end(part.raw()));
                    }
                    ContentPart::Text(part) => said.text.push_str(part.raw()),
                    ContentPart::Refusal(part) => said.refusal.push_str(part.raw()),
                    _ => {}
                }
            }
            said.refusal.push_str(message.refusal.map_or("", |refusal| refusal.raw()));
            if !reasoned && let Some((field, more)) = reasoning(message, said.field) {
                if !trimmed(&more).is_empty() {
                    said.field = Some(field);
                }
                said.thought.push_str(&more);
            }
            said.has_calls |= !message.tool_calls.is_empty() || message.function_call.is_some();
        }
        if text_has_come && !self.text.is_used() && !self.refusal.is_used() {
            (said.text, said.refusal) = (String::new(), String::new());
        }
        said
    }

    /// Returns the new reasoning in the message texts `said`, and a delta with the new text and the
    /// new refusal.
    pub(super) fn news<'s>(
        &mut self,
        said: &'s ChunkTexts,
        cumulative: bool,
    ) -> (Option<Str<'s>>, Delta<'s>) {
        let take = if cumulative { Growing::replace } else { Growing::push };
        let filled = |raw| Str::inside(raw).filter(|text| !text.is_empty());
        let reasoning = filled(take(&mut self.reasoning, &said.thought));
        let text = filled(take(&mut self.text, &said.text));
        let refusal = filled(take(&mut self.refusal, &said.refusal));
        let mut delta = Delta { refusal, ..Delta::default() };
        if let Some(text) = text {
            delta.content.push(ContentPart::Text(text));
        }
        (reasoning, delta)
    }

    /// Returns true if the calls of messages are added to the answer. Calls of messages are ignored
    /// if deltas have already brought calls. `has_calls`: the answer already has calls.
    pub(super) fn takes_calls(&mut self, said: &ChunkTexts, has_calls: bool) -> bool {
        let takes_calls = !has_calls || self.has_calls;
        self.has_calls |= takes_calls && said.has_calls;
        takes_calls
    }

    /// Returns a delta with the content of a message other than texts: reasoning details that must
    /// be sent back to the upstream, and tool calls.
    pub(super) fn rest_of<'a>(&mut self, message: &Delta<'a>, takes_calls: bool) -> Delta<'a> {
        let mut delta = Delta::default();
        let has_records = |detail: &Detail<'_>| detail.data.or(detail.signature).is_some();
        if !self.has_records && message.reasoning_details.iter().any(has_records) {
            self.has_records = true;
            for detail in message.reasoning_details.iter() {
                delta.reasoning_details.push(Detail { text: None, ..*detail });
            }
        }
        if takes_calls {
            delta.function_call = message.function_call;
            for (at, call) in message.tool_calls.iter().enumerate() {
                // The calls of a whole message are numbered by their positions.
                let index = call.index.or_else(|| u64::try_from(at).ok());
                delta.tool_calls.push(ToolCall { index, ..*call });
            }
        }
        delta
    }
}

/// JSON-escaped text of an answer, of which each chunk repeats everything so far or adds a piece.
#[derive(Debug, Default)]
struct Growing {
    all: String,
    /// Offset in `all` of the first character that is not white space; `end` is the offset after
    /// the last such character.
    start: usize,
    end: usize,
}

impl Growing {
    /// Adds the text of the next chunk, which is the whole text so far or the next piece. Returns
    /// the new part.
    fn push<'t>(&mut self, text: &'t str) -> &'t str {
        let new = match text.strip_prefix(self.all.as_str()) {
            Some(rest) => rest,
            // The last message may lack the white space around the text.
            None if self.all.get(self.start..self.end) == Some(trimmed(text)) => "",
            None => text,
        };
        let said = trimmed(new);
        if !said.is_empty() {
            let blanks = json::offset_in(new, said).unwrap_or_default();
            let start = self.all.len().saturating_add(blanks);
            if self.end == 0 {
                self.start = start;
            }
            self.end = start.saturating_add(said.len());
        }
        self.all.push_str(new);
        new
    }

    /// Replaces the text with the text of the next chunk, which is the whole text so far. Returns
    /// the new part.
    ///
    /// The chunk may lack white space at the end. Text that was sent cannot be taken back: if the
    /// text was changed, everything from the first change on is new.
    fn replace<'t>(&mut self, text: &'t str) -> &'t str {
        if self.all.starts_with(text) {
            return "";
        }
        let same = self.all.bytes().zip(text.bytes()).take_while(|(old, new)| old == new).count();
        // The text is not cut within a character, an escape or a surrogate pair.
        let is_whole = |end: &usize| text.get(..*end).and_then(Str::inside).is_some();
        let end = (0..=same).rev().find(is_whole).unwrap_or_default();
        let start = end.saturating_sub(json::hold_back(text.get(..end).unwrap_or_default()));
        let new = text.get(start..).unwrap_or_default();
        words::truncate(&mut self.all, start);
        self.all.push_str(new);
        new
    }

    fn is_used(&self) -> bool {
        !self.all.is_empty()
    }
}

/// Returns `raw`, the inside of a JSON string, without leading and trailing white space.
fn trimmed(raw: &str) -> &str {
    json::trim_end_raw(json::trim_start_raw(raw))
}

/// Returns the JSON-escaped reasoning of a message and its field: the field `known`, else the first
/// field with text. If two fields have reasoning, both hold the same text.
fn reasoning(
    message: &Delta<'_>,
    known: Option<SignatureField>,
) -> Option<(SignatureField, String)> {
    let details = || {
        let texts = message.reasoning_details.iter().filter_map(|detail| detail.text);
        (SignatureField::ReasoningDetails, texts.map(|text| text.raw()).collect::<String>())
    };
    let parts = |wanted: SignatureField| {
        let texts = message.content.iter().filter_map(move |part| match part {
            ContentPart::Thinking(text) if wanted == SignatureField::Parts => Some(text.raw()),
            ContentPart::Reasoning(text) if wanted == SignatureField::Marked => Some(text.raw()),
            ContentPart::Text(text) if wanted == SignatureField::Marked && message.is_thought => {
                Some(marked(text.raw()).0)
            }
            _ => None,
        });
        (wanted, texts.collect::<String>())
    };
    let counts = |(field, text): &(SignatureField, String)| {
        known.is_none_or(|known| known == *field) && !text.is_empty()
    };
    let plain = said(message, known);
    let own = |(field, text): (SignatureField, Str<'_>)| (field, text.raw().to_owned());
    Some(details())
        .filter(counts)
        .or_else(|| plain.filter(|(_, text)| !text.is_blank()).map(own))
        .or_else(|| Some(parts(SignatureField::Parts)).filter(counts))
        .or_else(|| Some(parts(SignatureField::Marked)).filter(counts))
        .or_else(|| plain.map(own))
}

/// Joined texts of the messages of one chunk, JSON-escaped.
#[derive(Debug, Default)]
pub(super) struct ChunkTexts {
    /// Reasoning of the messages; `field` is the field of the reasoning.
    pub(super) thought: String,
    pub(super) field: Option<SignatureField>,
    pub(super) text: String,
    pub(super) refusal: String,
    /// True if a message has tool calls.
    has_calls: bool,
    /// Number of messages left out because they belong to other answers.
    pub(super) dropped: u32,
}

/// Returns the messages of a chunk with the index of their choices. A message beside a non-empty
/// delta is ignored, because the message only repeats the delta.
pub(super) fn messages<'c, 'a>(
    chunk: &'c Chunk<'a>,
    cumulative: bool,
) -> impl Iterator<Item = (u64, &'c Delta<'a>)> {
    chunk.choices.iter().filter_map(move |choice| {
        if let Some(delta) = choice.delta.as_ref().filter(|_| cumulative) {
            return Some((choice.index, delta));
        }
        let stands_alone = choice.delta.as_ref().is_none_or(Delta::is_empty);
        let message = choice.message.as_ref().filter(|message| !message.is_empty())?;
        stands_alone.then_some((choice.index, message))
    })
}

#[cfg(test)]
mod tests;
