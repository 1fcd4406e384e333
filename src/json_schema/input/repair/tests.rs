//! Tests of `repair.rs`.

use super::*;

#[test]
fn a_text_becomes_the_json_that_its_schema_wants_and_nothing_else_changes() {
    let schema = r##"{"type":"object","$defs":{"p":{"type":"array"}},"properties":{
            "list":{"type":"array","items":{"type":"object","properties":{"n":{"type":"integer"}}}},
            "object":{"type":"object"}, "flag":{"type":"boolean"}, "ref":{"$ref":"#/$defs/p"},
            "text":{"type":"string"}, "any":{}, "either":{"anyOf":[{"type":"array"},{"type":"string"}]},
            "null":{"type":["array","null"]}, "few":{"type":"array","maxItems":1},
            "long":{"type":["string","number"],"minLength":5}, "one":{"enum":[1,"a"]},
            "some":{"anyOf":[{"type":"array"},{"$ref":"#/$defs/p"},{"type":"boolean"}]},
            "short":{"oneOf":[{"type":"string","maxLength":1},{"type":"integer"}]}}}"##;
    for (input, expected) in [
        (r#"{"a": 1, "list": "[{\"n\": 1}]"}"#, Some(r#"{"a":1,"list":[{"n": 1}]}"#)),
        (r#"{"list": [{"n": "7"}, {"n": 8}]}"#, Some(r#"{"list":[{"n":7},{"n": 8}]}"#)),
        (r#"{"list": "[{\"n\":\"7\"}]"}"#, Some(r#"{"list":[{"n":7}]}"#)),
        (
            r#"{"object": " {\"é\\n\": 1.10} ", "flag": "true"}"#,
            Some("{\"object\":{\"é\\n\": 1.10},\"flag\":true}"),
        ),
        (r#"{"ref": "[]", "null": "null"}"#, Some(r#"{"ref":[],"null":null}"#)),
        (r#"{"some": "[1]"}"#, Some(r#"{"some":[1]}"#)),
        // Strings that may be meant as texts stay.
        (r#"{"long": "123", "short": "123", "one": "1"}"#, None),
        // Values that fit the schema stay.
        (r#"{"text": "[1]", "any": "[1]", "either": "[1]", "other": "[1]"}"#, None),
        // Values that would fit no better without quotes stay.
        (r#"{"list": "[1,", "object": "[]", "flag": "yes", "few": "[1,2]", "ref": "[] []"}"#, None),
        (r#"{"list": "\"[]\""}"#, Some(r#"{"list":[]}"#)),
        ("[1]", None),
        ("7", None),
    ] {
        let unquoted = unquoted(schema, input, &mut ValidationBudget::default());
        assert_eq!(unquoted.as_deref(), expected, "{input}");
    }
    assert_eq!(unquoted("true", r#"{"a":"[]"}"#, &mut ValidationBudget::default()), None);
    assert_eq!(unquoted(schema, r#"{"ref":"[]"}"#, &mut ValidationBudget { bytes: 0 }), None);
}
