//! Tests of what only a real Envoy can show: its own errors, both HTTP versions, trailers, broken
//! connections, both pause modes, and refused configurations.
#![allow(clippy::panic, clippy::indexing_slicing, clippy::unwrap_used, reason = "tests")]

use std::process::ExitCode;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use creole_hosts::process::{EnvoyOptions, Process};
use creole_hosts::suite::{self, FINISH, chunk, completion, messages};
use creole_hosts::upstream::Upstream;
use creole_hosts::{Answer, End, Got, Host as _, Request, Trial, cases};
use serde_json::{Value, json};

/// Keys of the cases, so that no case sees another's upstream.
const KEYS: &[&str] = &[
    "0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008", "0009", "0010", "0011", "0012",
];

/// Envoys that several cases use, each started by the first case that needs it.
#[derive(Default)]
struct Envoys {
    plain: OnceLock<Process>,
}

impl Envoys {
    fn plain(&self) -> &Process {
        self.plain.get_or_init(|| {
            let mut config = suite::config(KEYS, json!({}));
            for cluster in ["http2", "slow", "refusing", "empty", "nowhere"] {
                config["upstreams"][cluster] =
                    json!({"cluster": cluster, "base_path": format!("/{cluster}/v1")});
                config["models"][format!("claude-{cluster}")] =
                    json!({"upstream": cluster, "model": "m"});
            }
            start(&config, EnvoyOptions { routes: true, ..EnvoyOptions::default() })
        })
    }
}

fn start(config: &Value, options: EnvoyOptions) -> Process {
    Process::envoy(config, &options).unwrap_or_else(|reason| panic!("{reason}"))
}

fn main() -> ExitCode {
    let envoys = Envoys::default();
    cases::run(
        "real Envoy",
        &envoys,
        &[
            ("bad_json_never_reaches_the_upstream", bad_json),
            ("a_body_above_the_limit_is_an_anthropic_413", too_large),
            ("a_body_that_breaks_the_framing_is_an_anthropic_400", broken_framing),
            ("a_client_of_http_1_0_is_served", http10),
            ("an_upstream_that_dies_in_the_middle_breaks_the_stream", dies_in_the_middle),
            ("an_upstream_that_dies_before_its_body_is_an_anthropic_error", dies_before_its_body),
            ("an_answer_of_envoys_own_has_the_type_of_its_status", refused_by_envoy),
            ("http2_clients_get_what_http1_clients_get", http2_downstream),
            ("http2_upstreams_with_and_without_trailers_are_translated", http2_upstream),
            ("trailers_of_a_request_do_not_stop_it", request_trailers),
            ("a_client_that_leaves_frees_the_upstream", client_leaves),
            ("a_gzip_answer_that_nobody_asked_for_is_a_clear_502", gzip),
            ("probes_of_clients_are_answered_here", probes),
            ("without_a_model_map_the_upstream_is_asked_for_its_models", models),
            ("other_paths_pass_untouched", pass_through),
            ("a_route_that_does_not_exist_is_an_anthropic_404", no_route),
            ("no_healthy_upstream_is_an_anthropic_529", no_endpoints),
            ("an_upstream_that_refuses_connections_is_an_anthropic_502", refused),
            ("a_route_timeout_is_an_anthropic_504", timeout),
            ("a_stalled_upstream_is_a_504_or_a_broken_stream", stall),
            ("a_route_has_its_own_configuration_in_its_metadata", route_metadata),
            ("without_paused_heads_everything_still_translates", not_paused),
            ("a_bad_configuration_stops_envoy_and_names_its_path", bad_config),
        ],
    )
}

fn trial(key: &str, request: Request, answer: Answer) -> Trial {
    Trial { key: key.to_owned(), request, answer }
}

fn events() -> Answer {
    Answer::events([chunk("Hello"), chunk(" world"), FINISH.to_owned()])
}

fn assert_hello(got: &Got) {
    assert_eq!((got.status, got.end), (200, End::Complete), "{}", got.text());
    let text = got.text();
    assert!(text.contains(r#""text":"Hello""#) && text.contains(r#""text":" world""#), "{text}");
    assert!(text.ends_with("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"), "{text}");
}

fn bad_json(envoys: &Envoys) {
    for (body, message) in [
        ("{\"model\":\"claude-0001\",", "not valid JSON"),
        ("", "not valid JSON"),
        ("[]", "expected an object"),
        ("{\"model\":\"claude-0001\",\"max_tokens\":1,\"messages\":\"x\"}", "messages"),
    ] {
        for http2 in [false, true] {
            let mut request = Request::messages(body);
            request.http2 = http2;
            let got = envoys.plain().send(&trial("0001", request, events()));
            got.assert_error(400, "invalid_request_error", message);
            assert!(got.header("request-id").unwrap_or_default().starts_with("req_"), "{got:?}");
            assert!(got.upstream.is_empty(), "{:?}", got.upstream);
        }
    }
}

fn too_large(envoys: &Envoys) {
    let text = "x".repeat(33 << 20);
    for piece_bytes in [0, 1 << 16] {
        let mut request = messages("0002", false, &text);
        request.piece_bytes = piece_bytes;
        let got = envoys.plain().send(&trial("0002", request, events()));
        got.assert_error(413, "request_too_large", "maximum size");
        assert!(got.upstream.is_empty());
    }
}

/// Returns the answer of an Envoy to bytes that no client library sends.
fn answer_to(envoys: &Envoys, bytes: &str) -> String {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect(envoys.plain().address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream.write_all(bytes.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn broken_framing(envoys: &Envoys) {
    let head =
        "POST /v1/messages HTTP/1.1\r\nhost: h\r\nx-api-key: k\r\ntransfer-encoding: chunked";
    let answer = answer_to(envoys, &format!("{head}\r\n\r\nFFFFFFFFFFFFFFFFF\r\nabc"));
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    assert!(answer.contains("invalid_request_error") && answer.contains("broke off"), "{answer}");
}

fn http10(envoys: &Envoys) {
    let upstream = Upstream::shared();
    upstream.expect("0012", events());
    for stream in [false, true] {
        let request = messages("0012", stream, "hi");
        let (body, bytes) = (String::from_utf8_lossy(&request.body), request.body.len());
        let head = format!("host: h\r\nx-api-key: k\r\ncontent-length: {bytes}\r\n\r\n");
        let answer = answer_to(envoys, &format!("POST /v1/messages HTTP/1.0\r\n{head}{body}"));
        // The end of the connection is the end of an HTTP/1.0 answer.
        assert!(answer.split(' ').nth(1) == Some("200"), "{answer}");
        assert!(answer.to_ascii_lowercase().contains("connection: close"), "{answer}");
        assert_eq!(answer.ends_with("{\"type\":\"message_stop\"}\n\n"), stream, "{answer}");
        assert!(answer.contains("Hello") && !answer.contains("chunked"), "{answer}");
    }
}

fn dies_in_the_middle(envoys: &Envoys) {
    for http2 in [false, true] {
        let mut request = messages("0003", true, "hi");
        request.http2 = http2;
        let mut answer = Answer::events([chunk("Hello")]);
        answer.end = End::Aborted;
        let got = envoys.plain().send(&trial("0003", request, answer));
        assert_eq!((got.status, got.end), (200, End::Aborted), "{}", got.text());
        assert!(got.text().contains("Hello"), "{}", got.text());
        // Clients would run a call in a closed block, and would trust an ended message.
        assert!(!got.text().contains("content_block_stop"), "{}", got.text());
        assert!(!got.text().contains("message_stop"), "{}", got.text());
    }
}

fn dies_before_its_body(envoys: &Envoys) {
    let mut answer = Answer::json("");
    answer.headers.push(("content-length".to_owned(), "100".to_owned()));
    answer.end = End::Aborted;
    let got = envoys.plain().send(&trial("0004", messages("0004", false, "hi"), answer));
    assert!(matches!(got.status, 500..=599), "{got:?}");
    got.assert_error(got.status, "api_error", "");
}

fn refused_by_envoy(envoys: &Envoys) {
    let mut request = messages("0005", false, "hi");
    // The head is larger than Envoy accepts, so no filter sees it.
    request.headers.push(("x-long".to_owned(), "x".repeat(70 << 10)));
    let got = envoys.plain().send(&trial("0005", request, Answer::json("")));
    got.assert_error(431, "invalid_request_error", "");
}

fn http2_downstream(envoys: &Envoys) {
    for (stream, answer) in [(true, events()), (false, Answer::json(completion("Hello")))] {
        let mut results = Vec::new();
        for http2 in [false, true] {
            let mut request = messages("0005", stream, "hi");
            request.http2 = http2;
            let got = envoys.plain().send(&trial("0005", request, answer.clone()));
            results.push(suite::comparable(&got));
        }
        assert_eq!(results.first(), results.last());
        assert!(results.iter().all(|text| text.contains("Hello")), "{results:?}");
    }
}

fn http2_upstream(envoys: &Envoys) {
    let envoy = envoys.plain();
    for trailers in [false, true] {
        let trailers: Vec<_> =
            trailers.then(|| ("x-checksum".to_owned(), "1".to_owned())).into_iter().collect();
        let answer = Answer { trailers: trailers.clone(), ..events() };
        assert_hello(&envoy.send(&trial("http2", messages("http2", true, "hi"), answer)));
        for pieces in [100, 100_000] {
            let answer = Answer::json(completion("Hello")).cut(pieces);
            let answer = Answer { trailers: trailers.clone(), ..answer };
            let got = envoy.send(&trial("http2", messages("http2", false, "hi"), answer));
            assert_eq!(got.status, 200, "{}", got.text());
            assert_eq!(got.json()["content"][0]["text"], "Hello");
        }
        let answer = Answer::whole(400, "application/json", r#"{"error":{"message":"no good"}}"#);
        let answer = Answer { trailers, ..answer };
        let got = envoy.send(&trial("http2", messages("http2", true, "hi"), answer));
        got.assert_error(400, "invalid_request_error", "no good");
    }
}

fn request_trailers(envoys: &Envoys) {
    for http2 in [false, true] {
        let mut request = messages("0006", true, "hi");
        request.http2 = http2;
        request.trailers = vec![("x-checksum".to_owned(), "1".to_owned())];
        let length = request.body.len().to_string();
        request.piece_bytes = 50;
        if http2 {
            // With its length, a body is complete before its trailers.
            request.headers.push(("content-length".to_owned(), length));
        }
        let got = envoys.plain().send(&trial("0006", request, events()));
        assert_hello(&got);
        assert_eq!(got.upstream.len(), 1);
    }
}

/// Waits until a condition holds. Returns false if it still does not hold after ten seconds.
fn soon(what: impl Fn() -> bool) -> bool {
    let since = Instant::now();
    while !what() {
        if since.elapsed() > Duration::from_secs(10) {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}

fn client_leaves(envoys: &Envoys) {
    let upstream = Upstream::shared();
    assert!(soon(|| upstream.open() == 0), "a stream of another case goes on");
    for leave_after in [Some(0), Some(1)] {
        for http2 in [false, true] {
            let mut request = messages("0007", true, "hi");
            request.leave_after = leave_after;
            request.http2 = http2;
            let mut answer = Answer::events([chunk("Hello")]);
            answer.end = End::Silent;
            let got = envoys.plain().send(&trial("0007", request, answer));
            assert_eq!(got.body.is_empty(), leave_after == Some(0), "{}", got.text());
            // A client that leaves at once may be gone before the upstream gets the request.
            assert!(soon(|| upstream.seen("0007").len() == 1), "the upstream was not asked");
            std::thread::sleep(Duration::from_millis(100));
            assert!(soon(|| upstream.open() == 0), "the upstream goes on");
        }
    }
    let answer = Answer::json(completion("Hello"));
    let got = envoys.plain().send(&trial("0007", messages("0007", false, "hi"), answer));
    assert_eq!(got.status, 200);
}

fn gzip(envoys: &Envoys) {
    use std::io::Write as _;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(completion("Hello").as_bytes()).unwrap();
    let mut answer = Answer::json(encoder.finish().unwrap());
    answer.headers.push(("content-encoding".to_owned(), "gzip".to_owned()));
    let mut request = messages("0008", false, "hi");
    request.headers.push(("accept-encoding".to_owned(), "gzip, br".to_owned()));
    let got = envoys.plain().send(&trial("0008", request, answer));
    got.assert_error(502, "api_error", "content-encoding");
    assert_eq!(got.header("content-encoding"), None);
    let seen = got.upstream.first().unwrap();
    assert_eq!(creole_hosts::value(&seen.headers, "accept-encoding"), Some("identity"));
}

fn probes(envoys: &Envoys) {
    for (method, path, status) in [
        ("HEAD", "/", 200),
        ("GET", "/", 200),
        ("HEAD", "/api/hello", 200),
        ("GET", "/v1/models", 200),
        ("GET", "/v1/models/claude-0009", 200),
        ("GET", "/v1/models/nothing", 404),
        ("GET", "/v1/messages", 405),
    ] {
        let request = Request::plain(method, path);
        let got = envoys.plain().send(&trial("0009", request, events()));
        assert_eq!((got.status, got.end), (status, End::Complete), "{method} {path}: {got:?}");
        assert!(got.upstream.is_empty(), "{method} {path}");
        assert_eq!(got.body.is_empty(), method == "HEAD", "{method} {path}: {}", got.text());
    }
}

fn models(_: &Envoys) {
    let mut config = suite::config(&["0013"], json!({}));
    config["models"] = json!({});
    for pause_headers in [true, false] {
        config["pause_headers"] = pause_headers.into();
        let envoy = start(&config, EnvoyOptions { pause_headers, ..EnvoyOptions::default() });
        let list = Answer::json(r#"{"object":"list","data":[{"id":"qwen3","object":"model"}]}"#);
        let request = Request::plain("GET", "/v1/models?limit=1000");
        let got = envoy.send(&trial("0013", request.clone(), list));
        assert_eq!((got.status, got.end), (200, End::Complete), "{}", got.text());
        assert_eq!(got.json()["data"][0]["id"], "qwen3", "{}", got.text());
        assert_eq!(got.json()["data"][0]["type"], "model");
        let seen = got.upstream.first().unwrap();
        assert_eq!(seen.path, "/0013/v1/models");
        assert!(seen.body.is_empty());
        assert_eq!(creole_hosts::value(&seen.headers, "authorization"), Some("Bearer sk-test"));
        let none = Answer::whole(404, "text/plain", "404 page not found");
        let got = envoy.send(&trial("0013", request, none));
        assert_eq!((got.status, got.end), (200, End::Complete), "{}", got.text());
        assert_eq!(got.json()["data"], json!([]));
    }
}

fn pass_through(_: &Envoys) {
    // A header of the filter chooses the routes of `plain`, but the filter does not set that header
    // here.
    let envoy = start(&suite::config(&["0010"], json!({})), EnvoyOptions::default());
    let mut request = Request::messages("{\"not\": \"ours\"}");
    request.path = "/0010/v1/chat/completions?a=b".to_owned();
    let mut answer = Answer::whole(404, "text/strange", "as it is");
    answer.headers.push(("x-strange".to_owned(), "1".to_owned()));
    let got = envoy.send(&trial("0010", request, answer));
    assert_eq!((got.status, got.text().as_str()), (404, "as it is"));
    assert_eq!(got.header("x-strange"), Some("1"));
    assert_eq!(got.header("content-type"), Some("text/strange"));
    let seen = got.upstream.first().unwrap();
    assert_eq!(seen.path, "/0010/v1/chat/completions?a=b");
    assert_eq!(seen.body, "{\"not\": \"ours\"}");
    assert_eq!(creole_hosts::value(&seen.headers, "x-api-key"), Some("sk-test"));
}

fn no_route(envoys: &Envoys) {
    for stream in [false, true] {
        let got = envoys.plain().send(&trial("x", messages("nowhere", stream, "hi"), events()));
        got.assert_error(404, "not_found_error", "no such route");
    }
}

fn route_metadata(envoys: &Envoys) {
    let team = |name: &str, text: &str| {
        let mut request = messages("0012", false, text);
        request.headers.push(("x-team".to_owned(), name.to_owned()));
        envoys.plain().send(&trial("0012", request, Answer::json(completion("Hi"))))
    };
    let model = |got: &Got| {
        let seen: Value = serde_json::from_slice(&got.upstream.first().unwrap().body).unwrap();
        seen["model"].clone()
    };
    let long = "x".repeat(3000);
    let got = team("other", &long);
    assert_eq!((got.status, model(&got)), (200, json!("other-model")), "{}", got.text());
    team("small", &long).assert_error(413, "request_too_large", "maximum size");
    assert_eq!(team("small", "hi").status, 200);
    // Without the route's configuration, no other configuration is a safe guess.
    let got = team("broken", "hi");
    got.assert_error(500, "api_error", "configuration of the route is not valid");
    assert!(got.upstream.is_empty());
    assert!(
        envoys.plain().log().contains("route metadata: configuration: guards.pairing: expected")
    );
    let got = team("nobody", &long);
    assert_eq!((got.status, model(&got)), (200, json!("m")), "of all routes");
}

fn no_endpoints(envoys: &Envoys) {
    let got = envoys.plain().send(&trial("x", messages("empty", true, "hi"), events()));
    got.assert_error(529, "overloaded_error", "healthy");
}

fn refused(envoys: &Envoys) {
    let got = envoys.plain().send(&trial("x", messages("refusing", true, "hi"), events()));
    got.assert_error(502, "api_error", "could not be reached");
    assert!(!got.text().contains("127.0.0.1"), "names an address: {}", got.text());
}

fn timeout(envoys: &Envoys) {
    let answer = Answer { delay: Duration::from_secs(3), ..events() };
    let got = envoys.plain().send(&trial("slow", messages("slow", true, "hi"), answer));
    got.assert_error(504, "timeout_error", "in time");
}

fn stall(_: &Envoys) {
    let settings = json!({"stall_timeout_ms": 1000});
    let envoy = start(&suite::config(&["0001"], settings), EnvoyOptions::default());
    let answer = Answer { delay: Duration::from_secs(5), ..events() };
    let since = Instant::now();
    let got = envoy.send(&trial("0001", messages("0001", true, "hi"), answer));
    got.assert_error(504, "timeout_error", "");
    let mut answer = Answer::events([chunk("Hello")]);
    answer.end = End::Silent;
    let got = envoy.send(&trial("0001", messages("0001", true, "hi"), answer));
    assert_eq!((got.status, got.end), (200, End::Aborted), "{}", got.text());
    assert!(!got.text().contains("content_block_stop"), "{}", got.text());
    assert!(since.elapsed() < Duration::from_secs(10), "{:?}", since.elapsed());
}

fn not_paused(_: &Envoys) {
    let address = Upstream::shared().address();
    let config = json!({
        "pause_headers": false,
        "upstreams": {"a": {"url": format!("http://{address}"), "base_path": "/0001/v1"}}
    });
    let options = EnvoyOptions { pause_headers: false, ..EnvoyOptions::default() };
    let envoy = start(&config, options);
    for http2 in [false, true] {
        let send = |stream, answer| {
            let mut request = messages("0001", stream, "hi");
            request.http2 = http2;
            envoy.send(&trial("0001", request, answer))
        };
        let got = send(true, events());
        assert_hello(&got);
        assert_eq!(
            got.upstream.first().map(|seen| seen.path.as_str()),
            Some("/0001/v1/chat/completions")
        );
        let got = send(false, Answer::json(completion("Hello")).cut(40));
        assert_eq!(got.json()["content"][0]["text"], "Hello");
        let refusal = Answer::whole(429, "application/json", r#"{"error":{"message":"slow"}}"#);
        send(true, refusal).assert_error(429, "rate_limit_error", "slow");
        let mut request = Request::messages("{\"model\":");
        request.http2 = http2;
        let got = envoy.send(&trial("0001", request, events()));
        got.assert_error(400, "invalid_request_error", "not valid JSON");
        assert!(got.upstream.iter().all(|seen| seen.bytes == 0), "{:?}", got.upstream);
    }
    // Bodies of 32 MB pass in this mode, too.
    let text = "x".repeat(32 << 20 >> 1);
    let got =
        envoy.send(&trial("0001", messages("0001", false, &text), Answer::json(completion(&text))));
    assert_eq!(got.json()["content"][0]["text"].as_str().map(str::len), Some(text.len()));
    assert!(got.upstream.first().is_some_and(|seen| seen.bytes > text.len()));
}

/// Tests only one bad configuration, because the core's tests cover the others.
fn bad_config(_: &Envoys) {
    let config = json!({"upstreams": {"a": {"profile": "nonsense"}}});
    match Process::envoy(&config, &EnvoyOptions::default()) {
        Ok(_) => panic!("started with {config}"),
        Err(log) => assert!(log.contains("upstreams.a.profile") && log.contains("ended"), "{log}"),
    }
}
