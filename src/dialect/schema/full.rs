//! Schemas for servers that support all of JSON Schema except a few constructs that OpenAI and
//! others refuse. These constructs are a root that is a choice and, at any depth, an array without
//! `items`, a boolean in place of a schema, and a pattern that not every engine supports. Mistral
//! refuses a few more keywords.

use super::facts::{KeywordMember, SchemaFacts};
use super::merged::{self, Which};
use super::walk::Dialect;
use crate::json::Writer;
use crate::json_schema::is_no_root;

/// Dialect that keeps every keyword of JSON Schema.
pub(super) struct Full {
    /// True if some `$ref` leads through a list such as `anyOf`: then the root is not merged.
    pub(super) has_paths: bool,
}

impl Dialect for Full {
    fn object(&mut self, schema: &str, json: &mut Writer<'_>, root: bool) {
        let keeps_root = self.has_paths;
        object(self, SchemaFacts::of(schema), keeps_root, json, root, &mut Self::member_of);
    }
}

impl Full {
    fn member_of(
        &mut self,
        member: &KeywordMember<'_>,
        _: &SchemaFacts<'_>,
        json: &mut Writer<'_>,
    ) {
        self.member(member, json);
    }
}

/// Dialect of Mistral: every keyword except those that Mistral refuses.
pub(super) struct Mistral;

impl Dialect for Mistral {
    fn object(&mut self, schema: &str, json: &mut Writer<'_>, root: bool) {
        let facts = SchemaFacts::of(schema);
        json.begin_object();
        if root && !facts.typed {
            json.kind("object");
        }
        for member in facts.members_in_place() {
            let is_refused = match member.keyword.as_ref() {
                "$id" | "$schema" | "strict" => true,
                "additionalProperties" => member.value == "false",
                _ => false,
            };
            if !is_refused {
                self.member(&member, json);
            }
        }
        if facts.array && !facts.items {
            json.key("items").raw("{}");
        }
        self.missing_properties(&facts, None, json, root);
        json.end_object();
    }
}

/// Function by which a dialect writes one member of a schema.
pub(super) type WriteMember<'w, D> =
    &'w mut dyn FnMut(&mut D, &KeywordMember<'_>, &SchemaFacts<'_>, &mut Writer<'_>);

/// Writes a schema object, its members in their original order, and adds missing members. A choice
/// in the root is replaced by the properties of all branches, unless the choice must be kept.
pub(super) fn object<D: Dialect>(
    dialect: &mut D,
    mut facts: SchemaFacts<'_>,
    keeps_root: bool,
    json: &mut Writer<'_>,
    root: bool,
    write: WriteMember<'_, D>,
) {
    let replaces = root && !keeps_root;
    let merged = if replaces { merged::parts(&facts, Which::AsFarAsPossible, true) } else { None };
    facts.merges = merged.is_some();
    json.begin_object();
    if root && !facts.typed {
        json.kind("object");
    }
    for member in facts.members_in_place() {
        match member.keyword.as_ref() {
            keyword if replaces && is_no_root(keyword) => {}
            // The root of a tool's schema may have several types, but only `object` is written.
            "type" if root => drop(json.kind("object")),
            _ => write(dialect, &member, &facts, json),
        }
    }
    if facts.array && !facts.items {
        json.key("items").raw("{}");
    }
    dialect.missing_properties(&facts, merged, json, root);
    json.end_object();
}
