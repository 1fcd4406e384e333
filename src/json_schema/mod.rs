//! Keywords of JSON Schema with the values that they allow, and detection of faults in clients'
//! schemas that servers refuse. Faults are detected while a request is read, because reading all of
//! its schemas again would be slow.

pub(crate) mod input;

use crate::json::{self, Error, Raw, Reader, Str, ValueKind, Writer};
use crate::text::names::NameSet;

/// Findings about one schema: completeness and faults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// True if the root of the schema has everything that a function's schema needs, and nothing
    /// that servers refuse in a root.
    pub is_complete: bool,
    /// True if the schema has a construct that some upstream refuses: an array without `items`, a
    /// boolean in place of a schema, a pattern.
    pub is_refused: bool,
    /// True if the schema has a construct that no draft of JSON Schema allows, or a subschema that
    /// allows no value.
    pub is_faulty: bool,
}

/// Type of the value that a keyword must have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeywordValue {
    /// Any value, including `null`.
    Data,
    /// Any value except `null`.
    Given,
    Text,
    Number,
    /// Number that is not negative.
    Count,
    Flag,
    /// Name of a type, or list of such names.
    Types,
    /// List of distinct names.
    Names,
    /// List that is not empty, with values of any kind.
    Values,
    Schema,
    /// List of schemas that is not empty.
    Branches,
    /// Schema, or a list of schemas (allowed before draft 2020-12).
    Items,
    /// Object whose members are schemas, under names that the client chose.
    Named,
}

pub(crate) fn keyword_value(keyword: &str) -> KeywordValue {
    match keyword {
        "type" => KeywordValue::Types,
        "description" | "title" | "format" | "pattern" | "$ref" | "$id" | "$schema"
        | "$comment" | "$anchor" | "contentMediaType" | "contentEncoding" => KeywordValue::Text,
        "properties" | PATTERN_PROPERTIES | "$defs" | "definitions" | "dependentSchemas" => {
            KeywordValue::Named
        }
        "required" => KeywordValue::Names,
        "enum" => KeywordValue::Values,
        "items" => KeywordValue::Items,
        "anyOf" | "oneOf" | "allOf" | "prefixItems" => KeywordValue::Branches,
        "additionalProperties"
        | "additionalItems"
        | "unevaluatedItems"
        | "unevaluatedProperties"
        | "contains"
        | "propertyNames"
        | "not"
        | "if"
        | "then"
        | "else" => KeywordValue::Schema,
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties"
        | "minContains" | "maxContains" => KeywordValue::Count,
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => {
            KeywordValue::Number
        }
        "uniqueItems" => KeywordValue::Flag,
        "const" | "default" | "example" | "examples" => KeywordValue::Data,
        _ => KeywordValue::Given,
    }
}

impl KeywordValue {
    /// Returns true if a value has the type that the keyword requires. The names, types and schemas
    /// in a list are not checked.
    pub(crate) fn takes(self, value: &str) -> bool {
        let kind = kind_of(value);
        match self {
            Self::Data => true,
            Self::Given => kind != ValueKind::Null,
            Self::Text => kind == ValueKind::String,
            Self::Number => kind == ValueKind::Number,
            Self::Count => kind == ValueKind::Number && !value.starts_with('-'),
            Self::Flag => kind == ValueKind::Bool,
            Self::Named => kind == ValueKind::Object,
            Self::Schema => matches!(kind, ValueKind::Object | ValueKind::Bool),
            Self::Items if kind != ValueKind::Array => Self::Schema.takes(value),
            Self::Types if kind == ValueKind::String => true,
            Self::Types | Self::Names => kind == ValueKind::Array,
            Self::Values | Self::Branches | Self::Items => json::elements(value).next().is_some(),
        }
    }
}

/// Returns the JSON text that the function `write` writes.
pub(crate) fn written(write: impl FnOnce(&mut Writer<'_>)) -> String {
    let mut out = Vec::new();
    write(&mut Writer::new(&mut out));
    String::from_utf8(out).unwrap_or_default()
}

/// Returns the kind (object, string, …) of a JSON value that was parsed before.
pub(crate) fn kind_of(value: &str) -> ValueKind {
    Reader::of(value).kind().unwrap_or(ValueKind::Null)
}

/// Kind of parts that a keyword's value consists of: schemas or plain data.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holds {
    /// Plain data, without schemas.
    Data,
    /// Schema, or an array of schemas.
    Schema,
    /// Object whose members are schemas, under names that the client chose.
    Named,
}

pub(crate) fn holds(keyword: &str) -> Holds {
    match keyword_value(keyword) {
        KeywordValue::Schema | KeywordValue::Branches | KeywordValue::Items => Holds::Schema,
        KeywordValue::Named => Holds::Named,
        _ => Holds::Data,
    }
}

/// Names of the types in JSON Schema.
pub(crate) const TYPES: [&str; 7] =
    ["string", "number", "integer", "boolean", "object", "array", "null"];

impl Found {
    /// Findings for a schema that is complete and has no faults.
    pub(crate) const NOTHING: Self =
        Self { is_complete: true, is_refused: false, is_faulty: false };

    /// Returns the findings about a schema.
    pub(crate) fn of(schema: &str) -> Self {
        // Reading a schema that was already parsed as a part of a request cannot fail.
        Self::read(&mut Reader::of(schema)).unwrap_or_default().1
    }

    /// Reads a schema, and returns its text with the findings.
    pub(crate) fn read<'a>(reader: &mut Reader<'a>) -> Result<(Raw<'a>, Self), Error> {
        let mut found = Self::default();
        let raw = reader.raw_by(|reader| found.schema(reader, true))?;
        Ok((raw, found))
    }

    /// Reads one schema: an object, or a boolean.
    fn schema(&mut self, reader: &mut Reader<'_>, root: bool) -> Result<(), Error> {
        let kind = reader.kind()?;
        if kind != ValueKind::Object {
            self.is_refused |= kind == ValueKind::Bool;
            self.is_faulty |= kind != ValueKind::Bool;
            reader.skip()?;
            return Ok(());
        }
        let (mut array, mut items) = (false, false);
        let (mut is_object, mut properties, mut no_root) = (false, false, false);
        reader.begin_object()?;
        while let Some(key) = reader.next_key()? {
            let keyword = key.decode();
            let keyword = keyword.as_ref();
            match (keyword_value(keyword), reader.kind()?) {
                (KeywordValue::Types, ValueKind::String) => {
                    let name = reader.string()?;
                    array = name == "array";
                    is_object = name == "object";
                    self.is_faulty |= !is_type(name.raw());
                }
                (KeywordValue::Types, ValueKind::Array) => {
                    array = self.list(reader, KeywordValue::Types)?
                }
                (KeywordValue::Names, ValueKind::Array) => {
                    self.list(reader, KeywordValue::Names)?;
                }
                (KeywordValue::Text, ValueKind::String) => {
                    let text = reader.string()?;
                    self.is_refused |= keyword == "pattern" && is_unportable(text);
                }
                (KeywordValue::Named, ValueKind::Object) => {
                    properties |= keyword == "properties";
                    self.named(reader, keyword == PATTERN_PROPERTIES)?;
                }
                (
                    KeywordValue::Items | KeywordValue::Branches | KeywordValue::Values,
                    ValueKind::Array,
                ) => {
                    self.is_refused |= keyword == "items";
                    self.elements(reader, keyword)?;
                }
                (KeywordValue::Items | KeywordValue::Schema, ValueKind::Object) => {
                    items |= keyword == "items";
                    self.is_faulty |= keyword == "not" && allows_all(reader.clone().skip()?);
                    self.schema(reader, false)?;
                }
                (KeywordValue::Items | KeywordValue::Schema, ValueKind::Bool) => {
                    items |= keyword == "items";
                    self.is_refused |= !may_be_bool(keyword);
                    self.is_faulty |= reader.bool()? && keyword == "not";
                }
                (keyword_value, _) => self.is_faulty |= !keyword_value.takes(reader.skip()?),
            }
            no_root |= root && is_no_root(keyword);
        }
        self.is_refused |= array && !items;
        if root {
            self.is_complete = is_object && properties && !no_root;
        }
        Ok(())
    }

    /// Reads an object of schemas under names that the client chose.
    fn named(&mut self, reader: &mut Reader<'_>, are_patterns: bool) -> Result<(), Error> {
        reader.begin_object()?;
        while let Some(name) = reader.next_key()? {
            self.is_refused |= are_patterns && is_unportable(name);
            self.schema(reader, false)?;
        }
        Ok(())
    }

    /// Reads a list that must not be empty: of schemas, or of values.
    fn elements(&mut self, reader: &mut Reader<'_>, keyword: &str) -> Result<(), Error> {
        let mut is_empty = true;
        reader.begin_array()?;
        while reader.next_element()? {
            is_empty = false;
            if keyword == "enum" {
                reader.skip()?;
                continue;
            }
            if is_choice(keyword) && reader.kind()? == ValueKind::Bool {
                self.is_faulty |= !reader.clone().bool()?;
            }
            self.schema(reader, false)?;
        }
        self.is_faulty |= is_empty;
        Ok(())
    }

    /// Reads a list of names or types. Returns true if the type `array` is among them.
    fn list(
        &mut self,
        reader: &mut Reader<'_>,
        keyword_value: KeywordValue,
    ) -> Result<bool, Error> {
        let (mut names, mut array) = (Distinct::default(), false);
        reader.begin_array()?;
        while reader.next_element()? {
            if reader.kind()? != ValueKind::String {
                self.is_faulty = true;
                reader.skip()?;
                continue;
            }
            let name = reader.string()?;
            array |= name == "array";
            self.is_faulty |= !names.add(name);
            self.is_faulty |= keyword_value == KeywordValue::Types && !is_type(name.raw());
        }
        self.is_faulty |= keyword_value == KeywordValue::Types && names.count == 0;
        Ok(array)
    }
}

/// Maximum number of names that are compared pairwise; a longer list uses a set.
const FEW: usize = 16;

/// Collection that detects repeated names.
#[derive(Default)]
struct Distinct<'a> {
    few: [Str<'a>; FEW],
    many: NameSet<'a>,
    count: usize,
}

impl<'a> Distinct<'a> {
    /// Adds a name, and returns true if it is new.
    fn add(&mut self, name: Str<'a>) -> bool {
        let before = self.count;
        self.count = before.saturating_add(1);
        if let Some(place) = self.few.get_mut(before) {
            *place = name;
            return !self.few.iter().take(before).any(|other| other.raw() == name.raw());
        }
        if before == FEW {
            for name in &self.few {
                self.many.add(name.decode());
            }
        }
        self.many.add(name.decode())
    }
}

pub(crate) const PATTERN_PROPERTIES: &str = "patternProperties";

/// Returns true if a value must fit only one of the keyword's branches (`anyOf`, `oneOf`).
pub(crate) fn is_choice(keyword: &str) -> bool {
    matches!(keyword, "anyOf" | "oneOf")
}

pub(crate) fn is_type(name: &str) -> bool {
    TYPES.contains(&name)
}

/// Returns true if every server accepts a boolean as the value of this keyword, which is a schema.
pub(crate) fn may_be_bool(keyword: &str) -> bool {
    matches!(
        keyword,
        "additionalProperties" | "unevaluatedProperties" | "additionalItems" | "unevaluatedItems"
    )
}

/// Returns true if OpenAI refuses a tool with this keyword in the root of its schema. Anthropic
/// refuses some of these keywords too.
pub(crate) fn is_no_root(keyword: &str) -> bool {
    matches!(keyword, "anyOf" | "oneOf" | "allOf" | "not" | "enum" | "const")
}

/// Returns true if a schema allows any value; it may have a description.
pub(crate) fn allows_all(schema: &str) -> bool {
    let is_note = |key: Str<'_>| matches!(key.raw(), "description" | "title" | "$comment");
    schema == "true"
        || schema.starts_with('{') && json::members(schema).all(|(key, _)| is_note(key))
}

/// Returns true if some upstream's regex engine refuses a pattern that clients' engines support.
/// The upstream would refuse the whole request; the client validates inputs itself. OpenAI's engine
/// supports neither `\p{…}` nor look-around, which zod's patterns use. DeepSeek's engine reads an
/// open bracket inside of a class as a second class, and does not support `\0`, which Claude Code's
/// patterns use. Python writes `(?<name>…)` differently.
pub(crate) fn is_unportable(pattern: Str<'_>) -> bool {
    let pattern = pattern.decode();
    let mut letters = pattern.as_bytes().iter();
    let mut in_brackets = false;
    while let Some(letter) = letters.next() {
        let refused = match letter {
            b'\\' => matches!(letters.next(), Some(b'p' | b'P' | b'0')),
            b'[' => std::mem::replace(&mut in_brackets, true),
            b']' => {
                in_brackets = false;
                false
            }
            b'(' if !in_brackets => matches!(letters.as_slice(), [b'?', b'=' | b'!' | b'<', ..]),
            _ => false,
        };
        if refused {
            return true;
        }
    }
    false
}
