mod gemini;
mod kimi;
mod mended;
mod merged;
mod ollama;

use super::*;
use crate::dialect::schema::mended::mended as mend;
use crate::dialect::schema::strict::meets_strict_subset;
use crate::text::words;
use proptest::prelude::*;
use serde_json::{Value, json};

fn written(schema: &str, dialect: ToolSchema) -> String {
    let mut out = Vec::new();
    let (schema, found) = mend(schema.into(), Found::of(schema));
    write_schema(&mut Writer::new(&mut out), &schema, found, dialect);
    String::from_utf8(out).unwrap()
}

#[test]
fn a_complete_schema_is_copied_byte_for_byte() {
    let schema = "{ \"properties\" : {\"a\":{\"const\":1.10,\"const\":1E5}},\n\"type\":\"object\", \"$schema\":\"x\",\"additionalProperties\":false}";
    assert_eq!(written(schema, ToolSchema::Full), schema);
}

#[test]
fn what_a_function_needs_is_added() {
    for (schema, expected) in [
        ("{}", r#"{"type":"object","properties":{}}"#),
        (r#"{"type":null,"properties":null}"#, r#"{"type":"object","properties":{}}"#),
        (r#"{"type":"object"}"#, r#"{"type":"object","properties":{}}"#),
        (
            r#"{"type":"object","properties":{"a":{}},"required":null}"#,
            r#"{"type":"object","properties":{"a":{}}}"#,
        ),
        (
            r#"{"properties":{"a":{}},"required":["a"]}"#,
            r#"{"type":"object","properties":{"a":{}},"required":["a"]}"#,
        ),
    ] {
        for dialect in [ToolSchema::Full, ToolSchema::Mistral, ToolSchema::Gemini] {
            let value: Value = serde_json::from_str(&written(schema, dialect)).unwrap();
            assert_eq!(value, serde_json::from_str::<Value>(expected).unwrap(), "{schema}");
        }
        assert_eq!(written(schema, ToolSchema::Full), expected);
    }
    for (schema, expected) in [
        // llama.cpp would read a schema without properties as an object that must be empty.
        ("{}", r#"{"type":"object","properties":{},"additionalProperties":true}"#),
        (
            r#"{"type":"object","additionalProperties":false}"#,
            r#"{"type":"object","additionalProperties":false,"properties":{}}"#,
        ),
        (r#"{"properties":{}}"#, r#"{"type":"object","properties":{}}"#),
    ] {
        assert_eq!(written(schema, ToolSchema::LlamaCpp), expected);
    }
    let refers = r##"{"$ref":"#/$defs/a","$defs":{"a":{}}}"##;
    let expected = r##"{"type":"object","$ref":"#/$defs/a","$defs":{"a":{}},"properties":{}}"##;
    assert_eq!(written(refers, ToolSchema::Full), expected);
}

fn read(schema: &Value, dialect: ToolSchema) -> Value {
    serde_json::from_str(&written(&schema.to_string(), dialect)).unwrap()
}

#[test]
fn a_keyword_that_is_null_is_left_out_at_any_depth() {
    let schema = r#"{"type":"object","properties":{"p":{"type":null,"properties":{"a":{}},"required":null}}}"#;
    let expected =
        r#"{"type":"object","properties":{"p":{"properties":{"a":{}},"type":"object"}}}"#;
    for dialect in [ToolSchema::Gemini, ToolSchema::Kimi] {
        assert_eq!(written(schema, dialect), expected);
    }
}

#[test]
fn an_array_has_items_at_any_depth() {
    for (property, expected) in [
        (r#"{"type":"array"}"#, r#"{"type":"array","items":{}}"#),
        (r#"{"type":["array","null"]}"#, r#"{"type":["array","null"],"items":{}}"#),
        (
            r#"{"anyOf":[{"type":"array","items":{"type":"array","minItems":1}}]}"#,
            r#"{"anyOf":[{"type":"array","items":{"type":"array","minItems":1,"items":{}}}]}"#,
        ),
        // fastcore#798, TeXRA#2323: `prefixItems` without `items` is refused.
        (
            r#"{"type":"array","prefixItems":[{}]}"#,
            r#"{"type":"array","prefixItems":[{}],"items":{}}"#,
        ),
        (r#"{"enum":["array"]}"#, r#"{"enum":["array"]}"#),
    ] {
        let whole = |one: &str| format!(r#"{{"type":"object","properties":{{"p":{one}}}}}"#);
        assert_eq!(written(&whole(property), ToolSchema::Full), whole(expected));
        assert_eq!(written(&whole(property), ToolSchema::Mistral), whole(expected));
    }
}

#[test]
fn a_property_that_is_called_items_does_not_hide_an_array_without_them() {
    let whole = |properties: &str| format!(r#"{{"type":"object","properties":{{{properties}}}}}"#);
    for (properties, expected) in [
        (r#""items":{"type":"array"}"#, r#""items":{"type":"array","items":{}}"#),
        (
            r#""a":{"type":"array","description":"d"},"b":{"properties":{"items":{"type":"string"}}}"#,
            r#""a":{"type":"array","description":"d","items":{}},"b":{"properties":{"items":{"type":"string"}}}"#,
        ),
    ] {
        assert_eq!(written(&whole(properties), ToolSchema::Full), whole(expected));
    }
}

#[test]
fn arrays_that_have_items_are_copied_byte_for_byte() {
    for property in [
        r#"{"type":"array" , "items":{}}"#,
        r#"{ "items":{"type":"string"},"type":"array"}"#,
        r#"{ "type":["array","null"],"items":{"type" : "array","items":{}}}"#,
        r#"{"type":"array", "prefixItems":[{ }],"items":{}}"#,
        r#"{"enum":["array" ]}"#,
        r#"{"enum":["array", "items"]}"#,
    ] {
        let schema = format!(r#"{{"type":"object","properties":{{"items":{property}}}}}"#);
        assert_eq!(written(&schema, ToolSchema::Full), schema);
    }
}

#[test]
fn a_boolean_in_place_of_a_schema_is_written_as_an_object() {
    let whole = |property: &str, rest: &str| {
        format!(r#"{{"type":"object","properties":{{"p":{property}}}{rest}}}"#)
    };
    for (property, expected) in [
        ("true", "{}"),
        (" true", "{}"),
        ("false", "{}"),
        (r#"{"type":"array","items":true}"#, r#"{"type":"array","items":{}}"#),
        (r#"{"anyOf":[{"type":"string"}, true]}"#, r#"{"anyOf":[{"type":"string"},{}]}"#),
        (
            r#"{"properties":{"additionalProperties":{}},"additionalProperties":{"if":false,"not":false}}"#,
            r#"{"properties":{"additionalProperties":{}},"additionalProperties":{"if":{}}}"#,
        ),
    ] {
        for dialect in [ToolSchema::Full, ToolSchema::Mistral] {
            assert_eq!(written(&whole(property, ""), dialect), whole(expected, ""));
        }
    }
    let open = r#","additionalProperties" : true,"$defs":{"d":{"unevaluatedProperties":false,"default":true,"enum":[true, false],"description":"say: true, false"}}"#;
    for dialect in [ToolSchema::Full, ToolSchema::Mistral] {
        assert_eq!(written(&whole("true", open), dialect), whole("{}", &open.replace(" : ", ":")));
    }
    // A schema whose booleans are all data is copied unchanged.
    assert_eq!(written(&whole("{ }", open), ToolSchema::Full), whole("{ }", open));
}

#[test]
fn what_is_malformed_is_mended() {
    for (property, expected) in [
        // hermes-agent#104796, cherry-studio#4188: a property whose own `required` is a boolean.
        (r#"{"type":"string","required":true}"#, r#"{"type":"string"}"#),
        (r#"{"type":"string","required":false}"#, r#"{"type":"string"}"#),
        // Draft 4 of JSON Schema has a boolean `exclusiveMinimum`.
        (r#"{"type":"number","exclusiveMinimum":true}"#, r#"{"type":"number"}"#),
        (
            r#"{"type":"array","items":[{"type":"string"}]}"#,
            r#"{"type":"array","prefixItems":[{"type":"string"}],"items":{}}"#,
        ),
        (
            r#"{"type":"array","items":[],"prefixItems":[{"const":1}]}"#,
            r#"{"type":"array","prefixItems":[{"const":1}],"items":{}}"#,
        ),
        (r#"{"type":"array","items":[]}"#, r#"{"type":"array","items":{}}"#),
        // Keywords that are not set, and have the value `null`.
        (
            r#"{"type":"string","description":null,"format":null,"not":null,"anyOf":null,"default":null}"#,
            r#"{"type":"string","default":null}"#,
        ),
        (r#"{"type":null,"properties":[],"const":null}"#, r#"{"const":null}"#),
        (r#"{"type":"array","items":null,"enum":[]}"#, r#"{"type":"array","items":{}}"#),
        // vscode-unify-chat-provider#162: a keyword among the names of properties.
        (
            r#"{"type":"array","properties":{"type":"object"}}"#,
            r#"{"type":"array","properties":{"type":{}},"items":{}}"#,
        ),
    ] {
        let whole = |one: &str| format!(r#"{{"type":"object","properties":{{"p":{one}}}}}"#);
        for dialect in [ToolSchema::Full, ToolSchema::Mistral] {
            assert_eq!(written(&whole(property), dialect), whole(expected));
        }
        let llama = written(&whole(property), ToolSchema::LlamaCpp);
        assert!(!llama.contains("required") && !llama.contains("exclusive"), "{llama}");
        serde_json::from_str::<Value>(&llama).unwrap();
    }
    // PHP writes an empty object as `[]` (shopware#18713).
    let root = r#"{"type":"object","properties":[]}"#;
    assert_eq!(written(root, ToolSchema::Full), r#"{"type":"object","properties":{}}"#);
    let root = r#"{"type":"object","additionalProperties":null}"#;
    assert_eq!(
        written(root, ToolSchema::LlamaCpp),
        r#"{"type":"object","properties":{},"additionalProperties":true}"#
    );
    let root = r#"{"type":"object","properties":{"a":{}},"required":true}"#;
    assert_eq!(written(root, ToolSchema::Full), r#"{"type":"object","properties":{"a":{}}}"#);
}

#[test]
fn a_pattern_that_an_engine_refuses_is_left_out() {
    // Patterns of Claude Code's `Artifact` (two), of OpenAI, of zod, and one that DeepSeek refused.
    for (property, expected) in [
        (
            r#"{"type":"string","pattern":"^(?!__.*__$)[^\\p{Cc}\\p{Zl}\"\\\\./[\\]]{1,200}$","minLength":1}"#,
            r#"{"type":"string","minLength":1}"#,
        ),
        (
            r#"{"type":"array","items":{"type":"string","pattern" : "^[^\\0]*$"}}"#,
            r#"{"type":"array","items":{"type":"string"}}"#,
        ),
        (r#"{"pattern":"^[^/\\\\\\0]+$"}"#, "{}"),
        (r#"{"pattern":"^(?!\\.)(?!.*\\.\\.)([a-z]*)@[a-z]+$"}"#, "{}"),
        (r#"{"pattern":"a(?=b)"}"#, "{}"),
        (r#"{"pattern":"(?<=a)b"}"#, "{}"),
        (r#"{"pattern":"(?<!a)b"}"#, "{}"),
        (r#"{"pattern":"^[a-zA-Z0-9@#%^&*()_+\\-=[\\]{}|;:,.<>?~`]*$"}"#, "{}"),
        (r#"{"anyOf":[{"pattern":"^\\P{L}+$"}]}"#, r#"{"anyOf":[{}]}"#),
        (r#"{"type":"string","pattern":"\\\\\\pL"}"#, r#"{"type":"string"}"#),
        (
            r#"{"type":"object","properties":{"pattern":{"pattern":"\\p{L}"},"q":{"default":{"pattern":"\\p{L}"}}}}"#,
            r#"{"type":"object","properties":{"pattern":{},"q":{"default":{"pattern":"\\p{L}"}}}}"#,
        ),
    ] {
        let whole = |one: &str| format!(r#"{{"type":"object","properties":{{"p":{one}}}}}"#);
        assert_eq!(written(&whole(property), ToolSchema::Full), whole(expected));
        assert_eq!(written(&whole(property), ToolSchema::Mistral), whole(expected));
        let gemini = written(&whole(property), ToolSchema::Gemini);
        assert_eq!(words::has(&gemini, "\"pattern\":\""), words::has(expected, "default"));
    }
    let names = r#"{"type":"object","properties":{},"patternProperties":{"^\\p{L}":{},"^a":{"pattern":"\\p{L}"}}}"#;
    let expected = r#"{"type":"object","properties":{},"patternProperties":{"^a":{}}}"#;
    assert_eq!(written(names, ToolSchema::Full), expected);
    assert_eq!(written(names, ToolSchema::Mistral), expected);
}

#[test]
fn other_patterns_are_copied_byte_for_byte() {
    for pattern in [
        r#""^(?:a|b)[\\w\\d]+[a][b]$""#,
        // Escaped brackets and other signs in a character class.
        r#""[\\[(?=]\\[[a]]""#,
        // Every engine supports the escape `\x00`.
        r#""^[^\\x00]*$""#,
        // An escaped backslash before `p{2}` is no Unicode property.
        r#""^\\\\p{2}""#,
        r#""\\\\""#,
        r#""p{2}\\.""#,
    ] {
        let property =
            format!(r#"{{ "type":"string","description":"\\p{{L}}","pattern":{pattern}}}"#);
        let schema = format!(r#"{{"type":"object","properties":{{"p":{property}}}}}"#);
        assert_eq!(written(&schema, ToolSchema::Full), schema);
    }
}

#[test]
fn the_schema_of_an_output_is_mended_like_a_tools() {
    let sent = |schema: &str, tools| {
        let mut out = Vec::new();
        let (schema, found) = mend(schema.into(), Found::of(schema));
        write_output_schema(&mut Writer::new(&mut out), &schema, found, tools);
        String::from_utf8(out).unwrap()
    };
    let written = |schema: &str| sent(schema, ToolSchema::Full);
    let pattern = r#"{"anyOf":[{"type":"string","pattern":"^\\d$"}]}"#;
    assert_eq!(sent(pattern, ToolSchema::LlamaCpp), r#"{"anyOf":[{"type":"string"}]}"#);
    assert_eq!(sent(pattern, ToolSchema::Kimi), pattern);
    assert_eq!(
        sent(
            r##"{"$ref":"#/definitions/T","definitions":{"T":{"properties":{"a":{"type":"integer","anyOf":[{"enum":[1,null]}]}},"required":["a","b"]}}}"##,
            ToolSchema::Kimi
        ),
        r##"{"$ref":"#/$defs/T","$defs":{"T":{"properties":{"a":{"anyOf":[{"type":"number","enum":[1]}]}},"type":"object","required":["a"]}}}"##
    );
    for (schema, expected) in [
        (
            r#"{"type":"object","properties":{"a":{"type":"array"},"b":{"pattern":"\\p{L}"}}}"#,
            r#"{"type":"object","properties":{"a":{"type":"array","items":{}},"b":{}}}"#,
        ),
        // A schema that is not a function's gets nothing added to its root.
        (r#"{ "anyOf":[{"type":"string"}]}"#, r#"{ "anyOf":[{"type":"string"}]}"#),
        (r#"{"type":"array","required":null}"#, r#"{"type":"array","items":{}}"#),
    ] {
        assert_eq!(written(schema), expected);
    }
}

#[test]
fn mistral_gets_no_keyword_that_breaks_its_grammar() {
    // Keywords that break Mistral's grammar, in the root, deeper, and as names of properties.
    for (schema, expected) in [
        (
            r#"{"$schema":"http://json-schema.org/draft-07/schema#","$id":"x","type":"object","properties":{},"additionalProperties":false}"#,
            r#"{"type":"object","properties":{}}"#,
        ),
        (
            r#"{"type":"object","properties":{"$id":{"type":"string"},"strict":{"type":"object","strict":true,"additionalProperties":false},"additionalProperties":{}},"required":["$id"]}"#,
            r#"{"type":"object","properties":{"$id":{"type":"string"},"strict":{"type":"object"},"additionalProperties":{}},"required":["$id"]}"#,
        ),
        (
            r#"{"type":"object","properties":{"a":{"type":"array","items":{"$schema":"x","anyOf":[{"$id":"y","type":"string"},true]}}},"additionalProperties":{"$id":"z","type":"string"}}"#,
            r#"{"type":"object","properties":{"a":{"type":"array","items":{"anyOf":[{"type":"string"},{}]}}},"additionalProperties":{"type":"string"}}"#,
        ),
        (
            r#"{"type":"object","properties":{"a":{"default":{"$id":1,"strict":false},"enum":[{"$schema":2}]}},"additionalProperties":true,"$defs":{"$schema":{"$id":"q"}}}"#,
            r#"{"type":"object","properties":{"a":{"default":{"$id":1,"strict":false},"enum":[{"$schema":2}]}},"additionalProperties":true,"$defs":{"$schema":{}}}"#,
        ),
        (
            r#"{"\u0024schema":"x","type":"object","properties":{"a\"b":{"strict":1}}}"#,
            r#"{"type":"object","properties":{"a\"b":{}}}"#,
        ),
    ] {
        assert_eq!(written(schema, ToolSchema::Mistral), expected);
    }
}

#[test]
fn llama_cpp_gets_nothing_that_breaks_its_grammar() {
    for (property, expected) in [
        // Claude Code's `Workflow` has this maximum length.
        (r#"{"type":"string","maxLength":524288}"#, r#"{"type":"string"}"#),
        (r#"{"type":"string","minLength":1,"maxLength":1999}"#, ""),
        (r#"{"type":"string","minLength":2000,"maxLength":2.5e3}"#, r#"{"type":"string"}"#),
        (r#"{"type":"array","minItems":1e9,"maxItems":2000}"#, r#"{"type":"array"}"#),
        (r#"{"type":"string","pattern":"^\\S+$"}"#, r#"{"type":"string"}"#),
        (r#"{"type":"array","items":{"pattern":"[a-z]+"}}"#, r#"{"type":"array","items":ANY}"#),
        (r#"{"properties":{"pattern":{"type":"string"},"maxLength":{"const":9999}}}"#, ""),
        // llama.cpp resolves only references that are paths; zod writes others.
        (r##"{"items":{"$ref":"#"}}"##, r#"{"items":ANY}"#),
        (r##"{"$ref":"#node","description":"d"}"##, r#"{TYPES,"description":"d"}"#),
        // llama.cpp reads a schema for any value as any object, unless all types are named.
        ("{}", "ANY"),
        ("true", "ANY"),
        ("null", "ANY"),
        (r#"{"not":{"type":"null"}}"#, r#"{TYPES,"not":{"type":"null"}}"#),
        (r#"{"additionalProperties":{}}"#, r#"{"additionalProperties":ANY}"#),
        (r#"{"additionalProperties":true}"#, r#"{TYPES,"additionalProperties":true}"#),
        (r#"{"type":"object"}"#, ""),
        (r#"{"type":"array"}"#, ""),
        (r#"{"type":["array","null"]}"#, ""),
        (r#"{"type":"array","items":true}"#, r#"{"type":"array"}"#),
        (
            r#"{"prefixItems":[{"enum":["a"]}],"items":false}"#,
            r#"{"prefixItems":[{"enum":["a"]}]}"#,
        ),
        (r##"{"$ref":"#/$defs/node"}"##, ""),
        // Beside properties, llama.cpp makes its grammar of the choice alone.
        (
            r#"{"properties":{"a":{"const":1},"b":{"const":2}},"anyOf":[{"required":["a"]},{"required":["b"]}]}"#,
            r#"{"type":"object","properties":{"a":{"const":1},"b":{"const":2}}}"#,
        ),
        (
            r##"{"properties":{"a":{"const":1}},"allOf":[{"properties":{"b":{"$ref":"#"}},"required":["b"]}]}"##,
            r#"{"type":"object","properties":{"a":{"const":1},"b":ANY},"required":["b"]}"#,
        ),
        (r#"{"anyOf":[{"properties":{"a":{"const":1}}},{"type":"string"}]}"#, ""),
        // Choices that cannot be merged completely stay unchanged.
        (
            r##"{"properties":{"a":{"const":1}},"anyOf":[{"$ref":"#/$defs/x"},{"properties":{"b":{"const":2}}}]}"##,
            "",
        ),
        (
            r##"{"properties":{"a":{"const":1}},"anyOf":[{"properties":{"b":{"$ref":"#/anyOf/0/properties/c"}}}]}"##,
            "",
        ),
    ] {
        let whole = |one: &str| format!(r#"{{"type":"object","properties":{{"p":{one}}}}}"#);
        let types = r#""anyOf":[{"type":"string"},{"type":"number"},{"type":"boolean"},{"type":"object"},{"type":"array"},{"type":"null"}]"#;
        let expected = if expected.is_empty() { property } else { expected };
        let expected = expected.replace("ANY", "{TYPES}").replace("TYPES", types);
        assert_eq!(written(&whole(property), ToolSchema::LlamaCpp), whole(&expected));
    }
}

#[test]
fn kimi_gets_its_own_flavour() {
    for (schema, expected) in [
        (json!(true), json!({})),
        (json!({"enum": ["a", "b"]}), json!({"type": "string", "enum": ["a", "b"]})),
        (json!({"enum": [1, 2.5, null]}), json!({"type": "number", "enum": [1, 2.5]})),
        (json!({"type": "string", "enum": ["a", null]}), json!({"type": "string", "enum": ["a"]})),
        (json!({"enum": [1, "auto"], "description": "d"}), json!({"description": "d"})),
        (json!({"enum": [null]}), json!({})),
        (
            json!({"type": "string", "anyOf": [{"enum": ["a"]}, {"type": "null"}], "description": "d", "default": "a"}),
            json!({"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}], "description": "d"}),
        ),
        (
            json!({"type": "object", "anyOf": [{"properties": {"a": {}}, "required": ["a", "b"]}]}),
            json!({"anyOf": [{"properties": {"a": {}}, "type": "object", "required": ["a"]}]}),
        ),
        (
            json!({"type": "object", "properties": {"a": {}}, "anyOf": [{"required": ["a"]}]}),
            json!({"type": "object", "properties": {"a": {}}, "required": ["a"]}),
        ),
        (
            json!({"type": "object", "properties": {"a": {"enum": [1]}}, "required": ["a", "z"], "anyOf": [
                {"properties": {"a": {}, "b": {}}, "required": ["b", "c"]}, {"properties": {"c": true}, "required": ["c"]}
            ]}),
            json!({"type": "object", "properties": {"a": {"type": "number", "enum": [1]}, "b": {}, "c": {}}, "required": ["a", "c"]}),
        ),
        (
            json!({"$ref": "#/definitions/a%20\"", "type": "string", "description": "d"}),
            json!({"$ref": "#/$defs/a%20\"", "description": "d"}),
        ),
        (
            json!({"type": "object", "properties": {"x": {"$ref": "#", "type": "object"}}}),
            json!({"type": "object", "properties": {"x": {"$ref": "#"}}}),
        ),
        (json!({"$ref": "#/properties/x/items", "type": "string"}), json!({"type": "string"})),
        (
            json!({"type": "array", "items": [{"type": "string"}, true]}),
            json!({"type": "array", "prefixItems": [{"type": "string"}, {}]}),
        ),
        (json!({"type": "array", "items": true}), json!({"type": "array", "items": {}})),
        // Keywords beside a choice are left out, and so is a choice whose branches state no type.
        (
            json!({"type": ["array", "null"], "anyOf": [{"type": "array"}, {"type": "null"}]}),
            json!({"anyOf": [{"type": "array"}, {"type": "null"}]}),
        ),
        (
            json!({"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}),
            json!({"type": "object"}),
        ),
        (
            json!({"type": "object", "properties": {"enum": false, "$ref": {"const": 1}}, "additionalProperties": false}),
            json!({"type": "object", "properties": {"enum": {}},
                "description": "Further properties: {\"$ref\":{\"const\":1}}."}),
        ),
    ] {
        let whole = json!({"type": "object", "properties": {"p": schema}, "required": ["p", "q"],
            "anyOf": [{"required": ["p"]}], "$ref": "#/$defs/d", "definitions": {"d": true, "a%20\"": true}});
        let value = read(&whole, ToolSchema::Kimi);
        let expected = json!({"type": "object", "properties": {"p": expected}, "required": ["p"], "$defs": {"d": {}, "a%20\"": {}}});
        assert_eq!(value, expected, "{whole}");
    }
}

#[test]
fn kimi_gets_one_list_of_definitions() {
    let whole = json!({"type": "object", "properties": {"p": {"$ref": "#/definitions/b"}},
        "$defs": {"a": {"enum": ["x"]}}, "definitions": {"b": {"enum": [1]}, "a": {}}});
    let written = written(&whole.to_string(), ToolSchema::Kimi);
    assert_eq!(words::places(&written, "\"$defs\"").count(), 1, "{written}");
    let value: Value = serde_json::from_str(&written).unwrap();
    let expected =
        json!({"a": {"type": "string", "enum": ["x"]}, "b": {"type": "number", "enum": [1]}});
    assert_eq!(value["$defs"], expected);
}

#[test]
fn a_schema_as_deep_as_can_be_read_is_filtered() {
    let mut schema = r#"{"type":"string","title":"leaf"}"#.to_owned();
    for _ in 0..63 {
        schema = format!(r#"{{"type":"object","properties":{{"a":{schema}}}}}"#);
    }
    assert!(!written(&schema, ToolSchema::Gemini).contains("leaf"));
    let deeper = format!(r#"{{"type":"object","properties":{{"a":{schema}}}}}"#);
    assert_eq!(written(&deeper, ToolSchema::Gemini), deeper);
    assert!(!meets_strict_subset(&deeper));
}

/// Strategy for names of properties, some of which are also keywords.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "$schema",
            "$id",
            "strict",
            "title",
            "format",
            "const",
            "enum",
            "oneOf",
            "anyOf",
            "type",
            "properties",
            "additionalProperties",
            "examples",
            "discriminator",
            "exclusiveMinimum",
            "description",
            "items",
            "required",
        ])
        .prop_map(str::to_owned),
        ".{0,4}",
    ]
}

fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "string", "title": "t", "format": "date", "$id": "i"})),
        Just(json!({"type": ["integer", "null"], "exclusiveMinimum": 0, "description": "d"})),
        Just(json!({"enum": [1, null, "x"]})),
        Just(json!({"const": {"a": [1]}})),
        Just(json!(true)),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            (prop::collection::btree_map(name(), inner.clone(), 0..4), any::<bool>()).prop_map(
                |(properties, closed)| {
                    let names: Vec<_> = properties.keys().cloned().collect();
                    json!({"type": "object", "title": "t", "properties": properties,
                        "required": names, "additionalProperties": !closed, "strict": true})
                }
            ),
            prop::collection::vec(inner.clone(), 1..3)
                .prop_map(|all| json!({"oneOf": all, "discriminator": {"propertyName": "x"}})),
            inner.clone().prop_map(|items| json!({"type": "array", "items": items})),
            (name(), inner).prop_map(|(name, inner)| json!({"$ref": "#", "$defs": {name: inner}})),
        ]
    })
}

/// Collects all names of properties, each with the path of its schema.
fn property_names(schema: &Value, path: &str, names: &mut Vec<String>) {
    match schema {
        Value::Object(members) => {
            for (keyword, value) in members {
                match (keyword.as_str(), value) {
                    ("properties" | "$defs", Value::Object(named)) => {
                        for (name, inner) in named {
                            let path = format!("{path}/{name}");
                            names.push(path.clone());
                            property_names(inner, &path, names);
                        }
                    }
                    ("oneOf" | "anyOf" | "items" | "additionalProperties", value) => {
                        property_names(value, path, names);
                    }
                    _ => {}
                }
            }
        }
        Value::Array(all) => {
            all.iter().for_each(|one| property_names(one, path, names));
        }
        _ => {}
    }
}

proptest! {
    #[test]
    fn a_filtered_schema_is_json_and_keeps_every_property(
        properties in prop::collection::btree_map(name(), schema(), 0..4)
    ) {
        filtered_schemas_keep_every_property(&json!({"properties": properties, "$schema": "s"}));
    }
}

fn filtered_schemas_keep_every_property(schema: &Value) {
    for dialect in [ToolSchema::Full, ToolSchema::Mistral, ToolSchema::Gemini, ToolSchema::LlamaCpp]
    {
        let filtered = read(schema, dialect);
        let (mut before, mut after) = (Vec::new(), Vec::new());
        property_names(schema, "", &mut before);
        property_names(&filtered, "", &mut after);
        before.sort();
        after.sort();
        assert_eq!(before, after);
        assert_eq!(&filtered["type"], "object");
    }
}

#[test]
fn a_property_may_have_the_name_of_a_keyword() {
    let inner = json!({"type": "string", "title": "t", "format": "date", "$id": "i"});
    filtered_schemas_keep_every_property(&json!({"$schema": "s", "properties": {"$schema": {
        "oneOf": [{"$ref": "#", "$defs": {"$schema": inner}}], "discriminator": {"propertyName": "x"},
    }}}));
}
