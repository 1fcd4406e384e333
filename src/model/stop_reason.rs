//! Translation of the upstream's `finish_reason` to `stop_reason`.
//!
//! First match:
//!
//! | # | condition | `stop_reason` |
//! |---|---|---|
//! | 1 | a refusal | `refusal` |
//! | 2 | a length limit, also with complete calls | `max_tokens` |
//! | 3 | the context window | `model_context_window_exceeded` |
//! | 4 | a failure | none: it is an error, see [`is_failure`] |
//! | 5 | there is a call | `tool_use`, whatever the upstream says: many say `stop` |
//! | 6 | a stop sequence of the client | `stop_sequence` |
//! | 7 | an unknown word and no content | none: it is an error |
//! | 8 | everything else | `end_turn`: `tool_calls` without a call must not make an agent loop |

use std::borrow::Cow;

use crate::StopReason;
use crate::error::Error;
use crate::text::words;

/// Facts about a finished answer that determine its `stop_reason`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EndFacts<'a> {
    /// Last `finish_reason` that the upstream sent.
    pub(crate) finish_reason: Option<&'a str>,
    /// True if the model refused with a message.
    pub(crate) refused: bool,
    /// True if the answer has a `tool_use` block.
    pub(crate) has_tool_use: bool,
    /// True if the answer has at least one content block.
    pub(crate) has_block: bool,
    /// True if the model stopped at one of the client's stop sequences.
    pub(crate) at_stop_sequence: bool,
}

/// DashScope's `finish_reason` for a failure. The text in the same chunk is an error message, and
/// not the model's answer.
const TOLD_IN_TEXT: &str = "error_finish";

/// Meaning of an upstream's `finish_reason`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FinishMeaning {
    Normal,
    Refusal,
    Length,
    Window,
    Failure,
    Unknown,
}

impl FinishMeaning {
    fn of(word: &str) -> Self {
        match &*bare(word) {
            "" | "stop" | "eos" | "eos_token" | "end_turn" | "stop_sequence" | "tool_calls"
            | "tool_call" | "tool_use" | "function_call" | "complete" | "normal" => Self::Normal,
            // Values of OpenAI, Messages, Zhipu, Bedrock, Gemini and Cohere, in this order.
            "content_filter"
            | "content_policy_violation"
            | "refusal"
            | "sensitive"
            | "content_filtered"
            | "guardrail_intervened"
            | "safety"
            | "recitation"
            | "prohibited_content"
            | "blocklist"
            | "spii"
            | "model_armor"
            | "image_safety"
            | "error_toxic" => Self::Refusal,
            "length"
            | "max_tokens"
            | "max_output_tokens"
            | "max_completion_tokens"
            | "max_new_tokens"
            | "token_limit"
            | "max_length" => Self::Length,
            "model_length" | "model_context_window_exceeded" | "context_length_exceeded"
            // Value of Cohere.
            | "error_limit" => Self::Window,
            TOLD_IN_TEXT
            | "error"
            | "abort"
            | "aborted"
            // vLLM stops an answer that repeats itself endlessly.
            | "repetition"
            | "cancelled"
            | "canceled"
            | "timeout"
            // Value of watsonx.
            | "time_limit"
            | "server_error"
            | "network_error"
            | "insufficient_system_resource" => Self::Failure,
            // Portkey's gateway sends the type of Claude's error here, even in the middle of a
            // call.
            word if word.ends_with("_error") => Self::Failure,
            _ => Self::Unknown,
        }
    }
}

/// Returns a `finish_reason` in OpenAI's spelling, without the prefixes and explanations that some
/// servers add.
pub(crate) fn bare(word: &str) -> Cow<'_, str> {
    // Fast path: nearly every answer ends with one of these words, and this function is called
    // often.
    if matches!(word, "stop" | "tool_calls" | "length") {
        return word.into();
    }
    // Gemini appends the reason: `content_filter: RECITATION`
    let word = words::split_once(word, ":").map_or(word, |(word, _)| word);
    let word = in_snake_case(word.trim());
    // Google's enumerations have the name of the type as a prefix.
    match word.strip_prefix("finish_reason_") {
        Some(word) => word.to_owned().into(),
        None => word,
    }
}

/// Converts a `finish_reason` such as `STOP`, `contentFilter` or `content-filter` to snake case,
/// OpenAI's spelling.
fn in_snake_case(word: &str) -> Cow<'_, str> {
    if !word.bytes().any(|byte| byte == b'-' || byte.is_ascii_uppercase()) {
        return word.into();
    }
    let mut snake = String::with_capacity(word.len());
    let mut after_small = false;
    for letter in word.chars() {
        if after_small && letter.is_ascii_uppercase() {
            snake.push('_');
        }
        after_small = letter.is_ascii_lowercase();
        snake.push(if letter == '-' { '_' } else { letter.to_ascii_lowercase() });
    }
    snake.into()
}

/// Returns true if the `finish_reason` says that the answer was cut off, by a length limit or by a
/// filter.
pub(crate) fn is_cut_off(finish_reason: &str) -> bool {
    matches!(
        FinishMeaning::of(finish_reason),
        FinishMeaning::Length | FinishMeaning::Window | FinishMeaning::Refusal
    )
}

/// Returns true if the `finish_reason` says that a filter stopped the answer, or that the model
/// refused.
pub(crate) fn is_refusal(finish_reason: &str) -> bool {
    FinishMeaning::of(finish_reason) == FinishMeaning::Refusal
}

/// Returns true if `word`, a limit or a refusal, outweighs the normal end `later`. Some gateways
/// add a `stop` of their own to a cut-off answer.
pub(crate) fn outlasts(word: &str, later: &str) -> bool {
    FinishMeaning::of(later) == FinishMeaning::Normal
        && matches!(
            FinishMeaning::of(word),
            FinishMeaning::Length | FinishMeaning::Window | FinishMeaning::Refusal
        )
}

/// Returns true if the `finish_reason` is unknown.
pub(crate) fn is_unknown(finish_reason: &str) -> bool {
    FinishMeaning::of(finish_reason) == FinishMeaning::Unknown
}

/// Returns true if the `finish_reason` says that the model stopped for a tool call.
pub(crate) fn says_call(finish_reason: &str) -> bool {
    matches!(&*bare(finish_reason), "tool_calls" | "tool_call" | "tool_use" | "function_call")
}

/// Returns true if the `finish_reason` says that the model failed.
pub(crate) fn is_failure(finish_reason: &str) -> bool {
    FinishMeaning::of(finish_reason) == FinishMeaning::Failure
}

/// Returns true if the `finish_reason` is that of DashScope's failures, whose text is an error
/// message and no part of the answer.
pub(crate) fn is_told_in_text(finish_reason: &str) -> bool {
    in_snake_case(finish_reason) == TOLD_IN_TEXT
}

/// Returns the `stop_reason` of an answer.
///
/// # Errors
///
/// The model failed, or stopped with an unknown `finish_reason` and without content.
pub(crate) fn of(facts: EndFacts<'_>) -> Result<StopReason, Error> {
    let word = facts.finish_reason.unwrap_or_default();
    let meaning = FinishMeaning::of(word);
    Ok(match meaning {
        _ if facts.refused => StopReason::Refusal,
        FinishMeaning::Refusal => StopReason::Refusal,
        FinishMeaning::Length => StopReason::MaxTokens,
        FinishMeaning::Window => StopReason::ModelContextWindowExceeded,
        FinishMeaning::Failure => return Err(stopped(word)),
        _ if facts.has_tool_use => StopReason::ToolUse,
        _ if facts.at_stop_sequence => StopReason::StopSequence,
        FinishMeaning::Unknown if !facts.has_block => return Err(stopped(word)),
        FinishMeaning::Normal | FinishMeaning::Unknown => StopReason::EndTurn,
    })
}

fn stopped(word: &str) -> Error {
    Error::misbehaved(message(word))
}

/// Returns the error message for an answer that stopped with the `finish_reason` `word`.
pub(crate) fn message(word: &str) -> String {
    let word: String = word.chars().filter(|letter| !letter.is_control()).take(64).collect();
    format!("Upstream stopped: {word}")
}

#[cfg(test)]
mod tests;
