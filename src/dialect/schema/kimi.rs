//! Schemas for Kimi, which refuses every request with a schema outside of its own subset of JSON
//! Schema. Kimi checks schemas like MoonshotAI/walle at the level `strict`.
//!
//! | the client's | Kimi's |
//! |---|---|
//! | `true`, `false` | `{}` |
//! | `$ref` in the root | the properties of the referenced schema: a `$ref` excludes `type` |
//! | a list of schemas in the root, `anyOf` beside `properties` | the properties of all branches |
//! | anything but a description beside another `anyOf` or `$ref` | left out |
//! | several types beside keywords for only one of them | `anyOf`, with one type in each branch |
//! | `definitions`, `#/definitions/…` | `$defs`, `#/$defs/…`: Kimi knows no other paths |
//! | a definition whose name has a `/` | renamed |
//! | `enum` without a type | with the type of all its values besides `null`, which is left out |
//! | values that are not of the type, more than 1,000 values | left out |
//! | a property called like a keyword: `required`, `$ref`, … | explained in the description |
//! | a property with a `/` in its name, in a definition | the same |
//! | list of schemas in `items` | `prefixItems` |
//! | a required name that is no property | left out |
//!
//! Schemas that are too deep or too long are cut as [`limits`] describes, and endless recursion is
//! loosened. The client validates inputs itself.

mod limits;
mod names;
mod tree;
mod types;
mod values;

use super::facts::SchemaFacts;
use super::merged::{self, Which};
use super::references::{Definitions, name_of};
use super::walk::Dialect;
use crate::json::{self, Str, Writer};
use crate::json_schema::written;
use crate::text::names::{NameSet, Names};
use crate::text::words;

/// Maximum number of branches in an `anyOf`.
const BRANCHES_MAX: usize = 500;

/// Position of a schema within the whole schema that is sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SchemaPosition {
    /// Root of the schema of a function's parameters.
    Function,
    /// Root of the schema of a structured output (`response_format`).
    Output,
    /// Schema of a definition in `$defs`.
    Definition,
    Inner,
}

impl SchemaPosition {
    fn is_top(self) -> bool {
        matches!(self, Self::Function | Self::Output)
    }
}

/// Writer of schemas in Kimi's subset of JSON Schema ("Moonshot flavored").
struct Flavour<'s> {
    root: &'s str,
    /// Client's definitions by name, each with the name that is sent to Kimi.
    definitions: Names<'static, (String, &'s str)>,
    /// Maximum depth at which properties of a schema are written.
    depth_max: u32,
    /// True if definitions of a schema may refer to other definitions.
    follows: bool,
    /// Names of definitions that are loosened (fewer required properties, or more allowed values),
    /// because they require themselves without end.
    loosened: NameSet<'static>,
    depth: u32,
    /// Greatest depth at which properties of the schema were found.
    deepest: u32,
    /// Name of the definition that is being written, if any.
    within: Option<String>,
}

/// Writes the whole schema of a function's parameters or of a structured output.
pub(super) fn write(root: &str, json: &mut Writer<'_>, function: bool) {
    let mut flavour = Flavour {
        root,
        definitions: definitions(root),
        depth_max: 0,
        follows: true,
        loosened: NameSet::default(),
        depth: 0,
        deepest: 0,
        within: None,
    };
    let place = if function { SchemaPosition::Function } else { SchemaPosition::Output };
    let mut text = String::new();
    for (depth_max, follows) in limits::ATTEMPTS {
        let changes = depth_max <= flavour.deepest || words::has(&text, "\"$ref\"");
        if !text.is_empty() && !changes {
            continue;
        }
        (flavour.depth_max, flavour.follows) = (depth_max, follows);
        text = flavour.whole(place);
        if limits::fits(&text) {
            break;
        }
    }
    json.raw(&text);
}

/// Returns the definitions of a schema by the client's names, each with the name that is sent to
/// Kimi.
fn definitions(root: &str) -> Names<'static, (String, &str)> {
    let mut all = Names::default();
    let mut sent = NameSet::default();
    let mut numbers: Names<'_, usize> = Names::default();
    for (name, schema) in Definitions::of(root).iter() {
        let mut base = name.replace(['/', '{', '}'], "_");
        if base.is_empty() {
            base.push('_');
        }
        let mut known = base.clone();
        // Numbers go on from the last number of the same name, because thousands of the client's
        // names may become one name.
        while !sent.add(known.clone()) {
            let mut number = 0usize;
            numbers.update(base.clone(), |last| {
                *last = last.saturating_add(1);
                number = *last;
            });
            known = match number {
                1 => format!("{base}_"),
                _ => format!("{base}_{number}"),
            };
        }
        all.insert(name.to_owned(), (known, schema));
    }
    all
}

impl Dialect for Flavour<'_> {
    fn object(&mut self, schema: &str, json: &mut Writer<'_>, _root: bool) {
        self.write(schema, json, SchemaPosition::Inner);
    }

    /// Writes a schema that is the value of a keyword. Kimi allows a `$ref` at only few positions,
    /// but always in a branch of `anyOf`.
    fn subschema(&mut self, keyword: &str, schema: &str, json: &mut Writer<'_>) {
        let takes_references = matches!(keyword, "items" | "additionalProperties");
        let refers = SchemaFacts::of(schema).reference.and_then(|it| self.reference(it));
        if refers.is_none() || takes_references {
            return self.schema(schema, json);
        }
        json.begin_object().key("anyOf").begin_array();
        self.schema(schema, json);
        json.end_array().end_object();
    }

    fn takes_name(&self, name: Str<'_>) -> bool {
        // A member called `$ref` would be read as a reference.
        name != "$ref" && self.takes_key(&name.decode())
    }

    fn takes(&self, keyword: &str, value: &str) -> bool {
        self.takes_key(keyword) && values::is_taken(value, self.within.is_some())
    }
}

impl Flavour<'_> {
    /// Writes the whole schema, loosened until no definition requires itself without end.
    fn whole(&mut self, place: SchemaPosition) -> String {
        loop {
            (self.depth, self.within) = (0, None);
            let text = written(|json| self.write(self.root, json, place));
            let mut loosens = |all: bool| {
                let mut changes = false;
                for name in limits::endless(&text, all) {
                    changes |= self.loosened.add(name);
                }
                changes
            };
            if !(loosens(false) || loosens(true)) {
                return text;
            }
        }
    }

    fn write(&mut self, schema: &str, json: &mut Writer<'_>, place: SchemaPosition) {
        if !schema.starts_with('{') {
            json.raw("{}");
            return;
        }
        let facts = SchemaFacts::of(schema);
        let function = place == SchemaPosition::Function;
        let reference = facts.reference.filter(|_| !function).and_then(|it| self.reference(it));
        if let Some(reference) = reference {
            return self.noted(&facts, json, place, |_, json| {
                json.key("$ref").text(&reference);
            });
        }
        if merges(&facts, function)
            && let Some(parts) = merged::parts(&facts, Which::AsFarAsPossible, function)
        {
            return self.write(&parts.beside(schema, function), json, place);
        }
        if function {
            return self.write_object(&facts, json, place);
        }
        if chooses(&facts) {
            return self.choice(facts.any_of, &facts, json, place);
        }
        if let Some(narrowed) = values::narrowed(schema, &facts) {
            return self.write(&narrowed, json, place);
        }
        if let Some(branches) = types::branches(schema, &facts) {
            return self.choice(&branches, &facts, json, place);
        }
        self.write_object(&facts, json, place);
    }

    /// Writes a choice of schemas (`anyOf`), with the description of the schema that contains the
    /// choice.
    fn choice(
        &mut self,
        branches: &str,
        facts: &SchemaFacts<'_>,
        json: &mut Writer<'_>,
        place: SchemaPosition,
    ) {
        self.noted(facts, json, place, |flavour, json| {
            json.key("anyOf");
            flavour.schema(branches, json);
        });
    }

    /// Writes a schema that has a single keyword apart from a title and a description.
    fn noted(
        &mut self,
        facts: &SchemaFacts<'_>,
        json: &mut Writer<'_>,
        place: SchemaPosition,
        write: impl FnOnce(&mut Self, &mut Writer<'_>),
    ) {
        json.begin_object();
        if self.is_loosened(place) {
            json.key("type").raw(types::ALL);
        } else {
            write(self, json);
        }
        for member in facts.members().filter(|member| types::is_note(member.key.raw())) {
            json.key_str(member.key).raw(member.value);
        }
        if place.is_top() {
            self.write_definitions(json);
        }
        json.end_object();
    }

    fn is_loosened(&self, place: SchemaPosition) -> bool {
        match place {
            SchemaPosition::Definition => {
                self.within.as_ref().is_some_and(|it| self.loosened.contains(it))
            }
            SchemaPosition::Function | SchemaPosition::Output => {
                self.loosened.contains(limits::ROOT)
            }
            SchemaPosition::Inner => false,
        }
    }

    /// Writes a schema that is neither a reference nor a choice.
    fn write_object(
        &mut self,
        facts: &SchemaFacts<'_>,
        json: &mut Writer<'_>,
        place: SchemaPosition,
    ) {
        let function = place == SchemaPosition::Function;
        let is_loosened = self.is_loosened(place);
        if is_loosened && !(function || facts.typed || facts.properties) {
            return self.noted(facts, json, place, |_, _| {});
        }
        if facts.properties {
            self.deepest = self.deepest.max(self.depth);
        }
        let is_cut = self.depth >= self.depth_max && facts.properties;
        let moved = names::moved(facts, self.within.is_some());
        json.begin_object();
        if function && !facts.typed {
            json.kind("object");
        }
        let mut defines = place.is_top();
        for member in facts.members() {
            let value = member.value;
            match member.keyword.as_ref() {
                "type" if function => drop(json.kind("object")),
                "$defs" | "definitions" if defines => {
                    defines = false;
                    self.write_definitions(json);
                }
                "$defs" | "definitions" | "$ref" | "anyOf" => {}
                "$id" if !place.is_top() => {}
                "description" if !moved.is_empty() => {}
                "required" if is_loosened || is_cut => {}
                "items" if is_loosened => {}
                "properties" if !is_cut => self.properties(value, json, &moved),
                "properties" => {}
                "required" => names::required(value, facts, &moved, json),
                "additionalProperties" if !moved.is_empty() || is_cut => {}
                "enum" if function => {}
                "enum" => values::write(value, facts, json),
                "type" => json_type(value, facts, json),
                _ => self.member(&member, json),
            }
            if member.keyword == "properties" && !(facts.typed || function) {
                json.kind("object");
            }
        }
        if function && (!facts.properties || is_cut) {
            json.key("properties").raw("{}");
        }
        if !moved.is_empty() {
            names::describe(facts, &moved, json);
        }
        if defines {
            self.write_definitions(json);
        }
        json.end_object();
    }

    /// Returns true if a property may have this key: inside definitions, Kimi refuses keys with a
    /// `/`.
    fn takes_key(&self, key: &str) -> bool {
        self.within.is_none() || !words::has_byte(key, b'/')
    }

    fn properties(&mut self, properties: &str, json: &mut Writer<'_>, moved: &Names<'_, &str>) {
        json.key("properties").begin_object();
        self.depth = self.depth.saturating_add(1);
        for (name, schema) in json::members(properties) {
            if !moved.contains(&name.decode()) {
                json.key_str(name);
                self.schema(schema, json);
            }
        }
        self.depth = self.depth.saturating_sub(1);
        json.end_object();
    }

    fn write_definitions(&mut self, json: &mut Writer<'_>) {
        if self.definitions.is_empty() {
            return;
        }
        let all: Vec<(String, &str)> = self.definitions.values().cloned().collect();
        json.key("$defs").begin_object();
        let depth = std::mem::take(&mut self.depth);
        for (name, schema) in all {
            json.key_text(&name);
            self.within = Some(name);
            self.write(schema, json, SchemaPosition::Definition);
        }
        (self.depth, self.within) = (depth, None);
        json.end_object();
    }

    /// Returns a `$ref` in the form in which it is sent, if Kimi supports it: a reference to the
    /// whole schema or to a definition.
    fn reference(&self, reference: Str<'_>) -> Option<String> {
        if reference == "#" {
            return self.follows.then(|| "#".to_owned());
        }
        let (sent, _) = self.definitions.get(&name_of(reference)?)?;
        let is_own = || self.within.as_ref() == Some(sent);
        let may_follow = self.follows || self.within.is_none() || is_own();
        may_follow.then(|| ["#/$defs/", sent].concat())
    }
}

/// Returns true if the schema is written as a choice (`anyOf`).
fn chooses(facts: &SchemaFacts<'_>) -> bool {
    let branches: Vec<&str> = json::elements(facts.any_of).take(BRANCHES_MAX + 1).collect();
    !(branches.is_empty() || branches.len() > BRANCHES_MAX || facts.properties)
        && facts.are_whole(&branches)
}

/// Returns true if the schema has a choice or a `$ref` at a position where Kimi refuses choices and
/// references.
fn merges(facts: &SchemaFacts<'_>, root: bool) -> bool {
    let chooses = !facts.any_of.is_empty() && facts.properties;
    root && (facts.has_branches() || facts.reference.is_some()) || chooses
}

/// Writes `type`. For a number that may be `null`, `null` comes first: otherwise Kimi refuses a
/// `null` in the `enum`.
fn json_type(value: &str, facts: &SchemaFacts<'_>, json: &mut Writer<'_>) {
    let is_number = |name: Str<'_>| name == "integer" || name == "number";
    match facts.sole_type.filter(|name| value.starts_with('[') && is_number(*name)) {
        Some(name) if facts.enumerated && words::has(value, "\"null\"") => {
            json.key("type").begin_array().text("null").str(name).end_array();
        }
        _ => drop(json.key("type").raw(value)),
    }
}
