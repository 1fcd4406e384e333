//! Tests of `document.rs`.

use super::*;
use crate::config::Pairing;

fn config(text: &str) -> Result<Config, String> {
    Config::from_json(text, |name| (name == "KEY").then(|| "sk-canary".to_owned()))
        .map_err(|error| error.to_string())
}

#[test]
fn an_empty_document_is_the_default() {
    assert_eq!(config("{}").unwrap(), Config::default());
}

#[test]
fn bad_documents_are_refused_with_path_and_expectation() {
    for (text, expected) in [
        ("", "configuration: expected a value at byte 0"),
        ("[]", "configuration: expected an object, but found an array"),
        (
            r#"{"strict":true,"str\u0069ct":false}"#,
            "configuration: strict: expected each name once",
        ),
        (
            r#"{"upstreams":{"a":{"url":"http://a","profile_overrides":{"max_id_length":8}}}}"#,
            "configuration: upstreams.a.profile_overrides.max_id_length: expected 0, or at least 9",
        ),
        (
            r#"{"upstreams":{"a":{"url":"http://a","profile_overrides":{"max_tool_name":1}}}}"#,
            "configuration: upstreams.a.profile_overrides.max_tool_name: expected 0, or at least 16",
        ),
        (
            r#"{"strikt":true}"#,
            "configuration: strikt: unknown key; did you mean strict? Expected one of upstreams",
        ),
        (r#"{"strict":1}"#, "configuration: strict: expected a boolean, but found a number"),
        (
            r#"{"request_bytes_max":-1}"#,
            "configuration: request_bytes_max: expected a whole number",
        ),
        (
            r#"{"vision":{"images_max":1000}}"#,
            "configuration: vision.images_max: expected a number from 1 to 100",
        ),
        (
            r#"{"guards":{"breaker":{"action":"x"}}}"#,
            "configuration: guards.breaker.action: expected one of withhold, answer, error, but found",
        ),
        (
            r#"{"upstreams":{"a":{"client_certificate":{"certificate":"a.pem"}}}}"#,
            "configuration: upstreams.a.client_certificate: expected both certificate and key",
        ),
        (
            r#"{"upstreams":{"a":{"profile":"x"}}}"#,
            "configuration: upstreams.a.profile: expected one of default, openai",
        ),
        (
            r#"{"upstreams":{"a":{"profile_overrides":{"top_q":true}}}}"#,
            "configuration: upstreams.a.profile_overrides.top_q: unknown key; did you mean top_k? Expected one of max_tokens_field",
        ),
        (
            r#"{"upstreams":{"a":{"key":{"secret":"NO"}}}}"#,
            "configuration: upstreams.a.key.secret: expected an environment variable called \"NO\"",
        ),
        (
            r#"{"upstreams":{"a":{"key":{"env":"NO"}}}}"#,
            "configuration: upstreams.a.key.env: expected an environment variable called \"NO\"",
        ),
        (
            r#"{"upstreams":{"a":{"session_headers":["x-session-id","Authorization"]}}}"#,
            "configuration: upstreams.a.session_headers[1]: expected another name (set key instead)",
        ),
        (
            r#"{"upstreams":{"a":{"session_headers":["a b"]}}}"#,
            "configuration: upstreams.a.session_headers[0]: expected the name of a header",
        ),
        (
            r#"{"upstreams":{"a":{"session_headers":["x-a","X-A"]}}}"#,
            "configuration: upstreams.a.session_headers[1]: expected each name once",
        ),
        (
            r#"{"upstreams":{"a":{"session_headers":["a","b","c","d","e","f","g","h","i"]}}}"#,
            "configuration: upstreams.a.session_headers[8]: expected at most 8 names",
        ),
        (
            r#"{"upstreams":{"a":{"session_id":"raw"}}}"#,
            "configuration: upstreams.a.session_id: expected one of plain, hash, but found",
        ),
        (
            r#"{"upstreams":{"a":{"url":"ftp://x"}}}"#,
            "configuration: upstreams.a.url: expected a URL that begins with http",
        ),
        (
            r#"{"upstreams":{"a":{"url":"http://x/api","base_path":"/v1"}}}"#,
            "configuration: upstreams.a.base_path: expected none, because url has a path",
        ),
        (
            r#"{"upstreams":{"a":{"base_path":"v1"}}}"#,
            "configuration: upstreams.a.base_path: expected a path",
        ),
        (
            r#"{"upstreams":{"a":{"base_path":"/v1\r\nx: y"}}}"#,
            "configuration: upstreams.a.base_path: expected a path",
        ),
        (
            r#"{"upstreams":{"a":{},"b":{}},"models":{"m":{}}}"#,
            "configuration: models.m.upstream: expected the name of an upstream",
        ),
        (
            r#"{"models":{"m":{"upstream":"x"}}}"#,
            "configuration: models.m.upstream: expected a name in upstreams",
        ),
        (
            r#"{"upstreams":{"a":{"guards":{"pairs":"off"}}}}"#,
            "configuration: upstreams.a.guards.pairs: unknown key; did you mean pairing? Expected one of pairing",
        ),
        (
            r#"{"upstreams":{"a":{"guards":{"breaker":{"withhold_after":1}}}}}"#,
            "configuration: upstreams.a.guards.breaker.withhold_after: expected at least",
        ),
        (r#"{"invalid_tool_call":"hold"}"#, "configuration: invalid_tool_call: \"hold\" needs"),
    ] {
        let error = config(text).unwrap_err();
        assert!(error.starts_with(expected), "{text}: {error}");
    }
}

#[test]
fn what_is_no_json_is_named_by_line_and_column() {
    for (text, place) in [
        ("", "at byte 0 (line 1, column 1)"),
        ("{\n  \"strict\": true,,\n}", "at byte 19 (line 2, column 18)"),
        ("{\"models\": {\"ä\": x}}", "at byte 18 (line 1, column 18)"),
        ("{\"upstreams\": {\"a\":\n {\"guards\": [}}}", "at byte 33 (line 2, column 14)"),
    ] {
        let error = config(text).unwrap_err();
        assert!(error.ends_with(place), "{text}: {error}");
    }
}

#[test]
fn secrets_are_found_and_never_printed() {
    // The member `secret` is the former name of `env`.
    for member in ["env", "secret"] {
        let document = format!(r#"{{"upstreams":{{"a":{{"key":{{"{member}":"KEY"}}}}}}}}"#);
        let config = config(&document).unwrap();
        assert_eq!(
            config.upstreams.get("a").unwrap().key,
            crate::config::Key::Secret("sk-canary".to_owned())
        );
        assert!(!format!("{config:?}").contains("canary"));
    }
}

#[test]
fn a_key_that_stands_in_the_document_is_never_quoted() {
    for key in [
        r#""sk-live-1""#,
        r#"["sk-live-1"]"#,
        r#"{"value":"sk-live-1"}"#,
        r#"{"sk-live-1":true}"#,
        r#"{"env":"sk-live-1"}"#,
        r#"{"secret":"sk-live-1"}"#,
        r#"{"secret":{"sk-live-1":1}}"#,
        r#"{"secret":"KEY","sk-live-1":""}"#,
    ] {
        let error = config(&format!(r#"{{"upstreams":{{"a":{{"key":{key}}}}}}}"#)).unwrap_err();
        assert!(error.starts_with("configuration: upstreams.a.key"), "{error}");
        assert!(error.ends_with("a key itself is never written here"), "{error}");
        assert!(!error.contains("live"), "{error}");
    }
}

/// Returns the time in which a configuration with `count` prefixes is read, longest prefixes last.
fn time_of_prefixes(count: usize) -> std::time::Duration {
    let entry = |number: usize| {
        let padding = "x".repeat(number.saturating_mul(50).div_euclid(count));
        format!(r#""{padding}{number:06}-*": {{"model": "m{number}"}}"#)
    };
    let models: Vec<String> = (0..count).map(entry).collect();
    let text = format!(r#"{{"models": {{{}}}}}"#, models.join(","));
    let began = std::time::Instant::now();
    let config = Config::from_json(&text, |_| None).unwrap();
    let time = began.elapsed();
    assert_eq!(config.models.target("000007-a").unwrap().model, "m7");
    assert!(config.models.target("é").is_none() && config.models.target("000007").is_none());
    let longest = config.models.wildcards().next().unwrap().0;
    assert!(longest.starts_with(&"x".repeat(49)), "{longest}");
    time
}

#[test]
fn many_prefixes_are_read_in_the_time_of_sorting_them() {
    time_of_prefixes(3_000);
    let (few, many) = (time_of_prefixes(3_000), time_of_prefixes(300_000));
    assert!(
        many.as_micros() < few.as_micros().saturating_mul(700),
        "{few:?} for 3,000, {many:?} for 300,000"
    );
}

#[test]
fn models_are_looked_up_by_name_then_prefix_then_star() {
    let config = config(
        r#"{"upstreams":{"a":{},"b":{"profile":"openai-chat","profile_overrides":{"max_stop":2}}},
                "models":{"claude-x":{"upstream":"a","model":"m1"},
                          "claude-*":{"upstream":"b","model":"m2"},
                          "claude-haiku*":{"upstream":"b","model":"m3"},
                          "*":{"upstream":"a"}}}"#,
    )
    .unwrap();
    let route = |model| {
        let (upstream, model) = config.route(model).unwrap();
        (upstream.name.clone(), model.to_owned())
    };
    assert_eq!(route("claude-x"), ("a".into(), "m1".into()));
    // The suffix `[1m]`, a client's mark of a longer context, is ignored.
    assert_eq!(route("claude-x[1m]"), ("a".into(), "m1".into()));
    assert_eq!(route("gpt[1M][1m]"), ("a".into(), "gpt".into()));
    assert_eq!(route("[1m]"), ("a".into(), "[1m]".into()));
    assert_eq!(route("claude-y"), ("b".into(), "m2".into()));
    assert_eq!(route("claude-haiku-9"), ("b".into(), "m3".into()));
    assert_eq!(route("qwen"), ("a".into(), "qwen".into()));
    assert_eq!(config.upstreams.get("b").unwrap().profile.max_stop, 2);
    assert_eq!(config.upstreams.get("b").unwrap().profile.max_tools, 128);
}

#[test]
fn without_a_model_map_everything_goes_to_the_first_upstream_by_name() {
    let text =
        r#"{"upstreams":{"b":{"url":"http://b"},"a":{"url":"http://a"},"c":{"url":"http://c"}}}"#;
    let config = Config::from_json(text, |_| None).unwrap();
    assert_eq!(config.route("m").unwrap().0.name, "a");
    assert_eq!(config.first_upstream().unwrap().name, "a");
}

#[test]
fn an_upstream_has_guards_of_its_own_over_those_of_all() {
    let config = config(
        r#"{"upstreams":{"n8n":{"guards":{"tool_turns_max":10}},"code":{}},
                "models":{"*":{"upstream":"code"}},"guards":{"pairing":"reject"}}"#,
    )
    .unwrap();
    let guards = |name| config.guards(config.upstreams.get(name).unwrap());
    let all = (Pairing::Reject, 0);
    assert_eq!((guards("code").pairing, guards("code").tool_turns_max), all);
    assert_eq!((guards("n8n").pairing, guards("n8n").tool_turns_max), (Pairing::Reject, 10));
}

#[test]
fn a_model_outside_the_map_has_no_route() {
    let config = config(r#"{"models":{"claude-x":{"model":"m"}}}"#).unwrap();
    assert!(config.route("gpt").is_none());
    assert_eq!(config.route("claude-x").unwrap().1, "m");
}

#[test]
fn a_preset_has_its_protocol_and_a_named_protocol_wins() {
    let speaks = |upstream: &str| {
        let config = config(&format!(r#"{{"upstreams":{{"u":{upstream}}}}}"#)).unwrap();
        let upstream = config.upstreams.get("u").unwrap();
        (upstream.protocol, upstream.profile.obfuscation)
    };
    assert_eq!(speaks(r#"{"profile":"openai"}"#), (Protocol::Responses, false));
    assert_eq!(speaks(r#"{"profile":"azure"}"#), (Protocol::Responses, false));
    assert_eq!(speaks(r#"{"profile":"openai-chat"}"#), (Protocol::Openai, true));
    assert_eq!(speaks(r#"{"profile":"openai","protocol":"openai"}"#), (Protocol::Openai, true));
    let named = r#"{"profile":"openai-chat","protocol":"responses"}"#;
    assert_eq!(speaks(named), (Protocol::Responses, false));
    assert_eq!(speaks(r#"{"profile":"vllm","protocol":"responses"}"#).0, Protocol::Responses);
    assert_eq!(speaks("{}").0, Protocol::Openai);
}

#[test]
fn comments_and_last_commas_are_no_part_of_a_document() {
    let text =
        "// for all\n{ /* of \u{e9} */ \"strict\": true, # short\n \"models\": {\"a//b\": {},},}";
    let config = Config::from_json(text, |_| None).unwrap();
    assert!(config.settings.strict && format!("{:?}", config.models).contains("a//b"));
    let error = Config::from_json("{\n// one\n\"strict\": 1}", |_| None).unwrap_err().to_string();
    assert!(error.starts_with("configuration: strict: expected"), "{error}");
    for (text, place) in
        [("{\n// one\n\"strict\" 1}", "(line 3, column 10)"), ("{ /* one", "line 1")]
    {
        let error = Config::from_json(text, |_| None).unwrap_err().to_string();
        assert!(error.contains(place), "{error}");
    }
}

#[test]
fn the_nearest_key_is_named() {
    let told = |text| Config::from_json(text, |_| None).unwrap_err().to_string();
    assert!(
        told(r#"{"upstreems":{}}"#)
            .contains("upstreems: unknown key; did you mean upstreams? Expected")
    );
    assert!(told(r#"{"guards":{"Loop-Guard":{}}}"#).contains("guards.Loop-Guard: unknown key"));
    let none = told(r#"{"xyzzy":1}"#);
    assert!(none.contains("xyzzy: unknown key, expected one of upstreams"), "{none}");
}
