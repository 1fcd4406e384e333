//! Who and what may come in: methods, base URLs, web pages, keys of clients, loops.

use crate::rig::{self, COMPLETION, Gateway, Upstream, client, messages, nobody, request, send};
use bytes::Bytes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const OWN_KEY: &str = "sk-operator-0123456789abcdef";

/// With a key of its own in front of `upstream`.
fn with_key(upstream: &str) -> Gateway {
    let env = [("TEST_KEY", OWN_KEY)];
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

#[tokio::test]
async fn where_clients_have_keys_every_path_but_the_probes_asks_for_one() {
    let upstream = Upstream::answering(200, "application/json", COMPLETION).await;
    let gateway = Gateway::start_with(
        &["--upstream", &upstream.url(), "--key-env", "TEST_KEY", "--client-key-env", "TEAM_B"],
        r#"{"client_keys": [{"secret": "TEAM_A", "name": "team-a"}]}"#,
        &[("TEST_KEY", OWN_KEY), ("TEAM_A", "key-of-team-a"), ("TEAM_B", "key-of-team-b")],
    );
    let sent = |method: &str, path: &str, name: &'static str, key: &str| {
        let body = if method == "POST" { messages(false) } else { String::new() };
        let mut sent = request(method, &gateway.url(path), body);
        sent.headers_mut().remove("x-api-key");
        sent.headers_mut().insert(name, key.parse().unwrap());
        sent
    };
    let paths = [
        ("POST", "/v1/messages"),
        ("POST", "/anthropic/v1/messages"),
        ("POST", "/v1/messages/count_tokens"),
        ("GET", "/v1/models"),
        ("GET", "/v1/files"),
        ("GET", "/metrics"),
    ];
    for (method, path) in paths {
        for (name, key) in
            [("x-api-key", "sk-client"), ("authorization", "Bearer key-of-team"), ("x-other", "k")]
        {
            let got = send(&client(false), sent(method, path, name, key)).await;
            got.assert_error(401, "authentication_error", "x-api-key");
        }
        assert!(upstream.asked.lock().unwrap().is_empty(), "{path}");
    }
    for (method, path) in paths {
        for (name, key) in
            [("x-api-key", "key-of-team-a"), ("authorization", "Bearer key-of-team-b")]
        {
            let got = send(&client(false), sent(method, path, name, key)).await;
            assert_eq!(got.status, 200, "{path} {got:?}");
        }
    }
    for asked in upstream.asked.lock().unwrap().iter() {
        let text = format!("{:?} {}", asked.headers, asked.body);
        assert!(text.contains(OWN_KEY) && !text.contains("key-of-team"), "{text}");
    }
    for path in ["/", "/api/hello"] {
        let got = send(&client(false), sent("GET", path, "x-other", "k")).await;
        assert_eq!(got.status, 200, "{path}");
    }
    rig::until("the log", || {
        gateway.lines(r#""client_key":"team-a""#).len() > 3
            && !gateway.lines(r#""client_key":"TEAM_B""#).is_empty()
            && gateway.lines(r#""cause":"unauthorized""#).len() >= 18
    })
    .await;
    assert!(!gateway.log().contains("key-of-team"), "{}", gateway.log());
    let metrics = send(&client(false), sent("GET", "/metrics", "x-api-key", "key-of-team-a")).await;
    let counted = r#"creole_client_requests_total{client_key="team-a",outcome="answered"}"#;
    assert!(metrics.body.contains(counted), "{}", metrics.body);
}

#[tokio::test]
async fn two_gateways_that_lead_to_each_other_end_a_request() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let first = Gateway::start(
        &format!("http://{address}/v1"),
        r#"{"upstreams":{"default":{"protocol":"anthropic"}}}"#,
    );
    let url = format!("http://{}/v1", first.address);
    let second = Gateway::start_with(
        &["--listen", &address, "--upstream", &url],
        r#"{"upstreams":{"default":{"protocol":"anthropic"}}}"#,
        &[],
    );
    for path in ["/v1/messages", "/v1/files"] {
        let got = send(&client(false), request("POST", &first.url(path), messages(false))).await;
        assert_eq!(got.status, 508, "{got:?}");
        assert!(got.body.contains("lead to each other"), "{got:?}");
    }
    rig::until("the log", || !second.lines(r#""status":508"#).is_empty()).await;
    assert!(first.log().lines().count() + second.log().lines().count() < 30);
}

#[tokio::test]
async fn beside_the_gateways_key_a_client_chooses_no_path_account_or_host() {
    let upstream = Upstream::answering(200, "application/json", "{}").await;
    let gateway = Gateway::start_with(
        &["--upstream", &upstream.url(), "--key-env", "TEST_KEY"],
        r#"{"upstreams":{"default":{"headers":{"CF-Access-Client-Secret":{"secret":"ACCESS"},"x-team":"a"}}}}"#,
        &[("TEST_KEY", OWN_KEY), ("ACCESS", "access-canary")],
    );
    let choosing = [
        "x-original-url",
        "x-rewrite-url",
        "x-http-method-override",
        "openai-organization",
        "openai-project",
        "x-forwarded-host",
        "x-envoy-original-dst-host",
        "anthropic-workspace-id",
        "x-unknown",
        "cookie",
        "x-team",
        "cf-access-client-secret",
    ];
    for path in ["/v1/files", "/v1/messages"] {
        let mut sent = request("POST", &gateway.url(path), messages(false));
        for name in choosing {
            sent.headers_mut().insert(name, "chosen".parse().unwrap());
        }
        sent.headers_mut().insert("traceparent", "00-1-2-01".parse().unwrap());
        send(&client(false), sent).await;
        let asked = upstream.last().headers;
        assert!(asked.values().all(|value| value != "chosen"), "{path} {asked:?}");
        assert_eq!(asked["content-type"], "application/json");
        assert_eq!(asked["traceparent"], "00-1-2-01");
        assert_eq!(asked["x-team"], "a");
        assert_eq!(asked["cf-access-client-secret"], "access-canary");
        assert_eq!(asked["authorization"], format!("Bearer {OWN_KEY}"));
    }
    assert!(!gateway.log().contains("access-canary"));
}

#[tokio::test]
async fn on_a_path_that_passes_the_upstream_answers_the_preflight_of_a_page_that_is_let_in() {
    let upstream = Upstream::answering(204, "text/plain", "").await;
    let gateway = with_key(&upstream.url());
    let asking = [
        ("origin", "http://localhost:3000"),
        ("access-control-request-method", "DELETE"),
        ("access-control-request-headers", "authorization"),
    ];
    let mut sent = request("OPTIONS", &gateway.url("/v1/files/f"), "");
    for (name, value) in asking {
        sent.headers_mut().insert(name, value.parse().unwrap());
    }
    assert_eq!(send(&client(false), sent).await.status, 204);
    let asked = upstream.last();
    assert_eq!((asked.method.as_str(), asked.path.as_str()), ("OPTIONS", "/v1/files/f"));
    for (name, value) in asking {
        assert_eq!(asked.headers[name], value);
    }
}

#[tokio::test]
async fn a_page_that_sends_no_origin_is_refused_by_its_site() {
    let upstream = Upstream::answering(200, "text/plain", "no").await;
    let gateway = with_key(&upstream.url());
    for (method, path) in [
        ("GET", "/v1/files"),
        ("GET", "/v1/messages"),
        ("POST", "/v1/messages"),
        ("GET", "/metrics"),
    ] {
        for site in ["cross-site", "same-site"] {
            let mut sent = request(method, &gateway.url(path), "");
            sent.headers_mut().insert("sec-fetch-site", site.parse().unwrap());
            let got = send(&client(false), sent).await;
            assert_eq!(got.status, 403, "{method} {path} {site} {got:?}");
            assert!(got.body.contains("Sec-Fetch-Site: web pages"), "{got:?}");
        }
    }
    assert!(upstream.asked.lock().unwrap().is_empty());
    let mut sent = request("GET", &gateway.url("/v1/files"), "");
    sent.headers_mut().insert("sec-fetch-site", "none".parse().unwrap());
    assert_eq!(send(&client(false), sent).await.status, 200);
}

#[tokio::test]
async fn a_long_key_is_sent_and_one_that_is_too_long_is_told_so() {
    let upstream = Upstream::answering(200, "application/json", COMPLETION).await;
    let gateway = Gateway::start(&upstream.url(), "{}");
    let ask = |length: usize| {
        let mut sent = request("POST", &gateway.url("/v1/messages"), messages(false));
        sent.headers_mut().remove("x-api-key");
        let key = format!("Bearer {}", "a".repeat(length));
        sent.headers_mut().insert("authorization", key.parse().unwrap());
        sent
    };
    for http2 in [false, true] {
        assert_eq!(send(&client(http2), ask(10_455)).await.status, 200);
        assert_eq!(upstream.last().headers["authorization"].len(), 10_455 + "Bearer ".len());
        let got = send(&client(http2), ask(40_000)).await;
        got.assert_error(
            401,
            "authentication_error",
            "authorization: expected at most 32768 bytes",
        );
    }
}

#[tokio::test]
async fn the_models_of_the_upstream_are_listed_where_the_configuration_names_none() {
    const LIST: &str = r#"{"object":"list","data":[{"id":"qwen","object":"model"}]}"#;
    let upstream = Upstream::answering(200, "application/json", LIST).await;
    let gateway = Gateway::start(&upstream.url(), "{}");
    let mut sent = request("GET", &gateway.url("/v1/models?limit=1000"), "");
    sent.headers_mut().insert("anthropic-version", "2023-06-01".parse().unwrap());
    let got = send(&client(false), sent).await;
    assert_eq!((got.status.as_u16(), got.json()["data"][0]["id"].as_str()), (200, Some("qwen")));
    assert_eq!(got.json()["data"][0]["type"], "model");
    let asked = upstream.last();
    assert_eq!((asked.method.as_str(), asked.path.as_str()), ("GET", "/v1/models"));
    assert_eq!(asked.headers["authorization"], "Bearer sk-client");
    assert!(asked.body.is_empty() && !asked.headers.contains_key("content-length"));
    let got = send(&client(false), request("GET", &gateway.url("/models"), "")).await;
    assert_eq!(got.body, LIST, "as the upstream says it");
    let none = Gateway::start(&nobody().await, "{}");
    let mut sent = request("GET", &none.url("/v1/models"), "");
    sent.headers_mut().insert("anthropic-version", "2023-06-01".parse().unwrap());
    let got = send(&client(false), sent).await;
    assert_eq!((got.status.as_u16(), got.json()["data"].as_array().unwrap().len()), (200, 0));
}
