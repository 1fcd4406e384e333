//! What is asked of each byte of a string: where the next special one is, and what an escape says.

use super::text::code_unit;

/// The escape `\uXXXX` at the start of `text`, or two that are a surrogate pair: how many bytes it
/// has, and by how many it is longer than what it says. `None` if it is none.
#[cold]
pub(super) fn code_point_escape(text: &str) -> Option<(usize, u32)> {
    let unit = escaped_unit(text)?;
    let low = || text.get(6..).and_then(escaped_unit);
    Some(match unit {
        0xd800..0xdc00 if matches!(low(), Some(0xdc00..0xe000)) => (12, 8),
        0..0x80 => (6, 5),
        0x80..0x800 => (6, 4),
        // Half a pair becomes U+FFFD, which has three bytes as well.
        _ => (6, 3),
    })
}

/// The number in the escape at the start of `text`.
fn escaped_unit(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then(|| code_unit(digits))
}

/// The first byte at or after `from` that ends a run of plain string bytes: a quote, a backslash or
/// a control character; the length of `bytes` if there is none.
///
/// Eight bytes at a time: texts and base64 images are most of what Creole reads.
#[inline]
pub(super) fn find_special(bytes: &[u8], from: usize) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let mut at = from;
    while let Some(word) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*word);
        let quote = word ^ (ONES.wrapping_mul(b'"' as u64));
        let slash = word ^ (ONES.wrapping_mul(b'\\' as u64));
        // Each term has the high bit of a byte set where that byte is special. A borrow can set
        // bits too many, but only above the first special byte, and the first one is all we ask.
        let found = (quote.wrapping_sub(ONES) & !quote)
            | (slash.wrapping_sub(ONES) & !slash)
            | (word.wrapping_sub(ONES.wrapping_mul(0x20)) & !word);
        let found = found & HIGH;
        if found != 0 {
            return at.saturating_add((found.trailing_zeros() / 8) as usize);
        }
        at = at.saturating_add(8);
    }
    while let Some(byte) = bytes.get(at) {
        if matches!(byte, b'"' | b'\\' | 0..0x20) {
            return at;
        }
        at = at.saturating_add(1);
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn specials_are_found_wherever_they_are(
            bytes in prop::collection::vec(any::<u8>(), 0..64), from in 0usize..70
        ) {
            let expected = (from..bytes.len())
                .find(|&at| matches!(bytes[at], b'"' | b'\\' | 0..0x20))
                .unwrap_or_else(|| bytes.len().max(from));
            prop_assert_eq!(find_special(&bytes, from), expected);
        }
    }
}
