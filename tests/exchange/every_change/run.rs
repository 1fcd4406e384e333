//! Upstreams of each protocol, which refuse a request as a row of the table says.

use super::*;
use support::fold;

/// Reasoning and a call, or a text, as an upstream of this protocol answers.
fn answer(protocol: &str, stream: bool, text: Option<&str>) -> String {
    let lines = |events: &[Value]| -> String {
        let named = |event: &Value| match event["type"].as_str() {
            Some(name) => format!("event: {name}\ndata: {event}\n\n"),
            None => format!("data: {event}\n\n"),
        };
        events.iter().map(named).collect()
    };
    let id = "call_0123456789abcdef0123456789abcdef";
    let arguments = r#"{"path":"a"}"#;
    match protocol {
        "openai" => {
            let call = json!({"index": 0, "id": id, "type": "function",
                "function": {"name": "look", "arguments": arguments}});
            let (said, reason) = match text {
                Some(text) => (json!({"role": "assistant", "content": text}), "stop"),
                None => (
                    json!({"role": "assistant", "content": null, "reasoning_content": "hm", "tool_calls": [call]}),
                    "tool_calls",
                ),
            };
            let name = if stream { "delta" } else { "message" };
            let whole = json!({"choices": [{"index": 0, name: said, "finish_reason": reason}],
                "usage": {"prompt_tokens": 1, "completion_tokens": 1}});
            if stream { format!("{}data: [DONE]\n\n", lines(&[whole])) } else { whole.to_string() }
        }
        "responses" => {
            let items = match text {
                Some(text) => {
                    let part = json!({"type": "output_text", "text": text, "annotations": []});
                    json!([{"type": "message", "id": "msg_1", "role": "assistant", "content": [part]}])
                }
                None => json!([
                    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}],
                        "encrypted_content": "gAAA"},
                    {"type": "function_call", "id": "fc_1", "call_id": id, "name": "look", "arguments": arguments},
                ]),
            };
            let whole = json!({"id": "resp_1", "object": "response", "status": "completed", "model": "m",
                "output": items, "usage": {"input_tokens": 9, "output_tokens": 5, "total_tokens": 14}});
            let event = json!({"type": "response.completed", "response": whole});
            if stream { lines(&[event]) } else { whole.to_string() }
        }
        _ => {
            let content = match text {
                Some(text) => json!([{"type": "text", "text": text}]),
                None => json!([{"type": "thinking", "thinking": "hm", "signature": "c2ln"},
                    {"type": "tool_use", "id": id, "name": "look", "input": {"path": "a"}}]),
            };
            let reason = if text.is_some() { "end_turn" } else { "tool_use" };
            let mut message = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m",
                "content": content, "stop_reason": reason, "stop_sequence": null, "stop_details": null,
                "container": null, "usage": {"input_tokens": 3, "output_tokens": 4}});
            if !stream {
                return message.to_string();
            }
            message["content"] = json!([]);
            message["stop_reason"] = Value::Null;
            lines(&[
                json!({"type": "message_start", "message": message}),
                json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
                json!({"type": "content_block_delta", "index": 0,
                    "delta": {"type": "text_delta", "text": text.unwrap_or_default()}}),
                json!({"type": "content_block_stop", "index": 0}),
                json!({"type": "message_delta", "usage": message["usage"],
                    "delta": {"stop_reason": reason, "stop_sequence": null}}),
                json!({"type": "message_stop"}),
            ])
        }
    }
}

/// A conversation whose one answer came from this upstream: it thought, and called a tool.
fn conversation(config: &Arc<Config>, protocol: &str) -> Value {
    let texts = json!([{"type": "text", "text": "Look"}, {"type": "text", "text": "here"}]);
    let mut body = request(
        "m",
        json!({
            "max_tokens": 4000, "messages": [{"role": "user", "content": texts}],
            "tools": [{"name": "look", "description": "Looks.", "input_schema": {"type": "object",
                "properties": {"path": {"type": "string"}}, "required": ["path"], "additionalProperties": false}}],
        }),
    );
    let (exchange, _) =
        drive::request(config, "/v1/messages", &[], body.to_string().as_bytes()).unwrap();
    let answer = answer(protocol, false, None);
    let got = drive::respond(exchange, 200, &[], [answer.as_bytes()], End::Complete);
    let message: Value = serde_json::from_slice(&got.body).unwrap();
    let content = &message["content"];
    assert_eq!(content[0]["type"], "thinking", "{message}");
    let result = json!([{"type": "text", "text": "A page."}, {"type": "text", "text": "Another."}]);
    let result = json!({"type": "tool_result", "tool_use_id": content[1]["id"], "content": result});
    let messages = body["messages"].as_array_mut().unwrap();
    messages.push(json!({"role": "assistant", "content": content}));
    messages.push(json!({"role": "user", "content": [result]}));
    body
}

/// Answer that a client got: status, warnings, what the upstream was asked, and the body as one
/// JSON value.
pub(in super::super) struct Got {
    pub(in super::super) status: u16,
    pub(in super::super) warnings: String,
    pub(in super::super) asked: Vec<Value>,
    pub(in super::super) body: Value,
}

impl Change {
    /// The client's request, of an upstream with this protocol.
    fn request(&self, config: &Arc<Config>, protocol: &str, stream: bool) -> Value {
        let mut body = conversation(config, protocol);
        let has: Value = serde_json::from_str(self.has).unwrap();
        for (name, value) in has.as_object().unwrap() {
            match name.rsplit_once('/') {
                Some((within, key)) => match body.pointer_mut(within).unwrap() {
                    Value::Array(list) => match key.parse::<usize>().unwrap() {
                        at if at == list.len() => list.push(value.clone()),
                        at => list[at] = value.clone(),
                    },
                    object => object[key] = value.clone(),
                },
                None => body[name] = value.clone(),
            }
        }
        body["stream"] = json!(stream);
        body
    }

    /// Sends the request to an upstream that refuses it as long as `is_in` finds the subject.
    pub(in super::super) fn ask(
        &self,
        protocol: &str,
        stream: bool,
        at: &str,
        is_in: &dyn Fn(&Value) -> bool,
    ) -> Got {
        let profile: Value = serde_json::from_str(self.profile).unwrap();
        let upstream = json!({"protocol": protocol, "profile_overrides": profile});
        let config = drive::config(&json!({"upstreams": {"a": upstream}}).to_string());
        let body = self.request(&config, protocol, stream);
        let path = at.trim_start_matches('/').replace('/', ".");
        let refusal = self.refusal.replace("{at}", &path);
        let can = HostCan { ask_again: true, ..HostCan::default() };
        let mut exchange = Exchange::new(config, SEED, can);
        exchange.decide("POST", "/v1/messages", &headers(&[("x-api-key", "k")]));
        let mut call = exchange.request(body.to_string().as_bytes(), NOW).unwrap();
        let (mut asked, mut out) = (Vec::new(), Vec::new());
        loop {
            let sent: Value = serde_json::from_slice(&call.body).unwrap();
            let is_refused = is_in(&sent);
            let (status, answer) = match is_refused {
                true if refusal.starts_with('{') || refusal.starts_with("data:") => {
                    (self.status, refusal.clone())
                }
                true => (self.status, json!({"error": {"message": refusal}}).to_string()),
                false => (200, answer(protocol, sent["stream"] == true, Some("Hi"))),
            };
            asked.push(sent);
            exchange.handle_call_head(status, &[], NOW);
            let early = exchange.piece(answer.as_bytes(), NOW, &mut out);
            let end = exchange.end(End::Complete, NOW, &mut out);
            if let Some(again) = exchange.poll_call(NOW) {
                call = again;
                continue;
            }
            let head = early.or(end).unwrap();
            // What an upstream of Messages leaves out, the relay does not add.
            let rules = Rules { foreign_blocks: protocol == "anthropic", ..Rules::default() };
            let body = match stream && head.status == 200 {
                true => fold::fold(&grammar::check_stream(&out, rules).unwrap()).message,
                false => serde_json::from_slice(&out).unwrap(),
            };
            let warnings = header(&head, "x-creole-warnings").unwrap_or_default().to_owned();
            return Got { status: head.status, warnings, asked, body };
        }
    }
}
