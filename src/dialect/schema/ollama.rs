//! Schemas for Ollama, which keeps only a few keywords of a property. These are `type`,
//! `description`, `enum`, `items`, `properties`, `required` and `anyOf` (`ToolProperty` in its
//! `api/types.go`); the model would see `{}` in place of any other schema.
//!
//! | the client's | Ollama's |
//! |---|---|
//! | `$ref` to a definition | the definition itself; inside of that definition, any value |
//! | `allOf` of one | that schema |
//! | `oneOf` | `anyOf` |
//! | `const` | `enum` |
//! | `$ref` and lists of schemas in the root | the properties of all these schemas |
//! | `$defs`, `definitions` | left out: nothing refers to them |

use super::facts::{KeywordMember, SchemaFacts};
use super::full;
use super::references::{self, Definitions};
use super::walk::Dialect;
use crate::json::{self, Reader, Str, ValueKind, Writer};
use crate::json_schema::written;
use crate::text::words;

/// Maximum number of nested references that are followed.
const REFERENCES_MAX: usize = 6;
/// Maximum depth of a schema that replaces a reference.
const DEPTH_MAX: u32 = 16;
/// Maximum number of bytes that replace references, as a multiple of the whole schema. At least
/// `BYTES_MIN` bytes are allowed, since a short schema may refer to one definition many times.
const TIMES_MAX: usize = 4;
const BYTES_MIN: usize = 16 << 10;

/// Returns true if a schema has a keyword that Ollama drops.
pub(super) fn loses(schema: &str) -> bool {
    words::has_any(schema, &["\"$ref\"", "\"oneOf\"", "\"allOf\"", "\"const\""])
}

/// Writer of schemas with definitions in place of references.
pub(super) struct Ollama<'s> {
    definitions: Definitions<'s>,
    /// True if some `$ref` leads through a list such as `anyOf`: then the root is not merged.
    has_paths: bool,
    /// Definitions that are being written, outermost first, to detect recursion.
    within: Vec<&'s str>,
    /// Number of bytes that may still be written in place of references.
    bytes_left: usize,
}

impl<'s> Ollama<'s> {
    pub(super) fn of(root: &'s str) -> Self {
        Self {
            definitions: Definitions::of(root),
            has_paths: references::lead_through_lists(root),
            within: Vec::new(),
            bytes_left: root.len().saturating_mul(TIMES_MAX).max(BYTES_MIN),
        }
    }
}

impl Dialect for Ollama<'_> {
    fn object(&mut self, schema: &str, json: &mut Writer<'_>, root: bool) {
        let facts = SchemaFacts::of(schema);
        if root || !self.replaced(&facts, json) {
            full::object(self, facts, self.has_paths, json, root, &mut Self::member_of);
        }
    }
}

impl Ollama<'_> {
    /// Writes the schema that replaces the given schema (such as the target of its `$ref`), with
    /// the given schema's description. Returns false if the schema is not replaced.
    fn replaced(&mut self, facts: &SchemaFacts<'_>, json: &mut Writer<'_>) -> bool {
        if facts.properties {
            return false;
        }
        // Ollama shows these keywords to the model even if the reference is lost.
        let says_more = facts.typed || facts.enumerated || facts.items;
        if let Some(reference) = facts.reference.filter(|it| references::definition(*it).is_some())
        {
            let known = self.definitions.get(reference).filter(|schema| {
                let is_within = self.within.iter().any(|outer| std::ptr::eq(*outer, *schema));
                !is_within && self.within.len() < REFERENCES_MAX
            });
            let known = known.filter(|schema| self.has_room(schema));
            if known.is_none() && says_more {
                return false;
            }
            self.within.extend(known);
            self.described(known.unwrap_or("{}"), facts.description, json);
            if known.is_some() {
                self.within.pop();
            }
            return true;
        }
        let mut all = json::elements(facts.all_of);
        match (all.next(), all.next()) {
            (Some(only), None)
                if !says_more
                    && facts.any_of.is_empty()
                    && facts.one_of.is_empty()
                    && self.has_room(only) =>
            {
                self.described(only, facts.description, json);
                true
            }
            _ => false,
        }
    }

    /// Returns true if a schema is small enough to replace a reference, and subtracts its length
    /// from the remaining bytes.
    fn has_room(&mut self, schema: &str) -> bool {
        let Some(left) = self.bytes_left.checked_sub(schema.len()) else { return false };
        self.bytes_left = left;
        Reader::new(schema, DEPTH_MAX).skip().is_ok()
    }

    /// Writes a schema with the given description, or with the schema's own if `description` is
    /// `None`.
    fn described(&mut self, schema: &str, description: Option<Str<'_>>, json: &mut Writer<'_>) {
        let Some(description) = description else { return self.schema(schema, json) };
        let described = written(|json| {
            json.begin_object().key("description").str(description);
            for (key, value) in json::members(schema).filter(|(key, _)| key != "description") {
                json.key_str(key).raw(value);
            }
            json.end_object();
        });
        self.schema(&described, json);
    }

    /// Writes a member of a schema that is not replaced.
    fn member_of(
        &mut self,
        member: &KeywordMember<'_>,
        facts: &SchemaFacts<'_>,
        json: &mut Writer<'_>,
    ) {
        match (member.keyword.as_ref(), member.kind()) {
            ("$defs" | "definitions", ValueKind::Object) => {}
            ("oneOf", ValueKind::Array) if facts.any_of.is_empty() => {
                json.key("anyOf");
                self.schema(member.value, json);
            }
            ("const", _) if !facts.enumerated => {
                json.key("enum").begin_array().raw(member.value).end_array();
            }
            _ => self.member(member, json),
        }
    }
}
