//! HTTP client with a new connection for each request. Dropping the response closes the connection.

use bytes::Bytes;
use creole_rig::{Got, soon};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::Worker;

/// Response whose connection closes when this value is dropped.
#[derive(Debug)]
pub struct Open {
    pub response: Response<Incoming>,
    _connection: Connection,
}

#[derive(Debug)]
struct Connection(tokio::task::JoinHandle<()>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

pub fn request(method: &str, path: &str, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    Request::builder()
        .method(method)
        .uri(path)
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("x-api-key", "sk-client")
        .body(Full::new(body.into()))
        .unwrap()
}

/// Sends a request, and returns the response when its head has arrived.
pub async fn open(
    worker: &Worker,
    request: Request<Full<Bytes>>,
) -> Result<Open, Box<dyn std::error::Error + Send + Sync>> {
    let stream = TcpStream::connect(worker.address).await?;
    stream.set_nodelay(true)?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let connection = Connection(tokio::spawn(async move {
        let _ = connection.await;
    }));
    let response = sender.send_request(request).await?;
    Ok(Open { response, _connection: connection })
}

pub async fn send(worker: &Worker, request: Request<Full<Bytes>>) -> Got {
    read(soon("a response", open(worker, request)).await.unwrap()).await
}

pub async fn get(worker: &Worker, path: &str) -> Got {
    send(worker, request("GET", path, "")).await
}

/// Counts of live objects in the isolate of a Worker with test hooks.
#[derive(Debug)]
pub struct LiveCounts {
    /// Number of live exchanges in the isolate.
    pub live: u64,
    /// Number of requests and streams that wait for the WebAssembly module.
    pub waiting: u64,
    /// Size of the WebAssembly memory in bytes.
    pub bytes: u64,
}

pub async fn figures(worker: &Worker) -> LiveCounts {
    let mut asked = request("GET", "/", "");
    asked.headers_mut().insert("x-test-hook", "figures".parse().unwrap());
    let got = send(worker, asked).await.json();
    let figure = |name: &str| got[name].as_u64().unwrap();
    LiveCounts { live: figure("live"), waiting: figure("waiting"), bytes: figure("bytes") }
}

pub async fn post(worker: &Worker, path: &str, body: impl Into<Bytes>) -> Got {
    send(worker, request("POST", path, body)).await
}

pub async fn read(open: Open) -> Got {
    let Open { response, _connection } = open;
    creole_rig::read(response).await
}

/// Reads the body until `text` has arrived.
pub async fn read_until(open: &mut Open, seen: &mut String, text: &str) {
    creole_rig::read_until(&mut open.response, seen, text).await;
}
