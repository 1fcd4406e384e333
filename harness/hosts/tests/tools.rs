//! Server tools on each real host: searches and calls of MCP servers between the rounds of an
//! answer, with a scripted model and scripted services.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use creole_hosts::client::send_within;
use creole_hosts::process::Process;
use creole_hosts::scripted::{self, Asked, Scripted, Told, kinds, message, says};
use creole_hosts::suite::{comparable, difference};
use creole_hosts::upstream::runtime;
use creole_hosts::{End, Got, Request, cases};
use creole_worker_tests::Worker;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

fn main() -> ExitCode {
    let world = World::start();
    cases::run(
        "server tools on each host",
        &world,
        &[
            ("a_search_runs_between_two_rounds_of_one_message", between),
            ("searches_that_end_in_any_order_give_the_same_bytes", searches_in_any_order),
            ("calls_of_an_mcp_server_that_end_in_any_order_give_the_same_bytes", mcp_in_any_order),
            ("a_search_and_a_call_that_end_in_any_order_give_the_same_bytes", both_in_any_order),
            ("a_first_round_that_fails_is_an_http_error", first_fails),
            ("a_later_round_that_fails_is_an_error_and_never_a_silent_end", later_fails),
            ("a_search_that_is_silent_is_unavailable_and_the_answer_goes_on", silent),
            ("a_client_that_leaves_during_a_search_causes_no_further_round", leaves),
            ("claude_codes_search_is_run_before_the_model_is_asked", side_query),
            ("a_search_that_finds_nothing_or_is_refused_is_told_to_the_model", refused),
        ],
    )
}

/// Time that a call which must be answered last waits, longer than its answer takes elsewhere.
const LATE_MS: u64 = 300;

/// Time after which a service is no longer waited for.
const TIMEOUT_MS: u64 = 1000;

/// Time between two signs of life while nothing comes.
const PING_MS: u64 = 250;

/// Hosts in front of the same servers.
struct World {
    model: Scripted,
    finder: Scripted,
    notes: Scripted,
    /// Word of the calls that are answered late.
    late: Arc<Mutex<&'static str>>,
    hosts: Vec<Running>,
}

/// Running host.
struct Running {
    name: &'static str,
    address: SocketAddr,
    /// True if the client gets something while services are called.
    pings: bool,
    _process: Box<dyn std::any::Any>,
}

/// Place of a check, which is printed if the check fails.
struct Where {
    host: &'static str,
    stream: bool,
}

impl Drop for Where {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self { host, stream } = self;
            println!("  on {host}, with {}", if *stream { "a stream" } else { "a whole answer" });
        }
    }
}

impl World {
    fn start() -> Self {
        let late: Arc<Mutex<&'static str>> = Arc::default();
        let model = Scripted::start(model);
        let (of_finder, of_notes) = (Arc::clone(&late), Arc::clone(&late));
        let finder = Scripted::start(move |asked| finder(asked, *of_finder.lock().unwrap()));
        let notes = Scripted::start(move |asked| notes(asked, *of_notes.lock().unwrap()));
        let config = config(&model, &finder, &notes);
        let envoy =
            scripted::envoy(&config, &model, &[("finder", &finder), ("notes", &notes)], &|yaml| {
                yaml
            });
        let running = |name, process: Process, pings| Running {
            name,
            address: process.address,
            pings,
            _process: Box::new(process),
        };
        let started =
            |started: Result<Process, String>| started.unwrap_or_else(|why| panic!("{why}"));
        let worker = Worker::start_with(&[("CREOLE_CONFIG", &config.to_string())]);
        let hosts = vec![
            running("gateway", started(Process::gateway(&config)), true),
            Running {
                name: "worker",
                address: worker.address,
                pings: true,
                _process: Box::new(worker),
            },
            running("wasi:http", started(Process::wasi_http(&config)), true),
            running("envoy", envoy, false),
        ];
        Self { model, finder, notes, late, hosts }
    }

    /// Forgets what the servers were asked so far.
    fn forget(&self) {
        for server in [&self.model, &self.finder, &self.notes] {
            server.asked();
            server.answered();
        }
    }

    /// Calls `check` for each host, with a stream and with a whole answer.
    fn each(&self, mut check: impl FnMut(&Running, bool)) {
        for host in &self.hosts {
            for stream in [true, false] {
                self.forget();
                let _where = Where { host: host.name, stream };
                check(host, stream);
            }
        }
    }
}

fn config(model: &Scripted, finder: &Scripted, notes: &Scripted) -> Value {
    let url = |server: &Scripted| format!("http://{}", server.address);
    json!({
        "upstreams": {"main": {"url": url(model), "base_path": "/v1", "key": "none", "cluster": "model"}},
        "server_tools": {
            "web_search": {"kind": "searxng", "url": url(finder), "cluster": "finder",
                "timeout_ms": TIMEOUT_MS},
            "mcp": {"servers": {"notes": {"url": format!("{}/mcp", url(notes)), "cluster": "notes"}}},
        },
        "ping_interval_ms": PING_MS,
    })
}

/// Model that calls what the user's text names, and then answers.
fn model(asked: &Asked) -> Told {
    let sent: Value = serde_json::from_str(&asked.body).unwrap();
    let stream = sent["stream"] == true;
    let text = sent["messages"].to_string();
    let has = |word: &str| text.contains(word);
    let has_result = sent["messages"].as_array().unwrap().iter().any(|it| it["role"] == "tool");
    let failure = |status| {
        let error = json!({"error": {"message": "Not now", "type": "server_error"}});
        Told { status, ..Told::json(error) }
    };
    let search = |query: &str| ("web_search", json!({"query": query}));
    let note = |a: u64| ("mcp__notes__add", json!({"a": a}));
    let calls = match () {
        () if has("first fails") => return failure(429),
        () if has_result && has("later fails") => return failure(500),
        () if has_result => return says(stream, "It is 1. [[1]] And 2. [[2]]", &[]),
        () if has("two searches") => vec![search("alpha"), search("beta")],
        () if has("two notes") => vec![note(1), note(2)],
        () if has("one of each") => vec![search("alpha"), note(2)],
        () if has("silence") => vec![search("silence")],
        () if has("much and nothing") => vec![search("much"), search("nothing")],
        () => vec![search("alpha")],
    };
    says(stream, "Let me see.", &calls)
}

/// Search service. It refuses "much", finds nothing of "nothing", and answers "silence" too late.
fn finder(asked: &Asked, late: &str) -> Told {
    let query = asked.path.split("q=").nth(1).unwrap().split('&').next().unwrap();
    let result = json!({"url": format!("https://{query}.example/x"), "title": query.to_uppercase(),
        "content": format!("{query} is 1.")});
    let results = if query == "nothing" { json!([]) } else { json!([result]) };
    let told = Told::json(json!({"results": results, "unresponsive_engines": []}));
    match query {
        "much" => Told { status: 429, ..told },
        "silence" => told.late(4 * TIMEOUT_MS),
        _ if query == late => told.late(LATE_MS),
        _ => told,
    }
}

/// MCP server of the newest revision, with one tool. `late` is the argument of the calls that are
/// answered late.
fn notes(asked: &Asked, late: &str) -> Told {
    let sent: Value = serde_json::from_str(&asked.body).unwrap();
    let argument = sent["params"]["arguments"]["a"].to_string();
    let result = match sent["method"].as_str().unwrap() {
        "tools/list" => json!({"tools": [{"name": "add", "inputSchema": {"type": "object"}}]}),
        _ => json!({"content": [{"type": "text", "text": format!("Noted {argument}.")}]}),
    };
    let told = Told::json(json!({"jsonrpc": "2.0", "id": sent["id"], "result": result}));
    if argument == late { told.late(LATE_MS) } else { told }
}

fn request(stream: bool, said: &str) -> Request {
    let body = json!({
        "model": "m", "max_tokens": 1000, "stream": stream,
        "mcp_servers": [{"type": "url", "url": "mcp:notes", "name": "notes"}],
        "tools": [
            {"type": "web_search_20250305", "name": "web_search"},
            {"type": "mcp_toolset", "mcp_server_name": "notes"},
        ],
        "messages": [{"role": "user", "content": said}],
    });
    with_beta(&body)
}

/// A request with `web_search` as its only tool.
fn search(stream: bool, said: &str) -> Request {
    with_beta(&json!({
        "model": "m", "max_tokens": 1000, "stream": stream,
        "tools": [{"type": "web_search_20250305", "name": "web_search"}],
        "messages": [{"role": "user", "content": said}],
    }))
}

fn with_beta(body: &Value) -> Request {
    let mut request = Request::messages(body.to_string());
    request.headers.push(("anthropic-beta".to_owned(), "mcp-client-2025-11-20".to_owned()));
    request
}

fn ask(host: &Running, request: &Request) -> Got {
    runtime().block_on(send_within(host.address, request, Duration::from_secs(30)))
}

fn between(world: &World) {
    world.each(|host, stream| {
        let got = ask(host, &search(stream, "What is alpha?"));
        let message = message(&got);
        let kinds = kinds(&message);
        let expected = ["text", "server_tool_use", "web_search_tool_result", "text"];
        assert_eq!(kinds[..4], expected, "{}", got.text());
        assert_eq!(message["content"][2]["content"][0]["url"], "https://alpha.example/x");
        assert_eq!(message["stop_reason"], "end_turn", "{}", got.text());
        assert!(got.text().contains("web_search_result_location"), "{}", got.text());
        let (searched, models) = (world.finder.asked(), world.model.asked());
        let ([searched], [_, second]) = (&searched[..], &models[..]) else { panic!("{models:?}") };
        assert_eq!(searched.path, "/search?q=alpha&format=json");
        assert!(!searched.head.contains("x-api-key"), "{searched:?}");
        let sent: Value = serde_json::from_str(&second.body).unwrap();
        let last = sent["messages"].as_array().unwrap().last().unwrap();
        assert_eq!(last["role"], "tool", "{sent}");
        assert!(last["content"].to_string().contains("[1] ALPHA"), "{sent}");
    });
}

/// Asks the same with either call late, and compares all that the client and the model get.
fn in_any_order(world: &World, said: &str, words: [&'static str; 2]) {
    world.each(|host, stream| {
        let mut first: Option<(String, String)> = None;
        for (late, early) in [(words[0], words[1]), (words[1], words[0])] {
            world.forget();
            *world.late.lock().unwrap() = late;
            let got = ask(host, &request(stream, said));
            let message = message(&got);
            let calls = kinds(&message).iter().filter(|kind| kind.ends_with("_use")).count();
            let results = kinds(&message).iter().filter(|kind| kind.ends_with("_result")).count();
            assert_eq!((calls, results), (2, 2), "{}", got.text());
            assert_eq!(
                order_of_answers(world),
                [early, late],
                "both must be open at the same time"
            );
            let asked = world.model.asked();
            // Pings come by the clock.
            let bytes = comparable(&got).replace("event: ping\ndata: {\"type\":\"ping\"}\n\n", "");
            let bytes = (bytes, asked.last().unwrap().body.clone());
            match &first {
                Some(first) => {
                    assert!(bytes.0 == first.0, "{}", difference(&first.0, &bytes.0));
                    assert!(bytes.1 == first.1, "{}", difference(&first.1, &bytes.1));
                }
                None => first = Some(bytes),
            }
        }
    });
    *world.late.lock().unwrap() = "";
}

/// Queries and arguments of calls in the order in which they were answered.
fn order_of_answers(world: &World) -> Vec<String> {
    let query = |asked: &Asked| Some(asked.path.split(['=', '&']).nth(1)?.to_owned());
    let argument = |asked: &Asked| {
        let sent: Value = serde_json::from_str(&asked.body).unwrap();
        Some(sent["params"]["arguments"]["a"].as_u64()?.to_string())
    };
    let (searched, noted) = (world.finder.answered(), world.notes.answered());
    let searched = searched.iter().map(|(at, asked)| (*at, query(asked)));
    let noted = noted.iter().map(|(at, asked)| (*at, argument(asked)));
    let mut all: Vec<(Instant, Option<String>)> = searched.chain(noted).collect();
    all.sort();
    all.into_iter().filter_map(|(_, word)| word).collect()
}

fn searches_in_any_order(world: &World) {
    in_any_order(world, "Do two searches.", ["alpha", "beta"]);
}

fn mcp_in_any_order(world: &World) {
    in_any_order(world, "Make two notes.", ["1", "2"]);
}

fn both_in_any_order(world: &World) {
    in_any_order(world, "Do one of each.", ["alpha", "2"]);
}

fn first_fails(world: &World) {
    world.each(|host, stream| {
        let got = ask(host, &search(stream, "The first fails."));
        got.assert_error(429, "rate_limit_error", "Not now");
        assert!(world.finder.asked().is_empty());
        assert_eq!(world.model.asked().len(), 1);
    });
}

fn later_fails(world: &World) {
    world.each(|host, stream| {
        let got = ask(host, &search(stream, "A later fails."));
        let text = got.text();
        if stream {
            assert_eq!((got.status, got.end), (200, End::Complete), "{text}");
            let (before, after) = text.split_once("event: error\n").unwrap();
            assert!(before.contains("web_search_tool_result"), "{text}");
            assert!(after.contains("api_error") && after.contains("Not now"), "{text}");
            assert!(!text.contains("message_stop") && !text.contains("end_turn"), "{text}");
        } else {
            got.assert_error(500, "api_error", "Not now");
        }
        // A round that fails before its first byte is asked for twice more.
        assert_eq!(world.model.asked().len(), 4);
        assert_eq!(world.finder.asked().len(), 1);
    });
}

fn silent(world: &World) {
    world.each(|host, stream| {
        let since = Instant::now();
        let got = ask(host, &search(stream, "Wait for silence."));
        let took = since.elapsed();
        let message = message(&got);
        let text = got.text();
        assert_eq!(message["content"][2]["content"]["error_code"], "unavailable", "{text}");
        assert_eq!(message["stop_reason"], "end_turn", "{text}");
        assert!(took >= Duration::from_millis(TIMEOUT_MS - 50), "{took:?}");
        // Envoy looks at its clock once in a second.
        assert!(took < Duration::from_millis(3 * TIMEOUT_MS), "{took:?}");
        if stream {
            let meanwhile = text.split("server_tool_use").nth(1).unwrap();
            let meanwhile = meanwhile.split("web_search_tool_result").next().unwrap();
            assert_eq!(meanwhile.contains("event: ping\n"), host.pings, "{text}");
        }
        assert_eq!(world.finder.asked().len(), 1);
        assert_eq!(world.model.asked().len(), 2);
    });
}

fn leaves(world: &World) {
    world.each(|host, stream| {
        let body = search(stream, "Wait for silence.").body;
        runtime().block_on(async {
            let mut client = TcpStream::connect(host.address).await.unwrap();
            let length = body.len();
            let head = format!(
                "POST /v1/messages HTTP/1.1\r\nhost: localhost\r\nx-api-key: k\r\n\
                 content-type: application/json\r\ncontent-length: {length}\r\n\r\n"
            );
            client.write_all(&[head.as_bytes(), &body].concat()).await.unwrap();
            tokio::time::sleep(Duration::from_millis(TIMEOUT_MS / 2)).await;
            // For workerd, a mere end of the client's data is no disconnect.
            client.set_zero_linger().unwrap();
        });
        assert_eq!(world.finder.asked().len(), 1);
        std::thread::sleep(Duration::from_millis(TIMEOUT_MS + 500));
        // A component learns that its client has gone when it writes to it.
        let rounds = if host.name == "wasi:http" && !stream { 2 } else { 1 };
        assert_eq!(world.model.asked().len(), rounds, "a round for nobody");
        assert!(world.finder.asked().is_empty());
    });
}

fn side_query(world: &World) {
    world.each(|host, stream| {
        let got = ask(host, &search(stream, "Perform a web search for the query: alpha"));
        let message = message(&got);
        let expected = ["server_tool_use", "web_search_tool_result", "text"];
        assert_eq!(kinds(&message)[..3], expected, "{}", got.text());
        let (searched, models) = (world.finder.asked(), world.model.asked());
        let ([searched], [model]) = (&searched[..], &models[..]) else { panic!("{models:?}") };
        assert_eq!(searched.path, "/search?q=alpha&format=json");
        assert!(model.body.contains("alpha is 1."), "{model:?}");
    });
}

fn refused(world: &World) {
    world.each(|host, stream| {
        let got = ask(host, &search(stream, "Find much and nothing."));
        let message = message(&got);
        let results: Vec<&Value> = message["content"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|block| block["type"] == "web_search_tool_result")
            .collect();
        let [much, nothing] = results[..] else { panic!("{}", got.text()) };
        assert_eq!(much["content"]["error_code"], "too_many_requests", "{much}");
        assert_eq!(nothing["content"], json!([]), "{nothing}");
        let models = world.model.asked();
        let told = &models.last().unwrap().body;
        assert!(
            told.contains("too_many_requests") && told.contains("Nothing was found."),
            "{told}"
        );
    });
}
