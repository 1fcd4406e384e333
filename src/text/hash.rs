//! Hashes of JSON values that ignore white space, the order of members and the way in which
//! characters are escaped. Numbers are hashed as they are written. The hashes are not secret, and
//! collisions can be constructed.

use crate::json::{self, Error, Reader, Str, ValueKind};

/// Odd multiplier without a regular bit pattern.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// Hash of an object's members, independent of their order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MembersHash(u64);

impl Default for MembersHash {
    fn default() -> Self {
        Self(1)
    }
}

impl MembersHash {
    /// Adds a member of the object to the hash. `value`: the hash of the member's value.
    pub(crate) fn add(&mut self, key: Str<'_>, value: u64) {
        // A sum of the members' hashes does not depend on the order of the members.
        self.0 = self.0.wrapping_add(mix(text(key), value));
    }

    /// Returns the hash of the object.
    pub(crate) fn hash(self) -> u64 {
        mix(1, self.0)
    }
}

/// Returns true if two JSON texts have equal values. Byte-identical texts are not parsed.
pub(crate) fn same(left: &str, right: &str) -> bool {
    let of = |text| value(&mut Reader::of(text)).ok();
    left == right || of(left).is_some_and(|left| of(right) == Some(left))
}

/// Reads the next JSON value, and returns the value's hash. The recursion is as deep as the reader
/// allows.
///
/// # Errors
/// The text is not JSON, or nested too deeply.
pub(crate) fn value(reader: &mut Reader<'_>) -> Result<u64, Error> {
    Ok(match reader.kind()? {
        ValueKind::Object => {
            reader.begin_object()?;
            let mut members = MembersHash::default();
            while let Some(key) = reader.next_key()? {
                members.add(key, value(reader)?);
            }
            members.hash()
        }
        ValueKind::Array => {
            reader.begin_array()?;
            let mut all = 2u64;
            while reader.next_element()? {
                all = mix(all, value(reader)?);
            }
            all
        }
        ValueKind::String => text(reader.string()?),
        ValueKind::Number => bytes(3, reader.number()?.as_bytes()),
        ValueKind::Bool | ValueKind::Null => bytes(4, reader.skip()?.as_bytes()),
    })
}

/// Returns the hash of a string, however the string is escaped. Almost all strings use the usual
/// escapes; only other strings are unescaped and escaped again.
pub(crate) fn text(text: Str<'_>) -> u64 {
    let raw = text.raw();
    if !text.is_escaped() || is_usual(raw.as_bytes()) {
        return bytes(0, raw.as_bytes());
    }
    let mut usual = Vec::with_capacity(raw.len());
    json::escape(&mut usual, &text.decode());
    bytes(0, &usual)
}

/// Returns true if all escapes in the inside of a string are those that [`json::escape`] writes as
/// well.
fn is_usual(raw: &[u8]) -> bool {
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        match rest.get(at..).and_then(|rest| rest.split_first_chunk()) {
            Some(([_, b'"' | b'\\' | b'n' | b'r' | b't'], after)) => rest = after,
            _ => return false,
        }
    }
    true
}

/// Returns the hash of bytes; `seed` separates different kinds of values.
pub(crate) fn bytes(seed: u64, bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut hash = mix(seed, bytes.len() as u64);
    for word in words {
        hash = step(hash, u64::from_le_bytes(*word));
    }
    // The last bytes are hashed as one word, together with bytes before them.
    match bytes.last_chunk() {
        _ if rest.is_empty() => hash,
        Some(last) => step(hash, u64::from_le_bytes(*last)),
        None => step(hash, rest.iter().fold(0, |word, byte| word << 8 | u64::from(*byte))),
    }
}

fn step(hash: u64, word: u64) -> u64 {
    (hash ^ word).wrapping_mul(FACTOR).rotate_left(29)
}

/// Returns the combined hash of two hashes, in this order.
pub(crate) fn mix(left: u64, right: u64) -> u64 {
    let mixed = (left.rotate_left(23) ^ right).wrapping_mul(FACTOR);
    mixed ^ (mixed >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_the_same_however_they_are_written() {
        let text = r#"{"a":[1,{"b":"\u00e9","c":null}],"d":"\n"}"#;
        for other in [text, r#" { "d" : "\u000a", "a" : [ 1, { "c" : null, "\u0062" : "é" } ] } "#]
        {
            assert!(same(text, other), "{other}");
        }
        for other in [
            "",
            "{}",
            r#"{"a":[1,{"b":"é","c":null}]}"#,
            r#"{"a":[1,{"b":"é","c":null}],"e":"\n"}"#,
            r#"{"a":[1,{"b":"e","c":null}],"d":"\n"}"#,
            r#"{"a":[1,{"b":"é","c":null},2],"d":"\n"}"#,
            r#"{"a":[1.0,{"b":"é","c":null}],"d":"\n"}"#,
            r#"{"a":[1,{"b":"é","c":null}],"d":["\n"]}"#,
        ] {
            assert!(!same(text, other) && !same(other, text), "{other}");
        }
    }
}
