//! Inputs in the history that are not as the model wrote them.
//!
//! n8n writes the id of a call into the input that it sends back: `{"query": "x", "id":
//! "toolu_…"}`. A model that imitates its history would begin to send ids of its own.

use crate::json::{Kind, Reader, Str, Writer};
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

/// The input without a member `id` that is the id of the call, where the tool's schema has no such
/// property; nothing where there is nothing to leave out.
pub(super) fn without_echoed_id(input: &str, id: Str<'_>, schema: Option<&str>) -> Option<String> {
    if !words::has(input, "\"id\"") || tool_schema::property(schema?, "id").is_some() {
        return None;
    }
    let mut found = false;
    let mut out = Vec::with_capacity(input.len());
    let mut json = Writer::new(&mut out);
    let mut reader = Reader::of(input);
    reader.begin_object().ok()?;
    json.begin_object();
    while let Some(key) = reader.next_key().ok()? {
        if key == "id" && reader.kind().ok()? == Kind::String {
            let value = reader.string().ok()?;
            if value == id {
                found = true;
            } else {
                json.key("id").str(value);
            }
            continue;
        }
        json.str(key).out().push(b':');
        json.raw(reader.skip().ok()?);
    }
    json.end_object();
    found.then(|| String::from_utf8(out).ok()).flatten()
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
