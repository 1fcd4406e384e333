//! Many streams at once, cut on either side at any moment: none may be stuck, nothing may leak.
// Helpers outside of #[test] functions fail like tests do.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

mod rig;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use rig::{EVENT_STREAM, Gateway, Upstream, chunk, client, finish, messages, request};

const STREAMS: usize = 500;
const PIECES: u64 = 40;
/// Before its first piece a stream waits for the others.
const GATHERING: Duration = Duration::from_millis(1500);

/// A number that is different for each stream, and the same in each run.
fn scattered(index: usize, salt: u64) -> u64 {
    let mut number = (index as u64 ^ (salt << 32)).wrapping_add(0x9e37_79b9_7f4a_7c15);
    for shift in [30, 27, 31] {
        number = (number ^ (number >> shift)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    }
    number >> 8
}

#[derive(Debug, Default)]
struct Ends {
    complete: AtomicUsize,
    error_event: AtomicUsize,
    http_error: AtomicUsize,
    left: AtomicUsize,
}

/// One stream of a client, which leaves after a while if it is one of those that leave.
async fn stream(gateway: String, index: usize, http2: Option<rig::Client>, ends: Arc<Ends>) {
    let client = http2.unwrap_or_else(|| client(false));
    let leaves = index % 3 == 1;
    let read = async {
        let sent = request("POST", &gateway, messages(true));
        let mut response = client.request(sent).await.unwrap();
        if response.status() != 200 {
            assert_eq!(response.status(), 502);
            return &ends.http_error;
        }
        let mut seen = String::new();
        while let Some(frame) = response.body_mut().frame().await {
            let frame = frame.expect("the gateway must not cut a stream");
            seen.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
        }
        if seen.ends_with("data: {\"type\":\"message_stop\"}\n\n") {
            return &ends.complete;
        }
        assert!(seen.contains("event: error\n"), "stream {index} just ended: {seen}");
        &ends.error_event
    };
    let end = if leaves {
        // Some leave while they connect, the others when all are there.
        let least = if index % 15 == 1 { 0 } else { GATHERING.as_millis() as u64 };
        let moment = Duration::from_millis(least + scattered(index, 1) % 1500);
        tokio::time::timeout(moment, read).await.unwrap_or(&ends.left)
    } else {
        rig::soon("a stream", read).await
    };
    end.fetch_add(1, Ordering::SeqCst);
}

async fn wave(gateway: &Gateway, upstream: &Upstream, http2: bool) -> (u64, usize) {
    let ends = Arc::new(Ends::default());
    let shared = http2.then(|| client(true));
    let since = Instant::now();
    let streams: Vec<_> = (0..STREAMS)
        .map(|index| {
            let url = gateway.url("/v1/messages");
            tokio::spawn(stream(url, index, shared.clone(), Arc::clone(&ends)))
        })
        .collect();
    for stream in streams {
        stream.await.unwrap();
    }
    let took = since.elapsed();
    rig::until("the upstream's streams", || upstream.is_idle()).await;
    drop(shared);
    let peak = upstream.peak.swap(0, Ordering::SeqCst);
    let (resident, descriptors) = gateway.figures().unwrap_or_default();
    println!(
        "{STREAMS} streams over HTTP/{}: {took:?}, {peak} at once; {ends:?}; {} KiB, {descriptors} \
         descriptors",
        if http2 { 2 } else { 1 },
        resident / 1024
    );
    let total = [&ends.complete, &ends.error_event, &ends.http_error, &ends.left];
    assert_eq!(total.iter().map(|count| count.load(Ordering::SeqCst)).sum::<usize>(), STREAMS);
    assert!(total.iter().take(2).all(|count| count.load(Ordering::SeqCst) > 50), "{ends:?}");
    assert!(ends.left.load(Ordering::SeqCst) > 50, "{ends:?}");
    (resident, descriptors)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_streams_with_aborts_on_both_sides_leave_nothing_behind() {
    let count = AtomicUsize::new(0);
    let upstream = Upstream::start(move |_, mut out| {
        let index = count.fetch_add(1, Ordering::SeqCst);
        tokio::spawn(async move {
            tokio::time::sleep(GATHERING).await;
            let cut_after = if index % 3 == 2 { scattered(index, 2) % PIECES } else { PIECES };
            for piece in 0..cut_after {
                let pause = scattered(index, piece + 3) % 60;
                tokio::time::sleep(Duration::from_millis(pause)).await;
                if out.send_data(chunk("some text")).await.is_err() {
                    return;
                }
            }
            if cut_after == PIECES {
                let _ = out.send_data(finish()).await;
            } else {
                out.abort("cut".into());
            }
        });
        (200, EVENT_STREAM)
    })
    .await;
    let gateway = Gateway::start(&upstream.url(), r#"{"ping_interval_ms": 20}"#);
    let (_, before) = gateway.figures().unwrap_or_default();
    let (first, _) = wave(&gateway, &upstream, false).await;
    for http2 in [true, false, true] {
        wave(&gateway, &upstream, http2).await;
    }
    // Idle connections to the upstream are kept for some seconds.
    tokio::time::sleep(Duration::from_secs(9)).await;
    let (resident, descriptors) = gateway.figures().unwrap_or_default();
    println!("at rest: {} KiB, {descriptors} descriptors (at first: {before})", resident / 1024);
    // A client that left while it connected was never heard.
    let asked = upstream.asked.lock().unwrap().len();
    rig::until("the log lines", || gateway.lines(r#""path":"/v1/messages""#).len() >= asked).await;
    assert!(
        gateway.lines(r#""path":"/v1/messages""#).len() <= 4 * STREAMS,
        "two lines for one request"
    );
    assert!(descriptors <= before + 2, "{before} descriptors before, {descriptors} after");
    assert!(
        resident < first + (32 << 20),
        "{first} bytes after the first wave, {resident} at last"
    );
    // It still works.
    let got = rig::send(&client(false), request("GET", &gateway.url("/"), Bytes::new())).await;
    assert_eq!(got.status, 200);
}
