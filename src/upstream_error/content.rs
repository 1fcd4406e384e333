//! Detection of errors about assistant messages without text, whose content was sent as `null` or
//! as an empty text.

use super::wordings::{EMPTY_CONTENT, NO_CONTENT_OF_CALLS, NULL_CONTENT};
use crate::error::Reason;
use crate::text::words;

/// Returns the reason if an error refuses assistant messages without text. `text`: the message
/// without quotes.
pub(super) fn refused_content(message: &str, text: &str) -> Option<Reason> {
    let is_none = words::has_any(message, &["'input': None", "input_value=None"])
        && words::has(message, "content");
    if NO_CONTENT_OF_CALLS.any(text) {
        None
    } else if is_none || NULL_CONTENT.any(text) || lacks_content(text) {
        Some(Reason::NullContent)
    } else {
        EMPTY_CONTENT.any(text).then_some(Reason::EmptyContent)
    }
}

/// Returns true if the text complains that a message has no content:
/// `Missing required parameter: 'messages[1].content'`.
fn lacks_content(text: &str) -> bool {
    words::split_once(text, "missing required parameter: messages")
        .is_some_and(|(_, behind)| words::has(behind, ".content"))
}

#[cfg(test)]
mod tests;
