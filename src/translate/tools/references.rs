//! References of a schema, each as all dialects and servers read it.
//!
//! | the client's `$ref` | what is written |
//! |---|---|
//! | leads nowhere: a converter left the definitions out | left out: servers refuse the whole request for it |
//! | to a definition in a schema further down (schemars), or at another place (OpenAPI) | to the one of that name in the root, where it is put |
//! | with escapes, as PHP writes `/`, or with percent signs | plainly |
//!
//! References that are no path from the root stay as they are. The client looks at inputs itself.

use std::borrow::Cow;

use super::schema::{Holds, copy_member, holds};
use crate::json::{self, Kind, Reader, Str, Writer};
use crate::names::Names;
use crate::words;

/// So many times the bytes of the whole schema are read to follow paths that lead through more than definitions; what
/// they lead to then is not asked.
const TIMES_MAX: usize = 16;

/// The places of definitions.
const PLACES: [&str; 2] = ["$defs", "definitions"];

/// The schema with such references.
pub(crate) fn plain(schema: &str) -> Cow<'_, str> {
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
    /// What it defines, by its path, as `$defs/User`.
    defined: Names<'s, &'s str>,
    /// What the schemas further down define, by its name.
    nested: Names<'s, &'s str>,
    /// What of that is referred to, and stands in the root.
    lifted: Names<'s, &'s str>,
    /// References as they came, and what becomes of them once that is known: nothing where they lead nowhere.
    found: Names<'s, String>,
    followed: bool,
    /// Something is written otherwise.
    changes: bool,
    /// How much may still be read to follow paths.
    room: usize,
}

impl<'s> References<'s> {
    fn of(root: &'s str) -> Self {
        let mut defined = Names::default();
        for place in PLACES {
            let definitions = json::member(root, place).unwrap_or_default();
            for (name, schema) in json::members(definitions) {
                defined.insert(path_of(place, &name.decode()), schema);
            }
        }
        Self {
            root,
            defined,
            nested: Names::default(),
            lifted: Names::default(),
            found: Names::default(),
            followed: false,
            changes: false,
            room: root.len().saturating_mul(TIMES_MAX),
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

    /// Where a reference leads, in plain letters.
    fn lead(&mut self, reference: &str) -> Option<String> {
        let Some(path) = words::after_start(reference, "#/") else {
            return Some(reference.to_owned());
        };
        let decoded = words::percent_decoded(path);
        let name = words::rsplit_once(&decoded, b'/').map_or(&*decoded, |(_, name)| name);
        let others = PLACES.map(|place| path_of(place, name));
        for path in [path, &decoded].into_iter().chain(others.iter().map(String::as_str)) {
            if self.leads(path) {
                return Some(path_of("#", path));
            }
        }
        let name = unescaped(name);
        let schema = *self.nested.get(&name)?;
        self.lifted.insert(name.into_owned(), schema);
        self.changes = true;
        others.first().map(|path| path_of("#", path))
    }

    /// Whether a path leads to anything.
    fn leads(&mut self, path: &str) -> bool {
        let mut steps = path.split('/');
        let mut at = self.root;
        if let (Some(place), Some(name)) = (steps.next(), steps.next()) {
            match self.defined.get(&path_of(place, &unescaped(name))) {
                Some(schema) => at = schema,
                None if PLACES.contains(&place) => return false,
                None => steps = path.split('/'),
            }
        } else {
            steps = path.split('/');
        }
        for step in steps {
            let Some(room) = self.room.checked_sub(at.len()) else { return true };
            self.room = room;
            let next = match at.starts_with('[') {
                true => step.parse().ok().and_then(|step| json::elements(at).nth(step)),
                false => json::member(at, &unescaped(step)),
            };
            let Some(next) = next else { return false };
            at = next;
        }
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
            Kind::Object => {}
            Kind::Array => {
                reader.begin_array()?;
                json.begin_array();
                while reader.next_element()? {
                    self.schema(reader, json, false)?;
                }
                json.end_array();
                return Ok(());
            }
            _ => {
                json.raw(reader.skip()?);
                return Ok(());
            }
        }
        let mut lifts = root;
        reader.begin_object()?;
        json.begin_object();
        while let Some(key) = reader.next_key()? {
            let keyword = key.decode();
            match (holds(&keyword), reader.kind()?) {
                (_, Kind::String) if keyword == "$ref" => {
                    let reference = self.reference(reader.string()?);
                    if !reference.is_empty() {
                        json.key("$ref").text(&reference);
                    }
                }
                (Holds::Schema, _) => {
                    json.key_str(key);
                    self.schema(reader, json, false)?;
                }
                (Holds::Named, Kind::Object) => {
                    json.key_str(key).begin_object();
                    self.named(reader, json, PLACES.contains(&keyword.as_ref()), root)?;
                    if keyword == "$defs" && std::mem::take(&mut lifts) {
                        self.lift(json)?;
                    }
                    json.end_object();
                }
                _ => copy_member(reader, json, key)?,
            }
        }
        if lifts && !self.lifted.is_empty() {
            json.key("$defs").begin_object();
            self.lift(json)?;
            json.end_object();
        }
        json.end_object();
        Ok(())
    }

    /// Writes schemas under their names. `defines`: those of definitions.
    fn named(
        &mut self,
        reader: &mut Reader<'s>,
        json: &mut Writer<'_>,
        defines: bool,
        root: bool,
    ) -> Result<(), json::Error> {
        reader.begin_object()?;
        while let Some(name) = reader.next_key()? {
            if !defines {
                json.key_str(name);
                self.schema(reader, json, false)?;
                continue;
            }
            self.changes |= name.is_escaped();
            if !root {
                if self.lifted.contains(&name.decode()) {
                    reader.skip()?;
                    continue;
                }
                let schema = reader.clone().skip()?;
                self.nested.get_or_insert_with(name.decode(), |_| schema);
            }
            json.key_text(&name.decode());
            self.schema(reader, json, false)?;
        }
        Ok(())
    }

    /// Writes the definitions that stand in the root from now on.
    fn lift(&mut self, json: &mut Writer<'_>) -> Result<(), json::Error> {
        let lifted: Vec<(String, &str)> =
            self.lifted.iter().map(|(name, schema)| (name.to_owned(), *schema)).collect();
        for (name, schema) in lifted {
            json.key_text(&name);
            self.schema(&mut Reader::of(schema), json, false)?;
        }
        Ok(())
    }

    /// What is written in place of a reference.
    fn reference(&mut self, reference: Str<'s>) -> Cow<'s, str> {
        let text = reference.decode();
        if self.followed {
            return self.found.get(&text).cloned().unwrap_or_default().into();
        }
        self.changes |= reference.is_escaped();
        self.found.insert(text.clone(), String::new());
        text
    }
}

fn path_of(place: &str, name: &str) -> String {
    [place, "/", name].concat()
}

/// A step of a path, without the escapes of paths: `~1` is a `/`, and `~0` a `~`.
fn unescaped(step: &str) -> Cow<'_, str> {
    let mut parts = step.split('~');
    let mut plain = Cow::Borrowed(parts.next().unwrap_or_default());
    for part in parts {
        plain.to_mut().push(if part.starts_with('1') { '/' } else { '~' });
        plain.to_mut().push_str(part.get(1..).unwrap_or_default());
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_lead_somewhere_or_are_left_out() {
        for (schema, expected) in [
            // No definitions, as converters leave them behind.
            (r##"{"properties":{"u":{"$ref":"#/$defs/User"}}}"##, r#"{"properties":{"u":{}}}"#),
            (
                r##"{"properties":{"u":{"$ref":"#/components/schemas/User","title":"U"}}}"##,
                r#"{"properties":{"u":{"title":"U"}}}"#,
            ),
            (
                r##"{"$ref":"#/properties/a/items","properties":{"a":{}}}"##,
                r#"{"properties":{"a":{}}}"#,
            ),
            // Further down, and from there further down.
            (
                r##"{"items":{"$ref":"#/$defs/F","$defs":{"F":{"not":{"$ref":"#/$defs/G"},"$defs":{"G":{"type":"null"}}}}}}"##,
                r##"{"items":{"$ref":"#/$defs/F","$defs":{}},"$defs":{"F":{"not":{"$ref":"#/$defs/G"},"$defs":{}},"G":{"type":"null"}}}"##,
            ),
            (
                r##"{"$defs":{"A":{}},"items":{"$ref":"#/definitions/F","definitions":{"F":{"type":"null"}}}}"##,
                r##"{"$defs":{"A":{},"F":{"type":"null"}},"items":{"$ref":"#/$defs/F","definitions":{}}}"##,
            ),
            // At another place of the root.
            (
                r##"{"items":{"$ref":"#/components/schemas/F"},"definitions":{"F":{}}}"##,
                r##"{"items":{"$ref":"#/definitions/F"},"definitions":{"F":{}}}"##,
            ),
            // Spelt otherwise.
            (
                r##"{"items":{"$ref":"#\/$defs\/F"},"$defs":{"F":{}}}"##,
                r##"{"items":{"$ref":"#/$defs/F"},"$defs":{"F":{}}}"##,
            ),
            (
                r##"{"items":{"$ref":"#/definitions/R%3Cx%3E"},"definitions":{"R<x>":{}}}"##,
                r##"{"items":{"$ref":"#/definitions/R<x>"},"definitions":{"R<x>":{}}}"##,
            ),
            (
                r##"{"items":{"$ref":"#/$defs/R<x>"},"$defs":{"R\u003cx\u003e":{}}}"##,
                r##"{"items":{"$ref":"#/$defs/R<x>"},"$defs":{"R<x>":{}}}"##,
            ),
        ] {
            assert_eq!(plain(schema), expected);
        }
    }

    #[test]
    fn what_leads_somewhere_stays_byte_for_byte() {
        for schema in [
            r##"{ "$ref":"#/$defs/A", "$defs":{"A":{"$ref":"#"}} }"##,
            r##"{"items":{"$ref":"#/$defs/a~1b~0"},"$defs":{"a/b~":{}}}"##,
            r##"{"items":{"$ref":"#/$defs/A/anyOf/1"},"$defs":{"A":{"anyOf":[{},{}]}}}"##,
            r##"{"properties":{"a":{"items":{}},"b":{"$ref":"#/properties/a/items"}}}"##,
            // They are no paths, or no references.
            r##"{"items":{"$ref":"User"},"not":{"$ref":"#user"}}"##,
            r##"{"properties":{"$ref":{"type":"string"}},"default":{"$ref":"#/$defs/A"}}"##,
            r##"{"$ref":null}"##,
        ] {
            let written = plain(schema);
            assert!(matches!(written, Cow::Borrowed(_)), "{written}");
        }
    }

    #[test]
    fn many_long_paths_are_followed_in_time() {
        let names = 0..2000;
        let properties: Vec<String> = names
            .map(|name| {
                format!(
                    r##""p{name}":{{"items":{{"$ref":"#/properties/p{name}/not"}},"not":{{}}}}"##
                )
            })
            .collect();
        let schema = format!(r#"{{"properties":{{{}}}}}"#, properties.join(","));
        let start = std::time::Instant::now();
        assert!(matches!(plain(&schema), Cow::Borrowed(_)));
        assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
    }
}
