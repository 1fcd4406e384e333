//! State of one item of reasoning: the text that the client sees, and the item for the next turn.

use crate::json::{self, Str};
use crate::protocols::responses::wire::{Item, ThoughtKind, write_with};

/// Maximum number of bytes that are kept of the texts. A signature holds no more.
const KEPT_BYTES_MAX: usize = 192 << 10;

/// Item of reasoning, while it is read.
#[derive(Debug, Default)]
pub(super) struct Thought {
    /// Kind of text that the client sees: the kind that came first.
    kind: Option<ThoughtKind>,
    /// Place of the last text that the client sees.
    last: Option<u64>,
    /// Texts of the item, escaped, for servers that never send the item.
    texts: Vec<(ThoughtKind, u64, String)>,
    kept_bytes: usize,
    /// JSON text of the item, as it was written.
    item: Option<String>,
    /// `encrypted_content`, escaped, where the item had it at its beginning.
    encrypted: Option<String>,
    /// True once the item's block is over.
    is_over: bool,
    /// True if the item for the next turn has the encrypted reasoning.
    is_carried: bool,
}

impl Thought {
    /// Takes a text, or more of one. Tells whether the client sees it, and whether a blank line is
    /// due before it.
    pub(super) fn take(&mut self, kind: ThoughtKind, at: u64, text: Str<'_>) -> (bool, bool) {
        self.keep(kind, at, text);
        let is_shown = *self.kind.get_or_insert(kind) == kind;
        // Only a summary has parts that stand apart.
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

    /// Returns the number of bytes that are kept.
    pub(super) fn held_bytes(&self) -> usize {
        let texts = if self.kept_bytes > KEPT_BYTES_MAX { 0 } else { self.kept_bytes };
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        texts.saturating_add(length(&self.item)).saturating_add(length(&self.encrypted))
    }

    /// Keeps the encrypted reasoning of an item that begins: some servers send it then, and never
    /// again.
    pub(super) fn keep_encrypted(&mut self, encrypted: Str<'_>) {
        self.encrypted = Some(encrypted.raw().to_owned());
    }

    /// Returns true if the encrypted reasoning came with the beginning of the item.
    pub(super) fn has_encrypted(&self) -> bool {
        self.encrypted.is_some()
    }

    /// Keeps the completed item, with the encrypted reasoning of its beginning if it has none.
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

    /// Returns true if the item's block is over.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Returns true if the item for the next turn has the encrypted reasoning.
    pub(super) fn is_carried(&self) -> bool {
        self.is_carried
    }

    /// Ends the item's block. Returns the item for the next turn, as it was written or composed of
    /// its texts, and whether the texts were too long for that.
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

    /// Notes that the encrypted reasoning is carried after all, behind the item's block.
    pub(super) fn set_carried(&mut self) {
        self.is_carried = true;
    }
}

/// Composes an item of reasoning of these texts.
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
