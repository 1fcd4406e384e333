//! Tests of conversations and replicas in a real Envoy, with the recipes of `docs/envoy.md`: the
//! turns of a conversation go to one replica, and an endpoint picker behind the filter sees
//! requests in one form.
#![allow(
    clippy::panic,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::arithmetic_side_effects,
    reason = "tests"
)]

#[path = "envoy_affinity/picker.rs"]
mod picker;

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use creole_hosts::process::{EnvoyOptions, Process, root};
use creole_hosts::suite::completion;
use creole_hosts::upstream::{Upstream, runtime};
use creole_hosts::{Answer, Request, cases, client, value};
use picker::Picker;
use serde_json::{Value, json};

const KEY: &str = "0001";
const HEADER: &str = "x-session-affinity";
const SESSIONS: usize = 600;
const TURNS: usize = 3;

fn main() -> ExitCode {
    cases::run(
        "replicas behind a real Envoy",
        &(),
        &[
            ("all_turns_of_a_session_go_to_one_replica_and_sessions_are_spread", one_replica),
            ("a_session_that_is_too_busy_is_spread", bounded),
            ("an_endpoint_picker_sees_one_form_of_path_and_body", one_form),
        ],
    )
}

fn config() -> Value {
    let upstream = json!({"base_path": format!("/{KEY}/v1"), "session_headers": [HEADER]});
    json!({"upstreams": {"upstream": upstream}})
}

/// Returns the code block of `docs/envoy.md` that contains these words, without its fences.
fn recipe(words: &str) -> String {
    let page = fs::read_to_string(root().join("docs/envoy.md")).unwrap();
    let blocks = page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let mut found = blocks.filter(|block| block.contains(words));
    let block = found.next().unwrap_or_else(|| panic!("docs/envoy.md has no block with {words}"));
    assert_eq!(found.next(), None, "{words}");
    block.to_owned()
}

fn indented(block: &str, spaces: usize) -> String {
    block.lines().map(|line| format!("{:spaces$}{line}\n", "")).collect()
}

fn replaced(yaml: &str, from: &str, to: &str) -> String {
    assert!(yaml.contains(from), "envoy/envoy.yaml has no {from:?} any more");
    yaml.replace(from, to)
}

fn endpoint(address: SocketAddr) -> Value {
    let (address, port_value) = (address.ip().to_string(), address.port());
    json!({"endpoint": {"address": {"socket_address": {"address": address, "port_value": port_value}}}})
}

/// Returns the template of Envoy's configuration with the route and the cluster of the recipe, and
/// these replicas.
fn by_session(yaml: &str, replicas: &[Upstream]) -> String {
    let route = "                route: {cluster: upstream, timeout: 0s, idle_timeout: 600s}\n";
    let yaml = replaced(yaml, route, &indented(&recipe("hash_policy:"), 16));
    let (before, rest) = yaml.split_once("    type: STRICT_DNS\n").unwrap();
    let (middle, rest) = rest.split_once("      - lb_endpoints:\n").unwrap();
    let (_, after) = rest.split_once("\n# Labels").unwrap();
    let endpoints: Vec<Value> =
        replicas.iter().map(|replica| endpoint(replica.address())).collect();
    let cluster = indented(&recipe("lb_policy: MAGLEV"), 4);
    format!(
        "{before}    type: STATIC\n{cluster}{middle}      - lb_endpoints: {}\n\n# Labels{after}",
        json!(endpoints)
    )
}

fn three() -> Vec<Upstream> {
    (0..3).map(|_| Upstream::start()).collect()
}

fn start(change: &dyn Fn(String) -> String) -> Process {
    // Two worker threads must come to the same choice.
    let options = EnvoyOptions { concurrency: 2, ..EnvoyOptions::default() };
    Process::envoy_with(&config(), &options, change).unwrap_or_else(|reason| panic!("{reason}"))
}

/// Returns a request that names its session in one of the ways that clients use.
fn turn(session: usize, turn: usize) -> Request {
    let id = format!("5e55{session:04}-0000-4000-8000-000000000000");
    let mut body = json!({"model": "m", "max_tokens": 9, "stream": turn == 1,
        "messages": [{"role": "user", "content": format!("turn {turn}")}]});
    let header = match session % 3 {
        0 => Some("x-claude-code-session-id"),
        1 => Some("session-id"),
        _ => None,
    };
    if header.is_none() {
        body["metadata"] = json!({"user_id": json!({"session_id": id}).to_string()});
    }
    let mut request = Request::messages(body.to_string());
    request.headers.extend(header.map(|name| (name.to_owned(), id)));
    request
}

/// Returns the number of requests of each session that came to a replica.
fn sessions_of(replica: &Upstream) -> BTreeMap<String, usize> {
    let mut sessions = BTreeMap::new();
    for seen in replica.seen(KEY) {
        let id = value(&seen.headers, HEADER).expect("the session's header").to_owned();
        *sessions.entry(id).or_default() += 1;
    }
    sessions
}

fn one_replica(_: &()) {
    let replicas = three();
    for replica in &replicas {
        replica.expect(KEY, Answer::json(completion("Hello")));
    }
    let envoy = start(&|yaml| by_session(&yaml, &replicas));
    runtime().block_on(async {
        for number in 0..TURNS {
            for session in 0..SESSIONS {
                let got = client::send(envoy.address, &turn(session, number)).await;
                assert_eq!(got.status, 200, "{}", got.text());
            }
        }
    });
    let seen: Vec<_> = replicas.iter().map(sessions_of).collect();
    for (id, requests) in seen.iter().flatten() {
        assert_eq!(*requests, TURNS, "{id} was on several replicas");
    }
    let sessions: Vec<usize> = seen.iter().map(BTreeMap::len).collect();
    println!("sessions of each replica: {sessions:?}");
    assert_eq!(sessions.iter().sum::<usize>(), SESSIONS);
    let most = sessions.iter().max().unwrap();
    assert!(most * replicas.len() * 10 <= SESSIONS * 13, "more than 1.3 of the mean: {sessions:?}");
}

fn bounded(_: &()) {
    const AT_ONCE: usize = 24;
    // Pause between requests. Envoy counts a request once it has a connection, so that a burst
    // would overshoot.
    const APART: Duration = Duration::from_millis(50);
    let replicas = three();
    let slow = Answer { delay: Duration::from_secs(5), ..Answer::json(completion("Hello")) };
    for replica in &replicas {
        replica.expect(KEY, slow.clone());
    }
    let envoy = start(&|yaml| by_session(&yaml, &replicas));
    let address = envoy.address;
    runtime().block_on(async {
        let mut sent = Vec::new();
        for number in 0..AT_ONCE {
            sent.push(tokio::spawn(async move { client::send(address, &turn(0, number)).await }));
            tokio::time::sleep(APART).await;
        }
        for got in sent {
            assert_eq!(got.await.unwrap().status, 200);
        }
    });
    let requests: Vec<usize> = replicas.iter().map(|replica| replica.seen(KEY).len()).collect();
    println!("requests of one session at once: {requests:?}");
    assert_eq!(requests.iter().sum::<usize>(), AT_ONCE);
    // The bound is a quarter above the mean of 8, rounded up, plus one for each worker that did not
    // know of the other worker's request.
    assert!(requests.iter().all(|requests| *requests <= 13), "{requests:?}");
}

/// Returns the template of Envoy's configuration with the picker behind the guard, and a cluster
/// that follows the picker's choice.
fn by_picker(yaml: &str, picker: SocketAddr) -> String {
    let router = "          - name: envoy.filters.http.router\n";
    let filter = indented(&recipe("- name: endpoint-picker"), 10);
    let yaml = replaced(yaml, router, &format!("{filter}{router}"));
    let (before, rest) = yaml.split_once("    type: STRICT_DNS\n").unwrap();
    let (middle, rest) = rest.split_once("    load_assignment:\n").unwrap();
    let (_, after) = rest.split_once("\n# Labels").unwrap();
    let cluster = indented(&recipe("type: ORIGINAL_DST"), 4);
    let picker = json!({
        "name": "endpoint-picker", "type": "STATIC",
        "typed_extension_protocol_options": {"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
            "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
            "explicit_http_config": {"http2_protocol_options": {}}}},
        "load_assignment": {"cluster_name": "endpoint-picker", "endpoints": [{"lb_endpoints": [endpoint(picker)]}]}
    });
    let middle = middle.replace("    dns_lookup_family: V4_PREFERRED\n", "");
    format!("{before}{cluster}{middle}  - {picker}\n\n# Labels{after}")
}

fn one_form(_: &()) {
    let replicas = three();
    for replica in &replicas {
        replica.expect(KEY, Answer::json(completion("Hello")));
    }
    let addresses = replicas.iter().map(Upstream::address).collect();
    let picker = Picker::start(HEADER, addresses);
    let envoy = start(&|yaml| by_picker(&yaml, picker.address));
    let mut chat = Request::messages(
        json!({"model": "m", "messages": [{"role": "user", "content": "turn 0"}]}).to_string(),
    );
    chat.path = format!("/{KEY}/v1/chat/completions");
    // Chat clients name the session in this header; a request that Creole does not translate passes
    // untouched.
    chat.headers.push((HEADER.to_owned(), "5e550000-0000-4000-8000-000000000000".to_owned()));
    runtime().block_on(async {
        for request in [turn(0, 0), turn(0, 1), turn(1, 0), turn(2, 0), chat] {
            let got = client::send(envoy.address, &request).await;
            assert_eq!(got.status, 200, "{} {}", got.text(), envoy.log());
            assert!(got.text().contains("Hello"), "{}", got.text());
        }
    });
    let seen = picker.seen();
    assert_eq!(seen.len(), 5, "{seen:?}");
    for seen in &seen {
        assert_eq!(seen.header(":path"), Some("/0001/v1/chat/completions"));
        let body: Value = serde_json::from_slice(&seen.body).unwrap();
        assert_eq!(body["model"], "m");
        let said = body["messages"][0]["content"].as_str().unwrap();
        assert!(said.starts_with("turn "), "{body}");
        assert_eq!(seen.header("content-length"), Some(&*seen.body.len().to_string()));
        let picked = seen.picked;
        let there = replicas.iter().find(|replica| replica.address() == picked).unwrap();
        let id = seen.header(HEADER).unwrap();
        let is_it = |one: &creole_hosts::Seen| {
            value(&one.headers, HEADER) == Some(id) && one.body[..] == seen.body[..]
        };
        assert!(there.seen(KEY).iter().any(is_it), "the replica that was picked got the body");
    }
    assert_eq!(seen[0].picked, seen[1].picked);
    assert_eq!(seen[0].picked, seen[4].picked, "both forms of a session");
}
