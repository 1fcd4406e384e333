//! Answers in Responses, and what a client gets of them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::way;
use crate::spec::MARK;
use crate::support::{drive, fixture, tool_id};
use crate::warnings_of;

/// Answer that a client got.
#[derive(Clone, Debug, PartialEq)]
pub struct Got {
    pub body: String,
    /// The headers that carry something of the upstream, and the status.
    pub head: String,
    pub warnings: Vec<String>,
}

impl Got {
    /// Whether a text that stands nowhere else has come: as it is, in an id, or in a signature.
    pub fn has(&self, text: &str) -> bool {
        let quoted = || self.body.split('"').filter(|part| part.len() > MARK.len());
        self.body.contains(text)
            || self.head.contains(text)
            || quoted().any(|part| tool_id::decode(part).as_deref() == Some(text))
            || quoted().any(|part| {
                let bytes = STANDARD.decode(part).unwrap_or_default();
                String::from_utf8_lossy(&bytes).contains(text)
            })
    }
}

/// The answer to a request for everything: thinking, calls, searches of the web, and MCP servers.
pub fn client_gets(upstream: &str, stream: bool) -> Result<Got, String> {
    let mut way = way();
    way.overrides["response_model"] = "upstream".into();
    way.overrides["mcp"] = "mcp".into();
    let config = fixture::config(way.settings.as_object(), way.profile, Some(&way.overrides));
    let config = drive::config(&config.to_string());
    let request = json!({
        "model": "claude-test", "max_tokens": 100, "stream": stream,
        "messages": [{"role": "user", "content": "q"}],
        "thinking": {"type": "adaptive", "display": "summarized"},
        "tools": [
            {"name": "w", "input_schema": {"type": "object", "properties": {}}},
            {"type": "web_search_20250305", "name": "web_search"},
            {"type": "mcp_toolset", "mcp_server_name": "files"},
        ],
        "mcp_servers": [{"type": "url", "name": "files", "url": "https://x.test/mcp"}],
    });
    let (exchange, _) =
        drive::request(&config, "/v1/messages", &[], request.to_string().as_bytes())
            .map_err(|answer| String::from_utf8_lossy(&answer.body).into_owned())?;
    let end = creole::End::Complete;
    let answer = drive::respond(exchange, 200, &[], [upstream.as_bytes()], end);
    let id = answer.report.answer.upstream_id.clone().unwrap_or_default();
    // Warnings are looked at by themselves.
    let headers = answer.head.headers.iter().filter(|(name, _)| name != "x-creole-warnings");
    let headers: Vec<_> = headers.collect();
    Ok(Got {
        body: String::from_utf8(answer.body).unwrap(),
        head: format!("{} {headers:?} {id}", answer.head.status),
        warnings: warnings_of(&answer.report),
    })
}

/// A stream of these events.
pub fn stream_of(events: &[Value]) -> String {
    let line = |event: &Value| {
        let name = event["type"].as_str().unwrap_or_default();
        format!("event: {name}\ndata: {event}\n\n")
    };
    events.iter().map(line).collect()
}

/// The signature of reasoning that this upstream and model gave.
fn own_signature() -> String {
    let item = json!({
        "id": "rs_1", "type": "reasoning", "status": "completed", "encrypted_content": MARK,
        "summary": [{"type": "summary_text", "text": "Hm"}],
        "content": [{"type": "reasoning_text", "text": "Hm, well"}],
    });
    let text = json!({"type": "message", "role": "assistant", "content": [
        {"type": "output_text", "text": "Hello"},
    ]});
    let answer =
        json!({"id": "r", "object": "response", "status": "completed", "output": [item, text]});
    let got = client_gets(&answer.to_string(), false).unwrap();
    let message: Value = serde_json::from_str(&got.body).unwrap();
    message["content"][0]["signature"].as_str().unwrap().to_owned()
}

/// Gives thinking the signature of this upstream, and something that it led to.
pub fn sign(request: &mut Value) {
    for message in request["messages"].as_array_mut().into_iter().flatten() {
        let Some(blocks) = message["content"].as_array_mut() else { continue };
        let Some(thinking) = blocks.iter_mut().find(|block| block["type"] == "thinking") else {
            continue;
        };
        thinking["signature"] = own_signature().into();
        blocks.push(json!({"type": "text", "text": "Hello"}));
    }
}
