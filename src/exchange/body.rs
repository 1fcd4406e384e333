//! Kind of an upstream's body (compressed or not, JSON text or stream, complete or not), read from
//! its head and its first and last bytes.

use crate::answer::Ending;
use crate::headers::{Header, Headers};
use crate::text::words::BYTE_ORDER_MARK;

/// Returns true if a body is not compressed. Some of the values mean no encoding at all: `none` is
/// set on purpose against compression (Next.js).
pub(super) fn has_plain_body(headers: &[Header]) -> bool {
    let encoding = headers.value("content-encoding").unwrap_or_default().trim();
    ["", "identity", "none", "utf-8", "utf8"].iter().any(|it| encoding.eq_ignore_ascii_case(it))
}

/// Returns what the last byte of a piece says of the end of a whole answer, or `None` for white
/// space. A bracket may be that end: only a timeout reads the body to be sure, so that an answer
/// that ends by itself is read once.
pub(super) fn ending_of(piece: &[u8]) -> Option<Ending> {
    match piece.trim_ascii_end().last()? {
        b'}' | b']' | b'"' => Some(Ending::Sure),
        _ => Some(Ending::Open),
    }
}

/// Finds the first byte of a body behind a byte order mark and white space. Returns `None` while
/// that byte has not come.
pub(super) fn first_of_body(seen: &[u8]) -> Option<u8> {
    let rest = match seen.strip_prefix(BYTE_ORDER_MARK) {
        Some(rest) => rest,
        None if BYTE_ORDER_MARK.starts_with(seen) => return None,
        None => seen,
    };
    first_of(rest)
}

/// Finds the first byte that is no white space.
pub(super) fn first_of(text: &[u8]) -> Option<u8> {
    text.iter().copied().find(|byte| !byte.is_ascii_whitespace())
}

/// Returns true if a body whose first byte is `first` is one text, and no stream of events.
pub(super) fn is_whole(first: u8) -> bool {
    matches!(first, b'{' | b'[' | b'<' | b'"')
}
