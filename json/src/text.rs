//! JSON strings with the escapes that their sender wrote.

use std::borrow::Cow;
use std::fmt;

use crate::scan::{code_point_escape, code_unit, find_pair, is_short_escape};

/// Inside of a JSON string: the bytes between the quotes, with escapes.
///
/// The text was validated when it was read, so it can be copied into another JSON string unchanged.
#[derive(Clone, Copy, Default, Hash)]
pub struct Str<'a> {
    raw: &'a str,
    /// Number of bytes that decoding would save. Every escape is longer than its character, so 0
    /// means that there is no escape.
    saved: u32,
}

impl<'a> Str<'a> {
    pub(crate) fn new(raw: &'a str, saved: u32) -> Self {
        Self { raw, saved }
    }

    /// Wraps a text that needs no escaping, such as a constant. The caller must ensure that.
    #[must_use]
    pub const fn plain(text: &'a str) -> Self {
        Self { raw: text, saved: 0 }
    }

    /// Wraps a part of the inside of a JSON string. Returns `None` if the part was cut in the
    /// middle of an escape.
    #[must_use]
    pub fn inside(raw: &'a str) -> Option<Self> {
        let (mut rest, mut saved) = (raw, 0u32);
        while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
            let escape = rest.get(at..)?;
            let (read, spared) = match escape.as_bytes().get(1) {
                Some(&code) if is_short_escape(code) => (2, 1),
                _ => code_point_escape(escape).map(|(read, spared, _)| (read, spared))?,
            };
            rest = escape.get(read..)?;
            saved = saved.wrapping_add(spared);
        }
        Some(Self { raw, saved })
    }

    /// Returns the text between the quotes, with its escapes.
    #[must_use]
    pub fn raw(&self) -> &'a str {
        self.raw
    }

    /// Returns the length of the decoded text in bytes, without decoding the text.
    #[must_use]
    pub fn decoded_len(&self) -> usize {
        self.raw.len().saturating_sub(self.saved as usize)
    }

    /// Returns true if the text contains an escape.
    #[must_use]
    pub fn is_escaped(&self) -> bool {
        self.saved > 0
    }

    /// Returns the part of the text after the first `at` raw bytes, which must not end within an
    /// escape.
    #[must_use]
    pub fn after(&self, at: usize) -> Self {
        self.raw.get(at..).and_then(Self::inside).unwrap_or_default()
    }

    /// Returns true if the text has no characters.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    /// Returns true if the text is empty or nothing but white space.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        match self.raw.bytes().find(|byte| *byte != b' ') {
            None => true,
            // The first character decides for most texts.
            Some(byte) if byte.is_ascii_graphic() && byte != b'\\' => false,
            // An escape or a character beyond ASCII may be white space.
            Some(_) => self.decode().chars().all(char::is_whitespace),
        }
    }

    /// Returns the decoded text. An unpaired surrogate becomes U+FFFD.
    #[must_use]
    pub fn decode(&self) -> Cow<'a, str> {
        if !self.is_escaped() {
            return Cow::Borrowed(self.raw);
        }
        let mut text = String::with_capacity(self.decoded_len());
        unescape(&mut text, self.raw);
        Cow::Owned(text)
    }
}

/// Decodes `raw`, the inside of a JSON string, and appends the result to `text`. An unpaired
/// surrogate becomes U+FFFD.
pub fn unescape(text: &mut String, raw: &str) {
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        let (plain, escape) = rest.split_at_checked(at).unwrap_or((rest, ""));
        text.push_str(plain);
        let mut chars = escape.get(1..).unwrap_or_default().chars();
        let Some(code) = chars.next() else { return };
        rest = chars.as_str();
        text.push(match code {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let mut point = code_unit(rest);
                rest = rest.get(4..).unwrap_or_default();
                let low = rest.strip_prefix("\\u").map(code_unit);
                if let (0xd800..0xdc00, Some(low @ 0xdc00..0xe000)) = (point, low) {
                    rest = rest.get(6..).unwrap_or_default();
                    point = (((point & 0x3ff) << 10) | (low & 0x3ff)).saturating_add(0x10000);
                }
                char::from_u32(point).unwrap_or('\u{fffd}')
            }
            other => other,
        });
    }
    text.push_str(rest);
}

impl PartialEq<str> for Str<'_> {
    fn eq(&self, other: &str) -> bool {
        if self.is_escaped() { self.decode() == other } else { self.raw == other }
    }
}

impl PartialEq<&str> for Str<'_> {
    fn eq(&self, other: &&str) -> bool {
        *self == **other
    }
}

/// Equality of the decoded texts, however the texts are escaped.
impl PartialEq for Str<'_> {
    fn eq(&self, other: &Self) -> bool {
        if self.is_escaped() || other.is_escaped() {
            self.decode() == other.decode()
        } else {
            self.raw == other.raw
        }
    }
}

impl Eq for Str<'_> {}

impl fmt::Debug for Str<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.raw)
    }
}

/// Escapes of white-space characters, as senders write them.
const SPACES: [&str; 3] = ["\\n", "\\r", "\\t"];

/// Returns `raw`, the inside of a JSON string, without leading white space.
#[must_use]
pub fn trim_start_raw(raw: &str) -> &str {
    let mut rest = raw.trim_start();
    while let Some(after) = SPACES.iter().find_map(|space| rest.strip_prefix(space)) {
        rest = after.trim_start();
    }
    rest
}

/// Returns `raw`, the inside of a JSON string, without trailing white space.
#[must_use]
pub fn trim_end_raw(raw: &str) -> &str {
    let mut rest = raw.trim_end();
    while let Some(before) = SPACES.iter().find_map(|space| rest.strip_suffix(space)) {
        // `\\n` is an escaped backslash and the letter `n`.
        if escapes(before) {
            break;
        }
        rest = before.trim_end();
    }
    rest
}

/// Returns true if `raw` ends with a backslash that escapes the next character, and is not escaped
/// itself.
fn escapes(raw: &str) -> bool {
    raw.bytes().rev().take_while(|&byte| byte == b'\\').count() % 2 == 1
}

/// Returns the number of bytes at the end of `raw` that must wait for the next chunk of the same
/// text: the escape of the first half of a surrogate pair. A server may send the second half in its
/// next delta.
///
/// Clients decode each delta by itself, so the two halves must reach them in the same delta.
#[must_use]
pub fn hold_back(raw: &str) -> usize {
    let Some(tail) = raw.len().checked_sub(6).and_then(|start| raw.get(start..)) else {
        return 0;
    };
    let Some(digits) = tail.strip_prefix("\\u") else { return 0 };
    if !matches!(code_unit(digits), 0xd800..0xdc00) {
        return 0;
    }
    // `\\ud83d` is an escaped backslash and the text `ud83d`.
    let before = raw.len().saturating_sub(6);
    if escapes(raw.get(..before).unwrap_or_default()) { 0 } else { 6 }
}

/// Appends `raw`, a text with escapes, in which each unpaired surrogate becomes U+FFFD, because
/// strict readers refuse a whole document with an unpaired surrogate. Invalid escapes stay as they
/// are.
pub fn push_whole(out: &mut Vec<u8>, raw: &str) {
    let bytes = raw.as_bytes();
    // Most texts have many escapes, but none that could be a surrogate.
    if find_pair(bytes, *b"\\u").is_none() {
        return out.extend_from_slice(bytes);
    }
    let (mut copied, mut at) = (0usize, 0usize);
    while let Some(plain) = memchr::memchr(b'\\', bytes.get(at..).unwrap_or_default()) {
        let slash = at.saturating_add(plain);
        let escape = raw.get(slash..).and_then(code_point_escape);
        let (length, _, is_half) = escape.unwrap_or((2, 0, false));
        at = slash.saturating_add(length);
        if is_half {
            out.extend_from_slice(bytes.get(copied..slash).unwrap_or_default());
            out.extend_from_slice(b"\\ufffd");
            copied = at;
        }
    }
    out.extend_from_slice(bytes.get(copied..).unwrap_or_default());
}

#[cfg(test)]
mod tests;
