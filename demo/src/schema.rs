//! Generator of a value that satisfies a JSON Schema, always the same value: for the arguments of
//! tool calls and for structured outputs.
//!
//! Keywords that need a search (`not`, `if`, `uniqueItems` beyond numbers and texts, exotic
//! patterns) are ignored, because this is a generator and not a validator.

use serde_json::{Map, Number, Value};

/// Maximum depth at which optional members are generated. Deeper, only required members are, so
/// that recursive schemas end.
const OPTIONAL_DEPTH_MAX: usize = 4;
/// Maximum depth at which values are generated at all.
const DEPTH_MAX: usize = 24;

/// Returns a value that satisfies `schema`.
#[must_use]
pub fn sample(schema: &Value) -> Value {
    Sampler { root: schema }.value(schema, "", 0)
}

struct Sampler<'a> {
    root: &'a Value,
}

impl Sampler<'_> {
    fn value(&self, schema: &Value, name: &str, depth: usize) -> Value {
        let Value::Object(keys) = schema else { return text(&Map::new(), name).into() };
        if depth > DEPTH_MAX {
            return Value::Null;
        }
        let deeper = depth.saturating_add(1);
        if let Some(Value::String(reference)) = keys.get("$ref") {
            let target = reference.strip_prefix('#').and_then(|path| self.root.pointer(path));
            return target.map_or(Value::Null, |target| self.value(target, name, deeper));
        }
        if let Some(fixed) = keys.get("const") {
            return fixed.clone();
        }
        if let Some(first) = first(keys, "enum").or_else(|| first(keys, "examples")) {
            return first.clone();
        }
        if let Some(default) = keys.get("default").filter(|default| !default.is_null()) {
            return default.clone();
        }
        if let Some(Value::Array(parts)) = keys.get("allOf") {
            return self.value(&self.merged(keys, parts), name, deeper);
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(Value::Array(choices)) = keys.get(key) {
                let chosen =
                    choices.iter().find(|choice| !is_null(choice)).or_else(|| choices.first());
                // Keywords beside `anyOf` hold for every choice.
                let beside = choices_removed(keys, key);
                let chosen = chosen.cloned().into_iter().collect::<Vec<_>>();
                return self.value(&self.merged(&beside, &chosen), name, deeper);
            }
        }
        match kind(keys) {
            "object" => self.object(keys, depth),
            "array" => self.array(keys, name, depth),
            "integer" => number(keys, true).into(),
            "number" => number(keys, false).into(),
            "boolean" => true.into(),
            "null" => Value::Null,
            _ => text(keys, name).into(),
        }
    }

    fn object(&self, keys: &Map<String, Value>, depth: usize) -> Value {
        let deeper = depth.saturating_add(1);
        let none = Map::new();
        let properties = keys.get("properties").and_then(Value::as_object).unwrap_or(&none);
        let required: Vec<&str> = list(keys, "required").filter_map(Value::as_str).collect();
        let mut object = Map::new();
        for (name, schema) in properties {
            // Without `required`, a call with empty arguments would show nothing.
            let wanted = required.contains(&name.as_str())
                || (required.is_empty() && depth < OPTIONAL_DEPTH_MAX);
            if wanted {
                object.insert(name.clone(), self.value(schema, name, deeper));
            }
        }
        let other = keys.get("additionalProperties").unwrap_or(&Value::Null);
        for name in required {
            if !object.contains_key(name) {
                object.insert(name.to_owned(), self.value(other, name, deeper));
            }
        }
        let fewest = count(keys, "minProperties").unwrap_or(0);
        for (name, schema) in properties {
            if object.len() >= fewest {
                break;
            }
            if !object.contains_key(name) {
                object.insert(name.clone(), self.value(schema, name, deeper));
            }
        }
        for nth in 1..=fewest.min(64) {
            if object.len() >= fewest {
                break;
            }
            object.insert(format!("key{nth}"), self.value(other, "", deeper));
        }
        Value::Object(object)
    }

    fn array(&self, keys: &Map<String, Value>, name: &str, depth: usize) -> Value {
        let deeper = depth.saturating_add(1);
        let mut items: Vec<Value> =
            list(keys, "prefixItems").map(|schema| self.value(schema, name, deeper)).collect();
        let most = count(keys, "maxItems").unwrap_or(usize::MAX);
        let usual = usize::from(items.is_empty() && depth < OPTIONAL_DEPTH_MAX);
        let wanted = count(keys, "minItems").unwrap_or(usual).min(most).min(1024);
        let unique = keys.get("uniqueItems") == Some(&Value::Bool(true));
        let schema = keys.get("items").unwrap_or(&Value::Null);
        let singular = name.strip_suffix('s').unwrap_or(name);
        while items.len() < wanted {
            let mut item = self.value(schema, singular, deeper);
            if unique && items.contains(&item) {
                item = another(&item, items.len(), schema);
            }
            items.push(item);
        }
        Value::Array(items)
    }

    /// Merges `parts`, with each `$ref` resolved, into `keys`: one schema with the keywords of all.
    fn merged(&self, keys: &Map<String, Value>, parts: &[Value]) -> Value {
        let mut whole = keys.clone();
        whole.remove("allOf");
        for part in parts {
            let part = match part.get("$ref").and_then(Value::as_str) {
                Some(path) => path.strip_prefix('#').and_then(|path| self.root.pointer(path)),
                None => Some(part),
            };
            for (key, value) in part.and_then(Value::as_object).into_iter().flatten() {
                match (whole.get_mut(key), value) {
                    (Some(Value::Object(mine)), Value::Object(theirs)) => {
                        mine.extend(theirs.iter().map(|(k, v)| (k.clone(), v.clone())));
                    }
                    (Some(Value::Array(mine)), Value::Array(theirs)) => {
                        mine.extend(theirs.iter().cloned());
                    }
                    _ => {
                        whole.insert(key.clone(), value.clone());
                    }
                }
            }
        }
        Value::Object(whole)
    }
}

fn choices_removed(keys: &Map<String, Value>, key: &str) -> Map<String, Value> {
    keys.iter().filter(|(k, _)| *k != key).map(|(k, v)| (k.clone(), v.clone())).collect()
}

fn first<'a>(keys: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    list(keys, key).next()
}

fn list<'a>(keys: &'a Map<String, Value>, key: &str) -> impl Iterator<Item = &'a Value> {
    keys.get(key).and_then(Value::as_array).into_iter().flatten()
}

fn count(keys: &Map<String, Value>, key: &str) -> Option<usize> {
    keys.get(key).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok())
}

fn is_null(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("null")
}

fn kind(keys: &Map<String, Value>) -> &str {
    match keys.get("type") {
        Some(Value::String(kind)) => kind,
        Some(Value::Array(kinds)) => {
            kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null").unwrap_or("null")
        }
        _ if ["properties", "required"].iter().any(|key| keys.contains_key(*key)) => "object",
        _ if ["items", "prefixItems"].iter().any(|key| keys.contains_key(*key)) => "array",
        _ if ["minimum", "maximum"].iter().any(|key| keys.contains_key(*key)) => "number",
        _ => "string",
    }
}

fn number(keys: &Map<String, Value>, whole: bool) -> Number {
    let limit = |key: &str| keys.get(key).and_then(Value::as_f64);
    let step = if whole { 1.0 } else { 0.5 };
    let low = limit("minimum").into_iter().chain(limit("exclusiveMinimum").map(|n| n + step));
    let high = limit("maximum").into_iter().chain(limit("exclusiveMaximum").map(|n| n - step));
    let low = low.fold(f64::NEG_INFINITY, f64::max);
    let mut value = 1.0_f64.max(low).min(high.fold(f64::INFINITY, f64::min));
    if let Some(of) = limit("multipleOf").filter(|of| *of > 0.0) {
        value = (value / of).ceil() * of;
    } else if whole {
        value = value.ceil();
    }
    #[expect(clippy::cast_possible_truncation, reason = "`as` saturates, which is what is wanted")]
    let int = value as i64;
    if whole || value.fract() == 0.0 {
        return int.into();
    }
    Number::from_f64(value).unwrap_or_else(|| int.into())
}

/// Returns a value that differs from `item`, for a list whose items must be unique.
fn another(item: &Value, nth: usize, schema: &Value) -> Value {
    if let Some(choice) = schema.get("enum").and_then(|choices| choices.get(nth)) {
        return choice.clone();
    }
    match item {
        Value::Number(n) => {
            n.as_i64().map_or(Value::Null, |n| n.saturating_add(nth.try_into().unwrap_or(0)).into())
        }
        Value::String(text) => format!("{text}{nth}").into(),
        Value::Bool(value) => (!value).into(),
        other => other.clone(),
    }
}

fn text(keys: &Map<String, Value>, name: &str) -> String {
    let format = keys.get("format").and_then(Value::as_str).unwrap_or_default();
    if let Some(pattern) = keys.get("pattern").and_then(Value::as_str) {
        return pattern_text(pattern);
    }
    let by_format = match format {
        "date" => "2026-01-31",
        "date-time" => "2026-01-31T12:00:00Z",
        "time" => "12:00:00Z",
        "duration" => "PT1H",
        "email" => "ada@example.com",
        "hostname" => "example.com",
        "ipv4" => "192.0.2.1",
        "ipv6" => "2001:db8::1",
        "uri" | "url" | "uri-reference" | "iri" => "https://example.com/",
        "uuid" => "01234567-89ab-4cde-8f01-23456789abcd",
        _ => by_name(name),
    };
    let fewest = count(keys, "minLength").unwrap_or(0);
    let most = count(keys, "maxLength").unwrap_or(usize::MAX);
    let padding = std::iter::repeat_n('x', fewest.saturating_sub(by_format.chars().count()));
    by_format.chars().chain(padding).take(most).collect()
}

/// Returns a value that a person would expect for a parameter of this name, so that a trial looks
/// realistic. Commands are harmless, because agents run them.
fn by_name(name: &str) -> &'static str {
    const WORDS: [(&str, &str); 12] = [
        ("city", "Paris"),
        ("location", "Paris"),
        ("country", "France"),
        ("command", "echo demo"),
        ("url", "https://example.com/"),
        ("path", "README.md"),
        ("file", "README.md"),
        ("pattern", "demo"),
        ("query", "demo"),
        ("email", "ada@example.com"),
        ("name", "Ada"),
        ("date", "2026-01-31"),
    ];
    let name = name.to_ascii_lowercase();
    WORDS.iter().find(|(word, _)| name.contains(word)).map_or("example", |(_, value)| value)
}

/// Returns the first text that a regular expression matches: the first branch of each choice, the
/// first character of each class, the fewest repeats.
fn pattern_text(pattern: &str) -> String {
    let mut rest = pattern.chars().peekable();
    choice(&mut rest)
}

type Rest<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// Returns a text that matches the alternatives up to the closing `)`, or to the end of the
/// pattern.
fn choice(rest: &mut Rest<'_>) -> String {
    let mut branches = vec![String::new()];
    while let Some(next) = rest.next() {
        let atom = match next {
            ')' => break,
            '|' => {
                branches.push(String::new());
                continue;
            }
            '^' | '$' => continue,
            '(' => {
                if rest.next_if_eq(&'?').is_some() {
                    // `(?:`, `(?<name>`: what the group matches is inside.
                    if rest.next() == Some('<') {
                        rest.by_ref().take_while(|c| *c != '>').for_each(drop);
                    }
                }
                choice(rest)
            }
            '[' => class(rest).to_string(),
            '\\' => escaped(rest.next().unwrap_or('\\')).to_string(),
            '.' => "a".to_owned(),
            literal => literal.to_string(),
        };
        let repeats = repeats(rest);
        if let Some(branch) = branches.last_mut() {
            branch.extend(std::iter::repeat_n(atom.as_str(), repeats));
        }
    }
    branches.into_iter().next().unwrap_or_default()
}

fn class(rest: &mut Rest<'_>) -> char {
    let excluded = rest.next_if_eq(&'^').is_some();
    let mut chosen = None;
    let mut inside = String::new();
    while let Some(next) = rest.next() {
        match next {
            ']' => break,
            '\\' => {
                let c = escaped(rest.next().unwrap_or('\\'));
                chosen = chosen.or(Some(c));
                inside.push(c);
            }
            c => {
                chosen = chosen.or(Some(c));
                inside.push(c);
            }
        }
    }
    if excluded {
        return "a0_ ".chars().find(|c| !inside.contains(*c)).unwrap_or('~');
    }
    chosen.unwrap_or('a')
}

fn escaped(c: char) -> char {
    match c {
        'd' => '1',
        'w' | 'S' | 'D' => 'a',
        's' | 'W' => ' ',
        'n' => '\n',
        't' => '\t',
        other => other,
    }
}

fn repeats(rest: &mut Rest<'_>) -> usize {
    let repeats = match rest.peek() {
        Some('*' | '?') => 0,
        Some('+') => 1,
        Some('{') => {
            let inside: String = rest.by_ref().take_while(|c| *c != '}').skip(1).collect();
            let fewest = inside.split(',').next().unwrap_or_default();
            rest.next_if_eq(&'?');
            return fewest.trim().parse::<usize>().unwrap_or(1).min(4096);
        }
        _ => return 1,
    };
    rest.next();
    rest.next_if_eq(&'?');
    repeats
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(schema: Value, wanted: Value) {
        assert_eq!(sample(&schema), wanted, "{schema}");
    }

    #[test]
    fn required_properties_are_there_with_values_that_fit() {
        check(
            json!({
                "type": "object",
                "properties": {
                    "city": {"type": "string"},
                    "unit": {"enum": ["celsius", "fahrenheit"]},
                    "days": {"type": "integer", "minimum": 3},
                    "note": {"type": "string"},
                    "near": {"type": "array", "items": {"type": "object",
                        "properties": {"lat": {"type": "number", "exclusiveMinimum": 1}}, "required": ["lat"]}}
                },
                "required": ["city", "unit", "days", "near"]
            }),
            json!({"city": "Paris", "unit": "celsius", "days": 3, "near": [{"lat": 1.5}]}),
        );
    }

    #[test]
    fn without_required_every_property_is_there() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "boolean"}, "b": {"type": "null"}}});
        check(schema, json!({"a": true, "b": null}));
    }

    #[test]
    fn references_choices_and_merges_are_followed() {
        check(
            json!({
                "$defs": {"node": {"type": "object", "required": ["kind"],
                    "properties": {"kind": {"const": "leaf"}, "next": {"$ref": "#/$defs/node"}}}},
                "type": "object",
                "properties": {"a": {"$ref": "#/$defs/node"},
                    "b": {"anyOf": [{"type": "null"}, {"type": "integer"}]},
                    "c": {"allOf": [{"type": "string"}, {"minLength": 9}]},
                    "d": {"type": ["null", "boolean"]}}
            }),
            json!({"a": {"kind": "leaf"}, "b": 1, "c": "examplexx", "d": true}),
        );
    }

    #[test]
    fn a_recursive_schema_ends() {
        let schema = json!({"$defs": {"n": {"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}}},
            "$ref": "#/$defs/n"});
        assert!(sample(&schema).to_string().len() < 200);
    }

    #[test]
    fn limits_of_numbers_texts_and_lists_are_kept() {
        check(json!({"type": "integer", "multipleOf": 7, "minimum": 8}), json!(14));
        check(json!({"type": "number", "maximum": 0.25}), json!(0.25));
        check(json!({"type": "string", "maxLength": 3}), json!("exa"));
        check(
            json!({"type": "array", "items": {"type": "string"}, "minItems": 2, "uniqueItems": true}),
            json!(["example", "example1"]),
        );
        check(json!({"type": "string", "format": "date"}), json!("2026-01-31"));
    }

    #[test]
    fn patterns_are_matched() {
        check(json!({"type": "string", "pattern": "^[A-Z]{3}-\\d+(x|y)?$"}), json!("AAA-1"));
        check(json!({"type": "string", "pattern": "^(?:red|blue)[^a]{2,}$"}), json!("red00"));
    }
}
