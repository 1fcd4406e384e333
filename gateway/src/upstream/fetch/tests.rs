//! Tests of `fetch.rs`.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::*;

/// Starts a server on a loopback address that answers with a redirection. Returns its port and the
/// count of its connections.
fn server() -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    thread::spawn(move || {
        for stream in listener.incoming() {
            counted.fetch_add(1, Ordering::SeqCst);
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 1024]);
            let head = "HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/\r\ncontent-length: 0\r\n\r\n";
            let _ = stream.write_all(head.as_bytes());
        }
    });
    (port, count)
}

fn fetch(url: String, may_be_private: bool) -> Fetch {
    Fetch { url, may_be_private, cluster: String::new() }
}

fn web() -> Fetcher {
    Fetcher::new(&client::connector(&[]).unwrap())
}

#[tokio::test]
async fn no_spelling_of_a_private_address_is_connected_to() {
    let (web, (port, count)) = (web(), server());
    for host in [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "127.1",
        "0",
        "0.0.0.0",
        "[::]",
        "localhost.",
        "169.254.169.254",
        "10.0.0.1",
    ] {
        let sent = web.send(&fetch(format!("http://{host}:{port}/"), false), Vec::new()).await;
        assert!(matches!(sent, Err(Failure::Unreachable(_))), "{host}");
        assert_eq!(count.load(Ordering::SeqCst), 0, "{host}");
    }
}

#[tokio::test]
async fn a_server_that_the_operator_names_may_be_private_and_its_redirection_is_an_answer() {
    let (web, (port, count)) = (web(), server());
    for host in ["127.0.0.1", "localhost"] {
        let sent =
            web.send(&fetch(format!("http://{host}:{port}/"), true), Vec::new()).await.unwrap();
        assert_eq!(sent.status(), 302);
    }
    assert!(count.load(Ordering::SeqCst) > 0);
    // A kept connection to this address is not used, either.
    let sent = web.send(&fetch(format!("http://localhost:{port}/"), false), Vec::new()).await;
    assert!(matches!(sent, Err(Failure::Unreachable(_))));
}
