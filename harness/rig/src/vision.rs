//! Upstream with two models: one cannot see images, and the other describes them.

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::{COMPLETION, EVENT_STREAM, Out, Upstream, chunk, finish, nobody};

/// Base64 start of a PNG file, used as an image.
pub const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB";

/// Returns the configuration in which the model `eyes` describes images.
#[must_use]
pub fn vision(upstream: &str) -> String {
    with_vision(upstream, r#"{"model": "eyes", "timeout_ms": 20000}"#)
}

fn with_vision(upstream: &str, vision: &str) -> String {
    format!(
        r#"{{"upstreams": {{"main": {{"url": "{upstream}", "key": "none",
        "profile_overrides": {{"image_parts": "none"}}}}}}, "vision": {vision}}}"#
    )
}

/// Returns configurations whose vision model gives no description, each with the expected outcome:
/// its server is down (`error`), or too slow (`timeout`).
pub async fn failing_vision(upstream: &str) -> [(String, &'static str); 2] {
    let down = format!(
        r#"{{"upstreams": {{"main": {{"url": "{upstream}", "key": "none",
        "profile_overrides": {{"image_parts": "none"}}}}, "eyes": {{"url": "{}", "key": "none"}}}},
        "models": {{"*": {{"upstream": "main"}}}}, "vision": {{"model": "eyes", "upstream": "eyes"}}}}"#,
        nobody().await,
    );
    [(down, "error"), (with_vision(upstream, r#"{"model": "eyes", "timeout_ms": 200}"#), "timeout")]
}

/// Returns a request of the Messages API with two images.
#[must_use]
pub fn seen_messages(stream: bool) -> String {
    let image = |data: &str| json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}});
    let content =
        json!([image(PNG), image(&format!("{PNG}AAAA")), {"type": "text", "text": "Hello"}]);
    json!({
        "model": "claude-x", "max_tokens": 100, "stream": stream,
        "messages": [{"role": "user", "content": content}],
    })
    .to_string()
}

/// Pending request to the vision model `eyes`.
pub struct Eyes(Out);

impl Eyes {
    /// Sends a description as the model's answer.
    pub async fn say(&mut self, description: &str) {
        let message = json!({"role": "assistant", "content": description});
        let answer = json!({"choices": [{"message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 70, "completion_tokens": 5}});
        self.0.send_data(Bytes::from(answer.to_string())).await.unwrap();
    }
}

impl Upstream {
    /// Starts an upstream with the models of this file. The test writes the answers of `eyes`.
    pub async fn seeing() -> (Self, UnboundedReceiver<Eyes>) {
        let (outs, received) = tokio::sync::mpsc::unbounded_channel();
        let upstream = Self::start(move |asked, mut out| {
            let asked: Value = serde_json::from_str(&asked.body).unwrap();
            if asked["model"] == "eyes" {
                assert!(asked.to_string().contains(PNG), "{asked}");
                outs.send(Eyes(out)).unwrap_or_else(|_| panic!("nobody waits"));
                return (200, "application/json");
            }
            let is_stream = asked["stream"] == true;
            tokio::spawn(async move {
                if !is_stream {
                    return out.send_data(Bytes::from_static(COMPLETION.as_bytes())).await;
                }
                out.send_data(chunk("Hi there")).await?;
                out.send_data(finish()).await
            });
            (200, if is_stream { EVENT_STREAM } else { "application/json" })
        })
        .await;
        (upstream, received)
    }
}
