//! JSON Schemas of tools, in the dialect that an upstream takes.
//!
//! A schema is copied byte for byte wherever that is possible. The other dialects are subsets: they are
//! written by a walk that knows which keywords hold schemas, so that a property that is merely
//! *called* `title` or `$schema` is never taken for the keyword.
//!
//! The walk goes as deep as the schema is nested, which [`Reader`] bounds.

pub(crate) mod facts;
pub(crate) mod gemini;
pub(crate) mod grammar;
pub(crate) mod kimi;
pub(crate) mod mended;
pub(crate) mod merged;
pub(crate) mod ollama;
pub(crate) mod references;
pub(crate) mod strict;

use std::cell::OnceCell;

use crate::dialect::profile::ToolSchema;
use crate::json::{self, Reader, Str, ValueKind, Writer};
use crate::json_schema::{
    Found, KeywordValue, PATTERN_PROPERTIES, is_no_root, is_unportable, keyword_value, may_be_bool,
};
use crate::text::names::{NameSet, Names};
use facts::Facts;
use gemini::Around;
use grammar::{ANY, llama_cpp_refuses, mistral_refuses};
use merged::{Merged, Which, is_merged};
use ollama::Inlined;

/// Writes `schema`, a plain object, as the `parameters` of a function. A missing `type` or `properties` is added:
/// several servers refuse that. They also refuse a root that is a choice and, at any depth, an array without `items`,
/// a boolean in place of a schema and a pattern that not every engine takes.
pub(crate) fn write_schema(json: &mut Writer<'_>, schema: &str, found: Found, dialect: ToolSchema) {
    let dialect = match dialect {
        ToolSchema::Ollama if !ollama::loses(schema) => ToolSchema::Full,
        dialect => dialect,
    };
    if dialect == ToolSchema::Full && found.is_complete && !found.is_refused {
        json.raw(schema);
    } else {
        walk(json, schema, dialect, true);
    }
}

/// Writes the schema of `response_format`: nothing is missing in its root, whatever it is. llama.cpp makes a grammar of
/// it as of those of tools, and Kimi checks both; of the other dialects it is not known that they hold for it.
pub(crate) fn write_output_schema(
    json: &mut Writer<'_>,
    schema: &str,
    found: Found,
    tools: ToolSchema,
) {
    if matches!(tools, ToolSchema::LlamaCpp | ToolSchema::Kimi) {
        walk(json, schema, tools, false);
    } else if found.is_refused {
        walk(json, schema, ToolSchema::Full, false);
    } else {
        json.raw(schema);
    }
}

fn walk(json: &mut Writer<'_>, schema: &str, dialect: ToolSchema, function: bool) {
    json.value();
    let start = json.out().len();
    let (has_paths, defined) = (OnceCell::new(), OnceCell::new());
    let walk = Walk { dialect, root: schema, has_paths, defined, inlined: Inlined::default() };
    let written = match dialect {
        ToolSchema::Kimi => kimi::write(&walk, json, function),
        _ => walk.schema(&mut Reader::of(schema), json, function),
    };
    if written.is_err() {
        // Not reachable with a schema that was read from a request.
        json.out().truncate(start);
        json.out().extend_from_slice(schema.as_bytes());
    }
}

pub(crate) const ARRAY: &str = "\"array\"";
/// What the value of a keyword is made of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holds {
    /// Data.
    Data,
    /// A schema, or an array of schemas.
    Schema,
    /// An object whose members are schemas, under names that the client chose.
    Named,
}

pub(crate) fn holds(keyword: &str) -> Holds {
    match keyword_value(keyword) {
        KeywordValue::Schema | KeywordValue::Branches | KeywordValue::Items => Holds::Schema,
        KeywordValue::Named => Holds::Named,
        _ => Holds::Data,
    }
}

/// Copies a schema into a dialect.
pub(crate) struct Walk<'s> {
    dialect: ToolSchema,
    /// The whole of it.
    pub(crate) root: &'s str,
    /// Whether references lead through lists of schemas, once that was asked.
    pub(crate) has_paths: OnceCell<bool>,
    /// What the root defines, once that was asked.
    pub(crate) defined: OnceCell<Names<'s, &'s str>>,
    pub(crate) inlined: Inlined,
}

impl Walk<'_> {
    /// One schema: an object, a boolean, or an array of schemas.
    pub(crate) fn schema(
        &self,
        reader: &mut Reader<'_>,
        json: &mut Writer<'_>,
        root: bool,
    ) -> Result<(), json::Error> {
        match reader.kind()? {
            ValueKind::Object => {}
            ValueKind::Array => {
                return elements(reader, json, &mut |reader, json| {
                    self.schema(reader, json, false)
                });
            }
            // No schema. llama.cpp, Ollama and Fireworks refuse booleans, too. The client looks at inputs itself.
            _ => {
                reader.skip()?;
                json.raw(self.any());
                return Ok(());
            }
        }
        let mut facts = Facts::of(&mut reader.clone())?;
        let is_full = matches!(self.dialect, ToolSchema::Full | ToolSchema::Ollama);
        let of_openai = root && is_full && !self.has_paths();
        if self.dialect == ToolSchema::Ollama && !root && self.replaced(&facts, json)? {
            reader.skip()?;
            return Ok(());
        }
        let which = match self.dialect {
            ToolSchema::Gemini => {
                return self.gemini(reader, json, root, facts, Around::default());
            }
            ToolSchema::Full | ToolSchema::Ollama => of_openai.then_some(Which::AsFarAsPossible),
            // Its grammar is that of the choice alone, or of the properties alone.
            ToolSchema::LlamaCpp => {
                let refers = facts.reference.is_some();
                let is_hidden = facts.properties || root && !facts.all_of.is_empty();
                (is_hidden && !refers).then_some(Which::AllPlain)
            }
            ToolSchema::Mistral | ToolSchema::Kimi => None,
        };
        let parts = which.and_then(|which| self.parts(&facts, which, root));
        facts.merges = parts.is_some();
        reader.begin_object()?;
        json.begin_object();
        if root && !facts.typed {
            json.kind("object");
        } else if self.dialect == ToolSchema::LlamaCpp && !facts.has_kind() {
            let types = json::member(ANY, "anyOf").unwrap_or_default();
            json.key("anyOf").raw(types);
        }
        while let Some(key) = next_keyword(reader, &facts)? {
            let keyword = key.decode();
            match self.dialect {
                _ if of_openai && is_no_root(&keyword) => drop(reader.skip()?),
                _ if is_full && root && keyword == "type" => {
                    // One of several, at most.
                    reader.skip()?;
                    json.kind("object");
                }
                ToolSchema::Mistral if mistral_refuses(&keyword, reader.clone())? => {
                    reader.skip()?;
                }
                ToolSchema::LlamaCpp if llama_cpp_refuses(&keyword, reader.clone())? => {
                    reader.skip()?;
                }
                ToolSchema::Ollama => self.ollama(reader, json, key, &keyword, &facts)?,
                _ => self.member(reader, json, key, &keyword)?,
            }
        }
        // llama.cpp takes any value then.
        if facts.array && self.dialect != ToolSchema::LlamaCpp && !facts.items {
            json.key("items").raw("{}");
        }
        if facts.merges && !(facts.typed || root) {
            json.kind("object");
        }
        self.missing_properties(&facts, parts, json, root)?;
        json.end_object();
        Ok(())
    }

    /// Writes the `properties` that no member of the schema gave: those of its branches, or none in a root.
    pub(crate) fn missing_properties(
        &self,
        facts: &Facts<'_>,
        merged: Option<Merged<'_>>,
        json: &mut Writer<'_>,
        root: bool,
    ) -> Result<(), json::Error> {
        if let Some(merged) = merged {
            return self.merged(merged, json, root);
        }
        // Of properties beside what it makes a grammar of, llama.cpp would see the properties alone.
        let of_llama = self.dialect == ToolSchema::LlamaCpp;
        if root && !facts.properties && !(of_llama && facts.has_branches()) {
            json.key("properties").raw("{}");
            // It would see that there are none.
            if of_llama && !facts.additional_properties {
                json.key("additionalProperties").raw("true");
            }
        }
        Ok(())
    }

    /// The schema that any value fits.
    pub(crate) fn any(&self) -> &'static str {
        if self.dialect == ToolSchema::LlamaCpp { ANY } else { "{}" }
    }

    /// A member of a schema that the dialect takes as it is.
    pub(crate) fn member(
        &self,
        reader: &mut Reader<'_>,
        json: &mut Writer<'_>,
        key: Str<'_>,
        keyword: &str,
    ) -> Result<(), json::Error> {
        match (holds(keyword), reader.kind()?) {
            // As an object, `false` would say the opposite.
            (Holds::Schema, ValueKind::Bool) if keyword == "not" => {
                reader.skip()?;
                Ok(())
            }
            (Holds::Schema, ValueKind::Bool) if may_be_bool(keyword) => {
                copy_member(reader, json, key)
            }
            // As drafts before 2020-12 call it.
            (Holds::Schema, ValueKind::Array) if keyword == "items" => {
                json.key("prefixItems");
                self.schema(reader, json, false)
            }
            (Holds::Schema, _) => {
                json.key_str(key);
                self.schema(reader, json, false)
            }
            (Holds::Named, ValueKind::Object) => {
                json.key_str(key);
                reader.begin_object()?;
                json.begin_object();
                while let Some(name) = reader.next_key()? {
                    if keyword == PATTERN_PROPERTIES && is_unportable(name) {
                        reader.skip()?;
                        continue;
                    }
                    json.key_str(name);
                    self.schema(reader, json, false)?;
                }
                json.end_object();
                Ok(())
            }
            (_, ValueKind::String)
                if keyword == "pattern" && is_unportable(reader.clone().string()?) =>
            {
                reader.skip()?;
                Ok(())
            }
            _ => copy_member(reader, json, key),
        }
    }
}

/// Writes an array of schemas.
pub(crate) fn elements<'a>(
    reader: &mut Reader<'a>,
    json: &mut Writer<'_>,
    write: &mut dyn FnMut(&mut Reader<'a>, &mut Writer<'_>) -> Result<(), json::Error>,
) -> Result<(), json::Error> {
    reader.begin_array()?;
    json.begin_array();
    while reader.next_element()? {
        write(reader, json)?;
    }
    json.end_array();
    Ok(())
}

/// The next member that is written where it stands, whatever the dialect.
pub(crate) fn next_keyword<'a>(
    reader: &mut Reader<'a>,
    facts: &Facts<'_>,
) -> Result<Option<Str<'a>>, json::Error> {
    while let Some(key) = reader.next_key()? {
        let keyword = key.decode();
        let is_second =
            keyword == "items" && facts.prefix_items && reader.kind()? == ValueKind::Array;
        if is_second {
            reader.skip()?;
            continue;
        }
        if facts.merges && is_merged(&keyword) {
            reader.skip()?;
            continue;
        }
        return Ok(Some(key));
    }
    Ok(None)
}

/// Writes `required` with the names that are properties.
pub(crate) fn required(
    reader: &mut Reader<'_>,
    json: &mut Writer<'_>,
    facts: &Facts<'_>,
) -> Result<(), json::Error> {
    let mut known = NameSet::default();
    for (name, _) in json::members(facts.named) {
        known.add(name.decode());
    }
    let mut has_one = false;
    reader.begin_array()?;
    while reader.next_element()? {
        if reader.kind()? != ValueKind::String {
            reader.skip()?;
            continue;
        }
        let name = reader.string()?;
        if !known.contains(&name.decode()) {
            continue;
        }
        if !std::mem::replace(&mut has_one, true) {
            json.key("required").begin_array();
        }
        json.str(name);
    }
    if has_one {
        json.end_array();
    }
    Ok(())
}

pub(crate) fn copy_member(
    reader: &mut Reader<'_>,
    json: &mut Writer<'_>,
    key: Str<'_>,
) -> Result<(), json::Error> {
    json.key_str(key).raw(reader.skip()?);
    Ok(())
}

#[cfg(test)]
mod tests;
