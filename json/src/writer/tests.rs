//! Tests of `writer.rs`.

use super::*;

#[test]
fn what_is_quoted_cannot_end_its_quotes_or_its_line() {
    assert_eq!(quoted("a \"b\"\r\nc\u{1b}\\é"), r#""a \"b\"\r\nc\u001b\\é""#);
}

#[test]
fn a_text_may_begin_behind_the_name_of_an_events_field() {
    let mut out = b"data: ".to_vec();
    Writer::new(&mut out).begin_object().key("a").u64(1).key("b").u64(2).end_object();
    assert_eq!(out, b"data: {\"a\":1,\"b\":2}");
}
use proptest::prelude::*;

fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn white_space_goes_only_between_tokens() {
    let json = "{ \"a b\" :\n [ 1.10 ,\t\"x \\\" y\" ] , \"n\":1E5 }";
    assert_eq!(text(|out| compact(out, json)), r#"{"a b":[1.10,"x \" y"],"n":1E5}"#);
    assert_eq!(text(|out| escape_compact(out, json)), r#"{\"a b\":[1.10,\"x \\\" y\"],\"n\":1E5}"#);
}

#[test]
fn a_raw_value_knows_its_white_space() {
    for json in ["{ \"a b\" :\n [ 1.10 ,\t\"x \\\" y\" ] , \"n\":1E5 }", "{\"a b\":[]}", " 7 "] {
        let raw = Raw::of(json);
        let (plain, escaped) =
            (text(|out| compact(out, json.trim())), text(|out| escape_compact(out, json.trim())));
        assert_eq!(text(|out| raw.compact(out)), plain);
        assert_eq!(text(|out| raw.escape_compact(out)), escaped);
        assert_eq!(raw.compact_len(), plain.len());
    }
}

proptest! {
    #[test]
    fn quoting_is_read_back_by_serde_json(value in any::<String>()) {
        let json = text(|out| quote(out, &value));
        prop_assert_eq!(serde_json::from_str::<String>(&json).unwrap(), value);
    }

    #[test]
    fn numbers_are_written_in_decimal(number in any::<u64>()) {
        prop_assert_eq!(text(|out| push_u64(out, number)), number.to_string());
    }
}
