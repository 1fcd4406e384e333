//! Scripted upstream for hosts that use sockets. It answers the requests of each trial byte for
//! byte and chunk by chunk, over HTTP/1 and HTTP/2.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use creole_rig::body::{Writer, Written, written};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{HeaderMap, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::runtime::Runtime;

use crate::{Answer, End, Header, Seen};

/// Maximum size of a request body that is kept; of longer bodies only the length is.
pub const KEPT_BYTES_MAX: usize = 4 << 20;

/// Returns the runtime whose threads client and upstream share.
pub fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
    })
}

/// Server that sends scripted answers.
#[derive(Debug)]
pub struct Upstream {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    answers: Mutex<BTreeMap<String, Arc<Answer>>>,
    /// Refusals by trial key: the text in request bodies that is refused, and the error response.
    refusals: Mutex<BTreeMap<String, (&'static str, Arc<Answer>)>>,
    seen: Mutex<BTreeMap<String, Vec<Seen>>>,
    /// Number of response bodies that the upstream is sending.
    open: AtomicUsize,
}

impl Upstream {
    /// Returns the shared upstream of this process.
    pub fn shared() -> &'static Self {
        static UPSTREAM: OnceLock<Upstream> = OnceLock::new();
        UPSTREAM.get_or_init(Self::start)
    }

    /// Starts another upstream, for tests with replicas.
    pub fn start() -> Self {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        let served = Arc::clone(&shared);
        runtime().spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            loop {
                let Ok((stream, _)) = listener.accept().await else { continue };
                let _ = stream.set_nodelay(true);
                let shared = Arc::clone(&served);
                tokio::spawn(async move {
                    let service = service_fn(move |request| respond(Arc::clone(&shared), request));
                    let mut server = auto::Builder::new(TokioExecutor::new());
                    server.http1().preserve_header_case(false).max_buf_size(1 << 20);
                    server.http2().max_concurrent_streams(2000);
                    let _ = server.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Self { address, shared }
    }

    /// Returns the address at which the upstream listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sets the answer for a trial's key from now on, and forgets the key's recorded requests.
    pub fn expect(&self, key: &str, answer: Answer) {
        self.shared.answers.lock().unwrap().insert(key.to_owned(), Arc::new(answer));
        self.shared.seen.lock().unwrap().remove(key);
    }

    /// Refuses requests with this key from now on, if their bodies contain `text`.
    pub fn refuse(&self, key: &str, text: &'static str, refusal: Answer) {
        self.shared.refusals.lock().unwrap().insert(key.to_owned(), (text, Arc::new(refusal)));
    }

    /// Returns the requests that were received for this key.
    pub fn seen(&self, key: &str) -> Vec<Seen> {
        self.shared.seen.lock().unwrap().get(key).cloned().unwrap_or_default()
    }

    /// Returns the number of answers that are being sent.
    pub fn open(&self) -> usize {
        self.shared.open.load(Ordering::SeqCst)
    }
}

/// Returns the names and values of the headers in a map.
pub fn headers_of(map: &HeaderMap) -> Vec<Header> {
    let text =
        |value: &hyper::header::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    map.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect()
}

/// Returns a header map with these headers.
pub fn map_of(headers: &[Header]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let name: hyper::header::HeaderName = name.parse().unwrap();
        map.append(name, value.parse().unwrap());
    }
    map
}

struct Open(Arc<Shared>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn respond(
    shared: Arc<Shared>,
    request: hyper::Request<Incoming>,
) -> Result<Response<Written>, Infallible> {
    let (head, mut body) = request.into_parts();
    let key = head.uri.path().split('/').nth(1).unwrap_or_default().to_owned();
    let (mut kept, mut bytes) = (Vec::new(), 0);
    while let Some(Ok(frame)) = body.frame().await {
        let Some(data) = frame.data_ref() else { continue };
        bytes += data.len();
        if bytes <= KEPT_BYTES_MAX {
            kept.extend_from_slice(data);
        }
    }
    if bytes > KEPT_BYTES_MAX {
        kept.clear();
    }
    let seen = Seen {
        method: head.method.to_string(),
        path: head.uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
        headers: headers_of(&head.headers),
        body: kept.into(),
        bytes,
    };
    let refusal = shared.refusals.lock().unwrap().get(&key).cloned();
    let refusal = refusal.filter(|(text, _)| String::from_utf8_lossy(&seen.body).contains(text));
    shared.seen.lock().unwrap().entry(key.clone()).or_default().push(seen);
    let answer = shared.answers.lock().unwrap().get(&key).cloned();
    let answer = refusal.map(|(_, refusal)| refusal).or(answer).unwrap_or_else(|| {
        Arc::new(Answer::whole(418, "text/plain", format!("no answer for the key {key:?}")))
    });
    tokio::time::sleep(answer.delay).await;
    let (sender, body) = written(1);
    let mut response = Response::new(body);
    *response.status_mut() = answer.status.try_into().unwrap();
    *response.headers_mut() = map_of(&answer.headers);
    shared.open.fetch_add(1, Ordering::SeqCst);
    let open = Open(shared);
    tokio::spawn(async move {
        let _open = open;
        write(&answer, sender).await;
    });
    Ok(response)
}

async fn write(answer: &Answer, mut sender: Writer) {
    for piece in &answer.pieces {
        if !answer.pause.is_zero() {
            tokio::time::sleep(answer.pause).await;
        }
        if !piece.is_empty() && sender.send_data(piece.clone()).await.is_err() {
            return;
        }
    }
    match answer.end {
        End::Complete => {
            if !answer.trailers.is_empty() {
                let _ = sender.send_trailers(map_of(&answer.trailers)).await;
            }
        }
        End::Aborted => {
            // Written bytes must leave before the connection is cut.
            tokio::time::sleep(Duration::from_millis(50)).await;
            sender.abort("cut".into());
        }
        End::Silent => {
            // Empty data is sent until the other side gives up.
            let nothing = hyper::body::Frame::data(Bytes::new());
            let _ = sender.send(nothing).await;
            while sender.send_data(Bytes::new()).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}
