//! Second, simple implementation of the mending rules, on a tree of values. Random schemas and
//! inputs must give the same results with both implementations.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{in_pieces, tool};

/// Returns true if a schema allows a value, as far as these tests need it.
fn takes(root: &Value, schema: &Value, value: &Value, bounds: bool) -> bool {
    if let Some(name) = schema["$ref"].as_str() {
        return takes(root, &root["$defs"][name.trim_start_matches("#/$defs/")], value, bounds);
    }
    if let Some(any) = schema["anyOf"].as_array() {
        return any.iter().any(|schema| takes(root, schema, value, bounds));
    }
    let is_whole = value.as_f64().is_some_and(|number| number.fract() == 0.0);
    let is = |name: &Value| match name.as_str().unwrap() {
        "string" => value.is_string(),
        "integer" => is_whole,
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        _ => value.is_null(),
    };
    let typed = match &schema["type"] {
        Value::Null => true,
        Value::Array(names) => names.iter().any(is),
        name => is(name),
    };
    let listed = schema["enum"].as_array().is_none_or(|list| list.contains(value));
    let least = schema["minimum"].as_f64().zip(value.as_f64());
    let most = schema["maximum"].as_f64().zip(value.as_f64());
    typed
        && listed
        && (!bounds
            || least.is_none_or(|(least, value)| value >= least)
                && most.is_none_or(|(most, value)| value <= most))
}

/// Returns the mended value of a member; `None` if the member is removed.
fn member(root: &Value, schema: &Value, value: &Value) -> Option<Value> {
    let has_value = schema.get("default").is_some_and(|default| !default.is_null());
    let fits = takes(root, schema, value, true);
    match value {
        Value::Null => fits.then_some(Value::Null),
        Value::String(text) if text.trim().is_empty() => fits.then(|| value.clone()),
        Value::String(text) => {
            let Ok(inside) = serde_json::from_str::<Value>(text) else {
                return Some(value.clone());
            };
            let is_scalar = inside.is_number() || inside.is_boolean();
            if !is_scalar || takes(root, schema, &json!("any"), false) || schema["enum"].is_array()
            {
                return Some(value.clone());
            }
            match member(root, schema, &inside) {
                Some(inside) if !takes(root, schema, &inside, true) => Some(value.clone()),
                mended => mended,
            }
        }
        Value::Number(_) => {
            let out = !fits && takes(root, schema, value, false);
            (!(out && has_value)).then(|| value.clone())
        }
        _ => Some(mended(root, schema, value)),
    }
}

/// Returns a value in which all optional members are mended.
fn mended(root: &Value, schema: &Value, value: &Value) -> Value {
    if let Some(name) = schema["$ref"].as_str() {
        return mended(root, &root["$defs"][name.trim_start_matches("#/$defs/")], value);
    }
    if let Some(any) = schema["anyOf"].as_array() {
        let kind = if value.is_object() { json!({}) } else { json!([]) };
        let taking: Vec<_> =
            any.iter().filter(|schema| takes(root, schema, &kind, false)).collect();
        return if taking.len() == 1 { mended(root, taking[0], value) } else { value.clone() };
    }
    match value {
        Value::Array(elements) => {
            elements.iter().map(|element| mended(root, &schema["items"], element)).collect()
        }
        Value::Object(members) => {
            let mut out = Map::new();
            for (name, value) in members {
                let Some(known) = schema["properties"].get(name) else {
                    let is_empty = [json!(null), json!(""), json!([]), json!({})].contains(value);
                    if !(is_empty && schema["additionalProperties"] == json!(false)) {
                        out.insert(name.clone(), value.clone());
                    }
                    continue;
                };
                let required =
                    schema["required"].as_array().is_some_and(|all| all.contains(&json!(name)));
                let mended = match required && known.get("default").is_none() {
                    true => Some(mended(root, known, value)),
                    false => member(root, known, value),
                };
                out.extend(mended.map(|value| (name.clone(), value)));
            }
            Value::Object(out)
        }
        _ => value.clone(),
    }
}

fn any_schema() -> impl Strategy<Value = Value> {
    let leaf = prop::sample::select(vec![
        json!({}),
        json!({"type": "string"}),
        json!({"type": "integer"}),
        json!({"type": "integer", "minimum": 1, "maximum": 50}),
        json!({"type": "integer", "minimum": 1, "maximum": 50, "default": 9}),
        json!({"type": "number", "maximum": 9}),
        json!({"type": "number", "maximum": 9, "default": 2}),
        json!({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}], "default": null}),
        json!({"type": "boolean"}),
        json!({"type": "boolean", "default": false}),
        json!({"type": ["integer", "null"]}),
        json!({"type": ["integer", "string"]}),
        json!({"enum": ["a", "b"]}),
        json!({"type": "string", "enum": ["a", ""]}),
        json!({"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        json!({"$ref": "#/$defs/d"}),
        json!({"anyOf": [{"$ref": "#/$defs/d"}, {"type": "null"}]}),
    ]);
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            inner.clone().prop_map(|items| json!({"type": "array", "items": items})),
            any_object(inner),
        ]
    })
}

fn any_object(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    let member = (inner, any::<bool>());
    let members = prop::collection::vec(member, 0..5);
    (members, any::<bool>()).prop_map(|(members, closed)| {
        let (mut properties, mut required) = (Map::new(), Vec::new());
        for (name, (schema, is_required)) in ["a", "b", "c", "d\"", "e"].into_iter().zip(members) {
            properties.insert(name.to_owned(), schema);
            required.extend(is_required.then_some(name));
        }
        let mut schema = json!({"type": "object", "properties": properties, "required": required});
        if closed {
            schema["additionalProperties"] = json!(false);
        }
        schema
    })
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop::sample::select(vec![
        json!(null),
        json!(""),
        json!("  "),
        json!("x"),
        json!("3"),
        json!("99"),
        json!("true"),
        json!("\n\u{e4}\""),
        json!(0),
        json!(-1),
        json!(7),
        json!(2.5),
        json!(25_999_999_999_999_999_u64),
        json!(true),
        json!([]),
        json!({}),
    ]);
    leaf.prop_recursive(3, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            any_input(inner),
        ]
    })
}

fn any_input(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    let names = prop::sample::select(vec!["a", "b", "c", "d\"", "e", "f"]);
    prop::collection::vec((names, inner), 0..6).prop_map(|members| {
        Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    })
}

proptest! {
    #[test]
    fn the_mended_input_is_what_the_rules_say_and_any_split_gives_it(
        schema in any_object(any_schema()),
        shared in any_object(any_schema()),
        input in any_input(any_value()),
        pretty in any::<bool>(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let mut schema = schema;
        schema["$defs"] = json!({"d": shared});
        let text = if pretty { serde_json::to_string_pretty(&input) } else { serde_json::to_string(&input) };
        let text = text.unwrap();
        let tool = tool("t", &schema.to_string());
        let (whole, count) = in_pieces(&tool, &[&text]);
        let whole = whole.concat();
        let read: Value = serde_json::from_str(&whole).expect("it is JSON");
        prop_assert_eq!(&read, &mended(&schema, &schema, &input), "{} by {}", text, schema);
        prop_assert_eq!(count == 0, whole == text);

        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len().saturating_add(1))).collect();
        cuts.retain(|cut| text.is_char_boundary(*cut));
        cuts.sort_unstable();
        let (mut pieces, mut from) = (Vec::new(), 0);
        for cut in cuts.into_iter().chain([text.len()]) {
            pieces.push(text.get(from..cut).unwrap());
            from = cut;
        }
        prop_assert_eq!(in_pieces(&tool, &pieces).0.concat(), whole);
    }
}
