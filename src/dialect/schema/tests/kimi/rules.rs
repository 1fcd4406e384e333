//! Rules by which Kimi refuses a schema, as in MoonshotAI/walle at its level `strict`. No code of
//! the translation is used here.

#![allow(clippy::arithmetic_side_effects)]

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

const RESERVED: [&str; 5] = ["$defs", "$ref", "anyOf", "required", "additionalProperties"];
const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "object", "array", "null"];

type Object = Map<String, Value>;

/// Returns the reason why Kimi refuses a schema; `None` if Kimi accepts the schema.
pub(super) fn refusal(schema: &Value) -> Option<String> {
    let root = schema.as_object()?;
    let mut rules = Rules { root, properties: 0 };
    let checked = rules.schema(root, 0, true).and_then(|()| rules.size(schema));
    let checked = checked.and_then(|()| rules.references(schema, "", true));
    checked.and_then(|()| rules.termination(schema)).err()
}

struct Rules<'v> {
    root: &'v Object,
    properties: usize,
}

fn wanted(holds: bool, rule: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(rule.to_owned()) }
}

impl<'v> Rules<'v> {
    fn size(&self, schema: &Value) -> Result<(), String> {
        let text = schema.to_string();
        let long = text.matches(['<', '>', '&']).count() * 5;
        wanted(text.len() + long <= 120_000, "too long")?;
        wanted(self.properties <= 3000, "too many properties")
    }

    fn schema(&mut self, schema: &'v Object, depth: usize, root: bool) -> Result<(), String> {
        wanted(depth <= 30, "too deep")?;
        for (name, inner) in schema.get("$defs").and_then(Value::as_object).into_iter().flatten() {
            wanted(!name.is_empty() && !name.contains('/'), "a name of a definition")?;
            let inner = inner.as_object().ok_or("a definition")?;
            wanted(!has_slash(inner), "a slash in a definition")?;
            self.schema(inner, 0, false)?;
        }
        let kind = schema.get("type");
        let beside = schema.contains_key("anyOf") || schema.contains_key("$ref");
        wanted(kind.is_none() || !beside, "a type beside a choice or a reference")?;
        let types = types(kind)?;
        if types.len() > 1 {
            let with_values = types.len() == 2 && schema.contains_key("enum");
            let says_more = schema.keys().any(|key| {
                let is_note = matches!(key.as_str(), "type" | "title" | "description");
                !(is_note || root && matches!(key.as_str(), "$defs" | "$id"))
            });
            wanted(with_values || !says_more, "a keyword beside several types")?;
        }
        if let Some(values) = schema.get("enum") {
            values_are_of(values, &types)?;
        }
        for (key, value) in schema {
            let holds = match key.as_str() {
                "description" | "$id" | "pattern" => value.is_string(),
                "items" => value.is_object(),
                "additionalProperties" => value.is_object() || value.is_boolean(),
                "properties" | "$defs" => value.is_object(),
                "anyOf" => value.as_array().is_some_and(|it| (1..=500).contains(&it.len())),
                _ => true,
            };
            wanted(holds, &format!("the value of {key}"))?;
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        for name in schema.get("required").into_iter().flat_map(|it| it.as_array().unwrap()) {
            let name = name.as_str().ok_or("a required name")?;
            wanted(properties.is_some_and(|all| all.contains_key(name)), "a required name")?;
        }
        self.properties += properties.map_or(0, Map::len);
        for (name, inner) in properties.into_iter().flatten() {
            wanted(!RESERVED.contains(&name.as_str()), "a reserved name")?;
            self.schema(inner.as_object().ok_or("a property")?, depth + 1, false)?;
        }
        for held in ["items", "additionalProperties"] {
            if let Some(inner) = schema.get(held).and_then(Value::as_object) {
                self.schema(inner, depth, false)?;
            }
        }
        for branch in schema.get("anyOf").and_then(Value::as_array).into_iter().flatten() {
            let branch = branch.as_object().ok_or("a branch")?;
            let clashes = branch.keys().any(|key| {
                !matches!(key.as_str(), "title" | "description" | "anyOf")
                    && schema.contains_key(key)
            });
            wanted(!clashes, "a keyword beside a choice and in it")?;
            self.schema(branch, depth, false)?;
        }
        if let Some(reference) = schema.get("$ref") {
            let referred = self.referred(reference)?;
            let deep = depth + self.depth(referred, &mut HashSet::new());
            wanted(deep <= 30, "a reference to what is too deep")?;
        }
        Ok(())
    }

    fn referred(&self, reference: &Value) -> Result<&'v Object, String> {
        let reference = reference.as_str().ok_or("a reference that is no text")?;
        if reference == "#" {
            return Ok(self.root);
        }
        let name = reference.strip_prefix("#/$defs/").ok_or("where a reference leads")?;
        let found = self.root.get("$defs").and_then(|all| all.get(name)?.as_object());
        found.ok_or_else(|| format!("a reference that leads nowhere: {name}"))
    }

    fn depth(&self, schema: &'v Object, within: &mut HashSet<String>) -> usize {
        let mut deepest = 0;
        for (key, value) in schema {
            match (key.as_str(), value) {
                ("$ref", Value::String(name)) if name != "#" && within.insert(name.clone()) => {
                    let referred = self.referred(value).unwrap();
                    deepest = deepest.max(self.depth(referred, within));
                    within.remove(name);
                }
                ("properties", Value::Object(all)) => {
                    for inner in all.values().filter_map(Value::as_object) {
                        deepest = deepest.max(1 + self.depth(inner, within));
                    }
                }
                ("additionalProperties", Value::Object(inner)) => {
                    deepest = deepest.max(self.depth(inner, within));
                }
                ("anyOf", Value::Array(all)) => {
                    for inner in all.iter().filter_map(Value::as_object) {
                        deepest = deepest.max(self.depth(inner, within));
                    }
                }
                _ => {}
            }
        }
        deepest
    }

    /// Checks the positions of references. Every member called `$ref` counts as a reference.
    fn references(&self, value: &'v Value, place: &str, may_refer: bool) -> Result<(), String> {
        let Some(schema) = value.as_object() else { return Ok(()) };
        if let Some(reference) = schema.get("$ref") {
            self.referred(reference)?;
            wanted(may_refer, "the place of a reference")?;
        }
        for (key, value) in schema.iter().filter(|(key, _)| *key != "$defs") {
            let may_refer = place == "properties"
                || place.is_empty()
                || matches!(key.as_str(), "items" | "additionalProperties");
            self.references(value, key, may_refer)?;
            for branch in value.as_array().filter(|_| key == "anyOf").into_iter().flatten() {
                self.references(branch, key, true)?;
            }
        }
        Ok(())
    }

    /// Checks that recursion ends. A root that requires no endless schema may refer to one.
    fn termination(&self, schema: &'v Value) -> Result<(), String> {
        if self.ends(self.root, &mut HashSet::new()) {
            return Ok(());
        }
        let mut references = HashMap::new();
        collect(schema, &mut references);
        for reference in references.into_values() {
            let referred = self.referred(reference)?;
            wanted(self.ends(referred, &mut HashSet::new()), "what requires itself")?;
        }
        Ok(())
    }

    fn ends(&self, schema: &'v Object, seen: &mut HashSet<String>) -> bool {
        let types = types(schema.get("type")).unwrap_or_default();
        let is_value = |name: &&str| !matches!(*name, "object" | "array");
        if schema.is_empty() || types.iter().any(is_value) {
            return true;
        }
        let last = types.last().copied().unwrap_or_default();
        let items = schema.get("items").and_then(Value::as_object);
        if last == "array" && items.is_none_or(|items| self.ends(items, seen)) {
            return true;
        }
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let properties = schema.get("properties").and_then(Value::as_object);
        let ends_there = |name: &&str| {
            let inner = properties.and_then(|all| all.get(*name)?.as_object());
            inner.is_some_and(|inner| self.ends(inner, &mut seen.clone()))
        };
        if last == "object" && (required.is_empty() || required.iter().any(ends_there)) {
            return true;
        }
        let mut branches = schema.get("anyOf").and_then(Value::as_array).into_iter().flatten();
        if branches.any(|it| self.ends(it.as_object().unwrap(), &mut seen.clone())) {
            return true;
        }
        let Some(reference) = schema.get("$ref") else { return false };
        seen.insert(reference.to_string()) && self.ends(self.referred(reference).unwrap(), seen)
    }
}

fn collect<'v>(value: &'v Value, all: &mut HashMap<String, &'v Value>) {
    if let Some(schema) = value.as_object() {
        if let Some(reference) = schema.get("$ref") {
            all.insert(reference.to_string(), reference);
        }
        for (key, value) in schema.iter().filter(|(key, _)| *key != "$defs") {
            collect(value, all);
            let branches = value.as_array().filter(|_| key == "anyOf");
            branches.into_iter().flatten().for_each(|branch| collect(branch, all));
        }
    }
}

fn types(kind: Option<&Value>) -> Result<Vec<&str>, String> {
    let types: Vec<&str> = match kind {
        None => return Ok(Vec::new()),
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => {
            names.iter().map(|name| name.as_str().unwrap_or_default()).collect()
        }
        Some(_) => Vec::new(),
    };
    wanted(!types.is_empty() && types.iter().all(|name| TYPES.contains(name)), "a type")?;
    Ok(types)
}

fn values_are_of(values: &Value, types: &[&str]) -> Result<(), String> {
    let values = values.as_array().ok_or("values")?;
    wanted((1..=1000).contains(&values.len()), "how many values")?;
    wanted(!types.is_empty(), "values without a type")?;
    if types.len() > 1 {
        let is_scalar = |name: &&str| !matches!(*name, "object" | "array");
        let fits = types.len() == 2 && types.contains(&"null") && types.iter().all(is_scalar);
        wanted(fits, "values of several types")?;
    }
    for value in values {
        let mut is_one = false;
        for name in types {
            if is_one {
                break;
            }
            is_one = match *name {
                "string" => value.is_string(),
                "boolean" => value.is_boolean(),
                "null" => value.is_null(),
                "array" => value.is_array(),
                "object" => value.is_object(),
                number => {
                    // Kimi refuses a value that is no number at once, whatever types follow.
                    let value = value.as_f64().ok_or("a value that is no number")?;
                    wanted(number == "number" || value.fract() == 0.0, "a whole number")?;
                    true
                }
            };
        }
        wanted(is_one, "a value of another type")?;
    }
    Ok(())
}

/// Returns true if a name in a definition has a slash. Lists in lists are not examined.
fn has_slash(schema: &Object) -> bool {
    schema.iter().any(|(key, value)| {
        let listed = value.as_array().into_iter().flatten();
        let mut inner = listed.chain([value]).filter_map(Value::as_object);
        key.contains('/') || inner.any(has_slash)
    })
}
