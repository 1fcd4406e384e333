//! Complete responses, and functions that read them.

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::{HeaderMap, Response, StatusCode};
use serde_json::Value;

use crate::soon;

/// Response with its complete body.
#[derive(Debug)]
pub struct Got {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: String,
    /// True if the body ended as HTTP requires.
    pub complete: bool,
}

impl Got {
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {:?}", self.body))
    }

    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Checks that the response is an error of the Messages API.
    #[track_caller]
    pub fn assert_error(&self, status: u16, kind: &str, message: &str) {
        assert_eq!(self.status.as_u16(), status, "{self:?}");
        let json = self.json();
        assert_eq!(json["type"], "error", "{self:?}");
        assert_eq!(json["error"]["type"], kind, "{self:?}");
        let text = json["error"]["message"].as_str().unwrap();
        assert!(text.contains(message), "{self:?}");
        assert_eq!(json["request_id"], self.header("request-id"), "{self:?}");
    }
}

/// Reads a response to its end.
pub async fn read(response: Response<Incoming>) -> Got {
    let (head, mut body) = response.into_parts();
    let mut bytes = Vec::new();
    let complete = loop {
        match soon("the body", body.frame()).await {
            Some(Ok(frame)) => bytes.extend_from_slice(frame.data_ref().unwrap_or(&Bytes::new())),
            Some(Err(_)) => break false,
            None => break true,
        }
    };
    let body = String::from_utf8(bytes).unwrap();
    Got { status: head.status, headers: head.headers, body, complete }
}

/// Reads the body until `text` has arrived.
pub async fn read_until(response: &mut Response<Incoming>, seen: &mut String, text: &str) {
    while !seen.contains(text) {
        let frame = soon(text, response.body_mut().frame()).await;
        let frame = frame.unwrap_or_else(|| panic!("ended before {text:?}: {seen}")).unwrap();
        seen.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
    }
}
