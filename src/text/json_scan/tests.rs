//! Tests of `json_scan.rs`.

use super::*;
use crate::json::Reader;
use proptest::prelude::*;

fn scan<'a>(parts: impl IntoIterator<Item = &'a str>) -> Scanner {
    let mut scanner = Scanner::default();
    for part in parts {
        scanner.feed(part);
    }
    scanner
}

/// Returns what the scanner must find, according to the reader: an object, and another value.
fn expected(text: &str) -> (bool, bool) {
    let reader = || Reader::new(text, 127);
    (reader().is_object(), reader().is_whole() && !reader().is_object())
}

#[test]
fn it_agrees_with_the_reader() {
    let deep = format!("{}{}", "{\"a\":[".repeat(63), "]}".repeat(63));
    let too_deep = format!("{}1{}", "[".repeat(128), "]".repeat(128));
    for text in [
        "{}",
        " {} ",
        "{\"a\":1}",
        "{\"a\":[1,-0.5e+3,\"x\\\"\\u00e9\",true,null,{}]}",
        "null",
        "12",
        "\"a\"",
        "[]",
        "{\"a\"}",
        "{,}",
        "{\"a\":1,}",
        "[1,]",
        "{\"a\":01}",
        "{\"a\":1.}",
        "{\"a\":tru}",
        "{}{}",
        "{'a':1}",
        "{\"a\":\"\n\"}",
        "{\"a\":\"\\x\"}",
        "{\"a\":1]",
        "[1}",
        "-",
        "1e",
        "",
        " ",
        "{} x",
        "\"\"+",
        "{\"a\" :\t1 , \"b\":2}",
        &deep,
        &too_deep,
    ] {
        let scanner = scan([text]);
        assert_eq!((scanner.is_object(), scanner.is_other_value()), expected(text), "{text}");
        let scanner = scan(text.split_inclusive(|_: char| true));
        assert_eq!((scanner.is_object(), scanner.is_other_value()), expected(text), "{text}");
    }
}

proptest! {
    #[test]
    fn it_agrees_with_the_reader_on_anything(text in "[{}\\[\\],:\"\\\\ua0-9e.+\\- trufalsn]{0,24}") {
        let scanner = scan([text.as_str()]);
        prop_assert_eq!((scanner.is_object(), scanner.is_other_value()), expected(&text));
    }

    #[test]
    fn broken_is_never_said_of_the_start_of_a_value(
        at in any::<prop::sample::Index>(), number in any::<f64>(), text in any::<String>()
    ) {
        let json = serde_json::json!({"a": [number, {"b": text}, null, true]}).to_string();
        let cut = json.char_indices().map(|(at, _)| at).nth(at.index(json.chars().count()));
        let (start, end) = json.split_at(cut.unwrap());
        prop_assert!(!scan([start]).is_broken());
        prop_assert!(!scan([start]).is_object());
        prop_assert!(scan([start, end]).is_object());
    }
}
