//! Errors that say that tool calls and results do not fit together.
//!
//! Each vendor words them in its own way and changes the wording, so a sentence is known by two
//! things that it speaks of: a tool call or result, and how messages must stand to each other.

use super::says;
use crate::text::words::phrases;

/// A call or a result, in lower case and without quotes.
const SUBJECTS: &str = phrases![
    "tool_call",
    "tool call",
    "tool_use",
    "tool use",
    "tooluse",
    "tool_result",
    "tool result",
    "toolresult",
    "tool message",
    "tool output",
    "tool role",
    "role tool",
    "tool id",
    "function call",
    "function response",
    "function_call",
];

/// An id of one. That it is not found says enough.
const IDS: &str = phrases!["tool_call_id", "tool_use_id", "tool id"];

/// How they must stand to each other.
const RELATIONS: &str = phrases![
    // Anthropic
    "ids were found without",
    "unexpected tool_use_id found",
    "must have a corresponding",
    "must have a single result",
    "ids must be unique",
    // OpenAI and those that copied its words
    "must be a response to a prece",
    "must be followed by tool messages",
    "did not have response messages",
    "not found in tool_calls of previous message",
    "no tool call found for",
    "no tool output found for",
    "duplicate value for",
    "duplicate tool_call id",
    // DeepSeek, Moonshot, MiniMax
    "insufficient tool messages",
    "does not follow tool call",
    "call and result not match",
    // Mistral
    "not the same number of function calls and responses",
    "unexpected role user after role tool",
    "unexpected role system after role tool",
    "unexpected role tool after role",
    "unexpected tool call id",
    // Gemini
    "number of function response parts is equal to",
    "call turn comes immediately after",
    "response turn comes immediately after",
    "missing a thought_signature",
    // Bedrock
    "exceeds the number of tooluse blocks",
    "expected toolresult blocks",
    // Chat templates
    "no previous assistant message with a tool call",
    // As anybody would say it: there are more servers than are known here
    "no previous tool call",
    "must follow an assistant message",
    "must follow a tool call",
    "must be preceded by",
    "must come after",
    "must immediately follow",
    "without a matching",
    "without a corresponding",
    "no matching tool",
];

/// Whether an upstream's error message says that calls and results do not fit.
pub(super) fn is_pairing(message: &str) -> bool {
    says(message, IDS, "not found", "") || says(message, SUBJECTS, RELATIONS, "")
}

#[cfg(test)]
mod tests;
