//! Schemas for Gemini's endpoint, which refuses a request whose schemas have keywords that it does not
//! know, enumerations of anything but strings, lists of types, or a requirement of what is no property.
//!
//! | the client's | Gemini's |
//! |---|---|
//! | `const`, and `enum` of strings | `enum` of strings that are not empty |
//! | other values, `format` of anything but numbers | told in the description: as strings they would come back as strings, which the client's schema refuses |
//! | `oneOf`, `allOf` of one | `anyOf` |
//! | several types | `anyOf`, and nothing else beside a description |
//! | `null` among types or values | `nullable` |
//! | `items` for each place | the first of them |
//! | `true`, `false` | `{}` |
//! | a keyword that is not known there | left out: the client looks at inputs itself |

use super::schema::{Facts, Values, Walk, required};
use crate::json::{self, Kind, Reader, Str, Writer};

impl Walk {
    pub(super) fn gemini(
        &self,
        reader: &mut Reader<'_>,
        json: &mut Writer<'_>,
        key: Str<'_>,
        keyword: &str,
        facts: &Facts<'_>,
    ) -> Result<(), json::Error> {
        match (keyword, reader.kind()?) {
            ("description", Kind::String) if facts.described => {
                let description = reader.string()?;
                json.key("description").string(|out| {
                    out.extend_from_slice(description.raw().as_bytes());
                    facts.push_note(out);
                });
            }
            // `finish_gemini` says that they are strings.
            ("type", _) if facts.values == Values::Strings => drop(reader.skip()?),
            ("type", Kind::Array) => gemini_types(reader, json, facts)?,
            _ if facts.several && facts.values != Values::Strings => drop(reader.skip()?),
            ("oneOf", _) if !facts.any_of => {
                json.key("anyOf");
                self.schema(reader, json, false)?;
            }
            ("allOf", Kind::Array) if !facts.any_of && !facts.one_of && has_one(reader)? => {
                json.key("anyOf");
                self.schema(reader, json, false)?;
            }
            ("const", _) if facts.values == Values::Strings => {
                json.key("enum").begin_array().str(reader.string()?).end_array();
            }
            ("enum", Kind::Array) if !(facts.constant || facts.has_others()) => {
                enumeration(reader, json)?;
            }
            ("required", Kind::Array) => required(reader, json, facts)?,
            ("items", Kind::Array) => self.first_item(reader, json)?,
            // Only the formats of numbers are known (`int32`).
            ("format", _) if !facts.numeric && facts.format.is_some() => drop(reader.skip()?),
            (
                "type" | "format" | "description" | "nullable" | "items" | "minItems" | "maxItems"
                | "properties" | "minProperties" | "maxProperties" | "minLength" | "maxLength"
                | "pattern" | "minimum" | "maximum" | "anyOf" | "default" | "$ref" | "$defs"
                | "definitions",
                _,
            ) => self.member(reader, json, key, keyword)?,
            _ => drop(reader.skip()?),
        }
        Ok(())
    }

    /// `items` with the first of a list of schemas.
    fn first_item(
        &self,
        reader: &mut Reader<'_>,
        json: &mut Writer<'_>,
    ) -> Result<(), json::Error> {
        json.key("items");
        reader.begin_array()?;
        let mut is_first = true;
        while reader.next_element()? {
            if std::mem::take(&mut is_first) {
                self.schema(reader, json, false)?;
            } else {
                reader.skip()?;
            }
        }
        if is_first {
            json.raw("{}");
        }
        Ok(())
    }
}

/// `enum` of strings, without those that are empty; `null` among them is `nullable`.
fn enumeration(reader: &mut Reader<'_>, json: &mut Writer<'_>) -> Result<(), json::Error> {
    let mut nullable = false;
    reader.begin_array()?;
    json.key("enum").begin_array();
    while reader.next_element()? {
        if reader.null()? {
            nullable = true;
            continue;
        }
        let value = reader.string()?;
        if !value.is_empty() {
            json.str(value);
        }
    }
    json.end_array();
    if nullable {
        json.key("nullable").bool(true);
    }
    Ok(())
}

/// What is said in another keyword than the client's.
pub(super) fn finish_gemini(json: &mut Writer<'_>, facts: &Facts<'_>) {
    if facts.values == Values::Strings {
        json.key("type").text("string");
    } else if facts.properties && !facts.typed {
        json.key("type").text("object");
    }
    let noted = facts.has_others() || facts.format.is_some() && !facts.numeric;
    if noted && !facts.described {
        json.key("description").string(|out| facts.push_note(out));
    }
}

/// `["string", "null"]` is `"string"` and `nullable`; of several types each is a schema.
fn gemini_types(
    reader: &mut Reader<'_>,
    json: &mut Writer<'_>,
    facts: &Facts<'_>,
) -> Result<(), json::Error> {
    let mut nullable = false;
    reader.begin_array()?;
    if facts.several {
        json.key("anyOf").begin_array();
    }
    while reader.next_element()? {
        let name = reader.string()?;
        if name == "null" {
            nullable = true;
        } else if facts.several {
            json.begin_object().key("type").str(name);
            if name == "array" {
                json.key("items").raw("{}");
            }
            json.end_object();
        } else {
            json.key("type").str(name);
        }
    }
    if facts.several {
        json.end_array();
    }
    if nullable {
        json.key("nullable").bool(true);
    }
    Ok(())
}

/// Whether a list has one element.
fn has_one(list: &Reader<'_>) -> Result<bool, json::Error> {
    let mut list = list.clone();
    let mut count = 0usize;
    list.begin_array()?;
    while list.next_element()? {
        count = count.saturating_add(1);
        list.skip()?;
    }
    Ok(count == 1)
}
