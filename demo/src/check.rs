//! Checks of a request, with the error messages of the original API. A mistake in a translated
//! request is a 400 here too.
//!
//! Fields that only compatible servers know are accepted by name (`EXTENSIONS`); any other unknown
//! field is refused, as the original does.

mod messages;
mod refusal;
pub(crate) mod responses;
mod shape;

use serde_json::{Map, Value};

use messages::{image_at, message, pairing};
pub(crate) use refusal::Refusal;
use refusal::*;
use shape::{booleans, decimals, integers};

type Checked = Result<(), Refusal>;

/// Names of the request fields in the original API.
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

/// Names of the request fields that only compatible servers support.
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

/// Values that the original API allows as reasoning effort.
const EFFORTS: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/// Checks a Chat Completions request body.
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
    integers(body, &[("max_tokens", 1), ("max_completion_tokens", 1), ("n", 1)])?;
    decimals(
        body,
        &[
            ("temperature", 0.0, 2.0),
            ("top_p", 0.0, 1.0),
            ("frequency_penalty", -2.0, 2.0),
            ("presence_penalty", -2.0, 2.0),
        ],
    )?;
    booleans(body, "", &["stream", "parallel_tool_calls", "store", "logprobs"])?;
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
    match body.get("reasoning_effort") {
        None | Some(Value::Null) => Ok(()),
        Some(Value::String(effort)) => one_of(effort, "reasoning_effort", &EFFORTS),
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
                // `none` is the default, and the original API accepts it.
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
    function_schema(
        tool.pointer("/function/parameters"),
        name,
        &format!("{path}.function.parameters"),
    )?;
    Ok(name)
}

/// Checks that the parameters of a function are the schema of an object.
fn function_schema(parameters: Option<&Value>, name: &str, path: &str) -> Checked {
    let schema = match parameters {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::Object(schema)) => schema,
        Some(other) => return Err(wrong_type(path, "an object", other)),
    };
    let object = schema.get("type").is_none_or(|kind| kind == "object");
    let composed = ["$ref", "anyOf", "oneOf", "allOf"].iter().any(|k| schema.contains_key(*k));
    let wrong = if !object {
        let found = schema.get("type").cloned().unwrap_or_default();
        format!("schema must be a JSON Schema of 'type: \"object\"', got 'type: {found}'.")
    } else if schema.contains_key("type") && !schema.contains_key("properties") && !composed {
        "In context=(), object schema missing properties".to_owned()
    } else {
        return Ok(());
    };
    let message = format!("Invalid schema for function '{name}': {wrong}");
    Err(Refusal::invalid(message).at(path).code("invalid_function_parameters"))
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
