//! Tests that a panic, which must not happen, does not break later requests of the isolate.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::time::Instant;

use creole_worker_tests::client::{request, send};
use creole_worker_tests::{
    COMPLETION, Upstream, Worker, chunk, messages, open, post, read, read_until, soon, until,
};

fn hook(what: &str) -> hyper::Request<http_body_util::Full<bytes::Bytes>> {
    let mut request = request("GET", "/", "");
    request.headers_mut().insert("x-test-hook", what.parse().unwrap());
    request
}

#[tokio::test]
async fn after_a_panic_in_a_request_the_next_one_works() {
    let upstream = Upstream::answering(200, "application/json", COMPLETION).await;
    let worker = Worker::start_with_hooks(&upstream.url(), "{}");
    for _ in 0..5 {
        let got = post(&worker, "/v1/messages", messages(false)).await;
        assert_eq!(got.status, 200, "{got:?}");
        let got = send(&worker, hook("panic")).await;
        assert_eq!(got.status, 500, "{got:?}");
        assert_eq!(got.json()["error"]["type"], "api_error");
    }
    let got = post(&worker, "/v1/messages", messages(false)).await;
    assert_eq!(got.status, 200, "{got:?}");
    assert!(worker.log().contains("Rust panic"));
}

#[tokio::test]
async fn requests_that_wait_for_their_upstream_during_a_panic_get_an_error() {
    let (upstream, mut outs) = Upstream::written().await;
    let worker = Worker::start_with_hooks(&upstream.url(), "{}");
    let waiting = post(&worker, "/v1/messages", messages(true));
    let panic = async {
        let out = soon("the request", outs.recv()).await;
        assert_eq!(send(&worker, hook("panic")).await.status, 500);
        out
    };
    let (got, out) = tokio::join!(waiting, panic);
    assert_eq!(got.status, 500, "{got:?}");
    assert_eq!(got.json()["error"]["type"], "api_error");
    drop(out);
}

#[tokio::test]
async fn after_a_panic_in_a_stream_no_stream_is_stuck_and_new_ones_work() {
    let (upstream, mut outs) = Upstream::written().await;
    let worker = Worker::start_with_hooks(&upstream.url(), r#"{"ping_interval_ms": 200}"#);
    let mut open_stream = async || {
        let sent = open(&worker, request("POST", "/v1/messages", messages(true)));
        let first = async {
            let mut out = outs.recv().await.unwrap();
            out.send_data(chunk("One")).await.unwrap();
            out
        };
        let (got, out) = soon("the head", async { tokio::join!(sent, first) }).await;
        let mut got = got.unwrap();
        read_until(&mut got, &mut String::new(), "One").await;
        (got, out)
    };
    for _ in 0..3 {
        let (bystander, bystander_out) = open_stream().await;
        let (got, mut out) = open_stream().await;
        let since = Instant::now();
        out.send_data(chunk("panic-in-stream")).await.unwrap();
        let rest = read(got).await;
        println!("the stream that panicked was cut after {:?}", since.elapsed());
        assert!(!rest.complete && !rest.body.contains("message_stop"), "{rest:?}");
        // New requests work at once.
        let (third, mut third_out) = open_stream().await;
        third_out.send_data(creole_worker_tests::finish()).await.unwrap();
        drop(third_out);
        assert!(read(third).await.body.contains("message_stop"));
        // The second stream cannot be saved, but it must not look complete, nor hang.
        let rest = read(bystander).await;
        println!("the bystander ended after {:?}, {} bytes", since.elapsed(), rest.body.len());
        assert!(!rest.complete && !rest.body.contains("message_stop"), "{rest:?}");
        drop((out, bystander_out));
        until("the upstream", || upstream.is_idle()).await;
    }
}
