//! What the body of an upstream's answer is, by its head and its first and last bytes.

use crate::answer::Ending;
use crate::headers::{Header, Headers};
use crate::text::words::BYTE_ORDER_MARK;

/// Whether a body is not compressed. Some of the words for no encoding at all: `none` is set on purpose against
/// compression (Next.js).
pub(super) fn has_plain_body(headers: &[Header]) -> bool {
    let encoding = headers.value("content-encoding").unwrap_or_default().trim();
    ["", "identity", "none", "utf-8", "utf8"].iter().any(|it| encoding.eq_ignore_ascii_case(it))
}

/// A bracket may be the end of a whole answer. Only a timeout reads the body to be sure, so that an
/// answer that ends by itself is read once. A piece of white space says nothing.
pub(super) fn ending_of(piece: &[u8]) -> Option<Ending> {
    match piece.trim_ascii_end().last()? {
        b'}' | b']' | b'"' => Some(Ending::Sure),
        _ => Some(Ending::Open),
    }
}

/// The first byte of a body that says something: after a byte order mark and white space. `None`
/// while that is not known.
pub(super) fn first_of_body(seen: &[u8]) -> Option<u8> {
    let rest = match seen.strip_prefix(BYTE_ORDER_MARK) {
        Some(rest) => rest,
        None if BYTE_ORDER_MARK.starts_with(seen) => return None,
        None => seen,
    };
    first_of(rest)
}

/// The first byte that is no white space.
pub(super) fn first_of(text: &[u8]) -> Option<u8> {
    text.iter().copied().find(|byte| !byte.is_ascii_whitespace())
}

/// Whether a body that begins so is one text, and no stream of events.
pub(super) fn is_whole(first: u8) -> bool {
    matches!(first, b'{' | b'[' | b'<' | b'"')
}
