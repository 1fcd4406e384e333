//! One message out of repaired events, for a client that wants no stream.

use super::member::{copy, elements, has, member, string, text, with};
use crate::json::{self, Reader, Writer};
use crate::warning::Warnings;

/// The message as far as it came.
#[derive(Debug, Default)]
pub(super) struct Fold {
    /// The message of `message_start`.
    head: String,
    blocks: Vec<Folded>,
    /// `delta` and `usage` of `message_delta`.
    delta: String,
    usage: String,
    /// Bytes of all these texts.
    bytes: usize,
}

/// A block as its start said it, and what its deltas added.
#[derive(Debug, Default)]
struct Folded {
    start: String,
    /// Escaped.
    text: String,
    /// Escaped.
    signature: String,
    /// JSON.
    input: String,
    /// JSON objects with commas between them.
    citations: String,
}

impl Fold {
    pub(super) fn held_bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn event(&mut self, name: &str, data: &str) {
        let own = |name| member(data, name).unwrap_or("{}").to_owned();
        self.bytes = self.bytes.saturating_add(data.len());
        match name {
            "message_start" => self.head = own("message"),
            "content_block_start" => {
                self.blocks.push(Folded { start: own("content_block"), ..Folded::default() });
            }
            "content_block_delta" => {
                if let (Some(block), Some(delta)) = (self.blocks.last_mut(), member(data, "delta"))
                {
                    block.take(delta);
                }
            }
            "message_delta" => {
                self.delta = own("delta");
                // Of the message, too, though it stands beside the rest.
                if let Some(context) = member(data, "context_management") {
                    self.delta = with(&self.delta, &[("context_management", context)]);
                }
                self.usage = own("usage");
            }
            _ => {}
        }
    }

    /// The message that the events add up to.
    pub(super) fn write(&self, warnings: &mut Warnings, out: &mut Vec<u8>) {
        let cut_off = text(&self.delta, "stop_reason").is_some_and(|word| word == "max_tokens");
        let mut json = Writer::new(out);
        json.begin_object();
        copy(&self.head, &mut json, |key| {
            key != "content" && key != "usage" && !has(&self.delta, key)
        });
        json.key("content").begin_array();
        for block in &self.blocks {
            block.write(cut_off, warnings, &mut json);
        }
        json.end_array();
        copy(&self.delta, &mut json, |_| true);
        json.key("usage").begin_object();
        if let Some(first) = member(&self.head, "usage") {
            // Counts of the end are totals; what they leave open stays as it was at the start.
            copy(first, &mut json, |key| member(&self.usage, key).is_none());
        }
        let first = member(&self.head, "usage").unwrap_or_default();
        copy(&self.usage, &mut json, |key| member(&self.usage, key).is_some() || !has(first, key));
        json.end_object().end_object();
    }
}

impl Folded {
    fn take(&mut self, delta: &str) {
        if let Some(text) = text(delta, "text").or_else(|| text(delta, "thinking")) {
            self.text.push_str(text.raw());
        } else if let Some(text) = text(delta, "partial_json") {
            json::unescape(&mut self.input, text.raw());
        } else if let Some(signature) = text(delta, "signature") {
            signature.raw().clone_into(&mut self.signature);
        } else if let Some(citation) = member(delta, "citation") {
            self.citations.push_str(if self.citations.is_empty() { "" } else { "," });
            self.citations.push_str(citation);
        } else if text(delta, "type").is_some_and(|kind| kind == "compaction_delta") {
            // There is one, with all of it.
            let told = |name| (name, member(delta, name).unwrap_or("null"));
            self.start = with(&self.start, &[told("content"), told("encrypted_content")]);
        }
    }

    fn write(&self, cut_off: bool, warnings: &mut Warnings, json: &mut Writer<'_>) {
        let valid = Reader::of(&self.input).is_object();
        if !self.input.is_empty() && !valid && cut_off {
            // A call that nobody can run.
            return warnings.add("tool_call_cut_off");
        }
        let thinks = text(&self.start, "type").is_some_and(|kind| kind == "thinking");
        let field = if thinks { "thinking" } else { "text" };
        let replaced = |key: &str| match key {
            _ if key == field => !self.text.is_empty(),
            "signature" => !self.signature.is_empty(),
            "input" => !self.input.is_empty(),
            "citations" => !self.citations.is_empty(),
            _ => false,
        };
        json.begin_object();
        copy(&self.start, json, |key| !replaced(key));
        for (key, raw) in [(field, &self.text), ("signature", &self.signature)] {
            if !raw.is_empty() {
                let quoted = format!("\"{raw}\"");
                if let Some(text) = string(&quoted) {
                    json.key(key).str(text);
                }
            }
        }
        if valid {
            json.key("input").value();
            json::compact(json.out(), self.input.trim());
        } else if !self.input.is_empty() {
            warnings.add("tool_input_invalid");
            json.key("input").begin_object().key("INVALID_JSON").text(&self.input).end_object();
        }
        if !self.citations.is_empty() {
            json.key("citations").begin_array();
            for citation in elements(member(&self.start, "citations").unwrap_or("[]")) {
                json.raw(citation);
            }
            json.raw(&self.citations).end_array();
        }
        json.end_object();
    }
}
