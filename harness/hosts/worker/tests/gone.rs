//! Tests of clients that reset their connection at any moment: the isolate must keep nothing of
//! their requests.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]
#![allow(clippy::arithmetic_side_effects, reason = "tests")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use creole_rig::{image_messages, images_config};
use creole_worker_tests::client::figures;
use creole_worker_tests::{
    COMPLETION, Upstream, Worker, chunk, get, messages, nobody, post, soon, until,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Number of clients that leave at one moment, one after the other. The same number leaves again in
/// a second round.
const CLIENTS: usize = 200;

/// Starts a server that accepts connections and sends nothing. Returns its URL and the number of
/// open connections.
async fn silent() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let open = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&open);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            let counted = Arc::clone(&counted);
            tokio::spawn(async move {
                let mut read = [0; 4096];
                while stream.read(&mut read).await.is_ok_and(|length| length > 0) {}
                counted.fetch_sub(1, Ordering::SeqCst);
            });
        }
    });
    (url, open)
}

/// Sends a request whose content-length is `claimed`, and may be larger than the body.
async fn send(worker: &Worker, path: &str, claimed: usize, body: &str) -> TcpStream {
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\nx-api-key: k\r\ncontent-length: {claimed}\r\n\r\n{body}"
    );
    let mut client = TcpStream::connect(worker.address).await.unwrap();
    client.write_all(head.as_bytes()).await.unwrap();
    client
}

/// Resets the connection. For the runtime, a mere end of the client's data is no disconnect.
fn reset(client: TcpStream) {
    client.set_zero_linger().unwrap();
    drop(client);
}

/// Waits until the isolate has no exchange and no waiting request. Returns the size of the
/// WebAssembly memory in bytes.
async fn nothing_left(worker: &Worker) -> u64 {
    let since = Instant::now();
    loop {
        let figures = figures(worker).await;
        if figures.live == 0 && figures.waiting == 0 {
            return figures.bytes;
        }
        assert!(since.elapsed() < Duration::from_secs(10), "{figures:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Makes clients disconnect. Checks that the isolate keeps nothing of their requests, and that more
/// clients take no more memory.
async fn leaves_nothing(worker: &Worker, mut leave: impl AsyncFnMut()) {
    for _ in 0..CLIENTS {
        leave().await;
    }
    let before = nothing_left(worker).await;
    for _ in 0..CLIENTS {
        leave().await;
    }
    assert_eq!(nothing_left(worker).await, before, "bytes of WebAssembly");
}

/// Waits until the Worker has `count` requests without an answer.
async fn alive(worker: &Worker, count: u64) {
    let since = Instant::now();
    while figures(worker).await.live < count {
        assert!(since.elapsed() < Duration::from_secs(10), "the request does not begin");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_client_that_resets_in_its_body_leaves_nothing() {
    let worker = Worker::start_with_hooks(&nobody().await, "{}");
    for (claimed, body) in [(1, String::new()), (900_000, "x".repeat(800_000))] {
        leaves_nothing(&worker, async || {
            let client = send(&worker, "/v1/messages", claimed, &body).await;
            alive(&worker, 1).await;
            reset(client);
            nothing_left(&worker).await;
        })
        .await;
    }
    // The memory can be used again as a whole.
    let got = post(&worker, "/v1/messages", "x".repeat(7_000_000)).await;
    got.assert_error(400, "invalid_request_error", "not valid JSON");
}

#[tokio::test]
async fn a_client_that_resets_before_the_head_leaves_nothing_and_ends_its_call() {
    let (upstream, open) = silent().await;
    let worker = Worker::start_with_hooks(&upstream, "{}");
    let body = messages(true).replace("Hello", &"x".repeat(300_000));
    for path in ["/v1/messages", "/v1/embeddings"] {
        leaves_nothing(&worker, async || {
            let client = send(&worker, path, body.len(), &body).await;
            until("the call", || open.load(Ordering::SeqCst) > 0).await;
            reset(client);
            until("its end", || open.load(Ordering::SeqCst) == 0).await;
        })
        .await;
    }
}

#[tokio::test]
async fn a_client_that_resets_in_mid_stream_leaves_nothing_while_its_upstream_is_silent() {
    let upstream = Upstream::start(|_, mut out| {
        tokio::spawn(async move {
            let _ = out.send_data(chunk("One")).await;
            tokio::time::sleep(Duration::from_secs(60)).await;
        });
        (200, "text/event-stream")
    })
    .await;
    // No ping comes during the test.
    let worker = Worker::start_with_hooks(&upstream.url(), r#"{"ping_interval_ms": 60000}"#);
    let body = messages(true);
    for path in ["/v1/messages", "/v1/completions"] {
        leaves_nothing(&worker, async || {
            let mut client = send(&worker, path, body.len(), &body).await;
            let mut read = [0; 4096];
            assert!(soon("the head", client.read(&mut read)).await.unwrap() > 0);
            reset(client);
            nothing_left(&worker).await;
            until("the upstream", || upstream.is_idle()).await;
        })
        .await;
    }
}

#[tokio::test]
async fn a_client_that_resets_without_reading_its_stream_leaves_nothing() {
    let upstream = Upstream::start(|_, mut out| {
        tokio::spawn(async move {
            let large = chunk(&"x".repeat(64 << 10));
            while out.send_data(large.clone()).await.is_ok() {}
        });
        (200, "text/event-stream")
    })
    .await;
    let worker = Worker::start_with_hooks(&upstream.url(), "{}");
    let body = messages(true);
    for _ in 0..5 {
        let client = send(&worker, "/v1/messages", body.len(), &body).await;
        alive(&worker, 1).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        reset(client);
        nothing_left(&worker).await;
    }
    until("the upstream", || upstream.is_idle()).await;
}

#[tokio::test]
async fn a_client_that_resets_while_an_image_is_fetched_leaves_nothing() {
    let upstream = Upstream::with_images().await;
    let config = images_config(&upstream).replace("1500", "60000");
    let worker = Worker::start_with_hooks("", &config);
    let body = image_messages(&[upstream.image("/silent.png")], false);
    leaves_nothing(&worker, async || {
        let client = send(&worker, "/v1/messages", body.len(), &body).await;
        until("the image's request", || !upstream.is_idle()).await;
        reset(client);
        until("its end", || upstream.is_idle()).await;
    })
    .await;
}

#[tokio::test]
async fn a_refusal_comes_without_the_body_and_leaves_nothing() {
    let variables = [("CLIENT_KEY", "key-of-the-team"), ("UPSTREAM_KEY", "sk-up")];
    let worker = Worker::start_with_hooks_and(&nobody().await, "{}", &variables);
    for (path, claimed, status) in [
        ("/v1/messages", 9, "HTTP/1.1 401"),
        ("/v1/files", 9, "HTTP/1.1 401"),
        ("/x/v1/messages", 9, "HTTP/1.1 401"),
    ] {
        leaves_nothing(&worker, async || {
            let mut client = send(&worker, path, claimed, "").await;
            let mut answer = vec![0; 4096];
            let length = soon("the answer", client.read(&mut answer)).await.unwrap();
            let answer = String::from_utf8_lossy(&answer[..length]);
            assert!(answer.starts_with(status), "{path}: {answer}");
            reset(client);
        })
        .await;
    }
    let worker = Worker::start_with_hooks(&nobody().await, r#"{"request_bytes_max": 2000}"#);
    let since = Instant::now();
    for (path, status) in [("/v1/messages", "413"), ("/x", "404"), ("/v1/messages/x", "404")] {
        let mut client = send(&worker, path, 2001, "").await;
        let mut answer = Vec::new();
        while !answer.ends_with(b"}") {
            let length = soon("the answer", client.read_buf(&mut answer)).await.unwrap();
            assert!(length > 0, "{path}: the answer ended");
        }
        let answer = String::from_utf8_lossy(&answer).into_owned();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{path}: {answer}");
    }
    assert!(since.elapsed() < Duration::from_secs(1), "{:?}", since.elapsed());
    nothing_left(&worker).await;
}

#[tokio::test]
async fn claims_and_unfinished_bodies_keep_nobody_out() {
    let upstream = Upstream::answering(200, "application/json", COMPLETION).await;
    let worker = Worker::start_with_hooks(&upstream.url(), "{}");
    let mut clients = Vec::new();
    for _ in 0..100 {
        clients.push(send(&worker, "/v1/messages", 256 << 10, "").await);
    }
    alive(&worker, 100).await;
    assert_eq!(post(&worker, "/v1/messages", messages(false)).await.status, 200);
    // The bodies are more than all requests may hold together. The oldest requests give up their
    // memory.
    let body = format!("{{{}", " ".repeat(900_000));
    for _ in 0..30 {
        clients.push(send(&worker, "/v1/messages", 1 << 20, &body).await);
        assert_eq!(post(&worker, "/v1/messages", messages(false)).await.status, 200);
    }
    for client in clients {
        reset(client);
    }
    nothing_left(&worker).await;
    assert_eq!(get(&worker, "/").await.status, 200);
}

#[tokio::test]
async fn a_request_that_is_given_up_for_another_gets_529_at_once() {
    let worker = Worker::start_with_hooks(&nobody().await, "{}");
    let mut greedy = send(&worker, "/v1/messages", 8 << 20, &" ".repeat(8_380_000)).await;
    alive(&worker, 1).await;
    // The second request has another owner, and does not fit beside the first one.
    let mut other = TcpStream::connect(worker.address).await.unwrap();
    let head = "POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: other\r\n";
    let body = " ".repeat(7_900_000);
    let request = format!("{head}content-length: {}\r\n\r\n{body}", body.len() + 1);
    other.write_all(request.as_bytes()).await.unwrap();
    let mut answer = vec![0; 4096];
    let length = soon("529", greedy.read(&mut answer)).await.unwrap();
    let answer = String::from_utf8_lossy(&answer[..length]).into_owned();
    assert!(answer.starts_with("HTTP/1.1 529 "), "{answer}");
    other.write_all(b"x").await.unwrap();
    let mut answer = [0; 12];
    soon("400", other.read_exact(&mut answer)).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 400");
}

#[tokio::test]
async fn a_body_that_pauses_is_refused() {
    let config = r#"{"stall_timeout_ms": 700}"#;
    let worker = Worker::start_with_hooks(&nobody().await, config);
    let mut client = send(&worker, "/v1/messages", 100, "{").await;
    let mut answer = [0; 12];
    soon("408", client.read_exact(&mut answer)).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 408");
    reset(client);
    nothing_left(&worker).await;
}
