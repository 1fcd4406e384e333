//! Content blocks of an upstream that speaks Messages, each from its start to its stop.
//!
//! What is right goes on byte for byte. What a server says twice is said once:
//!
//! | at the start | in deltas | the client gets |
//! |---|---|---|
//! | `input: {}` | an input | the deltas, by the rules of `tool_input` |
//! | an input | nothing, or `{}` | the start's input as one delta |
//! | an input | an input | the deltas |
//! | a text | nothing | the start's text as one delta |
//! | a text | the same text, or one that begins so | the deltas |
//! | a text | anything else | both, one after the other |
//! | a signature | nothing | the start's signature as one delta |

use std::borrow::Cow;

use super::delta::{Delta, DeltaKind};
use super::events::Events;
use super::member::{count, elements, kind, member, members, quoted, string, text, with};
use super::start_text::StartText;
use super::tool::{DELTA_BYTES, Tool};
use crate::assemble::mend::{Budget, Mender};
use crate::error::Error;
use crate::json::ValueKind;
use crate::model::limits::{self, ANSWER_BLOCKS_MAX};

/// Number of deltas of a block, or of blocks, that wait for the stop of an earlier block before it
/// counts as missing. A server that never sends stops is late by as many; one that sends blocks at
/// the same time completes the earlier block within them.
pub(super) const WAITING_MAX: usize = 8;

/// A block that the upstream has started.
#[derive(Debug)]
pub(super) struct Block {
    /// Index that the upstream gave the block.
    index: Option<u64>,
    /// Event of the block's start, as it will be sent but for the index.
    start: String,
    content: Content,
    /// True if the block is a call that the client must answer.
    is_call: bool,
    /// Deltas that wait until the blocks before it are over.
    waiting: Vec<String>,
    waiting_bytes: usize,
    /// True if the block's start was sent.
    is_open: bool,
    /// Event that stopped the block.
    stop: Option<String>,
    has_delta: bool,
}

#[derive(Debug)]
enum Content {
    Text(StartText),
    Thinking {
        said: StartText,
        /// Signature in the block's start, escaped; it counts when no delta brings one.
        signature: String,
        is_signed: bool,
    },
    Tool(Box<Tool>),
    /// Block of a type that arrives whole with its start.
    Whole,
    /// Block of an unknown type: nobody can say which deltas belong to it.
    Unknown,
}

impl Block {
    /// Reads a `content_block_start`. `mint` gives an id to a call, given the one that it has.
    // Long: a branch for each kind of block.
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
                Content::Text(StartText::new(start))
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
                Content::Thinking {
                    said: StartText::new(start),
                    signature: signature.raw().to_owned(),
                    is_signed: !signature.is_empty(),
                }
            }
            "tool_use" | "server_tool_use" | "mcp_tool_use" => {
                let tool = Tool::new(member(block, "input").unwrap_or_default());
                if tool.has_start() || member(block, "input").is_none_or(|input| input != "{}") {
                    changes.push(("input", "{}"));
                }
                Content::Tool(Box::new(tool))
            }
            "redacted_thinking" | "fallback" | "container_upload" => Content::Whole,
            _ if name.ends_with("_tool_result") => Content::Whole,
            _ => Content::Unknown,
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

    /// Makes a block of which only a delta came.
    pub(super) fn of_delta(delta: &Delta<'_>) -> Self {
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

    /// Returns the index that the upstream gave the block.
    pub(super) fn index(&self) -> Option<u64> {
        self.index
    }

    /// Returns true if the block is a call that the client must answer.
    pub(super) fn is_call(&self) -> bool {
        self.is_call
    }

    /// Returns true if the block's start was sent.
    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Returns true if the upstream has stopped the block.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.is_some()
    }

    /// Notes the event with which the upstream stops the block.
    pub(super) fn stop(&mut self, data: &str) {
        self.stop = Some(data.to_owned());
    }

    /// Returns true if a delta can extend the block. The API may add types of blocks at any time; a
    /// delta with the index of a block of unknown type belongs to it.
    pub(super) fn fits(&self, delta: &Delta<'_>) -> bool {
        let kind = delta.kind;
        match self.content {
            Content::Text(_) => matches!(kind, DeltaKind::Text | DeltaKind::Other),
            Content::Thinking { .. } => !matches!(kind, DeltaKind::Text | DeltaKind::Input),
            Content::Tool(_) => matches!(kind, DeltaKind::Input | DeltaKind::Other),
            Content::Whole => kind == DeltaKind::Other,
            Content::Unknown => {
                kind == DeltaKind::Other
                    || self.index.is_some_and(|index| delta.index == Some(index))
            }
        }
    }

    /// Returns true if the block has all that belongs into it, so that its stop can be missing for
    /// long.
    pub(super) fn is_complete(&self) -> bool {
        match &self.content {
            Content::Tool(tool) => tool.is_complete(),
            Content::Text(said) => self.has_delta || !said.start().is_empty(),
            Content::Thinking { is_signed, .. } => *is_signed,
            Content::Whole | Content::Unknown => true,
        }
    }

    /// Returns true if nothing is lost when the block is closed without its stop: a text, or a
    /// thought, can go on in a block of its own, and an input cannot.
    pub(super) fn may_close(&self) -> bool {
        self.is_complete() || !matches!(self.content, Content::Tool(_))
    }

    /// Returns true if so many deltas wait that the block before this one must have been meant to
    /// end.
    pub(super) fn waits_long(&self) -> bool {
        self.waiting.len() >= WAITING_MAX
    }

    /// Returns the number of bytes that the block holds, without deltas that wait.
    pub(super) fn held_bytes(&self) -> usize {
        let content = match &self.content {
            Content::Text(said) => said.start().len(),
            Content::Thinking { said, signature, .. } => {
                said.start().len().saturating_add(signature.len())
            }
            Content::Tool(tool) => tool.held_bytes(),
            Content::Whole | Content::Unknown => 0,
        };
        content.saturating_add(self.start.len())
    }

    /// Keeps a delta until the block can be sent; returns the number of bytes that it takes.
    pub(super) fn wait(&mut self, data: &str) -> usize {
        let bytes = data.len().saturating_add(DELTA_BYTES);
        self.waiting.push(data.to_owned());
        self.waiting_bytes = self.waiting_bytes.saturating_add(bytes);
        bytes
    }

    /// Returns the number of bytes that the block holds while it waits for the blocks before it.
    pub(super) fn waiting_bytes(&self) -> usize {
        self.waiting_bytes.saturating_add(self.held_bytes())
    }

    /// Sets the mender of a call's input, which works while the input is sent; other blocks ignore
    /// it.
    pub(super) fn set_mender(&mut self, mender: Option<Mender>) {
        if let Content::Tool(tool) = &mut self.content {
            tool.set_mender(mender);
        }
    }

    /// Returns the number of members of the block's input that were mended since it was last asked.
    pub(super) fn take_mended(&mut self) -> u32 {
        match &mut self.content {
            Content::Tool(tool) => tool.take_mended(),
            _ => 0,
        }
    }

    /// Returns the name of the tool that the block calls.
    pub(super) fn tool(&self) -> String {
        let block = member(&self.start, "content_block").unwrap_or_default();
        text(block, "name").unwrap_or_default().decode().into_owned()
    }

    /// Gives the called tool the name that the client knows.
    pub(super) fn rename(&mut self, name: &str) {
        let block = member(&self.start, "content_block").unwrap_or("{}");
        let renamed = with(block, &[("name", &quoted(name))]);
        self.start = with(&self.start, &[("content_block", &renamed)]);
    }

    /// Sends the start, and the deltas that wait. `budget`: for mending an input.
    pub(super) fn open(&mut self, index: u64, out: &mut Events<'_>, budget: &mut Budget) {
        self.is_open = true;
        out.indexed("content_block_start", &self.start, count(&self.start, "index"), index);
        match &self.content {
            Content::Text(said) => out.text(DeltaKind::Text, said.start(), index),
            Content::Thinking { said, .. } => out.text(DeltaKind::Thinking, said.start(), index),
            Content::Tool(_) | Content::Whole | Content::Unknown => {}
        }
        for data in std::mem::take(&mut self.waiting) {
            self.delta(&data, &Delta::read(&data), index, out, budget);
        }
    }

    /// Sends a delta that fits.
    pub(super) fn delta(
        &mut self,
        data: &str,
        delta: &Delta<'_>,
        index: u64,
        out: &mut Events<'_>,
        budget: &mut Budget,
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
            (Content::Thinking { signature, is_signed, .. }, DeltaKind::Signature) => {
                if !delta.is_blank() {
                    signature.clear();
                    *is_signed = true;
                }
                raw(out);
            }
            (Content::Text(said) | Content::Thinking { said, .. }, kind) => {
                match said.receive(delta.text) {
                    None => raw(out),
                    Some(text) => out.delta(kind, &text, index),
                }
            }
            (Content::Tool(tool), _) => tool.receive(data, delta, index, out, budget),
            (Content::Unknown, _) if delta.whole => {
                out.indexed("content_block_delta", data, delta.index, index);
            }
            (Content::Unknown, _) => raw(out),
            (Content::Whole, _) => {}
        }
    }

    /// Sends what was held back, and the stop. Says whether the deltas contradicted each other.
    pub(super) fn close(&mut self, index: u64, out: &mut Events<'_>, budget: &mut Budget) -> bool {
        let mut conflict = false;
        match &mut self.content {
            Content::Text(said) => out.delta(DeltaKind::Text, &said.finish(), index),
            Content::Thinking { said, signature, .. } => {
                out.delta(DeltaKind::Thinking, &said.finish(), index);
                out.delta(DeltaKind::Signature, signature, index);
            }
            Content::Tool(tool) => {
                conflict = tool.finish(self.has_delta, index, out, budget);
            }
            Content::Whole | Content::Unknown => {}
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

/// Returns the blocks of a `content`; a string is one text. Each becomes events of a hundred bytes,
/// so one that says nothing is none, and there are not too many.
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
