//! `<think>…</think>` at the very start of a text, as reasoning (profile flag `inline_think`).
//!
//! Tags may be cut anywhere. A tag later in the text stays text, because models write about tags. So does
//! an end tag without a start: the text before it has been sent already. Only an end tag before all other
//! text is removed.

use crate::translate::signature::Field;
use crate::words;

/// The tags of the models: most of them, Magistral, Seed, Gemini, those that were told to, gpt-oss at Bedrock,
/// Kimi, MiniMax, Cohere, Gemma.
const TAGS: [(&str, &str); 10] = [
    ("<think>", "</think>"),
    ("[THINK]", "[/THINK]"),
    ("<seed:think>", "</seed:think>"),
    ("<thought>", "</thought>"),
    ("<thinking>", "</thinking>"),
    ("<reasoning>", "</reasoning>"),
    ("◁think▷", "◁/think▷"),
    ("<mm:think>", "</mm:think>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|channel>thought\n", "<channel|>"),
];

/// Where reasoning between tags is said to come from, by its end tag.
fn field(end: &str) -> Field {
    // No template reads the other tags in a history.
    if end == "</think>" { Field::Inline } else { Field::Marked }
}

/// Where the text is.
#[derive(Debug)]
pub(super) enum InlineThink {
    /// At its start; this much may still become the tag.
    Start {
        /// The text so far.
        held: String,
        /// So many bytes at its start are white space, and are not looked at again.
        blank: usize,
    },
    /// Inside; the end of the reasoning so far may be the start of the end tag.
    Inside {
        /// Text that may be the start of the tag.
        held: String,
        /// The tag.
        end: &'static str,
    },
    /// After the end tag; white space is left out.
    After,
    /// In the text.
    Text,
}

impl InlineThink {
    pub(super) fn new() -> Self {
        Self::Start { held: String::new(), blank: 0 }
    }

    /// Takes text; gives reasoning, with its field, and text to `each`.
    pub(super) fn push(&mut self, text: &str, mut each: impl FnMut(Option<Field>, &str)) {
        let mut rest = text.to_owned();
        loop {
            match self {
                Self::Start { held, blank } => {
                    held.push_str(&rest);
                    let seen = held.get(*blank..).unwrap_or_default().trim_start();
                    *blank = held.len().saturating_sub(seen.len());
                    let opened =
                        TAGS.iter().find_map(|(start, end)| Some((seen.strip_prefix(start)?, end)));
                    if let Some((inside, end)) = opened {
                        rest = inside.to_owned();
                        *self = Self::Inside { held: String::new(), end };
                        continue;
                    }
                    if let Some(after) = TAGS.iter().find_map(|(_, end)| seen.strip_prefix(end)) {
                        rest = after.to_owned();
                        *self = Self::After;
                        continue;
                    }
                    if TAGS
                        .iter()
                        .flat_map(|(start, end)| [start, end])
                        .any(|it| it.starts_with(seen))
                    {
                        return;
                    }
                    rest = std::mem::take(held);
                    *self = Self::Text;
                }
                Self::Inside { held, end } => {
                    held.push_str(&rest);
                    if let Some((reasoning, after)) = words::split_once(held, end) {
                        each(Some(field(end)), reasoning);
                        rest = after.to_owned();
                        *self = Self::After;
                        continue;
                    }
                    let ready = held.len().saturating_sub(words::overlap(held, end));
                    let tail = held.split_off(ready);
                    each(Some(field(end)), held);
                    *held = tail;
                    return;
                }
                Self::After => {
                    let text = rest.trim_start();
                    if text.is_empty() {
                        return;
                    }
                    rest = text.to_owned();
                    *self = Self::Text;
                }
                Self::Text => return each(None, &rest),
            }
        }
    }

    /// The text is over, or something else comes: gives what was held back.
    pub(super) fn release(&mut self, mut each: impl FnMut(Option<Field>, &str)) {
        match self {
            Self::Start { held, .. } => {
                each(None, held);
                *self = Self::Text;
            }
            Self::Inside { held, end } => {
                each(Some(field(end)), held);
                held.clear();
            }
            Self::After | Self::Text => {}
        }
    }

    pub(super) fn held_bytes(&self) -> usize {
        match self {
            Self::Start { held, .. } | Self::Inside { held, .. } => held.len(),
            Self::After | Self::Text => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> (String, String) {
        let run = |pieces: &mut dyn Iterator<Item = &str>| {
            let mut found = (String::new(), String::new());
            let mut think = InlineThink::new();
            let mut each = |field: Option<Field>, text: &str| {
                if field.is_some() { found.0.push_str(text) } else { found.1.push_str(text) }
            };
            for piece in pieces {
                think.push(piece, &mut each);
            }
            think.release(&mut each);
            found
        };
        let whole = run(&mut std::iter::once(text));
        for (cut, _) in text.char_indices() {
            let (left, right) = text.split_at(cut);
            assert_eq!(run(&mut [left, right].into_iter()), whole, "cut at {cut}");
        }
        assert_eq!(run(&mut text.split_inclusive(|_: char| true)), whole);
        whole
    }

    #[test]
    fn only_a_tag_at_the_start_opens_reasoning() {
        for (text, reasoning, answer) in [
            ("<think>Hmm.</think>\n\nHi", "Hmm.", "Hi"),
            ("\n <think>Hmm.</think>Hi </think> <think>", "Hmm.", "Hi </think> <think>"),
            ("<think>a < b </ c</think>", "a < b </ c", ""),
            ("<think>never ends </thin", "never ends </thin", ""),
            ("[THINK]a </think>[/THINK] Hi", "a </think>", "Hi"),
            ("Hmm.</think>Hi", "", "Hmm.</think>Hi"),
            ("Say <think>x</think>", "", "Say <think>x</think>"),
            ("<thin", "", "<thin"),
            (" <b>", "", " <b>"),
            ("\n</think>\n\nHi </think>", "", "Hi </think>"),
            ("</b>", "", "</b>"),
            ("◁think▷Hmm. ◁/ ◁/think▷Hi", "Hmm. ◁/ ", "Hi"),
            ("<|channel>thought\nHmm.<channel|>Hi", "Hmm.", "Hi"),
            ("<|channel>though", "", "<|channel>though"),
        ] {
            assert_eq!(split(text), (reasoning.to_owned(), answer.to_owned()), "{text}");
        }
    }
}
