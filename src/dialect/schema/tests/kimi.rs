//! Tests of schemas for Kimi.

mod rules;

use super::*;
use rules::refusal;

fn sent(schema: &Value) -> Value {
    let text = schema.to_string();
    let (plain, found) = crate::dialect::schema::mended::plain(&text);
    let mut out = Vec::new();
    write_schema(&mut Writer::new(&mut out), &plain, found, ToolSchema::Kimi);
    serde_json::from_slice(&out).unwrap()
}

fn property(schema: &Value) -> Value {
    let whole = json!({"type": "object", "properties": {"p": schema}});
    let sent = sent(&whole);
    assert_eq!(refusal(&sent), None, "{sent}");
    sent["properties"]["p"].clone()
}

#[test]
fn a_property_with_a_reserved_name_is_told_in_the_description() {
    for name in ["required", "anyOf", "$ref", "$defs", "additionalProperties"] {
        let named = json!({"type": "boolean", "description": "\"must\""});
        let items = json!({"type": "object", "properties": {"label": {"type": "string"}, name: named},
            "required": ["label", name], "additionalProperties": false});
        let told = format!(
            "Further properties: {{\"{name}\":{}}}; required of them: \"{name}\".",
            items["properties"][name]
        );
        let expected = json!({"type": "object", "properties": {"label": {"type": "string"}},
            "required": ["label"], "description": told});
        assert_eq!(property(&json!({"type": "array", "items": items}))["items"], expected);
        let mut described = items.clone();
        described["description"] = "d".into();
        assert_eq!(property(&described)["description"], format!("d {told}"));
        assert_eq!(sent(&items), expected);
        // Property in a choice that is merged into one schema.
        let choice = json!({"type": "object", "anyOf": [{"properties": {name: {}, "b": {}}}]});
        let expected = json!({"type": "object", "properties": {"b": {}},
            "description": format!("Further properties: {{\"{name}\":{{}}}}.")});
        assert_eq!(sent(&choice), expected);
    }
}

#[test]
fn definitions_whose_names_become_one_are_sent_under_names_of_their_own() {
    let refers = |name: &str| json!({"$ref": format!("#/$defs/{name}")});
    let schema = json!({"type": "object", "properties": {
            "a": refers("a~1b"), "b": refers("a{b"), "c": refers("a}b"), "d": refers("a_b_2")},
        "$defs": {"a_b_2": {"const": 4}, "a/b": {"const": 1}, "a{b": {"const": 2}, "a}b": {"const": 3}}});
    let sent = sent(&schema);
    assert_eq!(refusal(&sent), None, "{sent}");
    let of = |property: &str| {
        let name = sent["properties"][property]["$ref"].as_str().unwrap();
        sent["$defs"][name.strip_prefix("#/$defs/").unwrap()]["const"].as_u64().unwrap()
    };
    assert_eq!(["a", "b", "c", "d"].map(of), [1, 2, 3, 4]);
    assert_eq!(sent["$defs"].as_object().unwrap().len(), 4);
}

#[test]
fn what_kimi_takes_stays_as_it_came() {
    for schema in [
        json!({"type": ["string", "null"], "description": "d", "title": "t"}),
        json!({"type": ["string", "null"], "enum": ["a", null], "default": null}),
        json!({"type": ["null", "integer"], "enum": [1, null], "minimum": 0}),
        json!({"type": "array"}),
        json!({"type": "array", "items": {"type": "string", "format": "date"}, "minItems": 1}),
        json!({"type": "object", "properties": {"items": {}, "type": {"const": 1}, "a/b": {}},
            "required": [], "additionalProperties": {"type": "string"}}),
        json!({"anyOf": [{"type": "string", "pattern": "^a"}, {"type": "null"}], "description": "d"}),
        json!({"description": "any value", "default": {"a/b": 1}, "x-order": 1}),
        json!({"oneOf": [{"type": "string"}], "unevaluatedProperties": false, "not": {"type": "null"}}),
    ] {
        assert_eq!(property(&schema), schema);
    }
    let tree = json!({"type": "object", "properties": {"root": {"$ref": "#/$defs/Node", "description": "d"}},
        "required": ["root"], "$defs": {"Node": {"type": "object", "properties": {
            "value": {"type": "string"}, "next": {"$ref": "#/$defs/Node"}}, "required": ["value", "next"]}}});
    assert_eq!(sent(&tree), tree);
}

#[test]
fn types_and_values_are_written_as_kimi_takes_them() {
    for (schema, expected) in [
        (json!({"type": "unknown"}), json!({})),
        (json!({"type": "STRING"}), json!({"type": "string"})),
        (json!({"type": [], "description": 5}), json!({})),
        (json!({"type": "string", "enum": [1, 2]}), json!({"type": "string"})),
        (json!({"type": "string", "enum": [1, "a"]}), json!({"type": "string", "enum": ["a"]})),
        (json!({"type": "integer", "enum": [1, 2.5]}), json!({"type": "integer", "enum": [1]})),
        (
            json!({"type": ["integer", "null"], "enum": [1, null]}),
            json!({"type": ["null", "integer"], "enum": [1, null]}),
        ),
        (
            json!({"type": ["string", "integer"], "enum": ["a"]}),
            json!({"type": "string", "enum": ["a"]}),
        ),
        (
            json!({"type": ["string", "null"], "minLength": 1, "default": null, "description": "d"}),
            json!({"anyOf": [{"type": "string", "minLength": 1}, {"type": "null"}], "description": "d"}),
        ),
        (
            json!({"type": ["array", "object"], "items": {"enum": ["a"]}, "properties": {"b": true}, "required": ["b"]}),
            json!({"anyOf": [
                {"type": "array", "items": {"type": "string", "enum": ["a"]}},
                {"type": "object", "properties": {"b": {}}, "required": ["b"]}
            ]}),
        ),
        // References at positions where Kimi allows none.
        (
            json!({"not": {"$ref": "#"}, "patternProperties": {"^a": {"$ref": "#"}}}),
            json!({"not": {"anyOf": [{"$ref": "#"}]}, "patternProperties": {"^a": {"anyOf": [{"$ref": "#"}]}}}),
        ),
        (json!({"type": "object", "default": {"$ref": "#"}}), json!({"type": "object"})),
    ] {
        assert_eq!(property(&schema), expected, "{schema}");
    }
    let many: Vec<usize> = (0..1001).collect();
    assert_eq!(property(&json!({"type": "integer", "enum": many})), json!({"type": "integer"}));
    assert_eq!(
        property(&json!({"type": "integer", "enum": many[1..]}))["enum"].as_array().unwrap().len(),
        1000
    );
    let branches: Vec<Value> = many.iter().map(|at| json!({"const": at})).collect();
    assert_eq!(property(&json!({"anyOf": branches, "title": "t"})), json!({"title": "t"}));
}

#[test]
fn definitions_have_names_without_slashes() {
    let schema = json!({"type": "object", "properties": {"a": {"$ref": "#/definitions/a~1b"}, "b": {"$ref": "#/$defs/a_b"}},
        "$defs": {"a_b": {"type": "string"}}, "definitions": {"a/b": {"type": "object", "properties": {"x/y": {"const": 1}, "z": {}}}}});
    let expected = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/a_b_"}, "b": {"$ref": "#/$defs/a_b"}},
        "$defs": {"a_b": {"type": "string"}, "a_b_": {"type": "object", "properties": {"z": {}},
            "description": "Further properties: {\"x/y\":{\"const\":1}}."}}});
    assert_eq!(sent(&schema), expected);
    assert_eq!(refusal(&expected), None);
}

#[test]
fn what_requires_itself_without_end_requires_less() {
    let whole = |node: Value| {
        json!({"type": "object", "properties": {"v": {"$ref": "#/$defs/Node"}}, "required": ["v"],
        "$defs": {"Node": node}})
    };
    let node = json!({"$ref": "#/$defs/Node"});
    for (given, expected) in [
        (
            json!({"type": "object", "properties": {"next": node}, "required": ["next"]}),
            json!({"type": "object", "properties": {"next": node}}),
        ),
        (json!({"type": "array", "items": node}), json!({"type": "array"})),
        (
            json!({"description": "any"}),
            json!({"type": ["string", "number", "boolean", "object", "array", "null"], "description": "any"}),
        ),
        // A choice that has `null` as a branch ends for Kimi, too.
        (json!({"anyOf": [node, {"type": "null"}]}), json!({"anyOf": [node, {"type": "null"}]})),
    ] {
        let sent = sent(&whole(given));
        assert_eq!(sent, whole(expected));
        assert_eq!(refusal(&sent), None);
    }
    // Of two definitions that require each other, only the object is loosened.
    let mutual = json!({"type": "object", "properties": {"v": {"$ref": "#/$defs/List"}}, "required": ["v"], "$defs": {
        "List": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
        "Node": {"type": "object", "properties": {"all": {"$ref": "#/$defs/List"}}, "required": ["all"]}}});
    let sent = sent(&mutual);
    assert_eq!(refusal(&sent), None);
    assert_eq!(sent["$defs"]["List"], mutual["$defs"]["List"]);
    assert_eq!(sent["$defs"]["Node"].get("required"), None);
    assert_eq!(sent["required"], json!(["v"]));
}

#[test]
fn what_is_too_deep_or_too_long_is_cut() {
    let deep = |levels: usize| {
        (0..levels).fold(json!({"type": "string"}), |inner, _| {
            json!({"type": "object", "properties": {"a": inner}, "required": ["a"], "additionalProperties": false})
        })
    };
    assert_eq!(sent(&deep(30)), deep(30));
    let cut = sent(&deep(31));
    assert_eq!(cut.pointer(&"/properties/a".repeat(30)), Some(&json!({"type": "object"})));
    let chain = |length: usize| {
        let link = |at: usize| json!({"type": "object", "properties": {"p": {"$ref": format!("#/$defs/D{}", at + 1)}}});
        let mut definitions: serde_json::Map<String, Value> =
            (0..length).map(|at| (format!("D{at}"), link(at))).collect();
        definitions.insert(format!("D{length}"), json!({"type": "string"}));
        json!({"type": "object", "properties": {"v": {"$ref": "#/$defs/D0"}}, "$defs": definitions})
    };
    assert_eq!(sent(&chain(29)), chain(29));
    assert_ne!(sent(&chain(30)), chain(30));
    let wide = |count: usize, description: &str| {
        let all: serde_json::Map<String, Value> =
            (0..count).map(|at| (format!("p{at}"), json!({"description": description}))).collect();
        json!({"type": "object", "properties": all})
    };
    assert_eq!(sent(&wide(3000, "d")), wide(3000, "d"));
    assert_eq!(sent(&wide(3001, "d")), json!({"type": "object", "properties": {}}));
    let inner =
        json!({"type": "object", "properties": {"o": wide(3000, "d"), "q": {"type": "string"}}});
    let expected =
        json!({"type": "object", "properties": {"o": {"type": "object"}, "q": {"type": "string"}}});
    assert_eq!(sent(&inner), expected);
    // Kimi counts a character of HTML such as `<` as six bytes.
    assert_eq!(sent(&wide(200, &"<".repeat(99))), json!({"type": "object", "properties": {}}));
    for schema in [
        deep(31),
        deep(60),
        chain(30),
        chain(200),
        wide(3001, "d"),
        inner,
        wide(200, &"<".repeat(99)),
    ] {
        assert_eq!(refusal(&sent(&schema)), None);
    }
}

/// Strategy for values of a type that the keyword may not have.
fn any_value() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![
        json!(null),
        json!(true),
        json!(false),
        json!(5),
        json!(-1.5),
        json!("x"),
        json!([]),
        json!({}),
        json!(["a", 1]),
        json!({"$ref": "#/$defs/A"}),
        json!({"a/b": {"type": "string"}}),
        json!([{"x/y": 1}]),
        json!(["a", null]),
    ])
}

fn any_name() -> impl Strategy<Value = String> + Clone {
    prop::sample::select(vec![
        "a",
        "b",
        "A",
        "B",
        "required",
        "anyOf",
        "$ref",
        "$defs",
        "additionalProperties",
        "items",
        "properties",
        "enum",
        "a/b",
        "x{0}",
        "anyOf{0}",
        "",
        "~t",
    ])
    .prop_map(str::to_owned)
}

fn any_keyword() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "type",
        "required",
        "items",
        "enum",
        "anyOf",
        "oneOf",
        "allOf",
        "not",
        "$ref",
        "$defs",
        "definitions",
        "description",
        "default",
        "const",
        "pattern",
        "minLength",
        "format",
        "prefixItems",
        "patternProperties",
        "if",
        "$id",
        "x-a/b",
        "dependentSchemas",
        "additionalProperties",
        "properties",
        "nullable",
    ])
    .prop_map(str::to_owned)
}

fn nasty() -> impl Strategy<Value = Value> {
    let types = prop::sample::subsequence(
        vec!["string", "integer", "boolean", "object", "array", "null", "any"],
        0..4,
    );
    let leaf = prop_oneof![
        any_value(),
        (types, any_value())
            .prop_map(|(types, value)| json!({"type": types, "default": value, "minLength": 1})),
        prop::sample::select(vec![
            "#",
            "#/$defs/A",
            "#/$defs/B",
            "#/definitions/a~1b",
            "#/$defs/gone",
            "#/properties/a"
        ])
        .prop_map(|reference| json!({"$ref": reference, "description": "d"})),
        (prop::sample::select(TYPES.to_vec()), prop::collection::vec(any_value(), 0..3))
            .prop_map(|(name, values)| json!({"type": name, "enum": values})),
        prop::collection::vec(any_value(), 0..3).prop_map(|values| json!({"enum": values})),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        let named = prop::collection::btree_map(any_name(), inner.clone(), 0..4);
        prop_oneof![
            (named.clone(), any::<bool>()).prop_map(|(all, closed)| {
                let names: Vec<String> = all.keys().cloned().collect();
                json!({"type": "object", "properties": all, "required": names, "additionalProperties": !closed})
            }),
            (any_keyword(), inner.clone(), any_keyword(), named)
                .prop_map(|(one, value, other, named)| json!({one: value, other: named})),
            (any_keyword(), prop::collection::vec(inner.clone(), 0..3)).prop_map(|(key, all)| json!({key: all})),
            inner.prop_map(|items| json!({"type": "array", "items": items})),
        ]
    })
}

const TYPES: [&str; 6] = ["string", "integer", "number", "boolean", "array", "null"];

proptest! {
    #[test]
    fn kimi_refuses_no_schema_that_is_written_for_it(
        properties in prop::collection::btree_map(any_name(), nasty(), 0..4),
        definitions in prop::collection::btree_map(
            prop::sample::select(vec!["A", "B", "a/b"]), nasty(), 0..4,
        ),
        keyword in any_keyword(),
        value in nasty(),
    ) {
        let names: Vec<String> = properties.keys().cloned().collect();
        let mut schema = json!({"type": "object", "properties": properties, "required": names, "$defs": definitions});
        schema.as_object_mut().unwrap().entry(keyword).or_insert(value);
        kimi_refuses_neither_tool_nor_output(&schema);
    }
}

fn kimi_refuses_neither_tool_nor_output(schema: &Value) {
    let function = sent(schema);
    assert_eq!(refusal(&function), None, "{schema} {function}");
    let text = schema.to_string();
    let (plain, found) = crate::dialect::schema::mended::plain(&text);
    let mut out = Vec::new();
    write_output_schema(&mut Writer::new(&mut out), &plain, found, ToolSchema::Kimi);
    let output: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(refusal(&output), None, "{schema} {output}");
}

#[test]
fn keywords_and_choices_in_unusual_places_are_written_for_kimi() {
    kimi_refuses_neither_tool_nor_output(&json!({
        "type": "object", "required": ["items"], "$defs": {},
        "properties": {"items": {"default": [{"$ref": "#/$defs/A", "description": "d"}]}},
    }));
    let choice = json!({"type": ["boolean", "null"], "default": null, "minLength": 1});
    kimi_refuses_neither_tool_nor_output(&json!({
        "type": "object", "properties": {}, "required": [], "$defs": {"A": {"anyOf": [choice]}},
    }));
}
