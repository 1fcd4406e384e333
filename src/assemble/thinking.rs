//! Thinking block: its text, and the data that its signature carries back to the upstream.

use crate::carry::signature::{Fnv, Signature, SignatureField};
use crate::json;
use crate::model::reasoning::Detail;

/// Thinking block, while its parts arrive.
#[derive(Debug)]
pub(super) struct ThinkingBlock {
    /// True if the client sees the block's text. Otherwise the block's signature carries the text.
    shown: bool,
    /// Unsent text of the block, escaped; the whole text if the block is not shown.
    pending: String,
    /// True if some of the block's text is more than white space.
    has_text: bool,
    hash: Fnv,
    field: SignatureField,
    /// Reasoning items of `reasoning_details` and `thinking_blocks`. Fragments of a reasoning item,
    /// as the stream cut them, are joined.
    details: Vec<ReasoningItem>,
    /// Reasoning items of the Responses API, unchanged. Each has the number of texts that came
    /// between the reasoning item and this block; the items hold the whole reasoning.
    items: Vec<(String, u32)>,
    /// True while a text between the reasoning items and this thinking block is still open.
    is_in_text: bool,
    /// True if later reasoning belongs to another block.
    is_over: bool,
    /// Upstream's signatures of calls, each with the call's position.
    calls: Vec<(usize, String)>,
    /// Inputs of calls, each with the client's id of the call.
    call_inputs: Vec<(String, String)>,
}

/// Reasoning item of `reasoning_details` or `thinking_blocks`.
#[derive(Debug)]
struct ReasoningItem {
    kind: String,
    index: Option<u64>,
    /// Name of the reasoning item's text member (`text`, `summary` or `thinking`), and the text so
    /// far, escaped.
    text: Option<(&'static str, String)>,
    signature: Option<String>,
    /// First fragment of the reasoning item, sent back unchanged if no other fragment was joined to
    /// it.
    raw: String,
    joined: bool,
}

impl ThinkingBlock {
    pub(super) fn new(field: SignatureField, shown: bool) -> Self {
        Self {
            shown,
            pending: String::new(),
            has_text: false,
            hash: Fnv::new(),
            field,
            details: Vec::new(),
            items: Vec::new(),
            is_in_text: false,
            is_over: false,
            calls: Vec::new(),
            call_inputs: Vec::new(),
        }
    }

    /// Adds text to the block; `raw` is escaped.
    pub(super) fn push(&mut self, raw: &str, is_blank: bool) {
        self.has_text |= !is_blank;
        self.pending.push_str(raw);
    }

    /// Returns the text of the block that has not been sent, escaped.
    pub(super) fn pending(&self) -> &str {
        &self.pending
    }

    /// Removes and returns the text of the block that can be sent; see [`take_ready`].
    pub(super) fn take_ready(&mut self, is_over: bool) -> String {
        take_ready(&mut self.pending, is_over)
    }

    /// Adds a reasoning item that the block's signature carries, unchanged.
    pub(super) fn carry_item(&mut self, item: String) {
        self.items.push((item, 0));
    }

    /// Records that text comes between the reasoning items and this block; each text counts once.
    pub(super) fn note_text(&mut self) {
        if !self.is_in_text {
            self.is_in_text = true;
            self.items.iter_mut().for_each(|(_, texts)| *texts = texts.saturating_add(1));
        }
    }

    /// Records that the text between the reasoning items and this block is over.
    pub(super) fn end_text(&mut self) {
        self.is_in_text = false;
    }

    /// Ends the thinking block: later reasoning belongs to another block.
    pub(super) fn end(&mut self) {
        self.is_over = true;
    }

    /// Returns true if the block is over, and later reasoning belongs to another block.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Adds the upstream's signature of the call at this position, for the block to carry.
    pub(super) fn carry(&mut self, call: usize, signature: String) {
        self.calls.push((call, signature));
    }

    /// Removes and returns the signatures of calls, each with the call's position.
    pub(super) fn take_carried(&mut self) -> Vec<(usize, String)> {
        std::mem::take(&mut self.calls)
    }

    /// Sets the inputs of calls for the block to carry, each with the client's id of the call.
    pub(super) fn carry_inputs(&mut self, inputs: Vec<(String, String)>) {
        self.call_inputs = inputs;
    }

    pub(super) fn set_field(&mut self, field: SignatureField) {
        self.field = field;
    }

    /// Returns true if the block has text, even if that text is not shown.
    pub(super) fn has_text(&self) -> bool {
        self.has_text
    }

    /// Returns true if the upstream needs data of the block back, in addition to text.
    pub(super) fn has_records(&self) -> bool {
        !self.items.is_empty()
            || self.details.iter().any(ReasoningItem::counts)
            || !self.calls.is_empty()
    }

    /// Returns true if the block holds reasoning items that a model signed. Other models refuse
    /// them.
    pub(super) fn is_signed(&self) -> bool {
        !self.items.is_empty() || self.details.iter().any(|item| item.is_block() && item.counts())
    }

    pub(super) fn is_shown(&self) -> bool {
        self.shown
    }

    /// Counts text as shown to the client. `scratch` is only reused memory.
    pub(super) fn show(&mut self, raw: &str, scratch: &mut String) {
        scratch.clear();
        json::unescape(scratch, raw);
        self.hash.update(scratch.as_bytes());
    }

    /// Adds a reasoning item, or joins it to the last reasoning item of the same kind.
    pub(super) fn push_detail(&mut self, detail: &Detail<'_>) {
        let kind = detail.kind.map_or("", |kind| kind.raw());
        let name = match kind {
            "reasoning.text" => "text",
            "reasoning.summary" => "summary",
            "thinking" => "thinking",
            _ if detail.data.is_none() && detail.text.is_none() && detail.signature.is_none() => {
                return;
            }
            _ => "",
        };
        let signature = detail.signature.map(|signature| signature.raw().to_owned());
        let text = detail.text.map_or("", |text| text.raw());
        // Items of `reasoning_details` and of `thinking_blocks` can alternate.
        let last = self.details.iter_mut().rev().take(2).find(|item| item.kind == kind);
        if let Some(last) = last
            && last.index == detail.index
            // A signature ends a block of `thinking_blocks`.
            && (name != "thinking" || last.signature.is_none())
            && let Some((_, before)) = &mut last.text
        {
            before.push_str(text);
            last.signature = signature.or_else(|| last.signature.take());
            last.joined = true;
            return;
        }
        self.details.push(ReasoningItem {
            kind: kind.to_owned(),
            index: detail.index,
            text: (!name.is_empty()).then(|| (name, text.to_owned())),
            signature,
            raw: detail.raw.to_owned(),
            joined: false,
        });
    }

    /// Returns the signature of the complete thinking block. `upstream`: the mark of the upstream,
    /// for which the signature is valid. `call_signatures`: the signatures of calls, by the
    /// client's ids.
    pub(super) fn signature(
        &mut self,
        upstream: &str,
        call_signatures: Vec<(String, String)>,
    ) -> Signature {
        let is_told = self.shown || !self.items.is_empty();
        let full_text = (!is_told && !self.pending.is_empty()).then(|| {
            let mut text = String::with_capacity(self.pending.len());
            json::unescape(&mut text, &self.pending);
            text
        });
        Signature {
            field: self.field,
            hash: self.hash.finish(),
            joined: Vec::new(),
            full_text,
            opaque: self.opaque(),
            call_signatures,
            upstream: upstream.to_owned(),
            call_inputs: std::mem::take(&mut self.call_inputs),
        }
    }

    fn opaque(&self) -> Option<String> {
        if !self.items.is_empty() {
            let items = self.items.iter().map(|(item, texts)| match texts {
                0 => item.clone(),
                texts => format!("{texts},{item}"),
            });
            return Some(format!("[{}]", items.collect::<Vec<_>>().join(",")));
        }
        let mut items = self.details.iter().filter(|item| item.counts()).peekable();
        items.peek()?;
        let mut out = b"[".to_vec();
        for item in items {
            if out.len() > 1 {
                out.push(b',');
            }
            item.write(&mut out);
        }
        out.push(b']');
        String::from_utf8(out).ok()
    }
}

/// Removes and returns the part of `pending` that can be sent. If more may follow (`is_over` is
/// false), half of a surrogate pair stays.
pub(super) fn take_ready(pending: &mut String, is_over: bool) -> String {
    // Most texts are sent at once, so that nothing is pending.
    if pending.is_empty() {
        return String::new();
    }
    let half = if is_over { 0 } else { json::hold_back(pending) };
    let rest = pending.split_off(pending.len().saturating_sub(half));
    std::mem::replace(pending, rest)
}

impl ReasoningItem {
    /// Returns true if the reasoning item is a thinking block of the Messages API.
    fn is_block(&self) -> bool {
        matches!(&*self.kind, "thinking" | "redacted_thinking")
    }

    /// Returns true if the upstream wants the reasoning item back. Items of the kind `thinking` are
    /// wanted only if they are signed.
    fn counts(&self) -> bool {
        self.kind != "thinking" || self.signature.is_some()
    }

    fn write(&self, out: &mut Vec<u8>) {
        let Some((name, text)) = self.text.as_ref().filter(|_| self.joined) else {
            return json::compact(out, &self.raw);
        };
        // The members of a reasoning item's first fragment are copied, with the text and signature
        // of all its fragments.
        let mut reader = json::Reader::of(&self.raw);
        let mut json = json::Writer::new(out);
        json.out().push(b'{');
        let copied = reader.begin_object().is_ok();
        while copied && let Ok(Some(key)) = reader.next_key() {
            let Ok(value) = reader.skip() else { break };
            if key.raw() == *name || key.raw() == "signature" {
                continue;
            }
            json.key_str(key);
            json::compact(json.out(), value);
        }
        json.key(name).string(|out| out.extend_from_slice(text.as_bytes()));
        if let Some(signature) = &self.signature {
            json.key("signature").string(|out| out.extend_from_slice(signature.as_bytes()));
        }
        json.end_object();
    }
}

#[cfg(test)]
mod tests;
