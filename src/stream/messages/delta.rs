//! The `content_block_delta` of an upstream that speaks Messages, and those that a client gets for it.

use super::super::text::escaped;
use super::Out;
use super::member::{count, member, string, text, with};
use crate::json::{self, Str};

/// A `content_block_delta`.
#[derive(Debug)]
pub(super) struct Delta<'a> {
    pub(super) index: Option<u64>,
    pub(super) kind: DeltaKind,
    /// Its text; empty for other deltas.
    pub(super) text: Str<'a>,
    /// An input that is not a text.
    pub(super) json: Option<&'a str>,
    /// It has its `type`.
    pub(super) whole: bool,
}

/// What a delta extends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeltaKind {
    Text,
    Thinking,
    Signature,
    Input,
    Other,
}

impl DeltaKind {
    /// `type`, and the member that holds the text.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Text => ("text_delta", "text"),
            Self::Thinking => ("thinking_delta", "thinking"),
            Self::Signature => ("signature_delta", "signature"),
            Self::Input => ("input_json_delta", "partial_json"),
            Self::Other => ("", ""),
        }
    }
}

impl<'a> Delta<'a> {
    pub(super) fn read(data: &'a str) -> Self {
        const KINDS: [DeltaKind; 4] =
            [DeltaKind::Text, DeltaKind::Thinking, DeltaKind::Signature, DeltaKind::Input];
        let delta = member(data, "delta").unwrap_or("{}");
        let named = text(delta, "type");
        let found = match named {
            Some(name) => KINDS.iter().find(|kind| name == kind.words().0),
            None => KINDS.iter().find(|kind| member(delta, kind.words().1).is_some()),
        };
        let kind = *found.unwrap_or(&DeltaKind::Other);
        let value = member(delta, kind.words().1);
        let text = value.and_then(string);
        Self {
            index: count(data, "index"),
            kind,
            json: value.filter(|_| text.is_none()),
            text: text.unwrap_or_default(),
            whole: named.is_some(),
        }
    }

    /// It neither has a type nor anything by which one could be known.
    pub(super) fn says_nothing(&self) -> bool {
        self.kind == DeltaKind::Other && !self.whole
    }

    pub(super) fn is_blank(&self) -> bool {
        self.text.is_blank() && self.json.is_none()
    }

    /// For an estimate of tokens.
    pub(super) fn bytes(&self) -> u64 {
        self.json.map_or_else(|| self.text.raw().len(), str::len) as u64
    }
}

impl Out<'_> {
    /// A delta of ours; none if there is nothing to say. `raw` is escaped.
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
            Some(_) => self.delta(kind, &escaped(text), index),
            // An input can be as long as the answer: it is written in its place at once.
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

    /// More of an input: the deltas that were held back, if they say the same, else one of ours.
    pub(super) fn input(&mut self, held: &[String], is_same: bool, text: &str, index: u64) {
        if !is_same {
            return self.text(DeltaKind::Input, text, index);
        }
        for data in held {
            self.indexed("content_block_delta", data, count(data, "index"), index);
        }
    }

    /// An event, with the client's index in place of the upstream's.
    pub(super) fn indexed(&mut self, name: &str, data: &str, upstream: Option<u64>, index: u64) {
        if upstream == Some(index) {
            return self.event(name, data);
        }
        let index = index.to_string();
        self.event(name, &with(data, &[("index", &index)]));
    }
}
