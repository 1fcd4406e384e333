//! Failures that the guards prevent: each with its guard off, then with it on.
//!
//! A scripted model, a scripted tool and the loop that every agent is made of; between them the
//! exchange as hosts drive it. The upstream is as strict as the strictest vendor: it refuses what
//! the independent checker refuses.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used
)]

#[path = "../support/mod.rs"]
mod support;

mod breaker;
mod calls;
mod clients;
mod fields;
mod pairing;
mod properties;
mod retry;
mod transcript;
mod turns;

use std::sync::Arc;

use creole::observe::report::{Cause, Report};
use creole::{Config, End, Head, HostCan, Pings};
use serde_json::{Value, json};

use support::chat;
use support::drive::{self, Exchange, NOW, SEED, Steps as _, can, headers};

/// Result of one request: what the client got, and what the upstream was sent last.
struct Turn {
    head: Head,
    body: Value,
    /// `Null` where the upstream was not asked.
    sent: Value,
    /// Number of requests to the upstream.
    asked: usize,
    report: Report,
}

impl Turn {
    fn header(&self, name: &str) -> &str {
        let found = self.head.headers.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }

    fn message(&self) -> &str {
        self.body["error"]["message"].as_str().unwrap_or_default()
    }

    /// The contents of the tool messages that the model got.
    fn tool_texts(&self) -> Vec<&str> {
        let messages = self.sent["messages"].as_array().unwrap().iter();
        let tools = messages.filter(|message| message["role"] == "tool");
        tools.map(|message| message["content"].as_str().unwrap()).collect()
    }

    fn tools(&self) -> Vec<&str> {
        let tools = self.sent["tools"].as_array().into_iter().flatten();
        tools.map(|tool| tool["function"]["name"].as_str().unwrap()).collect()
    }
}

/// Function that returns the upstream's answer to a body: a status and a body.
type Upstream<'u> = &'u dyn Fn(&Value) -> (u16, Value);

/// Sends one request through an exchange. The host asks again where it is told to, if it `retries`.
fn ask(config: &Arc<Config>, body: &Value, upstream: Upstream<'_>, retries: bool) -> Turn {
    let body = body.to_string();
    let mut exchange = Exchange::new(
        Arc::clone(config),
        SEED,
        HostCan { ping: Pings::Sent, ask_again: retries, ..HostCan::default() },
    );
    exchange.decide("POST", "/v1/messages", &headers(&[("x-api-key", "k")]));
    let mut turn = Turn {
        head: Head::default(),
        body: Value::Null,
        sent: Value::Null,
        asked: 0,
        report: Report::default(),
    };
    let mut out = Vec::new();
    match exchange.request(body.as_bytes(), NOW) {
        Err(reply) => (turn.head, out) = (reply.head, reply.body),
        Ok(mut request) => loop {
            turn.asked += 1;
            turn.sent = serde_json::from_slice(&request.body).unwrap();
            let (status, answer) = upstream(&turn.sent);
            exchange.handle_call_head(status, &[], NOW);
            let piece = answer.to_string();
            assert_eq!(exchange.piece(piece.as_bytes(), NOW, &mut out), None);
            let mut head = exchange.end(End::Complete, NOW, &mut out);
            if let Some(again) = exchange.poll_call(NOW) {
                request = again;
                continue;
            }
            head = head.or_else(|| exchange.poll_head());
            exchange.poll_body(&mut out);
            turn.head = head.unwrap();
            break;
        },
    }
    turn.body = serde_json::from_slice(&out).unwrap();
    turn.report = exchange.report();
    turn
}

/// Refuses what the checker refuses, in OpenAI's words, and otherwise lets the model answer.
fn strict(model: impl Fn(&Value) -> Value) -> impl Fn(&Value) -> (u16, Value) {
    move |body| match chat::check(body, chat::Rules::default()) {
        Ok(()) => (200, model(body)),
        Err(_) => (
            400,
            json!({"error": {"type": "invalid_request_error", "message":
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'."}}),
        ),
    }
}

fn says(text: &str) -> Value {
    json!({"id": "c", "usage": {"prompt_tokens": 1, "completion_tokens": 1}, "choices": [{"index": 0, "finish_reason": "stop",
        "message": {"role": "assistant", "content": text}}]})
}

fn calls(name: &str, arguments: &Value) -> Value {
    json!({"id": "c", "usage": {"prompt_tokens": 1, "completion_tokens": 1}, "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
        "role": "assistant", "content": null, "tool_calls": [{
            "id": "call_1", "type": "function",
            "function": {"name": name, "arguments": arguments.to_string()}}]}}]})
}

/// A model that makes the same call as long as it has the tool.
fn stubborn(name: &'static str, arguments: Value) -> impl Fn(&Value) -> Value {
    move |body| {
        let tools = body["tools"].as_array().into_iter().flatten();
        let offered = tools.into_iter().any(|tool| tool["function"]["name"] == name);
        if offered { calls(name, &arguments) } else { says("Here is what I know.") }
    }
}

fn tool(name: &str, required: &[&str]) -> Value {
    let properties: serde_json::Map<String, Value> =
        required.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
    json!({"name": name, "input_schema":
        {"type": "object", "properties": properties, "required": required}})
}

fn request(messages: &[Value], tools: &[Value]) -> Value {
    json!({"model": "m", "max_tokens": 100, "messages": messages, "tools": tools})
}

fn user(content: impl Into<Value>) -> Value {
    json!({"role": "user", "content": content.into()})
}

fn call(id: &str, name: &str, input: Value) -> Value {
    json!({"role": "assistant", "content": [use_of(id, name, input)]})
}

fn use_of(id: &str, name: &str, input: Value) -> Value {
    json!({"type": "tool_use", "id": id, "name": name, "input": input})
}

fn result(id: &str, content: impl Into<Value>) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": content.into()})
}

fn failed(id: &str, content: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": content, "is_error": true})
}

fn answered(result: Value) -> Value {
    json!({"role": "user", "content": [result]})
}

/// Returns a history of `count` calls, each with its result.
fn rounds(count: usize, round: impl Fn(usize, &str) -> (Value, Value)) -> Vec<Value> {
    let mut messages = vec![user("Do it")];
    for at in 0..count {
        let (call, result) = round(at, &format!("toolu_{at}"));
        messages.extend([call, answered(result)]);
    }
    messages
}

/// The loop of an agent: asks, runs the tool, sends its result, until the model calls nothing or
/// `turns_max` requests were made.
fn agent(
    config: &Arc<Config>,
    tools: &[Value],
    upstream: Upstream<'_>,
    run: &dyn Fn(&Value) -> (String, bool),
    turns_max: usize,
) -> Vec<Turn> {
    let mut messages = vec![user("Do it")];
    let mut turns = Vec::new();
    while turns.len() < turns_max {
        let turn = ask(config, &request(&messages, tools), upstream, true);
        let content = turn.body["content"].as_array().cloned().unwrap_or_default();
        turns.push(turn);
        let results: Vec<Value> = content
            .iter()
            .filter(|block| block["type"] == "tool_use")
            .map(|block| {
                let (text, is_error) = run(&block["input"]);
                json!({"type": "tool_result", "tool_use_id": block["id"], "content": text,
                    "is_error": is_error})
            })
            .collect();
        if results.is_empty() {
            break;
        }
        messages.push(json!({"role": "assistant", "content": content}));
        messages.push(json!({"role": "user", "content": results}));
    }
    turns
}

fn config(guards: Value) -> Arc<Config> {
    drive::config(&json!({"guards": guards}).to_string())
}

fn off() -> Arc<Config> {
    config(json!({"pairing": "off", "breaker": {"failures_max": 0, "withhold_after": 0}}))
}
