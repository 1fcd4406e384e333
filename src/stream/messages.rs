//! An upstream that speaks the Messages API although it was asked in Chat Completions: some
//! gateways answer Claude models so. What it says is passed on, ids included; only the framing
//! changes where the client asked for the other kind of answer.

use super::machine::{INVALID_RESPONSE, Machine, Phase};
use crate::error::Error;
use crate::json::{self, Reader, Str, Writer};
use crate::translate::error;

/// The state of a stream of Messages events.
#[derive(Debug, Default)]
pub(super) struct Messages {
    /// For a client that wants one message: the message of `message_start`.
    head: String,
    blocks: Vec<Block>,
    /// `delta` and `usage` of `message_delta`.
    delta: String,
    usage: String,
}

/// A block as its start said it, and what its deltas added.
#[derive(Debug)]
struct Block {
    start: String,
    /// Escaped.
    text: String,
    /// Escaped.
    signature: String,
    /// JSON.
    input: String,
}

/// The events that clients know.
const EVENTS: [&str; 7] = [
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
    "ping",
];

impl Messages {
    pub(super) fn handle_event(
        &mut self,
        machine: &mut Machine,
        kind: Str<'_>,
        data: &str,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        if kind == "error" {
            return Err(error::from_object(None, data, &machine.asked, false));
        }
        let Some(name) = EVENTS.into_iter().find(|name| kind == *name) else { return Ok(()) };
        if (name == "message_start") != (machine.phase == Phase::Start) && name != "ping" {
            return Err(Error::misbehaved(INVALID_RESPONSE));
        }
        let report = &mut machine.report;
        report.chunks = report.chunks.saturating_add(1);
        if name == "content_block_delta" {
            report.progress = report.progress.saturating_add(1);
        }
        if name == "message_start" {
            machine.phase = Phase::Open;
        }
        if machine.asked.stream {
            begin_event(name, out);
            json::compact(out, data);
            out.extend_from_slice(b"\n\n");
        } else {
            self.fold(name, data);
            if self.held_bytes() > machine.rules.response_bytes_max {
                return Err(Error::misbehaved("Upstream sent an answer that is too large"));
            }
            if name == "message_stop" {
                self.write(out).map_err(|_| Error::misbehaved(INVALID_RESPONSE))?;
            }
        }
        if name == "message_stop" {
            machine.phase = Phase::Ended;
        }
        Ok(())
    }

    fn held_bytes(&self) -> usize {
        let block = |block: &Block| {
            let texts = block.text.len().saturating_add(block.signature.len());
            texts.saturating_add(block.start.len()).saturating_add(block.input.len())
        };
        self.blocks.iter().map(block).fold(self.head.len(), usize::saturating_add)
    }

    fn fold(&mut self, name: &str, data: &str) {
        let own = |raw: Option<&str>| raw.unwrap_or("{}").to_owned();
        match name {
            "message_start" => self.head = own(member(data, "message")),
            "content_block_start" => self.blocks.push(Block {
                start: own(member(data, "content_block")),
                text: String::new(),
                signature: String::new(),
                input: String::new(),
            }),
            "content_block_delta" => {
                let (Some(block), Some(delta)) = (self.blocks.last_mut(), member(data, "delta"))
                else {
                    return;
                };
                if let Some(text) = text(delta, "text").or_else(|| text(delta, "thinking")) {
                    block.text.push_str(text.raw());
                } else if let Some(text) = text(delta, "partial_json") {
                    json::unescape(&mut block.input, text.raw());
                } else if let Some(signature) = text(delta, "signature") {
                    signature.raw().clone_into(&mut block.signature);
                }
            }
            "message_delta" => {
                self.delta = own(member(data, "delta"));
                self.usage = own(member(data, "usage"));
            }
            _ => {}
        }
    }

    /// The message that the events add up to.
    fn write(&self, out: &mut Vec<u8>) -> Result<(), json::Error> {
        let mut json = Writer::new(out);
        json.begin_object();
        let late = |key: &str| key == "content" || key == "usage" || has(&self.delta, key);
        copy(&self.head, &mut json, |key| !late(key))?;
        json.key("content").begin_array();
        for block in &self.blocks {
            json.begin_object();
            let field = if has(&block.start, "thinking") { "thinking" } else { "text" };
            let replaced = |key: &str| match key {
                "text" | "thinking" => !block.text.is_empty(),
                "signature" => !block.signature.is_empty(),
                "input" => !block.input.is_empty(),
                _ => false,
            };
            copy(&block.start, &mut json, |key| !replaced(key))?;
            if !block.text.is_empty() {
                json.key(field).value();
                push_quoted(json.out(), &block.text);
            }
            if !block.signature.is_empty() {
                json.key("signature").value();
                push_quoted(json.out(), &block.signature);
            }
            if !block.input.is_empty() {
                let mut input = Reader::new(&block.input, 128);
                input.skip().and_then(|_| input.end())?;
                json.key("input").raw(&block.input);
            }
            json.end_object();
        }
        json.end_array();
        copy(&self.delta, &mut json, |_| true)?;
        json.key("usage").begin_object();
        if let Some(first) = member(&self.head, "usage") {
            copy(first, &mut json, |key| !has(&self.usage, key))?;
        }
        copy(&self.usage, &mut json, |_| true)?;
        json.end_object().end_object();
        Ok(())
    }
}

/// A whole message, for a client that wants either kind of answer.
pub(super) fn write_whole(
    machine: &mut Machine,
    body: &str,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    machine.report.chunks = 1;
    machine.report.progress = 1;
    machine.phase = Phase::Ended;
    if machine.asked.stream {
        return write_events(body, out).map_err(|_| Error::misbehaved(INVALID_RESPONSE));
    }
    out.extend_from_slice(body.as_bytes());
    Ok(())
}

fn write_events(body: &str, out: &mut Vec<u8>) -> Result<(), json::Error> {
    const ENDING: [&str; 4] = ["stop_reason", "stop_sequence", "stop_details", "container"];
    begin_event("message_start", out);
    let mut json = Writer::new(out);
    json.begin_object().key("type").text("message_start").key("message").begin_object();
    copy(body, &mut json, |key| key != "content" && !ENDING.contains(&key))?;
    json.key("content").raw("[]");
    for key in ENDING {
        json.key(key).null();
    }
    json.end_object().end_object();
    out.extend_from_slice(b"\n\n");
    begin_event("ping", out);
    out.extend_from_slice(b"{\"type\":\"ping\"}\n\n");
    let mut blocks = Reader::new(member(body, "content").unwrap_or("[]"), 128);
    blocks.begin_array()?;
    let mut index = 0u64;
    while blocks.next_element()? {
        write_block(blocks.skip()?, index, out)?;
        index = index.saturating_add(1);
    }
    begin_event("message_delta", out);
    let mut json = Writer::new(out);
    json.begin_object().key("type").text("message_delta").key("delta").begin_object();
    for key in ENDING {
        json.key(key).raw(member(body, key).unwrap_or("null"));
    }
    json.end_object();
    json.key("usage").value();
    json::compact(json.out(), member(body, "usage").unwrap_or("{\"output_tokens\":0}"));
    json.end_object();
    out.extend_from_slice(b"\n\n");
    begin_event("message_stop", out);
    out.extend_from_slice(b"{\"type\":\"message_stop\"}\n\n");
    Ok(())
}

fn write_block(block: &str, index: u64, out: &mut Vec<u8>) -> Result<(), json::Error> {
    /// What of a block comes as deltas: the member, what its start says, the delta and its member.
    const DELTAS: [(&str, &str, &str, &str); 4] = [
        ("text", "\"\"", "text_delta", "text"),
        ("thinking", "\"\"", "thinking_delta", "thinking"),
        ("signature", "\"\"", "signature_delta", "signature"),
        ("input", "{}", "input_json_delta", "partial_json"),
    ];
    let kind = text(block, "type").map(|kind| kind.decode().into_owned()).unwrap_or_default();
    let is_delta = |key: &str| {
        matches!(kind.as_str(), "text" | "thinking" | "tool_use" | "server_tool_use")
            && DELTAS.iter().any(|(name, ..)| *name == key)
    };
    begin_event("content_block_start", out);
    let mut json = Writer::new(out);
    json.begin_object().key("type").text("content_block_start").key("index").u64(index);
    json.key("content_block").begin_object();
    copy(block, &mut json, |key| !is_delta(key))?;
    for (name, start, ..) in DELTAS {
        if is_delta(name) && has(block, name) {
            json.key(name).raw(start);
        }
    }
    json.end_object().end_object();
    out.extend_from_slice(b"\n\n");
    for (name, _, delta, field) in DELTAS {
        let Some(value) = member(block, name).filter(|_| is_delta(name)) else { continue };
        begin_event("content_block_delta", out);
        let mut json = Writer::new(out);
        json.begin_object().key("type").text("content_block_delta").key("index").u64(index);
        json.key("delta").begin_object().key("type").text(delta).key(field);
        if field == "partial_json" {
            json.value().out().push(b'"');
            json::escape_compact(json.out(), value);
            json.out().push(b'"');
        } else {
            json.raw(value);
        }
        json.end_object().end_object();
        out.extend_from_slice(b"\n\n");
    }
    begin_event("content_block_stop", out);
    let mut json = Writer::new(out);
    json.begin_object().key("type").text("content_block_stop").key("index").u64(index).end_object();
    out.extend_from_slice(b"\n\n");
    Ok(())
}

/// After this the event's data starts; [`Writer`] takes the line end for the start of a text.
fn begin_event(name: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\ndata: ");
}

fn push_quoted(out: &mut Vec<u8>, raw: &str) {
    out.push(b'"');
    out.extend_from_slice(raw.as_bytes());
    out.push(b'"');
}

/// Copies the members of `object` whose names `keep` accepts.
fn copy(
    object: &str,
    json: &mut Writer<'_>,
    keep: impl Fn(&str) -> bool,
) -> Result<(), json::Error> {
    if object.is_empty() {
        return Ok(());
    }
    let mut reader = Reader::new(object, 128);
    reader.begin_object()?;
    while let Some(key) = reader.next_key()? {
        let value = reader.skip()?;
        if keep(key.raw()) {
            json.str(key).out().push(b':');
            json::compact(json.out(), value);
        }
    }
    Ok(())
}

fn member<'a>(object: &'a str, name: &str) -> Option<&'a str> {
    let mut reader = Reader::new(object, 128);
    reader.begin_object().ok()?;
    while let Some(key) = reader.next_key().ok()? {
        let value = reader.skip().ok()?;
        if key == *name {
            return Some(value);
        }
    }
    None
}

fn has(object: &str, name: &str) -> bool {
    member(object, name).is_some()
}

fn text<'a>(object: &'a str, name: &str) -> Option<Str<'a>> {
    Reader::new(member(object, name)?, 1).string().ok()
}
