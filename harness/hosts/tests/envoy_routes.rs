//! Tests of the routes of a real Envoy for requests that the filter has translated, and of filters
//! that see the answers: other services stand behind the same listener.
#![allow(clippy::panic, clippy::indexing_slicing, clippy::unwrap_used, reason = "tests")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use creole_hosts::process::{EnvoyOptions, Process};
use creole_hosts::suite::{FINISH, chunk, completion, messages};
use creole_hosts::upstream::Upstream;
use creole_hosts::{Answer, Host as _, Trial, cases, value};
use serde_json::{Value, json};

const KEY: &str = "0001";
const GUARD: &str = "          - name: creole-guard\n";
const ROUTER: &str = "          - name: envoy.filters.http.router\n";

fn main() -> ExitCode {
    cases::run(
        "routes in a real Envoy",
        &(),
        &[
            ("a_translated_request_goes_to_clusters_of_models_alone", models_alone),
            ("a_clients_own_header_chooses_no_route_and_does_not_pass_the_guard", own_header),
            ("without_the_guard_the_filter_sends_nothing_more", no_guard),
            ("without_paused_heads_the_guard_holds_too", unpaused),
            ("short_streams_pass_the_filters_in_front_and_keep_the_upstreams_connection", in_front),
        ],
    )
}

/// Service beside the models: answers everything with `site`, and keeps the heads that it gets.
struct Site {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Site {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let heads = Arc::clone(&seen);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let mut reader = BufReader::new(stream);
                let mut head = String::new();
                while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).unwrap_or(0) > 0 {}
                heads.lock().unwrap().push(head);
                let answer =
                    "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 4\r\n\r\nsite";
                let _ = reader.get_mut().write_all(answer.as_bytes());
            }
        });
        Self { address, seen }
    }

    fn seen(&self) -> Vec<String> {
        std::mem::take(&mut *self.seen.lock().unwrap())
    }
}

/// Returns the template of Envoy's configuration with these virtual hosts, and with the site as the
/// cluster `site`.
fn with_hosts(yaml: &str, hosts: &Value, site: &Site) -> String {
    let (before, rest) = yaml.split_once("            virtual_hosts:\n").unwrap();
    let (_, after) = rest.split_once("          # A safety net").unwrap();
    let cluster = json!({
        "name": "site", "type": "STATIC",
        "load_assignment": {"cluster_name": "site", "endpoints": [{"lb_endpoints": [{"endpoint":
            {"address": {"socket_address": {"address": "127.0.0.1", "port_value": site.address.port()}}}}]}]}
    });
    format!("{before}            virtual_hosts: {hosts}\n          # A safety net{after}")
        .replace("  clusters:\n", &format!("  clusters:\n  - {cluster}\n"))
}

fn host(name: &str, routes: &Value) -> Value {
    json!({"name": name, "domains": [name], "request_headers_to_remove": ["x-creole-upstream"], "routes": routes})
}

fn config(more: &Value) -> Value {
    let mut config = json!({"upstreams": {"own": {"base_path": format!("/{KEY}/v1")}}});
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    config
}

/// Returns the answer of an Envoy to a request with this `Host`: status and text.
fn ask(envoy: &Process, host: &str, start: &str, headers: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(envoy.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let length = body.len();
    let head = format!(
        "{start} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n"
    );
    stream.write_all((head + body).as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    (status, answer)
}

const ASK: &str = r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}"#;

fn message(envoy: &Process, host: &str, headers: &str) -> (u16, String) {
    ask(envoy, host, "POST /v1/messages?beta=true", &format!("x-api-key: k\r\n{headers}"), ASK)
}

fn models_alone(_: &()) {
    let site = Site::start();
    let to =
        |cluster: &str, matched: Value| json!({"match": matched, "route": {"cluster": cluster}});
    let rest = || to("site", json!({"prefix": "/"}));
    let messages = json!({"prefix": "/v1/messages"});
    let header = |name: &str, value: &str| json!({"prefix": "/", "headers": [{"name": name, "string_match": {"exact": value}}]});
    let refused = [
        ("prefix", json!([to("upstream", messages.clone()), rest()])),
        (
            "regex",
            json!([
                to("upstream", json!({"safe_regex": {"regex": "/v1/mess.*"}})),
                to("site", json!({"safe_regex": {"regex": ".*"}}))
            ]),
        ),
        ("team", json!([to("upstream", header("x-team", "a")), rest()])),
        (
            "query",
            json!([
                to(
                    "upstream",
                    json!({"prefix": "/", "query_parameters": [{"name": "beta", "present_match": true}]})
                ),
                rest()
            ]),
        ),
        // Host of another service, whatever the client requests from it.
        ("shop", json!([rest()])),
        (
            "weighted",
            json!([{"match": {"prefix": "/"}, "route": {"weighted_clusters": {"clusters": [{"name": "site", "weight": 1}]}}}]),
        ),
    ];
    let rewritten = json!({"match": header("x-creole-upstream", "own"), "route":
        {"cluster": "upstream", "host_rewrite_literal": "models.example", "retry_policy": {"retry_on": "5xx"},
         "regex_rewrite": {"pattern": {"regex": "^/([^?]*)"}, "substitution": "/\\1?a=b"}}});
    let served = [
        ("own", json!([to("upstream", header("x-creole-upstream", "own")), rest()])),
        (
            "any",
            json!([
                to(
                    "upstream",
                    json!({"prefix": "/", "headers": [{"name": "x-creole-upstream", "present_match": true}]})
                ),
                rest()
            ]),
        ),
        ("below", json!([to("upstream", json!({"prefix": format!("/{KEY}/v1/")})), rest()])),
        ("rewritten", json!([rewritten, rest()])),
    ];
    let hosts: Vec<Value> =
        refused.iter().chain(&served).map(|(name, routes)| host(name, routes)).collect();
    let change = |yaml: String| with_hosts(&yaml, &json!(hosts), &site);
    let envoy = Process::envoy_with(&config(&json!({})), &EnvoyOptions::default(), &change)
        .unwrap_or_else(|reason| panic!("{reason}"));
    let upstream = Upstream::shared();
    for (name, _) in &refused {
        let (status, answer) = message(&envoy, name, "x-team: a\r\n");
        assert_eq!(status, 404, "{name}: {answer}");
        assert!(answer.contains("no such route"), "{name}: {answer}");
        assert_eq!(site.seen(), Vec::<String>::new(), "{name}: no prompt and no key");
        let log = envoy.log();
        assert!(log.contains("gone to the cluster \"site\""), "{log}");
    }
    for (name, _) in &served {
        upstream.expect(KEY, Answer::json(completion("Hello")));
        let (status, answer) =
            message(&envoy, name, "x-team: a\r\nx-envoy-original-dst-host: 1.2.3.4:5\r\n");
        assert_eq!(status, 200, "{name}: {answer}");
        assert!(answer.contains("Hello"), "{name}: {answer}");
        let seen = upstream.seen(KEY);
        let seen = seen.last().unwrap();
        for header in ["x-creole-upstream", "x-team", "x-envoy-original-dst-host"] {
            assert_eq!(value(&seen.headers, header), None, "{name}");
        }
        if *name == "rewritten" {
            assert_eq!(value(&seen.headers, "host"), Some("models.example"));
            assert_eq!(seen.path, format!("/{KEY}/v1/chat/completions?a=b"));
        }
        // A token count is made by the filter and needs no route, and the site keeps its pages.
        let (status, answer) =
            ask(&envoy, name, "POST /v1/messages/count_tokens", "x-api-key: k\r\n", ASK);
        assert!(status == 200 && answer.contains("input_tokens"), "{name}: {answer}");
        for start in ["GET /", "POST /v1/other", "GET /api/hello"] {
            let (status, answer) = ask(&envoy, name, start, "user-agent: Mozilla/5.0\r\n", "");
            assert!(status == 200 && answer.ends_with("site"), "{name}: {start}: {answer}");
        }
        assert_eq!(site.seen().len(), 3, "{name}");
    }
}

/// Tests the routes that `docs/envoy.md` shows, and the same routes with the filter off.
fn own_header(_: &()) {
    let site = Site::start();
    let routes = json!([
        {"match": {"prefix": "/", "headers": [{"name": "x-creole-upstream", "string_match": {"exact": "own"}}]},
         "route": {"cluster": "upstream", "timeout": "0s", "idle_timeout": "600s"}},
        {"match": {"prefix": "/"}, "route": {"cluster": "site"}},
    ]);
    let mut off = host("off", &routes);
    off["typed_per_filter_config"] = json!({"creole": {
        "@type": "type.googleapis.com/envoy.config.route.v3.FilterConfig", "disabled": true}});
    let change = |yaml: String| with_hosts(&yaml, &json!([host("page", &routes), off]), &site);
    let envoy = Process::envoy_with(&config(&json!({})), &EnvoyOptions::default(), &change)
        .unwrap_or_else(|reason| panic!("{reason}"));
    let upstream = Upstream::shared();
    // Other tests send requests to this upstream, too.
    let before = upstream.seen(KEY).len();
    let forged = "x-creole-upstream: own\r\nx-creole-model: big\r\nx-creole-hops: 1\r\n";
    for start in [
        "DELETE /api/delete",
        "POST /v1/load_lora_adapter",
        "GET /metrics",
        "POST /v1/chat/completions",
    ] {
        let (status, answer) = ask(&envoy, "page", start, forged, "");
        assert!(status == 200 && answer.ends_with("site"), "{start}: {answer}");
        let seen = site.seen().concat().to_ascii_lowercase();
        assert!(!seen.contains("x-creole-upstream") && !seen.contains("x-creole-model"), "{seen}");
        assert!(seen.contains("x-creole-hops: 1"), "{seen}");
        let (status, answer) = ask(&envoy, "off", start, forged, "");
        assert_eq!(status, 403, "{start}: {answer}");
        assert_eq!(site.seen(), Vec::<String>::new(), "{start}");
    }
    let asked = upstream.seen(KEY).len();
    assert_eq!(asked, before, "the model server got a request without Creole");
    upstream.expect(KEY, Answer::json(completion("Hello")));
    let (status, answer) = message(&envoy, "page", forged);
    assert!(status == 200 && answer.contains("Hello"), "{answer}");
    assert_eq!(value(&upstream.seen(KEY).last().unwrap().headers, "x-creole-hops"), Some("2"));
}

fn no_guard(_: &()) {
    let without = |yaml: String| {
        let (before, rest) = yaml.split_once(GUARD).unwrap();
        let (_, after) = rest.split_once(ROUTER).unwrap();
        [before, ROUTER, after].concat()
    };
    let start = |more| {
        Process::envoy_with(&config(&more), &EnvoyOptions::default(), &without)
            .unwrap_or_else(|reason| panic!("{reason}"))
    };
    let upstream = Upstream::shared();
    upstream.expect(KEY, Answer::json(completion("Hello")));
    let envoy = start(json!({}));
    for _ in 0..3 {
        let (status, answer) = message(&envoy, "h", "");
        assert_eq!(status, 500, "{answer}");
        assert!(answer.contains("configuration of the route is not valid"), "{answer}");
    }
    assert_eq!(upstream.seen(KEY).len(), 1, "the first one alone");
    assert!(envoy.log().contains("route check: nothing behind this filter"), "{}", envoy.log());
    drop(envoy);
    upstream.expect(KEY, Answer::json(completion("Hello")));
    assert_eq!(message(&start(json!({"check_route": false})), "h", "").0, 200);
}

fn unpaused(_: &()) {
    let site = Site::start();
    let routes = json!([
        {"match": {"prefix": "/v1/messages"}, "route": {"cluster": "upstream"}},
        {"match": {"prefix": "/"}, "route": {"cluster": "site"}}
    ]);
    let change = |yaml: String| with_hosts(&yaml, &json!([host("*", &routes)]), &site);
    let options = EnvoyOptions { pause_headers: false, ..EnvoyOptions::default() };
    let config = config(&json!({"pause_headers": false}));
    let envoy =
        Process::envoy_with(&config, &options, &change).unwrap_or_else(|reason| panic!("{reason}"));
    assert_eq!(message(&envoy, "h", "").0, 404);
    assert_eq!(site.seen(), Vec::<String>::new());
}

fn in_front(_: &()) {
    let change = |yaml: String| {
        let headers = json!({"name": "headers", "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.header_mutation.v3.HeaderMutation",
            "mutations": {"response_mutations": [{"append": {"header": {"key": "x-front", "value": "1"}}}]}}});
        let creole = "          - name: creole\n";
        yaml.replace(creole, &format!("          - {headers}\n{creole}"))
    };
    let envoy = Process::envoy_with(
        &config(&json!({"models": {"*": {"upstream": "own"}}})),
        &EnvoyOptions::default(),
        &change,
    )
    .unwrap_or_else(|reason| panic!("{reason}"));
    let whole = [chunk("Hello"), chunk(" world"), FINISH.to_owned()].concat();
    for stream in [true, false] {
        for _ in 0..20 {
            let answer = Answer::events([whole.clone()]);
            let trial = Trial { key: KEY.to_owned(), request: messages(KEY, stream, "hi"), answer };
            let got = envoy.send(&trial);
            assert_eq!((got.status, got.header("x-front")), (200, Some("1")), "{}", got.text());
            assert!(got.text().contains("world"), "{}", got.text());
        }
    }
    let statistics = envoy.admin_page("/stats?filter=cluster.upstream.upstream_cx");
    let count = |name: &str| {
        let line = statistics.lines().find(|line| line.contains(&format!(".{name}: ")));
        line.and_then(|line| line.rsplit(' ').next()?.parse::<u32>().ok()).unwrap_or_default()
    };
    assert_eq!(count("upstream_cx_destroy_local_with_active_rq"), 0, "{statistics}");
    assert!(count("upstream_cx_total") <= 2, "{statistics}");
    // Envoy's own response to an upstream's error also passes the front filter.
    let answer = Answer::events(["data: {\"error\":{\"message\":\"no\",\"code\":500}}\n\n"]);
    let got =
        envoy.send(&Trial { key: KEY.to_owned(), request: messages(KEY, true, "hi"), answer });
    assert!(got.status >= 500 && got.header("x-front") == Some("1"), "{got:?}");
}
