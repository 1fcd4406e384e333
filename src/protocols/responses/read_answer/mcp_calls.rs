//! Handling of MCP tool calls that the upstream ran itself.

use super::machine::ResponsesMachine;
use super::slots::Slot;
use crate::answer::ReaderOutput;
use crate::error::Error;
use crate::json::{self, Reader, ValueKind, written};
use crate::model::hosted::{HostedCall, McpCall};
use crate::protocols::responses::wire::{Item, ItemArguments};

impl ResponsesMachine {
    /// Adds a completed MCP tool call to the answer.
    pub(super) fn complete_mcp_call(
        &mut self,
        slot: usize,
        item: &Item<'_>,
        to: &mut ReaderOutput<'_>,
    ) -> Result<(), Error> {
        if self.slots().get(slot).is_none_or(Slot::is_closed) {
            return Ok(());
        }
        let text = |name| {
            let text = json::member(item.raw, name).and_then(json::string);
            text.map(|text| text.decode().into_owned())
        };
        let failure = json::member(item.raw, "error").filter(|error| *error != "null");
        let output = text("output");
        let is_error = failure.is_some() || output.is_none();
        let mut call = McpCall {
            name: text("name").unwrap_or_default(),
            server: text("server_label").unwrap_or_default(),
            input: input_of(item),
            text: failure.map(told_of).or(output),
            is_error,
            ..McpCall::default()
        };
        self.close_thought(to);
        if !self.content_mut().begin_call(to)? {
            return Ok(());
        }
        self.content_mut().start(to);
        call.id = to.ids.mcp_call(self.next_mcp_call());
        self.content_mut().assembly_mut().push_hosted(HostedCall::Mcp(call));
        Ok(())
    }
}

/// Returns the input of an MCP tool call as a JSON object, because clients can only read objects.
fn input_of(item: &Item<'_>) -> String {
    let text = match item.arguments {
        ItemArguments::None => return "{}".to_owned(),
        ItemArguments::Json(raw) => return json::compacted(raw),
        ItemArguments::Text(text) => text.decode(),
    };
    let mut reader = Reader::of(&text);
    let is_object = reader.kind().is_ok_and(|kind| kind == ValueKind::Object)
        && reader.skip().is_ok()
        && reader.end().is_ok();
    match is_object {
        true => json::compacted(text.trim()),
        false => written(|json| {
            json.begin_object().key("INVALID_JSON").text(&text).end_object();
        }),
    }
}

/// Returns the message of an error. The error is a string, an object with a `message`, or an object
/// with texts from the tool.
fn told_of(error: &str) -> String {
    if let Some(text) = json::string(error) {
        return text.decode().into_owned();
    }
    let text = |object, name| json::member(object, name).and_then(json::string);
    if let Some(message) = text(error, "message") {
        return message.decode().into_owned();
    }
    let parts = json::member(error, "content").into_iter().flat_map(json::elements);
    let texts: Vec<_> = parts.filter_map(|part| text(part, "text")).map(|it| it.decode()).collect();
    if texts.is_empty() { json::compacted(error) } else { texts.join("\n") }
}
