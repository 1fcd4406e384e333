//! Repair of tool call inputs. Removes an `id` that a model added, and unquotes values that a model
//! wrote as strings of JSON (`"[1]"` for an array).

use super::{Check, DEPTH_MAX, Keywords, ValidationBudget, fits_type, kind_of, members, property};
use crate::json::{self, Reader, Str, ValueKind, Writer};

/// Returns `input` without each member `id` that `is_echo` recognizes as the id of a call. `None`
/// if no member is removed, or if the schema has a property `id`.
pub(crate) fn without_id(
    input: &str,
    schema: Option<&str>,
    is_echo: &dyn Fn(Str<'_>) -> bool,
) -> Option<String> {
    if schema.is_some_and(|schema| property(schema, "id").is_some()) {
        return None;
    }
    changed(input, &mut |key, value| {
        let echoes = key == "id" && json::string(value).is_some_and(is_echo);
        if echoes { MemberChange::LeftOut } else { MemberChange::Nothing }
    })
}

/// Change of one member of an object in a repaired input.
enum MemberChange {
    Nothing,
    LeftOut,
    Value(String),
}

/// Returns `object` with its members changed by `change`; `None` if no member is changed.
fn changed(object: &str, change: &mut dyn FnMut(Str<'_>, &str) -> MemberChange) -> Option<String> {
    let mut found = false;
    let mut out = Vec::with_capacity(object.len());
    let mut json = Writer::new(&mut out);
    if !Reader::of(object).is_object() {
        return None;
    }
    json.begin_object();
    for (key, value) in json::members(object) {
        let change = change(key, value);
        found |= !matches!(change, MemberChange::Nothing);
        let value = match &change {
            MemberChange::Nothing => value,
            MemberChange::LeftOut => continue,
            MemberChange::Value(other) => other,
        };
        json.key_str(key).raw(value);
    }
    json.end_object();
    found.then(|| String::from_utf8(out).ok()).flatten()
}

/// Returns `input` with strings replaced by the JSON that they contain, if only that JSON fits the
/// schema. `None` if there is no such string.
pub(crate) fn unquoted(schema: &str, input: &str, budget: &mut ValidationBudget) -> Option<String> {
    Check::new(schema, budget).unquoted(schema, input.trim_ascii(), 0)
}

impl<'s> Check<'s, '_> {
    fn unquoted(&mut self, schema: &'s str, input: &str, depth: u32) -> Option<String> {
        if depth > DEPTH_MAX || !self.budget.spend(schema, input) {
            return None;
        }
        let keywords = Keywords::read(schema)?;
        let deeper = depth.saturating_add(1);
        if let Some(reference) = keywords.reference {
            let target = self.target(reference)?;
            return self.unquoted(target, input, deeper);
        }
        match kind_of(input) {
            ValueKind::String => self.of_text(schema, input, deeper),
            ValueKind::Object => self.of_members(&keywords, input, deeper),
            ValueKind::Array => self.of_elements(&keywords, input, deeper),
            _ => None,
        }
    }

    fn of_text(&mut self, schema: &'s str, input: &str, depth: u32) -> Option<String> {
        if self.apply(schema, input, depth) || self.takes_kind(schema, "\"\"", depth) {
            return None;
        }
        let text = json::string(input)?.decode();
        let mut reader = Reader::of(&text);
        let json = reader.skip().ok()?;
        reader.end().ok()?;
        // The unquoted JSON may contain further quoted values.
        let json = self.unquoted(schema, json, depth).unwrap_or_else(|| json.to_owned());
        self.apply(schema, &json, depth).then_some(json)
    }

    /// Returns true if a schema allows some values of the kind (string, number, …) of `sample`, or
    /// does not restrict the kind.
    pub(super) fn takes_kind(&mut self, schema: &'s str, sample: &str, depth: u32) -> bool {
        if depth > DEPTH_MAX || !self.budget.spend(schema, "") {
            return true;
        }
        let Some(keywords) = Keywords::read(schema) else { return true };
        let deeper = depth.saturating_add(1);
        if let Some(reference) = keywords.reference {
            let target = self.target(reference);
            return target.is_none_or(|target| self.takes_kind(target, sample, deeper));
        }
        if keywords.types.is_some() {
            return fits_type(&keywords, sample, kind_of(sample));
        }
        let lists = [keywords.any_of, keywords.one_of];
        let list = lists.into_iter().find(|list| !list.is_empty()).unwrap_or_default();
        let mut alternatives = json::elements(list).peekable();
        alternatives.peek().is_none()
            || alternatives.any(|schema| self.takes_kind(schema, sample, deeper))
    }

    fn of_members(&mut self, keywords: &Keywords<'s>, input: &str, depth: u32) -> Option<String> {
        let schemas = members(keywords.properties);
        changed(input, &mut |key, value| {
            let schema = schemas.get(&key.decode());
            let unquoted = schema.and_then(|schema| self.unquoted(schema, value, depth));
            unquoted.map_or(MemberChange::Nothing, MemberChange::Value)
        })
    }

    fn of_elements(&mut self, keywords: &Keywords<'s>, input: &str, depth: u32) -> Option<String> {
        let schema = keywords.of_elements()?;
        let mut found = false;
        let mut out = Vec::with_capacity(input.len());
        let mut json = Writer::new(&mut out);
        json.begin_array();
        for value in json::elements(input) {
            let unquoted = self.unquoted(schema, value, depth);
            found |= unquoted.is_some();
            json.raw(unquoted.as_deref().unwrap_or(value));
        }
        json.end_array();
        found.then(|| String::from_utf8(out).ok()).flatten()
    }
}

#[cfg(test)]
mod tests;
