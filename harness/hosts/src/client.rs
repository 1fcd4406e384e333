//! HTTP client with a new connection for each request, so that a broken connection disturbs no
//! other request.

use std::net::SocketAddr;
use std::time::Duration;

use creole_rig::body::{Writer, Written, written};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::{Response, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

use crate::upstream::{Upstream, headers_of, map_of, runtime};
use crate::{End, Got, Request, Trial};

/// Timeout longer than any request of the tests takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Sends the request of a trial to the host at this address. Returns the response, and the requests
/// that the upstream saw.
pub(crate) fn send_trial(address: SocketAddr, trial: &Trial) -> Got {
    let upstream = Upstream::shared();
    upstream.expect(&trial.key, trial.answer.clone());
    let mut got = runtime().block_on(send(address, &trial.request));
    got.upstream = upstream.seen(&trial.key);
    got
}

/// Sends a request and returns the response.
pub async fn send(address: SocketAddr, request: &Request) -> Got {
    send_within(address, request, PATIENCE).await
}

/// Sends a request and waits at most `patience`. A response that is incomplete by then is returned
/// with [`End::Silent`].
pub async fn send_within(address: SocketAddr, request: &Request, patience: Duration) -> Got {
    let mut got = Got::nothing(End::Silent);
    let _ = tokio::time::timeout(patience, exchange(address, request, &mut got)).await;
    got
}

async fn exchange(address: SocketAddr, request: &Request, got: &mut Got) {
    let (sender, body) = written(4);
    let Some(response) = start(address, request, body, sender, got).await else { return };
    got.status = response.status().as_u16();
    got.headers = headers_of(response.headers());
    let mut body = response.into_body();
    loop {
        if request.leave_after.is_some_and(|bytes| got.body.len() >= bytes) {
            return;
        }
        match body.frame().await {
            Some(Ok(frame)) => {
                if let Some(data) = frame.data_ref() {
                    got.body.extend_from_slice(data);
                }
            }
            Some(Err(_)) => {
                got.end = End::Aborted;
                return;
            }
            None => {
                got.end = End::Complete;
                return;
            }
        }
    }
}

async fn start(
    address: SocketAddr,
    request: &Request,
    body: Written,
    mut sender: Writer,
    got: &mut Got,
) -> Option<Response<Incoming>> {
    let head = hyper::Request::builder()
        .method(request.method.as_str())
        .uri(if request.http2 {
            format!("http://{address}{}", request.path)
        } else {
            request.path.clone()
        })
        .version(if request.http2 { Version::HTTP_2 } else { Version::HTTP_11 });
    let mut message = head.body(body).unwrap();
    let mut headers = map_of(&request.headers);
    if !request.http2 {
        headers.insert("host", address.to_string().parse().unwrap());
    }
    let whole = request.piece_bytes == 0;
    if whole && !(request.body.is_empty() && matches!(request.method.as_str(), "GET" | "HEAD")) {
        headers.insert("content-length", request.body.len().into());
    }
    *message.headers_mut() = headers;
    let stream = TcpStream::connect(address).await;
    let Ok(stream) = stream else {
        got.end = End::Aborted;
        return None;
    };
    let _ = stream.set_nodelay(true);
    let (content, size, trailers) =
        (request.body.clone(), request.piece_bytes, request.trailers.clone());
    tokio::spawn(async move {
        let size = if size == 0 { 1 << 20 } else { size };
        for at in (0..content.len()).step_by(size) {
            let piece = content.slice(at..content.len().min(at + size));
            if sender.send_data(piece).await.is_err() {
                return;
            }
        }
        if !trailers.is_empty() {
            let _ = sender.send_trailers(map_of(&trailers)).await;
        }
    });
    let io = TokioIo::new(stream);
    let response = if request.http2 {
        let (mut client, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await.ok()?;
        let running = tokio::spawn(connection);
        leave(request, client.send_request(message), running).await
    } else {
        let (mut client, connection) = hyper::client::conn::http1::handshake(io).await.ok()?;
        let running = tokio::spawn(connection);
        leave(request, client.send_request(message), running).await
    };
    match response {
        Some(Ok(response)) => Some(response),
        Some(Err(_)) => {
            got.end = End::Aborted;
            None
        }
        None => None,
    }
}

/// Waits for the response, unless the client should disconnect before the response's head.
async fn leave<T>(
    request: &Request,
    response: impl Future<Output = hyper::Result<Response<Incoming>>>,
    connection: tokio::task::JoinHandle<T>,
) -> Option<hyper::Result<Response<Incoming>>> {
    if request.leave_after != Some(0) {
        return Some(response.await);
    }
    let _ = tokio::time::timeout(Duration::from_millis(50), response).await;
    connection.abort();
    None
}
