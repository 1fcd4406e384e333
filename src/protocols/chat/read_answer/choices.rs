//! Decides which `choices` of an answer are sent to the client.
//!
//! Creole requests one answer, but several choices can arrive, for three reasons:
//!
//! | choices | meaning | sent to the client |
//! |---|---|---|
//! | one has text, another reasoning or calls | parts of one answer (Copilot) | all choices |
//! | several have text | separate answers (`n` in `extra_body` or at the server) | the first text |
//! | each chunk has the next `index` | a counter of chunks (TGI, Foundry Local) | all chunks |
//!
//! In a stream, the third case looks like the second until an index repeats. Until then, text under
//! a new index is held back.

use crate::json::Str;
use crate::protocols::chat::wire::{Choice, Chunk, ContentPart, Delta};

/// Number of consecutive chunks with rising `index` from which on `index` is read as a counter of
/// chunks. No client requests that many answers.
const COUNTED: u32 = 4;

/// Maximum number of choices remembered as separate answers. Text of a further choice is still
/// dropped, but chunks with only a call or a finish reason count as parts of the answer.
const OTHERS_MAX: usize = 128;

/// Meaning of the `index` of choices in one answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Numbers {
    /// Meaning that no chunk has shown yet.
    #[default]
    Unknown,
    /// Meaning as defined by the API: the `index` names a choice.
    Names,
    /// Meaning as a counter of chunks. Also used if the choices are known to be parts of one
    /// answer.
    Counts,
}

/// Decision whether the text or reasoning of a choice is sent to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChoiceVerdict {
    /// Content that is a part of the answer and is sent to the client.
    Part,
    /// Text that is held back until the meaning of `index` is known.
    Held,
    /// Content of another answer, which the client does not receive.
    Other,
}

/// State of the choices of one answer: the meaning of their `index`, and which choices are sent to
/// the client.
#[derive(Debug, Default)]
pub(super) struct Choices {
    numbers: Numbers,
    /// Choice index in the last chunk.
    last: Option<u64>,
    /// Number of consecutive chunks whose choice index rose by one, including the first chunk.
    counted: u32,
    /// True if the last chunk had a finish reason.
    finished: bool,
    /// Index of the choice whose text is sent to the client.
    text: Option<u64>,
    /// Index of the choice whose reasoning is sent to the client.
    reasoning: Option<u64>,
    /// Indices of choices that are separate answers.
    others: Vec<u64>,
    /// Held-back texts with the index of their choices; the texts are JSON-escaped.
    held: Vec<(u64, String)>,
}

impl Choices {
    /// Updates the meaning of `index` from a chunk. Returns the texts that were held back, if they
    /// are now known to be parts of the answer.
    pub(super) fn note(&mut self, chunk: &Chunk<'_>) -> Vec<String> {
        if self.numbers != Numbers::Unknown {
            return Vec::new();
        }
        let mut choices = chunk.choices.iter();
        let (Some(first), second) = (choices.next(), choices.next()) else { return Vec::new() };
        if second.is_some() {
            self.numbers = Numbers::Names;
            return Vec::new();
        }
        self.note_one(first.index, first.finish_reason.is_some())
    }

    /// Updates the meaning of `index` from a chunk with one choice. Returns the held-back texts, if
    /// they are now known to be parts of the answer.
    pub(super) fn note_one(&mut self, number: u64, finishes: bool) -> Vec<String> {
        if self.numbers != Numbers::Unknown {
            return Vec::new();
        }
        let follows = self.last.and_then(|last| last.checked_add(1)) == Some(number);
        if self.last.is_some() && (!follows || self.finished) {
            self.numbers = Numbers::Names;
            return Vec::new();
        }
        self.last = Some(number);
        self.counted = self.counted.saturating_add(1);
        self.finished = finishes;
        // If `index` named a choice, that choice would have its own finish reason.
        if self.counted >= COUNTED || finishes && self.counted > 1 {
            self.numbers = Numbers::Counts;
            return std::mem::take(&mut self.held).into_iter().map(|(_, text)| text).collect();
        }
        Vec::new()
    }

    /// Decides the meaning of `index` in a whole answer. The choices are parts of one answer if one
    /// choice has the finish reason of a call and another choice has the call.
    pub(super) fn note_whole(&mut self, chunk: &Chunk<'_>, says_call: impl Fn(Str<'_>) -> bool) {
        let calls = |delta: &Option<Delta<'_>>| {
            let delta = delta.as_ref();
            delta.is_some_and(|it| !it.tool_calls.is_empty() || it.function_call.is_some())
        };
        let has_call = |choice: &Choice<'_>| calls(&choice.message) || calls(&choice.delta);
        let is_split = chunk.choices.iter().any(has_call)
            && chunk
                .choices
                .iter()
                .any(|choice| choice.finish_reason.is_some_and(&says_call) && !has_call(choice));
        self.numbers = if is_split { Numbers::Counts } else { Numbers::Names };
    }

    /// Returns true if a choice is a separate answer that the client does not receive.
    #[inline]
    pub(super) fn is_other(&self, choice: u64) -> bool {
        !self.others.is_empty() && self.others.contains(&choice)
    }

    /// Returns true until a chunk has shown the meaning of `index`.
    #[inline]
    pub(super) fn are_unknown(&self) -> bool {
        self.numbers == Numbers::Unknown
    }

    /// Returns the index of the choice whose reasoning is sent to the client.
    #[inline]
    pub(super) fn reasoning(&self) -> Option<u64> {
        self.reasoning
    }

    /// Returns the index of the choice whose text is sent to the client.
    #[inline]
    pub(super) fn text(&self) -> Option<u64> {
        self.text
    }

    /// Decides whether the reasoning in a delta of a choice is part of the answer.
    pub(super) fn judge_reasoning(&mut self, choice: u64, delta: &Delta<'_>) -> ChoiceVerdict {
        let texts =
            [delta.reasoning_content, delta.reasoning, delta.reasoning_text, delta.thinking];
        let details = delta.reasoning_details.iter().map(|detail| detail.text);
        let mut texts = texts.into_iter().chain(details).flatten();
        if self.reasoning == Some(choice) || texts.all(|text| text.is_blank()) {
            return ChoiceVerdict::Part;
        }
        let owner = *self.reasoning.get_or_insert(choice);
        let is_other = owner != choice && self.numbers == Numbers::Names;
        self.take(choice, if is_other { ChoiceVerdict::Other } else { ChoiceVerdict::Part })
    }

    /// Decides whether the text in a delta of a choice is part of the answer, and stores the text
    /// if the decision must wait.
    pub(super) fn judge_text(&mut self, choice: u64, delta: &Delta<'_>) -> ChoiceVerdict {
        let says = |part: &ContentPart<'_>| match part {
            ContentPart::Text(text) | ContentPart::Refusal(text) => !text.is_blank(),
            ContentPart::Thinking(_) | ContentPart::Reasoning(_) => false,
        };
        let refuses = delta.refusal.is_some_and(|text| !text.is_blank());
        if self.text == Some(choice) || !(refuses || delta.content.iter().any(says)) {
            return ChoiceVerdict::Part;
        }
        let verdict = match (self.text, self.numbers) {
            (None, _) | (_, Numbers::Counts) => ChoiceVerdict::Part,
            (Some(_), Numbers::Names) => ChoiceVerdict::Other,
            (Some(_), Numbers::Unknown) => {
                for part in delta.content.iter() {
                    if let ContentPart::Text(text) = part {
                        self.held.push((choice, text.raw().to_owned()));
                    }
                }
                ChoiceVerdict::Held
            }
        };
        self.text.get_or_insert(choice);
        self.take(choice, verdict)
    }

    /// Decides whether the text of a message is part of the answer. Such text is never held back.
    pub(super) fn judge_message(&mut self, choice: u64) -> ChoiceVerdict {
        let owner = *self.text.get_or_insert(choice);
        let is_other = owner != choice && self.numbers == Numbers::Names;
        self.take(choice, if is_other { ChoiceVerdict::Other } else { ChoiceVerdict::Part })
    }

    fn take(&mut self, choice: u64, verdict: ChoiceVerdict) -> ChoiceVerdict {
        if verdict != ChoiceVerdict::Other || self.is_other(choice) {
            return verdict;
        }
        if self.others.len() < OTHERS_MAX {
            self.others.push(choice);
        }
        verdict
    }

    /// Drops all held-back texts as texts of other answers, because `index` names choices or the
    /// answer is over. Returns true if any text was dropped.
    pub(super) fn drop_held(&mut self) -> bool {
        if self.held.is_empty() {
            return false;
        }
        for (choice, _) in std::mem::take(&mut self.held) {
            self.take(choice, ChoiceVerdict::Other);
        }
        true
    }

    /// Returns true if held-back texts belong to other answers.
    pub(super) fn holds_others(&self) -> bool {
        self.numbers == Numbers::Names && !self.held.is_empty()
    }

    /// Returns the number of bytes of held-back texts.
    pub(super) fn held_bytes(&self) -> usize {
        self.held.iter().fold(0, |sum, (_, text)| text.len().saturating_add(sum))
    }
}
