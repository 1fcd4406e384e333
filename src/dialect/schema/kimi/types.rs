//! Several types of one schema. Beside them, Kimi takes nothing but a description: what only one of
//! the types can have stands with that type in a branch of a choice.

use crate::dialect::schema::facts::Facts;
use crate::json::{self, Str};
use crate::json_schema::written;

/// List of the types of any value.
pub(super) const ALL: &str = "[\"string\",\"number\",\"boolean\",\"object\",\"array\",\"null\"]";

/// Whether a keyword may stand beside anything.
pub(super) fn is_note(keyword: &str) -> bool {
    matches!(keyword, "title" | "description")
}

/// The branches of a choice, if a schema has several types and more than a description.
pub(super) fn branches(schema: &str, facts: &Facts<'_>) -> Option<String> {
    let types: Vec<Str<'_>> = json::elements(facts.types).filter_map(json::string).collect();
    let says_more = |key: Str<'_>| !(is_note(key.raw()) || is_top(key.raw()) || key == "type");
    let is_choice = types.len() > 1 && json::members(schema).any(|(key, _)| says_more(key));
    // A list of values is narrowed to them.
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

/// Whether a keyword stands in the root, whatever its types.
fn is_top(keyword: &str) -> bool {
    matches!(keyword, "$defs" | "definitions" | "$id")
}

/// Whether values of a type can have what a keyword says.
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
