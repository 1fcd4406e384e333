//! The configuration as it is published: the schema, the page and the examples are what the code
//! reads.
//!
//! `CREOLE_WRITE=1 cargo test -p creole --test configuration` writes what is made from the code.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "a test")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use creole::config::{Protocol, schema};
use creole::observe::report::Cause;
use creole::profile::presets::PRESETS;
use creole::{Config, End, Header};
use serde_json::{Value, json};

use support::grammar::{self, Rules};
use support::{drive, fixture};

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// Compares a file with what it should be, or writes it.
fn same(name: &str, expected: &str) {
    if std::env::var_os("CREOLE_WRITE").is_some() {
        fs::write(path(name), expected).unwrap();
    }
    let found = fs::read_to_string(path(name)).unwrap_or_default();
    assert!(
        found == expected,
        "{name} is old: CREOLE_WRITE=1 cargo test -p creole --test configuration"
    );
}

#[test]
fn the_published_schema_is_that_of_the_code() {
    let schema: Value = serde_json::from_str(&schema::schema()).unwrap();
    same(
        "docs/configuration.schema.json",
        &(serde_json::to_string_pretty(&schema).unwrap() + "\n"),
    );
}

#[test]
fn the_page_lists_every_key_as_the_code_reads_it() {
    const MARK: &str = "<!-- From here on, made from the code: see tests/configuration.rs -->\n";
    let name = "docs/configuration.md";
    let page = fs::read_to_string(path(name)).unwrap();
    let (own, _) = page.split_once(MARK).expect("the mark");
    same(name, &format!("{own}{MARK}\n{}", schema::tables()));
}

fn examples() -> Vec<(String, String)> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(path("examples")).unwrap().map(|entry| entry.unwrap().path()).collect();
    // A host in Rust is an example, too.
    files.retain(|file| file.extension().is_some_and(|ending| ending == "json"));
    files.sort();
    let name = |path: &PathBuf| path.file_stem().unwrap().to_string_lossy().into_owned();
    files.iter().map(|path| (name(path), fs::read_to_string(path).unwrap())).collect()
}

#[test]
fn a_limit_that_leaves_no_room_is_refused_and_the_least_is_not() {
    let bytes = "expected at least 1024 bytes, but found 1023";
    let millis = "expected at least 10 ms, but found 9";
    for (key, least, reason) in [
        ("request_bytes_max", 1024, bytes),
        ("response_bytes_max", 1024, bytes),
        ("event_bytes_max", 1024, bytes),
        ("waiting_bytes_max", 1024, bytes),
        ("buffered_bytes_max", 1024, bytes),
        ("no_progress_timeout_ms", 10, millis),
        ("ping_interval_ms", 10, millis),
    ] {
        let read = |value| Config::from_json(&format!("{{\"{key}\":{value}}}"), |_| None);
        assert!(read(least).is_ok(), "{key}");
        let error = read(least - 1).unwrap_err().to_string();
        assert_eq!(error, format!("configuration: {key}: {reason}"));
    }
}

#[test]
fn the_schema_has_the_bounds_of_the_code() {
    let schema: Value = serde_json::from_str(&schema::schema()).unwrap();
    let mut seen = 0;
    for (key, property) in schema["properties"].as_object().unwrap() {
        let Some(least) = property["minimum"].as_u64() else { continue };
        let most = property["maximum"].as_u64();
        let read = |value| Config::from_json(&format!("{{\"{key}\":{value}}}"), |_| None);
        assert!(read(least).is_ok(), "{key}");
        assert!(least == 0 || read(least - 1).is_err(), "{key}");
        assert!(most.is_none_or(|most| read(most).is_ok() && read(most + 1).is_err()), "{key}");
        seen += usize::from(least > 0);
    }
    assert!(seen > 6);
    let overrides =
        "/properties/upstreams/additionalProperties/properties/profile_overrides/properties";
    for (key, property) in schema.pointer(overrides).unwrap().as_object().unwrap() {
        let Some(choices) = property["anyOf"].as_array() else { continue };
        let least = choices[1]["minimum"].as_u64().unwrap();
        let read = |value| {
            let json =
                json!({"upstreams": {"u": {"url": "http://u", "profile_overrides": {key: value}}}});
            Config::from_json(&json.to_string(), |_| None)
        };
        assert!(read(0).is_ok() && read(least).is_ok() && read(least - 1).is_err(), "{key}");
        assert_eq!(choices[0]["const"], 0);
        seen += 1;
    }
    assert!(seen > 8);
}

/// Checks a value against a schema, as far as the schema goes: types, words, keys.
fn check(schema: &Value, value: &Value, place: &str) {
    if let Some(expected) = schema.get("const") {
        assert_eq!(value, expected, "{place}");
    }
    for key in ["oneOf", "anyOf"] {
        if let Some(ways) = schema.get(key).and_then(Value::as_array) {
            let fits = |way: &&Value| match way.get("const") {
                Some(word) => word == value,
                None => value.is_object(),
            };
            let way = ways.iter().find(fits).unwrap_or_else(|| panic!("{place}: {value}"));
            check(way, value, place);
        }
    }
    if let Some(words) = schema.get("enum").and_then(Value::as_array) {
        assert!(words.contains(value), "{place}: {value}");
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("object") => {
            for (key, member) in value.as_object().unwrap_or_else(|| panic!("{place}: {value}")) {
                let known = schema.get("properties").and_then(|known| known.get(key));
                let other = schema.get("additionalProperties").filter(|other| other.is_object());
                let of = known.or(other).unwrap_or_else(|| panic!("{place}.{key}: unknown key"));
                check(of, member, &format!("{place}.{key}"));
            }
        }
        Some("array") => {
            for element in value.as_array().unwrap() {
                check(&schema["items"], element, place);
            }
        }
        Some("boolean") => assert!(value.is_boolean(), "{place}"),
        Some("integer") => assert!(value.is_u64(), "{place}"),
        Some("string") => assert!(value.is_string(), "{place}"),
        _ => {}
    }
}

#[test]
fn every_example_is_read_and_obeys_the_schema() {
    let schema: Value = serde_json::from_str(&schema::schema()).unwrap();
    let examples = examples();
    for (name, text) in &examples {
        drive::config(text);
        check(&schema, &serde_json::from_str(text).unwrap(), name);
    }
    let names: Vec<&str> = examples.iter().map(|(name, _)| name.as_str()).collect();
    for name in [
        "openai",
        "openai-chat",
        "azure",
        "xai",
        "vllm",
        "sglang",
        "llama.cpp",
        "ollama",
        "groq",
        "deepseek",
        "kimi",
        "mistral",
        "openrouter",
        "lmstudio",
    ] {
        assert!(names.contains(&name), "{name}");
    }
}

#[test]
#[should_panic(expected = "unknown key")]
fn the_check_of_the_schema_can_fail() {
    let schema: Value = serde_json::from_str(&schema::schema()).unwrap();
    check(&schema, &serde_json::json!({"guards": {"pairings": "off"}}), "");
}

#[test]
fn the_table_of_examples_names_their_presets_and_counts_their_overrides() {
    const NUMBERS: [&str; 10] = [
        "", ", one", ", two", ", three", ", four", ", five", ", six", ", seven", ", eight",
        ", nine",
    ];
    let page = fs::read_to_string(path("docs/configuration.md")).unwrap();
    for (name, text) in examples() {
        let document: Value = serde_json::from_str(&text).unwrap();
        let upstreams = document["upstreams"].as_object().unwrap().values();
        let presets = upstreams.map(|upstream| {
            let count = upstream["profile_overrides"].as_object().map_or(0, |keys| keys.len());
            let word = match count {
                0 => "",
                1 => " override",
                _ => " overrides",
            };
            format!("`{}`{}{word}", upstream["profile"].as_str().unwrap(), NUMBERS[count])
        });
        let cell = presets.collect::<Vec<_>>().join("; ");
        let row = format!("| `examples/{name}.json` | {cell} |");
        assert!(page.contains(&row), "{row}");
    }
}

#[test]
fn the_table_of_profiles_says_what_each_speaks() {
    let page = fs::read_to_string(path("docs/configuration.md")).unwrap();
    let (_, table) = page.split_once("## What each profile speaks").unwrap();
    let rows = || {
        table.lines().skip_while(|line| !line.starts_with("| `")).map_while(|line| {
            let (names, rest) = line.strip_prefix("| `")?.split_once("` | ")?;
            Some((names.split("`, `"), rest.split_once(" | ")?.0))
        })
    };
    let mut listed = Vec::new();
    for (names, speaks) in rows() {
        for name in names {
            let document = format!(r#"{{"upstreams":{{"u":{{"profile":"{name}"}}}}}}"#);
            let protocol = drive::config(&document).upstreams.get("u").unwrap().protocol;
            let word = match protocol {
                Protocol::Responses => "Responses",
                _ => "Chat Completions",
            };
            assert_eq!(word, speaks, "{name}");
            listed.push(name);
        }
    }
    listed.sort_unstable();
    let mut presets = PRESETS.to_vec();
    presets.sort_unstable();
    assert_eq!(listed, presets);
}

#[test]
fn kimi_gets_what_its_api_has_a_place_for() {
    let examples = examples();
    let (_, text) = examples.iter().find(|(name, _)| name == "kimi").unwrap();
    let request = serde_json::json!({
        "model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "q"}],
        "stop_sequences": ["a", "b", "c", "d", "e", "f"],
        "metadata": {"user_id": "{\"session_id\":\"s-1\"}"},
    })
    .to_string();
    let headers = [("x-api-key", "sk-test")];
    let (_, sent) =
        drive::request(&drive::config(text), "/v1/messages", &headers, request.as_bytes()).unwrap();
    let body: Value = serde_json::from_slice(&sent.body).unwrap();
    assert_eq!(body["stop"], serde_json::json!(["a", "b", "c", "d", "e"]));
    assert_eq!(body["prompt_cache_key"], "s-1");
    assert_eq!((body["safety_identifier"].is_string(), body.get("user")), (true, None));
}

/// Returns the dialect in which an upstream of this kind was seen to answer: the reported one, or
/// that of what it runs.
fn dialect(example: &str) -> &str {
    match example {
        "kimi" => "moonshot",
        "sglang" | "several" => "vllm",
        "openai-chat" => "openai",
        // Of Responses there, no answer was reported that OpenAI does not give.
        "azure" | "xai" => "openai",
        "lmstudio" => "llama.cpp",
        other => other,
    }
}

#[test]
fn every_example_serves_the_dialect_of_its_upstream() {
    let fixtures = fixture::all();
    for (name, text) in examples() {
        let config = drive::config(&text);
        let mut messages = 0;
        for case in fixtures.iter().filter(|case| case.vendor() == dialect(&name)) {
            let Some(upstream) = &case.upstream else { continue };
            for stream in case.ways() {
                let headers = [("x-api-key", "sk-test")];
                let sent = drive::request(&config, "/v1/messages", &headers, &case.request(stream));
                let (exchange, sent) = match sent {
                    Ok(sent) => sent,
                    // An upstream that cannot do it, told by the flags.
                    Err(answer) => {
                        assert_eq!(answer.head.status, 400, "{name}: {}", case.name);
                        continue;
                    }
                };
                let target = config.upstreams.get(sent.upstream().unwrap()).unwrap();
                let (protocol, endpoint) = match target.protocol {
                    Protocol::Responses => ("responses", "responses"),
                    _ => ("openai", "chat/completions"),
                };
                assert_eq!(sent.path, format!("{}/{endpoint}", target.base_path), "{name}");
                // An answer in the other protocol is not its upstream's.
                if case.meta["protocol"].as_str().unwrap_or("openai") != protocol {
                    continue;
                }
                let key = sent.headers.iter().find(|(key, _)| key == "authorization").unwrap();
                let own = text.contains("\"env\"");
                assert_eq!(key.1.contains("secret-of-"), own, "{name}: {key:?}");
                let body: Value = serde_json::from_slice(&sent.body).unwrap();
                let model = body["model"].as_str().unwrap();
                let mapped = text.contains("\"*\"");
                assert_eq!(model == case.request["model"], !mapped, "{name}: {model}");
                let head: Vec<Header> = case.headers();
                let answer = drive::respond(
                    exchange,
                    case.status(),
                    &head,
                    [upstream.as_slice()],
                    End::Complete,
                );
                let is_stream = answer
                    .head
                    .headers
                    .iter()
                    .any(|(_, value)| value.starts_with("text/event-stream"));
                if is_stream {
                    let rules = Rules { invalid_input_shown: true, ..Rules::default() };
                    let events = grammar::check_stream(&answer.body, rules);
                    let events =
                        events.unwrap_or_else(|wrong| panic!("{name}: {}: {wrong}", case.name));
                    messages += usize::from(events.last().unwrap().name == "message_stop");
                } else if answer.head.status == 200 {
                    let message = serde_json::from_slice(&answer.body).unwrap();
                    grammar::check_message(&message).unwrap();
                    messages += 1;
                } else {
                    let error = serde_json::from_slice(&answer.body).unwrap();
                    grammar::error_body(&error).unwrap();
                }
            }
        }
        assert!(messages > 0, "{name}: no message of its upstream");
    }
}

#[test]
fn every_metric_is_in_the_page_for_operators() {
    let page = fs::read_to_string(path("docs/observability.md")).unwrap();
    for (metric, _) in creole::observe::metrics::METRICS {
        let line = page.lines().find(|line| line.contains(&format!("`{}`", metric.name)));
        let line = line.unwrap_or_else(|| panic!("{} is not in the page", metric.name));
        for label in metric.labels {
            assert!(line.contains(&format!("`{label}`")), "{}: {label}", metric.name);
        }
    }
}

#[test]
fn every_cause_is_in_the_page_for_operators() {
    let page = fs::read_to_string(path("docs/observability.md")).unwrap();
    let (_, causes) = page.split_once("### Causes").unwrap();
    let (causes, _) = causes.split_once("\n## ").unwrap();
    let named = |word: &str| {
        let row = |line: &str| line.split('|').nth(1).is_some_and(|cell| cell.contains(word));
        causes.lines().any(row)
    };
    let others = ["reply", "request_refused", "upstream_error", "client_gone", "gateway"];
    for word in Cause::WORDS.iter().chain(&others) {
        assert!(named(&format!("`{word}`")), "{word} is not in the page");
    }
}

/// Returns the error that the operator reads of a configuration that is refused.
#[track_caller]
fn refused(json: &str, secret: &str) -> String {
    match Config::from_json(json, |_| Some(secret.to_owned())) {
        Ok(_) => panic!("taken: {json}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_base_path_is_a_plain_path_and_is_never_quoted() {
    let upstream = |path: &str| format!(r#"{{"upstreams":{{"a":{{"base_path":"{path}"}}}}}}"#);
    for path in
        ["/v1?key=sk-live-1", "/openai/deployments/d?api-version=2024", "/v1#a", "sk-live-1"]
    {
        let error = refused(&upstream(path), "");
        let expected = "configuration: upstreams.a.base_path: expected a path such as \"/v1\"";
        assert!(error.starts_with(expected) && !error.contains(path), "{error}");
    }
}

#[test]
fn a_star_that_would_match_nothing_is_refused() {
    for name in ["claude-*-haiku", "*haiku", "claude-**", "**", ""] {
        let error = refused(&format!(r#"{{"models":{{"{name}":{{"model":"m"}}}}}}"#), "");
        let expected = format!("configuration: models.{name}: expected a name, or one that ends");
        assert!(error.starts_with(&expected), "{error}");
    }
}

#[test]
fn a_secret_that_no_header_can_hold_stops_the_start() {
    let document = r#"{"upstreams":{"a":{"key":{"secret":"KEY"}}}}"#;
    for secret in ["sk-live\n-1", "sk-live\r\n\r\n-1", "sk-live-\u{e9}", " \n", "sk-live\0"] {
        let error = refused(document, secret);
        let expected = "configuration: upstreams.a.key.secret: expected a key in one line";
        assert!(error.starts_with(expected) && !error.contains("live"), "{error}");
    }
    // Files and shells leave a line end behind it.
    Config::from_json(document, |_| Some(" sk-live-1\r\n".to_owned())).unwrap();
}

#[test]
fn a_document_may_have_a_byte_order_mark() {
    Config::from_json("\u{feff}{\"strict\": true}", |_| None).unwrap();
    let error = refused("\u{feff}{\"strict\" true}", "");
    assert!(error.ends_with("(line 1, column 11)"), "{error}");
}
