//! What a translation costs, as a ratio to its floor: reading the same bytes with
//! `serde_json::de::IgnoredAny` and copying them once.
//!
//! Both are measured in the same run, alternately, as processor time of this thread; the medians of
//! the ratios are printed. So a busy machine disturbs little. Columns: nanoseconds for a request, an
//! answer or a chunk; the same for each byte; the ratio to the floor; and how often as long it takes
//! to build a `serde_json::Value` and write it back.
//!
//! Arguments are parts of names of cases. `--once CASE SIDE` does the work of one side once, for a
//! profiler that counts instructions.

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
use std::time::Duration;

use bodies::Says;
use cpu_time::ThreadTime;
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
    let body = r#"{"model":"m","max_tokens":9,"stream":true,"thinking":{"type":"adaptive"},"messages":[{"role":"user","content":"x"}],"tools":[{"name":"Tool0","input_schema":{"type":"object"}},{"name":"Tool1","input_schema":{"type":"object"}},{"name":"Tool2","input_schema":{"type":"object"}},{"name":"Tool3","input_schema":{"type":"object"}}]}"#;
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
    /// How long one side takes for its work, done so many times, without the preparation.
    fn run(&self, side: Side, config: &Arc<Config>, times: usize) -> Duration {
        let mut out = Vec::new();
        let mut prepared: Vec<Exchange> = match (side, &self.work) {
            (Side::Creole, Work::Request) => (0..times).map(|_| new(config)).collect(),
            (Side::Creole, Work::Whole) => {
                (0..times).map(|_| answered(config, "application/json")).collect()
            }
            (Side::Creole, Work::Stream(_)) => {
                (0..times).map(|_| answered(config, "text/event-stream")).collect()
            }
            _ => Vec::new(),
        };
        let start = ThreadTime::now();
        for at in 0..times {
            match prepared.get_mut(at) {
                Some(exchange) => measured(|| self.translate(exchange, &mut out)),
                None if side == Side::Floor => measured(|| self.floor(&mut out)),
                None => measured(|| self.value()),
            }
        }
        start.elapsed()
    }

    fn translate(&self, exchange: &mut Exchange, out: &mut Vec<u8>) {
        let body = black_box(self.texts[0].as_bytes());
        match &self.work {
            Work::Request => drop(black_box(exchange.handle_request(body, 0).unwrap())),
            Work::Whole => {
                out.clear();
                exchange.handle_response_body(body, 0, out);
                exchange.handle_response_end(End::Complete, 0, out);
                black_box(&out);
            }
            Work::Stream(pieces) => {
                for piece in pieces {
                    out.clear();
                    exchange.handle_response_body(black_box(piece), 0, out);
                    black_box(&out);
                }
            }
        }
    }

    fn floor(&self, out: &mut Vec<u8>) {
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

    fn value(&self) {
        for text in &self.texts {
            let value: Value = serde_json::from_slice(black_box(text.as_bytes())).unwrap();
            black_box(serde_json::to_vec(&value).unwrap());
        }
    }

    fn bytes(&self) -> usize {
        self.texts.iter().map(String::len).sum()
    }
}

/// An exchange whose answer begins.
fn answered(config: &Arc<Config>, content_type: &str) -> Exchange {
    let mut exchange = asked(config);
    let headers = [("content-type".to_owned(), content_type.to_owned())];
    exchange.handle_response_head(200, &headers, 0);
    exchange
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
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
        make(name).run(side, &config, 1);
        return;
    }
    println!("{:<20} {:>12} {:>8} {:>13} {:>13}", "", "ns", "ns/byte", "to floor", "Value to it");
    for (name, make) in CASES {
        if arguments.iter().any(|wanted| !name.contains(wanted.as_str())) {
            continue;
        }
        let case = make(name);
        // So long that the clock is exact, and so often that medians are.
        let times = (200_000 / case.bytes()).max(1);
        let rounds = (60_000_000 / case.bytes() / times).clamp(5, 101);
        let (mut cost, mut to_floor, mut to_value) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            let side = |side| case.run(side, &config, times).as_secs_f64();
            let (floor, creole, value) = (side(Side::Floor), side(Side::Creole), side(Side::Value));
            cost.push(creole / times as f64);
            to_floor.push(creole / floor);
            to_value.push(value / creole);
        }
        let nanoseconds = median(cost) * 1e9;
        println!(
            "{:<20} {:>12.0} {:>8.3} {:>12.2}x {:>12.2}x",
            case.name,
            nanoseconds / case.texts.len() as f64,
            nanoseconds / case.bytes() as f64,
            median(to_floor),
            median(to_value)
        );
    }
}
