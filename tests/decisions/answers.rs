//! Fields that upstreams can send, and fields that clients get.
//!
//! Each field of a Chat Completions answer and chunk is sent: a field that is used changes what the
//! client gets (and a text of it arrives there), a field that is ignored leaves every byte as it
//! was. And everything that clients get, over all fixtures and some more answers, is walked: each
//! field that a decision calls emitted comes, each that it calls null is null, and nothing else is
//! ever there.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::spec::{Field, MARK, NUMBER, Spec, Step};
use crate::support::grammar::{self, Event};
use crate::support::{drive, fixture, tool_id};
use crate::{Tally, Way};

const UPSTREAM: &str = include_str!("../spec/upstream.json");
const ANSWER: &str = include_str!("../spec/answer.json");
const WHOLE: &str = "chat_completion.ChatCompletion";
const CHUNK: &str = "chat_completion_chunk.ChatCompletionChunk";

/// Used fields whose effect no client can see, and why.
const UNSEEN: [(&str, &str, &str); 10] = [
    // A key that ties fragments together: the fixture tool-calls-mixed-up/calls-interleaved shows
    // it.
    ("chat_completion_chunk.ChoiceDeltaToolCall", "index", "a key between fragments"),
    (
        "chat_completion_message_custom_tool_call.ChatCompletionMessageCustomToolCall",
        "type",
        "a call is known by what it holds; the type is often missing",
    ),
    ("chat_completion.Choice", "index", "tells answers apart, of which one counts"),
    ("chat_completion_chunk.Choice", "index", "tells answers apart, of which one counts"),
    // Citations are made of these where the upstream may search the web, which this request does
    // not ask for.
    (
        "chat_completion_message.ChatCompletionMessage",
        "annotations",
        "told where the upstream searches",
    ),
    ("chat_completion_message.Annotation", "type", "told where the upstream searches"),
    ("chat_completion_message.Annotation", "url_citation", "told where the upstream searches"),
    ("chat_completion_message.AnnotationURLCitation", "title", "told where the upstream searches"),
    ("chat_completion_message.AnnotationURLCitation", "url", "told where the upstream searches"),
    (
        "chat_completion_message_function_tool_call.ChatCompletionMessageFunctionToolCall",
        "type",
        "a call is known by its function; the type is often missing",
    ),
];

/// Returns a client's body, and the headers that carry something of the upstream.
fn client_gets(body: &str, stream: bool, way: &Way) -> Result<(String, String), String> {
    let config = fixture::config(way.settings.as_object(), way.profile, Some(&way.overrides));
    let config = drive::config(&config.to_string());
    let request = json!({
        "model": "claude-test", "max_tokens": 100, "stream": stream,
        "messages": [{"role": "user", "content": "q"}],
        "stop_sequences": ["STOP"],
        "tools": [{"name": "w", "input_schema": {"type": "object", "properties": {}}}],
    });
    let (exchange, _) =
        drive::request(&config, "/v1/messages", &[], request.to_string().as_bytes())
            .map_err(|answer| String::from_utf8_lossy(&answer.body).into_owned())?;
    let answer = drive::respond(exchange, 200, &[], [body.as_bytes()], creole::End::Complete);
    let body = String::from_utf8(answer.body).unwrap();
    let id = answer.report.answer.upstream_id.unwrap_or_default();
    Ok((body, format!("{} {:?} {id}", answer.head.status, answer.head.headers)))
}

struct Walk<'a> {
    spec: &'a Spec,
    root: &'a str,
    name: &'a str,
    field: &'a str,
    facts: &'a Field,
    steps: &'a [Step],
}

impl Walk<'_> {
    /// The upstream's body in which the field has `value` (or is absent).
    fn body(&self, value: Option<&Value>) -> String {
        let mut instance = self.spec.instance(self.name, false);
        match value {
            Some(value) => instance[self.field] = value.clone(),
            None => {
                instance.as_object_mut().unwrap().remove(self.field);
            }
        }
        let mut answer = self.spec.wrap(self.steps, instance);
        self.complete(&mut answer, value);
        if self.root == WHOLE {
            return answer.to_string();
        }
        let text = json!({"id": "c1", "choices": [{"index": 0, "delta": {"content": "Hello"}}]});
        let mut end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
        if self.facts.fate == "ignored" {
            end["usage"] = json!({"prompt_tokens": 9, "completion_tokens": 3});
        }
        // The id and the usage of the chunk under test are the first and the last of the stream.
        let first = if matches!(self.field, "id" | "model") { json!({}) } else { text };
        let last = if answer["choices"][0]["finish_reason"].is_null() { end } else { json!({}) };
        let mut stream = String::new();
        for chunk in [first, answer, last].iter().filter(|chunk| **chunk != json!({})) {
            stream.push_str(&format!("data: {chunk}\n\n"));
        }
        stream.push_str("data: [DONE]\n\n");
        stream
    }

    /// Makes a healthy answer around the instance.
    fn complete(&self, answer: &mut Value, value: Option<&Value>) {
        let under_test = |name: &str, field: &str| self.name.ends_with(name) && self.field == field;
        if !under_test("ChatCompletion", "choices") && !under_test("Chunk", "choices") {
            let choice = &mut answer["choices"][0];
            // Text under another number would be of another answer.
            if choice.get("index").is_some() && !under_test("Choice", "index") {
                choice["index"] = json!(0);
            }
            if !under_test("Choice", "finish_reason") {
                let last = if self.root == WHOLE { json!("stop") } else { Value::Null };
                choice["finish_reason"] = last;
            }
            for part in ["message", "delta"] {
                let Some(message) = choice.get_mut(part) else { continue };
                if self.field != "refusal" && message.get("refusal").is_some() {
                    message["refusal"] = Value::Null;
                }
                if let Some(call) = message.pointer_mut("/tool_calls/0") {
                    complete_call(call, self.field);
                }
                if let Some(call) = message.get_mut("function_call")
                    && call.get("name").is_none()
                    && self.field != "name"
                {
                    call["name"] = "w".into();
                }
            }
        }
        // The sum says where reasoning is counted: here, beside the output.
        if under_test("CompletionUsage", "total_tokens") && value.is_some() {
            let usage = &mut answer["usage"];
            usage["prompt_tokens"] = 4000.into();
            usage["completion_tokens"] = 200.into();
            usage["completion_tokens_details"] = json!({"reasoning_tokens": 42});
        }
    }

    fn check(&self, sent: &mut usize) -> Result<(), String> {
        let mut effect = false;
        let without = self.body(None);
        let values = telling(self.name, self.field).map_or_else(
            || self.spec.values(self.name, self.field, &self.facts.tree, true),
            |value| vec![value],
        );
        for value in values {
            *sent += 1;
            let with = self.body(Some(&value));
            let mut seen = false;
            for stream in [true, false] {
                let way = self.way();
                let got = client_gets(&with, stream, &way)?;
                let base = client_gets(&without, stream, &way)?;
                if self.facts.fate == "ignored" && got.0 != base.0 {
                    return Err(format!(
                        "changes what the client gets (stream {stream}):\n{}\n--- without\n{}",
                        got.0, base.0
                    ));
                }
                seen |= got.0 != base.0 || got.1 != base.1;
                if self.facts.fate == "used" {
                    self.arrives(&value, &got)?;
                }
            }
            effect |= seen;
        }
        if self.facts.fate == "used" && !effect && self.unseen().is_none() {
            return Err(format!("changes nothing: {without}"));
        }
        Ok(())
    }

    fn way(&self) -> Way {
        if self.field == "model" {
            return Way::overrides("default", json!({"response_model": "upstream"}));
        }
        Way::profile("default")
    }

    fn unseen(&self) -> Option<&'static str> {
        let known =
            |(name, field, _): &&(&str, &str, &str)| *name == self.name && *field == self.field;
        UNSEEN.iter().find(known).map(|(_, _, why)| *why)
    }

    /// A text that is used is found at the client, and a count too.
    fn arrives(&self, value: &Value, got: &(String, String)) -> Result<(), String> {
        if self.unseen().is_some() {
            return Ok(());
        }
        let found = match (self.field, value) {
            // An id comes in the form that leads back to it.
            ("id", Value::String(id)) => {
                let encoded =
                    got.0.split('"').any(|text| tool_id::decode(text).as_deref() == Some(id));
                encoded || got.1.contains(id.as_str())
            }
            ("arguments", Value::String(_)) => got.0.contains(MARK),
            (_, Value::String(text)) if text == MARK => got.0.contains(MARK),
            (field, Value::Number(number)) if field.ends_with("_tokens") => match field {
                "total_tokens" => got.0.contains("\"output_tokens\":242"),
                // Cached tokens are taken from the prompt's; thinking cannot exceed the output.
                "reasoning_tokens" => got.0.contains("\"thinking_tokens\":"),
                _ => got.0.contains(&number.to_string()),
            },
            _ => true,
        };
        if found { Ok(()) } else { Err(format!("{value} is not in {} {}", got.0, got.1)) }
    }
}

/// A value for a field whose type requires nothing that could be seen.
fn telling(name: &str, field: &str) -> Option<Value> {
    Some(match (name, field) {
        ("chat_completion.Choice", "message") => json!({"role": "assistant", "content": MARK}),
        ("chat_completion_chunk.Choice", "delta") => json!({"content": MARK}),
        (CHUNK, "choices") => json!([{"index": 0, "delta": {"content": MARK}}]),
        (_, "completion_tokens_details") => json!({"reasoning_tokens": 42}),
        (_, "prompt_tokens_details") => json!({"cached_tokens": 42}),
        _ => return None,
    })
}

/// A call has what makes it one.
fn complete_call(call: &mut Value, field: &str) {
    if call.get("custom").is_some() {
        return;
    }
    if call.get("function").is_none() && field != "function" {
        call["function"] = json!({});
    }
    if let Some(function) = call.get_mut("function").and_then(Value::as_object_mut) {
        if field != "name" && !function.contains_key("name") {
            function.insert("name".into(), "w".into());
        }
        if field != "arguments" {
            function.insert("arguments".into(), "{}".into());
        }
    }
    if field != "id" && call.get("id").is_none() {
        call["id"] = "call_1".into();
    }
}

#[test]
fn every_field_of_an_upstream_answer_is_used_or_changes_nothing() {
    let spec = Spec::read(UPSTREAM);
    let mut tally = Tally::default();
    let (in_whole, in_chunk) = (spec.paths(WHOLE, &|_| true), spec.paths(CHUNK, &|_| true));
    for (name, fields) in spec.types() {
        let whole = in_whole.get(name).map(|steps| (WHOLE, steps));
        let Some((root, steps)) = whole.or_else(|| in_chunk.get(name).map(|steps| (CHUNK, steps)))
        else {
            tally.failures.push(format!("{name}: no answer can contain it"));
            continue;
        };
        for (field, facts) in fields {
            *tally.counts.entry(facts.fate.clone()).or_default() += 1;
            let walk = Walk { spec: &spec, root, name, field, facts, steps };
            tally.check(&format!("{name}.{field} ({})", facts.fate), |sent| walk.check(sent));
        }
    }
    tally.finish("answers of upstreams");
}

/// Values of each field that were seen at clients.
#[derive(Default)]
struct Seen {
    values: BTreeMap<(String, String), BTreeSet<String>>,
    unknown: BTreeSet<String>,
}

impl Seen {
    fn object(&mut self, name: &str, value: &Value) {
        for (field, value) in value.as_object().into_iter().flatten() {
            let key = (name.to_owned(), field.clone());
            self.values.entry(key).or_default().insert(value.to_string());
            let inner = match (name, field.as_str()) {
                ("Message", "usage") => "Usage",
                ("RawMessageDeltaEvent", "usage") => "MessageDeltaUsage",
                ("RawMessageDeltaEvent", "delta") => "Delta",
                (_, "server_tool_use") => "ServerToolUsage",
                (_, "citation") => "CitationsWebSearchResultLocation",
                ("TextBlock", "citations") => {
                    self.each("CitationsWebSearchResultLocation", value);
                    continue;
                }
                ("WebSearchToolResultBlock", "content") => {
                    self.each("WebSearchResultBlock", value);
                    continue;
                }
                (_, "stop_details") => "RefusalStopDetails",
                (_, "output_tokens_details") => "OutputTokensDetails",
                (_, "cache_creation") => "CacheCreation",
                (_, "caller") => "DirectCaller",
                (_, "message") => "Message",
                ("Message", "content") => {
                    value.as_array().into_iter().flatten().for_each(|block| self.typed(block));
                    continue;
                }
                (_, "content_block") | ("RawContentBlockDeltaEvent", "delta") => {
                    self.typed(value);
                    continue;
                }
                _ => continue,
            };
            self.object(inner, value);
        }
    }

    fn each(&mut self, name: &str, values: &Value) {
        values.as_array().into_iter().flatten().for_each(|value| self.object(name, value));
    }

    /// A block or a delta, known by its `type`.
    fn typed(&mut self, value: &Value) {
        let name = match value["type"].as_str().unwrap_or_default() {
            "text" => "TextBlock",
            "thinking" => "ThinkingBlock",
            "tool_use" => "ToolUseBlock",
            "server_tool_use" => "ServerToolUseBlock",
            "web_search_tool_result" => "WebSearchToolResultBlock",
            "mcp_tool_use" => "MCPToolUseBlock",
            "mcp_tool_result" => "MCPToolResultBlock",
            "citations_delta" => "CitationsDelta",
            "text_delta" => "TextDelta",
            "thinking_delta" => "ThinkingDelta",
            "signature_delta" => "SignatureDelta",
            "input_json_delta" => "InputJSONDelta",
            other => {
                self.unknown.insert(other.to_owned());
                return;
            }
        };
        self.object(name, value);
    }

    fn event(&mut self, event: &Event) {
        let name = match event.name.as_str() {
            "message_start" => "RawMessageStartEvent",
            "message_delta" => "RawMessageDeltaEvent",
            "message_stop" => "RawMessageStopEvent",
            "content_block_start" => "RawContentBlockStartEvent",
            "content_block_delta" => "RawContentBlockDeltaEvent",
            "content_block_stop" => "RawContentBlockStopEvent",
            "ping" | "error" => return,
            other => {
                self.unknown.insert(other.to_owned());
                return;
            }
        };
        self.object(name, &event.data);
    }

    fn answer(&mut self, body: &[u8], stream: bool) {
        if stream {
            for event in grammar::events(body).unwrap_or_default() {
                self.event(&event);
            }
        } else if let Ok(message) = serde_json::from_slice::<Value>(body) {
            self.object("Message", &message);
        }
    }
}

/// Sends all fixtures, and what they do not have: a toolset, a tier, a stop sequence, edits of the
/// context, a count.
fn everything_seen() -> Seen {
    let mut seen = Seen::default();
    for fixture in fixture::all() {
        let Some(upstream) = &fixture.upstream else { continue };
        // A message that is passed through is not the core's.
        if fixture.expected["passed_through"] == true {
            continue;
        }
        let config = drive::config(&fixture.config().to_string());
        for stream in fixture.ways() {
            let request = fixture.request(stream);
            let Ok((exchange, _)) = drive::request(&config, "/v1/messages", &[], &request) else {
                continue;
            };
            let end = creole::End::Complete;
            let headers = fixture.headers();
            let answer = drive::respond(exchange, fixture.status(), &headers, [&upstream[..]], end);
            if answer.head.status == 200 {
                seen.answer(&answer.body, stream);
            }
        }
    }
    let config = drive::config("{}");
    let member = json!({
        "model": "claude-test", "max_tokens": 100,
        "messages": [{"role": "user", "content": "q"}],
        "tools": [{"type": "computer_toolset_20260801"}],
        "context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]},
    });
    let upstream = json!({"id": "c", "service_tier": "priority", "choices": [{
        "index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "computer__screenshot", "arguments": "{}"}},
        ]},
    }], "usage": {"prompt_tokens": 9, "prompt_tokens_details": {"cache_write_tokens": 3}, "completion_tokens": NUMBER, "completion_tokens_details": {"reasoning_tokens": 2}}});
    for stream in [true, false] {
        let mut request = member.clone();
        request["stream"] = stream.into();
        let request = request.to_string();
        if let Ok((exchange, _)) = drive::request(&config, "/v1/messages", &[], request.as_bytes())
        {
            let body = upstream.to_string();
            let end = creole::End::Complete;
            let answer = drive::respond(exchange, 200, &[], [body.as_bytes()], end);
            seen.answer(&answer.body, stream);
        }
    }
    let count =
        drive::request(&config, "/v1/messages/count_tokens", &[], member.to_string().as_bytes());
    if let Err(answer) = count {
        seen.object("MessageTokensCount", &serde_json::from_slice(&answer.body).unwrap());
    }
    seen
}

#[test]
fn every_field_that_clients_get_is_a_decided_one() {
    let spec = Spec::read(ANSWER);
    let seen = everything_seen();
    let mut tally = Tally::default();
    for unknown in &seen.unknown {
        tally.failures.push(format!("{unknown:?} is sent, which no decision names"));
    }
    for (name, field) in seen.values.keys() {
        tally.sent += 1;
        if spec.field(name, field).is_none() {
            tally.failures.push(format!("{name}.{field} is sent, which no decision names"));
        }
    }
    for (name, fields) in spec.types() {
        for (field, facts) in fields {
            *tally.counts.entry(facts.fate.clone()).or_default() += 1;
            let found = seen.values.get(&(name.clone(), field.clone()));
            if let Err(error) = said_as_decided(facts, found) {
                tally.failures.push(format!("{name}.{field} ({}): {error}", facts.fate));
            }
        }
    }
    tally.finish("answers to clients");
}

fn said_as_decided(facts: &Field, found: Option<&BTreeSet<String>>) -> Result<(), String> {
    let values: Vec<&String> = found.into_iter().flatten().collect();
    let not_null = values.iter().any(|value| *value != "null");
    let good = match facts.fate.as_str() {
        "emitted" => not_null,
        "constant" => values.len() == 1 && not_null,
        "null" => !not_null,
        "omitted" | "never_emitted" => values.is_empty(),
        other => return Err(format!("unknown decision {other:?}")),
    };
    if good { Ok(()) } else { Err(format!("found {:?}", &values[..values.len().min(4)])) }
}
