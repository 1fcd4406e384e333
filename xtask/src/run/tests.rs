//! Tests of `run.rs`.

use super::*;
use serde_json::json;

fn document(value: &Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

#[test]
fn the_option_becomes_the_only_upstream() {
    let mut made = Map::new();
    let url = Url::parse("https://api.example.com/v1").unwrap();
    configure(&mut made, &url, Some("openai")).unwrap();
    let wanted = json!({"upstreams": {"default": {
        "url": "https://api.example.com", "base_path": "/v1", "profile": "openai"}}});
    assert_eq!(Value::Object(made), wanted);
}

#[test]
fn a_protocol_is_that_of_the_only_upstream() {
    let mut made = document(&json!({"upstreams": {"big": {"protocol": "openai"}}}));
    speak(&mut made, "responses").unwrap();
    assert_eq!(Value::Object(made), json!({"upstreams": {"big": {"protocol": "responses"}}}));
}

#[test]
fn an_upstream_of_the_configuration_keeps_its_name_and_key() {
    let mut made = document(&json!({"strict": true, "upstreams": {"big": {
        "url": "http://vllm:8000", "base_path": "/api", "key": {"secret": "KEY"}}}}));
    let url = upstream_url(None, &made).unwrap().unwrap();
    configure(&mut made, &url, None).unwrap();
    assert_eq!(made["upstreams"]["big"]["url"], "http://vllm:8000");
    assert_eq!(made["upstreams"]["big"]["base_path"], "/api");
    assert_eq!(secrets(&made), ["KEY"]);
}

#[test]
fn another_profile_comes_without_the_overrides_of_the_first() {
    let overrides = json!({"sampling": false});
    let text = json!({"upstreams": {"big": {"url": "http://vllm:8000", "profile": "openai",
        "profile_overrides": overrides}}});
    let url = upstream_url(None, &document(&text)).unwrap().unwrap();
    for (option, profile, expected) in
        [(None, "openai", Some(&overrides)), (Some("vllm"), "vllm", None)]
    {
        let mut made = document(&text);
        configure(&mut made, &url, option).unwrap();
        let own = made["upstreams"]["big"].as_object().unwrap();
        assert_eq!(
            (own["profile"].as_str(), own.get("profile_overrides")),
            (Some(profile), expected)
        );
    }
}

#[test]
fn a_key_of_the_shell_is_named_only_where_the_upstream_may_check_it() {
    let (own, hosted) = ("http://localhost:11434/v1", "https://api.example.com/v1");
    let key = |demo, url, secrets: &[String]| client_key(demo, &Url::parse(url).unwrap(), secrets);
    assert_eq!(key(true, own, &[]), "demo");
    assert_eq!(key(false, own, &[]), "local");
    assert_eq!(key(false, hosted, &[]), "$OPENAI_API_KEY");
    assert_eq!(key(false, hosted, &["KEY".to_owned()]), "local");
}

#[test]
fn a_profile_that_no_host_knows_is_refused_before_building() {
    let named = |profile| document(&json!({"upstreams": {"big": {"profile": profile}}}));
    assert!(check_profile(&Map::new(), None).is_ok());
    assert!(check_profile(&Map::new(), Some("vllm")).is_ok());
    assert!(check_profile(&named("vlm"), Some("vllm")).is_ok());
    for refused in [check_profile(&named("vlm"), None), check_profile(&named("vllm"), Some("vlm"))]
    {
        let said = refused.unwrap_err().to_string();
        assert!(
            said.starts_with("there is no profile \"vlm\": expected one of default, openai"),
            "{said}"
        );
    }
}

#[test]
fn several_upstreams_are_refused() {
    let several = document(&json!({"upstreams": {"a": {}, "b": {}}}));
    assert!(upstream_url(None, &several).unwrap_err().to_string().contains("has 2"));
    assert!(upstream_url(None, &Map::new()).unwrap().is_none());
}
