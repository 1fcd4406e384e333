//! Many streams with loops of server tools at once, through a real Envoy and the gateway: half of
//! the clients leave at random moments. Nothing may hang, and nothing may stay behind. Prints
//! memory and times.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

use std::hash::{BuildHasher as _, RandomState};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use creole_hosts::client::send_within;
use creole_hosts::process::{EnvoyOptions, Process};
use creole_hosts::scripted::{Asked, Scripted, Told};
use creole_hosts::upstream::runtime;
use creole_hosts::{End, Got, Request, cases};
use serde_json::{Value, json};

const STREAMS: usize = 500;

/// Number of rounds of an answer that end with a call, before the last round.
const CALLS: usize = 2;

/// Number of pieces of text in each round, and the pause before each piece.
const PIECES: usize = 5;
const PAUSE: Duration = Duration::from_millis(60);

/// Time of a search.
const SEARCH_MS: u64 = 150;

/// Time within which an answer must be complete, though all streams share a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Time within which clients leave that leave: before the answers that they get are complete.
const LEAVES_WITHIN_MS: u64 = 1500;

/// Memory that the later waves of streams may add, in MB. Requests of the clients that leave in one
/// wave are 8 MB.
const GROWTH_MB_MAX: u64 = 16;

fn main() -> ExitCode {
    // Each stream needs several connections, with an end in this process.
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let raised = rustix::process::Rlimit { current: limit.maximum, maximum: limit.maximum };
    let _ = rustix::process::setrlimit(rustix::process::Resource::Nofile, raised);
    cases::run(
        "load of server tools",
        &(),
        &[
            ("five_hundred_tool_loops_leave_nothing_in_the_gateway", gateway),
            ("five_hundred_tool_loops_leave_nothing_in_envoy", envoy),
        ],
    )
}

/// Servers behind one host.
struct World {
    model: Scripted,
    finder: Scripted,
    notes: Scripted,
    host: Process,
}

impl World {
    /// Starts the servers and the host, which ends answers in the first `rounds` when the client
    /// leaves.
    fn start(rounds: usize, host: impl Fn(&[&Scripted; 3]) -> Process) -> Self {
        let model = Scripted::start(move |asked| model(asked, rounds));
        let finder = Scripted::start(finder);
        let notes = Scripted::start(notes);
        let host = host(&[&model, &finder, &notes]);
        Self { model, finder, notes, host }
    }

    /// Returns the number of answers that the servers are giving.
    fn open(&self) -> usize {
        [&self.model, &self.finder, &self.notes].iter().map(|server| server.open()).sum()
    }
}

/// Number of pieces of an answer that goes on until its client has left, and much longer.
const PIECES_FOR_EVER: usize = 1000;

/// Model that calls the tool of a request until enough results are there. For clients that leave,
/// one of its answers in the first `rounds` goes on for a minute, unless the host ends it.
fn model(asked: &Asked, rounds: usize) -> Told {
    let sent: Value = serde_json::from_str(&asked.body).unwrap();
    let said = sent["messages"][0]["content"].as_str().unwrap();
    let at: usize = said.split(['#', '?']).nth(1).unwrap().parse().unwrap();
    let is_result = |message: &&Value| message["role"] == "tool";
    let results = sent["messages"].as_array().unwrap().iter().filter(is_result).count();
    let tool = &sent["tools"][0]["function"]["name"];
    let event = |delta: Value, reason: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": reason});
        format!("data: {}\n\n", json!({"id": "c", "choices": [choice]}))
    };
    let text = |at| event(json!({"content": format!("{results}.{at} ")}), Value::Null);
    let goes_on = leaves(at) && results == at % rounds;
    let count = if goes_on { PIECES_FOR_EVER } else { PIECES };
    let mut pieces: Vec<String> = (0..count).map(text).collect();
    if results < CALLS {
        let input = json!({"query": format!("q{results}")});
        let call = json!({"index": 0, "id": format!("call_{results}"), "type": "function",
            "function": {"name": tool, "arguments": input.to_string()}});
        pieces.push(event(json!({"tool_calls": [call]}), Value::Null));
    }
    let reason = if results < CALLS { "tool_calls" } else { "stop" };
    pieces.push(event(json!({}), reason.into()) + "data: [DONE]\n\n");
    Told { pause: PAUSE, ..Told::events(pieces) }
}

/// Search service.
fn finder(_: &Asked) -> Told {
    let result = |at: u8| json!({"url": format!("https://a.example/{at}"), "title": "A", "content": "Alpha is 1. ".repeat(50)});
    let results: Vec<Value> = (0..8).map(result).collect();
    Told::json(json!({"results": results})).late(SEARCH_MS)
}

/// MCP server of the newest revision, with one tool.
fn notes(asked: &Asked) -> Told {
    let sent: Value = serde_json::from_str(&asked.body).unwrap();
    let result = match sent["method"].as_str().unwrap() {
        "tools/list" => json!({"tools": [{"name": "add", "inputSchema": {"type": "object"}}]}),
        _ => json!({"content": [{"type": "text", "text": "Noted 3. ".repeat(50)}]}),
    };
    Told::json(json!({"jsonrpc": "2.0", "id": sent["id"], "result": result})).late(SEARCH_MS)
}

/// Request number `at`: every third one calls an MCP server, the others search.
fn request(at: usize) -> Request {
    let mut body = json!({
        "model": "m", "max_tokens": 1000, "stream": true,
        "tools": [{"type": "web_search_20250305", "name": "web_search"}],
        "messages": [{"role": "user", "content": format!("What is #{at}? {}", "Alpha. ".repeat(5000))}],
    });
    if calls_mcp(at) {
        body["mcp_servers"] = json!([{"type": "url", "url": "mcp:notes", "name": "notes"}]);
        body["tools"] = json!([{"type": "mcp_toolset", "mcp_server_name": "notes"}]);
    }
    let mut request = Request::messages(body.to_string());
    request.http2 = at % 4 > 1;
    request.headers.push(("anthropic-beta".to_owned(), "mcp-client-2025-11-20".to_owned()));
    request
}

fn calls_mcp(at: usize) -> bool {
    at.is_multiple_of(3)
}

fn leaves(at: usize) -> bool {
    at % 2 == 1
}

fn check_whole(at: usize, got: &Got) {
    let text = got.text();
    assert_eq!((got.status, got.end), (200, End::Complete), "stream {at}: {text}");
    let result = if calls_mcp(at) { "mcp_tool_result" } else { "web_search_tool_result" };
    let results = text.matches(&format!("\"type\":\"{result}\"")).count();
    assert_eq!(results, CALLS, "stream {at}: {text}");
    let said = |round: usize, piece: usize| text.contains(&format!("{round}.{piece} "));
    let all = (0..=CALLS).all(|round| (0..PIECES).all(|piece| said(round, piece)));
    assert!(all, "stream {at}: {text}");
    assert_eq!(text.matches("event: message_start\n").count(), 1, "stream {at}: {text}");
    assert!(text.contains("\"stop_reason\":\"end_turn\""), "stream {at}: {text}");
    assert!(text.ends_with("data: {\"type\":\"message_stop\"}\n\n"), "stream {at}: {text}");
}

/// Sends all streams at once. Returns the number of the most open answers of servers, and the
/// host's memory at its peak in MB.
fn wave(world: &World) -> (usize, u64) {
    let random = RandomState::new();
    let address = world.host.address;
    let streams: Vec<_> = (0..STREAMS)
        .map(|at| {
            let moment = Duration::from_millis(random.hash_one(at) % LEAVES_WITHIN_MS);
            let patience = if leaves(at) { moment } else { PATIENCE };
            let request = request(at);
            runtime().spawn(async move { send_within(address, &request, patience).await })
        })
        .collect();
    let (mut open, mut peak) = (0, 0);
    while !streams.iter().all(|stream| stream.is_finished()) {
        open = open.max(world.open());
        peak = peak.max(world.host.resident_mb().0);
        std::thread::sleep(Duration::from_millis(20));
    }
    for (at, stream) in streams.into_iter().enumerate() {
        let got = runtime().block_on(stream).unwrap();
        if leaves(at) {
            assert_eq!(got.end, End::Silent, "stream {at}: {}", got.text());
        } else {
            check_whole(at, &got);
        }
    }
    (open, peak)
}

/// Waits until `left` counts nothing, which must not take long.
#[track_caller]
fn settle(what: &str, mut left: impl FnMut() -> usize) {
    let since = Instant::now();
    loop {
        let left = left();
        if left == 0 {
            return;
        }
        assert!(since.elapsed() < Duration::from_secs(10), "{left} {what} stay");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Number of waves, after two of which a host has the memory that it needs.
const WAVES: usize = 5;

/// Sends waves of streams. After each, `left` must count nothing, and the last ones must need no
/// more memory than the first.
fn waves(mut world: World, left: &dyn Fn(&Process) -> usize) {
    let before = world.host.resident_mb().0;
    let mut after = Vec::new();
    for number in 1..=WAVES {
        let since = Instant::now();
        let (open, peak) = wave(&world);
        let seconds = since.elapsed().as_secs_f64();
        settle("answers of servers", || world.open());
        settle("requests or bytes of the host", || left(&world.host));
        let (models, searches) = (world.model.asked().len(), world.finder.asked().len());
        let noted = world.notes.asked().len();
        let resident = world.host.resident_mb().0;
        println!(
            "wave {number}: {STREAMS} streams, half of them left, {seconds:.1} s, at most {open} \
             answers of servers at once, {models} rounds, {searches} searches, {noted} requests of \
             MCP; memory {before} MB before, {peak} MB at most, {resident} MB after"
        );
        assert!(open > STREAMS / 4, "only {open} answers were open at once");
        after.push(resident);
    }
    let grown = after[WAVES - 1].saturating_sub(after[0].max(after[1]));
    assert!(grown <= GROWTH_MB_MAX, "the memory grows with each wave: {after:?} MB");
    assert!(world.host.is_alive(), "{}", world.host.log());
}

fn server_tools(cluster: bool, services: [String; 2]) -> Value {
    let [search, notes] = services;
    let mut tools = json!({
        "web_search": {"kind": "searxng", "url": search},
        "mcp": {"servers": {"notes": {"url": format!("{notes}/mcp")}}},
    });
    if cluster {
        tools["web_search"]["cluster"] = "finder".into();
        tools["mcp"]["servers"]["notes"]["cluster"] = "notes".into();
    }
    tools
}

fn gateway(_: &()) {
    let world = World::start(CALLS + 1, |[model, finder, notes]| {
        let url = |server: &Scripted| format!("http://{}", server.address);
        let config = json!({
            "upstreams": {"main": {"key": "none", "url": format!("{}/v1", url(model))}},
            "server_tools": server_tools(false, [url(finder), url(notes)]),
        });
        Process::gateway(&config).unwrap_or_else(|reason| panic!("{reason}"))
    });
    let idle = held_bytes(&world.host);
    waves(world, &|host| held_bytes(host).saturating_sub(idle));
}

/// Returns the number of bytes that the gateway holds for requests, with the one that asks.
fn held_bytes(gateway: &Process) -> usize {
    let request = Request::plain("GET", "/metrics");
    let got =
        runtime().block_on(send_within(gateway.address, &request, Duration::from_secs(10))).text();
    let line = got.lines().find_map(|line| line.strip_prefix("creole_gateway_held_bytes "));
    line.unwrap_or_else(|| panic!("no gauge: {got}")).trim().parse().unwrap()
}

fn envoy(_: &()) {
    // Envoy does not let a filter end a call, which later rounds are.
    let world = World::start(1, |[model, finder, notes]| {
        let config = json!({
            "upstreams": {"main": {"key": "none", "cluster": "model"}},
            "server_tools": server_tools(true, ["http://finder.example".into(), "http://notes.example".into()]),
        });
        let cluster = |name: &str, server: &Scripted| {
            // The default of 1,024 requests at once is for all streams together.
            let limit = json!({"max_connections": 4096, "max_pending_requests": 4096, "max_requests": 4096});
            json!({"name": name, "type": "STATIC", "circuit_breakers": {"thresholds": [limit]},
                "load_assignment": {"cluster_name": name, "endpoints":
                [{"lb_endpoints": [{"endpoint": {"address": {"socket_address":
                    {"address": "127.0.0.1", "port_value": server.address.port()}}}}]}]}})
        };
        let clusters =
            [cluster("model", model), cluster("finder", finder), cluster("notes", notes)];
        let clusters: String = clusters.iter().map(|cluster| format!("  - {cluster}\n")).collect();
        let route = "              - match: {prefix: /}\n";
        let own = "              - match: {prefix: /, headers: [{name: x-creole-upstream, string_match: {exact: model}}]}\n                route: {cluster: model, timeout: 0s, idle_timeout: 600s}\n";
        let changed = |yaml: String| {
            assert!(yaml.contains(route) && yaml.contains("  clusters:\n"));
            yaml.replace(route, &format!("{own}{route}"))
                .replace("  clusters:\n", &format!("  clusters:\n{clusters}"))
        };
        let options = EnvoyOptions { concurrency: 2, ..EnvoyOptions::default() };
        Process::envoy_with(&config, &options, &changed).unwrap_or_else(|reason| panic!("{reason}"))
    });
    waves(world, &active);
}

/// Returns the number of requests that Envoy has open: of clients, and to servers.
fn active(envoy: &Process) -> usize {
    let page = envoy.admin_page("/stats?filter=rq_active");
    let of = |line: &str| {
        let (name, value) = line.split_once(": ")?;
        let is_own = name.starts_with("cluster.") || name == "http.clients.downstream_rq_active";
        value.trim().parse::<usize>().ok().filter(|_| is_own)
    };
    let counts: Vec<usize> = page.lines().filter_map(of).collect();
    assert!(counts.len() >= 4, "{page}");
    counts.iter().sum()
}
