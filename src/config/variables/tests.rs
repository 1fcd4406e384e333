//! Tests of `variables.rs`.

use super::*;
use crate::config::Protocol;
use crate::profile::Profile;

fn config(variables: &[(&str, &str)]) -> Result<Config, String> {
    Config::from_variables(|name| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    })
}

#[test]
fn the_short_variables_describe_one_upstream() {
    let made = config(&[
        ("UPSTREAM_URL", "https://api.example.com/openai/v1/"),
        ("UPSTREAM_KEY", "sk-1"),
        ("CREOLE_PROFILE", "openai"),
        ("CREOLE_CONFIG", r#"{"strict": true}"#),
    ])
    .unwrap();
    let upstream = made.upstreams.get("default").unwrap();
    assert_eq!(upstream.url, "https://api.example.com");
    assert_eq!(upstream.base_path, "/openai/v1");
    assert_eq!(upstream.key, Key::Secret("sk-1".to_owned()));
    assert_eq!(upstream.protocol, Protocol::Responses);
    assert_eq!(upstream.profile, Profile::preset("openai").unwrap().for_responses("openai"));
    assert!(made.settings.strict);

    let made = config(&[("UPSTREAM_URL", "http://[::1]:8080"), ("CREOLE_PROFILE", "")]).unwrap();
    let upstream = made.upstreams.get("default").unwrap();
    assert_eq!((upstream.url.as_str(), &*upstream.base_path), ("http://[::1]:8080", "/v1"));
    assert_eq!(upstream.key, Key::Client);
}

#[test]
fn an_empty_key_is_an_error_like_a_blank_one_and_opens_nothing() {
    let url = ("UPSTREAM_URL", "https://a");
    let document = |text| [("CREOLE_CONFIG", text), url, ("KEY", "k")];
    for (name, variables) in [
        ("CLIENT_KEY", [url, ("UPSTREAM_KEY", "sk"), ("UPSTREAM_KEY", "sk")]),
        ("UPSTREAM_KEY", [url, url, url]),
        (
            "EMPTY",
            document(r#"{"client_keys":[{"env":"EMPTY"}],"upstreams":{"a":{"key":"none"}}}"#),
        ),
        (
            "EMPTY",
            document(r#"{"client_keys":[{"secret":"EMPTY"}],"upstreams":{"a":{"key":"none"}}}"#),
        ),
        ("EMPTY", document(r#"{"upstreams":{"a":{"key":{"env":"EMPTY"}}}}"#)),
        ("EMPTY", document(r#"{"upstreams":{"a":{"headers":{"x-a":{"env":"EMPTY"}}}}}"#)),
    ] {
        for key in ["", " ", "\t"] {
            let variables = [&variables[..], &[(name, key)]].concat();
            let error = config(&variables).unwrap_err();
            assert!(error.contains("in one line of visible ASCII characters"), "{name}: {error}");
        }
    }
}

#[test]
fn the_variables_complete_the_one_upstream_of_a_document() {
    let document = r#"{"upstreams": {"a": {"key": {"secret": "A_KEY"}, "base_path": "/x"}}}"#;
    let made = config(&[
        ("CREOLE_CONFIG", document),
        ("A_KEY", "sk-2"),
        ("UPSTREAM_URL", "http://a.example"),
    ])
    .unwrap();
    let upstream = made.upstreams.get("a").unwrap();
    assert_eq!(upstream.key, Key::Secret("sk-2".to_owned()));
    assert_eq!((&*upstream.url, &*upstream.base_path), ("http://a.example", "/x"));
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let url = ("UPSTREAM_URL", "https://a");
    let several = ("CREOLE_CONFIG", r#"{"upstreams":{"a":{},"b":{}}}"#);
    for (variables, expected) in [
        (&[][..], "configuration: expected the variable CREOLE_CONFIG or UPSTREAM_URL"),
        (&[("CREOLE_CONFIG", "{}")], "configuration: upstreams.default.url: expected a URL"),
        (&[("CREOLE_CONFIG", "{"), url], "configuration: "),
        (&[("CREOLE_CONFIG", r#"{"strikt":1}"#), url], "configuration: strikt: unknown key"),
        (&[several, url], "UPSTREAM_URL: the configuration has several upstreams"),
        (&[url, ("CREOLE_PROFILE", "no")], "CREOLE_PROFILE: expected one of default, "),
        (
            &[("CREOLE_CONFIG", r#"{"upstreams":{"a":{"url":"https://a/v1?key=k"}}}"#)],
            "configuration: upstreams.a.url: expected a path such as",
        ),
        (
            &[("CREOLE_CONFIG", r#"{"upstreams":{"a":{"key":{"secret":"NO"}}}}"#)],
            "configuration: upstreams.a.key.secret: expected an environment variable called \"NO\"",
        ),
    ] {
        let error = config(variables).unwrap_err();
        assert!(error.starts_with(expected), "{variables:?}: {error}");
    }
}

#[test]
fn keys_in_a_url_are_not_told_to_clients() {
    for url in ["https://a/v1?key=sk-live-1", "https://a/v1/sk-live-1?x#/chat/completions"] {
        let error = config(&[("UPSTREAM_URL", url)]).unwrap_err();
        assert!(error.starts_with("UPSTREAM_URL: expected a path such as"), "{error}");
        assert!(!error.contains("live"), "{error}");
    }
    let error = config(&[("UPSTREAM_URL", "https://a"), ("UPSTREAM_KEY", "sk-live\n-1")]);
    assert_eq!(
        error.unwrap_err(),
        "UPSTREAM_KEY: expected a key in one line of visible ASCII characters"
    );
}

#[test]
fn a_url_is_taken_in_each_form_in_which_people_have_it() {
    for (url, expected) in [
        ("http://a", ("http://a", "/v1")),
        ("http://a/", ("http://a", "/v1")),
        ("http://a:1/v1", ("http://a:1", "/v1")),
        ("https://a/api/v1//", ("https://a", "/api/v1")),
        ("https://a/openai/v1/chat/completions", ("https://a", "/openai/v1")),
        ("https://a/v1/chat/completions/", ("https://a", "/v1")),
        ("https://a/v1/messages", ("https://a", "/v1")),
        ("https://a/v1/responses", ("https://a", "/v1")),
        ("https://a/chat/completions", ("https://a", "")),
    ] {
        let document = format!(r#"{{"upstreams":{{"a":{{"url":"{url}"}}}}}}"#);
        for variable in [("UPSTREAM_URL", url), ("CREOLE_CONFIG", &document)] {
            let made = config(&[variable]).unwrap();
            let upstream = made.first_upstream().unwrap();
            assert_eq!((&*upstream.url, &*upstream.base_path), expected, "{variable:?}");
        }
    }
    let document =
        r#"{"upstreams":{"a":{"url":"https://a","base_path":"/api/v1/chat/completions"}}}"#;
    let made = config(&[("CREOLE_CONFIG", document)]).unwrap();
    assert_eq!(made.first_upstream().unwrap().base_path, "/api/v1");
}

#[test]
fn only_an_address_is_taken_for_one() {
    let scheme = "a URL that begins with http:// or https://, such as http://localhost:11434/v1";
    let credentials = "a URL without credentials (set a key instead)";
    let host = "a host in the URL";
    let port = "a port from 0 to 65535 in the URL";
    let path = "a path such as \"/v1\", without a query";
    for (url, expected) in [
        ("a.example", scheme),
        ("localhost:11434/v1", scheme),
        ("http://a?b", path),
        ("ftp://a", scheme),
        ("http://", scheme),
        ("https://", scheme),
        ("http:///v1", host),
        ("http://u@a", credentials),
        ("http://u:p@host/v1", credentials),
        ("http://a/b?c", path),
        ("http://a:b", port),
        ("http://a:", port),
        ("http://a:70000", port),
        ("http://a:+80", port),
        ("http://a:-80", port),
        ("http://a b", host),
        ("http://[::1", host),
        ("http://[::1]x", port),
        ("http://[::1]:+80", port),
        ("http://a\r\nx", host),
        ("http://h%41", host),
        ("http://a/v1/<RESOURCE>", path),
    ] {
        let error = config(&[("UPSTREAM_URL", url), ("CREOLE_CONFIG", "{}")]).unwrap_err();
        assert_eq!(error, format!("UPSTREAM_URL: expected {expected}"), "{url:?}");
    }
    let path = "expected a URL without a path (set base_path instead)";
    for url in ["http://a/b", "http://a?b", "http://a#b"] {
        assert_eq!(Address::parse(url), Err(path), "{url}");
    }
    for url in ["http://a", "http://a/", "http://a:0", "https://a:65535", "http://[::1]:80"] {
        assert!(Address::parse(url).is_ok(), "{url}");
    }
}

#[test]
fn a_profile_brings_the_base_path_of_its_vendor_unless_another_is_given() {
    let base = |url, document, profile| {
        let made = config(&[
            ("CREOLE_CONFIG", document),
            ("UPSTREAM_URL", url),
            ("CREOLE_PROFILE", profile),
        ]);
        made.unwrap().upstreams.get("a").unwrap().base_path.clone()
    };
    let (bare, own) = (r#"{"upstreams":{"a":{}}}"#, r#"{"upstreams":{"a":{"base_path":"/x"}}}"#);
    assert_eq!(base("https://api.groq.com", bare, "groq"), "/openai/v1");
    assert_eq!(base("https://proxy.example/v1", bare, "groq"), "/v1");
    assert_eq!(base("https://api.groq.com", own, "groq"), "/x");
    let groq = r#"{"upstreams":{"a":{"profile":"groq"}}}"#;
    assert_eq!(base("http://localhost:8000", groq, "vllm"), "/v1");
}

#[test]
fn only_upstreams_without_an_address_get_the_usual_one_of_their_preset() {
    let text = r#"{"upstreams":{"a":{"profile":"groq"},"b":{"profile":"ollama","url":"http://b"},
        "c":{"profile":"azure"}}}"#;
    let mut config = Config::from_json(text, |_| None).unwrap();
    config.fill_urls();
    let urls: Vec<_> = config.upstreams.values().map(|upstream| upstream.url.as_str()).collect();
    assert_eq!(urls, ["https://api.groq.com", "http://b", ""]);
}

#[test]
fn every_name_goes_to_the_model_and_small_names_to_the_small_one() {
    let others = [("claude-x".to_owned(), "x".to_owned())];
    let routed = |model, small, name| {
        let mut config = Config::default();
        config.serve_models(model, small, &others, "--model").unwrap();
        config.route(name).unwrap().1.to_owned()
    };
    let (main, small) = (Some("main"), Some("small"));
    assert_eq!(routed(main, small, "claude-sonnet-5"), "main");
    assert_eq!(routed(main, small, "claude-haiku-4-5-20251001"), "small");
    assert_eq!(routed(main, small, "claude-3-5-haiku-latest"), "small");
    assert_eq!(routed(main, small, "small"), "small");
    assert_eq!(routed(main, small, "claude-x"), "x");
    assert_eq!(routed(main, None, "claude-haiku-4-5"), "main");
    assert_eq!(routed(None, small, "qwen3"), "qwen3");
    let mut several = Config::from_json(r#"{"upstreams":{"a":{},"b":{}}}"#, |_| None).unwrap();
    let error = several.serve_models(main, None, &[], "--model").unwrap_err();
    assert!(error.starts_with("--model: the configuration has several upstreams"), "{error}");
}

#[test]
fn a_profile_that_comes_later_changes_the_protocol_only_where_none_is_named() {
    let protocol = |upstream: &str, profile| {
        let document = format!(r#"{{"upstreams":{{"a":{upstream}}}}}"#);
        let url = ("UPSTREAM_URL", "https://a.example");
        let profile = ("CREOLE_PROFILE", profile);
        let made = config(&[("CREOLE_CONFIG", &document), url, profile]).unwrap();
        made.upstreams.get("a").unwrap().protocol
    };
    assert_eq!(protocol("{}", "openai"), Protocol::Responses);
    assert_eq!(protocol(r#"{"profile":"openai"}"#, "vllm"), Protocol::Openai);
    assert_eq!(protocol(r#"{"protocol":"openai"}"#, "openai"), Protocol::Openai);
    let named = r#"{"profile":"openai","protocol":"responses"}"#;
    assert_eq!(protocol(named, "vllm"), Protocol::Responses);
}

#[test]
fn sizes_are_noted_where_nothing_is_known() {
    let document =
        r#"{"models": {"a": {"model": "m", "max_tokens": 7}, "b*": {"model": "n"}, "*": {}}}"#;
    let mut config = Config::from_json(document, |_| None).unwrap();
    config.note_sizes(|model| if model == "m" { (100, 9) } else { (200, 0) });
    let sizes = |name| {
        let target = config.models.target(name).unwrap();
        (target.max_input_tokens, target.max_tokens)
    };
    assert_eq!((sizes("a"), sizes("b1"), sizes("c")), ((100, 7), (200, 0), (0, 0)));
}
