//! Errors that say whose turn it is: the user has to begin, and the roles have to alternate.

use super::without_quotes;
use crate::text::words::{self, phrases};

/// What must take turns, in lower case and without quotes.
const SPEAKERS: &str = phrases!["role", "message", "turn"];

/// How roles must stand to each other.
const ALTERNATION: &str = phrases![
    // Templates, and Anthropic behind routers
    "must alternate",
    "should alternate",
    "have to alternate",
    "roles in a row",
    // DeepSeek's first reasoner
    "does not support successive",
    "consecutive user",
    "consecutive assistant",
    "consecutive messages",
    // Gemini
    "alternate between user and model",
    // Perplexity
    "should be alternating",
    "must be alternating",
];

/// What templates say where nobody asks.
const NOBODY: &str = phrases![
    // Qwen3.5 and later
    "no user query found",
    "no user message",
    "without a user message",
    "without any user message",
    "missing user message",
    "lacks a user message",
];

/// What must be at the beginning.
const FIRST: &str = phrases![
    "start with",
    "starts with",
    "begin with",
    "begins with",
    "first message",
    "first non-system message",
    "first content",
    "first turn",
    "first role",
];

/// That there must be one at all.
const AT_ALL: &str = phrases![
    "at least one",
    "must contain",
    "must include",
    "must have",
    "should contain",
    "does not contain",
    "do not contain",
    "requires a",
    "expected a",
];

/// What such an error does not speak of: the end of a conversation, tools and the user's account.
const OTHERS: &str = phrases![
    "prefill",
    "last message",
    "last role",
    "end with",
    "ends with",
    "tool",
    "function",
    "user id",
    "user_id",
    "user_message",
];

/// Whether an upstream's error message says that messages of the user and of the assistant must take turns, or that
/// the user must begin.
pub(super) fn is_turns(message: &str) -> bool {
    let text = without_quotes(message);
    let has = |any: &str| words::has_one_of(&text, any);
    let alternates = has(SPEAKERS) && has(ALTERNATION);
    // A template tells its name before the word, a server quotes the role: `message with role user`.
    let of_user = words::places(&text, "user").any(|at| is_of_role(&text, at));
    alternates || has(NOBODY) || of_user && (has(FIRST) || has(AT_ALL)) && !has(OTHERS)
}

/// Whether `user` is a role here: beside the word for a message, a turn or a role.
fn is_of_role(text: &str, at: usize) -> bool {
    const BESIDE_BYTES: usize = 24;
    let (before, behind) = text.split_at_checked(at).unwrap_or_default();
    let start = before.len().saturating_sub(BESIDE_BYTES);
    let start = (start..=before.len()).find(|at| before.is_char_boundary(*at)).unwrap_or_default();
    let before = before.get(start..).unwrap_or_default();
    let behind = words::beginning(behind, BESIDE_BYTES);
    let beside = |text: &str| {
        words::has_one_of(text, phrases!["role", "message", "turn", "query", "content"])
    };
    beside(before) || beside(behind)
}

#[cfg(test)]
mod tests;
