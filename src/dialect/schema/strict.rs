//! Schemas that an upstream takes in OpenAI's strict mode.

use super::ARRAY;
use crate::dialect::profile::StrictSchemas;
use crate::json::Reader;
use crate::text::names::NameSet;
use crate::text::words;

/// The values of `format` in OpenAI's strict mode.
const FORMATS: [&str; 9] =
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

/// Whether an upstream that takes `taken` with `strict: true` takes this schema so.
#[must_use]
pub(crate) fn takes_strictly(taken: StrictSchemas, schema: &str) -> bool {
    match taken {
        StrictSchemas::Openai => meets_strict_subset(schema),
        StrictSchemas::Any => true,
    }
}

/// Whether OpenAI takes a schema with `strict: true`: every object has `additionalProperties: false`
/// and requires all its properties, every array has `items`, nothing stands beside a `$ref`, and no keyword or
/// value of `format` is used that OpenAI's strict mode refuses.
#[must_use]
pub(super) fn meets_strict_subset(schema: &str) -> bool {
    strict(&mut Reader::of(schema), true).is_some()
}

/// `None` as soon as one schema is not in the subset. What `write_schema` leaves out is no reason.
fn strict(reader: &mut Reader<'_>, root: bool) -> Option<()> {
    let mut object = root;
    let mut typed = root;
    let mut closed = false;
    let (mut array, mut items, mut reference, mut keywords) = (false, false, false, 0u32);
    let mut names = NameSet::default();
    let mut required = NameSet::default();
    reader.begin_object().ok()?;
    while let Some(key) = reader.next_key().ok()? {
        keywords = keywords.saturating_add(1);
        match key.decode().as_ref() {
            "type" => {
                let types = reader.skip().ok()?;
                typed = true;
                array |= words::has(types, ARRAY);
                object |= words::has(types, "\"object\"");
                (!root || types == "\"object\"").then_some(())?;
            }
            "properties" => {
                object = true;
                reader.begin_object().ok()?;
                while let Some(name) = reader.next_key().ok()? {
                    names.add(name.decode());
                    strict(reader, false)?;
                }
            }
            "required" => {
                reader.begin_array().ok()?;
                while reader.next_element().ok()? {
                    required.add(reader.string().ok()?.decode());
                }
            }
            "additionalProperties" => closed = !reader.bool().ok()?,
            "items" => {
                items = true;
                strict(reader, false)?;
            }
            "anyOf" if !root => {
                typed = true;
                reader.begin_array().ok()?;
                while reader.next_element().ok()? {
                    strict(reader, false)?;
                }
            }
            "$defs" | "definitions" => {
                reader.begin_object().ok()?;
                while reader.next_key().ok()?.is_some() {
                    strict(reader, false)?;
                }
            }
            "$ref" => {
                typed = true;
                reference = true;
                reader.skip().ok()?;
            }
            "format" => {
                let format = reader.string().ok()?.decode();
                FORMATS.contains(&format.as_ref()).then_some(())?;
            }
            "enum" | "const" | "$schema" | "$id" | "description" | "title" | "pattern"
            | "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf"
            | "minItems" | "maxItems" => {
                reader.skip().ok()?;
            }
            _ => return None,
        }
    }
    let same = || {
        names.keys().all(|name| required.contains(name))
            && required.keys().all(|name| names.contains(name))
    };
    let whole = typed && (!array || items) && (!reference || keywords == 1);
    (whole && (!object || (closed && same()))).then_some(())
}

#[cfg(test)]
mod tests;
