//! Tests of schemas for Ollama.

use super::*;

fn property(property: &Value, definitions: &Value) -> Value {
    let schema = json!({"type": "object", "properties": {"p": property}, "$defs": definitions});
    let mut sent = read(&schema, ToolSchema::Ollama);
    assert_eq!(sent.get("$defs"), None, "{sent}");
    sent["properties"]["p"].take()
}

#[test]
fn ollama_gets_what_it_would_leave_out_in_words_that_it_keeps() {
    let definitions = json!({
        "Color": {"enum": ["red", "blue"], "type": "string", "description": "A color."},
        "Pen": {"type": "object", "properties": {"color": {"$ref": "#/$defs/Color"}}, "required": ["color"]},
    });
    let color = json!({"enum": ["red", "blue"], "type": "string", "description": "A color."});
    let ours = json!({"enum": ["red", "blue"], "type": "string", "description": "Ours."});
    let pen = json!({"type": "object", "properties": {"color": color}, "required": ["color"]});
    for (given, expected) in [
        (json!({"$ref": "#/$defs/Color"}), color.clone()),
        (json!({"$ref": "#/$defs/Color", "description": "Ours.", "default": "red"}), ours.clone()),
        (json!({"allOf": [{"$ref": "#/$defs/Color"}], "description": "Ours."}), ours),
        (json!({"$ref": "#/$defs/Pen"}), pen.clone()),
        (
            json!({"type": "array", "items": {"$ref": "#/$defs/Pen"}}),
            json!({"type": "array", "items": pen}),
        ),
        (
            json!({"anyOf": [{"$ref": "#/$defs/Pen"}, {"type": "null"}]}),
            json!({"anyOf": [pen, {"type": "null"}]}),
        ),
        (
            json!({"oneOf": [{"const": "a", "type": "string"}, {"const": 1}]}),
            json!({"anyOf": [{"enum": ["a"], "type": "string"}, {"enum": [1]}]}),
        ),
        // References that do not lead to a definition.
        (json!({"$ref": "#/$defs/None", "description": "d"}), json!({"description": "d"})),
        (json!({"$ref": "#/properties/p"}), json!({"$ref": "#/properties/p"})),
        // Schemas that Ollama shows to the model in part.
        (
            json!({"properties": {"a": {}}, "allOf": [{"required": ["a"]}]}),
            json!({"properties": {"a": {}}, "allOf": [{"required": ["a"]}]}),
        ),
        (json!({"const": 1, "enum": [1, 2]}), json!({"const": 1, "enum": [1, 2]})),
        (
            json!({"type": "string", "enum": ["a"], "allOf": [{"minLength": 1}]}),
            json!({"type": "string", "enum": ["a"], "allOf": [{"minLength": 1}]}),
        ),
        (
            json!({"anyOf": [{"type": "string"}], "allOf": [{"minLength": 1}]}),
            json!({"anyOf": [{"type": "string"}], "allOf": [{"minLength": 1}]}),
        ),
        (
            json!({"$ref": "#/$defs/None", "type": "string"}),
            json!({"$ref": "#/$defs/None", "type": "string"}),
        ),
    ] {
        assert_eq!(property(&given, &definitions), expected, "{given}");
    }
    // Pydantic before version 2 writes `definitions`.
    let old = json!({"type": "object", "properties": {"p": {"$ref": "#/definitions/T"}}, "definitions": {"T": {"type": "string"}}});
    let expected = json!({"type": "object", "properties": {"p": {"type": "string"}}});
    assert_eq!(read(&old, ToolSchema::Ollama), expected);
    // Ollama drops a reference in the root, too.
    let root = json!({"$ref": "#/$defs/T", "$defs": {"T": {"type": "object", "properties": {"a": {"const": 1}}}}});
    let expected = json!({"type": "object", "properties": {"a": {"enum": [1]}}});
    assert_eq!(read(&root, ToolSchema::Ollama), expected);
}

#[test]
fn what_ollama_keeps_is_copied_byte_for_byte() {
    let schema = r#"{ "type":"object","properties":{"a":{"anyOf":[{"enum":[1.0]}]}},"$defs":{}}"#;
    assert_eq!(written(schema, ToolSchema::Ollama), schema);
}

#[test]
fn definitions_within_themselves_end() {
    let node = json!({"type": "object", "properties": {"next": {"$ref": "#/$defs/Node", "description": "d"}}});
    let expected = json!({"type": "object", "properties": {"next": {"description": "d"}}});
    assert_eq!(property(&json!({"$ref": "#/$defs/Node"}), &json!({"Node": node})), expected);
    // The maximum of nested references, and many references of a short schema to one definition.
    let mut definitions = json!({"D6": {"type": "string"}});
    for at in 1..6 {
        definitions[format!("D{at}")] = json!({"items": {"$ref": format!("#/$defs/D{}", at + 1)}});
    }
    let deep = property(&json!({"$ref": "#/$defs/D1"}), &definitions);
    let items = "/items".repeat(5);
    assert_eq!(deep.pointer(&items), Some(&json!({"type": "string"})), "{deep}");
    let long = json!({"type": "string", "enum": ["x".repeat(300)]});
    let many: serde_json::Map<String, Value> =
        (0..40).map(|at| (format!("p{at}"), json!({"$ref": "#/$defs/Long"}))).collect();
    let sent = property(&json!({"type": "object", "properties": many}), &json!({"Long": long}));
    for at in 0..40 {
        assert_eq!(sent["properties"][format!("p{at}")], long);
    }
    // Each definition refers to the next one twice.
    let mut definitions = json!({});
    for at in 0..40 {
        let next = json!({"$ref": format!("#/$defs/D{}", at + 1)});
        definitions[format!("D{at}")] = json!({"properties": {"a": next, "b": next}});
    }
    let schema = json!({"type": "object", "properties": {"p": {"$ref": "#/$defs/D0"}}, "$defs": definitions});
    let sent = written(&schema.to_string(), ToolSchema::Ollama);
    assert!(sent.len() < 40 << 10, "{}", sent.len());
    // A definition that is too deep is replaced by a schema for any value.
    let deep = (0..20).fold(json!({}), |inner, _| json!({"items": inner}));
    assert_eq!(property(&json!({"$ref": "#/$defs/T"}), &json!({"T": deep})), json!({}));
}
