//! Upstreams that close a connection which was kept, just when the next request is written to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::rig::{COMPLETION, Client, Gateway, Got, client, messages, request, send};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// Answers the first request of each connection, gives `ends` for the second, works for a time, and
/// closes.
struct Closing {
    url: String,
    requests: Arc<AtomicUsize>,
    connections: Arc<AtomicUsize>,
}

impl Closing {
    async fn start(ends: &'static str) -> Self {
        Self::working(ends, Duration::ZERO).await
    }

    async fn working(ends: &'static str, works: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (requests, connections) =
            (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let (counted, opened) = (Arc::clone(&requests), Arc::clone(&connections));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                opened.fetch_add(1, Ordering::SeqCst);
                let counted = Arc::clone(&counted);
                tokio::spawn(async move {
                    Self::serve(&mut BufReader::new(stream), ends, works, &counted).await;
                });
            }
        });
        Self { url, requests, connections }
    }

    async fn serve(
        stream: &mut BufReader<TcpStream>,
        ends: &str,
        works: Duration,
        counted: &AtomicUsize,
    ) {
        let length = COMPLETION.len();
        let whole = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n\
             {COMPLETION}"
        );
        for answer in [whole.as_str(), ends] {
            if !read_request(stream).await {
                return;
            }
            counted.fetch_add(1, Ordering::SeqCst);
            if stream.get_mut().write_all(answer.as_bytes()).await.is_err() {
                return;
            }
        }
        tokio::time::sleep(works).await;
    }

    /// Requests, and connections that were opened for them.
    fn counted(&self) -> (usize, usize) {
        (self.requests.load(Ordering::SeqCst), self.connections.load(Ordering::SeqCst))
    }
}

/// Reads a request with its body; `false` at the end.
async fn read_request(stream: &mut BufReader<TcpStream>) -> bool {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.unwrap_or(0) == 0 {
            return false;
        }
        let line = line.trim().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.is_empty() {
            break;
        }
    }
    stream.read_exact(&mut vec![0; length]).await.is_ok()
}

async fn ask(client: &Client, gateway: &Gateway, method: &str, path: &str) -> Got {
    let body = if method == "GET" { String::new() } else { messages(false) };
    send(client, request(method, &gateway.url(path), body)).await
}

#[tokio::test]
async fn a_request_on_a_kept_connection_that_is_closed_is_sent_on_a_new_one() {
    let upstream = Closing::start("").await;
    let gateway = Gateway::start(&upstream.url, "{}");
    // One connection, and so one thread of the gateway with its pool.
    let client = client(false);
    for index in 0..20 {
        let got = ask(&client, &gateway, "POST", "/v1/messages").await;
        assert_eq!(got.status, 200, "request {index}: {got:?}");
        assert_eq!(got.json()["content"][0]["text"], "Hi there");
    }
    let (requests, connections) = upstream.counted();
    assert!(requests > 20 && connections < requests, "{requests} {connections}");
}

#[tokio::test]
async fn a_request_of_which_an_answer_began_is_not_sent_again() {
    let upstream = Closing::start("HTTP/1.1 20").await;
    let gateway = Gateway::start(&upstream.url, "{}");
    let client = client(false);
    assert_eq!(ask(&client, &gateway, "POST", "/v1/messages").await.status, 200);
    let got = ask(&client, &gateway, "POST", "/v1/messages").await;
    got.assert_error(502, "api_error", "it closed the connection before it answered");
    assert_eq!(upstream.counted(), (2, 1));
}

#[tokio::test]
async fn an_upstream_that_worked_before_it_closed_does_not_get_the_request_again() {
    let upstream = Closing::working("", Duration::from_secs(3)).await;
    let gateway = Gateway::start(&upstream.url, "{}");
    let client = client(false);
    for method in ["POST", "GET"] {
        let path = if method == "GET" { "/v1/files" } else { "/v1/messages" };
        let before = upstream.counted();
        assert_eq!(ask(&client, &gateway, "POST", "/v1/messages").await.status, 200);
        assert_eq!(ask(&client, &gateway, method, path).await.status, 502, "{method}");
        let after = upstream.counted();
        assert_eq!((after.0 - before.0, after.1 - before.1), (2, 1), "{method}");
    }
}

#[tokio::test]
async fn a_new_connection_that_is_closed_is_not_followed_by_another() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let opened = Arc::<AtomicUsize>::default();
    let counted = Arc::clone(&opened);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            read_request(&mut BufReader::new(stream)).await;
        }
    });
    let gateway = Gateway::start(&url, "{}");
    let got = ask(&client(false), &gateway, "POST", "/v1/messages").await;
    got.assert_error(502, "api_error", "it closed the connection before it answered");
    assert_eq!(opened.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_passed_request_is_sent_again_only_if_it_is_safe_to_repeat() {
    let upstream = Closing::start("").await;
    let gateway = Gateway::start(&upstream.url, "{}");
    let client = client(false);
    for _ in 0..4 {
        assert_eq!(ask(&client, &gateway, "GET", "/v1/files").await.status, 200);
    }
    let upstream = Closing::start("").await;
    let gateway = Gateway::start(&upstream.url, "{}");
    assert_eq!(ask(&client, &gateway, "POST", "/v1/files").await.status, 200);
    assert_eq!(ask(&client, &gateway, "POST", "/v1/files").await.status, 502);
    assert_eq!(upstream.counted(), (2, 1));
}
