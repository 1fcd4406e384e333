//! Reports of an exchange on itself: the headers of its answers, and the report that metrics and
//! log lines are made of.

use creole::observe::log::{self, Log};
use creole::observe::report::RequestCounts;
use creole::observe::report::{AnswerReport, Outcome, Report};
use creole::observe::warning::Warnings;

use super::*;

/// A chunk whose answer has this id.
fn chunk(id: &str, choice: &Value, usage: &Value) -> Vec<u8> {
    let chunk = json!({"id": id, "choices": [choice], "usage": usage});
    format!("data: {chunk}\n\n").into_bytes()
}

#[test]
fn a_head_has_these_headers_and_no_others() {
    let whole = r#"{"id":"ID","choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}"#;
    let id = "req_3jjpA5mQ5DOtziWrgpUYvYXJ";
    let head = |stream, body: &str| {
        let (exchange, _) = started(&drive::config("{}"), Pings::Sent, &ask(stream));
        assert_eq!(exchange.report().request_id, id);
        drive::respond(exchange, 200, &[], [body.as_bytes()], End::Complete).head.headers
    };
    // A proxy such as nginx holds a stream back, unless it is told that it must not.
    let of_stream = [
        ("content-type", "text/event-stream; charset=utf-8"),
        ("request-id", id),
        ("x-creole-model", "claude-test"),
        ("cache-control", "no-cache, no-transform"),
        ("x-accel-buffering", "no"),
    ];
    assert_eq!(head(true, whole), headers(&of_stream));
    let of_whole = [
        ("content-type", "application/json"),
        ("request-id", id),
        ("x-creole-model", "claude-test"),
    ];
    let mut named = headers(&of_whole);
    named.extend(headers(&[("x-creole-upstream-id", "chatcmpl-1")]));
    assert_eq!(head(false, &whole.replace("ID", "chatcmpl-1")), named);
    // An id that would begin another header.
    assert_eq!(head(false, &whole.replace("ID", r"a\r\nb: c")), headers(&of_whole));
}

#[test]
fn the_model_that_served_is_told_in_a_header_the_log_and_the_report() {
    let openai = r#"{"upstreams":{"u":{"url":"http://u"}},"models":{"*":{"model":"asked"}}}"#;
    let chat = r#"{MODEL"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]}"#;
    let messages = r#"{MODEL"type":"message","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn"}"#;
    let anthropic = openai.replace("\"http://u\"", "\"http://u\",\"protocol\":\"anthropic\"");
    for (config, whole) in [(openai, chat), (&anthropic, messages)] {
        for (told, expected) in [
            (r#""model":"asked-0731","#, Some("asked-0731")),
            (r#""model":"","#, Some("asked")),
            ("", Some("asked")),
            (r#""model":"a\r\nb: c","#, None),
        ] {
            for stream in [false, true] {
                let body = whole.replace("MODEL", told);
                let (exchange, _) = started(&drive::config(config), Pings::Sent, &ask(stream));
                let answer = drive::respond(exchange, 200, &[], [body.as_bytes()], End::Complete);
                assert_eq!(
                    header(&answer.head, "x-creole-model"),
                    expected,
                    "{stream} {config} {body}"
                );
                let log = line_of(&answer.report);
                assert_eq!(
                    (&log["model"], &log["upstream_model"]),
                    (&"claude-test".into(), &"asked".into())
                );
                assert_eq!(log.get("served_model").is_some(), told.len() > 11, "{log}");
            }
        }
    }
    // Where the upstream refuses, it is known which model it was asked for; where it was not asked,
    // there is none.
    let (exchange, _) = started(&drive::config(openai), Pings::Sent, &ask(true));
    let answer = drive::respond(exchange, 400, &[], [&b"{}"[..]], End::Complete);
    assert_eq!(header(&answer.head, "x-creole-model"), Some("asked"));
    let body = br#"{"model":"m","messages":1}"#;
    let answer = drive::request(&drive::config(openai), "/v1/messages", &[], body).err().unwrap();
    assert_eq!(header(&answer.head, "x-creole-model"), None);
    assert_eq!(line_of(&answer.report).get("upstream_model"), None);
}

/// The line in the log.
fn line_of(report: &Report) -> Value {
    let line = log::line(&log::LoggedRequest::default(), report, Log::Debug, NOW).unwrap();
    serde_json::from_str(&line).unwrap()
}

#[test]
fn the_log_says_why_a_request_was_refused_and_nothing_that_it_held() {
    let canary = "canary it's \"my\" secret, 'quoted'";
    let user = |content: Value| json!([{"role": "user", "content": content}]);
    let body = |messages: Value, more: Value| {
        let mut body = json!({"model": "m", "max_tokens": 9, "messages": messages});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body.to_string()
    };
    let text = || user(json!(canary));
    for config in ["{}", r#"{"strict":true}"#, r#"{"upstreams":{"u":{"protocol":"anthropic"}}}"#] {
        for (body, reason) in [
            (format!("{{\"messages\": {canary}"), "The request body is not valid JSON"),
            (body(text(), json!({"max_tokens": canary})), "max_tokens"),
            (body(text(), json!({"system": 1})), "system"),
            (body(text(), json!({"tools": canary})), "tools"),
            (body(text(), json!({"tool_choice": {"type": canary}})), "tool_choice"),
            (body(text(), json!({"tool_choice": {"type": "tool", "name": canary}})), "tool_choice"),
            (body(json!([{"role": canary, "content": canary}]), json!({})), "messages"),
            (body(user(json!([{"type": canary, "text": canary}])), json!({})), "messages"),
            (body(user(json!([{"type": "text", "text": [canary]}])), json!({})), "messages"),
            (
                body(user(json!([{"type": "image", "source": {"type": canary}}])), json!({})),
                "messages",
            ),
            (
                body(user(json!([{"type": "tool_reference", "tool_name": canary}])), json!({})),
                "messages",
            ),
        ] {
            let sent = drive::request(&drive::config(config), "/v1/messages", &[], body.as_bytes());
            // What one of them takes is not refused.
            let Err(answer) = sent else { continue };
            let log = line_of(&answer.report);
            let told = log["reason"].as_str().unwrap();
            assert!(told.contains(reason), "{body}: {log}");
            assert!(
                !log.to_string().contains("canary") && !log.to_string().contains("secret"),
                "{log}"
            );
        }
    }
}

#[test]
fn the_log_has_the_code_and_the_type_of_an_upstreams_error_and_not_its_words() {
    for (status, error, codes, reason) in [
        (
            400,
            r#"{"message":"you said canary","type":"invalid_request_error","code":"bad_tool"}"#,
            Some("invalid_request_error,bad_tool"),
            Some("the upstream refused the request (HTTP 400)"),
        ),
        (
            400,
            r#"{"message":"canary: no","type":"canary words said","code":null}"#,
            None,
            Some("the upstream refused the request (HTTP 400)"),
        ),
        (
            404,
            r#"{"message":"The model `canary` does not exist","code":"model_not_found"}"#,
            Some("model_not_found"),
            Some("the upstream knows no such model (HTTP 404)"),
        ),
        (
            401,
            r#"{"message":"Incorrect API key canary","type":"invalid_request_error"}"#,
            Some("invalid_request_error"),
            Some("the upstream does not take the client's key (HTTP 401)"),
        ),
        (
            429,
            r#"{"message":"canary","type":"rate_limit_error"}"#,
            Some("rate_limit_error"),
            Some("the upstream takes no more for now (HTTP 429)"),
        ),
        (
            400,
            r#"{"message":"This model's maximum context length is 10 tokens. canary","code":"context_length_exceeded"}"#,
            Some("context_length_exceeded"),
            Some("prompt is too long"),
        ),
        (
            404,
            r#"{"message":"Invalid URL (POST /canary)","type":"invalid_request_error"}"#,
            Some("invalid_request_error"),
            Some(
                "Upstream does not serve /v1/chat/completions (HTTP 404); check --upstream, or url and base_path of upstream default",
            ),
        ),
        (
            500,
            r#"{"message":"canary","type":"server_error"}"#,
            Some("server_error"),
            Some("the upstream failed (HTTP 500)"),
        ),
    ] {
        let (exchange, _) = started(&drive::config("{}"), Pings::Sent, &ask(true));
        let body = format!("{{\"error\":{error}}}");
        let answer = drive::respond(exchange, status, &[], [body.as_bytes()], End::Complete);
        let log = line_of(&answer.report);
        assert_eq!(log.get("upstream_codes").and_then(Value::as_str), codes, "{log}");
        assert_eq!(log.get("reason").and_then(Value::as_str), reason, "{log}");
        assert!(!log.to_string().contains("canary"), "{log}");
    }
}

#[test]
fn what_was_learnt_of_an_answer_is_told_where_no_second_request_follows() {
    let image = json!({"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="});
    let body = json!({
        "model": "m", "max_tokens": 9, "stream": true,
        "messages": [{"role": "user", "content": [{"type": "image", "source": image}]}],
    });
    let body = body.to_string().into_bytes();
    let told = |retries: bool| {
        // Strict mode drops no image.
        let strict = drive::config(r#"{"strict": true}"#);
        let host = HostCan { ask_again: retries, ..HostCan::default() };
        let (mut exchange, _) = started_by(host, &strict, &body);
        let mut out = Vec::new();
        exchange.handle_call_head(200, &[], NOW);
        let events = b"data: {\"id\":\"up-1\",\"foo\":1}\n\n\
            data: {\"error\":{\"message\":\"this model does not support image input\"}}\n\n";
        let mut head = exchange.piece(events, NOW, &mut out);
        assert_eq!(exchange.is_call_due(), retries);
        assert!(exchange.poll_call(NOW).is_none());
        head = head.or_else(|| exchange.end(End::Complete, NOW, &mut out));
        let report = exchange.report();
        (head, report.answer.clone(), report.warnings.header(), report.cause())
    };
    let (head, answer, warnings, cause) = told(true);
    assert_eq!(answer.upstream_id.as_deref(), Some("up-1"));
    assert_eq!((warnings.as_deref(), cause), (Some("upstream_event_dropped"), "upstream_error"));
    assert_eq!((head, answer, warnings, cause), told(false));
}

#[test]
fn an_error_that_was_told_before_the_end_is_the_cause() {
    let told = r#"{"error":{"message":"boom","code":500}}"#;
    for (body, end, cause) in [
        (format!("data: {told}\n\n"), End::Complete, "upstream_error"),
        (format!("data: {told}\n"), End::Complete, "upstream_error"),
        (told.to_owned(), End::Complete, "upstream_error"),
        (told.to_owned(), End::Aborted, "upstream_error"),
        // A gateway behind this one tells in the same words what happened there.
        (
            "data: {\"error\":{\"message\":\"Upstream stream ended before completion.\",\"code\":502}}\n"
                .to_owned(),
            End::Complete,
            "upstream_error",
        ),
        ("data: {\"choices\":[]}\n\n".to_owned(), End::Complete, "upstream_broke_off"),
        (told[..20].to_owned(), End::Aborted, "upstream_broke_off"),
        (String::new(), End::Complete, "upstream_broke_off"),
    ] {
        let (mut exchange, _) = started(&drive::config("{}"), Pings::No, &ask(true));
        let mut out = Vec::new();
        exchange.handle_call_head(200, &[], NOW);
        exchange.piece(body.as_bytes(), NOW, &mut out);
        exchange.end(end, NOW, &mut out);
        assert_eq!(exchange.report().cause(), cause, "{body:?} {end:?}");
    }
}

#[test]
fn the_report_of_a_stream_after_a_second_request_is_complete() {
    let body = ask(true);
    let host = HostCan { ask_again: true, ..can(Pings::Sent) };
    let (mut exchange, first) = started_by(host, &drive::config("{}"), &body);
    exchange.add_translation_us(3);
    let mut out = Vec::new();
    let refusal = br#"{"error":{"message":"stream_options: Extra inputs are not permitted"}}"#;
    exchange.handle_call_head(400, &headers(&[("x-request-id", "first")]), NOW + 5);
    exchange.piece(refusal, NOW + 6, &mut out);
    assert_eq!(exchange.end(End::Complete, NOW + 7, &mut out), None);
    let second = exchange.poll_call(NOW + 10).unwrap();
    exchange.handle_call_head(200, &headers(&[("x-request-id", "second")]), NOW + 20);
    let usage = json!({"prompt_tokens": 40, "completion_tokens": 7,
        "prompt_tokens_details": {"cached_tokens": 30},
        "completion_tokens_details": {"reasoning_tokens": 2}});
    let call = json!({"index": 0, "id": "call_a", "function": {"name": "w", "arguments": "{}"}});
    let pieces = [
        chunk("c-1", &json!({"delta": {"role": "assistant"}}), &Value::Null),
        chunk("c-1", &json!({"delta": {"content": "Hi"}}), &Value::Null),
        chunk("c-1", &json!({"delta": {"tool_calls": [call]}}), &Value::Null),
        chunk("c-1", &json!({"delta": {}, "finish_reason": "tool_calls"}), &usage),
    ];
    for (piece, at) in pieces.iter().zip([30, 40, 50, 60]) {
        exchange.piece(piece, NOW + at, &mut out);
    }
    exchange.end(End::Complete, NOW + 70, &mut out);
    exchange.add_translation_us(4);
    let mut warnings = Warnings::new(false);
    warnings.add("stream_options_refused");
    warnings.add("tool_unknown");
    let report = Report {
        images: None,
        documents: None,
        request_id: "req_3jjpA5mQ5DOtziWrgpUYvYXJ".into(),
        upstream_request_id: Some("second".into()),
        upstream: "default".into(),
        model: "claude-test".into(),
        upstream_model: "claude-test".into(),
        stream: true,
        status: 200,
        outcome: Outcome::Answered,
        warnings,
        answer: AnswerReport {
            began_unnamed: true,
            upstream_id: Some("c-1".into()),
            named_model: None,
            stop_reason: Some(creole::StopReason::ToolUse),
            input_tokens: 10,
            cache_read_tokens: 30,
            cache_creation_tokens: 0,
            output_tokens: 7,
            thinking_tokens: 2,
            chunks: 4,
            tool_calls: 1,
            server_calls: 0,
            progress: 2,
        },
        judge: None,
        vision: None,
        tools: None,
        failed_by: None,
        client_key: None,
        trace_id: None,
        upstream_status: Some(200),
        retries: 1,
        retries_by_evidence: 0,
        upstream_message: None,
        upstream_codes: None,
        reason: None,
        counts: RequestCounts { messages: 1, ..RequestCounts::default() },
        request_bytes: body.len(),
        upstream_request_bytes: first.body.len() + second.body.len(),
        upstream_response_bytes: refusal.len() + pieces.concat().len(),
        response_bytes: out.len(),
        translation_us: Some(7),
        requested_at: NOW,
        head_at: Some(NOW + 20),
        content_at: Some(NOW + 40),
        ended_at: Some(NOW + 70),
    };
    assert_eq!(exchange.report(), report);
}

/// Function that ends an exchange in one way at a given time.
type Ending = fn(&mut Exchange, u64, &mut Vec<u8>);

#[test]
fn however_an_exchange_ends_its_report_tells_when() {
    fn piece(exchange: &mut Exchange, piece: &[u8], now: u64, out: &mut Vec<u8>) {
        exchange.handle_call_head(200, &[], NOW);
        exchange.piece(piece, now, out);
    }
    let endings: [(&str, Ending); 7] = [
        ("reply", |exchange, now, out| {
            exchange.handle_call_head(200, &[], NOW);
            exchange.piece(b"{\"choices\":[{\"finish_reason\":\"stop\"}]}", NOW, out);
            exchange.end(End::Complete, now, out);
        }),
        ("done", |exchange, now, out| {
            piece(exchange, &[&stopped("Hi")[..], b"data: [DONE]\n\n"].concat(), now, out);
        }),
        ("error in a piece", |exchange, now, out| {
            piece(exchange, b"data: {\"error\":{\"message\":\"no\"}}\n\n", now, out);
        }),
        ("refusal", |exchange, now, out| {
            exchange.handle_call_head(500, &[], NOW);
            exchange.end(End::Complete, now, out);
        }),
        ("failure", |exchange, now, out| {
            exchange.failed(Failure::Timeout, now, out);
        }),
        ("silence", |exchange, now, out| {
            exchange.timeout(now, out);
        }),
        ("nobody there", |exchange, now, _| exchange.handle_client_gone(now)),
    ];
    for (name, end) in endings {
        let (mut exchange, _) = started(&drive::config("{}"), Pings::Sent, &ask(true));
        assert_eq!(exchange.report().ended_at, None, "{name}");
        let (now, mut out) = (NOW + 1_000_000, Vec::new());
        end(&mut exchange, now, &mut out);
        // A host may say so too, later.
        exchange.end(End::Aborted, now + 1, &mut out);
        assert!(exchange.is_ended(), "{name}");
        assert_eq!(exchange.report().ended_at, Some(now), "{name}");
    }
}

#[test]
fn reasoning_that_no_signature_can_hold_is_told() {
    let mut request: Value = serde_json::from_slice(&ask(false)).unwrap();
    // The client does not want the text: it would have to come back in the signature.
    request["thinking"] = json!({"type": "adaptive", "display": "omitted"});
    let told = |bytes: usize| {
        let (exchange, _) =
            started(&drive::config("{}"), Pings::Sent, request.to_string().as_bytes());
        let message = json!({"reasoning_content": "a".repeat(bytes), "content": "Hi"});
        let body = json!({"choices": [{"message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1}});
        let body = body.to_string();
        let answer = drive::respond(exchange, 200, &[], [body.as_bytes()], End::Complete);
        answer.report.warnings.header()
    };
    assert_eq!(told(100_000), None);
    assert_eq!(told(200_000).as_deref(), Some("signature_too_long"));
}

#[test]
fn an_exchange_that_is_printed_shows_no_prompt_and_no_credential() {
    let body = json!({
        "model": "m", "max_tokens": 9,
        "messages": [{"role": "user", "content": "canary-prompt"}],
    });
    let mut exchange =
        Exchange::new(drive::config("{}"), SEED, HostCan { ask_again: true, ..can(Pings::Sent) });
    exchange.decide("POST", "/v1/messages", &headers(&[("x-api-key", "canary-key")]));
    let call = exchange.request(body.to_string().as_bytes(), NOW).unwrap();
    exchange.handle_call_head(200, &[], NOW);
    exchange.handle_call_body(b"{\"choices\":[{\"message\":{\"content\":\"canary-answer", NOW);
    for (printed, upstream) in [
        (format!("{exchange:?}"), "upstream: \"default\""),
        (format!("{call:?}"), "Upstream(\"default\")"),
    ] {
        assert!(!printed.contains("canary"), "{printed}");
        assert!(printed.contains(upstream), "{printed}");
    }
    assert!(String::from_utf8(call.body).unwrap().contains("canary-prompt"));
}
