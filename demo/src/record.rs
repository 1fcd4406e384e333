//! Record of the last requests, which tests can read. Credentials are not kept.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use axum::http::HeaderMap;
use serde::{Deserialize, Serialize};

/// Request that was received, and how its answer ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    /// Number of the request, counted from 1 since the start of the server.
    pub number: u64,
    /// HTTP method of the request.
    pub method: String,
    /// Path of the request, with its query.
    pub path: String,
    /// Names and values of the headers, in the order received. Credentials are replaced by their
    /// length: `Bearer (12 characters)`.
    pub headers: Vec<(String, String)>,
    /// Size of the request body in bytes.
    pub bytes: usize,
    /// Request body; empty if it is longer than `recorded_bytes_max`.
    pub body: String,
    /// Status of the answer; 0 before the answer is sent.
    pub status: u16,
    /// State of the answer: how the answer ended, or `Ended::Open`.
    pub ended: Ended,
}

impl Recorded {
    /// Returns the value of a header, by its lower-case name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// State of an answer: how it ended, or still open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// State: the answer has not ended yet.
    Open,
    /// State: the whole answer was sent.
    Complete,
    /// State: the server cut the answer, as a trigger or script requested.
    Aborted,
    /// State: the client disconnected first.
    ClientGone,
}

/// Store of the last requests, oldest first.
#[derive(Debug)]
pub(crate) struct Record {
    requests_max: usize,
    recorded_bytes_max: usize,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    count: u64,
    requests: VecDeque<Recorded>,
}

impl Record {
    pub(crate) fn new(requests_max: usize, recorded_bytes_max: usize) -> Self {
        Self { requests_max, recorded_bytes_max, inner: Mutex::default() }
    }

    /// Stores a request and returns its number.
    pub(crate) fn add(&self, method: &str, path: &str, headers: &HeaderMap, body: &[u8]) -> u64 {
        let kept = if body.len() > self.recorded_bytes_max { &[][..] } else { body };
        let headers = headers
            .iter()
            .map(|(name, value)| {
                let value = String::from_utf8_lossy(value.as_bytes());
                (name.as_str().to_owned(), without_credential(name.as_str(), &value))
            })
            .collect();
        let mut inner = self.inner();
        inner.count = inner.count.saturating_add(1);
        let number = inner.count;
        inner.requests.push_back(Recorded {
            number,
            method: method.to_owned(),
            path: path.to_owned(),
            headers,
            bytes: body.len(),
            body: String::from_utf8_lossy(kept).into_owned(),
            status: 0,
            ended: Ended::Open,
        });
        if inner.requests.len() > self.requests_max {
            inner.requests.pop_front();
        }
        number
    }

    pub(crate) fn answered(&self, number: u64, status: u16) {
        self.change(number, |recorded| recorded.status = status);
    }

    pub(crate) fn ended(&self, number: u64, ended: Ended) {
        self.change(number, |recorded| recorded.ended = ended);
    }

    pub(crate) fn all(&self) -> Vec<Recorded> {
        self.inner().requests.iter().cloned().collect()
    }

    pub(crate) fn clear(&self) {
        self.inner().requests.clear();
    }

    fn change(&self, number: u64, change: impl FnOnce(&mut Recorded)) {
        let mut inner = self.inner();
        inner.requests.iter_mut().rev().find(|recorded| recorded.number == number).map(change);
    }

    fn inner(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn without_credential(name: &str, value: &str) -> String {
    if !matches!(name, "authorization" | "x-api-key" | "api-key" | "cookie") {
        return value.to_owned();
    }
    match value.split_once(' ') {
        Some((scheme, key)) => format!("{scheme} ({} characters)", key.chars().count()),
        None => format!("({} characters)", value.chars().count()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_is_not_kept() {
        assert_eq!(without_credential("authorization", "Bearer sk-1234"), "Bearer (7 characters)");
        assert_eq!(without_credential("x-api-key", "sk-1234"), "(7 characters)");
        assert_eq!(without_credential("accept", "a b"), "a b");
    }

    #[test]
    fn only_the_last_requests_are_kept_and_large_bodies_only_counted() {
        let record = Record::new(2, 3);
        for body in ["1", "22", "4444"] {
            record.add("POST", "/", &HeaderMap::new(), body.as_bytes());
        }
        let all = record.all();
        assert_eq!(all.iter().map(|r| r.number).collect::<Vec<_>>(), [2, 3]);
        assert_eq!((all[1].bytes, all[1].body.as_str()), (4, ""));
    }
}
