//! Property names that Kimi refuses. Such properties are explained in the description of their
//! object, so that the model still writes them under the client's names.

use crate::dialect::schema::facts::SchemaFacts;
use crate::json::{self, Str, Writer};
use crate::text::names::Names;
use crate::text::words;

/// Property names that Kimi refuses everywhere.
const RESERVED: [&str; 5] = ["$defs", "$ref", "anyOf", "required", "additionalProperties"];

/// Returns the properties whose names Kimi refuses. `defined`: the schema is part of a definition.
pub(super) fn moved<'a>(facts: &SchemaFacts<'a>, defined: bool) -> Names<'a, &'a str> {
    let mut moved = Names::default();
    for (name, schema) in json::members(facts.named) {
        let name = name.decode();
        // Kimi writes `anyOf{0}` for a branch in a path, so it misreads names with braces.
        let is_branch = words::has_byte(&name, b'{') && words::has_byte(&name, b'}');
        let is_plain = || !words::has_byte(schema, b'[') && !words::has(schema, "$ref");
        if RESERVED.contains(&name.as_ref())
            || defined && words::has_byte(&name, b'/')
            || is_branch && !is_plain()
        {
            moved.insert(name, schema);
        }
    }
    moved
}

/// Writes `required`, without names that are not in `properties`.
pub(super) fn required(
    value: &str,
    facts: &SchemaFacts<'_>,
    moved: &Names<'_, &str>,
    json: &mut Writer<'_>,
) {
    let is_left = |name: &Str<'_>| !moved.contains(&name.decode());
    let names: Vec<Str<'_>> = facts.required_properties().filter(is_left).collect();
    if !names.is_empty() || json::elements(value).next().is_none() {
        json.key("required").begin_array();
        for name in names {
            json.str(name);
        }
        json.end_array();
    }
}

/// Writes the description, with the properties whose names Kimi refuses.
pub(super) fn describe(facts: &SchemaFacts<'_>, moved: &Names<'_, &str>, json: &mut Writer<'_>) {
    let mut names = json::elements(facts.required).filter_map(json::string).peekable();
    json.key("description").string(|out| {
        let described = facts.description.filter(|description| !description.is_blank());
        if let Some(description) = described {
            out.extend_from_slice(description.raw().as_bytes());
            json::escape(out, " ");
        }
        json::escape(out, "Further properties: {");
        for (at, (name, schema)) in moved.iter().enumerate() {
            json::escape(out, if at > 0 { "," } else { "" });
            json::escape(out, &json::quoted(name));
            json::escape(out, ":");
            json::escape(out, schema);
        }
        json::escape(out, "}");
        let needed: Vec<String> = std::iter::from_fn(|| names.next())
            .filter(|name| moved.contains(&name.decode()))
            .map(|name| json::quoted(&name.decode()))
            .collect();
        if !needed.is_empty() {
            json::escape(out, "; required of them: ");
            json::escape(out, &needed.join(", "));
        }
        json::escape(out, ".");
    });
}
