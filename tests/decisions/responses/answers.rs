//! Fates of the fields, items and events of an answer in Responses.
//!
//! Each type stands in a whole answer, in the end event of a stream, and, if it is an item, in the
//! event that completes it; events stand in a stream of their own. The fates: `read` (what the
//! client gets differs, and a text of the field is found there), `warned` (an item is left out, and
//! a warning names it), `ties` (says to which item an event belongs, which the named fixture
//! needs), `ignored` (the client gets the same bytes).

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::host::{Got, client_gets, stream_of};
use crate::Tally;
use crate::spec::{Field, MARK, NUMBER, Spec, Step};
use crate::support::fixture;

const TYPES: &str = include_str!("../../spec/responses_answer.json");
const ANSWER: &str = "response.Response";

/// Field under test, on its way to the client.
struct Walk<'a> {
    spec: &'a Spec,
    /// The type that stands outermost: an answer, or an event.
    root: &'a str,
    name: &'a str,
    field: &'a str,
    facts: &'a Field,
    steps: &'a [Step],
}

/// Effect that the values of a field had on the client's answer.
#[derive(Default)]
struct Effect {
    differs: bool,
    warns: bool,
    /// A text that did not arrive anywhere.
    lost: Option<String>,
}

impl Walk<'_> {
    /// The root with the field inside, set to `value`, or without the field.
    fn root_with(&self, value: Option<&Value>) -> Value {
        let mut instance = self.spec.instance(self.name, false);
        match value {
            Some(value) => instance[self.field] = value.clone(),
            None => drop(instance.as_object_mut().unwrap().remove(self.field)),
        }
        complete(self.name, self.field, &mut instance);
        let mut root = self.spec.wrap(self.steps, instance);
        if let Some(step) = self.steps.first().filter(|_| self.root != ANSWER) {
            complete(self.root, &step.field, &mut root);
        }
        root
    }

    /// Whether the field is inside of an item of an answer.
    fn is_in_item(&self) -> bool {
        self.root == ANSWER && self.steps.first().is_some_and(|step| step.field == "output")
    }

    /// Whether the field says what an item or an event is. Without it, there is none.
    fn is_kind(&self) -> bool {
        let is_whole = if self.root == ANSWER { self.is_in_item() } else { true };
        self.field == "type" && is_whole && self.steps.len() == usize::from(self.root == ANSWER)
    }

    /// The upstream's bodies with the field, set to `value`, or without it.
    fn bodies(&self, value: Option<&Value>) -> Vec<String> {
        let is_left_out = value.is_none() && self.is_kind();
        let first = self.values().into_iter().next().filter(|_| is_left_out);
        let mut root = self.root_with(value.or(first.as_ref()));
        if self.root != ANSWER {
            return vec![stream_of(&around(root, is_left_out))];
        }
        let is_tested = |field: &str| self.name == ANSWER && self.field == field;
        if !is_tested("output") {
            let mut items = root["output"].as_array().cloned().unwrap_or_default();
            if !self.is_in_item() || is_left_out {
                items.clear();
            }
            items.push(hello());
            root["output"] = items.into();
        }
        if self.name != "response_error.ResponseError" && !is_tested("error") {
            healthy(&mut root, self.name, self.field);
        }
        let created = json!({"type": "response.created", "response": {"status": "in_progress"}});
        let end = json!({"type": "response.completed", "response": root});
        let mut bodies = vec![root.to_string(), stream_of(&[created.clone(), end])];
        if self.is_in_item() {
            let items = root["output"].as_array().unwrap().iter().enumerate();
            let done = |(at, item)| json!({"type": "response.output_item.done", "output_index": at, "item": item});
            let end = json!({
                "type": "response.completed", "response": {"status": "completed", "output": []},
            });
            let events: Vec<Value> =
                [created].into_iter().chain(items.map(done)).chain([end]).collect();
            bodies.push(stream_of(&events));
        }
        bodies
    }

    fn values(&self) -> Vec<Value> {
        telling(self.name, self.field).map_or_else(
            || self.spec.values(self.name, self.field, &self.facts.tree, true),
            |value| vec![value],
        )
    }

    fn effect(&self, sent: &mut usize) -> Result<Effect, String> {
        let mut effect = Effect::default();
        let without = all_ways(&self.bodies(None))?;
        for value in self.values() {
            *sent += 1;
            let with = all_ways(&self.bodies(Some(&value)))?;
            for (with, without) in with.iter().zip(&without) {
                effect.differs |= with.body != without.body || with.head != without.head;
                effect.warns |= with.warnings != without.warnings;
            }
            if !arrives(self.field, &value, &with) {
                effect.lost = Some(value.to_string());
            }
        }
        Ok(effect)
    }

    fn check(&self, sent: &mut usize) -> Result<(), String> {
        let effect = self.effect(sent)?;
        let found = match &effect {
            Effect { differs: true, .. } => "read",
            Effect { warns: true, .. } => "warned",
            _ => "ignored",
        };
        let decided = match self.facts.fate.as_str() {
            "ties" => "ignored",
            fate => fate,
        };
        if found != decided {
            return Err(format!("it is {found}: {:?}", self.bodies(self.values().first())));
        }
        if let ("read", Some(value)) = (found, effect.lost) {
            return Err(format!("it is read, but {value} does not arrive"));
        }
        if self.facts.to.is_empty() {
            return Err("no reason".into());
        }
        if self.facts.fate == "ties" && !fixture::root().join(&self.facts.note).is_dir() {
            return Err(format!("no fixture {:?}", self.facts.note));
        }
        self.words(sent)
    }

    /// Checks what the words of an enumeration become, where that is decided.
    fn words(&self, sent: &mut usize) -> Result<(), String> {
        let facts = self.facts;
        if facts.words.is_empty() {
            return Ok(());
        }
        let mut found = BTreeMap::new();
        for value in self.spec.values(self.name, self.field, &facts.tree, true) {
            *sent += 1;
            let Some(word) = value.as_str() else { continue };
            let all = all_ways(&self.bodies(Some(&value)))?;
            let mut outcomes: Vec<String> = all.iter().map(outcome).collect();
            outcomes.dedup();
            found.insert(word.to_owned(), outcomes.join(" | "));
        }
        if found == facts.words { Ok(()) } else { Err(format!("the words become {found:?}")) }
    }
}

/// Describes how an answer ended: the stop reason, or the error.
fn outcome(got: &Got) -> String {
    let status = got.head.split(' ').next().unwrap_or_default();
    let after = |key: &str| {
        let (_, rest) = got.body.rsplit_once(key)?;
        rest.split('"').next().map(str::to_owned)
    };
    let said = |key: &str| after(&format!("\"{key}\":\""));
    if got.body.contains("\"type\":\"error\"") {
        return format!("{status} {}", after("\"error\":{\"type\":\"").unwrap_or_default());
    }
    let category = said("category").map(|category| format!(" {category}")).unwrap_or_default();
    format!("{}{category}", said("stop_reason").unwrap_or_default())
}

/// Returns the answers of clients to upstream bodies: for each body with a stream, and without one.
fn all_ways(bodies: &[String]) -> Result<Vec<Got>, String> {
    let ways = bodies.iter().flat_map(|body| [(body, true), (body, false)]);
    ways.map(|(body, stream)| client_gets(body, stream)).collect()
}

/// A text that is read is found at the client, and a count too.
fn arrives(field: &str, value: &Value, got: &[Got]) -> bool {
    let found = |text: &str| got.iter().any(|got| got.has(text));
    match value {
        Value::String(text) if text.contains(MARK) && field != "type" => found(MARK),
        Value::Number(_) if field == "total_tokens" => found("\"output_tokens\":242"),
        // Thinking cannot exceed the output.
        Value::Number(_) if field == "reasoning_tokens" => found("\"thinking_tokens\":"),
        Value::Number(_) if field.ends_with("_tokens") => found(&NUMBER.to_string()),
        _ => true,
    }
}

/// A message, as an item.
fn hello() -> Value {
    json!({"id": "msg_9", "type": "message", "role": "assistant", "status": "completed", "content": [
        {"type": "output_text", "text": "Hello", "annotations": []},
    ]})
}

/// Makes an answer healthy around what is tested.
fn healthy(answer: &mut Value, name: &str, field: &str) {
    let is_tested = |tested: &str| name == ANSWER && field == tested;
    if !is_tested("status") && answer.get("status").is_none() {
        answer["status"] = "completed".into();
    }
    // Only there does it matter whether a call is complete.
    let is_of_a_call = name.ends_with("ResponseFunctionToolCall") && field == "status";
    if name == "response.IncompleteDetails" || is_tested("incomplete_details") || is_of_a_call {
        answer["status"] = "incomplete".into();
    }
}

/// Adds the members that an instance needs beside the field under test.
fn complete(name: &str, field: &str, instance: &mut Value) {
    if name.ends_with("AnnotationAddedEvent") && field != "annotation" {
        instance["annotation"] = json!({"type": "url_citation", "url": "https://x.test/a"});
    }
    let mut set = |key: &str, value: Value| {
        if field != key && instance.get(key).is_some() {
            instance[key] = value;
        }
    };
    set("item_id", "item_1".into());
    set("arguments", "{\"a\":1}".into());
    if name.ends_with("ItemAddedEvent") {
        set("item", json!({"type": "function_call", "call_id": "call_1", "name": "w"}));
    }
    set("start_index", 0.into());
    set("end_index", 2.into());
    for index in ["output_index", "content_index", "summary_index"] {
        set(index, 0.into());
    }
    if name.ends_with("ResponseOutputMessage") {
        set("content", json!([{"type": "output_text", "text": "Said", "annotations": []}]));
    }
    let details = json!({"cached_tokens": 0, "cache_write_tokens": 0});
    if name.ends_with("ResponseUsage") {
        set("input_tokens_details", details);
        set("output_tokens_details", json!({"reasoning_tokens": 0}));
        if field == "total_tokens" {
            // The sum says where reasoning is counted: here, beside the output.
            set("input_tokens", 4000.into());
            set("output_tokens", 200.into());
            set("output_tokens_details", json!({"reasoning_tokens": 42}));
        }
    }
}

/// A value for a field whose type requires nothing that could be seen.
fn telling(name: &str, field: &str) -> Option<Value> {
    Some(match (name, field) {
        ("response_usage.ResponseUsage", "input_tokens_details") => {
            json!({"cached_tokens": NUMBER})
        }
        ("response_usage.ResponseUsage", "output_tokens_details") => {
            json!({"reasoning_tokens": 42})
        }
        ("response_error_event.ResponseErrorEvent", "code") => "rate_limit_exceeded".into(),
        (_, "start_index") => 1.into(),
        (_, "end_index") => 4.into(),
        (ANSWER, "incomplete_details") => json!({"reason": "content_filter"}),
        _ => return None,
    })
}

/// The item to which an event belongs, as it begins.
fn owner(kind: &str) -> Option<Value> {
    let is_of =
        |starts: &[&str]| starts.iter().any(|start| kind.starts_with(&format!("response.{start}")));
    if is_of(&["output_text", "content_part", "refusal"]) {
        return Some(json!({"type": "message", "role": "assistant", "content": []}));
    }
    if is_of(&["reasoning"]) {
        return Some(json!({"type": "reasoning", "summary": []}));
    }
    if is_of(&["function_call_arguments"]) {
        return Some(json!({"type": "function_call", "call_id": "call_1", "name": "w"}));
    }
    if is_of(&["custom_tool_call_input"]) {
        return Some(json!({"type": "custom_tool_call", "call_id": "call_1", "name": "w"}));
    }
    None
}

/// A stream around an event, which may be left out.
fn around(event: Value, is_left_out: bool) -> Vec<Value> {
    let kind = event["type"].as_str().unwrap_or_default().to_owned();
    let created = json!({"type": "response.created", "response": {"status": "in_progress"}});
    let mut events = vec![created];
    if let Some(mut item) = owner(&kind) {
        item["id"] = "item_1".into();
        item["status"] = "in_progress".into();
        events.push(json!({"type": "response.output_item.added", "output_index": 0, "item": item}));
    }
    if kind.starts_with("response.output_text.annotation") {
        events.push(json!({
            "type": "response.output_text.delta", "item_id": "item_1", "output_index": 0,
            "content_index": 0, "delta": "Hello",
        }));
    }
    if is_left_out {
        events.push(json!({"type": "keepalive"}));
    } else {
        events.push(event);
    }
    let ends = ["response.completed", "response.incomplete", "response.failed", "error"];
    if is_left_out || !ends.contains(&&*kind) {
        let done = json!({"type": "response.output_item.done", "output_index": 1, "item": hello()});
        let response = json!({"status": "completed", "output": []});
        events.extend([done, json!({"type": "response.completed", "response": response})]);
    }
    events
}

#[test]
fn every_field_item_and_event_of_responses_is_read_or_left_out_as_decided() {
    let spec = Spec::read(TYPES);
    let mut tally = Tally::default();
    // What the model says comes first; echoes of the request have some of the same types.
    let in_output = spec.paths(ANSWER, &|step| step.from != ANSWER || step.field == "output");
    let inside = spec.paths(ANSWER, &|_| true);
    let events: Vec<&String> =
        spec.types().map(|(name, _)| name).filter(|name| name.ends_with("Event")).collect();
    let in_events: Vec<_> =
        events.iter().map(|name| (*name, spec.paths(name, &|_| true))).collect();
    for (name, fields) in spec.types() {
        let in_event = || in_events.iter().find_map(|(event, all)| Some((*event, all.get(name)?)));
        let in_answer =
            in_output.get(name).or_else(|| inside.get(name)).map(|steps| (ANSWER, steps));
        let found = in_answer.or_else(|| in_event().map(|(event, steps)| (event.as_str(), steps)));
        let Some((root, steps)) = found else {
            tally.failures.push(format!("{name}: no answer can contain it"));
            continue;
        };
        for (field, facts) in fields {
            *tally.counts.entry(facts.fate.clone()).or_default() += 1;
            let walk = Walk { spec: &spec, root, name, field, facts, steps };
            tally.check(&format!("{name}.{field} ({})", facts.fate), |sent| walk.check(sent));
        }
    }
    tally.finish("answers in Responses");
}
