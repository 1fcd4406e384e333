//! Tests of `watched_body.rs`.

use super::*;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http2;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::time::{Instant, sleep, timeout};

use crate::server::connections::{ClientConnection, Connections, Stage};

/// Size of the answer's body in bytes: several chunks.
const ANSWER_BYTES: usize = 200_000;

/// Returns an HTTP/2 answer whose client accepts one chunk at a time, with the client's connection
/// and the record of all connections.
async fn answer() -> (Response<hyper::body::Incoming>, Arc<ClientConnection>, Arc<Connections>) {
    let connections = Connections::new(1);
    let place = connections.client().unwrap();
    let (client, server) = tokio::io::duplex(1 << 16);
    let asked = Arc::clone(&place);
    let service = service_fn(move |_| {
        let mut busy = asked.begin();
        busy.reach(Stage::Whole);
        let body = WatchedBody::new(Body::whole("x".repeat(ANSWER_BYTES)), busy);
        async { Ok::<_, Infallible>(Response::new(body)) }
    });
    let builder = auto::Builder::new(TokioExecutor::new());
    let connection = builder.serve_connection(TokioIo::new(server), service).into_owned();
    tokio::spawn(async move { connection.await.is_ok() });
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.initial_stream_window_size(64 << 10);
    let (mut sender, connection) = builder.handshake(TokioIo::new(client)).await.unwrap();
    tokio::spawn(async move { connection.await.is_ok() });
    let answer = sender.send_request(Request::new(Empty::<Bytes>::new())).await.unwrap();
    (answer, place, connections)
}

#[tokio::test(start_paused = true)]
async fn an_answer_in_http2_for_which_there_is_no_window_is_given_up() {
    let (answer, place, connections) = answer().await;
    let since = Instant::now();
    let reason = timeout(Duration::from_secs(1000), place.ended()).await;
    assert_eq!(reason, Ok("an answer is not read"));
    assert!((300..=360).contains(&since.elapsed().as_secs()), "{:?}", since.elapsed());
    assert!(connections.client().is_none(), "its place is taken until then");
    drop(answer);
}

#[tokio::test(start_paused = true)]
async fn an_answer_in_http2_that_is_read_slowly_goes_on_and_is_busy_to_its_end() {
    let (mut answer, place, connections) = answer().await;
    let read = async {
        let mut read = 0;
        while let Some(frame) = answer.frame().await {
            assert!(place.requests().1 || read > ANSWER_BYTES - (64 << 10), "{read}");
            read += frame.unwrap().data_ref().map_or(0, Bytes::len);
            sleep(Duration::from_secs(50)).await;
        }
        read
    };
    tokio::select! {
        read = read => assert_eq!(read, ANSWER_BYTES),
        reason = place.ended() => panic!("{reason}"),
    }
    assert!(!place.requests().1);
    assert!(timeout(Duration::from_secs(1000), place.ended()).await.is_err());
    assert!(connections.client().is_some());
}
