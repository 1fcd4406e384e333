//! Traversal of schemas that all dialects share. It knows which keywords contain schemas, so that a
//! property that is merely *called* `title` or `$schema` is never mistaken for the keyword.
//!
//! The recursion is as deep as the nesting of the schema, which was bounded when the request was
//! read.

use super::facts::{KeywordMember, SchemaFacts};
use super::merged::Merged;
use crate::json::{self, Str, ValueKind, Writer};
use crate::json_schema::{Holds, PATTERN_PROPERTIES, holds, is_unportable, kind_of, may_be_bool};

/// Writer of schemas in the form that an upstream supports. No method fails, because schemas were
/// checked when the request was read.
pub(super) trait Dialect {
    /// Writes a schema that is an object. `root`: the schema describes all parameters of a
    /// function.
    fn object(&mut self, schema: &str, json: &mut Writer<'_>, root: bool);

    /// Returns the schema that allows any value.
    fn any(&self) -> &'static str {
        "{}"
    }

    /// Writes a schema within another schema: an object, a boolean, or an array of schemas.
    fn schema(&mut self, schema: &str, json: &mut Writer<'_>) {
        match kind_of(schema) {
            ValueKind::Object => self.object(schema, json, false),
            ValueKind::Array => {
                json.begin_array();
                json::elements(schema).for_each(|schema| self.schema(schema, json));
                json.end_array();
            }
            // A value that is no such schema is replaced by the schema for any value: llama.cpp,
            // Ollama and Fireworks refuse booleans. The client validates inputs itself.
            _ => drop(json.raw(self.any())),
        }
    }

    /// Writes a member of a schema without changing its keyword.
    fn member(&mut self, member: &KeywordMember<'_>, json: &mut Writer<'_>) {
        let KeywordMember { key, keyword, value } = member;
        match (holds(keyword), member.kind()) {
            // The value `false` of `not` is left out: replaced by an object, it would refuse every
            // value.
            (Holds::Schema, ValueKind::Bool) if keyword == "not" => {}
            (Holds::Schema, ValueKind::Bool) if may_be_bool(keyword) => {
                json.key_str(*key).raw(value);
            }
            // Drafts of JSON Schema before 2020-12 use `items` for the list that is now
            // `prefixItems`.
            (Holds::Schema, ValueKind::Array) if keyword == "items" => {
                json.key("prefixItems");
                self.schema(value, json);
            }
            (Holds::Schema, _) => {
                json.key_str(*key);
                self.subschema(keyword, value, json);
            }
            (Holds::Named, ValueKind::Object) => {
                json.key_str(*key).begin_object();
                for (name, schema) in json::members(value) {
                    let is_portable = keyword != PATTERN_PROPERTIES || !is_unportable(name);
                    if is_portable && self.takes_name(name) {
                        json.key_str(name);
                        self.subschema(keyword, schema, json);
                    }
                }
                json.end_object();
            }
            _ if keyword == "pattern" && json::string(value).is_some_and(is_unportable) => {}
            _ if self.takes(keyword, value) => drop(json.key_str(*key).raw(value)),
            _ => {}
        }
    }

    /// Writes a schema that is the value of a keyword, or a named part of the value.
    fn subschema(&mut self, _keyword: &str, schema: &str, json: &mut Writer<'_>) {
        self.schema(schema, json);
    }

    /// Returns true if the upstream accepts this name for a definition or a pattern.
    fn takes_name(&self, _name: Str<'_>) -> bool {
        true
    }

    /// Returns true if the upstream accepts a keyword whose value is not a schema.
    fn takes(&self, _keyword: &str, _value: &str) -> bool {
        true
    }

    /// Writes `properties` if no member of the schema did: the properties of the merged branches,
    /// or an empty object in a root.
    fn missing_properties(
        &mut self,
        facts: &SchemaFacts<'_>,
        merged: Option<Merged<'_>>,
        json: &mut Writer<'_>,
        root: bool,
    ) {
        let any = self.any();
        match merged {
            Some(merged) => {
                merged.write(json, root, any, &mut |schema, json| self.schema(schema, json));
            }
            None if root && !facts.properties => drop(json.key("properties").raw("{}")),
            None => {}
        }
    }
}
