//! Validation of a tool call's input against the tool's JSON Schema. The submodule `repair`
//! rewrites inputs that do not fit, and `mend` decides which of their members can be left out.
//!
//! Models forget required fields and invent types; a client that runs such a call answers with an
//! error of its own, or, worse, runs it. The check is an exact subset of JSON Schema: every input
//! that is rejected here is rejected by every validator. Supported are `type` (one or several),
//! `enum`, `const`, `required`, `properties`, `additionalProperties` (`false` or a schema),
//! `items`, `minItems`, `maxItems`, `minLength`, `maxLength`, `minimum`, `maximum`,
//! `exclusiveMinimum`, `exclusiveMaximum`, `anyOf`, `oneOf`, `allOf` and `$ref` to `#`, `#/$defs/…`
//! and `#/definitions/…`. Every other keyword, and every other `$ref`, accepts all values. Keywords
//! beside a `$ref` are not checked, since older drafts ignore them. More than one match of `oneOf`
//! is accepted, because unsupported keywords might distinguish the branches. OpenAPI's
//! `"nullable": true` accepts `null` regardless of other keywords.
//!
//! Schema and input are read as texts, without building trees. The work is bounded by a
//! [`ValidationBudget`]: once the budget is spent, everything is accepted, so that malicious
//! schemas and inputs cost little.

pub(crate) mod mend;
mod repair;

use std::cmp::Ordering;

pub(crate) use repair::{unquoted, without_id};

use super::kind_of;
use crate::json::{self, Number, Reader, Str, ValueKind};
use crate::text::names::Names;
use crate::text::words;

/// Cost of one validation step, in bytes, in addition to the texts that are read.
const STEP_BYTES: usize = 256;

/// Maximum depth of nested schemas during validation, references included.
const DEPTH_MAX: u32 = 128;

/// Number of bytes that validation may still read, shared by all checks of a request or of an
/// answer. Each step costs the bytes of its schema and of its part of the input.
#[derive(Debug)]
pub(crate) struct ValidationBudget {
    bytes: usize,
}

impl Default for ValidationBudget {
    fn default() -> Self {
        Self { bytes: 32 << 20 }
    }
}

impl ValidationBudget {
    /// Subtracts the bytes of a validation step; returns false if too few are left.
    fn spend(&mut self, schema: &str, input: &str) -> bool {
        let bytes = STEP_BYTES.saturating_add(schema.len()).saturating_add(input.len());
        let rest = self.bytes.checked_sub(bytes);
        self.bytes = rest.unwrap_or_default();
        rest.is_some()
    }

    /// Returns true if the budget is spent, so that no more inputs are checked.
    fn is_spent(&self) -> bool {
        self.bytes == 0
    }
}

/// Returns true if `input` is a JSON text that fits `schema`. A schema that cannot be read accepts
/// everything.
pub(crate) fn fits(schema: &str, input: &str, budget: &mut ValidationBudget) -> bool {
    if !Reader::of(input).is_whole() {
        return false;
    }
    Check::new(schema, budget).apply(schema, input.trim_ascii(), 0)
}

/// Returns the schema of the property `name` at the top level of `schema`.
#[must_use]
pub(crate) fn property<'s>(schema: &'s str, name: &str) -> Option<&'s str> {
    json::member(json::member(schema, "properties")?, name)
}

/// Returns true if `input` has all top-level fields that `schema` requires. A field that is `null`,
/// although its schema does not allow `null`, counts as missing.
pub(crate) fn has_required(schema: &str, input: &str, budget: &mut ValidationBudget) -> bool {
    if !budget.spend(schema, input) {
        return true;
    }
    let Some(keywords) = Keywords::read(schema) else { return true };
    let (given, schemas) = (members(input), members(keywords.properties));
    let mut names = json::elements(keywords.required).filter_map(json::string);
    names.all(|name| {
        let name = name.decode();
        given.get(&name).is_some_and(|value| {
            *value != "null"
                || schemas
                    .get(&name)
                    .is_none_or(|null| Check::new(schema, &mut *budget).apply(null, value, 0))
        })
    })
}

struct Check<'s, 'b> {
    root: &'s str,
    budget: &'b mut ValidationBudget,
    /// True if numbers and lengths are accepted even if they exceed their bounds.
    ignores_bounds: bool,
    /// True if empty texts are checked against `format` and `pattern`, which are otherwise ignored.
    asks_forms: bool,
}

/// Keywords of one schema, as JSON texts. An empty list or object counts as absent.
#[derive(Default)]
struct Keywords<'s> {
    types: Option<&'s str>,
    enumeration: Option<&'s str>,
    constant: Option<&'s str>,
    required: &'s str,
    properties: &'s str,
    /// True if the schema has `patternProperties`, whose patterns are not checked here.
    patterned: bool,
    additional: Option<&'s str>,
    items: Option<&'s str>,
    /// True if the schema has `prefixItems`, so that the first elements have schemas of their own.
    prefixed: bool,
    any_of: &'s str,
    one_of: &'s str,
    all_of: &'s str,
    reference: Option<Str<'s>>,
    nullable: bool,
    bounds: Vec<Bound<'s>>,
    format: Option<Str<'s>>,
    pattern: Option<Str<'s>>,
    /// True if the schema has a keyword such as `if`, `not` or `dependentSchemas`, which is not
    /// evaluated here.
    is_conditional: bool,
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
    /// Reads the keywords of a schema; `None` for `true` and any other value that is not an object.
    /// Such schemas accept everything.
    fn read(schema: &'s str) -> Option<Self> {
        if kind_of(schema) != ValueKind::Object {
            return None;
        }
        let mut keywords = Self::default();
        for (key, value) in json::members(schema) {
            match key.decode().as_ref() {
                "type" => keywords.types = Some(value),
                "enum" => keywords.enumeration = Some(value),
                "const" => keywords.constant = Some(value),
                "required" => keywords.required = value,
                "properties" => keywords.properties = value,
                "additionalProperties" => keywords.additional = Some(value),
                "items" => keywords.items = Some(value),
                "anyOf" => keywords.any_of = value,
                "oneOf" => keywords.one_of = value,
                "allOf" => keywords.all_of = value,
                "patternProperties" => keywords.patterned = true,
                "prefixItems" => keywords.prefixed = true,
                "nullable" => keywords.nullable = value == "true",
                "$ref" => keywords.reference = json::string(value),
                "format" => keywords.format = json::string(value),
                "pattern" => keywords.pattern = json::string(value),
                "if"
                | "not"
                | "dependentRequired"
                | "dependentSchemas"
                | "dependencies"
                | "propertyNames"
                | "unevaluatedProperties"
                | "$dynamicRef" => {
                    keywords.is_conditional = true;
                }
                other => {
                    let bound = BOUNDS.iter().find(|keyword| **keyword == other);
                    // Draft 4 has booleans for `exclusiveMinimum`.
                    if let (Some(keyword), Ok(limit)) = (bound, Reader::new(value, 1).number()) {
                        keywords.bounds.push(Bound { keyword, limit });
                    }
                }
            }
        }
        Some(keywords)
    }

    /// Returns the schema that applies to all elements of an array. `None` if `items` is an array
    /// or stands beside `prefixItems`, since `items` then applies only from some index on.
    fn of_elements(&self) -> Option<&'s str> {
        self.items.filter(|items| !self.prefixed && kind_of(items) != ValueKind::Array)
    }
}

impl<'s, 'b> Check<'s, 'b> {
    fn new(root: &'s str, budget: &'b mut ValidationBudget) -> Self {
        Self { root, budget, ignores_bounds: false, asks_forms: false }
    }

    fn apply(&mut self, schema: &'s str, input: &str, depth: u32) -> bool {
        if depth > DEPTH_MAX || !self.budget.spend(schema, input) {
            return true;
        }
        if schema.trim_ascii() == "false" {
            return false;
        }
        let Some(keywords) = Keywords::read(schema) else { return true };
        let kind = kind_of(input);
        if keywords.nullable && kind == ValueKind::Null {
            return true;
        }
        let deeper = depth.saturating_add(1);
        if let Some(reference) = keywords.reference {
            return self.target(reference).is_none_or(|target| self.apply(target, input, deeper));
        }
        let fits = fits_type(&keywords, input, kind)
            && self.fits_values(&keywords, input)
            && (self.ignores_bounds || self.fits_bounds(&keywords, input, kind))
            && !(self.asks_forms
                && input == "\"\""
                && mend::forms_refuse_empty(keywords.format, keywords.pattern))
            && match kind {
                ValueKind::Object => self.fits_members(&keywords, input, deeper),
                ValueKind::Array => self.fits_elements(&keywords, input, deeper),
                _ => true,
            };
        fits && json::elements(keywords.all_of).all(|schema| self.apply(schema, input, deeper))
            && self.fits_any(keywords.any_of, input, deeper)
            && self.fits_any(keywords.one_of, input, deeper)
    }

    fn fits_any(&mut self, alternatives: &'s str, input: &str, depth: u32) -> bool {
        let mut alternatives = json::elements(alternatives).peekable();
        alternatives.peek().is_none() || alternatives.any(|schema| self.apply(schema, input, depth))
    }

    /// Returns the schema to which a local reference leads.
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
        let Keywords { required, properties, additional, .. } = keywords;
        if required.is_empty() && properties.is_empty() && additional.is_none() {
            return true;
        }
        let members = members(input);
        let mut required = json::elements(required).filter_map(json::string);
        if required.any(|name| !members.contains(&name.decode())) {
            return false;
        }
        let schemas = self::members(properties);
        members.iter().all(|(key, value)| match schemas.get(key) {
            Some(schema) => self.apply(schema, value, depth),
            None if keywords.patterned => true,
            None => additional.is_none_or(|schema| self.apply(schema, value, depth)),
        })
    }

    fn fits_elements(&mut self, keywords: &Keywords<'s>, input: &str, depth: u32) -> bool {
        keywords.of_elements().is_none_or(|schema| {
            json::elements(input).all(|element| self.apply(schema, element, depth))
        })
    }

    fn fits_values(&mut self, keywords: &Keywords<'s>, input: &str) -> bool {
        if keywords.constant.is_some_and(|constant| !self.is_same(constant, input, 0)) {
            return false;
        }
        let Some(values) = keywords.enumeration else { return true };
        kind_of(values) != ValueKind::Array
            || json::elements(values).any(|value| self.is_same(value, input, 0))
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
                    counted = json::elements(input).count().to_string();
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

    /// Returns true if two JSON values are equal: members in any order, strings after unescaping,
    /// numbers by value.
    fn is_same(&mut self, left: &str, right: &str, depth: u32) -> bool {
        let (left, right) = (left.trim_ascii(), right.trim_ascii());
        if left == right || depth > DEPTH_MAX || !self.budget.spend(left, right) {
            return true;
        }
        let kind = kind_of(left);
        if kind != kind_of(right) {
            return false;
        }
        let deeper = depth.saturating_add(1);
        match kind {
            ValueKind::String => json::string(left) == json::string(right),
            ValueKind::Number => {
                Number::read(left).is_some_and(|left| Number::read(right) == Some(left))
            }
            ValueKind::Array => {
                let (lefts, rights) = (|| json::elements(left), || json::elements(right));
                lefts().count() == rights().count()
                    && lefts().zip(rights()).all(|(left, right)| self.is_same(left, right, deeper))
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
        ValueKind::String => json::string(types).is_some_and(fits),
        ValueKind::Array => {
            let mut names = json::elements(types).filter_map(json::string).peekable();
            names.peek().is_none() || names.any(fits)
        }
        _ => true,
    }
}

/// Returns true if a number is an integer; `1.0` and `1e2` are integers too.
fn is_integer(number: &str) -> bool {
    Number::read(number).is_some_and(|number| number.is_whole())
}

/// Returns the members of an object by name; empty for any other value. If a name repeats, the last
/// member counts, as in most JSON parsers.
fn members(object: &str) -> Names<'_, &str> {
    let mut members = Names::default();
    for (key, value) in json::members(object) {
        members.insert(key.decode(), value);
    }
    members
}

#[cfg(test)]
mod tests;
