//! Parts that the tests of several hosts share: a scripted upstream, complete responses, and sample
//! bodies.
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

pub mod body;
mod got;
mod images;
mod judge;
pub mod load;
mod upstream;
mod vision;

use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::json;

pub use got::{Got, read, read_until};
pub use images::{MISSING_IMAGES, PICTURE, PICTURE_URL, SIGNATURE, image_messages, images_config};
pub use judge::{JUDGE, Judge, LONG, LONG_BYTES, failing_judges, judged, judged_messages};
pub use upstream::{Out, Received, Upstream, nobody};
pub use vision::{Eyes, PNG, failing_vision, seen_messages, vision};

/// Timeout longer than any step takes, even on a busy machine; a test that waits this long has
/// failed.
const PATIENCE: Duration = Duration::from_secs(30);

pub const EVENT_STREAM: &str = "text/event-stream";

/// Body of a complete Chat Completions answer.
pub const COMPLETION: &str = r#"{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hi there"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13}}"#;

/// Last events of a stream that ends normally.
pub const FINISH: &str = "data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":4,\"total_tokens\":13}}\n\ndata: [DONE]\n\n";

/// Waits for `future`, and panics after a timeout.
pub async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited too long: {what}"),
    }
}

/// Waits until `condition` holds, and panics after a timeout.
pub async fn until(what: &str, condition: impl Fn() -> bool) {
    let since = Instant::now();
    while !condition() {
        assert!(since.elapsed() < PATIENCE, "waited too long: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Returns a request of the Messages API.
#[must_use]
pub fn messages(stream: bool) -> String {
    format!(
        r#"{{"model":"claude-x","max_tokens":100,"stream":{stream},"messages":[{{"role":"user","content":"Hello"}}]}}"#
    )
}

/// Returns a chunk of a stream with this text.
#[must_use]
pub fn chunk(text: &str) -> Bytes {
    let delta = json!({"role": "assistant", "content": text});
    let choice = json!({"index": 0, "delta": delta, "finish_reason": null});
    let chunk = json!({
        "id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m",
        "choices": [choice]
    });
    Bytes::from(format!("data: {chunk}\n\n"))
}

/// Returns [`FINISH`] as bytes.
#[must_use]
pub fn finish() -> Bytes {
    Bytes::from_static(FINISH.as_bytes())
}

#[cfg(test)]
mod tests {
    use http_body_util::Empty;
    use hyper::Request;
    use hyper_util::rt::TokioIo;
    use tokio::net::TcpStream;

    use super::*;

    /// Tests the counts on which the hosts' tests of leaks and of clients that leave depend.
    #[tokio::test]
    async fn a_body_is_open_until_it_has_ended() {
        let (upstream, mut outs) = Upstream::written().await;
        let stream = TcpStream::connect(upstream.address).await.unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let request = Request::post("/v1/chat/completions").body(Empty::<Bytes>::new()).unwrap();
        let mut response = soon("the head", sender.send_request(request)).await.unwrap();
        let mut out = outs.recv().await.unwrap();
        assert!(!upstream.is_idle());
        out.send_data(chunk("One")).await.unwrap();
        let mut seen = String::new();
        read_until(&mut response, &mut seen, "One").await;
        drop(out);
        assert!(read(response).await.complete);
        until("the end", || upstream.is_idle()).await;
        assert_eq!(upstream.last().path, "/v1/chat/completions");
    }
}
