//! The demo model over real connections.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod client;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use client::send;
use creole_demo::{Answer, Demo, End, Ended, Options, Piece};
use serde_json::{Value, json};

fn chat(demo: &Demo, body: &Value) -> (u16, Value) {
    let (status, _, body) = send(demo, "POST", "/v1/chat/completions", &body.to_string());
    (status, serde_json::from_str(&body).unwrap_or(Value::String(body)))
}

fn ask(prompt: &str) -> Value {
    json!({"model": "demo", "messages": [{"role": "user", "content": prompt}]})
}

fn weather() -> Value {
    json!([
        {"type": "function", "function": {"name": "get_weather", "parameters": {
            "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}},
        {"type": "function", "function": {"name": "get_time", "parameters": {
            "type": "object", "properties": {"zone": {"enum": ["UTC", "CET"]}}, "required": ["zone"]}}}
    ])
}

/// The `data` of every event of a stream.
fn events(body: &str) -> Vec<Value> {
    body.split("\n\n")
        .filter_map(|event| event.strip_prefix("data: "))
        .filter(|data| *data != "[DONE]")
        .map(|data| serde_json::from_str(data).unwrap())
        .collect()
}

#[test]
fn a_plain_question_is_answered_with_itself() {
    let demo = Demo::start(Options::default()).unwrap();
    let (status, answer) = chat(&demo, &ask("Hi there"));
    assert_eq!(status, 200);
    assert_eq!(
        answer["choices"][0]["message"]["content"],
        "Hello from the demo model. You said: Hi there"
    );
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
    assert_eq!(chat(&demo, &ask("Hi there")), (status, answer), "the same again");
}

#[test]
fn a_stream_opens_with_the_role_and_ends_with_usage_and_done() {
    let demo = Demo::start(Options::default()).unwrap();
    let mut body = ask("Hi there");
    body["stream"] = true.into();
    body["stream_options"] = json!({"include_usage": true});
    let (_, head, stream) = send(&demo, "POST", "/v1/chat/completions", &body.to_string());
    assert!(head.contains("text/event-stream"));
    assert!(stream.ends_with("data: [DONE]\n\n"));
    let events = events(&stream);
    assert_eq!(events[0]["choices"][0]["delta"]["role"], "assistant");
    let text: String = events
        .iter()
        .filter_map(|event| event["choices"][0]["delta"]["content"].as_str())
        .collect();
    assert_eq!(text, "Hello from the demo model. You said: Hi there");
    let last = events.last().unwrap();
    assert_eq!(last["choices"], json!([]));
    assert!(last["usage"]["completion_tokens"].as_u64().unwrap() > 5);
}

#[test]
fn five_tool_turns_end_with_a_text_that_quotes_the_result() {
    let demo = Demo::start(Options { id_length_max: 40, ..Options::default() }).unwrap();
    let mut messages =
        vec![json!({"role": "user", "content": "demo:tool get_weather demo:5turns"})];
    for turn in 1..=5 {
        let body = json!({"model": "demo", "messages": messages, "tools": weather()});
        let (status, answer) = chat(&demo, &body);
        assert_eq!(status, 200, "{answer}");
        assert_eq!(answer["choices"][0]["finish_reason"], "tool_calls", "turn {turn}");
        let message = answer["choices"][0]["message"].clone();
        let call = message["tool_calls"][0].clone();
        assert_eq!(call["function"]["arguments"], r#"{"city":"Paris"}"#);
        messages.push(message);
        messages.push(json!({"role": "tool", "tool_call_id": call["id"], "content": format!("{turn} degrees")}));
    }
    let ids: Vec<_> = messages.iter().filter_map(|m| m["tool_call_id"].as_str()).collect();
    assert_eq!(ids.iter().collect::<std::collections::BTreeSet<_>>().len(), 5, "{ids:?}");
    let (_, answer) =
        chat(&demo, &json!({"model": "demo", "messages": messages, "tools": weather()}));
    assert_eq!(answer["choices"][0]["message"]["content"], "get_weather answered: 5 degrees");
}

/// Functions that Creole makes of server tools, and one of the client.
fn server_tools() -> Value {
    let of = |name: &str, argument: &str| {
        json!({"type": "function", "function": {"name": name, "parameters": {"type": "object",
            "properties": {argument: {"type": "string"}}, "required": [argument]}}})
    };
    json!([
        of("get_weather", "city"),
        of("web_search", "query"),
        of("web_fetch", "url"),
        of("mcp__all__echo", "message"),
        of("mcp__all__sum", "a")
    ])
}

#[test]
fn a_server_tool_is_called_by_a_word_and_its_first_result_is_quoted() {
    let demo = Demo::start(Options::default()).unwrap();
    for (prompt, name, arguments) in [
        ("demo:search the moon", "web_search", r#"{"query":"the moon"}"#),
        ("demo:fetch https://a.example/x", "web_fetch", r#"{"url":"https://a.example/x"}"#),
        ("demo:mcp", "mcp__all__echo", r#"{"message":"example"}"#),
        ("demo:mcp demo:input {\"message\":\"hi\"}", "mcp__all__echo", r#"{"message":"hi"}"#),
    ] {
        let mut body = ask(prompt);
        body["tools"] = server_tools();
        let (_, answer) = chat(&demo, &body);
        let message = &answer["choices"][0]["message"];
        let [call] = message["tool_calls"].as_array().unwrap().as_slice() else { panic!() };
        assert_eq!(
            (&call["function"]["name"], &call["function"]["arguments"]),
            (&name.into(), &arguments.into()),
            "{prompt}"
        );
        let messages = body["messages"].as_array_mut().unwrap();
        messages.push(message.clone());
        let result = json!({"role": "tool", "tool_call_id": call["id"], "content": "[1] A page"});
        messages.push(result);
        let (_, answer) = chat(&demo, &body);
        let said = &answer["choices"][0]["message"]["content"];
        assert_eq!(*said, format!("{name} answered: [1] A page"), "{prompt}");
        body = ask(prompt);
        body["tools"] = weather();
        let (_, answer) = chat(&demo, &body);
        assert_eq!(answer["choices"][0]["finish_reason"], "stop", "not offered: {prompt}");
    }
}

#[test]
fn parallel_calls_can_be_interleaved() {
    let demo = Demo::start(Options::default()).unwrap();
    let mut body = ask("demo:parallel 2 demo:interleave");
    body["tools"] = weather();
    body["stream"] = true.into();
    let (_, _, stream) = send(&demo, "POST", "/v1/chat/completions", &body.to_string());
    let events = events(&stream);
    let deltas: Vec<&Value> =
        events.iter().filter_map(|event| event.pointer("/choices/0/delta/tool_calls/0")).collect();
    let order: Vec<u64> = deltas.iter().map(|delta| delta["index"].as_u64().unwrap()).collect();
    assert_eq!(order[..4], [0, 1, 0, 1]);
    for (index, wanted) in [(0, r#"{"city":"Paris"}"#), (1, r#"{"zone":"UTC"}"#)] {
        let text: String = deltas
            .iter()
            .filter(|delta| delta["index"] == index)
            .filter_map(|delta| delta["function"]["arguments"].as_str())
            .collect();
        assert_eq!(text, wanted);
    }
}

#[test]
fn a_mentioned_tool_is_called_and_a_common_word_is_not() {
    let demo = Demo::start(Options::default()).unwrap();
    let mut body = ask("Please use get_time and Read the answer.");
    body["tools"] = weather();
    body["tools"]
        .as_array_mut()
        .unwrap()
        .push(json!({"type": "function", "function": {"name": "Read"}}));
    let (_, answer) = chat(&demo, &body);
    let calls = answer["choices"][0]["message"]["tool_calls"].as_array().unwrap();
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0]["function"]["name"], "get_time");
}

#[test]
fn a_structured_output_fits_its_schema() {
    let demo = Demo::start(Options::default()).unwrap();
    let mut body = ask("Who?");
    body["response_format"] = json!({"type": "json_schema", "json_schema": {"name": "person", "schema": {
        "type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name", "age"]}}});
    let (_, answer) = chat(&demo, &body);
    assert_eq!(answer["choices"][0]["message"]["content"], r#"{"age":1,"name":"Ada"}"#);
}

#[test]
fn reasoning_comes_when_it_is_asked_for() {
    let demo = Demo::start(Options::default()).unwrap();
    let mut body = ask("Hi");
    body["reasoning_effort"] = "low".into();
    let (_, answer) = chat(&demo, &body);
    assert!(answer["choices"][0]["message"]["reasoning_content"].is_string());
    let (_, answer) = chat(&demo, &ask("demo:reason reasoning"));
    assert!(answer["choices"][0]["message"]["reasoning"].is_string());
}

#[test]
fn what_the_original_refuses_is_refused() {
    let demo = Demo::start(Options { id_length_max: 40, ..Options::default() }).unwrap();
    let user = json!({"role": "user", "content": "x"});
    let call = json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]});
    let result = json!({"role": "tool", "tool_call_id": "c1", "content": "r"});
    let long = json!({"role": "tool", "tool_call_id": "c".repeat(41), "content": "r"});
    let chat_with = |messages: Value| json!({"model": "m", "messages": messages});
    let with = |key: &str, value: Value| {
        let mut body = ask("x");
        body[key] = value;
        body
    };
    let cases = [
        (json!({"messages": [user]}), "you must provide a model parameter"),
        (chat_with(json!([])), "Invalid 'messages': empty array."),
        (
            chat_with(json!([{"role": "human", "content": "x"}])),
            "Invalid value: 'human'. Supported",
        ),
        (
            chat_with(json!([user, call, user])),
            "The following tool_call_ids did not have response messages: c1",
        ),
        (chat_with(json!([user, call, user, result])), "must be followed by tool messages"),
        (
            chat_with(json!([user, result])),
            "messages with role 'tool' must be a response to a preceeding",
        ),
        (chat_with(json!([long])), "string too long. Expected a string with maximum length 40"),
        (chat_with(json!([{"role": "assistant", "content": null}])), "expected a string, got null"),
        (
            chat_with(json!([{"role": "user", "content": [{"type": "image"}]}])),
            "Invalid value: 'image'.",
        ),
        (
            chat_with(json!([{"role": "user", "content": 5}])),
            "Invalid type for 'messages[0].content'",
        ),
        (with("tools", json!([])), "Invalid 'tools': empty array."),
        (
            with("tools", json!([{"type": "function", "function": {"name": "a b"}}])),
            "does not match pattern",
        ),
        (
            with(
                "tools",
                json!([{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]),
            ),
            "Invalid schema for function 'f': In context=(), object schema missing properties",
        ),
        (
            with("tool_choice", "auto".into()),
            "'tool_choice' is only allowed when 'tools' are specified.",
        ),
        (with("stream_options", json!({})), "only allowed when 'stream' is enabled"),
        (with("stop", json!(["1", "2", "3", "4", "5"])), "Expected an array with maximum length 4"),
        (with("system", "x".into()), "Unrecognized request argument supplied: system"),
        (with("temperature", json!(3)), "decimal above maximum value"),
        (with("max_tokens", json!(0)), "integer below minimum value"),
        (ask("demo:misspelt"), "demo:misspelt: expected a word of docs/quick-start.md"),
    ];
    for (body, wanted) in cases {
        let (status, answer) = chat(&demo, &body);
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert_eq!((status, message.contains(wanted)), (400, true), "{body}: {answer}");
    }
    let complete = chat_with(json!([user, call, result]));
    assert_eq!(chat(&demo, &complete).0, 200);
}

#[test]
fn faults_come_on_demand() {
    let demo = Demo::start(Options::default()).unwrap();
    let (status, head, _) =
        send(&demo, "POST", "/v1/chat/completions", &ask("demo:error 429").to_string());
    assert_eq!((status, head.contains("retry-after: 2")), (429, true));
    let (status, answer) = chat(&demo, &ask("demo:error context"));
    assert_eq!((status, answer["error"]["code"].as_str()), (400, Some("context_length_exceeded")));
    let (status, answer) = chat(&demo, &ask("demo:error-in-200"));
    assert_eq!((status, answer["error"]["type"].as_str()), (200, Some("server_error")));
    assert_eq!(chat(&demo, &ask("demo:empty")), (200, Value::String(String::new())));
    assert!(chat(&demo, &ask("demo:html")).1.as_str().unwrap().starts_with("<html>"));
    assert!(chat(&demo, &ask("demo:json-cut")).1.is_string());
    assert_eq!(chat(&demo, &ask("demo:length")).1["choices"][0]["finish_reason"], "length");
    let (_, big) = chat(&demo, &ask("demo:big 3000000"));
    assert_eq!(big["choices"][0]["message"]["content"].as_str().unwrap().len(), 3_000_000);
}

#[test]
fn a_cut_stream_ends_without_its_end() {
    let demo = Demo::start(Options::default()).unwrap();
    let mut body = ask("demo:cut and some more words to stream");
    body["stream"] = true.into();
    let (status, _, stream) = send(&demo, "POST", "/v1/chat/completions", &body.to_string());
    assert_eq!(status, 200);
    assert!(stream.contains("Hello") && !stream.contains("[DONE]"), "{stream}");
    assert_eq!(demo.requests()[0].ended, Ended::Aborted);
}

#[test]
fn the_output_limit_and_stop_sequences_are_kept() {
    let demo = Demo::start(Options::default()).unwrap();
    let mut body = ask("one two three");
    body["max_tokens"] = 2.into();
    let choice = chat(&demo, &body).1["choices"][0].clone();
    assert_eq!(choice["message"]["content"], "Hello from");
    assert_eq!(choice["finish_reason"], "length");
    let mut body = ask("one two three");
    body["stop"] = json!([" two"]);
    let choice = chat(&demo, &body).1["choices"][0].clone();
    assert_eq!(choice["message"]["content"], "Hello from the demo model. You said: one");
}

#[test]
fn a_scripted_answer_arrives_byte_for_byte() {
    let demo = Demo::start(Options::default()).unwrap();
    let script = json!([{
        "status": 418,
        "headers": [["content-type", "text/odd"], ["x-odd", "1"]],
        "pieces": [{"data": "data: {\r\n"}, {"delay_ms": 5, "base64": "wqE="}]
    }]);
    assert_eq!(send(&demo, "POST", "/demo/script", &script.to_string()).0, 200);
    let (status, head, body) = send(&demo, "POST", "/v1/chat/completions", "not even JSON");
    assert_eq!((status, body.as_str()), (418, "data: {\r\n¡"));
    assert!(head.contains("content-type: text/odd") && head.contains("x-odd: 1"));
    demo.script([Answer {
        end: End::Abort,
        pieces: vec![Piece::text("x")],
        ..Answer::json(200, "")
    }]);
    assert_eq!(send(&demo, "POST", "/v1/chat/completions", "{}").2, "x");
    assert_eq!(chat(&demo, &ask("Hi")).0, 200, "the script is used up");
}

#[test]
fn requests_are_remembered_without_credentials() {
    let demo = Demo::start(Options::default()).unwrap();
    chat(&demo, &ask("first"));
    chat(&demo, &ask("second"));
    let (_, _, body) = send(&demo, "GET", "/demo/requests?contains=second", "");
    assert!(!body.contains("secret"));
    let read: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(read["requests"].as_array().unwrap().len(), 1);
    let recorded = &demo.requests()[1];
    assert_eq!(recorded.body, ask("second").to_string());
    assert_eq!(recorded.header("authorization"), Some("Bearer (6 characters)"));
    assert_eq!((recorded.status, recorded.path.as_str()), (200, "/v1/chat/completions"));
    send(&demo, "DELETE", "/demo/requests", "");
    assert_eq!(demo.requests(), []);
}

#[test]
fn a_client_that_goes_away_is_noticed() {
    let demo = Demo::start(Options::default()).unwrap();
    let mut body = ask("demo:slow 20 and words and words and words and words and words");
    body["stream"] = true.into();
    let body = body.to_string();
    let mut stream = TcpStream::connect(demo.address()).unwrap();
    let length = body.len();
    write!(
        stream,
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut first = [0; 64];
    stream.read_exact(&mut first).unwrap();
    drop(stream);
    let mut ended = Ended::Open;
    for _ in 0..200 {
        ended = demo.requests()[0].ended;
        if ended != Ended::Open {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert_eq!(ended, Ended::ClientGone);
}

#[test]
fn a_key_is_asked_for_where_one_is_set() {
    let demo =
        Demo::start(Options { key: Some("other".to_owned()), ..Options::default() }).unwrap();
    let (status, answer) = chat(&demo, &ask("Hi"));
    assert_eq!((status, answer["error"]["code"].as_str()), (401, Some("invalid_api_key")));
}

#[test]
fn models_are_listed_and_other_paths_are_not_found() {
    let demo = Demo::start(Options::default()).unwrap();
    let (status, _, body) = send(&demo, "GET", "/v1/models", "");
    let read: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, read["data"][0]["id"].as_str()), (200, Some("demo")));
    assert_eq!(send(&demo, "GET", "/v1/models/demo-small", "").0, 200);
    assert_eq!(send(&demo, "GET", "/v1/models/none", "").0, 404);
    assert_eq!(send(&demo, "POST", "/v1/messages", "{}").0, 404);
    assert_eq!(send(&demo, "GET", "/v1/chat/completions", "").0, 405);
}

#[test]
fn scripted_words_make_the_answer_of_a_request_that_is_still_checked() {
    let demo = Demo::start(Options::default()).unwrap();
    let lines = [
        "demo:say Looking. demo:tool Read",
        r#"demo:input {"file": 1}"#,
        "demo:tool Bash",
        r#"demo:input {"command": "ls"}"#,
        "demo:id same",
    ];
    demo.script([
        Answer { when: "one".to_owned(), ..Answer::words(lines.join("\n")) },
        Answer { when: "one".to_owned(), ..Answer::words("demo:say done") },
    ]);
    let (_, answer) = chat(&demo, &ask("one"));
    let message = &answer["choices"][0]["message"];
    assert_eq!(message["content"], "Looking.");
    for (call, name, arguments) in
        [(0, "Read", r#"{"file": 1}"#), (1, "Bash", r#"{"command": "ls"}"#)]
    {
        let call = &message["tool_calls"][call];
        assert_eq!(call["id"], "same");
        assert_eq!(call["function"]["name"], name);
        assert_eq!(call["function"]["arguments"], arguments);
    }
    let bad = json!({"model": "demo", "messages": [{"role": "assistant", "content": 3}]});
    demo.script([Answer::words("demo:say never")]);
    assert_eq!(chat(&demo, &bad).0, 400);
    let mut streamed = ask("one");
    streamed["stream"] = true.into();
    let (_, _, body) = send(&demo, "POST", "/v1/chat/completions", &streamed.to_string());
    let said: Vec<_> =
        events(&body).iter().map(|chunk| chunk["choices"][0]["delta"]["content"].clone()).collect();
    assert!(said.contains(&json!("done")), "{body}");
}
