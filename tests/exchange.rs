//! The seam that hosts drive: heads, errors, limits, silence, and what is not ours.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used
)]

mod support;

use std::sync::Arc;

use creole::config::Log;
use creole::{
    Config, End, Exchange, Failure, Head, Pings, RequestHead, ResponseHead, UpstreamRequest,
};
use serde_json::{Value, json};

use support::drive::{self, NOW, SEED, headers};
use support::grammar::{self, Rules};

fn ask(stream: bool) -> Vec<u8> {
    json!({
        "model": "claude-test", "max_tokens": 100, "stream": stream,
        "messages": [{"role": "user", "content": "Hello"}],
    })
    .to_string()
    .into_bytes()
}

fn started(config: &Arc<Config>, pings: Pings, body: &[u8]) -> (Exchange, UpstreamRequest) {
    let mut exchange = Exchange::new(Arc::clone(config), SEED, pings);
    let head = exchange.handle_request_head(
        "POST",
        "/v1/messages?beta=true",
        &headers(&[("x-api-key", "k")]),
    );
    assert_eq!(head, RequestHead::Translate);
    let upstream = exchange.handle_request(body, NOW).unwrap();
    (exchange, upstream)
}

fn header<'a>(head: &'a Head, name: &str) -> Option<&'a str> {
    head.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

fn error_of(body: &[u8]) -> Value {
    let value: Value = serde_json::from_slice(body).unwrap();
    grammar::error_body(&value).unwrap();
    value["error"].clone()
}

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
        let mut exchange = Exchange::new(drive::config("{}"), SEED, Pings::No);
        match exchange.handle_request_head(method, path, &headers(&[("x-api-key", "k")])) {
            RequestHead::Translate => assert!(translated, "{path}"),
            RequestHead::Reply(reply) => assert!(!translated && reply.head.status == 200, "{path}"),
            RequestHead::PassThrough => panic!("{path} passed"),
        }
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
        let mut exchange = Exchange::new(drive::config("{}"), SEED, Pings::No);
        assert_eq!(
            exchange.handle_request_head(method, path, &[]),
            RequestHead::PassThrough,
            "{path}"
        );
        assert_eq!(exchange.handle_response_head(200, &[], NOW), ResponseHead::PassThrough);
        assert_eq!(exchange.poll_timeout(), None);
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
    let mut exchange = Exchange::new(Arc::clone(&config), SEED, Pings::No);
    let head = headers(&[("x-api-key", "k"), ("content-length", "4096")]);
    let RequestHead::Reply(reply) = exchange.handle_request_head("POST", "/v1/messages", &head)
    else {
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
}

#[test]
fn failures_without_an_answer_have_their_own_status() {
    let cases = [
        (Failure::RequestTooLarge, 413, "request_too_large"),
        (Failure::Overloaded, 529, "overloaded_error"),
        (Failure::Unreachable("connection refused".into()), 502, "api_error"),
        (Failure::NoHealthyUpstream, 529, "overloaded_error"),
        (Failure::Timeout, 504, "timeout_error"),
        (Failure::NoRoute, 404, "not_found_error"),
        (Failure::Misconfigured, 500, "api_error"),
        (Failure::Forbidden("Host: no"), 403, "permission_error"),
    ];
    for (failure, status, kind) in cases {
        let (mut exchange, _) = started(&drive::config("{}"), Pings::Sent, &ask(true));
        let mut body = Vec::new();
        let head = exchange.handle_failure(failure.clone(), NOW, &mut body).unwrap();
        assert_eq!(head.status, status, "{failure:?}");
        assert_eq!(error_of(&body)["type"], kind);
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
        exchange.handle_response_head(status, &head, NOW);
        let said =
            br#"{"error":{"message":"Project p-1 has no access to model m with secret-of-KEY"}}"#;
        exchange.handle_response_body(said, NOW, &mut body);
        let head = exchange.handle_response_end(End::Complete, NOW, &mut body).unwrap();
        assert_eq!((head.status, header(&head, "x-should-retry")), (500, Some("false")));
        assert!(!String::from_utf8_lossy(&body).contains("p-1"));
        let known = creole::log::Request::default();
        let line = creole::log::line(&known, &exchange.report(), Log::Error, NOW).unwrap();
        let line: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(line["upstream_message"], "Project p-1 has no access to model m with ***");
    }
}

#[test]
fn what_only_the_operator_can_mend_is_not_retried() {
    let (mut exchange, _) = started(&drive::config("{}"), Pings::Sent, &ask(true));
    let head = exchange.handle_failure(Failure::Misconfigured, NOW, &mut Vec::new()).unwrap();
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
fn a_broken_connection_becomes_an_error_event_that_closes_nothing() {
    let (exchange, _) = started(&drive::config("{}"), Pings::Sent, &ask(true));
    let piece = concat!(r#"data: {"choices":[{"index":0,"delta":{"content":"Hel"}}]}"#, "\n\n");
    let answer = drive::respond(exchange, 200, &[], [piece.as_bytes()], End::Aborted);
    assert_eq!(answer.head.status, 200);
    let events = grammar::check_stream(&answer.body, Rules::default()).unwrap();
    assert_eq!(events.last().unwrap().name, "error");
    assert!(events.iter().all(|event| event.name != "content_block_stop"));
}

#[test]
fn silence_brings_pings_and_at_last_an_error() {
    let (mut exchange, _) = started(&drive::config("{}"), Pings::Sent, &ask(true));
    let mut body = Vec::new();
    exchange.handle_response_head(200, &[], NOW);
    let piece = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\n";
    let head = exchange.handle_response_body(piece, NOW, &mut body);
    assert_eq!(head.unwrap().status, 200);
    let mut now = NOW;
    let mut pings = 0;
    while !exchange.is_ended() {
        let due = exchange.poll_timeout().unwrap();
        assert!(due > now, "time stands still at {now}");
        now = due;
        let before = body.len();
        assert_eq!(exchange.handle_timeout(now, &mut body), None);
        pings += usize::from(body[before..].starts_with(b"event: ping"));
        assert!(now < NOW + 300_000, "no end of silence");
    }
    assert!(pings >= 10, "{pings} pings");
    let events = grammar::check_stream(&body, Rules::default()).unwrap();
    assert_eq!(events.last().unwrap().data["error"]["type"], "timeout_error");
    assert_eq!(exchange.report().warnings.guards(), ["stall"]);
}

#[test]
fn a_complete_answer_whose_connection_stays_open_ends_after_ten_seconds() {
    let (mut exchange, _) = started(&drive::config("{}"), Pings::Sent, &ask(true));
    let mut body = Vec::new();
    exchange.handle_response_head(200, &[], NOW);
    exchange.handle_response_body(&stopped("Hi"), NOW, &mut body);
    // Without the counts it may be one that calls a tool after that word.
    assert!(exchange.poll_timeout().unwrap() > NOW + 10_000);
    let counts =
        b"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}\n\n";
    exchange.handle_response_body(counts, NOW, &mut body);
    let due = exchange.poll_timeout().unwrap();
    assert!(due <= NOW + 10_000);
    // Signs of life are no reason to wait.
    exchange.handle_response_body(b": still here\n\n", NOW + 9_000, &mut body);
    while !exchange.is_ended() {
        let now = exchange.poll_timeout().unwrap();
        assert!(now <= NOW + 10_000, "{}", now - NOW);
        exchange.handle_timeout(now, &mut body);
    }
    let events = grammar::check_stream(&body, Rules::default()).unwrap();
    assert_eq!(events.last().unwrap().name, "message_stop");
    assert_eq!(exchange.report().outcome, creole::report::Outcome::Answered);
    assert!(exchange.report().warnings.guards().is_empty());
}

/// A chunk with a text and the word that the model stopped.
fn stopped(text: &str) -> Vec<u8> {
    let choice = json!({"index": 0, "delta": {"content": text}, "finish_reason": "stop"});
    format!("data: {}\n\n", json!({"choices": [choice]})).into_bytes()
}

#[test]
fn a_word_of_the_end_ends_no_answer_that_goes_on_later() {
    let call = json!({"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "call_a",
        "function": {"name": "w", "arguments": "{}"}}]}, "finish_reason": "tool_calls"});
    let call = format!("data: {}\n\ndata: [DONE]\n\n", json!({"choices": [call]})).into_bytes();
    let reasoning = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"reasoning\":\"hm\"},\"finish_reason\":\"stop\"}]}\n\n";
    // Before the first word, after reasoning, after a text, and after each word of a text.
    let counts =
        b"data: {\"choices\":[{\"delta\":{\"content\":\"\"}}],\"usage\":{\"prompt_tokens\":1}}\n\n";
    let starts = [
        [counts.to_vec(), stopped("")].concat(),
        [stopped("I "), counts.to_vec(), stopped("")].concat(),
        stopped(""),
        reasoning.to_vec(),
        stopped("I will look."),
        [stopped("I "), stopped("look")].concat(),
    ];
    for start in starts {
        let (mut exchange, _) = started(&drive::config("{}"), Pings::Sent, &ask(true));
        let mut body = Vec::new();
        exchange.handle_response_head(200, &[], NOW);
        exchange.handle_response_body(&start, NOW, &mut body);
        let mut now = NOW;
        while now < NOW + 50_000 {
            exchange.handle_timeout(now, &mut body);
            now = exchange.poll_timeout().unwrap().min(NOW + 50_000);
        }
        exchange.handle_response_body(&call, now, &mut body);
        let events = grammar::check_stream(&body, Rules::default()).unwrap();
        let calls = events.iter().filter(|event| event.data["content_block"]["type"] == "tool_use");
        assert_eq!(calls.count(), 1, "{}", String::from_utf8_lossy(&start));
        assert_eq!(events.last().unwrap().name, "message_stop");
    }
}

#[test]
fn a_connection_that_breaks_off_ends_no_answer_whose_chunks_all_say_that_it_is_over() {
    let pieces = [stopped("I "), stopped("look")].concat();
    let half = json!({"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "call_a",
        "function": {"name": "w", "arguments": "{\"c\":"}}]}, "finish_reason": "stop"});
    let half = format!("data: {}\n\n", json!({"choices": [half]})).into_bytes();
    let cut = [(pieces.clone(), false), (half, false)];
    let done = [[pieces, b"data: [DONE]\n\n".to_vec()].concat(), stopped("all of it")];
    for (upstream, whole) in cut.into_iter().chain(done.map(|upstream| (upstream, true))) {
        let (mut exchange, _) = started(&drive::config("{}"), Pings::Sent, &ask(true));
        let mut body = Vec::new();
        exchange.handle_response_head(200, &[], NOW);
        exchange.handle_response_body(&upstream, NOW, &mut body);
        let end = if whole { End::Complete } else { End::Aborted };
        exchange.handle_response_end(end, NOW, &mut body);
        let events = grammar::check_stream(&body, Rules::default()).unwrap();
        let last = if whole { "message_stop" } else { "error" };
        assert_eq!(events.last().unwrap().name, last, "{}", String::from_utf8_lossy(&upstream));
    }
}

#[test]
fn an_answer_that_could_end_there_is_no_stall_either() {
    let reasoning = json!({"index": 0, "delta": {"reasoning": "hm"}, "finish_reason": "length"});
    let reasoning = format!("data: {}\n\n", json!({"choices": [reasoning]})).into_bytes();
    let late =
        [stopped("Hi"), b"data: {\"choices\":[{\"delta\":{\"content\":\" \"}}]}\n\n".to_vec()];
    for (upstream, reason) in
        [(reasoning, "max_tokens"), (stopped(""), "end_turn"), (late.concat(), "end_turn")]
    {
        let (mut exchange, _) = started(&drive::config("{}"), Pings::Sent, &ask(true));
        let mut body = Vec::new();
        exchange.handle_response_head(200, &[], NOW);
        exchange.handle_response_body(&upstream, NOW, &mut body);
        while !exchange.is_ended() {
            let now = exchange.poll_timeout().unwrap();
            exchange.handle_timeout(now, &mut body);
        }
        let events = grammar::check_stream(&body, Rules::default()).unwrap();
        let delta = &events[events.len() - 2].data["delta"];
        assert_eq!(delta["stop_reason"], reason, "{}", String::from_utf8_lossy(&upstream));
    }
}

#[test]
fn a_finish_reason_that_comes_twice_is_believed_where_the_connection_ends_as_it_should() {
    let delta = |delta: Value, finish: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        format!("data: {}\n\n", json!({"choices": [choice]}))
    };
    let call = json!({"tool_calls": [{"index": 0, "id": "call_a",
        "function": {"name": "w", "arguments": "{}"}}]});
    let text = || String::from_utf8(stopped("I look.")).unwrap();
    // In a chunk of its own it is believed even after a break, in each chunk only after a clean end.
    let own = [text(), delta(call.clone(), Value::Null), delta(json!({}), json!("tool_calls"))];
    let each = [text(), delta(call, json!("tool_calls"))];
    for (upstream, end, last) in [
        (own.concat(), End::Complete, "message_stop"),
        (own.concat(), End::Aborted, "message_stop"),
        (each.concat(), End::Complete, "message_stop"),
        (each.concat(), End::Aborted, "error"),
    ] {
        let (mut exchange, _) = started(&drive::config("{}"), Pings::Sent, &ask(true));
        let mut body = Vec::new();
        exchange.handle_response_head(200, &[], NOW);
        exchange.handle_response_body(upstream.as_bytes(), NOW, &mut body);
        exchange.handle_response_end(end, NOW, &mut body);
        let events = grammar::check_stream(&body, Rules::default()).unwrap();
        assert_eq!(events.last().unwrap().name, last, "{upstream}");
    }
}

#[test]
fn signs_of_life_before_the_first_word_keep_the_client_alive_too() {
    let (mut exchange, _) = started(&drive::config("{}"), Pings::Sent, &ask(true));
    let mut body = Vec::new();
    exchange.handle_response_head(200, &[], NOW);
    exchange.handle_response_body(b": in the queue\n\n", NOW, &mut body);
    let due = exchange.poll_timeout().unwrap();
    assert_eq!(due, NOW + 15_000);
    let head = exchange.handle_timeout(due, &mut body).unwrap();
    let begun = String::from_utf8(body.clone()).unwrap();
    assert_eq!(head.status, 200);
    assert!(begun.contains("message_start") && begun.contains("event: ping"), "{begun}");
    assert_eq!(exchange.handle_response_body(&stopped("Hi"), due, &mut body), None);
    exchange.handle_response_end(End::Complete, due, &mut body);
    let events = grammar::check_stream(&body, Rules::default()).unwrap();
    assert_eq!(events.last().unwrap().name, "message_stop");
    // A host that writes only when the upstream does begins with the next sign of life.
    for pings in [Pings::AfterHead, Pings::No] {
        let (mut exchange, _) = started(&drive::config("{}"), pings, &ask(true));
        exchange.handle_response_head(200, &[], NOW);
        let mut body = Vec::new();
        exchange.handle_response_body(b": in the queue\n\n", NOW, &mut body);
        assert!(exchange.poll_timeout().unwrap() > due);
        assert_eq!(exchange.handle_timeout(due, &mut body), None);
        assert_eq!(exchange.handle_response_body(b": 1\n\n", due + 14_999, &mut body), None);
        let head = exchange.handle_response_body(b": 2\n\n", due + 15_000, &mut body).unwrap();
        assert_eq!(head.status, 200);
        assert!(body.starts_with(b"event: message_start"));
        let pinged = exchange.poll_timeout() == Some(due + 30_000);
        assert_eq!(pinged, pings == Pings::AfterHead);
    }
    // One that wants one message gets no event, and a whole answer is not promised before it is known.
    for (stream, piece) in [(false, &b": in the queue\n\n"[..]), (true, b"{\"choices\":")] {
        let (mut exchange, _) = started(&drive::config("{}"), Pings::Sent, &ask(stream));
        exchange.handle_response_head(200, &[], NOW);
        let mut body = Vec::new();
        exchange.handle_response_body(piece, NOW, &mut body);
        assert_eq!(exchange.handle_timeout(NOW + 15_000, &mut body), None);
        assert_eq!(body, b"");
    }
}

#[test]
fn an_upstream_that_never_answers_is_a_504() {
    let (mut exchange, _) = started(&drive::config("{}"), Pings::No, &ask(false));
    let mut body = Vec::new();
    let due = exchange.poll_timeout().unwrap();
    let head = exchange.handle_timeout(due, &mut body).unwrap();
    assert_eq!((head.status, error_of(&body)["type"].clone()), (504, json!("timeout_error")));
}

#[test]
fn a_host_that_must_send_the_head_early_still_tells_of_errors() {
    let (mut exchange, _) = started(&drive::config("{}"), Pings::Sent, &ask(true));
    exchange.handle_response_head(200, &[], NOW);
    assert_eq!(exchange.take_head().unwrap().status, 200);
    let mut body = Vec::new();
    let late = exchange.handle_response_body(
        b"data: {\"error\":{\"message\":\"no\",\"code\":429}}\n\n",
        NOW,
        &mut body,
    );
    let end = exchange.handle_response_end(End::Complete, NOW, &mut body);
    assert_eq!((late, end), (None, None));
    let rules = Rules { head_sent_early: true, ..Rules::default() };
    let events = grammar::check_stream(&body, rules).unwrap();
    assert_eq!(events.last().unwrap().data["error"]["type"], "rate_limit_error");
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_other_ids() {
    let upstream = br#"{"id":"c","choices":[{"index":0,"finish_reason":"tool_calls","message":{"tool_calls":[{"function":{"name":"w","arguments":"{}"}}]}}]}"#;
    let run = |seed| {
        let mut exchange = Exchange::new(drive::config("{}"), seed, Pings::No);
        exchange.handle_request_head("POST", "/v1/messages", &headers(&[("x-api-key", "k")]));
        exchange.handle_request(&ask(false), NOW).unwrap();
        let answer = drive::respond(exchange, 200, &[], [&upstream[..]], End::Complete);
        let message: Value = serde_json::from_slice(&answer.body).unwrap();
        (answer.body, message["id"].clone(), message["content"][0]["id"].clone())
    };
    let (first, again, other) = (run(1), run(1), run(2));
    assert_eq!(first, again);
    assert_ne!(first.1, other.1);
    assert_ne!(first.2, other.2);
}

#[test]
fn clients_that_leave_end_the_exchange() {
    let (mut exchange, _) = started(&drive::config("{}"), Pings::Sent, &ask(true));
    exchange.handle_client_gone(NOW);
    assert!(exchange.is_ended());
    assert_eq!(exchange.poll_timeout(), None);
    assert_eq!(exchange.report().status, 499);
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
        let mut exchange = Exchange::new(Arc::clone(&config), SEED, Pings::Sent);
        exchange.handle_request_head("POST", "/v1/messages", &headers(&[("x-api-key", "k")]));
        let reply = exchange.handle_request(body.to_string().as_bytes(), NOW).unwrap_err();
        let report = exchange.report();
        assert_eq!(
            (reply.head.status, report.model.as_str(), report.upstream.as_str()),
            (status, model, upstream),
            "{body}"
        );
    }
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
            let mut exchange = Exchange::new(drive::config(config), SEED, Pings::Sent);
            let client = headers(&[("x-api-key", "correct horse battery staple")]);
            exchange.handle_request_head("POST", "/v1/messages", &client);
            exchange.handle_request(&ask(true), NOW).unwrap();
            let answer = drive::respond(exchange, status, &[], [body.as_bytes()], End::Complete);
            let text = String::from_utf8(answer.body).unwrap();
            assert!(text.contains("user *** is over quota, ***!"), "{status}: {text}");
        }
    }
}

#[test]
fn a_whole_answer_that_is_complete_counts_however_its_connection_ends() {
    let choice =
        r#""index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop""#;
    let native = r#"{"type":"message","role":"assistant","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}"#;
    let last = r#"{"choices":[{"delta":{"content":"i"},"finish_reason":"stop"}]}"#;
    for body in [
        format!("\u{feff} {{\"choices\":[{{{choice}}}]}}\r\n"),
        native.to_owned(),
        last.replace("\"i\"", "\"Hi\""),
        format!(r#"[{{"choices":[{{"delta":{{"content":"H"}}}}]}},{last}]"#),
    ] {
        for stream in [false, true] {
            let (exchange, _) = started(&drive::config("{}"), Pings::Sent, &ask(stream));
            let answer = drive::respond(exchange, 200, &[], [body.as_bytes()], End::Aborted);
            let text = String::from_utf8(answer.body).unwrap();
            assert_eq!(answer.head.status, 200, "{body}: {text}");
            assert!(text.contains("end_turn") && !text.contains("error"), "{body}: {text}");
        }
        let (exchange, _) = started(&drive::config("{}"), Pings::Sent, &ask(false));
        let cut = body.trim_end().strip_suffix(['}', ']']).unwrap();
        let answer = drive::respond(exchange, 200, &[], [cut.as_bytes()], End::Aborted);
        let said = "Upstream stream ended before completion.";
        assert_eq!((answer.head.status, &error_of(&answer.body)["message"]), (502, &json!(said)));
    }
    // An error says what it says, and a chunk may be the first of several.
    for (body, said) in [
        (r#"{"error":{"message":"busy","code":503}}"#, "busy"),
        (r#"[{"error":{"message":"busy","code":503}}]"#, "busy"),
        (r#"{"choices":[{"delta":{"content":"Hi"}}]}"#, "Upstream stream ended before completion."),
    ] {
        let (exchange, _) = started(&drive::config("{}"), Pings::Sent, &ask(true));
        let answer = drive::respond(exchange, 200, &[], [body.as_bytes()], End::Aborted);
        assert!(answer.head.status > 500);
        assert_eq!(error_of(&answer.body)["message"], said);
    }
}

#[test]
fn an_event_that_is_cut_off_is_an_answer_that_is_cut_off() {
    let whole = r#"data: {"choices":[{"delta":{"content":"Hi"}}]}"#;
    let ended = "Upstream stream ended before completion.";
    for (last, said) in [
        (r#"data: {"choices":[{"delta":{"conte"#, ended),
        (r#"{"choices":[{"delta":{"content":"a}"#, ended),
        ("data: {\"choices\":[\n", ended),
        // Not what is complete, and no less wrong.
        ("data: {\"choices\":[{\n\n", "Upstream sent an invalid response"),
    ] {
        let body = format!("{whole}\n\n{last}");
        for (end, stream) in
            [End::Complete, End::Aborted].into_iter().flat_map(|end| [(end, true), (end, false)])
        {
            let (exchange, _) = started(&drive::config("{}"), Pings::Sent, &ask(stream));
            let answer = drive::respond(exchange, 200, &[], [body.as_bytes()], end);
            let text = String::from_utf8(answer.body).unwrap();
            assert!(text.contains(said), "{last} {stream}: {text}");
        }
    }
}

/// What an exchange gives whose upstream falls silent after `pieces`, which come every two seconds, and when.
fn silent_after(status: u16, pieces: &[&str], config: &str) -> (Head, String, u64) {
    let (mut exchange, _) = started(&drive::config(config), Pings::Sent, &ask(false));
    let (mut out, mut now) = (Vec::new(), NOW);
    exchange.handle_response_head(status, &headers(&[("retry-after", "7")]), now);
    for piece in pieces {
        now += 2000;
        assert_eq!(exchange.handle_response_body(piece.as_bytes(), now, &mut out), None);
    }
    loop {
        let due = exchange.poll_timeout().unwrap();
        assert!(due >= now && due < NOW + 1_000_000, "time stands still at {now}");
        now = due;
        if let Some(head) = exchange.handle_timeout(now, &mut out) {
            return (head, String::from_utf8(out).unwrap(), now - NOW);
        }
    }
}

#[test]
fn a_whole_answer_whose_connection_stays_open_ends_after_ten_seconds() {
    let start = r#"{"choices":[{"message":{"content":"Hi {}"#;
    let end = r#""},"finish_reason":"stop"}]}"#;
    let (head, body, after) = silent_after(200, &[start, end, "\n"], "{}");
    assert_eq!((head.status, after), (200, 16_000), "{body}");
    assert!(body.contains("Hi {}") && body.contains("end_turn"), "{body}");
    // What ends with a bracket need not be all.
    let short = r#"{"stall_timeout_ms": 30000}"#;
    for cut in [start, r#"{"choices":[{"delta":{"content":"Hi"}}]}"#] {
        let (head, body, after) = silent_after(200, &[cut], short);
        assert_eq!((head.status, after), (504, 32_000), "{body}");
    }
    let (head, body, after) =
        silent_after(200, &[&start[..40], end], r#"{"stall_timeout_ms": 5000}"#);
    assert_eq!((head.status, after), (200, 9000), "{body}");
}

#[test]
fn a_refusal_whose_connection_stays_open_is_told_after_ten_seconds() {
    let slow = r#"{"error":{"message":"slow down"}}"#;
    for (pieces, said, seconds) in [
        (&[slow] as &[&str], "slow down", 10),
        // However much of it still comes.
        (&[&slow[..9], &slow[9..], " ", " "], "slow down", 10),
        (&[], "HTTP 429 from upstream", 10),
        (&[slow], "slow down", 3),
    ] {
        let config = if seconds == 3 { r#"{"no_progress_timeout_ms": 3000}"# } else { "{}" };
        let (head, body, after) = silent_after(429, pieces, config);
        assert_eq!((head.status, after), (429, seconds * 1000), "{body}");
        assert_eq!(header(&head, "retry-after"), Some("7"));
        assert!(body.contains(said), "{body}");
    }
}

#[test]
fn a_refusal_whose_body_does_not_end_is_told_and_not_read_on() {
    let (mut exchange, _) = started(&drive::config("{}"), Pings::Sent, &ask(true));
    exchange.handle_response_head(500, &[], NOW);
    let (mut out, mut read) = (Vec::new(), 0);
    let mut piece = b"no memory ".repeat(100);
    let head = loop {
        let head = exchange.handle_response_body(&piece, NOW, &mut out);
        read += piece.len();
        if let Some(head) = head {
            break head;
        }
        assert!(read < 300_000, "{read} bytes are not enough");
        piece.resize(1000, b' ');
    };
    assert!(exchange.is_ended() && read > 200_000, "{read}");
    assert_eq!(head.status, 500);
    assert!(error_of(&out)["message"].as_str().unwrap().contains("no memory"));
    assert_eq!(exchange.handle_response_end(End::Aborted, NOW, &mut out), None);
}

#[test]
fn a_count_that_does_not_end_is_estimated() {
    let text = r#"{"response_bytes_max": 2000, "count_tokens": "upstream",
                   "upstreams": {"a": {"profile_overrides": {"tokenizer": "messages"}}}}"#;
    for (piece, millis) in [("[1,2,3,", 1000), ("[1,2,3,4,5,6,7,8,9,", 0)] {
        let sent =
            drive::request(&drive::config(text), "/v1/messages/count_tokens", &[], &ask(false));
        let (mut exchange, _) = sent.unwrap();
        exchange.handle_response_head(200, &[], NOW);
        let (mut out, mut now, mut read) = (Vec::new(), NOW, 0);
        let head = loop {
            now += millis;
            read += piece.len();
            let head = exchange.handle_response_body(piece.as_bytes(), now, &mut out);
            if let Some(head) = head.or_else(|| exchange.handle_timeout(now, &mut out)) {
                break head;
            }
            assert!(read < 3000, "{read} bytes are not enough");
        };
        assert_eq!((head.status, now - NOW), (200, millis * 10));
        assert_eq!(header(&head, "x-creole-warnings"), Some("count_estimated"));
        assert!(out.starts_with(b"{\"input_tokens\":"));
    }
}

#[test]
fn what_is_no_answer_at_all_is_called_invalid() {
    for body in [
        &b"upstream connect error"[..],
        b"Internal Server Error\n",
        b"\x1f\x8b\x08\0\n\xff",
        b"\"no\"",
    ] {
        for end in [End::Complete, End::Aborted] {
            let (exchange, _) = started(&drive::config("{}"), Pings::Sent, &ask(true));
            let answer = drive::respond(exchange, 200, &[], body.chunks(5), end);
            let said = error_of(&answer.body);
            let cut = body[0] == b'"' && end == End::Aborted;
            let expected = if cut { "" } else { "Upstream sent an invalid response" };
            assert_eq!(answer.head.status, 502);
            assert!(said["message"].as_str().unwrap().starts_with(expected), "{body:?}: {said}");
        }
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
fn a_request_may_have_a_byte_order_mark_and_call_no_encoding_what_it_likes() {
    for name in ["identity", "IDENTITY", " Identity ", ""] {
        let mut exchange = Exchange::new(drive::config("{}"), SEED, Pings::Sent);
        let sent = headers(&[("x-api-key", "k"), ("content-encoding", name)]);
        let head = exchange.handle_request_head("POST", "/v1/messages", &sent);
        assert_eq!(head, RequestHead::Translate, "{name:?}");
        let body = [&b"\xef\xbb\xbf"[..], &ask(true)].concat();
        assert!(exchange.handle_request(&body, NOW).is_ok());
    }
}

#[test]
fn white_space_without_end_is_an_answer_that_is_too_large() {
    let config = drive::config(r#"{"response_bytes_max": 1024}"#);
    for begin in ["", "\u{feff}"] {
        let (mut exchange, _) = started(&config, Pings::Sent, &ask(true));
        exchange.handle_response_head(200, &[], NOW);
        let mut body = Vec::new();
        let mut head = exchange.handle_response_body(begin.as_bytes(), NOW, &mut body);
        for _ in 0..600 {
            let next = exchange.handle_response_body(b"\n ", NOW, &mut body);
            head = head.or(next);
        }
        assert_eq!(head.map(|head| head.status), Some(502));
        assert!(error_of(&body)["message"].as_str().unwrap().ends_with("too large"));
    }
}

#[test]
fn a_body_over_the_limit_has_one_cause_however_it_is_found_out() {
    let config = drive::config(r#"{"request_bytes_max": 1024}"#);
    let mut by_head = Exchange::new(Arc::clone(&config), SEED, Pings::Sent);
    by_head.handle_request_head("POST", "/v1/messages", &headers(&[("content-length", "2000")]));
    let mut by_body = Exchange::new(config, SEED, Pings::Sent);
    by_body.handle_request_head("POST", "/v1/messages", &[]);
    by_body.handle_request(&[b' '; 2000], NOW).unwrap_err();
    for exchange in [by_head, by_body] {
        assert_eq!(exchange.report().cause(), "request_too_large");
    }
}

#[test]
fn a_whole_answer_may_take_as_long_as_clients_wait_for_it() {
    for (settings, stream, wait_ms) in [
        ("{}", false, 590_000),
        ("{}", true, 240_000),
        // What an operator chose is what they get.
        (r#"{"stall_timeout_ms": 60000}"#, false, 60_000),
        (r#"{"first_byte_timeout_ms": 70000}"#, false, 70_000),
    ] {
        let (exchange, _) = started(&drive::config(settings), Pings::Sent, &ask(stream));
        assert_eq!(exchange.poll_timeout(), Some(NOW + wait_ms), "{settings}, stream: {stream}");
    }
}
