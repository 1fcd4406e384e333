//! Requests: which are ours, which are refused, and what is sent up.

use super::*;

#[test]
fn a_request_becomes_a_post_to_chat_completions_with_the_clients_key() {
    let (_, upstream) = started(&drive::config("{}"), Pings::Sent, &ask(true));
    assert_eq!(upstream.path, "/v1/chat/completions");
    let value = |name| {
        upstream.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    };
    assert_eq!(value("authorization"), Some("Bearer k"));
    assert_eq!(value("accept-encoding"), Some("identity"));
    assert_eq!(value("accept"), Some("text/event-stream"));
    assert_eq!(value("x-api-key"), None);
}

#[test]
fn a_base_url_that_ends_in_v1_is_understood() {
    for (method, path, translated) in [
        ("POST", "/v1/v1/messages?beta=true", true),
        ("POST", "/v1/v1/messages/count_tokens", true),
        ("GET", "/v1/v1/models", false),
    ] {
        let mut exchange = Exchange::new(drive::config("{}"), SEED, can(Pings::No));
        match exchange.decide(method, path, &headers(&[("x-api-key", "k")])) {
            Decision::Translate => assert!(translated, "{path}"),
            Decision::Reply(reply) => assert!(!translated && reply.head.status == 200, "{path}"),
            Decision::PassThrough => panic!("{path} passed"),
        }
    }
}

#[test]
fn a_base_url_that_lacks_v1_is_understood_where_a_host_wants_that() {
    for (path, expected) in [
        ("/messages", "/v1/messages"),
        ("/messages?beta=true", "/v1/messages?beta=true"),
        ("/messages/count_tokens", "/v1/messages/count_tokens"),
        ("/models", "/v1/models"),
        ("/models/m", "/v1/models/m"),
        ("/v1/messages", "/v1/messages"),
        ("/messages/batches", "/messages/batches"),
        ("/other?x=/messages", "/other?x=/messages"),
        ("/", "/"),
    ] {
        assert_eq!(creole::with_version(path), expected);
    }
}

#[test]
fn a_body_that_head_does_not_get_is_not_counted() {
    for path in ["/", "/v1/models", "/v1/models/none", "/v1/messages"] {
        let mut exchange = Exchange::new(drive::config("{}"), SEED, can(Pings::No));
        let Decision::Reply(reply) = exchange.decide("HEAD", path, &[]) else {
            panic!("{path} was taken");
        };
        assert_eq!((reply.body.len(), exchange.report().response_bytes), (0, 0), "{path}");
    }
}

#[test]
fn another_method_is_told_which_one_there_is() {
    for (method, has_body) in [("GET", true), ("PUT", true), ("HEAD", false)] {
        let mut exchange = Exchange::new(drive::config("{}"), SEED, can(Pings::No));
        let Decision::Reply(reply) = exchange.decide(method, "/v1/messages", &[]) else {
            panic!("{method} was taken");
        };
        assert_eq!((reply.head.status, header(&reply.head, "allow")), (405, Some("POST")));
        assert_eq!(!reply.body.is_empty(), has_body, "{method}");
    }
}

#[test]
fn what_is_not_ours_passes_through_both_ways() {
    for (method, path) in [
        ("POST", "/v1/chat/completions"),
        ("GET", "/health"),
        ("POST", "/v1/embeddings"),
        ("POST", "/v1/v1/embeddings"),
    ] {
        let mut exchange = Exchange::new(drive::config("{}"), SEED, can(Pings::No));
        assert_eq!(exchange.decide(method, path, &[]), Decision::PassThrough, "{path}");
        exchange.handle_call_head(200, &[], NOW);
        assert_eq!(exchange.piece(b"{}", NOW, &mut Vec::new()), None);
        assert_eq!(exchange.poll_timeout(), None);
    }
}

#[test]
fn a_path_that_cannot_pass_names_the_upstream_that_it_did_not_reach() {
    for (path, upstream) in [("/v1/files?limit=2", "first"), ("/elsewhere", "")] {
        let config =
            r#"{"upstreams": {"first": {"url": "http://a"}, "second": {"url": "http://b"}}}"#;
        let config = Arc::new(Config::from_json(config, |_| None).unwrap());
        let mut exchange = Exchange::new(config, SEED, can(Pings::Sent));
        assert_eq!(exchange.decide("GET", path, &[]), Decision::PassThrough);
        let reply = exchange.reply_to(Failure::Unreachable(Unreachable::Refused), NOW);
        assert_eq!(reply.head.status, 502);
        assert_eq!(exchange.report().upstream, upstream, "{path}");
    }
}

#[test]
fn bodies_that_cannot_be_read_are_refused_with_their_reason() {
    let deep = format!("{}1{}", "[".repeat(170), "]".repeat(170));
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (b"".to_vec(), "not valid JSON"),
        (b"hello".to_vec(), "not valid JSON"),
        (b"{\"model\":\"m\",\"max_tokens\":1,\"messages\":[{".to_vec(), "not valid JSON"),
        (b"{\"model\":\"\xff\"}".to_vec(), "not valid JSON"),
        (b"[]".to_vec(), "expected an object"),
        (br#"{"model":"m","messages":[{"role":"user","content":"q"}]}"#.to_vec(), "max_tokens: Field required"),
        (br#"{"model":"m","max_tokens":1,"messages":[]}"#.to_vec(), "messages: at least one message is required"),
        (br#"{"model":"m","max_tokens":1,"messages":[{"role":"robot","content":"q"}]}"#.to_vec(), "messages[0].role"),
        (br#"{"model":"m","max_tokens":"1","messages":[{"role":"user","content":"q"}]}"#.to_vec(), "max_tokens"),
        (br#"{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"text","text":5}]}]}"#.to_vec(), "messages[0].content[0].text"),
        (br#"{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"q"}],"thread":{"type":"create"}}"#.to_vec(), "thread"),
        (format!(r#"{{"model":"m","max_tokens":1,"messages":[{{"role":"user","content":"q"}}],"new":{deep}}}"#).into_bytes(), ""),
    ];
    for (body, part) in cases {
        let Err(answer) = drive::request(&drive::config("{}"), "/v1/messages", &[], &body) else {
            panic!("sent on: {}", String::from_utf8_lossy(&body));
        };
        let error = error_of(&answer.body);
        assert_eq!(answer.head.status, 400, "{error}");
        assert_eq!(error["type"], "invalid_request_error");
        assert!(error["message"].as_str().unwrap().contains(part), "expected {part:?} in {error}");
        if part == "thread" {
            assert_eq!(error["details"]["error_code"], "thread_unsupported_request");
        }
    }
}

#[test]
fn bodies_that_are_too_large_are_refused_before_they_are_read() {
    let config = drive::config(r#"{"request_bytes_max": 2048}"#);
    let mut exchange = Exchange::new(Arc::clone(&config), SEED, can(Pings::No));
    let head = headers(&[("x-api-key", "k"), ("content-length", "4096")]);
    let Decision::Reply(reply) = exchange.decide("POST", "/v1/messages", &head) else {
        panic!("not answered by its length");
    };
    assert_eq!(reply.head.status, 413);
    assert_eq!(error_of(&reply.body)["type"], "request_too_large");
    let Err(answer) = drive::request(&config, "/v1/messages", &[], &vec![b' '; 4096]) else {
        panic!("not answered by its body");
    };
    assert_eq!(answer.head.status, 413);
}

#[test]
fn an_answer_of_creoles_own_is_counted_with_its_upstream() {
    let config = drive::config(
        r#"{"upstreams":{"big":{"guards":{"tool_turns_max":1,"tool_turns_action":"end"}}},
            "models":{"claude-*":{"upstream":"big","model":"m"}}}"#,
    );
    let body = json!({"model": "claude-x", "max_tokens": 9,
    "tools": [{"name": "look", "input_schema": {"type": "object"}}], "messages": [
        {"role": "user", "content": "Go"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "a"}]},
    ]});
    let mut exchange = Exchange::new(Arc::clone(&config), SEED, can(Pings::Sent));
    exchange.decide("POST", "/v1/messages", &headers(&[("x-api-key", "k")]));
    let reply = exchange.request(body.to_string().as_bytes(), NOW).unwrap_err();
    assert_eq!((reply.head.status, exchange.report().upstream.as_str()), (200, "big"));
}

#[test]
fn what_is_known_of_a_refused_request_is_reported() {
    let config = drive::config(
        r#"{"upstreams":{"big":{"guards":{"tool_turns_max":1,"tool_turns_action":"error"}}},
            "models":{"claude-*":{"upstream":"big","model":"m"}}}"#,
    );
    let turn = json!([
        {"role": "user", "content": "Go"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "a"}]},
    ]);
    let tools = json!([{"name": "look", "input_schema": {"type": "object"}}]);
    for (status, body, model, upstream) in [
        (
            404,
            json!({"model": "gpt", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}),
            "gpt",
            "",
        ),
        (
            400,
            json!({"max_tokens": 9, "messages": turn, "model": "claude-x", "tools": tools}),
            "claude-x",
            "big",
        ),
        (400, json!({"messages": 1, "model": "claude-x"}), "claude-x", "big"),
        (400, json!({"messages": [], "model": {"not": "a name"}}), "", ""),
        (400, json!({"messages": [], "model": "x".repeat(300)}), "", ""),
    ] {
        let mut exchange = Exchange::new(Arc::clone(&config), SEED, can(Pings::Sent));
        exchange.decide("POST", "/v1/messages", &headers(&[("x-api-key", "k")]));
        let reply = exchange.request(body.to_string().as_bytes(), NOW).unwrap_err();
        let report = exchange.report();
        assert_eq!(
            (reply.head.status, report.model.as_str(), report.upstream.as_str()),
            (status, model, upstream),
            "{body}"
        );
    }
}

#[test]
fn a_request_may_have_a_byte_order_mark_and_call_no_encoding_what_it_likes() {
    for name in ["identity", "IDENTITY", " Identity ", ""] {
        let mut exchange = Exchange::new(drive::config("{}"), SEED, can(Pings::Sent));
        let sent = headers(&[("x-api-key", "k"), ("content-encoding", name)]);
        let head = exchange.decide("POST", "/v1/messages", &sent);
        assert_eq!(head, Decision::Translate, "{name:?}");
        let body = [&b"\xef\xbb\xbf"[..], &ask(true)].concat();
        assert!(exchange.request(&body, NOW).is_ok());
    }
}

#[test]
fn a_body_over_the_limit_has_one_cause_however_it_is_found_out() {
    let config = drive::config(r#"{"request_bytes_max": 1024}"#);
    let mut by_head = Exchange::new(Arc::clone(&config), SEED, can(Pings::Sent));
    by_head.decide("POST", "/v1/messages", &headers(&[("content-length", "2000")]));
    let mut by_body = Exchange::new(config, SEED, can(Pings::Sent));
    by_body.decide("POST", "/v1/messages", &[]);
    by_body.request(&[b' '; 2000], NOW).unwrap_err();
    for exchange in [by_head, by_body] {
        assert_eq!(exchange.report().cause(), "request_too_large");
    }
}
