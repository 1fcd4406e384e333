//! Tests of `socket.rs`.

use super::*;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::budget::Budget;
use crate::connections::Connections;

fn socket(budget: &Arc<Budget>) -> (tokio::io::DuplexStream, Socket<tokio::io::DuplexStream>) {
    let (client, server) = tokio::io::duplex(1 << 16);
    let connection = Connections::new(9, 9).client().unwrap();
    (client, Socket::new(server, connection, budget.hold(), 100_000))
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_nothing_is_given_up() {
    let (mut client, mut socket) = socket(&Budget::new(1 << 20));
    let write = async {
        let since = Instant::now();
        let error = socket.write_all(&[0; 1 << 20]).await.unwrap_err();
        (error.kind(), since.elapsed().as_secs())
    };
    let read = async {
        // It reads now and then, and stops.
        for _ in 0..4 {
            tokio::time::sleep(Duration::from_secs(200)).await;
            client.read_exact(&mut [0; 1000]).await.unwrap();
        }
    };
    let ((kind, seconds), ()) = tokio::join!(write, read);
    assert_eq!(kind, io::ErrorKind::TimedOut);
    assert!((1100..1102).contains(&seconds), "{seconds}");
}

#[tokio::test]
async fn a_client_is_busy_until_the_end_of_its_answer_is_written() {
    let connections = Connections::new(1, 9);
    let connection = connections.client().unwrap();
    let (mut client, server) = tokio::io::duplex(1 << 10);
    let held = Budget::new(1 << 20).hold();
    let mut socket = Socket::new(server, Arc::clone(&connection), held, 100_000);
    drop(connection.begin());
    let write = socket.write_all(&[0; 3000]);
    let read = async {
        tokio::task::yield_now().await;
        assert!(connections.client().is_none(), "its end would be cut off");
        client.read_exact(&mut [0; 3000]).await.unwrap();
    };
    tokio::join!(write, read).0.unwrap();
    assert!(connections.client().is_some());
}

#[tokio::test]
async fn heads_that_are_not_complete_share_the_budget() {
    let budget = Budget::new(1 << 20);
    let mut sockets: Vec<_> = (0..40).map(|_| socket(&budget)).collect();
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
    assert!(budget.hold().grow(40_000));
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
