//! Suite that is the same for all hosts: "send this request, the upstream answers these bytes in
//! these pieces, give me the client's bytes".
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
//! A new host is one file with one implementation of [`Host`] and one row in [`hosts::all`]. What
//! hosts may do differently is the table in `docs/dev/hosts.md`, and `tests/differences.rs` asserts
//! it.
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
pub mod seam;
pub mod suite;
pub mod upstream;
pub mod worker;

#[path = "../../../tests/support/mod.rs"]
pub mod support;

use std::time::Duration;

use bytes::Bytes;

/// Name in lower case, and value.
pub type Header = (String, String);

/// Test of one request, with the answer of the upstream to it.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The first segment of the path at the upstream (`base_path` is `/KEY/v1`): finds the answer,
    /// and what the upstream saw. Trials that run at once have different keys.
    pub key: String,
    /// The client's request.
    pub request: Request,
    /// The upstream's answer.
    pub answer: Answer,
}

/// A client's request.
#[derive(Clone, Debug)]
pub struct Request {
    /// The method.
    pub method: String,
    /// The path, with its query.
    pub path: String,
    /// Headers, without `host` and `content-length`.
    pub headers: Vec<Header>,
    /// The body.
    pub body: Bytes,
    /// Send the body in pieces of this size, without a `content-length`; 0: whole.
    pub piece_bytes: usize,
    /// Trailers after the body (in pieces).
    pub trailers: Vec<Header>,
    /// HTTP/2 with prior knowledge.
    pub http2: bool,
    /// Go away after so many bytes of the answer's body, or before its head if 0.
    pub leave_after: Option<usize>,
}

impl Request {
    /// `POST /v1/messages` of an SDK.
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

    /// A request without a body.
    pub fn plain(method: &str, path: &str) -> Self {
        let mut request = Self::messages("");
        method.clone_into(&mut request.method);
        path.clone_into(&mut request.path);
        request.headers.retain(|(name, _)| name != "content-type");
        request
    }
}

/// End of an answer, as an upstream makes it or a client sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// End that HTTP calls complete.
    Complete,
    /// The connection (HTTP/2: the stream) breaks.
    Aborted,
    /// Silence on an open connection: nothing more comes.
    Silent,
}

/// Scripted answer of the upstream.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The headers, as they are.
    pub headers: Vec<Header>,
    /// The body as it is cut.
    pub pieces: Vec<Bytes>,
    /// The wait before each piece. Without one, pieces may arrive together.
    pub pause: Duration,
    /// The wait before the head.
    pub delay: Duration,
    /// Trailers, which only HTTP/2 carries.
    pub trailers: Vec<Header>,
    /// End that follows the last byte.
    pub end: End,
}

impl Answer {
    /// A whole body.
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

    /// A JSON body.
    pub fn json(body: impl Into<Bytes>) -> Self {
        Self::whole(200, "application/json", body)
    }

    /// Events in these pieces.
    pub fn events<P: Into<Bytes>>(pieces: impl IntoIterator<Item = P>) -> Self {
        let pieces = pieces.into_iter().map(Into::into).collect();
        Self { pieces, ..Self::whole(200, "text/event-stream", "") }
    }

    /// Cuts the body into pieces of this size.
    #[must_use]
    pub fn cut(mut self, bytes: usize) -> Self {
        let body = Bytes::from(self.pieces.concat());
        let starts = (0..body.len()).step_by(bytes.max(1));
        self.pieces = starts.map(|at| body.slice(at..body.len().min(at + bytes.max(1)))).collect();
        self
    }
}

/// Request that reached the upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The method.
    pub method: String,
    /// The path, with its query.
    pub path: String,
    /// Headers.
    pub headers: Vec<Header>,
    /// The body; empty where it is longer than [`upstream::KEPT_BYTES_MAX`].
    pub body: Bytes,
    /// The body's length.
    pub bytes: usize,
}

/// Answer that the client got.
#[derive(Clone, Debug)]
pub struct Got {
    /// The status; 0 if the connection broke, or nothing came, before the head.
    pub status: u16,
    /// Headers.
    pub headers: Vec<Header>,
    /// The body.
    pub body: Vec<u8>,
    /// End of the answer.
    pub end: End,
    /// Requests that reached the upstream, in order.
    pub upstream: Vec<Seen>,
}

impl Got {
    /// Creates the result of a client that got nothing at all.
    pub fn nothing(end: End) -> Self {
        Self { status: 0, headers: Vec::new(), body: Vec::new(), end, upstream: Vec::new() }
    }

    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        value(&self.headers, name)
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Checks that this is an error of the Messages API: status, `error.type`, and a part of
    /// `error.message`.
    pub fn assert_error(&self, status: u16, kind: &str, message: &str) {
        assert_eq!(self.status, status, "{}", self.text());
        let body = self.json();
        assert_eq!(body["type"], "error", "{body}");
        assert_eq!(body["error"]["type"], kind, "{body}");
        let text = body["error"]["message"].as_str().unwrap_or_default();
        assert!(text.contains(message), "expected {message:?} in {body}");
        // Who writes to support has one of the two.
        assert_eq!(body["request_id"].as_str(), self.header("request-id"), "{body}");
    }
}

/// The value of a header.
pub fn value<'a>(headers: &'a [Header], name: &str) -> Option<&'a str> {
    headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// Program or server in which the translation of requests and answers is tested.
pub trait Host: Sync {
    /// Returns the host's name in tables.
    fn name(&self) -> &'static str;

    /// Sends the request of `trial`, lets the upstream answer, and gives what the client got.
    fn send(&self, trial: &Trial) -> Got;
}
