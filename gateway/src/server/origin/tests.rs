//! Tests of `origin.rs`.

use super::*;

use creole::callers::{FOREIGN_HOST, FOREIGN_ORIGIN, FOREIGN_SITE};
use hyper::Request;

fn refused(callers: &Callers, headers: &[(&str, &str)]) -> Option<&'static str> {
    let mut request = Request::builder().uri("/v1/messages");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    callers.refuse(&request.body(()).unwrap().into_parts().0)
}

fn local(allowed: &[&str]) -> Callers {
    let allowed: Vec<String> = allowed.iter().map(|&name| name.to_owned()).collect();
    Callers::new(SocketAddr::from(([127, 0, 0, 1], 8787)), &allowed, false)
}

#[test]
fn only_hosts_that_nobody_else_can_point_here_are_answered() {
    for host in [
        "localhost",
        "LOCALHOST:8787",
        "localhost.:8787",
        "127.0.0.1:8787",
        "192.168.1.5",
        "[::1]:8787",
        "[::1]",
        "model.localhost",
        "host.docker.internal:8787",
        "laptop:8787",
    ] {
        assert_eq!(refused(&local(&[]), &[("host", host)]), None, "{host}");
    }
    for host in
        ["evil.example", "evil.example:8787", "127.0.0.1.evil.example", "localhost.evil", "é.a"]
    {
        assert_eq!(refused(&local(&[]), &[("host", host)]), Some(FOREIGN_HOST), "{host}");
    }
    assert_eq!(refused(&local(&[]), &[]), None);
    let two = [("host", "localhost"), ("host", "evil.example")];
    assert_eq!(refused(&local(&[]), &two), Some(FOREIGN_HOST));
    assert_eq!(refused(&local(&["AI.example.com"]), &[("host", "ai.example.com:443")]), None);
}

#[test]
fn only_pages_of_this_machine_are_answered() {
    for origin in [
        "http://localhost:3000",
        "https://127.0.0.1",
        "http://[::1]:1",
        "vscode-webview://1a2b",
        "chrome-extension://abc",
    ] {
        let sent = [("host", "localhost"), ("origin", origin)];
        assert_eq!(refused(&local(&[]), &sent), None, "{origin}");
    }
    for origin in [
        "null",
        "",
        "http://evil.example",
        "HTTP://evil.example",
        "http://6.6.6.6",
        "http://router",
        "http://localhost.evil.example",
    ] {
        let sent = [("host", "localhost"), ("origin", origin)];
        assert_eq!(refused(&local(&[]), &sent), Some(FOREIGN_ORIGIN), "{origin}");
    }
    let sent = [("host", "localhost"), ("origin", "https://chat.example.com")];
    assert_eq!(refused(&local(&["chat.example.com"]), &sent), None);
}

fn everywhere(allowed: &[&str]) -> Callers {
    let allowed: Vec<String> = allowed.iter().map(|&name| name.to_owned()).collect();
    Callers::new(SocketAddr::from(([0, 0, 0, 0], 8787)), &allowed, false)
}

#[test]
fn an_address_that_others_reach_has_names_of_its_own() {
    let sent = [("host", "ai.example.com")];
    assert_eq!(refused(&everywhere(&[]), &sent), None);
    // A container that is published on a loopback address allows only `localhost`.
    assert_eq!(refused(&everywhere(&["localhost"]), &sent), Some(FOREIGN_HOST));
    assert_eq!(refused(&everywhere(&["ai.example.com"]), &sent), None);
}

/// Returns the check of callers for the container's command, which has `--allow-host localhost`.
fn container(has_keys: bool) -> Callers {
    Callers::new(SocketAddr::from(([0, 0, 0, 0], 8787)), &["localhost".to_owned()], has_keys)
}

fn metrics(address: [u8; 4]) -> Callers {
    Callers::of_metrics(SocketAddr::from((address, 9787)), &["localhost".to_owned()])
}

#[test]
fn where_clients_have_keys_proxies_and_clusters_use_any_name() {
    for host in ["ai.example.com", "creole.apps.svc.cluster.local:8787"] {
        let sent = [("host", host)];
        assert_eq!(refused(&container(true), &sent), None, "{host}");
        assert_eq!(refused(&container(false), &sent), Some(FOREIGN_HOST), "{host}");
    }
    let callers = Callers::new(SocketAddr::from(([127, 0, 0, 1], 8787)), &[], true);
    assert_eq!(refused(&callers, &[("host", "evil.example")]), Some(FOREIGN_HOST));
}

#[test]
fn metrics_are_given_by_any_name_but_on_a_loopback_address() {
    let sent = [("host", "creole.apps.svc.cluster.local:9787")];
    assert_eq!(refused(&metrics([0, 0, 0, 0]), &sent), None);
    assert_eq!(refused(&metrics([127, 0, 0, 1]), &sent), Some(FOREIGN_HOST));
}

#[test]
fn pages_of_other_hosts_are_refused_on_every_address() {
    let own = [local(&[]), everywhere(&[]), everywhere(&["localhost"])];
    for callers in own.into_iter().chain([container(true), metrics([0, 0, 0, 0])]) {
        for origin in ["http://evil.example", "null", "https://ai.example.com"] {
            let sent = [("host", "127.0.0.1:8787"), ("origin", origin)];
            assert_eq!(refused(&callers, &sent), Some(FOREIGN_ORIGIN), "{callers:?} {origin}");
        }
    }
    // The name of the foreign host points to this machine.
    let sent = [("host", "evil.example:8787"), ("origin", "http://evil.example:8787")];
    assert_eq!(refused(&everywhere(&[]), &sent), Some(FOREIGN_ORIGIN));
    let sent = [("host", "ai.example.com"), ("origin", "https://ai.example.com")];
    assert_eq!(refused(&everywhere(&["ai.example.com"]), &sent), None);
}

#[test]
fn a_page_that_sends_no_origin_is_known_by_its_site() {
    for callers in [local(&[]), everywhere(&[])] {
        for site in ["cross-site", "same-site", "Cross-Site", "", "none, none"] {
            let sent = [("host", "127.0.0.1:8787"), ("sec-fetch-site", site)];
            assert_eq!(refused(&callers, &sent), Some(FOREIGN_SITE), "{site:?}");
        }
        for (host, refusal) in [
            ("127.0.0.1:8787", None),
            ("localhost", None),
            ("192.168.1.5:8787", None),
            ("wpad:8787", Some(FOREIGN_SITE)),
        ] {
            let sent = [("host", host), ("sec-fetch-site", "same-origin")];
            assert_eq!(refused(&callers, &sent), refusal, "{host}");
        }
        let sent = [("host", "127.0.0.1:8787"), ("sec-fetch-site", "none")];
        assert_eq!(refused(&callers, &sent), None);
        // A page of this machine names its own origin.
        let sent = [
            ("host", "127.0.0.1:8787"),
            ("origin", "http://localhost:3000"),
            ("sec-fetch-site", "cross-site"),
        ];
        assert_eq!(refused(&callers, &sent), None);
    }
    let two = [("host", "127.0.0.1"), ("sec-fetch-site", "none"), ("sec-fetch-site", "cross-site")];
    assert_eq!(refused(&local(&[]), &two), Some(FOREIGN_SITE));
    let sent = [("host", "evil.example"), ("sec-fetch-site", "same-origin")];
    assert_eq!(refused(&everywhere(&[]), &sent), Some(FOREIGN_SITE));
}
