//! Detection of a response body's kind (compressed or not, JSON text or stream, complete or not)
//! from its head and its first and last bytes.

use crate::answer::Ending;
use crate::headers::{Header, Headers};
use crate::text::words::BYTE_ORDER_MARK;

/// Returns true if a body is not compressed. Values such as `none` mean no encoding at all: Next.js
/// sets `none` to prevent compression.
pub(super) fn has_plain_body(headers: &[Header]) -> bool {
    let encoding = headers.value("content-encoding").unwrap_or_default().trim();
    ["", "identity", "none", "utf-8", "utf8"].iter().any(|it| encoding.eq_ignore_ascii_case(it))
}

/// Returns how likely the last byte of a piece ends a body that is one JSON text, or `None` for
/// white space. A bracket may be the end: only a timeout reads the body to be sure, so that an
/// answer that ends by itself is read once.
pub(super) fn ending_of(piece: &[u8]) -> Option<Ending> {
    match piece.trim_ascii_end().last()? {
        b'}' | b']' | b'"' => Some(Ending::Sure),
        _ => Some(Ending::Open),
    }
}

/// Finds the first byte of a body after a byte order mark and white space. Returns `None` while the
/// byte has not arrived.
pub(super) fn first_of_body(seen: &[u8]) -> Option<u8> {
    let rest = match seen.strip_prefix(BYTE_ORDER_MARK) {
        Some(rest) => rest,
        None if BYTE_ORDER_MARK.starts_with(seen) => return None,
        None => seen,
    };
    first_of(rest)
}

/// Finds the first byte that is not white space.
pub(super) fn first_of(text: &[u8]) -> Option<u8> {
    text.iter().copied().find(|byte| !byte.is_ascii_whitespace())
}

/// Returns true if a body whose first byte is `first` is a single text, not an event stream.
pub(super) fn is_whole(first: u8) -> bool {
    matches!(first, b'{' | b'[' | b'<' | b'"')
}
