//! Tests of errors in place of an answer.

use super::*;

#[test]
fn an_error_where_an_answer_should_be_finds_its_status() {
    for (object, status, kind) in [
        (r#"{"error":{"message":"m","code":404},"user_id":"u"}"#, 404, ErrorKind::NotFound),
        (r#"{"message":"m","code":429}"#, 429, ErrorKind::RateLimit),
        (r#"{"error":{"message":"m","code":"429"}}"#, 429, ErrorKind::RateLimit),
        (r#"{"error":{"message":"m","code":503}}"#, 529, ErrorKind::Overloaded),
        (r#"{"error":{"message":"m","code":200}}"#, 502, ErrorKind::Api),
        (r#"{"error":{"message":"m","code":1008}}"#, 502, ErrorKind::Api),
        (r#"{"error":{"message":"m","type":"rate_limit_error"}}"#, 429, ErrorKind::RateLimit),
        (r#"{"error":{"message":"m","type":"server_error"}}"#, 502, ErrorKind::Api),
        (
            r#"{"type":"error","error":{"type":"overloaded_error","message":"m"}}"#,
            529,
            ErrorKind::Overloaded,
        ),
        (r#"{"error":{"message":"m","code":"insufficient_quota"}}"#, 402, ErrorKind::Billing),
        (r#"{"error":{"message":"m","code":"1113"}}"#, 402, ErrorKind::Billing),
        (r#"{"error":{"message":"m","code":"1302"}}"#, 429, ErrorKind::RateLimit),
        (r#"{"error":{"message":"m","code":"1305"}}"#, 429, ErrorKind::RateLimit),
        (
            r#"{"error":{"message":"m","metadata":{"error_type":"provider_overloaded"}}}"#,
            529,
            ErrorKind::Overloaded,
        ),
        (
            r#"{"requestStatus":{"statusCode":"TOO_MANY_REQUESTS","statusDescription":"m"}}"#,
            429,
            ErrorKind::RateLimit,
        ),
        (r#"{"text":"m","error_code":50002}"#, 502, ErrorKind::Api),
        (r#"{"error":"m"}"#, 502, ErrorKind::Api),
        (r#"{"code":"The service is currently unavailable","error":"m"}"#, 502, ErrorKind::Api),
        (
            r#"{"id":"c","choices":[{"index":0,"delta":{"content":""},"finish_reason":"error","error":{"code":429,"message":"m"}}]}"#,
            429,
            ErrorKind::RateLimit,
        ),
        (r#"{"index":0,"error":{"code":429,"message":"m"}}"#, 429, ErrorKind::RateLimit),
        (
            r#"{"choices":null,"base_resp":{"status_code":1008,"status_msg":"m"}}"#,
            502,
            ErrorKind::Api,
        ),
        (r#"{"base_resp":{"status_code":1002,"status_msg":"m"}}"#, 429, ErrorKind::RateLimit),
        (r#"{"base_resp":{"status_code":"1002","status_msg":"m"}}"#, 429, ErrorKind::RateLimit),
        (r#"{"base_resp":{"status_code":1002.0,"status_msg":"m"}}"#, 429, ErrorKind::RateLimit),
        (
            r#"{"error":{"message":"m","metadata":{"raw":"{\"code\":429}"}}}"#,
            429,
            ErrorKind::RateLimit,
        ),
        (r#"{"status":"449","msg":"m","body":null}"#, 429, ErrorKind::RateLimit),
        ("\"m\"", 502, ErrorKind::Api),
        ("m", 502, ErrorKind::Api),
    ] {
        let error = from_object(object, &context());
        assert_eq!((error.status, error.kind), (status, kind), "{object}");
        assert_eq!(error.message, "m", "{object}");
    }
}

#[test]
fn a_body_that_is_too_large_and_a_model_that_nobody_knows_have_the_status_of_the_real_api() {
    let status = |words: &str| {
        let body = serde_json::json!({"error": {"message": words}}).to_string();
        refused(400, &body).status
    };
    for words in [
        "Request payload size exceeds the limit: 20971520 bytes.",
        "http: request body too large",
        "total message size 2100954 exceeds limit 2097152",
        "Request size is too large. Request size is 40 MB. Max size is 32 MB",
    ] {
        assert_eq!(status(words), 413, "{words}");
    }
    for words in [
        "Model Not Exist",
        "x/y is not a valid model ID",
        "Invalid model name passed in model=x. Call `/v1/models`",
        "Invalid model: x",
        "模型不存在，请检查模型代码。",
    ] {
        assert_eq!(status(words), 404, "{words}");
    }
    assert_eq!(refused(400, r#"{"error":{"message":"m","code":"1211"}}"#).status, 404);
    for words in [
        "image exceeds 5 MB maximum: the request body is too large",
        "max_tokens is too large for this request body",
        "The model does not support tools",
        "The request size exceeds the tokens per minute of this model",
    ] {
        assert_eq!(status(words), 400, "{words}");
    }
}

#[test]
fn a_wrong_key_of_the_client_is_not_tried_again() {
    for (status, body) in [
        (401, r#"{"error":{"message":"Incorrect API key"}}"#),
        (400, r#"{"error":{"message":"API key not valid. Please pass a valid API key."}}"#),
    ] {
        let error = refused(status, body);
        assert_eq!((error.status, error.should_retry), (401, Some(false)), "{body}");
    }
}

#[test]
fn a_vendors_own_code_is_known_by_its_status() {
    // Codes of MiniMax: a timeout, rates and connections, keys, a wrong request, a used-up plan.
    for (code, status) in [
        (1001, 504),
        (1002, 429),
        (1004, 401),
        (1008, 502),
        (1039, 429),
        (1041, 429),
        (2013, 400),
        (2049, 401),
        (2056, 502),
    ] {
        let body = format!(r#"{{"base_resp":{{"status_code":{code},"status_msg":"m"}}}}"#);
        let error = from_object(&body, &context());
        assert_eq!(error.status, status, "{code}");
        let forever = matches!(code, 1004 | 1008 | 2049 | 2056).then_some(false);
        assert_eq!(error.should_retry, forever, "{code}");
    }
    for (code, status) in [
        // Codes of Zhipu: limits of requests at once, in a minute and in a day, a busy model, a
        // plan.
        ("1302", 429),
        ("1303", 429),
        ("1304", 429),
        ("1305", 429),
        ("1308", 429),
        // Codes of GitHub Models, Google, Moonshot and Together.
        ("unauthorized", 401),
        ("UNAUTHENTICATED", 401),
        ("DEADLINE_EXCEEDED", 504),
        ("engine_overloaded_error", 529),
        ("service_unavailable", 529),
    ] {
        let body = format!(r#"{{"error":{{"message":"m","type":"{code}"}}}}"#);
        assert_eq!(from_object(&body, &context()).status, status, "{code}");
    }
}

#[test]
fn an_error_is_read_under_the_names_of_other_languages() {
    for object in [
        r#"{"error_type":"BadRequestError","error_message":"m"}"#,
        r#"{"errorMessage":"m","errorType":"X"}"#,
        r#"{"err":"m"}"#,
        r#"{"Error":{"Message":"m"}}"#,
        r#"{"exception":"m"}"#,
        r#"{"fault":{"faultstring":"m"}}"#,
        r#"{"error_description":"m"}"#,
    ] {
        assert_eq!(from_object(object, &context()).message, "m", "{object}");
    }
}

#[test]
fn the_code_that_clients_act_on_is_kept() {
    let body = |code: &str| {
        serde_json::json!({"type": "error", "error": {"type": "rate_limit_error", "message": "m",
            "details": {"error_code": code}}})
        .to_string()
    };
    let complaint = |error: &Error| error.code.as_deref().map(str::to_owned);
    let code = "enforced_spend_limit_reached";
    assert_eq!(complaint(&refused(429, &body(code))).as_deref(), Some(code));
    assert_eq!(complaint(&from_object(&body(code), &context())).as_deref(), Some(code));
    // A code is passed on only if it is a single word that cannot be a credential.
    for other in ["", "sk-canary-1", "Not a word", &"a".repeat(65)] {
        assert_eq!(complaint(&refused(429, &body(other))), None, "{other}");
    }
    let own = read_body(401, body(code).as_bytes(), &edge_asked());
    assert!(matches!(own, Ok(error) if complaint(&error).is_none()));
}

#[test]
fn an_error_without_a_word_is_the_upstreams() {
    let silent = from_object("{}", &context());
    assert_eq!((silent.status, silent.message.as_str()), (502, "Upstream reported an error"));
}

#[test]
fn an_empty_account_is_not_asked_again() {
    let object = r#"{"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}"#;
    let error = from_object(object, &context());
    assert_eq!((error.should_retry, error.message.as_str()), (Some(false), "insufficient balance"));
}

#[test]
fn a_context_error_inside_a_stream_is_rewritten_too() {
    let object =
        r#"{"error":{"message":"context length exceeded","type":"BadRequestError","code":400}}"#;
    let error = from_object(object, &context());
    assert_eq!((error.status, error.kind), (400, ErrorKind::InvalidRequest));
    assert_eq!(error.message, "prompt is too long: context length exceeded");
    let coded = r#"{"error":{"message":"m","code":"context_length_exceeded"}}"#;
    assert_eq!(from_object(coded, &context()).message, "prompt is too long: m");
}

#[test]
fn a_context_error_inside_an_answer_needs_no_code() {
    for text in [
        "The number of tokens to keep from the initial prompt is greater than the context length. Try a shorter input",
        "Context size has been exceeded.",
    ] {
        for object in [
            serde_json::json!({"error": {"message": text}}),
            serde_json::json!({"error": {"message": text, "type": "api_error"}}),
            serde_json::json!(text),
        ] {
            let error = from_object(&object.to_string(), &context());
            assert_eq!((error.status, error.kind), (400, ErrorKind::InvalidRequest), "{object}");
            assert_eq!(error.message, format!("prompt is too long: {text}"));
        }
    }
    for slow in [
        "Too many tokens, please wait before trying again.",
        "Rate limit reached: token limit of 9 per minute exceeded by the prompt",
    ] {
        let error = from_object(&serde_json::json!({"error": slow}).to_string(), &context());
        assert_eq!((error.status, &*error.message), (502, slow));
    }
    let known = r#"{"error":{"message":"Context size has been exceeded.","code":500}}"#;
    assert_eq!(from_object(known, &context()).status, 400);
}

#[test]
fn a_page_in_place_of_an_answer_is_told_as_one() {
    let page = "\n<!doctype html><title>Sign in</title><p>Please log in</p>";
    let error = from_object(page, &context());
    assert_eq!(
        (error.status, error.should_retry, error.fault()),
        (502, Some(false), Fault::Operator)
    );
    assert_eq!(
        error.message,
        "Upstream sent a web page instead of an answer: Sign in Please log in"
    );
    // A page after content, and a page of a server that is down, do not mean a wrong address.
    let mut others = vec![after_content(page, &context())];
    for down in [
        "<html><title>503 Service Unavailable</title><p>The app is starting</p>",
        "<html><head><title>502 Bad Gateway</title></head><hr>nginx",
        "<!DOCTYPE html><title>Your model is starting up</title>",
        "<html><title>example.org | 521: Web server is down</title>",
    ] {
        others.push(from_object(down, &context()));
    }
    for error in others {
        assert_eq!(
            (error.status, error.should_retry, error.fault()),
            (502, None, Fault::Upstream),
            "{error:?}"
        );
    }
    let silent = after_content("<html></html>", &context());
    assert_eq!((&*silent.message, silent.should_retry), ("Upstream reported an error", None));
    let complaint = |text| from_object(text, &context()).message.clone();
    let start = "Upstream sent a web page instead of an answer: ";
    assert_eq!(complaint("<HTML><script>x()</script></HTML>"), format!("{start}(no words)"));
    // Text that is no web page is passed on unchanged.
    for text in ["no healthy upstream", "<_InactiveRpcError of RPC: UNAVAILABLE>", "<|im_end|>boom"]
    {
        assert!(!complaint(text).starts_with(start), "{text}");
    }
}
