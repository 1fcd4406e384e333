//! Search for words in a text. No function panics at any position, and the searches read blocks of
//! bytes at a time.

use std::borrow::Cow;

use crate::json::find_pair;
use memchr::memchr;

/// Byte order mark, which some clients and servers on Windows write before a text.
pub const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads a body as text, without a byte order mark; `None` if the body is not UTF-8.
#[must_use]
pub fn utf8(body: &[u8]) -> Option<&str> {
    simdutf8::basic::from_utf8(body.strip_prefix(BYTE_ORDER_MARK).unwrap_or(body)).ok()
}

/// Returns a text without byte order marks at its start and without surrounding white space.
#[must_use]
pub fn bare(text: &str) -> &str {
    let mut bare = text;
    while let Some(rest) = bare.strip_prefix('\u{feff}') {
        bare = rest;
    }
    bare.trim()
}

/// Returns the text of a JSON object without surrounding white space. Almost no text has any, which
/// the brackets at its ends show quickly.
#[inline]
#[must_use]
pub fn trim_object(text: &str) -> &str {
    if text.starts_with('{') && text.ends_with('}') { text } else { text.trim() }
}

/// Returns bytes from a client or server as text. Almost all bytes are UTF-8, and checking that is
/// several times faster than replacing invalid bytes.
#[must_use]
pub fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    match simdutf8::basic::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(bytes),
    }
}

/// Returns the number of bytes at the end of `text` that are an incomplete start of `word`.
#[must_use]
pub fn overlap(text: &str, word: &str) -> usize {
    let longest = word.len().saturating_sub(1).min(text.len());
    (1..=longest)
        .rev()
        .find(|&length| {
            word.as_bytes().get(..length).is_some_and(|start| text.as_bytes().ends_with(start))
        })
        .unwrap_or(0)
}

/// Returns the text behind `word` if `text` begins with `word`, which is ASCII, in upper or lower
/// case.
#[must_use]
pub fn after_start<'t>(text: &'t str, word: &str) -> Option<&'t str> {
    let (start, rest) = text.split_at_checked(word.len())?;
    start.eq_ignore_ascii_case(word).then_some(rest)
}

/// Returns true if `text` begins with `word`, which is ASCII, in upper or lower case.
#[must_use]
pub fn begins(text: &str, word: &str) -> bool {
    after_start(text, word).is_some()
}

/// Returns the position of the first `word` in `text`.
///
/// `memchr::memmem` would first build a searcher. That costs 280 instructions for each call, and 4
/// % of a request of 10 kB.
#[must_use]
pub fn find(text: &str, word: &str) -> Option<usize> {
    let (bytes, wanted) = (text.as_bytes(), word.as_bytes());
    // The first bytes of a word are often frequent: quotes, spaces, backslashes. Two bytes together
    // are rarer than one.
    let middle = wanted.len() / 2;
    let pair = match (wanted.get(middle.wrapping_sub(1)), wanted.get(middle)) {
        (Some(left), Some(right)) => [*left, *right],
        (_, Some(letter)) => return memchr(*letter, bytes),
        _ => return Some(0),
    };
    let before = middle.saturating_sub(1);
    let mut from = before;
    loop {
        let at = find_pair(bytes.get(from..)?, pair)?.saturating_add(from);
        let start = at.saturating_sub(before);
        if bytes.get(start..)?.starts_with(wanted) {
            return Some(start);
        }
        from = at.saturating_add(1);
    }
}

/// Returns true if `text` contains `word`.
#[must_use]
pub fn has(text: &str, word: &str) -> bool {
    find(text, word).is_some()
}

/// Returns true if `text` contains this ASCII character.
#[must_use]
pub fn has_byte(text: &str, letter: u8) -> bool {
    memchr(letter, text.as_bytes()).is_some()
}

/// Returns true if `text` contains one of `words`.
#[must_use]
pub fn has_any(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| has(text, word))
}

/// Returns true if `word` is in the list `words`, which is separated by white space.
#[must_use]
pub fn is_among(words: &str, word: &str) -> bool {
    words.split_ascii_whitespace().any(|known| known == word)
}

/// Splits `text` at the first `word`, and returns the text before and after it.
pub fn split_once<'t>(text: &'t str, word: &str) -> Option<(&'t str, &'t str)> {
    let at = find(text, word)?;
    Some((text.get(..at)?, text.get(at.saturating_add(word.len())..)?))
}

/// Returns the part of `text` before the first of these ASCII characters, or all of it.
#[must_use]
pub fn before<'t>(text: &'t str, letters: &[u8]) -> &'t str {
    let end = text.bytes().position(|byte| letters.contains(&byte));
    end.and_then(|end| text.get(..end)).unwrap_or(text)
}

/// Returns `text` without these ASCII characters at its start.
#[must_use]
pub fn trim_start<'t>(text: &'t str, letters: &[u8]) -> &'t str {
    let start = text.bytes().position(|byte| !letters.contains(&byte)).unwrap_or(text.len());
    text.get(start..).unwrap_or(text)
}

/// Returns `text` without these ASCII characters at its end.
#[must_use]
pub fn trim_end<'t>(text: &'t str, letters: &[u8]) -> &'t str {
    let last = text.bytes().rposition(|byte| !letters.contains(&byte));
    text.get(..last.map_or(0, |at| at.saturating_add(1))).unwrap_or(text)
}

/// Splits `text` at the last occurrence of this ASCII character, and returns the text before and
/// after it.
pub(crate) fn rsplit_once(text: &str, letter: u8) -> Option<(&str, &str)> {
    let at = text.bytes().rposition(|byte| byte == letter)?;
    Some((text.get(..at)?, text.get(at.saturating_add(1)..)?))
}

/// Reads two hexadecimal digits, and returns their byte and the bytes that follow.
pub(crate) fn hex_byte(text: &[u8]) -> Option<(u8, &[u8])> {
    let [high, low, rest @ ..] = text else { return None };
    let value = |digit: u8| char::from(digit).to_digit(16);
    Some((u8::try_from(value(*high)? << 4 | value(*low)?).ok()?, rest))
}

/// Returns a part of a URL with percent signs decoded. Invalid escapes stay unchanged.
pub(crate) fn percent_decoded(text: &str) -> Cow<'_, str> {
    if !has_byte(text, b'%') {
        return text.into();
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let escaped = hex_byte(after).filter(|_| first == b'%');
        let (byte, after) = escaped.unwrap_or((first, after));
        bytes.push(byte);
        rest = after;
    }
    String::from_utf8(bytes).map_or_else(|_| text.into(), Cow::Owned)
}

/// Returns the positions of `word` in `text`, from left to right, without overlaps.
pub fn places(text: &str, word: &str) -> impl Iterator<Item = usize> {
    let mut from = 0usize;
    std::iter::from_fn(move || {
        let at = find(text.get(from..)?, word)?.saturating_add(from);
        from = at.saturating_add(word.len().max(1));
        Some(at)
    })
}

/// Returns the positions where `name` stands in `text`, but not as a part of a longer name.
pub fn names(text: &str, name: &str) -> impl Iterator<Item = usize> {
    let goes_on = |byte: Option<&u8>| byte.is_some_and(|byte| is_name_byte(*byte));
    places(text, name).filter(move |at| {
        let before = at.checked_sub(1).and_then(|at| text.as_bytes().get(at));
        !(goes_on(before) || goes_on(text.as_bytes().get(at.saturating_add(name.len()))))
    })
}

/// Returns true if a tool's name or an id may contain this character.
#[must_use]
pub fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// Cuts `text` at `end`, which must not be inside a character.
pub fn truncate(text: &mut String, end: usize) {
    debug_assert!(end >= text.len() || text.is_char_boundary(end), "{end} is inside a character");
    if text.is_char_boundary(end) {
        text.truncate(end);
    }
}

/// Cuts off and returns the end of `text` from `at` on, which must be a character boundary.
#[must_use]
pub fn split_off(text: &mut String, at: usize) -> String {
    debug_assert!(text.is_char_boundary(at), "{at} is no place in the text");
    if text.is_char_boundary(at) { text.split_off(at) } else { String::new() }
}

/// Splits a text at `at`, which must be a character boundary.
#[inline]
#[must_use]
pub(crate) fn split_at(text: &str, at: usize) -> (&str, &str) {
    let parts = text.split_at_checked(at);
    debug_assert!(parts.is_some(), "{at} is no place in the text");
    parts.unwrap_or((text, ""))
}

/// Returns the beginning of a text, at most this number of bytes.
#[must_use]
pub fn beginning(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end = end.saturating_sub(1);
    }
    text.get(..end).unwrap_or_default()
}

/// Returns the end of a text, at most this number of bytes.
#[must_use]
pub(crate) fn end(text: &str, bytes: usize) -> &str {
    let mut start = text.len().saturating_sub(bytes);
    while !text.is_char_boundary(start) {
        start = start.saturating_add(1);
    }
    text.get(start..).unwrap_or_default()
}

/// Returns true if two texts are equal. Eight bytes are compared at a time, because WebAssembly has
/// no instruction for this and the compiler's substitute compares single bytes.
#[inline]
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    let (ones, one_rest) = one.as_bytes().as_chunks::<8>();
    let (others, other_rest) = other.as_bytes().as_chunks::<8>();
    one.len() == other.len()
        && ones
            .iter()
            .zip(others)
            .all(|(one, other)| u64::from_ne_bytes(*one) == u64::from_ne_bytes(*other))
        && one_rest == other_rest
}

#[cfg(test)]
mod tests;
