//! What is asked of each byte of a string: where the next special one is, and what an escape says.

use crate::text::code_unit;
use block::{BITS_EACH, BLOCK, Bits, special_in};

/// The escape `\uXXXX` at the start of `text`, or two that are a surrogate pair: how many bytes it
/// has, by how many it is longer than what it says, and whether it is half a pair. `None` if it is
/// none.
#[cold]
pub(crate) fn code_point_escape(text: &str) -> Option<(usize, u32, bool)> {
    let unit = escaped_unit(text)?;
    let low = || text.get(6..).and_then(escaped_unit);
    Some(match unit {
        0xd800..0xdc00 if matches!(low(), Some(0xdc00..0xe000)) => (12, 8, false),
        0..0x80 => (6, 5, false),
        0x80..0x800 => (6, 4, false),
        // Half a pair becomes U+FFFD, which has three bytes as well.
        _ => (6, 3, matches!(unit, 0xd800..0xe000)),
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
/// Texts and base64 images are most of what Creole reads. Runs are often short, so a few blocks come one by
/// one; what is longer goes by four at a time.
#[inline(always)]
pub(crate) fn find_special(bytes: &[u8], from: usize) -> usize {
    let Some(rest) = bytes.get(from..) else { return from };
    let near = rest.get(..NEAR_BYTES).unwrap_or(rest);
    let mut left = near;
    while let Some((block, after)) = left.split_first_chunk() {
        let found = special_in(block);
        if found != 0 {
            let before = near.len().wrapping_sub(left.len()).wrapping_add(from);
            return before.wrapping_add(first_in(found));
        }
        left = after;
    }
    find_far(bytes, near.len().wrapping_sub(left.len()).wrapping_add(from))
}

/// How far it goes block by block.
const NEAR_BYTES: usize = 64;

/// The same, by four blocks at a time.
#[inline(never)]
fn find_far(bytes: &[u8], from: usize) -> usize {
    let mut rest = bytes.get(from..).unwrap_or_default();
    while let Some((four, after)) = rest.split_first_chunk::<{ 4 * BLOCK }>() {
        let (blocks, _) = four.as_chunks::<BLOCK>();
        if blocks.iter().fold(0, |found, block| found | special_in(block)) != 0 {
            break;
        }
        rest = after;
    }
    while let Some((block, after)) = rest.split_first_chunk() {
        let found = special_in(block);
        if found != 0 {
            return bytes.len().wrapping_sub(rest.len()).wrapping_add(first_in(found));
        }
        rest = after;
    }
    let special = rest.iter().position(|byte| is_special(*byte)).unwrap_or(rest.len());
    bytes.len().wrapping_sub(rest.len()).wrapping_add(special)
}

/// The place in a block of the first byte that [`special_in`] found.
#[inline(always)]
fn first_in(found: Bits) -> usize {
    found.trailing_zeros() as usize / BITS_EACH
}

fn is_special(byte: u8) -> bool {
    matches!(byte, b'"' | b'\\' | 0..0x20)
}

/// Sixteen bytes at once, where WebAssembly has instructions for that.
#[cfg(target_feature = "simd128")]
mod block {
    use std::arch::wasm32::{i64x2, u8x16_bitmask, u8x16_eq, u8x16_lt, u8x16_splat, v128_or};

    /// How many bytes are looked at at once.
    pub(super) const BLOCK: usize = 16;
    /// How many bits stand for each of them.
    pub(super) const BITS_EACH: usize = 1;
    pub(super) type Bits = u16;

    /// A bit for each special byte.
    #[inline(always)]
    pub(super) fn special_in(block: &[u8; BLOCK]) -> Bits {
        let ([low, high], _) = block.as_chunks::<8>() else { return 0 };
        let block = i64x2(i64::from_le_bytes(*low), i64::from_le_bytes(*high));
        let quote = u8x16_eq(block, u8x16_splat(b'"'));
        let slash = u8x16_eq(block, u8x16_splat(b'\\'));
        let control = u8x16_lt(block, u8x16_splat(b' '));
        u8x16_bitmask(v128_or(v128_or(quote, slash), control))
    }
}

/// Eight bytes at once: a word. Wider instructions cannot be asked for without `unsafe` elsewhere.
#[cfg(not(target_feature = "simd128"))]
mod block {
    /// How many bytes are looked at at once.
    pub(super) const BLOCK: usize = 8;
    /// How many bits stand for each of them.
    pub(super) const BITS_EACH: usize = 8;
    pub(super) type Bits = u64;

    /// The high bit of each special byte in a word. A borrow can set bits too many, but only above
    /// the first special byte, and the first one is all we ask for.
    #[inline(always)]
    pub(super) fn special_in(word: &[u8; BLOCK]) -> Bits {
        const ONES: u64 = 0x0101_0101_0101_0101;
        const SLASHES: u64 = ONES.wrapping_mul(b'\\' as u64);
        let word = u64::from_le_bytes(*word);
        // Only a quote and the control characters become less than 0x21 without their second bit.
        let quote_or_control = (word ^ (ONES * 0x02)).wrapping_sub(ONES * 0x21);
        let slash = (word ^ SLASHES).wrapping_sub(ONES);
        (quote_or_control | slash) & !word & (ONES * 0x80)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn specials_are_found_wherever_they_are(
            bytes in prop::collection::vec(prop_oneof![9 => 0x23u8..0x5c, 9 => 0x80u8.., 1 => any::<u8>()], 0..200), from in 0usize..70
        ) {
            let expected = (from..bytes.len())
                .find(|&at| matches!(bytes[at], b'"' | b'\\' | 0..0x20))
                .unwrap_or_else(|| bytes.len().max(from));
            prop_assert_eq!(find_special(&bytes, from), expected);
        }
    }
}
