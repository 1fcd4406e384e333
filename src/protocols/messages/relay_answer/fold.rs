//! Folding of repaired stream events into one message, for a client that does not want a stream.

use super::member::{copy, elements, member, members, string, text, with};
use crate::json::{self, Reader, Str, Writer};
use crate::observe::warning::Warnings;
use crate::text::names::NameSet;

/// Maximum number of members of a message, of its usage, or of a block that deltas extend. The
/// number is limited because members are searched for by name.
const MEMBERS_MAX: usize = 256;

/// Message for the client, built from the stream events received up to now.
#[derive(Debug, Default)]
pub(super) struct Fold {
    /// Value of the member `message` in the `message_start` event, as JSON.
    head: String,
    blocks: Vec<Folded>,
    /// Value of the member `delta` in the `message_delta` event, as JSON. `usage` has the event's
    /// usage.
    delta: String,
    usage: String,
    /// Number of bytes of all stream events received up to now.
    bytes: usize,
    /// True if the message, its usage, or a block that deltas extend has more than [`MEMBERS_MAX`]
    /// members.
    too_many: bool,
}

/// Content block from a start event, with the additions of its deltas.
#[derive(Debug, Default)]
struct Folded {
    start: String,
    /// Members added by deltas, by name, as JSON. A text lacks its closing quote, because deltas
    /// may extend the text.
    said: Vec<(String, String)>,
    /// Input of the block's tool call, as JSON.
    input: String,
    /// Citations added to the block by deltas, as JSON objects separated by commas.
    citations: String,
}

impl Fold {
    pub(super) fn held_bytes(&self) -> usize {
        self.bytes
    }

    /// Returns true if an object has more members than the limit.
    pub(super) fn has_too_many_members(&self) -> bool {
        self.too_many
    }

    /// Records whether an object has more than [`MEMBERS_MAX`] members.
    fn check(&mut self, object: &str) {
        self.too_many |= members(object).nth(MEMBERS_MAX).is_some();
    }

    /// Adds a piece of JSON text to the input of the last block's tool call.
    pub(super) fn input(&mut self, text: &str) {
        self.bytes = self.bytes.saturating_add(text.len());
        if let Some(block) = self.blocks.last_mut() {
            block.input.push_str(text);
        }
    }

    pub(super) fn event(&mut self, name: &str, data: &str) {
        let own = |name| member(data, name).unwrap_or("{}").to_owned();
        self.bytes = self.bytes.saturating_add(data.len());
        match name {
            "message_start" => {
                self.head = own("message");
                let message = member(data, "message").unwrap_or("{}");
                self.check(message);
                self.check(member(message, "usage").unwrap_or("{}"));
            }
            "content_block_start" => {
                self.blocks.push(Folded { start: own("content_block"), ..Folded::default() });
            }
            "content_block_delta" => {
                if let (Some(block), Some(delta)) = (self.blocks.last_mut(), member(data, "delta"))
                {
                    block.take(delta);
                    self.too_many |= block.said.len() > MEMBERS_MAX;
                }
            }
            "message_delta" => {
                self.delta = own("delta");
                // The member belongs to the message, although it is outside of `delta`.
                if let Some(context) = member(data, "context_management") {
                    self.delta = with(&self.delta, &[("context_management", context)]);
                }
                self.usage = own("usage");
                self.check(member(data, "delta").unwrap_or("{}"));
                self.check(member(data, "usage").unwrap_or("{}"));
            }
            _ => {}
        }
    }

    /// Writes the message that results from all events.
    pub(super) fn write(&self, warnings: &mut Warnings, out: &mut Vec<u8>) {
        let cut_off = text(&self.delta, "stop_reason").is_some_and(|word| word == "max_tokens");
        let mut json = Writer::new(out);
        json.begin_object();
        let at_end = names_of(&self.delta, |_| true);
        copy(&self.head, &mut json, &|key| {
            key != "content" && key != "usage" && !at_end.contains(key)
        });
        json.key("content").begin_array();
        for block in &self.blocks {
            block.write(cut_off, warnings, &mut json);
        }
        json.end_array();
        copy(&self.delta, &mut json, &|_| true);
        json.key("usage").begin_object();
        // Counts at the end are totals; counts missing there keep their values from the start.
        let totals = names_of(&self.usage, |value| value != "null");
        let first = member(&self.head, "usage").unwrap_or_default();
        copy(first, &mut json, &|key| !totals.contains(key));
        let at_start = names_of(first, |_| true);
        copy(&self.usage, &mut json, &|key| totals.contains(key) || !at_start.contains(key));
        json.end_object().end_object();
    }
}

/// Returns the names of the members of a JSON object whose values `counts` accepts.
fn names_of(object: &str, counts: impl Fn(&str) -> bool) -> NameSet<'_> {
    let mut names = NameSet::default();
    for (key, value) in members(object) {
        if counts(value) {
            names.add(key.decode());
        }
    }
    names
}

impl Folded {
    fn take(&mut self, delta: &str) {
        let kind = text(delta, "type").unwrap_or_default().decode();
        let own = match &*kind {
            "input_json_delta" => {
                let text = text(delta, "partial_json").unwrap_or_default();
                return json::unescape(&mut self.input, text.raw());
            }
            "citations_delta" => {
                let Some(citation) = member(delta, "citation") else { return };
                self.citations.push_str(if self.citations.is_empty() { "" } else { "," });
                return self.citations.push_str(citation);
            }
            // Servers exist that use `text` in a thinking delta, or `thinking` in a text delta.
            "text_delta" | "thinking_delta" => {
                let own = kind.strip_suffix("_delta").unwrap_or_default();
                let said = text(delta, own).or_else(|| text(delta, "text"));
                let Some(said) = said.or_else(|| text(delta, "thinking")) else { return };
                return self.say(own, said, false);
            }
            "signature_delta" => Some("signature"),
            _ => None,
        };
        for (key, value) in members(delta) {
            if self.said.len() > MEMBERS_MAX {
                return;
            }
            let key = key.decode();
            if key == "type" || own.is_some_and(|own| key != *own) {
                continue;
            }
            // A compaction or a signature comes in a single delta.
            let replaces = kind == "compaction_delta" || key == "signature";
            match string(value) {
                Some(text) => self.say(&key, text, replaces),
                None if replaces => self.set(&key, value.to_owned()),
                None => {}
            }
        }
    }

    /// Adds `more` to the text of the block's member `key`, or replaces the text if `replaces` is
    /// true.
    fn say(&mut self, key: &str, more: Str<'_>, replaces: bool) {
        if let Some((_, before)) = self.said.iter_mut().find(|(name, _)| name == key)
            && before.starts_with('"')
            && !replaces
        {
            return before.push_str(more.raw());
        }
        let start = text(&self.start, key).filter(|_| !replaces).unwrap_or_default();
        self.set(key, ["\"", start.raw(), more.raw()].concat());
    }

    fn set(&mut self, key: &str, value: String) {
        match self.said.iter_mut().find(|(name, _)| name == key) {
            Some((_, before)) => *before = value,
            None => self.said.push((key.to_owned(), value)),
        }
    }

    fn write(&self, cut_off: bool, warnings: &mut Warnings, json: &mut Writer<'_>) {
        let valid = Reader::of(&self.input).is_object();
        if !self.input.is_empty() && !valid && cut_off {
            // A call with a truncated input cannot be run.
            return warnings.add("tool_call_cut_off");
        }
        let replaced = |key: &str| match key {
            "input" => !self.input.is_empty(),
            "citations" => !self.citations.is_empty(),
            _ => self.said.iter().any(|(name, _)| name == key),
        };
        json.begin_object();
        copy(&self.start, json, &|key| !replaced(key));
        for (key, value) in &self.said {
            let end = if value.starts_with('"') { "\"" } else { "" };
            json.key_text(key).value();
            json::compact(json.out(), &[value, end].concat());
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
