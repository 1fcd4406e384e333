//! An independent checker of what Messages clients get: event streams, messages and errors.
//!
//! It is written from the API's documentation and from what the strictest clients refuse, not from
//! the core, and it is stricter than any one client: only documented events and deltas, `event:`
//! equal to `data.type`, dense indices, one open block at a time, full `usage` twice, `input: {}`
//! and `""` at the start of a block, one signature at the end of a thinking block, nothing after
//! the end, and no `content_block_stop` for a tool call that an error cut off (Claude Code would
//! run it).

use std::collections::BTreeSet;

use super::blocks::{cited, hosted, hosted_whole, tool_use};
use serde_json::{Map, Value};

/// Event as it stood on the wire.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The `event:` line.
    pub name: String,
    /// The `data:` line.
    pub data: Value,
}

/// Deviations from the grammar that a test allows in an answer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rules {
    /// A call whose input is not a JSON object is shown to the client (`invalid_tool_call: pass`).
    pub invalid_input_shown: bool,
    /// The upstream speaks Messages itself: its blocks, ids and further members are its own.
    pub foreign_blocks: bool,
    /// The host had to send the head before anything was known, so an error can be the first event.
    pub head_sent_early: bool,
}

impl Rules {
    /// Whether an object has these members, and no other of our own.
    fn keys(self, value: &Value, required: &[&str], optional: &[&str]) -> Result<(), String> {
        if self.foreign_blocks {
            return required_keys(value, required).map(drop);
        }
        keys(value, required, optional)
    }
}

const STOP_REASONS: [&str; 7] = [
    "end_turn",
    "max_tokens",
    "stop_sequence",
    "tool_use",
    "pause_turn",
    "refusal",
    "model_context_window_exceeded",
];

/// Stop reasons after which the last call need not be complete.
const CUT_OFF: [&str; 3] = ["max_tokens", "model_context_window_exceeded", "refusal"];

const ERROR_TYPES: [&str; 11] = [
    "invalid_request_error",
    "authentication_error",
    "billing_error",
    "permission_error",
    "not_found_error",
    "conflict_error",
    "request_too_large",
    "rate_limit_error",
    "api_error",
    "timeout_error",
    "overloaded_error",
];

/// A ping in front of `message_start`.
const COMMENT: &str = ": ping";

/// Splits a stream into its events. Each is exactly an `event:` line, a `data:` line and a blank
/// line, because old clients read no other form. Comments may stand in front of the first one.
pub fn events(stream: &[u8]) -> Result<Vec<Event>, String> {
    let text = std::str::from_utf8(stream).map_err(|error| format!("not UTF-8: {error}"))?;
    let Some(body) = text.strip_suffix("\n\n") else {
        return Err(format!("the stream does not end with a blank line: …{:?}", tail(text)));
    };
    body.split("\n\n").skip_while(|frame| *frame == COMMENT).map(event).collect()
}

fn event(frame: &str) -> Result<Event, String> {
    let mut lines = frame.split('\n');
    let name = lines.next().and_then(|line| line.strip_prefix("event: "));
    let data = lines.next().and_then(|line| line.strip_prefix("data: "));
    let (Some(name), Some(data), None) = (name, data, lines.next()) else {
        return Err(format!("not one event line and one data line: {frame:?}"));
    };
    let data = serde_json::from_str(data).map_err(|error| format!("{error} in {data:?}"))?;
    Ok(Event { name: name.to_owned(), data })
}

fn tail(text: &str) -> &str {
    let start = text.char_indices().rev().nth(60).map_or(0, |(at, _)| at);
    &text[start..]
}

/// Checks a whole stream, as bytes.
pub fn check_stream(stream: &[u8], rules: Rules) -> Result<Vec<Event>, String> {
    let events = events(stream)?;
    check(&events, rules)?;
    Ok(events)
}

/// Checks the events of one stream.
pub fn check(events: &[Event], rules: Rules) -> Result<(), String> {
    let mut checker = Checker { rules, ..Checker::default() };
    for (position, event) in events.iter().enumerate() {
        checker.event(event).map_err(|error| {
            format!("event {position} ({}): {error}: {}", event.name, event.data)
        })?;
    }
    match checker.phase {
        Phase::Ended | Phase::Failed => Ok(()),
        phase => Err(format!("the stream stops in phase {phase:?}, without message_stop or error")),
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Before,
    /// Between blocks, or in one.
    Blocks,
    /// Phase after `message_delta`.
    Stopping,
    Ended,
    Failed,
}

#[derive(Debug)]
struct Block {
    kind: String,
    /// Content of the deltas so far: text, thinking or JSON.
    said: String,
    deltas: usize,
    signature: bool,
}

#[derive(Debug, Default)]
struct Checker {
    rules: Rules,
    phase: Phase,
    closed: u64,
    open: Option<Block>,
    kinds: BTreeSet<String>,
    ids: BTreeSet<String>,
    /// A closed call whose input is not an object; allowed if the answer was cut off.
    broken_call: Option<String>,
    /// The first of them after which another block came, so that nothing cut it off.
    broken_inside: Option<String>,
    /// A text block without text; allowed where it is all there is.
    empty_text: bool,
}

impl Checker {
    fn event(&mut self, event: &Event) -> Result<(), String> {
        let data = &event.data;
        if data.get("type").and_then(Value::as_str) != Some(&event.name) {
            return Err("the event line is not data.type".into());
        }
        match (self.phase, event.name.as_str()) {
            (Phase::Ended | Phase::Failed, _) => Err("something comes after the end".into()),
            (Phase::Before, "message_start") => {
                self.rules.keys(data, &["type", "message"], &[])?;
                announced(&data["message"], self.rules)?;
                self.phase = Phase::Blocks;
                Ok(())
            }
            (Phase::Before, "error") if self.rules.head_sent_early => self.error(data),
            (Phase::Before, "ping") if self.rules.head_sent_early => {
                self.rules.keys(data, &["type"], &[])
            }
            (Phase::Before, _) => Err("expected message_start first".into()),
            (_, "ping") => self.rules.keys(data, &["type"], &[]),
            (_, "error") => self.error(data),
            (Phase::Blocks, "content_block_start") => self.start(data),
            (Phase::Blocks, "content_block_delta") => self.delta(data),
            (Phase::Blocks, "content_block_stop") => self.stop(data),
            (Phase::Blocks, "message_delta") => self.message_delta(data),
            (Phase::Stopping, "message_stop") => {
                self.rules.keys(data, &["type"], &[])?;
                self.phase = Phase::Ended;
                Ok(())
            }
            (phase, _) => Err(format!("not expected in phase {phase:?}")),
        }
    }

    fn index(&self, data: &Value) -> Result<(), String> {
        if data["index"].as_u64() != Some(self.closed) {
            return Err(format!("expected index {}", self.closed));
        }
        Ok(())
    }

    fn start(&mut self, data: &Value) -> Result<(), String> {
        self.rules.keys(data, &["type", "index", "content_block"], &[])?;
        if self.open.is_some() {
            return Err("the block before is still open".into());
        }
        self.index(data)?;
        let block = &data["content_block"];
        let kind = block["type"].as_str().unwrap_or_default();
        let foreign = self.rules.foreign_blocks;
        match kind {
            "text" => {
                self.rules.keys(block, &["type", "text"], &["citations"])?;
                equals(block, "text", &"".into())?;
            }
            "thinking" if foreign => equals(block, "thinking", &"".into())?,
            "thinking" => {
                self.rules.keys(block, &["type", "thinking", "signature"], &[])?;
                equals(block, "thinking", &"".into())?;
                equals(block, "signature", &"".into())?;
            }
            "" => return Err("a block without a type".into()),
            _ if foreign && kind != "tool_use" => {}
            "tool_use" => {
                tool_use(block, &mut self.ids, self.rules)?;
                equals(block, "input", &serde_json::json!({}))?;
            }
            _ => {
                hosted(kind, block)?;
                if kind.ends_with("_tool_use") {
                    equals(block, "input", &serde_json::json!({}))?;
                }
            }
        }
        if let Some(said) = self.broken_call.take() {
            self.broken_inside.get_or_insert(said);
        }
        self.kinds.insert(kind.to_owned());
        let said = String::new();
        self.open = Some(Block { kind: kind.to_owned(), said, deltas: 0, signature: false });
        Ok(())
    }

    fn delta(&mut self, data: &Value) -> Result<(), String> {
        self.rules.keys(data, &["type", "index", "delta"], &[])?;
        self.index(data)?;
        let Some(block) = &mut self.open else { return Err("no block is open".into()) };
        let delta = &data["delta"];
        let kind = delta["type"].as_str().unwrap_or_default();
        let field = match (block.kind.as_str(), kind) {
            ("text", "text_delta") => "text",
            ("thinking", "thinking_delta") => "thinking",
            ("thinking", "signature_delta") => "signature",
            ("tool_use" | "server_tool_use" | "mcp_tool_use", "input_json_delta") => "partial_json",
            ("text", "citations_delta") => return cited(&delta["citation"], self.rules),
            (block, _) if self.rules.foreign_blocks && fits_there(block, kind) => return Ok(()),
            (block, _) => return Err(format!("{kind:?} does not fit a {block} block")),
        };
        self.rules.keys(delta, &["type", field], &[])?;
        let Some(text) = delta[field].as_str() else { return Err(format!("{field} is no text")) };
        if text.is_empty() && !self.rules.foreign_blocks {
            return Err("an empty delta".into());
        }
        block.deltas += 1;
        if block.signature && !self.rules.foreign_blocks {
            return Err("a delta after the signature".into());
        }
        if field == "signature" {
            block.signature = true;
        } else {
            block.said.push_str(text);
        }
        Ok(())
    }

    fn stop(&mut self, data: &Value) -> Result<(), String> {
        self.rules.keys(data, &["type", "index"], &[])?;
        self.index(data)?;
        let Some(block) = self.open.take() else { return Err("no block is open".into()) };
        self.closed += 1;
        match block.kind.as_str() {
            "thinking" if !block.signature && !self.rules.foreign_blocks => {
                return Err("a thinking block without a signature".into());
            }
            "text" if self.rules.foreign_blocks => {}
            "text" if block.said.is_empty() => self.empty_text = true,
            "text" if block.said.trim().is_empty() => return Err("only white space".into()),
            // The real API says nothing of an input that is empty, in one delta.
            "tool_use"
                if self.rules.foreign_blocks && block.deltas > 0 && block.said.is_empty() => {}
            "server_tool_use" | "mcp_tool_use"
                if !self.rules.foreign_blocks && !is_object(&block.said) =>
            {
                return Err(format!("the input of a call is no object: {:?}", block.said));
            }
            "tool_use" if !is_object(&block.said) => self.broken_call = Some(block.said),
            _ => {}
        }
        Ok(())
    }

    fn message_delta(&mut self, data: &Value) -> Result<(), String> {
        if self.open.is_some() {
            return Err("a block is still open".into());
        }
        let delta = &data["delta"];
        if self.rules.foreign_blocks {
            reason_fits(delta, &self.kinds)?;
            count(&data["usage"], "output_tokens")?;
        } else {
            self.rules.keys(data, &["type", "delta", "usage"], &["context_management"])?;
            self.rules.keys(
                delta,
                &["stop_reason", "stop_sequence", "stop_details", "container"],
                &["safeguard_results"],
            )?;
            ending(delta, &self.kinds)?;
            usage(
                &data["usage"],
                &["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"],
                &["output_tokens_details", "server_tool_use"],
            )?;
        }
        // Without any delta, some clients see a call without input as invalid.
        let wrong = |said: &&String| said.is_empty() || !self.rules.invalid_input_shown;
        let cut_off = CUT_OFF.iter().any(|reason| delta["stop_reason"] == *reason);
        let last = self.broken_call.as_ref().filter(|_| !cut_off);
        // One that had begun can be cut off, and the words of a refusal come after it.
        let had_begun = |said: &&String| said.is_empty() || delta["stop_reason"] == "refusal";
        let inside = self.broken_inside.as_ref().filter(|said| !(cut_off && had_begun(said)));
        if let Some(said) = inside.into_iter().chain(last).find(wrong) {
            return Err(format!("a call's input is not one JSON object: {said:?}"));
        }
        if self.empty_text && self.closed != 1 {
            return Err("an empty text block beside others".into());
        }
        self.phase = Phase::Stopping;
        Ok(())
    }

    fn error(&mut self, data: &Value) -> Result<(), String> {
        error_body(data)?;
        // Claude Code runs every call that was closed before an error. An upstream that speaks
        // Messages closes its calls itself, and what it says after that can still be wrong.
        let shown = self.rules.invalid_input_shown && self.rules.foreign_blocks;
        let broken = self.broken_inside.as_ref().or(self.broken_call.as_ref());
        if let Some(said) = broken.filter(|_| !shown) {
            return Err(format!("a call was closed before an error, cut off: {said:?}"));
        }
        self.phase = Phase::Failed;
        Ok(())
    }
}

/// Whether a delta fits that only upstreams that speak Messages send; nobody knows those of blocks
/// of other types.
fn fits_there(block: &str, delta: &str) -> bool {
    match block {
        "text" => false,
        "server_tool_use" => delta == "input_json_delta",
        _ => !["thinking", "tool_use", "tool_result"].iter().any(|end| block.ends_with(end)),
    }
}

/// The `message` of `message_start`.
fn announced(message: &Value, rules: Rules) -> Result<(), String> {
    if rules.foreign_blocks {
        return announced_elsewhere(message);
    }
    keys(
        message,
        &[
            "id",
            "type",
            "role",
            "model",
            "content",
            "stop_reason",
            "stop_sequence",
            "stop_details",
            "container",
            "usage",
        ],
        &["diagnostics", "context_management"],
    )?;
    constants(message)?;
    equals(message, "content", &serde_json::json!([]))?;
    for key in ["stop_reason", "stop_sequence", "stop_details"] {
        equals(message, key, &Value::Null)?;
    }
    message_usage(&message["usage"])
}

/// Checks what SDKs need of the start of a stream, whoever sends it.
fn announced_elsewhere(message: &Value) -> Result<(), String> {
    equals(message, "type", &"message".into())?;
    equals(message, "role", &"assistant".into())?;
    equals(message, "content", &serde_json::json!([]))?;
    for key in ["id", "model"] {
        if message[key].as_str().is_none_or(str::is_empty) {
            return Err(format!("no {key}"));
        }
    }
    count(&message["usage"], "input_tokens")?;
    count(&message["usage"], "output_tokens")
}

fn count(usage: &Value, key: &str) -> Result<(), String> {
    usage[key].as_u64().map(drop).ok_or_else(|| format!("{key} is not a count: {usage}"))
}

/// Checks a whole message: the answer to a request without `stream`.
pub fn check_message(message: &Value) -> Result<(), String> {
    keys(
        message,
        &[
            "id",
            "type",
            "role",
            "model",
            "content",
            "stop_reason",
            "stop_sequence",
            "stop_details",
            "container",
            "usage",
        ],
        &["diagnostics", "safeguard_results"],
    )?;
    constants(message)?;
    let Some(content) = message["content"].as_array() else { return Err("no content".into()) };
    let mut kinds = BTreeSet::new();
    let mut ids = BTreeSet::new();
    for block in content {
        let kind = block["type"].as_str().unwrap_or_default();
        match kind {
            "text" => {
                keys(block, &["type", "text"], &["citations"])?;
                let mut citations = block["citations"].as_array().into_iter().flatten();
                citations.try_for_each(|it| cited(it, Rules::default()))?;
                let text = block["text"].as_str().ok_or("text is no text")?;
                if text.trim().is_empty() && !(text.is_empty() && content.len() == 1) {
                    return Err("a text block without text".into());
                }
            }
            "thinking" => {
                keys(block, &["type", "thinking", "signature"], &[])?;
                block["thinking"].as_str().ok_or("thinking is no text")?;
                if block["signature"].as_str().is_none_or(str::is_empty) {
                    return Err("a thinking block without a signature".into());
                }
            }
            "tool_use" => {
                tool_use(block, &mut ids, Rules::default())?;
                if !block["input"].is_object() {
                    return Err(format!("input is not an object: {block}"));
                }
            }
            _ => hosted_whole(kind, block)?,
        }
        kinds.insert(kind.to_owned());
    }
    ending(message, &kinds)?;
    message_usage(&message["usage"])
}

/// Checks an error: the body of an HTTP error, or the data of an `error` event.
pub fn error_body(body: &Value) -> Result<(), String> {
    keys(body, &["type", "error", "request_id"], &[])?;
    equals(body, "type", &"error".into())?;
    let error = &body["error"];
    keys(error, &["type", "message"], &["details"])?;
    if !error["type"].as_str().is_some_and(|kind| ERROR_TYPES.contains(&kind)) {
        return Err(format!("unknown error type {}", error["type"]));
    }
    if error["message"].as_str().is_none_or(|text| text.trim().is_empty()) {
        return Err("an error without a message".into());
    }
    if !body["request_id"].as_str().is_some_and(|id| id.starts_with("req_")) {
        return Err("an error without request_id".into());
    }
    Ok(())
}

fn constants(message: &Value) -> Result<(), String> {
    equals(message, "type", &"message".into())?;
    equals(message, "role", &"assistant".into())?;
    equals(message, "container", &Value::Null)?;
    if message.get("diagnostics").is_some() {
        equals(message, "diagnostics", &Value::Null)?;
    }
    let id = message["id"].as_str().unwrap_or_default();
    if !(id.starts_with("msg_") && id.len() > 4 && is_plain(id)) {
        return Err(format!("bad message id {id:?}"));
    }
    if message["model"].as_str().is_none_or(str::is_empty) {
        return Err("no model".into());
    }
    Ok(())
}

/// Checks that `stop_reason` says if there is a call.
fn reason_fits(end: &Value, kinds: &BTreeSet<String>) -> Result<(), String> {
    let Some(reason) = end["stop_reason"].as_str() else { return Err("no stop_reason".into()) };
    let calls = kinds.contains("tool_use");
    if reason == "tool_use" && !calls {
        return Err("stop_reason tool_use without a call".into());
    }
    if calls && reason != "tool_use" && !CUT_OFF.contains(&reason) {
        return Err(format!("stop_reason {reason} with a call"));
    }
    Ok(())
}

/// `stop_reason` and what goes with it.
fn ending(end: &Value, kinds: &BTreeSet<String>) -> Result<(), String> {
    reason_fits(end, kinds)?;
    let reason = end["stop_reason"].as_str().unwrap_or_default();
    if !STOP_REASONS.contains(&reason) {
        return Err(format!("unknown stop_reason {reason:?}"));
    }
    if end["stop_sequence"].is_string() != (reason == "stop_sequence") {
        return Err("stop_sequence does not fit stop_reason".into());
    }
    if reason == "refusal" {
        keys(&end["stop_details"], &["type", "category", "explanation"], &[])?;
        equals(&end["stop_details"], "type", &"refusal".into())?;
    } else {
        equals(end, "stop_details", &Value::Null)?;
    }
    equals(end, "container", &Value::Null)
}

fn message_usage(value: &Value) -> Result<(), String> {
    usage(
        value,
        &["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "service_tier"],
        &["cache_creation", "server_tool_use", "inference_geo", "speed", "output_tokens_details"],
    )?;
    match value["service_tier"].as_str() {
        None if value["service_tier"].is_null() => Ok(()),
        Some("standard" | "priority" | "batch") => Ok(()),
        _ => Err(format!("unknown service_tier {}", value["service_tier"])),
    }
}

fn usage(value: &Value, required: &[&str], optional: &[&str]) -> Result<(), String> {
    let mut all = vec!["output_tokens"];
    all.extend(required);
    keys(value, &all, &[optional, &["iterations"]].concat())?;
    for (key, count) in value.as_object().into_iter().flatten() {
        if key.ends_with("_tokens") && count.as_u64().is_none() {
            return Err(format!("{key} is not a count: {count}"));
        }
    }
    if let Some(details) = value.get("output_tokens_details").filter(|details| !details.is_null()) {
        keys(details, &["thinking_tokens"], &[])?;
        let thinking = details["thinking_tokens"].as_u64().ok_or("thinking_tokens is no count")?;
        if Some(thinking) > value["output_tokens"].as_u64() {
            return Err("more thinking_tokens than output_tokens".into());
        }
    }
    Ok(())
}

fn required_keys<'v>(
    value: &'v Value,
    required: &[&str],
) -> Result<&'v Map<String, Value>, String> {
    let Some(object) = value.as_object() else {
        return Err(format!("expected an object with {required:?}, but found {value}"));
    };
    match required.iter().find(|key| !object.contains_key(**key)) {
        Some(key) => Err(format!("{key} is missing")),
        None => Ok(object),
    }
}

pub(super) fn keys(value: &Value, required: &[&str], optional: &[&str]) -> Result<(), String> {
    let object = required_keys(value, required)?;
    for key in object.keys() {
        if !required.contains(&key.as_str()) && !optional.contains(&key.as_str()) {
            return Err(format!("{key} is not documented here"));
        }
    }
    Ok(())
}

pub(super) fn equals(value: &Value, key: &str, expected: &Value) -> Result<(), String> {
    match value.get(key) {
        Some(found) if found == expected => Ok(()),
        found => Err(format!("{key}: expected {expected}, but found {found:?}")),
    }
}

fn is_object(text: &str) -> bool {
    serde_json::from_str::<Value>(text).is_ok_and(|value| value.is_object())
}

pub(super) fn is_plain(id: &str) -> bool {
    id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}
