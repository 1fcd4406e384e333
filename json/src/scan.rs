//! Fast search for the special bytes of JSON strings, in blocks of bytes, and decoding of escapes.

use wide::u8x16;

/// Returns true if the byte `code`, after a backslash, is a complete escape of one character.
#[inline(always)]
pub(crate) fn is_short_escape(code: u8) -> bool {
    matches!(code, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't')
}

/// Reads the escape `\uXXXX` at the start of `text`, or two escapes that are a surrogate pair.
/// Returns the escape's length in bytes, the number of bytes that decoding saves, and true for an
/// unpaired surrogate. Returns `None` if the text has no valid escape.
#[cold]
pub(crate) fn code_point_escape(text: &str) -> Option<(usize, u32, bool)> {
    let unit = escaped_unit(text)?;
    let low = || text.get(6..).and_then(escaped_unit);
    Some(match unit {
        0xd800..0xdc00 if matches!(low(), Some(0xdc00..0xe000)) => (12, 8, false),
        0..0x80 => (6, 5, false),
        0x80..0x800 => (6, 4, false),
        // An unpaired surrogate becomes U+FFFD, which has three bytes as well.
        _ => (6, 3, matches!(unit, 0xd800..0xe000)),
    })
}

/// Returns the number in the four hexadecimal digits at the start of `text`.
pub(crate) fn code_unit(text: &str) -> u32 {
    text.get(..4).and_then(|digits| u32::from_str_radix(digits, 16).ok()).unwrap_or(0xfffd)
}

/// Returns the number in the escape `\uXXXX` at the start of `text`, or `None`.
fn escaped_unit(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then(|| code_unit(digits))
}

/// Returns the length of the string that begins at `from`, if the string ends in the first block
/// and has no escape.
#[inline(always)]
pub(crate) fn short_string(bytes: &[u8], from: usize) -> Option<usize> {
    let block = bytes.get(from..)?.first_chunk()?;
    let length = special_in(block).trailing_zeros() as usize;
    (block.get(length) == Some(&b'"')).then_some(length)
}

/// Iterator over the special bytes of a text: quotes, backslashes and control characters, which end
/// a run of plain string bytes.
///
/// Long texts and base64 are most of the bytes in many documents. Source code has an escape every
/// few bytes, so all special bytes of a block are found at once; in long runs of plain bytes, the
/// search takes four blocks at a time.
pub(crate) struct Specials {
    /// Position of the block that was searched last.
    block: usize,
    /// Bit mask of the special bytes in the block that were not returned yet.
    bits: u32,
}

impl Specials {
    /// Creates a search that starts at this position of the text.
    #[inline(always)]
    pub(crate) fn new(from: usize) -> Self {
        Self { block: from.wrapping_sub(BLOCK), bits: 0 }
    }

    /// Continues the search at this position of the text, which comes after the last result.
    #[inline(always)]
    pub(crate) fn go_on(&mut self, from: usize) {
        let seen = from.wrapping_sub(self.block);
        if seen < BLOCK {
            self.bits &= u32::MAX << seen;
        } else {
            self.block = from.wrapping_sub(BLOCK);
            self.bits = 0;
        }
    }

    /// Returns the position of the next special byte, and the byte. At the end, returns the length
    /// of `bytes`, and `None`.
    #[inline(always)]
    pub(crate) fn next(&mut self, bytes: &[u8]) -> (usize, Option<u8>) {
        if self.bits == 0 {
            self.block = self.block.wrapping_add(BLOCK);
            let mut left = bytes.get(self.block..).unwrap_or_default();
            let mut near = NEAR_BLOCKS;
            loop {
                let Some((block, after)) = left.split_first_chunk() else {
                    return self.far(bytes);
                };
                self.bits = special_in(block);
                if self.bits != 0 {
                    break;
                }
                if near == 0 {
                    return self.far(bytes);
                }
                near = near.wrapping_sub(1);
                self.block = self.block.wrapping_add(BLOCK);
                left = after;
            }
        }
        let at = self.block.wrapping_add(self.bits.trailing_zeros() as usize);
        (at, bytes.get(at).copied())
    }

    #[inline(never)]
    fn far(&mut self, bytes: &[u8]) -> (usize, Option<u8>) {
        let at = find_far(bytes, self.block);
        // The bytes after the special byte are searched again.
        self.block = at.wrapping_sub(BLOCK).wrapping_add(1);
        self.bits = 0;
        (at, bytes.get(at).copied())
    }
}

/// Moves the plain string bytes at the start of `rest` to the end of `out`. Removes the special
/// byte after them from `rest` and returns it.
#[inline(always)]
pub(crate) fn copy_plain(out: &mut Vec<u8>, rest: &mut &[u8]) -> Option<u8> {
    let mut near = NEAR_BLOCKS;
    while let Some((block, after)) = rest.split_first_chunk::<BLOCK>() {
        let bits = special_in(block);
        if bits == 0 && near == 0 {
            break;
        }
        // A block is copied with one instruction, and its surplus is removed later: faster than to
        // copy a number of bytes that is known only at run time.
        out.extend_from_slice(block);
        if bits == 0 {
            *rest = after;
            near = near.wrapping_sub(1);
            continue;
        }
        let plain = bits.trailing_zeros() as usize;
        out.truncate(out.len().wrapping_sub(BLOCK).wrapping_add(plain));
        let special = rest.get(plain).copied();
        *rest = rest.get(plain.wrapping_add(1)..).unwrap_or_default();
        return special;
    }
    let plain = find_far(rest, 0);
    let (run, left) = rest.split_at_checked(plain).unwrap_or_default();
    out.extend_from_slice(run);
    let (special, left) = left.split_first().unzip();
    *rest = left.unwrap_or_default();
    special.copied()
}

/// Number of blocks that are searched one by one, before the search goes on with four at a time.
const NEAR_BLOCKS: usize = 4;

/// Returns the position of the first special byte at or after `from`, or the length of `bytes`.
/// Searches four blocks at a time.
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
            let before = bytes.len().wrapping_sub(rest.len());
            return before.wrapping_add(found.trailing_zeros() as usize);
        }
        rest = after;
    }
    let special = rest.iter().position(|byte| is_special(*byte)).unwrap_or(rest.len());
    bytes.len().wrapping_sub(rest.len()).wrapping_add(special)
}

/// Returns the first position in `bytes` at which these two bytes follow each other.
#[must_use]
pub fn find_pair(bytes: &[u8], pair: [u8; 2]) -> Option<usize> {
    let mut rest = bytes;
    while let (Some(left), Some(right)) =
        (rest.first_chunk(), rest.get(1..).and_then(<[u8]>::first_chunk))
    {
        let both = u8x16::new(*left).simd_eq(u8x16::splat(pair[0]))
            & u8x16::new(*right).simd_eq(u8x16::splat(pair[1]));
        let found = both.to_bitmask();
        let before = bytes.len().saturating_sub(rest.len());
        if found != 0 {
            return Some(before.saturating_add(found.trailing_zeros() as usize));
        }
        rest = rest.get(BLOCK..).unwrap_or_default();
    }
    let at = rest.windows(2).position(|two| two == pair)?;
    Some(bytes.len().saturating_sub(rest.len()).saturating_add(at))
}

fn is_special(byte: u8) -> bool {
    matches!(byte, b'"' | b'\\' | 0..0x20)
}

/// Returns a bit mask with one bit for each special byte of a block.
#[inline(always)]
fn special_in(block: &[u8; BLOCK]) -> u32 {
    let block = u8x16::new(*block);
    let quote = block.simd_eq(u8x16::splat(b'"'));
    let slash = block.simd_eq(u8x16::splat(b'\\'));
    let control = block.min(u8x16::splat(0x1f)).simd_eq(block);
    (quote | slash | control).to_bitmask()
}

/// Number of bytes in a block, which are searched with one vector instruction.
const BLOCK: usize = 16;

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, reason = "places in texts of a few hundred bytes")]
mod tests;
