//! Merging of several schemas into one with the properties of all, for upstreams that refuse a
//! choice of schemas at some positions. The client validates inputs itself.

use super::facts::{SchemaFacts, is_merged};
use super::references::Definitions;
use crate::json::{self, Str, Writer};
use crate::json_schema::written;
use crate::text::names::{NameSet, Names};

/// Schemas in the list of a choice such as `anyOf`.
#[derive(Default)]
pub(super) struct Branches<'a> {
    /// Schemas of the choice, without the schemas that allow only `null`.
    pub(super) schemas: Vec<&'a str>,
    /// True if a schema of the choice allows only `null`.
    pub(super) has_null: bool,
}

/// Reads a list of schemas. A value that is not a list has no schemas.
pub(super) fn branches(list: &str) -> Branches<'_> {
    let mut all = Branches::default();
    for branch in json::elements(list) {
        match is_null(branch) {
            true => all.has_null = true,
            false => all.schemas.push(branch),
        }
    }
    all
}

/// Returns true if a schema allows only `null`.
fn is_null(schema: &str) -> bool {
    let null = |value: &str| matches!(value, "\"null\"" | "[\"null\"]" | "[null]" | "null");
    json::members(schema).any(|(key, value)| match key.raw() {
        "type" | "enum" => null(value),
        "const" => value == "null",
        _ => false,
    })
}

/// Maximum number of different schemas kept for one property; beyond that, the property allows any
/// value.
const SCHEMAS_MAX: usize = 16;

/// Maximum depth to which branches and references are followed.
const DEPTH_MAX: u32 = 32;

/// Selection of the branches of a choice that are merged into the schema with the choice.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// Every branch, or none of them if a branch has keywords other than properties.
    AllPlain,
    /// Every branch that may be an object; the other branches are dropped.
    AsFarAsPossible,
}

/// Properties and required names of a schema and its branches together. A property that several
/// branches describe may fit any of these descriptions.
pub(super) struct Merged<'a> {
    /// Properties of the schema itself, which apply to every branch.
    own: Schemas<'a>,
    /// Properties of the branches that the schema itself does not have.
    others: Schemas<'a>,
    /// Names required by the schema, or by each branch of one of its choices.
    required: NameSet<'a>,
}

/// Merges a schema with its branches; `None` if that is impossible or yields no properties. In a
/// root, the definition that a `$ref` leads to counts as a branch.
pub(super) fn parts<'a>(facts: &SchemaFacts<'a>, which: Which, root: bool) -> Option<Merged<'a>> {
    let refers = root && facts.reference.is_some();
    if !(facts.object || root) || !(facts.has_branches() || refers) {
        return None;
    }
    let mut own = Names::default();
    add_named(facts.named, &Names::default(), &mut own);
    let mut branches = Branched {
        definitions: if root { Definitions::of(facts.schema) } else { Definitions::default() },
        own,
        others: Names::default(),
        all_plain: which == Which::AllPlain,
        found: false,
        refused: false,
    };
    let mut required = branches.object(facts, 0);
    if refers {
        let definition = facts.reference.and_then(|it| branches.referred(it, 0));
        add_all(definition.unwrap_or_default(), &mut required);
    }
    let Branched { own, others, found, refused, .. } = branches;
    let is_some = found && (facts.properties || !others.is_empty());
    (is_some && !refused).then_some(Merged { own, others, required })
}

impl Merged<'_> {
    /// Returns the merged schema in the form in which a client could have written it.
    pub(super) fn beside(self, schema: &str, root: bool) -> String {
        written(|json| {
            json.begin_object();
            for (key, value) in json::members(schema).filter(|(key, _)| !is_merged(key.raw())) {
                json.key_str(key).raw(value);
            }
            self.write(json, root, "{}", &mut |schema, json| {
                json.raw(schema);
            });
            json.end_object();
        })
    }

    /// Writes `properties` and `required`, without required names that are no property.
    pub(super) fn write(
        self,
        json: &mut Writer<'_>,
        root: bool,
        any: &str,
        write: &mut dyn FnMut(&str, &mut Writer<'_>),
    ) {
        let Merged { own, others, required } = self;
        if root || !(own.is_empty() && others.is_empty()) {
            json.key("properties").begin_object();
            for (name, schemas) in own.iter().chain(others.iter()) {
                json.key_text(name);
                match schemas.as_slice() {
                    [schema] => write(schema, json),
                    _ if schemas.len() > SCHEMAS_MAX => drop(json.raw(any)),
                    several => write(&["{\"anyOf\":[", &several.join(","), "]}"].concat(), json),
                }
            }
            json.end_object();
        }
        let mut names =
            required.keys().filter(|name| own.contains(name) || others.contains(name)).peekable();
        if names.peek().is_some() {
            json.key("required").begin_array();
            for name in names {
                json.text(name);
            }
            json.end_array();
        }
    }
}

/// State of reading the branches of a schema, recursively.
struct Branched<'a> {
    /// Definitions of the root that no branch has referred to yet. Each counts once; otherwise the
    /// merge could take unbounded time.
    definitions: Definitions<'a>,
    own: Schemas<'a>,
    others: Schemas<'a>,
    all_plain: bool,
    /// True if any branch was merged into the schema.
    found: bool,
    /// True if some branch was not merged, although all branches must be.
    refused: bool,
}

impl<'a> Branched<'a> {
    /// Adds the properties of an object's branches, and returns the names that the object and its
    /// branches require.
    fn object(&mut self, facts: &SchemaFacts<'a>, depth: u32) -> NameSet<'a> {
        let mut required = NameSet::default();
        add_names(facts.required, &mut required);
        for schema in branches(facts.all_of).schemas {
            add_all(self.branch(schema, depth).unwrap_or_default(), &mut required);
        }
        for list in [facts.any_of, facts.one_of] {
            let schemas = branches(list).schemas;
            let (mut times, mut has_others) = (Names::<usize>::default(), false);
            for schema in &schemas {
                match self.branch(schema, depth) {
                    Some(names) => {
                        for name in names.keys() {
                            times.update(name.to_owned(), |times| *times = times.saturating_add(1));
                        }
                    }
                    None => has_others = true,
                }
            }
            for (name, times) in times.iter() {
                if *times == schemas.len() && !has_others {
                    required.add(name.to_owned());
                }
            }
        }
        required
    }

    /// Returns the required names of a branch; `None` if the branch is not an object, so that no
    /// name is certainly required.
    fn branch(&mut self, schema: &'a str, depth: u32) -> Option<NameSet<'a>> {
        let facts = SchemaFacts::of(schema);
        if let Some(reference) = facts.reference.filter(|_| is_reference_alone(schema)) {
            return self.referred(reference, depth);
        }
        if !facts.object || depth >= DEPTH_MAX || self.all_plain && !is_plain(schema) {
            self.refused |= self.all_plain;
            return None;
        }
        self.found = true;
        add_named(facts.named, &self.own, &mut self.others);
        let mut required = self.object(&facts, depth.saturating_add(1));
        let referred = facts.reference.and_then(|it| self.referred(it, depth));
        add_all(referred.unwrap_or_default(), &mut required);
        Some(required)
    }

    /// Returns the required names of the schema to which a reference leads.
    fn referred(&mut self, reference: Str<'a>, depth: u32) -> Option<NameSet<'a>> {
        match self.definitions.take(reference) {
            // The definition was merged before, so its required names are not certain for this
            // reference.
            Some("") => None,
            Some(schema) if depth < DEPTH_MAX => self.branch(schema, depth.saturating_add(1)),
            _ => {
                self.refused |= self.all_plain;
                None
            }
        }
    }
}

fn add_all<'a>(names: NameSet<'a>, all: &mut NameSet<'a>) {
    for name in names.keys() {
        all.add(name.to_owned());
    }
}

/// Returns true if a schema with a `$ref` has no other keyword that restricts its values.
fn is_reference_alone(schema: &str) -> bool {
    json::members(schema).all(|(key, _)| matches!(key.raw(), "$ref" | "title" | "description"))
}

/// Returns true if a schema has only keywords that a merged schema preserves.
fn is_plain(schema: &str) -> bool {
    const KNOWN: [&str; 6] =
        ["type", "properties", "required", "title", "description", "additionalProperties"];
    schema.starts_with('{') && json::members(schema).all(|(key, _)| KNOWN.contains(&key.raw()))
}

type Schemas<'a> = Names<'a, Vec<&'a str>>;

/// Adds the properties whose names are not in `own`, keeping the different schemas of each name.
fn add_named<'a>(properties: &'a str, own: &Schemas<'a>, all: &mut Schemas<'a>) {
    for (name, schema) in json::members(properties) {
        if own.contains(&name.decode()) {
            continue;
        }
        all.update(name.decode(), |known| {
            if known.len() <= SCHEMAS_MAX && !known.contains(&schema) {
                known.push(schema);
            }
        });
    }
}

/// Adds the names in `required` to a set.
fn add_names<'a>(required: &'a str, all: &mut NameSet<'a>) {
    for name in json::elements(required).filter_map(json::string) {
        all.add(name.decode());
    }
}
