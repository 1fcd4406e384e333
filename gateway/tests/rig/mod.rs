//! The real binary between a scripted upstream and a client, all on this machine.
#![allow(dead_code, unreachable_pub, missing_docs)] // each test binary uses a part of it

use std::convert::Infallible;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::channel::{Channel, Sender};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::TcpListener;

/// Longer than anything takes here, even on a busy machine; a test that waits this long has failed.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Waits for `future`, but not for ever.
pub async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited too long: {what}"),
    }
}

/// Waits until `condition` holds.
pub async fn until(what: &str, condition: impl Fn() -> bool) {
    let since = Instant::now();
    while !condition() {
        assert!(since.elapsed() < PATIENCE, "waited too long: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The real binary. It is killed when this is dropped.
pub struct Gateway {
    pub address: SocketAddr,
    pub child: Child,
    log: Arc<Mutex<String>>,
}

impl Gateway {
    /// In front of `upstream`, with `config` (one JSON document).
    pub fn start(upstream: &str, config: &str) -> Self {
        Self::start_with(&["--upstream", upstream], config, &[])
    }

    pub fn start_with(args: &[&str], config: &str, env: &[(&str, &str)]) -> Self {
        Self::start_logging_to(Stdio::piped(), args, config, env)
    }

    /// With `stderr` as its log; what goes anywhere but into a pipe of its own is not in `log`.
    pub fn start_logging_to(
        stderr: Stdio,
        args: &[&str],
        config: &str,
        env: &[(&str, &str)],
    ) -> Self {
        let config = file(config);
        let mut child = Command::new(env!("CARGO_BIN_EXE_creole"))
            .args(["serve", "--listen", "127.0.0.1:0", "--config", &config])
            .args(args)
            .envs(env.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        if let Some(mut stderr) = child.stderr.take() {
            let written = Arc::clone(&log);
            std::thread::spawn(move || {
                let mut piece = [0; 4096];
                while let Ok(length @ 1..) = stderr.read(&mut piece) {
                    written.lock().unwrap().push_str(&String::from_utf8_lossy(&piece[..length]));
                }
            });
        }
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on http://").unwrap_or_else(|| {
            std::thread::sleep(Duration::from_millis(100));
            panic!("did not start: {line:?} {}", log.lock().unwrap())
        });
        Self { address: address.parse().unwrap(), child, log }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// The lines of the log that have `text`.
    pub fn lines(&self, text: &str) -> Vec<String> {
        self.log().lines().filter(|line| line.contains(text)).map(str::to_owned).collect()
    }

    pub fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    }

    /// Resident bytes and open descriptors; `None` where there is no `/proc`.
    pub fn figures(&self) -> Option<(u64, usize)> {
        let id = self.child.id();
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
        let resident = status.lines().find(|line| line.starts_with("VmRSS"))?;
        let kib: u64 = resident.split_whitespace().nth(1)?.parse().ok()?;
        Some((kib * 1024, std::fs::read_dir(format!("/proc/{id}/fd")).ok()?.count()))
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A file with `text`, by its path.
pub fn file(text: &str) -> String {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("{}-{number}.json", std::process::id());
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// What the upstream was sent.
#[derive(Clone, Debug)]
pub struct Asked {
    pub method: Method,
    pub path: String,
    pub version: hyper::Version,
    pub headers: hyper::HeaderMap,
    pub body: String,
}

/// A body of the upstream, which a test writes into. Dropping the sender ends it well.
pub type Out = Sender<Bytes, Box<dyn std::error::Error + Send + Sync>>;

type UpstreamBody = Channel<Bytes, Box<dyn std::error::Error + Send + Sync>>;

/// Counts the bodies that are being sent.
pub struct Counted {
    body: UpstreamBody,
    open: Arc<AtomicUsize>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::SeqCst);
    }
}

impl hyper::body::Body for Counted {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        std::pin::Pin::new(&mut self.body).poll_frame(context)
    }
}

/// A scripted upstream.
pub struct Upstream {
    pub address: SocketAddr,
    pub asked: Arc<Mutex<Vec<Asked>>>,
    /// Bodies that are being sent.
    pub open: Arc<AtomicUsize>,
    /// The most of them at once.
    pub peak: Arc<AtomicUsize>,
    /// Connections that were opened so far.
    pub connections: Arc<AtomicUsize>,
}

impl Upstream {
    /// `script` gets each request and a body to write into, and says status and content type.
    pub async fn start<F>(script: F) -> Self
    where
        F: Fn(Asked, Out) -> (u16, &'static str) + Send + Sync + 'static,
    {
        Self::start_with(None, script).await
    }

    pub async fn start_with<F>(tls: Option<tokio_rustls::TlsAcceptor>, script: F) -> Self
    where
        F: Fn(Asked, Out) -> (u16, &'static str) + Send + Sync + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let upstream = Self {
            address: listener.local_addr().unwrap(),
            asked: Arc::default(),
            open: Arc::default(),
            peak: Arc::default(),
            connections: Arc::default(),
        };
        let connections = Arc::clone(&upstream.connections);
        let peak = Arc::clone(&upstream.peak);
        let (asked, open) = (Arc::clone(&upstream.asked), Arc::clone(&upstream.open));
        let script = Arc::new(script);
        tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else { return };
                connections.fetch_add(1, Ordering::SeqCst);
                let _ = stream.set_nodelay(true);
                let (asked, open) = (Arc::clone(&asked), Arc::clone(&open));
                let (script, tls, peak) = (Arc::clone(&script), tls.clone(), Arc::clone(&peak));
                tokio::spawn(async move {
                    let service = service_fn(move |request: Request<Incoming>| {
                        let (asked, open) = (Arc::clone(&asked), Arc::clone(&open));
                        let (script, peak) = (Arc::clone(&script), Arc::clone(&peak));
                        async move {
                            let (head, body) = request.into_parts();
                            let Ok(body) = body.collect().await else {
                                return Ok(Response::new(counted(&open).1));
                            };
                            let request = Asked {
                                method: head.method,
                                path: head.uri.path_and_query().unwrap().as_str().to_owned(),
                                version: head.version,
                                headers: head.headers,
                                body: String::from_utf8_lossy(&body.to_bytes()).into_owned(),
                            };
                            asked.lock().unwrap().push(request.clone());
                            let (out, body) = counted(&open);
                            peak.fetch_max(open.load(Ordering::SeqCst), Ordering::SeqCst);
                            let (status, content_type) = script(request, out);
                            Ok::<_, Infallible>(
                                Response::builder()
                                    .status(status)
                                    .header("content-type", content_type)
                                    .header("x-request-id", "up-1")
                                    .body(body)
                                    .unwrap(),
                            )
                        }
                    });
                    let mut builder = auto::Builder::new(TokioExecutor::new());
                    builder.http2().max_concurrent_streams(1024);
                    match tls {
                        None => {
                            let _ = builder.serve_connection(TokioIo::new(stream), service).await;
                        }
                        Some(tls) => {
                            let Ok(stream) = tls.accept(stream).await else { return };
                            let _ = builder.serve_connection(TokioIo::new(stream), service).await;
                        }
                    }
                });
            }
        });
        upstream
    }

    /// One that answers every request with the same whole body.
    pub async fn answering(status: u16, content_type: &'static str, body: &'static str) -> Self {
        Self::start(move |_, mut out| {
            tokio::spawn(async move { out.send_data(Bytes::from(body)).await });
            (status, content_type)
        })
        .await
    }

    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    pub fn last(&self) -> Asked {
        self.asked.lock().unwrap().last().unwrap().clone()
    }

    pub fn is_idle(&self) -> bool {
        self.open.load(Ordering::SeqCst) == 0
    }
}

fn counted(open: &Arc<AtomicUsize>) -> (Out, Counted) {
    open.fetch_add(1, Ordering::SeqCst);
    let (out, body) = Channel::new(1);
    (out, Counted { body, open: Arc::clone(open) })
}

/// An address where nobody listens.
pub async fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}/v1", listener.local_addr().unwrap())
}

pub type Client = legacy::Client<HttpConnector, Full<Bytes>>;

/// Over HTTP/1, or over HTTP/2 without TLS.
pub fn client(http2: bool) -> Client {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    legacy::Client::builder(TokioExecutor::new()).http2_only(http2).build(connector)
}

/// A whole response.
#[derive(Debug)]
pub struct Got {
    pub status: StatusCode,
    pub headers: hyper::HeaderMap,
    pub body: String,
    /// The body ended as HTTP says it should.
    pub complete: bool,
}

impl Got {
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {:?}", self.body))
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Checks for an error of the Messages API.
    pub fn assert_error(&self, status: u16, kind: &str, message: &str) {
        assert_eq!(self.status.as_u16(), status, "{self:?}");
        let json = self.json();
        assert_eq!(json["type"], "error", "{self:?}");
        assert_eq!(json["error"]["type"], kind, "{self:?}");
        let text = json["error"]["message"].as_str().unwrap();
        assert!(text.contains(message), "{self:?}");
        assert_eq!(json["request_id"], self.header("request-id"), "{self:?}");
    }
}

pub fn request(method: &str, url: &str, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    Request::builder()
        .method(method)
        .uri(url)
        .header("content-type", "application/json")
        .header("x-api-key", "sk-client")
        .body(Full::new(body.into()))
        .unwrap()
}

pub async fn send(client: &Client, request: Request<Full<Bytes>>) -> Got {
    let response = soon("a response", client.request(request)).await.unwrap();
    read(response).await
}

pub async fn read(response: Response<Incoming>) -> Got {
    let (head, mut body) = response.into_parts();
    let mut bytes = Vec::new();
    let complete = loop {
        match soon("the body", body.frame()).await {
            Some(Ok(frame)) => bytes.extend_from_slice(frame.data_ref().unwrap_or(&Bytes::new())),
            Some(Err(_)) => break false,
            None => break true,
        }
    };
    let body = String::from_utf8(bytes).unwrap();
    Got { status: head.status, headers: head.headers, body, complete }
}

/// Reads on until `text` has come.
pub async fn read_until(response: &mut Response<Incoming>, seen: &mut String, text: &str) {
    while !seen.contains(text) {
        let frame = soon(text, response.body_mut().frame()).await;
        let frame = frame.unwrap_or_else(|| panic!("ended before {text:?}: {seen}")).unwrap();
        seen.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
    }
}

/// A request of the Messages API.
pub fn messages(stream: bool) -> String {
    format!(
        r#"{{"model":"claude-x","max_tokens":100,"stream":{stream},"messages":[{{"role":"user","content":"Hello"}}]}}"#
    )
}

/// A chunk with text.
pub fn chunk(text: &str) -> Bytes {
    Bytes::from(format!(
        "data: {{\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{{\"index\":0,\"delta\":{{\"role\":\"assistant\",\"content\":\"{text}\"}},\"finish_reason\":null}}]}}\n\n"
    ))
}

/// How a stream ends well.
pub fn finish() -> Bytes {
    Bytes::from_static(
        b"data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":4,\"total_tokens\":13}}\n\ndata: [DONE]\n\n",
    )
}

pub const COMPLETION: &str = r#"{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hi there"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13}}"#;

pub const EVENT_STREAM: &str = "text/event-stream";
