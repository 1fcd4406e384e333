//! Facts about one schema that are collected before it is written.

use std::borrow::Cow;

use crate::json::{self, Str, ValueKind};
use crate::json_schema::kind_of;
use crate::text::names::NameSet;

/// Values that an `enum` or a `const` allows.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Values<'a> {
    /// No values but `null`: no `enum` and no `const` gives another.
    #[default]
    Unsaid,
    /// Only strings, `null` aside.
    Strings,
    /// Values that are not all strings, as they came.
    Others(&'a str),
}

/// A member of a schema.
pub(super) struct Member<'a> {
    pub(super) key: Str<'a>,
    /// The key without its escapes.
    pub(super) keyword: Cow<'a, str>,
    pub(super) value: &'a str,
}

impl Member<'_> {
    pub(super) fn kind(&self) -> ValueKind {
        kind_of(self.value)
    }
}

/// Facts about one schema on which the writing of its members depends.
#[derive(Default)]
pub(super) struct Facts<'a> {
    /// The schema, as it came.
    pub(super) schema: &'a str,
    pub(super) typed: bool,
    /// The list of types, as it came; empty where there is none.
    pub(super) types: &'a str,
    /// True if there are several types, `null` aside.
    pub(super) several: bool,
    /// Type of the schema, `null` aside, if there is exactly one.
    pub(super) sole_type: Option<Str<'a>>,
    /// True if the type is a kind of number.
    pub(super) numeric: bool,
    pub(super) properties: bool,
    /// `properties`, as they came.
    pub(super) named: &'a str,
    /// True if the type is an array, or can be one.
    pub(super) array: bool,
    /// True if there is `items`, and it is no list.
    pub(super) items: bool,
    /// True if there is `items`, and it is a list: `prefixItems` in older drafts.
    pub(super) listed_items: bool,
    /// True if `items` is a boolean.
    boolean_items: bool,
    pub(super) prefix_items: bool,
    pub(super) additional_properties: bool,
    /// `additionalProperties` is `true`, which says nothing.
    open: bool,
    /// True if there is an `enum`.
    pub(super) enumerated: bool,
    /// `$ref`
    pub(super) reference: Option<Str<'a>>,
    /// True if the schema is written as a reference: decided where the dialect is known.
    pub(super) refers: bool,
    /// List of schemas in `anyOf`, as it came; empty where there is none. `one_of` and `all_of`
    /// likewise.
    pub(super) any_of: &'a str,
    pub(super) one_of: &'a str,
    pub(super) all_of: &'a str,
    /// `required`, as it came.
    pub(super) required: &'a str,
    /// The type is an object, can be one, or is not said.
    pub(super) object: bool,
    /// `null` is among the types or the values, or it is said that it may be.
    pub(super) nullable: bool,
    /// True if the lists of schemas are written as one schema: decided where the dialect is known.
    pub(super) merges: bool,
    pub(super) constant: bool,
    pub(super) values: Values<'a>,
    pub(super) description: Option<Str<'a>>,
    /// Descriptions that are written in front of the schema's own: those of the choices it is a
    /// branch of.
    pub(super) around: Vec<Str<'a>>,
    pub(super) format: Option<Str<'a>>,
}

impl<'a> Facts<'a> {
    /// The facts of a schema; what is no object says nothing.
    pub(super) fn of(schema: &'a str) -> Self {
        if !schema.starts_with('{') {
            return Self::default();
        }
        let mut facts = Self { schema, object: true, ..Self::default() };
        for member in facts.members() {
            facts.take(&member);
        }
        facts
    }

    /// The members, as they came. They are read again each time: a list of them would be many times
    /// as large.
    pub(super) fn members(&self) -> impl Iterator<Item = Member<'a>> + use<'a> {
        json::members(self.schema).map(|(key, value)| Member { key, keyword: key.decode(), value })
    }

    /// Notes the facts that a member states.
    fn take(&mut self, member: &Member<'a>) {
        let (value, kind) = (member.value, member.kind());
        let given = kind != ValueKind::Null;
        match (member.keyword.as_ref(), kind) {
            ("type", ValueKind::String) => {
                if let Some(name) = json::string(value) {
                    self.take_type(name);
                }
            }
            ("type", ValueKind::Array) => self.take_types(value),
            ("type", _) => self.typed = given,
            ("items", ValueKind::Array) => {
                self.listed_items = json::elements(value).next().is_some();
            }
            ("items", _) => (self.items, self.boolean_items) = (given, kind == ValueKind::Bool),
            ("additionalProperties", _) => {
                (self.additional_properties, self.open) = (given, value == "true");
            }
            ("prefixItems", ValueKind::Array) => {
                self.prefix_items = json::elements(value).next().is_some();
            }
            ("properties", ValueKind::Object) => (self.properties, self.named) = (true, value),
            ("anyOf", ValueKind::Array) => self.any_of = value,
            ("oneOf", ValueKind::Array) => self.one_of = value,
            ("allOf", ValueKind::Array) => self.all_of = value,
            ("required", ValueKind::Array) => self.required = value,
            ("nullable", ValueKind::Bool) => self.nullable |= value == "true",
            ("enum", ValueKind::Array) => {
                self.enumerated = json::elements(value).next().is_some();
                if !self.constant {
                    self.take_values(value);
                }
            }
            // `"const": null` is a value.
            ("const", _) => {
                self.constant = true;
                self.values = match kind {
                    ValueKind::String => Values::Strings,
                    ValueKind::Null => Values::Unsaid,
                    _ => Values::Others(value),
                };
                self.nullable |= !given;
            }
            ("$ref", ValueKind::String) => self.reference = json::string(value),
            ("description", ValueKind::String) => self.description = json::string(value),
            ("format", ValueKind::String) => self.format = json::string(value),
            _ => {}
        }
    }

    /// The members that are written where they stand, whatever the dialect.
    pub(super) fn members_in_place(&self) -> impl Iterator<Item = Member<'a>> {
        self.members().filter(|member| {
            let is_second =
                member.keyword == "items" && self.prefix_items && member.kind() == ValueKind::Array;
            !(is_second || self.merges && is_merged(&member.keyword))
        })
    }

    /// The names in `required` that are properties.
    pub(super) fn required_properties(&self) -> impl Iterator<Item = Str<'a>> + use<'a> {
        let mut known = NameSet::default();
        for (name, _) in json::members(self.named) {
            known.add(name.decode());
        }
        let names = json::elements(self.required).filter_map(json::string);
        names.filter(move |name| known.contains(&name.decode()))
    }

    /// Notes that the schema has this type.
    pub(super) fn take_type(&mut self, name: Str<'a>) {
        self.typed = true;
        self.numeric = name == "integer" || name == "number";
        self.array = name == "array";
        self.object = name == "object";
        self.sole_type = Some(name);
    }

    /// Notes that values have one of these types.
    fn take_types(&mut self, types: &'a str) {
        (self.typed, self.types) = (true, types);
        self.array = types.contains("\"array\"");
        self.object = types.contains("\"object\"");
        self.nullable |= types.contains("\"null\"");
        let names = json::elements(types).filter_map(json::string);
        let mut names = names.filter(|name| *name != "null");
        let first = names.next();
        self.several = names.next().is_some();
        self.sole_type = first.filter(|_| !self.several);
    }

    /// Notes the values that the schema allows.
    fn take_values(&mut self, values: &'a str) {
        let (mut has_strings, mut has_others) = (false, false);
        for value in json::elements(values) {
            match value {
                "null" => self.nullable = true,
                _ if value.starts_with('"') => has_strings = true,
                _ => has_others = true,
            }
        }
        self.values = match (has_others, has_strings) {
            (true, _) => Values::Others(values),
            (false, true) => Values::Strings,
            (false, false) => Values::Unsaid,
        };
    }

    /// Returns true if the values are written into the description, because they are not all
    /// strings.
    pub(super) fn has_others(&self) -> bool {
        matches!(self.values, Values::Others(_))
    }

    /// Returns the lists of schemas: `anyOf`, `oneOf` and `allOf`.
    pub(super) fn lists(&self) -> [&'a str; 3] {
        [self.any_of, self.one_of, self.all_of]
    }

    /// Returns true if each of these branches states the kind of its values, or this schema states
    /// no type.
    pub(super) fn are_whole(&self, branches: &[&str]) -> bool {
        !self.typed || branches.iter().all(|schema| says_what(schema))
    }

    /// Returns true if a grammar can be made of the schema: it states the kind of its values.
    pub(super) fn has_kind(&self) -> bool {
        let is_list = self.items && !self.boolean_items || self.listed_items || self.prefix_items;
        let is_object = self.properties || self.additional_properties && !self.open;
        let is_value = self.enumerated || self.constant;
        let refers = self.reference.is_some_and(is_path);
        self.typed || is_list || is_object || is_value || refers || self.has_branches()
    }

    /// Returns true if the schema is made of other schemas.
    pub(super) fn has_branches(&self) -> bool {
        self.lists().iter().any(|list| !list.is_empty())
    }

    /// Returns true if the schema has a description of its own or from a choice around it.
    pub(super) fn is_described(&self) -> bool {
        self.description.is_some() || !self.around.is_empty()
    }

    /// Returns true if values or a format are written into the description in place of keywords.
    pub(super) fn has_note(&self) -> bool {
        self.has_others() || self.format.is_some() && !self.numeric
    }

    /// Appends values or the format, as the inside of a JSON string, behind a description if there
    /// is one.
    pub(super) fn push_note(&self, out: &mut Vec<u8>) {
        let [one_of, format_of, end] = match self.is_described() {
            true => [" (one of: ", " (format: ", ")"],
            false => ["One of: ", "Format: ", ""],
        };
        if let Values::Others(values) = self.values {
            json::escape(out, one_of);
            json::escape(out, values);
        } else if let Some(format) = self.format.filter(|_| !self.numeric) {
            json::escape(out, format_of);
            out.extend_from_slice(format.raw().as_bytes());
        } else {
            return;
        }
        json::escape(out, end);
    }
}

/// Whether a schema that is written as one with its branches gives what this keyword says.
pub(super) fn is_merged(keyword: &str) -> bool {
    matches!(keyword, "properties" | "required" | "anyOf" | "oneOf" | "allOf" | "$ref")
}

/// Whether a reference is to a place within the schema, and not to all of it, as zod writes for a
/// schema that holds itself, or to another one.
pub(super) fn is_path(reference: Str<'_>) -> bool {
    reference.raw().starts_with("#/")
}

/// Returns true if a schema states the kind of its values.
fn says_what(schema: &str) -> bool {
    let is_kind = |key: &str| {
        matches!(
            key,
            "type" | "$ref" | "enum" | "const" | "properties" | "anyOf" | "oneOf" | "allOf"
        )
    };
    json::members(schema).any(|(key, _)| is_kind(key.raw()))
}
