//! Tests of `service.rs`.

use super::*;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::log::Format;
use crate::page::Board;
use crate::server::client_socket::ClientSocket;
use crate::server::connections::{ClientConnection, Connections, PASSING_MAX};
use crate::server::open_calls::tests::means;
use crate::server::workers;

pub(crate) fn gateway(address: SocketAddr, load: Load) -> Gateway {
    Gateway {
        config: Arc::new(Config::default()),
        means: means(Arc::default()),
        budget: Budget::new(1 << 20),
        seeds: Arc::new(Seeds::Fixed(1)),
        records: Arc::new(Records::new(Format::Json, None)),
        refusals: Arc::default(),
        health: Arc::default(),
        callers: Arc::new(Callers::new(address, &[], false)),
        is_local: true,
        shows_metrics: false,
        tls: None,
        telemetry: None,
        load,
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_goes_by_the_systems_clock_as_it_is_when_it_comes() {
    let gateway = gateway(SocketAddr::from(([127, 0, 0, 1], 1)), Load::default());
    // The monotonic and the system clock move apart, as after sleep or when the time is set.
    tokio::time::advance(Duration::from_secs(3600)).await;
    let live = gateway.begin("GET", "/");
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
    assert!(live.clock.now().abs_diff(unix) < 60_000);
}

const KEY: &str = "key-of-a-client";

/// Returns a gateway whose clients have keys.
fn with_keys(budget_max: usize, upstream: SocketAddr) -> Arc<Gateway> {
    let document = format!(
        r#"{{"upstreams": {{"a": {{"url": "http://{upstream}", "key": "none"}}}},
            "client_keys": [{{"secret": "CLIENT"}}]}}"#
    );
    Arc::new(Gateway {
        config: Arc::new(Config::from_json(&document, |_| Some(KEY.to_owned())).unwrap()),
        records: Arc::new(Records::new(Format::Json, Some(Board::default()))),
        budget: Budget::new(budget_max),
        shows_metrics: true,
        ..gateway(NOWHERE, Load::default())
    })
}

const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 1);

/// Serves a connection, and returns the client's end of it.
fn serve(gateway: &Arc<Gateway>, place: &Arc<ClientConnection>, buffered: usize) -> DuplexStream {
    let (near, far) = tokio::io::duplex(buffered);
    let (read, write) = tokio::io::split(far);
    let budget = Arc::clone(&gateway.budget);
    let read = ClientSocket::new(read, Arc::clone(place), budget, headers::HTTP1_BYTES_MAX);
    let (gateway, asking) = (Arc::clone(gateway), Arc::clone(place));
    let service = service_fn(move |request| gateway.answer(request, asking.begin()));
    let mut builder = workers::builder();
    builder.http2().max_concurrent_streams(1024);
    let socket = TokioIo::new(tokio::io::join(read, write));
    tokio::spawn(builder.serve_connection(socket, service).into_owned());
    near
}

/// HTTP/2 connection whose client accepts no byte of an answer's body.
struct Unread {
    sender: http2::SendRequest<Full<Bytes>>,
    connections: Arc<Connections>,
    place: Arc<ClientConnection>,
    budget: Arc<Budget>,
}

impl Unread {
    /// Connects to a gateway whose clients have keys, with place for one connection.
    async fn connect(budget_max: usize) -> Self {
        Self::connect_to(&with_keys(budget_max, NOWHERE)).await
    }

    async fn connect_to(gateway: &Arc<Gateway>) -> Self {
        let connections = Connections::new(1);
        let place = connections.client().unwrap();
        let near = serve(gateway, &place, 1 << 20);
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder.initial_stream_window_size(0).initial_max_send_streams(1024);
        let (sender, connection) = builder.handshake(TokioIo::new(near)).await.unwrap();
        tokio::spawn(connection);
        Self { sender, connections, place, budget: Arc::clone(&gateway.budget) }
    }

    /// Sends a request, and returns a response of which only the head has arrived.
    async fn ask(&mut self, request: hyper::http::request::Builder) -> Response<Incoming> {
        let request = request.body(Full::default()).unwrap();
        self.sender.send_request(request).await.unwrap()
    }
}

fn asked(method: &str, path: &str, key: &str) -> hyper::http::request::Builder {
    let uri = format!("http://localhost{path}");
    Request::builder().method(method).uri(uri).header("x-api-key", key)
}

#[tokio::test(start_paused = true)]
async fn a_refused_client_that_reads_no_answer_keeps_no_place() {
    let page = |key| asked("GET", "/", key).header("accept", "text/html");
    for (request, status, is_kept) in [
        (asked("DELETE", "/v1/messages", "wrong"), 401, false),
        (asked("DELETE", "/v1/messages", KEY), 405, true),
        (asked("GET", "/v1/files", KEY).header("origin", "http://evil.example"), 403, false),
        (asked("GET", "/metrics", "wrong"), 401, false),
        (asked("GET", "/metrics", KEY), 200, true),
        (page("wrong").header("sec-fetch-mode", "navigate"), 401, false),
        (page(KEY), 200, true),
    ] {
        let mut client = Unread::connect(1 << 20).await;
        let what = format!("{request:?}");
        let answer = client.ask(request).await;
        assert_eq!(answer.status(), status, "{what}");
        assert!(client.place.requests().1, "it is not read: {what}");
        assert_eq!(client.connections.client().is_none(), is_kept, "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn refusals_that_nobody_reads_count_and_where_there_is_no_memory_streams_are_reset() {
    const MAX: usize = 256 << 20;
    let mut client = Unread::connect(MAX).await;
    let mut unread = Vec::new();
    for _ in 0..164 {
        let answer = client.ask(asked("POST", "/v1/messages", "wrong")).await;
        assert_eq!(answer.status(), 401);
        unread.push(answer);
    }
    let begin = |number| client.budget.begin(Owner::of_connection(number), Arc::default());
    // An unauthenticated request gets only free memory, and no refusal gives way to this request.
    let mut other = client.budget.begin_stranger(Owner::of_connection(1000), Arc::default());
    let counted = (MAX / 16 * 15) - 100 * 4096;
    assert!(!other.set(counted) && other.set(counted - 100 * 4096));
    // Other requests use up all memory.
    let mut others: Vec<_> = (1001..1400).map(begin).collect();
    for other in &mut others {
        other.complete();
        while other.grow(4096) {}
    }
    let mut asks = JoinSet::new();
    for _ in 0..10 {
        let request = asked("POST", "/v1/messages", "wrong").body(Full::default()).unwrap();
        asks.spawn(client.sender.send_request(request));
    }
    assert!(asks.join_all().await.iter().all(Result::is_err));
    assert_eq!(client.place.requests(), (174, true));
}

#[tokio::test(start_paused = true)]
async fn an_answer_of_an_exchange_is_held_until_it_is_read() {
    let mut client = Unread::connect(16 << 20).await;
    let mut unread = Vec::new();
    for _ in 0..50 {
        let answer = client.ask(asked("POST", "/v1/messages", KEY)).await;
        assert_eq!(answer.status(), 400);
        unread.push(answer);
    }
    let mut other = client.budget.begin(Owner::of_connection(1000), Arc::default());
    // The last sixteenth of the budget is for small requests.
    let most = 15 << 20;
    let size = client.budget.exchange() / 4;
    assert!(!other.set(most - 49 * size) && other.set(most - 50 * 2 * size));
    drop((client.sender, unread));
    while client.place.requests().1 {
        tokio::task::yield_now().await;
    }
    assert!(other.set(most));
}

#[tokio::test]
async fn a_refused_body_is_read_behind_its_answer_where_strangers_leave_nothing() {
    let gateway = with_keys(16 << 20, NOWHERE);
    let begin = |one| gateway.budget.begin_stranger(Owner::of_connection(one), Arc::default());
    let mut strangers: Vec<_> = (100..300).map(begin).collect();
    strangers.iter_mut().for_each(|one| while one.grow(4096) {});
    let connections = Connections::new(1);
    let mut client = serve(&gateway, &connections.client().unwrap(), 1 << 10);
    let head = "POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000\r\n\r\n";
    client.write_all(head.as_bytes()).await.unwrap();
    let mut status = [0; 12];
    client.read_exact(&mut status).await.unwrap();
    assert_eq!(&status, b"HTTP/1.1 401");
    client.write_all(&vec![b' '; 1_000_000]).await.unwrap();
}

#[tokio::test]
async fn a_passed_request_with_its_whole_body_keeps_its_place() {
    let upstream = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let gateway = with_keys(16 << 20, upstream.local_addr().unwrap());
    let mut client = Unread::connect_to(&gateway).await;
    // The body of the next request is collected, because all permits to pass bodies are taken.
    let _passing = client.place.passing.try_acquire_many(PASSING_MAX as u32).unwrap();
    let request = asked("POST", "/v1/files", KEY).body(Full::from("a file")).unwrap();
    let _answer = tokio::spawn(client.sender.send_request(request));
    let _asked = upstream.accept().await.unwrap();
    assert!(client.connections.client().is_none());
}
