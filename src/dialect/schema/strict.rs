//! Check whether an upstream accepts a schema in OpenAI's strict mode (`strict: true`).

use crate::json::{self, ValueKind};
use crate::json_schema::kind_of;
use crate::profile::StrictSchemas;
use crate::text::names::NameSet;

/// Values of `format` that OpenAI's strict mode accepts.
const FORMATS: [&str; 9] =
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

/// Returns true if an upstream that accepts `taken` in strict mode accepts this schema with
/// `strict: true`.
#[must_use]
pub(crate) fn takes_strictly(taken: StrictSchemas, schema: &str) -> bool {
    match taken {
        StrictSchemas::Openai => meets_strict_subset(schema),
        StrictSchemas::Any => true,
    }
}

/// Returns true if OpenAI accepts a schema with `strict: true`. Every object must have
/// `additionalProperties: false` and require all its properties; every array must have `items`. A
/// `$ref` must be alone, and no keyword or `format` may be used that OpenAI's strict mode refuses.
#[must_use]
pub(super) fn meets_strict_subset(schema: &str) -> bool {
    strict(schema, true)
}

/// Returns true if a schema and its subschemas are in the strict subset. Keywords that
/// `write_schema` leaves out are ignored.
fn strict(schema: &str, root: bool) -> bool {
    let (mut object, mut typed, mut closed) = (root, root, false);
    let (mut array, mut items, mut reference, mut keywords) = (false, false, false, 0u32);
    let (mut names, mut required) = (NameSet::default(), NameSet::default());
    let all_within =
        |schemas: &str| json::members(schemas).all(|(_, schema)| strict(schema, false));
    for (key, value) in json::members(schema) {
        keywords = keywords.saturating_add(1);
        let is_taken = match (key.decode().as_ref(), kind_of(value)) {
            ("type", _) => {
                typed = true;
                array |= value.contains("\"array\"");
                object |= value.contains("\"object\"");
                !root || value == "\"object\""
            }
            ("properties", ValueKind::Object) => {
                object = true;
                for (name, _) in json::members(value) {
                    names.add(name.decode());
                }
                all_within(value)
            }
            ("required", ValueKind::Array) => json::elements(value).all(|name| {
                let name = json::string(name);
                name.map(|name| required.add(name.decode())).is_some()
            }),
            ("additionalProperties", ValueKind::Bool) => {
                closed = value == "false";
                true
            }
            ("items", _) => {
                items = true;
                strict(value, false)
            }
            ("anyOf", ValueKind::Array) if !root => {
                typed = true;
                json::elements(value).all(|schema| strict(schema, false))
            }
            ("$defs" | "definitions", ValueKind::Object) => all_within(value),
            ("$ref", _) => {
                (typed, reference) = (true, true);
                true
            }
            ("format", ValueKind::String) => json::string(value)
                .is_some_and(|format| FORMATS.contains(&format.decode().as_ref())),
            (
                "enum" | "const" | "$schema" | "$id" | "description" | "title" | "pattern"
                | "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf"
                | "minItems" | "maxItems",
                _,
            ) => true,
            _ => false,
        };
        if !is_taken {
            return false;
        }
    }
    let same = || {
        names.keys().all(|name| required.contains(name))
            && required.keys().all(|name| names.contains(name))
    };
    let whole = typed && (!array || items) && (!reference || keywords == 1);
    schema.starts_with('{') && whole && (!object || (closed && same()))
}

#[cfg(test)]
mod tests;
