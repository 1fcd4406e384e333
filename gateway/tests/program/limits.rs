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
async fn all_bodies_together_are_limited() {
    // It takes connections and answers nothing.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", silent.local_addr().unwrap());
    let gateway = Gateway::start(&url, r#"{"buffered_bytes_max": 400000}"#);
    let (client, body) = (client(false), messages(false));
    let mut whole = unfinished(&gateway, "", 150_000 + body.len(), 150_000).await;
    whole.write_all(body.as_bytes()).await.unwrap();
    let _called = rig::soon("a call", silent.accept()).await.unwrap();
    let other = "x".repeat(300_000);
    until_status(&client, &gateway, &other, OVERLOADED).await;
    // The memory of a client that has gone is free again.
    drop(whole);
    until_status(&client, &gateway, &other, 400).await;
}

#[tokio::test]
async fn others_are_served_beside_large_bodies_that_trickle_and_these_are_refused() {
    let upstream = completing().await;
    let gateway = Gateway::start(&upstream.url(), r#"{"buffered_bytes_max": 16000000}"#);
    let client = client(false);
    let mut trickling = Vec::new();
    for _ in 0..10 {
        trickling.push(unfinished(&gateway, "", 5_000_000, 4_000_000).await);
    }
    for _ in 0..20 {
        assert_eq!(ask(&client, &gateway, messages(false)).await.status, 200);
        assert_eq!(ask(&client, &gateway, large_message(1_700_000)).await.status, 200);
    }
    let mut refused = 0;
    for client in &mut trickling {
        let mut answer = [0; 12];
        let read = client.read_exact(&mut answer);
        let read = tokio::time::timeout(std::time::Duration::from_millis(50), read).await;
        refused += usize::from(read.is_ok() && &answer == b"HTTP/1.1 529");
    }
    assert!((7..10).contains(&refused), "{refused}");
}

#[tokio::test]
async fn heads_of_requests_that_wait_count() {
    let upstream = Upstream::start(|asked, mut out| {
        let passed = asked.method == "GET";
        tokio::spawn(async move {
            if passed {
                // It works until the client leaves.
                tokio::time::sleep(std::time::Duration::from_secs(60)).await;
            }
            out.send_data(Bytes::from(COMPLETION)).await
        });
        (200, "application/json")
    })
    .await;
    let gateway = Gateway::start(&upstream.url(), r#"{"buffered_bytes_max": 1000000}"#);
    let client = client(false);
    let with_head = |method: &str, path: &str, body: String| {
        let mut sent = request(method, &gateway.url(path), body);
        sent.headers_mut().insert("x-a", "a".repeat(30_000).parse().unwrap());
        sent
    };
    let mut waiting = Vec::new();
    for _ in 0..40 {
        // The head of the answer comes; its end does not.
        let answered = client.request(with_head("GET", "/v1/files", String::new())).await;
        // A head that comes in several pieces is refused before it is read to its end.
        match answered {
            Ok(response) if response.status() == 200 => waiting.push(response),
            refused => drop(refused),
        }
    }
    assert!((10..32).contains(&waiting.len()), "{}", waiting.len());
    assert_eq!(ask(&client, &gateway, messages(false)).await.status, 200);
}

/// Has several connections send hundreds of small requests without an end, and others ask
/// meanwhile.
async fn served_beside(gateway: &Gateway, keys: [&'static str; 3], http2: bool) {
    let url = || gateway.url("/v1/messages");
    let mut waiting = Vec::new();
    for key in &keys[..2] {
        let send = rig::without_end(http2);
        waiting.extend((0..700).map(|_| tokio::spawn(send(url(), key, 500))));
    }
    let honest = client(false);
    for index in 0..150 {
        let mut sent = request("POST", &url(), messages(false));
        sent.headers_mut().insert("x-api-key", keys[2].parse().unwrap());
        let got = send(&honest, sent).await;
        assert_eq!(got.status, 200, "request {index}: {got:?}");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let mut refused = 0;
    for waiting in waiting {
        if waiting.is_finished() {
            // Where many answers wait for their client at once, the stream of one more is reset.
            let answered = waiting.await.unwrap();
            refused += usize::from(answered.is_ok_and(|answer| answer.status() == OVERLOADED));
        } else {
            waiting.abort();
        }
    }
    assert!(refused > 200, "{refused}");
}

const SMALL_BUDGET: &str = r#"{"buffered_bytes_max": 500000}"#;

#[tokio::test]
async fn others_are_served_beside_hundreds_of_streams_without_an_end() {
    let gateway = Gateway::start(&completing().await.url(), SMALL_BUDGET);
    served_beside(&gateway, ["k", "k", "k"], true).await;
}

#[tokio::test]
async fn a_client_key_is_served_beside_others_that_fill_the_memory() {
    let config = r#"{"buffered_bytes_max": 500000, "upstreams": {"default": {"key": "none"}}, "client_keys": [
        {"secret": "A", "name": "a"}, {"secret": "B", "name": "b"}, {"secret": "C", "name": "c"}]}"#;
    let env = [("A", "key-of-team-a"), ("B", "key-of-team-b"), ("C", "key-of-team-c")];
    let upstream = completing().await;
    let gateway = Gateway::start_with(&["--upstream", &upstream.url()], config, &env);
    let keys = ["key-of-team-a", "key-of-team-b", "key-of-team-c"];
    served_beside(&gateway, keys, true).await;
    let lines = gateway.lines(r#""cause":"overloaded""#).len();
    assert!((1..=200).contains(&lines), "{lines}");
}

#[tokio::test]
async fn a_refusal_comes_before_the_body() {
    let config = r#"{"request_bytes_max": 1000000, "upstreams": {"default": {"key": "none"}}, "client_keys": [{"secret": "A"}]}"#;
    let env = [("A", "key-of-team-a")];
    let upstream = completing().await;
    let gateway = Gateway::start_with(&["--upstream", &upstream.url()], config, &env);
    for http2 in [false, true] {
        let send = rig::without_end(http2);
        for (key, length, status) in
            [("wrong", 10, 401), ("wrong", 3_000_000, 401), ("key-of-team-a", 1_100_000, 413)]
        {
            let since = std::time::Instant::now();
            let sent = send(gateway.url("/v1/messages"), key, length);
            let response = rig::soon("an answer", sent).await.unwrap();
            assert_eq!(response.status(), status, "{http2} {length}");
            let got = rig::read(response).await;
            assert!(got.complete && got.body.contains("error"), "{got:?}");
            assert!(since.elapsed().as_millis() < 1500, "{:?}", since.elapsed());
        }
    }
}

/// Opens streams whose upstream sends pieces that become no event, or no block, of the client.
/// Returns how many of so many streams were ended.
async fn ended_of(count: usize, http2: bool, first: Bytes, piece: Bytes) -> usize {
    let (upstream, mut outs) = Upstream::written().await;
    let gateway = Gateway::start(&upstream.url(), r#"{"buffered_bytes_max": 4000000}"#);
    let client = client(http2);
    let mut streams = Vec::new();
    for _ in 0..count {
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
    ended
}

#[tokio::test]
async fn events_that_are_not_complete_count() {
    let ended = ended_of(8, false, chunk("a"), Bytes::from(vec![b'x'; 10_000])).await;
    assert!((4..8).contains(&ended), "{ended} of 8 streams were ended");
}

#[tokio::test]
async fn streams_do_not_end_at_the_share_of_their_connection() {
    let ended = ended_of(2, true, chunk("a"), Bytes::from(vec![b'x'; 5000])).await;
    assert_eq!(ended, 0);
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
    let ended = ended_of(8, false, Bytes::from(first), piece).await;
    assert!((4..8).contains(&ended), "{ended} of 8 streams were ended");
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

#[tokio::test]
async fn a_passed_body_that_comes_too_slowly_is_given_up_as_well() {
    let upstream = completing().await;
    let gateway = Gateway::start(&upstream.url(), r#"{"stall_timeout_ms": 300}"#);
    for sent in [1000, 100_000] {
        let mut slow = TcpStream::connect(gateway.address).await.unwrap();
        let head = "POST /v1/files HTTP/1.1\r\nhost: x\r\ncontent-length: 200000\r\n\r\n";
        slow.write_all(&[head.as_bytes(), &vec![b' '; sent]].concat()).await.unwrap();
        let mut answer = String::new();
        rig::soon("an answer", slow.read_to_string(&mut answer)).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
        assert!(answer.contains("timeout_error"), "{answer}");
    }
    let line = r#""status":408,"outcome":"failed_client","cause":"request_too_slow""#;
    rig::until("both lines", || gateway.lines(line).len() == 2).await;
    assert!(!gateway.log().contains("could not be reached"), "{}", gateway.log());
}

#[cfg(unix)]
#[tokio::test]
async fn a_passed_request_whose_body_is_whole_keeps_its_place() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", silent.local_addr().unwrap());
    let config = r#"{"buffered_bytes_max": 500000}"#;
    let gateway = Gateway::start_limited("-n 128", &["--upstream", &url], config);
    let client = client(false);
    let sent = client.request(request("POST", &gateway.url("/v1/files"), "x".repeat(2000)));
    let sent = tokio::spawn(sent);
    let (mut upstream, _) = rig::soon("a connection", silent.accept()).await.unwrap();
    // After that time, an unfinished request would be given up for any other.
    tokio::time::sleep(std::time::Duration::from_millis(2100)).await;
    let mut others = Vec::new();
    for _ in 0..60 {
        others.push(unfinished(&gateway, "", 30_000, 2000).await);
        // A connection whose head is not read yet would be closed first.
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    upstream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await.unwrap();
    let got = rig::read(rig::soon("an answer", sent).await.unwrap().unwrap()).await;
    assert!(got.status == 200 && got.complete, "{got:?}");
}

#[tokio::test]
async fn a_passed_upload_is_not_given_up_when_others_fill_the_memory() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let gateway = Gateway::start(&url, SMALL_BUDGET);
    let mut upload = TcpStream::connect(gateway.address).await.unwrap();
    let head =
        "POST /v1/files HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 9000\r\n\r\n";
    upload.write_all(&[head.as_bytes(), &[b' '; 5000]].concat()).await.unwrap();
    let (mut upstream, _) = rig::soon("a connection", listener.accept()).await.unwrap();
    // After that time, a body that is collected and does not come would be given up for any other.
    tokio::time::sleep(std::time::Duration::from_millis(2100)).await;
    let mut others = Vec::new();
    for _ in 0..60 {
        others.push(unfinished(&gateway, "", 30_000, 20_000).await);
    }
    rig::until("a full memory", || !gateway.lines(r#""cause":"overloaded""#).is_empty()).await;
    upload.write_all(&[b' '; 4000]).await.unwrap();
    upstream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await.unwrap();
    let mut answer = String::new();
    rig::soon("an answer", upload.read_to_string(&mut answer)).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("{}"), "{answer}");
}

#[tokio::test]
async fn passed_bodies_that_their_upstream_does_not_take_hold_up_no_others_of_their_connection() {
    let stuck = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let good = completing().await;
    let config = format!(
        r#"{{"upstreams": {{"a": {{"url": "http://{}/v1"}}, "b": {{"url": "{}"}}}},
            "models": {{"*": {{"upstream": "b"}}}}}}"#,
        stuck.local_addr().unwrap(),
        good.url()
    );
    let gateway = Gateway::start_with(&[], &config, &[]);
    let client = client(true);
    assert_eq!(ask(&client, &gateway, messages(false)).await.status, 200);
    let large = Bytes::from(vec![b' '; 6 << 20]);
    let passing: Vec<_> = (0..20)
        .map(|_| request("POST", &gateway.url("/v1/files"), large.clone()))
        .map(|sent| tokio::spawn(client.request(sent)))
        .collect();
    let mut taken = Vec::new();
    for _ in 0..passing.len() {
        taken.push(rig::soon("a connection", stuck.accept()).await.unwrap());
    }
    // What the system takes for the upstream is full.
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    for _ in 0..3 {
        assert_eq!(ask(&client, &gateway, large_message(200_000)).await.status, 200);
    }
    passing.iter().for_each(tokio::task::JoinHandle::abort);
}
