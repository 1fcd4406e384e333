//! Test suite that is the same for all hosts. Each trial sends a request, gives the upstream a
//! scripted response in given chunks, and compares the bytes that the client gets.
//!
//! ```text
//!             ┌ core       the exchange itself, in this process: what all others are compared with
//!             │ emulator   the Envoy filter's .wasm under wasmtime, behind Envoy's rules as we know them
//!   Trial ───▶│ component  the component under wasmtime
//!             │ envoy      the same .wasm in a real Envoy  ─┐
//!             │ gateway    the binary                       ├─ real sockets, the scripted [`upstream`]
//!             └ worker     the Worker in workerd           ─┘
//! ```
//!
//! A new host is one file with one implementation of [`Host`] and one row in [`hosts::all`]. The
//! table in `docs/dev/hosts.md` lists the permitted differences between hosts, and
//! `tests/differences.rs` asserts them.
//!
//! Binaries come from `cargo xtask test`, which names them in environment variables. A variable
//! that is missing is a failure, because a host that is skipped looks tested.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "tests"
)]

pub mod cases;
pub mod client;
pub mod component;
pub mod core;
pub mod emulator;
pub mod hosts;
pub mod ordinals;
pub mod process;
pub mod scripted;
pub mod seam;
pub mod suite;
pub mod upstream;
pub mod worker;

#[path = "../../../tests/support/mod.rs"]
pub mod support;

use std::time::Duration;

use bytes::Bytes;

/// Header: name in lower case, and value.
pub type Header = (String, String);

/// Test of one request, with the upstream's scripted response.
#[derive(Clone, Debug)]
pub struct Trial {
    /// First segment of the path at the upstream (`base_path` is `/KEY/v1`), which identifies the
    /// scripted response and the recorded requests. Trials that run at the same time have different
    /// keys.
    pub key: String,
    /// Request of the client.
    pub request: Request,
    /// Scripted response of the upstream.
    pub answer: Answer,
}

/// Request of the client, with the way in which it is sent.
#[derive(Clone, Debug)]
pub struct Request {
    /// HTTP method of the request.
    pub method: String,
    /// Path of the request, with its query.
    pub path: String,
    /// Headers of the request, without `host` and `content-length`.
    pub headers: Vec<Header>,
    /// Body of the request.
    pub body: Bytes,
    /// Size of the chunks in which the body is sent, without a `content-length`; 0: whole.
    pub piece_bytes: usize,
    /// Trailers after a body that is sent in chunks.
    pub trailers: Vec<Header>,
    /// True for HTTP/2 with prior knowledge.
    pub http2: bool,
    /// Number of bytes of the response's body after which the client disconnects; 0: before the
    /// head. `None`: the client stays.
    pub leave_after: Option<usize>,
}

impl Request {
    /// Returns a `POST /v1/messages` with the headers of an SDK.
    pub fn messages(body: impl Into<Bytes>) -> Self {
        let headers = [
            ("content-type", "application/json"),
            ("anthropic-version", "2023-06-01"),
            ("x-api-key", "sk-test"),
        ];
        Self {
            method: "POST".to_owned(),
            path: "/v1/messages".to_owned(),
            headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
            body: body.into(),
            piece_bytes: 0,
            trailers: Vec::new(),
            http2: false,
            leave_after: None,
        }
    }

    /// Returns a request without a body.
    pub fn plain(method: &str, path: &str) -> Self {
        let mut request = Self::messages("");
        method.clone_into(&mut request.method);
        path.clone_into(&mut request.path);
        request.headers.retain(|(name, _)| name != "content-type");
        request
    }
}

/// End of a response, as an upstream makes it or a client sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// End: complete, according to HTTP.
    Complete,
    /// End: the connection (HTTP/2: the stream) breaks.
    Aborted,
    /// End: silence on an open connection.
    Silent,
}

/// Scripted answer of the upstream.
#[derive(Clone, Debug)]
pub struct Answer {
    /// HTTP status of the response.
    pub status: u16,
    /// Headers of the response, sent unchanged.
    pub headers: Vec<Header>,
    /// Body of the response, in the chunks in which it is sent.
    pub pieces: Vec<Bytes>,
    /// Pause before each chunk of the body. Without a pause, chunks may arrive together.
    pub pause: Duration,
    /// Delay before the head of the response.
    pub delay: Duration,
    /// Trailers of the response, which only HTTP/2 carries.
    pub trailers: Vec<Header>,
    /// End of the response after the last byte.
    pub end: End,
}

impl Answer {
    /// Returns a response with a body in one chunk.
    pub fn whole(status: u16, content_type: &str, body: impl Into<Bytes>) -> Self {
        Self {
            status,
            headers: vec![("content-type".to_owned(), content_type.to_owned())],
            pieces: vec![body.into()],
            pause: Duration::ZERO,
            delay: Duration::ZERO,
            trailers: Vec::new(),
            end: End::Complete,
        }
    }

    /// Returns a response with a JSON body.
    pub fn json(body: impl Into<Bytes>) -> Self {
        Self::whole(200, "application/json", body)
    }

    /// Returns a response with an event stream in these chunks.
    pub fn events<P: Into<Bytes>>(pieces: impl IntoIterator<Item = P>) -> Self {
        let pieces = pieces.into_iter().map(Into::into).collect();
        Self { pieces, ..Self::whole(200, "text/event-stream", "") }
    }

    /// Splits the response's body into chunks of this size.
    #[must_use]
    pub fn cut(mut self, bytes: usize) -> Self {
        let body = Bytes::from(self.pieces.concat());
        let starts = (0..body.len()).step_by(bytes.max(1));
        self.pieces = starts.map(|at| body.slice(at..body.len().min(at + bytes.max(1)))).collect();
        self
    }
}

/// Request that the upstream received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// HTTP method of the request.
    pub method: String,
    /// Path of the request, with its query.
    pub path: String,
    /// Headers of the request.
    pub headers: Vec<Header>,
    /// Body of the request; empty if it is longer than [`upstream::KEPT_BYTES_MAX`].
    pub body: Bytes,
    /// Length of the request's body in bytes.
    pub bytes: usize,
}

/// Response that the client got.
#[derive(Clone, Debug)]
pub struct Got {
    /// HTTP status of the response; 0 if the connection broke, or was silent, before the head.
    pub status: u16,
    /// Headers of the response.
    pub headers: Vec<Header>,
    /// Body of the response.
    pub body: Vec<u8>,
    /// End of the response.
    pub end: End,
    /// Requests that reached the upstream, in order.
    pub upstream: Vec<Seen>,
}

impl Got {
    /// Creates the result of a client that got no response at all.
    pub fn nothing(end: End) -> Self {
        Self { status: 0, headers: Vec::new(), body: Vec::new(), end, upstream: Vec::new() }
    }

    /// Returns the value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        value(&self.headers, name)
    }

    /// Returns the response's body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns the response's body as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Checks that the response is an error of the Messages API: status, `error.type`, and a part
    /// of `error.message`.
    pub fn assert_error(&self, status: u16, kind: &str, message: &str) {
        assert_eq!(self.status, status, "{}", self.text());
        let body = self.json();
        assert_eq!(body["type"], "error", "{body}");
        assert_eq!(body["error"]["type"], kind, "{body}");
        let text = body["error"]["message"].as_str().unwrap_or_default();
        assert!(text.contains(message), "expected {message:?} in {body}");
        // Users report the id from the body or from the header.
        assert_eq!(body["request_id"].as_str(), self.header("request-id"), "{body}");
    }
}

/// Returns the value of a header in a list.
pub fn value<'a>(headers: &'a [Header], name: &str) -> Option<&'a str> {
    headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// Program or server in which the translation of requests and answers is tested.
pub trait Host: Sync {
    /// Returns the host's name in tables.
    fn name(&self) -> &'static str;

    /// Sends the request of `trial`, lets the upstream respond, and returns the response that the
    /// client got.
    fn send(&self, trial: &Trial) -> Got;
}
