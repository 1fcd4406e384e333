//! What the tests need: the Worker in workerd, a scripted upstream, and a client, all on this machine.
//!
//! The files come from the environment, as `cargo xtask test` sets it: `CREOLE_WORKERD` (the binary),
//! `CREOLE_WORKER_DIR` (the Worker as it is deployed) and `CREOLE_WORKER_HOOKS_DIR` (the same, able to
//! panic on demand).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::missing_panics_doc,
    missing_docs,
    reason = "a test fails by panicking"
)]

pub mod client;
pub mod runtime;
pub mod upstream;

use std::time::{Duration, Instant};

use bytes::Bytes;

pub use client::{Got, get, open, post, read, read_until};
pub use runtime::Worker;
pub use upstream::{Asked, Out, Upstream, nobody};

/// Longer than anything takes here, even on a busy machine; a test that waits this long has failed.
pub const PATIENCE: Duration = Duration::from_secs(30);

pub const EVENT_STREAM: &str = "text/event-stream";

pub const COMPLETION: &str = r#"{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hi there"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13}}"#;

/// Waits for `future`, but not for ever.
pub async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited too long: {what}"),
    }
}

/// Waits until `condition` holds.
pub async fn until(what: &str, condition: impl Fn() -> bool) {
    let since = Instant::now();
    while !condition() {
        assert!(since.elapsed() < PATIENCE, "waited too long: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A request of the Messages API.
#[must_use]
pub fn messages(stream: bool) -> String {
    format!(
        r#"{{"model":"claude-x","max_tokens":100,"stream":{stream},"messages":[{{"role":"user","content":"Hello"}}]}}"#
    )
}

/// A chunk with text.
#[must_use]
pub fn chunk(text: &str) -> Bytes {
    Bytes::from(format!(
        "data: {{\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{{\"index\":0,\"delta\":{{\"role\":\"assistant\",\"content\":\"{text}\"}},\"finish_reason\":null}}]}}\n\n"
    ))
}

/// How a stream ends well.
#[must_use]
pub fn finish() -> Bytes {
    Bytes::from_static(
        b"data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":4,\"total_tokens\":13}}\n\ndata: [DONE]\n\n",
    )
}
