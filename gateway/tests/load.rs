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
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rig::load::{self, Ends, STREAMS};
use rig::{Gateway, Upstream, client, messages, request};

/// One stream of a client, which leaves after a while if it is one of those that leave.
async fn stream(gateway: String, index: usize, http2: Option<rig::Client>, ends: Arc<Ends>) {
    let client = http2.unwrap_or_else(|| client(false));
    let read = async {
        let sent = request("POST", &gateway, messages(true));
        let mut response = client.request(sent).await.unwrap();
        ends.read(&mut response).await
    };
    ends.count(index, 1500, read).await;
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
    ends.check();
    (resident, descriptors)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_streams_with_aborts_on_both_sides_leave_nothing_behind() {
    let upstream = load::upstream().await;
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
