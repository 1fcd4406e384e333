//! Writes the reasoning of earlier turns into a request to the model that produced the reasoning.
//!
//! The client keeps the reasoning as a thinking block. The block's signature names the field in
//! which the upstream sent the reasoning.

use crate::carry::signature::{Signature, SignatureField};
use crate::history::thinking::is_required;
use crate::json::{self, Str, Writer, escape};
use crate::model::Block;
use crate::profile::{Profile, ReasoningField, ReasoningHistory};
use crate::text::names::Names;

/// Reasoning of one turn of the assistant.
#[derive(Debug, Default)]
pub(crate) struct TurnReasoning<'a> {
    field: Option<SignatureField>,
    texts: Vec<Shown<'a>>,
    /// JSON arrays of reasoning items in the upstream's own format.
    items: Vec<String>,
    /// Upstream's signatures of tool calls, by the call id that the client knows.
    call_signatures: Names<'static, String>,
}

#[derive(Debug)]
enum Shown<'a> {
    Raw(Str<'a>),
    Decoded(String),
}

impl<'a> TurnReasoning<'a> {
    /// Collects the reasoning of thinking blocks that
    /// [`returned`](crate::history::thinking::returned) selected.
    pub(crate) fn of(blocks: &[Block<'a>]) -> Self {
        let mut reasoning = Self::default();
        let mut own_message = false;
        for block in blocks {
            own_message |= matches!(block, Block::Note);
            let Block::Thinking { thinking, signature } = block else { continue };
            let known = reasoning.texts.len();
            reasoning.add(*thinking, &signature.decode());
            let says = known < reasoning.texts.len();
            if says && std::mem::take(&mut own_message) && known > 0 {
                reasoning.texts.insert(known, Shown::Decoded("\n\n".to_owned()));
            }
        }
        reasoning
    }

    fn add(&mut self, thinking: Str<'a>, signature: &str) {
        let Some(signature) = Signature::decode(signature) else {
            self.texts.push(Shown::Raw(thinking));
            return;
        };
        self.field.get_or_insert(signature.field);
        for (id, signature) in signature.call_signatures {
            self.call_signatures.insert(id, signature);
        }
        match signature.full_text {
            Some(text) => self.texts.push(Shown::Decoded(text)),
            // A blank text consists of the line breaks with which a client joined empty texts.
            None if thinking.is_blank() => {}
            None => self.texts.push(Shown::Raw(thinking)),
        }
        self.items.extend(signature.opaque);
    }

    /// Returns true if the reasoning is written as parts of the message's `content` (Mistral).
    pub(crate) fn is_content(&self, profile: &Profile) -> bool {
        self.field == Some(SignatureField::Parts)
            && !is_required(profile)
            && !(self.texts.is_empty() && self.items.is_empty())
    }

    /// Returns true if the reasoning is written at the start of the message's text, between
    /// `<think>` tags.
    pub(crate) fn is_in_text(&self, profile: &Profile) -> bool {
        self.field == Some(SignatureField::Inline)
            && !is_required(profile)
            && !self.texts.is_empty()
    }

    /// Returns the upstream's signature of the tool call whose id at the client is `client_id`. The
    /// upstream's id of the call is not used: an upstream can use the same id for two calls.
    pub(crate) fn signature_of(&self, client_id: &str) -> Option<&str> {
        self.call_signatures.get(client_id).map(String::as_str)
    }

    /// Writes the members of an assistant message that hold reasoning. `tools`: the message has
    /// tool calls, or the request has tools.
    pub(crate) fn write(&self, profile: &Profile, tools: bool, json: &mut Writer<'_>) {
        let field = self.field.unwrap_or(match profile.reasoning_field {
            ReasoningField::ReasoningContent => SignatureField::ReasoningContent,
            ReasoningField::Reasoning => SignatureField::Reasoning,
        });
        if field != SignatureField::Parts {
            self.write_items("thinking_blocks", is_block, json);
            let is_detail = |item: &str| !is_block(item) && !is_opaque(item);
            self.write_items("reasoning_details", is_detail, json);
            self.write_opaque(json);
            if field == SignatureField::ReasoningDetails
                && !self.items.is_empty()
                && !is_required(profile)
            {
                return;
            }
        }
        let name = match field {
            // Required reasoning is sent in `reasoning_content`, even if another upstream used
            // another field.
            _ if is_required(profile) => SignatureField::ReasoningContent.name(),
            SignatureField::Parts | SignatureField::Marked | SignatureField::Inline => return,
            // OpenRouter accepts `reasoning` if there are no reasoning items.
            SignatureField::ReasoningDetails => SignatureField::Reasoning.name(),
            field => field.name(),
        };
        if self.texts.is_empty() && !(tools && is_required(profile)) {
            return;
        }
        json.key(name).string(|out| {
            let start = out.len();
            self.push_text(out);
            if out.len() == start && profile.reasoning_history == ReasoningHistory::Required {
                out.push(b' ');
            }
        });
    }

    /// Returns true if the text of the reasoning is sent to the upstream.
    fn is_sent(&self, profile: &Profile) -> bool {
        self.field != Some(SignatureField::Marked) || is_required(profile)
    }

    /// Returns the number of bytes of the reasoning text that is sent to the upstream. Texts of the
    /// client are counted with their JSON escapes.
    pub(crate) fn sent_bytes(&self, profile: &Profile) -> usize {
        let length = |text: &Shown<'_>| match text {
            Shown::Raw(text) => text.raw().len(),
            Shown::Decoded(text) => text.len(),
        };
        if !self.is_sent(profile) {
            return 0;
        }
        self.texts.iter().fold(0, |sum, text| length(text).saturating_add(sum))
    }

    /// Returns the reasoning text that is sent to the upstream.
    pub(crate) fn sent_text(&self, profile: &Profile) -> String {
        let mut all = String::new();
        for text in self.texts.iter().filter(|_| self.is_sent(profile)) {
            match text {
                Shown::Raw(text) => all.push_str(&text.decode()),
                Shown::Decoded(text) => all.push_str(text),
            }
        }
        all
    }

    /// Appends the reasoning, between `<think>` tags, as the start of a message's text.
    pub(crate) fn push_in_text(&self, out: &mut Vec<u8>) {
        escape(out, "<think>");
        self.push_text(out);
        escape(out, "</think>\n\n");
    }

    /// Writes the reasoning as parts of the message's `content`.
    pub(crate) fn write_parts(&self, json: &mut Writer<'_>) {
        if !self.items.is_empty() {
            return self.each_item(|item| {
                json.raw(item);
            });
        }
        json.begin_object().kind("thinking");
        json.key("thinking").begin_array().begin_object();
        json.kind("text");
        json.key("text").string(|out| self.push_text(out));
        json.end_object().end_array().end_object();
    }

    /// Writes the list `name` with the reasoning items for which `belongs` returns true. An empty
    /// list is not written.
    fn write_items(&self, name: &'static str, belongs: fn(&str) -> bool, json: &mut Writer<'_>) {
        let mut has_one = false;
        self.each_item(|item| {
            if belongs(item) {
                if !std::mem::replace(&mut has_one, true) {
                    json.key(name).begin_array();
                }
                json.raw(item);
            }
        });
        if has_one {
            json.end_array();
        }
    }

    /// Writes the last reasoning item that is a string as `reasoning_opaque` (GitHub Copilot). A
    /// message has only one `reasoning_opaque`.
    fn write_opaque(&self, json: &mut Writer<'_>) {
        let mut last = String::new();
        self.each_item(|item| {
            if is_opaque(item) {
                item.clone_into(&mut last);
            }
        });
        if !last.is_empty() {
            json.key("reasoning_opaque").raw(&last);
        }
    }

    /// Calls `each` with each reasoning item of all JSON arrays.
    fn each_item(&self, mut each: impl FnMut(&str)) {
        for items in &self.items {
            json::elements(items).for_each(&mut each);
        }
    }

    fn push_text(&self, out: &mut Vec<u8>) {
        for text in &self.texts {
            match text {
                Shown::Raw(text) => out.extend_from_slice(text.raw().as_bytes()),
                Shown::Decoded(text) => escape(out, text),
            }
        }
    }
}

/// Returns true if a reasoning item is a thinking block of the Messages API (LiteLLM).
fn is_block(item: &str) -> bool {
    let kind = json::member(item, "type");
    matches!(kind, Some("\"thinking\"" | "\"redacted_thinking\""))
}

/// Returns true if a reasoning item is a string, the value of a `reasoning_opaque`.
fn is_opaque(item: &str) -> bool {
    item.starts_with('"')
}
