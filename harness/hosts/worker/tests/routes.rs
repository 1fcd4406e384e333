//! Tests of the Worker's answers without a stream: probes, other paths, refusals, configurations.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use std::io::Write as _;

use bytes::Bytes;
use creole_worker_tests::client::{request, send};
use creole_worker_tests::{
    COMPLETION, Upstream, Worker, get, messages, nobody, open, post, read_until, soon, until,
};
use http_body_util::BodyExt as _;
use hyper::header::HeaderMap;

#[tokio::test]
async fn probes_are_answered_without_an_upstream() {
    let worker = Worker::start(&nobody().await, "{}");
    println!("workerd listened after {:?}", worker.started);
    for (method, path) in
        [("GET", "/"), ("HEAD", "/"), ("GET", "/api/hello"), ("HEAD", "/api/hello")]
    {
        let got = send(&worker, request(method, path, "")).await;
        assert_eq!(got.status, 200, "{method} {path}");
        assert_eq!(got.body, if method == "HEAD" { "" } else { "{}" });
        assert!(got.header("request-id").starts_with("req_"));
    }
    assert_ne!(
        get(&worker, "/").await.header("request-id"),
        get(&worker, "/").await.header("request-id")
    );
}

#[tokio::test]
async fn other_paths_under_v1_pass_untouched_with_the_workers_key() {
    let upstream = Upstream::answering(201, "text/x-odd", "odd  body").await;
    let worker = Worker::start_with(&[
        ("UPSTREAM_URL", &format!("http://{}/some/base/", upstream.address)),
        ("UPSTREAM_KEY", "sk-worker"),
    ]);
    let mut sent = request("POST", "/v1/embeddings?a=b%20c", r#"{"x":1.10}"#);
    sent.headers_mut().insert("openai-beta", "yes".parse().unwrap());
    let got = send(&worker, sent).await;
    assert_eq!((got.status.as_u16(), got.body.as_str()), (201, "odd  body"));
    assert_eq!(got.header("content-type"), "text/x-odd");
    assert_eq!(got.header("x-request-id"), "up-1");
    let asked = upstream.last();
    assert_eq!(asked.path, "/some/base/embeddings?a=b%20c");
    assert_eq!(asked.body, r#"{"x":1.10}"#);
    assert_eq!(asked.headers["authorization"], "Bearer sk-worker");
    assert_eq!(asked.headers["openai-beta"], "yes");
    assert_eq!(asked.headers["host"], upstream.address.to_string());
    assert!(!asked.headers.contains_key("x-api-key"));
    until("the log line", || !worker.lines("path", "/v1/embeddings").is_empty()).await;
    let line = &worker.lines("path", "/v1/embeddings")[0];
    assert_eq!((&line["status"], &line["outcome"]), (&201.into(), &"passed".into()));
    assert!(!worker.log().contains("sk-") && !worker.log().contains("a=b"), "{}", worker.log());
}

#[tokio::test]
async fn a_worker_with_keys_of_clients_serves_nobody_else() {
    let upstream = Upstream::answering(200, "application/json", COMPLETION).await;
    let worker = Worker::start_with(&[
        ("UPSTREAM_URL", &upstream.url()),
        ("UPSTREAM_KEY", "sk-worker"),
        ("CLIENT_KEY", "key-of-the-team"),
    ]);
    let paths =
        [("POST", "/v1/messages"), ("POST", "/anthropic/v1/messages"), ("POST", "/v1/files")];
    for (method, path) in paths {
        let got = send(&worker, request(method, path, messages(false))).await;
        got.assert_error(401, "authentication_error", "x-api-key");
    }
    assert!(upstream.asked.lock().unwrap().is_empty());
    for (method, path) in paths {
        let mut sent = request(method, path, messages(false));
        sent.headers_mut().insert("x-api-key", "key-of-the-team".parse().unwrap());
        for name in ["openai-organization", "x-original-url", "x-http-method-override"] {
            sent.headers_mut().insert(name, "chosen".parse().unwrap());
        }
        let got = send(&worker, sent).await;
        assert_eq!(got.status, 200, "{path} {got:?}");
        let asked = upstream.last().headers;
        assert_eq!(asked["authorization"], "Bearer sk-worker");
        assert_eq!(asked["x-creole-hops"], "1");
        assert!(asked.values().all(|it| it != "chosen" && it != "key-of-the-team"), "{asked:?}");
    }
    assert!(!worker.log().contains("key-of-the-team"), "{}", worker.log());
}

#[tokio::test]
async fn the_upstreams_models_are_listed_where_the_worker_has_no_map() {
    const LIST: &str = r#"{"object":"list","data":[{"id":"qwen","object":"model"}]}"#;
    let upstream = Upstream::answering(200, "application/json", LIST).await;
    let worker = Worker::start(&upstream.url(), "{}");
    let mut sent = request("GET", "/v1/models", "");
    sent.headers_mut().insert("anthropic-version", "2023-06-01".parse().unwrap());
    let got = send(&worker, sent).await;
    assert_eq!((got.status.as_u16(), got.json()["data"][0]["id"].as_str()), (200, Some("qwen")));
    let asked = upstream.last();
    assert_eq!((asked.method.as_str(), asked.path.as_str()), ("GET", "/v1/models"));
}

#[tokio::test]
async fn a_passed_stream_is_not_held_back() {
    let (upstream, mut outs) = Upstream::written().await;
    let worker = Worker::start(&upstream.url(), "{}");
    let (mut got, mut out) = soon("the head", async {
        let sent = open(&worker, request("POST", "/v1/completions", "{}"));
        let first = async {
            let mut out = outs.recv().await.unwrap();
            out.send_data(Bytes::from("data: 1\n\n")).await.unwrap();
            out
        };
        let (got, out) = tokio::join!(sent, first);
        (got.unwrap(), out)
    })
    .await;
    let mut seen = String::new();
    read_until(&mut got, &mut seen, "data: 1\n\n").await;
    out.send_data(Bytes::from("data: 2\n\n")).await.unwrap();
    read_until(&mut got, &mut seen, "data: 2\n\n").await;
    drop(out);
    assert!(soon("the end", got.response.body_mut().frame()).await.is_none());
}

#[tokio::test]
async fn paths_outside_v1_are_not_found() {
    let upstream = Upstream::answering(200, "text/plain", "no").await;
    let worker = Worker::start(&upstream.url(), "{}");
    for path in
        ["/metrics", "/v1", "/v10/x", "/V1/messages", "/v1x", "/v1/../admin", "/v1/%2e%2e/x"]
    {
        post(&worker, path, "{}").await.assert_error(404, "not_found_error", "");
    }
    assert!(upstream.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn an_upstream_that_cannot_be_reached_is_a_502_that_names_no_address() {
    let url = nobody().await;
    let worker = Worker::start(&url, "{}");
    for (path, body) in [("/v1/files", "{}".to_owned()), ("/v1/messages", messages(true))] {
        let got = post(&worker, path, body).await;
        got.assert_error(502, "api_error", "the connection was refused");
        assert!(!got.body.contains("127.0.0.1"), "{got:?}");
    }
    let worker = Worker::start("http://no-such-host.invalid/v1", "{}");
    let got = post(&worker, "/v1/messages", messages(true)).await;
    got.assert_error(502, "api_error", "could not be reached");
    assert!(!got.body.contains("invalid"), "{got:?}");
}

#[tokio::test]
async fn a_refusal_of_any_length_is_told() {
    // The text is longer than all memory that an isolate may hold.
    let text: &str = Box::leak("no memory ".repeat(3 << 20).into_boxed_str());
    let upstream = Upstream::answering(500, "text/plain", text).await;
    let worker = Worker::start(&upstream.url(), "{}");
    let got = post(&worker, "/v1/messages", messages(true)).await;
    got.assert_error(500, "api_error", "no memory");
}

#[tokio::test]
async fn a_redirection_is_an_answer_and_is_not_followed() {
    let elsewhere = Upstream::answering(200, "text/plain", "no").await;
    let target = format!("http://{}/", elsewhere.address);
    let upstream = Upstream::start_with_headers(move |_, _| {
        (307, HeaderMap::from_iter([(hyper::header::LOCATION, target.parse().unwrap())]))
    })
    .await;
    let worker = Worker::start(&upstream.url(), "{}");
    let got = post(&worker, "/v1/messages", messages(false)).await;
    assert!(got.status.is_server_error(), "{got:?}");
    assert_eq!(post(&worker, "/v1/files", "{}").await.status, 307);
    assert!(elsewhere.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_body_that_is_not_json_is_refused_before_the_upstream() {
    let upstream = Upstream::answering(200, "text/plain", "no").await;
    let worker = Worker::start(&upstream.url(), "{}");
    for body in [&b"{\"model\":"[..], b"not json", b"", b"\xff\xfe"] {
        let got = post(&worker, "/v1/messages", body).await;
        got.assert_error(400, "invalid_request_error", "not valid JSON");
    }
    assert!(upstream.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_client_that_writes_everything_before_it_reads_can_read_why_it_is_refused() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let worker = Worker::start(&nobody().await, r#"{"request_bytes_max": 3000000}"#);
    let body = vec![b'x'; 5_000_000];
    let chunked = [b"4c4b40\r\n".as_slice(), &body, b"\r\n0\r\n\r\n"].concat();
    for (length, body) in
        [("content-length: 5000000", body), ("transfer-encoding: chunked", chunked)]
    {
        let mut stream = tokio::net::TcpStream::connect(worker.address).await.unwrap();
        let head = format!("POST /v1/messages HTTP/1.1\r\nhost: x\r\n{length}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        soon("the upload", stream.write_all(&body)).await.unwrap();
        let mut answer = vec![0; 4096];
        let length = soon("the answer", stream.read(&mut answer)).await.unwrap();
        assert!(answer[..length].starts_with(b"HTTP/1.1 413 "));
    }
    let mut stream = tokio::net::TcpStream::connect(worker.address).await.unwrap();
    let head = "POST /x/v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 5000000\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    soon("the upload", stream.write_all(&[b'x'; 5_000_000])).await.unwrap();
    let mut answer = [0; 12];
    soon("the answer", stream.read_exact(&mut answer)).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 404");
}

#[tokio::test]
async fn a_body_above_the_limit_is_refused_and_the_client_can_read_why() {
    let upstream = Upstream::answering(200, "text/plain", "no").await;
    let worker = Worker::start(&upstream.url(), r#"{"request_bytes_max": 1000000}"#);
    let got = post(&worker, "/v1/messages", "x".repeat(1_900_000)).await;
    got.assert_error(413, "request_too_large", "maximum size");
    // Without a configured limit, the Worker's own limit holds.
    let worker = Worker::start(&upstream.url(), "{}");
    let got = post(&worker, "/v1/messages", "x".repeat((8 << 20) + 1)).await;
    got.assert_error(413, "request_too_large", "maximum size");
    let got = post(&worker, "/v1/messages", "x".repeat(8 << 20)).await;
    got.assert_error(400, "invalid_request_error", "not valid JSON");
    assert!(upstream.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_body_above_the_limit_is_refused_when_its_length_is_not_announced() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let worker = Worker::start(&nobody().await, r#"{"request_bytes_max": 2000}"#);
    for (pieces, status) in [(3, "HTTP/1.1 413 "), (1, "HTTP/1.1 400 ")] {
        let mut stream = tokio::net::TcpStream::connect(worker.address).await.unwrap();
        let head = "POST /v1/messages HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        for _ in 0..pieces {
            stream.write_all(format!("3e8\r\n{}\r\n", "x".repeat(1000)).as_bytes()).await.unwrap();
        }
        stream.write_all(b"0\r\n\r\n").await.unwrap();
        let mut answer = vec![0; 4096];
        let length = soon(status, stream.read(&mut answer)).await.unwrap();
        let answer = String::from_utf8_lossy(&answer[..length]).into_owned();
        assert!(answer.starts_with(status), "{answer:?}");
    }
}

#[tokio::test]
async fn all_bodies_together_are_limited() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let worker = Worker::start(&nobody().await, r#"{"buffered_bytes_max": 100000}"#);
    let mut slow = tokio::net::TcpStream::connect(worker.address).await.unwrap();
    let head = "POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 99000\r\n\r\n";
    slow.write_all(head.as_bytes()).await.unwrap();
    slow.write_all(&vec![b' '; 90_000]).await.unwrap();
    // The body alone is more than all requests may hold.
    let got = post(&worker, "/v1/messages", "x".repeat(99_000)).await;
    got.assert_error(529, "overloaded_error", "");
    // The slow request holds more memory than the new one, and is given up.
    let got = post(&worker, "/v1/messages", "x".repeat(50_000)).await;
    got.assert_error(400, "invalid_request_error", "not valid JSON");
    let mut answer = [0; 12];
    soon("the slow one's answer", slow.read_exact(&mut answer)).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 529");
}

#[tokio::test]
async fn a_whole_answer_has_a_length_and_one_log_line() {
    let upstream = Upstream::answering(200, "application/json", COMPLETION).await;
    let worker = Worker::start(&upstream.url(), "{}");
    let got = post(&worker, "/v1/messages?beta=true", messages(false)).await;
    assert_eq!(got.status, 200, "{got:?}");
    assert_eq!(got.json()["content"][0]["text"], "Hi there");
    assert_eq!(got.header("content-length"), got.body.len().to_string());
    let asked = upstream.last();
    assert_eq!((asked.method.as_str(), asked.path.as_str()), ("POST", "/v1/chat/completions"));
    assert_eq!(asked.headers["content-length"], asked.body.len().to_string());
    assert_eq!(asked.headers["authorization"], "Bearer sk-client");
    until("the log line", || !worker.lines("path", "/v1/messages").is_empty()).await;
    let lines = worker.lines("request_id", got.header("request-id"));
    assert_eq!(lines.len(), 1, "{lines:?}");
    for (key, value) in [("model", "claude-x"), ("upstream", "default"), ("cause", "end_turn")] {
        assert_eq!(lines[0][key], value, "{lines:?}");
    }
    assert!(!worker.log().contains("Hello") && !worker.log().contains("Hi there"));
}

#[tokio::test]
async fn an_answer_that_is_compressed_all_the_same_is_read() {
    let upstream = Upstream::start_with_headers(|_, mut out| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(COMPLETION.as_bytes()).unwrap();
        let body = encoder.finish().unwrap();
        tokio::spawn(async move { out.send_data(body.into()).await });
        let headers = [("content-type", "application/json"), ("content-encoding", "gzip")];
        let headers = headers.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        (200, HeaderMap::from_iter::<[(hyper::header::HeaderName, _); 2]>(headers))
    })
    .await;
    let worker = Worker::start(&upstream.url(), "{}");
    let got = post(&worker, "/v1/messages", messages(false)).await;
    assert_eq!(got.status, 200, "{got:?}");
    assert_eq!(got.json()["content"][0]["text"], "Hi there");
}

#[tokio::test]
async fn an_error_of_the_upstream_is_told_in_the_clients_words() {
    let body = r#"{"error":{"message":"slow down","type":"rate_limit_exceeded"}}"#;
    let upstream = Upstream::answering(429, "application/json", body).await;
    let worker = Worker::start(&upstream.url(), "{}");
    let got = post(&worker, "/v1/messages", messages(true)).await;
    got.assert_error(429, "rate_limit_error", "slow down");
}

#[tokio::test]
async fn an_upstream_that_refuses_the_calls_is_asked_again_without_them() {
    refuses_the_calls_once(400, "application/json", "").await;
}

#[tokio::test]
async fn so_is_one_that_has_given_its_status_before() {
    refuses_the_calls_once(200, "application/json", "").await;
    refuses_the_calls_once(200, "text/event-stream", "data: ").await;
}

async fn refuses_the_calls_once(status: u16, content_type: &'static str, before: &'static str) {
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let upstream = Upstream::start(move |_, mut out| {
        let first = asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0;
        let refusal = r#"{"error":{"message":"An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: call_1"}}"#;
        let refused = (status, content_type, format!("{before}{refusal}\n\n"));
        let answered = (200, "application/json", COMPLETION.to_owned());
        let (status, content_type, body) = if first { refused } else { answered };
        tokio::spawn(async move { out.send_data(Bytes::from(body)).await });
        (status, content_type)
    })
    .await;
    let worker = Worker::start(&upstream.url(), "{}");
    let body = r#"{"model":"m","max_tokens":9,"tools":[{"name":"f","input_schema":{"type":"object"}}],"messages":[
        {"role":"user","content":"go"},
        {"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"f","input":{}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"done"}]}]}"#;
    let got = post(&worker, "/v1/messages", body).await;
    assert_eq!(got.status, 200, "{got:?}");
    assert_eq!(got.header("x-creole-guard"), "pairing");
    let asked = upstream.asked.lock().unwrap();
    assert_eq!(asked.len(), 2);
    assert!(asked[0].body.contains("\"tool_calls\"") && !asked[1].body.contains("\"tool_calls\""));
}

#[tokio::test]
async fn what_is_refused_one_after_the_other_is_left_out_one_after_the_other() {
    let upstream = Upstream::refusing(&["max_tokens", "temperature", "stop"]).await;
    let worker = Worker::start(&upstream.url(), "{}");
    let body = r#"{"model":"m","max_tokens":9,"temperature":0.5,"stop_sequences":["END"],
        "messages":[{"role":"user","content":"q"}]}"#;
    let got = post(&worker, "/v1/messages", body).await;
    assert_eq!(got.status, 200, "{got:?}");
    assert_eq!(upstream.asked.lock().unwrap().len(), 4);
    assert!(upstream.last().body.contains(r#""max_completion_tokens":9"#));
}

#[tokio::test]
async fn a_client_whose_base_url_lacks_v1_is_served() {
    let upstream = Upstream::answering(200, "application/json", COMPLETION).await;
    let worker = Worker::start(&upstream.url(), "{}");
    assert_eq!(post(&worker, "/messages", messages(false)).await.status, 200);
    assert_eq!(upstream.last().path, "/v1/chat/completions");
}

#[tokio::test]
async fn one_of_several_upstreams_is_chosen_by_the_model() {
    let first = Upstream::answering(200, "application/json", COMPLETION).await;
    let second = Upstream::answering(200, "text/event-stream", "data: [DONE]\n\n").await;
    let config = format!(
        r#"{{"upstreams": {{"a": {{"url": "http://{}"}}, "b": {{"url": "http://{}", "base_path": "/b/v2"}}}},
            "models": {{"claude-x": {{"upstream": "b", "model": "qwen"}}, "*": {{"upstream": "a"}}}}}}"#,
        first.address, second.address
    );
    // The configuration is a JSON variable, as `[vars.CREOLE_CONFIG]` in wrangler.toml makes one.
    let worker = Worker::start_with_json("CREOLE_CONFIG", &config);
    post(&worker, "/v1/messages", messages(false)).await;
    assert_eq!(second.last().path, "/b/v2/chat/completions");
    let asked: serde_json::Value = serde_json::from_str(&second.last().body).unwrap();
    assert_eq!(asked["model"], "qwen");
    let other = messages(false).replace("claude-x", "other");
    assert_eq!(post(&worker, "/v1/messages", other).await.status, 200);
    assert_eq!(first.last().path, "/v1/chat/completions");
}

#[tokio::test]
async fn a_bad_configuration_is_told_in_the_log_with_its_place_and_to_clients_without() {
    for (config, place) in [
        (r#"{"strikt": true}"#, "configuration: strikt: "),
        (r#"{"upstreams": {"a": {"key": {"secret": "NO"}}}}"#, "upstreams.a.key.secret: "),
        (r#"{"upstreams": {"a": {}}}"#, "upstreams.a.url: "),
    ] {
        let worker = Worker::start_with(&[("CREOLE_CONFIG", config)]);
        for path in ["/", "/v1/messages", "/v1/files"] {
            let got = post(&worker, path, "{}").await;
            got.assert_error(500, "api_error", "its log says why");
            assert!(!got.body.contains(place), "{got:?}");
        }
        until("the log", || worker.log().contains(place)).await;
        assert_eq!(worker.log().matches(place).count(), 1, "{}", worker.log());
    }
}

#[tokio::test]
async fn an_empty_key_is_no_open_door() {
    for (name, value) in [("CLIENT_KEY", ""), ("CLIENT_KEY", " "), ("UPSTREAM_KEY", "")] {
        let other = if name == "CLIENT_KEY" { "UPSTREAM_KEY" } else { "CLIENT_KEY" };
        let variables = [("UPSTREAM_URL", &*nobody().await), (name, value), (other, "sk-other")];
        let worker = Worker::start_with(&variables);
        let got = post(&worker, "/v1/messages", messages(false)).await;
        got.assert_error(500, "api_error", "its log says why");
        until("the log", || worker.log().contains(&format!("{name}: expected a key"))).await;
    }
}

#[tokio::test]
async fn what_every_object_has_is_no_variable() {
    for name in ["toString", "constructor", "__proto__"] {
        let config = format!(r#"{{"upstreams": {{"a": {{"key": {{"env": "{name}"}}}}}}}}"#);
        let worker = Worker::start(&nobody().await, &config);
        let got = soon("an answer", post(&worker, "/v1/messages", messages(false))).await;
        got.assert_error(500, "api_error", "its log says why");
        until("the log", || worker.log().contains("upstreams.a.key.env: ")).await;
    }
}

#[tokio::test]
async fn web_pages_of_others_cannot_use_a_worker_of_ones_own() {
    let upstream = Upstream::answering(200, "application/json", COMPLETION).await;
    let (url, keys) = (upstream.url(), ("UPSTREAM_KEY", "sk-worker"));
    let worker = Worker::start_with(&[("UPSTREAM_URL", &url), keys]);
    let ask = async |worker: &Worker, path: &str, headers: &[(&'static str, &str)]| {
        let mut sent = request(if path == "/" { "GET" } else { "POST" }, path, messages(false));
        if path == "/" {
            sent = request("GET", path, "");
        }
        for (name, value) in headers {
            sent.headers_mut().insert(*name, value.parse().unwrap());
        }
        send(worker, sent).await
    };
    for path in ["/v1/messages", "/v1/files", "/"] {
        for headers in [
            &[("host", "localhost:1"), ("origin", "http://evil.example")][..],
            &[("host", "127.0.0.1"), ("origin", "null")],
            &[("host", "localhost"), ("sec-fetch-site", "cross-site")],
            &[("host", "evil.example")],
            &[("host", "evil.example"), ("cf-connecting-ip", "1.2.3.4")],
            &[("host", "evil.example"), ("origin", "http://evil.example")],
        ] {
            ask(&worker, path, headers).await.assert_error(403, "permission_error", "");
        }
    }
    assert!(upstream.asked.lock().unwrap().is_empty());
    for host in ["localhost:8080", "127.0.0.1", "creole"] {
        let headers = [("host", host), ("origin", "http://localhost:3000")];
        assert_eq!(ask(&worker, "/v1/messages", &headers).await.status, 200, "{host}");
    }
    // One Worker allows the names of a proxy in front; the clients of the other Worker have keys.
    let named = [("UPSTREAM_URL", &*url), keys, ("ALLOWED_HOSTS", "creole.example,b.example")];
    let keyed = [("UPSTREAM_URL", &*url), keys, ("CLIENT_KEY", "sk-client")];
    for variables in [named, keyed] {
        let worker = Worker::start_with(&variables);
        let got = ask(&worker, "/v1/messages", &[("host", "b.example:443")]).await;
        assert_eq!(got.status, 200, "{got:?}");
    }
}
