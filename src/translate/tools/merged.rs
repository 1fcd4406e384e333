//! What several schemas say together, for upstreams that take no choice of schemas in some places: the properties of
//! all of them. The client looks at inputs itself.

use super::facts::Facts;
use super::schema::Walk;
use crate::json::{self, Kind, Reader, Writer};
use crate::names::{NameSet, Names};

/// Whether [`Walk::merged`] writes what this keyword says.
pub(super) fn is_merged(keyword: &str) -> bool {
    matches!(keyword, "properties" | "required" | "anyOf" | "oneOf" | "allOf")
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
    let mut reader = Reader::of(list);
    let mut read = || {
        reader.begin_array()?;
        while reader.next_element()? {
            let branch = reader.skip()?;
            match is_null(branch) {
                true => all.has_null = true,
                false => all.schemas.push(branch),
            }
        }
        Ok::<(), json::Error>(())
    };
    // It was read as JSON before.
    let _ = read();
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

/// Whether the branches of a schema can be written as one: all that they say stands in them, and some of it is
/// properties.
pub(super) fn can_merge(facts: &Facts<'_>) -> bool {
    let mut has_properties = facts.properties;
    for list in facts.lists() {
        for branch in branches(list).schemas {
            let Ok(branch) = Facts::of_text(branch) else { return false };
            if branch.has_branches() || branch.reference.is_some() || !branch.object {
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
        add_names(facts.required, &mut required)?;
        for all in branches(facts.all_of).schemas {
            let facts = Facts::of_text(all)?;
            add_named(facts.named, &own, &mut properties)?;
            add_names(facts.required, &mut required)?;
        }
        for choice in [facts.any_of, facts.one_of] {
            let branches = branches(choice).schemas;
            let mut times: Names<'_, usize> = Names::default();
            for branch in &branches {
                let facts = Facts::of_text(branch)?;
                add_named(facts.named, &own, &mut properties)?;
                let mut here = NameSet::default();
                add_names(facts.required, &mut here)?;
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

/// Adds the names in `required`.
fn add_names<'a>(required: &'a str, all: &mut NameSet<'a>) -> Result<(), json::Error> {
    if required.is_empty() {
        return Ok(());
    }
    let mut reader = Reader::of(required);
    reader.begin_array()?;
    while reader.next_element()? {
        if let Some(name) = reader.string_or_skip()? {
            all.add(name.decode());
        }
    }
    Ok(())
}
