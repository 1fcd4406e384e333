//! What several schemas say together, for upstreams that take no choice of schemas in some places: the properties of
//! all of them. The client looks at inputs itself.

use super::facts::Facts;
use super::kimi::definition;
use super::schema::Walk;
use crate::json::{self, Reader, Writer};
use crate::names::{NameSet, Names};

/// Whether [`Walk::merged`] writes what this keyword says.
pub(super) fn is_merged(keyword: &str) -> bool {
    matches!(keyword, "properties" | "required" | "anyOf" | "oneOf" | "allOf" | "$ref")
}

/// The schemas in a list.
#[derive(Default)]
pub(super) struct Branches<'a> {
    /// Without those that are only `null`.
    pub(super) schemas: Vec<&'a str>,
    /// Whether there are such.
    pub(super) has_null: bool,
}

/// Reads a list. What is no list has no schemas.
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

/// Whether a schema is that of `null` alone.
fn is_null(schema: &str) -> bool {
    let null = |value: &str| matches!(value, "\"null\"" | "[\"null\"]" | "[null]" | "null");
    let said = |key| json::member(schema, key).is_some_and(null);
    said("type") || json::member(schema, "const") == Some("null") || said("enum")
}

/// So many schemas of one property are kept apart; of more, any value is taken.
const SCHEMAS_MAX: usize = 16;

/// Which branches of a schema are written with it as one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// All, and only if all that they say stands in properties.
    AllPlain,
    /// Those of which that is so, where the others can stand nowhere.
    AsFarAsPossible,
}

/// The schemas that are written as one with another.
pub(super) struct Parts<'a> {
    /// What holds beside it, whatever is chosen.
    all: Vec<Facts<'a>>,
    /// The branches of each choice, and whether there are others.
    choices: [(Vec<Facts<'a>>, bool); 2],
}

impl Walk<'_> {
    /// What a schema is written with as one, if some of all that is properties. A root may also refer to what it is.
    pub(super) fn parts<'a>(
        &'a self,
        facts: &Facts<'a>,
        which: Which,
        root: bool,
    ) -> Option<Parts<'a>> {
        let refers = root && facts.reference.is_some();
        if !(facts.object || root) || !(facts.has_branches() || refers) {
            return None;
        }
        let [mut all, any, one] =
            [facts.all_of, facts.any_of, facts.one_of].map(|list| branches(list).schemas);
        let all_plain = which == Which::AllPlain;
        if all_plain && refers {
            return None;
        }
        let mut definitions = if root { self.definitions() } else { Names::default() };
        let mut take = |reference| definitions.get_mut(definition(reference)?).map(std::mem::take);
        all.extend(facts.reference.and_then(&mut take));
        let mut read = |schemas: Vec<&'a str>| {
            let mut parts = Vec::new();
            let mut has_others = false;
            for mut schema in schemas {
                let mut part = Facts::of_text(schema).ok()?;
                if let Some(definition) = part.reference.and_then(&mut take) {
                    if definition.is_empty() {
                        // Its properties are there already, and what it requires may be elsewhere.
                        has_others = true;
                        continue;
                    }
                    schema = definition;
                    part = Facts::of_text(schema).ok()?;
                }
                if all_plain && !is_plain(schema) {
                    return None;
                }
                match part.object && part.reference.is_none() && !part.has_branches() {
                    true => parts.push(part),
                    false => has_others = true,
                }
            }
            Some((parts, has_others))
        };
        let (all, other_all) = read(all)?;
        let choices = [read(any)?, read(one)?];
        if all_plain && (other_all || choices.iter().any(|(_, others)| *others)) {
            return None;
        }
        let mut parts = all.iter().chain(choices.iter().flat_map(|(parts, _)| parts)).peekable();
        let is_some = parts.peek().is_some();
        let has_properties = facts.properties || parts.any(|part| part.properties);
        (is_some && has_properties).then_some(Parts { all, choices })
    }

    /// What the root defines, by names as they are referred to.
    fn definitions(&self) -> Names<'_, &str> {
        let mut all = Names::default();
        for place in ["$defs", "definitions"] {
            for (name, schema) in json::members(json::member(self.root, place).unwrap_or_default())
            {
                all.get_or_insert_with(name.raw().into(), |_| schema);
            }
        }
        all
    }

    /// Writes `properties` and `required` of a schema and of the branches in it. A property that several describe may
    /// be what any of them says. Required is what the schema requires, or each of its choices.
    pub(super) fn merged(
        &self,
        facts: &Facts<'_>,
        Parts { all, choices }: Parts<'_>,
        json: &mut Writer<'_>,
    ) -> Result<(), json::Error> {
        let mut properties = Names::default();
        let mut required = NameSet::default();
        // What stands beside the branches holds in each of them.
        let mut own = Names::default();
        add_named(facts.named, &Names::default(), &mut own);
        add_names(facts.required, &mut required);
        for part in &all {
            add_named(part.named, &own, &mut properties);
            add_names(part.required, &mut required);
        }
        for (branches, has_others) in &choices {
            let mut times: Names<'_, usize> = Names::default();
            for part in branches {
                add_named(part.named, &own, &mut properties);
                let mut here = NameSet::default();
                add_names(part.required, &mut here);
                for name in here.keys() {
                    times.update(name.to_owned(), |times| *times = times.saturating_add(1));
                }
            }
            for (name, times) in times.iter() {
                if *times == branches.len() && !*has_others {
                    required.add(name.to_owned());
                }
            }
        }
        json.key("properties").begin_object();
        for (name, schemas) in own.iter().chain(properties.iter()) {
            json.key_text(name);
            match schemas.as_slice() {
                [schema] => self.schema(&mut Reader::of(schema), json, false)?,
                _ if schemas.len() > SCHEMAS_MAX => drop(json.raw("{}")),
                several => {
                    let any = ["{\"anyOf\":[", &several.join(","), "]}"].concat();
                    self.schema(&mut Reader::of(&any), json, false)?;
                }
            }
        }
        json.end_object();
        let names: Vec<&str> = required
            .keys()
            .filter(|name| own.contains(name) || properties.contains(name))
            .collect();
        if !names.is_empty() {
            json.key("required").begin_array();
            for name in names {
                json.text(name);
            }
            json.end_array();
        }
        Ok(())
    }
}

/// Whether a schema says no more than a merged one does.
fn is_plain(schema: &str) -> bool {
    const KNOWN: [&str; 6] =
        ["type", "properties", "required", "title", "description", "additionalProperties"];
    schema.starts_with('{') && json::members(schema).all(|(key, _)| KNOWN.contains(&key.raw()))
}

type Schemas<'a> = Names<'a, Vec<&'a str>>;

/// Adds the members of an object of schemas whose names are not in `own`, under each name those that differ.
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

/// Adds the names in `required`.
fn add_names<'a>(required: &'a str, all: &mut NameSet<'a>) {
    for name in json::elements(required).filter_map(json::string) {
        all.add(name.decode());
    }
}
