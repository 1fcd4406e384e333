//! Parser that turns `<think>…</think>` at the very start of a text into reasoning (profile flag
//! `inline_think`).
//!
//! Bedrock puts tags around each piece of reasoning, so tags that follow at once continue the
//! reasoning. Tags may be cut at any byte. A tag later in the text stays text, because models write
//! about tags. An end tag without a start tag stays text, too, because the text before it has been
//! sent already; it is removed only if no text precedes it.

use crate::carry::signature::SignatureField;
use crate::text::words;

/// Tags around reasoning in the text of models. In order: most models, Magistral, Seed, Gemini,
/// models that were prompted to use `<thinking>`, gpt-oss at Bedrock, Kimi (K2 and K3), MiniMax,
/// Cohere, Gemma.
const TAGS: [TagPair; 11] = [
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

/// Pair of a start tag and its end tag.
type TagPair = (&'static str, &'static str);

/// Returns the field to which reasoning between two tags is attributed; `end` is the end tag.
fn field(end: &str) -> SignatureField {
    // Templates read no other tags than `<think>` in a history.
    if end == "</think>" { SignatureField::Inline } else { SignatureField::Marked }
}

/// State of the parser that separates reasoning in tags from the text.
#[derive(Debug)]
pub(super) enum InlineThink {
    /// State: at the start of the answer's text. All of the text so far may still become a tag.
    Start {
        /// Text so far, which may be the start of a tag.
        held: String,
        /// Number of bytes of white space at the start of `held`, which are not examined again.
        blank: usize,
    },
    /// State: between the tags. The end of the reasoning so far may be the start of the end tag.
    Inside {
        /// Text that may be the start of the end tag.
        held: String,
        tags: &'static TagPair,
    },
    /// State: behind the end tag, where white space is dropped.
    After {
        /// Text that may be the start of another start tag.
        held: String,
        tags: &'static TagPair,
    },
    /// State: in the text of the answer, where tags have no meaning.
    Text,
}

impl InlineThink {
    pub(super) fn new() -> Self {
        Self::Start { held: String::new(), blank: 0 }
    }

    /// Reads text, and passes reasoning (with its field) and text to `each`.
    pub(super) fn push(&mut self, text: &str, mut each: impl FnMut(Option<SignatureField>, &str)) {
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

    /// Passes the held text to `each`, because the text of the answer ends or other content comes.
    pub(super) fn release(&mut self, mut each: impl FnMut(Option<SignatureField>, &str)) {
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
