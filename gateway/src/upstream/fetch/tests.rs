//! Tests of `fetch.rs`.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::*;
use crate::upstream::proxy::Proxies;

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
    Fetcher::new(&client::connector(&creole::Config::default()).unwrap())
}

#[tokio::test]
async fn no_spelling_of_a_private_address_is_connected_to() {
    let (port, count) = server();
    let (proxy, asked) = server();
    let mut connector = client::connector(&creole::Config::default()).unwrap();
    connector.proxies = Proxies::all(&format!("http://127.0.0.1:{proxy}"));
    let connector = connector.with_proxies_for_clients();
    for (web, host) in [web(), Fetcher::new(&connector)]
        .iter()
        .flat_map(|web| PRIVATE.into_iter().map(move |host| (web, host)))
    {
        let sent = web.send(&fetch(format!("http://{host}:{port}/"), false), Vec::new()).await;
        assert!(matches!(sent, Err(Failure::Unreachable(_))), "{host}");
        let counts = [&count, &asked].map(|count| count.load(Ordering::SeqCst));
        assert_eq!(counts, [0, 0], "{host}");
    }
    // Another name goes to the proxy.
    let public = fetch("http://images.example/".to_owned(), false);
    let sent = Fetcher::new(&connector).send(&public, Vec::new()).await.unwrap();
    assert_eq!((sent.status().as_u16(), asked.load(Ordering::SeqCst)), (302, 1));
}

const PRIVATE: [&str; 17] = [
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
    "0x7f.1",
    "a.localhost",
];

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
