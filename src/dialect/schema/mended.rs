//! Repair of schemas that no draft of JSON Schema allows, but that converters and people write
//! nevertheless. Servers refuse the whole request for these faults, so the schema is repaired
//! before a dialect rewrites it.
//!
//! | the client's | what is written |
//! |---|---|
//! | `null` or a wrong type as a keyword's value: `"properties": []`, `"required": {}` | left out |
//! | a property or a definition that is no schema: a string, a number, a list, `null` | `{}` |
//! | a type in another spelling: `STRING`, `int` | `string`, `integer` |
//! | an unknown type: `any`, `unknown` | left out, so that any value is allowed |
//! | a required name that is no string, or a duplicate | left out |
//! | a branch that allows no value: `{"not": {}}`, `false`, `{"enum": []}` | left out |
//! | a choice with a single remaining branch | that branch |
//! | a property that allows no value: `{"not": {}}` | left out, also among the required names |
//! | `"additionalProperties": {"not": {}}` | `false` |
//!
//! The client validates inputs itself.

use std::borrow::Cow;

use super::references;
use crate::json::{self, Str, Writer};
use crate::json_schema::{
    Found, KeywordValue, TYPES, allows_all, is_choice, keyword_value, written,
};
use crate::text::names::{NameSet, Names};
use crate::text::words;

/// Returns a schema without faults and without dangling references, and the findings about the
/// mended schema.
pub(crate) fn plain(schema: &str) -> (Cow<'_, str>, Found) {
    plain_of(schema, Found::of(schema))
}

/// Returns a schema without faults and dangling references, if the faults are already known.
pub(crate) fn plain_of(schema: &str, found: Found) -> (Cow<'_, str>, Found) {
    match references::plain(schema) {
        Cow::Borrowed(schema) => mended(schema.into(), found),
        Cow::Owned(schema) => {
            let found = Found::of(&schema);
            mended(schema.into(), found)
        }
    }
}

/// Returns a schema without faults, and the findings about the mended schema.
pub(super) fn mended(schema: Cow<'_, str>, found: Found) -> (Cow<'_, str>, Found) {
    if !found.is_faulty {
        return (schema, found);
    }
    // References that count branches would lead elsewhere if a branch were left out.
    let counts = words::has_any(&schema, &["/anyOf/", "/oneOf/"]);
    let drops = !counts && words::has_any(&schema, &["\"not\"", "false", "\"enum\""]);
    let mended = written(|json| SchemaMender { drops }.schema(&schema, json));
    (mended.into(), Found { is_refused: true, is_faulty: false, is_complete: false })
}

/// Returns the JSON Schema type that a misspelt or foreign type name stands for.
fn meant(name: &str) -> Option<&'static str> {
    let name = name.trim().to_ascii_lowercase();
    let known = TYPES.into_iter().find(|known| *known == name);
    known.or(match name.as_str() {
        "str" | "text" => Some("string"),
        "int" | "int32" | "int64" | "long" => Some("integer"),
        "float" | "double" | "decimal" => Some("number"),
        "bool" => Some("boolean"),
        "dict" | "map" | "dictionary" => Some("object"),
        "list" | "tuple" => Some("array"),
        "none" | "nil" => Some("null"),
        _ => None,
    })
}

/// Maximum number of nested choices that are searched for a branch that allows no value. A search
/// without this limit would take time quadratic in the depth.
const LEVELS: u32 = 4;

/// Returns true if the schema was deliberately written to allow no value, such as `{"not": {}}`.
fn allows_nothing(schema: &str) -> bool {
    allows_nothing_in(schema, LEVELS)
}

/// Returns true if no value fits a branch. A branch with a type and an empty `enum` does not count:
/// its author did not know the values.
fn is_no_branch(schema: &str) -> bool {
    is_no_branch_in(schema, LEVELS)
}

/// Returns true if no value fits a schema, searching at most `left` levels of nested choices.
fn allows_nothing_in(schema: &str, left: u32) -> bool {
    let Some(left) = left.checked_sub(1) else { return false };
    let is_none = |branch: &str| is_no_branch_in(branch, left);
    json::members(schema).any(|(key, value)| match key.raw() {
        "not" => allows_all(value),
        "anyOf" | "oneOf" => {
            let mut branches = json::elements(value).peekable();
            branches.peek().is_some() && branches.all(is_none)
        }
        "allOf" => json::elements(value).any(is_none),
        _ => false,
    })
}

/// Returns true if no value fits a branch, searching at most `left` levels of nested choices.
fn is_no_branch_in(schema: &str, left: u32) -> bool {
    let is_empty = |list: &str| list.starts_with('[') && json::elements(list).next().is_none();
    let has_no_values = || {
        let values = json::member(schema, "enum");
        values.is_some_and(is_empty) && json::member(schema, "type").is_none()
    };
    schema == "false" || allows_nothing_in(schema, left) || has_no_values()
}

/// Writer of schemas without faults.
struct SchemaMender {
    /// True if schemas that allow no value may be left out, and the text may contain such schemas.
    drops: bool,
}

impl SchemaMender {
    fn schema(&self, schema: &str, json: &mut Writer<'_>) {
        if !schema.starts_with('{') {
            json.raw(if schema.starts_with(['t', 'f']) { schema } else { "{}" });
            return;
        }
        if let Some(alone) = self.drops.then(|| without_choice(schema)).flatten() {
            return self.schema(&alone, json);
        }
        let never = if self.drops { never(schema) } else { NameSet::default() };
        json.begin_object();
        for (key, value) in json::members(schema) {
            let keyword = key.decode();
            let keyword_value = keyword_value(&keyword);
            match keyword_value {
                KeywordValue::Types => types(value, json),
                KeywordValue::Names => names(value, json, key, &never),
                _ if !keyword_value.takes(value) => {}
                KeywordValue::Named => {
                    json.key_str(key).begin_object();
                    for (name, schema) in json::members(value) {
                        if keyword != "properties" || !never.contains(&name.decode()) {
                            json.key_str(name);
                            self.schema(schema, json);
                        }
                    }
                    json.end_object();
                }
                KeywordValue::Branches | KeywordValue::Items if value.starts_with('[') => {
                    // Branches that no value fits are left out, unless all branches are of this
                    // kind.
                    let drops = self.drops
                        && is_choice(&keyword)
                        && !json::elements(value).all(is_no_branch);
                    json.key_str(key).begin_array();
                    json::elements(value)
                        .filter(|schema| !drops || !is_no_branch(schema))
                        .for_each(|schema| self.schema(schema, json));
                    json.end_array();
                }
                KeywordValue::Schema
                    if keyword == "additionalProperties" && allows_nothing(value) =>
                {
                    json.key_str(key).bool(false);
                }
                KeywordValue::Schema | KeywordValue::Items => {
                    json.key_str(key);
                    self.schema(value, json);
                }
                _ => drop(json.key_str(key).raw(value)),
            }
        }
        json.end_object();
    }
}

/// Returns a schema in which a choice with a single remaining branch is replaced by that branch.
fn without_choice(schema: &str) -> Option<String> {
    let choices = || json::members(schema).filter(|(key, _)| is_choice(key.raw()));
    let (choice, list) = choices().next().filter(|_| choices().nth(1).is_none())?;
    let mut left = json::elements(list).filter(|branch| !is_no_branch(branch));
    let branch = left.next().filter(|branch| left.next().is_none() && branch.starts_with('{'))?;
    json::elements(list).nth(1)?;
    let mut beside = Names::default();
    for (key, value) in json::members(schema).filter(|(key, _)| key.raw() != choice.raw()) {
        beside.insert(key.decode(), value);
    }
    let is_note = |key: Str<'_>| matches!(key.raw(), "description" | "title" | "default");
    let clashes = json::members(branch).any(|(key, value)| {
        beside.get(&key.decode()).is_some_and(|other| !is_note(key) && *other != value)
    });
    if clashes {
        return None;
    }
    let added = || json::members(branch).filter(|(key, _)| !beside.contains(&key.decode()));
    Some(written(|json| {
        json.begin_object();
        for (key, value) in json::members(schema) {
            if key.raw() != choice.raw() {
                json.key_str(key).raw(value);
                continue;
            }
            for (key, value) in added() {
                json.key_str(key).raw(value);
            }
        }
        json.end_object();
    }))
}

/// Returns the names of the properties that allow no value.
fn never(schema: &str) -> NameSet<'_> {
    let mut names = NameSet::default();
    let properties = json::member(schema, "properties").unwrap_or_default();
    for (name, _) in json::members(properties).filter(|(_, schema)| allows_nothing(schema)) {
        names.add(name.decode());
    }
    names
}

/// Writes `type` with the names of JSON Schema; writes nothing if one of the names stands for no
/// known type.
fn types(value: &str, json: &mut Writer<'_>) {
    let one = |value: &str| match json::string(value) {
        Some(name) => meant(&name.decode()),
        None => (value == "null").then_some("null"),
    };
    if value.starts_with('"') {
        if let Some(name) = one(value) {
            json.key("type").text(name);
        }
        return;
    }
    let mut known = Vec::new();
    for name in json::elements(value).map(one) {
        match name {
            Some(name) if !known.contains(&name) => known.push(name),
            Some(_) => {}
            None => return,
        }
    }
    if !known.is_empty() {
        json.key("type").begin_array();
        for name in known {
            json.text(name);
        }
        json.end_array();
    }
}

/// Writes `required` with the names in the list, each once, without names of properties that allow
/// no value.
fn names(value: &str, json: &mut Writer<'_>, key: Str<'_>, never: &NameSet<'_>) {
    if !value.starts_with('[') {
        return;
    }
    let mut known = NameSet::default();
    json.key_str(key).begin_array();
    for name in json::elements(value).filter_map(json::string) {
        if !never.contains(&name.decode()) && known.add(name.decode()) {
            json.str(name);
        }
    }
    json.end_array();
}
