//! Content blocks of an upstream that uses the Messages API, each from its start event to its stop
//! event.
//!
//! Valid events are forwarded byte for byte. Content that a server sends both in the start event
//! and in deltas is sent once:
//!
//! | start event | deltas | the client gets |
//! |---|---|---|
//! | `input: {}` | an input | the deltas, by the rules of `tool_input` |
//! | an input | nothing, or `{}` | the start's input as one delta |
//! | an input | an input | the deltas |
//! | a text | nothing | the start's text as one delta |
//! | a text | the same text, or a text that begins with it | the deltas |
//! | a text | another text | both texts, one after the other |
//! | a signature | nothing | the start's signature as one delta |

use std::borrow::Cow;

use super::delta::{DeltaKind, RelayedDelta};
use super::events::Events;
use super::member::{count, elements, kind, member, members, quoted, string, text, with};
use super::start_text::StartText;
use super::tool::{DELTA_BYTES, RelayedInput};
use crate::assemble::mend::{InputMender, ValidationBudget};
use crate::error::Error;
use crate::json::ValueKind;
use crate::model::limits::{self, ANSWER_BLOCKS_MAX};

/// Maximum number of deltas of a block, or of blocks, that wait for the stop event of an earlier
/// block. Afterwards the stop event counts as missing. Without any stop events an answer lags by
/// this number; a server that sends blocks in parallel stops the earlier block within this number.
pub(super) const WAITING_MAX: usize = 8;

/// Content block of an upstream's streamed answer, from its start event on.
#[derive(Debug)]
pub(super) struct RelayedBlock {
    /// Index of the block in the upstream's events.
    index: Option<u64>,
    /// Start event of the block, ready to be sent except for the index.
    start: String,
    content: RelayedContent,
    /// True if the block is a tool call that the client must answer.
    is_call: bool,
    /// Deltas that wait until the blocks before this block are over.
    waiting: Vec<String>,
    waiting_bytes: usize,
    /// True if the block's start event was sent to the client.
    is_open: bool,
    /// Stop event of the block, once the upstream has sent the event.
    stop: Option<String>,
    has_delta: bool,
}

#[derive(Debug)]
enum RelayedContent {
    Text(StartText),
    Thinking {
        said: StartText,
        /// Signature in the block's start event, escaped; sent at the end if no delta has a
        /// signature.
        signature: String,
        is_signed: bool,
    },
    Tool(Box<RelayedInput>),
    /// Block of a type that is complete in its start event.
    Whole,
    /// Block of an unknown type, whose types of deltas are unknown too.
    Unknown,
}

impl RelayedBlock {
    /// Reads a `content_block_start`. `mint` returns a new id for a call, if the call's id is
    /// missing or a duplicate.
    // Long: each kind of block has a branch.
    pub(super) fn start(data: &str, mint: &mut dyn FnMut(&str) -> Option<String>) -> Self {
        let block = member(data, "content_block").unwrap_or("{}");
        let known = text(block, "type").map(|name| name.decode()).filter(|name| !name.is_empty());
        let has = |name| member(block, name).is_some();
        let name = match &known {
            Some(name) => name.as_ref(),
            None if has("thinking") => "thinking",
            None if has("name") || has("input") => "tool_use",
            None => "text",
        };
        let named = quoted(name);
        let mut changes: Vec<(&'static str, &str)> = Vec::new();
        if known.is_none() {
            changes.push(("type", &named));
        }
        let is_call = name == "tool_use";
        let content = match name {
            "text" => {
                let start = text(block, "text").unwrap_or_default();
                if !(start.is_empty() && has("text")) {
                    changes.push(("text", "\"\""));
                }
                RelayedContent::Text(StartText::new(start))
            }
            "thinking" => {
                let start = text(block, "thinking").unwrap_or_default();
                if !(start.is_empty() && has("thinking")) {
                    changes.push(("thinking", "\"\""));
                }
                let signature = text(block, "signature").unwrap_or_default();
                if !(signature.is_empty() && has("signature")) {
                    changes.push(("signature", "\"\""));
                }
                RelayedContent::Thinking {
                    said: StartText::new(start),
                    signature: signature.raw().to_owned(),
                    is_signed: !signature.is_empty(),
                }
            }
            "tool_use" | "server_tool_use" | "mcp_tool_use" => {
                let tool = RelayedInput::new(member(block, "input").unwrap_or_default());
                if tool.has_start() || member(block, "input").is_none_or(|input| input != "{}") {
                    changes.push(("input", "{}"));
                }
                RelayedContent::Tool(Box::new(tool))
            }
            "redacted_thinking" | "fallback" | "container_upload" => RelayedContent::Whole,
            _ if name.ends_with("_tool_result") => RelayedContent::Whole,
            _ => RelayedContent::Unknown,
        };
        let id = text(block, "id").unwrap_or_default().decode();
        let minted = if is_call { mint(&id) } else { None }.map(|id| quoted(&id));
        if let Some(id) = &minted {
            changes.push(("id", id));
        }
        let start = if changes.is_empty() {
            data.to_owned()
        } else {
            with(data, &[("content_block", &with(block, &changes))])
        };
        Self {
            index: count(data, "index"),
            start,
            content,
            is_call,
            waiting: Vec::new(),
            waiting_bytes: 0,
            is_open: false,
            stop: None,
            has_delta: false,
        }
    }

    /// Makes a block for a delta that arrived without a start event.
    pub(super) fn of_delta(delta: &RelayedDelta<'_>) -> Self {
        let block = match delta.kind {
            DeltaKind::Thinking | DeltaKind::Signature => {
                "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}"
            }
            _ => "{\"type\":\"text\",\"text\":\"\"}",
        };
        let start =
            format!("{{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{block}}}");
        Self { index: delta.index, ..Self::start(&start, &mut |_| None) }
    }

    /// Returns the index of the block in the upstream's events.
    pub(super) fn index(&self) -> Option<u64> {
        self.index
    }

    /// Returns true if the block is a tool call that the client must answer.
    pub(super) fn is_call(&self) -> bool {
        self.is_call
    }

    /// Returns true if the block's start event was sent to the client.
    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Returns true if the upstream has sent the block's stop event.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.is_some()
    }

    /// Stores the upstream's stop event of the block.
    pub(super) fn stop(&mut self, data: &str) {
        self.stop = Some(data.to_owned());
    }

    /// Returns true if a delta can extend the block. A delta with the index of a block of unknown
    /// type always fits, because the API may add types at any time.
    pub(super) fn fits(&self, delta: &RelayedDelta<'_>) -> bool {
        let kind = delta.kind;
        match self.content {
            RelayedContent::Text(_) => matches!(kind, DeltaKind::Text | DeltaKind::Other),
            RelayedContent::Thinking { .. } => !matches!(kind, DeltaKind::Text | DeltaKind::Input),
            RelayedContent::Tool(_) => matches!(kind, DeltaKind::Input | DeltaKind::Other),
            RelayedContent::Whole => kind == DeltaKind::Other,
            RelayedContent::Unknown => {
                kind == DeltaKind::Other
                    || self.index.is_some_and(|index| delta.index == Some(index))
            }
        }
    }

    /// Returns true if the block's content is complete, so that only its stop event may be missing.
    pub(super) fn is_complete(&self) -> bool {
        match &self.content {
            RelayedContent::Tool(tool) => tool.is_complete(),
            RelayedContent::Text(said) => self.has_delta || !said.start().is_empty(),
            RelayedContent::Thinking { is_signed, .. } => *is_signed,
            RelayedContent::Whole | RelayedContent::Unknown => true,
        }
    }

    /// Returns true if the block can be closed without its stop event. Text or thinking can
    /// continue in a new block, but the input of a call cannot.
    pub(super) fn may_close(&self) -> bool {
        self.is_complete() || !matches!(self.content, RelayedContent::Tool(_))
    }

    /// Returns true if the block's number of waiting deltas shows that the previous block must be
    /// over.
    pub(super) fn waits_long(&self) -> bool {
        self.waiting.len() >= WAITING_MAX
    }

    /// Returns the number of bytes that the block holds, without waiting deltas.
    pub(super) fn held_bytes(&self) -> usize {
        let content = match &self.content {
            RelayedContent::Text(said) => said.start().len(),
            RelayedContent::Thinking { said, signature, .. } => {
                said.start().len().saturating_add(signature.len())
            }
            RelayedContent::Tool(tool) => tool.held_bytes(),
            RelayedContent::Whole | RelayedContent::Unknown => 0,
        };
        content.saturating_add(self.start.len())
    }

    /// Keeps a delta until the block can be sent. Returns the number of bytes used for the delta.
    pub(super) fn wait(&mut self, data: &str) -> usize {
        let bytes = data.len().saturating_add(DELTA_BYTES);
        self.waiting.push(data.to_owned());
        self.waiting_bytes = self.waiting_bytes.saturating_add(bytes);
        bytes
    }

    /// Returns the number of bytes that the block holds while it waits for earlier blocks.
    pub(super) fn waiting_bytes(&self) -> usize {
        self.waiting_bytes.saturating_add(self.held_bytes())
    }

    /// Sets the mender, which repairs the input of a tool call while the input is sent. Ignored by
    /// other blocks.
    pub(super) fn set_mender(&mut self, mender: Option<InputMender>) {
        if let RelayedContent::Tool(tool) = &mut self.content {
            tool.set_mender(mender);
        }
    }

    /// Returns the number of members of the block's input that were repaired since the last call of
    /// this function.
    pub(super) fn take_mended(&mut self) -> u32 {
        match &mut self.content {
            RelayedContent::Tool(tool) => tool.take_mended(),
            _ => 0,
        }
    }

    /// Returns the name of the tool that the block calls.
    pub(super) fn tool(&self) -> String {
        let block = member(&self.start, "content_block").unwrap_or_default();
        text(block, "name").unwrap_or_default().decode().into_owned()
    }

    /// Replaces the name of the called tool with the name that the client knows.
    pub(super) fn rename(&mut self, name: &str) {
        let block = member(&self.start, "content_block").unwrap_or("{}");
        let renamed = with(block, &[("name", &quoted(name))]);
        self.start = with(&self.start, &[("content_block", &renamed)]);
    }

    /// Sends the block's start event and the deltas that waited. `budget`: limit of the work for
    /// repairing an input.
    pub(super) fn open(&mut self, index: u64, out: &mut Events<'_>, budget: &mut ValidationBudget) {
        self.is_open = true;
        out.indexed("content_block_start", &self.start, count(&self.start, "index"), index);
        match &self.content {
            RelayedContent::Text(said) => out.text(DeltaKind::Text, said.start(), index),
            RelayedContent::Thinking { said, .. } => {
                out.text(DeltaKind::Thinking, said.start(), index)
            }
            RelayedContent::Tool(_) | RelayedContent::Whole | RelayedContent::Unknown => {}
        }
        for data in std::mem::take(&mut self.waiting) {
            self.delta(&data, &RelayedDelta::read(&data), index, out, budget);
        }
    }

    /// Sends a delta of the block to the client.
    pub(super) fn delta(
        &mut self,
        data: &str,
        delta: &RelayedDelta<'_>,
        index: u64,
        out: &mut Events<'_>,
        budget: &mut ValidationBudget,
    ) {
        self.has_delta = true;
        let raw = |out: &mut Events<'_>| {
            if delta.whole && delta.json.is_none() {
                out.indexed("content_block_delta", data, delta.index, index);
            } else {
                out.delta(delta.kind, delta.text.raw(), index);
            }
        };
        match (&mut self.content, delta.kind) {
            (_, DeltaKind::Other) => {
                out.indexed("content_block_delta", data, delta.index, index);
            }
            (RelayedContent::Thinking { signature, is_signed, .. }, DeltaKind::Signature) => {
                if !delta.is_blank() {
                    signature.clear();
                    *is_signed = true;
                }
                raw(out);
            }
            (RelayedContent::Text(said) | RelayedContent::Thinking { said, .. }, kind) => {
                match said.receive(delta.text) {
                    None => raw(out),
                    Some(text) => out.delta(kind, &text, index),
                }
            }
            (RelayedContent::Tool(tool), _) => tool.receive(data, delta, index, out, budget),
            (RelayedContent::Unknown, _) if delta.whole => {
                out.indexed("content_block_delta", data, delta.index, index);
            }
            (RelayedContent::Unknown, _) => raw(out),
            (RelayedContent::Whole, _) => {}
        }
    }

    /// Sends the deltas of the block that were held back, and the block's stop event. Returns true
    /// if the deltas contradicted each other.
    pub(super) fn close(
        &mut self,
        index: u64,
        out: &mut Events<'_>,
        budget: &mut ValidationBudget,
    ) -> bool {
        let mut conflict = false;
        match &mut self.content {
            RelayedContent::Text(said) => out.delta(DeltaKind::Text, &said.finish(), index),
            RelayedContent::Thinking { said, signature, .. } => {
                out.delta(DeltaKind::Thinking, &said.finish(), index);
                out.delta(DeltaKind::Signature, signature, index);
            }
            RelayedContent::Tool(tool) => {
                conflict = tool.finish(self.has_delta, index, out, budget);
            }
            RelayedContent::Whole | RelayedContent::Unknown => {}
        }
        match &self.stop {
            Some(stop) => {
                out.indexed("content_block_stop", stop, count(stop, "index"), index);
            }
            None => {
                let stop = format!("{{\"type\":\"content_block_stop\",\"index\":{index}}}");
                out.event("content_block_stop", &stop);
            }
        }
        conflict
    }
}

/// Returns the content blocks of a message's `content`; a string counts as one text block. Empty
/// objects are skipped and the number is limited, because each block becomes events of a hundred
/// bytes.
pub(super) fn blocks(content: &str) -> Result<Vec<Cow<'_, str>>, Error> {
    if let Some(text) = string(content) {
        let block = format!("{{\"type\":\"text\",\"text\":\"{}\"}}", text.raw());
        return Ok(vec![block.into()]);
    }
    let mut blocks = Vec::new();
    for element in elements(content) {
        if kind(element) != Some(ValueKind::Object) || members(element).next().is_none() {
            continue;
        }
        if blocks.len() >= ANSWER_BLOCKS_MAX {
            return Err(limits::answer_exceeded("content blocks"));
        }
        blocks.push(element.into());
    }
    Ok(blocks)
}
