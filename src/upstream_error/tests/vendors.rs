//! Tests of errors whose status contradicts the vendor's message.

use super::*;

fn error_of(status: u16, message: &str) -> Error {
    refused(status, &serde_json::json!({"error": {"message": message}}).to_string())
}

#[test]
fn a_window_that_is_full_is_known_whatever_status_says_so() {
    for text in [
        // Error of a LiteLLM that gave up in the middle of an answer (pi#4563).
        "litellm.ServiceUnavailableError: litellm.MidStreamFallbackError: litellm.APIConnectionError: APIConnectionError: OpenAIException - Requested token count exceeds the model's maximum context length of 131072 tokens.",
        "The input (9000 tokens) is longer than the model's context length (8192 tokens)",
        "Your input exceeds the context window of this model.",
        "prompt too long; exceeded max context length by 12 tokens",
        "Input length (9000) exceeds model's maximum context length (8192)",
        "Input is too long for requested model.",
        "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
        "Your request exceeded model token limit: 131072",
    ] {
        for status in [424, 500, 502, 503] {
            let error = error_of(status, text);
            assert_eq!(
                (error.status, error.kind),
                (400, ErrorKind::InvalidRequest),
                "{status} {text}"
            );
            assert!(error.message.starts_with("prompt is too long"), "{}", error.message);
        }
        let object = serde_json::json!({"error": {"message": text, "code": "503"}}).to_string();
        assert_eq!(from_object(&object, &context()).status, 400, "{text}");
    }
}

#[test]
fn what_a_model_wrote_is_no_word_of_the_server() {
    // llama.cpp and Ollama failed to parse an answer; another answer may succeed.
    for text in [
        "Failed to parse input at pos 63: <tool_call>\n<function=Write>\n// this model's maximum context length is 4096 tokens\n",
        "error parsing tool call: raw='{\"content\":\"if 'prompt is too long' in str(e):\"}', err=x",
        "error parsing tool call: raw='{\"content\":\"if prompt is too long at pos 3\"}'",
    ] {
        let error = error_of(500, text);
        assert_eq!((error.status, error.kind), (500, ErrorKind::Api), "{text}");
        let object = serde_json::json!({"error": {"message": text, "code": null}}).to_string();
        assert_eq!(from_object(&object, &context()).status, 502, "{text}");
    }
}

#[test]
fn more_servers_say_in_their_words_that_a_prompt_is_too_long() {
    for text in [
        "`default_max_tokens` (-152) must be greater than 0, `default_max_tokens` (-152) = max_seq_len (8192) - `splited_prompt_len` (8000) - `query_token_len` (344)",
        "Deduced max_tokens -100 is less than 0, becauseprompt length 8292 plus query length 0 is larger than max_seq_len 8192",
        "`prompt_token_ids` length (9000) is greater than `max_seq_len` (8192)",
        "litellm.ContextWindowExceededError: litellm.BadRequestError: Hosted_vllmException - Invalid 'messages': string too long.",
        "prompt_too_long: tokenized VLM text prompt has 20767 tokens, max prompt/context tokens is 16384",
        "The length of tokens in the request is too long. Do not exceed the model's maximum token limit.",
        "Your input context is too long. Reduce your input context and try again.",
        "Request contains 35000 tokens, which exceeds the limit of 32768.",
        "total tokens exceeds the model's max of 4096",
        "请压缩上下文",
        "输入长度超过限制",
        "token数量超过限制",
    ] {
        let complaint = rewritten(text);
        assert!(complaint.starts_with("prompt is too long"), "{complaint}");
    }
    // Words about a text that is too long, in errors that are not about the prompt.
    for other in [
        "工具名称长度超过限制",
        "context: 工具名称长度超过限制",
        "Invalid value 'prompt_too_long_handler' for tools[0].function.name",
    ] {
        assert_eq!(rewritten(other), other);
    }
}

#[test]
fn a_limit_per_minute_is_no_empty_account() {
    for text in [
        "You exceeded your current quota, please check your plan and billing details. For details, see: https://help.aliyun.com/zh/model-studio/error-code#token-limit",
        "Allocated quota exceeded, please increase your quota limit. For details, see: https://help.aliyun.com/zh/model-studio/error-code#token-limit",
    ] {
        let body = serde_json::json!({"error":
            {"code": "insufficient_quota", "message": text, "type": "insufficient_quota"}})
        .to_string();
        for error in [refused(429, &body), refused(400, &body), from_object(&body, &context())] {
            assert_eq!((error.status, error.kind), (429, ErrorKind::RateLimit), "{text}");
            assert_eq!(error.should_retry, None);
        }
    }
}

#[test]
fn a_plan_that_is_used_up_is_no_wrong_credential() {
    // Errors of Kimi Code and OpenCode Zen.
    for (status, kind, text) in [
        (403, "access_terminated_error", "You've reached your usage limit for this billing cycle."),
        (403, "access_terminated_error", "You've reached your weekly (7-day) usage limit."),
        (401, "CreditsError", "No payment method. Add a payment method here: https://opencode.ai"),
        (401, "MonthlyLimitError", "Your workspace has reached its monthly spending limit."),
    ] {
        let body = serde_json::json!({"error": {"type": kind, "message": text}}).to_string();
        let error = refused(status, &body);
        assert_eq!((error.status, error.kind), (402, ErrorKind::Billing), "{text}");
        assert_eq!(error.should_retry, Some(false));
        let own = refused_for(status, &body, &edge_asked());
        assert_eq!((own.status, own.message.as_str()), (402, UNPAID), "{text}");
    }
    let hours = error_of(429, "You have reached your usage limit. Try again in 5 hours.");
    assert_eq!((hours.status, hours.kind), (429, ErrorKind::RateLimit));
    // An error of the type `access_terminated_error` that is not about a used-up plan.
    let body = r#"{"error":{"type":"access_terminated_error","message":"Kimi For Coding is currently only available for Coding Agents"}}"#;
    assert_eq!(refused(403, body).kind, ErrorKind::Permission);
    let body =
        r#"{"type":"error","error":{"type":"ModelError","message":"Model foo not supported"}}"#;
    assert_eq!(refused(401, body).status, 404);
}

#[test]
fn a_model_that_is_down_is_asked_again() {
    let nim = r#"{"status":400,"title":"Bad Request","detail":"Function id '87ea0ddc': DEGRADED function cannot be invoked"}"#;
    assert_eq!((refused(400, nim).status, refused(400, nim).kind), (529, ErrorKind::Overloaded));
    let tgi = r#"{"error":"Request failed during generation: Server error: CUDA out of memory","error_type":"generation"}"#;
    assert_eq!((refused(424, tgi).status, refused(424, tgi).kind), (502, ErrorKind::Api));
}
