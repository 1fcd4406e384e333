//! A client with a connection of its own for each request: dropping the response closes it.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

use crate::{Worker, soon};

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
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {:?}", self.body))
    }

    #[must_use]
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

/// A response whose connection ends when it is dropped.
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
        .header("host", "creole.test")
        .header("content-type", "application/json")
        .header("x-api-key", "sk-client")
        .body(Full::new(body.into()))
        .unwrap()
}

/// Sends a request and gives the response when its head has come.
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

pub async fn post(worker: &Worker, path: &str, body: impl Into<Bytes>) -> Got {
    send(worker, request("POST", path, body)).await
}

pub async fn read(mut open: Open) -> Got {
    let mut bytes = Vec::new();
    let complete = loop {
        match soon("the body", open.response.body_mut().frame()).await {
            Some(Ok(frame)) => bytes.extend_from_slice(frame.data_ref().unwrap_or(&Bytes::new())),
            Some(Err(_)) => break false,
            None => break true,
        }
    };
    let body = String::from_utf8(bytes).unwrap();
    let (status, headers) = (open.response.status(), open.response.headers().clone());
    Got { status, headers, body, complete }
}

/// Reads on until `text` has come.
pub async fn read_until(open: &mut Open, seen: &mut String, text: &str) {
    while !seen.contains(text) {
        let frame = soon(text, open.response.body_mut().frame()).await;
        let frame = frame.unwrap_or_else(|| panic!("ended before {text:?}: {seen}")).unwrap();
        seen.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
    }
}
