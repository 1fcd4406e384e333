//! Builds a message out of a stream, as the official SDKs do.

use serde_json::{Value, json};

use super::grammar::Event;

/// Result that a client has at the end of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Folded {
    /// The message as far as it came.
    pub message: Value,
    /// The data of the `error` event, if the stream ended with one.
    pub error: Option<Value>,
}

/// Accumulates events that [`super::grammar::check`] has accepted.
///
/// The input of a call is parsed from the deltas alone; what does not parse (an answer cut off by
/// `max_tokens`, an invalid call) stays as `{"partial_json": TEXT}`.
pub fn fold(events: &[Event]) -> Folded {
    let mut message = Value::Null;
    let mut error = None;
    let mut partial = String::new();
    for Event { name, data } in events {
        match name.as_str() {
            "message_start" => message = data["message"].clone(),
            "content_block_start" => {
                partial.clear();
                blocks(&mut message).push(data["content_block"].clone());
            }
            "content_block_delta" => {
                let delta = &data["delta"];
                let Some(block) = blocks(&mut message).last_mut() else { continue };
                let is_whole = delta["type"] == "compaction_delta";
                for (key, value) in delta.as_object().into_iter().flatten() {
                    match (key.as_str(), value.as_str()) {
                        ("type" | "partial_json", _) => {}
                        ("signature", Some(_)) => block[key] = value.clone(),
                        _ if is_whole => block[key] = value.clone(),
                        (_, Some(text)) => {
                            let before = block[key].as_str().unwrap_or_default();
                            block[key] = format!("{before}{text}").into();
                        }
                        _ => {}
                    }
                }
                if let Some(citation) = delta.get("citation") {
                    match &mut block["citations"] {
                        Value::Array(citations) => citations.push(citation.clone()),
                        none => *none = json!([citation]),
                    }
                }
                if let Some(json) = delta["partial_json"].as_str() {
                    partial.push_str(json);
                }
            }
            "content_block_stop" => {
                let Some(block) = blocks(&mut message).last_mut() else { continue };
                if !partial.is_empty() {
                    block["input"] = serde_json::from_str(&partial)
                        .unwrap_or_else(|_| json!({ "partial_json": partial }));
                }
            }
            "message_delta" => {
                for (key, value) in data["delta"].as_object().into_iter().flatten() {
                    message[key] = value.clone();
                }
                if let Some(context) = data.get("context_management") {
                    message["context_management"] = context.clone();
                }
                for (key, value) in data["usage"].as_object().into_iter().flatten() {
                    if !value.is_null() {
                        message["usage"][key] = value.clone();
                    }
                }
            }
            "error" => error = Some(data.clone()),
            _ => {}
        }
    }
    Folded { message, error }
}

fn blocks(message: &mut Value) -> &mut Vec<Value> {
    message["content"].as_array_mut().expect("message_start comes first")
}

/// The message without what a streamed and a whole answer may differ in: nulls, and those counts of
/// `usage` that a stream cannot tell at its end.
pub fn comparable(message: &Value) -> Value {
    let mut message = message.clone();
    if let Some(usage) = message["usage"].as_object_mut() {
        usage.retain(|key, _| key.ends_with("_tokens") || key == "output_tokens_details");
    }
    drop_nulls(&mut message);
    message
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.retain(|_, value| !value.is_null());
            object.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}
