//! Documentation of the configuration: as JSON Schema (2020-12), and as tables for people.
//!
//! Both are made from the declarations that read the configuration, so that they have exactly the
//! existing keys. `docs/dev/decisions/0004-schema-from-macros.md` explains why no crate is used.

use super::clients::ClientKeyDocument;
use super::document::{Document, UpstreamDocument};
use super::{Settings, Target};
use crate::json::{self, Writer};
use crate::profile::Profile;
use crate::setting::{Bounds, Field, Keys as _, ValueType};

/// Returns the JSON Schema of the configuration, as JSON text.
#[must_use]
pub fn schema() -> String {
    json::written(|json| {
        json.begin_object();
        json.key("$schema").text("https://json-schema.org/draft/2020-12/schema");
        json.key("title").text("Configuration of Creole");
        json.kind("object").key("additionalProperties").bool(false);
        json.key("properties").begin_object();
        json.key_text("$schema").begin_object().kind("string").end_object();
        properties(json, Document::FIELDS);
        properties(json, Settings::FIELDS);
        json.end_object().end_object();
    })
}

fn properties(json: &mut Writer<'_>, fields: &[Field]) {
    for field in fields {
        json.key_text(field.name).begin_object().key("description").text(field.doc.trim());
        match field.value_type {
            ValueType::Number => number(json, field.bounds),
            other => value_type(json, &other),
        }
        let default = (field.default)();
        if !default.is_empty() {
            json.key("default").raw(&default);
        }
        json.end_object();
    }
}

fn object(json: &mut Writer<'_>, fields: &[Field]) {
    json.kind("object").key("additionalProperties").bool(false);
    json.key("properties").begin_object();
    properties(json, fields);
    json.end_object();
}

fn number(json: &mut Writer<'_>, bounds: Bounds) {
    json.kind("integer");
    match bounds {
        Bounds::Any => json.key("minimum").u64(0),
        Bounds::AtLeast(least, _) => json.key("minimum").u64(least),
        Bounds::Between(least, most) => json.key("minimum").u64(least).key("maximum").u64(most),
        Bounds::ZeroOrAtLeast(least) => {
            json.key("anyOf").begin_array();
            json.begin_object().key("const").u64(0).end_object();
            json.begin_object().key("minimum").u64(least).end_object();
            json.end_array()
        }
    };
}

/// Writes the JSON Schema keywords of a type into the object that is being written.
fn value_type(json: &mut Writer<'_>, of: &ValueType) {
    match of {
        ValueType::Bool => {
            json.kind("boolean");
        }
        ValueType::Number => number(json, Bounds::Any),
        ValueType::Text => {
            json.kind("string");
        }
        ValueType::Const(word) => {
            json.key("const").text(word);
        }
        ValueType::List(of) => {
            json.kind("array").key("items").begin_object();
            value_type(json, of);
            json.end_object();
        }
        ValueType::Words(words) => {
            json.key("oneOf").begin_array();
            for (word, doc) in *words {
                json.begin_object().key("const").text(word);
                json.key("description").text(doc.trim()).end_object();
            }
            json.end_array();
        }
        ValueType::Names(names) => {
            json.key("enum").begin_array();
            names.iter().for_each(|name| {
                json.text(name);
            });
            json.end_array();
        }
        ValueType::AnyOf(types) => {
            json.key("anyOf").begin_array();
            for of in *types {
                json.begin_object();
                value_type(json, of);
                json.end_object();
            }
            json.end_array();
        }
        ValueType::Object(fields) | ValueType::Overrides(fields) => object(json, fields),
        ValueType::Secret(fields) => {
            object(json, fields);
            json.key("anyOf").begin_array();
            for name in ["env", "secret"] {
                json.begin_object().key("required").begin_array().text(name).end_array();
                json.end_object();
            }
            json.end_array();
        }
        ValueType::Map(of) => {
            json.kind("object").key("additionalProperties").begin_object();
            value_type(json, of);
            json.end_object();
        }
        ValueType::Members => {
            json.kind("object");
        }
    }
}

/// Returns the tables of `docs/configuration.md`: every key with its values, default and meaning.
#[must_use]
pub fn tables() -> String {
    let doc = |key| {
        let field = Document::FIELDS.iter().find(|field| field.name == key);
        field.map_or("", |field| field.doc.trim())
    };
    [
        "## Settings\n\n",
        &table(Settings::FIELDS),
        "\n## Upstreams\n\nEach entry of `upstreams`:\n\n",
        &table(UpstreamDocument::FIELDS),
        "\n## Models\n\n",
        doc("models"),
        "\n\n",
        &table(Target::FIELDS),
        "\n## Keys of clients\n\n",
        doc("client_keys"),
        "\n\nEach entry of `client_keys`:\n\n",
        &table(ClientKeyDocument::FIELDS),
        "\n## Flags of a profile\n\nDefaults are those of the preset `default`.\n\n",
        &table(Profile::FIELDS),
    ]
    .concat()
}

fn table(fields: &[Field]) -> String {
    let mut page = String::from("| key | values | default | meaning |\n|---|---|---|---|\n");
    rows(&mut page, "", fields);
    page
}

fn rows(page: &mut String, prefix: &str, fields: &[Field]) {
    for field in fields {
        let name = format!("{prefix}{}", field.name);
        if let ValueType::Object(fields) = field.value_type {
            rows(page, &format!("{name}."), fields);
            continue;
        }
        let bounds = match field.bounds {
            Bounds::Any => String::new(),
            Bounds::AtLeast(least, _) => format!(" from {least}"),
            Bounds::ZeroOrAtLeast(least) => format!(", 0 or from {least}"),
            Bounds::Between(least, most) => format!(" from {least} to {most}"),
        };
        let values = values(&field.value_type);
        let default = match (field.default)() {
            none if none.is_empty() => none,
            json => format!("`{json}`"),
        };
        page.push_str(&format!(
            "| `{name}` | {values}{bounds} | {default} | {} |\n",
            meaning(field)
        ));
        if let ValueType::Map(ValueType::Object(fields)) = field.value_type {
            rows(page, &format!("{name}.NAME."), fields);
        }
    }
}

fn values(of: &ValueType) -> String {
    let listed = |words: &mut dyn Iterator<Item = &&str>| {
        words.map(|word| format!("`\"{word}\"`")).collect::<Vec<_>>().join(", ")
    };
    match of {
        ValueType::Bool => "`true`, `false`".to_owned(),
        ValueType::Number => "whole number".to_owned(),
        ValueType::Text => "text".to_owned(),
        ValueType::Const(word) => listed(&mut [word].into_iter()),
        ValueType::List(of) => format!("list of {}", values(of)),
        ValueType::Words(words) => listed(&mut words.iter().map(|(word, _)| word)),
        ValueType::Names(names) => listed(&mut names.iter()),
        ValueType::AnyOf(types) => types.iter().map(values).collect::<Vec<_>>().join(" or "),
        ValueType::Secret(_) => "`{\"env\": NAME}` or `{\"file\": PATH}`".to_owned(),
        ValueType::Map(of) => format!("{}, by name", values(of)),
        ValueType::Object(_) | ValueType::Overrides(_) | ValueType::Members => "object".to_owned(),
    }
}

/// Returns the meaning of a key, and of each word that is a value of the key.
fn meaning(field: &Field) -> String {
    let mut text = field.doc.trim().to_owned();
    let words = match field.value_type {
        ValueType::Words(words) => words,
        ValueType::List(ValueType::Words(words)) => *words,
        _ => return text,
    };
    // A word whose documentation is only the word itself is not explained.
    let plain = |word: &str, doc: &str| doc.trim().trim_matches('`') == word;
    for (word, doc) in words.iter().filter(|(word, doc)| !plain(word, doc)) {
        text.push_str(&format!(" `{word}`: {}", doc.trim()));
        if !text.ends_with(['.', '!', '?']) {
            text.push('.');
        }
    }
    text
}

#[cfg(test)]
mod tests;
