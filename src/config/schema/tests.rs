//! Tests of `schema.rs`.

use super::*;

#[test]
fn the_schema_names_every_key_that_is_read() {
    let schema: serde_json::Value = serde_json::from_str(&schema()).unwrap();
    let names = |pointer: &str| -> Vec<String> {
        schema.pointer(pointer).unwrap().as_object().unwrap().keys().cloned().collect()
    };
    let sorted = |keys: &str| {
        let mut keys: Vec<String> = keys.split_whitespace().map(str::to_owned).collect();
        keys.sort();
        keys
    };
    let top = ["$schema upstreams models client_keys ", Settings::KEYS].concat();
    assert_eq!(names("/properties"), sorted(&top));
    let upstream = "/properties/upstreams/additionalProperties/properties";
    assert_eq!(names(upstream), sorted(super::super::document::UPSTREAM_KEYS));
    let tables = tables();
    let rows = tables.split("\n## ").find(|section| section.starts_with("Upstreams\n")).unwrap();
    let rows: Vec<&str> = rows.split("\n| `").skip(1).collect();
    let rows: Vec<&str> = rows.iter().map(|row| row.split('`').next().unwrap()).collect();
    assert_eq!(sorted(&rows.join(" ")), sorted(super::super::document::UPSTREAM_KEYS));
    let flags = format!("{upstream}/profile_overrides/properties");
    assert_eq!(names(&flags), sorted(Profile::KEYS));
    assert_eq!(
        schema["properties"]["guards"]["properties"]["breaker"]["properties"]["failures_max"]["default"],
        3
    );
    assert_eq!(schema["properties"]["request_bytes_max"]["default"], 32 << 20);
}

#[test]
fn defaults_are_read_as_they_are_written() {
    let settings = defaults(|json| Settings::default().write(json));
    assert_eq!(Config::from_json(&settings, |_| None).unwrap(), Config::default());
    let profile = defaults(|json| Profile::preset("openai").unwrap().write(json));
    let text = format!("{{\"upstreams\":{{\"a\":{{\"profile_overrides\":{profile}}}}}}}");
    let config = Config::from_json(&text, |_| None).unwrap();
    assert_eq!(
        Some(&config.upstreams.get("a").unwrap().profile),
        Profile::preset("openai").as_ref()
    );
}
