//! Schemas for Ollama, which keeps of a property no more than `type`, `description`, `enum`, `items`, `properties`,
//! `required` and `anyOf` (`ToolProperty` in its `api/types.go`): the model would see `{}` in place of all else.
//!
//! | the client's | Ollama's |
//! |---|---|
//! | `$ref` to a definition | what is defined, and any value within itself |
//! | `allOf` of one | that schema |
//! | `oneOf` | `anyOf` |
//! | `const` | `enum` |
//! | `$ref` and lists of schemas in the root | the properties of all |
//! | `$defs`, `definitions` | left out: nothing refers to them |

use std::cell::{Cell, RefCell};

use super::Walk;
use super::facts::Facts;
use super::kimi::definition;
use crate::json::{self, Reader, Str, ValueKind, Writer};
use crate::text::words;

/// So deep references are followed.
const REFERENCES_MAX: usize = 6;
/// So deep what they refer to may be.
const DEPTH_MAX: u32 = 16;
/// So many times the bytes of the whole schema may stand in place of references, or as many bytes as this: where many
/// refer to one definition, the whole is short.
const TIMES_MAX: usize = 4;
const BYTES_MIN: usize = 16 << 10;

/// What stands in place of references.
#[derive(Default)]
pub(crate) struct Inlined {
    /// The definitions in which the walk is.
    within: RefCell<Vec<String>>,
    /// How many there were.
    bytes: Cell<usize>,
}

/// Whether a schema has a keyword that is lost.
pub(super) fn loses(schema: &str) -> bool {
    words::has_any(schema, &["\"$ref\"", "\"oneOf\"", "\"allOf\"", "\"const\""])
}

impl Walk<'_> {
    /// Writes what a schema stands for, under its own description. `false` if it stands for itself.
    pub(super) fn replaced(
        &self,
        facts: &Facts<'_>,
        json: &mut Writer<'_>,
    ) -> Result<bool, json::Error> {
        if facts.properties {
            return Ok(false);
        }
        // The model sees this, at least.
        let says_more = facts.typed || facts.enumerated || facts.items;
        if let Some(name) = facts.reference.and_then(definition) {
            let followed = self.inlined.within.borrow().len();
            let is_within = self.inlined.within.borrow().iter().any(|outer| outer == name);
            let may_follow = !is_within && followed < REFERENCES_MAX;
            let known = self.defined(name).filter(|schema| may_follow && self.has_room(schema));
            if known.is_none() && says_more {
                return Ok(false);
            }
            let schema = known.unwrap_or("{}");
            self.inlined.within.borrow_mut().push(name.to_owned());
            let written = self.described(schema, facts.description, json);
            self.inlined.within.borrow_mut().truncate(followed);
            return written.map(|()| true);
        }
        let mut all = json::elements(facts.all_of);
        match (all.next(), all.next()) {
            (Some(only), None)
                if !says_more
                    && facts.any_of.is_empty()
                    && facts.one_of.is_empty()
                    && self.has_room(only) =>
            {
                self.described(only, facts.description, json)?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Whether a schema can be written in place of another. What is read for that counts, too.
    fn has_room(&self, schema: &str) -> bool {
        let bytes = self.inlined.bytes.get().saturating_add(schema.len());
        let has_room = bytes <= self.root.len().saturating_mul(TIMES_MAX).max(BYTES_MIN);
        if has_room {
            self.inlined.bytes.set(bytes);
        }
        has_room && Reader::new(schema, DEPTH_MAX).skip().is_ok()
    }

    /// Writes a schema with this description, or with its own.
    fn described(
        &self,
        schema: &str,
        description: Option<Str<'_>>,
        json: &mut Writer<'_>,
    ) -> Result<(), json::Error> {
        let Some(description) = description else {
            return self.schema(&mut Reader::of(schema), json, false);
        };
        let mut text = Vec::new();
        let mut other = Writer::new(&mut text);
        other.begin_object().key("description").str(description);
        for (key, value) in json::members(schema).filter(|(key, _)| key != "description") {
            other.key_str(key).raw(value);
        }
        other.end_object();
        let text = String::from_utf8(text).unwrap_or_default();
        self.schema(&mut Reader::of(&text), json, false)
    }

    /// A member of a schema that stands for itself.
    pub(super) fn ollama(
        &self,
        reader: &mut Reader<'_>,
        json: &mut Writer<'_>,
        key: Str<'_>,
        keyword: &str,
        facts: &Facts<'_>,
    ) -> Result<(), json::Error> {
        match (keyword, reader.kind()?) {
            ("$defs" | "definitions", ValueKind::Object) => drop(reader.skip()?),
            ("oneOf", ValueKind::Array) if facts.any_of.is_empty() => {
                json.key("anyOf");
                self.schema(reader, json, false)?;
            }
            ("const", _) if !facts.enumerated => {
                let value = reader.skip()?;
                json.key("enum").begin_array().raw(value).end_array();
            }
            _ => self.member(reader, json, key, keyword)?,
        }
        Ok(())
    }
}
