//! JSON-RPC message in the answer of an MCP server. The answer is JSON, or a stream of events with
//! messages of which one is the response.

use std::fmt;

use crate::json::{self, Reader, Str};
use crate::sse::Decoder;
use crate::text::words;

/// Maximum number of bytes of an error message that are kept.
const MESSAGE_BYTES_MAX: usize = 2000;

/// Maximum number of versions in an error that are looked at.
const VERSIONS_MAX: usize = 32;

/// Response of an MCP server to a request.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Rpc {
    /// Member `result` of the response, as JSON text.
    Result(String),
    Error(RpcError),
}

/// Error of a JSON-RPC response.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct RpcError {
    pub(crate) code: i64,
    pub(crate) message: String,
    /// Versions of the protocol that the server supports, if the error names them.
    pub(crate) supported: Vec<String>,
}

// Results and messages of errors can have data of users.
impl fmt::Debug for Rpc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Result(_) => "Result",
            Self::Error(_) => "Error",
        })
    }
}

impl fmt::Debug for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RpcError({})", self.code)
    }
}

/// Returns the response to the request with this `id` in the body of an answer; `None` if the body
/// has none. Notifications, requests of the server and responses to other requests are skipped.
pub(super) fn response(content_type: Option<&str>, body: &[u8], id: u64) -> Option<Rpc> {
    let is_stream =
        content_type.is_some_and(|of| words::begins(of.trim_start(), "text/event-stream"));
    if is_stream {
        return response_in_stream(body, id);
    }
    let text = words::lossy(body);
    let text = words::bare(&text);
    if !Reader::of(text).is_whole() {
        return None;
    }
    let messages = || json::elements(text).chain((!text.starts_with('[')).then_some(text));
    let found = messages().find_map(|message| response_of(message, id));
    // A server that could not read the request answers without its id.
    found.or_else(|| messages().find_map(error_without_id))
}

fn response_in_stream(body: &[u8], id: u64) -> Option<Rpc> {
    let mut decoder = Decoder::new(body.len());
    let mut rest = body;
    while let Some(event) = decoder.next(&mut rest).ok()? {
        if let Some(found) = response_of(&event.data, id) {
            return Some(found);
        }
    }
    response_of(&decoder.finish()?.data, id)
}

/// Members of a JSON-RPC message that tell what the message is.
#[derive(Default)]
struct Members<'m> {
    id: Option<&'m str>,
    result: Option<&'m str>,
    error: Option<&'m str>,
    is_request: bool,
}

impl<'m> Members<'m> {
    fn read(message: &'m str) -> Self {
        let mut read = Self::default();
        for (key, value) in json::members(message) {
            match key.decode().as_ref() {
                "id" => read.id = Some(value).filter(|id| *id != "null"),
                "result" => read.result = Some(value),
                "error" => read.error = Some(value).filter(|error| error.starts_with('{')),
                "method" => read.is_request = true,
                _ => {}
            }
        }
        read
    }

    fn is_response(&self) -> bool {
        !self.is_request && (self.result.is_some() || self.error.is_some())
    }

    fn is_of(&self, id: u64) -> bool {
        self.is_response() && self.id.is_some_and(|own| own.parse() == Ok(id))
    }
}

fn response_of(message: &str, id: u64) -> Option<Rpc> {
    let members = Members::read(message);
    if !members.is_of(id) || !Reader::of(message).is_object() {
        return None;
    }
    match members.error {
        Some(error) => Some(Rpc::Error(RpcError::read(error))),
        None => members.result.map(|result| Rpc::Result(result.to_owned())),
    }
}

/// Returns the error in a message that is no response to any request with a number.
fn error_without_id(message: &str) -> Option<Rpc> {
    let members = Members::read(message);
    let is_ours = members.id.is_none_or(|id| id.starts_with('"')) && !members.is_request;
    let error = members.error.filter(|_| is_ours)?;
    Some(Rpc::Error(RpcError::read(error)))
}

impl RpcError {
    fn read(error: &str) -> Self {
        let code = json::member(error, "code").and_then(|code| code.parse().ok());
        let message = json::member(error, "message").and_then(json::string);
        let message = message.as_ref().map(Str::decode).unwrap_or_default();
        let data = json::member(error, "data").unwrap_or_default();
        let supported = json::elements(json::member(data, "supported").unwrap_or_default());
        let supported = supported.take(VERSIONS_MAX).filter_map(json::string);
        Self {
            code: code.unwrap_or_default(),
            message: words::beginning(&message, MESSAGE_BYTES_MAX).to_owned(),
            supported: supported.map(|version| version.decode().into_owned()).collect(),
        }
    }
}

/// Detector of the response in an event stream, after which the server may leave the stream open.
#[derive(Debug)]
pub(crate) struct RpcEnd {
    decoder: Decoder,
    id: u64,
}

impl RpcEnd {
    /// Creates the detector of the response to the request with this `id`.
    pub(crate) fn new(id: u64, bytes_max: usize) -> Self {
        Self { decoder: Decoder::new(bytes_max), id }
    }

    /// Reads a piece of the stream, and returns true if the piece ends the response.
    pub(crate) fn has_come(&mut self, piece: &[u8]) -> bool {
        let mut rest = piece;
        while let Ok(Some(event)) = self.decoder.next(&mut rest) {
            if Members::read(&event.data).is_of(self.id) {
                return true;
            }
        }
        false
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.decoder.held_bytes()
    }
}
