//! Tests of `pass.rs`.

use super::*;
use crate::config::{Key, Protocol};

#[test]
fn headers_of_one_connection_stay_there() {
    let change = PassedHead::of_answer(["close, X-Mine", "te"]);
    for name in ["connection", "x-mine", "te", "transfer-encoding", "proxy-authorization"] {
        assert!(change.remove.iter().any(|it| it == name), "{name}");
    }
    for name in ["authorization", "openai-organization", "host"] {
        assert!(change.remove.iter().all(|it| it != name), "{name}");
    }
    assert_eq!(change.set, []);
}

/// Returns the headers that an upstream gets if the client sends the headers `sent`.
fn passed_of(sent: &[(&str, &str)], upstream: &Upstream) -> Vec<(String, String)> {
    let change = PassedHead::of_request(sent.iter().copied(), upstream);
    let kept = sent.iter().filter(|(name, _)| !change.remove.contains(&name.to_lowercase()));
    let mut left: Vec<Header> =
        kept.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    left.extend(change.set);
    left
}

fn names(headers: &[Header]) -> Vec<&str> {
    headers.iter().map(|(name, _)| name.as_str()).collect()
}

#[test]
fn the_upstreams_own_key_replaces_the_clients() {
    let mut upstream = Upstream::named("u");
    let credentials = [
        ("authorization", "mine"),
        ("x-api-key", "mine"),
        ("api-key", "mine"),
        ("x-goog-api-key", "mine"),
        ("cookie", "mine"),
    ];
    let key = |upstream: &Upstream| -> Vec<(String, String)> {
        let mut left = passed_of(&credentials, upstream);
        left.retain(|(name, _)| name != headers::HOPS);
        left
    };
    let set = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
    assert_eq!(key(&upstream).len(), credentials.len());
    upstream.key = Key::None;
    assert_eq!(key(&upstream), []);
    upstream.key = Key::Secret("sk ".to_owned());
    assert_eq!(key(&upstream), set("authorization", "Bearer sk"));
    upstream.protocol = Protocol::Anthropic;
    assert_eq!(key(&upstream), set("x-api-key", "sk"));
    upstream.key = Key::Secret(" Bearer oat ".to_owned());
    assert_eq!(key(&upstream), set("authorization", "Bearer oat"));
}

#[test]
fn beside_something_of_the_operators_a_client_chooses_no_path_account_or_host() {
    let mut upstream = Upstream::named("u");
    upstream.key = Key::Secret("sk".to_owned());
    let choosing = [
        "X-Original-URL",
        "x-rewrite-url",
        "x-http-method-override",
        "openai-organization",
        "openai-project",
        "anthropic-workspace-id",
        "anthropic-user-profile-id",
        "x-goog-user-project",
        "x-forwarded-host",
        "x-forwarded-prefix",
        "forwarded",
        "x-envoy-original-dst-host",
        "chatgpt-account-id",
        "x-portkey-config",
        "helicone-auth",
        "host",
        "x-anything",
    ];
    let useful = [
        "content-type",
        "Accept",
        "openai-beta",
        "anthropic-beta",
        "traceparent",
        "Origin",
        "access-control-request-method",
        "access-control-request-headers",
    ];
    let sent: Vec<(&str, &str)> = choosing.iter().chain(&useful).map(|name| (*name, "v")).collect();
    let left = passed_of(&sent, &upstream);
    let expected = [&useful[..], &["x-creole-hops", "authorization"]].concat();
    assert_eq!(names(&left), expected);
    // If the operator configures headers, the client's headers are restricted as with the
    // operator's key, but the client's own key is forwarded.
    upstream.key = Key::Client;
    let header = crate::config::UpstreamHeader {
        name: "x-team".to_owned(),
        value: "a".to_owned(),
        is_secret: false,
    };
    upstream.headers = vec![header];
    let sent = [("x-team", "b"), ("openai-project", "p"), ("authorization", "Bearer mine")];
    let left = passed_of(&sent, &upstream);
    assert_eq!(names(&left), ["authorization", "x-creole-hops", "x-team"]);
    assert_eq!(left.last().unwrap().1, "a");
}

#[test]
fn with_a_key_of_its_own_a_client_chooses_all_but_the_path() {
    let upstream = Upstream::named("u");
    let sent = [("openai-organization", "o"), ("x-original-url", "/"), ("x-odd", "1")];
    let left = passed_of(&sent, &upstream);
    assert_eq!(names(&left), ["openai-organization", "x-odd", "x-creole-hops"]);
}

#[test]
fn a_request_that_passes_is_counted_like_others() {
    let upstream = Upstream::named("u");
    let hops = |sent: &[(&str, &str)]| passed_of(sent, &upstream).pop().unwrap().1;
    assert_eq!(hops(&[]), "1");
    assert_eq!(hops(&[("X-Creole-Hops", "1"), ("x-creole-hops", "3")]), "4");
    assert_eq!(hops(&[("x-creole-hops", "many")]), "1");
    assert_eq!(hops(&[("x-creole-hops", "4294967295")]), "4294967295");
}
