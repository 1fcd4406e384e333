//! Upstream whose model accepts images only as data, together with a server for the images.

use std::time::Duration;

use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use serde_json::json;

use crate::{COMPLETION, Out, Upstream};

/// Bytes of the test image.
pub const PICTURE: &[u8] = b"\x89PNG\r\n\x1a\n01234567";

/// Test image as a data URL, as the model server gets it.
pub const PICTURE_URL: &str = "data:image/png;base64,iVBORw0KGgowMTIzNDU2Nw==";

/// Signature in an image URL, which no log may contain.
pub const SIGNATURE: &str = "s1gn4ture";

/// Paths of images that cannot be fetched, each with the reason that the client is told.
pub const MISSING_IMAGES: [(&str, &str); 6] = [
    ("/gone.png", "its server answered with status 404"),
    ("/page.png", "it is no JPEG, PNG, GIF or WebP"),
    ("/endless.png", "it has more than 4096 bytes"),
    ("/silent.png", "it did not come in time"),
    ("/away.png", "its server sends readers elsewhere"),
    ("/round.png", "its server sends readers elsewhere"),
];

/// Returns the configuration in which images may be fetched from this upstream.
#[must_use]
pub fn images_config(upstream: &Upstream) -> String {
    json!({
        "upstreams": {"main": {"url": upstream.url(), "profile_overrides": {"image_parts": "data"}}},
        "fetch_images": {"hosts": [upstream.image("")], "bytes_max": 4096, "timeout_ms": 1500},
    })
    .to_string()
}

/// Returns a request of the Messages API with the images at these URLs. If `is_old` is true, the
/// assistant has already answered the message with the images.
#[must_use]
pub fn image_messages(urls: &[String], is_old: bool) -> String {
    let mut content: Vec<_> = urls
        .iter()
        .map(|url| json!({"type": "image", "source": {"type": "url", "url": url}}))
        .collect();
    content.push(json!({"type": "text", "text": "what?"}));
    let mut messages = vec![json!({"role": "user", "content": content})];
    if is_old {
        messages.push(json!({"role": "assistant", "content": "A picture."}));
        messages.push(json!({"role": "user", "content": "more"}));
    }
    json!({"model": "claude-x", "max_tokens": 100, "messages": messages}).to_string()
}

impl Upstream {
    /// Returns the URL of an image.
    #[must_use]
    pub fn image(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Starts an upstream that also serves the images of this file.
    pub async fn with_images() -> Self {
        Self::start_with_headers(|asked, out| {
            let path = asked.path.split('?').next().unwrap().to_owned();
            let location = match path.as_str() {
                "/moved.png" => Some("/image.png"),
                "/round.png" => Some("/round.png"),
                "/away.png" => Some("http://169.254.169.254/latest"),
                _ => None,
            };
            let status = match path.as_str() {
                "/gone.png" => 404,
                _ if location.is_some() => 302,
                _ => 200,
            };
            let content_type =
                if asked.method == "POST" { "application/json" } else { "image/png" };
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
            if let Some(location) = location {
                headers.insert(LOCATION, HeaderValue::from_static(location));
            }
            tokio::spawn(send(path, out));
            (status, headers)
        })
        .await
    }
}

async fn send(path: String, mut out: Out) {
    let whole: &[u8] = match path.as_str() {
        "/v1/chat/completions" => COMPLETION.as_bytes(),
        "/image.png" => {
            let (one, two) = PICTURE.split_at(5);
            if out.send_data(Bytes::from_static(one)).await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
            two
        }
        "/endless.png" => {
            while out.send_data(Bytes::from_static(&[0; 1000])).await.is_ok() {}
            return;
        }
        // Empty data is sent until the reader is gone.
        "/silent.png" => {
            let _ = out.send_data(Bytes::from_static(PICTURE)).await;
            while out.send_data(Bytes::new()).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            return;
        }
        _ => b"<html>",
    };
    let _ = out.send_data(Bytes::from_static(whole)).await;
}
