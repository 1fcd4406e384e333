//! Project's fixtures as trials, with the comparison of their results between hosts.

use std::collections::BTreeMap;

use creole_rig::COMPLETION;
pub use creole_rig::FINISH;
use serde_json::{Map, Value, json};

use crate::ordinals::Ordinals;
use crate::support::fixture::{self, Fixture};
use crate::upstream::Upstream;
use crate::{Answer, Got, Header, Request, Trial};

/// Model name in the fixtures. Each trial replaces it by a unique name of the same length, which
/// selects the trial's upstream.
const MODEL: &str = "claude-test";

/// Trials that use the same configuration.
#[derive(Debug, Default)]
pub struct Suite {
    /// Configuration of the hosts for these trials.
    pub config: Value,
    /// Trials of the suite.
    pub trials: Vec<Named>,
}

/// Trial made from a fixture, with its name and the expected result.
#[derive(Clone, Debug)]
pub struct Named {
    /// Name of the fixture and of the trial within it.
    pub name: String,
    /// Trial that was made from the fixture.
    pub trial: Trial,
    /// Result that the fixture expects.
    pub expected: Value,
    /// True if the client asks for a stream.
    pub stream: bool,
    /// True if the fixture is about the request to the upstream, and not about the answer.
    pub is_request: bool,
    /// Configuration of the trial's upstream.
    pub upstream: Value,
}

/// Returns the trials of all fixtures. Profiles are upstreams of one configuration; other settings
/// need a suite of their own.
pub fn all() -> Vec<Suite> {
    let mut suites: BTreeMap<String, Suite> = BTreeMap::new();
    let mut number = 0;
    for fixture in fixture::all() {
        for (settings, named) in trials(&fixture, &mut number) {
            let suite = suites
                .entry(settings.to_string())
                .or_insert_with(|| Suite { config: settings.clone(), trials: Vec::new() });
            let key = &named.trial.key;
            suite.config["upstreams"][key] = named.upstream.clone();
            suite.config["models"][model(key)] = json!({"upstream": key, "model": MODEL});
            suite.trials.push(named);
        }
    }
    suites.into_values().collect()
}

fn model(key: &str) -> String {
    format!("claude-{key}")
}

fn trials(fixture: &Fixture, number: &mut usize) -> Vec<(Value, Named)> {
    let mut trials = Vec::new();
    let mut add = |name: String, of: &Value, expected: Value, body: &Value, answer: Answer| {
        *number += 1;
        let key = format!("{number:04}");
        let profile = of["profile"].as_str().unwrap_or("default");
        let address = Upstream::shared().address();
        let mut upstream = json!({
            "url": format!("http://{address}"), "base_path": format!("/{key}/v1"),
            "profile": profile
        });
        for key in ["profile_overrides", "protocol"] {
            if let Some(value) = of.get(key) {
                upstream[key] = value.clone();
            }
        }
        let stream = body["stream"] == true;
        let mut body = body.clone();
        if body["model"] == MODEL {
            body["model"] = model(&key).into();
        }
        let named = Named {
            name: format!("{}{name}", fixture.name),
            trial: Trial { key, request: Request::messages(body.to_string()), answer },
            expected,
            stream,
            is_request: fixture.upstream.is_none(),
            upstream,
        };
        let settings = match of["settings"].as_object() {
            Some(settings) => Value::Object(settings.clone()),
            None => Value::Object(Map::new()),
        };
        trials.push((settings, named));
    };
    if let Some(upstream) = &fixture.upstream {
        for stream in fixture.ways() {
            let body: Value = serde_json::from_slice(&fixture.request(stream)).unwrap();
            let mut answer = Answer::whole(fixture.status(), "", upstream.clone());
            answer.headers = fixture.headers();
            let name = if stream { " (streamed)" } else { " (whole)" };
            let expected = fixture.expected.clone();
            add(name.to_owned(), &fixture.meta, expected, &body, answer);
        }
    }
    for (number, variant) in
        fixture.expected["variants"].as_array().into_iter().flatten().enumerate()
    {
        let mut body = fixture::patched(&fixture.request, &variant["patch"]);
        if fixture.meta["stream"] == true {
            body["stream"] = true.into();
        }
        // The test concerns only the request, so any answer will do.
        let answer = Answer::json(COMPLETION);
        add(format!(" (variant {number})"), variant, variant.clone(), &body, answer);
    }
    trials
}

/// Names of headers that belong to connections rather than messages. Hosts may differ in them, so
/// the comparison ignores them.
const OF_CONNECTIONS: &[&str] = &[
    "connection",
    "content-length",
    "date",
    "host",
    "keep-alive",
    "server",
    "transfer-encoding",
    "x-creole-upstream",
    "x-envoy-attempt-count",
    "x-envoy-expected-rq-timeout-ms",
    "x-envoy-internal",
    "x-envoy-upstream-service-time",
    "x-forwarded-for",
    "x-forwarded-proto",
];

/// Returns the parts of a response that must be the same on every host, as text.
pub fn comparable(got: &Got) -> String {
    let mut ordinals = Ordinals::default();
    let mut text = format!("status {}, {:?}\n", got.status, got.end);
    let kept = |headers: &[Header], request: bool| {
        let mut kept: Vec<String> = headers
            .iter()
            .filter(|(name, _)| !OF_CONNECTIONS.contains(&name.as_str()))
            // Envoy adds an id to each request.
            .filter(|(name, _)| !(request && name == "x-request-id"))
            .map(|(name, value)| format!("{name}: {value}\n"))
            .collect();
        kept.sort();
        kept.concat()
    };
    text.push_str(&kept(&got.headers, false));
    text.push_str(&String::from_utf8_lossy(&got.body));
    for seen in &got.upstream {
        text.push_str(&format!("\n--- upstream got {} {}\n", seen.method, seen.path));
        text.push_str(&kept(&seen.headers, true));
        text.push_str(&String::from_utf8_lossy(&seen.body));
    }
    ordinals.replace(text.as_bytes())
}

/// Describes the first difference of two texts in a few lines.
pub fn difference(expected: &str, found: &str) -> String {
    let at = expected.bytes().zip(found.bytes()).position(|(left, right)| left != right);
    let at = at.unwrap_or_else(|| expected.len().min(found.len()));
    let around = |text: &str| {
        let bytes = text.as_bytes();
        let part = &bytes[at.saturating_sub(120).min(bytes.len())..(at + 160).min(bytes.len())];
        String::from_utf8_lossy(part).into_owned()
    };
    format!("at byte {at}, core:\n{}\n... but here:\n{}", around(expected), around(found))
}

/// Returns a configuration with an upstream and a model (`claude-KEY`) for each key, and these
/// settings.
pub fn config(keys: &[&str], settings: Value) -> Value {
    let mut config = settings;
    let address = Upstream::shared().address();
    for key in keys {
        config["upstreams"][*key] = json!({
            "url": format!("http://{address}"), "base_path": format!("/{key}/v1")
        });
        config["models"][model(key)] = json!({"upstream": key, "model": "m"});
    }
    config
}

/// Returns a request for the model of `key` with this text.
pub fn messages(key: &str, stream: bool, text: &str) -> Request {
    let body = json!({
        "model": model(key), "max_tokens": 100, "stream": stream,
        "messages": [{"role": "user", "content": text}]
    });
    Request::messages(body.to_string())
}

/// Returns a chunk of a stream with this text.
pub fn chunk(text: &str) -> String {
    String::from_utf8(creole_rig::chunk(text).into()).unwrap()
}

/// Returns a complete answer with this text.
pub fn completion(text: &str) -> String {
    COMPLETION.replace("Hi there", text)
}
