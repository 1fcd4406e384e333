use super::*;

#[test]
fn gemini_gets_its_subset() {
    // Schemas of a single property, and the schemas that are sent to Gemini.
    for (schema, expected) in [
        (json!({"const": "x"}), json!({"enum": ["x"], "type": "string"})),
        (
            json!({"const": 7, "type": "integer"}),
            json!({"type": "integer", "description": "One of: 7"}),
        ),
        (json!({"const": null, "enum": ["a"]}), json!({"nullable": true})),
        (json!({"enum": ["a"], "const": 1}), json!({"description": "One of: 1"})),
        (
            json!({"type": "integer", "enum": [1, 2], "description": "How \"many\""}),
            json!({"type": "integer", "description": "How \"many\" (one of: [1,2])"}),
        ),
        (
            json!({"type": ["integer", "null"], "enum": [1, null]}),
            json!({"type": "integer", "nullable": true, "description": "One of: [1,null]"}),
        ),
        (
            json!({"type": ["string", "null"], "enum": ["a", null]}),
            json!({"type": "string", "enum": ["a"], "nullable": true}),
        ),
        (json!({"type": "array"}), json!({"type": "array", "items": {}})),
        (json!({"type": "integer", "exclusiveMinimum": 0}), json!({"type": "integer"})),
        (
            json!({"type": "number", "exclusiveMaximum": 9, "maximum": 8}),
            json!({"type": "number", "maximum": 8}),
        ),
        (
            json!({"type": "string", "format": "date"}),
            json!({"type": "string", "description": "Format: date"}),
        ),
        (
            json!({"type": "string", "format": "date", "description": "Day \"of\" birth"}),
            json!({"type": "string", "description": "Day \"of\" birth (format: date)"}),
        ),
        (
            json!({"type": "integer", "format": "int32", "description": "n"}),
            json!({"type": "integer", "format": "int32", "description": "n"}),
        ),
        (
            json!({"oneOf": [{"type": "string"}, {"const": 1}], "discriminator": {"propertyName": "t"}}),
            json!({"anyOf": [{"type": "string"}, {"description": "One of: 1"}]}),
        ),
        (
            json!({"type": "integer", "enum": [1, 2.5, "three", true, null]}),
            json!({"type": "integer", "nullable": true, "description": r#"One of: [1,2.5,"three",true,null]"#}),
        ),
        (json!({"type": ["string", "null"]}), json!({"type": "string", "nullable": true})),
        (
            json!({"type": ["string", "number", "null"], "minimum": 1, "description": "d"}),
            json!({"anyOf": [{"type": "string", "nullable": true, "description": "d"},
                             {"type": "number", "nullable": true}]}),
        ),
        (
            json!({"type": ["array", "string"], "items": {"type": "string"}}),
            json!({"anyOf": [{"type": "array", "items": {}}, {"type": "string"}]}),
        ),
        // Unknown keywords are left out, but not properties with the same names.
        (
            json!({"type": "object", "properties": {"not": {"multipleOf": 2, "type": "integer"}, "any": true},
                   "patternProperties": {"^x": {}}, "propertyNames": {"pattern": "a"}, "if": {}, "then": {},
                   "not": {"type": "null"}, "additionalProperties": false, "readOnly": true, "required": ["not", "gone"]}),
            json!({"type": "object", "properties": {"not": {"type": "integer"}, "any": {}}, "required": ["not"]}),
        ),
        (json!({"required": ["gone"], "type": "object"}), json!({"type": "object"})),
        (
            json!({"properties": {"a": {"type": "string"}}, "required": ["a"]}),
            json!({"properties": {"a": {"type": "string"}}, "required": ["a"], "type": "object"}),
        ),
        (
            json!({"type": "array", "items": [{"type": "string"}, {"type": "integer"}]}),
            json!({"type": "array", "items": {"type": "string"}}),
        ),
        (json!({"type": "array", "prefixItems": [{}]}), json!({"type": "array", "items": {}})),
        (json!({"allOf": [{"title": "x"}]}), json!({})),
        (json!({"allOf": [{}, {}], "type": "string"}), json!({"type": "string"})),
        (
            json!({"allOf": [{"pattern": "^a"}, {"pattern": "z$"}], "type": "string"}),
            json!({"type": "string"}),
        ),
        (json!({"allOf": [{"$ref": "#/$defs/A"}, {"default": "red"}]}), json!({})),
        (
            json!({"type": "array", "items": {"type": "string"}, "anyOf": [{"minItems": 1}, {"maxItems": 3}]}),
            json!({"type": "array", "items": {"type": "string"}}),
        ),
        (json!({"type": {"a": "b", "c": "d"}}), json!({})),
        (json!({"enum": ["", "x"]}), json!({"enum": ["x"], "type": "string"})),
        (json!({"enum": [""], "type": "string"}), json!({"type": "string"})),
        (json!({"const": ""}), json!({"type": "string"})),
        // Schemas that pydantic writes for an optional value, and for a choice of models.
        (
            json!({"anyOf": [{"type": "string", "maxLength": 9}, {"type": "null", "title": "None"}], "default": null,
                   "description": "d", "title": "A"}),
            json!({"type": "string", "maxLength": 9, "nullable": true, "description": "d"}),
        ),
        (
            json!({"oneOf": [{"$ref": "#/$defs/A"}, {"type": "null"}], "default": null}),
            json!({"$ref": "#/$defs/A"}),
        ),
        (
            json!({"anyOf": [{"$ref": "#/$defs/A"}, {"type": "integer", "description": "e"}, {"type": "null"}],
                   "description": "d", "default": 1, "type": "object"}),
            json!({"anyOf": [{"$ref": "#/$defs/A", "description": "d"},
                             {"type": "integer", "nullable": true, "description": "e"}]}),
        ),
        (
            json!({"$ref": "#/$defs/A", "description": "d", "type": ["object", "null"], "properties": {"a": {}}}),
            json!({"$ref": "#/$defs/A", "description": "d"}),
        ),
        (
            json!({"anyOf": [{"anyOf": [{"type": "string"}, {"type": "null"}]}, {"type": "null"}]}),
            json!({"type": "string", "nullable": true}),
        ),
        (
            json!({"anyOf": [true, {"type": "null"}], "description": "d"}),
            json!({"nullable": true, "description": "d"}),
        ),
        (json!({"anyOf": [{"type": "null"}]}), json!({"nullable": true})),
        (json!({"enum": ["a", null]}), json!({"type": "string", "enum": ["a"], "nullable": true})),
        (json!({"enum": [null]}), json!({"nullable": true})),
        // Choices in a schema that states the type of all branches.
        (
            json!({"type": "integer", "oneOf": [{"const": 1, "description": "A"}, {"const": 2}]}),
            json!({"anyOf": [{"type": "integer", "description": "A (one of: 1)"},
                             {"type": "integer", "description": "One of: 2"}]}),
        ),
        (
            json!({"type": ["integer", "null"], "anyOf": [{"anyOf": [{"enum": [1, 2]}, {"type": "null"}]}]}),
            json!({"type": "integer", "nullable": true, "description": "One of: [1,2]"}),
        ),
        (
            json!({"type": "array", "items": {"type": "string"}, "anyOf": [{"type": "array", "minItems": 1}, {"type": "null"}]}),
            json!({"type": "array", "items": {"type": "string"}, "nullable": true}),
        ),
        (
            json!({"type": "string", "enum": ["a"], "anyOf": [{"type": "string"}, {"type": "null"}]}),
            json!({"type": "string", "enum": ["a"], "nullable": true}),
        ),
        (
            json!({"type": ["integer", "string"], "enum": [1, "b"], "description": "d"}),
            json!({"anyOf": [{"type": "integer", "description": "d (one of: [1,\"b\"])"}, {"type": "string"}]}),
        ),
        (
            json!({"allOf": [{"$ref": "#/$defs/A"}, {"type": "object", "properties": {"a": {}}}]}),
            json!({"type": "object", "properties": {"a": {}}}),
        ),
        (
            json!({"type": "integer", "format": "int32"}),
            json!({"type": "integer", "format": "int32"}),
        ),
        (json!({"default": null, "type": "string"}), json!({"type": "string"})),
        (
            json!({"anyOf": [{"type": "string"}, {"const": null}, {"enum": [null]}]}),
            json!({"type": "string", "nullable": true}),
        ),
        // A choice has no place beside properties.
        (
            json!({"type": "object", "properties": {"a": {}}, "anyOf": [{"properties": {"b": {}}}, {"type": "null"}]}),
            json!({"type": "object", "properties": {"a": {}, "b": {}}}),
        ),
        (
            json!({"anyOf": [{"type": "string", "description": "s"}, {"type": "integer"}], "description": "d"}),
            json!({"anyOf": [{"type": "string", "description": "s"}, {"type": "integer", "description": "d"}]}),
        ),
        // The description of a choice goes into one branch: the first without a description, or
        // else the first.
        (
            json!({"anyOf": [{"type": "string", "description": "s"}, {"const": 1, "description": "one"}],
                   "description": "d"}),
            json!({"anyOf": [{"type": "string", "description": "d s"},
                             {"description": "one (one of: 1)"}]}),
        ),
        (
            json!({"anyOf": [{"anyOf": [{"const": 1}, {"type": "null"}], "description": "e"}], "description": "d"}),
            json!({"nullable": true, "description": "d e (one of: 1)"}),
        ),
        (
            json!({"anyOf": [{"type": ["string", "integer"], "description": "e"}], "description": "d"}),
            json!({"anyOf": [{"type": "string", "description": "d e"}, {"type": "integer"}]}),
        ),
        // Several schemas in `allOf` become one with all properties.
        (
            json!({"allOf": [{"type": "object", "properties": {"a": {"title": "t"}}, "required": ["a"]},
                             {"properties": {"b": {}}}], "description": "d"}),
            json!({"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a"], "description": "d"}),
        ),
        (
            json!({"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a"],
                   "anyOf": [{"required": ["b"]}, {"required": ["c"]}]}),
            json!({"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a"]}),
        ),
        (
            json!({"type": "string", "properties": {"a": {}}, "required": ["a"], "nullable": true}),
            json!({"type": "string", "nullable": true}),
        ),
        (
            json!({"type": "object", "title": "T", "examples": [1], "$schema": "x", "properties": {
                "title": {"title": "x", "type": "string"}, "format": {"type": "string"},
                "examples": {}, "const": {"const": "c"}, "oneOf": {"type": "string"},
            }}),
            json!({"type": "object", "properties": {
                "title": {"type": "string"}, "format": {"type": "string"},
                "examples": {}, "const": {"enum": ["c"], "type": "string"}, "oneOf": {"type": "string"},
            }}),
        ),
        (
            json!({"type": "array", "items": {"title": "x"}, "prefixItems": [{"title": "y"}], "default": {"title": 1}}),
            json!({"type": "array", "items": {}, "default": {"title": 1}}),
        ),
    ] {
        let whole = json!({"type": "object", "properties": {"p": schema}, "required": ["p"]});
        let value = read(&whole, ToolSchema::Gemini);
        assert_eq!(value["properties"]["p"], expected, "{whole}");
        assert_eq!(value["required"], json!(["p"]));
    }
    let several = json!({"type": ["object", "string"], "properties": {"a": {}}, "required": ["a"]});
    let expected = json!({"type": "object", "properties": {"a": {}}, "required": ["a"]});
    assert_eq!(read(&several, ToolSchema::Gemini), expected);
}
