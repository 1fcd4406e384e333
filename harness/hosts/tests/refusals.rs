//! Refusals in unknown words, from an upstream of each protocol: how a real gateway, Worker and
//! Envoy react. The core's tests cover all changes of requests (`tests/exchange/every_change.rs`).
#![allow(clippy::panic, clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::process::ExitCode;

use creole_hosts::process::{EnvoyOptions, Process};
use creole_hosts::suite::{self, FINISH, chunk, completion};
use creole_hosts::support::fold;
use creole_hosts::support::grammar::{self, Rules};
use creole_hosts::upstream::Upstream;
use creole_hosts::worker::Worker;
use creole_hosts::{Answer, End, Got, Host, Request, Trial, cases};
use serde_json::{Value, json};

/// Error text of an upstream that refuses a forced call.
const REFUSAL: &str = r#"{"error":{"message":"Thinking mode does not support this tool_choice"}}"#;

const WARNINGS: &str = "dropped:tool_choice,parameter_refused:tool_choice_any";

/// An upstream's protocol.
struct Protocol {
    /// Key of the trials, to which the form of the answer (`stream`, `whole`) is appended.
    key: &'static str,
    name: &'static str,
    /// Text in a request that forces a call.
    forced: &'static str,
    /// Text in a request that forces no call.
    free: &'static str,
    answer: fn(bool) -> String,
}

const PROTOCOLS: [Protocol; 3] = [
    Protocol {
        key: "chat",
        name: "openai",
        forced: r#""tool_choice":"required""#,
        free: r#""tool_choice":"auto""#,
        answer: |stream| match stream {
            true => chunk("Hi") + FINISH,
            false => completion("Hi"),
        },
    },
    Protocol {
        key: "responses",
        name: "responses",
        forced: r#""tool_choice":"required""#,
        free: r#""tool_choice":"auto""#,
        answer: |stream| {
            let part = json!({"type": "output_text", "text": "Hi", "annotations": []});
            let item =
                json!({"type": "message", "id": "msg_1", "role": "assistant", "content": [part]});
            let whole = json!({"id": "resp_1", "object": "response", "status": "completed", "model": "m",
                "output": [item], "usage": {"input_tokens": 9, "output_tokens": 5, "total_tokens": 14}});
            match stream {
                true => events(&[json!({"type": "response.completed", "response": whole})]),
                false => whole.to_string(),
            }
        },
    },
    Protocol {
        key: "messages",
        name: "anthropic",
        forced: r#""tool_choice":{"type":"any"}"#,
        free: r#""tool_choice":{"type":"auto"}"#,
        answer: |stream| {
            let usage = json!({"input_tokens": 3, "output_tokens": 4});
            let message = |content: Value, reason: Value| {
                json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": content,
                    "stop_reason": reason, "stop_sequence": null, "stop_details": null, "container": null,
                    "usage": usage})
            };
            let text = |text: &str| json!({"type": "text", "text": text});
            if !stream {
                return message(json!([text("Hi")]), json!("end_turn")).to_string();
            }
            events(&[
                json!({"type": "message_start", "message": message(json!([]), Value::Null)}),
                json!({"type": "content_block_start", "index": 0, "content_block": text("")}),
                json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}}),
                json!({"type": "content_block_stop", "index": 0}),
                json!({"type": "message_delta", "usage": usage,
                    "delta": {"stop_reason": "end_turn", "stop_sequence": null}}),
                json!({"type": "message_stop"}),
            ])
        },
    },
];

fn events(events: &[Value]) -> String {
    let line =
        |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    events.iter().map(line).collect()
}

/// Returns each protocol twice: for a client that wants no stream, and for one that does.
fn rows() -> impl Iterator<Item = (&'static Protocol, bool)> {
    PROTOCOLS.iter().flat_map(|protocol| [(protocol, false), (protocol, true)])
}

fn key(protocol: &Protocol, stream: bool) -> String {
    format!("{}-{}", protocol.key, if stream { "stream" } else { "whole" })
}

fn main() -> ExitCode {
    let keys: Vec<_> = rows().map(|(protocol, stream)| key(protocol, stream)).collect();
    let mut config = suite::config(&keys.iter().map(String::as_str).collect::<Vec<_>>(), json!({}));
    for (protocol, stream) in rows() {
        config["upstreams"][key(protocol, stream)]["protocol"] = json!(protocol.name);
    }
    cases::run(
        "refusals in unknown words",
        &config,
        &[
            ("the_gateway_asks_again", |config| asks_again(&Process::gateway(config))),
            ("the_worker_asks_again", |config| asks_again(&Worker::new(config))),
            ("envoy_has_its_client_ask_again", |config| {
                has_its_client_ask(&Process::envoy(config, &EnvoyOptions::default()));
            }),
        ],
    )
}

fn trial(protocol: &Protocol, stream: bool) -> Trial {
    let key = key(protocol, stream);
    let refusal = Answer::whole(400, "application/json", REFUSAL);
    Upstream::shared().refuse(&key, protocol.forced, refusal);
    let body = json!({
        "model": format!("claude-{key}"), "max_tokens": 100, "stream": stream,
        "tools": [{"name": "look", "input_schema": {"type": "object"}}], "tool_choice": {"type": "any"},
        "messages": [{"role": "user", "content": "hi"}]
    });
    let answer = (protocol.answer)(stream);
    let answer = if stream { Answer::events([answer]) } else { Answer::json(answer) };
    Trial { key, request: Request::messages(body.to_string()), answer }
}

/// Returns for each request to the upstream true if the request forced a call.
fn asked(protocol: &Protocol, got: &Got) -> Vec<bool> {
    let bodies = got.upstream.iter().map(|seen| String::from_utf8_lossy(&seen.body));
    let is_forced = |body: &str| {
        assert_ne!(body.contains(protocol.forced), body.contains(protocol.free), "{body}");
        body.contains(protocol.forced)
    };
    bodies.map(|body| is_forced(&body)).collect()
}

/// Checks that a client has the answer, with the warnings about the changed request.
fn assert_answered(got: &Got, stream: bool, name: &str) {
    assert_eq!((got.status, got.end), (200, End::Complete), "{name}: {}", got.text());
    assert_eq!(got.header("x-creole-warnings"), Some(WARNINGS), "{name}");
    let rules = Rules { foreign_blocks: true, ..Rules::default() };
    let message = match stream {
        true => fold::fold(&grammar::check_stream(&got.body, rules).unwrap()).message,
        false => got.json(),
    };
    assert_eq!(message["content"], json!([{"type": "text", "text": "Hi"}]), "{name}");
}

fn asks_again(host: &Result<impl Host, String>) {
    let host = host.as_ref().unwrap_or_else(|reason| panic!("{reason}"));
    for (protocol, stream) in rows() {
        let trial = trial(protocol, stream);
        // The next request of the conversation is changed from the start.
        for expected in [&[true, false][..], &[false]] {
            let got = host.send(&trial);
            assert_answered(&got, stream, &trial.key);
            assert_eq!(asked(protocol, &got), expected, "{}", trial.key);
        }
    }
}

fn has_its_client_ask(host: &Result<impl Host, String>) {
    let host = host.as_ref().unwrap_or_else(|reason| panic!("{reason}"));
    for (protocol, stream) in rows() {
        let trial = trial(protocol, stream);
        let got = host.send(&trial);
        got.assert_error(529, "overloaded_error", "does not support this tool_choice");
        assert_eq!(got.header("x-should-retry"), Some("true"), "{}", trial.key);
        assert_eq!(asked(protocol, &got), [true], "{}", trial.key);
        for _ in 0..2 {
            let got = host.send(&trial);
            assert_answered(&got, stream, &trial.key);
            assert_eq!(asked(protocol, &got), [false], "{}", trial.key);
        }
    }
}
