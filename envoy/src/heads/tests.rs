//! Tests of `heads.rs`.

use super::*;

fn header(name: &str, value: &str) -> Header {
    (name.to_owned(), value.to_owned())
}

fn client() -> Vec<Header> {
    vec![
        header(":method", "POST"),
        header(":path", "/v1/messages?beta=true"),
        header(":authority", "gateway"),
        header("x-api-key", "sk-client"),
        header("content-length", "17"),
        header("x-forwarded-proto", "https"),
        header("b3", "0"),
        header("x-b3-traceid", "1"),
        header("x-envoy-expected-rq-timeout-ms", "2"),
        header("x-request-id", "of the client"),
        header("traceparent", "of the client"),
        header("x-creole-upstream", "chosen-by-client"),
        header("x-original-url", "/v1/files"),
        header("x-rewrite-url", "/v1/files"),
        header("x-http-method-override", "DELETE"),
        header("openai-organization", "of the client"),
    ]
}

#[test]
fn the_clients_headers_stay_here_and_envoys_go_on() {
    // The core's own headers replace the client's headers of the same names.
    let ours = vec![header("authorization", "Bearer k"), header("x-request-id", "ours")];
    let upstream = Upstream::named("big");
    let head = for_upstream(&client(), &upstream, "/v1/chat/completions", ours, Some(3));
    assert_eq!(
        head,
        [
            header(":method", "POST"),
            header(":path", "/v1/chat/completions"),
            header(":authority", "gateway"),
            header("x-forwarded-proto", "https"),
            header("b3", "0"),
            header("x-b3-traceid", "1"),
            header("x-envoy-expected-rq-timeout-ms", "2"),
            header("authorization", "Bearer k"),
            header("x-request-id", "ours"),
            header("x-creole-upstream", "big"),
            header("content-length", "3"),
        ]
    );
}

#[test]
fn the_url_gives_the_authority_and_the_cluster_gives_the_route() {
    let mut upstream = Upstream::named("big");
    upstream.url = "https://models.example:8443".to_owned();
    upstream.cluster = "blue".to_owned();
    let head = for_upstream(&client(), &upstream, "/v1/chat/completions", Vec::new(), None);
    assert_eq!(head.value(":authority"), Some("models.example:8443"));
    assert_eq!(head.value(":path"), Some("/v1/chat/completions"));
    assert_eq!(head.value(ROUTING_HEADER), Some("blue"));
    assert_eq!(head.value("content-length"), None);
}

#[test]
fn a_client_gives_envoys_router_no_instructions() {
    let instructions = [
        "x-envoy-original-dst-host",
        "x-envoy-original-path",
        "x-envoy-original-url",
        "x-envoy-max-retries",
        "x-envoy-retry-on",
        "x-envoy-retriable-status-codes",
        "x-envoy-hedge-on-per-try-timeout",
        "x-envoy-upstream-rq-timeout-ms",
        "x-envoy-upstream-rq-per-try-timeout-ms",
        "x-envoy-upstream-alt-stat-name",
        "x-envoy-host-override",
    ];
    let client: Vec<Header> = instructions.iter().map(|name| header(name, "1")).collect();
    let head = for_upstream(&client, &Upstream::named("big"), "/", Vec::new(), None);
    assert_eq!(head, [header("x-creole-upstream", "big")]);
}

#[test]
fn a_client_of_the_messages_api_is_told_by_what_it_sends() {
    for (name, value) in [
        ("x-api-key", "k"),
        ("anthropic-version", "2023-06-01"),
        ("anthropic-beta", "x"),
        ("user-agent", "claude-cli/2.1.328 (external, cli)"),
        ("user-agent", "Anthropic/Python 2.10.0"),
    ] {
        assert!(is_of_client(&[header(name, value)]), "{name}");
    }
    for (name, value) in [
        ("user-agent", "Mozilla/5.0 (X11; Linux x86_64)"),
        ("user-agent", "curl/8.5.0"),
        ("authorization", "Bearer k"),
        ("cookie", "a=b"),
    ] {
        assert!(!is_of_client(&[header(name, value)]), "{name}: {value}");
    }
}
