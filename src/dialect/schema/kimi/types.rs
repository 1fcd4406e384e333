//! Schemas with several types, which Kimi allows only with a title and a description. Keywords that
//! apply to one type move into that type's branch of an `anyOf`.

use crate::dialect::schema::facts::SchemaFacts;
use crate::json::{self, Str};
use crate::json_schema::written;

/// List of all types of JSON Schema.
pub(super) const ALL: &str = "[\"string\",\"number\",\"boolean\",\"object\",\"array\",\"null\"]";

/// Returns true if a keyword is only an annotation (title or description), which Kimi allows beside
/// any other.
pub(super) fn is_note(keyword: &str) -> bool {
    matches!(keyword, "title" | "description")
}

/// Returns the branches of an `anyOf`, one per type, if a schema has several types and more than a
/// description.
pub(super) fn branches(schema: &str, facts: &SchemaFacts<'_>) -> Option<String> {
    let types: Vec<Str<'_>> = json::elements(facts.types).filter_map(json::string).collect();
    let says_more = |key: Str<'_>| !(is_note(key.raw()) || is_top(key.raw()) || key == "type");
    let is_choice = types.len() > 1 && json::members(schema).any(|(key, _)| says_more(key));
    // A schema with an `enum` is narrowed to the types of its values instead.
    if !is_choice || facts.enumerated {
        return None;
    }
    Some(written(|json| {
        json.begin_array();
        for name in types {
            json.begin_object().key("type").str(name);
            for (key, value) in json::members(schema) {
                if has(name.raw(), key.raw()) {
                    json.key_str(key).raw(value);
                }
            }
            json.end_object();
        }
        json.end_array();
    }))
}

/// Returns true if a keyword stays in the root, whatever the types are (`$defs`, `$id`).
fn is_top(keyword: &str) -> bool {
    matches!(keyword, "$defs" | "definitions" | "$id")
}

/// Returns true if a keyword applies to values of this type.
fn has(name: &str, keyword: &str) -> bool {
    match keyword {
        "minLength" | "maxLength" | "pattern" | "format" | "contentEncoding"
        | "contentMediaType" => name == "string",
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => {
            matches!(name, "number" | "integer")
        }
        "items" | "prefixItems" | "additionalItems" | "unevaluatedItems" | "contains"
        | "minItems" | "maxItems" | "uniqueItems" | "minContains" | "maxContains" => {
            name == "array"
        }
        "properties"
        | "required"
        | "additionalProperties"
        | "patternProperties"
        | "propertyNames"
        | "minProperties"
        | "maxProperties"
        | "unevaluatedProperties"
        | "dependentRequired"
        | "dependentSchemas" => name == "object",
        _ => false,
    }
}
