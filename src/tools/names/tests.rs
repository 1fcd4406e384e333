//! Tests of `names.rs`.

use super::*;
use proptest::prelude::*;

fn length(length_max: usize) -> NameRules {
    NameRules { length_max, first: First::Any }
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
    // The hash is that of `printf 'my tool' | sha256sum`.
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
        [First::LetterOrLine, First::Letter].map(|first| NameRules { length_max: 64, first });
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
        let rules = NameRules { length_max, first };
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
