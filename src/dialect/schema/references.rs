//! References (`$ref`) of a schema, rewritten so that all dialects and servers can resolve them.
//!
//! | the client's `$ref` | what is written |
//! |---|---|
//! | leads nowhere, because a converter dropped the definitions | left out |
//! | to a definition in a subschema (schemars), or at another path (OpenAPI) | moved to the root |
//! | with escapes, as PHP writes `/`, or with percent signs | without escapes and percent signs |
//!
//! A name that stands for different definitions in subschemas is ambiguous, and its reference is
//! left out. References that are no path from the root stay unchanged. The client validates inputs
//! itself.

use std::borrow::Cow;

use crate::json::{self, Str, ValueKind, Writer};
use crate::json_schema::{Holds, holds, kind_of, written};
use crate::text::names::Names;
use crate::text::words;

/// Maximum number of bytes that are read to follow paths through more than definitions, as a
/// multiple of the whole schema. Beyond this maximum, a path is assumed to lead somewhere.
const TIMES_MAX: usize = 64;

/// Keywords in the root that contain definitions.
const PLACES: [&str; 2] = ["$defs", "definitions"];

/// Mark that replaces a schema among the definitions, if different definitions have the same name.
const SEVERAL: &str = "?";

/// Returns the schema with references that all servers can resolve.
pub(super) fn plain(schema: &str) -> Cow<'_, str> {
    if !words::has_byte(schema, b'$') || !words::has(schema, "$ref\"") {
        return schema.into();
    }
    let mut all = References::of(schema);
    all.write();
    if all.follow() { all.write().into() } else { schema.into() }
}

/// Returns true if a `$ref` leads through a list such as `anyOf`, which merging the list would
/// remove.
pub(super) fn lead_through_lists(root: &str) -> bool {
    words::places(root, "\"#/").any(|at| {
        let path = root.get(at.saturating_add(1)..).unwrap_or_default();
        words::has_any(words::before(path, b"\""), &["/allOf/", "/anyOf/", "/oneOf/"])
    })
}

/// Returns the part of a reference behind `#/$defs/` or `#/definitions/`; `None` if the reference
/// begins otherwise.
pub(super) fn definition(reference: Str<'_>) -> Option<&str> {
    let path = reference.raw().strip_prefix("#/")?;
    PLACES.iter().find_map(|place| path.strip_prefix(place)?.strip_prefix('/'))
}

/// Definitions in the root of a schema, by name.
#[derive(Default)]
pub(super) struct Definitions<'s>(Names<'s, &'s str>);

impl<'s> Definitions<'s> {
    pub(super) fn of(root: &'s str) -> Self {
        let mut all = Names::default();
        for place in PLACES {
            for (name, schema) in json::members(json::member(root, place).unwrap_or_default()) {
                all.get_or_insert_with(name.decode(), |_| schema);
            }
        }
        Self(all)
    }

    /// Returns the definition to which a reference leads; `None` if the reference does not lead to
    /// a definition.
    pub(super) fn get(&self, reference: Str<'_>) -> Option<&'s str> {
        self.0.get(&name_of(reference)?).copied()
    }

    /// Removes and returns the definition to which a reference leads; an empty text if the
    /// definition was removed before.
    pub(super) fn take(&mut self, reference: Str<'_>) -> Option<&'s str> {
        self.0.get_mut(&name_of(reference)?).map(std::mem::take)
    }

    /// Returns the names and schemas of the definitions, in the schema's order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &'s str)> {
        self.0.iter().map(|(name, schema)| (name, *schema))
    }
}

/// Returns the name of the definition to which a reference leads; `None` if the path leads
/// elsewhere, or further into the definition.
pub(super) fn name_of(reference: Str<'_>) -> Option<String> {
    let name = definition(reference).filter(|path| !words::has_byte(path, b'/'))?;
    Some(unescaped(&Str::inside(name)?.decode()).into_owned())
}

/// Writer that writes a schema twice: first to collect its definitions and references, then with
/// the references resolved.
struct References<'s> {
    root: &'s str,
    /// Schemas in the root by path: its members, and its definitions, such as `$defs/User`.
    known: Names<'s, &'s str>,
    /// Definitions in subschemas, by a path such as `$defs/User`; [`SEVERAL`] if definitions of the
    /// same path differ.
    nested: Names<'s, &'s str>,
    /// Definitions in subschemas that are referred to, and are moved into the root.
    lifted: Names<'s, &'s str>,
    /// References as the client wrote them, each with its rewritten path; empty if the reference
    /// leads nowhere.
    found: Names<'s, String>,
    followed: bool,
    /// True if a reference or a definition is written differently from the original.
    changes: bool,
    /// Number of references that were left out, because they lead nowhere.
    left_out: usize,
    /// Number of bytes that may still be read to follow paths; in `room_in_root`, number of bytes
    /// that may still be moved into the root.
    room: usize,
    room_in_root: usize,
}

impl<'s> References<'s> {
    fn of(root: &'s str) -> Self {
        let mut known = Names::default();
        for (name, schema) in json::members(root) {
            known.insert(name.decode(), schema);
        }
        for place in PLACES {
            let definitions = known.get(place).copied().unwrap_or_default();
            for (name, schema) in json::members(definitions) {
                known.insert(path_of(place, &name.decode()), schema);
            }
        }
        Self {
            root,
            known,
            nested: Names::default(),
            lifted: Names::default(),
            found: Names::default(),
            followed: false,
            changes: false,
            left_out: 0,
            room: root.len().saturating_mul(TIMES_MAX),
            room_in_root: root.len(),
        }
    }

    /// Writes the schema with the references that are resolved so far.
    fn write(&mut self) -> String {
        written(|json| self.schema(self.root, json, true))
    }

    /// Resolves each reference, and returns true if the schema changes.
    fn follow(&mut self) -> bool {
        let found = std::mem::take(&mut self.found);
        for reference in found.keys() {
            let becomes = self.lead(reference).unwrap_or_default();
            self.changes |= becomes != reference;
            self.found.insert(reference.to_owned(), becomes);
        }
        self.followed = true;
        self.changes
    }

    /// Returns the path of the definition to which a `$ref` leads, in plain form (`#/$defs/NAME`);
    /// `None` if the reference leads nowhere.
    fn lead(&mut self, reference: &str) -> Option<String> {
        let mut steps = reference.split('/');
        let name = decoded(steps.next_back()?);
        let place = steps.next_back()?;
        let [first, second] = PLACES;
        let places = if place == second { [second, first] } else { PLACES };
        let mut found = self.walk(reference);
        for place in places {
            let path = path_of(place, &name);
            if found.is_none() && (self.known.contains(&path) || self.lift(&path)) {
                found = Some(["#/", place, "/", &escaped(&name)].concat());
            }
        }
        found
    }

    /// Follows a path through members and lists to a schema, and returns the path in plain form.
    fn walk(&mut self, reference: &str) -> Option<String> {
        let (mut at, mut path) = ("", "#".to_owned());
        for (depth, step) in reference.split('/').skip(1).enumerate() {
            let place = path.get(2..).unwrap_or_default();
            let by_name = |name: &str| match depth {
                0 => self.known.get(name).copied(),
                1 if PLACES.contains(&place) => self.known.get(&path_of(place, name)).copied(),
                _ if at.starts_with('[') => json::elements(at).nth(name.parse().ok()?),
                _ => json::member(at, name),
            };
            let Some(room) = self.room.checked_sub(if depth < 2 { 0 } else { at.len() }) else {
                return Some(reference.to_owned());
            };
            let name = unescaped(step);
            let (next, name) = match by_name(&name) {
                Some(next) => (next, name),
                None => (by_name(&decoded(step))?, decoded(step)),
            };
            (self.room, at) = (room, next);
            path = path_of(&path, &escaped(&name));
        }
        Some(path)
    }

    /// Moves the definition of a subschema into the root, if the definition is unambiguous. Returns
    /// true if the definition was moved.
    fn lift(&mut self, path: &str) -> bool {
        let schema = self.nested.get(path).copied().filter(|schema| *schema != SEVERAL);
        let Some(schema) = schema else { return false };
        if self.lifted.contains(path) {
            return true;
        }
        let Some(room) = self.room_in_root.checked_sub(schema.len()) else { return false };
        self.room_in_root = room;
        self.lifted.insert(path.to_owned(), schema);
        self.changes = true;
        true
    }

    /// Writes a schema, or each schema of an array. Any other value is written unchanged.
    fn schema(&mut self, schema: &'s str, json: &mut Writer<'_>, root: bool) {
        match kind_of(schema) {
            ValueKind::Object => {}
            ValueKind::Array => {
                json.begin_array();
                json::elements(schema).for_each(|schema| self.schema(schema, json, false));
                json.end_array();
                return;
            }
            _ => {
                json.raw(schema);
                return;
            }
        }
        json.begin_object();
        for (key, value) in json::members(schema) {
            let keyword = key.decode();
            match (holds(&keyword), kind_of(value)) {
                (_, ValueKind::String) if keyword == "$ref" => {
                    match json::string(value).and_then(|reference| self.reference(reference)) {
                        Some(reference) => drop(json.key("$ref").text(&reference)),
                        None => self.left_out = self.left_out.saturating_add(1),
                    }
                }
                (Holds::Schema, _) => self.held(value, json, key, &keyword),
                // The definitions of the root are written at the end, by `definitions`.
                _ if root && PLACES.contains(&keyword.as_ref()) => {}
                (Holds::Named, ValueKind::Object) => {
                    let definitions = PLACES.iter().find(|place| **place == keyword);
                    json.key_str(key).begin_object();
                    self.named(value, json, definitions.copied());
                    json.end_object();
                }
                _ => drop(json.key_str(key).raw(value)),
            }
        }
        if root {
            PLACES.iter().for_each(|place| self.definitions(place, json));
        }
        json.end_object();
    }

    /// Writes a schema that is the value of a keyword. If a part of the schema was left out, `not`
    /// is dropped and `oneOf` becomes `anyOf`: otherwise these keywords would refuse more values
    /// than before.
    fn held(&mut self, schema: &'s str, json: &mut Writer<'_>, key: Str<'s>, keyword: &str) {
        let (before, left_out) = (json.out().len(), self.left_out);
        json.key_str(key);
        let from = json.out().len();
        self.schema(schema, json, false);
        if self.left_out != left_out && matches!(keyword, "not" | "oneOf") {
            let choice = json.out().split_off(from);
            json.out().truncate(before);
            if keyword == "oneOf" {
                json.key("anyOf").value().out().extend_from_slice(&choice);
            }
        }
    }

    /// Writes schemas with their names. `place`: the keyword of the definitions, if these are
    /// definitions.
    fn named(&mut self, schemas: &'s str, json: &mut Writer<'_>, place: Option<&str>) {
        for (name, schema) in json::members(schemas) {
            if let Some(place) = place.filter(|_| !self.followed) {
                self.changes |= name.is_escaped();
                self.nested.update(path_of(place, &name.decode()), |known| {
                    *known = if known.is_empty() || *known == schema { schema } else { SEVERAL };
                });
            }
            json.key_text(&name.decode());
            self.schema(schema, json, false);
        }
    }

    /// Writes the definitions of the root under one of the two keywords for definitions.
    fn definitions(&mut self, place: &'static str, json: &mut Writer<'_>) {
        let own = self.known.get(place).copied().unwrap_or_default();
        let lifted = self.lifted.iter().filter_map(|(path, schema)| {
            Some((path.strip_prefix(place)?.strip_prefix('/')?.to_owned(), *schema))
        });
        let lifted: Vec<(String, &str)> = lifted.collect();
        if !own.starts_with('{') && lifted.is_empty() {
            return;
        }
        json.key(place).begin_object();
        for (name, schema) in json::members(own) {
            self.changes |= name.is_escaped();
            json.key_text(&name.decode());
            self.schema(schema, json, false);
        }
        for (name, schema) in lifted {
            json.key_text(&name);
            self.schema(schema, json, false);
        }
        json.end_object();
    }

    /// Returns the text of a reference in rewritten form; `None` if the reference is left out.
    fn reference(&mut self, reference: Str<'s>) -> Option<Cow<'s, str>> {
        let text = reference.decode();
        let is_path = words::begins(&text, "#/");
        if is_path && self.followed {
            let becomes = self.found.get(&text).filter(|becomes| !becomes.is_empty());
            return becomes.cloned().map(Cow::Owned);
        }
        self.changes |= reference.is_escaped();
        if is_path {
            self.found.insert(text.clone(), String::new());
        }
        Some(text)
    }
}

fn path_of(place: &str, name: &str) -> String {
    [place, "/", name].concat()
}

/// Returns a step of a reference's path without percent signs and escapes: the name that the step
/// stands for.
fn decoded(step: &str) -> Cow<'static, str> {
    unescaped(&words::percent_decoded(step)).into_owned().into()
}

/// Returns a step of a reference's path without the escapes of JSON Pointer: `~1` is a `/`, and
/// `~0` a `~`.
fn unescaped(step: &str) -> Cow<'_, str> {
    let mut parts = step.split('~');
    let mut plain = Cow::Borrowed(parts.next().unwrap_or_default());
    for part in parts {
        plain.to_mut().push(if part.starts_with('1') { '/' } else { '~' });
        plain.to_mut().push_str(part.get(1..).unwrap_or_default());
    }
    plain
}

/// Returns a name with the escapes of a JSON Pointer.
fn escaped(name: &str) -> String {
    let mut step = String::with_capacity(name.len());
    for letter in name.chars() {
        match letter {
            '~' => step.push_str("~0"),
            '/' => step.push_str("~1"),
            _ => step.push(letter),
        }
    }
    step
}

#[cfg(test)]
mod tests;
