//! What a translation costs, as a ratio to its floor: reading the same bytes with
//! `serde_json::de::IgnoredAny` and copying them once.
//!
//! Both are measured in the same run, alternately, so a busy machine disturbs both. `--once CASE
//! SIDE` does the work of one side once, for a counter of instructions (`cargo xtask bench`).

#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a benchmark fails by panicking"
)]

mod bodies;

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bodies::Says;
use creole::{Config, End, Exchange, Pings, RequestHead};
use serde::de::IgnoredAny;
use serde_json::Value;

/// A measured translation and its floor.
struct Case {
    name: &'static str,
    /// Every JSON text in it.
    texts: Vec<String>,
    work: Work,
}

enum Work {
    Request,
    Whole,
    /// The pieces in which the stream comes.
    Stream(Vec<Vec<u8>>),
}

/// What is measured.
#[derive(Clone, Copy, PartialEq)]
enum Side {
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
    Case { name, texts, work: Work::Stream(pieces) }
}

fn request(name: &'static str, bytes: usize, images: usize) -> Case {
    Case { name, texts: vec![bodies::request(bytes, images)], work: Work::Request }
}

fn answer(name: &'static str, bytes: usize) -> Case {
    Case { name, texts: vec![bodies::answer(bytes)], work: Work::Whole }
}

type Make = (&'static str, fn(&'static str) -> Case);

const CASES: &[Make] = &[
    ("request-10kB", |name| request(name, 10_000, 0)),
    ("request-100kB", |name| request(name, 100_000, 0)),
    ("request-1MB", |name| request(name, 1_000_000, 0)),
    ("request-30MB", |name| request(name, 30_000_000, 0)),
    ("request-1MB-images", |name| request(name, 1_000_000, 800_000)),
    ("answer-1kB", |name| answer(name, 1_000)),
    ("answer-12kB", |name| answer(name, 12_000)),
    ("stream-text", |name| stream(name, Says::Text, None)),
    ("stream-tools", |name| stream(name, Says::Tools, None)),
    ("stream-reasoning", |name| stream(name, Says::Reasoning, None)),
    ("stream-text-64kB", |name| stream(name, Says::Text, Some(64 << 10))),
];

/// An exchange that has sent its request and waits for the answer.
fn asked(config: &Arc<Config>) -> Exchange {
    let body = r#"{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"x"}],"tools":[{"name":"Tool0","input_schema":{"type":"object"}},{"name":"Tool1","input_schema":{"type":"object"}},{"name":"Tool2","input_schema":{"type":"object"}},{"name":"Tool3","input_schema":{"type":"object"}}]}"#;
    let mut exchange = new(config);
    exchange.handle_request(body.as_bytes(), 0).expect("the request is translated");
    exchange
}

fn new(config: &Arc<Config>) -> Exchange {
    let mut exchange = Exchange::new(Arc::clone(config), 7, Pings::No);
    let headers = [("authorization".to_owned(), "Bearer x".to_owned())];
    let head = exchange.handle_request_head("POST", "/v1/messages", &headers);
    assert!(matches!(head, RequestHead::Translate));
    exchange
}

/// The marker between preparing and measuring, for counters of instructions.
#[inline(never)]
fn measured<T>(work: impl FnOnce() -> T) -> T {
    work()
}

impl Case {
    /// Does the work of one side once; gives the time without the preparation.
    fn run(&self, side: Side, config: &Arc<Config>) -> Duration {
        let mut out = Vec::new();
        match (side, &self.work) {
            (Side::Floor, Work::Stream(_)) => time(|| {
                for text in &self.texts {
                    serde_json::from_str::<IgnoredAny>(black_box(text)).unwrap();
                    out.clear();
                    out.extend_from_slice(text.as_bytes());
                    black_box(&out);
                }
            }),
            (Side::Floor, _) => time(|| {
                serde_json::from_slice::<IgnoredAny>(black_box(self.texts[0].as_bytes())).unwrap();
                black_box(self.texts[0].as_bytes().to_vec())
            }),
            (Side::Value, _) => time(|| {
                for text in &self.texts {
                    let value: Value = serde_json::from_slice(black_box(text.as_bytes())).unwrap();
                    black_box(serde_json::to_vec(&value).unwrap());
                }
            }),
            (Side::Creole, Work::Request) => {
                let mut exchange = new(config);
                time(|| exchange.handle_request(black_box(self.texts[0].as_bytes()), 0).unwrap())
            }
            (Side::Creole, Work::Whole) => {
                let mut exchange = asked(config);
                let headers = [("content-type".to_owned(), "application/json".to_owned())];
                time(|| {
                    exchange.handle_response_head(200, &headers, 0);
                    let body = black_box(self.texts[0].as_bytes());
                    exchange.handle_response_body(body, 0, &mut out);
                    exchange.handle_response_end(End::Complete, 0, &mut out);
                    black_box(&out);
                })
            }
            (Side::Creole, Work::Stream(pieces)) => {
                let mut exchange = asked(config);
                let headers = [("content-type".to_owned(), "text/event-stream".to_owned())];
                exchange.handle_response_head(200, &headers, 0);
                time(|| {
                    for piece in pieces {
                        out.clear();
                        exchange.handle_response_body(black_box(piece), 0, &mut out);
                        black_box(&out);
                    }
                })
            }
        }
    }

    fn bytes(&self) -> usize {
        self.texts.iter().map(String::len).sum()
    }
}

fn time<T>(work: impl FnOnce() -> T) -> Duration {
    let start = Instant::now();
    let result = measured(work);
    let taken = start.elapsed();
    drop(black_box(result));
    taken
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64()
}

fn main() {
    let config = Arc::new(Config::from_json("{}", |_| None).unwrap());
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    if let [once, name, side] = arguments.as_slice()
        && once == "--once"
    {
        let (name, make) = CASES.iter().find(|(known, _)| known == name).expect("a case");
        let side = match side.as_str() {
            "floor" => Side::Floor,
            "creole" => Side::Creole,
            _ => Side::Value,
        };
        make(name).run(side, &config);
        return;
    }
    println!(
        "{:<20} {:>9} {:>12} {:>12} {:>12}",
        "", "floor", "creole", "creole/floor", "value/creole"
    );
    for (name, make) in CASES {
        if arguments.iter().any(|wanted| !name.contains(wanted.as_str())) {
            continue;
        }
        let case = make(name);
        let rounds = (40_000_000 / case.bytes()).clamp(5, 400);
        let (mut floor, mut creole, mut value) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            floor.push(case.run(Side::Floor, &config));
            creole.push(case.run(Side::Creole, &config));
            value.push(case.run(Side::Value, &config));
        }
        let (floor, creole, value) = (median(floor), median(creole), median(value));
        let each = |seconds: f64| seconds * 1e9 / case.bytes() as f64;
        println!(
            "{:<20} {:>6.3} ns/B {:>8.3} ns/B {:>11.2}x {:>11.2}x",
            case.name,
            each(floor),
            each(creole),
            creole / floor,
            value / creole
        );
    }
}
