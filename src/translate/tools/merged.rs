//! What several schemas say together, for upstreams that take no choice of schemas in some places: the properties of
//! all of them. The client looks at inputs itself.

use std::borrow::Cow;

use super::schema::{Facts, Walk};
use crate::json::{self, Kind, Reader, Writer};
use crate::names::{NameSet, Names};

/// Whether [`Walk::merged`] writes what this keyword says.
pub(super) fn is_merged(keyword: &str) -> bool {
    matches!(keyword, "properties" | "required" | "anyOf" | "oneOf" | "allOf")
}

/// The schemas in a list, without those that are only `null`. What is no list has none.
pub(super) fn branches(list: &str) -> Vec<&str> {
    let mut all = Vec::new();
    let mut reader = Reader::of(list);
    let mut read = || {
        reader.begin_array()?;
        while reader.next_element()? {
            let branch = reader.skip()?;
            if !is_null(branch) {
                all.push(branch);
            }
        }
        Ok::<(), json::Error>(())
    };
    // It was read as JSON before.
    let _ = read();
    all
}

/// Whether a schema is that of `null` alone.
pub(super) fn is_null(schema: &str) -> bool {
    let null = |value: &str| matches!(value, "\"null\"" | "[\"null\"]" | "[null]" | "null");
    let said = |key| json::member(schema, key).is_some_and(null);
    said("type") || json::member(schema, "const") == Some("null") || said("enum")
}

/// So many schemas of one property are kept apart; of more, any value is taken.
const SCHEMAS_MAX: usize = 16;

/// Whether the branches of a schema can be written as one: all that they say stands in them, and some of it is
/// properties.
pub(super) fn can_merge(facts: &Facts<'_>) -> bool {
    let mut has_properties = facts.properties;
    for list in [facts.any_of, facts.one_of, facts.all_of] {
        for branch in branches(list) {
            let Ok(branch) = Facts::of_text(branch) else { return false };
            let nests =
                [branch.any_of, branch.one_of, branch.all_of].iter().any(|it| !it.is_empty());
            if nests || branch.reference.is_some() || !branch.object {
                return false;
            }
            has_properties |= branch.properties;
        }
    }
    facts.object && has_properties
}

impl Walk {
    /// Writes `properties` and `required` of a schema and of the branches in it. A property that several describe may
    /// be what any of them says. Required is what the schema requires, or each of its choices.
    pub(super) fn merged(
        &self,
        facts: &Facts<'_>,
        json: &mut Writer<'_>,
    ) -> Result<(), json::Error> {
        let mut properties = Names::default();
        let mut required = NameSet::default();
        // What stands beside the branches holds in each of them.
        let mut own = Names::default();
        add_named(facts.named, &Names::default(), &mut own)?;
        for name in names(facts.required)? {
            required.add(name);
        }
        for all in branches(facts.all_of) {
            let facts = Facts::of_text(all)?;
            add_named(facts.named, &own, &mut properties)?;
            for name in names(facts.required)? {
                required.add(name);
            }
        }
        for choice in [facts.any_of, facts.one_of] {
            let branches = branches(choice);
            let mut times: Names<'_, usize> = Names::default();
            for branch in &branches {
                let facts = Facts::of_text(branch)?;
                add_named(facts.named, &own, &mut properties)?;
                let mut here = NameSet::default();
                for name in names(facts.required)? {
                    here.add(name);
                }
                for name in here.keys() {
                    times.update(name.to_owned(), |times| *times = times.saturating_add(1));
                }
            }
            for (name, times) in times.iter() {
                if *times == branches.len() {
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

type Schemas<'a> = Names<'a, Vec<&'a str>>;

/// Adds the members of an object of schemas whose names are not in `own`, under each name those that differ.
fn add_named<'a>(
    properties: &'a str,
    own: &Schemas<'a>,
    all: &mut Schemas<'a>,
) -> Result<(), json::Error> {
    let mut reader = Reader::of(properties);
    if reader.kind().is_ok_and(|kind| kind == Kind::Object) {
        reader.begin_object()?;
        while let Some(name) = reader.next_key()? {
            let schema = reader.skip()?;
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
    Ok(())
}

/// The names in `required`.
fn names(required: &str) -> Result<Vec<Cow<'_, str>>, json::Error> {
    let mut names = Vec::new();
    if required.is_empty() {
        return Ok(names);
    }
    let mut reader = Reader::of(required);
    reader.begin_array()?;
    while reader.next_element()? {
        names.extend(reader.string_or_skip()?.map(|name| name.decode()));
    }
    Ok(names)
}
