//! JSON Schemas of tools, in the dialect that an upstream takes.
//!
//! A schema is copied byte for byte wherever that is possible. The other dialects are subsets: they are
//! written by a walk that knows which keywords hold schemas, so that a property that is merely
//! *called* `title` or `$schema` is never taken for the keyword.
//!
//! The walk goes as deep as the schema is nested, which [`Reader`] bounds.

use std::cell::OnceCell;

use super::facts::Facts;
use super::gemini::Around;
use super::grammar::{ANY, llama_cpp_refuses, mistral_refuses};
use super::kimi;
use super::merged::{Merged, Which, is_merged};
use super::ollama::{self, Inlined};
use crate::json::{self, Kind, Reader, Str, Writer};
use crate::names::{NameSet, Names};
use crate::profile::ToolSchema;
use crate::words;

/// Writes `schema`, an object, as the `parameters` of a function. A missing `type` or `properties`
/// is added, and `null` for one of them or for `required` left out: several servers refuse that. They also refuse
/// a root that is a choice, what is [malformed](is_malformed), and, at any depth, an array without `items`, a boolean in place of a schema and
/// a pattern that [not every engine takes](is_unportable).
pub(super) fn write_schema(json: &mut Writer<'_>, schema: &str, dialect: ToolSchema) {
    let stays = || {
        let has_null = words::has(schema, "null");
        is_complete(schema, has_null) && is_taken(schema, has_null)
    };
    let dialect = match dialect {
        ToolSchema::Ollama if !ollama::loses(schema) => ToolSchema::Full,
        dialect => dialect,
    };
    if dialect == ToolSchema::Full && stays() {
        json.raw(schema);
    } else {
        walk(json, schema, dialect, true);
    }
}

/// Writes the schema of `response_format`: nothing is missing in its root, whatever it is. llama.cpp makes a grammar of
/// it as of those of tools, and Kimi checks both; of the other dialects it is not known that they hold for it.
pub(in crate::translate) fn write_output_schema(
    json: &mut Writer<'_>,
    schema: &str,
    tools: ToolSchema,
) {
    if matches!(tools, ToolSchema::LlamaCpp | ToolSchema::Kimi) {
        walk(json, schema, tools, false);
    } else if is_taken(schema, words::has(schema, "null")) {
        json.raw(schema);
    } else {
        walk(json, schema, ToolSchema::Full, false);
    }
}

fn walk(json: &mut Writer<'_>, schema: &str, dialect: ToolSchema, function: bool) {
    json.value();
    let start = json.out().len();
    let (has_paths, defined) = (OnceCell::new(), OnceCell::new());
    let walk = Walk { dialect, root: schema, has_paths, defined, inlined: Inlined::default() };
    if walk.schema(&mut Reader::of(schema), json, function).is_err() {
        // Not reachable with a schema that was read from a request.
        json.out().truncate(start);
        json.out().extend_from_slice(schema.as_bytes());
    }
}

/// What follows the properties of a schema is hardly ever longer, and most schemas are read no further than those.
const TAIL_BYTES: usize = 256;

/// Whether the schema has what every function needs, and nothing that would be refused in a root. `has_null`: the word
/// is in it.
fn is_complete(schema: &str, has_null: bool) -> bool {
    let mut reader = Reader::of(schema);
    let (mut typed, mut properties, mut refused) = (false, false, false);
    let start = schema.len().saturating_sub(TAIL_BYTES);
    let tail = (start..).find_map(|start| schema.get(start..)).unwrap_or_default();
    let is_plain = !has_null && !words::has(schema, "Of\"") && !words::has(tail, "\"not\"");
    let mut read = || {
        reader.begin_object()?;
        while let Some(key) = reader.next_key()? {
            let keyword = key.raw();
            match (keyword, reader.kind()?) {
                ("type", Kind::String) => typed = reader.clone().string()? == "object",
                ("properties", Kind::Object) => properties = true,
                _ => refused |= is_no_root(keyword) || is_malformed(keyword, reader.clone())?,
            }
            if typed && properties && is_plain {
                break;
            }
            reader.skip()?;
        }
        Ok::<(), json::Error>(())
    };
    read().is_ok() && typed && properties && !refused
}

/// Whether OpenAI refuses a tool for this keyword in the root of its schema, as Anthropic does for some of them.
fn is_no_root(keyword: &str) -> bool {
    matches!(keyword, "anyOf" | "oneOf" | "allOf" | "not" | "enum" | "const")
}

/// Whether no schema in it is refused for an array, a boolean, a `null` or a pattern. Most need no walk to say so: they
/// have no array, or `items` directly behind each, no boolean but in `additionalProperties`, no `null` but as a default,
/// and few have a pattern. What else is malformed is seen where there is a walk.
fn is_taken(schema: &str, has_null: bool) -> bool {
    let has_items = |at: usize| {
        let rest = schema.get(at.saturating_add(ARRAY.len())..).unwrap_or_default().trim_start();
        let next = rest.strip_prefix(',').unwrap_or_default().trim_start();
        let value = next.strip_prefix("\"items\"").unwrap_or_default().trim_start();
        value.strip_prefix(':').is_some_and(|value| value.trim_start().starts_with('{'))
    };
    // Few words end so.
    let arrays = !words::has(schema, "ay\"") || words::places(schema, ARRAY).all(has_items);
    let is_plain = |at: usize| {
        let rest = schema.get(at..).unwrap_or_default();
        // Another word that begins so is `patternProperties`.
        let Some(rest) = rest.strip_prefix(PATTERN) else { return false };
        // Where no text follows, it is a property's name.
        let text = rest.trim_start().strip_prefix(':').unwrap_or_default();
        !Reader::of(text).string().is_ok_and(is_unportable)
    };
    let patterns = || words::places(schema, "\"pattern").all(is_plain);
    // `true` and `false` by their ends, with which few other words begin, end or go on.
    let booleans =
        || ["rue", "lse"].iter().all(|end| words::places(schema, end).all(is_no_schema(schema)));
    let nulls = || !has_null || words::places(schema, "null").all(is_no_keyword(schema));
    arrays && patterns() && booleans() && nulls()
        || all_taken(&mut Reader::of(schema)).unwrap_or(false)
}

/// Whether what ends at a place in a schema is certainly no boolean in place of a schema.
fn is_no_schema(schema: &str) -> impl Fn(usize) -> bool {
    |end| {
        let before = schema.get(..end).unwrap_or_default();
        let Some(before) = before.strip_suffix('t').or_else(|| before.strip_suffix("fa")) else {
            return true;
        };
        let before = before.trim_end();
        match before.strip_suffix(':') {
            Some(key) => key.trim_end().ends_with("\"additionalProperties\""),
            None => !before.ends_with(['[', ',']),
        }
    }
}

/// Whether a `null` at a place in a schema is certainly not the value of a keyword that must not be one.
fn is_no_keyword(schema: &str) -> impl Fn(usize) -> bool {
    |at| {
        let before = schema.get(..at).unwrap_or_default().trim_end();
        let key = before.strip_suffix(':').map(str::trim_end);
        key.is_none_or(|key| key.ends_with("\"default\"") || key.ends_with("\"const\""))
    }
}

pub(super) const ARRAY: &str = "\"array\"";
const PATTERN: &str = "\"pattern\"";

/// Whether each array in a schema has `items`, all that stands for a schema is one, and every engine takes every pattern.
fn all_taken(reader: &mut Reader<'_>) -> Result<bool, json::Error> {
    let mut taken = true;
    match reader.kind()? {
        Kind::Object => {}
        Kind::Array => {
            reader.begin_array()?;
            while reader.next_element()? {
                taken &= all_taken(reader)?;
            }
            return Ok(taken);
        }
        _ => {
            reader.skip()?;
            return Ok(false);
        }
    }
    let (mut array, mut items) = (false, false);
    reader.begin_object()?;
    while let Some(key) = reader.next_key()? {
        let keyword = key.decode();
        let keyword = keyword.as_ref();
        items |= keyword == "items";
        taken &= !is_malformed(keyword, reader.clone())?;
        match (holds(keyword), reader.kind()?) {
            (Holds::Schema, Kind::Array) if keyword == "items" => {
                taken = false;
                reader.skip()?;
            }
            (Holds::Schema, Kind::Bool) if may_be_bool(keyword) => drop(reader.skip()?),
            (Holds::Schema, _) => taken &= all_taken(reader)?,
            (Holds::Named, Kind::Object) => {
                reader.begin_object()?;
                while let Some(name) = reader.next_key()? {
                    taken &= keyword != PATTERN_PROPERTIES || !is_unportable(name);
                    taken &= all_taken(reader)?;
                }
            }
            (_, Kind::String) if keyword == "pattern" => {
                taken &= !is_unportable(reader.string()?);
            }
            _ => {
                let data = reader.skip()?;
                if keyword == "type" {
                    array = words::has(data, ARRAY);
                }
            }
        }
    }
    Ok(taken && (!array || items))
}

/// Whether a keyword has no value that it may have in any draft that servers read: those of drafts 3 and 4, which
/// converters of types still write, or `null` for what is not set. One of them ends every request.
fn is_malformed(keyword: &str, mut value: Reader<'_>) -> Result<bool, json::Error> {
    Ok(match (keyword, value.kind()?) {
        ("const" | "default" | "example" | "examples", _) => false,
        (_, Kind::Null) => true,
        ("properties" | "$defs" | "definitions" | PATTERN_PROPERTIES, kind) => kind != Kind::Object,
        ("anyOf" | "oneOf" | "allOf", kind) => kind != Kind::Array,
        ("exclusiveMinimum" | "exclusiveMaximum", Kind::Bool) => true,
        ("required", kind) => kind != Kind::Array,
        ("enum" | "items" | "prefixItems", Kind::Array) => {
            value.begin_array()?;
            !value.next_element()?
        }
        ("enum", _) => true,
        _ => false,
    })
}

const PATTERN_PROPERTIES: &str = "patternProperties";

/// Whether an engine refuses a pattern that clients' engines take, and an upstream with it the whole request; the
/// client looks at inputs itself. OpenAI's knows no `\p{…}` and does not look around, as those of zod do;
/// DeepSeek's takes an open bracket inside of another for a second one, and knows no `\0`, which Claude Code's
/// have. `(?<name>…)` is written in another way in Python.
fn is_unportable(pattern: Str<'_>) -> bool {
    let pattern = pattern.decode();
    let mut letters = pattern.as_bytes().iter();
    let mut in_brackets = false;
    while let Some(letter) = letters.next() {
        let refused = match letter {
            b'\\' => matches!(letters.next(), Some(b'p' | b'P' | b'0')),
            b'[' => std::mem::replace(&mut in_brackets, true),
            b']' => {
                in_brackets = false;
                false
            }
            b'(' if !in_brackets => matches!(letters.as_slice(), [b'?', b'=' | b'!' | b'<', ..]),
            _ => false,
        };
        if refused {
            return true;
        }
    }
    false
}

/// What the value of a keyword is made of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    /// Data.
    Data,
    /// A schema, or an array of schemas.
    Schema,
    /// An object whose members are schemas, under names that the client chose.
    Named,
}

pub(super) fn holds(keyword: &str) -> Holds {
    match keyword {
        "items"
        | "prefixItems"
        | "additionalItems"
        | "unevaluatedItems"
        | "contains"
        | "additionalProperties"
        | "unevaluatedProperties"
        | "propertyNames"
        | "anyOf"
        | "oneOf"
        | "allOf"
        | "not"
        | "if"
        | "then"
        | "else" => Holds::Schema,
        "properties" | PATTERN_PROPERTIES | "$defs" | "definitions" | "dependentSchemas" => {
            Holds::Named
        }
        _ => Holds::Data,
    }
}

/// Whether every server takes a boolean as the schema that this keyword holds.
fn may_be_bool(keyword: &str) -> bool {
    matches!(
        keyword,
        "additionalProperties" | "unevaluatedProperties" | "additionalItems" | "unevaluatedItems"
    )
}

/// Copies a schema into a dialect.
pub(super) struct Walk<'s> {
    dialect: ToolSchema,
    /// The whole of it.
    pub(super) root: &'s str,
    /// Whether references lead through lists of schemas, once that was asked.
    pub(super) has_paths: OnceCell<bool>,
    /// What the root defines, once that was asked.
    pub(super) defined: OnceCell<Names<'s, &'s str>>,
    pub(super) inlined: Inlined,
}

impl Walk<'_> {
    /// One schema: an object, a boolean, or an array of schemas.
    pub(super) fn schema(
        &self,
        reader: &mut Reader<'_>,
        json: &mut Writer<'_>,
        root: bool,
    ) -> Result<(), json::Error> {
        match reader.kind()? {
            Kind::Object => {}
            Kind::Array => {
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
            ToolSchema::Kimi => {
                facts.refers = kimi::refers(&facts) && !root;
                facts.chooses = kimi::chooses(&facts) && !root;
                kimi::merges(&facts, root).then_some(Which::AsFarAsPossible)
            }
            ToolSchema::Full | ToolSchema::Ollama => of_openai.then_some(Which::AsFarAsPossible),
            // Its grammar is that of the choice alone, or of the properties alone.
            ToolSchema::LlamaCpp => {
                let refers = facts.reference.is_some();
                let is_hidden = facts.properties || root && !facts.all_of.is_empty();
                (is_hidden && !refers).then_some(Which::AllPlain)
            }
            ToolSchema::Mistral => None,
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
                ToolSchema::Kimi => self.kimi(reader, json, key, &keyword, &facts, root)?,
                ToolSchema::Ollama => self.ollama(reader, json, key, &keyword, &facts)?,
                _ => self.member(reader, json, key, &keyword)?,
            }
        }
        // llama.cpp takes any value then, and Kimi a list by its places; OpenAI wants both.
        let needs_items = match self.dialect {
            ToolSchema::LlamaCpp => false,
            ToolSchema::Kimi => !(facts.prefix_items || facts.listed_items || facts.chooses),
            _ => true,
        };
        if facts.array && needs_items && !facts.items {
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
    pub(super) fn missing_properties(
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
    pub(super) fn any(&self) -> &'static str {
        if self.dialect == ToolSchema::LlamaCpp { ANY } else { "{}" }
    }

    /// A member of a schema that the dialect takes as it is.
    pub(super) fn member(
        &self,
        reader: &mut Reader<'_>,
        json: &mut Writer<'_>,
        key: Str<'_>,
        keyword: &str,
    ) -> Result<(), json::Error> {
        match (holds(keyword), reader.kind()?) {
            // As an object, `false` would say the opposite.
            (Holds::Schema, Kind::Bool) if keyword == "not" => {
                reader.skip()?;
                Ok(())
            }
            (Holds::Schema, Kind::Bool)
                if may_be_bool(keyword) && self.dialect != ToolSchema::Kimi =>
            {
                copy_member(reader, json, key)
            }
            // As drafts before 2020-12 call it.
            (Holds::Schema, Kind::Array) if keyword == "items" => {
                json.key("prefixItems");
                self.schema(reader, json, false)
            }
            (Holds::Schema, _) => {
                json.key_str(key);
                self.schema(reader, json, false)
            }
            (Holds::Named, Kind::Object) => {
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
            (_, Kind::String)
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
pub(super) fn elements<'a>(
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
pub(super) fn next_keyword<'a>(
    reader: &mut Reader<'a>,
    facts: &Facts<'_>,
) -> Result<Option<Str<'a>>, json::Error> {
    while let Some(key) = reader.next_key()? {
        let keyword = key.decode();
        let is_second = keyword == "items" && facts.prefix_items && reader.kind()? == Kind::Array;
        if is_second || is_malformed(&keyword, reader.clone())? {
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
pub(super) fn required(
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
        if reader.kind()? != Kind::String {
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

pub(super) fn copy_member(
    reader: &mut Reader<'_>,
    json: &mut Writer<'_>,
    key: Str<'_>,
) -> Result<(), json::Error> {
    json.key_str(key).raw(reader.skip()?);
    Ok(())
}

#[cfg(test)]
mod tests;
