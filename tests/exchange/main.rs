//! The seam that hosts drive: heads, errors, limits, silence, and what is not ours.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used
)]

mod at_once;
mod beginnings;
mod calls;
mod context;
mod conversations;
mod cuts;
mod doors;
mod endings;
mod errors;
#[macro_use]
mod every_change;
mod evidence;
mod evidence_messages;
mod host;
mod images;
mod local;
mod memory;
mod pings;
mod refusals;
mod report;
mod reports;
mod requests;
mod responses;
mod sessions;
mod silence;
mod sizes;
#[path = "../support/mod.rs"]
mod support;
mod windows;

use std::sync::Arc;

use creole::config::Log;
use creole::{Call, Cancel, Config, End, Failure, Head, HostCan, Pings, Unreachable};
use serde_json::{Value, json};

use support::drive::{self, Decision, Exchange, NOW, SEED, Steps as _, can, headers};
use support::grammar::{self, Rules};

fn ask(stream: bool) -> Vec<u8> {
    json!({
        "model": "claude-test", "max_tokens": 100, "stream": stream,
        "messages": [{"role": "user", "content": "Hello"}],
    })
    .to_string()
    .into_bytes()
}

fn started(config: &Arc<Config>, pings: Pings, body: &[u8]) -> (Exchange, Call) {
    started_by(can(pings), config, body)
}

fn started_by(host: HostCan, config: &Arc<Config>, body: &[u8]) -> (Exchange, Call) {
    let mut exchange = Exchange::new(Arc::clone(config), SEED, host);
    let head = exchange.decide("POST", "/v1/messages?beta=true", &headers(&[("x-api-key", "k")]));
    assert_eq!(head, Decision::Translate);
    let upstream = exchange.request(body, NOW).unwrap();
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

/// A chunk with a text and the word that the model stopped.
fn stopped(text: &str) -> Vec<u8> {
    let choice = json!({"index": 0, "delta": {"content": text}, "finish_reason": "stop"});
    format!("data: {}\n\n", json!({"choices": [choice]})).into_bytes()
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_other_ids() {
    let upstream = br#"{"id":"c","choices":[{"index":0,"finish_reason":"tool_calls","message":{"tool_calls":[{"function":{"name":"w","arguments":"{}"}}]}}]}"#;
    let run = |seed| {
        let mut exchange = Exchange::new(drive::config("{}"), seed, can(Pings::No));
        exchange.decide("POST", "/v1/messages", &headers(&[("x-api-key", "k")]));
        exchange.request(&ask(false), NOW).unwrap();
        let answer = drive::respond(exchange, 200, &[], [&upstream[..]], End::Complete);
        let message: Value = serde_json::from_slice(&answer.body).unwrap();
        (answer.body, message["id"].clone(), message["content"][0]["id"].clone())
    };
    let (first, again, other) = (run(1), run(1), run(2));
    assert_eq!(first, again);
    assert_ne!(first.1, other.1);
    assert_ne!(first.2, other.2);
}
