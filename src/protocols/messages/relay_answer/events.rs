//! Destination of repaired events: the client's stream, or the single message that the client
//! requested.

use super::delta::DeltaKind;
use super::fold::Fold;
use super::member::{count, with};
use crate::json;

/// Destination of repaired events: a [`Fold`] if the client wants one message, else the client's
/// stream.
pub(super) struct Events<'a> {
    fold: Option<&'a mut Fold>,
    out: &'a mut Vec<u8>,
}

impl<'a> Events<'a> {
    pub(super) fn new(fold: Option<&'a mut Fold>, out: &'a mut Vec<u8>) -> Self {
        Self { fold, out }
    }

    pub(super) fn event(&mut self, name: &str, data: &str) {
        if let Some(fold) = &mut self.fold {
            return fold.event(name, data);
        }
        self.out.extend_from_slice(b"event: ");
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\ndata: ");
        if memchr::memchr2(b'\n', b'\r', data.as_bytes()).is_some() {
            json::compact(self.out, data);
        } else {
            self.out.extend_from_slice(data.as_bytes());
        }
        self.out.extend_from_slice(b"\n\n");
    }

    /// Sends a new delta with the text `raw`, which is already escaped. Sends no event for an empty
    /// text.
    pub(super) fn delta(&mut self, kind: DeltaKind, raw: &str, index: u64) {
        if raw.is_empty() {
            return;
        }
        let (name, field) = kind.words();
        let data = format!(
            "{{\"type\":\"content_block_delta\",\"index\":{index},\"delta\":{{\"type\":\"{name}\",\
             \"{field}\":\"{raw}\"}}}}"
        );
        self.event("content_block_delta", &data);
    }

    pub(super) fn text(&mut self, kind: DeltaKind, text: &str, index: u64) {
        match &mut self.fold {
            _ if text.is_empty() => {}
            Some(fold) if kind == DeltaKind::Input => fold.input(text),
            Some(_) => self.delta(kind, &json::escaped(text), index),
            // An input can be as long as the answer, so it is written directly, without a copy.
            None => {
                let (name, field) = kind.words();
                let start = format!(
                    "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":{index},\
                     \"delta\":{{\"type\":\"{name}\",\"{field}\":\""
                );
                self.out.extend_from_slice(start.as_bytes());
                json::escape(self.out, text);
                self.out.extend_from_slice(b"\"}}\n\n");
            }
        }
    }

    /// Sends more of a tool call's input: the deltas `held` if `is_same` says that their text
    /// equals `text`, else a new delta with `text`.
    pub(super) fn input(&mut self, held: &[String], is_same: bool, text: &str, index: u64) {
        if !is_same {
            return self.text(DeltaKind::Input, text, index);
        }
        for data in held {
            self.indexed("content_block_delta", data, count(data, "index"), index);
        }
    }

    /// Sends an event, in which the upstream's index is replaced by the client's index.
    pub(super) fn indexed(&mut self, name: &str, data: &str, upstream: Option<u64>, index: u64) {
        if upstream == Some(index) {
            return self.event(name, data);
        }
        let index = index.to_string();
        self.event(name, &with(data, &[("index", &index)]));
    }
}
