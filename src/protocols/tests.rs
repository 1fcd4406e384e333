//! Protocols of upstreams and of clients that speak lines of text: what adding one takes.
//!
//! The code of the upstreams' protocol is `lines`; its row is in `protocols::of`, and its word in
//! the configuration's `Protocol`. The code of the clients' protocol is `line_client`; its row is
//! in `protocols::CLIENTS`. Unlike Chat and Responses, `lines` uses neither `decide` nor `content`:
//! its requests and answers are too plain to need them.

#[path = "../../tests/support/blocks.rs"]
#[allow(unreachable_pub)]
mod blocks;

#[path = "../../tests/support/grammar.rs"]
#[allow(dead_code, unreachable_pub, clippy::string_slice)]
mod grammar;
pub(crate) mod line_client;
pub(crate) mod lines;

use std::sync::Arc;

use serde_json::{Value, json};

use crate::observe::report::Report;
use crate::{Call, Config, End, Exchange, HostCan, RequestHead};
use grammar::Rules;

const NOW: u64 = 1_790_000_000_000;

const ANSWER: &[u8] = b"SAY Hello \"you\"\nSAY  and more\nCALL weather {\"city\":\"Oslo\"}\nSTOP\n";

/// A host's loop, as far as these tests need it.
fn respond<'a>(
    (mut exchange, call): (Exchange, Call),
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Answer {
    exchange.handle_call_head(call.id, 200, &[], NOW);
    let mut body = Vec::new();
    for piece in pieces {
        exchange.handle_call_body(call.id, piece, NOW);
        exchange.poll_body(&mut body);
    }
    exchange.handle_call_end(call.id, End::Complete, NOW);
    let head = exchange.poll_head().unwrap();
    exchange.poll_body(&mut body);
    Answer { status: head.status, body, report: exchange.report() }
}

struct Answer {
    status: u16,
    body: Vec<u8>,
    report: Report,
}

fn asked(stream: bool) -> (Exchange, Call) {
    let text = r#"{"upstreams": {"u": {"protocol": "lines"}}}"#;
    let config = Arc::new(Config::from_json(text, |_| None).unwrap());
    let can = HostCan { ask_again: true, ..HostCan::default() };
    let mut exchange = Exchange::new(config, 7, can);
    let head = exchange.handle_request_head(
        "POST",
        "/v1/messages",
        &[("x-api-key".to_owned(), "k".to_owned())],
    );
    assert_eq!(head, RequestHead::Translate);
    let body = json!({
        "model": "m", "max_tokens": 9, "stream": stream, "temperature": 0.5,
        "messages": [{"role": "user", "content": "Which weather?"}],
        "tools": [{"name": "weather", "input_schema": {"type": "object"}}],
    });
    exchange.handle_request_body(body.to_string().into_bytes(), NOW);
    let call = exchange.poll_call(NOW).unwrap();
    (exchange, call)
}

fn answered<'a>(stream: bool, pieces: impl IntoIterator<Item = &'a [u8]>) -> Answer {
    respond(asked(stream), pieces)
}

fn check(answer: &Answer) {
    assert_eq!(answer.status, 200);
    let message: Value = serde_json::from_slice(&answer.body).unwrap();
    grammar::check_message(&message).unwrap();
    assert_eq!(message["content"][0], json!({"type": "text", "text": "Hello \"you\" and more"}));
    assert_eq!(message["content"][1]["name"], "weather");
    assert_eq!(message["content"][1]["input"], json!({"city": "Oslo"}));
    assert_eq!(message["stop_reason"], "tool_use");
}

#[test]
fn a_request_is_written_in_its_lines() {
    let (_, call) = asked(true);
    assert_eq!(call.path, "/v1/lines");
    assert_eq!(call.body, b"WARM 0.5\nASK Which weather?\n");
}

#[test]
fn a_message_is_made_of_its_lines() {
    check(&answered(false, [ANSWER]));
    check(&answered(false, ANSWER.chunks(1)));
}

#[test]
fn a_stream_is_the_same_however_it_is_cut() {
    let whole = answered(true, [ANSWER]);
    let events = grammar::check_stream(&whole.body, Rules::default()).unwrap();
    let texts = events.iter().filter_map(|event| event.data["delta"]["text"].as_str());
    assert_eq!(texts.collect::<String>(), "Hello \"you\" and more");
    assert_eq!(events.last().unwrap().name, "message_stop");
    for at in 1..ANSWER.len() {
        let (before, after) = ANSWER.split_at(at);
        assert_eq!(answered(true, [before, after]).body, whole.body, "cut at {at}");
    }
    assert_eq!(answered(true, ANSWER.chunks(1)).body, whole.body);
}

#[test]
fn an_answer_without_its_end_is_an_error() {
    let answer = answered(true, [&b"SAY Hel"[..]]);
    assert_ne!(answer.status, 200);
    let answer = answered(true, [&b"SAY Hello\nSAY wor"[..]]);
    let events = grammar::check_stream(&answer.body, Rules::default()).unwrap();
    assert_eq!(events.last().unwrap().name, "error");
}

#[test]
fn what_it_refuses_is_left_out_of_a_second_round() {
    let (mut exchange, call) = asked(false);
    exchange.handle_call_head(call.id, 400, &[], NOW);
    exchange.handle_call_body(call.id, b"REFUSE Unsupported parameter: 'temperature'", NOW);
    exchange.handle_call_end(call.id, End::Complete, NOW);
    let call = exchange.poll_call(NOW).unwrap();
    assert_eq!(call.body, b"ASK Which weather?\n");
    let answer = respond((exchange, call), [ANSWER]);
    check(&answer);
    let mut warnings = answer.report.warnings.iter();
    assert!(warnings.any(|warning| warning.code == "parameter_refused"));
}

/// An exchange of a client of lines, in front of Chat Completions.
fn asked_in_lines(body: &str) -> Exchange {
    let text = r#"{"upstreams": {"u": {"url": "http://u", "key": "none"}}}"#;
    let config = Arc::new(Config::from_json(text, |_| None).unwrap());
    let can = HostCan { ask_again: true, ..HostCan::default() };
    let mut exchange = Exchange::new(config, 7, can);
    assert_eq!(exchange.handle_request_head("POST", "/v1/lines", &[]), RequestHead::Translate);
    exchange.handle_request_body(body.as_bytes().to_vec(), NOW);
    exchange
}

const CHUNKS: &[u8] = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hel\"}}]}\n\n\
    data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"lo\"},\"finish_reason\":\"stop\"}]}\n\n\
    data: [DONE]\n\n";

#[test]
fn a_client_of_lines_gets_the_same_lines_however_the_answer_is_cut() {
    let answer = |pieces: &[&[u8]]| {
        let mut exchange = asked_in_lines("STREAM\nASK Hi\n");
        let call = exchange.poll_call(NOW).unwrap();
        let sent: Value = serde_json::from_slice(&call.body).unwrap();
        assert_eq!(sent["messages"], json!([{"role": "user", "content": "Hi"}]));
        let answer = respond((exchange, call), pieces.iter().copied());
        (answer.status, String::from_utf8(answer.body).unwrap())
    };
    let whole = answer(&[CHUNKS]);
    assert_eq!(whole, (200, "SAY Hello\nEND EndTurn\n".to_owned()));
    for at in 1..CHUNKS.len() {
        let (before, after) = CHUNKS.split_at(at);
        assert_eq!(answer(&[before, after]), whole, "cut at {at}");
    }
    let bytes: Vec<&[u8]> = CHUNKS.chunks(1).collect();
    assert_eq!(answer(&bytes), whole);
}

#[test]
fn a_client_of_lines_gets_errors_in_lines() {
    let mut exchange = asked_in_lines("ASK Hi\nSHOUT\n");
    assert_eq!(exchange.poll_call(NOW), None);
    let reply = exchange.poll_reply().unwrap();
    assert_eq!(reply.head.status, 400);
    assert_eq!(reply.body, b"FAIL 400 line 2: expected ASK\n");
    let mut exchange = asked_in_lines("STREAM\nASK Hi\n");
    let call = exchange.poll_call(NOW).unwrap();
    let half = CHUNKS.split_at(CHUNKS.len() / 2).0;
    let answer = respond((exchange, call), [half]);
    let text = String::from_utf8(answer.body).unwrap();
    assert!(
        text.starts_with("SAY Hel") && text.contains("FAIL 502 Upstream stream ended"),
        "{text}"
    );
}

#[test]
fn what_was_refused_is_left_out_for_a_client_of_lines() {
    let mut exchange = asked_in_lines("WARM 0.5\nASK Hi\n");
    let call = exchange.poll_call(NOW).unwrap();
    assert!(String::from_utf8_lossy(&call.body).contains("\"temperature\":0.5"));
    exchange.handle_call_head(call.id, 400, &[], NOW);
    let error =
        br#"{"error":{"message":"Unsupported parameter: 'temperature'","param":"temperature"}}"#;
    exchange.handle_call_body(call.id, error, NOW);
    exchange.handle_call_end(call.id, End::Complete, NOW);
    let call = exchange.poll_call(NOW).unwrap();
    assert!(!String::from_utf8_lossy(&call.body).contains("temperature"));
    let whole = br#"{"choices":[{"message":{"content":"Hello"},"finish_reason":"stop"}]}"#;
    let answer = respond((exchange, call), [&whole[..]]);
    assert_eq!(String::from_utf8(answer.body).unwrap(), "SAY Hello\nEND EndTurn\n");
}
