//! Tests of `first_request.rs`.

use super::*;
use std::convert::Infallible;

use hyper::Response;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::answer::Body;

/// What a client reads that sends this and waits, where heads may take `TIME`.
async fn read(sent: &str) -> Result<String, tokio::time::error::Elapsed> {
    const TIME: Duration = Duration::from_millis(50);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (stream, _) = listener.accept().await.unwrap();
    let had_request = HadRequest::default();
    let service = service_fn(had_request.note(|_| async {
        tokio::time::sleep(TIME.saturating_mul(2)).await;
        Ok::<_, Infallible>(Response::new(Body::whole("late")))
    }));
    let builder = auto::Builder::new(TokioExecutor::new());
    let connection = builder.serve_connection(TokioIo::new(stream), service).into_owned();
    tokio::spawn(async move { had_request.or_cut(connection, TIME).await.is_ok() });
    client.write_all(sent.as_bytes()).await.unwrap();
    let mut read = String::new();
    tokio::time::timeout(Duration::from_secs(20), client.read_to_string(&mut read)).await?.unwrap();
    Ok(read)
}

#[tokio::test]
async fn a_connection_without_a_request_is_not_kept() {
    // The second could become HTTP/1 or HTTP/2.
    for sent in ["", "P", "PRI * HTTP/2.0\r\n", "GET / HT"] {
        assert_eq!(read(sent).await, Ok(String::new()), "{sent:?}");
    }
    let sent = "GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    assert!(read(sent).await.unwrap().ends_with("late"));
}
