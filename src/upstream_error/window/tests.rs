//! Tests of `window.rs`.

use super::*;
use crate::error::{Error, Rejection};
use crate::model::request_context::AnswerLimits;

/// Returns the client's message if the prompt or the answer is too long.
fn rewritten(error_body: &ErrorBody, context: &RequestContext) -> Option<String> {
    let reasons = vec![too_long(error_body, context)?];
    let message = error_body.message.clone();
    let rejection = Rejection { status: 400, message, reasons, ..Rejection::default() };
    Some(Error::rejected(rejection).message.clone())
}

#[test]
fn the_numbers_are_those_of_the_prompt_and_of_the_window() {
    for (message, expected) in [
        (
            "prompt token count of 140000 exceeds the limit of 128000",
            "prompt is too long: 140000 tokens > 128000 maximum",
        ),
        (
            "`inputs` must have less than 4096 tokens. Given: 5000",
            "prompt is too long: 5000 tokens > 4096 maximum",
        ),
        (
            "Input length 9000 exceeds maximum allowed token size 8192",
            "prompt is too long: 9000 tokens > 8192 maximum",
        ),
        (
            "Input length (40000 tokens) exceeds the maximum allowed length (32768 tokens). Use a shorter \
             input or enable --allow-auto-truncate.",
            "prompt is too long: 40000 tokens > 32768 maximum",
        ),
        (
            "The engine prompt length 227861 exceeds the max_model_len 131072. Please reduce prompt.",
            "prompt is too long: 227861 tokens > 131072 maximum",
        ),
        (
            "The sum of prompt length (9351.0), query length (0) should not exceed max_num_tokens (8192)",
            "prompt is too long: 9351 tokens > 8192 maximum",
        ),
        (
            "The sum of prompt length (4000) and query length (0) max_tokens (2048) should not exceed \
             max_seq_len (4096)",
            "input length and `max_tokens` exceed context limit: 4000 + 2048 > 4096, decrease input length \
             or `max_tokens` and try again",
        ),
        (
            "length of prompt_tokens (141644) must be less than max_seq_len (32768).",
            "prompt is too long: 141644 tokens > 32768 maximum",
        ),
        (
            "input length 150000 exceeds the maximum 131072",
            "prompt is too long: 150000 tokens > 131072 maximum",
        ),
        (
            "The total number of tokens in the prompt (150000) exceeds the model's limit (131072).",
            "prompt is too long: 150000 tokens > 131072 maximum",
        ),
        // Tokens of functions count in addition to tokens of messages.
        (
            "This model's maximum context length is 128000 tokens. However, your messages resulted in \
             129000 tokens (127000 in the messages, 2000 in the functions).",
            "prompt is too long: 129000 tokens > 128000 maximum",
        ),
    ] {
        let body = serde_json::json!({"error": {"message": message}}).to_string();
        let rewritten = rewritten(&ErrorBody::read(&body), &RequestContext::default());
        assert_eq!(rewritten, Some(format!("{expected} ({message})")));
    }
    let bare = "Maximum sequence length 8192 exceeded";
    let body = serde_json::json!({"error": {"message": bare}}).to_string();
    let complaint = rewritten(&ErrorBody::read(&body), &RequestContext::default());
    assert_eq!(complaint, Some(format!("prompt is too long: {bare}")));
    let code = r#"{"error":{"message":"no","code":"model_max_prompt_tokens_exceeded"}}"#;
    assert_eq!(
        rewritten(&ErrorBody::read(code), &RequestContext::default()),
        Some("prompt is too long: no".to_owned())
    );
}

#[test]
fn more_output_than_the_model_gives_is_known_by_what_was_asked_for() {
    let limits = AnswerLimits { max_tokens: 32_000, ..AnswerLimits::default() };
    let context = RequestContext { model: "m".to_owned(), limits, ..RequestContext::default() };
    let complaint = |message: &str| {
        let body = serde_json::json!({"error": {"message": message}}).to_string();
        rewritten(&ErrorBody::read(&body), &context)
    };
    for message in [
        "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]",
        "`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than \
         the `context_window` for this model",
        "max_tokens: Input should be less than or equal to 8192",
        "max_tokens=32000 cannot be greater than max_model_len=max_total_tokens=8192. Please request fewer \
         output tokens. (parameter=max_tokens, value=32000)",
        "max_tokens=32000cannot be greater than max_model_len=8192.",
        "max_completion_tokens=32000 cannot be greater than max_model_len=8192.",
        "Invalid 'max_tokens': integer above maximum value. Expected a value <= 8192, but got 32000 instead.",
        "The maximum tokens you requested exceeds the model limit of 8192. Try again with a maximum tokens \
         value that is lower than 8192.",
    ] {
        let expected = format!(
            "max_tokens: 32000 > 8192, which is the maximum allowed number of output tokens for m \
             ({message})"
        );
        assert_eq!(complaint(message), Some(expected));
    }
    for message in [
        "The parameter max_tokens (32000) you sent in this request is out of range, it should be in [1, 8192]",
        "Range of max_tokens should be [1,8192] but got 32000",
        "The parameter `max_tokens` specified in the request is not valid: value must be at most 8192",
        "At most one value. max_tokens must be at most 8,192",
        "This model supports at most 8192 tokens in the completion. Please lower max_tokens",
        "at most 20 images are allowed, and max_tokens is at most 8192",
    ] {
        let error_body = complaint(message).unwrap_or_default();
        assert!(error_body.starts_with("max_tokens: 32000 > 8192, "), "{message}: {error_body}");
    }
    for message in [
        "max_tokens=32000: messages: at most 20 images are allowed",
        "max_tokens 32000, n=4: n must be in [1, 2]",
        "max_tokens: 32000. temperature must be at most 2",
        "tools: at most 128 functions (max_tokens: 32000)",
    ] {
        assert_eq!(complaint(message), None);
    }
    // Errors about the value of a parameter, and not about the length of the prompt.
    assert_eq!(complaint("max_tokens: Input should be less than or equal to 64000"), None);
    assert_eq!(complaint("temperature must be less than or equal to 2"), None);
}
