//! Checks the input of a tool call against the tool's JSON Schema.
//!
//! Models forget required fields and invent types; a client that runs such a call answers with an
//! error of its own, or, worse, runs it. The check is an exact subset of JSON Schema: what it
//! rejects, every validator rejects. It knows `type` (one or several), `enum`, `const`, `required`,
//! `properties`, `additionalProperties` (`false` or a schema), `items`, `minItems`, `maxItems`,
//! `minLength`, `maxLength`, `minimum`, `maximum`, `exclusiveMinimum`, `exclusiveMaximum`, `anyOf`,
//! `oneOf`, `allOf` and `$ref` to `#`, `#/$defs/…` and `#/definitions/…`. Every other keyword, and
//! every `$ref` elsewhere, accepts. Beside a `$ref` nothing is checked, since older drafts ignore
//! what stands there. More than one match of `oneOf` is accepted: keywords that are not known here
//! could tell the alternatives apart.
//!
//! Both texts are walked as they are, without a tree. The work is bounded: once [`WORK_BYTES_MAX`]
//! are spent, the rest is accepted, so that a schema made to explode costs little.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

use crate::json::{self, Kind, Number, Reader, Str};
use crate::names::Names;

/// Most bytes that are looked at in one check, those of each schema and of each part of the input
/// counted whenever one is applied to the other.
const WORK_BYTES_MAX: usize = 32 << 20;

/// What it costs to apply a schema at all, counted in the same bytes.
const STEP_BYTES: usize = 256;

/// Deepest nesting of schemas that are applied, references included.
const DEPTH_MAX: u32 = 128;

/// Why an input does not fit, for the first place found where it does not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Violation {
    /// Where in the input: `items[0].name`; empty for the input itself.
    pub path: String,
    /// What was expected there: `expected a string, but found a number`. It says nothing of the
    /// input's values.
    pub reason: String,
    /// The required fields that are missing there.
    pub missing: Vec<String>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.reason)
    }
}

impl std::error::Error for Violation {}

/// Whether `input`, a JSON text, fits `schema`. A schema that cannot be read accepts everything.
///
/// # Errors
/// It does not fit, or is not JSON.
pub fn check(schema: &str, input: &str) -> Result<(), Violation> {
    let mut reader = Reader::new(input, DEPTH_MAX);
    if let Err(error) = reader.skip().and_then(|_| reader.end()) {
        return Err(Violation::because(format!("not valid JSON: {}", error.reason())));
    }
    let mut check = Check { root: schema, work_bytes: 0 };
    check.apply(schema, input.trim_ascii(), 0)
}

impl Violation {
    fn because(reason: String) -> Self {
        Self { reason, ..Self::default() }
    }

    fn inside(mut self, step: &str) -> Self {
        let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("{step}{dot}{}", self.path);
        self
    }
}

struct Check<'s> {
    root: &'s str,
    work_bytes: usize,
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
        let mut reader = Reader::new(schema, DEPTH_MAX);
        if reader.kind()? != Kind::Object {
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
                "$ref" => {
                    keywords.reference = Reader::new(value, 1).string().ok();
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
}

impl<'s> Check<'s> {
    fn apply(&mut self, schema: &'s str, input: &str, depth: u32) -> Result<(), Violation> {
        self.work_bytes = [STEP_BYTES, schema.len(), input.len()]
            .into_iter()
            .fold(self.work_bytes, usize::saturating_add);
        if self.work_bytes > WORK_BYTES_MAX || depth > DEPTH_MAX {
            return Ok(());
        }
        if schema.trim_ascii() == "false" {
            return Err(Violation::because("no value is allowed here".to_owned()));
        }
        let (Ok(Some(keywords)), Ok(kind)) = (Keywords::read(schema), kind_of(input)) else {
            return Ok(());
        };
        let deeper = depth.saturating_add(1);
        if let Some(reference) = keywords.reference {
            return self
                .target(reference)
                .map_or(Ok(()), |target| self.apply(target, input, deeper));
        }
        check_type(&keywords, input, kind)?;
        check_values(&keywords, input)?;
        check_bounds(&keywords, input, kind)?;
        match kind {
            Kind::Object => self.members(&keywords, input, deeper)?,
            Kind::Array => self.elements(&keywords, input, deeper)?,
            _ => {}
        }
        for schema in elements(keywords.all_of) {
            self.apply(schema, input, deeper)?;
        }
        self.alternatives(keywords.any_of, input, deeper)?;
        self.alternatives(keywords.one_of, input, deeper)
    }

    fn alternatives(
        &mut self,
        alternatives: Option<&'s str>,
        input: &str,
        depth: u32,
    ) -> Result<(), Violation> {
        let mut found = None;
        let mut tried = 0u32;
        for schema in elements(alternatives) {
            tried = tried.saturating_add(1);
            match self.apply(schema, input, depth) {
                Ok(()) => return Ok(()),
                Err(violation) => found = Some(violation),
            }
        }
        match found {
            None => Ok(()),
            Some(only) if tried == 1 => Err(only),
            Some(_) => Err(Violation::because(format!("fits none of {tried} alternatives"))),
        }
    }

    /// The schema that a local reference names.
    fn target(&self, reference: Str<'s>) -> Option<&'s str> {
        let reference = reference.decode();
        if reference == "#" {
            return Some(self.root);
        }
        let (section, name) = reference.strip_prefix("#/")?.split_once('/')?;
        if !matches!(section, "$defs" | "definitions") || name.contains(['/', '~', '%']) {
            return None;
        }
        json::member(json::member(self.root, section)?, name)
    }

    fn members(
        &mut self,
        keywords: &Keywords<'s>,
        input: &str,
        depth: u32,
    ) -> Result<(), Violation> {
        if keywords.required.or(keywords.properties).or(keywords.additional).is_none() {
            return Ok(());
        }
        let members = members(input);
        let missing: Vec<String> = elements(keywords.required)
            .filter_map(|name| Reader::new(name, 1).string().ok())
            .map(|name| name.decode())
            .filter(|name| !members.contains(name))
            .map(Cow::into_owned)
            .collect();
        if !missing.is_empty() {
            let names: Vec<String> = missing.iter().map(|name| format!("`{name}`")).collect();
            let reason = format!("missing required fields: {}", names.join(", "));
            return Err(Violation { missing, reason, ..Violation::default() });
        }
        let schemas = keywords.properties.map(self::members).unwrap_or_default();
        for (key, value) in members.iter() {
            let schema = match schemas.get(key) {
                Some(schema) => *schema,
                None if keywords.patterned => continue,
                None => match keywords.additional.map(str::trim_ascii) {
                    Some("false") => {
                        return Err(Violation::because(format!("unknown field `{key}`")));
                    }
                    Some(schema) => schema,
                    None => continue,
                },
            };
            self.apply(schema, value, depth).map_err(|violation| violation.inside(key))?;
        }
        Ok(())
    }

    fn elements(
        &mut self,
        keywords: &Keywords<'s>,
        input: &str,
        depth: u32,
    ) -> Result<(), Violation> {
        // An array of schemas, or `prefixItems` beside, counts from an index that is not kept here.
        let Some(schema) = keywords.items.filter(|items| {
            !keywords.prefixed && kind_of(items).is_ok_and(|kind| kind != Kind::Array)
        }) else {
            return Ok(());
        };
        for (index, element) in elements(Some(input)).enumerate() {
            self.apply(schema, element, depth)
                .map_err(|violation| violation.inside(&format!("[{index}]")))?;
        }
        Ok(())
    }
}

fn check_type(keywords: &Keywords<'_>, input: &str, kind: Kind) -> Result<(), Violation> {
    let Some(types) = keywords.types else { return Ok(()) };
    let fits = |name: Str<'_>| match name.decode().as_ref() {
        "object" => kind == Kind::Object,
        "array" => kind == Kind::Array,
        "string" => kind == Kind::String,
        "boolean" => kind == Kind::Bool,
        "null" => kind == Kind::Null,
        "number" => kind == Kind::Number,
        "integer" => kind == Kind::Number && is_integer(input),
        _ => true,
    };
    let names: Vec<Str<'_>> = match kind_of(types) {
        Ok(Kind::String) => Reader::new(types, 1).string().into_iter().collect(),
        Ok(Kind::Array) => {
            elements(Some(types)).filter_map(|name| Reader::new(name, 1).string().ok()).collect()
        }
        _ => return Ok(()),
    };
    if names.is_empty() || names.iter().any(|name| fits(*name)) {
        return Ok(());
    }
    let names: Vec<Cow<'_, str>> = names.iter().map(Str::decode).collect();
    Err(Violation::because(format!("expected {}, but found {}", names.join(" or "), kind.name())))
}

fn check_values(keywords: &Keywords<'_>, input: &str) -> Result<(), Violation> {
    if let Some(constant) = keywords.constant
        && !same_value(constant, input, 0)
    {
        return Err(Violation::because("is not the one value that is allowed".to_owned()));
    }
    let Some(values) = keywords.enumeration else { return Ok(()) };
    if kind_of(values) != Ok(Kind::Array)
        || elements(Some(values)).any(|value| same_value(value, input, 0))
    {
        return Ok(());
    }
    let allowed = if values.len() <= 200 { values } else { "the values that are allowed" };
    Err(Violation::because(format!("is none of {allowed}")))
}

fn check_bounds(keywords: &Keywords<'_>, input: &str, kind: Kind) -> Result<(), Violation> {
    if keywords.bounds.is_empty() {
        return Ok(());
    }
    for Bound { keyword, limit } in &keywords.bounds {
        let counted;
        let value = match (kind, *keyword) {
            (Kind::Number, "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum") => {
                input
            }
            (Kind::String, "minLength" | "maxLength") => {
                let length =
                    Reader::new(input, 1).string().map(|text| text.decode().chars().count());
                counted = length.unwrap_or_default().to_string();
                &counted
            }
            (Kind::Array, "minItems" | "maxItems") => {
                counted = elements(Some(input)).count().to_string();
                &counted
            }
            _ => continue,
        };
        let (Some(value), Some(limited)) = (Number::read(value), Number::read(limit)) else {
            continue;
        };
        let order = value.cmp(&limited);
        let fits = match *keyword {
            "exclusiveMinimum" => order == Ordering::Greater,
            "exclusiveMaximum" => order == Ordering::Less,
            "minimum" | "minLength" | "minItems" => order != Ordering::Less,
            _ => order != Ordering::Greater,
        };
        if !fits {
            return Err(Violation::because(format!("does not keep to {keyword} {limit}")));
        }
    }
    Ok(())
}

/// `1.0` and `1e2` are integers too.
fn is_integer(number: &str) -> bool {
    Number::read(number).is_some_and(|number| number.is_whole())
}

/// Equal as JSON: members in any order, strings by what they say, numbers by their value.
fn same_value(left: &str, right: &str, depth: u32) -> bool {
    let (left, right) = (left.trim_ascii(), right.trim_ascii());
    if left == right || depth > DEPTH_MAX {
        return true;
    }
    let (Ok(kind), Ok(other)) = (kind_of(left), kind_of(right)) else { return false };
    if kind != other {
        return false;
    }
    let deeper = depth.saturating_add(1);
    match kind {
        Kind::String => match (Reader::new(left, 1).string(), Reader::new(right, 1).string()) {
            (Ok(left), Ok(right)) => left == right,
            _ => false,
        },
        Kind::Number => match (Number::read(left), Number::read(right)) {
            (Some(left), Some(right)) => left == right,
            _ => false,
        },
        Kind::Array => {
            elements(Some(left)).count() == elements(Some(right)).count()
                && elements(Some(left))
                    .zip(elements(Some(right)))
                    .all(|(left, right)| same_value(left, right, deeper))
        }
        Kind::Object => {
            let (left, right) = (members(left), members(right));
            left.len() == right.len()
                && left.iter().all(|(name, value)| {
                    right.get(name).is_some_and(|known| same_value(value, known, deeper))
                })
        }
        Kind::Bool | Kind::Null => false,
    }
}

fn kind_of(text: &str) -> Result<Kind, json::Error> {
    Reader::new(text, DEPTH_MAX).kind()
}

/// The elements of an array; none for anything else.
fn elements(array: Option<&str>) -> impl Iterator<Item = &str> {
    let mut reader = array.map(|text| Reader::new(text, DEPTH_MAX));
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
    let mut reader = Reader::new(object, DEPTH_MAX);
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
