//! Fields that Creole writes in a Responses request: each that is decided to be written is, every
//! other one never.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{host, way};
use crate::spec::Spec;
use crate::support::{drive, fixture};
use crate::{REQUEST, Tally, Walk, Way, each_field, run};

const TYPES: &str = include_str!("../../spec/responses_request.json");
const ROOT: &str = "response_create_params.ResponseCreateParamsNonStreaming";
const STREAMING: &str = "response_create_params.ResponseCreateParamsStreaming";

/// Members that servers other than OpenAI's read.
const VENDORS: [&str; 1] = ["top_k"];

/// Fields that were seen in the bodies for upstreams, with the words of enumerations.
#[derive(Default)]
struct Seen {
    fields: BTreeMap<(String, String), BTreeSet<String>>,
    failures: BTreeSet<String>,
}

impl Seen {
    fn body(&mut self, spec: &Spec, mut body: Value) {
        for name in VENDORS {
            body.as_object_mut().unwrap().remove(name);
        }
        let root = if body["stream"] == true { STREAMING } else { ROOT };
        if let Err(error) = self.object(spec, root, &body) {
            self.failures.insert(error);
        }
    }

    fn object(&mut self, spec: &Spec, name: &str, value: &Value) -> Result<(), String> {
        for (field, value) in value.as_object().unwrap() {
            let Some(facts) = spec.field(name, field) else {
                return Err(format!("{name}.{field} is written, which no SDK knows: {value}"));
            };
            self.fields.entry((name.to_owned(), field.clone())).or_default();
            self.value(spec, (name, field), &facts.tree, value)?;
        }
        Ok(())
    }

    fn value(
        &mut self,
        spec: &Spec,
        at: (&str, &str),
        tree: &Value,
        value: &Value,
    ) -> Result<(), String> {
        let Some(tree) = fitting(spec, tree, value) else {
            return Err(format!("{}.{}: no type for {value}", at.0, at.1));
        };
        if let Some(item) = tree.get("array") {
            let mut items = value.as_array().unwrap().iter();
            return items.try_for_each(|value| self.value(spec, at, item, value));
        }
        if tree.get("enum").is_some() || tree == "boolean" {
            let key = (at.0.to_owned(), at.1.to_owned());
            let word = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            self.fields.entry(key).or_default().insert(word);
        }
        match tree.as_str().and_then(|name| name.strip_prefix('#')) {
            Some(name) => self.object(spec, name, value),
            None => Ok(()),
        }
    }
}

/// The alternative of a type that a value has.
fn fitting<'t>(spec: &Spec, tree: &'t Value, value: &Value) -> Option<&'t Value> {
    let fits = match tree {
        Value::String(kind) => match kind.as_str() {
            "string" => value.is_string(),
            "integer" => value.is_u64(),
            "number" => value.is_number(),
            "boolean" => value.is_boolean(),
            "null" => value.is_null(),
            "object" => true,
            name => is_of(spec, name.strip_prefix('#').unwrap(), value),
        },
        tree => {
            if let Some(alternatives) = tree["any"].as_array() {
                return alternatives.iter().find_map(|tree| fitting(spec, tree, value));
            }
            match (&tree["enum"], tree.get("array")) {
                (Value::Array(words), _) => words.contains(value),
                (_, Some(item)) => {
                    let mut items = value.as_array().into_iter().flatten();
                    value.is_array() && items.all(|value| fitting(spec, item, value).is_some())
                }
                _ => value.is_object(),
            }
        }
    };
    fits.then_some(tree)
}

/// Whether an object has what is required of a type, and nothing else.
fn is_of(spec: &Spec, name: &str, value: &Value) -> bool {
    let Some(object) = value.as_object() else { return false };
    let known = object.iter().all(|(field, value)| {
        let facts = spec.field(name, field);
        facts.is_some_and(|facts| fitting(spec, &facts.tree, value).is_some())
    });
    let is_there = |(field, _): &(&String, _)| object.contains_key(*field);
    known && spec.fields(name).iter().filter(|(_, facts)| facts.required).all(|it| is_there(&it))
}

/// Ways in which upstreams want the same.
fn ways() -> Vec<Way> {
    let flags = [
        json!({}),
        json!({"cache_breakpoints": "prompt_cache_breakpoint", "system_field": "developer"}),
        json!({"response_format": "json_object", "obfuscation": false, "message_phase": true}),
        json!({"user_id": "user", "tool_output_parts": "text", "reasoning_summary": "detailed"}),
        json!({"reasoning_summary": "concise", "sampling": true}),
    ];
    flags.into_iter().map(|flags| Way::overrides("openai", flags)).chain([way()]).collect()
}

/// Requests with many fields, for every way.
fn large() -> Vec<Value> {
    let mark = json!({"type": "ephemeral"});
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}, "cache_control": mark});
    let file = json!({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "QUJD"}, "cache_control": mark});
    let address =
        json!({"type": "document", "source": {"type": "url", "url": "https://x.test/a.pdf"}});
    let text = json!({"type": "text", "text": "plain", "cache_control": mark});
    let schema =
        json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false});
    let search = json!({"type": "web_search_20250305", "name": "web_search", "max_uses": 3, "allowed_domains": ["x.test"],
        "user_location": {"type": "approximate", "city": "Rome", "country": "IT", "region": "Lazio", "timezone": "Europe/Rome"}});
    let conversation = |parts: &Value| {
        json!({
            "model": "claude-test", "max_tokens": 8000, "system": [text],
            "messages": [
                {"role": "user", "content": [text, image, file, address]},
                {"role": "assistant", "content": [
                    {"type": "text", "text": "I look."},
                    {"type": "tool_use", "id": "toolu_t1", "name": "w", "input": {}},
                ]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_t1", "content": parts, "cache_control": mark},
                ]},
                {"role": "assistant", "content": [{"type": "text", "text": "I saw."}]},
                {"role": "user", "content": "go on"},
            ],
            "tools": [{"name": "w", "description": "d", "input_schema": schema}, search],
            "tool_choice": {"type": "tool", "name": "w", "disable_parallel_tool_use": true},
            "metadata": {"user_id": "{\"session_id\": \"s1\"}"},
            "output_config": {"format": {"type": "json_schema", "schema": schema}},
            "thinking": {"type": "adaptive", "display": "summarized"},
            "service_tier": "standard_only",
        })
    };
    let mut sampled = conversation(&"ok".into());
    sampled["temperature"] = 0.5.into();
    sampled["top_p"] = 0.5.into();
    vec![
        conversation(&json!([text])),
        conversation(&json!([text, image])),
        conversation(&json!([text, file])),
        conversation(&json!([{"type": "text", "text": "plain"}, address])),
        sampled,
    ]
}

/// The bodies for upstreams: of each field of a request, and of all fixtures.
fn everything_written(spec: &Spec, tally: &mut Tally) -> Seen {
    let mut seen = Seen::default();
    let requests = Spec::read(REQUEST);
    let mut walks = Tally::default();
    let mut send = |request: &Value, way: &Way| {
        tally.sent += 1;
        if let Some(body) = run(request, way).sent {
            seen.body(spec, body);
        }
    };
    each_field(&requests, &mut walks, &mut |walk: &Walk<'_>, _| {
        for value in walk.values() {
            let mut request = walk.request(Some(&value));
            if walk.field == "signature" {
                host::sign(&mut request);
            }
            send(&request, &way());
        }
    });
    for (way, stream) in ways().into_iter().flat_map(|way| [(way.clone(), true), (way, false)]) {
        for mut request in large() {
            request["stream"] = stream.into();
            send(&request, &way);
        }
    }
    for fixture in fixture::all() {
        for variant in fixture.expected["variants"].as_array().into_iter().flatten() {
            let config = drive::config(&fixture::config_of(variant).to_string());
            let target = config.upstreams.get("default").unwrap();
            if target.protocol != creole::config::Protocol::Responses {
                continue;
            }
            tally.sent += 1;
            let request = fixture::patched(&fixture.request, &variant["patch"]).to_string();
            if let Ok((_, sent)) = drive::request(&config, "/v1/messages", &[], request.as_bytes())
            {
                seen.body(spec, serde_json::from_slice(&sent.body).unwrap());
            }
        }
    }
    seen
}

#[test]
fn every_field_of_responses_is_written_or_never_sent() {
    let spec = Spec::read(TYPES);
    let mut tally = Tally::default();
    let seen = everything_written(&spec, &mut tally);
    tally.failures.extend(seen.failures);
    for (name, fields) in spec.types() {
        for (field, facts) in fields {
            *tally.counts.entry(facts.fate.clone()).or_default() += 1;
            let words = seen.fields.get(&(name.clone(), field.clone()));
            let is_right = match facts.fate.as_str() {
                "written" => words == Some(&facts.sent),
                "never sent" => words.is_none() && !facts.to.is_empty(),
                _ => false,
            };
            if !is_right {
                let fate = &facts.fate;
                tally.failures.push(format!("{name}.{field} ({fate}): it is {words:?}"));
            }
        }
    }
    tally.finish("fields of requests in Responses");
}
