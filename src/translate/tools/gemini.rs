//! Schemas for Gemini's endpoint, which refuses a request whose schemas have keywords that it does not
//! know, enumerations of anything but strings, lists of types, a requirement of what is no property, or anything beside
//! a choice or a reference.
//!
//! | the client's | Gemini's |
//! |---|---|
//! | `const`, and `enum` of strings | `enum` of strings that are not empty |
//! | other values, `format` of anything but numbers | told in the description: as strings they would come back as strings, which the client's schema refuses |
//! | `anyOf`, `oneOf` or several types | `anyOf` alone: the description stands in the first that has none |
//! | a choice between one schema and `null`, `allOf` of one | that schema |
//! | a choice in the root or beside `properties`, `allOf` of several | the properties of all |
//! | `null` among types, values or choices | `nullable` |
//! | `$ref` | alone with its description |
//! | `items` for each place | the first of them |
//! | `true`, `false` | `{}` |
//! | a keyword that is not known there | left out: the client looks at inputs itself |

use super::merged::{branches, can_merge, is_merged, is_null};
use super::schema::{Facts, Values, Walk, required};
use crate::json::{self, Kind, Reader, Str, Writer};

/// What is said of a schema by the one around it.
#[derive(Clone, Copy, Default)]
pub(super) struct Around<'a> {
    description: Option<Str<'a>>,
    nullable: bool,
}

impl<'a> Around<'a> {
    /// With what a schema that is only a choice says of each of its branches.
    fn with(self, facts: &Facts<'a>) -> Self {
        let choice = if facts.any_of.is_empty() { facts.one_of } else { facts.any_of };
        Self {
            description: self.description.or(facts.description),
            nullable: self.nullable || facts.nullable || has_null(choice),
        }
    }
}

impl Walk {
    /// An object, whose facts are these.
    pub(super) fn gemini<'a>(
        &self,
        reader: &mut Reader<'a>,
        json: &mut Writer<'_>,
        root: bool,
        mut facts: Facts<'a>,
        around: Around<'a>,
    ) -> Result<(), json::Error> {
        let choice = [facts.any_of, facts.one_of, facts.all_of];
        let choice = choice.into_iter().find(|list| !list.is_empty()).unwrap_or_default();
        let choices = branches(choice);
        let is_of_all = facts.any_of.is_empty() && facts.one_of.is_empty();
        let is_list = is_of_all && choices.len() > 1;
        let merges = !choices.is_empty()
            && facts.reference.is_none()
            && (root || facts.properties || is_list)
            && can_merge(&facts);
        // A branch that says less than what is around it is no schema by itself.
        let adds = || choices.iter().any(|it| !says_what(it));
        let is_choice = !(choices.is_empty() || merges || root || is_list || facts.properties);
        if is_choice && facts.reference.is_none() && !(facts.typed && adds()) {
            reader.skip()?;
            return self.choice(&choices, json, around.with(&facts));
        }
        if facts.several && facts.values != Values::Strings && facts.reference.is_none() {
            return several_types(reader, json, around.with(&facts));
        }
        facts.description = around.description.or(facts.description);
        facts.nullable |= around.nullable || !merges && has_null(choice);
        if root || merges {
            // It is an object, whatever else it says.
            facts.values = Values::Unsaid;
        }
        reader.begin_object()?;
        json.begin_object();
        if root && !facts.typed {
            json.key("type").text("object");
            facts.typed = true;
        }
        while let Some(key) = reader.next_key()? {
            let keyword = key.decode();
            let replaced = root && matches!(keyword.as_ref(), "type" | "properties" | "required");
            if replaced && reader.null()? {
                continue;
            }
            if merges && is_merged(&keyword) {
                reader.skip()?;
                continue;
            }
            self.gemini_member(reader, json, key, &keyword, &facts)?;
        }
        if merges {
            self.merged(&facts, json)?;
        } else if root && !facts.properties {
            json.key("properties").raw("{}");
        }
        finish(json, &facts, merges);
        json.end_object();
        Ok(())
    }

    /// One of several schemas.
    fn choice<'a>(
        &self,
        choices: &[&'a str],
        json: &mut Writer<'_>,
        mut around: Around<'a>,
    ) -> Result<(), json::Error> {
        let several = choices.len() > 1;
        if several {
            json.begin_object().key("anyOf").begin_array();
        }
        for schema in choices {
            let mut reader = Reader::of(schema);
            let facts = Facts::of_text(schema)?;
            // Said once: a long one would multiply with the branches.
            let is_free = !several || facts.description.is_none();
            let description = if is_free { around.description.take() } else { None };
            let is_object = reader.kind()? == Kind::Object;
            if !is_object {
                reader = Reader::of("{}");
            }
            self.gemini(&mut reader, json, false, facts, Around { description, ..around })?;
        }
        if several {
            json.end_array().end_object();
        }
        Ok(())
    }

    fn gemini_member(
        &self,
        reader: &mut Reader<'_>,
        json: &mut Writer<'_>,
        key: Str<'_>,
        keyword: &str,
        facts: &Facts<'_>,
    ) -> Result<(), json::Error> {
        match (keyword, reader.kind()?) {
            ("$ref" | "$defs" | "definitions", _) => self.member(reader, json, key, keyword)?,
            // `finish` says these.
            ("description" | "nullable", _) => drop(reader.skip()?),
            _ if facts.reference.is_some() => drop(reader.skip()?),
            ("type", _) if facts.values == Values::Strings => drop(reader.skip()?),
            ("type", Kind::Array) => one_type(reader, json)?,
            ("const", _) if facts.values == Values::Strings => {
                let value = reader.string()?;
                if !value.is_empty() {
                    json.key("enum").begin_array().str(value).end_array();
                }
            }
            ("enum", Kind::Array) if !(facts.constant || facts.has_others()) => {
                enumeration(reader, json)?;
            }
            ("properties" | "required" | "minProperties" | "maxProperties", _) if !facts.object => {
                reader.skip()?;
            }
            ("required", Kind::Array) => required(reader, json, facts)?,
            ("items", Kind::Array) => self.first_item(reader, json)?,
            // Only the formats of numbers are known (`int32`).
            ("format", _) if !facts.numeric && facts.format.is_some() => drop(reader.skip()?),
            ("default", Kind::Null) => drop(reader.skip()?),
            (
                "type" | "format" | "items" | "minItems" | "maxItems" | "properties"
                | "minProperties" | "maxProperties" | "minLength" | "maxLength" | "pattern"
                | "minimum" | "maximum" | "default",
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

/// Whether a schema says by itself of what kind its values are.
fn says_what(schema: &str) -> bool {
    let kinds = ["type", "$ref", "enum", "const", "properties", "anyOf", "oneOf", "allOf"];
    kinds.iter().any(|key| json::member(schema, key).is_some())
}

/// `enum` of strings, without those that are empty, and none where all are.
fn enumeration(reader: &mut Reader<'_>, json: &mut Writer<'_>) -> Result<(), json::Error> {
    let mut has_one = false;
    reader.begin_array()?;
    while reader.next_element()? {
        let Some(value) = reader.string_or_skip()?.filter(|value| !value.is_empty()) else {
            continue;
        };
        if !std::mem::replace(&mut has_one, true) {
            json.key("enum").begin_array();
        }
        json.str(value);
    }
    if has_one {
        json.end_array();
    }
    Ok(())
}

/// What is said in another keyword than the client's.
fn finish(json: &mut Writer<'_>, facts: &Facts<'_>, merges: bool) {
    let refers = facts.reference.is_some();
    if facts.values == Values::Strings && !refers {
        json.key("type").text("string");
    } else if (facts.properties || merges) && !facts.typed && !refers {
        json.key("type").text("object");
    }
    if facts.array && !facts.items && !refers {
        json.key("items").raw("{}");
    }
    if facts.nullable && !refers {
        json.key("nullable").bool(true);
    }
    let noted = facts.has_note() && !refers;
    if facts.description.is_some() || noted {
        json.key("description").string(|out| {
            let description = facts.description.unwrap_or_default();
            out.extend_from_slice(description.raw().as_bytes());
            if noted {
                facts.push_note(out);
            }
        });
    }
}

/// The one type of a list that is not `null`.
fn one_type(reader: &mut Reader<'_>, json: &mut Writer<'_>) -> Result<(), json::Error> {
    reader.begin_array()?;
    while reader.next_element()? {
        if let Some(name) = reader.string_or_skip()?.filter(|name| *name != "null") {
            json.key("type").str(name);
        }
    }
    Ok(())
}

/// A schema of several types, each of which is one. What else it says is left out.
fn several_types(
    reader: &mut Reader<'_>,
    json: &mut Writer<'_>,
    mut around: Around<'_>,
) -> Result<(), json::Error> {
    let types = json::member(reader.skip()?, "type").unwrap_or("[]");
    let mut types = Reader::of(types);
    json.begin_object().key("anyOf").begin_array();
    types.begin_array()?;
    while types.next_element()? {
        let Some(name) = types.string_or_skip()?.filter(|name| *name != "null") else { continue };
        json.begin_object().key("type").str(name);
        if name == "array" {
            json.key("items").raw("{}");
        }
        if around.nullable {
            json.key("nullable").bool(true);
        }
        if let Some(description) = around.description.take() {
            json.key("description").str(description);
        }
        json.end_object();
    }
    json.end_array().end_object();
    Ok(())
}

/// Whether one of a list of schemas is that of `null` alone.
fn has_null(list: &str) -> bool {
    let mut reader = Reader::of(list);
    let mut read = || {
        reader.begin_array().ok()?;
        while reader.next_element().ok()? {
            if is_null(reader.skip().ok()?) {
                return Some(true);
            }
        }
        None
    };
    read().is_some()
}
