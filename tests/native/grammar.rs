//! A checker and accumulator of Messages streams that knows nothing of Creole: the order of events
//! and the shapes that SDKs need, ids and further members aside, which are the upstream's own.

use serde_json::{Value, json};

/// The message that a strict client builds of a stream, or what is wrong with it.
pub(crate) fn fold(stream: &str) -> Result<Value, String> {
    let mut message = Value::Null;
    let mut open: Option<(Value, String, u32)> = None;
    let mut blocks = Vec::new();
    let (mut stopping, mut ended) = (false, false);
    let Some(frames) = stream.strip_suffix("\n\n") else { return Err("no blank line".into()) };
    for frame in frames.split("\n\n") {
        let fail = |what: &str| Err(format!("{what}: {frame}"));
        let Some((name, data)) =
            frame.strip_prefix("event: ").and_then(|rest| rest.split_once("\ndata: "))
        else {
            return fail("not two lines");
        };
        let Ok(data) = serde_json::from_str::<Value>(data) else { return fail("not JSON") };
        if data["type"] != name || ended {
            return fail("misnamed, or after the end");
        }
        if (message == Value::Null) != (name == "message_start") {
            return fail("message_start comes once and first");
        }
        let dense = data["index"] == blocks.len();
        match (name, &mut open) {
            ("message_start", _) => {
                message = data["message"].clone();
                check_start(&message)?;
            }
            ("ping", _) => {}
            ("content_block_start", None) if dense && !stopping => {
                let block = data["content_block"].clone();
                let empty = match block["type"].as_str() {
                    Some("text") => block["text"] == "",
                    Some("thinking") => block["thinking"] == "",
                    Some("tool_use") => {
                        block["input"] == json!({})
                            && block["id"].as_str().is_some_and(|id| !id.is_empty())
                            && block["name"].is_string()
                    }
                    Some(_) => true,
                    None => false,
                };
                if !empty {
                    return fail("a block does not start empty");
                }
                open = Some((block, String::new(), 0));
            }
            ("content_block_delta", Some((block, partial, deltas))) if dense => {
                *deltas += 1;
                let delta = &data["delta"];
                let kind = block["type"].as_str().unwrap().to_owned();
                let field = match (kind.as_str(), delta["type"].as_str()) {
                    ("text", Some("text_delta")) => "text",
                    ("thinking", Some("thinking_delta")) => "thinking",
                    ("thinking", Some("signature_delta")) => "signature",
                    ("tool_use" | "server_tool_use", Some("input_json_delta")) => {
                        partial.push_str(delta["partial_json"].as_str().unwrap());
                        continue;
                    }
                    ("text", Some("citations_delta")) => continue,
                    _ => return fail("a delta that does not fit"),
                };
                let said = delta[field].as_str().ok_or("no text")?;
                if field == "signature" {
                    block[field] = said.into();
                    continue;
                }
                block[field] = format!("{}{said}", block[field].as_str().unwrap_or("")).into();
            }
            ("content_block_stop", Some((block, partial, deltas))) if dense => {
                if !partial.is_empty() {
                    block["input"] = serde_json::from_str(partial)
                        .unwrap_or_else(|_| json!({"INVALID_JSON": partial}));
                } else if block["type"] == "tool_use" && *deltas == 0 {
                    return fail("a call without a delta");
                }
                blocks.push(block.clone());
                open = None;
            }
            ("message_delta", None) if !stopping => {
                stopping = true;
                check_end(&data, &blocks)?;
                for key in ["delta", "usage"] {
                    for (name, value) in data[key].as_object().into_iter().flatten() {
                        let target = if key == "usage" { &mut message[key] } else { &mut message };
                        if key == "delta" || !value.is_null() {
                            target[name] = value.clone();
                        }
                    }
                }
            }
            ("message_stop", None) if stopping => ended = true,
            _ => return fail("not expected here"),
        }
    }
    if !ended {
        return Err("it does not end".into());
    }
    message["content"] = blocks.into();
    Ok(message)
}

fn check_start(message: &Value) -> Result<(), String> {
    let texts =
        ["id", "model"].iter().all(|key| message[key].as_str().is_some_and(|it| !it.is_empty()));
    let counts = ["input_tokens", "output_tokens"].iter().all(|key| message["usage"][key].is_u64());
    let fixed = message["type"] == "message" && message["role"] == "assistant";
    if texts && counts && fixed && message["content"] == json!([]) {
        return Ok(());
    }
    Err(format!("not the start of a message: {message}"))
}

fn check_end(data: &Value, blocks: &[Value]) -> Result<(), String> {
    let calls = blocks.iter().any(|block| block["type"] == "tool_use");
    let reason = data["delta"]["stop_reason"].as_str().unwrap_or_default();
    let fits = match reason {
        "" => false,
        "tool_use" => calls,
        "end_turn" => !calls,
        _ => true,
    };
    if fits && data["usage"]["output_tokens"].is_u64() {
        return Ok(());
    }
    Err(format!("not the end of a message: {data}"))
}
