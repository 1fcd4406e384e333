//! Bodies that are full of the smallest elements, made from the decisions about each field
//! (`tests/spec`).
//!
//! A hole is a place in a body for an array or an object. Each hole is filled with many copies of
//! one element: the empty values, objects of one member, and valid elements of the hole's type. So
//! a field that is added to the decisions is tested without a change here.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::place;
use crate::spec::{Field, Spec, Step};

/// Body with a hole, a place that is filled with copies of one element.
pub(crate) struct Hole {
    /// Name of the place: `Type.field`.
    pub(crate) name: String,
    before: String,
    after: String,
    /// Texts that can be repeated in the place; `@N` stands for the number of the copy.
    fillings: Vec<Filling>,
}

/// Text that is repeated to fill a place: elements of an array, or members of an object.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Filling {
    Elements(String),
    Members(String),
}

/// Placeholder in a body for the hole, a place that is filled with copies of one element.
const HOLE: &str = "@HOLE";

/// Placeholder in a repeated element for the number of the copy.
const NUMBER: &str = "@N";

/// Elements that belong to no type of the API.
const TINY: [&str; 7] = ["{}", "[]", "null", "0", "\"\"", "\"a\"", "{\"a\":0}"];

/// Members of an object with unknown names.
const MEMBERS: [&str; 4] = ["\"a\":0", "\"@N\":0", "\"@N\":\"a\"", "\"@N\":{}"];

impl Filling {
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Elements(text) | Self::Members(text) => text,
        }
    }
}

impl Hole {
    /// Splits `body` at its hole. Returns `None` if `body` has no hole.
    fn new(name: String, body: &Value) -> Option<Self> {
        let text = body.to_string();
        let (before, after) = text.split_once(&format!("\"{HOLE}\""))?;
        let (before, after) = (before.to_owned(), after.to_owned());
        Some(Self { name, before, after, fillings: Vec::new() })
    }

    fn with(mut self, fillings: impl IntoIterator<Item = Filling>) -> Self {
        self.fillings.extend(fillings.into_iter().collect::<BTreeSet<_>>());
        self
    }

    pub(crate) fn fillings(&self) -> &[Filling] {
        &self.fillings
    }

    /// Returns a body of about `bytes` bytes, with the hole filled with copies of `filling`.
    pub(crate) fn body(&self, filling: &Filling, bytes: usize) -> String {
        let (open, close) = match filling {
            Filling::Elements(_) => ('[', ']'),
            Filling::Members(_) => ('{', '}'),
        };
        let mut body = String::with_capacity(bytes + 1024);
        body.push_str(&self.before);
        body.push(open);
        let parts: Vec<&str> = filling.text().split(NUMBER).collect();
        let mut number = 0usize;
        while body.len() + self.after.len() < bytes {
            if number > 0 {
                body.push(',');
            }
            for (at, part) in parts.iter().enumerate() {
                if at > 0 {
                    body.push_str(&number.to_string());
                }
                body.push_str(part);
            }
            number += 1;
        }
        body.push(close);
        body.push_str(&self.after);
        body
    }
}

/// Returns the holes of all types that can be reached from `root`. `settle` makes a whole body
/// around a hole.
pub(crate) fn holes(
    spec: &Spec,
    root: &str,
    allowed: &dyn Fn(&Step) -> bool,
    settle: &dyn Fn(Value) -> Value,
) -> Vec<Hole> {
    let paths = spec.paths(root, allowed);
    let mut seen = BTreeSet::new();
    let mut holes = Vec::new();
    for (name, steps) in &paths {
        for (field, facts) in spec.fields(name) {
            let fillings = fillings(spec, name, field, facts);
            if fillings.is_empty() {
                continue;
            }
            let mut instance = spec.instance(name, false);
            instance[field] = HOLE.into();
            let body = spec.wrap(steps, instance);
            let hole = Hole::new(format!("{name}.{field}"), &settle(body.clone()))
                .or_else(|| Hole::new(format!("{name}.{field}"), &body));
            let Some(hole) = hole else { panic!("{name}.{field}: no place") };
            // Bodies that differ only in the version of a type count as equal.
            let fillings: BTreeSet<_> = fillings
                .into_iter()
                .filter(|filling| seen.insert((shape(&hole.before), filling.clone())))
                .collect();
            if !fillings.is_empty() {
                holes.push(hole.with(fillings));
            }
        }
    }
    holes
}

/// Returns the part of a body before its hole, without the versions of its types.
fn shape(before: &str) -> String {
    let parts = before.split('_').filter(|part| !part.starts_with("202"));
    parts.map(|part| part.strip_prefix("202").map_or(part, |_| "")).collect()
}

fn fillings(spec: &Spec, name: &str, field: &str, facts: &Field) -> Vec<Filling> {
    let mut fillings = Vec::new();
    collect(spec, name, field, &facts.tree, &mut fillings);
    fillings
}

fn collect(spec: &Spec, name: &str, field: &str, tree: &Value, fillings: &mut Vec<Filling>) {
    let elements = |text: String| Filling::Elements(text);
    match tree {
        Value::String(kind) if kind == "object" => {
            fillings.extend(MEMBERS.map(|text| Filling::Members(text.to_owned())));
        }
        Value::String(kind) => {
            let Some(inner) = kind.strip_prefix('#') else { return };
            fillings.extend(MEMBERS.map(|text| Filling::Members(text.to_owned())));
            // The members of a valid object are repeated.
            let right = spec.instance(inner, false);
            let members = right.to_string();
            let members = members.trim_start_matches('{').trim_end_matches('}');
            if !members.is_empty() {
                fillings.push(Filling::Members(members.to_owned()));
            }
        }
        Value::Object(tree) => {
            for tree in tree.get("any").and_then(Value::as_array).into_iter().flatten() {
                collect(spec, name, field, tree, fillings);
            }
            if let Some(item) = tree.get("array") {
                fillings.extend(TINY.map(|text| elements(text.to_owned())));
                for value in spec.values(name, field, item, false) {
                    fillings.push(elements(value.to_string()));
                    fillings.push(elements(numbered(&value)));
                }
            }
            if let Some(item) = tree.get("map") {
                for value in spec.values(name, field, item, false) {
                    fillings.push(Filling::Members(format!("\"{NUMBER}\":{}", numbered(&value))));
                }
            }
        }
        _ => {}
    }
}

/// Returns an element whose names and ids contain the number of the copy.
fn numbered(value: &Value) -> String {
    let text = value.to_string();
    let text = text.replace("\"toolu_t1\"", &format!("\"toolu_{NUMBER}\""));
    text.replace("\"name\":\"w\"", &format!("\"name\":\"w{NUMBER}\""))
}

/// Returns the holes of requests, and of requests for counts.
pub(crate) fn of_requests() -> Vec<Hole> {
    let spec = Spec::read(include_str!("../../../../tests/spec/request.json"));
    let settle = |body| {
        let mut request = place::settle(body);
        request["model"] = "m".into();
        request
    };
    holes(&spec, "MessageCreateParamsNonStreaming", &place::allowed, &settle)
}

/// Returns the holes of Chat Completions, in whole answers or in chunks.
pub(crate) fn of_chat(whole: bool) -> Vec<Hole> {
    let spec = Spec::read(include_str!("../../../../tests/spec/upstream.json"));
    let root = match whole {
        true => "chat_completion.ChatCompletion",
        false => "chat_completion_chunk.ChatCompletionChunk",
    };
    let mut holes = holes(&spec, root, &|_| true, &|body| body);
    // Fields that servers add to the format.
    let part = if whole { "message" } else { "delta" };
    for field in [
        "content",
        "reasoning_details",
        "thinking_blocks",
        "reasoning",
        "reasoning_content",
        "text",
        "images",
    ] {
        let mut choice = json!({"index": 0, "finish_reason": null});
        choice[part] = json!({field: HOLE, "role": "assistant"});
        let body = json!({"id": "c", "choices": [choice]});
        let own = [
            "{\"type\":\"text\",\"text\":\"a\"}",
            "{\"type\":\"thinking\",\"thinking\":\"a\"}",
            "{\"type\":\"thinking\",\"thinking\":[\"a\"]}",
            "{\"type\":\"reasoning.text\",\"text\":\"a\"}",
            "{\"type\":\"reasoning.encrypted\",\"data\":\"a\",\"index\":@N}",
            "{\"data\":\"a\"}",
            "{\"signature\":\"a\"}",
            "{\"text\":\"\"}",
        ];
        let elements = TINY.into_iter().chain(own).map(|text| Filling::Elements(text.to_owned()));
        holes.extend(Hole::new(format!("{part}.{field}"), &body).map(|hole| hole.with(elements)));
    }
    holes
}

/// Returns the holes of messages of an upstream that speaks Messages, whole or in events. The
/// decisions about answers name the fields. The decisions about requests define the blocks, which
/// come back in histories.
pub(crate) fn of_messages(events: bool) -> Vec<Hole> {
    let answers: Value =
        serde_json::from_str(include_str!("../../../../tests/spec/answer.json")).unwrap();
    let requests = Spec::read(include_str!("../../../../tests/spec/request.json"));
    let types = answers["types"].as_object().unwrap();
    let message = json!({"id": "m", "type": "message", "role": "assistant", "model": "k", "content": [],
        "stop_reason": "end_turn", "stop_sequence": null, "usage": {"input_tokens": 1, "output_tokens": 1}});
    let fields_of = |name: &str| types[name].as_object().unwrap().keys();
    let mut blocks: Vec<(String, Value)> = Vec::new();
    for name in types.keys().filter(|name| name.ends_with("Block")) {
        if requests.types().any(|(known, _)| known == name) {
            blocks.push((name.clone(), requests.instance(name, false)));
        }
    }
    let all = || {
        let tiny = TINY.map(|text| Filling::Elements(text.to_owned()));
        let members = MEMBERS.map(|text| Filling::Members(text.to_owned()));
        let right = blocks.iter().flat_map(|(_, block)| {
            [Filling::Elements(block.to_string()), Filling::Elements(numbered(block))]
        });
        tiny.into_iter().chain(members).chain(right).collect::<Vec<_>>()
    };
    // Few fillings are tried, because most of these fields are only copied.
    let small = || {
        let elements = ["{}", "\"\""].map(|text| Filling::Elements(text.to_owned()));
        let members = ["\"a\":0", "\"@N\":\"a\""].map(|text| Filling::Members(text.to_owned()));
        elements.into_iter().chain(members).collect::<Vec<_>>()
    };
    let mut holes = Vec::new();
    let mut add = |name: String, body: Value, fillings: Vec<Filling>| {
        holes.extend(Hole::new(name, &body).map(|hole| hole.with(fillings)));
    };
    if !events {
        for field in fields_of("Message") {
            let mut body = message.clone();
            body[field] = HOLE.into();
            let fillings = if field == "content" { all() } else { small() };
            add(format!("Message.{field}"), body, fillings);
        }
        for (name, block) in &blocks {
            for field in fields_of(name) {
                let mut block = block.clone();
                block[field] = HOLE.into();
                let mut body = message.clone();
                body["content"] = json!([block]);
                add(format!("{name}.{field}"), body, small());
            }
        }
        return holes;
    }
    for field in fields_of("Message") {
        let mut message = message.clone();
        message[field] = HOLE.into();
        let fillings = if field == "content" { all() } else { small() };
        add(
            format!("message_start.{field}"),
            json!({"type": "message_start", "message": message}),
            fillings,
        );
    }
    for (name, block) in &blocks {
        for field in fields_of(name) {
            let mut block = block.clone();
            block[field] = HOLE.into();
            let body = json!({"type": "content_block_start", "index": 0, "content_block": block});
            add(format!("content_block_start.{name}.{field}"), body, small());
        }
    }
    for (name, fields) in types.iter().filter(|(name, _)| name.ends_with("Delta")) {
        for field in fields.as_object().unwrap().keys() {
            let mut delta = json!({"type": wire_name(name)});
            delta[field] = HOLE.into();
            let body = json!({"type": "content_block_delta", "index": 0, "delta": delta});
            add(format!("content_block_delta.{name}.{field}"), body, small());
        }
    }
    for field in ["delta", "usage", "context_management"] {
        let mut body = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"},
            "usage": {"output_tokens": 1}});
        body[field] = HOLE.into();
        add(format!("message_delta.{field}"), body, small());
    }
    holes
}

/// Returns the holes of answers in Responses: in whole answers, or in the events of a stream.
pub(crate) fn of_responses(events: bool) -> Vec<Hole> {
    let part = json!({"type": "output_text", "text": "a", "annotations": []});
    let source = json!({"type": "url_citation", "url": "u", "start_index": 0, "end_index": 1});
    let items = [
        json!({"type": "message", "id": "m", "content": [part]}),
        json!({"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "a"}],
            "content": [{"type": "reasoning_text", "text": "a"}], "encrypted_content": "a"}),
        json!({"type": "function_call", "id": "f", "call_id": "c", "name": "w", "arguments": "{}"}),
        json!({"type": "custom_tool_call", "id": "f", "call_id": "c", "name": "w", "input": "a"}),
        json!({"type": "web_search_call", "id": "s",
            "action": {"type": "search", "queries": ["a"], "sources": [{"type": "url", "url": "u"}]}}),
        json!({"type": "brand_new"}),
    ];
    let of = |name: String, body: Value, right: &[Value]| {
        let own = right.iter().flat_map(|value| [value.to_string(), named(value)]);
        let elements = TINY.into_iter().map(str::to_owned).chain(own).map(Filling::Elements);
        let members = MEMBERS.map(|text| Filling::Members(text.to_owned()));
        Hole::new(name, &body).map(|hole| hole.with(elements.chain(members)))
    };
    let around = |item: Value| match events {
        true => json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        false => json!({"object": "response", "status": "completed", "output": [item]}),
    };
    let mut holes = Vec::new();
    for item in &items {
        for field in item.as_object().unwrap().keys().filter(|field| *field != "type") {
            let mut filled = item.clone();
            filled[field] = HOLE.into();
            let right = match field.as_str() {
                "content" => vec![
                    part.clone(),
                    json!({"type": "refusal", "refusal": "a"}),
                    json!({"type": "reasoning_text", "text": "a"}),
                ],
                "summary" => vec![json!({"type": "summary_text", "text": "a"})],
                _ => Vec::new(),
            };
            holes.extend(of(format!("{}.{field}", item["type"]), around(filled), &right));
        }
    }
    for field in ["queries", "sources"] {
        let mut filled = items[4].clone();
        filled["action"][field] = HOLE.into();
        let right = [json!({"type": "url", "url": "u@N"})];
        holes.extend(of(format!("web_search_call.action.{field}"), around(filled), &right));
    }
    let mut filled = items[0].clone();
    filled["content"][0]["annotations"] = HOLE.into();
    holes.extend(of(
        "output_text.annotations".into(),
        around(filled),
        std::slice::from_ref(&source),
    ));
    for field in ["output", "usage", "error", "incomplete_details", "metadata", "tools"] {
        let mut response = json!({"object": "response", "status": "completed", "output": []});
        response[field] = HOLE.into();
        let body = match events {
            true => json!({"type": "response.completed", "response": response}),
            false => response,
        };
        let right = if field == "output" { items.as_slice() } else { &[] };
        holes.extend(of(format!("response.{field}"), body, right));
    }
    if events {
        for (kind, field) in [
            ("output_text.delta", "logprobs"),
            ("output_text.done", "logprobs"),
            ("function_call_arguments.done", "arguments"),
            ("output_text.annotation.added", "annotation"),
            ("content_part.done", "part"),
            ("created", "response"),
            ("brand_new", "data"),
        ] {
            let event = json!({"type": format!("response.{kind}"), "delta": "a", field: HOLE});
            holes.extend(of(format!("{kind}.{field}"), event, &[]));
        }
    }
    holes
}

/// Returns an element whose ids contain the number of the copy.
fn named(value: &Value) -> String {
    let text = value.to_string();
    let text = text.replace("\"id\":\"", &format!("\"id\":\"{NUMBER}"));
    text.replace("\"call_id\":\"", &format!("\"call_id\":\"{NUMBER}"))
}

/// Returns the name of a type on the wire: `input_json_delta` for `InputJSONDelta`.
fn wire_name(name: &str) -> String {
    let mut word = String::new();
    let mut before = true;
    for letter in name.chars() {
        if letter.is_uppercase() && !before {
            word.push('_');
        }
        before = letter.is_uppercase();
        word.push(letter.to_ascii_lowercase());
    }
    word.replace("jsondelta", "json_delta")
}
