//! Tool names that an upstream accepts.
//!
//! A client's name goes out as it is when it can. Otherwise it is cut and marked with a hash,
//! always the same one, so that calls in the history get the name that the tool has in this
//! request, and nothing needs to be stored: the inverse table is the request's own list of tools.

use std::borrow::Cow;

use crate::ids::hex_of_hash;
use crate::profile::{Profile, ToolSchema};
use crate::text::words::{is_name_byte, truncate};

/// Maximum number of characters of a tool's name by OpenAI's rules.
const LENGTH_MOST: usize = 64;

/// Maximum number of characters of the client's name that are kept before the hash.
const KEPT_MAX: usize = LENGTH_MOST - MARK_LENGTH;

/// Length of the mark at the end of a shortened name: `_` and eight hexadecimal digits.
const MARK_LENGTH: usize = 9;

/// Prefix of a name whose first character the upstream does not take there.
const PREFIX: &str = "tool_";

/// Rules for the names that an upstream takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rules {
    /// Maximum number of characters of a name; 0 is no limit.
    length_max: usize,
    first: First,
}

/// Characters with which a name may begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum First {
    /// Any character that may stand in a name.
    #[default]
    Any,
    /// A letter or `_`: Gemini's rule.
    LetterOrLine,
    /// A letter: Kimi's rule.
    Letter,
}

impl Rules {
    pub(super) fn of(profile: &Profile) -> Self {
        let first = match profile.tool_schema {
            ToolSchema::Gemini => First::LetterOrLine,
            ToolSchema::Kimi => First::Letter,
            _ => First::Any,
        };
        Self { length_max: profile.max_tool_name, first }
    }

    /// Returns OpenAI's rules.
    pub(super) fn plain() -> Self {
        Self { length_max: LENGTH_MOST, first: First::Any }
    }

    /// Returns true if a name, of characters that may stand in one, begins with an allowed one.
    fn begins_well(self, name: &str) -> bool {
        let first = name.bytes().next().unwrap_or(b'_');
        match self.first {
            First::Any => true,
            First::LetterOrLine => first.is_ascii_alphabetic() || first == b'_',
            First::Letter => first.is_ascii_alphabetic(),
        }
    }
}

/// Returns the upstream's name for the tool `name`.
#[must_use]
pub(super) fn outgoing(name: &str, rules: Rules) -> Cow<'_, str> {
    let length_max = rules.length_max;
    let too_long = length_max > 0 && name.len() > length_max;
    let is_plain = !name.is_empty() && name.bytes().all(is_name_byte);
    if !too_long && is_plain && rules.begins_well(name) {
        return Cow::Borrowed(name);
    }
    let kept = match length_max {
        0 => KEPT_MAX,
        _ => KEPT_MAX.min(length_max.saturating_sub(MARK_LENGTH)),
    };
    let allowed_or_line = |letter: char| match u8::try_from(letter) {
        Ok(byte) if is_name_byte(byte) => letter,
        _ => '_',
    };
    let mut outgoing: String = name.chars().take(kept).map(allowed_or_line).collect();
    if !rules.begins_well(&outgoing) {
        outgoing.insert_str(0, PREFIX);
        truncate(&mut outgoing, kept);
    }
    outgoing.push('_');
    outgoing.push_str(hex_of_hash(name.as_bytes()).get(..8).unwrap_or_default());
    Cow::Owned(outgoing)
}

/// Returns true if the Messages API itself accepts the name.
#[must_use]
pub(super) fn is_valid(name: &str) -> bool {
    (1..=128).contains(&name.len()) && name.bytes().all(is_name_byte)
}

#[cfg(test)]
mod tests;
