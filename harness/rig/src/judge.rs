//! Upstream with two models: one answers with a tool call, the other judges that call.

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::{EVENT_STREAM, Out, Upstream, nobody};

/// Settings in which the model `guard` judges tool calls.
pub const JUDGE: &str =
    r#"{"safeguards": {"model": "guard", "timeout_ms": 20000}, "ping_interval_ms": 100}"#;

/// Name of a model whose tool call has a command of `LONG_BYTES` bytes, all of which the judge
/// gets.
pub const LONG: &str = "long";
pub const LONG_BYTES: usize = 60_000;

/// Returns configurations whose judge gives no verdict, each with the expected outcome: the judge's
/// server is down (`error`), or too slow (`timeout`).
pub async fn failing_judges(upstream: &str) -> [(String, &'static str); 2] {
    let down = format!(
        r#"{{"upstreams": {{"main": {{"url": "{upstream}"}}, "guard": {{"url": "{}", "key": "none"}}}},
        "models": {{"*": {{"upstream": "main"}}}}, "safeguards": {{"model": "guard", "upstream": "guard"}}}}"#,
        nobody().await,
    );
    let slow = format!(
        r#"{{"upstreams": {{"main": {{"url": "{upstream}"}}}}, "safeguards": {{"model": "guard", "timeout_ms": 200}}}}"#,
    );
    [(down, "error"), (slow, "timeout")]
}

/// Returns a request of the Messages API that asks for verdicts on tool calls.
#[must_use]
pub fn judged_messages(stream: bool) -> String {
    json!({
        "model": "claude-x", "max_tokens": 100, "stream": stream,
        "tools": [{"name": "Bash", "input_schema": {"type": "object"}}],
        "safeguards": [{"type": "dangerous_tool_use", "classifier_context": {}}],
        "messages": [{"role": "user", "content": "Hello"}],
    })
    .to_string()
}

/// Pending request to the judge model `guard`.
pub struct Judge {
    /// Id of the tool call in the judge's request.
    id: String,
    out: Out,
}

impl Judge {
    /// Sends a verdict on the call as the judge's answer.
    pub async fn say(&mut self, outcome: &str) {
        let entry =
            json!({"id": self.id, "explanation": "I say so", "rule": "", "verdict": outcome});
        let said = json!({"verdicts": [entry]}).to_string();
        let message = json!({"role": "assistant", "content": said});
        let answer = json!({"choices": [{"message": message, "finish_reason": "stop"}]});
        self.out.send_data(Bytes::from(answer.to_string())).await.unwrap();
    }
}

/// Returns the value of `safeguard_results` in a client's answer, for its only call.
#[must_use]
pub fn judged(body: &str) -> Value {
    let message = match body.split("event: message_delta\ndata: ").nth(1) {
        Some(event) => {
            serde_json::from_str::<Value>(event.lines().next().unwrap()).unwrap()["delta"].take()
        }
        None => serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {body}")),
    };
    let status = &message["safeguard_results"][0]["status"];
    match status["tool_uses"].as_object() {
        Some(calls) => calls.values().next().cloned().unwrap_or_default(),
        None => status.clone(),
    }
}

impl Upstream {
    /// Starts an upstream with the models of this file. The test writes the answers of `guard`.
    pub async fn judged() -> (Self, UnboundedReceiver<Judge>) {
        let (outs, received) = tokio::sync::mpsc::unbounded_channel();
        let upstream = Self::start(move |asked, mut out| {
            let asked: Value = serde_json::from_str(&asked.body).unwrap();
            if asked["model"] == "guard" {
                let prompt = asked["messages"][1]["content"].as_str().unwrap();
                let id = prompt.split_once("<calls>\n{\"id\":\"").unwrap().1;
                let id = id.split_once('"').unwrap().0.to_owned();
                outs.send(Judge { id, out }).unwrap_or_else(|_| panic!("nobody waits"));
                return (200, "application/json");
            }
            let is_stream = asked["stream"] == true;
            let command =
                if asked["model"] == LONG { "x".repeat(LONG_BYTES) } else { "ls".to_owned() };
            tokio::spawn(async move { out.send_data(answer(&command, is_stream)).await });
            (200, if is_stream { EVENT_STREAM } else { "application/json" })
        })
        .await;
        (upstream, received)
    }
}

fn answer(command: &str, is_stream: bool) -> Bytes {
    let call = json!({"index": 0, "id": "call_1", "type": "function",
        "function": {"name": "Bash", "arguments": json!({"command": command}).to_string()}});
    let said = json!({"role": "assistant", "content": "I look.", "tool_calls": [call]});
    Bytes::from(match is_stream {
        true => format!(
            "data: {}\n\ndata: {}\n\ndata: [DONE]\n\n",
            json!({"choices": [{"index": 0, "delta": said}]}),
            json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}),
        ),
        false => json!({"choices": [{"message": said, "finish_reason": "tool_calls"}]}).to_string(),
    })
}
