//! Calls of a real Envoy beside a stream's own request: tools, later rounds, verdicts.
#![allow(clippy::panic, clippy::indexing_slicing, clippy::unwrap_used, reason = "tests")]

use std::process::ExitCode;
use std::time::Duration;

use creole_hosts::client::send_within;
use creole_hosts::process::Process;
use creole_hosts::scripted::{self, Asked, Scripted, Told, kinds, message, says};
use creole_hosts::upstream::runtime;
use creole_hosts::{End, Got, Request, cases};
use serde_json::{Value, json};

fn main() -> ExitCode {
    let world = World::start();
    cases::run(
        "calls in a real Envoy",
        &world,
        &[
            ("claude_codes_search_is_run_before_the_model_is_asked", before),
            ("a_search_runs_between_two_rounds", between),
            ("tools_of_an_mcp_server_are_listed_and_called", mcp),
            ("the_judge_is_asked_behind_an_answer", judge),
            ("a_refused_image_is_asked_again_without", again),
            ("a_held_request_above_the_buffer_limit_is_413", large_request),
            ("a_rest_above_the_limit_is_an_error_event", large_rest),
            ("a_rest_above_a_smaller_buffer_limit_breaks_one_stream_alone", small_buffer),
            ("a_client_that_leaves_takes_nothing_with_it", gone),
            ("many_streams_with_tools_are_whole", many),
        ],
    )
}

/// Servers behind one Envoy.
struct World {
    model: Scripted,
    finder: Scripted,
    notes: Scripted,
    envoy: Process,
}

impl World {
    fn start() -> Self {
        let (model, finder) = (Scripted::start(model), Scripted::start(finder));
        let notes = Scripted::start(notes);
        let envoy = envoy(&model, &finder, &notes, &|yaml| yaml);
        Self { model, finder, notes, envoy }
    }
}

fn envoy(
    model: &Scripted,
    finder: &Scripted,
    notes: &Scripted,
    change: &dyn Fn(String) -> String,
) -> Process {
    let config = json!({
        "upstreams": {"main": {"key": "none", "cluster": "model"}},
        "server_tools": {
            "web_search": {"kind": "searxng", "url": "http://finder.example/base", "cluster": "finder",
                "snippet_bytes_max": 1 << 20},
            "mcp": {"servers": {"notes": {"url": "http://notes.example/mcp", "cluster": "notes"}}},
        },
        "safeguards": {"model": "judge", "upstream": "main"},
        "log": "debug",
    });
    scripted::envoy(&config, model, &[("finder", finder), ("notes", notes)], change)
}

/// Model that calls the tool of a request until the tool's result is there, and judges.
fn model(asked: &Asked) -> Told {
    let sent: Value = serde_json::from_str(&asked.body).unwrap();
    let text = sent["messages"].to_string();
    let stream = sent["stream"] == true;
    if sent["model"] == "judge" {
        return says(stream, "{\"calls\": []}", &[]);
    }
    if text.contains("image_url") {
        let error = json!({"error": {"message": "This model does not support image input"}});
        return Told { status: 400, ..Told::json(error) };
    }
    let has_result = sent["messages"].as_array().unwrap().iter().any(|it| it["role"] == "tool");
    match sent["tools"][0]["function"]["name"].as_str().filter(|_| !has_result) {
        None => says(stream, "It is 1.", &[]),
        Some("web_search") => {
            says(stream, "Let me see.", &[("web_search", json!({"query": query(&text)}))])
        }
        Some(tool) => says(stream, "Let me see.", &[(tool, json!({"a": 1}))]),
    }
}

/// Query that the model searches for: a large one if the user asks for much.
fn query(text: &str) -> &'static str {
    if text.contains("much") {
        "much"
    } else if text.contains("more") {
        "more"
    } else if text.contains("late") {
        "late"
    } else {
        "alpha"
    }
}

/// Search service. It finds a megabyte of "much", 100 kB of "more", and takes long for "late".
fn finder(asked: &Asked) -> Told {
    let has = |word: &str| asked.path.contains(word);
    let content = match () {
        () if has("q=much") => "x".repeat(1 << 20),
        () if has("q=more") => "x".repeat(100_000),
        () => "Alpha is 1.".to_owned(),
    };
    let result = json!({"url": "https://a.example/x", "title": "A", "content": content});
    Told::json(json!({"results": [result]})).late(if has("q=late") { 1500 } else { 100 })
}

/// MCP server of the newest revision, with one tool.
fn notes(asked: &Asked) -> Told {
    let sent: Value = serde_json::from_str(&asked.body).unwrap();
    let result = match sent["method"].as_str().unwrap() {
        "tools/list" => json!({"tools": [{"name": "add", "inputSchema": {"type": "object"}}]}),
        _ => json!({"content": [{"type": "text", "text": "Noted 3."}]}),
    };
    Told::json(json!({"jsonrpc": "2.0", "id": sent["id"], "result": result}))
}

fn search(stream: bool, said: &str) -> Value {
    json!({
        "model": "m", "max_tokens": 1000, "stream": stream,
        "tools": [{"type": "web_search_20250305", "name": "web_search"}],
        "messages": [{"role": "user", "content": said}],
    })
}

fn ask(envoy: &Process, body: &Value, http2: bool) -> Got {
    let mut request = Request::messages(body.to_string());
    request.http2 = http2;
    request.headers.push(("anthropic-beta".to_owned(), "mcp-client-2025-11-20".to_owned()));
    runtime().block_on(send_within(envoy.address, &request, Duration::from_secs(30)))
}

/// Asks for a stream and a whole answer, over HTTP/1 and HTTP/2.
fn each(mut check: impl FnMut(bool, bool)) {
    for (stream, http2) in [(true, false), (false, false), (true, true)] {
        check(stream, http2);
    }
}

fn before(world: &World) {
    each(|stream, http2| {
        let body = search(stream, "Perform a web search for the query: alpha");
        let got = ask(&world.envoy, &body, http2);
        let kinds_expected = ["server_tool_use", "web_search_tool_result", "text"];
        assert_eq!(kinds(&message(&got)), kinds_expected, "{}", got.text());
        let (searched, models) = (world.finder.asked(), world.model.asked());
        let ([searched], [model]) = (&searched[..], &models[..]) else { panic!("{models:?}") };
        assert_eq!(searched.path, "/base/search?q=alpha&format=json");
        assert!(searched.head.contains("\r\nhost: finder.example\r\n"), "{searched:?}");
        assert!(!searched.head.contains("x-api-key"), "{searched:?}");
        assert!(model.body.contains("Alpha is 1."), "{model:?}");
        assert!(!model.head.contains("x-creole-upstream"), "{model:?}");
    });
}

fn between(world: &World) {
    each(|stream, http2| {
        let got = ask(&world.envoy, &search(stream, "What is it?"), http2);
        let message = message(&got);
        let text = got.text();
        let kinds = kinds(&message);
        assert!(kinds.ends_with(&["server_tool_use", "web_search_tool_result", "text"]), "{text}");
        assert_eq!(message["stop_reason"], "end_turn", "{text}");
        assert!(text.contains("It is 1."), "{text}");
        let (searched, models) = (world.finder.asked(), world.model.asked());
        let ([searched], [first, second]) = (&searched[..], &models[..]) else {
            panic!("{searched:?}")
        };
        assert_eq!(searched.path, "/base/search?q=alpha&format=json");
        assert_eq!((first.path.as_str(), &second.path), ("/v1/chat/completions", &first.path));
        let host = |asked: &Asked| {
            asked.head.lines().find(|line| line.starts_with("host: ")).unwrap().to_owned()
        };
        assert_eq!(host(first), host(second));
        assert!(second.body.contains("Alpha is 1."), "{second:?}");
        assert!(!second.head.contains("x-api-key"), "{second:?}");
    });
}

fn mcp(world: &World) {
    each(|stream, http2| {
        let mut body = search(stream, "Note it.");
        body["mcp_servers"] = json!([{"type": "url", "url": "mcp:notes", "name": "notes"}]);
        body["tools"] = json!([{"type": "mcp_toolset", "mcp_server_name": "notes"}]);
        let got = ask(&world.envoy, &body, http2);
        let message = message(&got);
        let text = got.text();
        assert!(kinds(&message).ends_with(&["mcp_tool_use", "mcp_tool_result", "text"]), "{text}");
        assert!(text.contains("Noted 3.") && text.contains("It is 1."), "{text}");
        let noted = world.notes.asked();
        assert!(noted.iter().all(|asked| asked.path == "/mcp"), "{noted:?}");
        assert!(noted.last().unwrap().body.contains("tools/call"), "{noted:?}");
        let models = world.model.asked();
        assert_eq!(models.len(), 2, "{models:?}");
        assert!(models[0].body.contains("mcp__notes__add"), "{models:?}");
    });
}

fn judge(world: &World) {
    each(|stream, http2| {
        let mut body = search(stream, "List the files.");
        body["tools"] = json!([{"name": "Bash", "input_schema": {"type": "object"}}]);
        body["safeguards"] =
            json!([{"type": "dangerous_tool_use", "classifier_context": {"v": 1}}]);
        let got = ask(&world.envoy, &body, http2);
        let text = got.text();
        assert_eq!(kinds(&message(&got)).last(), Some(&"tool_use"), "{text}");
        assert!(text.contains("safeguard_results") && !text.contains("unsupported"), "{text}");
        let models = world.model.asked();
        assert_eq!(models.len(), 2, "{models:?}");
    });
}

fn again(world: &World) {
    each(|stream, http2| {
        let mut body = search(stream, "");
        body.as_object_mut().unwrap().remove("tools");
        let image = json!({"type": "image", "source":
            {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}});
        body["messages"] = json!([
            {"role": "user", "content": [{"type": "text", "text": "See"}, image]},
            {"role": "assistant", "content": "I see."}, {"role": "user", "content": "And now?"}]);
        let got = ask(&world.envoy, &body, http2);
        assert_eq!(kinds(&message(&got)), ["text"], "{}", got.text());
        assert_eq!(world.model.asked().len(), 2);
    });
}

fn large_request(world: &World) {
    let said = "Perform a web search for the query: alpha".to_owned();
    let mut body = search(true, &said);
    body["system"] = "x".repeat(1_200_000).into();
    for stream in [true, false] {
        body["stream"] = stream.into();
        let got = ask(&world.envoy, &body, false);
        got.assert_error(413, "request_too_large", "maximum size");
    }
    world.finder.asked();
    assert!(world.model.asked().is_empty());
    // Over HTTP/2, the window of the stream counts.
    assert_eq!(kinds(&message(&ask(&world.envoy, &body, true))).len(), 3);
    let raised = |yaml: String| {
        let key = "  - name: clients\n";
        yaml.replace(key, &format!("{key}    per_connection_buffer_limit_bytes: 33554432\n"))
    };
    let envoy = envoy(&world.model, &world.finder, &world.notes, &raised);
    assert_eq!(kinds(&message(&ask(&envoy, &body, false))).len(), 3);
    world.finder.asked();
    world.model.asked();
}

fn large_rest(world: &World) {
    for http2 in [false, true] {
        let got = ask(&world.envoy, &search(true, "Find much."), http2);
        let text = got.text();
        assert_eq!(got.end, End::Complete, "{text}");
        assert!(text.contains("event: error\n") && text.contains("larger than this"), "{text}");
        assert!(!text.contains("message_stop"), "{text}");
    }
    // A whole answer is no write into a held stream.
    let got = ask(&world.envoy, &search(false, "Find much."), false);
    assert!(kinds(&message(&got)).contains(&"web_search_tool_result"));
    world.finder.asked();
    world.model.asked();
}

fn small_buffer(world: &World) {
    let small = |yaml: String| {
        let key = "  - name: clients\n";
        yaml.replace(key, &format!("{key}    per_connection_buffer_limit_bytes: 32768\n"))
    };
    let mut envoy = envoy(&world.model, &world.finder, &world.notes, &small);
    for _ in 0..3 {
        let got = ask(&envoy, &search(true, "Find more."), false);
        // Envoy answers in the filter's place, if the client has no byte yet.
        assert!(got.status == 500 || got.end == End::Aborted, "{}", got.text());
        assert!(!got.text().contains("message_stop"), "{}", got.text());
        let got = ask(&envoy, &search(true, "What is it?"), false);
        assert!(kinds(&message(&got)).contains(&"web_search_tool_result"));
    }
    let got = ask(&envoy, &search(true, "Find more."), true);
    assert!(kinds(&message(&got)).contains(&"web_search_tool_result"), "HTTP/2 has windows");
    assert!(envoy.is_alive(), "{}", envoy.log());
    world.finder.asked();
    world.model.asked();
}

fn gone(world: &World) {
    for (said, stream) in
        [("Find late.", true), ("Perform a web search for the query: late", true), ("late", false)]
    {
        let request = Request::messages(search(stream, said).to_string());
        for ms in [300, 900] {
            let got = runtime().block_on(send_within(
                world.envoy.address,
                &request,
                Duration::from_millis(ms),
            ));
            assert_eq!(got.end, End::Silent, "{}", got.text());
        }
    }
    std::thread::sleep(Duration::from_secs(2));
    let got = ask(&world.envoy, &search(true, "What is it?"), false);
    assert!(kinds(&message(&got)).contains(&"web_search_tool_result"));
    let gone = world.envoy.log().matches("client_gone").count();
    assert!(gone >= 6, "{gone}: {}", world.envoy.log());
    world.finder.asked();
    world.model.asked();
}

fn many(world: &World) {
    let asked: Vec<_> = (0..60)
        .map(|at| {
            let said =
                if at % 3 == 0 { "Perform a web search for the query: alpha" } else { "What?" };
            let mut request = Request::messages(search(at % 5 != 0, said).to_string());
            request.http2 = at % 2 == 0;
            let (address, patience) = (world.envoy.address, Duration::from_secs(60));
            runtime().spawn(async move { send_within(address, &request, patience).await })
        })
        .collect();
    for got in asked {
        let got = runtime().block_on(got).unwrap();
        assert!(kinds(&message(&got)).contains(&"web_search_tool_result"), "{}", got.text());
    }
    world.finder.asked();
    world.model.asked();
}
