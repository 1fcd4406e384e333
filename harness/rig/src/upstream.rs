//! Scripted upstream over HTTP/1 and HTTP/2.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, Incoming};
use hyper::header::HeaderMap;
use hyper::service::service_fn;
use hyper::{Request, Response, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::body::{Failure, Writer, Written, written};

/// Request that the upstream received.
#[derive(Clone, Debug)]
pub struct Received {
    pub method: String,
    pub path: String,
    pub version: Version,
    pub headers: HeaderMap,
    pub body: String,
}

/// Body of an upstream's response, which a test writes. Dropping the writer ends the body normally.
pub type Out = Writer;

/// Guard that counts a response body as long as the upstream sends the body.
struct Counted {
    body: Written,
    open: Arc<AtomicUsize>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Body for Counted {
    type Data = Bytes;
    type Error = Failure;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }
}

/// Running upstream with a script.
#[derive(Clone)]
pub struct Upstream {
    pub address: SocketAddr,
    pub asked: Arc<Mutex<Vec<Received>>>,
    /// Number of response bodies that the upstream is sending.
    pub open: Arc<AtomicUsize>,
    /// Maximum number of response bodies that the upstream sent at the same time.
    pub peak: Arc<AtomicUsize>,
    /// Number of accepted connections.
    pub connections: Arc<AtomicUsize>,
}

type Script = dyn Fn(Received, Out) -> (u16, HeaderMap) + Send + Sync;

impl Upstream {
    /// Starts an upstream. For each request, `script` gets the request and a body to write, and
    /// returns status and content type.
    pub async fn start<F>(script: F) -> Self
    where
        F: Fn(Received, Out) -> (u16, &'static str) + Send + Sync + 'static,
    {
        Self::run(None, with_headers(script)).await
    }

    /// Starts an upstream behind TLS.
    pub async fn start_with_tls<F>(tls: TlsAcceptor, script: F) -> Self
    where
        F: Fn(Received, Out) -> (u16, &'static str) + Send + Sync + 'static,
    {
        Self::run(Some(tls), with_headers(script)).await
    }

    /// Starts an upstream whose `script` returns the status and all headers of each response.
    pub async fn start_with_headers<F>(script: F) -> Self
    where
        F: Fn(Received, Out) -> (u16, HeaderMap) + Send + Sync + 'static,
    {
        Self::run(None, Arc::new(script)).await
    }

    async fn run(tls: Option<TlsAcceptor>, script: Arc<Script>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let upstream = Self {
            address: listener.local_addr().unwrap(),
            asked: Arc::default(),
            open: Arc::default(),
            peak: Arc::default(),
            connections: Arc::default(),
        };
        let serving = upstream.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                serving.connections.fetch_add(1, Ordering::SeqCst);
                let _ = stream.set_nodelay(true);
                let (serving, script, tls) = (serving.clone(), script.clone(), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => serving.serve(stream, script).await,
                        Some(tls) => {
                            let Ok(stream) = tls.accept(stream).await else { return };
                            serving.serve(stream, script).await;
                        }
                    }
                });
            }
        });
        upstream
    }

    async fn serve<S>(self, stream: S, script: Arc<Script>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let service = service_fn(|request: Request<Incoming>| {
            let (upstream, script) = (self.clone(), Arc::clone(&script));
            async move { Ok::<_, Infallible>(upstream.answer(request, &script).await) }
        });
        let mut builder = auto::Builder::new(TokioExecutor::new());
        builder.http2().max_concurrent_streams(1024);
        let _ = builder.serve_connection(TokioIo::new(stream), service).await;
    }

    async fn answer(&self, request: Request<Incoming>, script: &Arc<Script>) -> Response<Counted> {
        let (head, body) = request.into_parts();
        let Ok(body) = body.collect().await else { return Response::new(self.body().1) };
        let asked = Received {
            method: head.method.to_string(),
            path: head.uri.path_and_query().unwrap().as_str().to_owned(),
            version: head.version,
            headers: head.headers,
            body: String::from_utf8_lossy(&body.to_bytes()).into_owned(),
        };
        self.asked.lock().unwrap().push(asked.clone());
        let (out, body) = self.body();
        self.peak.fetch_max(self.open.load(Ordering::SeqCst), Ordering::SeqCst);
        let (status, headers) = script(asked, out);
        let mut response = Response::new(body);
        *response.status_mut() = hyper::StatusCode::from_u16(status).unwrap();
        *response.headers_mut() = headers;
        response.headers_mut().insert("x-request-id", "up-1".parse().unwrap());
        response
    }

    fn body(&self) -> (Out, Counted) {
        self.open.fetch_add(1, Ordering::SeqCst);
        let (out, body) = written(1);
        (out, Counted { body, open: Arc::clone(&self.open) })
    }

    /// Starts an upstream that answers every request with the same whole body.
    pub async fn answering(status: u16, kind: &'static str, body: &'static str) -> Self {
        Self::start(move |_, mut out| {
            tokio::spawn(async move { out.send_data(Bytes::from(body)).await });
            (status, kind)
        })
        .await
    }

    /// Starts an upstream that refuses requests with any of these members. The error names the
    /// first refused member.
    pub async fn refusing(names: &'static [&'static str]) -> Self {
        Self::start(move |asked, mut out| {
            let has = |name: &&&str| asked.body.contains(&format!("\"{name}\""));
            let refused = names.iter().find(has);
            let body = refused.map_or_else(
                || crate::COMPLETION.to_owned(),
                |name| format!(r#"{{"error":{{"message":"Unsupported parameter: '{name}'"}}}}"#),
            );
            tokio::spawn(async move { out.send_data(Bytes::from(body)).await });
            (if refused.is_some() { 400 } else { 200 }, "application/json")
        })
        .await
    }

    /// Starts an upstream whose bodies the test writes.
    pub async fn written() -> (Self, tokio::sync::mpsc::UnboundedReceiver<Out>) {
        let (outs, received) = tokio::sync::mpsc::unbounded_channel();
        let upstream = Self::start(move |_, out| {
            outs.send(out).unwrap();
            (200, crate::EVENT_STREAM)
        })
        .await;
        (upstream, received)
    }

    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    #[must_use]
    pub fn last(&self) -> Received {
        self.asked.lock().unwrap().last().unwrap().clone()
    }

    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.open.load(Ordering::SeqCst) == 0
    }
}

fn with_headers<F>(script: F) -> Arc<Script>
where
    F: Fn(Received, Out) -> (u16, &'static str) + Send + Sync + 'static,
{
    Arc::new(move |asked, out| {
        let (status, kind) = script(asked, out);
        (status, HeaderMap::from_iter([(hyper::header::CONTENT_TYPE, kind.parse().unwrap())]))
    })
}

/// Returns the address of a port on which no server listens.
pub async fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}/v1", listener.local_addr().unwrap())
}
