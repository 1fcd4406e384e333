//! Whole messages of an upstream: forwarded unchanged if valid and if the client wants no stream,
//! else converted to events and repaired.

use super::block::blocks;
use super::ending;
use super::member::{copy, count, elements, has, kind, member, text};
use super::stream::MessagesStream;
use crate::StopReason;
use crate::answer::{ReaderOutput, WriterPhase};
use crate::assemble::mend::{InputMender, ValidationBudget};
use crate::error::Error;
use crate::json::{ValueKind, Writer};
use crate::text::names::NameSet;

/// Members of a message that a stream sends only at its end.
const ENDING: [&str; 4] = ["stop_reason", "stop_sequence", "stop_details", "container"];

/// Member of a whole message that a stream sends inside the `delta` of `message_delta`.
const IN_DELTA: &str = "safeguard_results";
/// Member of a whole message that a stream sends in `message_delta`, next to the `delta`.
const BESIDE_DELTA: &str = "context_management";

/// Writes an upstream's whole message for the client, as a message or as a stream.
pub(super) fn write(body: &str, to: &mut ReaderOutput<'_>) -> Result<(), Error> {
    if let Some(failure) = ending::failure(&format!("{{\"delta\":{body}}}"), to.context) {
        return Err(failure);
    }
    if !to.context.stream
        && let Some(calls) = calls_if_right(body, to)
    {
        let report = &mut *to.report;
        ending::note(body, report);
        report.chunks = 1;
        report.progress = 1;
        report.tool_calls = calls;
        let usage = member(body, "usage").unwrap_or("{}");
        report.output_tokens = count(usage, "output_tokens").unwrap_or_default();
        report.stop_reason = text(body, "stop_reason").and_then(|it| StopReason::of(&it.decode()));
        to.writer.relayed(WriterPhase::Ended);
        to.out.extend_from_slice(body.as_bytes());
        return Ok(());
    }
    let mut messages = MessagesStream::new(to.context.stream);
    messages.handle_event(to, "message_start", &start(body))?;
    if to.context.stream {
        messages.handle_event(to, "ping", "{\"type\":\"ping\"}")?;
    }
    let mut index = 0u64;
    for block in blocks(member(body, "content").unwrap_or("[]"))? {
        messages.whole_block(to, &block, index)?;
        index = index.saturating_add(1);
    }
    messages.handle_event(to, "message_delta", &delta(body))?;
    messages.message_stop(to, Some("{\"type\":\"message_stop\"}"))
}

/// Returns the number of tool calls in a message, if the message can be forwarded unchanged.
fn calls_if_right(body: &str, to: &ReaderOutput<'_>) -> Option<u32> {
    let content = member(body, "content").filter(|it| kind(it) == Some(ValueKind::Array))?;
    let (mut ids, mut budget) = (NameSet::default(), ValidationBudget::default());
    let right = |block: &str| match text(block, "type").map(|name| name.decode()).as_deref() {
        Some("text") => text(block, "text").is_some(),
        Some("thinking") => {
            ["thinking", "signature"].iter().all(|name| text(block, name).is_some())
        }
        Some("tool_use") => {
            let id = text(block, "id").unwrap_or_default().decode();
            let named = text(block, "name").is_some_and(|name| !name.is_blank());
            let input = member(block, "input").filter(|it| kind(it) == Some(ValueKind::Object));
            let is_right = input.is_some_and(|input| !is_mended(block, input, &mut budget, to));
            let name = text(block, "name").unwrap_or_default().decode();
            let named = named && to.context.tools.client_name(&name).is_none();
            named && is_right && !id.is_empty() && ids.add(id.into_owned())
        }
        named => named.is_some(),
    };
    let said = text(body, "stop_reason")?.decode();
    let usage = member(body, "usage").unwrap_or("{}");
    let is_right = elements(content).all(right)
        && ending::reason(Some(&said), !ids.is_empty(), true).is_ok_and(|reason| reason == said)
        && count(usage, "input_tokens").is_some()
        && count(usage, "output_tokens").is_some()
        && ending::head(body, to).is_empty();
    is_right.then(|| u32::try_from(ids.len()).unwrap_or(u32::MAX))
}

/// Returns true if the input of a call has to be repaired for the client.
fn is_mended(
    block: &str,
    input: &str,
    budget: &mut ValidationBudget,
    to: &ReaderOutput<'_>,
) -> bool {
    let name = text(block, "name").filter(|_| to.rules.mends_inputs);
    let tool = name.and_then(|name| to.context.tools.meant_by(&name.decode()));
    tool.is_some_and(|tool| InputMender::whole(tool, input, budget).is_some())
}

/// Returns the `message_start` event that corresponds to a whole message.
fn start(body: &str) -> String {
    let mut out = Vec::new();
    let mut json = Writer::new(&mut out);
    json.begin_object().kind("message_start").key("message").begin_object();
    copy(body, &mut json, &|key| {
        !["content", IN_DELTA, BESIDE_DELTA].contains(&key) && !ENDING.contains(&key)
    });
    json.key("content").raw("[]");
    for key in ENDING {
        json.key(key).null();
    }
    json.end_object().end_object();
    String::from_utf8(out).unwrap_or_default()
}

/// Returns the `message_delta` event that corresponds to a whole message.
fn delta(body: &str) -> String {
    let mut out = Vec::new();
    let mut json = Writer::new(&mut out);
    json.begin_object().kind("message_delta").key("delta").begin_object();
    for key in ENDING {
        json.key(key).raw(member(body, key).unwrap_or("null"));
    }
    copy(body, &mut json, &|key| key == IN_DELTA);
    json.end_object();
    copy(body, &mut json, &|key| key == BESIDE_DELTA);
    if has(body, "usage") {
        json.key("usage").raw(member(body, "usage").unwrap_or("{}"));
    }
    json.end_object();
    String::from_utf8(out).unwrap_or_default()
}
