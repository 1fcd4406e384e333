//! References of a schema, each as all dialects and servers read it.
//!
//! | the client's `$ref` | what is written |
//! |---|---|
//! | leads nowhere: a converter left the definitions out | left out: servers refuse the whole request for it |
//! | to a definition in a schema further down (schemars), or at another place (OpenAPI) | to the one of that name in the root, where it is put |
//! | with escapes, as PHP writes `/`, or with percent signs | plainly |
//!
//! Of a name that stands for several definitions further down, nobody knows which is meant. References that are no path
//! from the root stay as they are. The client looks at inputs itself.

use std::borrow::Cow;

use super::{Holds, copy_member, elements, holds};
use crate::json::{self, Reader, Str, ValueKind, Writer};
use crate::text::names::Names;
use crate::text::words;

/// So many times the bytes of the whole schema are read to follow paths that lead through more than definitions; what
/// they lead to then is not asked.
const TIMES_MAX: usize = 64;

/// The places of definitions.
const PLACES: [&str; 2] = ["$defs", "definitions"];

/// In place of a schema: there are several.
const SEVERAL: &str = "?";

/// The schema with such references.
pub(super) fn plain(schema: &str) -> Cow<'_, str> {
    if !words::has_byte(schema, b'$') || !words::has(schema, "$ref\"") {
        return schema.into();
    }
    let mut all = References::of(schema);
    // Nothing fails with a schema that was read from a request.
    let _ = all.write();
    match all.follow() {
        true => all.write().map_or_else(|_| schema.into(), Cow::Owned),
        false => schema.into(),
    }
}

/// A schema that is written twice: first to see what it defines and refers to.
struct References<'s> {
    root: &'s str,
    /// What stands in the root, by its path: its members, and the definitions, as `$defs/User`.
    known: Names<'s, &'s str>,
    /// What the schemas further down define, by such a path; [`SEVERAL`] where they differ.
    nested: Names<'s, &'s str>,
    /// What of that is referred to, and stands in the root, too.
    lifted: Names<'s, &'s str>,
    /// Paths as they came, and what becomes of them once that is known: nothing where they lead nowhere.
    found: Names<'s, String>,
    followed: bool,
    /// Something is written otherwise.
    changes: bool,
    /// How many were left out.
    left_out: usize,
    /// How much may still be read to follow paths, and be put into the root.
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

    /// Writes it as far as is known.
    fn write(&mut self) -> Result<String, json::Error> {
        let mut out = Vec::new();
        self.schema(&mut Reader::of(self.root), &mut Writer::new(&mut out), true)?;
        Ok(String::from_utf8(out).unwrap_or_default())
    }

    /// Finds out what becomes of each reference; whether anything changes.
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

    /// Where a path leads, in plain letters.
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

    /// Follows a path to a schema that is no definition, and makes it one.
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

    /// Puts what a schema further down defines into the root, if it is one thing.
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

    /// Writes one schema: an object, or an array of schemas.
    fn schema(
        &mut self,
        reader: &mut Reader<'s>,
        json: &mut Writer<'_>,
        root: bool,
    ) -> Result<(), json::Error> {
        match reader.kind()? {
            ValueKind::Object => {}
            ValueKind::Array => {
                return elements(reader, json, &mut |reader, json| {
                    self.schema(reader, json, false)
                });
            }
            _ => {
                json.raw(reader.skip()?);
                return Ok(());
            }
        }
        reader.begin_object()?;
        json.begin_object();
        while let Some(key) = reader.next_key()? {
            let keyword = key.decode();
            match (holds(&keyword), reader.kind()?) {
                (_, ValueKind::String) if keyword == "$ref" => {
                    match self.reference(reader.string()?) {
                        Some(reference) => drop(json.key("$ref").text(&reference)),
                        None => self.left_out = self.left_out.saturating_add(1),
                    }
                }
                (Holds::Schema, _) => self.held(reader, json, key, &keyword)?,
                // Below.
                _ if root && PLACES.contains(&keyword.as_ref()) => drop(reader.skip()?),
                (Holds::Named, ValueKind::Object) => {
                    let definitions = PLACES.iter().find(|place| **place == keyword);
                    json.key_str(key).begin_object();
                    self.named(reader, json, definitions.copied())?;
                    json.end_object();
                }
                _ => copy_member(reader, json, key)?,
            }
        }
        if root {
            PLACES.iter().try_for_each(|place| self.definitions(place, json))?;
        }
        json.end_object();
        Ok(())
    }

    /// Writes a schema that a keyword holds. A choice or a negation of which a part is left out would say more than it
    /// did.
    fn held(
        &mut self,
        reader: &mut Reader<'s>,
        json: &mut Writer<'_>,
        key: Str<'s>,
        keyword: &str,
    ) -> Result<(), json::Error> {
        let (before, left_out) = (json.out().len(), self.left_out);
        json.key_str(key);
        let from = json.out().len();
        self.schema(reader, json, false)?;
        if self.left_out != left_out && matches!(keyword, "not" | "oneOf") {
            let choice = json.out().split_off(from);
            json.out().truncate(before);
            if keyword == "oneOf" {
                json.key("anyOf").value().out().extend_from_slice(&choice);
            }
        }
        Ok(())
    }

    /// Writes schemas under their names, those of definitions perhaps.
    fn named(
        &mut self,
        reader: &mut Reader<'s>,
        json: &mut Writer<'_>,
        place: Option<&str>,
    ) -> Result<(), json::Error> {
        reader.begin_object()?;
        while let Some(name) = reader.next_key()? {
            if let Some(place) = place.filter(|_| !self.followed) {
                self.changes |= name.is_escaped();
                let schema = reader.clone().skip()?;
                self.nested.update(path_of(place, &name.decode()), |known| {
                    *known = if known.is_empty() || *known == schema { schema } else { SEVERAL };
                });
            }
            json.key_text(&name.decode());
            self.schema(reader, json, false)?;
        }
        Ok(())
    }

    /// Writes what the root defines in one of the places.
    fn definitions(
        &mut self,
        place: &'static str,
        json: &mut Writer<'_>,
    ) -> Result<(), json::Error> {
        let own = self.known.get(place).copied().unwrap_or_default();
        let lifted = self.lifted.iter().filter_map(|(path, schema)| {
            Some((path.strip_prefix(place)?.strip_prefix('/')?.to_owned(), *schema))
        });
        let lifted: Vec<(String, &str)> = lifted.collect();
        if !own.starts_with('{') && lifted.is_empty() {
            return Ok(());
        }
        json.key(place).begin_object();
        for (name, schema) in json::members(own) {
            self.changes |= name.is_escaped();
            json.key_text(&name.decode());
            self.schema(&mut Reader::of(schema), json, false)?;
        }
        for (name, schema) in lifted {
            json.key_text(&name);
            self.schema(&mut Reader::of(schema), json, false)?;
        }
        json.end_object();
        Ok(())
    }

    /// What is written in place of a reference.
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

/// A step of a path as the name that it stands for.
fn decoded(step: &str) -> Cow<'static, str> {
    unescaped(&words::percent_decoded(step)).into_owned().into()
}

/// A step of a path without the escapes of paths: `~1` is a `/`, and `~0` a `~`.
fn unescaped(step: &str) -> Cow<'_, str> {
    let mut parts = step.split('~');
    let mut plain = Cow::Borrowed(parts.next().unwrap_or_default());
    for part in parts {
        plain.to_mut().push(if part.starts_with('1') { '/' } else { '~' });
        plain.to_mut().push_str(part.get(1..).unwrap_or_default());
    }
    plain
}

/// A name with the escapes of a JSON Pointer.
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
