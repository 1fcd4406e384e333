//! Tests of large bodies and many streams through a real Envoy with its default buffer limits:
//! Envoy must stay alive and answer right. Prints Envoy's memory.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "tests"
)]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use creole_hosts::process::{EnvoyOptions, Process};
use creole_hosts::suite::{self, FINISH, chunk, completion, messages};
use creole_hosts::upstream::{Upstream, runtime};
use creole_hosts::{Answer, End, Got, Host as _, Trial, cases, client};
use serde_json::json;

/// Size of the largest request body, in bytes: the default of `request_bytes_max`.
const LARGEST: usize = 32 << 20;

const REQUESTS: usize = 100;
const STREAMS: usize = 1000;

/// Number of events in each stream, and the pause before each event.
const PIECES: usize = 15;
const PAUSE: Duration = Duration::from_millis(100);

fn main() -> ExitCode {
    // Each stream needs two connections, both with an end in this process.
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let raised = rustix::process::Rlimit { current: limit.maximum, maximum: limit.maximum };
    let _ = rustix::process::setrlimit(rustix::process::Resource::Nofile, raised);
    cases::run(
        "stress of real Envoy",
        &(),
        &[
            ("a_hundred_requests_of_32_mb_pass_and_envoy_lives", large),
            ("a_thousand_streams_at_once_pass_and_envoy_lives", many),
        ],
    )
}

fn start(keys: &[&str]) -> Process {
    let options = EnvoyOptions { concurrency: 2, ..EnvoyOptions::default() };
    let config = suite::config(keys, json!({}));
    Process::envoy(&config, &options).unwrap_or_else(|reason| panic!("{reason}"))
}

/// Sends large requests one after the other; every tenth gets an answer as large.
fn large(_: &()) {
    let mut envoy = start(&["0001"]);
    let before = envoy.resident_mb().0;
    // The text has 1.5 % of escapes in JSON, as source code does.
    let text = "let x = \"32 MB of text that is like a program's\"; // 0123456789 abcdefghijklm\n";
    let text = text.repeat((LARGEST - 1024) / (text.len() + 3));
    let request = messages("0001", false, &text);
    let size = request.body.len();
    assert!(size <= LARGEST && size > LARGEST - 4096, "{size} of {LARGEST}");
    let escaped = serde_json::to_string(&text).unwrap();
    let escaped = escaped.trim_matches('"');
    let large = Answer::json(completion(escaped));
    let small = Answer::json(completion("Hello"));
    let since = Instant::now();
    for number in 0..REQUESTS {
        let is_large = number % 10 == 9;
        let answer = if is_large { large.clone() } else { small.clone() };
        let trial = Trial { key: "0001".to_owned(), request: request.clone(), answer };
        let got = envoy.send(&trial);
        assert_eq!((got.status, got.end), (200, End::Complete), "request {number}");
        let body = got.json();
        let answered = body["content"][0]["text"].as_str().unwrap();
        assert!(answered == if is_large { text.as_str() } else { "Hello" }, "request {number}");
        let sent = got.upstream.first().unwrap().bytes;
        assert!(sent > text.len(), "request {number}: {sent} bytes reached the upstream");
    }
    let (after, peak) = envoy.resident_mb();
    let seconds = since.elapsed().as_secs_f64();
    println!(
        "{REQUESTS} requests of 32 MB, {} answers of 32 MB, {seconds:.0} s: Envoy has {before} MB \
         before, {peak} MB at most, {after} MB after",
        REQUESTS / 10
    );
    assert!(envoy.is_alive(), "{}", envoy.log());
}

/// Way in which a stream ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Completes,
    UpstreamDies,
    ClientLeaves,
}

fn fate(number: usize) -> (Fate, &'static str) {
    match number % 5 {
        3 => (Fate::UpstreamDies, "0002"),
        4 => (Fate::ClientLeaves, "0001"),
        _ => (Fate::Completes, "0001"),
    }
}

fn many(_: &()) {
    let mut envoy = start(&["0001", "0002"]);
    let before = envoy.resident_mb().0;
    let upstream = Upstream::shared();
    let mut pieces: Vec<String> = (0..PIECES).map(|number| chunk(&format!("{number} "))).collect();
    let broken =
        Answer { end: End::Aborted, pause: PAUSE, ..Answer::events(pieces[..PIECES / 2].to_vec()) };
    pieces.push(FINISH.to_owned());
    let whole = Answer { pause: PAUSE, ..Answer::events(pieces) };
    upstream.expect("0001", whole.clone());
    upstream.expect("0002", broken);
    let address = envoy.address;
    let since = Instant::now();
    let (mut most, mut peak) = (0, 0);
    let results: Vec<(Fate, Got)> = runtime().block_on(async {
        let streams: Vec<_> = (0..STREAMS)
            .map(|number| {
                tokio::spawn(async move {
                    let (fate, key) = fate(number);
                    let mut request = messages(key, true, "hi");
                    request.http2 = number % 2 == 1;
                    if fate == Fate::ClientLeaves {
                        request.leave_after = Some(number * 2);
                    }
                    (fate, client::send(address, &request).await)
                })
            })
            .collect();
        let mut results = Vec::new();
        let mut streams = streams.into_iter();
        let mut next = streams.next();
        while let Some(stream) = &mut next {
            match tokio::time::timeout(Duration::from_millis(20), stream).await {
                Ok(result) => {
                    results.push(result.unwrap());
                    next = streams.next();
                }
                Err(_) => {
                    most = most.max(upstream.open());
                    peak = peak.max(envoy.resident_mb().0);
                }
            }
        }
        results
    });
    let seconds = since.elapsed().as_secs_f64();
    let count = |wanted| results.iter().filter(|(fate, _)| *fate == wanted).count();
    for (fate, got) in &results {
        match fate {
            Fate::Completes => {
                assert_eq!((got.status, got.end), (200, End::Complete), "{}", got.text());
                let text = got.text();
                let numbers = (0..PIECES).all(|n| text.contains(&format!("\"text\":\"{n} \"")));
                assert!(numbers && text.contains("message_stop"), "{text}");
            }
            Fate::UpstreamDies => {
                assert_eq!((got.status, got.end), (200, End::Aborted), "{}", got.text());
                assert!(!got.text().contains("message_stop"), "{}", got.text());
            }
            Fate::ClientLeaves => {}
        }
    }
    let quiet = Instant::now();
    while upstream.open() > 0 {
        assert!(quiet.elapsed() < Duration::from_secs(10), "{} streams stay", upstream.open());
        std::thread::sleep(Duration::from_millis(20));
    }
    let trial =
        Trial { key: "0001".to_owned(), request: messages("0001", true, "hi"), answer: whole };
    assert_eq!(envoy.send(&trial).end, End::Complete);
    println!(
        "{STREAMS} streams, at most {most} at once, {} complete, {} broken by the upstream, {} left \
         by the client, {seconds:.1} s: Envoy has {before} MB before, {peak} MB at most, {} MB after",
        count(Fate::Completes),
        count(Fate::UpstreamDies),
        count(Fate::ClientLeaves),
        envoy.resident_mb().0
    );
    assert!(most > STREAMS / 2, "only {most} streams were open at once");
    assert!(envoy.is_alive(), "{}", envoy.log());
}
