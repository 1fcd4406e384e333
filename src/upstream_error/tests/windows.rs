//! Tests of errors about a prompt and an answer that are together longer than the context window.

use super::*;
use crate::upstream_error::refused::{Refused, WindowSpace};

/// Server, URL of the report, error message; tokens of the prompt, of the answer, and of the
/// window.
type Row = (&'static str, &'static str, &'static str, [u64; 3]);

const ROWS: &[Row] = &[
    (
        "vLLM",
        "https://github.com/claude-code-best/claude-code/issues/272",
        "'max_tokens' or 'max_completion_tokens' is too large: 128000. This model's maximum context length is 64001 tokens and your request has 24235 input tokens (128000 > 64001 - 24235). None",
        [24_235, 128_000, 64_001],
    ),
    (
        "vLLM for Ascend, with the prompt on another node",
        "https://github.com/vllm-project/vllm-ascend",
        "'max_tokens' or 'max_completion_tokens' is too large: 5000. This model's maximum context length is 8192 tokens and the decode-side prompt has 4000 input tokens (5000 > 8192 - 4000).",
        [4_000, 5_000, 8_192],
    ),
    (
        "older vLLM, DeepSeek, DeepInfra",
        "https://github.com/evalstate/fast-agent/issues/621",
        "This model's maximum context length is 131072 tokens. However, you requested 131134 tokens (122942 in the messages, 8192 in the completion). Please reduce the length of the messages or completion.",
        [122_942, 8_192, 131_072],
    ),
    (
        "OpenAI's first models",
        "https://github.com/nicknochnack/LangchainDocuments/issues/2",
        "This model's maximum context length is 4097 tokens, however you requested 4322 tokens (4066 in your prompt; 256 for the completion). Please reduce your prompt; or completion length.",
        [4_066, 256, 4_097],
    ),
    (
        "SGLang",
        "https://github.com/sgl-project/sglang/blob/main/python/sglang/srt/managers/tokenizer_manager.py",
        "Requested token count exceeds the model's maximum context length of 32768 tokens. You requested a total of 70000 tokens: 6000 tokens from the input messages and 64000 tokens for the completion. Please reduce the number of tokens in the input messages or the completion to fit within the limit.",
        [6_000, 64_000, 32_768],
    ),
    (
        "OpenRouter",
        "https://github.com/ltmoerdani/opencode-copilot-chat/issues/109",
        "This endpoint's maximum context length is 64000 tokens. However, you requested about 64025 tokens (25 of text input, 64000 in the output). Please reduce the length of either one, or use the \"middle-out\" transform to compress your prompt automatically.",
        [25, 64_000, 64_000],
    ),
    (
        "OpenRouter, with tools",
        "https://openrouter.ai/docs/api-reference/errors",
        "This endpoint's maximum context length is 8192 tokens. However, you requested about 10000 tokens (5000 of text input, 1000 of tool input, 4000 in the output).",
        [6_000, 4_000, 8_192],
    ),
    (
        "TGI, Together",
        "https://github.com/huggingface/chat-ui/issues/340",
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 1512. Given: 1000 `inputs` tokens and 1024 `max_new_tokens`",
        [1_000, 1_024, 1_512],
    ),
    (
        "Claude",
        "https://github.com/stackblitz/bolt.new/issues/7414",
        "input length and `max_tokens` exceed context limit: 90402 + 116650 > 204648, decrease input length or `max_tokens` and try again",
        [90_402, 116_650, 204_648],
    ),
    (
        "Claude behind LiteLLM",
        "https://github.com/OpenHands/benchmarks/issues/45",
        "litellm.ContextWindowExceededError: litellm.BadRequestError: AnthropicError - input length and `max_tokens` exceed context limit: 142123 + 64000 > 200000, decrease input length or `max_tokens` and try again",
        [142_123, 64_000, 200_000],
    ),
    (
        "TensorRT-LLM",
        "https://github.com/NVIDIA/TensorRT-LLM/issues",
        "The sum of prompt length (4000) and query length (0) max_tokens (2048) should not exceed max_seq_len (4096)",
        [4_000, 2_048, 4_096],
    ),
    (
        "vLLM behind LiteLLM",
        "https://github.com/openclaw/openclaw/issues/85921",
        "litellm.BadRequestError: Hosted_vllmException - {\"object\":\"error\",\"message\":\"max_tokens is too large: 32000. This model's maximum context length is 40960 tokens and your request has 12000 input tokens (32000 > 40960 - 12000).\",\"type\":\"BadRequestError\",\"param\":null,\"code\":400}",
        [12_000, 32_000, 40_960],
    ),
    (
        "Kimi, which tells the sum",
        "https://platform.moonshot.ai/docs/api/chat",
        "Invalid request: Your request exceeded model token limit: 262144 (requested: 274613)",
        [242_613, 32_000, 262_144],
    ),
    (
        "Cloudflare, which tells the sum",
        "https://github.com/cloudflare/workers-sdk/issues",
        "AiError: The estimated number of input and maximum output tokens (33000) exceeded this model context window limit (24000).",
        [23_000, 10_000, 24_000],
    ),
    (
        "SiliconFlow, which tells the sum",
        "https://docs.siliconflow.cn",
        "max_total_tokens (40000) must be less than or equal to max_seq_len (32768)",
        [8_000, 32_000, 32_768],
    ),
];

fn asked_for(answer: u64, estimate: u64) -> RequestContext {
    RequestContext { input_tokens: estimate, input_estimate: estimate, ..limited(answer) }
}

/// Returns the space that the error leaves for the answer.
fn left(message: &str, context: &RequestContext) -> Option<WindowSpace> {
    let body = serde_json::json!({"error": {"message": message}}).to_string();
    let error = refused_for(400, &body, context);
    let rejection = error.rejection()?;
    rejection.reasons.iter().find_map(|reason| match Refused::of(reason, "", context)? {
        Refused::Space(space) => Some(space),
        _ => None,
    })
}

#[test]
fn what_a_window_leaves_for_the_answer_is_read_from_the_words_of_servers() {
    for (who, link, message, [prompt, answer, window]) in ROWS.iter().copied() {
        // The estimate is a tenth below the real count.
        let estimate = prompt - prompt / 10;
        let context = asked_for(answer, estimate);
        // An almost full window leaves no space, so that the client compacts.
        let expected = WindowSpace { answer: window - prompt, prompt, estimate };
        let expected = (expected.answer >= 1_024).then_some(expected);
        assert_eq!(left(message, &context), expected, "{who}: {message} {link}");
    }
}

#[test]
fn a_server_that_counts_one_token_more_is_asked_for_one_less() {
    // Older SGLang refuses a sum that is as large as the window.
    let message = "Requested token count exceeds the model's maximum context length of 32768 tokens. You requested a total of 32768 tokens: 6000 tokens from the input messages and 26768 tokens for the completion.";
    let context = asked_for(26_768, 5_000);
    assert_eq!(left(message, &context).map(|space| space.answer), Some(26_767));
}

#[test]
fn nothing_is_left_where_the_prompt_alone_is_too_long_or_no_rest_is_told() {
    for message in [
        // Errors about the prompt alone.
        "The input (291793 tokens) is longer than the model's context length (262144 tokens).",
        "This model's maximum context length is 8192 tokens. However, your prompt contains at least 8193 input tokens, which exceeds this limit even without any output tokens. Please reduce the length of the input prompt.",
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 179011 tokens. Please reduce the length of the messages.",
        "This endpoint's maximum context length is 32768 tokens. However, you requested about 42832 tokens (42832 of text input). Please reduce the length of either one, or use the \"middle-out\" transform to compress your prompt automatically.",
        "The input token count (2845475) exceeds the maximum number of tokens allowed (1048576).",
        "number of input tokens (204703) has exceeded max_prompt_tokens (202752) limit.",
        "prompt is too long: 213462 tokens > 200000 maximum",
        // Error about a window that has no space for an answer.
        "input length and `max_tokens` exceed context limit: 199990 + 8192 > 200000, decrease input length or `max_tokens` and try again",
        // Errors about the limit of the answer alone.
        "max_tokens is too large: 32000. This model supports at most 16384 completion tokens, whereas you provided 32000.",
        "max_completion_tokens is too large: 32000.This model supports at most 4096 completion tokens.",
        // Text that a user wrote, quoted in the error.
        "Invalid 'messages[0].content': expected a string, but found 5000 + 4000 > 8192",
        "the context window and max_tokens are fine: 1 + 2 > 3",
    ] {
        assert_eq!(left(message, &asked_for(32_000, 200_000)), None, "{message}");
    }
    let kimi =
        "Invalid request: Your request exceeded model token limit: 262144 (requested: 566084)";
    assert_eq!(left(kimi, &asked_for(32_000, 560_000)), None);
}

#[test]
fn a_total_without_parts_has_the_answer_in_it_where_the_rest_looks_like_the_prompt() {
    let message =
        "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens";
    for (estimate, expected) in
        [(4_000, Some(3_192)), (6_900, Some(3_192)), (7_100, None), (20, None), (20_000, None)]
    {
        let context = asked_for(4_000, estimate);
        assert_eq!(left(message, &context).map(|space| space.answer), expected, "{estimate}");
    }
}

#[test]
fn a_full_window_is_known_by_its_words_with_any_status() {
    for status in [400, 413, 424, 500, 502, 503] {
        for text in [
            "internal error: 输入内容超长，请缩短后重试",
            "Input is too long for this model.",
            "请求的token数超过限制",
        ] {
            let body = serde_json::json!({"error": {"message": text}}).to_string();
            let error = refused(status, &body);
            assert_eq!(error.status, 400, "{status} {text}");
            assert!(error.message.starts_with("prompt is too long"), "{status} {text}");
        }
    }
}

#[test]
fn one_text_or_id_or_name_that_is_too_long_is_no_full_window() {
    let litellm = "litellm.ContextWindowExceededError: litellm.BadRequestError: ContextWindowExceededError: \
        OpenAIException - ";
    for own in [
        "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a \
         string with length 46 instead.",
        "Invalid 'tools[0].function.description': string too long. Expected a string with maximum length 1024, but got \
         a string with length 1200 instead.",
        "tools.0.name: String should have at most 64 characters",
    ] {
        for text in [own.to_owned(), [litellm, own].concat()] {
            let body = serde_json::json!({"error": {"message": text}}).to_string();
            let error = refused(400, &body);
            assert!(!error.message.contains("prompt is too long"), "{}", error.message);
        }
    }
}
