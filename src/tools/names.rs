//! Conversion of tool names to names that an upstream accepts.
//!
//! A client's name is sent unchanged if possible. Otherwise the name is shortened and marked with a
//! hash. The result is always the same, so calls in the history get the same name as the tool, and
//! no state is needed: the request's own list of tools is the inverse table.

use std::borrow::Cow;

use crate::ids::hex_of_hash;
use crate::profile::{Profile, ToolSchema};
use crate::text::words::{is_name_byte, truncate};

/// Maximum length of a tool's name by OpenAI's rules, in characters.
const LENGTH_MOST: usize = 64;

/// Maximum length of the client's name that is kept before the hash, in characters.
const KEPT_MAX: usize = LENGTH_MOST - MARK_LENGTH;

/// Length of the mark at the end of a shortened name: `_` and eight hexadecimal digits.
const MARK_LENGTH: usize = 9;

/// Prefix of a tool name whose first character the upstream does not accept at the start.
const PREFIX: &str = "tool_";

/// Rules for tool names that an upstream accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct NameRules {
    /// Maximum length of a name in characters; 0 if unlimited.
    length_max: usize,
    first: First,
}

/// Rule for the first character of a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum First {
    /// Any character that is allowed in a name.
    #[default]
    Any,
    /// Letter or `_`: Gemini's rule.
    LetterOrLine,
    /// Letter: Kimi's rule.
    Letter,
}

impl NameRules {
    pub(super) fn of(profile: &Profile) -> Self {
        let first = match profile.tool_schema {
            ToolSchema::Gemini => First::LetterOrLine,
            ToolSchema::Kimi => First::Letter,
            _ => First::Any,
        };
        Self { length_max: profile.max_tool_name, first }
    }

    /// Returns OpenAI's rules for tool names.
    pub(super) fn plain() -> Self {
        Self { length_max: LENGTH_MOST, first: First::Any }
    }

    /// Returns true if the upstream accepts the first character of the tool name `name` at the
    /// start.
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
pub(super) fn outgoing(name: &str, rules: NameRules) -> Cow<'_, str> {
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

/// Returns true if the Messages API itself accepts the tool name.
#[must_use]
pub(super) fn is_valid(name: &str) -> bool {
    (1..=128).contains(&name.len()) && name.bytes().all(is_name_byte)
}

#[cfg(test)]
mod tests;
