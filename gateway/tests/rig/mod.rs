//! The real binary between a scripted upstream and a client, all on this machine.
#![allow(dead_code, unreachable_pub, missing_docs)] // each test binary uses a part of it

use std::convert::Infallible;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::pin::Pin;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

pub mod pdf;

use bytes::Bytes;
pub use creole_rig::*;
use http_body_util::Full;
use hyper::Request;
use hyper::body::{Body, Frame};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

/// The real binary. It is killed when this is dropped.
pub struct Gateway {
    pub address: SocketAddr,
    pub child: Child,
    log: Arc<Mutex<String>>,
}

impl Gateway {
    /// In front of `upstream`, with `config` (one JSON document; empty: no file).
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
        let args = [&["--no-check"], args].concat();
        Self::run(Command::new(env!("CARGO_BIN_EXE_creole")), stderr, &args, config, env)
    }

    /// One that asks its upstreams for their models at its start, as it does where nothing else is
    /// said.
    pub fn start_looking(args: &[&str], config: &str) -> Self {
        let binary = Command::new(env!("CARGO_BIN_EXE_creole"));
        Self::run(binary, Stdio::piped(), args, config, &[])
    }

    /// Under a limit of the system, such as `-n 128`.
    pub fn start_limited(limit: &str, args: &[&str], config: &str) -> Self {
        let mut shell = Command::new("sh");
        let binary = env!("CARGO_BIN_EXE_creole");
        shell.args(["-c", &format!("ulimit {limit}; exec \"$0\" \"$@\""), binary]);
        let args = [&["--no-check"], args].concat();
        Self::run(shell, Stdio::piped(), &args, config, &[])
    }

    fn run(
        mut program: Command,
        stderr: Stdio,
        args: &[&str],
        config: &str,
        env: &[(&str, &str)],
    ) -> Self {
        program.arg("serve");
        if !config.is_empty() {
            program.args(["--config", &file(config)]);
        }
        let mut child = program
            .args(if args.contains(&"--listen") { &[][..] } else { &["--listen", "127.0.0.1:0"] })
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
        let told = line.trim().strip_prefix("listening on http");
        let address = told.map(|rest| rest.trim_start_matches('s').trim_start_matches("://"));
        let address = address.unwrap_or_else(|| {
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

    /// The most bytes that were resident; `None` where there is no `/proc`.
    pub fn peak(&self) -> Option<u64> {
        self.memory("VmHWM")
    }

    fn memory(&self, name: &str) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find(|line| line.starts_with(name))?;
        let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
        Some(kib * 1024)
    }

    /// Resident bytes and open descriptors; `None` where there is no `/proc`.
    pub fn figures(&self) -> Option<(u64, usize)> {
        let resident = self.memory("VmRSS")?;
        let descriptors = format!("/proc/{}/fd", self.child.id());
        Some((resident, std::fs::read_dir(descriptors).ok()?.count()))
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

pub type Client = legacy::Client<HttpConnector, Full<Bytes>>;

/// Over HTTP/1, or over HTTP/2 without TLS.
pub fn client(http2: bool) -> Client {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    legacy::Client::builder(TokioExecutor::new()).http2_only(http2).build(connector)
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

/// A body of which the first piece comes, and no more.
pub struct Unfinished(Option<Bytes>);

impl Body for Unfinished {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let piece = self.0.take().map(|piece| Ok(Frame::data(piece)));
        piece.map_or(Poll::Pending, |piece| Poll::Ready(Some(piece)))
    }
}

/// Sends a request without an end over a connection that is there already, or opens one.
pub fn without_end(http2: bool) -> impl Fn(String, &str, usize) -> legacy::ResponseFuture {
    let client = legacy::Client::builder(TokioExecutor::new())
        .http2_only(http2)
        .build::<_, Unfinished>(HttpConnector::new());
    move |url, key, length| {
        let body = Unfinished(Some(vec![b' '; length].into()));
        let sent = Request::post(url).header("x-api-key", key).body(body);
        client.request(sent.unwrap())
    }
}
