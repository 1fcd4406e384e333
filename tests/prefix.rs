//! Prompt caches: a request of a conversation begins with the bytes of the request before it.
//!
//! `tests/sessions` has what the clients of `harness/clients` sent to the gateway, with the demo
//! model behind it, turn by turn. Long texts are cut, and names of places and people are taken out.
#![cfg(not(target_family = "wasm"))] // about files, which are the same whatever the target
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "a test")]
#![allow(clippy::arithmetic_side_effects, reason = "a test")]

use std::fs;
use std::path::Path;

use creole::observe::warning::Warnings;
use creole::protocols::{self, Translated};
use creole::{Config, json as raw};
use serde_json::{Value, json};

/// Request that a client sent.
#[derive(Clone)]
struct Request {
    headers: Vec<(String, String)>,
    body: Value,
}

struct Session {
    name: String,
    requests: Vec<Request>,
}

fn sessions() -> Vec<Session> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sessions");
    let mut paths: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let read = |path: &std::path::PathBuf| {
        let session: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        let request = |it: &Value| Request {
            headers: it["headers"]
                .as_object()
                .unwrap()
                .iter()
                .map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned()))
                .collect(),
            body: it["body"].clone(),
        };
        let requests = session["requests"].as_array().unwrap().iter().map(request).collect();
        Session { name: path.file_stem().unwrap().to_str().unwrap().to_owned(), requests }
    };
    paths.iter().map(read).collect()
}

/// The value without marks of the prompt cache, which move with each request.
fn unmarked(mut value: Value) -> Value {
    match &mut value {
        Value::Object(object) => {
            for mark in ["cache_control", "prompt_cache_breakpoint"] {
                object.remove(mark);
            }
            object.values_mut().for_each(|inner| *inner = unmarked(inner.take()));
        }
        Value::Array(array) => array.iter_mut().for_each(|inner| *inner = unmarked(inner.take())),
        _ => {}
    }
    value
}

fn messages(request: &Request) -> Vec<Value> {
    let messages = joined(unmarked(request.body["messages"].clone()));
    messages.as_array().unwrap().clone()
}

/// Returns the requests that go on from an earlier one, each behind that one: the last before it
/// whose messages it all has.
fn pairs(requests: &[Request]) -> Vec<(&Request, &Request)> {
    let goes_on = |before: &Request, after: &Request| {
        let (before, after) = (messages(before), messages(after));
        before.len() < after.len() && after.starts_with(&before)
    };
    let mut found = Vec::new();
    for (at, after) in requests.iter().enumerate() {
        let earlier = requests[..at].iter().rev();
        found.extend(earlier.clone().find(|it| goes_on(it, after)).map(|before| (before, after)));
    }
    found
}

fn config(protocol: &str, profile: &str, overrides: &Value) -> Config {
    let up = json!({"url": "http://127.0.0.1:1", "protocol": protocol, "profile": profile,
        "profile_overrides": overrides});
    Config::from_json(&json!({"upstreams": {"up": up}}).to_string(), |_| None).unwrap()
}

/// Returns the body that goes upstream, the number of tool uses that were cleared, and the
/// warnings.
fn sent(config: &Config, request: &Request) -> (String, u64, String) {
    let mut warnings = Warnings::new(false);
    let body = request.body.to_string();
    let translated = protocols::request(&body, config, &request.headers, &mut warnings).unwrap();
    let Translated::Send { body, context, .. } = translated else { panic!("nothing is sent") };
    let cleared = context.cleared.map_or(0, |cleared| cleared.tool_uses);
    (String::from_utf8(body).unwrap(), cleared, warnings.header().unwrap_or_default())
}

/// The members of a request that a prompt is made of, in the order of the prompt. Lists may grow.
const PROMPT: [&str; 4] = ["instructions", "tools", "messages", "input"];

/// The first part of a prompt with which the next one does not begin.
fn broken(before: &str, after: &str) -> Option<&'static str> {
    PROMPT.into_iter().find(|name| {
        let begin = raw::member(before, name).unwrap_or_default();
        let whole = raw::member(after, name).unwrap_or_default();
        !whole.starts_with(begin.strip_suffix(']').unwrap_or(begin))
    })
}

/// Every way in which system messages in the middle are written, for both protocols.
fn ways() -> Vec<(Config, &'static str)> {
    let mut ways = Vec::new();
    for mode in ["as_user", "in_place", "merge_to_top"] {
        for (protocol, profile) in [
            ("openai", "default"),
            ("openai", "openai-chat"),
            ("openai", "deepseek"),
            ("openai", "mistral"),
            ("responses", "openai"),
            ("responses", "vllm"),
        ] {
            ways.push((config(protocol, profile, &json!({"mid_system": mode})), mode));
        }
    }
    for overrides in [
        json!({"alternating_roles": true}),
        json!({"text_after_tool_results": "merge_into_last_tool"}),
        json!({"single_tool_call": true}),
    ] {
        ways.push((config("openai", "default", &overrides), "as_user"));
    }
    ways
}

/// The session with what Claude Code writes behind each batch of results for older models.
fn with_tokens_left(session: &Session) -> Session {
    let mut requests = session.requests.clone();
    for request in &mut requests {
        let mut messages = Vec::new();
        for message in request.body["messages"].as_array().unwrap() {
            messages.push(message.clone());
            if message["content"][0]["type"] == "tool_result" {
                let left = 100_000 - 1_000 * messages.len();
                let text = format!("<total_tokens>{left} tokens left</total_tokens>");
                messages.push(json!({"role": "system", "content": text}));
            }
        }
        request.body["messages"] = messages.into();
    }
    Session { name: format!("{} with tokens left", session.name), requests }
}

#[test]
fn each_turn_of_a_recorded_session_begins_with_the_turn_before_or_a_warning_says_why_not() {
    let recorded = sessions();
    let reminded: Vec<_> = recorded.iter().map(with_tokens_left).collect();
    let (mut held, mut explained) = (0, 0);
    for session in recorded.iter().chain(&reminded) {
        for (config, mode) in ways() {
            for (before, after) in pairs(&session.requests) {
                let (first, cleared, _) = sent(&config, before);
                let (next, cleared_now, warnings) = sent(&config, after);
                let Some(member) = broken(&first, &next) else {
                    held += 1;
                    continue;
                };
                explained += 1;
                let about =
                    format!("{} {mode} {member}: {warnings}\n{first}\n{next}", session.name);
                // The client asked for that, and the answer tells it.
                let is_cleared = cleared_now > cleared && matches!(member, "messages" | "input");
                let is_moved = mode == "merge_to_top" && warnings.contains("system_moved_to_top");
                assert!(is_cleared || is_moved, "{about}");
            }
        }
    }
    println!("{held} held, {explained} explained");
    assert!(held > 3 * explained && explained > 0, "{held} {explained}");
}

#[test]
fn every_session_has_turns_that_go_on() {
    let recorded = sessions();
    assert!(recorded.len() >= 6, "{}", recorded.len());
    for session in &recorded {
        let count = pairs(&session.requests).len();
        assert!(count > 0, "{}", session.name);
    }
    // A sub-agent's and a compacted conversation begin anew.
    let fresh = |name: &str| {
        let session = recorded.iter().find(|session| session.name == name).unwrap();
        session.requests.len() - pairs(&session.requests).len()
    };
    assert_eq!((fresh("claude-code-tools"), fresh("claude-code-sub-agent")), (1, 2));
    assert!(fresh("claude-code-compaction") > 1);
}

/// Claude Code marks the end of each request, so that a message has its mark in one request and
/// none in the next. The bytes of that message change, as they do at the real API, whose cache
/// knows no marks: bodies are compared without.
#[test]
fn marks_of_the_prompt_cache_move_and_the_prompt_beside_them_stays() {
    let openai = json!({"cache_breakpoints": "prompt_cache_breakpoint"});
    for (protocol, profile, overrides, mark) in [
        ("openai", "openai-chat", &openai, "prompt_cache_breakpoint"),
        ("openai", "openrouter", &json!({}), "cache_control"),
        ("responses", "openrouter", &openai, "prompt_cache_breakpoint"),
    ] {
        let config = config(protocol, profile, overrides);
        let mut marked = 0;
        for session in sessions().iter().filter(|it| it.name != "python-sdk-edits") {
            for (before, after) in pairs(&session.requests) {
                let prompt = |request: &Request| {
                    let (body, _, _) = sent(&config, request);
                    let has_mark = body.contains(mark);
                    let body: Value = serde_json::from_str(&body).unwrap();
                    (joined(unmarked(body)), has_mark)
                };
                let ((before, _), (after, has_mark)) = (prompt(before), prompt(after));
                marked += usize::from(has_mark);
                for list in ["messages", "input"] {
                    let (Some(before), Some(after)) =
                        (before[list].as_array(), after[list].as_array())
                    else {
                        continue;
                    };
                    assert!(after.starts_with(before), "{}: {before:?}\n{after:?}", session.name);
                }
            }
        }
        assert!(marked > 5, "{protocol}: {marked}");
    }
}

/// A single part of text is the text: a mark needs a part, and without one there is none.
fn joined(mut value: Value) -> Value {
    match &mut value {
        Value::Object(object) => {
            object.values_mut().for_each(|inner| *inner = joined(inner.take()));
            for key in ["content", "output"] {
                if let Some([part]) = object.get(key).and_then(Value::as_array).map(Vec::as_slice)
                    && let Some(text) = part.get("text").cloned()
                {
                    object.insert(key.to_owned(), text);
                }
            }
        }
        Value::Array(array) => array.iter_mut().for_each(|inner| *inner = joined(inner.take())),
        _ => {}
    }
    value
}

#[test]
fn a_conversation_keeps_its_key_and_a_sub_agent_has_its_own() {
    let recorded = sessions();
    let session = recorded.iter().find(|it| it.name == "claude-code-sub-agent").unwrap();
    for (protocol, profile) in [("openai", "openai-chat"), ("responses", "openai")] {
        let config = config(protocol, profile, &json!({}));
        let key = |request: &Request| {
            let (body, _, _) = sent(&config, request);
            let body: Value = serde_json::from_str(&body).unwrap();
            body["prompt_cache_key"].as_str().unwrap().to_owned()
        };
        let keys = |of_agent: bool| {
            let is_agent = |request: &&Request| {
                request.headers.iter().any(|(name, _)| name.ends_with("-agent-id"))
            };
            let mut keys: Vec<_> =
                session.requests.iter().filter(|it| is_agent(it) == of_agent).map(key).collect();
            assert!(keys.len() > 1, "{keys:?}");
            keys.dedup();
            keys
        };
        let (main, agent) = (keys(false), keys(true));
        assert_eq!((main.len(), agent.len()), (1, 1), "{main:?} {agent:?}");
        assert_ne!(main, agent);
        assert!(agent[0].len() <= 64);
    }
}
