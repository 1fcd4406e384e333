use super::*;

#[test]
fn a_root_that_refers_to_what_it_is_offers_its_properties() {
    let defs = json!({"A": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
        "B": {"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"]},
        "C": {"$ref": "#/$defs/A"}, "D": {"type": "string"}});
    let a = json!({"a": {"type": "string"}});
    let both = json!({"a": {"type": "string"}, "b": {"type": "string"}});
    for (root, properties, required) in [
        (json!({"$ref": "#/$defs/A"}), &a, Some(json!(["a"]))),
        (json!({"anyOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}]}), &both, None),
        // A branch that cannot be merged leaves no required names.
        (json!({"anyOf": [{"$ref": "#/$defs/A"}, {"type": "array"}]}), &a, None),
        (json!({"anyOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/gone"}]}), &a, None),
        (json!({"$ref": "#/$defs/C"}), &a, Some(json!(["a"]))),
        (json!({"$ref": "#/$defs/D"}), &json!({}), None),
        (json!({"$ref": "#"}), &json!({}), None),
        (
            json!({"properties": {"b": {"type": "string"}}, "anyOf": [{"$ref": "#/$defs/A"}]}),
            &both,
            Some(json!(["a"])),
        ),
    ] {
        for dialect in [ToolSchema::Gemini, ToolSchema::Kimi] {
            let mut whole = root.clone();
            whole["type"] = "object".into();
            whole["$defs"] = defs.clone();
            let sent = read(&whole, dialect);
            assert_eq!(sent["type"], "object", "{sent}");
            assert_eq!(&sent["properties"], properties, "{sent}");
            assert_eq!(sent.get("required"), required.as_ref(), "{sent}");
            assert!(sent.get("$ref").is_none() && sent.get("anyOf").is_none(), "{sent}");
        }
    }
}

#[test]
fn the_properties_of_a_branch_are_offered_whatever_branches_it_has_itself() {
    let (a, b, c) = (
        json!({"properties": {"a": {"type": "string"}}, "required": ["a"]}),
        json!({"properties": {"b": {"type": "string"}}, "required": ["b"]}),
        json!({"properties": {"c": {"type": "string"}}, "required": ["c"]}),
    );
    let with = |mut schema: Value, key: &str, list: Value| {
        schema[key] = list;
        schema
    };
    let chain = json!({"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/C"}, "C": a});
    for (schema, names, required) in [
        (json!({"allOf": [with(a.clone(), "allOf", json!([c])), b]}), "abc", "abc"),
        (json!({"anyOf": [with(a.clone(), "allOf", json!([{"required": ["a"]}])), b]}), "ab", ""),
        (json!({"anyOf": [with(a.clone(), "anyOf", json!([b, c])), a]}), "abc", "a"),
        (json!({"$ref": "#/$defs/A", "$defs": {"A": {"anyOf": [a, b]}}}), "ab", ""),
        (
            json!({"$ref": "#/$defs/A", "$defs": {"A": with(a.clone(), "allOf", json!([{"if": {}, "then": {}}]))}}),
            "a",
            "a",
        ),
        (json!({"$ref": "#/$defs/A", "$defs": chain}), "a", "a"),
        // A definition that two branches refer to leaves no required names.
        (
            json!({"anyOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/A"}], "$defs": {"A": a}}),
            "a",
            "",
        ),
        (
            json!({"anyOf": [{"$ref": "#/$defs/A"}], "$defs": {"A": {"properties": {"a": {}}, "allOf": [{"$ref": "#/$defs/A"}]}}}),
            "a",
            "",
        ),
    ] {
        for dialect in [ToolSchema::Gemini, ToolSchema::Kimi] {
            let sent = read(&schema, dialect);
            let keys: String = sent["properties"].as_object().unwrap().keys().cloned().collect();
            assert_eq!(keys, names, "{schema}: {sent}");
            let given = sent.get("required").and_then(Value::as_array).into_iter().flatten();
            let mut given: Vec<_> = given.map(|name| name.as_str().unwrap()).collect();
            given.sort_unstable();
            assert_eq!(given.concat(), required, "{schema}: {sent}");
        }
    }
    // Keywords beside a reference are merged, too.
    let beside = json!({"properties": {}, "allOf": [{"$ref": "#/$defs/A", "properties": {"b": {}}, "required": ["b"]}],
        "$defs": {"A": a}});
    for dialect in [ToolSchema::Gemini, ToolSchema::Kimi, ToolSchema::Full] {
        let sent = read(&beside, dialect);
        assert_eq!(sent["properties"], json!({"a": {"type": "string"}, "b": {}}));
        assert_eq!(sent["required"], json!(["b", "a"]));
    }
    // Branches beyond the maximum depth are not followed.
    let deep = |levels: usize| (0..levels).fold(a.clone(), |inner, _| json!({"allOf": [inner]}));
    let offers = |levels| read(&deep(levels), ToolSchema::Kimi)["properties"].get("a").is_some();
    assert!(!offers(33));
}

#[test]
fn a_root_is_no_choice_for_openai_though_its_branches_are_the_same() {
    let base = json!({"properties": {"a": {"type": "string"}}});
    let referred =
        json!({"anyOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/A"}], "$defs": {"A": base}});
    let sent = read(&referred, ToolSchema::Full);
    assert_eq!(
        sent,
        json!({"type": "object", "properties": base["properties"], "$defs": referred["$defs"]})
    );
    // A list stays if a reference leads through it.
    let through = json!({"type": "object", "properties": {}, "anyOf": [{"properties": {"v": {}}},
        {"properties": {"w": {"$ref": "#/anyOf/0/properties/v"}}}]});
    assert_eq!(read(&through, ToolSchema::Full), through);
}

#[test]
fn llama_cpp_sees_no_empty_properties_beside_a_list() {
    let a = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let all = read(&json!({"allOf": [a]}), ToolSchema::LlamaCpp);
    assert_eq!(all, json!({"type": "object", "properties": {"a": {"type": "string"}}}));
    let unknown = json!({"allOf": [{"$ref": "#/gone/x"}]});
    let sent = read(&unknown, ToolSchema::LlamaCpp);
    assert_eq!(sent, json!({"type": "object", "allOf": [{"$ref": "#/gone/x"}]}));
}

#[test]
fn a_root_that_is_a_choice_offers_the_properties_of_all() {
    let either = json!({"anyOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]},
        {"properties": {"b": {"type": "string", "title": "t"}}, "required": ["b"]}], "description": "d"});
    let both = json!({"a": {"type": "string"}, "b": {"type": "string", "title": "t"}});
    for dialect in [ToolSchema::Full, ToolSchema::Kimi] {
        let expected = json!({"type": "object", "properties": both, "description": "d"});
        assert_eq!(read(&either, dialect), expected);
    }
    let expected = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "description": "d"});
    assert_eq!(read(&either, ToolSchema::Gemini), expected);
    let all = json!({"type": "object", "properties": {"z": {}}, "required": ["z"], "$defs": {"x": {}},
        "allOf": [{"properties": {"a": {}, "z": {"type": "null"}}, "required": ["a"]}, {"required": ["x"]}]});
    let expected = json!({"type": "object", "properties": {"z": {}, "a": {}}, "required": ["z", "a"], "$defs": {"x": {}}});
    assert_eq!(read(&all, ToolSchema::Full), expected);
    // A property that several variants share.
    let variant = |word: &str, name: &str| json!({"properties": {"action": {"const": word}, name: {}}, "required": ["action", name]});
    let variants =
        json!({"type": "object", "oneOf": [variant("create", "name"), variant("delete", "id")]});
    let action = json!({"anyOf": [{"const": "create"}, {"const": "delete"}]});
    let expected = json!({"type": "object", "properties": {"action": action, "name": {}, "id": {}}, "required": ["action"]});
    assert_eq!(read(&variants, ToolSchema::Full), expected);
    // A property keeps each different schema once; beyond 16 schemas, it allows any value.
    let many = |count: usize| {
        let branch = |word: usize| json!({"properties": {"a": {"const": word}, "b": {}}});
        json!({"type": "object", "anyOf": (0..count).map(branch).collect::<Vec<_>>()})
    };
    let several: Vec<Value> = (0..16).map(|word| json!({"const": word})).collect();
    let offered = |count: usize| read(&many(count), ToolSchema::Full)["properties"].clone();
    assert_eq!(offered(16), json!({"a": {"anyOf": several}, "b": {}}));
    assert_eq!(offered(17), json!({"a": {}, "b": {}}));
    // Branches that are references to definitions.
    let referred = json!({"type": "object", "anyOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}],
        "$defs": {"A": {"properties": {"a": {}}}, "B": {"properties": {"b": {}}}}});
    let expected =
        json!({"type": "object", "properties": {"a": {}, "b": {}}, "$defs": referred["$defs"]});
    assert_eq!(read(&referred, ToolSchema::Full), expected);
    // A choice that cannot be merged completely is dropped: the client validates inputs itself.
    for (choice, properties) in [
        (json!([{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}]), json!({})),
        (json!([]), json!({})),
        (json!([{"anyOf": [{}]}]), json!({})),
        (json!([{"type": "string"}]), json!({})),
        (json!([{"properties": {"a": {}}, "not": {}}]), json!({"a": {}})),
        (json!([{"if": {}, "then": {"required": ["b"]}}]), json!({})),
        (json!([{"properties": {"a": {}}}, "x"]), json!({"a": {}})),
    ] {
        for more in ["not", "enum", "const"] {
            let given =
                json!({"type": ["object", "null"], "properties": {}, "anyOf": choice, more: {}});
            let expected = json!({"type": "object", "properties": properties});
            assert_eq!(read(&given, ToolSchema::Full), expected);
        }
    }
    let last = format!(r#""not":{{"required":["{}"]}}"#, "x".repeat(200));
    let root = format!(r#"{{"type":"object","properties":{{"a":{{}}}},{last}}}"#);
    assert_eq!(written(&root, ToolSchema::Full), r#"{"type":"object","properties":{"a":{}}}"#);
    // A path in a description is no reference.
    let told = json!({"type": "object", "anyOf": [{"properties": {"a": {}}}], "description": "see docs/allOf/x"});
    assert_eq!(read(&told, ToolSchema::Full).get("anyOf"), None);
    // Members in the order in which clients send them.
    let behind = r#"{"type":"object","properties":{"a":{}},"anyOf":[{"properties":{"b":{}}}]}"#;
    let expected = r#"{"type":"object","properties":{"a":{},"b":{}}}"#;
    assert_eq!(written(behind, ToolSchema::Full), expected);
    // A choice below the root may stay.
    let nested = json!({"type": "object", "required": null, "properties": {"p": {"anyOf": [{"properties": {"a": {}}}]}}});
    assert_eq!(read(&nested, ToolSchema::Full)["properties"], nested["properties"]);
    // A property called `anyOf`, whose schema is a choice.
    let plain =
        r#"{"type":"object","properties":{"anyOf":{"anyOf":[{"type":"string"},{"type":"null"}]}}}"#;
    assert_eq!(written(plain, ToolSchema::Full), plain);
}
