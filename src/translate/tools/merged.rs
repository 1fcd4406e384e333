//! What several schemas say together, for upstreams that take no choice of schemas in some places: the properties of
//! all of them. The client looks at inputs itself.

use super::facts::Facts;
use super::kimi::definition;
use super::schema::Walk;
use crate::json::{self, Kind, Reader, Writer};
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

/// Which branches of a schema are written with it as one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// All, and only if all that they say stands in properties.
    AllPlain,
    /// Those of which that is so, where the others can stand nowhere.
    AsFarAsPossible,
}

/// The schemas that are written as one with another.
struct Parts<'a> {
    /// What holds beside it, whatever is chosen.
    all: Vec<Facts<'a>>,
    /// The branches of each choice.
    choices: [Vec<Facts<'a>>; 2],
    /// Whether there are others in each of these.
    has_others: [bool; 3],
}

impl Walk<'_> {
    /// Whether a schema is written with its branches as one: some of what they say is properties. A root may also
    /// refer to what it is.
    pub(super) fn can_merge(&self, facts: &Facts<'_>, which: Which, root: bool) -> bool {
        let refers = root && facts.reference.is_some();
        if !(facts.object || root) || !(facts.has_branches() || refers) {
            return false;
        }
        if which == Which::AllPlain {
            let is_plain = |list: &str| branches(list).schemas.into_iter().all(is_plain);
            if refers || !facts.lists().into_iter().all(is_plain) {
                return false;
            }
        }
        let Ok(Parts { all, choices: [any, one], has_others }) = self.parts(facts, root) else {
            return false;
        };
        if which == Which::AllPlain && has_others.contains(&true) {
            return false;
        }
        let mut parts = all.iter().chain(&any).chain(&one);
        facts.properties && parts.clone().next().is_some() || parts.any(|part| part.properties)
    }

    /// The parts of a schema that are written as one with it.
    fn parts<'a>(&'a self, facts: &'a Facts<'a>, root: bool) -> Result<Parts<'a>, json::Error> {
        let mut definitions = if root { self.definitions()? } else { Names::default() };
        let mut take = |reference| definitions.get_mut(definition(reference)?).map(std::mem::take);
        let mut all = branches(facts.all_of).schemas;
        all.extend(facts.reference.and_then(&mut take));
        let mut read = |schemas: Vec<&'a str>| {
            let mut parts = Vec::new();
            let mut has_others = false;
            for schema in schemas {
                let mut part = Facts::of_text(schema)?;
                if let Some(definition) = part.reference.and_then(&mut take) {
                    if definition.is_empty() {
                        // Its properties are there already, and what it requires may be elsewhere.
                        has_others = true;
                        continue;
                    }
                    part = Facts::of_text(definition)?;
                }
                match part.object && !part.refers && !part.has_branches() {
                    true => parts.push(part),
                    false => has_others = true,
                }
            }
            Ok::<_, json::Error>((parts, has_others))
        };
        let (all, other_all) = read(all)?;
        let (any, other_any) = read(branches(facts.any_of).schemas)?;
        let (one, other_one) = read(branches(facts.one_of).schemas)?;
        Ok(Parts { all, choices: [any, one], has_others: [other_all, other_any, other_one] })
    }

    /// What the root defines, by names as they are referred to.
    fn definitions(&self) -> Result<Names<'_, &str>, json::Error> {
        let mut all = Names::default();
        for place in ["$defs", "definitions"] {
            let mut reader = Reader::of(json::member(self.root, place).unwrap_or("{}"));
            if reader.kind()? == Kind::Object {
                reader.begin_object()?;
                while let Some(name) = reader.next_key()? {
                    let schema = reader.skip()?;
                    all.get_or_insert_with(name.raw().into(), |_| schema);
                }
            }
        }
        Ok(all)
    }

    /// Writes `properties` and `required` of a schema and of the branches in it. A property that several describe may
    /// be what any of them says. Required is what the schema requires, or each of its choices.
    pub(super) fn merged(
        &self,
        facts: &Facts<'_>,
        json: &mut Writer<'_>,
        root: bool,
    ) -> Result<(), json::Error> {
        let Parts { all, choices, has_others: [_, other_any, other_one] } =
            self.parts(facts, root)?;
        let mut properties = Names::default();
        let mut required = NameSet::default();
        // What stands beside the branches holds in each of them.
        let mut own = Names::default();
        add_named(facts.named, &Names::default(), &mut own)?;
        add_names(facts.required, &mut required)?;
        for part in &all {
            add_named(part.named, &own, &mut properties)?;
            add_names(part.required, &mut required)?;
        }
        for (branches, has_others) in choices.iter().zip([other_any, other_one]) {
            let mut times: Names<'_, usize> = Names::default();
            for part in branches {
                add_named(part.named, &own, &mut properties)?;
                let mut here = NameSet::default();
                add_names(part.required, &mut here)?;
                for name in here.keys() {
                    times.update(name.to_owned(), |times| *times = times.saturating_add(1));
                }
            }
            for (name, times) in times.iter() {
                if *times == branches.len() && !has_others {
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
    let mut reader = Reader::of(schema);
    let mut read = || {
        reader.begin_object()?;
        while let Some(key) = reader.next_key()? {
            let is_known = matches!(
                key.raw(),
                "type"
                    | "properties"
                    | "required"
                    | "title"
                    | "description"
                    | "additionalProperties"
            );
            if !is_known {
                return Ok(false);
            }
            reader.skip()?;
        }
        Ok::<_, json::Error>(true)
    };
    read().unwrap_or(false)
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
