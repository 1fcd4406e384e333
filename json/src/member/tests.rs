//! Tests of `member.rs`.

use super::*;

#[test]
fn the_last_member_of_a_name_counts_however_it_is_escaped() {
    for (object, expected) in [
        (r#"{"a":1,"b":{"a":2}}"#, Some("1")),
        (r#"{"a":1,"\u0061": [ 3 ] }"#, Some("[ 3 ]")),
        (r#"{"a":null}"#, Some("null")),
        (r#"{"b":1}"#, None),
        (r#"["a",1]"#, None),
        (r#"{"a":1,"#, None),
        ("", None),
    ] {
        assert_eq!(member(object, "a"), expected, "{object}");
    }
}

#[test]
fn what_stands_in_a_text_is_given_until_it_breaks() {
    for (text, expected) in [
        (r#"{"a":1,"b":{"a":2}}"#, vec!["a 1", r#"b {"a":2}"#]),
        ("{}", vec![]),
        (r#"{"a":1,"b"}"#, vec!["a 1"]),
        (r#"{"a":1;"b":2}"#, vec!["a 1"]),
        (r#"["a",1]"#, vec![]),
        ("", vec![]),
    ] {
        let found = members(text).map(|(name, value)| format!("{} {value}", name.raw()));
        assert_eq!(found.collect::<Vec<_>>(), expected, "{text}");
    }
    for (text, expected) in [
        (r#"[1, "a" ,[2]]"#, vec!["1", "\"a\"", "[2]"]),
        ("[]", vec![]),
        ("[1,]", vec!["1"]),
        ("[1;2]", vec!["1"]),
        ("{}", vec![]),
        ("", vec![]),
    ] {
        assert_eq!(elements(text).collect::<Vec<_>>(), expected, "{text}");
    }
}

#[test]
fn a_string_is_one_and_nothing_else() {
    assert_eq!(string(r#" "a\n" "#).map(|text| text.raw()), Some(r"a\n"));
    for other in ["", "a", r#""a"#, r#""a" "b""#, r#"["a"]"#, "null"] {
        assert_eq!(string(other), None, "{other}");
    }
}
