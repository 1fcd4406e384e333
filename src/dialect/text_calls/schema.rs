//! Queries to the schema of a tool about a value that was written as plain text.

use std::cell::Cell;

use crate::json;

/// Maximum depth of schemas that are followed within each other; a `$ref` can lead back to its own
/// position.
const DEPTH_MAX: u8 = 8;

/// Maximum number of schemas that are examined for one value, since each can lead to several
/// others.
const SCHEMAS_MAX: u16 = 256;

/// Returns true if `schema`, which is a part of `root`, allows values of the type `kind`.
pub(super) fn allows(root: &str, schema: &str, kind: &str) -> bool {
    allows_within(root, schema, kind, DEPTH_MAX, &Cell::new(SCHEMAS_MAX))
}

/// Returns true if a tool can have a parameter of this name: its schema lists the name, or lists no
/// names.
pub(super) fn has_parameter(schema: &str, name: &str) -> bool {
    let properties = json::member(schema, "properties").unwrap_or_default();
    json::members(properties).next().is_none() || json::member(properties, name).is_some()
}

fn allows_within(root: &str, schema: &str, kind: &str, depth: u8, left: &Cell<u16>) -> bool {
    let Some(depth) = depth.checked_sub(1) else { return false };
    let Some(more) = left.get().checked_sub(1) else { return false };
    left.set(more);
    let within = |inner: &str| allows_within(root, inner, kind, depth, left);
    let types = json::member(schema, "type");
    if types.is_some_and(|types| {
        any(types, |value| json::string(value).is_some_and(|name| name == *kind))
    }) {
        return true;
    }
    for values in ["enum", "const"] {
        let values = json::member(schema, values);
        if types.is_none() && values.is_some_and(|it| any(it, |value| type_of(value) == kind)) {
            return true;
        }
    }
    for several in ["anyOf", "oneOf", "allOf"] {
        let schemas = json::member(schema, several);
        if schemas.is_some_and(|it| any(it, within)) {
            return true;
        }
    }
    let target = json::member(schema, "$ref").and_then(|path| referred(root, path));
    target.is_some_and(within)
}

/// Returns the schema to which a path such as `"#/$defs/NAME"` leads.
fn referred<'s>(root: &'s str, path: &str) -> Option<&'s str> {
    let path = json::string(path)?.decode();
    let mut names = path.strip_prefix("#/")?.split('/');
    names.try_fold(root, |schema, name| json::member(schema, name))
}

/// Returns true if the function `holds` returns true for the JSON text `value` or, if `value` is a
/// list, for one of its elements.
fn any(value: &str, holds: impl Fn(&str) -> bool) -> bool {
    if value.starts_with('[') { json::elements(value).any(holds) } else { holds(value) }
}

/// Returns the JSON Schema type of a JSON value.
fn type_of(value: &str) -> &'static str {
    match value.as_bytes().first() {
        Some(b'"') => "string",
        Some(b't' | b'f') => "boolean",
        Some(b'n') => "null",
        _ => "",
    }
}

#[cfg(test)]
mod tests;
