//! Text of an input under one interpretation of its fragments, with the state of its JSON.

use crate::text::json_scan::Scanner;

/// Text that arrives in fragments, with the state of its JSON.
#[derive(Clone, Debug, Default)]
pub(super) struct FragmentReading {
    pub(super) text: String,
    pub(super) scan: Scanner,
    pub(super) head: Beginning,
}

/// First bytes of a text, leaving out white space: a model can write any amount of white space.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Beginning {
    bytes: [u8; Self::BYTES_MAX],
    len: usize,
}

impl Beginning {
    /// Number of bytes kept: one more than the longest text that means an empty input (`null`).
    const BYTES_MAX: usize = 5;

    pub(super) fn of(text: &str) -> Self {
        let mut head = Self::default();
        head.push(text);
        head
    }

    fn push(&mut self, text: &str) {
        let room = self.bytes.iter_mut().skip(self.len);
        for (slot, byte) in room.zip(text.bytes().filter(|byte| !byte.is_ascii_whitespace())) {
            *slot = byte;
            self.len = self.len.saturating_add(1);
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    /// Returns true if the text means an empty input, such as `{}`, `null` or an empty list, which
    /// some servers write.
    pub(super) fn is_nothing(&self) -> bool {
        matches!(self.bytes(), b"null" | b"[]")
    }
}

impl FragmentReading {
    pub(super) fn of(text: &str) -> Self {
        let mut reading = Self::default();
        reading.push(text);
        reading
    }

    pub(super) fn push(&mut self, text: &str) {
        self.scan.feed(text);
        self.push_unread(text);
    }

    /// Adds text without scanning it as JSON.
    pub(super) fn push_unread(&mut self, text: &str) {
        self.head.push(text);
        self.text.push_str(text);
    }

    /// Adds the part of `text` that belongs to the JSON value, and returns the text behind it.
    pub(super) fn push_value<'t>(&mut self, text: &'t str) -> &'t str {
        let (value, behind) =
            text.split_at_checked(self.scan.feed_value(text)).unwrap_or((text, ""));
        self.push_unread(value);
        behind
    }

    /// Returns true if the text is an incomplete object.
    pub(super) fn is_half(&self) -> bool {
        self.scan.starts_object() && !self.scan.is_broken() && !self.scan.is_object()
    }

    /// Returns true if the text is `{}`, or only `{`.
    pub(super) fn may_be_placeholder(&self) -> bool {
        matches!(self.head.bytes(), b"{" | b"{}")
    }

    pub(super) fn is_placeholder(&self) -> bool {
        self.scan.is_object() && self.head.bytes() == b"{}"
    }
}
