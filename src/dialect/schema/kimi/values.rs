//! Values in schemas, reduced to what Kimi allows: `enum` values of the schema's type, and numbers
//! that are not too large.

use crate::dialect::schema::facts::SchemaFacts;
use crate::json::{self, Str, Writer};
use crate::json_schema::written;
use crate::text::words;

/// Maximum number of values in an `enum`.
const VALUES_MAX: usize = 1000;

/// Writes an `enum` with the values that match the schema's type. If there is no type, the type of
/// the values is written too, provided that all values have the same type.
pub(super) fn write(values: &str, facts: &SchemaFacts<'_>, json: &mut Writer<'_>) {
    if json::elements(values).nth(VALUES_MAX).is_some() {
        return;
    }
    let mut names: Vec<&str> =
        json::elements(facts.types).filter_map(json::string).map(|name| name.raw()).collect();
    if names.is_empty() {
        let inferred = if facts.properties { Some("object") } else { sole_kind(values) };
        match facts.sole_type.map(|name| name.raw()).or(inferred) {
            Some(name) => names.push(name),
            None => return,
        }
    }
    let is_of_type = |value: &&str| names.iter().any(|name| is_of(value, name));
    let left: Vec<&str> = json::elements(values).filter(is_of_type).collect();
    if left.is_empty() {
        return;
    }
    if !(facts.typed || facts.properties) {
        json.key("type").text(names.first().copied().unwrap_or_default());
    }
    json.key("enum").begin_array();
    for value in left {
        json.raw(value);
    }
    json.end_array();
}

/// Returns the type of all values besides `null`, if they have the same type and Kimi allows an
/// `enum` of that type.
fn sole_kind(values: &str) -> Option<&'static str> {
    let mut sole = None;
    for value in json::elements(values).filter(|value| *value != "null") {
        let name = match value.as_bytes().first()? {
            b'"' => "string",
            b't' | b'f' => "boolean",
            b'{' | b'[' => return None,
            _ => "number",
        };
        if sole.replace(name).is_some_and(|before| before != name) {
            return None;
        }
    }
    sole
}

fn is_of(value: &str, name: &str) -> bool {
    match (name, value.as_bytes().first()) {
        ("string", Some(b'"')) | ("object", Some(b'{')) | ("array", Some(b'[')) => true,
        ("boolean", Some(b't' | b'f')) | ("null", Some(b'n')) => true,
        ("number", Some(b'-' | b'0'..=b'9')) => number(value).is_some(),
        ("integer", Some(b'-' | b'0'..=b'9')) => {
            number(value).is_some_and(|number| number.fract() == 0.0)
        }
        _ => false,
    }
}

/// Parses a number as Kimi does, as a 64-bit float; `None` if the float is not finite.
fn number(value: &str) -> Option<f64> {
    value.parse().ok().filter(|number: &f64| number.is_finite())
}

/// Returns a schema whose types and `enum` match as Kimi requires: with other types, or without the
/// values. Kimi allows an `enum` with two types only if one is `null` and the other is neither
/// object nor array.
pub(super) fn narrowed(schema: &str, facts: &SchemaFacts<'_>) -> Option<String> {
    let types: Vec<Str<'_>> = json::elements(facts.types).filter_map(json::string).collect();
    if !facts.enumerated || types.len() < 2 {
        return None;
    }
    let values = json::member(schema, "enum").unwrap_or_default();
    let is_scalar = |name: &Str<'_>| !(*name == "object" || *name == "array");
    let is_many = json::elements(values).nth(VALUES_MAX).is_some();
    let may_be_null = types.iter().any(|name| *name == "null");
    let has_one =
        json::elements(values).any(|value| types.iter().any(|name| is_of(value, name.raw())));
    if types.len() == 2 && may_be_null && types.iter().all(is_scalar) && !is_many && has_one {
        return None;
    }
    // Type of all values in the `enum`, if they have the same type.
    let sole = sole_kind(values).filter(|_| !is_many);
    let is_sole = |name: &&Str<'_>| {
        sole.is_some_and(|sole| *name.raw() == *sole || sole == "number" && **name == "integer")
    };
    let name = types.iter().find(is_sole);
    let has_null = may_be_null && json::elements(values).any(|it| it == "null");
    Some(written(|json| {
        json.begin_object();
        for (key, value) in json::members(schema) {
            match (key.raw(), name) {
                ("type", Some(name)) if has_null => {
                    json.key("type").begin_array().text("null").str(*name).end_array();
                }
                ("type", Some(name)) => drop(json.key("type").str(*name)),
                ("enum", None) => {}
                _ => drop(json.key_str(key).raw(value)),
            }
        }
        json.end_object();
    }))
}

/// Returns true if Kimi accepts a value that is not a schema. Kimi reads a member called `$ref` as
/// a reference, and inside definitions it refuses a `/` in any name.
pub(super) fn is_taken(value: &str, defined: bool) -> bool {
    let refers = value.starts_with('{') && words::has(value, "$ref");
    let may_be_large =
        value.len() > 300 || words::has_byte(value, b'e') || words::has_byte(value, b'E');
    let has_slash = defined && words::has_byte(value, b'/');
    !refers && (!(may_be_large || has_slash) || is_sound(value, defined))
}

fn is_sound(value: &str, defined: bool) -> bool {
    match value.as_bytes().first() {
        Some(b'{') => json::members(value).all(|(key, value)| {
            !(defined && words::has_byte(&key.decode(), b'/')) && is_sound(value, defined)
        }),
        Some(b'[') => json::elements(value).all(|value| is_sound(value, defined)),
        Some(b'-' | b'0'..=b'9') => number(value).is_some(),
        _ => true,
    }
}
