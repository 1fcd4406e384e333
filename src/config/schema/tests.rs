//! Tests of `schema.rs`.

use super::*;
use crate::config::Config;

#[test]
fn the_schema_names_every_key_that_is_read() {
    let schema: serde_json::Value = serde_json::from_str(&schema()).unwrap();
    let names = |pointer: &str| -> Vec<String> {
        schema.pointer(pointer).unwrap().as_object().unwrap().keys().cloned().collect()
    };
    let sorted = |fields: &[Field], more: &[&str]| {
        let keys = fields.iter().map(|field| field.name).chain(more.iter().copied());
        let mut keys: Vec<String> = keys.map(str::to_owned).collect();
        keys.sort();
        keys
    };
    let top = ["$schema", "upstreams", "models", "client_keys"];
    assert_eq!(names("/properties"), sorted(Settings::FIELDS, &top));
    let upstream = "/properties/upstreams/additionalProperties/properties";
    assert_eq!(names(upstream), sorted(UpstreamDocument::FIELDS, &[]));
    let tables = tables();
    let rows = tables.split("\n## ").find(|section| section.starts_with("Upstreams\n")).unwrap();
    // An object has a row for each of its keys.
    let rows = rows.split("\n| `").skip(1).map(|row| row.split(['`', '.']).next().unwrap());
    let mut rows: Vec<_> = rows.collect();
    rows.dedup();
    assert_eq!(sorted(&[], &rows), sorted(UpstreamDocument::FIELDS, &[]));
    let flags = format!("{upstream}/profile_overrides/properties");
    assert_eq!(names(&flags), sorted(Profile::FIELDS, &[]));
    assert_eq!(
        schema["properties"]["guards"]["properties"]["breaker"]["properties"]["failures_max"]["default"],
        3
    );
    assert_eq!(schema["properties"]["request_bytes_max"]["default"], 32 << 20);
}

/// Returns each key of `fields` with its default and with each of its words, as JSON.
fn values(fields: &[Field]) -> Vec<String> {
    let mut found = Vec::new();
    for field in fields {
        let mut values = vec![(field.default)()];
        match field.value_type {
            ValueType::Object(fields) => values = self::values(fields),
            ValueType::Words(words) => {
                values.extend(words.iter().map(|(word, _)| format!("\"{word}\"")));
            }
            ValueType::List(ValueType::Words(words)) => {
                values.extend(words.iter().map(|(word, _)| format!("[\"{word}\"]")));
            }
            _ => {}
        }
        // A value that no document can name has no default.
        let values = values.iter().filter(|value| !value.is_empty());
        found.extend(values.map(|value| format!("{{\"{}\":{value}}}", field.name)));
    }
    found
}

#[test]
fn defaults_and_words_are_read_as_they_are_written() {
    for value in values(Settings::FIELDS) {
        let read = Config::from_json(&value, |_| None);
        // A search service needs a URL or a key as well.
        let needs_more = value == r#"{"invalid_tool_call":"hold"}"#
            || value.starts_with(r#"{"server_tools":{"web_search":{"kind":"#);
        assert!(read.is_ok() || needs_more, "{value}: {read:?}");
    }
    for value in values(Profile::FIELDS) {
        // Only an upstream that speaks Responses can call MCP servers.
        let protocol = if value == r#"{"mcp":"mcp"}"# { "responses" } else { "openai" };
        let text = format!(
            r#"{{"upstreams":{{"a":{{"protocol":"{protocol}","profile_overrides":{value}}}}}}}"#
        );
        Config::from_json(&text, |_| None).unwrap_or_else(|error| panic!("{value}: {error}"));
    }
    let defaults = |fields: &[Field]| -> Vec<String> {
        let fields = fields.iter().filter(|field| !(field.default)().is_empty());
        fields.map(|field| format!("\"{}\":{}", field.name, (field.default)())).collect()
    };
    let settings = format!("{{{}}}", defaults(Settings::FIELDS).join(","));
    assert_eq!(Config::from_json(&settings, |_| None).unwrap(), Config::default());
    let profile = defaults(Profile::FIELDS).join(",");
    let text = format!("{{\"upstreams\":{{\"default\":{{\"profile_overrides\":{{{profile}}}}}}}}}");
    assert_eq!(Config::from_json(&text, |_| None).unwrap(), Config::default());
}
