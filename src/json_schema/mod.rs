//! Keywords of JSON Schema with the values that they take, and faults in clients' schemas that
//! servers refuse. Faults are found while a request is read, because reading all of its schemas
//! again would cost much.

pub(crate) mod input;

use crate::json::{self, Error, Raw, Reader, Str, ValueKind, Writer};
use crate::text::names::NameSet;

/// Findings of one reading of a schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// True if the schema has what every function needs in its root, and nothing that is refused
    /// there.
    pub is_complete: bool,
    /// True if an upstream refuses something in the schema: an array without `items`, a boolean in
    /// place of a schema, a pattern.
    pub is_refused: bool,
    /// True if the schema has what no draft of JSON Schema allows, or allows nothing.
    pub is_faulty: bool,
}

/// Type of the value that a keyword must have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeywordValue {
    /// Anything, `null` too.
    Data,
    /// Anything but `null`.
    Given,
    Text,
    Number,
    /// A number that is not negative.
    Count,
    Flag,
    /// A type, or a list of types.
    Types,
    /// Names, each once.
    Names,
    /// A list that has elements.
    Values,
    Schema,
    /// A list of schemas.
    Branches,
    /// A schema, or a list of schemas as drafts before 2020-12 have it.
    Items,
    /// Schemas under names that the client chose.
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
    /// Whether a value is what it must be, but for the names and types in a list, and the schemas
    /// in it.
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

/// A text of JSON, as it is written.
pub(crate) fn written(write: impl FnOnce(&mut Writer<'_>)) -> String {
    let mut out = Vec::new();
    write(&mut Writer::new(&mut out));
    String::from_utf8(out).unwrap_or_default()
}

/// The kind of a value that was read before.
pub(crate) fn kind_of(value: &str) -> ValueKind {
    Reader::of(value).kind().unwrap_or(ValueKind::Null)
}

/// The parts of a keyword's value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holds {
    /// Data.
    Data,
    /// A schema, or an array of schemas.
    Schema,
    /// An object whose members are schemas, under names that the client chose.
    Named,
}

pub(crate) fn holds(keyword: &str) -> Holds {
    match keyword_value(keyword) {
        KeywordValue::Schema | KeywordValue::Branches | KeywordValue::Items => Holds::Schema,
        KeywordValue::Named => Holds::Named,
        _ => Holds::Data,
    }
}

/// The types of values.
pub(crate) const TYPES: [&str; 7] =
    ["string", "number", "integer", "boolean", "object", "array", "null"];

impl Found {
    /// Findings in a complete schema without faults.
    pub(crate) const NOTHING: Self =
        Self { is_complete: true, is_refused: false, is_faulty: false };

    /// Returns the findings in a schema.
    pub(crate) fn of(schema: &str) -> Self {
        // Nothing fails with a schema that was read from a request.
        Self::read(&mut Reader::of(schema)).unwrap_or_default().1
    }

    /// Reads a schema.
    pub(crate) fn read<'a>(reader: &mut Reader<'a>) -> Result<(Raw<'a>, Self), Error> {
        let mut found = Self::default();
        let raw = reader.raw_by(|reader| found.schema(reader, true))?;
        Ok((raw, found))
    }

    /// A schema: an object, or a boolean.
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

    /// Schemas under names.
    fn named(&mut self, reader: &mut Reader<'_>, are_patterns: bool) -> Result<(), Error> {
        reader.begin_object()?;
        while let Some(name) = reader.next_key()? {
            self.is_refused |= are_patterns && is_unportable(name);
            self.schema(reader, false)?;
        }
        Ok(())
    }

    /// A list that has elements: schemas, or values.
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

    /// A list of names or types. Says whether an array is among them.
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

/// Maximum number of names that are compared with each other; more are put into a set.
const FEW: usize = 16;

/// Names that are told from each other.
#[derive(Default)]
struct Distinct<'a> {
    few: [Str<'a>; FEW],
    many: NameSet<'a>,
    count: usize,
}

impl<'a> Distinct<'a> {
    /// Adds a name, and says whether it is new.
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

/// Whether a keyword holds branches of which one is enough.
pub(crate) fn is_choice(keyword: &str) -> bool {
    matches!(keyword, "anyOf" | "oneOf")
}

pub(crate) fn is_type(name: &str) -> bool {
    TYPES.contains(&name)
}

/// Whether every server takes a boolean as the schema that this keyword holds.
pub(crate) fn may_be_bool(keyword: &str) -> bool {
    matches!(
        keyword,
        "additionalProperties" | "unevaluatedProperties" | "additionalItems" | "unevaluatedItems"
    )
}

/// Returns true if OpenAI refuses a tool for this keyword in the root of its schema, as Anthropic
/// does for some of them.
pub(crate) fn is_no_root(keyword: &str) -> bool {
    matches!(keyword, "anyOf" | "oneOf" | "allOf" | "not" | "enum" | "const")
}

/// Whether any value fits a schema, which may have a description.
pub(crate) fn allows_all(schema: &str) -> bool {
    let is_note = |key: Str<'_>| matches!(key.raw(), "description" | "title" | "$comment");
    schema == "true"
        || schema.starts_with('{') && json::members(schema).all(|(key, _)| is_note(key))
}

/// Whether an engine refuses a pattern that clients' engines take, and an upstream with it the
/// whole request; the client looks at inputs itself. OpenAI's knows no `\p{…}` and does not look
/// around, as those of zod do; DeepSeek's takes an open bracket inside of another for a second one,
/// and knows no `\0`, which Claude Code's have. `(?<name>…)` is written in another way in Python.
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
