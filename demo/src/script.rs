//! Raw answers: what is sent, piece by piece, and how it ends. A generated answer takes this form
//! too, so that one sender serves both.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

/// Answer to a request, byte for byte.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Answer {
    /// The path that it answers; empty: every path that ends in `/chat/completions` or
    /// `/responses`.
    pub path: String,
    /// Only a request whose body contains this text gets the answer; empty: any request. Tests that
    /// share one server put a word of their own into the prompt.
    pub when: String,
    /// Words of `docs/quick-start.md`: the answer is made from the request as if its user had just
    /// said them, in the form that the request asks for. Nothing below counts then.
    pub words: String,
    /// Time that the head waits, in milliseconds.
    pub delay_ms: u64,
    /// The status.
    pub status: u16,
    /// The headers, in order. Without a `content-type` none is sent.
    pub headers: Vec<(String, String)>,
    /// The body as it is cut.
    pub pieces: Vec<Piece>,
    /// End of the answer, after the last piece.
    pub end: End,
    /// Number of requests that get this answer; 0: every request from now on.
    pub times: u32,
}

impl Default for Answer {
    fn default() -> Self {
        Self {
            path: String::new(),
            when: String::new(),
            words: String::new(),
            delay_ms: 0,
            status: 200,
            headers: Vec::new(),
            pieces: Vec::new(),
            end: End::Complete,
            times: 1,
        }
    }
}

impl Answer {
    /// A whole JSON body.
    pub fn json(status: u16, body: impl Into<String>) -> Self {
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        Self { status, headers, pieces: vec![Piece::text(body)], ..Self::default() }
    }

    /// An event stream in these pieces.
    pub fn stream<P: Into<String>>(pieces: impl IntoIterator<Item = P>) -> Self {
        let content_type = "text/event-stream; charset=utf-8";
        Self {
            headers: vec![("content-type".to_owned(), content_type.to_owned())],
            pieces: pieces.into_iter().map(Piece::text).collect(),
            ..Self::default()
        }
    }

    /// An answer that is made from the request by these words.
    pub fn words(words: impl Into<String>) -> Self {
        Self { words: words.into(), ..Self::default() }
    }

    fn answers(&self, path: &str, body: &[u8]) -> bool {
        let path_fits = match self.path.as_str() {
            "" => path.ends_with("/chat/completions") || path.ends_with("/responses"),
            wanted => path == wanted,
        };
        let when = self.when.as_bytes();
        path_fits && (when.is_empty() || body.windows(when.len()).any(|window| window == when))
    }
}

/// Bytes that are sent together, after a wait.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Piece {
    /// Time to wait before the piece, in milliseconds. With 0 the kernel may join it to the piece
    /// before.
    pub delay_ms: u64,
    /// The bytes, as text.
    pub data: String,
    /// The bytes in base64, for what is not text; sent after `data`.
    pub base64: String,
}

impl Piece {
    /// Text without a wait.
    pub fn text(data: impl Into<String>) -> Self {
        Self { data: data.into(), ..Self::default() }
    }

    /// Any bytes, without a wait.
    #[must_use]
    pub fn bytes(bytes: &[u8]) -> Self {
        Self { base64: STANDARD.encode(bytes), ..Self::default() }
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        let mut bytes = self.data.into_bytes();
        // A script with bad base64 was refused when it came (`Script::read`).
        bytes.extend(STANDARD.decode(self.base64).unwrap_or_default());
        bytes
    }
}

/// End of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The answer ends as HTTP wants it.
    #[default]
    Complete,
    /// The connection (HTTP/2: the stream) is cut.
    Abort,
    /// Sending stops, and the connection stays open.
    Hang,
}

/// The answers that wait for their requests.
#[derive(Debug, Default)]
pub(crate) struct Script(Mutex<VecDeque<Answer>>);

impl Script {
    pub(crate) fn add(&self, answers: impl IntoIterator<Item = Answer>) {
        self.queue().extend(answers);
    }

    /// Reads one answer or a list of them.
    pub(crate) fn read(body: &[u8]) -> Result<Vec<Answer>, String> {
        let list = body.trim_ascii_start().starts_with(b"[");
        let read = if list {
            serde_json::from_slice(body)
        } else {
            serde_json::from_slice(body).map(|answer| vec![answer])
        };
        let answers: Vec<Answer> = read.map_err(|error| format!("script: {error}"))?;
        for piece in answers.iter().flat_map(|answer| &answer.pieces) {
            STANDARD.decode(&piece.base64).map_err(|error| format!("script: base64: {error}"))?;
        }
        Ok(answers)
    }

    /// The first answer that fits, which is used up.
    pub(crate) fn take(&self, path: &str, body: &[u8]) -> Option<Answer> {
        let mut queue = self.queue();
        let at = queue.iter().position(|answer| answer.answers(path, body))?;
        let waiting = queue.get_mut(at)?;
        match waiting.times {
            0 => Some(waiting.clone()),
            1 => queue.remove(at),
            more => {
                waiting.times = more.saturating_sub(1);
                Some(waiting.clone())
            }
        }
    }

    pub(crate) fn clear(&self) {
        self.queue().clear();
    }

    fn queue(&self) -> std::sync::MutexGuard<'_, VecDeque<Answer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_goes_to_the_request_that_it_names_and_is_used_up() {
        let script = Script::default();
        let read = Script::read(br#"[{"when": "one", "status": 201}, {"path": "/v1/models"}]"#);
        script.add(read.unwrap());
        assert_eq!(script.take("/v1/chat/completions", b"two"), None);
        assert_eq!(script.take("/v1/chat/completions", b"say one").map(|a| a.status), Some(201));
        assert_eq!(script.take("/v1/chat/completions", b"say one"), None);
        assert!(script.take("/v1/models", b"").is_some());
    }

    #[test]
    fn an_answer_for_every_request_stays() {
        let script = Script::default();
        script.add([Answer { times: 0, ..Answer::json(500, "{}") }]);
        assert!(script.take("/v1/chat/completions", b"").is_some());
        assert!(script.take("/v1/chat/completions", b"").is_some());
    }

    #[test]
    fn a_misspelt_key_or_bad_base64_is_refused() {
        assert!(Script::read(br#"{"peices": []}"#).unwrap_err().contains("peices"));
        assert!(Script::read(br#"{"pieces": [{"base64": "!"}]}"#).unwrap_err().contains("base64"));
    }

    #[test]
    fn bytes_that_are_not_text_arrive_as_they_are() {
        assert_eq!(Piece::bytes(b"\xff\x00").into_bytes(), b"\xff\x00");
    }
}
