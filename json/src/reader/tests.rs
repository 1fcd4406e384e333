//! Tests of `reader.rs`.

use super::*;
use proptest::prelude::*;

fn skip(text: &str) -> Result<&str, Error> {
    let mut reader = Reader::new(text, 128);
    let raw = reader.skip()?;
    reader.end()?;
    Ok(raw)
}

#[test]
fn exactly_the_texts_of_the_standard_are_accepted() {
    // Valid JSON texts, one per line.
    let good = r#"{}
[]
0
-0
-0.5e+10
1E5
""
"\u00e9\n\/"
 [ 1 , {} ] 
{"a":{"a":[[],{},null,true,false]}}
123456789012345678901234567890
"\ud83d"
"é漢🎉"
{"":""}"#;
    for text in good.lines() {
        assert_eq!(skip(text).unwrap(), text.trim(), "{text}");
    }
    let bad = r#"{
}
[
]
[}
{]
[1,]
{"a":1,}
{,}
[,1]
{"a"}
{a:1}
{"a" 1}
[1 2]
01
1.
.5
-
+1
1e
1e+
tru
nul
"
"\x"
"\u12g4"
"\u12"
1 2
{} {}
NaN
Infinity
'a'
[1,,2]
{"a":1 "b":2}
{1:2}"#;
    for text in bad.lines().chain(["", " ", "\"a\nb\"", "\"\t\"", "\u{feff}{}"]) {
        assert!(skip(text).is_err(), "{text}");
    }
}

#[test]
fn nesting_is_limited_and_does_not_recurse() {
    let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    assert!(skip(&deep(128)).is_ok());
    let error = skip(&deep(129)).unwrap_err();
    assert!(error.is_syntax());
    assert_eq!(error.to_string(), "nested too deeply at byte 128");
    assert!(skip(&"[".repeat(5_000_000)).is_err());
}

#[test]
fn errors_name_the_path_and_both_types() {
    let mut reader = Reader::new("[]", 8);
    let error = reader.begin_object().unwrap_err();
    let error = error.in_key("input").at_index(0).in_key("content").at_index(3);
    let error = error.in_key("messages");
    assert_eq!(
        error.to_string(),
        "messages[3].content[0].input: expected an object, but found an array"
    );
    assert!(!error.is_syntax());
}

#[test]
fn a_member_can_be_read_by_type_or_skipped() {
    let mut reader = Reader::new(r#"{"a":[1,"x",true,null],"b":-1.5,"c":{"d":7}}"#, 8);
    reader.begin_object().unwrap();
    assert_eq!(reader.next_key().unwrap().unwrap().raw(), "a");
    reader.begin_array().unwrap();
    assert!(reader.next_element().unwrap());
    assert_eq!(reader.u64().unwrap(), 1);
    assert!(reader.next_element().unwrap());
    assert_eq!(reader.string().unwrap().raw(), "x");
    assert!(reader.next_element().unwrap());
    assert!(reader.bool().unwrap());
    assert!(reader.next_element().unwrap());
    assert!(reader.null().unwrap());
    assert!(!reader.next_element().unwrap());
    assert_eq!(reader.next_key().unwrap().unwrap().raw(), "b");
    assert!(reader.clone().u64().is_err());
    assert_eq!(reader.number().unwrap(), "-1.5");
    assert_eq!(reader.next_key().unwrap().unwrap().raw(), "c");
    assert_eq!(reader.skip().unwrap(), r#"{"d":7}"#);
    assert!(reader.next_key().unwrap().is_none());
    reader.end().unwrap();
}

fn json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        any::<Option<bool>>().prop_map(|value| serde_json::to_string(&value).unwrap()),
        any::<i64>().prop_map(|value| value.to_string()),
        any::<f64>().prop_map(|value| serde_json::to_string(&value).unwrap()),
        ".{0,20}".prop_map(|value| serde_json::to_string(&value).unwrap()),
    ];
    leaf.prop_recursive(6, 48, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6)
                .prop_map(|values| format!("[ {}]", values.join(" , "))),
            prop::collection::vec((".{0,6}", inner), 0..6).prop_map(|members| {
                let members: Vec<String> = members
                    .into_iter()
                    .map(|(key, value)| {
                        format!("{} :\n{value}", serde_json::to_string(&key).unwrap())
                    })
                    .collect();
                format!("{{{}}}", members.join(",\t"))
            }),
        ]
    })
}

proptest! {
    #[test]
    fn what_serde_json_accepts_is_accepted_and_nothing_else(
        text in json(), at in any::<prop::sample::Index>(), byte in 0u8..128
    ) {
        prop_assert_eq!(skip(&text).unwrap(), text.as_str());
        // The JSON text with one byte changed.
        let mut mutated = text.into_bytes();
        let at = at.index(mutated.len());
        mutated[at] = byte;
        if let Ok(mutated) = String::from_utf8(mutated) {
            let expected = serde_json::from_str::<serde::de::IgnoredAny>(&mutated).is_ok();
            prop_assert_eq!(skip(&mutated).is_ok(), expected, "{}", mutated);
        }
    }
}
