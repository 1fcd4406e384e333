//! Schemas for Kimi, which refuses every request whose schemas are not of its own flavour, as
//! MoonshotAI/walle checks it.
//!
//! | the client's | Kimi's |
//! |---|---|
//! | `true`, `false` | `{}` |
//! | `$ref` in the root | the properties of what it refers to: there must be no `type` beside it |
//! | a list of schemas in the root, `anyOf` beside `properties` | the properties of all branches |
//! | anything but a description beside another `anyOf` or `$ref` | left out |
//! | `definitions`, `#/definitions/…` | `$defs`, `#/$defs/…`; no other places are known |
//! | `enum` without a type | with that of its values, which must be one; `null` is left out |
//! | `items` for each place | `prefixItems` |
//! | a requirement of what is no property | left out |
//!
//! The client looks at inputs itself.

use super::facts::Facts;
use super::schema::{Walk, copy_member, required};
use crate::json::{self, Kind, Reader, Str, Writer};
use crate::names::NameSet;

const DEFS: &str = "\"$defs\"";

impl Walk<'_> {
    pub(super) fn kimi(
        &self,
        reader: &mut Reader<'_>,
        json: &mut Writer<'_>,
        key: Str<'_>,
        keyword: &str,
        facts: &Facts<'_>,
        root: bool,
    ) -> Result<(), json::Error> {
        match (keyword, reader.kind()?) {
            ("$defs" | "definitions", Kind::Object) if facts.definitions.is_empty() => {
                let key = Reader::of(DEFS).string()?;
                self.member(reader, json, key, "$defs")?;
            }
            ("$defs", Kind::Object) => {
                let mut known = NameSet::default();
                json.key("$defs").begin_object();
                for definitions in [reader.skip()?, facts.definitions] {
                    for (name, schema) in json::members(definitions) {
                        if known.add(name.decode()) {
                            json.key_text(&name.decode());
                            self.schema(&mut Reader::of(schema), json, false)?;
                        }
                    }
                }
                json.end_object();
            }
            // With the others.
            ("definitions", Kind::Object) => drop(reader.skip()?),
            ("description" | "title", _) => copy_member(reader, json, key)?,
            ("$ref", Kind::String) if facts.refers => {
                let reference = reader.string()?;
                json.key("$ref").string(|out| match definition(reference) {
                    Some(name) => {
                        json::escape(out, "#/$defs/");
                        out.extend_from_slice(name.as_bytes());
                    }
                    None => out.push(b'#'),
                });
            }
            ("$ref" | "$id", _) => drop(reader.skip()?),
            _ if facts.refers => drop(reader.skip()?),
            ("anyOf", Kind::Array) if facts.chooses => self.member(reader, json, key, keyword)?,
            ("anyOf", _) => drop(reader.skip()?),
            _ if facts.chooses => drop(reader.skip()?),
            ("enum", Kind::Array) => {
                let typed = facts.typed || root || facts.properties || facts.merges;
                enumeration(reader, json, typed)?;
            }
            ("required", Kind::Array) => required(reader, json, facts)?,
            ("additionalProperties", Kind::Bool) => copy_member(reader, json, key)?,
            _ => self.member(reader, json, key, keyword)?,
        }
        if keyword == "properties" && !facts.typed && !root && !facts.refers {
            json.kind("object");
        }
        Ok(())
    }
}

/// Whether there is a `$ref`, and Kimi knows to what: the whole, or a definition.
pub(super) fn refers(facts: &Facts<'_>) -> bool {
    facts.reference.is_some_and(|it| it == "#" || definition(it).is_some())
}

/// Whether it is written as a choice.
pub(super) fn chooses(facts: &Facts<'_>) -> bool {
    let branches: Vec<&str> = json::elements(facts.any_of).collect();
    !(branches.is_empty() || facts.properties) && facts.are_whole(&branches)
}

/// Whether a choice or a reference stands where Kimi takes none.
pub(super) fn merges(facts: &Facts<'_>, root: bool) -> bool {
    let chooses = !facts.any_of.is_empty() && facts.properties && !facts.refers;
    root && (facts.has_branches() || facts.reference.is_some()) || chooses
}

/// The name of a definition.
pub(super) fn definition(reference: Str<'_>) -> Option<&str> {
    let place = reference.raw().strip_prefix("#/")?;
    place.strip_prefix("$defs/").or_else(|| place.strip_prefix("definitions/"))
}

/// The values of one type.
fn enumeration(
    reader: &mut Reader<'_>,
    json: &mut Writer<'_>,
    typed: bool,
) -> Result<(), json::Error> {
    let name = match sole_kind(reader.clone())? {
        Some(Kind::String) => "string",
        Some(Kind::Number) => "number",
        Some(Kind::Bool) => "boolean",
        _ => {
            reader.skip()?;
            return Ok(());
        }
    };
    if !typed {
        json.key("type").text(name);
    }
    json.key("enum").begin_array();
    reader.begin_array()?;
    while reader.next_element()? {
        if !reader.null()? {
            json.raw(reader.skip()?);
        }
    }
    json.end_array();
    Ok(())
}

/// The kind of all values that are not `null`, if it is one.
fn sole_kind(mut values: Reader<'_>) -> Result<Option<Kind>, json::Error> {
    let mut sole = None;
    values.begin_array()?;
    while values.next_element()? {
        let kind = values.kind()?;
        values.skip()?;
        if kind != Kind::Null && sole.replace(kind).is_some_and(|before| before != kind) {
            return Ok(None);
        }
    }
    Ok(sole)
}
