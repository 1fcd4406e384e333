//! Facts about a JSON Schema, collected before the schema is rewritten for an upstream.

use std::borrow::Cow;

use crate::json::{self, Str, ValueKind};
use crate::json_schema::kind_of;
use crate::text::names::NameSet;

/// Values that the `enum` or the `const` of a schema allows.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Values<'a> {
    /// No value but `null` is given: the schema has no `enum` and no `const` with any other value.
    #[default]
    Unsaid,
    /// Only strings are allowed, apart from `null`.
    Strings,
    /// Values that are not all strings, as JSON text copied from the schema.
    Others(&'a str),
}

/// Member of a JSON Schema object: keyword and value.
pub(super) struct KeywordMember<'a> {
    pub(super) key: Str<'a>,
    /// Keyword of the member, without JSON escapes.
    pub(super) keyword: Cow<'a, str>,
    pub(super) value: &'a str,
}

impl KeywordMember<'_> {
    pub(super) fn kind(&self) -> ValueKind {
        kind_of(self.value)
    }
}

/// Facts about one JSON Schema on which the rewriting of its members depends.
#[derive(Default)]
pub(super) struct SchemaFacts<'a> {
    /// JSON text of the schema, unchanged.
    pub(super) schema: &'a str,
    pub(super) typed: bool,
    /// JSON text of the list of types; empty if the schema has no such list.
    pub(super) types: &'a str,
    /// True if the schema has several types besides `null`.
    pub(super) several: bool,
    /// Type of the schema, if the schema has exactly one type besides `null`.
    pub(super) sole_type: Option<Str<'a>>,
    /// True if the type of the schema is `number` or `integer`.
    pub(super) numeric: bool,
    pub(super) properties: bool,
    /// JSON text of the schema's `properties`, unchanged.
    pub(super) named: &'a str,
    /// True if the schema's type is `array`, or `array` is among its types.
    pub(super) array: bool,
    /// True if the schema has `items`, and the value of `items` is not a list.
    pub(super) items: bool,
    /// True if the schema has `items`, and the value of `items` is a list (the older form of
    /// `prefixItems`).
    pub(super) listed_items: bool,
    /// True if the value of `items` is a boolean.
    boolean_items: bool,
    pub(super) prefix_items: bool,
    pub(super) additional_properties: bool,
    /// True if `additionalProperties` is `true`, which restricts nothing.
    open: bool,
    /// True if the schema has an `enum`.
    pub(super) enumerated: bool,
    /// Value of the schema's `$ref`, if there is one.
    pub(super) reference: Option<Str<'a>>,
    /// True if the schema is written as a `$ref`. Set later, by the dialect.
    pub(super) refers: bool,
    /// JSON text of the list of schemas in `anyOf`; empty if there is none. The fields `one_of` and
    /// `all_of` hold the lists of `oneOf` and `allOf`.
    pub(super) any_of: &'a str,
    pub(super) one_of: &'a str,
    pub(super) all_of: &'a str,
    /// JSON text of the schema's `required`, unchanged.
    pub(super) required: &'a str,
    /// True if the schema's type is `object`, if `object` is among its types, or if no type is
    /// stated.
    pub(super) object: bool,
    /// True if the schema allows `null`: as a type, as a value, or by `nullable`.
    pub(super) nullable: bool,
    /// True if `anyOf`, `oneOf` and `allOf` are merged into one schema. Set later, by the dialect.
    pub(super) merges: bool,
    pub(super) constant: bool,
    pub(super) values: Values<'a>,
    pub(super) description: Option<Str<'a>>,
    /// Descriptions of the enclosing choices (`anyOf`), which are written before the schema's own
    /// description.
    pub(super) around: Vec<Str<'a>>,
    pub(super) format: Option<Str<'a>>,
}

impl<'a> SchemaFacts<'a> {
    /// Collects the facts about a schema. A value that is not an object yields no facts.
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

    /// Returns the members of the schema, unchanged. The schema's text is read again on each call,
    /// because a list of members would need many times the memory.
    pub(super) fn members(&self) -> impl Iterator<Item = KeywordMember<'a>> + use<'a> {
        json::members(self.schema).map(|(key, value)| KeywordMember {
            key,
            keyword: key.decode(),
            value,
        })
    }

    /// Records the facts that a member of the schema states.
    fn take(&mut self, member: &KeywordMember<'a>) {
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

    /// Returns the members that are copied in their original order, in every dialect.
    pub(super) fn members_in_place(&self) -> impl Iterator<Item = KeywordMember<'a>> {
        self.members().filter(|member| {
            let is_second =
                member.keyword == "items" && self.prefix_items && member.kind() == ValueKind::Array;
            !(is_second || self.merges && is_merged(&member.keyword))
        })
    }

    /// Returns the names in `required` that are also in `properties`.
    pub(super) fn required_properties(&self) -> impl Iterator<Item = Str<'a>> + use<'a> {
        let mut known = NameSet::default();
        for (name, _) in json::members(self.named) {
            known.add(name.decode());
        }
        let names = json::elements(self.required).filter_map(json::string);
        names.filter(move |name| known.contains(&name.decode()))
    }

    /// Records that the schema has this type.
    pub(super) fn take_type(&mut self, name: Str<'a>) {
        self.typed = true;
        self.numeric = name == "integer" || name == "number";
        self.array = name == "array";
        self.object = name == "object";
        self.sole_type = Some(name);
    }

    /// Records that the schema allows these types.
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

    /// Records the values that the schema allows.
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

    /// Returns true if the allowed values are not all strings, and are therefore written into the
    /// description.
    pub(super) fn has_others(&self) -> bool {
        matches!(self.values, Values::Others(_))
    }

    /// Returns the schema's three lists of subschemas: `anyOf`, `oneOf` and `allOf`.
    pub(super) fn lists(&self) -> [&'a str; 3] {
        [self.any_of, self.one_of, self.all_of]
    }

    /// Returns true if each of these branches states the kind of its values, or if this schema
    /// states no type.
    pub(super) fn are_whole(&self, branches: &[&str]) -> bool {
        !self.typed || branches.iter().all(|schema| says_what(schema))
    }

    /// Returns true if the schema states the kind of its values, so that a server can make a
    /// grammar of it.
    pub(super) fn has_kind(&self) -> bool {
        let is_list = self.items && !self.boolean_items || self.listed_items || self.prefix_items;
        let is_object = self.properties || self.additional_properties && !self.open;
        let is_value = self.enumerated || self.constant;
        let refers = self.reference.is_some_and(is_path);
        self.typed || is_list || is_object || is_value || refers || self.has_branches()
    }

    /// Returns true if the schema consists of other schemas (`anyOf`, `oneOf` or `allOf`).
    pub(super) fn has_branches(&self) -> bool {
        self.lists().iter().any(|list| !list.is_empty())
    }

    /// Returns true if the schema has a description, its own or that of an enclosing choice.
    pub(super) fn is_described(&self) -> bool {
        self.description.is_some() || !self.around.is_empty()
    }

    /// Returns true if allowed values or a format are written into the description in place of
    /// keywords.
    pub(super) fn has_note(&self) -> bool {
        self.has_others() || self.format.is_some() && !self.numeric
    }

    /// Appends the allowed values or the format to the description, as the inside of a JSON string.
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

/// Returns true if merging a schema with its branches replaces this keyword.
pub(super) fn is_merged(keyword: &str) -> bool {
    matches!(keyword, "properties" | "required" | "anyOf" | "oneOf" | "allOf" | "$ref")
}

/// Returns true if a `$ref` is a path into the schema (`#/…`). A `$ref` to the whole schema (`#`,
/// written by zod for recursion) or to another document is no path.
pub(super) fn is_path(reference: Str<'_>) -> bool {
    reference.raw().starts_with("#/")
}

/// Returns true if a schema states the kind of its values, by `type`, `enum`, `$ref` or the like.
fn says_what(schema: &str) -> bool {
    let is_kind = |key: &str| {
        matches!(
            key,
            "type" | "$ref" | "enum" | "const" | "properties" | "anyOf" | "oneOf" | "allOf"
        )
    };
    json::members(schema).any(|(key, _)| is_kind(key.raw()))
}
