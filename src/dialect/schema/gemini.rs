//! Schemas for Gemini's endpoint, which supports only a small subset of JSON Schema. Gemini refuses
//! a request whose schemas have unknown keywords, enumerations of anything but strings, lists of
//! types, required names that are no property, or anything beside a choice or a reference.
//!
//! | the client's | Gemini's |
//! |---|---|
//! | `const`, and `enum` of strings | `enum` of strings that are not empty |
//! | other values, `format` of anything but numbers | explained in the description |
//! | `anyOf`, `oneOf` or several types | `anyOf` alone; the description moves into a branch |
//! | a choice between one schema and `null`, `allOf` of one | that schema |
//! | a choice in the root or beside `properties`, `allOf` of several | the merged properties |
//! | a choice beside `items` or values of its own | left out |
//! | `null` among types, values or choices | `nullable` |
//! | `$ref` | alone with its description; in the root, the properties of the referenced schema |
//! | list of schemas in `items` | the first of them |
//! | `true`, `false` | `{}` |
//! | empty `properties` | left out; without parameters, the whole schema is left out |
//! | an unknown keyword | left out: the client validates inputs itself |

use super::facts::{KeywordMember, SchemaFacts, Values};
use super::merged::{self, Branches, Which, branches};
use super::walk::Dialect;
use crate::json::{self, Str, ValueKind, Writer};

/// Properties that a schema inherits from the choices (`anyOf`) around it.
#[derive(Default)]
struct Around<'a> {
    /// Descriptions of the enclosing choices, outermost first.
    descriptions: Vec<Str<'a>>,
    nullable: bool,
    /// Type that the enclosing schema states, if exactly one is stated.
    kind: Option<Str<'a>>,
}

impl<'a> Around<'a> {
    /// Adds the description, type and nullability of a schema that is only a choice, for each of
    /// its branches.
    fn with(mut self, facts: &SchemaFacts<'a>, has_null: bool) -> Self {
        self.descriptions.extend(facts.description);
        self.nullable |= facts.nullable || has_null;
        self.kind = facts.sole_type.or(self.kind);
        self
    }
}

pub(super) struct Gemini;

impl Dialect for Gemini {
    fn object(&mut self, schema: &str, json: &mut Writer<'_>, root: bool) {
        self.within(SchemaFacts::of(schema), Around::default(), json, root);
    }
}

impl Gemini {
    /// Writes a schema together with the properties inherited from the enclosing choices.
    fn within<'a>(
        &mut self,
        mut facts: SchemaFacts<'a>,
        around: Around<'a>,
        json: &mut Writer<'_>,
        root: bool,
    ) {
        let list = facts.lists().into_iter().find(|list| !list.is_empty());
        let Branches { schemas, has_null } = branches(list.unwrap_or_default());
        let is_of_all = facts.any_of.is_empty() && facts.one_of.is_empty();
        let is_list = is_of_all && schemas.len() > 1;
        // Gemini allows no choice in a root, beside properties or from several `allOf` schemas.
        let is_full = root || facts.properties || is_list;
        facts.refers = facts.reference.is_some() && !root;
        let which = Which::AsFarAsPossible;
        let merges = is_full && !facts.refers;
        let parts = if merges { merged::parts(&facts, which, root) } else { None };
        facts.merges = parts.is_some();
        // A branch is no schema by itself if it stands beside `items` or allowed values.
        let says_all = facts.items || facts.listed_items || facts.values != Values::Unsaid;
        if !(schemas.is_empty() || is_full || facts.refers || says_all) && facts.are_whole(&schemas)
        {
            return self.choice(&schemas, json, around.with(&facts, has_null && !is_of_all));
        }
        facts.around = around.descriptions;
        facts.nullable |= around.nullable;
        if facts.several && facts.values != Values::Strings && !root && !facts.refers {
            facts.nullable |= has_null && !is_of_all;
            return several_types(json, &facts);
        }
        facts.nullable |= has_null && !facts.merges;
        if root || facts.merges {
            // A root or a merged schema is an object, whatever else the schema states.
            facts.values = Values::Unsaid;
            facts.array = false;
        }
        json.begin_object();
        let says_type = facts.typed || facts.refers || facts.properties || facts.merges;
        if root {
            json.kind("object");
            facts.typed = true;
            facts.object = true;
        } else if let Some(kind) =
            around.kind.filter(|_| !says_type && facts.values != Values::Strings)
        {
            json.key("type").str(kind);
            facts.take_type(kind);
        }
        for member in facts.members_in_place().filter(|member| !(root && member.keyword == "type"))
        {
            self.member_of(&member, &facts, json, root);
        }
        self.missing_properties(&facts, parts, json, root);
        finish(json, &facts);
        json.end_object();
    }

    /// Writes a choice between several schemas, as `anyOf`.
    fn choice<'a>(&mut self, choices: &[&'a str], json: &mut Writer<'_>, mut around: Around<'a>) {
        let several = choices.len() > 1;
        let is_free = |schema: &&str| json::members(schema).all(|(key, _)| key != "description");
        // Only one branch gets the description: a long one would multiply with the branches.
        let described = choices.iter().position(is_free).unwrap_or(0);
        if several {
            json.begin_object().key("anyOf").begin_array();
        }
        for (at, schema) in choices.iter().enumerate() {
            let mut here = Around { descriptions: Vec::new(), ..around };
            if at == described {
                here.descriptions = std::mem::take(&mut around.descriptions);
            }
            self.within(SchemaFacts::of(schema), here, json, false);
        }
        if several {
            json.end_array().end_object();
        }
    }

    fn member_of(
        &mut self,
        member: &KeywordMember<'_>,
        facts: &SchemaFacts<'_>,
        json: &mut Writer<'_>,
        root: bool,
    ) {
        match (member.keyword.as_ref(), member.kind()) {
            ("$ref", _) if !facts.refers => {}
            ("$ref" | "$defs" | "definitions", _) => self.member(member, json),
            // The function `finish` writes `description` and `nullable`.
            ("description" | "nullable", _) => {}
            _ if facts.refers => {}
            ("type", _) if facts.values == Values::Strings => {}
            ("type", ValueKind::Array) => {
                if let Some(name) = facts.sole_type {
                    json.key("type").str(name);
                }
            }
            ("const", _) if facts.values == Values::Strings => {
                let value = json::string(member.value).filter(|value| !value.is_empty());
                texts("enum", value, json);
            }
            ("enum", ValueKind::Array) if !facts.constant && facts.values == Values::Strings => {
                let values = json::elements(member.value).filter_map(json::string);
                texts("enum", values.filter(|value| !value.is_empty()), json);
            }
            ("properties" | "required" | "minProperties" | "maxProperties", _) if !facts.object => {
            }
            ("properties", _) if json::members(facts.named).next().is_none() && !root => {}
            ("required", ValueKind::Array) => texts("required", facts.required_properties(), json),
            ("items", ValueKind::Array) => {
                json.key("items");
                self.schema(json::elements(member.value).next().unwrap_or("{}"), json);
            }
            // Gemini knows only the formats of numbers (`int32`).
            ("format", _) if !facts.numeric && facts.format.is_some() => {}
            ("default", ValueKind::Null) => {}
            (
                "type" | "format" | "items" | "minItems" | "maxItems" | "properties"
                | "minProperties" | "maxProperties" | "minLength" | "maxLength" | "pattern"
                | "minimum" | "maximum" | "default",
                _,
            ) => self.member(member, json),
            _ => {}
        }
    }
}

/// Writes a list of strings, or nothing if the list is empty.
fn texts<'a>(key: &'static str, texts: impl IntoIterator<Item = Str<'a>>, json: &mut Writer<'_>) {
    let mut texts = texts.into_iter().peekable();
    if texts.peek().is_some() {
        json.key(key).begin_array();
        for text in texts {
            json.str(text);
        }
        json.end_array();
    }
}

/// Writes the facts for which Gemini uses a keyword other than the client's.
fn finish(json: &mut Writer<'_>, facts: &SchemaFacts<'_>) {
    if !facts.refers {
        if facts.values == Values::Strings {
            json.kind("string");
        } else if (facts.properties || facts.merges) && !facts.typed {
            json.kind("object");
        }
        if facts.array && !(facts.items || facts.listed_items) {
            json.key("items").raw("{}");
        }
        if facts.nullable {
            json.key("nullable").bool(true);
        }
    }
    describe(json, facts);
}

/// Writes the description, with the constraints that Gemini has no keyword for.
fn describe(json: &mut Writer<'_>, facts: &SchemaFacts<'_>) {
    let noted = facts.has_note() && !facts.refers;
    if facts.is_described() || noted {
        json.key("description").string(|out| {
            for (at, description) in facts.around.iter().chain(&facts.description).enumerate() {
                if at > 0 {
                    out.push(b' ');
                }
                out.extend_from_slice(description.raw().as_bytes());
            }
            if noted {
                facts.push_note(out);
            }
        });
    }
}

/// Writes a schema with several types as an `anyOf` with one type per branch. Every other keyword
/// except the description is dropped.
fn several_types(json: &mut Writer<'_>, facts: &SchemaFacts<'_>) {
    let types = json::member(facts.schema, "type").unwrap_or("[]");
    let names = json::elements(types).filter_map(json::string);
    let mut is_first = true;
    json.begin_object().key("anyOf").begin_array();
    for name in names.filter(|name| *name != "null") {
        json.begin_object().key("type").str(name);
        if name == "array" {
            json.key("items").raw("{}");
        }
        if facts.nullable {
            json.key("nullable").bool(true);
        }
        if std::mem::take(&mut is_first) {
            describe(json, facts);
        }
        json.end_object();
    }
    json.end_array().end_object();
}
