//! The page for browsers: who may read it, and what is in it. `harness/page` looks at it in a real
//! browser.

use crate::rig::{COMPLETION, Gateway, Got, Upstream, client, messages, request, send};
use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;

const CANARY: &str = "canary-of-a-prompt";

fn asked(gateway: &Gateway, headers: &[(&str, &str)]) -> Request<Full<Bytes>> {
    let mut builder = Request::builder().uri(gateway.url("/"));
    for (name, value) in headers {
        builder = builder.header(*name, *value);
    }
    builder.body(Full::default()).unwrap()
}

async fn get(gateway: &Gateway, headers: &[(&str, &str)]) -> Got {
    send(&client(false), asked(gateway, headers)).await
}

const BROWSER: (&str, &str) = ("accept", "text/html,application/xhtml+xml,*/*;q=0.8");

#[tokio::test]
async fn a_browser_gets_a_page_and_a_probe_what_it_always_got() {
    let upstream = Upstream::answering(200, "application/json", COMPLETION).await;
    let gateway = Gateway::start(&upstream.url(), "{}");
    let body = messages(false).replace("Hello", CANARY);
    assert!(body.contains(CANARY));
    let sent = request("POST", &gateway.url("/v1/messages"), body);
    assert_eq!(send(&client(false), sent).await.status, 200);
    let page = get(&gateway, &[BROWSER]).await;
    assert_eq!(page.status, 200);
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    assert!(page.body.contains("data-label=\"Status\"") && page.body.contains("@default"));
    assert!(!page.body.contains(CANARY) && !page.body.contains("sk-client"), "{}", page.body);
    let policy = page.header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'; script-src 'nonce-"), "{policy}");
    for address in ["src=", "url(", "@import", "//cdn"] {
        assert!(!page.body.contains(address), "{address}");
    }
    for accept in ["*/*", "application/json", "text/plain, */*"] {
        let probe = get(&gateway, &[("accept", accept)]).await;
        assert_eq!(probe.status, 200);
        assert!(!probe.body.contains('<'), "{accept}: {}", probe.body);
    }
    let probe = get(&gateway, &[]).await;
    assert!(!probe.body.contains('<'), "{}", probe.body);
}

#[tokio::test]
async fn a_page_from_elsewhere_a_false_name_and_a_proxy_in_front_get_no_page() {
    let upstream = Upstream::answering(200, "application/json", COMPLETION).await;
    let gateway = Gateway::start(&upstream.url(), "{}");
    let accepts = [BROWSER, ("accept", "text/event-stream")];
    for accept in accepts {
        for foreign in [
            ("origin", "https://evil.example"),
            ("sec-fetch-site", "cross-site"),
            ("host", "rebound.example"),
        ] {
            assert_eq!(get(&gateway, &[accept, foreign]).await.status, 403, "{foreign:?}");
        }
        for proxied in [
            "x-forwarded-for",
            "x-forwarded-host",
            "x-forwarded-proto",
            "forwarded",
            "x-real-ip",
            "via",
            "cf-connecting-ip",
        ] {
            let got = get(&gateway, &[accept, (proxied, "203.0.113.9")]).await;
            assert!(!got.body.contains("<html") && !got.body.contains("data:"), "{proxied}");
        }
    }
    let off = Gateway::start_with(&["--upstream", &upstream.url(), "--no-page"], "{}", &[]);
    for accept in accepts {
        let got = get(&off, &[accept]).await;
        assert!(got.status == 200 && !got.body.contains('<'), "{got:?}");
    }
}

#[tokio::test]
async fn where_clients_have_keys_and_beyond_loopback_the_page_wants_one() {
    let upstream = Upstream::answering(200, "application/json", COMPLETION).await;
    let url = upstream.url();
    let args = ["--upstream", &url, "--listen", "0.0.0.0:0"];
    let open = Gateway::start_with(&args, "{}", &[]);
    let here = format!("http://127.0.0.1:{}/", open.address.port());
    let mut sent = asked(&open, &[BROWSER]);
    *sent.uri_mut() = here.parse().unwrap();
    let got = send(&client(false), sent).await;
    assert!(!got.body.contains('<'), "without keys nobody may read it there: {}", got.body);
    let env = [("TEAM", "key-of-team"), ("OWN", "sk-own")];
    let args = ["--upstream", &url, "--key-env", "OWN", "--client-key-env", "TEAM"];
    let gateway = Gateway::start_with(&args, "{}", &env);
    let monitor = get(&gateway, &[BROWSER]).await;
    assert!(monitor.status == 200 && !monitor.body.contains('<'), "{monitor:?}");
    let person = get(&gateway, &[BROWSER, ("upgrade-insecure-requests", "1")]).await;
    assert_eq!(person.status, 401);
    assert!(person.header("www-authenticate").starts_with("Basic "), "{person:?}");
    // any:key-of-team, and any:key-of-tear
    for (name, value, is_let) in [
        ("authorization", "Basic YW55OmtleS1vZi10ZWFt", true),
        ("authorization", "Basic YW55OmtleS1vZi10ZWFy", false),
        ("authorization", "Bearer key-of-team", true),
        ("x-api-key", "key-of-team", true),
        ("x-api-key", "sk-own", false),
    ] {
        let got = get(&gateway, &[BROWSER, (name, value)]).await;
        assert_eq!(got.body.contains("<html"), is_let, "{value}");
        assert!(!got.body.contains("key-of-team") && !got.body.contains("sk-own"));
    }
}
