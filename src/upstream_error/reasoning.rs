//! Errors that say that a server does not take back what its model thought: it knows no such member, or
//! what Claude thought is no longer where it was thought (a gateway with several accounts in front of it, a
//! message before it that has changed).

use super::says;
use crate::text::words::phrases;

/// A member or block of a message, in lower case and without quotes: `reasoning` alone is a parameter, too.
const SUBJECTS: &str = phrases![
    "signature in thinking block",
    "redacted_thinking blocks in the latest",
    "reasoning_content",
    "reasoning_details",
    "thinking_blocks",
    "property reasoning ",
    "].reasoning",
    "assistant.reasoning",
];

/// What is said of it.
const REFUSALS: &str = phrases![
    "invalid signature",
    "cannot be modified",
    "extra_forbidden",
    "not permitted",
    "not allowed",
    "not support",
    "unsupported",
    "unrecognized",
    "unknown",
    "additional propert",
    "unexpected keyword argument",
];

/// Words of those that want it and did not get it.
const LACKS: &str = phrases!["passed back", "is missing", "missing reasoning"];

/// Whether an upstream's error message says that it refuses reasoning in the history.
pub(super) fn is_reasoning(message: &str) -> bool {
    says(message, SUBJECTS, REFUSALS, LACKS)
}

#[cfg(test)]
mod tests;
