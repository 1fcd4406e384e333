//! Checks the input of a tool call against the tool's JSON Schema; `repair` rewrites one that does not fit.
//!
//! Models forget required fields and invent types; a client that runs such a call answers with an
//! error of its own, or, worse, runs it. The check is an exact subset of JSON Schema: what it
//! rejects, every validator rejects. It knows `type` (one or several), `enum`, `const`, `required`,
//! `properties`, `additionalProperties` (`false` or a schema), `items`, `minItems`, `maxItems`,
//! `minLength`, `maxLength`, `minimum`, `maximum`, `exclusiveMinimum`, `exclusiveMaximum`, `anyOf`,
//! `oneOf`, `allOf` and `$ref` to `#`, `#/$defs/…` and `#/definitions/…`. Every other keyword, and
//! every `$ref` elsewhere, accepts. Beside a `$ref` nothing is checked, since older drafts ignore
//! what stands there. More than one match of `oneOf` is accepted: keywords that are not known here
//! could tell the alternatives apart. `"nullable": true`, of OpenAPI, accepts `null` whatever else is said.
//!
//! Both texts are walked as they are, without a tree. The work is bounded by a [`Budget`]: once that is
//! spent, everything is accepted, so that schemas and inputs that are made to explode cost little.

mod repair;

use std::cmp::Ordering;

pub(crate) use repair::{unquoted, without_id};

use crate::json::{self, Number, Reader, Str, ValueKind};
use crate::text::names::Names;
use crate::text::words;

/// What it costs to apply a schema at all, in bytes.
const STEP_BYTES: usize = 256;

/// Deepest nesting of schemas that are applied, references included.
const DEPTH_MAX: u32 = 128;

/// The bytes that may still be looked at, those of each schema and of each part of an input counted whenever
/// one is applied to the other. One for all checks of a request, and one for all of an answer.
#[derive(Debug)]
pub(crate) struct Budget {
    bytes: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { bytes: 32 << 20 }
    }
}

impl Budget {
    /// Whether there is enough for a step with these texts.
    fn spend(&mut self, schema: &str, input: &str) -> bool {
        let bytes = STEP_BYTES.saturating_add(schema.len()).saturating_add(input.len());
        let rest = self.bytes.checked_sub(bytes);
        self.bytes = rest.unwrap_or_default();
        rest.is_some()
    }
}

/// Whether `input` is a JSON text that fits `schema`. A schema that cannot be read accepts everything.
pub(crate) fn fits(schema: &str, input: &str, budget: &mut Budget) -> bool {
    if !Reader::of(input).is_whole() {
        return false;
    }
    Check { root: schema, budget }.apply(schema, input.trim_ascii(), 0)
}

/// The schema of the property `name` at the top of `schema`.
#[must_use]
pub(crate) fn property<'s>(schema: &'s str, name: &str) -> Option<&'s str> {
    json::member(json::member(schema, "properties")?, name)
}

/// Whether `input` has all fields that `schema` requires, at its top. One that is `null`, where its schema
/// takes none, is not there.
pub(crate) fn has_required(schema: &str, input: &str, budget: &mut Budget) -> bool {
    if !budget.spend(schema, input) {
        return true;
    }
    let Ok(Some(keywords)) = Keywords::read(schema) else { return true };
    let (given, schemas) = (members(input), keywords.properties.map(members).unwrap_or_default());
    let names = elements(keywords.required);
    let mut names = names.filter_map(json::string);
    names.all(|name| {
        let name = name.decode();
        given.get(&name).is_some_and(|value| {
            *value != "null"
                || schemas.get(&name).is_none_or(|null| {
                    Check { root: schema, budget: &mut *budget }.apply(null, value, 0)
                })
        })
    })
}

struct Check<'s, 'b> {
    root: &'s str,
    budget: &'b mut Budget,
}

/// The keywords of one schema, as raw texts.
#[derive(Default)]
struct Keywords<'s> {
    types: Option<&'s str>,
    enumeration: Option<&'s str>,
    constant: Option<&'s str>,
    required: Option<&'s str>,
    properties: Option<&'s str>,
    /// Names of properties are matched by patterns, which are not checked here.
    patterned: bool,
    additional: Option<&'s str>,
    items: Option<&'s str>,
    /// The first elements have schemas of their own.
    prefixed: bool,
    any_of: Option<&'s str>,
    one_of: Option<&'s str>,
    all_of: Option<&'s str>,
    reference: Option<Str<'s>>,
    nullable: bool,
    bounds: Vec<Bound<'s>>,
}

struct Bound<'s> {
    keyword: &'static str,
    limit: &'s str,
}

const BOUNDS: [&str; 8] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
];

impl<'s> Keywords<'s> {
    /// `None` for `true` and everything that is no schema; they accept.
    fn read(schema: &'s str) -> Result<Option<Self>, json::Error> {
        let mut reader = Reader::of(schema);
        if reader.kind()? != ValueKind::Object {
            return Ok(None);
        }
        let mut keywords = Self::default();
        reader.begin_object()?;
        while let Some(key) = reader.next_key()? {
            let value = reader.skip()?;
            let slot = match key.decode().as_ref() {
                "type" => &mut keywords.types,
                "enum" => &mut keywords.enumeration,
                "const" => &mut keywords.constant,
                "required" => &mut keywords.required,
                "properties" => &mut keywords.properties,
                "additionalProperties" => &mut keywords.additional,
                "items" => &mut keywords.items,
                "anyOf" => &mut keywords.any_of,
                "oneOf" => &mut keywords.one_of,
                "allOf" => &mut keywords.all_of,
                "patternProperties" => {
                    keywords.patterned = true;
                    continue;
                }
                "prefixItems" => {
                    keywords.prefixed = true;
                    continue;
                }
                "nullable" => {
                    keywords.nullable = value == "true";
                    continue;
                }
                "$ref" => {
                    keywords.reference = json::string(value);
                    continue;
                }
                other => {
                    let bound = BOUNDS.iter().find(|keyword| **keyword == other);
                    // Draft 4 has booleans for `exclusiveMinimum`.
                    if let (Some(keyword), Ok(limit)) = (bound, Reader::new(value, 1).number()) {
                        keywords.bounds.push(Bound { keyword, limit });
                    }
                    continue;
                }
            };
            *slot = Some(value);
        }
        Ok(Some(keywords))
    }

    /// The schema of all elements. An array of schemas, or `prefixItems` beside, counts from an index that is
    /// not kept here.
    fn of_elements(&self) -> Option<&'s str> {
        self.items.filter(|items| {
            !self.prefixed && kind_of(items).is_ok_and(|kind| kind != ValueKind::Array)
        })
    }
}

impl<'s> Check<'s, '_> {
    fn apply(&mut self, schema: &'s str, input: &str, depth: u32) -> bool {
        if depth > DEPTH_MAX || !self.budget.spend(schema, input) {
            return true;
        }
        if schema.trim_ascii() == "false" {
            return false;
        }
        let (Ok(Some(keywords)), Ok(kind)) = (Keywords::read(schema), kind_of(input)) else {
            return true;
        };
        if keywords.nullable && kind == ValueKind::Null {
            return true;
        }
        let deeper = depth.saturating_add(1);
        if let Some(reference) = keywords.reference {
            return self.target(reference).is_none_or(|target| self.apply(target, input, deeper));
        }
        let fits = fits_type(&keywords, input, kind)
            && self.fits_values(&keywords, input)
            && self.fits_bounds(&keywords, input, kind)
            && match kind {
                ValueKind::Object => self.fits_members(&keywords, input, deeper),
                ValueKind::Array => self.fits_elements(&keywords, input, deeper),
                _ => true,
            };
        fits && elements(keywords.all_of).all(|schema| self.apply(schema, input, deeper))
            && self.fits_any(keywords.any_of, input, deeper)
            && self.fits_any(keywords.one_of, input, deeper)
    }

    fn fits_any(&mut self, alternatives: Option<&'s str>, input: &str, depth: u32) -> bool {
        let mut alternatives = elements(alternatives).peekable();
        alternatives.peek().is_none() || alternatives.any(|schema| self.apply(schema, input, depth))
    }

    /// The schema that a local reference names.
    fn target(&self, reference: Str<'s>) -> Option<&'s str> {
        let reference = reference.decode();
        if reference == "#" {
            return Some(self.root);
        }
        let (section, name) = words::split_once(reference.strip_prefix("#/")?, "/")?;
        if !matches!(section, "$defs" | "definitions") || name.contains(['/', '~', '%']) {
            return None;
        }
        json::member(json::member(self.root, section)?, name)
    }

    fn fits_members(&mut self, keywords: &Keywords<'s>, input: &str, depth: u32) -> bool {
        if keywords.required.or(keywords.properties).or(keywords.additional).is_none() {
            return true;
        }
        let members = members(input);
        let mut required = elements(keywords.required).filter_map(json::string);
        if required.any(|name| !members.contains(&name.decode())) {
            return false;
        }
        let schemas = keywords.properties.map(self::members).unwrap_or_default();
        members.iter().all(|(key, value)| match schemas.get(key) {
            Some(schema) => self.apply(schema, value, depth),
            None if keywords.patterned => true,
            None => keywords.additional.is_none_or(|schema| self.apply(schema, value, depth)),
        })
    }

    fn fits_elements(&mut self, keywords: &Keywords<'s>, input: &str, depth: u32) -> bool {
        keywords.of_elements().is_none_or(|schema| {
            elements(Some(input)).all(|element| self.apply(schema, element, depth))
        })
    }

    fn fits_values(&mut self, keywords: &Keywords<'s>, input: &str) -> bool {
        if keywords.constant.is_some_and(|constant| !self.is_same(constant, input, 0)) {
            return false;
        }
        let Some(values) = keywords.enumeration else { return true };
        kind_of(values) != Ok(ValueKind::Array)
            || elements(Some(values)).any(|value| self.is_same(value, input, 0))
    }

    fn fits_bounds(&mut self, keywords: &Keywords<'_>, input: &str, kind: ValueKind) -> bool {
        keywords.bounds.iter().all(|Bound { keyword, limit }| {
            let counted;
            let value = match (kind, *keyword) {
                (
                    ValueKind::Number,
                    "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum",
                ) => input,
                _ if !self.budget.spend(limit, input) => return true,
                (ValueKind::String, "minLength" | "maxLength") => {
                    let text = Reader::new(input, 1).string();
                    let length = text.map(|text| text.decode().chars().count());
                    counted = length.unwrap_or_default().to_string();
                    &counted
                }
                (ValueKind::Array, "minItems" | "maxItems") => {
                    counted = elements(Some(input)).count().to_string();
                    &counted
                }
                _ => return true,
            };
            let (Some(value), Some(limited)) = (Number::read(value), Number::read(limit)) else {
                return true;
            };
            let order = value.cmp(&limited);
            match *keyword {
                "exclusiveMinimum" => order == Ordering::Greater,
                "exclusiveMaximum" => order == Ordering::Less,
                "minimum" | "minLength" | "minItems" => order != Ordering::Less,
                _ => order != Ordering::Greater,
            }
        })
    }

    /// Equal as JSON: members in any order, strings by what they say, numbers by their value.
    fn is_same(&mut self, left: &str, right: &str, depth: u32) -> bool {
        let (left, right) = (left.trim_ascii(), right.trim_ascii());
        if left == right || depth > DEPTH_MAX || !self.budget.spend(left, right) {
            return true;
        }
        let (Ok(kind), Ok(other)) = (kind_of(left), kind_of(right)) else { return false };
        if kind != other {
            return false;
        }
        let deeper = depth.saturating_add(1);
        match kind {
            ValueKind::String => {
                match (Reader::new(left, 1).string(), Reader::new(right, 1).string()) {
                    (Ok(left), Ok(right)) => left == right,
                    _ => false,
                }
            }
            ValueKind::Number => match (Number::read(left), Number::read(right)) {
                (Some(left), Some(right)) => left == right,
                _ => false,
            },
            ValueKind::Array => {
                elements(Some(left)).count() == elements(Some(right)).count()
                    && elements(Some(left))
                        .zip(elements(Some(right)))
                        .all(|(left, right)| self.is_same(left, right, deeper))
            }
            ValueKind::Object => {
                let (left, right) = (members(left), members(right));
                left.len() == right.len()
                    && left.iter().all(|(name, value)| {
                        right.get(name).is_some_and(|known| self.is_same(value, known, deeper))
                    })
            }
            ValueKind::Bool | ValueKind::Null => false,
        }
    }
}

fn fits_type(keywords: &Keywords<'_>, input: &str, kind: ValueKind) -> bool {
    let Some(types) = keywords.types else { return true };
    let fits = |name: Str<'_>| match name.decode().as_ref() {
        "object" => kind == ValueKind::Object,
        "array" => kind == ValueKind::Array,
        "string" => kind == ValueKind::String,
        "boolean" => kind == ValueKind::Bool,
        "null" => kind == ValueKind::Null,
        "number" => kind == ValueKind::Number,
        "integer" => kind == ValueKind::Number && is_integer(input),
        _ => true,
    };
    match kind_of(types) {
        Ok(ValueKind::String) => json::string(types).is_some_and(fits),
        Ok(ValueKind::Array) => {
            let names = elements(Some(types)).filter_map(json::string);
            let mut names = names.peekable();
            names.peek().is_none() || names.any(fits)
        }
        _ => true,
    }
}

/// `1.0` and `1e2` are integers too.
fn is_integer(number: &str) -> bool {
    Number::read(number).is_some_and(|number| number.is_whole())
}

fn kind_of(text: &str) -> Result<ValueKind, json::Error> {
    Reader::of(text).kind()
}

/// The elements of an array; none for anything else.
fn elements(array: Option<&str>) -> impl Iterator<Item = &str> {
    let mut reader = array.map(Reader::of);
    if let Some(open) = &mut reader
        && open.begin_array().is_err()
    {
        reader = None;
    }
    std::iter::from_fn(move || {
        let reader = reader.as_mut()?;
        match reader.next_element() {
            Ok(true) => reader.skip().ok(),
            _ => None,
        }
    })
}

/// The members of an object; none for anything else. Of several with one name the last one counts,
/// as for most readers of JSON.
fn members(object: &str) -> Names<'_, &str> {
    let mut members = Names::default();
    let mut reader = Reader::of(object);
    if reader.begin_object().is_err() {
        return members;
    }
    while let Ok(Some(key)) = reader.next_key() {
        let Ok(value) = reader.skip() else { break };
        members.insert(key.decode(), value);
    }
    members
}

#[cfg(test)]
mod tests;
