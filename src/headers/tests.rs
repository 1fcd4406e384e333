use super::*;
use proptest::prelude::*;

fn headers(pairs: &[(&str, &str)]) -> Vec<Header> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn sent(pairs: &[(&str, &str)], key: &Key) -> Option<String> {
    let headers = to_upstream(&kept(&headers(pairs)), key, true).ok()?;
    headers.value("authorization").map(str::to_owned)
}

#[test]
fn the_upstream_gets_its_own_headers_and_those_of_tracing() {
    let client = headers(&[
        ("X-Api-Key", "sk-1"),
        ("cookie", "a=b"),
        ("anthropic-beta", "x"),
        ("anthropic-version", "2023-06-01"),
        ("user-agent", "claude-cli"),
        ("x-stainless-lang", "js"),
        ("accept-encoding", "gzip"),
        ("traceparent", "00-1-2-01"),
        ("tracestate", "a=1"),
        ("tracestate", "b=2"),
        ("baggage", "k=v"),
        ("x-request-id", "r1"),
    ]);
    let sent = to_upstream(&client, &Key::Client, true).unwrap();
    assert_eq!(
        sent,
        headers(&[
            ("content-type", "application/json"),
            ("accept", "text/event-stream"),
            ("accept-encoding", "identity"),
            ("user-agent", concat!("creole/", env!("CARGO_PKG_VERSION"))),
            ("authorization", "Bearer sk-1"),
            ("traceparent", "00-1-2-01"),
            ("tracestate", "a=1"),
            ("tracestate", "b=2"),
            ("baggage", "k=v"),
            ("x-request-id", "r1"),
            ("x-creole-hops", "1"),
        ])
    );
    assert_eq!(to_upstream(&kept(&client), &Key::Client, true).unwrap(), sent);
    let whole = to_upstream(&client, &Key::Client, false).unwrap();
    assert_eq!(whole.value("accept"), Some("application/json"));
}

#[test]
fn what_is_needed_later_is_kept() {
    let kept = kept(&headers(&[
        ("authorization", "Bearer t"),
        ("Anthropic-Version", "2026-10-21"),
        ("x-claude-code-session-id", "s"),
        ("x-claude-code-agent-id", "a"),
        ("cookie", "c"),
    ]));
    assert_eq!(kept.len(), 4);
    assert_eq!(kept.value("anthropic-version"), Some("2026-10-21"));
    assert!(kept.value("x-claude-code-session-id").is_some() && kept.value("cookie").is_none());
    assert_eq!(kept.value("x-claude-code-agent-id"), Some("a"));
    assert!(kept.iter().all(|(name, _)| *name == name.to_ascii_lowercase()));
}

#[test]
fn the_key_of_the_older_header_wins_and_the_gateways_own_replaces_both() {
    let both = [("authorization", "Bearer b"), ("x-api-key", "a")];
    assert_eq!(sent(&both, &Key::Client).unwrap(), "Bearer a");
    assert_eq!(sent(&both[..1], &Key::Client).unwrap(), "Bearer b");
    assert_eq!(sent(&[("authorization", "Basic eDp5")], &Key::Client).unwrap(), "Basic eDp5");
    assert_eq!(sent(&[("x-api-key", ""), both[0]], &Key::Client).unwrap(), "Bearer b");
    // Some clients write the scheme before the key in `x-api-key`.
    for key in ["Bearer a", "bearer  a"] {
        assert_eq!(sent(&[("x-api-key", key)], &Key::Client).unwrap(), "Bearer a");
    }
    assert_eq!(sent(&[("x-api-key", "Bearer"), both[0]], &Key::Client).unwrap(), "Bearer b");
    let own = Key::Secret("own\n".to_owned());
    assert_eq!(sent(&both, &own).unwrap(), "Bearer own");
    assert_eq!(sent(&[], &own).unwrap(), "Bearer own");
    // A secret that was copied out of a request has the scheme before it.
    let own = Key::Secret("Bearer own\n".to_owned());
    assert_eq!(sent(&[], &own).unwrap(), "Bearer own");
    assert_eq!(sent(&both, &Key::Secret("o\nwn".to_owned())), None);
}

#[test]
fn a_request_without_credentials_is_refused() {
    let required = "x-api-key header is required";
    for (pairs, message) in [
        (&[][..], required),
        (&[("x-api-key", " ")], required),
        (&[("authorization", "Bearer ")], required),
        (&[("x-api-key", "a\r\nx: y")], "x-api-key: expected visible ASCII characters in one line"),
    ] {
        let error = to_upstream(&headers(pairs), &Key::Client, false).unwrap_err();
        assert_eq!((error.status, error.kind), (401, ErrorKind::Authentication));
        assert_eq!(error.message, message);
        assert!(to_upstream(&headers(pairs), &Key::None, false).is_ok());
    }
}

#[test]
fn the_client_gets_ids_retries_and_limits() {
    let upstream = headers(&[
        ("X-Request-Id", "up1"),
        ("retry-after", "7"),
        ("retry-after-ms", "6500"),
        ("x-should-retry", "true"),
        ("x-ratelimit-limit-requests", "500"),
        ("x-ratelimit-remaining-requests", "499"),
        ("x-ratelimit-reset-requests", "120ms"),
        ("x-ratelimit-limit-tokens", "30000"),
        ("x-ratelimit-remaining-tokens", "29000"),
        ("x-ratelimit-reset-tokens", "6m0s"),
        ("openai-organization", "org"),
        ("set-cookie", "a=b"),
        ("server", "x"),
        ("cf-ray", "y"),
        ("content-length", "3"),
    ]);
    assert_eq!(
        to_client(&upstream, 1_000_000_000_000),
        headers(&[
            ("x-upstream-request-id", "up1"),
            ("retry-after", "7"),
            ("retry-after-ms", "6500"),
            ("x-should-retry", "true"),
            ("anthropic-ratelimit-requests-limit", "500"),
            ("anthropic-ratelimit-requests-remaining", "499"),
            ("anthropic-ratelimit-requests-reset", "2001-09-09T01:46:41Z"),
            ("anthropic-ratelimit-tokens-limit", "30000"),
            ("anthropic-ratelimit-tokens-remaining", "29000"),
            ("anthropic-ratelimit-tokens-reset", "2001-09-09T01:52:40Z"),
        ])
    );
}

#[test]
fn a_value_that_is_none_stays_behind() {
    let long = "x".repeat(VALUE_BYTES_MAX + 1);
    for bad in ["a\r\nset-cookie: b", "a\nb", "a\0", "\u{7f}", "é", "", &long] {
        let pairs = [("x-request-id", bad), ("retry-after", bad), ("traceparent", bad)];
        assert_eq!(to_client(&headers(&pairs), 0), [], "{bad:?}");
        assert_eq!(kept(&headers(&pairs)), [], "{bad:?}");
        assert!(!is_value(bad));
    }
    assert!(is_value("chatcmpl-1 x") && !is_value(" x") && !is_value("x "));
}

proptest! {
    #[test]
    fn nothing_that_a_server_sends_breaks_a_header(value in any::<String>(), now in any::<u64>()) {
        let names = ["x-request-id", "retry-after", "x-ratelimit-limit-tokens", "x-ratelimit-reset-tokens"];
        let upstream: Vec<Header> =
            names.iter().map(|name| ((*name).to_owned(), value.clone())).collect();
        for (_, value) in to_client(&upstream, now) {
            prop_assert!(is_value(&value));
        }
    }
}
