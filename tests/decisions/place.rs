//! Makes a whole, valid request around one generated instance: calls get results, results get
//! calls, named tools exist, and the conversation starts and ends with the user.

use serde_json::{Value, json};

use crate::spec::Step;

/// Types of blocks that a user says. All others are for the assistant, or for results of tools.
const USER_BLOCKS: [&str; 7] = [
    "TextBlockParam",
    "ImageBlockParam",
    "DocumentBlockParam",
    "RequestDocumentBlockParam",
    "SearchResultBlockParam",
    "ToolResultBlockParam",
    "ContainerUploadBlockParam",
];

/// Whether a generated request may go this way. The types allow every block in every message.
pub fn allowed(step: &Step) -> bool {
    match (step.from.as_str(), step.field.as_str(), step.to.as_str()) {
        (from, "system" | "cache_control", _) if from.starts_with("MessageC") => false,
        ("UserMessageParam", "content", to) => USER_BLOCKS.contains(&to),
        ("AssistantMessageParam", "content", to) => {
            !USER_BLOCKS.contains(&to) && !to.starts_with("RequestTool")
        }
        // Where it can be seen upstream.
        (from, _, "CacheControlEphemeralParam") => from == "TextBlockParam",
        (from, _, "CitationsConfigParamParam") => from.contains("Document"),
        _ => true,
    }
}

/// Completes a request.
pub fn settle(mut request: Value) -> Value {
    let mut tools = request.get("tools").and_then(Value::as_array).cloned().unwrap_or_default();
    let needs_tools = request.get("tools").is_some() || request.get("tool_choice").is_some();
    let mut messages = Vec::new();
    for message in request["messages"].as_array().cloned().unwrap_or_default() {
        match message["role"].as_str() {
            Some("assistant") => assistant(message, &mut messages, &mut tools),
            Some("system") => system(message, &mut messages, &mut tools),
            _ => user(message, &mut messages, &mut tools),
        }
    }
    request["messages"] = messages.into();
    if let Some(name) = request["tool_choice"]["name"].as_str() {
        ensure(&mut tools, name, false);
    }
    if needs_tools || !tools.is_empty() {
        // One plain tool, so that a server tool is not the only one.
        ensure(&mut tools, "base", false);
        request["tools"] = tools.into();
    }
    request
}

fn ensure(tools: &mut Vec<Value>, name: &str, deferred: bool) {
    if tools.iter().all(|tool| tool["name"] != name) {
        let mut tool = json!({"name": name, "input_schema": {"type": "object", "properties": {}}});
        if deferred {
            tool["defer_loading"] = true.into();
        }
        tools.push(tool);
    }
}

fn begin(messages: &mut Vec<Value>) {
    if messages.is_empty() {
        messages.push(json!({"role": "user", "content": "q"}));
    }
}

fn blocks(message: &Value) -> Vec<Value> {
    message["content"].as_array().cloned().unwrap_or_default()
}

fn user(message: Value, messages: &mut Vec<Value>, tools: &mut Vec<Value>) {
    for block in blocks(&message) {
        let Some(id) = block["tool_use_id"].as_str() else { continue };
        begin(messages);
        messages.push(json!({
            "role": "assistant",
            "content": [{"type": "tool_use", "id": id, "name": "base", "input": {}}],
        }));
        ensure(tools, "base", false);
        activated(&block["content"], tools);
    }
    messages.push(message);
}

/// Tools that a result names exist, and wait to be named.
fn activated(content: &Value, tools: &mut Vec<Value>) {
    for block in content.as_array().into_iter().flatten() {
        if let Some(name) = block["tool_name"].as_str() {
            ensure(tools, name, true);
        }
    }
}

fn assistant(mut message: Value, messages: &mut Vec<Value>, tools: &mut Vec<Value>) {
    begin(messages);
    let mut results = Vec::new();
    let mut content = Vec::new();
    for block in blocks(&message) {
        let kind = block["type"].as_str().unwrap_or_default().to_owned();
        let id = block["tool_use_id"].clone();
        if kind == "mcp_tool_result" {
            let server = "files";
            content.push(json!({"type": "mcp_tool_use", "id": id, "name": "w", "server_name": server, "input": {}}));
        } else if kind.ends_with("_tool_result") {
            let name = match kind.strip_suffix("_tool_result").unwrap() {
                "tool_search" => "tool_search_tool_regex",
                name => name,
            };
            content.push(json!({"type": "server_tool_use", "id": id, "name": name, "input": {}}));
        }
        if kind == "tool_search_tool_result" {
            activated(&block["content"]["tool_references"], tools);
        }
        if kind == "tool_use" {
            let mut result =
                json!({"type": "tool_result", "tool_use_id": block["id"], "content": "ok"});
            if let Some(name) = block["toolset_name"].as_str() {
                result["toolset_name"] = name.into();
                tools.push(json!({"type": format!("{name}_toolset_20260801")}));
            }
            results.push(result);
        }
        changed(&block, tools);
        for change in block["tool_changes"].as_array().into_iter().flatten() {
            changed(change, tools);
        }
        content.push(block);
    }
    if !content.is_empty() {
        message["content"] = content.into();
    }
    messages.push(message);
    if results.is_empty() {
        messages.push(json!({"role": "user", "content": "go on"}));
    } else {
        ensure(tools, "base", false);
        messages.push(json!({"role": "user", "content": results}));
    }
}

fn system(message: Value, messages: &mut Vec<Value>, tools: &mut Vec<Value>) {
    begin(messages);
    for block in blocks(&message) {
        changed(&block, tools);
    }
    messages.push(message);
}

/// The tool that a change names exists; one that is added later waits for it.
fn changed(change: &Value, tools: &mut Vec<Value>) {
    if change["tool"].is_object() {
        ensure(tools, "base", false);
    }
    if change["tool"]["type"] == "tool_reference"
        && let Some(name) = change["tool"]["name"].as_str()
    {
        ensure(tools, name, change["type"] == "tool_addition");
    }
}

/// Adds a reference to a deferred tool, so that deferred tools are known to be loaded on demand.
pub fn with_activation(mut request: Value) -> Value {
    if let Some(messages) = request["messages"].as_array_mut() {
        messages.push(json!({"role": "assistant", "content": [
            {"type": "tool_use", "id": "toolu_load", "name": "base", "input": {}},
        ]}));
        messages.push(json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "toolu_load", "content": [
                {"type": "tool_reference", "tool_name": "loaded"},
            ]},
        ]}));
    }
    let mut tools = request.get("tools").and_then(Value::as_array).cloned().unwrap_or_default();
    ensure(&mut tools, "base", false);
    ensure(&mut tools, "loaded", true);
    request["tools"] = tools.into();
    request
}
