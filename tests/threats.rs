//! The threat model, one test for each threat: `docs/security.md` names them all, and nothing else.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "tests"
)]

mod support;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use creole::{Config, End, Head, Pings};
use serde_json::{Value, json};

use support::drive::{self, Decision, Exchange, NOW, SEED, Steps as _, can};
use support::grammar::{self, Rules};

const EDGE_KEY: &str = "sk-edge-0123456789abcdefghij";

fn config(text: &str) -> Arc<Config> {
    Arc::new(Config::from_json(text, |name| Some(format!("{EDGE_KEY}{name}"))).unwrap())
}

fn config_of_responses() -> Arc<Config> {
    config(r#"{"upstreams":{"u":{"url":"http://u","protocol":"responses"}}}"#)
}

fn ask(model: &str, stream: bool) -> Value {
    let message = json!({"role": "user", "content": "Hello"});
    json!({"model": model, "max_tokens": 9, "stream": stream, "messages": [message]})
}

fn bytes(body: &Value) -> Vec<u8> {
    body.to_string().into_bytes()
}

fn safe(text: &str) -> bool {
    text.bytes().all(|byte| byte == b'\t' || (b' '..=b'~').contains(&byte))
}

/// Status and body of what a client gets, whatever the upstream says.
fn answered(config: &Arc<Config>, stream: bool, status: u16, body: &[u8]) -> (Head, String) {
    let sent = drive::request(config, "/v1/messages", &[], &bytes(&ask("m", stream)));
    let (exchange, _) = sent.unwrap();
    let answer = drive::respond(exchange, status, &[], [body], End::Complete);
    (answer.head, String::from_utf8(answer.body).unwrap())
}

#[test]
fn header_smuggling() {
    let mut exchange = Exchange::new(config("{}"), SEED, can(Pings::Sent));
    let headers = drive::headers(&[
        ("x-api-key", "k"),
        ("host", "inside"),
        ("content-length", "3"),
        ("transfer-encoding", "chunked"),
        ("connection", "close, x-mine"),
        ("x-mine", "1"),
        ("x-creole-upstream", "other"),
        ("x-forwarded-for", "10.0.0.1"),
        ("cookie", "a=b"),
        ("proxy-authorization", "Basic x"),
        ("traceparent", "00-1-2-01\r\nx-injected: 1"),
    ]);
    assert_eq!(exchange.decide("POST", "/v1/messages", &headers), Decision::Translate);
    let sent = exchange.request(&bytes(&ask("m", true)), NOW).unwrap();
    for (name, value) in &sent.headers {
        let known = [
            "content-type",
            "accept",
            "accept-encoding",
            "user-agent",
            "authorization",
            "x-creole-hops",
        ];
        assert!(known.contains(&name.as_str()), "{name}: {value}");
        assert!(safe(value), "{name}: {value:?}");
    }
}

#[test]
fn request_splitting() {
    let injected = "x\r\n\r\nGET /admin HTTP/1.1\r\nhost: inside\r\n\r\n";
    let mut body = ask(injected, false);
    body["metadata"] = json!({"user_id": injected});
    body[injected] = json!(1);
    let head = [("x-claude-code-session-id", injected)];
    let (exchange, sent) =
        drive::request(&config("{}"), "/v1/messages?a=b\r\nc", &head, &bytes(&body)).unwrap();
    assert_eq!(sent.path, "/v1/chat/completions");
    assert!(sent.headers.iter().all(|(_, value)| safe(value)), "{:?}", sent.headers);
    let forwarded: Value = serde_json::from_slice(&sent.body).unwrap();
    assert_eq!(forwarded["model"], injected);
    let said = drive::headers(&[
        ("x-request-id", injected),
        ("retry-after", "1\r\nset-cookie: a=b"),
        ("set-cookie", "a=b"),
    ]);
    let answer = drive::respond(exchange, 429, &said, [&b"{}"[..]], End::Complete);
    for (name, value) in &answer.head.headers {
        assert!(safe(value) && name != "set-cookie", "{name}: {value:?}");
    }
}

#[test]
fn path_confusion() {
    for path in [
        "/v1//messages",
        "//v1/messages",
        "/V1/messages",
        "/v1/messages%2f",
        "/v1/messages/../models",
        "/v1/./messages",
        "/v1/messages;x",
        "/v1/messages\\",
        "/v1/messages%3fx",
        "/v1/messages/batches",
        "v1/messages",
        "",
    ] {
        let mut exchange = Exchange::new(config("{}"), SEED, can(Pings::Sent));
        let found = exchange.decide("POST", path, &drive::headers(&[("x-api-key", "k")]));
        assert_ne!(found, Decision::Translate, "{path}");
    }
    let config = config(r#"{"upstreams":{"a":{"base_path":"/team"}}}"#);
    let (_, sent) =
        drive::request(&config, "/v1/messages?x=/../../admin#y", &[], &bytes(&ask("m", true)))
            .unwrap();
    assert_eq!(sent.path, "/team/chat/completions");
    // What passes has the upstream's key, which opens nothing beside the base path.
    for path in [
        "/v1/../admin",
        "/v1/..",
        "/v1/..?a",
        "/v1/x/../../../b/v1/files",
        "/v1/./files",
        "/v1/%2e%2e/admin",
        "/v1/.%2E/admin",
        "/v1/..\\admin",
        "/v1/x\\..\\..\\admin",
        "/v1/..%5Cadmin",
        "/v1/x%2f..%2f..%2fadmin",
        "/v1/%252e%252e/admin",
        "/v1/..;a=b/admin",
        "/v1/..#x",
        "/v1/..%3fx",
        "/v1/..%00/admin",
        "/v1/.\t./admin",
        "/v2/files",
        "/v1",
        "/v1x",
        "files",
        "",
    ] {
        assert!(creole::passed(&config, path).is_none(), "{path}");
    }
    for path in [
        "/files",
        "/files/a..b/...",
        "/files/.hidden/x.",
        "/models/a%2Fb%20c:1?path=/../x",
        "/files?..",
        "//files/100%/%zz%2",
        "/",
    ] {
        let passed = creole::passed(&config, &["/v1", path].concat()).unwrap();
        assert_eq!((passed.0.name.as_str(), passed.1), ("a", ["/team", path].concat()));
    }
}

#[test]
fn key_leakage_between_routes() {
    let config = config(
        r#"{"upstreams":{"a":{"key":{"secret":"A"}},"b":{"key":{"secret":"B"}},"c":{}},
            "models":{"m-a":{"upstream":"a"},"m-b":{"upstream":"b"},"m-c":{"upstream":"c"}}}"#,
    );
    for (model, expected) in [
        ("m-a", format!("Bearer {EDGE_KEY}A")),
        ("m-b", format!("Bearer {EDGE_KEY}B")),
        ("m-c", "Bearer sk-test".to_owned()),
    ] {
        let (_, sent) =
            drive::request(&config, "/v1/messages", &[], &bytes(&ask(model, true))).unwrap();
        let keys: Vec<&String> = sent
            .headers
            .iter()
            .filter(|(_, value)| value.contains("sk-"))
            .map(|(_, value)| value)
            .collect();
        assert_eq!(keys, [&expected], "{model}");
    }
    let refused =
        drive::request(&config, "/v1/messages", &[], &bytes(&ask("m-d", true))).unwrap_err();
    assert_eq!(refused.head.status, 404);
}

#[test]
fn key_leakage_in_errors() {
    let config = config(r#"{"upstreams":{"a":{"key":{"secret":"A"}}}}"#);
    let said = json!({"error": {"message": format!("Incorrect API key provided: {EDGE_KEY}A."), "code": 401}});
    for status in [200, 400, 401, 403, 404, 429, 500, 503] {
        for stream in [true, false] {
            for body in [said.to_string(), format!("data: {said}\n\n"), format!("key {EDGE_KEY}A")]
            {
                let (head, body) = answered(&config, stream, status, body.as_bytes());
                assert!(!body.contains("sk-edge"), "{status} {stream}: {body}");
                assert!(!format!("{head:?}").contains("sk-edge"), "{head:?}");
            }
        }
    }
    assert!(!format!("{config:?}").contains("sk-edge"));
}

#[test]
fn oversized_input() {
    let small =
        config(r#"{"request_bytes_max":2000,"response_bytes_max":2000,"event_bytes_max":2000}"#);
    let mut body = ask("m", false);
    body["messages"][0]["content"] = json!("x".repeat(3000));
    let refused = drive::request(&small, "/v1/messages", &[], &bytes(&body)).unwrap_err();
    assert_eq!(refused.head.status, 413);
    let answer = json!({"choices": [{"message": {"content": "x".repeat(3000)}}]}).to_string();
    assert_eq!(answered(&small, false, 200, answer.as_bytes()).0.status, 502);
    assert_eq!(answered(&small, true, 200, format!("data: {answer}").as_bytes()).0.status, 502);
    // What an upstream says of an error is cut, however long it is.
    let (_, body) = answered(&small, false, 400, "long ".repeat(1 << 20).as_bytes());
    assert!(body.len() < 4000, "{}", body.len());
}

#[test]
fn many_small_things() {
    let many = |element: &str| vec![element; 200_000].join(",");
    let config = config(
        r#"{"upstreams":{"u":{"url":"http://u"},"m":{"url":"http://m","protocol":"anthropic"}},
        "models":{"m":{"upstream":"m"},"*":{"upstream":"u"}}}"#,
    );
    // Whoever sends them has no key, and counts need none.
    for (members, path, what) in [
        (format!(r#""messages":[],"tools":[{}]"#, many(r#"{"name":"a"}"#)), "tools", "10000 tools"),
        (
            format!(r#""messages":[],"tools":[{{"name":"a","input_examples":[{}]}}]"#, many("{}")),
            "tools[0].input_examples",
            "10000 input examples",
        ),
        (
            format!(r#""messages":[],"stop_sequences":[{}]"#, many(r#""""#)),
            "stop_sequences",
            "256 stop sequences",
        ),
        (
            format!(r#""messages":[{}]"#, many(r#"{"role":"user","content":""}"#)),
            "messages",
            "100000 messages",
        ),
        (
            format!(
                r#""messages":[{{"role":"user","content":[{}]}}]"#,
                many(r#"{"type":"text","text":""}"#)
            ),
            "messages[0].content",
            "100000 content blocks",
        ),
        (
            format!(
                r#""messages":[{{"role":"user","content":[{}]}}]"#,
                many(r#"{"type":"tool_result","tool_use_id":"a"}"#)
            ),
            "messages[0].content[10000]",
            "10000 tool results",
        ),
        (
            format!(
                r#""messages":[{{"role":"assistant","content":[{}]}}]"#,
                many(r#"{"type":"tool_use","id":"a","name":"a"}"#)
            ),
            "messages[0].content[10000]",
            "10000 tool calls",
        ),
    ] {
        for model in ["m", "x"] {
            let body = format!(r#"{{"model":"{model}","max_tokens":1,{members}}}"#);
            for route in ["/v1/messages", "/v1/messages/count_tokens"] {
                let mut exchange = Exchange::new(Arc::clone(&config), SEED, can(Pings::Sent));
                exchange.decide("POST", route, &[]);
                let refused = exchange.request(body.as_bytes(), NOW).unwrap_err();
                let text = String::from_utf8(refused.body).unwrap();
                let expected = format!("{path}: at most {what} are allowed in one request");
                assert_eq!(refused.head.status, 400, "{text}");
                assert!(
                    text.contains(&expected) && text.contains("invalid_request_error"),
                    "{text}"
                );
            }
        }
    }
    let responses = config_of_responses();
    for (items, what) in [
        (many(r#"{"type":"message","content":"a"}"#), "output items"),
        (many(r#"{"type":"tool_call","name":"a"}"#), "tool calls"),
    ] {
        let body = format!(r#"{{"status":"completed","output":[{items}]}}"#);
        let end = format!("data: {{\"type\":\"response.completed\",\"response\":{body}}}\n\n");
        for (stream, body) in [(false, body), (true, end)] {
            let (_, text) = answered(&responses, stream, 200, body.as_bytes());
            assert!(text.contains(&format!("Upstream sent too many {what}")), "{text}");
        }
    }
    for (choices, what) in [
        (many(r#"{"finish_reason":"stop"}"#), "choices"),
        (format!(r#"{{"message":{{"content":[{}]}}}}"#, many("0")), "parts of content"),
        (format!(r#"{{"message":{{"tool_calls":[{}]}}}}"#, many(r#"{"id":"a"}"#)), "tool calls"),
        (
            format!(r#"{{"message":{{"reasoning_details":[{}]}}}}"#, many(r#"{"data":"a"}"#)),
            "parts of reasoning",
        ),
    ] {
        let body = format!(r#"{{"choices":[{choices}]}}"#);
        for (stream, body) in [(false, body.clone()), (true, format!("data: {body}\n\n"))] {
            let (head, text) = answered(&config, stream, 200, body.as_bytes());
            assert_eq!(head.status, 502, "{text}");
            assert!(text.contains(&format!("Upstream sent too many {what}")), "{text}");
        }
    }
    // What says nothing is no choice, no call and no part.
    for nothing in [
        many("{}"),
        format!(r#"{{"message":{{"tool_calls":[{}]}}}}"#, many("{}")),
        format!(r#"{{"message":{{"reasoning_details":[{}]}}}}"#, many("{}")),
    ] {
        let body = format!(
            r#"{{"choices":[{{"message":{{"content":"Hi"}},"finish_reason":"stop"}},{nothing}]}}"#
        );
        let (head, text) = answered(&config, false, 200, body.as_bytes());
        assert!(head.status == 200 && text.contains("Hi"), "{text}");
    }
}

#[test]
fn deeply_nested_input() {
    let deep =
        |open: &str, close: &str| format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
    for nested in [deep("[", "]"), deep("{\"a\":", "}")] {
        for body in [
            nested.clone(),
            format!(r#"{{"model":"m","max_tokens":1,"messages":{nested}}}"#),
            format!(
                r#"{{"model":"m","max_tokens":1,"messages":[{{"role":"user","content":"a"}}],"x":{nested}}}"#
            ),
            format!(
                r#"{{"model":"m","max_tokens":1,"messages":[{{"role":"assistant","content":[{{"type":"tool_use","id":"t","name":"n","input":{nested}}}]}}]}}"#
            ),
        ] {
            let refused = drive::request(&config("{}"), "/v1/messages", &[], body.as_bytes());
            assert_eq!(refused.unwrap_err().head.status, 400);
        }
        let item = format!(r#"{{"type":"response.output_item.done","item":{nested}}}"#);
        for (status, body) in [
            (200, nested.clone()),
            (200, format!("data: {nested}\n\n")),
            (200, format!("data: {item}\n\n")),
            (400, nested.clone()),
        ] {
            for config in [config("{}"), config_of_responses()] {
                let (head, body) = answered(&config, true, status, body.as_bytes());
                assert!(head.status >= 400, "{head:?}");
                grammar::error_body(&serde_json::from_str(&body).unwrap()).unwrap();
            }
        }
        assert!(Config::from_json(&format!(r#"{{"guards":{nested}}}"#), |_| None).is_err());
    }
}

#[test]
fn decompression() {
    for encoding in ["gzip", "br", "zstd", "deflate", "gzip, gzip"] {
        let head = [("content-encoding", encoding)];
        let refused = drive::request(&config("{}"), "/v1/messages", &head, b"\x1f\x8b\x08");
        let refused = refused.unwrap_err();
        assert_eq!(refused.head.status, 400, "{encoding}");
        let said: Value = serde_json::from_slice(&refused.body).unwrap();
        let code = &said["error"]["details"]["error_code"];
        assert_eq!(code, "request_body_encoding_unsupported", "{encoding}");
        let (exchange, sent) =
            drive::request(&config("{}"), "/v1/messages", &[], &bytes(&ask("m", true))).unwrap();
        let asked = sent.headers.iter().find(|(name, _)| name == "accept-encoding").unwrap();
        assert_eq!(asked.1, "identity");
        let bomb = vec![0x1f_u8; 1 << 16];
        let answer =
            drive::respond(exchange, 200, &drive::headers(&head), [bomb.as_slice()], End::Complete);
        assert_eq!(answer.head.status, 502, "{encoding}");
    }
}

#[test]
fn hash_flooding() {
    // Nothing in the core hashes names that others choose: its one map is a tree.
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders: Vec<_> = ["src", "json/src"].map(|folder| root.join(folder)).into();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            // Files of tests alone; others end with theirs.
            let is_tests = |path: &Path| path.components().any(|it| it.as_os_str() == "tests");
            if path.ends_with("tests.rs") || path.strip_prefix(root).is_ok_and(is_tests) {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            let product = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
            assert!(
                !product.contains("HashMap") && !product.contains("HashSet"),
                "{}",
                path.display()
            );
        }
    }
    // Many names of one request: calls, results, unknown fields.
    let mut body = ask("m", false);
    for number in 0..20_000 {
        body[format!("field{number}")] = json!(1);
    }
    let calls: Vec<Value> = (0..5_000)
        .map(|number| json!({"type": "tool_use", "id": format!("toolu_{number}"), "name": "n", "input": {}}))
        .collect();
    let results: Vec<Value> = (0..5_000)
        .map(|number| json!({"type": "tool_result", "tool_use_id": format!("toolu_{number}")}))
        .collect();
    body["messages"] = json!([
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": calls},
        {"role": "user", "content": results},
    ]);
    let (exchange, _) = drive::request(&config("{}"), "/v1/messages", &[], &bytes(&body)).unwrap();
    assert!(exchange.report().warnings.iter().count() <= 65);
}

#[test]
fn memory_exhaustion_by_many_slow_streams() {
    let limits = r#"{"event_bytes_max":2000,"waiting_bytes_max":4000,"no_progress_timeout_ms":1000,
                     "stall_timeout_ms":500}"#;
    let start = || {
        let sent = drive::request(&config(limits), "/v1/messages", &[], &bytes(&ask("m", true)));
        let (mut exchange, _) = sent.unwrap();
        exchange.handle_call_head(200, &[], NOW);
        exchange
    };
    // A line that never ends, in small pieces.
    let (mut exchange, mut out, mut fed) = (start(), Vec::new(), 0);
    while !exchange.is_ended() && fed < 100_000 {
        exchange.piece(b"data: xxxxxxxxxxxxxxxxxxxxxxxxxxxxx", NOW, &mut out);
        fed += 35;
    }
    assert!(exchange.is_ended() && fed < 10_000, "{fed}");
    // Calls that all wait for the first one.
    let (mut exchange, mut out, mut fed) = (start(), Vec::new(), 0);
    while !exchange.is_ended() && fed < 10_000 {
        let call = json!({"index": fed, "id": format!("call_{fed}"), "function": {"name": "n", "arguments": "{"}});
        let chunk = json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]});
        exchange.piece(format!("data: {chunk}\n\n").as_bytes(), NOW, &mut out);
        fed += 1;
    }
    assert!(exchange.is_ended(), "{fed} calls wait");
    // Signs of life without content, and silence: both are given up.
    let (mut exchange, mut out, mut now) = (start(), Vec::new(), NOW);
    while !exchange.is_ended() && now < NOW + 10_000 {
        now += 100;
        exchange.piece(b": still here\n\n", now, &mut out);
        exchange.timeout(now, &mut out);
    }
    assert!(exchange.is_ended() && now <= NOW + 1_200, "{}", now - NOW);
    let mut exchange = start();
    exchange.timeout(NOW + 501, &mut Vec::new());
    assert!(exchange.is_ended());
}

#[test]
fn hostile_upstream() {
    let chat: [&[u8]; 12] = [
        b"data: ", b"\n\n", b"{\"choices\":[{\"delta\":{\"content\":\"a\"}}]}", b"{\"error\":{}}", b"[DONE]", b"\xff\xfe",
        b"{\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":-1,\"function\":{\"arguments\":\"}\"}}]}}]}",
        b"event: error\n", b"\r", b"{\"type\":\"message_start\"}", b"null",
        b"{\"choices\":[{\"index\":99999999999,\"finish_reason\":\"?\",\"delta\":{\"role\":7}}],\"usage\":{\"prompt_tokens\":-5}}",
    ];
    let responses: [&[u8]; 12] = [
        b"data: ", b"\n\n", b"{\"type\":\"response.output_text.delta\",\"delta\":\"a\"}", b"{\"error\":{}}", b"[DONE]", b"\xff\xfe",
        b"{\"type\":\"response.function_call_arguments.done\",\"output_index\":-1,\"arguments\":\"}\"}",
        b"event: response.failed\n", b"\r",
        b"{\"type\":\"response.output_item.done\",\"item\":{\"type\":\"function_call\",\"name\":7,\"call_id\":\"\"}}", b"null",
        b"{\"type\":\"response.completed\",\"response\":{\"output\":[7,{\"type\":\"reasoning\",\"summary\":{}}],\"usage\":{\"input_tokens\":-5}}}",
    ];
    let mut state = 12_345_u64;
    let mut next = |below: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let protocols = [(config("{}"), chat), (config_of_responses(), responses)];
    for turn in 0..6_000 {
        let (config, parts) = &protocols[turn % 2];
        let length = next(12);
        let body: Vec<u8> = (0..length).flat_map(|_| parts[next(12) as usize].to_vec()).collect();
        let status = [200, 200, 200, 302, 404, 500][next(6) as usize];
        let stream = next(2) == 0;
        let (head, text) = answered(config, stream, status, &body);
        let is_stream =
            head.headers.iter().any(|(_, value)| value.starts_with("text/event-stream"));
        if is_stream {
            // What turns out to speak Messages has blocks of its own.
            let own = body.windows(13).any(|part| part == b"message_start");
            let rules =
                Rules { foreign_blocks: own, invalid_input_shown: true, ..Rules::default() };
            let checked = grammar::check_stream(text.as_bytes(), rules);
            assert!(checked.is_ok(), "{checked:?}\n{text}");
        } else if head.status == 200 {
            grammar::check_message(&serde_json::from_str(&text).unwrap()).unwrap();
        } else {
            grammar::error_body(&serde_json::from_str(&text).unwrap()).unwrap();
        }
        // A redirection is never an order.
        assert!(
            head.headers.iter().all(|(name, _)| name != "location")
                && !(300..400).contains(&head.status)
        );
    }
}

#[test]
fn prototype_keys() {
    let config = config(r#"{"models":{"claude-*":{"model":"m"}}}"#);
    for name in ["__proto__", "constructor", "toString", "hasOwnProperty", "prototype"] {
        let refused = drive::request(&config, "/v1/messages", &[], &bytes(&ask(name, true)));
        assert_eq!(refused.unwrap_err().head.status, 404, "{name}");
        let mut body = ask("claude-x", false);
        body["tools"] = json!([{"name": name, "input_schema": {"type": "object", "properties": {name: {"type": "string"}}}}]);
        let input = format!(r#"{{"__proto__":{{"a":1}},"{name}":"v","__proto__":2}}"#);
        let text = body.to_string();
        let history = format!(
            r#""messages":[{{"role":"user","content":"a"}},{{"role":"assistant","content":[{{"type":"tool_use","id":"toolu_1","name":"{name}","input":{input}}}]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"toolu_1","content":"r"}}]}}]"#
        );
        let start = text.find("\"messages\"").unwrap();
        let end = start + text[start..].find(']').unwrap() + 1;
        let text = format!("{}{history}{}", &text[..start], &text[end..]);
        let (exchange, sent) =
            drive::request(&config, "/v1/messages", &[], text.as_bytes()).unwrap();
        let sent: Value = serde_json::from_slice(&sent.body).unwrap();
        let call = &sent["messages"][1]["tool_calls"][0]["function"];
        assert_eq!(
            (call["name"].as_str(), call["arguments"].as_str()),
            (Some(name), Some(input.as_str()))
        );
        let call = json!({"id": "call_2", "function": {"name": name, "arguments": input}});
        let answer = json!({"choices": [{"message": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]});
        let got =
            drive::respond(exchange, 200, &[], [answer.to_string().as_bytes()], End::Complete);
        let got = String::from_utf8(got.body).unwrap();
        assert!(got.contains(&format!("\"name\":\"{name}\"")) && got.contains(&input), "{got}");
        let sent = drive::request(&config_of_responses(), "/v1/messages", &[], text.as_bytes());
        let call =
            json!({"type": "function_call", "call_id": "call_2", "name": name, "arguments": input});
        let answer = json!({"status": "completed", "output": [call]}).to_string();
        let got = drive::respond(sent.unwrap().0, 200, &[], [answer.as_bytes()], End::Complete);
        let got = String::from_utf8(got.body).unwrap();
        assert!(got.contains(&format!("\"name\":\"{name}\"")) && got.contains(&input), "{got}");
    }
}

#[test]
fn the_page_names_each_threat_and_its_test() {
    let page =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/security.md")).unwrap();
    let own = include_str!("threats.rs");
    let tests: Vec<&str> = own
        .split("#[test]\nfn ")
        .skip(1)
        .filter_map(|rest| rest.split('(').next())
        .filter(|name| !name.starts_with("the_page"))
        .collect();
    assert_eq!(tests.len(), 13);
    for test in tests {
        assert!(page.contains(&format!("`{test}`")), "{test}");
    }
}
