//! Tests of translated streams in the Worker: as they come, at the client's pace, and every way in
//! which they can end.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
#![allow(clippy::arithmetic_side_effects, reason = "tests")]

use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use creole_worker_tests::client::{Open, request};
use creole_worker_tests::{
    EVENT_STREAM, Out, Upstream, Worker, chunk, finish, messages, open, post, read, read_until,
    soon, until,
};
use tokio::sync::mpsc::UnboundedReceiver;

/// Starts a stream of which the client has the text `One`.
async fn stream(worker: &Worker, outs: &mut UnboundedReceiver<Out>) -> (Open, Out, String) {
    let sent = open(worker, request("POST", "/v1/messages", messages(true)));
    let first = async {
        let mut out = outs.recv().await.unwrap();
        out.send_data(chunk("One")).await.unwrap();
        out
    };
    let (got, out) = soon("the head", async { tokio::join!(sent, first) }).await;
    let mut got = got.unwrap();
    assert_eq!(got.response.status(), 200);
    let kind = got.response.headers().get("content-type").unwrap();
    assert!(kind.to_str().unwrap().starts_with(EVENT_STREAM));
    let mut seen = String::new();
    read_until(&mut got, &mut seen, "One").await;
    assert!(seen.starts_with("event: message_start\n"), "{seen}");
    (got, out, seen)
}

#[tokio::test]
async fn each_piece_reaches_the_client_before_the_next_is_sent() {
    let (upstream, mut outs) = Upstream::written().await;
    let worker = Worker::start(&upstream.url(), "{}");
    let (mut got, mut out, mut seen) = stream(&worker, &mut outs).await;
    for text in ["Two", "Three", "Four"] {
        out.send_data(chunk(text)).await.unwrap();
        read_until(&mut got, &mut seen, text).await;
    }
    out.send_data(finish()).await.unwrap();
    drop(out);
    let rest = read(got).await;
    assert!(rest.complete && (seen + &rest.body).contains("event: message_stop"), "{rest:?}");
    until("the upstream", || upstream.is_idle()).await;
    until("the log line", || !worker.lines("cause", "end_turn").is_empty()).await;
}

#[tokio::test]
async fn an_upstream_that_has_ended_well_keeps_its_connection() {
    let (upstream, mut outs) = Upstream::written().await;
    let worker = Worker::start(&upstream.url(), "{}");
    for _ in 0..5 {
        let (got, mut out, _) = stream(&worker, &mut outs).await;
        out.send_data(finish()).await.unwrap();
        drop(out);
        assert!(read(got).await.complete);
    }
    let connections = upstream.connections.load(Ordering::SeqCst);
    assert!(connections <= 2, "{connections} connections for 5 requests, one after the other");
}

#[tokio::test]
async fn an_upstream_that_says_it_is_done_and_stays_is_left() {
    let (upstream, mut outs) = Upstream::written().await;
    let worker = Worker::start(&upstream.url(), "{}");
    let (got, mut out, _) = stream(&worker, &mut outs).await;
    out.send_data(finish()).await.unwrap();
    let rest = read(got).await;
    assert!(rest.complete && rest.body.contains("event: message_stop"), "{rest:?}");
    until("the upstream", || upstream.is_idle()).await;
    drop(out);
}

#[tokio::test]
async fn a_client_that_leaves_ends_the_upstreams_stream() {
    let (upstream, mut outs) = Upstream::written().await;
    let worker = Worker::start(&upstream.url(), r#"{"ping_interval_ms": 100}"#);
    // While the upstream is silent, the ping notices the disconnect.
    let (got, out, _) = stream(&worker, &mut outs).await;
    drop(got);
    until("the upstream", || upstream.is_idle()).await;
    drop(out);
    // While data flows, the next write notices the disconnect.
    let (got, mut out, _) = stream(&worker, &mut outs).await;
    drop(got);
    while out.send_data(chunk("more")).await.is_ok() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    until("the upstream", || upstream.is_idle()).await;
    until("the log lines", || worker.lines("outcome", "abandoned").len() == 2).await;
}

#[tokio::test]
async fn an_upstream_that_is_cut_gives_an_error_event() {
    let (upstream, mut outs) = Upstream::written().await;
    let worker = Worker::start(&upstream.url(), "{}");
    let (got, out, _) = stream(&worker, &mut outs).await;
    out.abort("cut".into());
    let rest = read(got).await;
    assert!(rest.complete, "the client's stream ends well: the error is in it");
    assert!(rest.body.contains("event: error\ndata: {\"type\":\"error\""), "{rest:?}");
    assert!(!rest.body.contains("message_stop"), "{rest:?}");
}

#[tokio::test]
async fn an_upstream_that_is_cut_before_its_first_byte_is_an_http_error() {
    let (upstream, mut outs) = Upstream::written().await;
    let worker = Worker::start(&upstream.url(), "{}");
    for stream in [true, false] {
        let sent = open(&worker, request("POST", "/v1/messages", messages(stream)));
        let cut = async {
            let out = outs.recv().await.unwrap();
            // The head is on its way before the body breaks.
            tokio::time::sleep(Duration::from_millis(50)).await;
            out.abort("cut".into());
        };
        let (got, ()) = soon("the head", async { tokio::join!(sent, cut) }).await;
        read(got.unwrap()).await.assert_error(502, "api_error", "");
    }
}

#[tokio::test]
async fn silence_is_filled_with_pings() {
    let (upstream, mut outs) = Upstream::written().await;
    let worker = Worker::start(&upstream.url(), r#"{"ping_interval_ms": 50}"#);
    let (mut got, mut out, mut seen) = stream(&worker, &mut outs).await;
    let ping = "event: ping\ndata: {\"type\":\"ping\"}\n\n";
    read_until(&mut got, &mut seen, &ping.repeat(3)).await;
    out.send_data(chunk("Two")).await.unwrap();
    read_until(&mut got, &mut seen, "Two").await;
    read_until(&mut got, &mut seen, &format!("Two\"}}}}\n\n{ping}")).await;
    out.send_data(finish()).await.unwrap();
    drop(out);
    assert!(read(got).await.body.contains("event: message_stop"));
}

#[tokio::test]
async fn an_upstream_that_stalls_is_given_up() {
    let (upstream, mut outs) = Upstream::written().await;
    // The two times are far apart, for machines that are busy.
    let config = r#"{"stall_timeout_ms": 1500, "ping_interval_ms": 100}"#;
    let worker = Worker::start(&upstream.url(), config);
    let (got, out, _) = stream(&worker, &mut outs).await;
    let rest = read(got).await;
    assert!(rest.complete && rest.body.contains("event: ping\n"), "{rest:?}");
    assert!(rest.body.contains("\"timeout_error\""), "{rest:?}");
    until("the upstream", || upstream.is_idle()).await;
    drop(out);
    // Only the upstream's head comes: an error has its own status, unless the client already has
    // the beginning of a message.
    let got = post(&worker, "/v1/messages", messages(true)).await;
    assert_eq!(got.status, 200);
    assert!(got.body.starts_with("event: message_start\n"), "{got:?}");
    assert!(got.body.contains("\"timeout_error\""), "{got:?}");
    let worker = Worker::start(&upstream.url(), r#"{"stall_timeout_ms": 500}"#);
    let got = post(&worker, "/v1/messages", messages(true)).await;
    got.assert_error(504, "timeout_error", "");
    until("the upstream", || upstream.is_idle()).await;
}

#[tokio::test]
async fn an_upstream_that_never_answers_is_given_up() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let worker = Worker::start(&url, r#"{"first_byte_timeout_ms": 200}"#);
    let got = post(&worker, "/v1/messages", messages(true)).await;
    got.assert_error(504, "timeout_error", "");
}

#[tokio::test]
async fn a_client_that_does_not_read_stops_the_upstream() {
    let (upstream, mut outs) = Upstream::written().await;
    let worker = Worker::start(&upstream.url(), "{}");
    let before = worker.figures();
    let (got, mut out, _) = stream(&worker, &mut outs).await;
    let large = chunk(&"x".repeat(64 << 10));
    let mut sent = 0;
    // The sockets on the way take some megabytes; then the pieces must wait.
    while sent < 1000 {
        let send = out.send_data(large.clone());
        if tokio::time::timeout(Duration::from_millis(700), send).await.is_err() {
            break;
        }
        sent += 1;
    }
    println!("stopped after {sent} x 64 KiB; {before:?}, then {:?}", worker.figures());
    assert!(sent < 600, "{sent} pieces of 64 KiB were taken");
    let rest = tokio::spawn(read(got));
    out.send_data(finish()).await.unwrap();
    drop(out);
    let rest = rest.await.unwrap();
    assert!(rest.body.contains("event: message_stop"), "{} bytes", rest.body.len());
    assert!(rest.body.len() > sent * (64 << 10), "{} bytes of {sent} pieces", rest.body.len());
}

#[tokio::test]
async fn answers_that_are_collected_are_limited_together() {
    let (upstream, mut outs) = Upstream::written().await;
    let worker = Worker::start(&upstream.url(), r#"{"buffered_bytes_max": 100000}"#);
    let sent = open(&worker, request("POST", "/v1/messages", messages(false)));
    let write = async {
        let mut out = outs.recv().await.unwrap();
        let _ = out.send_data(Bytes::from("{\"x\":\"")).await;
        while out.send_data(Bytes::from("x".repeat(10_000))).await.is_ok() {}
    };
    let (got, ()) = soon("529", async { tokio::join!(sent, write) }).await;
    read(got.unwrap()).await.assert_error(529, "overloaded_error", "");
}
