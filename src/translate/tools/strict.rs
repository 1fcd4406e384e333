//! Schemas that an upstream takes in OpenAI's strict mode.

use super::schema::ARRAY;
use crate::json::Reader;
use crate::names::NameSet;
use crate::profile::StrictSchemas;
use crate::words;

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
mod tests {
    use super::*;

    #[test]
    fn the_strict_subset_is_told_from_other_schemas() {
        let object = |rest: &str| format!(r#"{{"type":"object",{rest}}}"#);
        for schema in [
            object(r#""properties":{},"additionalProperties":false"#),
            object(
                r#""properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false"#,
            ),
            object(
                r##""additionalProperties":false,"required":["b","\u0061"],"properties":{"a":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/d"}]},"b":{"type":"array","items":{"type":"integer","minimum":1}}},"$defs":{"d":{"type":"object","properties":{},"additionalProperties":false}}"##,
            ),
            object(
                r#""properties":{"a":{"type":"string","format":"date-time","pattern":"^(?:a|b)$"}},"required":["a"],"additionalProperties":false"#,
            ),
            object(
                r#""properties":{"allOf":{"type":"string","enum":["x"]}},"required":["allOf"],"additionalProperties":false"#,
            ),
        ] {
            assert!(meets_strict_subset(&schema), "{schema}");
        }
        for schema in [
            "{}".to_owned(),
            "true".to_owned(),
            object(r#""properties":{}"#),
            object(r#""properties":{},"additionalProperties":true"#),
            object(r#""properties":{"a":{}},"required":[],"additionalProperties":false"#),
            object(r#""properties":{"a":{}},"additionalProperties":false"#),
            object(
                r#""properties":{"a":{"type":["object","null"],"properties":{}}},"required":["a"],"additionalProperties":false"#,
            ),
            object(
                r#""properties":{"a":{"type":"array","items":{"type":"object"}}},"required":["a"],"additionalProperties":false"#,
            ),
            object(
                r#""properties":{},"additionalProperties":false,"$defs":{"d":{"type":"object","properties":{}}}"#,
            ),
            object(
                r#""properties":{"a":{"anyOf":[{"type":"object","properties":{}}]}},"required":["a"],"additionalProperties":false"#,
            ),
            object(r#""properties":{},"additionalProperties":false,"allOf":[]"#),
            // Every schema needs a type, and what is required must be there.
            object(
                r#""properties":{"a":{"enum":["x"]}},"required":["a"],"additionalProperties":false"#,
            ),
            object(r#""properties":{"a":{}},"required":["a"],"additionalProperties":false"#),
            object(
                r#""properties":{"a":{"title":"A"}},"required":["a"],"additionalProperties":false"#,
            ),
            object(r#""properties":{},"required":["a"],"additionalProperties":false"#),
            object(r#""properties":{},"additionalProperties":false,"anyOf":[]"#),
            // What OpenAI answers with 400 although the keywords are known.
            object(
                r#""properties":{"a":{"type":"string","format":"uri"}},"required":["a"],"additionalProperties":false"#,
            ),
            object(
                r#""properties":{"a":{"type":["array","null"]}},"required":["a"],"additionalProperties":false"#,
            ),
            object(
                r##""properties":{"a":{"$ref":"#/$defs/d","description":"d"}},"required":["a"],"additionalProperties":false,"$defs":{"d":{"type":"string"}}"##,
            ),
            object(
                r#""properties":{"a":{"type":"string","minLength":1}},"required":["a"],"additionalProperties":false"#,
            ),
            r#"{"type":"array","items":{"type":"string"}}"#.to_owned(),
        ] {
            assert!(!meets_strict_subset(&schema), "{schema}");
        }
    }
}
