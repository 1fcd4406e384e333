//! A whole message: passed on as it is where nothing is wrong with it and the client wants it so,
//! else read as the events that it stands for.

use super::member::{copy, count, elements, has, kind, member, string, text};
use super::{Messages, ending};
use crate::error::Error;
use crate::json::{Kind, Writer};
use crate::names::NameSet;
use crate::stream::machine::{Machine, Phase};

/// What a message says only at its end.
const ENDING: [&str; 4] = ["stop_reason", "stop_sequence", "stop_details", "container"];

/// A whole message, for a client that wants either kind of answer.
pub(in crate::stream) fn write_whole(
    machine: &mut Machine,
    body: &str,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    if let Some(failure) = ending::failure(&format!("{{\"delta\":{body}}}")) {
        return Err(failure);
    }
    if !machine.asked.stream && is_right(body, machine) {
        machine.report.chunks = 1;
        machine.report.progress = 1;
        machine.phase = Phase::Ended;
        out.extend_from_slice(body.as_bytes());
        return Ok(());
    }
    let mut messages = Messages::new(machine.asked.stream);
    messages.handle_event(machine, "message_start", &start(body), out)?;
    if machine.asked.stream {
        messages.handle_event(machine, "ping", "{\"type\":\"ping\"}", out)?;
    }
    let mut index = 0u64;
    for block in blocks(member(body, "content").unwrap_or("[]")) {
        messages.whole_block(machine, &block, index, out)?;
        index = index.saturating_add(1);
    }
    messages.handle_event(machine, "message_delta", &delta(body), out)?;
    messages.message_stop(machine, Some("{\"type\":\"message_stop\"}"), out)
}

/// The blocks of a `content`; a string is one text.
pub(super) fn blocks(content: &str) -> Vec<String> {
    if let Some(text) = string(content) {
        return vec![format!("{{\"type\":\"text\",\"text\":\"{}\"}}", text.raw())];
    }
    let block = |element: &&str| kind(element) == Some(Kind::Object);
    elements(content).into_iter().filter(block).map(str::to_owned).collect()
}

/// Whether a message can be passed on as it is.
fn is_right(body: &str, machine: &mut Machine) -> bool {
    let Some(content) = member(body, "content").filter(|it| kind(it) == Some(Kind::Array)) else {
        return false;
    };
    let mut ids = NameSet::default();
    let blocks = elements(content);
    let mut right = |block: &str| match text(block, "type").map(|name| name.decode()).as_deref() {
        Some("text") => text(block, "text").is_some(),
        Some("thinking") => text(block, "thinking").is_some(),
        Some("tool_use") => {
            let id = text(block, "id").unwrap_or_default().decode();
            let named = text(block, "name").is_some_and(|name| !name.is_blank());
            let object = member(block, "input").and_then(kind) == Some(Kind::Object);
            named && object && !id.is_empty() && ids.add(id.into_owned())
        }
        named => named.is_some(),
    };
    if !blocks.iter().all(|block| right(block)) {
        return false;
    }
    let has_call = !ids.is_empty();
    let said = text(body, "stop_reason").map(|word| word.decode());
    let reason = ending::reason(said.as_deref(), has_call, true).unwrap_or_default();
    let usage = member(body, "usage").unwrap_or("{}");
    let (input, output) = (count(usage, "input_tokens"), count(usage, "output_tokens"));
    let right = said.as_deref() == Some(reason.as_str())
        && input.is_some()
        && output.is_some()
        && ending::head(body, false, machine).is_empty();
    if right {
        let report = &mut machine.report;
        report.output_tokens = output.unwrap_or_default();
        report.tool_calls = u32::try_from(ids.len()).unwrap_or(u32::MAX);
        report.stop_reason = ending::known(&reason);
    }
    right
}

/// `message_start` of a message.
fn start(body: &str) -> String {
    let mut out = Vec::new();
    let mut json = Writer::new(&mut out);
    json.begin_object().key("type").text("message_start").key("message").begin_object();
    copy(body, &mut json, |key| key != "content" && !ENDING.contains(&key));
    json.key("content").raw("[]");
    for key in ENDING {
        json.key(key).null();
    }
    json.end_object().end_object();
    String::from_utf8(out).unwrap_or_default()
}

/// `message_delta` of a message.
fn delta(body: &str) -> String {
    let mut out = Vec::new();
    let mut json = Writer::new(&mut out);
    json.begin_object().key("type").text("message_delta").key("delta").begin_object();
    for key in ENDING {
        json.key(key).raw(member(body, key).unwrap_or("null"));
    }
    json.end_object();
    if has(body, "usage") {
        json.key("usage").raw(member(body, "usage").unwrap_or("{}"));
    }
    json.end_object();
    String::from_utf8(out).unwrap_or_default()
}
