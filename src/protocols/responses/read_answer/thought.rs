//! State of one reasoning item: the text that the client receives, and the item that is sent back
//! in the next request.

use crate::json::{self, Str};
use crate::protocols::responses::wire::{Item, ThoughtKind, write_with};

/// Maximum number of bytes kept of the reasoning texts. A thinking block's signature can hold no
/// more.
const KEPT_BYTES_MAX: usize = 192 << 10;

/// Reasoning item that is being read.
#[derive(Debug, Default)]
pub(super) struct OpenReasoning {
    /// Kind of reasoning text that the client receives: the kind that was received first.
    kind: Option<ThoughtKind>,
    /// Number of the part whose text was sent to the client last.
    last: Option<u64>,
    /// Reasoning texts, JSON-escaped. The texts are needed for servers that never send the complete
    /// item.
    texts: Vec<(ThoughtKind, u64, String)>,
    kept_bytes: usize,
    /// JSON of the complete reasoning item, exactly as received.
    item: Option<String>,
    /// Value of `encrypted_content`, JSON-escaped, if the reasoning item had the member at its
    /// beginning.
    encrypted: Option<String>,
    /// True if the item's thinking block has ended.
    is_over: bool,
    /// True if the reasoning item that is sent back in the next request has the encrypted
    /// reasoning.
    is_carried: bool,
}

impl OpenReasoning {
    /// Adds a reasoning text, or a piece of a text. Returns whether the client receives the text,
    /// and whether a blank line must be inserted before the text.
    pub(super) fn take(&mut self, kind: ThoughtKind, at: u64, text: Str<'_>) -> (bool, bool) {
        self.keep(kind, at, text);
        let is_shown = *self.kind.get_or_insert(kind) == kind;
        // Only the parts of a summary are separated by a blank line.
        let begins_part =
            is_shown && kind == ThoughtKind::Summary && self.last.is_some_and(|last| last != at);
        if is_shown {
            self.last = Some(at);
        }
        (is_shown, begins_part)
    }

    fn keep(&mut self, kind: ThoughtKind, at: u64, text: Str<'_>) {
        self.kept_bytes = self.kept_bytes.saturating_add(text.raw().len()).saturating_add(8);
        if self.kept_bytes > KEPT_BYTES_MAX {
            self.texts.clear();
            return;
        }
        match self.texts.last_mut() {
            Some((last_kind, last, before)) if (*last_kind, *last) == (kind, at) => {
                before.push_str(text.raw());
            }
            _ => self.texts.push((kind, at, text.raw().to_owned())),
        }
    }

    /// Returns the number of bytes of reasoning kept in memory.
    pub(super) fn held_bytes(&self) -> usize {
        let texts = if self.kept_bytes > KEPT_BYTES_MAX { 0 } else { self.kept_bytes };
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        texts.saturating_add(length(&self.item)).saturating_add(length(&self.encrypted))
    }

    /// Stores the encrypted reasoning of a reasoning item that begins. Some servers send the
    /// encrypted reasoning only at the item's beginning.
    pub(super) fn keep_encrypted(&mut self, encrypted: Str<'_>) {
        self.encrypted = Some(encrypted.raw().to_owned());
    }

    /// Returns true if the reasoning item had encrypted reasoning at its beginning.
    pub(super) fn has_encrypted(&self) -> bool {
        self.encrypted.is_some()
    }

    /// Stores the completed reasoning item. If that item has no encrypted reasoning, the encrypted
    /// reasoning received at the item's beginning is added.
    pub(super) fn keep_item(&mut self, item: &Item<'_>) {
        let encrypted = self.encrypted.as_deref().filter(|_| item.encrypted.is_none());
        self.is_carried = encrypted.is_some() || item.encrypted.is_some();
        self.item = Some(match encrypted.and_then(Str::inside) {
            Some(encrypted) => {
                let mut out = Vec::new();
                let json = &mut json::Writer::new(&mut out);
                write_with(item.raw, "encrypted_content", Some(encrypted), json);
                String::from_utf8(out).unwrap_or_default()
            }
            None => item.raw.to_owned(),
        });
        self.texts = Vec::new();
        self.kept_bytes = 0;
    }

    /// Returns true if the item's thinking block has ended.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Returns true if the reasoning item that is sent back in the next request has the encrypted
    /// reasoning.
    pub(super) fn is_carried(&self) -> bool {
        self.is_carried
    }

    /// Ends the thinking block of the reasoning item. Returns the reasoning item for the next
    /// request, as received or composed of the texts, and true if the texts were too long to be
    /// kept.
    pub(super) fn end(&mut self, id: Option<&str>) -> (Option<String>, bool) {
        self.is_over = true;
        if let Some(item) = self.item.take() {
            return (Some(item), false);
        }
        let texts = std::mem::take(&mut self.texts);
        let is_too_long = self.kept_bytes > KEPT_BYTES_MAX;
        let encrypted = self.encrypted.take();
        self.is_carried = encrypted.is_some();
        (compose(id, &texts, encrypted.as_deref().and_then(Str::inside)), is_too_long)
    }

    /// Records that the encrypted reasoning is sent back after all, by the next thinking block with
    /// a reasoning item.
    pub(super) fn set_carried(&mut self) {
        self.is_carried = true;
    }
}

/// Composes the JSON of a reasoning item from reasoning texts.
fn compose(
    id: Option<&str>,
    texts: &[(ThoughtKind, u64, String)],
    encrypted: Option<Str<'_>>,
) -> Option<String> {
    let is_blank = texts.iter().all(|(_, _, text)| json::trim_start_raw(text).is_empty());
    if is_blank && encrypted.is_none() {
        return None;
    }
    let mut out = Vec::new();
    let mut json = json::Writer::new(&mut out);
    json.begin_object().kind("reasoning");
    if let Some(id) = id {
        json.key("id").text(id);
    }
    let list = |json: &mut json::Writer<'_>, wanted: ThoughtKind, name: &'static str| {
        json.begin_array();
        for (_, _, text) in texts.iter().filter(|(kind, _, _)| *kind == wanted) {
            json.value().begin_object().kind(name);
            json.key("text").string(|out| json::push_whole(out, text));
            json.end_object();
        }
        json.end_array();
    };
    json.key("summary");
    list(&mut json, ThoughtKind::Summary, "summary_text");
    if texts.iter().any(|(kind, _, _)| *kind == ThoughtKind::Raw) {
        json.key("content");
        list(&mut json, ThoughtKind::Raw, "reasoning_text");
    }
    if let Some(encrypted) = encrypted {
        json.key("encrypted_content").str(encrypted);
    }
    json.end_object();
    String::from_utf8(out).ok()
}
