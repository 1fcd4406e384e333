//! The configuration as JSON Schema (2020-12), and as a page for people.
//!
//! Both are made from the definitions by which the configuration is read, so that neither can name a
//! key that is not there or miss one that is. `docs/dev/decisions/0004-schema-from-macros.md` says why no
//! crate does this.

use super::{Config, Guards, Protocol, Settings, Target, Upstream};
use crate::dialect::profile::{PRESETS, Profile};
use crate::json::{self, Writer};
use crate::setting::{Bounds, Field, Setting as _, ValueType};

const URL: &str = "Scheme, host and port: `https://api.example.com`. Envoy knows by its route where an upstream is, and takes only `:authority` from here; every other host needs it.";
const CLUSTER: &str = "Envoy: the value of the header `x-creole-upstream` by which a route is chosen. Absent: the upstream's name.";
const BASE_PATH: &str = "What stands before `/chat/completions`.";
const PROTOCOL: &str = "What it speaks.";
const PROFILE: &str = "What kind of server it is.";
const KEY: &str = "Which credential it gets: `\"client\"`, the one that the client sent, `{\"secret\": NAME}`, a secret of the host, or `\"none\"`.";
const HEADERS: &str = "Headers that go with every request there, by name. A value is a text or `{\"secret\": NAME}`, a secret of the host.";
const CLIENT_KEYS: &str = "The keys that clients may have, each a secret of the host. Absent: Creole does not ask who a client is.";
const CLIENT_NAME: &str =
    "How the key is called in logs and metrics. Absent: by the secret's name.";
const OVERRIDES: &str = "Flags of the profile that are different here.";
const GUARDS: &str =
    "Guards of requests that go there, where they are different from those of all.";
const UPSTREAMS: &str = "Where requests can go, by name. Absent: one, called `default`.";
const MODELS: &str = "Which model of which upstream serves which model of the client: an exact name, then the longest prefix such as `claude-*`, then `*`. Absent: every name goes as it is to the first upstream by name (alphabetically).";

/// The schema, as JSON text.
#[must_use]
pub fn schema() -> String {
    let mut out = Vec::new();
    let mut json = Writer::new(&mut out);
    json.begin_object();
    json.key("$schema").text("https://json-schema.org/draft/2020-12/schema");
    json.key("title").text("Configuration of Creole");
    json.kind("object").key("additionalProperties").bool(false);
    json.key("properties").begin_object();
    json.key_text("$schema").begin_object().kind("string").end_object();
    map(&mut json, "upstreams", UPSTREAMS, upstream);
    map(&mut json, "models", MODELS, target);
    client_keys(&mut json);
    let settings = Config::default().settings;
    properties(&mut json, Settings::FIELDS, &defaults(|json| settings.write(json)));
    json.end_object().end_object();
    String::from_utf8(out).unwrap_or_default()
}

/// An object whose keys are names that the operator chose.
fn map(json: &mut Writer<'_>, key: &str, doc: &str, value: fn(&mut Writer<'_>)) {
    json.key_text(key).begin_object().key("description").text(doc).kind("object");
    value(json.key("additionalProperties"));
    json.end_object();
}

fn upstream(json: &mut Writer<'_>) {
    json.begin_object().kind("object").key("additionalProperties").bool(false);
    json.key("properties").begin_object();
    text(json, "url", URL, None);
    text(json, "cluster", CLUSTER, None);
    text(json, "base_path", BASE_PATH, Some(&Upstream::named("").base_path));
    json.key("protocol").begin_object().key("description").text(PROTOCOL);
    value_type(json, &Protocol::TYPE);
    json.key("default").text(Protocol::Openai.word()).end_object();
    json.key("profile").begin_object().key("description").text(PROFILE).key("enum").begin_array();
    PRESETS.iter().for_each(|preset| {
        json.text(preset);
    });
    json.end_array().key("default").text("default").end_object();
    json.key_text("key").begin_object().key("description").text(KEY).key("default").text("client");
    json.key("anyOf").begin_array();
    json.begin_object().key("const").text("client").end_object();
    json.begin_object().key("const").text("none").end_object();
    secret(json, |_| ());
    json.end_array().end_object();
    json.key("headers").begin_object().key("description").text(HEADERS).kind("object");
    json.key("additionalProperties").begin_object().key("anyOf").begin_array();
    json.begin_object().kind("string").end_object();
    secret(json, |_| ());
    json.end_array().end_object().end_object();
    json.key("profile_overrides").begin_object().key("description").text(OVERRIDES);
    let profile = Profile::default();
    object(json, Profile::FIELDS, &defaults(|json| profile.write(json)));
    json.end_object();
    json.key("guards").begin_object().key("description").text(GUARDS);
    let guards = Config::default().settings.guards;
    object(json, Guards::FIELDS, &defaults(|json| guards.write(json)));
    json.end_object().end_object().end_object();
}

/// An object that names a secret, and what `more` adds.
fn secret(json: &mut Writer<'_>, more: fn(&mut Writer<'_>)) {
    json.begin_object().kind("object").key("additionalProperties").bool(false);
    json.key("required").begin_array().text("secret").end_array();
    json.key("properties").begin_object();
    text(json, "secret", "The secret's name.", None);
    more(json);
    json.end_object().end_object();
}

fn client_keys(json: &mut Writer<'_>) {
    json.key("client_keys").begin_object().key("description").text(CLIENT_KEYS).kind("array");
    json.key("items");
    secret(json, |json| text(json, "name", CLIENT_NAME, None));
    json.end_object();
}

fn target(json: &mut Writer<'_>) {
    json.begin_object();
    object(json, Target::FIELDS, &defaults(|json| Target::default().write(json)));
    json.end_object();
}

fn text(json: &mut Writer<'_>, key: &str, doc: &str, default: Option<&str>) {
    json.key_text(key).begin_object().key("description").text(doc).kind("string");
    if let Some(default) = default {
        json.key("default").text(default);
    }
    json.end_object();
}

fn defaults(write: impl FnOnce(&mut Writer<'_>)) -> String {
    let mut out = Vec::new();
    write(&mut Writer::new(&mut out));
    String::from_utf8(out).unwrap_or_default()
}

fn object(json: &mut Writer<'_>, fields: &[Field], defaults: &str) {
    json.kind("object").key("additionalProperties").bool(false);
    json.key("properties").begin_object();
    properties(json, fields, defaults);
    json.end_object();
}

/// `defaults` is an object with a value for each field.
fn properties(json: &mut Writer<'_>, fields: &[Field], defaults: &str) {
    for field in fields {
        let default = json::member(defaults, field.name).unwrap_or("null");
        json.key_text(field.name).begin_object().key("description").text(field.doc.trim());
        match field.value_type {
            ValueType::Object(fields) => object(json, fields, default),
            other => {
                match other {
                    ValueType::Number => number(json, Bounds::of(field.name)),
                    other => value_type(json, &other),
                }
                json.key("default").raw(default);
            }
        }
        json.end_object();
    }
}

fn number(json: &mut Writer<'_>, bounds: Bounds) {
    let Bounds { least, most, or_zero } = bounds;
    json.kind("integer");
    if or_zero {
        json.key("anyOf").begin_array();
        json.begin_object().key("const").u64(0).end_object();
        json.begin_object().key("minimum").u64(least).end_object();
        json.end_array();
        return;
    }
    json.key("minimum").u64(least);
    if let Some(most) = most {
        json.key("maximum").u64(most);
    }
}

fn value_type(json: &mut Writer<'_>, type_of: &ValueType) {
    match type_of {
        ValueType::Bool => {
            json.kind("boolean");
        }
        ValueType::Number => number(json, Bounds::of("")),
        ValueType::Text => {
            json.kind("string");
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
        ValueType::Object(fields) => object(json, fields, "{}"),
        ValueType::Members => {
            json.kind("object");
        }
    }
}

/// The tables of `docs/configuration.md`: every key with its values, default and meaning.
#[must_use]
pub fn tables() -> String {
    let settings = Config::default().settings;
    let profile = Profile::default();
    let mut page = String::from("## Settings\n\n");
    table(&mut page, "", Settings::FIELDS, &defaults(|json| settings.write(json)));
    page.push_str("\n## Upstreams\n\nEach entry of `upstreams`:\n\n");
    head(&mut page);
    for (key, values, default, doc) in [
        ("url", "text", "", URL),
        ("cluster", "text", "", CLUSTER),
        ("base_path", "text", "`\"/v1\"`", BASE_PATH),
        ("protocol", &values(&Protocol::TYPE), "`\"openai\"`", PROTOCOL),
        ("profile", "one of the presets below", "`\"default\"`", PROFILE),
        ("key", "`\"client\"`, `\"none\"` or `{\"secret\": NAME}`", "`\"client\"`", KEY),
        ("headers", "texts or `{\"secret\": NAME}`, by name", "", HEADERS),
        ("profile_overrides", "flags of the profile", "", OVERRIDES),
        ("guards", "as `guards` above", "", GUARDS),
    ] {
        row(&mut page, key, values, default, doc);
    }
    page.push_str("\nPresets: ");
    let presets: Vec<String> = PRESETS.iter().map(|preset| format!("`{preset}`")).collect();
    page.push_str(&presets.join(", "));
    page.push_str(".\n\n## Models\n\n");
    page.push_str(MODELS);
    page.push_str("\n\n");
    table(&mut page, "", Target::FIELDS, &defaults(|json| Target::default().write(json)));
    page.push_str("\n## Keys of clients\n\n");
    page.push_str(CLIENT_KEYS);
    page.push_str("\n\nEach entry of `client_keys`:\n\n");
    head(&mut page);
    row(&mut page, "secret", "text", "", "The secret's name.");
    row(&mut page, "name", "text", "", CLIENT_NAME);
    page.push_str("\n## Flags of a profile\n\nDefaults are those of the preset `default`.\n\n");
    table(&mut page, "", Profile::FIELDS, &defaults(|json| profile.write(json)));
    page
}

fn head(page: &mut String) {
    page.push_str("| key | values | default | meaning |\n|---|---|---|---|\n");
}

fn row(page: &mut String, key: &str, values: &str, default: &str, doc: &str) {
    for part in ["| `", key, "` | ", values, " | ", default, " | ", doc.trim(), " |\n"] {
        page.push_str(part);
    }
}

fn table(page: &mut String, prefix: &str, fields: &[Field], defaults: &str) {
    if prefix.is_empty() {
        head(page);
    }
    for field in fields {
        let (name, default) = (
            format!("{prefix}{}", field.name),
            json::member(defaults, field.name).unwrap_or("null"),
        );
        match field.value_type {
            ValueType::Object(fields) => table(page, &format!("{name}."), fields, default),
            other => {
                let Bounds { least, most, or_zero } = Bounds::of(field.name);
                let mut values = values(&other);
                if or_zero {
                    values.push_str(&format!(", 0 or from {least}"));
                } else if least > 0 {
                    values.push_str(&format!(" from {least}"));
                }
                if let Some(most) = most {
                    values.push_str(&format!(" to {most}"));
                }
                row(page, &name, &values, &format!("`{default}`"), &meaning(field));
            }
        }
    }
}

fn values(value_type: &ValueType) -> String {
    match value_type {
        ValueType::Bool => "`true`, `false`".to_owned(),
        ValueType::Number => "whole number".to_owned(),
        ValueType::Text => "text".to_owned(),
        ValueType::List(of) => format!("list of {}", values(of)),
        ValueType::Words(words) => {
            let words: Vec<String> =
                words.iter().map(|(word, _)| format!("`\"{word}\"`")).collect();
            words.join(", ")
        }
        ValueType::Object(_) | ValueType::Members => "object".to_owned(),
    }
}

/// What a key is for, and what each of its words means.
fn meaning(field: &Field) -> String {
    let mut text = field.doc.trim().to_owned();
    let words = match field.value_type {
        ValueType::Words(words) => words,
        ValueType::List(ValueType::Words(words)) => *words,
        _ => return text,
    };
    // A word that means what it says is not explained.
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
