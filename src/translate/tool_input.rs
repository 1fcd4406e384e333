//! Inputs in the history that are not as the model wrote them.
//!
//! n8n writes the id of a call into the input that it sends back: `{"query": "x", "id":
//! "toolu_…"}`. A model that imitates its history would begin to send ids of its own.

use crate::json::{Kind, Reader, Str};
use crate::tool_schema;
use crate::words;

/// The object inside of a JSON string: some clients keep inputs as texts.
pub(super) fn unwrapped(input: &str) -> Option<String> {
    let inside = Reader::new(input, 1).string().ok()?.decode();
    let mut reader = Reader::of(&inside);
    let is_object = reader.kind().ok()? == Kind::Object;
    let object = reader.skip().ok()?;
    reader.end().ok()?;
    is_object.then(|| object.to_owned())
}

/// The input without a member `id` that is the id of the call; nothing where there is nothing to leave out.
/// Of a tool that is not offered nobody knows whether it has such a property: its input stays.
pub(super) fn without_echoed_id(input: &str, id: Str<'_>, schema: Option<&str>) -> Option<String> {
    if !words::has(input, "\"id\"") {
        return None;
    }
    tool_schema::without_id(input, Some(schema?), &|value| value == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_in_a_string_is_found_and_nothing_else() {
        assert_eq!(unwrapped(r#"" {\"a\": \"b\\n\"}\n""#), Some(r#"{"a": "b\n"}"#.to_owned()));
        for other in
            [r#""{\"a\":""#, r#""{} {}""#, r#""[1]""#, r#""x""#, r#""""#, "7", "[{}]", "null"]
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
}
