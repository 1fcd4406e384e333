//! A protocol of upstreams that speaks lines of text: what adding one takes.
//!
//! Its code is `lines`. Its row is in `protocols::of`, and its word in the configuration's
//! `Protocol`. Unlike Chat and Responses it uses neither `decide` nor `content`: its requests and
//! answers are too plain to need them.

#[path = "../../tests/support/blocks.rs"]
#[allow(unreachable_pub)]
mod blocks;

#[path = "../../tests/support/grammar.rs"]
#[allow(dead_code, unreachable_pub, clippy::string_slice)]
mod grammar;
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
