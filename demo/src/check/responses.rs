//! Checks of a request to the Responses API, with the original API's error messages. The demo model
//! stores nothing, so it also refuses `store: true` and references to stored objects.

mod items;
mod tools;

use serde_json::Value;

use super::refusal::*;
use super::shape::*;
use super::{Checked, EFFORTS, Refusal, function_name};

/// Names of the request fields.
const FIELDS: [&str; 33] = [
    "access_programs",
    "background",
    "background_options",
    "context_management",
    "conversation",
    "include",
    "input",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "model",
    "moderation",
    "parallel_tool_calls",
    "previous_response_id",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
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
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
];

/// Names of the request fields for counting input tokens.
const COUNTED: [&str; 11] = [
    "conversation",
    "input",
    "instructions",
    "model",
    "parallel_tool_calls",
    "previous_response_id",
    "reasoning",
    "text",
    "tool_choice",
    "tools",
    "truncation",
];

/// Values that the field `include` may contain.
const INCLUDED: [&str; 8] = [
    "code_interpreter_call.outputs",
    "computer_call_output.output.image_url",
    "file_search_call.results",
    "message.input_image.image_url",
    "message.output_text.logprobs",
    "reasoning.encrypted_content",
    "web_search_call.action.sources",
    "web_search_call.results",
];

/// Checks the body of a Responses request.
pub(crate) fn request(body: &Fields, id_length_max: usize) -> Checked {
    only(body, "", &FIELDS)?;
    checked(body, id_length_max)
}

/// Checks the body of a request that counts input tokens.
pub(crate) fn counted(body: &Fields, id_length_max: usize) -> Checked {
    only(body, "", &COUNTED)?;
    checked(body, id_length_max)
}

fn checked(body: &Fields, id_length_max: usize) -> Checked {
    let model = needed(body, "", "model")?;
    settings(body)?;
    stateless(body)?;
    if let Some(reasoning) = set(body, "reasoning") {
        self::reasoning(reasoning)?;
    }
    if let Some(text) = set(body, "text") {
        text_settings(text)?;
    }
    tools::tools(body)?;
    match set(body, "input") {
        None => Err(missing("input")),
        Some(Value::String(_)) => Ok(()),
        Some(input) => items::items(array(input, "input")?, model, id_length_max),
    }
}

fn settings(body: &Fields) -> Checked {
    integers(body, &[("max_output_tokens", 16), ("max_tool_calls", 1), ("top_logprobs", 0)])?;
    decimals(body, &[("temperature", 0.0, 2.0), ("top_p", 0.0, 1.0)])?;
    booleans(body, "", &["background", "parallel_tool_calls", "store", "stream"])?;
    for name in ["instructions", "prompt_cache_key", "safety_identifier", "user"] {
        text(body, "", name)?;
    }
    let tiers = ["auto", "default", "flex", "scale", "priority", "fast", "ultrafast"];
    word(body, "", "service_tier", &tiers)?;
    word(body, "", "truncation", &["auto", "disabled"])?;
    if let Some(options) = set(body, "stream_options") {
        let options = object(options, "stream_options")?;
        only(options, "stream_options", &["include_obfuscation"])?;
        booleans(options, "stream_options", &["include_obfuscation"])?;
        if body.get("stream") != Some(&Value::Bool(true)) {
            let message =
                "The 'stream_options' parameter is only allowed when 'stream' is enabled.";
            return Err(Refusal::invalid(message).at("stream_options"));
        }
    }
    match set(body, "include") {
        None => Ok(()),
        Some(Value::Array(names)) => names.iter().enumerate().try_for_each(|(index, name)| {
            let at = format!("include[{index}]");
            let name = name.as_str().ok_or_else(|| wrong_type(&at, "a string", name))?;
            one_of(name, &at, &INCLUDED)
        }),
        Some(other) => Err(wrong_type("include", "an array of strings", other)),
    }
}

fn stateless(body: &Fields) -> Checked {
    let is_true = |name: &str| body.get(name) == Some(&Value::Bool(true));
    let stored = ["store", "background"].into_iter().find(|name| is_true(name)).or_else(|| {
        ["previous_response_id", "conversation", "prompt"]
            .into_iter()
            .find(|name| set(body, name).is_some())
    });
    match stored {
        None => Ok(()),
        Some(name) => {
            let message = format!(
                "Unsupported parameter: '{name}' needs a stored conversation, and the demo model stores none."
            );
            Err(Refusal::invalid(message).at(name).code("unsupported_parameter"))
        }
    }
}

fn reasoning(reasoning: &Value) -> Checked {
    let path = "reasoning";
    let reasoning = object(reasoning, path)?;
    only(reasoning, path, &["context", "effort", "generate_summary", "mode", "summary"])?;
    word(reasoning, path, "effort", &EFFORTS)?;
    for name in ["summary", "generate_summary"] {
        word(reasoning, path, name, &["auto", "concise", "detailed"])?;
    }
    word(reasoning, path, "context", &["auto", "current_turn", "all_turns"])?;
    word(reasoning, path, "mode", &["standard", "pro"])
}

fn text_settings(text: &Value) -> Checked {
    let text = object(text, "text")?;
    only(text, "text", &["format", "verbosity"])?;
    word(text, "text", "verbosity", &["low", "medium", "high"])?;
    let Some(format) = set(text, "format") else { return Ok(()) };
    let path = "text.format";
    let format = object(format, path)?;
    let kind = needed(format, path, "type")?;
    one_of(kind, "text.format.type", &["text", "json_object", "json_schema"])?;
    if kind != "json_schema" {
        return only(format, path, &["type"]);
    }
    only(format, path, &["description", "name", "schema", "strict", "type"])?;
    function_name(needed(format, path, "name")?, "text.format.name")?;
    self::text(format, path, "description")?;
    booleans(format, path, &["strict"])?;
    match set(format, "schema") {
        None => Err(missing("text.format.schema")),
        Some(schema) => object(schema, "text.format.schema").map(drop),
    }
}
