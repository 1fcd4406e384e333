//! Tests of schemas that no draft allows, and of schemas that allow no value.

use super::*;

const DIALECTS: [ToolSchema; 6] = [
    ToolSchema::Full,
    ToolSchema::Mistral,
    ToolSchema::Gemini,
    ToolSchema::Kimi,
    ToolSchema::LlamaCpp,
    ToolSchema::Ollama,
];

fn output(schema: &str, tools: ToolSchema) -> String {
    let mut out = Vec::new();
    let (schema, found) = mend(schema.into(), Found::of(schema));
    write_output_schema(&mut Writer::new(&mut out), &schema, found, tools);
    String::from_utf8(out).unwrap()
}

#[test]
fn a_fault_is_mended_at_any_depth_and_by_itself() {
    for (schema, expected) in [
        // php-sdk#405: PHP writes an empty object as `[]`.
        (r#"{"type":"object","properties":[]}"#, r#"{"type":"object"}"#),
        (r#"{"type":"object","properties":null}"#, r#"{"type":"object"}"#),
        (
            r#"{"type":"object","properties":{"a":{"type":"string"}},"required":{}}"#,
            r#"{"type":"object","properties":{"a":{"type":"string"}}}"#,
        ),
        (
            r#"{"type":"object","properties":{"a":{"type":"string"}},"required":"a"}"#,
            r#"{"type":"object","properties":{"a":{"type":"string"}}}"#,
        ),
        (
            r#"{"type":"object","properties":{"a":{"type":"string"}},"required":["a",1,"a",null]}"#,
            r#"{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}"#,
        ),
        (r#"{"type":"object","additionalProperties":[]}"#, r#"{"type":"object"}"#),
        (r#"{"type":"array","items":[]}"#, r#"{"type":"array","items":{}}"#),
        (r#"{"type":"array","items":"string"}"#, r#"{"type":"array","items":{}}"#),
        (r#"{"type":"string","enum":{}}"#, r#"{"type":"string"}"#),
        (r#"{"type":"string","enum":[]}"#, r#"{"type":"string"}"#),
        (r#"{"type":"string","description":5}"#, r#"{"type":"string"}"#),
        (r#"{"type":"string","title":["t"]}"#, r#"{"type":"string"}"#),
        (r#"{"type":"string","pattern":{}}"#, r#"{"type":"string"}"#),
        (r#"{"type":"string","minLength":"1"}"#, r#"{"type":"string"}"#),
        (r#"{"type":"integer","minimum":"0"}"#, r#"{"type":"integer"}"#),
        (r#"{"type":"string","maxLength":-1}"#, r#"{"type":"string"}"#),
        // moon#2396: unknown types, and types of other languages.
        (r#"{"type":null,"enum":["a"]}"#, r#"{"enum":["a"]}"#),
        (r#"{"type":"unknown","enum":["a"]}"#, r#"{"enum":["a"]}"#),
        (r#"{"type":["string","any"],"enum":["a"]}"#, r#"{"enum":["a"]}"#),
        (r#"{"type":[],"enum":["a"]}"#, r#"{"enum":["a"]}"#),
        (r#"{"type":"STRING"}"#, r#"{"type":"string"}"#),
        (r#"{"type":"int"}"#, r#"{"type":"integer"}"#),
    ] {
        for dialect in [ToolSchema::Full, ToolSchema::Mistral] {
            let whole = |one: &str| format!(r#"{{"type":"object","properties":{{"p":{one}}}}}"#);
            assert_eq!(written(&whole(schema), dialect), whole(expected), "{dialect:?}");
            assert_eq!(output(&whole(schema), dialect), whole(expected), "{dialect:?}");
            let deep = |one: &str| {
                whole(&format!(
                    r#"{{"type":"array","items":{{"anyOf":[{{"type":"null"}},{one}]}}}}"#
                ))
            };
            assert_eq!(written(&deep(schema), dialect), deep(expected), "{dialect:?}");
            assert_eq!(output(&deep(schema), dialect), deep(expected), "{dialect:?}");
        }
        for dialect in DIALECTS {
            let whole = json!({"type": "object", "properties": {"p": serde_json::from_str::<Value>(schema).unwrap()}});
            assert_eq!(read(&whole, dialect), read(&read(&whole, dialect), dialect), "{dialect:?}");
        }
    }
}

#[test]
fn each_property_is_a_schema_in_every_dialect() {
    for property in ["5", "\"string\"", "[\"string\"]", "[]", "null", "true", "false"] {
        let schema = format!(
            r#"{{"type":"object","properties":{{"a":{{"type":"object","properties":{{"type":{property},"b":{{"type":"null"}}}}}}}},"$defs":{{"d":{property}}}}}"#
        );
        for dialect in DIALECTS {
            for text in [written(&schema, dialect), output(&schema, dialect)] {
                let value: Value = serde_json::from_str(&text).unwrap();
                let inner = &value["properties"]["a"]["properties"];
                assert!(inner["type"].is_object() && inner["b"].is_object(), "{dialect:?}: {text}");
            }
        }
        assert_eq!(
            written(&schema, ToolSchema::Full),
            r#"{"type":"object","properties":{"a":{"type":"object","properties":{"type":{},"b":{"type":"null"}}}},"$defs":{"d":{}}}"#
        );
    }
}

#[test]
fn a_schema_without_faults_is_copied_byte_for_byte() {
    let schema = r#"{ "type":"object", "properties" : {"required":{"type":"string","x-order":1.0},
        "type":{"type":["string","null"],"default":null,"minLength":1E0,"deprecated":true},
        "enum":{"anyOf":[{"not":{"type":"null"}},{"const":null}]},"items":{"uniqueItems":true,"enum":[[],{}]},
        "a\u002fb":{"examples":{"properties":[]},"default":{"required":true},"dependentRequired":[]}},
        "required":["required","type"],"additionalProperties":{"not":{"type":"string"}} }"#;
    assert_eq!(written(schema, ToolSchema::Full), schema);
    assert_eq!(output(schema, ToolSchema::Full), schema);
}

#[test]
fn a_branch_that_allows_nothing_is_left_out() {
    let number = json!({"type": "number"});
    for (given, expected) in [
        // CloudBase-AI-Toolkit#626: an optional value as zod writes it.
        (json!({"anyOf": [{"not": {}}, number]}), number.clone()),
        (json!({"oneOf": [number, {"not": {}}]}), number.clone()),
        (json!({"anyOf": [{"not": true}, number]}), number.clone()),
        (json!({"anyOf": [false, number]}), number.clone()),
        (json!({"anyOf": [{"enum": []}, number]}), number.clone()),
        (json!({"anyOf": [{"not": {}, "description": "never"}, number]}), number.clone()),
        (json!({"anyOf": [{"allOf": [{"type": "string"}, {"not": {}}]}, number]}), number.clone()),
        (json!({"anyOf": [{"anyOf": [{"not": {}}, false]}, number]}), number.clone()),
        (json!({"anyOf": [{"not": {}}, {"anyOf": [{"not": {}}, number]}]}), number.clone()),
        (
            json!({"anyOf": [{"not": {}}, {"type": "number", "description": "inner"}], "description": "d"}),
            json!({"type": "number", "description": "d"}),
        ),
        (
            json!({"anyOf": [{"not": {}}, number, {"type": "string"}]}),
            json!({"anyOf": [number, {"type": "string"}]}),
        ),
    ] {
        let whole = json!({"type": "object", "properties": {"limit": given}});
        for dialect in DIALECTS {
            assert_eq!(
                read(&whole, dialect)["properties"]["limit"],
                expected,
                "{dialect:?} {given}"
            );
            let sent: Value = serde_json::from_str(&output(&whole.to_string(), dialect)).unwrap();
            assert_eq!(sent["properties"]["limit"], expected, "{dialect:?} {given}");
        }
    }
    // A single branch stays in the choice if the schema has one of its keywords, too.
    let clash = json!({"type": "object", "properties": {"p": {"minimum": 1, "anyOf": [{"not": {}}, {"type": "number", "minimum": 2}]}}});
    let expected = json!({"minimum": 1, "anyOf": [{"type": "number", "minimum": 2}]});
    assert_eq!(read(&clash, ToolSchema::Full)["properties"]["p"], expected);
    // A branch that allows no value stays if a reference counts branches.
    let counted = json!({"type": "object", "properties": {"p": {"anyOf": [{"not": {}}, number]},
        "q": {"$ref": "#/properties/p/anyOf/1"}}});
    assert_eq!(read(&counted, ToolSchema::Full), counted);
}

#[test]
fn a_property_that_allows_nothing_is_left_out() {
    for never in [
        json!({"not": {}}),
        json!({"not": true, "description": "never"}),
        json!({"anyOf": [{"not": {}}]}),
        json!({"allOf": [{"type": "string"}, {"not": {}}]}),
    ] {
        let whole = json!({"type": "object", "properties": {"gone": never, "a": {"type": "string"}},
            "required": ["gone", "a"]});
        let expected =
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]});
        for dialect in DIALECTS {
            assert_eq!(read(&whole, dialect), expected, "{dialect:?} {never}");
        }
    }
    let map = json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"not": {}}});
    for dialect in [ToolSchema::Full, ToolSchema::Kimi, ToolSchema::LlamaCpp, ToolSchema::Ollama] {
        assert_eq!(read(&map, dialect)["additionalProperties"], false, "{dialect:?}");
    }
    // A property may be called `not`.
    let named =
        json!({"type": "object", "properties": {"not": {"type": "object", "properties": {}}}});
    assert_eq!(read(&named, ToolSchema::Full), named);
}

#[test]
fn a_schema_of_impossible_branches_can_be_strict() {
    let schema = r#"{"type":"object","properties":{"a":{"anyOf":[{"not":{}},{"type":"number"}]}},"required":["a"],"additionalProperties":false}"#;
    assert!(!meets_strict_subset(schema));
    assert!(meets_strict_subset(&mend(schema.into(), Found::of(schema)).0));
}
