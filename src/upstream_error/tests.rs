mod answers;
mod billing;
mod filters;
mod format;
mod images;
mod keys;
mod pairing;
mod reasoning;
mod reasons;
mod vendors;
mod windows;

use super::*;
use crate::error::{ErrorKind, Fault, MESSAGE_CHARS_MAX, UNPAID};
use crate::model::request_context::AnswerLimits;
use proptest::prelude::*;

fn context() -> RequestContext {
    RequestContext { model: "claude-x".to_owned(), ..RequestContext::default() }
}

fn limited(max_tokens: u64) -> RequestContext {
    let limits = AnswerLimits { max_tokens, ..AnswerLimits::default() };
    RequestContext { limits, ..context() }
}

fn edge_asked() -> RequestContext {
    RequestContext { edge_key: true, ..context() }
}

fn refused(status: u16, body: &str) -> Error {
    refused_for(status, body, &context())
}

fn refused_for(status: u16, body: &str, context: &RequestContext) -> Error {
    match read_body(status, body, context) {
        Ok(error) => error,
        Err(_) => panic!("not an error: {body}"),
    }
}

/// Returns the `stop_reason` of an error object that counts as an answer.
fn as_answer(object: &str, context: &RequestContext) -> Option<&'static str> {
    from_object(object, context).rejection()?.stop_reason().map(StopReason::word)
}

/// Returns the error in a body, or the `stop_reason` if the error counts as an answer.
fn read_body(
    status: u16,
    body: impl AsRef<[u8]>,
    context: &RequestContext,
) -> Result<Error, &'static str> {
    let error = from_upstream(status, body.as_ref(), context);
    stop_reason(status, &error).map_or(Ok(error), |reason| Err(reason.word()))
}

fn message(body: &str) -> String {
    refused(501, body).message.clone()
}

/// Returns the client's message for a 400 with this text.
fn rewritten(text: &str) -> String {
    let body = serde_json::json!({"error": {"message": text, "type": "BadRequestError"}});
    let error = refused(400, &body.to_string());
    assert_eq!((error.status, error.kind), (400, ErrorKind::InvalidRequest));
    error.message.clone()
}

#[test]
fn kind_and_status_follow_from_the_status() {
    for (upstream, kind, status) in [
        (400, ErrorKind::InvalidRequest, 400),
        (401, ErrorKind::Authentication, 401),
        (402, ErrorKind::Billing, 402),
        (403, ErrorKind::Permission, 403),
        (404, ErrorKind::NotFound, 404),
        (405, ErrorKind::InvalidRequest, 405),
        (408, ErrorKind::Timeout, 504),
        (409, ErrorKind::Conflict, 409),
        (410, ErrorKind::InvalidRequest, 410),
        (413, ErrorKind::RequestTooLarge, 413),
        (415, ErrorKind::InvalidRequest, 415),
        (422, ErrorKind::InvalidRequest, 400),
        (429, ErrorKind::RateLimit, 429),
        (449, ErrorKind::RateLimit, 429),
        (451, ErrorKind::InvalidRequest, 451),
        (499, ErrorKind::Api, 502),
        (500, ErrorKind::Api, 500),
        (501, ErrorKind::Api, 500),
        (502, ErrorKind::Api, 502),
        (503, ErrorKind::Overloaded, 529),
        (504, ErrorKind::Timeout, 504),
        (508, ErrorKind::Api, 508),
        (520, ErrorKind::Api, 500),
        (529, ErrorKind::Overloaded, 529),
        (302, ErrorKind::Api, 502),
        (0, ErrorKind::Api, 502),
        (999, ErrorKind::Api, 502),
    ] {
        assert_eq!(of_status(upstream), (kind, status), "{upstream}");
        let error = refused(upstream, "{}");
        if matches!(upstream, 302 | 404 | 405) {
            // The body has no sign that the error is about a model.
            let wrong = error.rejection().and_then(Rejection::wrong_address);
            assert_eq!((wrong, error.status), (Some(WrongAddress::NoPath), 502), "{error}");
            continue;
        }
        assert_eq!((error.kind, error.status), (kind, status));
        assert_eq!(error.message, format!("HTTP {upstream} from upstream"));
    }
}

#[test]
fn a_status_may_be_a_number_in_any_spelling() {
    for code in ["400", "400.0", "\" 400\"", "4e2"] {
        let error = from_object(&format!("{{\"message\":\"no\",\"code\":{code}}}"), &context());
        assert_eq!((error.status, error.kind), (400, ErrorKind::InvalidRequest), "{code}");
    }
    for code in ["-400", "40.0", "1e9"] {
        let error = from_object(&format!("{{\"message\":\"no\",\"code\":{code}}}"), &context());
        assert_eq!(error.status, 502, "{code}");
    }
}

#[test]
fn the_message_is_found_in_every_shape() {
    for (body, expected) in [
        (r#"{"error":{"message":"m","type":"tokens","param":null,"code":null}}"#, "m"),
        (r#"{"code":"Client specified an invalid argument","error":"m"}"#, "m"),
        (r#"{"object":"error","message":"m","type":"x","code":"3230"}"#, "m"),
        (r#"{"detail":"m"}"#, "m"),
        (
            r#"{"detail":[{"loc":["body","messages",0],"msg":"field required"},{"msg":"n"}]}"#,
            "body.messages.0: field required; n",
        ),
        (r#"{"detail":["a","b"]}"#, "a; b"),
        (r#"{"object":"error","message":{"detail":[{"loc":["body"],"msg":"m"}]}}"#, "body: m"),
        (r#"{"detail":{"error":{"message":"m"}}}"#, "m"),
        (r#"{"code":1261,"msg":"m","success":false}"#, "m"),
        (r#"{"success":false,"errors":[{"code":7003,"message":"m"}]}"#, "m"),
        (r#"{"errors":["m"]}"#, "m"),
        (r#"[{"error":{"code":400,"message":"m","status":"INVALID_ARGUMENT"}}]"#, "m"),
        (r#"[{"error":{}},{"error":{"message":"m"}}]"#, "m"),
        (r#"{"Message":"m"}"#, "m"),
        (r#"{"error_code":336003,"error_msg":"m"}"#, "m"),
        // Errors of FastChat, Writer and NVIDIA's gateway.
        (r#"{"text":"m","error_code":50002}"#, "m"),
        (r#"{"tpe":"x","errors":[{"tpe":"y","description":"m","extras":{}}]}"#, "m"),
        (
            r#"{"requestStatus":{"statusCode":"TOO_MANY_REQUESTS","statusDescription":"m","requestId":"r"}}"#,
            "m",
        ),
        (r#"{"text":"worse","description":"worse","message":"m"}"#, "m"),
        (r#"{"title":"t","detail":"m","status":400}"#, "m"),
        (r#"{"msg":"worse","message":"m"}"#, "m"),
        (r#"{"message":"worse","error":{"message":"m"}}"#, "m"),
        (r#"{"error":{"message":"m"},"message":"worse"}"#, "m"),
        (r#"{"message":"m","error":{"message":""}}"#, "m"),
        (r#"{"error":null,"message":"m"}"#, "m"),
        (r#"{"error":"{\"error\":{\"message\":\"m\"}}"}"#, "m"),
        (r#""m""#, "m"),
        ("\u{feff} {\"error\":\"m\"}\n", "m"),
        ("data: {\"error\":{\"message\":\"m\"}}\n\ndata: [DONE]\n\n", "m"),
        ("event: error\ndata: {\"error\":\"m\"}\n\n", "m"),
        // JSON that was cut off at the maximum size.
        (r#"{"error":{"message":"m","type":"x"#, "m"),
        (r#"{"error":{"message":"say \"m\"\n\u00e9"}}"#, "say \"m\"\né"),
    ] {
        assert_eq!(message(body), expected, "{body}");
    }
}

/// Returns an error of a model that Databricks calls for its clients.
fn behind_databricks(error: &str) -> String {
    let complaint = format!(r#"{{"external_model_provider":"p","external_model_error":{error}}}"#);
    serde_json::json!({"error_code": "BAD_REQUEST", "message": complaint}).to_string()
}

#[test]
fn databricks_tells_what_the_server_behind_it_said() {
    let inner = r#"{"error":{"message":"this model does not support image input","code":"m"}}"#;
    let body = behind_databricks(inner);
    assert_eq!(refused(400, &body).message, "this model does not support image input");
    assert_eq!(message(&behind_databricks(r#""in words""#)), "in words");
    let empty = r#"{"error":{"message":"m","code":"insufficient_quota"}}"#;
    assert_eq!(refused(429, &behind_databricks(empty)).status, 402);
    // Older form of Databricks' errors.
    let body = r#"{"error":"Received error from databricks-model-serving","external_model_message":{"error_code":"BAD_REQUEST","message":"inner"}}"#;
    assert_eq!(message(body), "Received error from databricks-model-serving: inner");
}

#[test]
fn a_router_tells_what_the_server_behind_it_said() {
    for (raw, expected) in [
        (r#""plain text""#, "Provider returned error: plain text"),
        (r#""{\"error\":{\"message\":\"inner\"}}""#, "Provider returned error: inner"),
        (r#"{"error":{"message":"inner"}}"#, "Provider returned error: inner"),
        (r#""Provider returned error""#, "Provider returned error"),
        ("null", "Provider returned error"),
        ("\"<html><b>bad</b></html>\"", "Provider returned error: bad"),
    ] {
        let body = format!(
            r#"{{"error":{{"metadata":{{"raw":{raw},"provider_name":"p"}},"message":"Provider returned error","code":500}}}}"#
        );
        assert_eq!(message(&body), expected);
    }
    let deep = r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"no\",\"code\":\"context_length_exceeded\"}}"}}}"#;
    assert_eq!(refused(400, deep).message, "prompt is too long: Provider returned error: no");
    let typed = r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"error_type":"context_length_exceeded"}}}"#;
    assert_eq!(refused(400, typed).message, "prompt is too long: Provider returned error");
}

#[test]
fn pages_are_shown_as_short_plain_text() {
    for (body, expected) in [
        (
            "<html><head><title>502 Bad Gateway</title></head><body>…</body></html>",
            "502 Bad Gateway …",
        ),
        ("<!DOCTYPE html><!-- <b> --><style>b{}</style><SCRIPT>x<y</SCRIPT>A &amp; B", "A & B"),
        ("<p>a&nbsp;&lt;b&gt; isn&#39;t &quot;c&quot;</p>", "a <b> isn't \"c\""),
        ("upstream connect error", "upstream connect error"),
        ("1 < 2\n\n and <3", "1 < 2 and <3"),
        ("500 Internal Server Error", "500 Internal Server Error"),
        ("null pointer", "null pointer"),
        ("no end <a href=", "no end"),
        ("{not json", "{not json"),
        ("", "HTTP 501 from upstream"),
        ("<br>", "HTTP 501 from upstream"),
        ("[]", "HTTP 501 from upstream"),
        ("7", "HTTP 501 from upstream"),
        (r#"{"ok":false}"#, "HTTP 501 from upstream"),
    ] {
        assert_eq!(message(body), expected, "{body}");
    }
    assert_eq!(message(&"é ".repeat(5_000)).chars().count(), 199);
    assert_eq!(message(&format!("{{\"error\":\"{}\"}}", "é".repeat(5_000))).chars().count(), 2_001);
}

#[test]
fn a_long_body_is_told_by_its_beginning() {
    for piece in
        ["<script></script>", "first ", "1 in the messages, ", "key a-b-c-d ", "<", "&amp;"]
    {
        let body = piece.repeat((256 << 10) / piece.len());
        assert!(refused(400, &body).message.chars().count() <= 2 * MESSAGE_CHARS_MAX);
        let json = serde_json::json!({"error": body}).to_string();
        assert!(refused(400, &json).message.chars().count() <= MESSAGE_CHARS_MAX + 1);
    }
}

#[test]
fn a_prompt_that_is_too_long_is_told_in_the_words_of_the_real_api() {
    for (text, prompt, window) in [
        // Errors of OpenAI and DeepSeek.
        (
            "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens",
            9000,
            8192,
        ),
        (
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9100 tokens. Please reduce the length of the messages.",
            9100,
            8192,
        ),
        (
            "This model's maximum context length is 65536 tokens. However, you requested 70000 tokens (66000 in the messages, 4000 in the completion). Please reduce the length of the messages or completion.",
            66000,
            65536,
        ),
        (
            "Input tokens exceed the configured limit of 272,000 tokens. Your messages resulted in 300,000 tokens. Please reduce the length of the messages.",
            300_000,
            272_000,
        ),
        // Errors of old and new versions of vLLM.
        (
            "This model's maximum context length is 8192 tokens. However, your request has 9000 input tokens. Please reduce the length of the input messages.",
            9000,
            8192,
        ),
        (
            "You passed 9001 input tokens and requested 1000 output tokens. However, the model's context length is only 8192 tokens, resulting in a maximum input length of 7192 tokens.",
            9001,
            8192,
        ),
        (
            "This model's maximum context length is 4096 tokens. However, you requested 500 output tokens and your prompt contains at least 4097 input tokens, for a total of at least 4597 tokens. Please reduce the length of the input prompt or the number of requested output tokens.",
            4097,
            4096,
        ),
        (
            "The decoder prompt (length 9000) is longer than the maximum model length of 8192. Make sure that `max_model_len` is no smaller.",
            9000,
            8192,
        ),
        // Errors of SGLang.
        (
            "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
            9000,
            8192,
        ),
        (
            "Requested token count exceeds the model's maximum context length of 8192 tokens. You requested a total of 10000 tokens: 9000 tokens from the input messages and 1000 tokens for the completion.",
            9000,
            8192,
        ),
        // Errors of llama.cpp.
        (
            "request (9024 tokens) exceeds the available context size (4096 tokens), try increasing it",
            9024,
            4096,
        ),
        // Errors of Gemini.
        (
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            1_200_000,
            1_048_576,
        ),
        (
            "The input token count exceeds the maximum number of tokens allowed 1048576. (1200000 input tokens)",
            1_200_000,
            1_048_576,
        ),
        // Errors of Mistral.
        (
            "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
            40000,
            32768,
        ),
        // Errors of xAI, Fireworks, Cohere, OpenRouter, Moonshot, TGI and LM Studio.
        (
            "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
            537_812,
            131_072,
        ),
        ("The prompt is too long: 40000, model maximum context length: 32768", 40000, 32768),
        (
            "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4292. Try using a shorter prompt",
            4292,
            4081,
        ),
        (
            "This endpoint's maximum context length is 8192 tokens. However, you requested about 10000 tokens (8000 of text input, 1000 of tool input, 1000 in the output).",
            9000,
            8192,
        ),
        (
            "Invalid request: Your request exceeded model token limit: 8192 (requested: 9000)",
            9000,
            8192,
        ),
        (
            "Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough.",
            9000,
            4096,
        ),
    ] {
        assert_eq!(
            rewritten(text),
            format!("prompt is too long: {prompt} tokens > {window} maximum ({text})")
        );
    }
}

#[test]
fn a_prompt_that_fits_without_the_answer_is_told_so() {
    for (text, prompt, answer, window) in [
        (
            "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (5000 in the messages, 4000 in the completion).",
            5000,
            4000,
            8192,
        ),
        (
            "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is 8192 tokens and your request has 5000 input tokens (4096 > 8192 - 5000).",
            5000,
            4096,
            8192,
        ),
        (
            "max_tokens is too large: 4096. This model's maximum context length is 8192 tokens and your request has 5000 input tokens",
            5000,
            4096,
            8192,
        ),
        (
            "This model's maximum context length is 4096 tokens. However, you requested 1000 output tokens and your prompt contains at least 3097 input tokens, for a total of at least 4097 tokens.",
            3097,
            1000,
            4096,
        ),
        (
            "You passed 7500 input tokens and requested 1000 output tokens. However, the model's context length is only 8192 tokens, resulting in a maximum input length of 7192 tokens.",
            7500,
            1000,
            8192,
        ),
        (
            "`inputs` tokens + `max_new_tokens` must be <= 4097. Given: 4000 `inputs` tokens and 500 `max_new_tokens`",
            4000,
            500,
            4097,
        ),
        (
            "This endpoint's maximum context length is 8192 tokens. However, you requested about 9000 tokens (8000 of text input, 1000 in the output).",
            8000,
            1000,
            8192,
        ),
        (
            "Requested token count exceeds the model's maximum context length of 8192 tokens. You requested a total of 9000 tokens: 5000 tokens from the input messages and 4000 tokens for the completion.",
            5000,
            4000,
            8192,
        ),
    ] {
        assert_eq!(
            rewritten(text),
            format!(
                "input length and `max_tokens` exceed context limit: {prompt} + {answer} > {window}, \
                 decrease input length or `max_tokens` and try again ({text})"
            )
        );
    }
}

#[test]
fn a_prompt_of_unknown_length_is_still_too_long() {
    for text in [
        "Input is too long for requested model.",
        "context length exceeded",
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        "the request exceeds the available context size. try increasing the context size or enable context shift",
        "prompt too long; exceeded max context length by 12 tokens",
        "invalid params, context window exceeds limit (2013)",
        "Prompt exceeds max length",
        "Input token length exceeds the limit: 131072",
        "Total tokens of image and text exceed max message tokens",
        "The input exceeds the model's token limit",
        "Total length of the messages exceeds the maximum allowed length",
        "Range of input length should be [1, 30720]",
        "Please reduce the length of the messages or completion.",
        "The prompt's length, 5, exceeds the model's context window of 99999999999999999999999",
    ] {
        assert_eq!(rewritten(text), format!("prompt is too long: {text}"));
    }
    let coded = r#"{"error":{"message":"no","code":"context_length_exceeded"}}"#;
    assert_eq!(refused(400, coded).message, "prompt is too long: no");
    assert_eq!(refused(413, coded).status, 400);
    assert_eq!(refused(422, coded).message, "prompt is too long: no");
    let bare = r#"{"error":{"code":400,"type":"exceed_context_size_error","n_prompt_tokens":9,"n_ctx":4}}"#;
    let quoted = bare.replace("9,", "\"9\",").replace("4}", "4.0}");
    for bare in [bare, &quoted] {
        assert_eq!(refused(400, bare).message, "prompt is too long: 9 tokens > 4 maximum");
    }
}

#[test]
fn the_real_apis_own_words_stay_as_they_are() {
    for text in [
        "prompt is too long: 210000 tokens > 200000 maximum",
        "ValidationException: prompt is too long: 210000 tokens > 200000 maximum",
        "prompt is too long",
        "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again",
    ] {
        assert_eq!(rewritten(text), text);
    }
}

#[test]
fn other_errors_about_lengths_are_not_rewritten() {
    for text in [
        "Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got 46.",
        "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 129.",
        "Unexpected role 'user' after role 'tool'",
        "max_tokens must be at least 1, got 0.",
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        "temperature is too large: at most 2",
        "image is too large",
        "tools.0.function.name exceeds max length 64",
        "messages.3.tool_calls.0.id exceeds max length 40",
        "tool_call_id length exceeds max length 40",
        "The tool description exceeds the maximum allowed length of 1024",
        "messages.1: the tool description exceeds the maximum allowed length of 1024",
        "Stop sequence exceeds maximum allowed length",
        "You have exceeded your monthly token limit",
        "The prompt exceeds your daily token limit",
        "thinking budget 40000 exceeds the token limit 32768",
        "Too many tokens per minute",
    ] {
        assert_eq!(rewritten(text), text);
    }
    let slow = r#"{"error":{"message":"Rate limit: maximum context length is 8 tokens, you requested 9"}}"#;
    assert!(refused(429, slow).message.starts_with("Rate limit"));
}

#[test]
fn too_large_a_max_tokens_is_told_in_the_words_of_the_real_api() {
    let text = "max_tokens is too large: 100000. This model supports at most 16384 completion tokens, whereas you provided 100000.";
    assert_eq!(
        rewritten(text),
        format!(
            "max_tokens: 100000 > 16384, which is the maximum allowed number of output tokens for claude-x ({text})"
        )
    );
}

#[test]
fn a_gateways_own_key_is_not_the_clients_business() {
    let body = r#"{"error":{"message":"Incorrect API key provided: sk-canary-1"}}"#;
    for status in [401, 403] {
        let Ok(error) = read_body(status, body.as_bytes(), &edge_asked()) else {
            panic!("an error");
        };
        assert_eq!(
            (error.status, error.kind, error.fault()),
            (500, ErrorKind::Api, Fault::Operator)
        );
        assert_eq!(error.message, "Upstream rejected the gateway's credentials.");
    }
    let coded = r#"{"error":{"message":"Incorrect API key provided: sk-canary-1","code":401}}"#;
    let error = from_object(coded, &edge_asked());
    assert_eq!(error.message, "Upstream rejected the gateway's credentials.");
    assert_eq!(refused(401, body).message, "Incorrect API key provided: ***");
}

#[test]
fn a_limit_of_tokens_per_minute_is_not_read_out_of_the_models_name() {
    let body = r#"{"error":{"message":"Request too large for gpt-4.1 (for limit gpt-4.1) in organization o on tokens per min (TPM): Limit 30000, Requested 37313.","type":"tokens","code":"rate_limit_exceeded"}}"#;
    assert!(
        refused(429, body).message.starts_with("prompt is too long: 37313 tokens > 30000 maximum")
    );
}

#[test]
fn what_the_model_wrote_is_not_what_the_error_says() {
    for generation in [
        "The context window is at most 200k tokens; only 8k in tests.",
        "call(model, max_tokens=500) # must be at most 100",
    ] {
        let body = serde_json::json!({"error": {
            "message": "Failed to call a function.", "type": "invalid_request_error",
            "code": "tool_use_failed", "failed_generation": generation,
        }});
        assert_eq!(refused(400, &body.to_string()).message, "Failed to call a function.");
    }
}

#[test]
fn a_context_that_was_not_loaded_in_time_is_not_too_long() {
    for (text, is_long) in [("加载上下文超时，请稍后重试", false), ("上下文长度超过限制", true)]
    {
        let body = serde_json::json!({"error": text}).to_string();
        assert_eq!(
            refused(400, &body).message.starts_with("prompt is too long"),
            is_long,
            "{text}"
        );
    }
}

#[test]
fn templates_that_fail_keep_their_status() {
    let body = r#"{"error":{"code":500,"message":"Error: Jinja Exception: roles must alternate","type":"server_error"}}"#;
    let error = refused(500, body);
    assert_eq!((error.status, error.kind), (500, ErrorKind::Api));
    assert!(error.message.contains("roles must alternate"));
}

proptest! {
    #[test]
    fn any_body_gives_an_error_with_a_text(status in any::<u16>(), body in any::<Vec<u8>>()) {
        if let Ok(error) = read_body(status, &body, &context()) {
            prop_assert!((400..600).contains(&error.status) && !error.message.is_empty());
        }
    }

    #[test]
    fn any_text_of_the_right_shape_gives_an_error_with_a_text(
        text in r#"[{\["](error|message|detail|loc|msg|code|raw|metadata|choices|base_resp|[":,{}\[\]<>0-9 ]){0,24}"#,
    ) {
        let error = from_object(&text, &context());
        prop_assert!((400..600).contains(&error.status) && !error.message.is_empty());
    }
}
