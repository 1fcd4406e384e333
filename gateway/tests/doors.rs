//! Who and what may come in: methods, base URLs, web pages, keys of clients, loops.
// Helpers outside of #[test] functions fail like tests do.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

mod rig;

use bytes::Bytes;
use rig::{COMPLETION, Gateway, Upstream, client, messages, request, send};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// With a key of its own in front of `upstream`.
fn with_key(upstream: &str) -> Gateway {
    let env = [("TEST_KEY", "sk-operator-0123456789abcdef")];
    Gateway::start_with(&["--upstream", upstream, "--key-env", "TEST_KEY"], "{}", &env)
}

/// What a request gets that no library would write.
async fn raw(gateway: &Gateway, head: &str) -> String {
    let mut stream = tokio::net::TcpStream::connect(gateway.address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    rig::soon(head, stream.read_to_string(&mut answer)).await.unwrap();
    answer
}

#[tokio::test]
async fn a_method_that_shows_or_tunnels_what_is_sent_reaches_no_upstream() {
    let upstream = Upstream::start(|asked, mut out| {
        let echo = format!("{:?}", asked.headers);
        tokio::spawn(async move { out.send_data(Bytes::from(echo)).await });
        (200, "message/http")
    })
    .await;
    let gateway = with_key(&upstream.url());
    for http2 in [false, true] {
        for method in ["TRACE", "TRACK", "PURGE", "FOO"] {
            let sent = request(method, &gateway.url("/v1/files"), "");
            let got = send(&client(http2), sent).await;
            got.assert_error(405, "invalid_request_error", "only GET, HEAD, POST");
            assert!(got.header("allow").starts_with("GET, HEAD, POST"), "{got:?}");
        }
    }
    for target in ["/v1/x", "/v1/messages", "evil.example:443", "127.0.0.1:443"] {
        let head =
            format!("CONNECT {target} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        let answer = raw(&gateway, &head).await;
        assert!(answer.starts_with("HTTP/1.1 40"), "{target}: {answer}");
    }
    assert!(upstream.asked.lock().unwrap().is_empty());
    for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] {
        let got = send(&client(false), request(method, &gateway.url("/v1/files"), "")).await;
        assert_eq!(got.status, 200, "{method}");
        assert_eq!(upstream.last().method, method);
    }
}

#[tokio::test]
async fn a_base_url_with_a_path_or_a_slash_at_its_end_is_served() {
    let upstream = Upstream::answering(200, "application/json", COMPLETION).await;
    let gateway = Gateway::start(&upstream.url(), "{}");
    for path in [
        "/anthropic/v1/messages",
        "/v1/messages/",
        "//v1/messages",
        "/anthropic//v1/messages?beta=true",
    ] {
        let sent = request("POST", &gateway.url(path), messages(false));
        let got = send(&client(false), sent).await;
        assert_eq!(got.status, 200, "{path} {got:?}");
        assert_eq!(upstream.last().path, "/v1/chat/completions");
    }
    let asked = upstream.asked.lock().unwrap().len();
    for path in ["/anthropic/v1/files", "/x/v1/messages", "//v1/files"] {
        let got = send(&client(false), request("POST", &gateway.url(path), "{}")).await;
        got.assert_error(404, "not_found_error", "It serves /v1/messages");
    }
    assert_eq!(upstream.asked.lock().unwrap().len(), asked);
}
