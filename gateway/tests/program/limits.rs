//! What clients and upstreams can make the gateway hold, and that others are served meanwhile.

use crate::rig::{
    self, COMPLETION, Client, Gateway, Got, Out, Upstream, chunk, client, messages, request, send,
};
use bytes::Bytes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const OVERLOADED: u16 = 529;

async fn completing() -> Upstream {
    Upstream::answering(200, "application/json", COMPLETION).await
}

async fn ask(client: &Client, gateway: &Gateway, body: impl Into<Bytes>) -> Got {
    send(client, request("POST", &gateway.url("/v1/messages"), body)).await
}

/// A client that has sent a head and so much of a body.
async fn unfinished(gateway: &Gateway, head: &str, length: usize, sent: usize) -> TcpStream {
    let mut client = TcpStream::connect(gateway.address).await.unwrap();
    let head = format!(
        "POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: k\r\n{head}content-length: {length}\r\n\r\n"
    );
    client.write_all(head.as_bytes()).await.unwrap();
    // The gateway may refuse it on the way.
    let _ = client.write_all(&vec![b' '; sent]).await;
    client
}

/// Waits until a request with this body has this status.
async fn until_status(client: &Client, gateway: &Gateway, body: &str, status: u16) {
    for _ in 0..500 {
        let got = ask(client, gateway, body.to_owned()).await;
        if got.status == status {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("never {status}: {}", gateway.log());
}

fn large_message(bytes: usize) -> String {
    messages(false).replacen(
        "\"messages\":",
        &format!("\"x\":\"{}\",\"messages\":", "x".repeat(bytes)),
        1,
    )
}

#[tokio::test]
async fn small_requests_are_served_beside_large_bodies_that_trickle() {
    let upstream = completing().await;
    let gateway = Gateway::start(&upstream.url(), r#"{"buffered_bytes_max": 16000000}"#);
    let client = client(false);
    let mut trickling = Vec::new();
    for _ in 0..10 {
        trickling.push(unfinished(&gateway, "", 5_000_000, 4_000_000).await);
    }
    // All that there is for large ones is taken.
    until_status(&client, &gateway, &large_message(3_500_000), OVERLOADED).await;
    for _ in 0..20 {
        assert_eq!(ask(&client, &gateway, messages(false)).await.status, 200);
    }
    drop(trickling);
    until_status(&client, &gateway, &large_message(3_500_000), 200).await;
}

#[tokio::test]
async fn heads_of_requests_that_wait_count() {
    let upstream = completing().await;
    let gateway = Gateway::start(&upstream.url(), r#"{"buffered_bytes_max": 1000000}"#);
    let client = client(false);
    let head = format!("x-a: {}\r\n", "a".repeat(30_000));
    let mut waiting = Vec::new();
    for _ in 0..40 {
        waiting.push(unfinished(&gateway, &head, 1000, 1).await);
    }
    let with_head = || {
        let mut sent = request("POST", &gateway.url("/v1/messages"), messages(false));
        sent.headers_mut().insert("x-a", "a".repeat(30_000).parse().unwrap());
        sent
    };
    let mut refused = false;
    for _ in 0..500 {
        // A head that comes in several pieces is refused before it is read to its end.
        let answered = client.request(with_head()).await;
        refused = answered.map_or(true, |response| response.status() == OVERLOADED);
        if refused {
            break;
        }
        // One that came while others were read may have been closed, and left room.
        waiting.push(unfinished(&gateway, &head, 1000, 1).await);
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert!(refused, "{}", gateway.log());
    assert_eq!(ask(&client, &gateway, messages(false)).await.status, 200);
    drop(waiting);
}

/// What a stream's upstream sends: pieces that become no event, or no block, of the client.
async fn held_by_streams(first: Bytes, piece: Bytes) {
    let (upstream, mut outs) = Upstream::written().await;
    let gateway = Gateway::start(&upstream.url(), r#"{"buffered_bytes_max": 4000000}"#);
    let client = client(false);
    let mut streams = Vec::new();
    for _ in 0..8 {
        let sent = client.request(request("POST", &gateway.url("/v1/messages"), messages(true)));
        let first = first.clone();
        let begin = async {
            let mut out: Out = outs.recv().await.unwrap();
            out.send_data(first).await.unwrap();
            out
        };
        let (response, out) = rig::soon("a stream", async { tokio::join!(sent, begin) }).await;
        streams.push((response.unwrap(), out));
    }
    // Each upstream holds a megabyte and a half back; there is room for four or fewer.
    let mut written = Vec::new();
    for (response, mut out) in streams {
        let piece = piece.clone();
        written.push(tokio::spawn(async move {
            for _ in 0..150 {
                if out.send_data(piece.clone()).await.is_err() {
                    break;
                }
            }
            // The rest waits until the gateway has hung up, or the test is over.
            let got = tokio::time::timeout(std::time::Duration::from_secs(2), rig::read(response));
            (got.await.is_ok_and(|got| got.body.contains("overloaded_error")), out)
        }));
    }
    let mut ended = 0;
    for stream in written {
        ended += usize::from(stream.await.unwrap().0);
    }
    assert!((4..8).contains(&ended), "{ended} of 8 streams were ended");
}

#[tokio::test]
async fn events_that_are_not_complete_count() {
    held_by_streams(chunk("a"), Bytes::from(vec![b'x'; 10_000])).await;
}

#[tokio::test]
async fn calls_that_wait_count() {
    let call = |index: usize, rest: &str| {
        Bytes::from(format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{{\"index\":{index},{rest}}}]}}}}]}}\n\n"
        ))
    };
    let begin = |index: usize, input: &str| {
        call(
            index,
            &format!(
                r#""id":"c{index}","type":"function","function":{{"name":"a","arguments":"{input}"}}"#
            ),
        )
    };
    let first = [begin(0, "{"), begin(1, r#"{\"x\":\""#)].concat();
    let piece = call(1, &format!(r#""function":{{"arguments":"{}"}}"#, "z".repeat(10_000)));
    held_by_streams(Bytes::from(first), piece).await;
}

#[tokio::test]
async fn answers_that_nobody_reads_count() {
    let text = format!(
        r#"{{"choices":[{{"finish_reason":"stop","message":{{"content":"{}"}}}}]}}"#,
        "z".repeat(6_000_000)
    );
    let upstream =
        Upstream::answering(200, "application/json", Box::leak(text.into_boxed_str())).await;
    let gateway = Gateway::start(&upstream.url(), r#"{"buffered_bytes_max": 20000000}"#);
    let body = messages(false);
    let mut unread = Vec::new();
    for _ in 0..4 {
        let mut client = TcpStream::connect(gateway.address).await.unwrap();
        let head = format!(
            "POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: k\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        client.write_all(head.as_bytes()).await.unwrap();
        client.write_all(body.as_bytes()).await.unwrap();
        // It reads that there is an answer, and no more of it.
        rig::soon("a head", client.readable()).await.unwrap();
        unread.push(client);
    }
    let client = client(false);
    ask(&client, &gateway, body.clone()).await.assert_error(529, "overloaded_error", "");
    drop(unread);
    until_status(&client, &gateway, &body, 200).await;
}

/// A connection that has had an answer and is idle.
async fn idle(gateway: &Gateway) -> TcpStream {
    let mut client = TcpStream::connect(gateway.address).await.unwrap();
    client.write_all(b"GET /api/hello HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut answer = [0; 12];
    rig::soon("an answer", client.read_exact(&mut answer)).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
    client
}

/// Whether the gateway has closed it.
async fn is_closed(client: &mut TcpStream) -> bool {
    let mut rest = Vec::new();
    let read = client.read_to_end(&mut rest);
    tokio::time::timeout(std::time::Duration::from_millis(20), read).await.is_ok()
}

#[cfg(unix)]
#[tokio::test]
async fn silent_connections_make_room_for_those_that_ask() {
    let (upstream, mut outs) = Upstream::written().await;
    let args = ["--upstream", &upstream.url()];
    let gateway = Gateway::start_limited("-n 128", &args, "{}");
    // A stream that runs, and a connection that was used.
    let client = client(false);
    let sent = client.request(request("POST", &gateway.url("/v1/messages"), messages(true)));
    let begin = async {
        let mut out: Out = outs.recv().await.unwrap();
        out.send_data(chunk("a")).await.unwrap();
        out
    };
    let (stream, mut out) = rig::soon("a stream", async { tokio::join!(sent, begin) }).await;
    let mut kept = idle(&gateway).await;
    let mut silent = Vec::new();
    for index in 0..150 {
        silent.push(TcpStream::connect(gateway.address).await.unwrap());
        if index % 10 == 0 {
            // Nobody is kept waiting, whether it is new or not.
            drop(idle(&gateway).await);
        }
    }
    assert!(is_closed(&mut silent[0]).await, "the oldest is still there");
    assert!(!is_closed(silent.last_mut().unwrap()).await, "the last one is gone");
    assert!(!is_closed(&mut kept).await, "one that was used is gone, though others were silent");
    out.send_data(rig::finish()).await.unwrap();
    drop(out);
    let rest = rig::read(stream.unwrap()).await;
    assert!(rest.body.contains("event: message_stop"), "{}", rest.body);
    assert!(!gateway.log().contains("cannot accept"), "{}", gateway.log());
}

#[tokio::test]
async fn a_body_that_comes_too_slowly_is_a_timeout_that_clients_retry() {
    let upstream = completing().await;
    let gateway = Gateway::start(&upstream.url(), r#"{"stall_timeout_ms": 300}"#);
    for sent in [1000, 100_000] {
        let mut slow = unfinished(&gateway, "connection: close\r\n", 200_000, sent).await;
        let mut answer = String::new();
        rig::soon("an answer", slow.read_to_string(&mut answer)).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 408 "), "{head}");
        assert!(head.contains("\r\nx-should-retry: true"), "{head}");
        assert!(
            body.contains(r#""type":"timeout_error","message":"The request body came"#),
            "{body}"
        );
    }
    let line = r#""status":408,"outcome":"failed_client","cause":"request_too_slow""#;
    rig::until("both lines", || gateway.lines(line).len() == 2).await;
}
