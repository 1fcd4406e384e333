//! Tool names that an upstream accepts.
//!
//! A client's name goes out as it is when it can. Otherwise it is cut and marked with a hash, always
//! the same one, so that calls in the history get the name that the tool has in this request, and
//! nothing needs to be stored: the inverse table is the request's own list of tools.

use std::borrow::Cow;

use crate::ids::hex_of_hash;
use crate::profile::{Profile, ToolSchema};
use crate::words::{is_name_byte, truncate};

/// Most characters of the client's name that are kept before the hash: 64 in all, OpenAI's limit.
const KEPT_MAX: usize = 55;

/// `_` and eight hexadecimal digits.
const MARK_LENGTH: usize = 9;

/// What goes before a name that begins with a letter which the upstream does not take there.
const PREFIX: &str = "tool_";

/// Which names an upstream takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rules {
    /// The longest; 0 is no limit.
    length_max: usize,
    first: First,
}

/// What a name can begin with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum First {
    /// Anything that can stand in it.
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

    /// Whether a name of letters that can stand in one can also begin so.
    fn begins_well(self, name: &str) -> bool {
        let first = name.bytes().next().unwrap_or(b'_');
        match self.first {
            First::Any => true,
            First::LetterOrLine => first.is_ascii_alphabetic() || first == b'_',
            First::Letter => first.is_ascii_alphabetic(),
        }
    }
}

/// What the upstream knows the tool `name` as.
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

/// Whether the Messages API itself accepts the name.
#[must_use]
pub(super) fn is_valid(name: &str) -> bool {
    (1..=128).contains(&name.len()) && name.bytes().all(is_name_byte)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn length(length_max: usize) -> Rules {
        Rules { length_max, first: First::Any }
    }

    #[test]
    fn a_name_that_fits_is_not_touched() {
        let longest = "a".repeat(64);
        for name in ["w", "mcp__server__get-it", "0", longest.as_str()] {
            assert!(matches!(outgoing(name, length(64)), Cow::Borrowed(same) if same == name));
        }
        assert_eq!(outgoing(&"a".repeat(200), length(0)), "a".repeat(200));
    }

    #[test]
    fn other_names_are_cut_and_marked_with_their_hash() {
        // printf 'my tool' | sha256sum
        assert_eq!(outgoing("my tool", length(64)), "my_tool_ba077b42");
        assert_eq!(outgoing("my tool", length(0)), "my_tool_ba077b42");
        let long = outgoing(&"a".repeat(65), length(64)).into_owned();
        assert_eq!(long.len(), 64);
        assert!(long.starts_with(&format!("{}_", "a".repeat(55))));
        assert_eq!(outgoing("werkzeug_für_alles", length(64)).matches('_').count(), 4);
        assert_eq!(outgoing(&"a".repeat(65), length(32)).len(), 32);
    }

    #[test]
    fn a_name_begins_as_the_upstream_wants_it() {
        let [line, letter] =
            [First::LetterOrLine, First::Letter].map(|first| Rules { length_max: 64, first });
        for (name, for_gemini, for_kimi) in [
            ("w", "w", "w"),
            ("_w", "_w", "tool__w_580eb35f"),
            ("1w", "tool_1w_1f8c8e88", "tool_1w_1f8c8e88"),
            ("-w", "tool_-w_65da4e19", "tool_-w_65da4e19"),
            ("工具", "___5ca6730d", "tool____5ca6730d"),
        ] {
            assert_eq!(
                (outgoing(name, line).as_ref(), outgoing(name, letter).as_ref()),
                (for_gemini, for_kimi)
            );
        }
        assert_eq!(outgoing(&"1".repeat(64), letter).len(), 64);
    }

    proptest! {
        #[test]
        fn every_name_becomes_one_that_is_accepted(
            name in any::<String>(),
            length_max in 16usize..100,
            first in prop_oneof![Just(First::Any), Just(First::LetterOrLine), Just(First::Letter)],
        ) {
            let rules = Rules { length_max, first };
            let outgoing = outgoing(&name, rules);
            prop_assert!(is_valid(&outgoing) && outgoing.len() <= length_max, "{}", outgoing);
            prop_assert!(rules.begins_well(&outgoing), "{}", outgoing);
        }

        #[test]
        fn names_that_differ_stay_different(left in ".{1,80}", right in ".{1,80}") {
            prop_assume!(left != right);
            prop_assert_ne!(outgoing(&left, length(64)), outgoing(&right, length(64)));
        }
    }
}
