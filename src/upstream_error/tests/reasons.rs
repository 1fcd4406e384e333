//! Tests of the place of the reason in an error, and of the error that results from the reason.

use super::*;

#[test]
fn a_reason_beside_the_message_is_shown_with_it() {
    for (body, expected) in [
        (
            r#"{"error":{"code":"400","message":"Param Incorrect","param":"`text` is not set","type":""}}"#,
            "Param Incorrect: `text` is not set",
        ),
        (r#"{"error":{"message":"m","param":"messages[0].content"}}"#, "m"),
        (r#"{"error":{"message":"m","reason":"it is so"}}"#, "m: it is so"),
        (r#"{"error":{"message":"m: it is so","reason":"it is so"}}"#, "m: it is so"),
        (
            r#"{"error":{"message":"m","errors":[{"reason":"badRequest"}],"reason":"it is so"}}"#,
            "m: it is so",
        ),
        (r#"{"error":{"message":"m","reason":"badRequest"}}"#, "m"),
        (r#"{"error":{"reason":"badRequest"}}"#, "badRequest"),
        (r#"{"error":{"type":"x","reason":"it is so"},"status":400}"#, "it is so"),
        (r#"{"error":{"message":"m","details":"hidden words","cause":"other words"}}"#, "m"),
    ] {
        assert_eq!(message(body), expected, "{body}");
    }
    let body = r#"{"error":{"message":"Param Incorrect","param":"max_tokens is too large: 200000. This model supports at most 131072 completion tokens","code":"400"}}"#;
    assert!(refused(400, body).message.starts_with("max_tokens: 200000 > 131072, which"));
}

#[test]
fn that_a_prompt_is_too_long_is_found_wherever_an_error_says_it() {
    let long = "This model's maximum context length is 40960 tokens. However, your request has 50000 input tokens.";
    let quoted = serde_json::json!({"error": {"message": long}}).to_string();
    for body in [
        serde_json::json!({"error": {"message": "m", "value": {"error_message": quoted}}}),
        serde_json::json!({"error": "m", "details": long}),
        serde_json::json!({"error": "m", "details": [{"error": {"message": long}}]}),
        serde_json::json!({"error": {"message": "m", "details": {"why": long}}}),
        serde_json::json!({"error": {"message": "m"}, "attempts": [{"error": {"message": "x y"}}, {"error": {"message": long}}]}),
        serde_json::json!({"message": "m", "upstreamResponse": quoted}),
        serde_json::json!({"error": {"message": "m", "root_cause": [{"reason": long}]}}),
    ] {
        let error = refused(400, &body.to_string());
        assert_eq!(error.message, "prompt is too long: 50000 tokens > 40960 maximum (m)", "{body}");
        let error = from_object(&body.to_string(), &context());
        assert_eq!((error.status, error.kind), (400, ErrorKind::InvalidRequest), "{body}");
    }
    // A quoted request is no part of the error's message.
    for key in ["request", "requestBodyValues", "prompt", "messages", "input"] {
        let body = serde_json::json!({"error": {"message": "m", key: {"a": [long]}}});
        assert_eq!(refused(400, &body.to_string()).message, "m", "{body}");
    }
    let deep = "[".repeat(500) + &"]".repeat(500);
    assert_eq!(refused(400, &format!(r#"{{"error":{{"message":"m","x":{deep}}}}}"#)).message, "m");
}

#[test]
fn a_limit_that_leaves_no_room_for_a_word_is_an_answer() {
    let below = |name: &str| {
        format!(
            "Invalid '{name}': integer below minimum value. Expected a value >= 16, but got 1 instead."
        )
    };
    for text in [
        "Could not finish the message because max_tokens or model output limit was reached. Please try again with higher max_tokens.",
        &below("max_output_tokens"),
        &below("max_completion_tokens"),
        &below("max_tokens"),
        // Wording of chat.b.ai, and other wordings.
        "max_tokens must be greater than 2 (request id: 2026)",
        "`max_tokens` must be greater than or equal to 10, got 1",
        "max_output_tokens must be at least 16",
        "max_tokens: Input should be greater than or equal to 2",
    ] {
        let body =
            serde_json::json!({"error": {"message": text, "code": "integer_below_min_value"}});
        let refusal = read_body(400, body.to_string().as_bytes(), &limited(1));
        assert!(matches!(refusal, Err("max_tokens")), "{text}");
        assert_eq!(as_answer(&body.to_string(), &limited(1)), Some("max_tokens"), "{text}");
    }
    // Errors about other limits than the client's limit of the answer.
    for (text, max_tokens) in [
        (below("max_tokens"), 16),
        (below("n"), 1),
        ("max_tokens must be greater than 2".to_owned(), 3),
        ("`max_tokens` must be greater than `thinking.budget_tokens`".to_owned(), 1),
        ("max_tokens: Input should be less than or equal to 64000".to_owned(), 4096),
        ("max_completion_tokens=32000 cannot be greater than max_model_len=8192.".to_owned(), 4096),
        ("max_tokens (8000) must be greater than budget_tokens (16000)".to_owned(), 4096),
        ("max_tokens must be greater than 16000".to_owned(), 4096),
        ("You need at least 5000 credits for this request, or fewer max_tokens".to_owned(), 4096),
        ("min_tokens must be less than or equal to max_tokens=64, got 100".to_owned(), 20),
    ] {
        let body = serde_json::json!({"error": {"message": text}}).to_string();
        let Ok(error) = read_body(400, body.as_bytes(), &limited(max_tokens)) else {
            panic!("an error");
        };
        assert_eq!((error.status, error.message.as_str()), (400, text.as_str()));
    }
}

#[test]
fn wordings_of_more_servers_are_known_with_their_numbers() {
    for (text, prompt, window) in [
        // Errors of DS4, oMLX, Poolside, Cerebras, RKLLM, Vertex and Zhipu.
        (
            "Prompt has 256468 tokens, but the configured context size is 256000 tokens",
            256_468,
            256_000,
        ),
        ("Prompt too long: 360012 tokens exceeds max context window of 262144", 360_012, 262_144),
        (
            "Input length 131393 exceeds the maximum allowed input length of 131040 tokens.",
            131_393,
            131_040,
        ),
        ("Current length is 132784 while limit is 131000", 132_784, 131_000),
        (
            "Please reduce the length of the messages or completion. Current length is 42328 while limit is 40000",
            42_328,
            40_000,
        ),
        ("Prompt is 11543 tokens but the model context window is 4096 tokens.", 11_543, 4_096),
        (
            "Unable to submit request because the input token count is 1048588 but model only supports up to 1048576. Reduce the input token count and try again.",
            1_048_588,
            1_048_576,
        ),
        // Older errors of SambaNova, and errors of Tenstorrent.
        (
            "Requested generation length 1 is not possible! The provided prompt is 4309 tokens long, so generating 1 tokens requires a sequence length of 4310, but the maximum supported sequence length is just 4096!",
            4_309,
            4_096,
        ),
        (
            "Prompt exceeds maximum input sequence length (51200 tokens): prompt_tokens=52113",
            52_113,
            51_200,
        ),
    ] {
        let expected = format!("prompt is too long: {prompt} tokens > {window} maximum ({text})");
        assert_eq!(rewritten(text), expected);
    }
    let text = "Requested generation length 200 is not possible! The provided prompt is 4000 tokens long, so generating 200 tokens requires a sequence length of 4200, but the maximum supported sequence length is just 4096!";
    assert!(
        rewritten(text)
            .starts_with("input length and `max_tokens` exceed context limit: 4000 + 200 > 4096, ")
    );
    for text in [
        "Prompt 超长",
        "上下文长度超出模型限制",
        "输入长度超过最大上下文长度 131072",
        "model_context_window_exceeded",
        // Wordings made from those of several servers, with one word exchanged.
        "Input too long",
        "The request is larger than the context window",
        // Errors of Snowflake.
        "max tokens of 200000 exceeded",
    ] {
        assert_eq!(rewritten(text), format!("prompt is too long: {text}"));
    }
    for code in ["1261", "tokens_too_long", "tokens_limit_reached"] {
        let coded = serde_json::json!({"error": {"code": code, "message": "m"}}).to_string();
        assert_eq!(refused(400, &coded).message, "prompt is too long: m");
    }
}

#[test]
fn what_is_not_the_prompts_length_is_not_told_as_such() {
    for text in [
        "Requested max tokens of 20000 exceeds the maximum of 8192",
        "This model does not support image input; only text input tokens are supported",
        "参数 name 超长",
        "The stop sequence length exceeds the maximum of 16",
    ] {
        assert_eq!(rewritten(text), text);
    }
    let text = "too many tokens: max tokens must be less than or equal to 4096, the maximum output length for this model - received 32000.";
    let body = serde_json::json!({"message": text}).to_string();
    let context = limited(32_000);
    let Ok(error) = read_body(400, body.as_bytes(), &context) else {
        panic!("an error");
    };
    assert!(error.message.starts_with("max_tokens: 32000 > 4096, which"), "{}", error.message);
}

#[test]
fn a_request_above_the_limit_of_a_minute_is_too_long_and_is_not_retried() {
    let openai = "Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 48000. The input or output tokens must be reduced in order to run successfully.";
    let groq = "Request too large for model `m` on tokens per minute (TPM): Limit 30,000, Requested 48,000, please reduce your message size and try again.";
    let complaint = |status, max_tokens, text: &str| {
        let body = serde_json::json!({"error": {"message": text, "type": "tokens", "code": "rate_limit_exceeded"}});
        let context = limited(max_tokens);
        match read_body(status, body.to_string().as_bytes(), &context) {
            Ok(error) => (
                error.status,
                error.kind,
                error.message.clone(),
                error.rejection().and_then(Rejection::hidden).map(str::to_owned),
            ),
            Err(reason) => panic!("{reason}"),
        }
    };
    for (status, text) in [(429, openai), (413, groq)] {
        let long = "prompt is too long: 48000 tokens > 30000 maximum (the upstream's limit for a minute or a day)";
        let logged = Some(text.to_owned());
        let expected = (400, ErrorKind::InvalidRequest, long.to_owned(), logged.clone());
        assert_eq!(complaint(status, 8_000, text), expected);
        // The prompt would fit without the tokens reserved for the answer.
        let (status, _, message, upstream_message) = complaint(status, 32_000, text);
        assert_eq!((status, upstream_message), (400, logged));
        // Cline does not compact if the message mentions a rate limit.
        assert!(!message.to_lowercase().contains("rate limit"), "{message}");
        assert!(!message.contains("per min"), "{message}");
        assert!(
            message.starts_with(
                "input length and `max_tokens` exceed context limit: 16000 + 32000 > 30000, "
            ),
            "{message}"
        );
    }
    // Errors about rate limits that are used up now and free again a minute later.
    for text in [
        "Rate limit reached for m on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000. Please try again in 2s.",
        "Rate limit reached for m on tokens per min (TPM): Limit 30000, Requested 2000.",
        "Rate limit reached for m on requests per day (RPD): Limit 1, Requested 2",
    ] {
        assert_eq!(complaint(429, 8_000, text), (429, ErrorKind::RateLimit, text.to_owned(), None));
    }
}

#[test]
fn how_long_to_wait_is_read_where_the_body_says_it() {
    let gemini = r#"[{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details. Please retry in 34.07s.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"36s"}]}}]"#;
    assert_eq!(refused(429, gemini).retry_after, Some(36));
    for (text, expected) in [
        ("Please retry in 34.07s.", Some(35)),
        ("Please retry in 1m2s", Some(62)),
        ("Please try again in 120ms.", Some(1)),
        ("Please try again in 20 seconds", Some(20)),
        ("Please try again in 5 minutes", Some(300)),
        ("Please try again in 5 moons", None),
        ("Rate limit is exceeded. Try again in 2 Minutes.", Some(120)),
        ("Requests have exceeded the limit. Please retry after 6 seconds.", Some(6)),
        ("retry after 30s", Some(30)),
        ("Please try again in a moment", None),
        ("Please try again in", None),
        ("Please try again in 5", None),
    ] {
        let body = serde_json::json!({"error": {"message": text}}).to_string();
        assert_eq!(refused(429, &body).retry_after, expected, "{text}");
        assert_eq!(refused(503, &body).retry_after, expected, "{text}");
        assert_eq!(refused(400, &body).retry_after, None, "{text}");
    }
    for (body, expected) in [
        (r#"{"error":{"retryDelay":"soon"}}"#, None),
        (r#"{"error":"Model m is currently loading","estimated_time":20.5}"#, Some(21)),
        (r#"{"error":{"message":"busy","retry_after":7}}"#, Some(7)),
        (r#"{"error":{"message":"busy","retry_after":"7"}}"#, None),
    ] {
        assert_eq!(refused(429, body).retry_after, expected, "{body}");
        assert_eq!(refused(503, body).retry_after, expected, "{body}");
    }
}

#[test]
fn a_window_that_is_full_is_known_where_a_server_calls_it_its_own_fault() {
    let fields = r#"{"error":{"code":500,"message":"m","type":"exceed_context_size_error","n_prompt_tokens":1407,"n_ctx":256}}"#;
    for status in [500, 502, 503] {
        let error = refused(status, fields);
        assert_eq!((error.status, error.kind), (400, ErrorKind::InvalidRequest));
        assert_eq!(error.message, "prompt is too long: 1407 tokens > 256 maximum (m)");
        let text = "litellm.APIConnectionError: Context size has been exceeded.";
        let body = serde_json::json!({"error": {"message": text}}).to_string();
        assert_eq!(refused(status, &body).message, format!("prompt is too long: {text}"));
        let text = "This model's maximum context length is 8192 tokens. However, your payload has 9000 tokens.";
        let body = serde_json::json!({"error": {"message": text}}).to_string();
        assert_eq!(refused(status, &body).status, 400, "{text}");
    }
    // Each sign is enough by itself: the code, and more tokens than the window has.
    let code = r#"{"error":{"message":"m","code":"context_length_exceeded"}}"#;
    assert_eq!(refused(500, code).status, 400);
    let counts = |prompt: u64| {
        format!(r#"{{"error":{{"message":"m","n_prompt_tokens":{prompt},"n_ctx":256}}}}"#)
    };
    assert_eq!(refused(500, &counts(257)).status, 400);
    assert_eq!(refused(500, &counts(256)).status, 500);
    for other in [
        "context deadline exceeded",
        "Internal error",
        "too many requests",
        "请求排队时间过长，请稍后重试",
        "请求处理时间过长",
        "Server busy: total tokens of running requests exceed the capacity of this node, retry later",
        "KV cache context size exceeded during decoding, worker restarted",
        "Failed to load model: requested context length exceeds available VRAM",
        "Loading model with context size 131072; maximum wait 60s",
        "Server overloaded; maximum context length is 8192 tokens",
        "All providers failed. A: HTTP 429 overloaded. B: This model's maximum context length is 8192 tokens, however you requested 90000 tokens",
        r#"{"request":{"messages":[{"role":"user","content":"my prompt is too long"}]}}"#,
    ] {
        let body = serde_json::json!({"error": {"message": other}}).to_string();
        assert_eq!(refused(500, &body).status, 500, "{other}");
        assert_eq!(refused(503, &body).status, 529, "{other}");
    }
}

#[test]
fn a_limit_of_the_answer_is_not_one_of_the_prompt() {
    let complaint = |text: &str| {
        let context = RequestContext { model: "m".into(), ..limited(32_000) };
        let body = serde_json::json!({"error": text}).to_string();
        refused_for(422, &body, &context).message.clone()
    };
    for (text, most) in [
        ("Input validation error: `max_new_tokens` must be <= 2048. Given: 32000", 2_048),
        ("max_tokens cannot be greater than the model's context window (8192)", 8_192),
        ("max_tokens must not exceed the context length of 8192", 8_192),
        ("Invalid max_tokens: maximum is 8192, context window is 32768", 8_192),
        ("max_tokens 100000 exceeds the maximum 16384", 16_384),
        ("Range of max_tokens should be [1, 8192]", 8_192),
        // Errors of Databricks.
        (
            "max_tokens (32000) cannot exceed 8192. Please reduce the length of max output tokens generated.",
            8_192,
        ),
        (
            "Bad request: rpc error: code = InvalidArgument desc = max_tokens (32000) cannot exceed 8192. Please reduce the length of max output tokens generated.",
            8_192,
        ),
        ("You asked for max_tokens=32000, and at most 4096 completion tokens are supported", 4_096),
        (
            "Unable to submit request because it has a maxOutputTokens value of 100000 but the supported range is from 1 (inclusive) to 8193 (exclusive). Update the value and try again.",
            8_192,
        ),
    ] {
        let expected = "which is the maximum allowed number of output tokens for m";
        assert_eq!(complaint(text), format!("max_tokens: 32000 > {most}, {expected} ({text})"));
    }
    for text in [
        "请求token数超过每分钟限制",
        "请求处理时间过长，已超时",
        "Weekly token limit reached. It resets on Monday.",
        "Total tokens exceeded for this project, upgrade your plan",
        "Invalid input: `user` exceeds the length limit of 64 characters",
        "temperature must be in [0, 2], got -1 (max_tokens=32000)",
        "tools: number of tools exceeds the maximum 128. max_tokens=32000",
        "messages: at most 20 images are allowed (max_tokens=32000)",
        "top_logprobs must be in [1, 20]; received max_tokens=32000",
        "top_k cannot exceed 100 (max_tokens=32000)",
        "temperature. The maximum is 2. Request: {\"max_tokens\": 32000}",
        "Input validation error: `max_new_tokens` must be strictly positive",
        "The thinking budget exceeds the context window",
        "Please reduce the length of the tools array",
        "Please reduce the length of the tool name",
        "This feature is only available with the 1M context window",
    ] {
        assert_eq!(complaint(text), text);
    }
}

#[test]
fn more_words_for_a_prompt_that_is_too_long_are_known() {
    for text in [
        "max_tokens must be at least 1, got -7584. (parameter=max_tokens, value=-7584)",
        "max_completion_tokens must be at least 1, got -8868.",
        "tokens in request more than max tokens allowed",
        "Token limit exceeded",
        "token limit reached",
        "prompt exceeds the length limit",
        "上下文过长",
        "请求的token数超过限制",
        "输入内容过长",
        "the prompt exceeds n_ctx 8192",
    ] {
        assert_eq!(rewritten(text), format!("prompt is too long: {text}"));
    }
    for (text, prompt, window) in [
        ("total tokens 9000 exceeds the maximum 8192", 9_000, 8_192),
        (
            "number of input tokens (140000) has exceeded max_input_length (131072)",
            140_000,
            131_072,
        ),
        ("the number of input tokens 5000 cannot exceed the total tokens limit 4096", 5_000, 4_096),
    ] {
        let expected = format!("prompt is too long: {prompt} tokens > {window} maximum ({text})");
        assert_eq!(rewritten(text), expected);
    }
    let nested = r#"{"error":{"message":"Provider returned error","metadata":{"raw":"{\"error\":{\"message\":\"{\\\"type\\\":\\\"error\\\",\\\"error\\\":{\\\"type\\\":\\\"invalid_request_error\\\",\\\"message\\\":\\\"prompt is too long: 210000 tokens > 200000 maximum\\\"}}\"}}"}}}"#;
    let message = refused(400, nested).message.clone();
    assert_eq!(
        message,
        "Provider returned error: prompt is too long: 210000 tokens > 200000 maximum"
    );
}

#[test]
fn a_prompt_that_was_not_counted_to_its_end_is_told_as_longer() {
    let text = "This model's maximum context length is 65536 tokens. However, you requested 32000 output tokens and your prompt contains at least 33537 input tokens, for a total of at least 65537 tokens.";
    let complaint = |input_tokens| {
        let context = RequestContext { input_tokens, ..context() };
        let body = serde_json::json!({"error": {"message": text}}).to_string();
        let message = refused_for(400, &body, &context).message.clone();
        message.split(" (").next().unwrap().to_owned()
    };
    let counted = |prompt: u64| {
        format!(
            "input length and `max_tokens` exceed context limit: {prompt} + 32000 > 65536, decrease input \
             length or `max_tokens` and try again"
        )
    };
    assert_eq!(complaint(45_000), counted(45_000));
    // The likely prompt is in the middle between the reported count and the window.
    assert_eq!(complaint(30_000), counted(33_537 + (65_536 - 33_537) / 2));
    // An estimate far below the reported count leaves the count unchanged.
    assert_eq!(complaint(10), counted(33_537));
    assert_eq!(complaint(70_000), counted(65_535));
}

#[test]
fn a_sum_of_prompt_and_answer_is_told_in_its_parts() {
    let complaint = |status, text: &str| {
        let context = limited(32_000);
        let body = serde_json::json!({"code": 20015, "message": text}).to_string();
        let error = refused_for(status, &body, &context);
        assert_eq!((error.status, error.kind), (400, ErrorKind::InvalidRequest), "{text}");
        error.message.clone()
    };
    for (text, prompt, window) in [
        // Errors of Cloudflare, SambaNova and SiliconFlow.
        (
            "AiError: AiError: The estimated number of input and maximum output tokens (38246) exceeded this model context window limit (32768).",
            6_246,
            32_768,
        ),
        (
            "The maximum context length of DeepSeek-V3-0324 is 32768. However, answering your request will take 39732 tokens. Please reduce the length of the messages or the specified max_completion_tokens value.",
            7_732,
            32_768,
        ),
        (
            "The maximum context length of gpt-oss-120b is 131072. However, answering your request will take 140000 tokens. Please reduce the length of the messages or the specified max_completion_tokens value.",
            108_000,
            131_072,
        ),
        (
            "max_total_tokens (40960) must be less than or equal to max_seq_len (32768)",
            8_960,
            32_768,
        ),
    ] {
        let expected = format!(
            "input length and `max_tokens` exceed context limit: {prompt} + 32000 > {window}, decrease input \
             length or `max_tokens` and try again ({text})"
        );
        assert_eq!(complaint(400, text), expected);
        assert_eq!(complaint(413, text), expected);
    }
    let long = "max_total_tokens (72000) must be less than or equal to max_seq_len (32768)";
    let expected = format!("prompt is too long: 40000 tokens > 32768 maximum ({long})");
    assert_eq!(complaint(400, long), expected);
    // The error does not state the answer's part, and the total is less than that part.
    let less = "max_total_tokens (31000) must be less than or equal to max_seq_len (16384)";
    assert!(complaint(400, less).starts_with("prompt is too long"), "{less}");
}

#[test]
fn a_wrong_key_is_known_where_it_is_told_as_a_bad_request() {
    for body in [
        r#"{"code":"Client specified an invalid argument","error":"Incorrect API key provided: sk***90. You can obtain an API key from https://console.x.ai."}"#,
        r#"[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]"#,
        r#"{"error":{"message":"no","code":"invalid_api_key"}}"#,
    ] {
        assert_eq!(
            (refused(400, body).status, refused(400, body).kind),
            (401, ErrorKind::Authentication)
        );
        let error = refused_for(400, body, &edge_asked());
        assert_eq!((error.status, error.kind), (500, ErrorKind::Api));
        assert_eq!(error.message, "Upstream rejected the gateway's credentials.");
    }
}

#[test]
fn a_windows_numbers_count_whatever_else_is_named() {
    let text = "maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens. Please reduce the length of the messages. Received Model Group=budget-gpt";
    assert!(rewritten(text).starts_with("prompt is too long: 9000 tokens > 8192 maximum"));
    let images = r#"{"error":{"message":"The model does not support images. API key not valid. Use another tier"}}"#;
    assert_eq!(refused(400, images).status, 400);
}
