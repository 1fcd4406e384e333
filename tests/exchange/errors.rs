//! Errors: failures of a host, refusals of an upstream, and answers that are none.

use creole::observe::metrics;

use super::*;

#[test]
fn an_encoding_that_was_not_asked_for_is_an_invalid_answer() {
    let (exchange, _) = started(&drive::config("{}"), Pings::No, &ask(true));
    let answer = drive::respond(
        exchange,
        200,
        &headers(&[("content-encoding", "gzip")]),
        [&b"\x1f\x8b\x08"[..]],
        End::Complete,
    );
    assert_eq!(answer.head.status, 502);
    assert_eq!(error_of(&answer.body)["type"], "api_error");
    assert_eq!(header(&answer.head, "x-creole-warnings"), Some("upstream_encoding"));
}

#[test]
fn failures_without_an_answer_have_their_own_status_and_cause() {
    let cases = [
        (Failure::RequestTooLarge, 413, "request_too_large", "request_too_large"),
        (Failure::Overloaded, 529, "overloaded_error", "overloaded"),
        (Failure::Unreachable(Unreachable::Refused), 502, "api_error", "unreachable"),
        (Failure::BrokeOff, 502, "api_error", "upstream_broke_off"),
        (Failure::NoHealthyUpstream, 529, "overloaded_error", "no_healthy_upstream"),
        (Failure::Timeout, 504, "timeout_error", "timeout"),
        (Failure::NoRoute, 404, "not_found_error", "no_route"),
        (Failure::Misconfigured, 500, "api_error", "misconfigured"),
        (Failure::Forbidden("Host: no"), 403, "permission_error", "forbidden"),
        (Failure::RequestIncomplete, 400, "invalid_request_error", "request_incomplete"),
        (Failure::RequestTooSlow, 408, "timeout_error", "request_too_slow"),
        (Failure::RestTooLarge, 500, "api_error", "rest_too_large"),
    ];
    for (failure, status, kind, cause) in cases {
        let (mut exchange, _) = started(&drive::config("{}"), Pings::Sent, &ask(true));
        let mut body = Vec::new();
        let head = exchange.failed(failure.clone(), NOW, &mut body).unwrap();
        assert_eq!(head.status, status, "{failure:?}");
        assert_eq!(error_of(&body)["type"], kind, "{failure:?}");
        assert_eq!(exchange.report().cause(), cause, "{failure:?}");
        let retry = (failure == Failure::RequestTooSlow).then_some("true");
        if !matches!(failure, Failure::Misconfigured | Failure::RestTooLarge) {
            assert_eq!(header(&head, "x-should-retry"), retry, "{failure:?}");
        }
        assert_eq!(header(&head, "request-id"), Some(exchange.report().request_id.as_str()));
        assert!(exchange.is_ended());
    }
}

#[test]
fn a_rejected_key_of_the_gateway_is_not_retried_and_the_log_alone_says_why() {
    let config = drive::config(r#"{"upstreams": {"a": {"key": {"secret": "KEY"}}}}"#);
    for status in [401, 403] {
        let (mut exchange, _) = started(&config, Pings::Sent, &ask(true));
        let mut body = Vec::new();
        // What an upstream says of retries is of the client's no more than its text.
        let head = headers(&[("content-type", "application/json"), ("x-should-retry", "true")]);
        exchange.handle_call_head(status, &head, NOW);
        let said =
            br#"{"error":{"message":"Project p-1 has no access to model m with secret-of-KEY"}}"#;
        exchange.piece(said, NOW, &mut body);
        let head = exchange.end(End::Complete, NOW, &mut body).unwrap();
        assert_eq!((head.status, header(&head, "x-should-retry")), (500, Some("false")));
        assert!(!String::from_utf8_lossy(&body).contains("p-1"));
        let known = creole::observe::log::LoggedRequest::default();
        let line = creole::observe::log::line(&known, &exchange.report(), Log::Error, NOW).unwrap();
        let line: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(line["upstream_message"], "Project p-1 has no access to model m with ***");
    }
}

#[test]
fn an_error_behind_chunks_that_say_nothing_has_its_status() {
    let role = r#"data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#;
    let empty = r#"data: {"choices":[{"index":0,"delta":{"content":"","reasoning_content":null},"finish_reason":""}],"usage":{"prompt_tokens":9}}"#;
    let error = r#"data: {"error":{"message":"Overloaded","code":503}}"#;
    let long = r#"data: {"error":{"message":"no","code":"context_length_exceeded"}}"#;
    for (events, status) in [
        (vec![role, error], 529),
        (vec![": ping", role, empty, empty, error], 529),
        (vec![role, long], 400),
        // The connection ends.
        (vec![role], 502),
        (vec![role, empty], 502),
        // The model said nothing.
        (vec![role, empty, "data: [DONE]"], 200),
    ] {
        let body = format!("{}\n\n", events.join("\n\n"));
        let whole = [body.as_bytes()];
        let bytes: Vec<&[u8]> = body.as_bytes().chunks(1).collect();
        for pieces in [&whole[..], &bytes] {
            let (exchange, _) = started(&drive::config("{}"), Pings::Sent, &ask(true));
            let pieces = pieces.iter().copied();
            let answer = drive::respond(exchange, 200, &[], pieces, End::Complete);
            assert_eq!(answer.head.status, status, "{events:?}");
            match status {
                200 => assert!(answer.report.warnings.iter().any(|it| it.text() == "answer_empty")),
                _ => drop(error_of(&answer.body)),
            }
        }
    }
}

#[test]
fn a_refused_schema_is_told_by_the_position_that_the_client_gave_its_tool() {
    let ask = json!({
        "model": "claude-test", "max_tokens": 100,
        "messages": [{"role": "user", "content": "Hello"}],
        "tools": [
            // It is not sent.
            {"type": "web_search_20250305", "name": "web_search"},
            {"type": "bash_20250124", "name": "bash"},
            {"name": "bad", "input_schema": {"type": "object", "properties": {"a": {"format": "x"}}}},
        ],
    });
    let refusal = |words: &str, status| {
        let (exchange, _) = started(&drive::config("{}"), Pings::Sent, ask.to_string().as_bytes());
        let body = json!({"error": {"message": words}}).to_string();
        let answer = drive::respond(exchange, status, &[], [body.as_bytes()], End::Complete);
        error_of(&answer.body)["message"].clone()
    };
    for words in ["Invalid schema for function 'bad'", "tools[1].function.parameters: no"] {
        assert_eq!(refusal(words, 400), format!("tools.2.custom.input_schema: {words}"));
        assert_eq!(refusal(words, 500), words);
    }
    let effort = refusal("reasoning_effort: Input should be 'low'", 422);
    let told = "This model does not support the effort parameter. (reasoning_effort: Input should be 'low')";
    assert_eq!(effort, told);
}

#[test]
fn a_document_that_is_refused_is_no_image() {
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aQ=="}});
    let file = json!({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "aQ=="}});
    let ask = json!({
        "model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": [image, file]}],
    });
    let config = drive::config(r#"{"upstreams": {"a": {"profile": "openai-chat"}}}"#);
    let (exchange, _) = started(&config, Pings::Sent, ask.to_string().as_bytes());
    let words =
        "messages[0].content[1]: unknown variant `file`, expected one of `text`, `image_url`";
    let body = json!({"error": {"message": words}}).to_string();
    let answer = drive::respond(exchange, 400, &[], [body.as_bytes()], End::Complete);
    let message = error_of(&answer.body)["message"].clone();
    assert_eq!(message, format!("This model does not support PDF input ({words})"));
}

#[test]
fn an_upstream_that_speaks_messages_refuses_what_the_client_sent() {
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aQ=="}});
    let file = json!({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "aQ=="}});
    let ask = json!({
        "model": "m", "max_tokens": 32000,
        "messages": [{"role": "user", "content": [image, file]}],
        "tools": [{"name": "a", "input_schema": {}}, {"name": "b", "input_schema": {}}],
    });
    let config = drive::config(r#"{"upstreams": {"a": {"protocol": "anthropic"}}}"#);
    for (status, words, told) in [
        (
            400,
            "Range of max_tokens should be [1, 8192]",
            "max_tokens: 32000 > 8192, which is the maximum",
        ),
        (
            400,
            "messages[0].content: unknown variant `image`",
            "Could not process image (messages[0]",
        ),
        (500, "image input is not supported: mmproj", "Could not process image (image input"),
        (400, "unknown variant `document`", "This model does not support PDF input (unknown"),
        (400, "invalid input_schema for tool \"b\"", "tools.1.custom.input_schema: invalid"),
        (
            500,
            "system message must be at the beginning",
            "role 'system' is not supported here (system",
        ),
    ] {
        let (exchange, _) = started(&config, Pings::Sent, ask.to_string().as_bytes());
        let body = json!({"type": "error", "error": {"type": "x", "message": words}}).to_string();
        let answer = drive::respond(exchange, status, &[], [body.as_bytes()], End::Complete);
        let message = error_of(&answer.body)["message"].clone();
        assert_eq!(answer.head.status, 400, "{words}");
        assert!(message.as_str().unwrap().starts_with(told), "{message}");
    }
}

#[test]
fn what_only_the_operator_can_mend_is_not_retried() {
    let (mut exchange, _) = started(&drive::config("{}"), Pings::Sent, &ask(true));
    let head = exchange.failed(Failure::Misconfigured, NOW, &mut Vec::new()).unwrap();
    assert_eq!(header(&head, "x-should-retry"), Some("false"));
}

#[test]
fn a_prompt_that_was_filtered_has_no_counts() {
    let filtered = br#"{"error":{"message":"filtered","code":"content_filter"}}"#;
    for stream in [false, true] {
        let (exchange, _) = started(&drive::config("{}"), Pings::Sent, &ask(stream));
        let answer = drive::respond(exchange, 400, &[], [&filtered[..]], End::Complete);
        assert_eq!(answer.head.status, 200);
        let text = String::from_utf8(answer.body).unwrap();
        assert!(text.contains("\"refusal\"") && text.contains("\"input_tokens\":0"), "{text}");
        // Nobody counted anything: an estimate is none of the upstream's tokens.
        let counts = &answer.report.answer;
        assert_eq!((counts.input_tokens, counts.output_tokens), (0, 0));
    }
}

#[test]
fn a_host_that_must_send_the_head_early_still_tells_of_errors() {
    let (mut exchange, _) = started(&drive::config("{}"), Pings::Sent, &ask(true));
    exchange.handle_call_head(200, &[], NOW);
    exchange.release_head();
    assert_eq!(exchange.poll_head().unwrap().status, 200);
    let mut body = Vec::new();
    let late =
        exchange.piece(b"data: {\"error\":{\"message\":\"no\",\"code\":429}}\n\n", NOW, &mut body);
    let end = exchange.end(End::Complete, NOW, &mut body);
    assert_eq!((late, end), (None, None));
    let rules = Rules { head_sent_early: true, ..Rules::default() };
    let events = grammar::check_stream(&body, rules).unwrap();
    assert_eq!(events.last().unwrap().data["error"]["type"], "rate_limit_error");
}

#[test]
fn a_credential_that_the_upstream_quotes_does_not_reach_the_client() {
    let own = r#"{"upstreams":{"default":{"url":"http://u","key":{"secret":"K"}}}}"#;
    for (config, key) in [(own, "secret-of-K"), ("{}", "correct horse battery staple")] {
        let said = format!("user {key} is over quota, {key}!");
        let body = json!({"error": {"message": said}}).to_string();
        let event = format!("data: {body}\n\n");
        for (status, body) in
            [(400, &body), (404, &body), (429, &body), (500, &body), (200, &event)]
        {
            let mut exchange = Exchange::new(drive::config(config), SEED, can(Pings::Sent));
            let client = headers(&[("x-api-key", "correct horse battery staple")]);
            exchange.decide("POST", "/v1/messages", &client);
            exchange.request(&ask(true), NOW).unwrap();
            let answer = drive::respond(exchange, status, &[], [body.as_bytes()], End::Complete);
            let text = String::from_utf8(answer.body).unwrap();
            assert!(text.contains("user *** is over quota, ***!"), "{status}: {text}");
        }
    }
}

#[test]
fn a_credential_is_hidden_wherever_an_error_of_the_upstream_is_told() {
    let config = r#"{"upstreams":{"default":{"url":"http://u","key":{"secret":"LONG_ENOUGH"}}}}"#;
    let role = r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"}}]}"#;
    for quoted in [
        "c2VjcmV0LW9mLUxPTkdfRU5PVUdI",
        // Of `user:` and the key, and of `Bearer ` and the key.
        "dXNlcjpzZWNyZXQtb2YtTE9OR19FTk9VR0g=",
        "QmVhcmVyIHNlY3JldC1vZi1MT05HX0VOT1VHSA",
        "secret-of-LONG",
        "secret%2dof%2DLONG%5FENOUGH",
        "7365637265742d6f662d4c4f4e475f454e4f554748",
        "HGUONE_GNOL-fo-terces",
    ] {
        let error = json!({"error": {"message": format!("bad <{quoted}> here"), "code": quoted}});
        let late = format!("data: {role}\n\ndata: {error}\n\n");
        for (status, body) in [(400, error.to_string()), (403, error.to_string()), (200, late)] {
            let (exchange, _) = started(&drive::config(config), Pings::Sent, &ask(true));
            let answer = drive::respond(exchange, status, &[], [body.as_bytes()], End::Complete);
            let text = String::from_utf8(answer.body).unwrap();
            assert!(!text.contains(quoted), "{status}: {text}");
            let told = if status == 403 { answer.report.upstream_message.unwrap() } else { text };
            let shown = told.split_once("bad <").unwrap().1.split_once("> here").unwrap().0;
            assert!(shown.contains("***") && shown.len() < 24, "{quoted} {status}: {told}");
        }
    }
}

#[test]
fn a_path_that_the_upstream_does_not_serve_is_the_operators_fault() {
    let config = r#"{"upstreams":{"default":{"url":"http://u","base_path":"/api/v3"}}}"#;
    for (status, body) in [
        (404, "404 page not found"),
        (404, r#"{"detail":"Not Found"}"#),
        (
            404,
            "<html><head><title>404 Not Found</title></head><body><center><h1>404 Not Found</h1></center><hr><center>nginx</center></body></html>",
        ),
        (404, ""),
        (404, r#"{"error":{"code":"404","message":"Resource not found"}}"#),
        (
            404,
            r#"{"error":{"message":"Invalid URL (POST /api/v3/chat/completions)","type":"invalid_request_error","param":null,"code":null}}"#,
        ),
        (404, "<pre>Cannot POST /api/v3/chat/completions</pre>"),
        (
            404,
            r#"{"timestamp":1,"status":404,"error":"Not Found","path":"/api/v3/chat/completions"}"#,
        ),
        (404, r#"{"detail":"Not Found: /api/v3/chat/completions"}"#),
        (405, r#"{"detail":"Method Not Allowed"}"#),
        // A site's own page, which has a menu.
        (
            404,
            "<!DOCTYPE html><html lang=\"en\"><title>Not Found | Router</title><nav>Models Chat Docs</nav><h1>Nothing at this address</h1></html>",
        ),
        // A server at another address.
        (301, ""),
        (308, "<a href=\"https://u/api/v3/chat/completions\">Permanent Redirect</a>.\n"),
        // LM Studio answers everything with 200.
        (200, r#"{"error":"Unexpected endpoint or method. (POST /api/v3/chat/completions)"}"#),
    ] {
        let (exchange, _) = started(&drive::config(config), Pings::Sent, &ask(false));
        let answer = drive::respond(exchange, status, &[], [body.as_bytes()], End::Complete);
        assert_eq!(answer.head.status, 502, "{body}");
        assert_eq!(header(&answer.head, "x-should-retry"), Some("false"));
        let error = error_of(&answer.body);
        let message = error["message"].as_str().unwrap();
        let expected = format!("Upstream does not serve /api/v3/chat/completions (HTTP {status})");
        assert!(message.starts_with(&expected), "{body}: {message}");
        assert!(message.contains("base_path of upstream default"), "{message}");
        assert_eq!(error["type"], "api_error");
    }
    for body in [
        r#"{"error":{"message":"The model `x` does not exist or you do not have access to it.","code":"model_not_found"}}"#,
        r#"{"error":{"message":"not found","code":"model_not_found"}}"#,
        r#"{"error":{"message":"claude-test: not found"}}"#,
        r#"{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}}"#,
        r#"{"error":{"message":"No endpoints found for x/y."}}"#,
        r#"{"error":{"message":"Requested entity was not found.","status":"NOT_FOUND"}}"#,
        r#"{"object":"error","message":"The model `m` does not exist.","type":"NotFoundError","code":404}"#,
    ] {
        let (exchange, _) = started(&drive::config(config), Pings::Sent, &ask(false));
        let answer = drive::respond(exchange, 404, &[], [body.as_bytes()], End::Complete);
        assert_eq!(
            (answer.head.status, &error_of(&answer.body)["type"]),
            (404, &json!("not_found_error")),
            "{body}"
        );
    }
}

#[test]
fn a_web_page_or_a_port_of_tls_in_place_of_the_api_is_the_operators_fault() {
    let config = r#"{"upstreams":{"default":{"url":"http://u","base_path":"/api"}}}"#;
    let page =
        "<!DOCTYPE html>\n<html lang=\"en\"><body class=\"x\">Open WebUI {loading}</body></html>";
    let of_page = "Upstream sent a web page instead of an answer to /api/chat/completions (HTTP 200); \
                   check --upstream, or url and base_path of upstream default: Open WebUI";
    let of_tls = "Upstream expects TLS; write https:// in the url of upstream default: ";
    for (status, body, expected) in [
        (200, page, of_page),
        (400, "Client sent an HTTP request to an HTTPS server.\n", of_tls),
        (
            400,
            "<html><head><title>400 The plain HTTP request was sent to HTTPS port</title></head></html>",
            of_tls,
        ),
    ] {
        for stream in [true, false] {
            let (exchange, _) = started(&drive::config(config), Pings::Sent, &ask(stream));
            let answer = drive::respond(exchange, status, &[], [body.as_bytes()], End::Complete);
            assert_eq!(answer.head.status, 502, "{body}");
            assert_eq!(header(&answer.head, "x-should-retry"), Some("false"), "{body}");
            let message = error_of(&answer.body)["message"].as_str().unwrap().to_owned();
            assert!(message.starts_with(expected), "{message}");
            assert_eq!(metrics::outcome(&answer.report), "failed_operator");
        }
    }
}

#[test]
fn a_connection_that_no_retry_heals_is_not_asked_for_again() {
    for (reason, heals) in [
        (Unreachable::Refused, true),
        (Unreachable::NoName, true),
        (Unreachable::Closed, true),
        (Unreachable::NotTls, false),
        (Unreachable::NotHttp, false),
        (Unreachable::OtherName, false),
        (Unreachable::UnknownIssuer, false),
        (Unreachable::AuthorityAsServer, false),
    ] {
        let (mut exchange, _) = started(&drive::config("{}"), Pings::Sent, &ask(true));
        let mut body = Vec::new();
        let head = exchange.failed(Failure::Unreachable(reason.clone()), NOW, &mut body).unwrap();
        let told = header(&head, "x-should-retry");
        assert_eq!((head.status, told), (502, (!heals).then_some("false")), "{reason:?}");
    }
}

#[test]
fn what_is_no_answer_at_all_is_told_where_it_is_text() {
    const INVALID: &str = "Upstream sent an invalid response";
    for (body, expected) in [
        (&b"upstream connect error"[..], "upstream connect error"),
        (b"Internal Server Error\n", "Internal Server Error"),
        (b"\x1f\x8b\x08\0\n\xff", INVALID),
        (b"\"no\"", INVALID),
        ("\u{4e0a}".repeat(400).as_bytes(), &"\u{4e0a}".repeat(100)),
        (b"\x1b[31mno such model\x1b[0m", "[31mno such model[0m"),
    ] {
        for end in [End::Complete, End::Aborted] {
            let (exchange, _) = started(&drive::config("{}"), Pings::Sent, &ask(true));
            let answer = drive::respond(exchange, 200, &[], body.chunks(5), end);
            let said = error_of(&answer.body);
            let cut = body[0] == b'"' && end == End::Aborted;
            let expected = if cut { "" } else { expected };
            assert_eq!(answer.head.status, 502);
            assert!(said["message"].as_str().unwrap().starts_with(expected), "{body:?}: {said}");
        }
    }
    // A piece of an event stream is none.
    for cut in ["dat", "event: message\nda", ": ok\n\nid: 1\nretr"] {
        let (exchange, _) = started(&drive::config("{}"), Pings::Sent, &ask(true));
        let answer = drive::respond(exchange, 200, &[], cut.as_bytes().chunks(5), End::Complete);
        let said = error_of(&answer.body)["message"].as_str().unwrap().to_owned();
        assert!(said.starts_with("Upstream"), "{cut}: {said}");
    }
    let twice =
        json!(r#"{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]}"#).to_string();
    for end in [End::Complete, End::Aborted] {
        let (exchange, _) = started(&drive::config("{}"), Pings::Sent, &ask(false));
        let answer = drive::respond(exchange, 200, &[], twice.as_bytes().chunks(7), end);
        assert_eq!(answer.head.status, 200, "{end:?}");
    }
}

#[test]
fn white_space_without_end_is_an_answer_that_is_too_large() {
    let config = drive::config(r#"{"response_bytes_max": 1024}"#);
    for begin in ["", "\u{feff}"] {
        let (mut exchange, _) = started(&config, Pings::Sent, &ask(true));
        exchange.handle_call_head(200, &[], NOW);
        let mut body = Vec::new();
        let mut head = exchange.piece(begin.as_bytes(), NOW, &mut body);
        for _ in 0..600 {
            let next = exchange.piece(b"\n ", NOW, &mut body);
            head = head.or(next);
        }
        assert_eq!(head.map(|head| head.status), Some(502));
        assert!(error_of(&body)["message"].as_str().unwrap().ends_with("too large"));
    }
}

#[test]
fn a_wait_that_only_the_body_names_is_told_in_the_head() {
    let body = r#"{"error":{"code":429,"message":"Quota exceeded. Please retry in 34.07s.","status":"RESOURCE_EXHAUSTED"}}"#;
    let told = |sent: &[(&str, &str)], status, body: &str| {
        let (exchange, _) = started(&drive::config("{}"), Pings::Sent, &ask(false));
        let sent = headers(sent);
        let answer = drive::respond(exchange, status, &sent, [body.as_bytes()], End::Complete);
        assert_eq!(answer.head.status, 429);
        let is_wait = |(name, _): &&(String, String)| name.starts_with("retry-after");
        answer
            .head
            .headers
            .iter()
            .filter(is_wait)
            .map(|(_, value)| value.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(told(&[], 429, body), ["35"]);
    assert_eq!(told(&[], 200, body), ["35"]);
    assert_eq!(told(&[("retry-after", "7")], 429, body), ["7"]);
    assert_eq!(told(&[("retry-after-ms", "700")], 429, body), ["700"]);
}

#[test]
fn an_error_event_has_the_words_by_which_clients_know_that_they_may_ask_again() {
    let said = |last: &str| {
        let hello = json!({"choices": [{"index": 0, "delta": {"content": "Hel"}}]});
        let ask = json!({"model": "m", "max_tokens": 100, "stream": true,
            "messages": [{"role": "user", "content": "q"}]});
        let (exchange, _) = started(&drive::config("{}"), Pings::Sent, ask.to_string().as_bytes());
        let body = format!("data: {hello}\n\n{last}");
        let answer = drive::respond(exchange, 200, &[], [body.as_bytes()], End::Complete);
        let text = String::from_utf8(answer.body).unwrap();
        let (_, event) = text.split_once("event: error\ndata: ").expect(&text);
        error_of(event.trim().as_bytes())["message"].as_str().unwrap().to_owned()
    };
    for (last, expected) in [
        ("", "Internal server error: Upstream stream ended before completion."),
        (
            "data: {\"error\":{\"message\":\"CUDA out of memory\"}}\n\n",
            "Internal server error: CUDA out of memory",
        ),
        (
            "data: <html><head><title>502 Bad Gateway</title></head></html>\n\n",
            "Internal server error: 502 Bad Gateway",
        ),
        ("data: <html>Please log in</html>\n\n", "Internal server error: Please log in"),
        // It says so already; it has words of its own; it is no use.
        (
            "data: {\"error\":{\"message\":\"Internal Server Error\",\"code\":500}}\n\n",
            "Internal Server Error",
        ),
        ("data: {\"error\":{\"message\":\"busy\",\"code\":503}}\n\n", "busy"),
        ("data: {\"error\":{\"message\":\"no such model\",\"code\":404}}\n\n", "no such model"),
    ] {
        assert_eq!(said(last), expected);
    }
}
