//! Checks of the messages in a Chat Completions request, including which tool results belong to
//! which calls.

use serde_json::Value;

use super::refusal::*;
use super::{Checked, function_name};

pub(super) fn message(message: &Value, path: &str, id_length_max: usize) -> Checked {
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
            "image_url" => image_at(
                string("/image_url/url", "image_url.url")?,
                &format!("{at}.image_url.url"),
            )?,
            "input_audio" => drop(string("/input_audio/data", "input_audio.data")?),
            "file" if part.get("file").and_then(Value::as_object).is_none() => {
                return Err(missing(&format!("{at}.file")));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Checks the URL of an image: a web address, or the data itself.
pub(super) fn image_at(url: &str, at: &str) -> Checked {
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
        "Invalid '{at}'. Expected a valid URL or a base64-encoded data URL with an \
         image MIME type (e.g. 'data:image/png;base64,aW1nIGJ5dGVzIGhlcmU='), but got a value \
         without it."
    );
    Err(Refusal::invalid(message).at(at).code("invalid_value"))
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

/// Checks that each tool call is answered by a `tool` message directly after its message, and that
/// `tool` messages answer nothing else.
pub(super) fn pairing(messages: &[Value]) -> Checked {
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

fn id_length(id: &str, path: &str, most: usize) -> Checked {
    if most > 0 && id.len() > most { Err(long_string(path, most, id.len())) } else { Ok(()) }
}
