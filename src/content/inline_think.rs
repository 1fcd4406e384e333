//! `<think>…</think>` at the very start of a text, as reasoning (profile flag `inline_think`).
//!
//! Bedrock puts tags around each piece of it, so tags that follow at once are more of it. Tags may
//! be cut anywhere. A tag later in the text stays text, because models write about tags. So does an
//! end tag without a start: the text before it has been sent already. Only an end tag before all
//! other text is removed.

use crate::carry::signature::Field;
use crate::text::words;

/// The tags of the models: most of them, Magistral, Seed, Gemini, those that were told to, gpt-oss
/// at Bedrock, Kimi (K2 and K3), MiniMax, Cohere, Gemma.
const TAGS: [Tags; 11] = [
    ("<think>", "</think>"),
    ("[THINK]", "[/THINK]"),
    ("<seed:think>", "</seed:think>"),
    ("<thought>", "</thought>"),
    ("<thinking>", "</thinking>"),
    ("<reasoning>", "</reasoning>"),
    ("◁think▷", "◁/think▷"),
    ("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
    ("<mm:think>", "</mm:think>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|channel>thought\n", "<channel|>"),
];

/// A start and its end.
type Tags = (&'static str, &'static str);

/// Returns the field from which reasoning between tags is said to come, by its end tag.
fn field(end: &str) -> Field {
    // No template reads the other tags in a history.
    if end == "</think>" { Field::Inline } else { Field::Marked }
}

/// State of the search for reasoning between tags.
#[derive(Debug)]
pub(super) enum InlineThink {
    /// Start of the text, all of which may still become a tag.
    Start {
        /// The text so far.
        held: String,
        /// Number of bytes of white space at the start of `held`, which are not looked at again.
        blank: usize,
    },
    /// Text between the tags; the end of the reasoning so far may be the start of the end tag.
    Inside {
        /// Text that may be the start of the tag.
        held: String,
        tags: &'static Tags,
    },
    /// Text behind the end tag, where white space is left out.
    After {
        /// Text that may be the start of the other tag.
        held: String,
        tags: &'static Tags,
    },
    /// Text of the answer, in which no tag is looked for.
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
                    let opened = TAGS.iter().find_map(|it| Some((seen.strip_prefix(it.0)?, it)));
                    if let Some((inside, tags)) = opened {
                        rest = inside.to_owned();
                        *self = Self::Inside { held: String::new(), tags };
                        continue;
                    }
                    let closed = TAGS.iter().find_map(|it| Some((seen.strip_prefix(it.1)?, it)));
                    if let Some((after, tags)) = closed {
                        rest = after.to_owned();
                        *self = Self::After { held: String::new(), tags };
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
                Self::Inside { held, tags } => {
                    let end = tags.1;
                    held.push_str(&rest);
                    if let Some((reasoning, after)) = words::split_once(held, end) {
                        each(Some(field(end)), reasoning);
                        rest = after.to_owned();
                        *self = Self::After { held: String::new(), tags };
                        continue;
                    }
                    let ready = held.len().saturating_sub(words::overlap(held, end));
                    let tail = words::split_off(held, ready);
                    each(Some(field(end)), held);
                    *held = tail;
                    return;
                }
                Self::After { held, tags } => {
                    held.push_str(if held.is_empty() { rest.trim_start() } else { &rest });
                    if let Some(inside) = held.strip_prefix(tags.0) {
                        rest = inside.to_owned();
                        *self = Self::Inside { held: String::new(), tags };
                        continue;
                    }
                    if tags.0.starts_with(held.as_str()) {
                        return;
                    }
                    rest = std::mem::take(held);
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
            Self::Inside { held, tags } => {
                each(Some(field(tags.1)), held);
                held.clear();
            }
            Self::After { held, .. } if !held.is_empty() => {
                each(None, held);
                *self = Self::Text;
            }
            Self::After { .. } | Self::Text => {}
        }
    }

    pub(super) fn held_bytes(&self) -> usize {
        match self {
            Self::Start { held, .. } | Self::Inside { held, .. } | Self::After { held, .. } => {
                held.len()
            }
            Self::Text => 0,
        }
    }
}

#[cfg(test)]
mod tests;
