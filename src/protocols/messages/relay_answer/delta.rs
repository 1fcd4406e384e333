//! `content_block_delta` events of an upstream that uses the Messages API.

use super::member::{count, member, string, text};
use crate::json::Str;

/// Parsed `content_block_delta` event.
#[derive(Debug)]
pub(super) struct RelayedDelta<'a> {
    pub(super) index: Option<u64>,
    pub(super) kind: DeltaKind,
    /// Text of the delta; empty if the delta has no text.
    pub(super) text: Str<'a>,
    /// Piece of a tool call's input that is a JSON value instead of a string.
    pub(super) json: Option<&'a str>,
    /// True if the delta has a `type` member.
    pub(super) whole: bool,
}

/// Part of a content block that a delta extends: text, thinking, signature or input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeltaKind {
    Text,
    Thinking,
    Signature,
    Input,
    Other,
}

impl DeltaKind {
    /// Returns the delta's `type`, and the name of the member that contains its text.
    pub(super) fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Text => ("text_delta", "text"),
            Self::Thinking => ("thinking_delta", "thinking"),
            Self::Signature => ("signature_delta", "signature"),
            Self::Input => ("input_json_delta", "partial_json"),
            Self::Other => ("", ""),
        }
    }
}

impl<'a> RelayedDelta<'a> {
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

    /// Returns true if the delta has neither a `type` nor a member that shows its kind.
    pub(super) fn says_nothing(&self) -> bool {
        self.kind == DeltaKind::Other && !self.whole
    }

    pub(super) fn is_blank(&self) -> bool {
        self.text.is_blank() && self.json.is_none()
    }

    /// Returns the length of the delta's text or JSON in bytes, for an estimate of tokens.
    pub(super) fn bytes(&self) -> u64 {
        self.json.map_or_else(|| self.text.raw().len(), str::len) as u64
    }
}
