//! Formatting of a plan for the Responses API: one JSON body, or the events of a stream.

use serde_json::{Map, Value, json};

use crate::fault;
use crate::pieces::tokens;
use crate::plan::{self, CREATED, Call, Plan};
use crate::sealed::Sealed;
use crate::wire::counts;

/// Values needed to format an answer, streamed or not.
pub(super) struct Form<'a> {
    pub(super) request: &'a Map<String, Value>,
    pub(super) seed: u64,
    pub(super) input_tokens: usize,
}

/// Output item, with the events that a stream sends for it.
struct Item {
    /// Output item at its beginning, for the event `response.output_item.added`.
    added: Value,
    /// Events for the content of the output item.
    content: Vec<Value>,
    /// Complete output item, for the event `response.output_item.done`.
    done: Value,
    is_call: bool,
}

/// Returns the request fields that the response repeats, each with the default for requests without
/// the field.
fn echoed() -> [(&'static str, Value); 14] {
    [
        ("instructions", Value::Null),
        ("max_output_tokens", Value::Null),
        ("metadata", json!({})),
        ("parallel_tool_calls", true.into()),
        ("previous_response_id", Value::Null),
        ("prompt_cache_key", Value::Null),
        ("reasoning", json!({"effort": null, "summary": null})),
        ("safety_identifier", Value::Null),
        ("temperature", 1.0.into()),
        ("text", json!({"format": {"type": "text"}})),
        ("tool_choice", "auto".into()),
        ("tools", json!([])),
        ("top_p", 1.0.into()),
        ("truncation", "disabled".into()),
    ]
}

impl fault::FaultForm for Form<'_> {
    fn body(&self, plan: &Plan) -> String {
        self.ended(plan).to_string()
    }

    fn events(&self, plan: &Plan) -> Vec<String> {
        let begun = self.response("in_progress", &json!([]));
        let mut events: Vec<Value> = ["response.created", "response.in_progress"]
            .map(|kind| json!({"type": kind, "response": begun}))
            .into();
        let items = self.items(plan).into_iter().enumerate();
        let told = items.map(|(index, item)| (item.is_call, told(index, item)));
        let (calls, others): (Vec<_>, Vec<_>) = told.partition(|(is_call, _)| *is_call);
        events.extend(others.into_iter().flat_map(|(_, events)| events));
        let calls: Vec<_> = calls.into_iter().map(|(_, events)| events).collect();
        if plan.triggers.interleave {
            events.extend(plan::in_turn(calls));
        } else {
            events.extend(calls.into_iter().flatten());
        }
        let response = self.ended(plan);
        let kind = match reason(plan) {
            None => "response.completed",
            Some(_) => "response.incomplete",
        };
        events.push(json!({"type": kind, "response": response}));
        let numbered = events.into_iter().enumerate();
        numbered.map(|(number, event)| self.written(number, event)).collect()
    }

    fn failed_body(&self) -> String {
        self.failed().to_string()
    }

    fn failed_events(&self, sent: usize) -> Vec<String> {
        let (code, message) = FAILURE;
        vec![
            self.written(
                sent,
                json!({"type": "error", "code": code, "message": message, "param": null}),
            ),
            self.written(
                sent.saturating_add(1),
                json!({"type": "response.failed", "response": self.failed()}),
            ),
        ]
    }
}

/// Error code and message for the trigger that simulates a failed server.
const FAILURE: (&str, &str) =
    ("server_error", "The server had an error while processing your request.");

impl Form<'_> {
    /// Returns an event as sent to the client. Deltas carry random-looking padding that hides their
    /// length, unless the request turns that off.
    fn written(&self, number: usize, mut event: Value) -> String {
        let kind = event.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        let options = self.request.get("stream_options");
        let off = options.and_then(|options| options.get("include_obfuscation"))
            == Some(&Value::Bool(false));
        if let Some(event) = event.as_object_mut() {
            event.insert("sequence_number".to_owned(), number.into());
            if kind.ends_with(".delta") && !off {
                let letters = plan::id("", self.seed, number.saturating_add(1 << 20));
                event.insert("obfuscation".to_owned(), letters.into());
            }
        }
        format!("event: {kind}\ndata: {event}")
    }

    fn model(&self) -> &str {
        self.request.get("model").and_then(Value::as_str).unwrap_or_default()
    }

    fn response(&self, status: &str, output: &Value) -> Value {
        let mut response = Map::new();
        for (name, usual) in echoed() {
            let given = self.request.get(name).filter(|value| !value.is_null());
            response.insert(name.to_owned(), given.cloned().unwrap_or(usual));
        }
        let own = json!({
            "id": plan::id("resp_", self.seed, 1 << 16), "object": "response", "created_at": CREATED,
            "status": status, "background": false, "error": null, "incomplete_details": null,
            "model": self.model(), "output": output, "service_tier": "default", "store": false,
            "usage": null
        });
        if let Value::Object(own) = own {
            response.extend(own);
        }
        response.into()
    }

    fn ended(&self, plan: &Plan) -> Value {
        let output = self.items(plan).into_iter().map(|item| item.done).collect();
        let reason = reason(plan);
        let status = if reason.is_some() { "incomplete" } else { "completed" };
        let mut response = self.response(status, &output);
        if let Some(response) = response.as_object_mut() {
            response.insert("completed_at".to_owned(), CREATED.into());
            if let Some(reason) = reason {
                response.insert("incomplete_details".to_owned(), json!({ "reason": reason }));
            }
            if !plan.triggers.no_usage {
                response.insert("usage".to_owned(), self.usage(plan));
            }
        }
        response
    }

    fn failed(&self) -> Value {
        let mut response = self.response("failed", &json!([]));
        let (code, message) = FAILURE;
        if let Some(response) = response.as_object_mut() {
            response.insert("error".to_owned(), json!({"code": code, "message": message}));
        }
        response
    }

    fn usage(&self, plan: &Plan) -> Value {
        let (output, reasoning) = counts(plan);
        json!({
            "input_tokens": self.input_tokens,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": output,
            "output_tokens_details": {"reasoning_tokens": reasoning},
            "total_tokens": self.input_tokens.saturating_add(output)
        })
    }

    /// Returns the output items in their order: reasoning, message, calls.
    fn items(&self, plan: &Plan) -> Vec<Item> {
        let name = plan::id("", self.seed, 1 << 18);
        // The check recognizes an item after reasoning by this letter in its id.
        let led = if plan.reasoning.is_some() { 'r' } else { 'n' };
        let speaks = !plan.text.is_empty() || plan.refusal.is_some() || plan.calls.is_empty();
        let mut items = Vec::new();
        if let Some((_, text)) = &plan.reasoning {
            let first = plan.calls.first().filter(|_| !speaks);
            items.push(self.reasoning(
                format!("rs_{name}"),
                text,
                first,
                plan.triggers.reason.is_some(),
            ));
        }
        if speaks {
            let is_cut = reason(plan).is_some() && plan.calls.is_empty();
            items.push(message(
                &format!("msg_{led}{name}"),
                &plan.text,
                plan.refusal.as_deref(),
                is_cut,
            ));
        }
        let last = plan.calls.len().checked_sub(1);
        items.extend(plan.calls.iter().enumerate().map(|(nth, call)| {
            let is_cut = plan.triggers.length && Some(nth) == last;
            called(&format!("{led}{name}_{nth}"), call, is_cut)
        }));
        items
    }

    /// Returns the reasoning item before a call (`call`), or else before a message.
    fn reasoning(&self, id: String, text: &str, call: Option<&Call>, said: bool) -> Item {
        let asked = self.request.get("reasoning").and_then(|reasoning| reasoning.get("summary"));
        let is_shown = said || asked.is_some_and(|summary| !summary.is_null());
        let include = self.request.get("include").and_then(Value::as_array);
        let is_sealed =
            include.into_iter().flatten().any(|name| name == "reasoning.encrypted_content");
        let mut added = json!({"id": id, "type": "reasoning", "summary": []});
        let mut done = added.clone();
        let mut content = Vec::new();
        if is_shown {
            let part = |text: &str| json!({"type": "summary_text", "text": text});
            let event = |kind: &str, name: &str, value: Value| json!({"type": format!("response.reasoning_summary_{kind}"), "summary_index": 0, name: value});
            content.push(event("part.added", "part", part("")));
            let deltas = tokens(text);
            content
                .extend(deltas.iter().map(|token| event("text.delta", "delta", (*token).into())));
            content.push(event("text.done", "text", text.into()));
            content.push(event("part.done", "part", part(text)));
            put(&mut done, "summary", json!([part(text)]));
        }
        if is_sealed {
            let call_id = call.map(|call| call.id.clone());
            let sealed = Sealed { id, model: self.model().to_owned(), call_id }.seal();
            // As in the original API, only the final item has the whole content.
            let early: String = sealed.chars().take(sealed.len().div_euclid(2)).collect();
            put(&mut added, "encrypted_content", early.into());
            put(&mut done, "encrypted_content", sealed.into());
        }
        Item { added, content, done, is_call: false }
    }
}

/// Returns the reason why an answer is incomplete; `None` for a complete answer.
fn reason(plan: &Plan) -> Option<&'static str> {
    match plan.finish {
        "length" => Some("max_output_tokens"),
        "content_filter" => Some("content_filter"),
        _ => None,
    }
}

fn status(is_cut: bool) -> &'static str {
    if is_cut { "incomplete" } else { "completed" }
}

fn put(object: &mut Value, name: &str, value: Value) {
    if let Some(object) = object.as_object_mut() {
        object.insert(name.to_owned(), value);
    }
}

fn message(id: &str, text: &str, refusal: Option<&str>, is_cut: bool) -> Item {
    let (kind, name, said) = match refusal {
        Some(refusal) => ("refusal", "refusal", refusal),
        None => ("output_text", "text", text),
    };
    let part = |said: &str| match kind {
        "refusal" => json!({"type": kind, name: said}),
        _ => json!({"type": kind, name: said, "annotations": [], "logprobs": []}),
    };
    let event = |kind: &str, name: &str, value: Value| {
        let mut event =
            json!({"type": format!("response.{kind}"), "content_index": 0, name: value});
        if kind.starts_with("output_text") {
            put(&mut event, "logprobs", json!([]));
        }
        event
    };
    let mut content = vec![event("content_part.added", "part", part(""))];
    let delta = format!("{kind}.delta");
    content.extend(tokens(said).iter().map(|token| event(&delta, "delta", (*token).into())));
    content.push(event(&format!("{kind}.done"), name, said.into()));
    content.push(event("content_part.done", "part", part(said)));
    let item = |status: &str, content: Value| json!({"id": id, "type": "message", "role": "assistant", "status": status, "content": content});
    let added = item("in_progress", json!([]));
    Item { added, content, done: item(status(is_cut), json!([part(said)])), is_call: false }
}

fn called(name: &str, call: &Call, is_cut: bool) -> Item {
    let (kind, prefix, member, event) = match call.custom {
        true => ("custom_tool_call", "ctc_", "input", "response.custom_tool_call_input"),
        false => ("function_call", "fc_", "arguments", "response.function_call_arguments"),
    };
    let item = |status: &str, text: &str| {
        json!({
            "id": format!("{prefix}{name}"), "type": kind, "status": status, "call_id": call.id,
            "name": call.name, member: text
        })
    };
    let deltas = tokens(&call.arguments);
    let mut content: Vec<Value> = deltas
        .iter()
        .map(|token| json!({"type": format!("{event}.delta"), "delta": token}))
        .collect();
    content.push(json!({"type": format!("{event}.done"), member: call.arguments}));
    let done = item(status(is_cut), &call.arguments);
    Item { added: item("in_progress", ""), content, done, is_call: true }
}

/// Returns the events of an output item with this index.
fn told(index: usize, item: Item) -> Vec<Value> {
    let event = |kind: &str, item: Value| json!({"type": format!("response.output_item.{kind}"), "output_index": index, "item": item});
    let id = item.done.get("id").cloned().unwrap_or_default();
    let content = item.content.into_iter().map(|mut event| {
        put(&mut event, "item_id", id.clone());
        put(&mut event, "output_index", index.into());
        event
    });
    std::iter::once(event("added", item.added))
        .chain(content)
        .chain(std::iter::once(event("done", item.done)))
        .collect()
}
