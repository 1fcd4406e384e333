//! Conversion of a checked Responses request to the shape of Chat Completions, limited to the
//! fields that the planner reads.

use serde_json::{Map, Value, json};

/// Returns the request in the shape of Chat Completions, for the planner.
pub(super) fn request(body: &Map<String, Value>) -> Map<String, Value> {
    let mut chat = Map::new();
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value.filter(|value| !value.is_null()) {
            chat.insert(name.to_owned(), value);
        }
    };
    put("messages", body.get("input").map(messages));
    put("tools", body.get("tools").and_then(tools));
    put("tool_choice", body.get("tool_choice").map(choice));
    put("parallel_tool_calls", body.get("parallel_tool_calls").cloned());
    put("max_completion_tokens", body.get("max_output_tokens").cloned());
    put("reasoning_effort", body.get("reasoning").and_then(effort));
    put("response_format", body.get("text").and_then(|text| format(text.get("format")?)));
    chat
}

fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value.get(member).and_then(Value::as_str).unwrap_or_default()
}

fn messages(input: &Value) -> Value {
    let items = match input {
        Value::String(text) => return json!([{"role": "user", "content": text}]),
        input => input.as_array().map(Vec::as_slice).unwrap_or_default(),
    };
    let mut messages: Vec<Value> = Vec::new();
    for item in items {
        match text(item, "type") {
            "" | "message" => {
                let role = text(item, "role");
                let content = item.get("content").map(content);
                messages.push(json!({"role": role, "content": content}));
            }
            "function_call" | "custom_tool_call" => call(&mut messages, item),
            "function_call_output" | "custom_tool_call_output" => {
                let (id, output) = (text(item, "call_id"), item.get("output").map(content));
                messages.push(json!({"role": "tool", "tool_call_id": id, "content": output}));
            }
            _ => {}
        }
    }
    messages.into()
}

/// Adds a tool call to the preceding assistant message, or to a new one.
fn call(messages: &mut Vec<Value>, item: &Value) {
    let call = json!({"id": text(item, "call_id"), "function": {"name": text(item, "name")}});
    match messages.last_mut().and_then(Value::as_object_mut) {
        Some(last) if last.get("role").is_some_and(|role| role == "assistant") => {
            let calls = last.entry("tool_calls").or_insert_with(|| json!([]));
            if let Value::Array(calls) = calls {
                calls.push(call);
            }
        }
        _ => messages.push(json!({"role": "assistant", "tool_calls": [call]})),
    }
}

fn content(content: &Value) -> Value {
    let Value::Array(parts) = content else { return content.clone() };
    let part = |part: &Value| match text(part, "type") {
        "input_image" => {
            let url = part.get("image_url").or_else(|| part.get("file_id"));
            json!({"type": "image_url", "image_url": {"url": url}})
        }
        "input_file" => {
            let data = ["file_data", "file_url", "file_id"].iter().find_map(|name| part.get(*name));
            json!({"type": "file", "file": {"file_data": data}})
        }
        "refusal" => json!({"type": "text", "text": part.get("refusal")}),
        _ => json!({"type": "text", "text": part.get("text")}),
    };
    parts.iter().map(part).collect()
}

/// Returns the tools that the client runs. Server tools such as `web_search` are accepted, but
/// never called.
fn tools(tools: &Value) -> Option<Value> {
    let tool = |tool: &Value| {
        let kind = tool.get("type").and_then(Value::as_str)?;
        let function = json!({"name": tool.get("name"), "parameters": tool.get("parameters")});
        matches!(kind, "function" | "custom").then(|| json!({"type": kind, kind: function}))
    };
    Some(tools.as_array()?.iter().filter_map(tool).collect())
}

fn choice(choice: &Value) -> Value {
    match text(choice, "type") {
        "" => choice.clone(),
        "allowed_tools" => text(choice, "mode").into(),
        kind => json!({"type": kind, kind: {"name": choice.get("name")}}),
    }
}

/// Returns the reasoning effort of a request. A request for a reasoning summary without an effort
/// gets the model's usual effort.
fn effort(reasoning: &Value) -> Option<Value> {
    let set = |name: &str| reasoning.get(name).filter(|value| !value.is_null());
    set("effort").cloned().or_else(|| set("summary").map(|_| "medium".into()))
}

fn format(format: &Value) -> Option<Value> {
    let kind = format.get("type")?;
    Some(json!({"type": kind, "json_schema": {"schema": format.get("schema")}}))
}
