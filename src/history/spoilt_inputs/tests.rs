//! Tests of `spoilt_inputs.rs`.

use super::*;

#[test]
fn an_object_in_a_string_is_found_and_nothing_else() {
    assert_eq!(unwrapped(r#"" {\"a\": \"b\\n\"}\n""#), Some(r#"{"a": "b\n"}"#.to_owned()));
    for other in [r#""{\"a\":""#, r#""{} {}""#, r#""[1]""#, r#""x""#, r#""""#, "7", "[{}]", "null"]
    {
        assert_eq!(unwrapped(other), None, "{other}");
    }
}

#[test]
fn only_the_echo_of_the_call_id_is_left_out() {
    let schema = r#"{"type":"object","properties":{"q":{"properties":{"id":{}}}}}"#;
    let with_id = r#"{"properties": {"a": {}, "id": {"type":"string"}}}"#;
    let strip = |input, schema| without_echoed_id(input, Str::plain("toolu_1"), schema);
    assert_eq!(
        strip(r#"{"q": {"n": 1.10, "id": "toolu_1"}, "id": "toolu_1"}"#, Some(schema)),
        Some(r#"{"q":{"n": 1.10, "id": "toolu_1"}}"#.to_owned())
    );
    assert_eq!(strip(r#"{"id":"toolu_1"}"#, Some("{}")), Some("{}".to_owned()));
    assert_eq!(strip(r#"{"id":"toolu_2"}"#, Some(schema)), None);
    assert_eq!(strip(r#"{"id":7,"q":"toolu_1"}"#, Some(schema)), None);
    assert_eq!(strip(r#"{"id":"toolu_1"}"#, Some(with_id)), None);
    assert_eq!(strip(r#"{"id":"toolu_1"}"#, None), None);
}
