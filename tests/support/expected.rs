//! Compares what a fixture expects with what came.
//!
//! For an answer, `expected.json` has any of: `content`, `stop_reason`, `stop_sequence`,
//! `stop_details`, `model`, `usage` (only the named counts), `error` (`type`, `message_contains`,
//! `message_lacks`, `code`), `status`, `headers`, `raw_contains`, `warnings` (those that must be
//! reported; others may be), `calls_carry` (a text that the thinking block's signature must hold),
//! `passed_through` (an answer that has the form of Messages already). `streamed` and `whole` hold
//! the same keys for one of the two ways alone. A `tool_use` names the upstream's id in `id_from`;
//! null there means an id that was made up.
//!
//! For a request, it has `variants`: each a `profile` (with `profile_overrides`, `protocol`,
//! `settings`, `patch`: changes to the request, by name or JSON pointer), and `roles`, `equals`
//! (JSON pointer to value), `contains` (pointer to a part of the JSON text there), `absent`
//! (pointers), `lacks` (parts of the body's JSON text), `alphanumeric` (pointer to length), `same`
//! and `differ` (pairs of pointers), or `error` (with `status`, too). `warnings` are codes that
//! must be reported; `warned` asks for any.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::{fold, grammar, tool_id};

/// Parts of a client's answer that a comparison needs.
#[derive(Clone, Copy, Debug)]
pub struct Got<'a> {
    /// HTTP status.
    pub status: u16,
    /// Headers, names in lower case.
    pub headers: &'a [(String, String)],
    /// The whole body.
    pub body: &'a [u8],
    /// Whether the client had asked for a stream.
    pub stream: bool,
}

/// The expectations for one way of asking.
pub fn for_way(expected: &Value, stream: bool) -> Value {
    let mut all = expected.clone();
    for (way, applies) in [("streamed", stream), ("whole", !stream)] {
        let own = all.as_object_mut().and_then(|all| all.remove(way));
        if !applies {
            continue;
        }
        for (key, value) in own.as_ref().and_then(Value::as_object).into_iter().flatten() {
            all[key] = value.clone();
        }
    }
    all
}

/// Checks an answer against the grammar and the expectations (of [`for_way`]). Gives the message,
/// if there is one.
pub fn check(expected: &Value, got: Got<'_>) -> Result<Option<Value>, String> {
    let text = String::from_utf8_lossy(got.body);
    let rules = grammar::Rules {
        foreign_blocks: expected["passed_through"] == true,
        ..grammar::Rules::default()
    };
    for (name, value) in expected["headers"].as_object().into_iter().flatten() {
        let found = got.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value);
        if found.map(String::as_str) != value.as_str() {
            return Err(format!("header {name}: expected {value}, but found {found:?}"));
        }
    }
    if let Some(status) = expected["status"].as_u64()
        && status != u64::from(got.status)
    {
        return Err(format!("expected status {status}, but found {}: {text}", got.status));
    }
    if let Some(raw) = expected["raw_contains"].as_str()
        && !text.contains(raw)
    {
        return Err(format!("expected {raw:?} in {text}"));
    }
    if expected["passed_through"] == true && !got.stream {
        let body: Value = serde_json::from_slice(got.body).map_err(|error| error.to_string())?;
        same_message(expected, &body)?;
        return Ok(None);
    }
    let (message, error) = read(got, rules)?;
    match (expected.get("error"), error) {
        (Some(expected), Some(error)) => {
            same_error(expected, &error)?;
            Ok(None)
        }
        (Some(expected), None) => Err(format!("expected the error {expected}, but found {text}")),
        (None, Some(error)) => Err(format!("unexpected error {error}")),
        (None, None) => {
            let message = message.expect("a message where there is no error");
            same_message(expected, &message)?;
            Ok(Some(message))
        }
    }
}

/// The message and the error in an answer that keeps the grammar. A stream can have both.
fn read(got: Got<'_>, rules: grammar::Rules) -> Result<(Option<Value>, Option<Value>), String> {
    let text = String::from_utf8_lossy(got.body);
    if got.stream && got.status < 400 {
        let events = grammar::check_stream(got.body, rules)
            .map_err(|error| format!("{error}\n--- stream\n{text}"))?;
        let folded = fold::fold(&events);
        return Ok((Some(folded.message), folded.error));
    }
    let body: Value =
        serde_json::from_slice(got.body).map_err(|error| format!("{error}: {text}"))?;
    if got.status >= 400 {
        grammar::error_body(&body)?;
        return Ok((None, Some(body)));
    }
    grammar::check_message(&body).map_err(|error| format!("{error}: {text}"))?;
    Ok((Some(body), None))
}

/// Returns the number of things that an expectation names: each block, count, warning and value.
pub fn count(expected: &Value) -> usize {
    let members = expected.as_object().into_iter().flatten();
    let counts = members.map(|(key, value)| match key.as_str() {
        // Where a variant stands, not what it must give.
        "profile" | "profile_overrides" | "protocol" | "settings" | "patch" => 0,
        "streamed" | "whole" => count(value),
        "variants" => value.as_array().into_iter().flatten().map(count).sum(),
        _ => {
            let list = value.as_array().map(Vec::len);
            list.or_else(|| value.as_object().map(Map::len)).unwrap_or(1).max(1)
        }
    });
    counts.sum()
}

/// Returns the expectations that describe an answer.
pub fn of(got: Got<'_>, warnings: &[String]) -> Result<Value, String> {
    let (message, error) = read(got, grammar::Rules::default())?;
    let mut expected = json!({});
    if !warnings.is_empty() {
        expected["warnings"] = json!(warnings);
    }
    if let Some(error) = error {
        let error = &error["error"];
        expected["status"] = got.status.into();
        expected["error"] = json!({"type": error["type"], "message_contains": error["message"]});
        if let Some(code) = error["details"].get("error_code") {
            expected["error"]["code"] = code.clone();
        }
        for (name, value) in got.headers.iter().filter(|(name, _)| name == "retry-after") {
            expected["headers"][name] = value.as_str().into();
        }
        return Ok(expected);
    }
    let message = message.expect("a message where there is no error");
    let blocks = message["content"].as_array().into_iter().flatten();
    expected["content"] = blocks.map(of_block).collect();
    for key in ["stop_reason", "stop_sequence", "stop_details"] {
        if !message[key].is_null() {
            expected[key] = message[key].clone();
        }
    }
    let estimated = warnings.iter().any(|warning| warning == "usage_estimated");
    for (key, count) in message["usage"].as_object().into_iter().flatten() {
        if !estimated && count.as_u64().is_some_and(|count| count > 0) {
            expected["usage"][key] = count.clone();
        }
    }
    Ok(expected)
}

fn of_block(block: &Value) -> Value {
    let mut expected = block.clone();
    // The ids of what the upstream ran are made up.
    expected.as_object_mut().unwrap().remove("tool_use_id");
    if block["type"] == "server_tool_use" || block["type"] == "mcp_tool_use" {
        expected.as_object_mut().unwrap().remove("id");
    } else if let Some(id) = block["id"].as_str() {
        let upstream = tool_id::decode(id).filter(|upstream| !tool_id::is_minted(upstream));
        expected.as_object_mut().unwrap().remove("id");
        expected["id_from"] = json!(upstream);
    }
    // A signature is Creole's own.
    expected.as_object_mut().unwrap().remove("signature");
    expected
}

/// The expectations of both ways as one: what they share, and what one way alone has.
pub fn of_both(streamed: &Value, whole: &Value) -> Value {
    let mut both = json!({});
    for (way, own, other) in [("streamed", streamed, whole), ("whole", whole, streamed)] {
        for (key, value) in own.as_object().into_iter().flatten() {
            let place = if other.get(key) == Some(value) { &mut both } else { &mut both[way] };
            place[key] = value.clone();
        }
    }
    both
}

/// Compares an error (`{"type": "error", …}`) with an expected `{type, message_contains}`.
pub fn same_error(expected: &Value, body: &Value) -> Result<(), String> {
    let error = &body["error"];
    if expected.get("type").is_some_and(|kind| *kind != error["type"]) {
        return Err(format!("expected the error {expected}, but found {error}"));
    }
    if let Some(part) = expected["message_contains"].as_str()
        && !error["message"].as_str().unwrap_or_default().contains(part)
    {
        return Err(format!("expected {part:?} in the message of {error}"));
    }
    if let Some(part) = expected["message_lacks"].as_str()
        && error["message"].as_str().unwrap_or_default().contains(part)
    {
        return Err(format!("expected no {part:?} in the message of {error}"));
    }
    if let Some(code) = expected.get("code")
        && *code != error["details"]["error_code"]
    {
        return Err(format!("expected the code {code} in {error}"));
    }
    Ok(())
}

fn same_message(expected: &Value, message: &Value) -> Result<(), String> {
    for key in ["stop_reason", "stop_sequence", "stop_details", "model"] {
        if let Some(value) = expected.get(key)
            && *value != message[key]
        {
            return Err(format!("{key}: expected {value}, but found {}", message[key]));
        }
    }
    for (key, value) in expected["usage"].as_object().into_iter().flatten() {
        if *value != message["usage"][key] {
            return Err(format!("usage.{key}: expected {value}, but found {}", message["usage"]));
        }
    }
    let blocks = message["content"].as_array().cloned().unwrap_or_default();
    if let Some(content) = expected["content"].as_array() {
        if blocks.len() != content.len() {
            return Err(format!("expected {content:?}, but found {blocks:?}"));
        }
        for (expected, block) in content.iter().zip(&blocks) {
            same_block(expected, block)?;
        }
    }
    if let Some(carried) = expected["calls_carry"].as_str() {
        let carries = |block: &Value| {
            let signature = block["signature"].as_str().unwrap_or_default();
            let signature = STANDARD.decode(signature).unwrap_or_default();
            String::from_utf8_lossy(&signature).contains(carried)
        };
        if !blocks.iter().any(carries) {
            return Err(format!("expected a signature that carries {carried:?} in {blocks:?}"));
        }
    }
    Ok(())
}

fn same_block(expected: &Value, block: &Value) -> Result<(), String> {
    for (key, value) in expected.as_object().into_iter().flatten() {
        if key == "id_from" {
            let id = block["id"].as_str().unwrap_or_default();
            let upstream = tool_id::decode(id);
            let good = match value.as_str() {
                Some(expected) => upstream.as_deref() == Some(expected),
                None => upstream.as_deref().is_some_and(tool_id::is_minted),
            };
            if !good {
                return Err(format!("id {id} stands for {upstream:?}, not for {value}"));
            }
        } else if *value != block[key] {
            return Err(format!("expected {key} as in {expected}, but found {block}"));
        }
    }
    Ok(())
}

/// Compares the body for the upstream with one of the `variants` of a request fixture.
pub fn same_request(variant: &Value, body: &Value) -> Result<(), String> {
    if let Some(roles) = variant["roles"].as_array() {
        let found: Vec<&Value> = body["messages"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|message| &message["role"])
            .collect();
        if found != roles.iter().collect::<Vec<_>>() {
            return Err(format!("expected the roles {roles:?}, but found {found:?}"));
        }
    }
    for (pointer, value) in variant["equals"].as_object().into_iter().flatten() {
        if body.pointer(pointer) != Some(value) {
            return Err(format!(
                "{pointer}: expected {value}, but found {:?} in {body}",
                body.pointer(pointer)
            ));
        }
    }
    for pointer in variant["absent"].as_array().into_iter().flatten() {
        if let Some(found) = body.pointer(pointer.as_str().unwrap()) {
            return Err(format!("{pointer}: expected nothing, but found {found}"));
        }
    }
    for (pointer, part) in variant["contains"].as_object().into_iter().flatten() {
        let found = body.pointer(pointer).map(Value::to_string);
        if !found.as_deref().is_some_and(|found| found.contains(part.as_str().unwrap())) {
            return Err(format!("{pointer}: expected {part} inside, but found {found:?}"));
        }
    }
    for text in variant["lacks"].as_array().into_iter().flatten() {
        if body.to_string().contains(text.as_str().unwrap()) {
            return Err(format!("expected no {text} in {body}"));
        }
    }
    for (pointer, counts) in variant["alphanumeric"].as_object().into_iter().flatten() {
        let found = body.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let length = counts.as_u64().unwrap() as usize;
        if found.len() != length || !found.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(format!("{pointer}: expected {length} letters and digits: {found:?}"));
        }
    }
    for pair in variant["same"].as_array().into_iter().flatten() {
        let (left, right) = (pair[0].as_str().unwrap(), pair[1].as_str().unwrap());
        if body.pointer(left).is_none() || body.pointer(left) != body.pointer(right) {
            return Err(format!("{left} and {right} differ in {body}"));
        }
    }
    for pair in variant["differ"].as_array().into_iter().flatten() {
        let (left, right) = (pair[0].as_str().unwrap(), pair[1].as_str().unwrap());
        if body.pointer(left).is_none() || body.pointer(left) == body.pointer(right) {
            return Err(format!("{left} and {right} are equal in {body}"));
        }
    }
    Ok(())
}
