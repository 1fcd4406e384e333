//! Many streams at once, cut on either side at any moment: none may be stuck, nothing may leak.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]
#![allow(clippy::arithmetic_side_effects, reason = "tests")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use creole_worker_tests::client::{request, send};
use creole_worker_tests::{
    EVENT_STREAM, Upstream, Worker, chunk, finish, get, messages, open, soon, until,
};
use http_body_util::BodyExt as _;

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
async fn stream(worker: Arc<Worker>, index: usize, ends: Arc<Ends>) {
    let read = async {
        let sent = request("POST", "/v1/messages", messages(true));
        let mut got = open(&worker, sent).await.unwrap();
        if got.response.status() != 200 {
            assert_eq!(got.response.status(), 502);
            return &ends.http_error;
        }
        let mut seen = String::new();
        while let Some(frame) = got.response.body_mut().frame().await {
            let frame = frame.expect("the Worker must not cut a stream");
            seen.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
        }
        if seen.ends_with("data: {\"type\":\"message_stop\"}\n\n") {
            return &ends.complete;
        }
        assert!(seen.contains("event: error\n"), "stream {index} just ended: {seen}");
        &ends.error_event
    };
    let end = if index % 3 == 1 {
        // Some leave while they connect, the others when all are there.
        let least = if index % 15 == 1 { 0 } else { GATHERING.as_millis() as u64 };
        let moment = Duration::from_millis(least + scattered(index, 1) % 2500);
        tokio::time::timeout(moment, read).await.unwrap_or(&ends.left)
    } else {
        soon("a stream", read).await
    };
    end.fetch_add(1, Ordering::SeqCst);
}

/// How many exchanges the module believes to be alive, and its memory.
async fn alive(worker: &Worker) -> (u64, u64) {
    let mut asked = request("GET", "/", "");
    asked.headers_mut().insert("x-test-hook", "figures".parse().unwrap());
    let got = send(worker, asked).await.json();
    (got["live"].as_u64().unwrap(), got["bytes"].as_u64().unwrap())
}

async fn wave(worker: &Arc<Worker>, upstream: &Upstream) {
    let ends = Arc::new(Ends::default());
    let since = Instant::now();
    let streams: Vec<_> = (0..STREAMS)
        .map(|index| tokio::spawn(stream(Arc::clone(worker), index, Arc::clone(&ends))))
        .collect();
    for stream in streams {
        stream.await.unwrap();
    }
    let took = since.elapsed();
    until("the upstream's streams", || upstream.is_idle()).await;
    let peak = upstream.peak.swap(0, Ordering::SeqCst);
    let (live, memory) = alive(worker).await;
    println!(
        "{STREAMS} streams: {took:?}, {peak} at once; {ends:?}; {live} alive, {} KiB of WebAssembly; {:?}",
        memory / 1024,
        worker.figures()
    );
    let total = [&ends.complete, &ends.error_event, &ends.http_error, &ends.left];
    assert_eq!(total.iter().map(|count| count.load(Ordering::SeqCst)).sum::<usize>(), STREAMS);
    assert!(total.iter().take(2).all(|count| count.load(Ordering::SeqCst) > 50), "{ends:?}");
    assert!(ends.left.load(Ordering::SeqCst) > 50, "{ends:?}");
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
    let worker = Worker::start_with_hooks(&upstream.url(), r#"{"ping_interval_ms": 100}"#);
    let worker = Arc::new(worker);
    get(&worker, "/").await;
    println!("at first: {:?}", worker.figures());
    wave(&worker, &upstream).await;
    let (_, first) = alive(&worker).await;
    for _ in 0..4 {
        wave(&worker, &upstream).await;
    }
    let (live, last) = alive(&worker).await;
    println!("at last: {live} alive, {} KiB of WebAssembly; {:?}", last / 1024, worker.figures());
    assert!(live <= 5, "{live} exchanges are still alive");
    assert!(last <= first * 2, "{first} bytes of WebAssembly after the first wave, {last} at last");
    assert_eq!(get(&worker, "/").await.status, 200);
}
