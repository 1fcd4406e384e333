//! Tests of `socket.rs`.

use super::*;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::budget::Budget;
use crate::connections::Connections;

type Pair = (tokio::io::DuplexStream, Socket<tokio::io::DuplexStream>);

fn socket(budget: &Arc<Budget>) -> Pair {
    socket_of(&Connections::new(9), budget)
}

fn socket_of(connections: &Arc<Connections>, budget: &Arc<Budget>) -> Pair {
    let (client, server) = tokio::io::duplex(1 << 16);
    let connection = connections.client().unwrap();
    (client, Socket::new(server, connection, Arc::clone(budget), 100_000))
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
    // A request has come: its head is counted there.
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
