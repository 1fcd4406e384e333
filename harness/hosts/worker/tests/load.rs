//! Test of the Worker with many streams at once, cut on either side at any moment: no stream may
//! hang, and no memory may leak.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]
#![allow(clippy::arithmetic_side_effects, reason = "tests")]

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use creole_worker_tests::client::{figures, request};
use creole_worker_tests::load::{self, Ends, STREAMS};
use creole_worker_tests::{Upstream, Worker, get, messages, open, until};

/// Runs one stream of a client. Some of the clients leave after a while.
async fn stream(worker: Arc<Worker>, index: usize, ends: Arc<Ends>) {
    let read = async {
        let sent = request("POST", "/v1/messages", messages(true));
        let mut got = open(&worker, sent).await.unwrap();
        ends.read(&mut got.response).await
    };
    ends.count(index, 2500, read).await;
}

/// Returns the number of exchanges that the WebAssembly module counts as alive, and the size of its
/// memory in bytes.
async fn alive(worker: &Worker) -> (u64, u64) {
    let figures = figures(worker).await;
    (figures.live, figures.bytes)
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
    ends.check();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_streams_with_aborts_on_both_sides_leave_nothing_behind() {
    let upstream = load::upstream().await;
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
