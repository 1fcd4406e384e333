//! Tests of the component in a real `wasmtime serve`, in front of the demo model.
// Helpers outside of `#[test]` functions may panic, as the tests may.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used
)]

mod rig;

use std::time::{Duration, Instant};

use creole_demo::{Answer, Demo, End, Ended, Options, Piece};
use rig::{Got, Server, connect, messages, read, send};

const QUICK: &str = r#"{"ping_interval_ms": 150, "stall_timeout_ms": 900, "first_byte_timeout_ms": 900,
    "request_bytes_max": 200000}"#;

fn demo() -> Demo {
    Demo::start(Options::default()).unwrap()
}

fn server(demo: &Demo) -> Server {
    Server::start(&[("UPSTREAM_URL", &format!("{}/v1", demo.url())), ("CREOLE_CONFIG", QUICK)])
}

fn chunk(text: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
}

fn ask(server: &Server, stream: bool, prompt: &str) -> Got {
    send(server, "POST", "/v1/messages", &messages(stream, prompt))
}

#[test]
fn answers_are_translated_as_they_come() {
    let demo = demo();
    let server = server(&demo);

    let whole = ask(&server, false, "demo:say Hi there");
    assert_eq!(whole.status, 200, "{whole:?}");
    assert_eq!(whole.json()["content"][0]["text"], "Hi there");
    assert_eq!(whole.header("content-length"), whole.body.len().to_string());
    assert!(whole.header("request-id").starts_with("req_"), "{whole:?}");
    let asked = demo.requests().pop().unwrap();
    assert_eq!((asked.method.as_str(), asked.path.as_str()), ("POST", "/v1/chat/completions"));
    assert_eq!(asked.header("content-length"), Some(asked.bytes.to_string().as_str()));
    assert_eq!(asked.header("authorization"), Some("Bearer (4 characters)"), "the client's key");

    let late = |text: &str| Piece { delay_ms: 400, data: chunk(text), base64: String::new() };
    let mut slow = Answer::stream([chunk("One")]);
    slow.pieces.extend([late("Two"), late("Three"), Piece::text("data: [DONE]\n\n")]);
    demo.script([slow]);
    let stream = ask(&server, true, "Hi");
    assert!(stream.header("content-type").starts_with("text/event-stream"), "{stream:?}");
    assert!(stream.complete && stream.body.contains("event: message_stop"), "{stream:?}");
    let between = stream.came("Three").duration_since(stream.came("One"));
    assert!(between > Duration::from_millis(600), "held back: {between:?}");

    // The log lines name the outcome of each exchange, and quote no message.
    let log = server.log_with(r#""cause":"end_turn""#);
    assert!(log.contains(r#""path":"/v1/messages","status":200,"outcome":"answered""#), "{log}");
    assert!(log.contains(whole.header("request-id")), "{log}");
    assert!(!log.contains("there") && !log.contains("Three"), "{log}");
}

#[test]
fn what_is_not_for_an_upstream_is_answered_here() {
    let demo = demo();
    let server = server(&demo);
    let refused = send(&server, "POST", "/v1/messages", "{\"model\": \"m\",");
    refused.assert_error(400, "invalid_request_error", "not valid JSON");
    let wrong = messages(true, "Hi").replace("\"max_tokens\":100", "\"max_tokens\":\"x\"");
    send(&server, "POST", "/v1/messages", &wrong).assert_error(
        400,
        "invalid_request_error",
        "max_tokens: ",
    );
    send(&server, "GET", "/v1/messages", "").assert_error(405, "invalid_request_error", "POST");
    send(&server, "GET", "/elsewhere", "").assert_error(404, "not_found_error", "");
    for path in ["/v2/messages", "/v1/../admin", "/v1/..%2fadmin"] {
        send(&server, "POST", path, "{}").assert_error(404, "not_found_error", "");
    }
    let large = messages(false, &"x".repeat(300_000));
    send(&server, "POST", "/v1/messages", &large).assert_error(413, "request_too_large", "");
    rig::send_chunked(&server, "/v1/messages", &large).assert_error(413, "request_too_large", "");
    assert_eq!(send(&server, "GET", "/", "").status, 200);
    let head = send(&server, "HEAD", "/api/hello", "");
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    let counted = send(&server, "POST", "/v1/messages/count_tokens", &messages(false, "Hi"));
    assert!(counted.json()["input_tokens"].as_u64().unwrap() > 0, "{counted:?}");
    assert!(demo.requests().is_empty(), "{:?}", demo.requests());
}

#[test]
fn a_component_with_keys_of_clients_serves_nobody_else() {
    let demo = demo();
    let upstream = format!("{}/v1", demo.url());
    let server = Server::start(&[
        ("UPSTREAM_URL", &upstream),
        ("UPSTREAM_KEY", "gateway-key"),
        ("CLIENT_KEY", "key-of-the-team"),
    ]);
    for (method, path) in
        [("POST", "/v1/messages"), ("POST", "/v1/messages/count_tokens"), ("POST", "/v1/files")]
    {
        let got = send(&server, method, path, &messages(false, "Hi"));
        got.assert_error(401, "authentication_error", "x-api-key");
    }
    assert_eq!(send(&server, "GET", "/", "").status, 200);
    assert!(demo.requests().is_empty(), "{:?}", demo.requests());
}

/// Starts the component with a search service at the demo's address.
fn searching(demo: &Demo) -> Server {
    let url = demo.url();
    let config = format!(
        r#"{{"server_tools": {{"web_search": {{"kind": "searxng", "url": "{url}", "timeout_ms": 2000}}}}}}"#
    );
    Server::start(&[("UPSTREAM_URL", &format!("{url}/v1")), ("CREOLE_CONFIG", &config)])
}

/// A turn in which the model calls `web_search` with each of these queries.
fn calls(queries: &[&str]) -> Answer {
    let call = |query: &&str| {
        format!(
            r#"{{"id":"{query}","type":"function","function":{{"name":"web_search",
                "arguments":"{{\"query\":\"{query}\"}}"}}}}"#
        )
    };
    let calls: Vec<String> = queries.iter().map(call).collect();
    Answer::json(
        200,
        format!(
            r#"{{"choices":[{{"index":0,"finish_reason":"tool_calls",
                "message":{{"role":"assistant","content":"","tool_calls":[{}]}}}}]}}"#,
            calls.join(",")
        ),
    )
}

/// An answer of the search service with one page, after a delay.
fn page(delay_ms: u64) -> Answer {
    let found = r#"{"results":[{"url":"https://a.example/","title":"A","content":"Text of A"}]}"#;
    Answer { path: "/search".to_owned(), delay_ms, ..Answer::json(200, found) }
}

fn says(text: &str) -> Answer {
    Answer::json(
        200,
        format!(
            r#"{{"choices":[{{"index":0,"finish_reason":"stop",
                "message":{{"role":"assistant","content":"{text}"}}}}]}}"#
        ),
    )
}

fn with_search(stream: bool) -> String {
    messages(stream, "Q").replace(
        "\"messages\"",
        "\"tools\":[{\"type\":\"web_search_20250305\",\"name\":\"web_search\"}],\"messages\"",
    )
}

#[test]
fn searches_are_run_at_once_between_two_rounds() {
    let demo = demo();
    let server = searching(&demo);
    for stream in [false, true] {
        demo.script([calls(&["one", "two", "three"]), says("Done")]);
        demo.script([page(500), page(500), page(500)]);
        let since = Instant::now();
        let got = send(&server, "POST", "/v1/messages", &with_search(stream));
        assert_eq!(got.status, 200, "{got:?}");
        assert!(got.complete && got.body.contains("Done"), "{got:?}");
        assert_eq!(got.body.matches("\"web_search_tool_result\"").count(), 3, "{got:?}");
        assert!(since.elapsed() < Duration::from_millis(1400), "{:?}", since.elapsed());
    }
    let asked = demo.requests();
    let searches = asked.iter().filter(|asked| asked.path.starts_with("/search"));
    assert!(searches.clone().all(|asked| asked.header("authorization").is_none()));
    assert_eq!(searches.count(), 6);
    assert!(!server.log_with("end_turn").contains("three"));
}

#[test]
fn a_search_that_hangs_is_a_result_and_a_round_that_fails_is_repeated() {
    let demo = demo();
    let server = searching(&demo);
    demo.script([calls(&["one", "two"]), Answer::json(503, "{}"), says("Done")]);
    demo.script([page(20_000), page(0)]);
    let got = send(&server, "POST", "/v1/messages", &with_search(true));
    assert!(got.complete && got.body.contains("Done"), "{got:?}");
    assert_eq!(got.body.matches("web_search_tool_result_error").count(), 1, "{got:?}");
    assert_eq!(got.body.matches("https://a.example/").count(), 1, "{got:?}");
}

#[test]
fn servers_that_a_conversation_names_are_refused_at_the_start() {
    let demo = demo();
    for (tools, key) in [
        (r#"{"web_fetch": {}}"#, "server_tools.web_fetch"),
        (r#"{"mcp": {"from_requests": "public"}}"#, "server_tools.mcp.from_requests"),
    ] {
        let config = format!(r#"{{"server_tools": {tools}}}"#);
        let upstream = format!("{}/v1", demo.url());
        let server = Server::start(&[("UPSTREAM_URL", &upstream), ("CREOLE_CONFIG", &config)]);
        let got = ask(&server, false, "Hi");
        assert_eq!(got.status, 500, "{got:?}");
        assert!(!got.body.contains("server_tools"), "{got:?}");
        server.log_with(&format!("{key}: this host cannot check the addresses"));
    }
}

#[test]
fn other_paths_below_v1_pass_untouched() {
    let demo = demo();
    let upstream = format!("{}/v1", demo.url());
    let server = Server::start(&[("UPSTREAM_URL", &upstream), ("UPSTREAM_KEY", "gateway-key")]);
    let mut answer = Answer::json(418, "{\"raw\":  true}");
    answer.path = "/v1/embeddings".to_owned();
    answer.headers.push(("x-mine".to_owned(), "1".to_owned()));
    let mut cut = Answer::json(200, "{\"half\":");
    cut.path = "/v1/files".to_owned();
    cut.end = End::Abort;
    demo.script([answer, cut]);
    let got = send(&server, "POST", "/v1/embeddings?a=b", "{\"input\":  \"x\"}");
    assert_eq!((got.status, got.body.as_str()), (418, "{\"raw\":  true}"));
    assert_eq!(got.header("x-mine"), "1");
    let asked = demo.requests().pop().unwrap();
    assert_eq!(
        (asked.path.as_str(), asked.body.as_str()),
        ("/v1/embeddings?a=b", "{\"input\":  \"x\"}")
    );
    assert_eq!(asked.header("authorization"), Some("Bearer (11 characters)"), "the gateway's key");
    assert_eq!(asked.header("x-api-key"), None);

    let got = send(&server, "GET", "/v1/files", "");
    assert!(!got.complete, "what broke off must not look complete: {got:?}");
    let asked = demo.requests().pop().unwrap();
    assert_eq!((asked.method.as_str(), asked.bytes), ("GET", 0));
    assert_eq!(asked.header("transfer-encoding"), None, "a GET stays one without a body");
    assert!(!server.log_with("passed").contains("gateway-key"));
}

#[test]
fn an_upstream_that_fails_is_an_error_that_clients_understand() {
    let demo = demo();
    let server = server(&demo);
    let limited = ask(&server, true, "demo:error 429");
    limited.assert_error(429, "rate_limit_error", "");
    assert_eq!(limited.header("retry-after"), "2");

    let cut = ask(&server, true, "demo:cut");
    assert!(cut.complete, "the client's stream ends well: the error is in it: {cut:?}");
    assert!(cut.body.contains("event: error\ndata: {\"type\":\"error\""), "{cut:?}");
    assert!(!cut.body.contains("message_stop"), "{cut:?}");
    ask(&server, false, "demo:cut").assert_error(502, "api_error", "");
    let mut nothing = Answer::stream([""; 0]);
    nothing.end = End::Abort;
    demo.script([nothing]);
    ask(&server, true, "Hi").assert_error(502, "api_error", "");

    let nowhere = Server::start(&[("UPSTREAM_URL", "http://127.0.0.1:1/v1")]);
    ask(&nowhere, true, "Hi").assert_error(502, "api_error", "refused");
}

#[test]
fn what_an_upstream_refuses_is_left_out_of_a_second_request() {
    let demo = demo();
    let server = server(&demo);
    let refusal = "Unsupported parameter: 'temperature' is not supported";
    let body = messages(true, "Hi").replace("\"max_tokens\"", "\"temperature\":0.5,\"max_tokens\"");
    let error = format!(r#"{{"error":{{"message":"{refusal}"}}}}"#);
    demo.script([Answer::json(400, &error)]);
    let got = send(&server, "POST", "/v1/messages", &body);
    assert!(got.status == 200 && got.body.contains("event: message_stop"), "{got:?}");
    let warnings = got.header("x-creole-warnings");
    assert!(warnings.contains("parameter_refused:sampling"), "{warnings}");
    let asked = demo.requests();
    let asked: Vec<bool> = asked.iter().map(|it| it.body.contains("temperature")).collect();
    assert_eq!(asked, [true, false]);
    // If the request without the refused parameter is refused, too, the client gets the error.
    demo.script([Answer::json(400, &error), Answer::json(400, &error)]);
    send(&server, "POST", "/v1/messages", &body).assert_error(
        400,
        "invalid_request_error",
        refusal,
    );
    assert_eq!(demo.requests().len(), 4);
}

#[test]
fn a_judge_is_asked_behind_an_answer_and_the_client_gets_pings_meanwhile() {
    let demo = demo();
    let upstream = format!("{}/v1", demo.url());
    let config = r#"{"safeguards": {"model": "guard"}, "ping_interval_ms": 150}"#;
    let server = Server::start(&[("UPSTREAM_URL", &upstream), ("CREOLE_CONFIG", config)]);
    let call = r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"Bash","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}"#;
    let unclear = r#"{"choices":[{"message":{"content":"Hm"},"finish_reason":"stop"}]}"#;
    let judged = Answer { delay_ms: 700, ..Answer::json(200, unclear) };
    demo.script([Answer::stream([format!("data: {call}\n\ndata: [DONE]\n\n")]), judged]);
    let asks = r#""tools":[{"name":"Bash","input_schema":{"type":"object"}}],"safeguards":[{"type":"dangerous_tool_use","classifier_context":{}}],"max_tokens""#;
    let body = messages(true, "Hi").replace("\"max_tokens\"", asks);
    let got = send(&server, "POST", "/v1/messages", &body);
    assert_eq!(got.header("x-creole-judge"), "guard");
    let asked = demo.requests();
    assert_eq!(asked.len(), 2);
    assert!(asked[1].body.contains("<calls>"), "{}", asked[1].body);
    let (answer, end) = got.body.split_once("event: content_block_stop").unwrap();
    assert!(answer.contains("\"name\":\"Bash\""), "{answer}");
    let (wait, end) = end.split_once("event: message_delta").unwrap();
    assert!(wait.matches("event: ping").count() >= 3, "{wait}");
    assert!(end.contains("\"unavailable\"") && end.contains("event: message_stop"), "{end}");
    let judge = got.came("event: message_delta").duration_since(got.came("\"name\":\"Bash\""));
    assert!(judge > Duration::from_millis(600), "held back: {judge:?}");
}

#[test]
fn a_silent_upstream_gives_pings_and_is_given_up() {
    let demo = demo();
    let server = server(&demo);
    let stalled = ask(&server, true, "demo:stall 500");
    let pings = stalled.body.matches("event: ping\n").count();
    assert!(pings >= 3 && stalled.body.contains("event: message_stop"), "{stalled:?}");

    let silent = ask(&server, true, "demo:hang");
    assert!(silent.complete && silent.body.contains("\"timeout_error\""), "{silent:?}");
    let silent = ask(&server, false, "demo:hang");
    silent.assert_error(504, "timeout_error", "");
    let late = ask(&server, true, "demo:late 3000");
    late.assert_error(504, "timeout_error", "");
    // Every request of the test has ended for the upstream, so no connection to the upstream is
    // left.
    rig::until("the upstream", || demo.requests().iter().all(|asked| asked.ended != Ended::Open));
}

#[test]
fn a_client_that_leaves_ends_the_upstreams_answer_with_the_next_ping() {
    let demo = demo();
    let server = server(&demo);
    let mut stream = connect(&server, "POST", "/v1/messages", &messages(true, "demo:stall 800"));
    rig::read_until(&mut stream, "content_block_delta");
    drop(stream);
    rig::until("the upstream", || {
        demo.requests().iter().any(|asked| asked.ended == Ended::ClientGone)
    });
}

#[test]
fn a_configuration_that_cannot_be_used_is_named_in_the_log() {
    let server = Server::start(&[("CREOLE_CONFIG", r#"{"strict": "yes", "upstreams": {}}"#)]);
    ask(&server, true, "Hi").assert_error(500, "api_error", "its log says why");
    let log = server.log_with("strict");
    assert!(log.contains("expected"), "{log}");
}

#[test]
fn many_streams_with_clients_that_leave_keep_no_instance_busy() {
    const THREADS: usize = 8;
    const EACH: usize = 25;
    let demo = demo();
    let server = server(&demo);
    let complete = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (server, complete) = (&server, &complete);
            scope.spawn(move || {
                for nth in 0..EACH {
                    let body = messages(true, "demo:big 3000 demo:slow 1");
                    let mut stream = connect(server, "POST", "/v1/messages", &body);
                    if (thread + nth) % 3 == 0 {
                        rig::read_until(&mut stream, "content_block_delta");
                        continue;
                    }
                    let got = read(stream);
                    assert!(got.body.contains("event: message_stop"), "{got:?}");
                    complete.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                }
            });
        }
    });
    rig::until("the upstream", || demo.requests().iter().all(|asked| asked.ended != Ended::Open));
    // An instance that polls an endless stream without waiting would use processor time here.
    std::thread::sleep(Duration::from_millis(300));
    let (since, before) = (Instant::now(), server.cpu());
    std::thread::sleep(Duration::from_millis(1000));
    let (Some(before), Some(after)) = (before, server.cpu()) else { return };
    let share = (after - before).as_secs_f64() / since.elapsed().as_secs_f64();
    println!("{complete:?} streams read to the end; idle CPU {:.1} %", share * 100.0);
    assert!(share < 0.2, "idle, and {:.0} % of a CPU", share * 100.0);
}

#[test]
fn a_client_that_writes_all_before_it_reads_reads_why_nothing_is_there() {
    use std::io::{Read as _, Write as _};
    const LENGTH: usize = 8 << 20;
    let demo = demo();
    let server = Server::start(&[("UPSTREAM_URL", &format!("{}/v1", demo.url()))]);
    for path in ["/x/v1/messages", "/v1/../x"] {
        let mut client = std::net::TcpStream::connect(server.address).unwrap();
        let head = format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {LENGTH}\r\n\r\n");
        client.write_all(head.as_bytes()).unwrap();
        std::thread::sleep(Duration::from_millis(300));
        client.write_all(&vec![b' '; LENGTH]).unwrap();
        let mut answer = [0; 12];
        client.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"HTTP/1.1 404", "{path}");
    }
}

#[test]
fn a_client_that_breaks_off_its_upload_is_not_the_upstreams_fault() {
    use std::io::Write as _;
    let demo = demo();
    let server = server(&demo);
    let mut client = std::net::TcpStream::connect(server.address).unwrap();
    let head = "POST /v1/files HTTP/1.1\r\nhost: x\r\ncontent-length: 99000\r\n\r\nhalf";
    client.write_all(head.as_bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    drop(client);
    let log = server.log_with(r#""path":"/v1/files""#);
    assert!(log.contains(r#""status":400,"outcome":"failed_client""#), "{log}");
}

/// Sends a request with this head and `content-length`, and with a body that may be shorter.
fn raw(server: &Server, head: &str, length: usize, body: &str) -> std::net::TcpStream {
    use std::io::Write as _;
    let mut client = std::net::TcpStream::connect(server.address).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    write!(client, "POST {head}\r\ncontent-length: {length}\r\n\r\n{body}").unwrap();
    client
}

/// Reads the status of a response. Returns the status, and the time from `since` until it arrived.
fn status(client: &mut std::net::TcpStream, since: Instant) -> (String, Duration) {
    use std::io::Read as _;
    let mut answer = [0; 12];
    client.read_exact(&mut answer).unwrap();
    (String::from_utf8_lossy(&answer[9..]).into_owned(), since.elapsed())
}

#[test]
fn hundreds_of_unfinished_bodies_keep_nobody_out_and_are_refused_when_they_pause() {
    let demo = demo();
    let upstream = format!("{}/v1", demo.url());
    let config = r#"{"stall_timeout_ms": 4000}"#;
    let server = Server::start(&[("UPSTREAM_URL", &upstream), ("CREOLE_CONFIG", config)]);
    let since = Instant::now();
    let head = "/v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: k";
    let mut clients: Vec<_> = (0..400).map(|_| raw(&server, head, 9, "{")).collect();
    for _ in 0..3 {
        assert_eq!(ask(&server, false, "demo:say Hi").status, 200);
    }
    let passed = "/v1/files HTTP/1.1\r\nhost: x\r\nx-api-key: k";
    clients.extend([raw(&server, passed, 9, ""), raw(&server, passed, 9, "{")]);
    for client in &mut clients {
        let (status, after) = status(client, since);
        assert_eq!(status, "408");
        assert!(after > Duration::from_millis(3900), "{after:?}");
    }
}

#[test]
fn a_refusal_comes_before_the_body() {
    let demo = demo();
    let upstream = format!("{}/v1", demo.url());
    let keys = [("UPSTREAM_KEY", "gateway-key"), ("CLIENT_KEY", "key-of-the-team")];
    let open = [("CREOLE_CONFIG", QUICK), ("CREOLE_PROFILE", "")];
    for (variables, path, expected) in
        [(keys, "/v1/messages", "401"), (keys, "/v1/files", "401"), (open, "/v1/messages", "413")]
    {
        let server = Server::start(&[&[("UPSTREAM_URL", &*upstream)], &variables[..]].concat());
        assert_eq!(send(&server, "GET", "/", "").status, 200);
        let since = Instant::now();
        let head = format!("{path} HTTP/1.1\r\nhost: x");
        let mut client = raw(&server, &head, 9_000_000, "");
        let (status, after) = status(&mut client, since);
        assert_eq!(status, expected);
        assert!(after < Duration::from_millis(1500), "{after:?}");
    }
}

#[test]
fn an_empty_key_is_no_open_door() {
    for (name, other) in [("CLIENT_KEY", "UPSTREAM_KEY"), ("UPSTREAM_KEY", "CLIENT_KEY")] {
        let url = ("UPSTREAM_URL", "http://127.0.0.1:1/v1");
        let server = Server::start(&[url, (name, ""), (other, "sk-other")]);
        ask(&server, true, "Hi").assert_error(500, "api_error", "its log says why");
        server.log_with(&format!("{name}: expected a key"));
    }
}

#[test]
fn web_pages_of_others_cannot_use_a_component_without_keys_of_clients() {
    let demo = demo();
    let upstream = format!("{}/v1", demo.url());
    let variables = [("UPSTREAM_URL", &*upstream), ("UPSTREAM_KEY", "gateway-key")];
    let body = messages(false, "demo:say Hi");
    let asked = |server: &Server, path: &str, headers: &str| {
        let head = format!("{path} HTTP/1.1\r\n{headers}\r\nx-api-key: key-of-the-team");
        status(&mut raw(server, &head, body.len(), &body), Instant::now()).0
    };
    let server = Server::start(&variables);
    for path in ["/v1/messages", "/v1/files"] {
        for headers in [
            "host: localhost:1\r\norigin: http://evil.example",
            "host: 127.0.0.1\r\norigin: null",
            "host: localhost\r\nsec-fetch-site: cross-site",
            "host: evil.example",
            "host: evil.example\r\norigin: http://evil.example",
        ] {
            assert_eq!(asked(&server, path, headers), "403", "{path} {headers}");
        }
    }
    assert!(demo.requests().is_empty(), "{:?}", demo.requests());
    assert_eq!(asked(&server, "/v1/messages", "host: 127.0.0.1:1"), "200");
    // A request is allowed if its host is in `ALLOWED_HOSTS`, or if clients have keys.
    for more in [("ALLOWED_HOSTS", "a.example,creole.example"), ("CLIENT_KEY", "key-of-the-team")] {
        let server = Server::start(&[&variables[..], &[more]].concat());
        assert_eq!(asked(&server, "/v1/messages", "host: creole.example"), "200");
    }
}
