//! The choices of an answer.
//!
//! Creole asks for one answer, and yet several choices come, for three reasons:
//!
//! | choices | what they are | what counts |
//! |---|---|---|
//! | one has text, another reasoning or calls | parts of one answer (Copilot) | all |
//! | several have texts | answers of their own (`n`, in `extra_body` or at the server) | the one whose text comes first |
//! | each chunk has the next number | chunks, counted (TGI, Foundry Local) | all |
//!
//! In a stream the third looks like the second until a number comes again. Until then, text under a
//! new number is held.

use crate::json::Str;
use crate::protocols::chat::wire::{Choice, Chunk, Delta, Part};

/// Number of consecutive chunks, each with the next number, from which on the numbers are taken to
/// count chunks. Nobody asks for that many answers.
const COUNTED: u32 = 4;

/// Maximum number of choices remembered as answers of their own. A further choice still loses its
/// text, but chunks with only its calls or finish reason count as parts of the answer.
const OTHERS_MAX: usize = 128;

/// Meaning of the numbers (`index`) of choices in one answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Numbers {
    /// Meaning that no chunk has shown yet.
    #[default]
    Unknown,
    /// Numbers that name choices.
    Names,
    /// Numbers that count chunks, or that belong to choices known to be parts of one answer.
    Counts,
}

/// Decision on the text or reasoning of a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Content that is a part of the answer.
    Part,
    /// Text that is held until the meaning of the numbers is known.
    Held,
    /// Content of another answer, which the client does not get.
    Other,
}

/// State of the choices of one answer: what their numbers mean, and which of them count.
#[derive(Debug, Default)]
pub(super) struct Choices {
    numbers: Numbers,
    /// The number in the last chunk.
    last: Option<u64>,
    /// Number of consecutive chunks whose choice number rose by one, the first chunk included.
    counted: u32,
    /// True if the last chunk said that its choice is over.
    finished: bool,
    /// The choice that gives the text.
    text: Option<u64>,
    /// The choice that gives the reasoning.
    reasoning: Option<u64>,
    /// Choices that are answers of their own.
    others: Vec<u64>,
    /// Texts under new numbers, escaped.
    held: Vec<(u64, String)>,
}

impl Choices {
    /// Notes the numbers in a chunk. Gives the texts that were held, if they are parts of the
    /// answer.
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

    /// Notes the number in a chunk with one choice.
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
        // A choice with a number of its own says by itself that it is over.
        if self.counted >= COUNTED || finishes && self.counted > 1 {
            self.numbers = Numbers::Counts;
            return std::mem::take(&mut self.held).into_iter().map(|(_, text)| text).collect();
        }
        Vec::new()
    }

    /// Decides what the numbers of a whole answer mean. Its choices are parts of one answer if one
    /// says that it calls and another has the call.
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

    /// Returns true if a choice is an answer of its own.
    #[inline]
    pub(super) fn is_other(&self, choice: u64) -> bool {
        !self.others.is_empty() && self.others.contains(&choice)
    }

    /// Returns true while no chunk has shown what the numbers mean.
    #[inline]
    pub(super) fn are_unknown(&self) -> bool {
        self.numbers == Numbers::Unknown
    }

    /// Returns the choice that gives the reasoning.
    #[inline]
    pub(super) fn reasoning(&self) -> Option<u64> {
        self.reasoning
    }

    /// Returns the choice that gives the text.
    #[inline]
    pub(super) fn text(&self) -> Option<u64> {
        self.text
    }

    /// Judges the reasoning in a delta of a choice.
    pub(super) fn judge_reasoning(&mut self, choice: u64, delta: &Delta<'_>) -> Verdict {
        let texts =
            [delta.reasoning_content, delta.reasoning, delta.reasoning_text, delta.thinking];
        let details = delta.reasoning_details.iter().map(|detail| detail.text);
        let mut texts = texts.into_iter().chain(details).flatten();
        if self.reasoning == Some(choice) || texts.all(|text| text.is_blank()) {
            return Verdict::Part;
        }
        let owner = *self.reasoning.get_or_insert(choice);
        let is_other = owner != choice && self.numbers == Numbers::Names;
        self.take(choice, if is_other { Verdict::Other } else { Verdict::Part })
    }

    /// Judges the text in a delta of a choice.
    pub(super) fn judge_text(&mut self, choice: u64, delta: &Delta<'_>) -> Verdict {
        let says = |part: &Part<'_>| match part {
            Part::Text(text) | Part::Refusal(text) => !text.is_blank(),
            Part::Thinking(_) | Part::Reasoning(_) => false,
        };
        let refuses = delta.refusal.is_some_and(|text| !text.is_blank());
        if self.text == Some(choice) || !(refuses || delta.content.iter().any(says)) {
            return Verdict::Part;
        }
        let verdict = match (self.text, self.numbers) {
            (None, _) | (_, Numbers::Counts) => Verdict::Part,
            (Some(_), Numbers::Names) => Verdict::Other,
            (Some(_), Numbers::Unknown) => {
                for part in delta.content.iter() {
                    if let Part::Text(text) = part {
                        self.held.push((choice, text.raw().to_owned()));
                    }
                }
                Verdict::Held
            }
        };
        self.text.get_or_insert(choice);
        self.take(choice, verdict)
    }

    /// Judges text that cannot be held.
    pub(super) fn judge_message(&mut self, choice: u64) -> Verdict {
        let owner = *self.text.get_or_insert(choice);
        let is_other = owner != choice && self.numbers == Numbers::Names;
        self.take(choice, if is_other { Verdict::Other } else { Verdict::Part })
    }

    fn take(&mut self, choice: u64, verdict: Verdict) -> Verdict {
        if verdict != Verdict::Other || self.is_other(choice) {
            return verdict;
        }
        if self.others.len() < OTHERS_MAX {
            self.others.push(choice);
        }
        verdict
    }

    /// Drops held texts as those of other answers, since the numbers name choices after all or the
    /// answer is over. Returns true if there were any.
    pub(super) fn drop_held(&mut self) -> bool {
        if self.held.is_empty() {
            return false;
        }
        for (choice, _) in std::mem::take(&mut self.held) {
            self.take(choice, Verdict::Other);
        }
        true
    }

    /// Returns true if texts are held that belong to other answers.
    pub(super) fn holds_others(&self) -> bool {
        self.numbers == Numbers::Names && !self.held.is_empty()
    }

    /// Bytes that are held.
    pub(super) fn held_bytes(&self) -> usize {
        self.held.iter().fold(0, |sum, (_, text)| text.len().saturating_add(sum))
    }
}
