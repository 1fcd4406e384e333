//! Tests of `open_calls.rs`.

use super::*;
use std::future::poll_fn;
use std::num::NonZero;

use creole::Config;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::server::offload::Offload;
use crate::upstream::client;

pub(crate) fn means(config: Arc<Config>) -> Arc<Means> {
    Arc::new(Means {
        caller: Caller::new(
            &config,
            &client::connector(&Config::default()).unwrap(),
            &Arc::default(),
        ),
        translations: Translations::new(Offload::start(NonZero::<usize>::MIN).unwrap()),
        documents: Arc::new(Documents::new()),
        fetches: Arc::new(FetchLimits::new()),
    })
}

/// Opens the calls 1 and 2, each for an upstream of its own, and returns the upstreams'
/// connections.
async fn two_calls() -> (OpenCalls, TcpStream, TcpStream) {
    let first = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let second = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = |one: &TcpListener| format!("http://{}", one.local_addr().unwrap());
    let document = format!(
        r#"{{"upstreams": {{"first": {{"url": "{}"}}, "second": {{"url": "{}"}}}}}}"#,
        url(&first),
        url(&second)
    );
    let means = means(Arc::new(Config::from_json(&document, |_| None).unwrap()));
    let mut calls = OpenCalls::default();
    for (id, upstream) in [(1, "first"), (2, "second")] {
        let call = Call {
            id: CallId(id),
            to: To::Upstream(upstream.to_owned()),
            path: "/v1/chat/completions".to_owned(),
            headers: Vec::new(),
            body: b"{}".to_vec(),
        };
        calls.send(call, Owner(1), &means);
    }
    assert_eq!(calls.sent_bytes(), 4);
    let accepted = async { tokio::join!(asked(&first), asked(&second)) };
    let (first, second) = tokio::select! {
        event = next(&mut calls) => panic!("{event:?}"),
        accepted = accepted => accepted,
    };
    (calls, first, second)
}

/// Accepts a connection, and reads the request on it.
async fn asked(upstream: &TcpListener) -> TcpStream {
    let (mut stream, _) = upstream.accept().await.unwrap();
    let mut received = Vec::new();
    while !received.ends_with(b"\r\n\r\n{}") {
        assert_ne!(stream.read_buf(&mut received).await.unwrap(), 0);
    }
    stream
}

async fn next(calls: &mut OpenCalls) -> (u32, CallEvent) {
    let (id, event) = poll_fn(|context| calls.poll_event(context)).await;
    (id.0, event)
}

/// Writes a head and four bytes of a body, of which `length` are announced.
async fn answer(upstream: &mut TcpStream, length: usize, body: &str) {
    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}");
    upstream.write_all(answer.as_bytes()).await.unwrap();
}

#[tokio::test]
async fn two_calls_are_open_at_once_and_each_event_has_the_id_of_its_call() {
    let (mut calls, mut first, mut second) = two_calls().await;
    answer(&mut second, 8, "late").await;
    assert!(matches!(next(&mut calls).await, (2, CallEvent::Head(200, _))));
    assert_eq!(calls.sent_bytes(), 2);
    assert!(matches!(next(&mut calls).await, (2, CallEvent::Piece(piece)) if piece == "late"));
    answer(&mut first, 4, "soon").await;
    assert!(matches!(next(&mut calls).await, (1, CallEvent::Head(200, _))));
    assert!(matches!(next(&mut calls).await, (1, CallEvent::Piece(piece)) if piece == "soon"));
    assert!(matches!(next(&mut calls).await, (1, CallEvent::End(End::Complete))));
    drop(second);
    assert!(matches!(next(&mut calls).await, (2, CallEvent::End(End::Aborted))));
    assert_eq!((calls.sent_bytes(), calls.all.len()), (0, 0));
}

#[tokio::test]
async fn a_cancelled_call_leaves_the_other_running() {
    for (has_head, how) in [(false, Cancel::ReadOut), (false, Cancel::Cut), (true, Cancel::Cut)] {
        let (mut calls, mut first, mut second) = two_calls().await;
        if has_head {
            answer(&mut first, 8, "").await;
            assert!(matches!(next(&mut calls).await, (1, CallEvent::Head(200, _))));
        }
        calls.cancel(CallId(1), how);
        assert_eq!(first.read(&mut [0]).await.unwrap_or_default(), 0, "{has_head} {how:?}");
        answer(&mut second, 4, "kept").await;
        assert!(matches!(next(&mut calls).await, (2, CallEvent::Head(200, _))));
        assert!(matches!(next(&mut calls).await, (2, CallEvent::Piece(piece)) if piece == "kept"));
        assert!(matches!(next(&mut calls).await, (2, CallEvent::End(End::Complete))));
    }
}

#[tokio::test]
async fn a_call_whose_end_is_near_is_read_to_its_end_beside_the_other() {
    let (mut calls, mut first, _second) = two_calls().await;
    answer(&mut first, 8, "near").await;
    assert!(matches!(next(&mut calls).await, (1, CallEvent::Head(200, _))));
    calls.cancel(CallId(1), Cancel::ReadOut);
    assert_eq!(calls.all.len(), 1);
    first.write_all(b"end.").await.unwrap();
    // The connection is kept for the next request.
    let closed = tokio::time::timeout(ENDING * 3, first.read(&mut [0])).await;
    assert!(closed.is_err(), "{closed:?}");
}
