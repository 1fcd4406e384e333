//! Tests of `text.rs`.

use super::*;
use crate::Reader;
use proptest::prelude::*;

fn read(text: &str) -> Str<'_> {
    Reader::new(text, 8).string().unwrap()
}

#[test]
fn escapes_are_decoded() {
    assert_eq!(read(r#""a\"\\\/\b\f\n\r\té漢""#).decode(), "a\"\\/\u{8}\u{c}\n\r\té漢");
    assert_eq!(read(r#""\ud83c\udf89""#).decode(), "🎉");
    assert_eq!(read(r#""\udbff\udfff \ud800\udc00""#).decode(), "\u{10ffff} \u{10000}");
    assert_eq!(read(r#""\ud83c x \udf89""#).decode(), "\u{fffd} x \u{fffd}");
    assert!(matches!(read(r#""plain é""#).decode(), Cow::Borrowed("plain é")));
}

#[test]
fn texts_are_compared_by_what_they_say() {
    assert_eq!(read(r#""a\u0062c""#), "abc");
    assert_eq!(read(r#""a\u0062c""#), read(r#""abc""#));
    assert!(read(r#"" \n\u0020\t""#).is_blank());
    assert!(!read(r#"" \n.""#).is_blank());
}

#[test]
fn only_the_first_half_of_a_pair_waits() {
    for (raw, bytes) in [
        ("", 0),
        ("abc", 0),
        ("\\ud83c", 6),
        ("x\\ud83c", 6),
        ("x\\\\ud83c", 0),
        ("x\\\\\\ud83c", 6),
        ("\\ud83c\\udf89", 0),
        ("\\u0041", 0),
        ("éééééé", 0),
    ] {
        assert_eq!(hold_back(raw), bytes, "{raw}");
    }
}

#[test]
fn escaped_white_space_is_trimmed_and_other_escapes_are_not() {
    for (raw, start, end) in [
        (" \\n\\t a b \\r\\n ", "a b \\r\\n ", " \\n\\t a b"),
        ("\\\\n", "\\\\n", "\\\\n"),
        ("\\\\\\n", "\\\\\\n", "\\\\"),
        ("\\n", "", ""),
        ("\\u000a", "\\u000a", "\\u000a"),
    ] {
        assert_eq!((trim_start_raw(raw), trim_end_raw(raw)), (start, end), "{raw}");
    }
}

#[test]
fn half_a_pair_is_replaced_and_nothing_else() {
    for (raw, expected) in [
        ("plain \\n \\\" \\\\", "plain \\n \\\" \\\\"),
        ("\\ud83c\\udf89", "\\ud83c\\udf89"),
        ("a\\ud83cb", "a\\ufffdb"),
        ("\\udf89", "\\ufffd"),
        ("\\ud83c\\ud83c\\udf89", "\\ufffd\\ud83c\\udf89"),
        ("\\\\ud83c", "\\\\ud83c"),
        ("\\u00e9\\uD83C", "\\u00e9\\ufffd"),
    ] {
        let mut out = Vec::new();
        push_whole(&mut out, raw);
        assert_eq!(String::from_utf8(out).unwrap(), expected, "{raw}");
    }
}

#[test]
fn lengths_are_known_where_pairs_are_cut_in_two() {
    for raw in ["\\ud83c", "\\udf89x", "\\ud83c\\ud83c\\udf89", "\\ud83c\\n", "\\ud83c\\u0041"] {
        let text = format!("\"{raw}\"");
        assert_eq!(read(&text).decoded_len(), read(&text).decode().len(), "{raw}");
    }
}

#[test]
fn a_part_of_a_string_is_one_unless_an_escape_was_cut() {
    for raw in ["", "plain é", "\\n\\\"\\\\", "\\u00e9\\u0041", "\\ud83c", "\\ud83c\\udf89x"] {
        let text = Str::inside(raw).unwrap();
        assert_eq!((text.raw(), text.decoded_len()), (raw, text.decode().len()), "{raw}");
    }
    for raw in ["\\", "a\\\\\\", "\\u00e", "\\u", "\\x"] {
        assert!(Str::inside(raw).is_none(), "{raw}");
    }
}

proptest! {
    #[test]
    fn decoding_undoes_the_escaping_of_serde_json(text in any::<String>()) {
        let json = serde_json::to_string(&text).unwrap();
        prop_assert_eq!(read(&json).decode(), text.as_str());
        prop_assert_eq!(read(&json).decoded_len(), text.len());
        let ascii: String = text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
        let json = format!("\"{ascii}\"");
        prop_assert_eq!(read(&json).decode(), text.as_str());
        prop_assert_eq!(read(&json).decoded_len(), text.len());
    }
}
