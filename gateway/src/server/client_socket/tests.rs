//! Tests of `client_socket.rs`.

use super::*;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http2;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};

use crate::server::budget::Budget;
use crate::server::connections::Connections;
use crate::server::workers;

type Pair = (tokio::io::DuplexStream, ClientSocket<tokio::io::DuplexStream>);

fn socket(budget: &Arc<Budget>) -> Pair {
    socket_of(&Connections::new(9), budget)
}

fn socket_of(connections: &Arc<Connections>, budget: &Arc<Budget>) -> Pair {
    let (client, server) = tokio::io::duplex(1 << 16);
    let connection = connections.client().unwrap();
    (client, ClientSocket::new(server, connection, Arc::clone(budget), 100_000))
}

#[tokio::test]
async fn heads_that_are_not_complete_share_the_budget() {
    let budget = Budget::new(1 << 20);
    let connections = Connections::new(99);
    let mut sockets: Vec<_> = (0..40).map(|_| socket_of(&connections, &budget)).collect();
    let mut refused = 0;
    for (client, socket) in &mut sockets {
        for part in [40_000, 1] {
            client.write_all(&vec![b'a'; part]).await.unwrap();
            let read = socket.read_exact(&mut vec![0; part]).await;
            refused += usize::from(read.is_err_and(|e| e.kind() == io::ErrorKind::OutOfMemory));
        }
    }
    assert_eq!(refused, 16, "a megabyte but its reserve has room for 24");
    // The connection now has a request, with which its head is counted.
    let (client, socket) = &mut sockets[0];
    let _request = socket.client.begin();
    client.write_all(b"a").await.unwrap();
    socket.read_exact(&mut [0; 1]).await.unwrap();
    let other = budget.begin(creole::Owner::of_connection(99), Arc::default());
    assert!({ other }.grow(40_000));
}

#[tokio::test]
async fn an_idle_client_that_answers_pings_holds_nothing() {
    let budget = Budget::new(1 << 20);
    let (mut client, mut socket) = socket(&budget);
    drop(socket.client.begin());
    let (ping, window) = (b"\0\0\x08\x06\x01\0\0\0\0pingpong", b"\0\0\x04\x08\0\0\0\0\0\0\x01\0\0");
    for sent in [&ping[..], &[&ping[..], window].concat()].repeat(2000) {
        client.write_all(sent).await.unwrap();
        socket.read_exact(&mut vec![0; sent.len()]).await.unwrap();
    }
    assert_eq!(socket.unanswered, 0);
    // The head of a request counts, also behind a ping and in a frame that is not whole.
    let head = [&ping[..], b"\0\x40\0\x01\x04\0\0\0\x01", &[b'a'; 100]].concat();
    for (sent, counted) in [(&head[..], 126), (b"GET / HTTP/1.1\r\n", 142), (&ping[..9], 151)] {
        client.write_all(sent).await.unwrap();
        socket.read_exact(&mut vec![0; sent.len()]).await.unwrap();
        assert_eq!(socket.unanswered, counted);
    }
}

#[tokio::test]
async fn a_body_that_comes_with_its_head_does_not_count_as_one() {
    let budget = Budget::new(256 << 20);
    // Unauthenticated requests use up all memory that they may have.
    let begin = |owner| budget.begin_stranger(creole::Owner::of_connection(owner), Arc::default());
    let mut strangers: Vec<_> = (100..1500).map(begin).collect();
    strangers.iter_mut().for_each(|one| while one.grow(16 << 10) {});
    let connection = Connections::new(9).client().unwrap();
    let (near, far) = tokio::io::duplex(1 << 20);
    let (read, write) = tokio::io::split(far);
    let asking = Arc::clone(&connection);
    let service = service_fn(move |request: Request<hyper::body::Incoming>| {
        let busy = asking.begin();
        async move {
            let body = http_body_util::BodyExt::collect(request).await?.to_bytes();
            drop(busy);
            Ok::<_, hyper::Error>(Response::new(Full::new(body)))
        }
    });
    let builder = http2::Builder::new(TokioExecutor::new());
    let (mut sender, driver) = builder.handshake(TokioIo::new(near)).await.unwrap();
    tokio::spawn(driver);
    let body = Full::new(Bytes::from(vec![b' '; 60_000]));
    let answer = tokio::spawn(sender.send_request(Request::new(body)));
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    // The whole request has been written now.
    let socket = tokio::io::join(ClientSocket::new(read, connection, budget, 128 << 10), write);
    let builder = workers::builder();
    tokio::spawn(builder.serve_connection(TokioIo::new(socket), service).into_owned());
    assert_eq!(answer.await.unwrap().unwrap().status(), 200);
}
