use crate::Config;
use crate::json;

fn config(hosts: &[&str]) -> Result<Config, String> {
    let hosts = json::written(|json| {
        json.begin_array();
        hosts.iter().for_each(|host| {
            json.text(host);
        });
        json.end_array();
    });
    let text = format!(r#"{{"fetch_images": {{"hosts": {hosts}}}}}"#);
    Config::from_json(&text, |_| None).map_err(|error| error.to_string())
}

fn permits(hosts: &[&str], url: (bool, &str, u16)) -> Option<bool> {
    config(hosts).unwrap().settings.fetch_images.permits(url.0, url.1, url.2)
}

#[test]
fn a_name_stands_for_its_https_server_alone() {
    let hosts = ["Images.example.com", "*.example.org"];
    for (url, expected) in [
        ((true, "images.example.com", 443), Some(false)),
        ((true, "a.example.org", 443), Some(false)),
        ((true, "a.b.example.org", 443), Some(false)),
        ((false, "images.example.com", 80), None),
        ((true, "images.example.com", 8443), None),
        ((true, "example.com", 443), None),
        ((true, "more.images.example.com", 443), None),
        ((true, "images.example.com.evil.test", 443), None),
        ((true, "example.org", 443), None),
        ((true, ".example.org", 443), None),
        ((true, "evilexample.org", 443), None),
    ] {
        assert_eq!(permits(&hosts, url), expected, "{url:?}");
    }
    assert_eq!(permits(&[], (true, "images.example.com", 443)), None);
}

#[test]
fn a_server_may_be_in_a_private_network() {
    let hosts = ["http://10.0.0.5:8080", "https://pictures", "http://[::1]:80", "*.example.org"];
    for (url, expected) in [
        ((false, "10.0.0.5", 8080), Some(true)),
        ((false, "10.0.0.5", 80), None),
        ((true, "10.0.0.5", 8080), None),
        ((true, "pictures", 443), Some(true)),
        ((false, "pictures", 80), None),
        ((false, "[::1]", 80), Some(true)),
        ((true, "a.example.org", 443), Some(false)),
    ] {
        assert_eq!(permits(&hosts, url), expected, "{url:?}");
    }
    let both = ["*.example.org", "https://a.example.org"];
    assert_eq!(permits(&both, (true, "a.example.org", 443)), Some(true));
}

#[test]
fn what_is_no_host_stops_the_start() {
    for host in [
        "",
        "*",
        "*.",
        "*.com",
        "example",
        "*example.com",
        "a.*.com",
        "a..com",
        ".a.com",
        "a.com.",
        "a.com:443",
        "a.com/x",
        "10.0.0.5",
        "*.0.0.1",
        "a b.com",
        "127.0x1",
        "é.com",
        "ftp://a.com",
        "http://",
        "http://a.com/x",
        "http://u@a.com",
    ] {
        let error = config(&["ok.example.com", host]).unwrap_err();
        assert!(
            error.starts_with("configuration: fetch_images.hosts[1]: expected"),
            "{host}: {error}"
        );
    }
    let error = Config::from_json(r#"{"fetch_images": {"timeout_ms": 0}}"#, |_| None).unwrap_err();
    assert!(error.to_string().contains("fetch_images.timeout_ms: expected at least 10 ms"));
}
