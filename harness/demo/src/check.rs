//! What the original API refuses, in its wording: a mistake in a translated request is a 400 here too.
//!
//! Fields that only compatible servers know are accepted by name (`EXTENSIONS`); any other unknown field
//! is refused, as the original does.

use serde_json::{Map, Value};

/// A refusal: the error object and its status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) message: String,
    pub(crate) kind: &'static str,
    pub(crate) param: Option<String>,
    pub(crate) code: Option<&'static str>,
}

impl Refusal {
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        let kind = "invalid_request_error";
        Self { status: 400, message: message.into(), kind, param: None, code: None }
    }

    fn at(mut self, param: impl Into<String>) -> Self {
        self.param = Some(param.into());
        self
    }

    fn code(mut self, code: &'static str) -> Self {
        self.code = Some(code);
        self
    }

    /// The error object.
    pub(crate) fn json(&self) -> String {
        let (message, kind) = (&self.message, self.kind);
        let error = serde_json::json!({
            "error": {"message": message, "type": kind, "param": self.param, "code": self.code}
        });
        error.to_string()
    }
}

type Checked = Result<(), Refusal>;

/// The fields of the original API.
const FIELDS: [&str; 37] = [
    "audio",
    "frequency_penalty",
    "function_call",
    "functions",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "metadata",
    "modalities",
    "model",
    "moderation",
    "n",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning_effort",
    "response_format",
    "safety_identifier",
    "seed",
    "service_tier",
    "stop",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "user",
    "verbosity",
    "web_search_options",
];

/// Fields of compatible servers.
const EXTENSIONS: [&str; 14] = [
    "add_generation_prompt",
    "chat_template_kwargs",
    "continue_final_message",
    "enable_thinking",
    "extra_body",
    "include_reasoning",
    "min_p",
    "plugins",
    "provider",
    "reasoning",
    "repetition_penalty",
    "thinking",
    "thinking_budget_tokens",
    "top_k",
];

/// Checks a request body.
pub(crate) fn request(body: &Map<String, Value>, id_length_max: usize) -> Checked {
    for field in body.keys() {
        if !FIELDS.contains(&field.as_str()) && !EXTENSIONS.contains(&field.as_str()) {
            let message = format!("Unrecognized request argument supplied: {field}");
            return Err(Refusal::invalid(message));
        }
    }
    match body.get("model") {
        Some(Value::String(model)) if !model.is_empty() => {}
        Some(Value::String(_)) | None => {
            return Err(Refusal::invalid("you must provide a model parameter"));
        }
        Some(other) => return Err(wrong_type("model", "a string", other)),
    }
    settings(body)?;
    tools(body)?;
    let messages = match body.get("messages") {
        Some(Value::Array(messages)) => messages,
        None => {
            return Err(Refusal::invalid("Missing required parameter: 'messages'.")
                .at("messages")
                .code("missing_required_parameter"));
        }
        Some(other) => return Err(wrong_type("messages", "an array of objects", other)),
    };
    if messages.is_empty() {
        return Err(empty_array("messages"));
    }
    for (index, message) in messages.iter().enumerate() {
        self::message(message, &format!("messages[{index}]"), id_length_max)?;
    }
    pairing(messages)
}

fn settings(body: &Map<String, Value>) -> Checked {
    let set = |name: &str| body.get(name).is_some_and(|value| !value.is_null());
    if set("max_tokens") && set("max_completion_tokens") {
        let message = "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not \
                       supported.";
        return Err(Refusal::invalid(message));
    }
    for name in ["max_tokens", "max_completion_tokens", "n"] {
        match body.get(name) {
            None | Some(Value::Null) => {}
            Some(value) => match value.as_i64() {
                None => return Err(wrong_type(name, "an integer", value)),
                Some(1..) => {}
                Some(low) => return Err(below(name, 1, low)),
            },
        }
    }
    for (name, low, high) in [
        ("temperature", 0.0, 2.0),
        ("top_p", 0.0, 1.0),
        ("frequency_penalty", -2.0, 2.0),
        ("presence_penalty", -2.0, 2.0),
    ] {
        match body.get(name) {
            None | Some(Value::Null) => {}
            Some(value) => match value.as_f64() {
                None => return Err(wrong_type(name, "a decimal", value)),
                Some(number) if number < low => {
                    return Err(Refusal::invalid(format!(
                        "Invalid '{name}': decimal below minimum value. Expected a value >= {low}, \
                         but got {number} instead."
                    ))
                    .at(name)
                    .code("decimal_below_min_value"));
                }
                Some(number) if number > high => {
                    return Err(Refusal::invalid(format!(
                        "Invalid '{name}': decimal above maximum value. Expected a value <= {high}, \
                         but got {number} instead."
                    ))
                    .at(name)
                    .code("decimal_above_max_value"));
                }
                Some(_) => {}
            },
        }
    }
    for name in ["stream", "parallel_tool_calls", "store", "logprobs"] {
        match body.get(name) {
            None | Some(Value::Null | Value::Bool(_)) => {}
            Some(other) => return Err(wrong_type(name, "a boolean", other)),
        }
    }
    if set("stream_options") && body.get("stream") != Some(&Value::Bool(true)) {
        let message = "The 'stream_options' parameter is only allowed when 'stream' is enabled.";
        return Err(Refusal::invalid(message).at("stream_options"));
    }
    match body.get("stop") {
        Some(Value::Array(stop)) if stop.len() > 4 => {
            return Err(long_array("stop", 4, stop.len()));
        }
        None | Some(Value::Null | Value::String(_) | Value::Array(_)) => {}
        Some(other) => return Err(wrong_type("stop", "a string or an array of strings", other)),
    }
    if let Some(format) = body.get("response_format").filter(|format| !format.is_null()) {
        response_format(format)?;
    }
    let efforts = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
    match body.get("reasoning_effort") {
        None | Some(Value::Null) => Ok(()),
        Some(Value::String(effort)) => one_of(effort, "reasoning_effort", &efforts),
        Some(other) => Err(wrong_type("reasoning_effort", "a string", other)),
    }
}

fn response_format(format: &Value) -> Checked {
    let kind = format.get("type").and_then(Value::as_str).unwrap_or_default();
    one_of(kind, "response_format.type", &["text", "json_object", "json_schema"])?;
    if kind != "json_schema" {
        return Ok(());
    }
    let schema = format.get("json_schema").and_then(Value::as_object);
    let Some(schema) = schema else { return Err(missing("response_format.json_schema")) };
    match schema.get("name").and_then(Value::as_str) {
        Some(name) => function_name(name, "response_format.json_schema.name")?,
        None => return Err(missing("response_format.json_schema.name")),
    }
    match schema.get("schema") {
        Some(Value::Object(_)) => Ok(()),
        _ => Err(missing("response_format.json_schema.schema")),
    }
}

fn tools(body: &Map<String, Value>) -> Checked {
    let tools = match body.get("tools") {
        None | Some(Value::Null) => {
            for name in ["tool_choice", "parallel_tool_calls"] {
                // `none` says what is so anyway; the original accepts it.
                let given = body.get(name).filter(|value| !value.is_null() && **value != "none");
                if given.is_some() {
                    let message = format!("'{name}' is only allowed when 'tools' are specified.");
                    return Err(Refusal::invalid(message).at(name));
                }
            }
            return Ok(());
        }
        Some(Value::Array(tools)) => tools,
        Some(other) => return Err(wrong_type("tools", "an array of objects", other)),
    };
    if tools.is_empty() {
        return Err(empty_array("tools"));
    }
    if tools.len() > 128 {
        return Err(long_array("tools", 128, tools.len()));
    }
    let mut names = Vec::new();
    for (index, tool) in tools.iter().enumerate() {
        let path = format!("tools[{index}]");
        match tool.get("type").and_then(Value::as_str) {
            Some("function") => names.push(function(tool, &path)?),
            Some("custom") => {
                let name = tool.pointer("/custom/name").and_then(Value::as_str);
                names.push(name.ok_or_else(|| missing(&format!("{path}.custom.name")))?);
            }
            None => return Err(missing(&format!("{path}.type"))),
            Some(other) => one_of(other, &format!("{path}.type"), &["function", "custom"])?,
        }
    }
    tool_choice(body.get("tool_choice"), &names)
}

fn function<'a>(tool: &'a Value, path: &str) -> Result<&'a str, Refusal> {
    let at = format!("{path}.function.name");
    let name = tool.pointer("/function/name").and_then(Value::as_str);
    let name = name.ok_or_else(|| missing(&at))?;
    function_name(name, &at)?;
    match tool.pointer("/function/description") {
        None | Some(Value::Null | Value::String(_)) => {}
        Some(other) => {
            return Err(wrong_type(&format!("{path}.function.description"), "a string", other));
        }
    }
    match tool.pointer("/function/parameters") {
        None | Some(Value::Null) => {}
        Some(Value::Object(schema)) => {
            let object = schema.get("type").is_none_or(|kind| kind == "object");
            let composed =
                ["$ref", "anyOf", "oneOf", "allOf"].iter().any(|k| schema.contains_key(*k));
            let wrong = if !object {
                let found = schema.get("type").cloned().unwrap_or_default();
                format!("schema must be a JSON Schema of 'type: \"object\"', got 'type: {found}'.")
            } else if schema.contains_key("type") && !schema.contains_key("properties") && !composed
            {
                "In context=(), object schema missing properties".to_owned()
            } else {
                return Ok(name);
            };
            let message = format!("Invalid schema for function '{name}': {wrong}");
            return Err(Refusal::invalid(message)
                .at(format!("{path}.function.parameters"))
                .code("invalid_function_parameters"));
        }
        Some(other) => {
            return Err(wrong_type(&format!("{path}.function.parameters"), "an object", other));
        }
    }
    Ok(name)
}

fn tool_choice(choice: Option<&Value>, names: &[&str]) -> Checked {
    let named = match choice {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::String(word)) => {
            // `any` is Mistral's word for `required`.
            return one_of(word, "tool_choice", &["none", "auto", "required", "any"]);
        }
        Some(Value::Object(object)) => match object.get("type").and_then(Value::as_str) {
            Some("allowed_tools") => return Ok(()),
            Some(kind @ ("function" | "custom")) => {
                object.get(kind).and_then(|named| named.get("name")).and_then(Value::as_str)
            }
            other => {
                let kinds = ["function", "allowed_tools", "custom"];
                return one_of(other.unwrap_or_default(), "tool_choice.type", &kinds);
            }
        },
        Some(other) => return Err(wrong_type("tool_choice", "a string or an object", other)),
    };
    match named {
        Some(name) if names.contains(&name) => Ok(()),
        Some(_) => Err(Refusal::invalid("Tool choice 'function' not found in 'tools' parameter.")
            .at("tool_choice")),
        None => Err(missing("tool_choice.function.name")),
    }
}

fn message(message: &Value, path: &str, id_length_max: usize) -> Checked {
    let Value::Object(fields) = message else {
        return Err(wrong_type(path, "an object", message));
    };
    let role = match fields.get("role") {
        Some(Value::String(role)) => role.as_str(),
        None => return Err(missing(&format!("{path}.role"))),
        Some(other) => return Err(wrong_type(&format!("{path}.role"), "a string", other)),
    };
    let roles = ["system", "assistant", "user", "function", "tool", "developer"];
    one_of(role, &format!("{path}.role"), &roles)?;
    let calls = fields.get("tool_calls").filter(|calls| !calls.is_null());
    if role != "assistant" && calls.is_some() {
        let message = format!("Unknown parameter: '{path}.tool_calls'.");
        return Err(Refusal::invalid(message).code("unknown_parameter"));
    }
    content(fields.get("content"), role, calls.is_some(), path)?;
    if role == "tool" {
        match fields.get("tool_call_id") {
            Some(Value::String(id)) => {
                id_length(id, &format!("{path}.tool_call_id"), id_length_max)?
            }
            None | Some(Value::Null) => return Err(missing(&format!("{path}.tool_call_id"))),
            Some(other) => {
                return Err(wrong_type(&format!("{path}.tool_call_id"), "a string", other));
            }
        }
    }
    match calls {
        None => Ok(()),
        Some(Value::Array(calls)) => {
            tool_calls(calls, &format!("{path}.tool_calls"), id_length_max)
        }
        Some(other) => Err(wrong_type(&format!("{path}.tool_calls"), "an array of objects", other)),
    }
}

fn content(content: Option<&Value>, role: &str, calls: bool, path: &str) -> Checked {
    let at = format!("{path}.content");
    let parts = match content {
        Some(Value::String(_)) => return Ok(()),
        None | Some(Value::Null) if role == "assistant" && calls => return Ok(()),
        None | Some(Value::Null) => {
            return Err(Refusal::invalid(format!(
                "Invalid value for 'content': expected a string, got null. (at {at})"
            ))
            .at(at));
        }
        Some(Value::Array(parts)) => parts,
        Some(other) => return Err(wrong_type(&at, "a string or an array of objects", other)),
    };
    if parts.is_empty() {
        return Err(empty_array(&at));
    }
    let kinds: &[&str] = match role {
        "user" => &["text", "image_url", "input_audio", "file"],
        // `thinking` parts are Mistral's; images in tool messages are llama.cpp's.
        "assistant" => &["text", "refusal", "thinking"],
        "tool" => &["text", "image_url"],
        _ => &["text"],
    };
    for (index, part) in parts.iter().enumerate() {
        let at = format!("{at}[{index}]");
        let kind = part.get("type").and_then(Value::as_str);
        let kind = kind.ok_or_else(|| missing(&format!("{at}.type")))?;
        one_of(kind, &format!("{at}.type"), kinds)?;
        let string = |pointer: &str, name: &str| match part.pointer(pointer) {
            Some(Value::String(text)) => Ok(text.as_str()),
            None | Some(Value::Null) => Err(missing(&format!("{at}.{name}"))),
            Some(other) => Err(wrong_type(&format!("{at}.{name}"), "a string", other)),
        };
        match kind {
            "text" => drop(string("/text", "text")?),
            "refusal" => drop(string("/refusal", "refusal")?),
            "image_url" => image(string("/image_url/url", "image_url.url")?, &at)?,
            "input_audio" => drop(string("/input_audio/data", "input_audio.data")?),
            "file" if part.get("file").and_then(Value::as_object).is_none() => {
                return Err(missing(&format!("{at}.file")));
            }
            _ => {}
        }
    }
    Ok(())
}

fn image(url: &str, at: &str) -> Checked {
    let valid = url.starts_with("https://")
        || url.starts_with("http://")
        || url
            .strip_prefix("data:image/")
            .and_then(|data| data.split_once(";base64,"))
            .is_some_and(|(_, data)| !data.is_empty());
    if valid {
        return Ok(());
    }
    let message = format!(
        "Invalid '{at}.image_url.url'. Expected a valid URL or a base64-encoded data URL with an \
         image MIME type (e.g. 'data:image/png;base64,aW1nIGJ5dGVzIGhlcmU='), but got a value \
         without it."
    );
    Err(Refusal::invalid(message).at(format!("{at}.image_url.url")).code("invalid_value"))
}

fn tool_calls(calls: &[Value], path: &str, id_length_max: usize) -> Checked {
    if calls.is_empty() {
        return Err(empty_array(path));
    }
    if calls.len() > 128 {
        return Err(long_array(path, 128, calls.len()));
    }
    for (index, call) in calls.iter().enumerate() {
        let at = format!("{path}[{index}]");
        match call.get("id") {
            Some(Value::String(id)) => id_length(id, &format!("{at}.id"), id_length_max)?,
            None | Some(Value::Null) => return Err(missing(&format!("{at}.id"))),
            Some(other) => return Err(wrong_type(&format!("{at}.id"), "a string", other)),
        }
        let (name, text) = match call.get("type").and_then(Value::as_str) {
            Some("function") => ("/function/name", "/function/arguments"),
            Some("custom") => ("/custom/name", "/custom/input"),
            None => return Err(missing(&format!("{at}.type"))),
            Some(other) => return one_of(other, &format!("{at}.type"), &["function", "custom"]),
        };
        for pointer in [name, text] {
            let at = format!("{at}{}", pointer.replace('/', "."));
            match call.pointer(pointer) {
                Some(Value::String(value)) if pointer == "/function/name" => {
                    function_name(value, &at)?;
                }
                Some(Value::String(_)) => {}
                None | Some(Value::Null) => return Err(missing(&at)),
                Some(other) => return Err(wrong_type(&at, "a string", other)),
            }
        }
    }
    Ok(())
}

/// Every call is answered by a `tool` message directly after its message, and nothing else is.
fn pairing(messages: &[Value]) -> Checked {
    let mut open: Vec<&str> = Vec::new();
    let mut answerable: Vec<&str> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        if message.get("role").and_then(Value::as_str) == Some("tool") {
            let id = message.get("tool_call_id").and_then(Value::as_str).unwrap_or_default();
            if !answerable.contains(&id) {
                let message = "messages with role 'tool' must be a response to a preceeding message \
                               with 'tool_calls'.";
                return Err(Refusal::invalid(message).at(format!("messages.[{index}].role")));
            }
            open.retain(|open| *open != id);
            continue;
        }
        unanswered(&open, index)?;
        let calls = message.get("tool_calls").and_then(Value::as_array).into_iter().flatten();
        open = calls.filter_map(|call| call.get("id").and_then(Value::as_str)).collect();
        answerable.clone_from(&open);
    }
    unanswered(&open, messages.len())
}

fn unanswered(open: &[&str], index: usize) -> Checked {
    if open.is_empty() {
        return Ok(());
    }
    let message = format!(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each \
         'tool_call_id'. The following tool_call_ids did not have response messages: {}",
        open.join(", ")
    );
    Err(Refusal::invalid(message).at(format!("messages.[{index}].role")))
}

fn function_name(name: &str, path: &str) -> Checked {
    if name.len() > 64 {
        return Err(long_string(path, 64, name.len()));
    }
    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b)) {
        let message = format!(
            "Invalid '{path}': string does not match pattern. Expected a string that matches the \
             pattern '^[a-zA-Z0-9_-]+$'."
        );
        return Err(Refusal::invalid(message).at(path).code("invalid_value"));
    }
    Ok(())
}

fn id_length(id: &str, path: &str, most: usize) -> Checked {
    if most > 0 && id.len() > most { Err(long_string(path, most, id.len())) } else { Ok(()) }
}

fn one_of(value: &str, path: &str, supported: &[&str]) -> Checked {
    if supported.contains(&value) {
        return Ok(());
    }
    let quoted: Vec<String> = supported.iter().map(|word| format!("'{word}'")).collect();
    let list = match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, [one])) => format!("{one} and {last}"),
        Some((last, rest)) => format!("{}, and {last}", rest.join(", ")),
        None => String::new(),
    };
    let message = format!("Invalid value: '{value}'. Supported values are: {list}.");
    Err(Refusal::invalid(message).at(path).code("invalid_value"))
}

fn missing(path: &str) -> Refusal {
    Refusal::invalid(format!("Missing required parameter: '{path}'."))
        .at(path)
        .code("missing_required_parameter")
}

fn empty_array(path: &str) -> Refusal {
    Refusal::invalid(format!(
        "Invalid '{path}': empty array. Expected an array with minimum length 1, but got an empty \
         array instead."
    ))
    .at(path)
    .code("empty_array")
}

fn long_array(path: &str, most: usize, found: usize) -> Refusal {
    Refusal::invalid(format!(
        "Invalid '{path}': array too long. Expected an array with maximum length {most}, but got an \
         array with length {found} instead."
    ))
    .at(path)
    .code("array_above_max_length")
}

fn long_string(path: &str, most: usize, found: usize) -> Refusal {
    Refusal::invalid(format!(
        "Invalid '{path}': string too long. Expected a string with maximum length {most}, but got a \
         string with length {found} instead."
    ))
    .at(path)
    .code("string_above_max_length")
}

fn below(path: &str, least: i64, found: i64) -> Refusal {
    Refusal::invalid(format!(
        "Invalid '{path}': integer below minimum value. Expected a value >= {least}, but got {found} \
         instead."
    ))
    .at(path)
    .code("integer_below_min_value")
}

fn wrong_type(path: &str, expected: &str, found: &Value) -> Refusal {
    let found = match found {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a decimal",
        Value::Number(_) => "an integer",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    };
    Refusal::invalid(format!(
        "Invalid type for '{path}': expected {expected}, but got {found} instead."
    ))
    .at(path)
    .code("invalid_type")
}
