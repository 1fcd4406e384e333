//! Tests of `mod.rs`. Those of the gateway's addresses are with the gateway.

use super::*;

/// Returns the refusal of a browser's request, whose target is its `Host`.
fn refused(callers: &Callers, host: &str, more: &[(&str, &str)]) -> Option<&'static str> {
    let headers = more.iter().map(|(name, value)| (*name, Some(*value)));
    callers.refuse(Some(host), headers.chain([("host", Some(host))]))
}

#[test]
fn programs_near_a_local_host_are_answered_and_pages_of_others_are_not() {
    let local = Callers::of_variable(None);
    for host in ["localhost:8787", "127.0.0.1", "[::1]:80", "10.0.0.7:1", "creole", "a.localhost"] {
        assert_eq!(refused(&local, host, &[]), None, "{host}");
        assert_eq!(refused(&local, host, &[("origin", "http://localhost:3000")]), None, "{host}");
        assert_eq!(refused(&local, host, &[("origin", "vscode-webview://x")]), None, "{host}");
        for origin in ["http://evil.example", "null", "https://10.0.0.7"] {
            let page = [("origin", origin)];
            assert_eq!(refused(&local, host, &page), Some(FOREIGN_ORIGIN), "{host} {origin}");
        }
        let image = [("sec-fetch-site", "cross-site")];
        assert_eq!(refused(&local, host, &image), Some(FOREIGN_SITE), "{host}");
    }
    for rebound in
        ["evil.example", "evil.example:8787", "localhost.evil.example", "127.0.0.1.nip.io"]
    {
        assert_eq!(refused(&local, rebound, &[]), Some(FOREIGN_HOST), "{rebound}");
    }
}

#[test]
fn a_host_with_names_of_its_own_is_called_by_them() {
    let named = Callers::of_variable(Some("creole.example, .,Other.example:443"));
    for host in ["creole.example", "CREOLE.example:80", "other.example", "localhost"] {
        let origin = format!("https://{host}");
        assert_eq!(refused(&named, host, &[("origin", &origin)]), None, "{host}");
        assert_eq!(refused(&named, host, &[("sec-fetch-site", "same-origin")]), None, "{host}");
    }
    assert_eq!(refused(&named, "evil.example", &[]), Some(FOREIGN_HOST));
    assert_eq!(refused(&named, "creole", &[("sec-fetch-site", "same-origin")]), Some(FOREIGN_SITE));
    let everywhere = Callers::new(false, &[]);
    assert_eq!(refused(&everywhere, "creole.example", &[]), None);
    assert_eq!(everywhere.refuse(None, [("origin", None)]), Some(FOREIGN_ORIGIN));
    assert_eq!(named.refuse(None, [("host", None)]), Some(FOREIGN_HOST));
}

#[test]
fn loopback_is_this_machine_alone() {
    for (authority, expected) in [
        ("localhost", true),
        ("LOCALHOST.:80", true),
        ("127.8.0.1:80", true),
        ("[::1]:80", true),
        ("[::ffff:127.0.0.1]", true),
        ("10.0.0.1", false),
        ("localhost.example", false),
        ("", false),
    ] {
        assert_eq!(is_loopback(authority), expected, "{authority}");
    }
}
