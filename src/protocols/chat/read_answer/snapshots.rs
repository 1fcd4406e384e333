//! Streams whose chunks carry a `message` where the format has a `delta`, or a `delta` that is one
//! (`cumulative_text`).
//!
//! Servers mean three things by it, and nothing but the texts tells which:
//!
//! | chunks | what it is | the text |
//! |---|---|---|
//! | `H`, `Hi`, `Hi!` | each time all of it so far | the last |
//! | `H`, `i`, `!` | each time the next piece | all together |
//! | deltas, then `Hi!` | all of it once more | that of the deltas |
//!
//! A text that begins with all texts before it is read as all of it so far, any other as the next
//! piece. The message adds nothing that the deltas have brought already (text, reasoning, calls).

use super::choices::{Choices, Verdict};
use super::reasoning::{marked, said, without_end};
use crate::carry::signature::Field;
use crate::json::{self, Str};
use crate::protocols::chat::wire::{Chunk, Delta, Detail, Part, ToolCall};
use crate::text::words;

/// The texts of messages in a stream.
#[derive(Debug, Default)]
pub(super) struct Snapshots {
    text: Growing,
    reasoning: Growing,
    refusal: Growing,
    /// True if `reasoning_details` with something to hand back were taken.
    has_records: bool,
    /// True if calls of messages were taken.
    has_calls: bool,
}

impl Snapshots {
    pub(super) fn held_bytes(&self) -> usize {
        let Self { text, reasoning, refusal, .. } = self;
        text.all.len().saturating_add(reasoning.all.len()).saturating_add(refusal.all.len())
    }

    /// Joins the texts of a chunk's messages, without what deltas have brought already. `known`:
    /// the field of the reasoning; `text_has_come`: text has come in deltas or messages.
    pub(super) fn said_in(
        &self,
        chunk: &Chunk<'_>,
        cumulative: bool,
        known: Option<Field>,
        text_has_come: bool,
        choices: &mut Choices,
    ) -> ChunkTexts {
        let mut said = ChunkTexts { field: known, ..ChunkTexts::default() };
        let reasoned = known.is_some() && !self.reasoning.is_used();
        for (choice, message) in messages(chunk, cumulative) {
            let has_text = message.content.iter().any(|part| matches!(part, Part::Text(_)));
            if has_text && choices.judge_message(choice) == Verdict::Other {
                said.dropped = said.dropped.saturating_add(1);
                continue;
            }
            for part in message.content.iter() {
                match part {
                    Part::Text(part) if message.is_thought => {
                        said.text.push_str(marked(part.raw()).1);
                    }
                    Part::Text(part) if said.field == Some(Field::Marked) => {
                        said.text.push_str(without_end(part.raw()));
                    }
                    Part::Text(part) => said.text.push_str(part.raw()),
                    Part::Refusal(part) => said.refusal.push_str(part.raw()),
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

    /// Returns the reasoning of `said` that is new, and the text and refusal that are new, as a
    /// delta.
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
            delta.content.push(Part::Text(text));
        }
        (reasoning, delta)
    }

    /// Returns true if the calls of messages are taken; they are not where deltas have brought
    /// calls. `has_calls`: there are some already.
    pub(super) fn takes_calls(&mut self, said: &ChunkTexts, has_calls: bool) -> bool {
        let takes_calls = !has_calls || self.has_calls;
        self.has_calls |= takes_calls && said.has_calls;
        takes_calls
    }

    /// Returns a delta of a message without its texts: details of reasoning that are to be handed
    /// back, and calls.
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
                // A whole message numbers its calls by their places.
                let index = call.index.or_else(|| u64::try_from(at).ok());
                delta.tool_calls.push(ToolCall { index, ..*call });
            }
        }
        delta
    }
}

/// Text of an answer, escaped, of which each chunk brings all or a piece.
#[derive(Debug, Default)]
struct Growing {
    all: String,
    /// Start of the part of `all` between white space; `end` is the end of that part.
    start: usize,
    end: usize,
}

impl Growing {
    /// Adds the text of the next chunk, which is all of it or a piece, and returns what is new.
    fn push<'t>(&mut self, text: &'t str) -> &'t str {
        let new = match text.strip_prefix(self.all.as_str()) {
            Some(rest) => rest,
            // The last message can be without the white space around it.
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

    /// Takes the text of the next chunk, which is all of it, perhaps without white space at its
    /// end, and returns what is new. What was sent cannot be taken back: if the text was changed,
    /// all from the change on is new.
    fn replace<'t>(&mut self, text: &'t str) -> &'t str {
        if self.all.starts_with(text) {
            return "";
        }
        let same = self.all.bytes().zip(text.bytes()).take_while(|(old, new)| old == new).count();
        // Neither within a letter or an escape nor between the halves of a pair.
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

/// Returns `raw`, the inside of a JSON string, without the white space around it.
fn trimmed(raw: &str) -> &str {
    json::trim_end_raw(json::trim_start_raw(raw))
}

/// Returns the reasoning of a message, escaped, and its field: the one that is `known`, else the
/// first that says something. Where two fields have it, it is the same text.
fn reasoning(message: &Delta<'_>, known: Option<Field>) -> Option<(Field, String)> {
    let details = || {
        let texts = message.reasoning_details.iter().filter_map(|detail| detail.text);
        (Field::ReasoningDetails, texts.map(|text| text.raw()).collect::<String>())
    };
    let parts = |wanted: Field| {
        let texts = message.content.iter().filter_map(move |part| match part {
            Part::Thinking(text) if wanted == Field::Parts => Some(text.raw()),
            Part::Reasoning(text) if wanted == Field::Marked => Some(text.raw()),
            Part::Text(text) if wanted == Field::Marked && message.is_thought => {
                Some(marked(text.raw()).0)
            }
            _ => None,
        });
        (wanted, texts.collect::<String>())
    };
    let counts = |(field, text): &(Field, String)| {
        known.is_none_or(|known| known == *field) && !text.is_empty()
    };
    let plain = said(message, known);
    let own = |(field, text): (Field, Str<'_>)| (field, text.raw().to_owned());
    Some(details())
        .filter(counts)
        .or_else(|| plain.filter(|(_, text)| !text.is_blank()).map(own))
        .or_else(|| Some(parts(Field::Parts)).filter(counts))
        .or_else(|| Some(parts(Field::Marked)).filter(counts))
        .or_else(|| plain.map(own))
}

/// Texts that the messages of one chunk have together, escaped.
#[derive(Debug, Default)]
pub(super) struct ChunkTexts {
    /// Reasoning, and its field.
    pub(super) thought: String,
    pub(super) field: Option<Field>,
    pub(super) text: String,
    pub(super) refusal: String,
    /// True if a message has calls.
    has_calls: bool,
    /// Number of messages left out because they belong to other answers.
    pub(super) dropped: u32,
}

/// Returns the messages of a chunk, and their choices. Beside a delta, a message says nothing of
/// its own.
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
