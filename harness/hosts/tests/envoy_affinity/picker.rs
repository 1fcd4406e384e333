//! An endpoint picker like llm-d's: a server of Envoy's `ext_proc` that reads the whole request,
//! chooses a replica by the session, and names the replica in a header. The picker has just enough
//! gRPC and protobuf for that.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use bytes::{Bytes, BytesMut};
use creole_hosts::upstream::runtime;
use creole_rig::body::{Writer, Written, written};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{HeaderMap, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};

/// Header in which the picker names the replica, as the inference extension of the Gateway API
/// does.
const DESTINATION: &str = "x-gateway-destination-endpoint";

/// A request as the picker saw it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    headers: BTreeMap<String, String>,
    pub(crate) body: Bytes,
    pub(crate) picked: SocketAddr,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

pub(crate) struct Picker {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    session_header: &'static str,
    replicas: Vec<SocketAddr>,
    seen: Mutex<Vec<Seen>>,
}

impl Picker {
    pub(crate) fn start(session_header: &'static str, replicas: Vec<SocketAddr>) -> Self {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared { session_header, replicas, seen: Mutex::default() });
        let served = Arc::clone(&shared);
        runtime().spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            while let Ok((stream, _)) = listener.accept().await {
                let shared = Arc::clone(&served);
                let service = service_fn(move |request| serve(Arc::clone(&shared), request));
                let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                tokio::spawn(server.serve_connection(TokioIo::new(stream), service));
            }
        });
        Self { address, shared }
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.shared.seen.lock().unwrap().clone()
    }
}

async fn serve(
    shared: Arc<Shared>,
    request: hyper::Request<Incoming>,
) -> Result<Response<Written>, Infallible> {
    assert_eq!(request.uri().path(), "/envoy.service.ext_proc.v3.ExternalProcessor/Process");
    let (sender, body) = written(16);
    let mut response = Response::new(body);
    response.headers_mut().insert("content-type", "application/grpc".parse().unwrap());
    tokio::spawn(process(shared, request.into_body(), sender));
    Ok(response)
}

/// Processes one request of a client: its head, its body in pieces, and then the answers to both.
async fn process(shared: Arc<Shared>, mut stream: Incoming, mut sender: Writer) {
    let (mut waiting, mut headers, mut body) = (BytesMut::new(), BTreeMap::new(), Vec::new());
    while let Some(Ok(frame)) = stream.frame().await {
        waiting.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
        while let Some(message) = next_message(&mut waiting) {
            for (field, inside) in fields(&message) {
                match field {
                    REQUEST_HEADERS => headers = headers_of(inside),
                    REQUEST_BODY => {
                        let parts: BTreeMap<u64, Value<'_>> = values(inside).into_iter().collect();
                        if let Some(Value::Bytes(piece)) = parts.get(&1) {
                            body.extend_from_slice(piece);
                        }
                        if matches!(parts.get(&2), Some(Value::Number(1))) {
                            let picked = shared.pick(&headers);
                            for answer in [to_headers(picked), to_body(&body)] {
                                let _ = sender.send_data(framed(&answer)).await;
                            }
                            let body = std::mem::take(&mut body).into();
                            let headers = std::mem::take(&mut headers);
                            shared.seen.lock().unwrap().push(Seen { headers, body, picked });
                        }
                    }
                    _ => {}
                }
            }
        }
    }
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", "0".parse().unwrap());
    let _ = sender.send_trailers(trailers).await;
}

impl Shared {
    /// Picks a replica by the session alone, so that the same session comes to the same replica.
    fn pick(&self, headers: &BTreeMap<String, String>) -> SocketAddr {
        let session = headers.get(self.session_header).map_or("", String::as_str);
        let sum: usize = session.bytes().map(usize::from).sum();
        self.replicas[sum % self.replicas.len()]
    }
}

// Numbers of the fields in `ProcessingRequest` and `ProcessingResponse`.
const REQUEST_HEADERS: u64 = 2;
const REQUEST_BODY: u64 = 4;
const HEADERS_RESPONSE: u64 = 1;
const BODY_RESPONSE: u64 = 3;

/// Returns a `HeadersResponse` with a `CommonResponse` that sets the destination.
fn to_headers(picked: SocketAddr) -> Vec<u8> {
    let value = picked.to_string();
    let header = [bytes(1, DESTINATION.as_bytes()), bytes(3, value.as_bytes())].concat();
    let mutation = bytes(1, &bytes(1, &header));
    bytes(HEADERS_RESPONSE, &bytes(1, &bytes(2, &mutation)))
}

/// Returns a `BodyResponse` with a `StreamedBodyResponse`: the unchanged body, and its end.
fn to_body(body: &[u8]) -> Vec<u8> {
    let streamed = [bytes(1, body), vec![2 << 3, 1]].concat();
    let mutation = bytes(3, &streamed);
    bytes(BODY_RESPONSE, &bytes(1, &bytes(3, &mutation)))
}

/// Returns the headers in a message `HttpHeaders`.
fn headers_of(message: &[u8]) -> BTreeMap<String, String> {
    let mut headers = BTreeMap::new();
    for (_, map) in fields(message).into_iter().filter(|(field, _)| *field == 1) {
        for (_, header) in fields(map) {
            let parts: BTreeMap<u64, &[u8]> = fields(header).into_iter().collect();
            let text =
                |at| String::from_utf8_lossy(parts.get(&at).unwrap_or(&&[][..])).into_owned();
            headers.insert(text(1), if parts.contains_key(&3) { text(3) } else { text(2) });
        }
    }
    headers
}

enum Value<'m> {
    Number(u64),
    Bytes(&'m [u8]),
}

/// Returns all fields of a protobuf message, including numbers.
fn values(message: &[u8]) -> Vec<(u64, Value<'_>)> {
    let (mut rest, mut found) = (message, Vec::new());
    while !rest.is_empty() {
        let tag = number(&mut rest);
        let value = match tag & 7 {
            0 => Value::Number(number(&mut rest)),
            2 => {
                let length = usize::try_from(number(&mut rest)).unwrap();
                let (bytes, after) = rest.split_at(length);
                rest = after;
                Value::Bytes(bytes)
            }
            other => panic!("a field of the type {other}"),
        };
        found.push((tag >> 3, value));
    }
    found
}

/// Returns the fields of a protobuf message that are messages, texts or bytes.
fn fields(message: &[u8]) -> Vec<(u64, &[u8])> {
    let inside = values(message).into_iter().filter_map(|(field, value)| match value {
        Value::Bytes(bytes) => Some((field, bytes)),
        Value::Number(_) => None,
    });
    inside.collect()
}

fn number(rest: &mut &[u8]) -> u64 {
    let (mut number, mut shift) = (0, 0);
    loop {
        let (byte, after) = rest.split_first().expect("a number");
        *rest = after;
        number |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            return number;
        }
    }
}

/// Returns the encoding of a protobuf field that holds bytes.
fn bytes(field: u64, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for mut number in [field << 3 | 2, content.len() as u64] {
        while number >= 0x80 {
            out.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        out.push(number as u8);
    }
    out.extend_from_slice(content);
    out
}

/// Returns a gRPC message that is not compressed, with its length.
fn framed(message: &[u8]) -> Bytes {
    let length = u32::try_from(message.len()).unwrap();
    [&[0][..], &length.to_be_bytes(), message].concat().into()
}

fn next_message(waiting: &mut BytesMut) -> Option<Bytes> {
    let length = u32::from_be_bytes(waiting.get(1..5)?.try_into().unwrap()) as usize;
    if waiting.len() < length + 5 {
        return None;
    }
    Some(waiting.split_to(length + 5).freeze().slice(5..))
}
