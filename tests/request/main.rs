//! Messages requests and what becomes of them: one test for each rule of the mapping, and
//! properties that hold for all of them.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used
)]

mod context;
mod control;
mod counted;
mod files;
mod hidden_images;
mod joined;
mod marks;
mod messages;
mod neighbours;
mod pairing;
mod presets;
mod properties;
#[path = "../support/mod.rs"]
mod support;
mod system;
mod thinking;

use creole::error::Error;
use creole::model::request_context::{RequestContext, Withheld};
use creole::observe::warning::Warnings;
use creole::protocols::Translated;
use creole::{Config, protocols as translate};
use serde_json::{Value, json};

/// An upstream with a preset and overrides, and settings.
fn config(profile: &str, overrides: Value, mut settings: Value) -> Config {
    // These tests are about Chat Completions, whatever the preset's own protocol is.
    settings["upstreams"] = json!({"up": {
        "url": "http://127.0.0.1:1", "protocol": "openai", "profile": profile,
        "profile_overrides": overrides,
    }});
    Config::from_json(&settings.to_string(), |_| None).unwrap()
}

fn try_with(config: &Config, body: &str) -> (Result<(Value, RequestContext), Error>, String) {
    let mut warnings = Warnings::new(config.settings.strict);
    let result = translate::request(body, config, &[], &mut warnings);
    let result = result.map(|translated| match translated {
        Translated::Send { body, context, .. } => {
            let value = serde_json::from_slice(&body)
                .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&body)));
            (value, *context)
        }
        Translated::Answer { context, stop_reason, text, .. } => {
            (json!({"answer": text, "stop_reason": stop_reason.word()}), *context)
        }
    });
    (result, warnings.header().unwrap_or_default())
}

/// Fills in what every request needs.
fn whole(mut request: Value) -> String {
    for (key, value) in
        [("model", json!("m")), ("max_tokens", json!(64)), ("messages", json!([user("q")]))]
    {
        if request.get(key).is_none() {
            request[key] = value;
        }
    }
    request.to_string()
}

fn sent_to(profile: &str, overrides: Value, request: Value) -> Value {
    let config = config(profile, overrides, json!({}));
    try_with(&config, &whole(request)).0.unwrap().0
}

fn sent(request: Value) -> Value {
    sent_to("default", json!({}), request)
}

fn messages(request: Value) -> Value {
    sent(json!({"messages": request}))["messages"].take()
}

fn messages_to(overrides: Value, request: Value) -> Value {
    sent_to("default", overrides, json!({"messages": request}))["messages"].take()
}

fn warned(request: Value) -> String {
    try_with(&Config::default(), &whole(request)).1
}

fn refused(request: Value) -> String {
    try_with(&Config::default(), &whole(request)).0.unwrap_err().message.clone()
}

fn refused_strictly(request: Value) -> String {
    let config = config("default", json!({}), json!({"strict": true}));
    try_with(&config, &whole(request)).0.unwrap_err().message.clone()
}

fn user(content: impl Into<Value>) -> Value {
    json!({"role": "user", "content": content.into()})
}

fn assistant(content: impl Into<Value>) -> Value {
    json!({"role": "assistant", "content": content.into()})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn call(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "w", "input": {}})
}

fn result(id: &str, content: impl Into<Value>) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": content.into()})
}

fn image() -> Value {
    json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}})
}

fn image_part() -> Value {
    json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}})
}

fn tool_calls(ids: &[&str]) -> Value {
    ids.iter()
        .map(|id| json!({"id": id, "type": "function", "function": {"name": "w", "arguments": "{}"}}))
        .collect()
}

fn calling(ids: &[&str]) -> Value {
    json!({"role": "assistant", "content": null, "tool_calls": tool_calls(ids)})
}

fn tool(id: &str, content: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": content})
}
