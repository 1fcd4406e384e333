//! Tests of `worker.rs`.

use super::*;
use crate::http::Url;
use std::net::Ipv4Addr;

#[test]
fn texts_are_quoted_and_secrets_stay_in_the_environment() {
    let plan = Plan {
        listen: (Ipv4Addr::LOCALHOST, 8787).into(),
        upstream: Url::parse("http://localhost:1/v1").unwrap(),
        config: r#"{"a":"\n"}"#.to_owned(),
        secrets: vec!["KEY".to_owned()],
        folder: PathBuf::new(),
    };
    let pem = "-----BEGIN CERTIFICATE-----\nA\n-----END CERTIFICATE-----\n";
    let made =
        configuration(&plan, r#"compatibilityDate = "2026-01-01","#, &pem.repeat(2)).unwrap();
    for part in [
        r#"text = "{\"a\":\"\\n\"}""#,
        r#"(name = "KEY", fromEnvironment = "KEY")"#,
        r#"address = "127.0.0.1:8787""#,
        r#"compatibilityDate = "2026-01-01""#,
    ] {
        assert!(made.contains(part), "{part}: {made}");
    }
    assert_eq!(made.matches(r"-----BEGIN CERTIFICATE-----\nA\n").count(), 2, "{made}");
}

#[test]
fn the_runtime_behaves_as_in_the_deployment() {
    let made = compatibility().unwrap();
    for part in ["compatibilityDate = \"20", "compatibilityFlags = [\"enable_request_signal\"],"] {
        assert!(made.contains(part), "{part}: {made}");
    }
}
