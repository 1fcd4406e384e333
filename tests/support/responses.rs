//! An independent checker of Responses requests: what OpenAI accepts of an upstream that stores
//! nothing.
//!
//! The rules of the conversation: a reasoning item leads to something, every call has one output,
//! and nothing but reasoning has an id, because an id is looked up in what the server stored.

use std::collections::BTreeSet;

use serde_json::Value;

const FIELDS: [&str; 21] = [
    "include",
    "input",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "model",
    "parallel_tool_calls",
    "prompt_cache_key",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_k",
    "top_p",
    "user",
];

/// The longest `call_id`.
const CALL_ID_CHARS_MAX: usize = 64;

/// Checks the body of a request.
pub fn check(body: &Value) -> Result<(), String> {
    let Some(object) = body.as_object() else { return Err("not an object".into()) };
    for (key, value) in object {
        if !FIELDS.contains(&key.as_str()) {
            return Err(format!("{key}: unknown field"));
        }
        if value.is_null() {
            return Err(format!("{key}: null is sent"));
        }
    }
    if body["store"] == true {
        return Err("store: the upstream would keep the conversation".into());
    }
    if body["max_output_tokens"].as_u64().is_some_and(|most| most < 16) {
        return Err("max_output_tokens: less than 16".into());
    }
    tools(body)?;
    let input = body["input"].as_array().ok_or("input: expected an array")?;
    if input.is_empty() {
        return Err("input: empty".into());
    }
    let (mut open, mut known) = (Vec::new(), BTreeSet::new());
    for (at, item) in input.iter().enumerate() {
        let error = |what: &str| Err(format!("input[{at}]: {what}: {item}"));
        let kind = item["type"].as_str().unwrap_or_default();
        if kind != "reasoning" && item.get("id").is_some() {
            return error("an id");
        }
        if !matches!(kind, "function_call" | "function_call_output" | "reasoning")
            && !open.is_empty()
            && item["role"] != "assistant"
        {
            return error("a call before it has no output");
        }
        match kind {
            "message" => message(item).or_else(|what| error(&what))?,
            "reasoning" => {
                let id = item.get("id").map_or("rs_", |id| id.as_str().unwrap_or_default());
                if id.is_empty() || id.len() > 64 || !item["summary"].is_array() {
                    return error("an id that is refused, or no summary");
                }
                let next = input.get(at + 1);
                let leads = next.is_some_and(|next| {
                    matches!(next["type"].as_str(), Some("reasoning" | "function_call"))
                        || next["role"] == "assistant"
                });
                if !leads {
                    return error("leads to nothing");
                }
            }
            "function_call" => {
                let id = call_id(item).or_else(|what| error(&what).map(|()| ""))?;
                if !known.insert((at, id.to_owned())) || open.contains(&id) {
                    return error("the id of a call before it");
                }
                let arguments = item["arguments"].as_str().unwrap_or_default();
                if serde_json::from_str::<Value>(arguments).is_ok_and(|it| it.is_object()) {
                    open.push(id);
                } else {
                    return error("arguments that are no object");
                }
                if item["name"].as_str().is_none_or(str::is_empty) {
                    return error("no name");
                }
            }
            "function_call_output" => {
                let id = call_id(item).or_else(|what| error(&what).map(|()| ""))?;
                let Some(place) = open.iter().position(|open| *open == id) else {
                    return error("no call before it");
                };
                open.remove(place);
                let output = &item["output"];
                if let Some(parts) = output.as_array() {
                    parts.iter().try_for_each(part).or_else(|what| error(&what))?;
                } else if !output.is_string() {
                    return error("no output");
                }
            }
            _ => return error("unknown type"),
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("input: no output of {open:?}")) }
}

fn call_id(item: &Value) -> Result<&str, String> {
    let id = item["call_id"].as_str().unwrap_or_default();
    match id.chars().count() {
        1..=CALL_ID_CHARS_MAX => Ok(id),
        length => Err(format!("call_id of {length} characters")),
    }
}

fn message(item: &Value) -> Result<(), String> {
    match item["role"].as_str() {
        Some("assistant") if item["content"].as_str().is_some_and(|text| !text.is_empty()) => {
            Ok(())
        }
        Some("user" | "developer") => {
            let parts = item["content"].as_array().ok_or("content is no array")?;
            if parts.is_empty() {
                return Err("no content".into());
            }
            parts.iter().try_for_each(part)
        }
        role => Err(format!("role {role:?}, or no content")),
    }
}

fn part(part: &Value) -> Result<(), String> {
    let has = |key: &str| part[key].as_str().is_some_and(|text| !text.is_empty());
    let is_whole = match part["type"].as_str() {
        Some("input_text") => part["text"].is_string(),
        Some("input_image") => has("image_url") && has("detail"),
        Some("input_file") => has("file_url") || has("file_data") && has("filename"),
        _ => false,
    };
    if is_whole { Ok(()) } else { Err(format!("bad part {part}")) }
}

fn tools(body: &Value) -> Result<(), String> {
    let tools = body["tools"].as_array().map_or(&[][..], Vec::as_slice);
    let mut names = BTreeSet::new();
    for tool in tools {
        match tool["type"].as_str() {
            Some("function") => {
                let name = tool["name"].as_str().unwrap_or_default();
                if name.is_empty() || !names.insert(name) {
                    return Err(format!("tools: the name {name:?}"));
                }
                if !tool["strict"].is_boolean() || !tool["parameters"].is_object() {
                    return Err(format!("tools: no strict or no parameters in {tool}"));
                }
            }
            Some("web_search") => {}
            Some("mcp") => {
                let is_text = |key: &str| tool[key].as_str().is_some_and(|text| !text.is_empty());
                if !is_text("server_label") || !is_text("server_url") {
                    return Err(format!("tools: no server in {tool}"));
                }
            }
            _ => return Err(format!("tools: unknown type in {tool}")),
        }
    }
    if body.get("tools").is_some() && tools.is_empty() {
        return Err("tools: empty".into());
    }
    let choice = &body["tool_choice"];
    let is_known = choice.is_null()
        || !tools.is_empty()
            && (["auto", "required", "none"].iter().any(|word| choice == word)
                || choice["type"] == "function"
                    && choice["name"].as_str().is_some_and(|name| names.contains(name)));
    if is_known { Ok(()) } else { Err(format!("tool_choice: {choice}")) }
}
