//! JSON writer that appends directly to a buffer.

use crate::scan::copy_plain;
use crate::{Reader, Str};

/// Writer of one JSON text, without a tree of values in memory.
///
/// Commas need no state: one is due unless the text so far ends in an opening bracket or a colon.
///
/// ```
/// let mut out = Vec::new();
/// let mut json = creole_json::Writer::new(&mut out);
/// json.begin_object();
/// json.key("a").begin_array();
/// json.u64(1);
/// json.text("say \"hi\"");
/// json.end_array();
/// json.key("b").raw("{\"x\":1.10}");
/// json.end_object();
/// assert_eq!(out, br#"{"a":[1,"say \"hi\""],"b":{"x":1.10}}"#);
/// ```
#[derive(Debug)]
pub struct Writer<'o> {
    out: &'o mut Vec<u8>,
}

impl<'o> Writer<'o> {
    /// Creates a writer that starts a JSON text at the end of `out`.
    pub fn new(out: &'o mut Vec<u8>) -> Self {
        Self { out }
    }

    /// Returns the buffer, for a caller that writes a value byte by byte. [`Writer::value`] must be
    /// called first.
    pub fn out(&mut self) -> &mut Vec<u8> {
        self.out
    }

    /// Reserves capacity while a long list is written. The buffer grows by an eighth instead of
    /// doubling, since a rewritten text is usually only slightly longer than before.
    pub fn make_room(&mut self) {
        const STEP: usize = 4096;
        if self.out.capacity().saturating_sub(self.out.len()) < STEP {
            self.out.reserve_exact(STEP.max(self.out.len() / 8));
        }
    }

    /// Writes the comma that is due before a value or key. After white space no comma is due: the
    /// writer emits no white space, so the JSON text begins there (as after `data: `).
    pub fn value(&mut self) -> &mut Self {
        if !matches!(self.out.last(), None | Some(b'{' | b'[' | b':' | b' ' | b'\n')) {
            self.out.push(b',');
        }
        self
    }

    /// Writes the opening `{` of an object.
    pub fn begin_object(&mut self) -> &mut Self {
        self.value().out.push(b'{');
        self
    }

    /// Writes the closing `}` of an object.
    pub fn end_object(&mut self) -> &mut Self {
        self.out.push(b'}');
        self
    }

    /// Writes the opening `[` of an array.
    pub fn begin_array(&mut self) -> &mut Self {
        self.value().out.push(b'[');
        self
    }

    /// Writes the closing `]` of an array.
    pub fn end_array(&mut self) -> &mut Self {
        self.out.push(b']');
        self
    }

    /// Writes the name of a member, which must need no escaping.
    pub fn key(&mut self, key: &'static str) -> &mut Self {
        self.value().out.push(b'"');
        self.out.extend_from_slice(key.as_bytes());
        self.out.extend_from_slice(b"\":");
        self
    }

    /// Writes the name of a member, and escapes it.
    pub fn key_text(&mut self, key: &str) -> &mut Self {
        self.text(key);
        self.out.push(b':');
        self
    }

    /// Writes a string, and escapes the text.
    pub fn text(&mut self, text: &str) -> &mut Self {
        self.value();
        quote(self.out, text);
        self
    }

    /// Writes the member `type`, which many formats and JSON Schema have; `kind` must need no
    /// escaping.
    pub fn kind(&mut self, kind: &'static str) -> &mut Self {
        self.key("type").str(Str::plain(kind))
    }

    /// Writes a string that is already escaped.
    pub fn str(&mut self, text: Str<'_>) -> &mut Self {
        self.value().out.push(b'"');
        self.out.extend_from_slice(text.raw().as_bytes());
        self.out.push(b'"');
        self
    }

    /// Writes a member's name that is already escaped.
    pub fn key_str(&mut self, key: Str<'_>) -> &mut Self {
        self.str(key).out.push(b':');
        self
    }

    /// Writes a string whose contents `write` appends, already escaped.
    pub fn string<T>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        self.value().quote();
        let result = write(self.out);
        self.quote();
        result
    }

    fn quote(&mut self) {
        self.out.push(b'"');
    }

    /// Writes a value that is already JSON.
    pub fn raw(&mut self, json: &str) -> &mut Self {
        self.value().out.extend_from_slice(json.as_bytes());
        self
    }

    /// Writes a non-negative integer.
    pub fn u64(&mut self, number: u64) -> &mut Self {
        self.value();
        push_u64(self.out, number);
        self
    }

    /// Writes `true` or `false`.
    pub fn bool(&mut self, value: bool) -> &mut Self {
        self.raw(if value { "true" } else { "false" })
    }

    /// Writes the value `null`.
    pub fn null(&mut self) -> &mut Self {
        self.raw("null")
    }
}

/// Appends `text` as a JSON string with its quotes.
pub fn quote(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    escape(out, text);
    out.push(b'"');
}

/// Returns the JSON text that the function `write` writes.
#[must_use]
pub fn written(write: impl FnOnce(&mut Writer<'_>)) -> String {
    let mut out = Vec::new();
    write(&mut Writer::new(&mut out));
    into_text(out)
}

/// Returns the text in a buffer that a JSON writer filled.
fn into_text(out: Vec<u8>) -> String {
    let text = String::from_utf8(out);
    debug_assert!(text.is_ok(), "only text is written");
    text.unwrap_or_default()
}

/// Returns `text` in quotes, escaped as in JSON, for a message. No character of the text can end
/// the quotes or the line.
#[must_use]
pub fn quoted(text: &str) -> String {
    let mut out = Vec::new();
    quote(&mut out, text);
    into_text(out)
}

/// Appends `text` as the inside of a JSON string, with escapes.
pub fn escape(out: &mut Vec<u8>, text: &str) {
    let mut rest = text.as_bytes();
    loop {
        let special = copy_plain(out, &mut rest);
        match special {
            Some(byte @ (b'"' | b'\\')) => out.extend_from_slice(&[b'\\', byte]),
            Some(byte) => escape_control(out, byte),
            None => return,
        }
    }
}

/// Returns `text` as the inside of a JSON string, with escapes.
#[must_use]
pub fn escaped(text: &str) -> String {
    let mut raw = Vec::with_capacity(text.len());
    escape(&mut raw, text);
    into_text(raw)
}

#[inline(never)]
fn escape_control(out: &mut Vec<u8>, byte: u8) {
    let short = match byte {
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        _ => {
            const DIGITS: &[u8; 16] = b"0123456789abcdef";
            out.extend_from_slice(b"\\u00");
            for digit in [byte >> 4, byte & 15] {
                out.push(DIGITS.get(usize::from(digit)).copied().unwrap_or(b'0'));
            }
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

/// JSON value as its sender wrote it, with the number of white-space bytes between its tokens,
/// which is 0 for most clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Raw<'a> {
    text: &'a str,
    blanks: usize,
}

impl<'a> Raw<'a> {
    pub(crate) fn new(text: &'a str, blanks: usize) -> Self {
        Self { text, blanks }
    }

    /// Wraps a JSON text that is a complete value.
    #[must_use]
    pub fn of(text: &'a str) -> Self {
        Reader::new(text, u32::MAX).raw().unwrap_or(Self { text, blanks: 0 })
    }

    /// Returns the value as its sender wrote it.
    #[must_use]
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// Returns the number of bytes that [`Raw::compact`] appends.
    #[must_use]
    pub fn compact_len(&self) -> usize {
        self.text.len().saturating_sub(self.blanks)
    }

    /// Appends the JSON value without the white space between its tokens. See [`compact`].
    pub fn compact(&self, out: &mut Vec<u8>) {
        match self.blanks {
            0 => out.extend_from_slice(self.text.as_bytes()),
            _ => compact(out, self.text),
        }
    }

    /// Appends the JSON value without the white space between its tokens, as the inside of a JSON
    /// string. See [`escape_compact`].
    pub fn escape_compact(&self, out: &mut Vec<u8>) {
        match self.blanks {
            0 => escape(out, self.text),
            _ => escape_compact(out, self.text),
        }
    }
}

impl std::ops::Deref for Raw<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        self.text
    }
}

/// Appends a JSON value without the white space between its tokens. Numbers, escapes and the order
/// of keys stay as they are.
pub fn compact(out: &mut Vec<u8>, json: &str) {
    tokens(json, |token| out.extend_from_slice(token.as_bytes()));
}

/// Returns a JSON value without the white space between its tokens, as [`compact`] writes it.
#[must_use]
pub fn compacted(json: &str) -> String {
    let mut out = Vec::with_capacity(json.len());
    compact(&mut out, json);
    into_text(out)
}

/// Appends a JSON value, without the white space between its tokens, as the inside of a JSON
/// string: `{"a": "x"}` becomes `{\"a\":\"x\"}`.
pub fn escape_compact(out: &mut Vec<u8>, json: &str) {
    tokens(json, |token| escape(out, token));
}

/// Calls `each` with the parts of a valid JSON text that are separated by white space. Strings stay
/// whole.
fn tokens(json: &str, mut each: impl FnMut(&str)) {
    let mut rest = json;
    while let Some(at) = rest.find(['"', ' ', '\t', '\n', '\r']) {
        let (before, from) = rest.split_at_checked(at).unwrap_or((rest, ""));
        each(before);
        if from.starts_with('"') {
            let mut reader = Reader::new(from, 1);
            let string =
                reader.string().map_or(from, |_| from.get(..reader.offset()).unwrap_or(from));
            each(string);
            rest = from.get(string.len()..).unwrap_or_default();
        } else {
            rest = from.trim_start_matches([' ', '\t', '\n', '\r']);
        }
    }
    each(rest);
}

/// Appends a non-negative integer in decimal digits.
pub fn push_u64(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

#[cfg(test)]
mod tests;
