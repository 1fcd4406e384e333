//! Raw answers: the exact bytes to send, piece by piece, and how the answer ends. Generated answers
//! use the same type, so that one sender serves both.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

/// Answer to a request, byte for byte.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Answer {
    /// Path of the requests that get this answer. If empty: every path that ends in
    /// `/chat/completions` or `/responses`.
    pub path: String,
    /// Text that a request's body must contain to get this answer; empty matches any request. Tests
    /// that share a server put a unique text into their prompts.
    pub when: String,
    /// Triggers of `docs/quick-start.md`. If set, the answer is generated as if the user had
    /// written these words, and the fields below are ignored.
    pub words: String,
    /// Delay before the head of the answer, in milliseconds.
    pub delay_ms: u64,
    /// HTTP status of the answer.
    pub status: u16,
    /// Headers of the answer, in order. No `content-type` is added if the list lacks one.
    pub headers: Vec<(String, String)>,
    /// Body of the answer, in the pieces in which it is sent.
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
    /// Returns an answer with a complete JSON body.
    pub fn json(status: u16, body: impl Into<String>) -> Self {
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        Self { status, headers, pieces: vec![Piece::text(body)], ..Self::default() }
    }

    /// Returns an answer with an event stream in these pieces.
    pub fn stream<P: Into<String>>(pieces: impl IntoIterator<Item = P>) -> Self {
        let content_type = "text/event-stream; charset=utf-8";
        Self {
            headers: vec![("content-type".to_owned(), content_type.to_owned())],
            pieces: pieces.into_iter().map(Piece::text).collect(),
            ..Self::default()
        }
    }

    /// Returns an answer that is generated as if the user had written these words.
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

/// Bytes of a body that are sent together, after a delay.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Piece {
    /// Delay before the piece, in milliseconds. With 0 the kernel may join the piece to the one
    /// before.
    pub delay_ms: u64,
    /// Bytes of the piece, as text.
    pub data: String,
    /// Bytes of the piece in base64, for data that is not text; sent after `data`.
    pub base64: String,
}

impl Piece {
    /// Returns a piece of a body with this text, without a delay.
    pub fn text(data: impl Into<String>) -> Self {
        Self { data: data.into(), ..Self::default() }
    }

    /// Returns a piece of a body with these bytes, without a delay.
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

/// End of an answer: complete, cut or silent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// End: complete, as HTTP requires.
    #[default]
    Complete,
    /// End: the connection (HTTP/2: the stream) is cut.
    Abort,
    /// End: sending stops, and the connection stays open.
    Hang,
}

/// Queue of scripted answers that wait for matching requests.
#[derive(Debug, Default)]
pub(crate) struct Script(Mutex<VecDeque<Answer>>);

impl Script {
    pub(crate) fn add(&self, answers: impl IntoIterator<Item = Answer>) {
        self.queue().extend(answers);
    }

    /// Parses one answer or a list of answers from JSON.
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

    /// Returns the first answer that matches the request, and counts its use.
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
