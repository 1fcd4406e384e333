//! What is measured, natively and in WebAssembly: translations of generated bodies, and for each
//! its floor, which is reading the same bytes with `serde_json::de::IgnoredAny` and copying them
//! once.

use std::hint::black_box;
use std::sync::Arc;

use creole::{CallId, Config, End, Exchange, HostCan, RequestHead};
use serde::de::IgnoredAny;
use serde_json::Value;

use super::bodies::{self, Says};

/// Id of an exchange's first call.
const CALL: CallId = CallId(1);

/// A measured translation and its floor.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// Every JSON text in it.
    pub(crate) texts: Vec<String>,
    pub(crate) work: Work,
    /// The upstream speaks Responses.
    pub(crate) in_responses: bool,
}

pub(crate) enum Work {
    Request,
    Whole,
    /// The pieces in which the stream comes.
    Stream(Vec<Vec<u8>>),
}

/// What is measured.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Side {
    /// Read and copy.
    Floor,
    Creole,
    /// Build a `serde_json::Value` and write it.
    Value,
}

fn stream(name: &'static str, says: Says, piece: Option<usize>) -> Case {
    let texts = bodies::chunks(says);
    let events: Vec<Vec<u8>> =
        texts.iter().map(|text| format!("data: {text}\n\n").into_bytes()).collect();
    let pieces = match piece {
        Some(bytes) => events.concat().chunks(bytes).map(<[u8]>::to_vec).collect(),
        None => events,
    };
    Case { name, texts, work: Work::Stream(pieces), in_responses: false }
}

/// A stream in Responses.
fn events(name: &'static str, says: Says) -> Case {
    let texts = bodies::events(says);
    let pieces = texts.iter().map(|text| bodies::event(text).into_bytes()).collect();
    Case { name, texts, work: Work::Stream(pieces), in_responses: true }
}

fn request(name: &'static str, bytes: usize, images: usize) -> Case {
    let texts = vec![bodies::request(bytes, images)];
    Case { name, texts, work: Work::Request, in_responses: false }
}

fn answer(name: &'static str, bytes: usize) -> Case {
    Case { name, texts: vec![bodies::answer(bytes)], work: Work::Whole, in_responses: false }
}

pub(crate) type Make = (&'static str, fn(&'static str) -> Case);

pub(crate) const CASES: &[Make] = &[
    ("request-10kB", |name| request(name, 10_000, 0)),
    ("request-100kB", |name| request(name, 100_000, 0)),
    ("request-1MB", |name| request(name, 1_000_000, 0)),
    ("request-30MB", |name| request(name, 30_000_000, 0)),
    ("request-1MB-images", |name| request(name, 1_000_000, 800_000)),
    ("answer-1kB", |name| answer(name, 1_000)),
    ("answer-12kB", |name| answer(name, 12_000)),
    ("stream-text", |name| stream(name, Says::Text, None)),
    ("stream-text-padded", |name| stream(name, Says::Padded, None)),
    ("stream-text-numbered", |name| stream(name, Says::Numbered, None)),
    ("stream-tools", |name| stream(name, Says::Tools, None)),
    ("stream-reasoning", |name| stream(name, Says::Reasoning, None)),
    ("responses-request-10kB", |name| Case { in_responses: true, ..request(name, 10_000, 0) }),
    ("responses-request-100kB", |name| Case { in_responses: true, ..request(name, 100_000, 0) }),
    ("responses-text", |name| events(name, Says::Text)),
    ("responses-text-padded", |name| events(name, Says::Padded)),
    ("responses-tools", |name| events(name, Says::Tools)),
    ("responses-reasoning", |name| events(name, Says::Reasoning)),
    ("stream-text-64kB", |name| stream(name, Says::Text, Some(64 << 10))),
];

/// An exchange that has sent its request and waits for the answer.
fn asked(config: &Arc<Config>) -> Exchange {
    let body = r#"{"model":"m","max_tokens":9,"stream":true,"thinking":{"type":"adaptive"},"messages":[{"role":"user","content":"x"}],"tools":[{"name":"Tool0","input_schema":{"type":"object"}},{"name":"Tool1","input_schema":{"type":"object"}},{"name":"Tool2","input_schema":{"type":"object"}},{"name":"Tool3","input_schema":{"type":"object"}}]}"#;
    let mut exchange = new(config);
    exchange.handle_request_body(body.as_bytes().to_vec(), 0);
    exchange.poll_call(0).expect("the request is translated");
    exchange
}

fn new(config: &Arc<Config>) -> Exchange {
    let mut exchange = Exchange::new(Arc::clone(config), 7, HostCan::default());
    let headers = [("authorization".to_owned(), "Bearer x".to_owned())];
    let head = exchange.handle_request_head("POST", "/v1/messages", &headers);
    assert!(matches!(head, RequestHead::Translate));
    exchange
}

impl Case {
    /// What one side needs before its work can be measured, so many times.
    pub(crate) fn prepare(&self, side: Side, config: &Arc<Config>, times: usize) -> Vec<Exchange> {
        let config = &if self.in_responses { responses() } else { Arc::clone(config) };
        let make = || match (side, &self.work) {
            (Side::Creole, Work::Request) => Some(self.requested(config)),
            (Side::Creole, Work::Whole) => Some(answered(config, "application/json")),
            (Side::Creole, Work::Stream(_)) => Some(answered(config, "text/event-stream")),
            _ => None,
        };
        (0..times).filter_map(|_| make()).collect()
    }

    /// An exchange that has its request. Every host collects the body in a buffer of its own and
    /// gives that away, so no copy is measured.
    fn requested(&self, config: &Arc<Config>) -> Exchange {
        let mut exchange = new(config);
        exchange.handle_request_body(self.texts[0].as_bytes().to_vec(), 0);
        exchange
    }

    /// Runs the case once: what is refused is quick, and would look like a splendid figure.
    pub(crate) fn check(&self, config: &Arc<Config>) {
        let mut exchange = self.prepare(Side::Creole, config, 1).pop().expect("an exchange");
        let mut out = Vec::new();
        match &self.work {
            Work::Request => return self.translate(&mut exchange, &mut out),
            Work::Whole => self.translate(&mut exchange, &mut out),
            Work::Stream(pieces) => {
                for piece in pieces {
                    exchange.handle_call_body(CALL, piece, 0);
                    exchange.poll_body(&mut out);
                }
                exchange.handle_call_end(CALL, End::Complete, 0);
                exchange.poll_body(&mut out);
            }
        }
        let text = String::from_utf8_lossy(&out);
        let deltas = text.matches("event: content_block_delta\n").count();
        let all = deltas >= self.texts.len() * 9 / 10;
        assert!(text.contains("event: message_stop\n") && all, "{}: {deltas} deltas", self.name);
    }

    pub(crate) fn translate(&self, exchange: &mut Exchange, out: &mut Vec<u8>) {
        let body = black_box(self.texts[0].as_bytes());
        match &self.work {
            Work::Request => drop(black_box(exchange.poll_call(0).unwrap())),
            Work::Whole => {
                out.clear();
                exchange.handle_call_body(CALL, body, 0);
                exchange.handle_call_end(CALL, End::Complete, 0);
                exchange.poll_body(out);
                black_box(&out);
            }
            Work::Stream(pieces) => {
                for piece in pieces {
                    out.clear();
                    exchange.handle_call_body(CALL, black_box(piece), 0);
                    exchange.poll_body(out);
                    black_box(&out);
                }
            }
        }
    }

    pub(crate) fn floor(&self, out: &mut Vec<u8>) {
        for text in &self.texts {
            serde_json::from_slice::<IgnoredAny>(black_box(text.as_bytes())).unwrap();
            match self.work {
                // A chunk is copied into a buffer that is there.
                Work::Stream(_) => {
                    out.clear();
                    out.extend_from_slice(text.as_bytes());
                    black_box(&out);
                }
                _ => drop(black_box(text.as_bytes().to_vec())),
            }
        }
    }

    pub(crate) fn value(&self) {
        for text in &self.texts {
            let value: Value = serde_json::from_slice(black_box(text.as_bytes())).unwrap();
            black_box(serde_json::to_vec(&value).unwrap());
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.texts.iter().map(String::len).sum()
    }
}

/// The configuration of an upstream that speaks Responses.
fn responses() -> Arc<Config> {
    let json = r#"{"upstreams":{"u":{"url":"https://u.test","protocol":"responses"}}}"#;
    Arc::new(Config::from_json(json, |_| None).expect("a configuration"))
}

/// An exchange whose answer begins.
fn answered(config: &Arc<Config>, content_type: &str) -> Exchange {
    let mut exchange = asked(config);
    let headers = [("content-type".to_owned(), content_type.to_owned())];
    exchange.handle_call_head(CALL, 200, &headers, 0);
    exchange
}
