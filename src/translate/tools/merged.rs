//! What several schemas say together, for dialects that take no choice of schemas in some places: a model that is
//! offered the properties of all of them can say what each wants, and the client looks at inputs itself.

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

impl Walk {
    /// Writes `properties` and `required` of a schema and of the branches in it. Of one property that several name the
    /// first schema counts. Required is what the schema requires, or each of its choices.
    pub(super) fn merged(
        &self,
        facts: &Facts<'_>,
        json: &mut Writer<'_>,
    ) -> Result<(), json::Error> {
        let mut properties = Names::default();
        let mut required = NameSet::default();
        add_named(facts.named, &mut properties)?;
        for name in names(facts.required)? {
            required.add(name);
        }
        for all in branches(facts.all_of) {
            let facts = Facts::of_text(all)?;
            add_named(facts.named, &mut properties)?;
            for name in names(facts.required)? {
                required.add(name);
            }
        }
        for choice in [facts.any_of, facts.one_of] {
            let branches = branches(choice);
            let mut times: Names<'_, usize> = Names::default();
            for branch in &branches {
                let facts = Facts::of_text(branch)?;
                add_named(facts.named, &mut properties)?;
                let mut own = NameSet::default();
                for name in names(facts.required)? {
                    own.add(name);
                }
                for name in own.keys() {
                    times.update(name.to_owned(), |times| *times = times.saturating_add(1));
                }
            }
            for (name, times) in times.iter() {
                if *times == branches.len() {
                    required.add(name.to_owned());
                }
            }
        }
        json.key("properties");
        self.named(&properties, json)?;
        let names: Vec<&str> = required.keys().filter(|name| properties.contains(name)).collect();
        if !names.is_empty() {
            json.key("required").begin_array();
            for name in names {
                json.text(name);
            }
            json.end_array();
        }
        Ok(())
    }

    /// Writes schemas under their names.
    pub(super) fn named(
        &self,
        schemas: &Names<'_, &str>,
        json: &mut Writer<'_>,
    ) -> Result<(), json::Error> {
        json.begin_object();
        for (name, schema) in schemas.iter() {
            json.key_text(name);
            self.schema(&mut Reader::of(schema), json, false)?;
        }
        json.end_object();
        Ok(())
    }
}

/// Adds the members of an object of schemas; of equal names the first one counts.
pub(super) fn add_named<'a>(
    properties: &'a str,
    all: &mut Names<'a, &'a str>,
) -> Result<(), json::Error> {
    let mut reader = Reader::of(properties);
    if reader.kind().is_ok_and(|kind| kind == Kind::Object) {
        reader.begin_object()?;
        while let Some(name) = reader.next_key()? {
            let schema = reader.skip()?;
            all.get_or_insert_with(name.decode(), |_| schema);
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
