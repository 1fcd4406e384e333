//! Addresses that a client chooses, in whatever spelling.

use creole::{HostCan, Pings};

use super::support::drive::{self, Exchange, NOW, SEED, Steps as _};
use super::*;

#[test]
fn addresses_that_a_client_chooses() {
    let upstream = r#""url": "http://u", "profile_overrides": {"image_parts": "data"}"#;
    let hosts = r#"["images.example.com", "*.example.org", "http://10.0.0.5:8080"]"#;
    let some =
        format!(r#"{{"upstreams":{{"u":{{{upstream}}}}},"fetch_images":{{"hosts":{hosts}}}}}"#);
    let none = format!(r#"{{"upstreams":{{"u":{{{upstream}}}}}}}"#);
    let asked = |config: &str, url: &str| {
        let can = HostCan { ping: Pings::Sent, ask_again: true, fetch: true, ..HostCan::default() };
        let mut exchange = Exchange::new(drive::config(config), SEED, can);
        exchange.decide("POST", "/v1/messages", &drive::headers(&[("x-api-key", "sk-client")]));
        let image = json!({"type": "image", "source": {"type": "url", "url": url}});
        let message = json!({"role": "user", "content": [image]});
        let body = json!({"model": "m", "max_tokens": 9, "messages": [message]});
        exchange.handle_request_body(body.to_string().into_bytes(), NOW);
        let call = exchange.poll_call(NOW)?;
        assert!(!format!("{:?}", call.headers).contains("sk-client"));
        fetch_of(&call).map(|fetch| (fetch.url.clone(), fetch.may_be_private))
    };
    for url in [
        "http://169.254.169.254/latest/meta-data/",
        "http://localhost/",
        "http://127.0.0.1:8080/",
        "https://10.0.0.5:8080/",
        "http://10.0.0.5/",
        "http://10.0.0.5:8080@evil.test/",
        "http://[::ffff:10.0.0.5]:8080/",
        "http://167772165:8080/",
        "http://images.example.com/",
        "https://images.example.com:22/",
        "https://images.example.com@evil.test/",
        "https://evil.test\\@images.example.com/",
        "https://evil.test#images.example.com/",
        "https://images.example.com.evil.test/",
        "https://example.org/",
        "https://evilexample.org/",
        "file:///etc/passwd",
        "gopher://a.example.org/",
    ] {
        assert_eq!(asked(&some, url), None, "{url}");
    }
    for (url, is_private) in [
        ("https://images.example.com/a.png?b", false),
        ("https://a.example.org/", false),
        ("http://10.0.0.5:8080/", true),
    ] {
        assert_eq!(asked(&some, url), Some((url.to_owned(), is_private)));
        assert_eq!(asked(&none, url), None, "{url}");
    }
}
