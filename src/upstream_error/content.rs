//! Errors that say that a server does not take a message of the assistant without words as it was sent: with `null`
//! for its content, or with an empty text.

use super::without_quotes;
use crate::error::Reason;
use crate::text::words::{self, phrases};

/// What is said of `null` and of a content that is not there, in lower case and without quotes.
const NULL: &str = phrases![
    "none is not an allowed value",
    "content must be a string",
    "content should be a string",
    "content: input should be a valid string",
    ".str: input should be a valid string",
    "content: value must be a string",
    "content : value must be a string",
    "content: none is not",
    "content is null",
    "content cannot be null",
    "content can not be null",
    "content must not be null",
    "content may not be null",
    "content: null",
    "invalid type: null, expected a string",
    "invalid type: null, expected string",
    "expected a string, got null",
    "expected string, got null",
    "got null instead",
    "content is required",
    "content field is required",
    "content is a required property",
    "content: field required",
    "missing field content",
    // Templates
    "(not nonetype)",
    "concatenate nonetype",
    "nonetype and str",
    "str and nonetype",
    "nonetype is not iterable",
    "argument of type nonetype",
    "value is not callable: null",
];

/// What is said of an empty text.
const EMPTY: &str = phrases![
    "content cannot be empty",
    "content can not be empty",
    "content must not be empty",
    "content should not be empty",
    "content is empty",
    "content must be non-empty",
    "empty content",
    "text content blocks must be non-empty",
    "content blocks must contain non-whitespace",
    "role assistant must not be empty",
    "text field in the contentblock object",
];

/// What such an error does not speak of.
const OTHERS: &str = phrases![
    "tool_call_id",
    "function.arguments",
    "tools[",
    "tools.",
    "image",
    "role:user",
    "reasoning_content"
];

/// What an error message refuses of messages without words.
pub(super) fn refused_content(message: &str) -> Option<Reason> {
    let is_none = words::has_one_of(message, phrases!["'input': None", "input_value=None"])
        && words::has(message, "content");
    let text = without_quotes(message);
    let has = |any: &str| words::has_one_of(&text, any);
    if has(OTHERS) {
        None
    } else if is_none || has(NULL) || lacks_content(&text) {
        Some(Reason::NullContent)
    } else {
        has(EMPTY).then_some(Reason::EmptyContent)
    }
}

/// Whether it says that there is no content in a message: `Missing required parameter: 'messages[1].content'`.
fn lacks_content(text: &str) -> bool {
    words::split_once(text, "missing required parameter: messages")
        .is_some_and(|(_, behind)| words::has_one_of(behind, phrases!["].content", ".content"]))
}

#[cfg(test)]
mod tests;
