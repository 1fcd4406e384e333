//! Upstreams that speak the Messages API: what is right passes byte for byte, and what clients or
//! the upstream would stumble over is repaired.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used
)]

mod errors;
mod guards;
mod hidden_images;
mod mended;
mod properties;
mod refused;
mod request;
mod stream;
#[path = "../support/mod.rs"]
mod support;
mod unknown_blocks;
mod whole;

use std::sync::Arc;

use creole::{Call, Config, End};
use serde_json::{Value, json};
use support::drive::{self, Answer};
use support::fold;
use support::grammar::{self, Rules};

/// An upstream that speaks Messages, with this model behind every name; and other settings.
fn config_with(model: Option<&str>, settings: &str) -> Arc<Config> {
    let models = model.map_or(String::new(), |model| {
        format!(r#""models":{{"*":{{"upstream":"kimi","model":{}}}}},"#, json!(model))
    });
    drive::config(&format!(
        r#"{{"upstreams":{{"kimi":{{"url":"https://kimi.test","base_path":"/anthropic/v1",
            "protocol":"anthropic","key":"client"}}}},{models}"log":"off"{settings}}}"#
    ))
}

fn config() -> Arc<Config> {
    config_with(None, "")
}

/// Returns the call to the upstream for a request.
#[track_caller]
fn sent(config: &Arc<Config>, body: &str) -> Call {
    match drive::request(config, "/v1/messages", &[], body.as_bytes()) {
        Ok((_, request)) => request,
        Err(answer) => panic!("{}", String::from_utf8_lossy(&answer.body)),
    }
}

/// Returns the answer that the client gets for an upstream answer in these pieces.
fn answered<'a>(
    config: &Arc<Config>,
    stream: bool,
    (status, content_type): (u16, &str),
    pieces: impl IntoIterator<Item = &'a [u8]>,
    end: End,
) -> Answer {
    let body = json!({
        "model": "claude", "max_tokens": 9, "stream": stream,
        "messages": [{"role": "user", "content": "hi"}],
    });
    let request = drive::request(config, "/v1/messages", &[], body.to_string().as_bytes());
    let (exchange, _) = request.unwrap_or_else(|_| panic!("it is refused"));
    let headers = drive::headers(&[("content-type", content_type)]);
    drive::respond(exchange, status, &headers, pieces, end)
}

/// The stream that the client gets for this one, however it is cut, and the message that it gets if
/// it wants no stream.
#[track_caller]
fn both(sse: &str) -> (Answer, Answer) {
    let config = config();
    let kind = (200, "text/event-stream");
    let bytes = sse.as_bytes();
    let run = |pieces: Vec<&[u8]>| answered(&config, true, kind, pieces, End::Complete);
    let whole = run(vec![bytes]);
    for cut in 1..bytes.len() {
        let (left, right) = bytes.split_at(cut);
        assert_eq!(run(vec![left, right]).body, whole.body, "cut at {cut}");
    }
    assert_eq!(run(bytes.chunks(1).collect()).body, whole.body, "byte by byte");
    (whole, answered(&config, false, kind, [bytes], End::Complete))
}

/// Asserts that the stream and the message of [`both`] are the same message. Returns the message,
/// and what was repaired.
#[track_caller]
fn message_of(sse: &str) -> (Value, Vec<String>) {
    let (streamed, whole) = both(sse);
    let text = String::from_utf8(streamed.body).unwrap();
    let folded = message_in(&text).unwrap_or_else(|wrong| panic!("{wrong}\n{text}"));
    let message: Value = serde_json::from_slice(&whole.body).unwrap();
    assert_eq!(folded, message, "a stream and a message differ: {text}");
    let repaired = streamed.report.warnings.iter();
    (message, repaired.map(|it| format!("{}:{}", it.code, it.name)).collect())
}

/// The message that a client builds of a stream, or what is wrong with it.
fn message_in(stream: &str) -> Result<Value, String> {
    let rules = Rules { foreign_blocks: true, invalid_input_shown: true, head_sent_early: false };
    let events = grammar::check_stream(stream.as_bytes(), rules)?;
    let mut message = fold::fold(&events).message;
    // A whole message shows an input that is none like this.
    for block in message["content"].as_array_mut().unwrap() {
        if let Some(partial) = block["input"].get("partial_json").cloned() {
            block["input"] = json!({"INVALID_JSON": partial});
        }
    }
    Ok(message)
}

/// A stream of these events, as servers write them.
fn sse(events: &[Value]) -> String {
    let line =
        |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    events.iter().map(line).collect()
}

fn start() -> Value {
    json!({"type": "message_start", "message": {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "kimi", "content": [],
        "stop_reason": null, "stop_sequence": null,
        "usage": {"input_tokens": 5, "output_tokens": 1},
    }})
}

fn open(index: u64, block: &Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn open_text(index: u64) -> Value {
    open(index, &json!({"type": "text", "text": ""}))
}

fn open_call(index: u64, id: &str, input: &Value) -> Value {
    open(index, &json!({"type": "tool_use", "id": id, "name": "w", "input": input}))
}

fn text(index: u64, text: &str) -> Value {
    let delta = json!({"type": "text_delta", "text": text});
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn input(index: u64, json: &str) -> Value {
    let delta = json!({"type": "input_json_delta", "partial_json": json});
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn stop(index: u64) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

fn ending(reason: &str) -> Value {
    json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null},
           "usage": {"output_tokens": 7}})
}

fn end() -> Value {
    json!({"type": "message_stop"})
}
