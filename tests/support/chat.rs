//! An independent checker of Chat Completions requests: what the strictest server accepts.
//!
//! OpenAI's rules for the order of messages and the pairing of calls and results, with the shapes
//! of all parts. Fields of compatible servers are known by name; any other field is an error,
//! because several servers refuse what they do not know.

use std::collections::BTreeSet;

use serde_json::Value;

/// Rules in which an upstream is laxer or stricter than OpenAI.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Longest name of a function; 0 is no limit.
    pub name_chars_max: usize,
    /// Longest id of a call; 0 is no limit.
    pub id_chars_max: usize,
    /// `tool_choice` may name the word `any` (Mistral).
    pub tool_choice_any: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self { name_chars_max: 64, id_chars_max: 0, tool_choice_any: false }
    }
}

const FIELDS: [&str; 21] = [
    "model",
    "messages",
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "top_p",
    "stop",
    "stream",
    "stream_options",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "response_format",
    "reasoning_effort",
    "user",
    "safety_identifier",
    "prompt_cache_key",
    "service_tier",
    "web_search_options",
    // Of compatible servers.
    "top_k",
    "thinking",
];

const VENDOR_FIELDS: [&str; 5] = [
    "add_generation_prompt",
    "chat_template_kwargs",
    "continue_final_message",
    "enable_thinking",
    "thinking_budget_tokens",
];

/// Checks the body of a request.
pub fn check(body: &Value, rules: Rules) -> Result<(), String> {
    let Some(object) = body.as_object() else { return Err("not an object".into()) };
    if body["continue_final_message"] == true {
        let last = body["messages"].as_array().and_then(|messages| messages.last());
        let is_open = last.is_some_and(|last| {
            last["role"] == "assistant"
                && last["content"].is_string()
                && last["tool_calls"].is_null()
        });
        if !is_open || body["add_generation_prompt"] != false {
            return Err("continue_final_message: nothing is there to continue".into());
        }
    }
    for (key, value) in object {
        if !FIELDS.contains(&key.as_str()) && !VENDOR_FIELDS.contains(&key.as_str()) {
            return Err(format!("{key}: unknown field"));
        }
        if value.is_null() {
            return Err(format!("{key}: null is sent"));
        }
    }
    if body["model"].as_str().is_none_or(str::is_empty) {
        return Err("model: missing".into());
    }
    let tools = tools(body, rules)?;
    limits(body)?;
    let messages = body["messages"].as_array().ok_or("messages: missing")?;
    if messages.is_empty() {
        return Err("messages: empty".into());
    }
    let mut waiting = BTreeSet::new();
    for (position, message) in messages.iter().enumerate() {
        one_message(message, &mut waiting, rules)
            .map_err(|error| format!("messages[{position}]: {error}: {message}"))?;
    }
    if !waiting.is_empty() {
        return Err(format!("tool_call_ids without responses at the end: {waiting:?}"));
    }
    choice(body, &tools, rules)
}

fn limits(body: &Value) -> Result<(), String> {
    if body.get("max_tokens").is_some() && body.get("max_completion_tokens").is_some() {
        return Err("both max_tokens and max_completion_tokens".into());
    }
    for key in ["max_tokens", "max_completion_tokens", "top_k", "thinking_budget_tokens"] {
        if body.get(key).is_some_and(|value| value.as_u64().is_none()) {
            return Err(format!("{key}: not a count"));
        }
    }
    for key in ["temperature", "top_p"] {
        if body.get(key).is_some_and(|value| !value.is_number()) {
            return Err(format!("{key}: not a number"));
        }
    }
    if let Some(stop) = body.get("stop") {
        let texts = stop.as_array().filter(|texts| !texts.is_empty()).ok_or("stop: empty")?;
        if texts.iter().any(|text| text.as_str().is_none_or(str::is_empty)) {
            return Err("stop: not a text".into());
        }
    }
    if body.get("stream_options").is_some() && body["stream"] != true {
        return Err("stream_options without stream".into());
    }
    for key in ["user", "safety_identifier", "prompt_cache_key"] {
        if body
            .get(key)
            .is_some_and(|id| id.as_str().is_none_or(|id| id.is_empty() || id.len() > 64))
        {
            return Err(format!("{key}: not a text of 1 to 64 characters"));
        }
    }
    match body.get("response_format").map(|format| (&format["type"], &format["json_schema"])) {
        None => Ok(()),
        Some((kind, _)) if kind == "json_object" || kind == "text" => Ok(()),
        Some((kind, schema)) if kind == "json_schema" => match schema["name"].as_str() {
            Some(name) if is_name(name, 64) && schema["schema"].is_object() => Ok(()),
            _ => Err(format!("response_format.json_schema: {schema}")),
        },
        Some((kind, _)) => Err(format!("response_format.type: {kind}")),
    }
}

fn tools(body: &Value, rules: Rules) -> Result<BTreeSet<String>, String> {
    let mut names = BTreeSet::new();
    let Some(tools) = body.get("tools") else { return Ok(names) };
    let tools = tools.as_array().filter(|tools| !tools.is_empty()).ok_or("tools: empty")?;
    for (position, tool) in tools.iter().enumerate() {
        let function = &tool["function"];
        let complain = |what: &str| Err(format!("tools[{position}]: {what}: {tool}"));
        if tool["type"] != "function" {
            return complain("not a function");
        }
        known(tool, &["type", "function", "cache_control"])?;
        known(function, &["name", "description", "parameters", "strict"])?;
        let Some(name) =
            function["name"].as_str().filter(|name| is_name(name, rules.name_chars_max))
        else {
            return complain("bad name");
        };
        if !names.insert(name.to_owned()) {
            return complain("name used twice");
        }
        if function.get("description").is_some_and(|text| !text.is_string()) {
            return complain("bad description");
        }
        let parameters = &function["parameters"];
        if parameters["type"] != "object" || !parameters["properties"].is_object() {
            return complain("parameters are not an object schema with properties");
        }
    }
    Ok(names)
}

fn choice(body: &Value, tools: &BTreeSet<String>, rules: Rules) -> Result<(), String> {
    let choice = body.get("tool_choice");
    if tools.is_empty() && (choice.is_some() || body.get("parallel_tool_calls").is_some()) {
        return Err("tool_choice or parallel_tool_calls without tools".into());
    }
    match choice {
        None => Ok(()),
        Some(Value::String(word)) => match word.as_str() {
            "auto" | "none" | "required" => Ok(()),
            "any" if rules.tool_choice_any => Ok(()),
            _ => Err(format!("tool_choice: {word:?}")),
        },
        Some(choice) => match choice["function"]["name"].as_str() {
            Some(name) if choice["type"] == "function" && tools.contains(name) => Ok(()),
            _ => Err(format!("tool_choice: {choice}")),
        },
    }
}

/// `waiting` holds the calls of the assistant message before that have no result yet.
fn one_message(
    message: &Value,
    waiting: &mut BTreeSet<String>,
    rules: Rules,
) -> Result<(), String> {
    let role = message["role"].as_str().unwrap_or_default();
    if role != "tool" && !waiting.is_empty() {
        return Err(format!("tool_call_ids without responses: {waiting:?}"));
    }
    let content = &message["content"];
    match role {
        "system" | "developer" => {
            known(message, &["role", "content"])?;
            texts_or_parts(content, &["text"])
        }
        "user" => {
            known(message, &["role", "content"])?;
            texts_or_parts(content, &["text", "image_url", "file"])
        }
        "tool" => {
            known(message, &["role", "content", "tool_call_id"])?;
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            if !waiting.remove(id) {
                return Err(format!("no call waits for {id:?}"));
            }
            if content.is_string() {
                Ok(())
            } else {
                texts_or_parts(content, &["text", "image_url"])
            }
        }
        "assistant" => assistant(message, waiting, rules),
        _ => Err(format!("unknown role {role:?}")),
    }
}

fn assistant(message: &Value, waiting: &mut BTreeSet<String>, rules: Rules) -> Result<(), String> {
    known(
        message,
        &[
            "role",
            "content",
            "tool_calls",
            "reasoning_content",
            "reasoning",
            "reasoning_text",
            "reasoning_details",
            "prefix",
        ],
    )?;
    let calls = message.get("tool_calls");
    match &message["content"] {
        Value::String(text) if text.is_empty() && calls.is_none() => {
            if message.as_object().is_none_or(|message| message.len() < 3) {
                return Err("neither content nor calls".into());
            }
        }
        Value::String(_) => {}
        Value::Null if calls.is_some() => {}
        Value::Null if message.as_object().is_some_and(|message| message.len() > 2) => {}
        content => texts_or_parts(content, &["text", "thinking"])?,
    }
    let Some(calls) = calls else { return Ok(()) };
    let calls = calls.as_array().filter(|calls| !calls.is_empty()).ok_or("tool_calls: empty")?;
    for call in calls {
        known(call, &["id", "type", "function", "extra_content"])?;
        let id = call["id"].as_str().unwrap_or_default();
        let too_long = rules.id_chars_max > 0 && id.chars().count() > rules.id_chars_max;
        if id.is_empty() || too_long || !waiting.insert(id.to_owned()) {
            return Err(format!("bad or repeated id {id:?}"));
        }
        let function = &call["function"];
        known(function, &["name", "arguments"])?;
        if call["type"] != "function"
            || !function["name"].as_str().is_some_and(|name| is_name(name, rules.name_chars_max))
        {
            return Err(format!("bad call {call}"));
        }
        let arguments = function["arguments"].as_str().unwrap_or_default();
        if !serde_json::from_str::<Value>(arguments).is_ok_and(|value| value.is_object()) {
            return Err(format!("arguments are not the text of an object: {arguments:?}"));
        }
    }
    Ok(())
}

fn texts_or_parts(content: &Value, kinds: &[&str]) -> Result<(), String> {
    if let Some(text) = content.as_str() {
        return if text.is_empty() { Err("empty content".into()) } else { Ok(()) };
    }
    let Some(parts) = content.as_array().filter(|parts| !parts.is_empty()) else {
        return Err(format!("bad content {content}"));
    };
    for part in parts {
        let kind = part["type"].as_str().unwrap_or_default();
        let good = match kind {
            "text" => {
                known(part, &["type", "text", "prompt_cache_breakpoint", "cache_control"])?;
                part["text"].as_str().is_some_and(|text| !text.is_empty())
            }
            "image_url" => {
                known(part, &["type", "image_url", "prompt_cache_breakpoint"])?;
                known(&part["image_url"], &["url", "detail"])?;
                part["image_url"]["url"].as_str().is_some_and(|url| !url.is_empty())
            }
            "file" => {
                known(part, &["type", "file", "prompt_cache_breakpoint"])?;
                known(&part["file"], &["file_data", "filename"])?;
                part["file"]["file_data"].is_string() && part["file"]["filename"].is_string()
            }
            "thinking" => true,
            _ => false,
        };
        if !good || !kinds.contains(&kind) {
            return Err(format!("bad part {part}"));
        }
    }
    Ok(())
}

fn known(value: &Value, keys: &[&str]) -> Result<(), String> {
    let Some(object) = value.as_object() else { return Err(format!("not an object: {value}")) };
    match object.keys().find(|key| !keys.contains(&key.as_str())) {
        Some(key) => Err(format!("unknown field {key:?}")),
        None => Ok(()),
    }
}

fn is_name(name: &str, chars_max: usize) -> bool {
    let fits = chars_max == 0 || name.len() <= chars_max;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    !name.is_empty() && fits && name.bytes().all(plain)
}
