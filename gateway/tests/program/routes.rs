//! What is answered without a translation: probes, other paths, refusals, failures to connect.

use crate::rig::{self, COMPLETION, Gateway, Upstream, client, messages, nobody, request, send};
use bytes::Bytes;
use http_body_util::BodyExt as _;

#[tokio::test]
async fn probes_are_answered_without_an_upstream() {
    let gateway = Gateway::start(&nobody().await, "{}");
    for (method, path) in
        [("GET", "/"), ("HEAD", "/"), ("GET", "/api/hello"), ("HEAD", "/api/hello")]
    {
        let got = send(&client(false), request(method, &gateway.url(path), "")).await;
        assert_eq!(got.status, 200, "{method} {path}");
        assert_eq!(got.body, if method == "HEAD" { "" } else { "{}" });
        assert!(got.header("request-id").starts_with("req_"));
    }
}

#[tokio::test]
async fn other_paths_under_v1_pass_untouched_with_the_gateways_key() {
    let upstream = Upstream::answering(201, "text/x-odd", "odd  body").await;
    let base = format!("http://{}/some/base/", upstream.address);
    let gateway = Gateway::start_with(
        &["--upstream", &base, "--key-env", "TEST_KEY"],
        "{}",
        &[("TEST_KEY", "sk-gateway")],
    );
    let mut sent = request("POST", &gateway.url("/v1/embeddings?a=b%20c"), r#"{"x":1.10}"#);
    sent.headers_mut().insert("openai-beta", "yes".parse().unwrap());
    sent.headers_mut().insert("connection", "x-hop".parse().unwrap());
    sent.headers_mut().insert("x-hop", "1".parse().unwrap());
    let got = send(&client(false), sent).await;
    assert_eq!((got.status.as_u16(), got.body.as_str()), (201, "odd  body"));
    assert_eq!(got.header("content-type"), "text/x-odd");
    assert_eq!(got.header("x-request-id"), "up-1");
    let asked = upstream.last();
    assert_eq!(asked.path, "/some/base/embeddings?a=b%20c");
    assert_eq!(asked.body, r#"{"x":1.10}"#);
    assert_eq!(asked.headers["authorization"], "Bearer sk-gateway");
    assert_eq!(asked.headers["openai-beta"], "yes");
    assert_eq!(asked.headers["host"], upstream.address.to_string());
    assert!(!asked.headers.contains_key("x-api-key") && !asked.headers.contains_key("x-hop"));
    rig::until("the log line", || {
        !gateway.lines(r#""path":"/v1/embeddings","status":201"#).is_empty()
    })
    .await;
    assert!(!gateway.log().contains("sk-") && !gateway.log().contains("a=b"), "{}", gateway.log());
}

#[tokio::test]
async fn a_passed_stream_is_not_held_back() {
    let (outs, mut out) = tokio::sync::mpsc::unbounded_channel();
    let upstream = Upstream::start(move |_, out| {
        outs.send(out).unwrap();
        (200, rig::EVENT_STREAM)
    })
    .await;
    let gateway = Gateway::start(&upstream.url(), "{}");
    let client = client(false);
    let sent = client.request(request("POST", &gateway.url("/v1/completions"), "{}"));
    let mut response = rig::soon("the head", sent).await.unwrap();
    let mut out = out.recv().await.unwrap();
    let mut seen = String::new();
    for piece in ["data: 1\n\n", "data: 2\n\n"] {
        out.send_data(Bytes::from(piece)).await.unwrap();
        rig::read_until(&mut response, &mut seen, piece).await;
    }
    drop(out);
    assert!(rig::soon("the end", response.body_mut().frame()).await.is_none());
}

#[tokio::test]
async fn paths_outside_v1_are_not_found() {
    let upstream = Upstream::answering(200, "text/plain", "no").await;
    let gateway = Gateway::start(&upstream.url(), "{}");
    for path in ["/other", "/v1", "/v10/x", "/V1/messages", "/v1x", "/v1/../admin", "/v1/%2e%2e/x"]
    {
        let got = send(&client(false), request("POST", &gateway.url(path), "{}")).await;
        got.assert_error(404, "not_found_error", "");
    }
    assert!(upstream.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_client_that_writes_all_before_it_reads_reads_why_nothing_is_there() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    const LENGTH: usize = 8 << 20;
    let gateway = Gateway::start(&nobody().await, "{}");
    for path in ["/x/v1/messages", "/v1/../x", "/v1/messages/batches"] {
        let mut client = tokio::net::TcpStream::connect(gateway.address).await.unwrap();
        let head = format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {LENGTH}\r\n\r\n");
        client.write_all(head.as_bytes()).await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        rig::soon(path, client.write_all(&vec![b' '; LENGTH])).await.unwrap();
        let mut answer = [0; 12];
        rig::soon(path, client.read_exact(&mut answer)).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 404", "{path}");
    }
}

#[tokio::test]
async fn a_client_whose_base_url_lacks_v1_is_served() {
    let upstream = Upstream::answering(200, "application/json", COMPLETION).await;
    let gateway = Gateway::start(&upstream.url(), "{}");
    let sent = request("POST", &gateway.url("/messages"), messages(false));
    assert_eq!(send(&client(false), sent).await.status, 200);
    assert_eq!(upstream.last().path, "/v1/chat/completions");
    let sent = request("GET", &gateway.url("/models"), "");
    assert_eq!(send(&client(false), sent).await.status, 200);
}

#[tokio::test]
async fn metrics_are_on_a_loopback_address_or_on_their_own() {
    let upstream = Upstream::answering(200, "application/json", COMPLETION).await;
    let counted = r#"creole_requests_total{outcome="answered",status="200",upstream="default"} 1"#;
    let gateway = Gateway::start(&upstream.url(), "{}");
    let ask = |gateway: &Gateway| {
        let sent = request("POST", &gateway.url("/v1/messages"), messages(false));
        async move { send(&client(false), sent).await }
    };
    assert_eq!(ask(&gateway).await.status, 200);
    rig::until("the log line", || !gateway.lines(r#""status":200"#).is_empty()).await;
    let mut asking = request("GET", &gateway.url("/metrics"), "");
    asking.headers_mut().insert("accept", "application/openmetrics-text".parse().unwrap());
    let got = send(&client(false), asking).await;
    assert_eq!(got.header("content-type").split(';').next(), Some("application/openmetrics-text"));
    assert!(got.body.contains(counted) && got.body.ends_with("# EOF\n"), "{got:?}");

    let args = ["--upstream", &upstream.url(), "--metrics", "127.0.0.1:0"];
    let gateway = Gateway::start_with(&args, "{}", &[]);
    assert_eq!(ask(&gateway).await.status, 200);
    rig::until("the log line", || !gateway.lines(r#""status":200"#).is_empty()).await;
    let hidden = send(&client(false), request("GET", &gateway.url("/metrics"), "")).await;
    hidden.assert_error(404, "not_found_error", "");
    let line = gateway.lines("metrics on http://").remove(0);
    let url = line.split("metrics on ").nth(1).unwrap().trim_end_matches(['"', '}']).to_owned();
    let got = send(&client(false), request("GET", &url, "")).await;
    assert!(got.body.contains(counted), "{got:?}");
    let other = url.replace("/metrics", "/v1/messages");
    assert_eq!(send(&client(false), request("POST", &other, messages(false))).await.status, 404);
}

#[tokio::test]
async fn an_unreachable_upstream_is_a_502_that_names_no_address() {
    let url = nobody().await;
    let gateway = Gateway::start(&url, "{}");
    let got = send(&client(false), request("POST", &gateway.url("/v1/files"), "{}")).await;
    got.assert_error(502, "api_error", "the connection was refused");
    assert!(!got.body.contains("127.0.0.1"), "{got:?}");

    let gateway = Gateway::start("http://no-such-host.invalid/v1", "{}");
    let got = send(&client(false), request("POST", &gateway.url("/v1/files"), "{}")).await;
    got.assert_error(502, "api_error", "could not be resolved");
    assert!(!got.body.contains("invalid"), "{got:?}");
}

#[tokio::test]
async fn an_upstream_that_hangs_up_or_talks_nonsense_is_a_502() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    for (answer, reason) in
        [("", "closed the connection"), ("SSH-2.0-x\r\n\r\n", "does not speak HTTP")]
    {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut head = [0; 65536];
                let _ = stream.read(&mut head).await;
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        let gateway = Gateway::start(&url, "{}");
        let sent = request("POST", &gateway.url("/v1/messages"), messages(true));
        send(&client(false), sent).await.assert_error(502, "api_error", reason);
    }
}

#[tokio::test]
async fn a_server_without_the_path_is_told_as_the_operators_mistake() {
    let upstream = Upstream::answering(404, "text/plain", "404 page not found").await;
    let gateway = Gateway::start(&upstream.url(), "{}");
    let sent = request("POST", &gateway.url("/v1/messages"), messages(true));
    let got = send(&client(false), sent).await;
    got.assert_error(502, "api_error", "Upstream does not serve /v1/chat/completions (HTTP 404)");
    assert_eq!(got.headers["x-should-retry"], "false");
}

#[tokio::test]
async fn a_body_that_is_not_json_is_refused_before_the_upstream() {
    let upstream = Upstream::answering(200, "text/plain", "no").await;
    let gateway = Gateway::start(&upstream.url(), "{}");
    for body in [&b"{\"model\":"[..], b"not json", b"", b"\xff\xfe"] {
        let sent = request("POST", &gateway.url("/v1/messages"), body.to_vec());
        send(&client(false), sent).await.assert_error(
            400,
            "invalid_request_error",
            "not valid JSON",
        );
    }
    assert!(upstream.asked.lock().unwrap().is_empty());
}

/// The client of these tests writes all of it before it reads; the answer must survive that.
#[tokio::test]
async fn a_body_above_the_limit_is_refused_and_the_client_can_read_why() {
    let upstream = Upstream::answering(200, "text/plain", "no").await;
    let gateway = Gateway::start(&upstream.url(), r#"{"request_bytes_max": 1000000}"#);
    let large = "x".repeat(1_900_000);
    for http2 in [false, true] {
        let sent = request("POST", &gateway.url("/v1/messages"), large.clone());
        send(&client(http2), sent).await.assert_error(413, "request_too_large", "maximum size");
    }
    assert!(upstream.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_body_above_the_limit_is_refused_when_its_length_is_not_announced() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let gateway = Gateway::start(&nobody().await, r#"{"request_bytes_max": 2000}"#);
    let mut stream = tokio::net::TcpStream::connect(gateway.address).await.unwrap();
    let head = "POST /v1/messages HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    for _ in 0..3 {
        stream.write_all(format!("3e8\r\n{}\r\n", "x".repeat(1000)).as_bytes()).await.unwrap();
    }
    stream.write_all(b"0\r\n\r\n").await.unwrap();
    let mut answer = vec![0; 4096];
    let length = rig::soon("413", stream.read(&mut answer)).await.unwrap();
    assert!(answer[..length].starts_with(b"HTTP/1.1 413 "), "{:?}", &answer[..length]);
}

/// A client that says how long its body is, and has sent this of it.
async fn part_of_body(gateway: &Gateway, length: usize, sent: &[u8]) -> tokio::net::TcpStream {
    use tokio::io::AsyncWriteExt as _;
    let mut client = tokio::net::TcpStream::connect(gateway.address).await.unwrap();
    let head = format!("POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n");
    client.write_all(head.as_bytes()).await.unwrap();
    client.write_all(sent).await.unwrap();
    client
}

#[tokio::test]
async fn a_client_that_breaks_off_its_upload_is_not_the_upstreams_fault() {
    use tokio::io::AsyncWriteExt as _;
    let upstream = Upstream::answering(200, "application/json", "{}").await;
    let gateway = Gateway::start(&upstream.url(), "{}");
    for head in ["content-length: 99000", "transfer-encoding: chunked"] {
        let mut client = tokio::net::TcpStream::connect(gateway.address).await.unwrap();
        let head = format!("POST /v1/files HTTP/1.1\r\nhost: x\r\n{head}\r\n\r\n4\r\nhalf\r\n");
        client.write_all(head.as_bytes()).await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
    let line = r#""status":400,"outcome":"failed_client","cause":"request_incomplete""#;
    rig::until("both lines", || gateway.lines(line).len() == 2).await;
    assert!(!gateway.log().contains("could not be reached"), "{}", gateway.log());
}

#[tokio::test]
async fn a_refused_body_holds_nothing_while_the_rest_of_it_comes() {
    let gateway = Gateway::start(&nobody().await, r#"{"buffered_bytes_max": 100000}"#);
    let refused = part_of_body(&gateway, 300_000, &[b' '; 150_000]).await;
    // All that it sends is read.
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    let other = request("POST", &gateway.url("/v1/messages"), "x".repeat(50_000));
    send(&client(false), other).await.assert_error(400, "invalid_request_error", "");
    drop(refused);
}

#[tokio::test]
async fn a_web_page_of_another_host_cannot_use_a_gateway_of_this_machine() {
    let upstream = Upstream::answering(200, "application/json", COMPLETION).await;
    let args = ["--upstream", &upstream.url(), "--key-env", "TEST_KEY", "--metrics", "127.0.0.1:0"];
    let gateway = Gateway::start_with(&args, "{}", &[("TEST_KEY", "sk-gateway")]);
    rig::until("where metrics are", || !gateway.lines("metrics on http://").is_empty()).await;
    let line = gateway.lines("metrics on http://").remove(0);
    let metrics = line.split("metrics on ").nth(1).unwrap().trim_end_matches(['"', '}']).to_owned();
    let page = |url: &str, name: &'static str, value: &str| {
        let mut sent = request("POST", url, messages(false));
        sent.headers_mut().remove("x-api-key");
        sent.headers_mut().insert("content-type", "text/plain".parse().unwrap());
        sent.headers_mut().insert(name, value.parse().unwrap());
        async move { send(&client(false), sent).await }
    };
    for path in ["/v1/messages", "/v1/files", "/metrics", "/v1/models"] {
        let url = gateway.url(path);
        page(&url, "host", "evil.example").await.assert_error(403, "permission_error", "Host: ");
        let got = page(&url, "origin", "http://evil.example").await;
        got.assert_error(403, "permission_error", "Origin: ");
    }
    assert_eq!(page(&metrics, "host", "evil.example").await.status, 403);
    assert!(upstream.asked.lock().unwrap().is_empty());
    rig::until("the log lines", || gateway.lines(r#""cause":"forbidden""#).len() == 8).await;

    // Programs of this machine, with or without a key, and pages of its own.
    let url = gateway.url("/v1/messages");
    let got = page(&url, "host", "localhost:1").await;
    assert_eq!(got.status, 200, "{got:?}");
    assert_eq!(page(&url, "origin", "http://localhost:3000").await.status, 200);
    let args = [&args[..], &["--allow-host", "ai.example"]].concat();
    let gateway = Gateway::start_with(&args, "{}", &[("TEST_KEY", "sk-gateway")]);
    assert_eq!(page(&gateway.url("/v1/messages"), "host", "ai.example").await.status, 200);
}

#[tokio::test]
async fn http2_is_answered_as_http1_is() {
    let gateway = Gateway::start(&nobody().await, "{}");
    let (http1, http2) = (client(false), client(true));
    for path in ["/", "/nothing", "/metrics", "/v1/messages/batches", "/v1/models/x"] {
        let asked = || request("HEAD", &gateway.url(path), "");
        let (one, two) = (send(&http1, asked()).await, send(&http2, asked()).await);
        assert!(two.complete && two.body.is_empty(), "{path}: {two:?}");
        assert_eq!(two.status, one.status, "{path}");
        if path != "/metrics" {
            assert_eq!(two.header("content-length"), one.header("content-length"), "{path}");
        }
    }
    for client in [&http1, &http2] {
        let mut asked = request("GET", &gateway.url("/"), "");
        asked.headers_mut().insert("x-large", "x".repeat(40_000).parse().unwrap());
        assert_eq!(send(client, asked).await.status, 200);
    }
}

#[tokio::test]
async fn a_passed_answer_that_breaks_off_is_told_in_the_log() {
    let (outs, mut out) = tokio::sync::mpsc::unbounded_channel();
    let upstream = Upstream::start(move |_, out| {
        outs.send(out).unwrap();
        (200, "text/plain")
    })
    .await;
    let gateway = Gateway::start(&upstream.url(), "{}");
    let client = client(false);
    let sent = client.request(request("GET", &gateway.url("/v1/files"), ""));
    let mut response = rig::soon("the head", sent).await.unwrap();
    let mut out = out.recv().await.unwrap();
    out.send_data(Bytes::from("half")).await.unwrap();
    rig::read_until(&mut response, &mut String::new(), "half").await;
    out.abort("broken".into());
    assert!(!rig::read(response).await.complete);
    let line = r#""status":200,"outcome":"passed""#;
    rig::until("the log line", || !gateway.lines(line).is_empty()).await;
    assert!(gateway.lines(line).remove(0).contains("the upstream's body broke off"));
}
