//! `count_tokens: "upstream"`: what each kind of server is asked, how its answer is read, and what
//! happens where it cannot count.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "tests")]

mod support;

use std::sync::Arc;

use creole::{Call, Config, End, Failure, Unreachable};
use serde_json::{Value, json};

use support::drive::{self, Answer, Exchange, NOW, Steps as _, headers};

const PATH: &str = "/v1/messages/count_tokens";

fn config(upstream: Value) -> Arc<Config> {
    let document = json!({
        "count_tokens": "upstream",
        "upstreams": {"u": upstream},
        "models": {"*": {"model": "served"}},
    });
    drive::config(&document.to_string())
}

/// Returns a request with a system prompt, an escaped letter, a call with its result, and a tool.
fn body() -> Vec<u8> {
    json!({
        "model": "claude-test", "system": "Be brief.",
        "messages": [
            {"role": "user", "content": "Wetter in K\u{f6}ln?"},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "K\u{f6}ln"}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "rain"}]},
        ],
        "tools": [{"name": "weather", "description": "Says it.", "input_schema": {"type": "object"}}],
    })
    .to_string()
    .into_bytes()
}

fn asked(config: &Arc<Config>, body: &[u8]) -> (Exchange, Call) {
    drive::request(config, PATH, &[], body).unwrap_or_else(|answer| panic!("{answer:?}"))
}

fn answered(config: &Arc<Config>, status: u16, answer: &str) -> Answer {
    let (exchange, _) = asked(config, &body());
    drive::respond(exchange, status, &[], [answer.as_bytes()], End::Complete)
}

fn tokens(answer: &Answer) -> u64 {
    assert_eq!(answer.head.status, 200, "{}", String::from_utf8_lossy(&answer.body));
    let value: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(value.as_object().unwrap().len(), 1, "{value}");
    value["input_tokens"].as_u64().unwrap()
}

fn warns(answer: &Answer) -> bool {
    let warnings = answer.head.headers.iter().find(|(name, _)| name == "x-creole-warnings");
    warnings.is_some_and(|(_, codes)| codes.contains("count_estimated"))
}

fn estimate() -> u64 {
    creole::protocols::count_tokens(std::str::from_utf8(&body()).unwrap(), &Config::default())
        .unwrap()
        .input
}

#[test]
fn each_kind_of_server_is_asked_where_it_counts() {
    for (upstream, path) in [
        (json!({"profile": "vllm"}), "/tokenize"),
        (json!({"profile": "sglang"}), "/tokenize"),
        (json!({"profile": "llama.cpp"}), "/v1/chat/completions/input_tokens"),
        (json!({"profile_overrides": {"tokenizer": "content"}}), "/tokenize"),
        (json!({"profile": "vllm", "base_path": "/big/v1"}), "/big/tokenize"),
        (json!({"profile": "vllm", "base_path": ""}), "/tokenize"),
        (json!({"protocol": "anthropic"}), "/v1/messages/count_tokens"),
        (json!({"protocol": "responses", "profile": "openai"}), "/v1/responses/input_tokens"),
        (json!({"protocol": "responses", "profile": "llama.cpp"}), "/v1/responses/input_tokens"),
    ] {
        let (exchange, request) = asked(&config(upstream.clone()), &body());
        assert_eq!(request.path, path, "{upstream}");
        assert_eq!(exchange.held_bytes(), 0, "a count is not asked twice");
        let accept = request.headers.iter().find(|(name, _)| name == "accept").unwrap();
        assert_eq!(accept.1, "application/json");
    }
}

#[test]
fn tokenizers_of_messages_get_the_translated_history_and_tools() {
    for profile in ["vllm", "llama.cpp"] {
        let (_, request) = asked(&config(json!({"profile": profile})), &body());
        let sent: Value = serde_json::from_slice(&request.body).unwrap();
        let keys: Vec<&String> = sent.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["messages", "model", "tools"], "{profile}");
        assert_eq!(sent["model"], "served");
        assert_eq!(sent["messages"][0], json!({"role": "system", "content": "Be brief."}));
        assert_eq!(sent["messages"][2]["tool_calls"][0]["function"]["name"], "weather");
        assert_eq!(sent["messages"][3]["role"], "tool");
        assert_eq!(sent["tools"][0]["function"]["name"], "weather");
    }
}

#[test]
fn openai_gets_all_that_its_model_reads() {
    let config = config(json!({"protocol": "responses", "profile": "openai"}));
    let (_, request) = asked(&config, &body());
    let sent: Value = serde_json::from_slice(&request.body).unwrap();
    let keys: Vec<&String> = sent.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["input", "instructions", "model", "tools"]);
    assert_eq!(sent["instructions"], "Be brief.");
    assert_eq!(sent["input"][1]["type"], "function_call");
    let answer = r#"{"object":"response.input_tokens","input_tokens":77}"#;
    let (exchange, _) = asked(&config, &body());
    let answer = drive::respond(exchange, 200, &[], [answer.as_bytes()], End::Complete);
    assert_eq!(tokens(&answer), 77);
}

#[test]
fn sglang_gets_all_that_it_makes_a_prompt_of() {
    let config = config(json!({"profile": "sglang"}));
    let keys = |body: &Value| -> (Vec<String>, Value) {
        let (_, request) = asked(&config, body.to_string().as_bytes());
        let sent: Value = serde_json::from_slice(&request.body).unwrap();
        (sent.as_object().unwrap().keys().cloned().collect(), sent)
    };
    let mut request: Value = serde_json::from_slice(&body()).unwrap();
    assert_eq!(keys(&request).0, ["messages", "model", "tools"]);
    request["tool_choice"] = json!({"type": "tool", "name": "weather"});
    request["output_config"] = json!({"effort": "high"});
    request["thinking"] = json!({"type": "adaptive"});
    request["max_tokens"] = json!(99);
    let (members, sent) = keys(&request);
    let all =
        ["chat_template_kwargs", "messages", "model", "reasoning_effort", "tool_choice", "tools"];
    assert_eq!(members, all);
    assert_eq!(sent["tool_choice"]["function"]["name"], "weather");
    assert_eq!(sent["reasoning_effort"], "high");
    // What the answer continues is rendered only with the beginning of the assistant's turn.
    let prefilled = json!({"model": "m", "messages": [
        {"role": "user", "content": "Count."}, {"role": "assistant", "content": "1, 2"}]});
    let (_, sent) = keys(&prefilled);
    assert_eq!(
        (&sent["continue_final_message"], &sent["add_generation_prompt"]),
        (&json!(true), &json!(true))
    );
}

#[test]
fn an_older_sglang_that_takes_no_messages_costs_no_more_than_the_exact_number() {
    let config = config(json!({"profile": "sglang"}));
    let older = r#"{"object":"error","message":"[{'type': 'missing', 'loc': ('body', 'prompt'), 'msg': 'Field required'}]","type":"Bad Request","code":400}"#;
    for (status, answer) in [(400, older), (422, older), (404, "{}")] {
        let answer = answered(&config, status, answer);
        assert_eq!((tokens(&answer), warns(&answer)), (estimate(), true), "{status}");
    }
    let exact = answered(&config, 200, r#"{"tokens":[1,2,3],"count":226,"max_model_len":4096}"#);
    assert_eq!((tokens(&exact), warns(&exact)), (226, false));
    assert_eq!(answered(&config, 401, "{}").head.status, 401);
}

#[test]
fn tokenizers_of_text_get_all_text_and_the_template_is_estimated() {
    for (tokenizer, keys) in [("prompt", vec!["model", "prompt"]), ("content", vec!["content"])] {
        let config = config(json!({"profile_overrides": {"tokenizer": tokenizer}}));
        let (exchange, request) = asked(&config, &body());
        let sent: Value = serde_json::from_slice(&request.body).unwrap();
        assert_eq!(sent.as_object().unwrap().keys().collect::<Vec<_>>(), keys);
        let text = sent[tokenizer].as_str().unwrap();
        for part in
            ["Be brief.", "Wetter in K\u{f6}ln?", "{\"city\":\"K\u{f6}ln\"}", "rain", "Says it."]
        {
            assert!(text.contains(part), "{part} in {text}");
        }
        let answer = br#"{"tokens": [5, 6, 7]}"#;
        let answer = drive::respond(exchange, 200, &[], [&answer[..]], End::Complete);
        // Three messages and a tool.
        assert_eq!(tokens(&answer), 3 + 3 * 4 + 12);
        assert!(warns(&answer));
    }
}

#[test]
fn tokenizers_of_text_get_the_reasoning_that_goes_back() {
    let mut body: Value = serde_json::from_slice(&body()).unwrap();
    let blocks = body["messages"][1]["content"].as_array_mut().unwrap();
    blocks.insert(0, json!({"type": "thinking", "thinking": "Rain?", "signature": "EqoB"}));
    for (foreign, sent) in [("forward", true), ("drop", false)] {
        let overrides = json!({"tokenizer": "prompt", "foreign_thinking": foreign});
        let config = config(json!({"profile_overrides": overrides}));
        let (_, request) = asked(&config, body.to_string().as_bytes());
        let asked: Value = serde_json::from_slice(&request.body).unwrap();
        assert_eq!(asked["prompt"].as_str().unwrap().contains("Rain?"), sent, "{foreign}");
    }
}

#[test]
fn an_upstream_that_speaks_messages_is_asked_as_the_client_asked() {
    let (exchange, request) = asked(&config(json!({"protocol": "anthropic"})), &body());
    let sent: Value = serde_json::from_slice(&request.body).unwrap();
    let mut expected: Value = serde_json::from_slice(&body()).unwrap();
    expected["model"] = json!("served");
    assert_eq!(sent, expected);
    let answer = br#"{"input_tokens": 99}"#;
    let answer = drive::respond(exchange, 200, &[], [&answer[..]], End::Complete);
    assert_eq!((tokens(&answer), warns(&answer)), (99, false));
}

#[test]
fn results_are_new_where_they_are_to_be_answered() {
    let config = config(json!({"profile": "vllm"}));
    let mut body: Value = serde_json::from_slice(&body()).unwrap();
    body["max_tokens"] = json!(9);
    let counts = |path, body: &Value| {
        let sent = drive::request(&config, path, &[], body.to_string().as_bytes());
        let counts = sent.unwrap_or_else(|answer| panic!("{answer:?}")).0.report().counts;
        (counts.tool_results, counts.new_results)
    };
    assert_eq!(counts("/v1/messages", &body), (1, 1));
    // The same result comes with the request that is counted.
    assert_eq!(counts(PATH, &body), (1, 0));
    let messages = body["messages"].as_array_mut().unwrap();
    messages.push(json!({"role": "assistant", "content": "It rains."}));
    messages.push(json!({"role": "user", "content": "And tomorrow?"}));
    assert_eq!(counts("/v1/messages", &body), (1, 0));
}

#[test]
fn what_an_upstream_that_speaks_messages_takes_is_counted_too() {
    let plain: Value = serde_json::from_slice(&body()).unwrap();
    let thread = json!({"type": "continue", "previous_message_id": "msg_1"});
    for (name, value) in [
        ("mcp_servers", json!([{"type": "url", "url": "https://x", "name": "x"}])),
        ("compaction", json!({"type": "summarize"})),
        ("billing_policy", json!({"bill_to": "user_profile"})),
        ("inference_geo", json!("eu")),
        ("container", json!("c_1")),
        ("stop_sequences", json!([" "])),
        ("thread", thread),
        ("tool_choice", json!({"type": "newer"})),
    ] {
        let mut body = plain.clone();
        body[name] = value;
        let body = body.to_string();
        let upstream = json!({"protocol": "anthropic"});
        let (_, request) = asked(&config(upstream.clone()), body.as_bytes());
        let sent: Value = serde_json::from_slice(&request.body).unwrap();
        assert!(sent.get(name).is_some(), "{sent}");
        let document = json!({"upstreams": {"u": upstream}}).to_string();
        let Err(answer) = drive::request(&drive::config(&document), PATH, &[], body.as_bytes())
        else {
            panic!("asked");
        };
        assert!(tokens(&answer) >= estimate(), "{name}");
    }
    for bad in [&b"{"[..], b"{\"model\":\"m\"}"] {
        let config = config(json!({"protocol": "anthropic"}));
        let Err(answer) = drive::request(&config, PATH, &[], bad) else { panic!("asked") };
        assert_eq!(answer.head.status, 400);
    }
}

#[test]
fn the_upstreams_number_is_the_answer_in_any_pieces() {
    let config = config(json!({"profile": "vllm"}));
    let text = r#"{"count": 42, "max_model_len": 8192, "tokens": [1, 2], "token_strs": null}"#;
    for size in 1..=text.len() {
        let (exchange, _) = asked(&config, &body());
        let answer =
            drive::respond(exchange, 200, &[], text.as_bytes().chunks(size), End::Complete);
        assert_eq!((tokens(&answer), warns(&answer)), (42, false));
        assert_eq!(answer.report.upstream, "u");
        assert_eq!(answer.report.upstream_status, Some(200));
    }
}

#[test]
fn where_the_upstream_cannot_count_the_estimate_is_the_answer_and_says_so() {
    let config = config(json!({"profile": "vllm"}));
    for (status, answer) in [
        (404, r#"{"detail": "Not Found"}"#),
        (405, ""),
        (500, r#"{"error": {"message": "no"}}"#),
        (501, "not here"),
        (503, ""),
        (529, ""),
        (200, "<html>welcome</html>"),
        (200, ""),
        (200, r#"{"tokens": []}"#),
        (200, r#"{"count": 42"#),
    ] {
        let answer = answered(&config, status, answer);
        assert_eq!((tokens(&answer), warns(&answer)), (estimate(), true), "{status}");
    }
    let (exchange, _) = asked(&config, &body());
    let answer = drive::respond(exchange, 200, &[], [&b"{\"count\": 4"[..]], End::Aborted);
    assert_eq!((tokens(&answer), warns(&answer)), (estimate(), true));
    let (exchange, _) = asked(&config, &body());
    let answer = drive::respond(exchange, 200, &[], [&b"{\"count\": 42}"[..]], End::Aborted);
    assert_eq!((tokens(&answer), warns(&answer)), (42, false));
    let (exchange, _) = asked(&config, &body());
    let gzip = headers(&[("content-encoding", "gzip")]);
    let answer = drive::respond(exchange, 200, &gzip, [&b"\x1f\x8b"[..]], End::Complete);
    assert_eq!((tokens(&answer), warns(&answer)), (estimate(), true));
}

#[test]
fn a_model_that_the_upstream_does_not_have_has_no_count() {
    let config = config(json!({"profile": "vllm"}));
    for answer in [
        // vLLM, LiteLLM, Ollama
        r#"{"error":{"message":"The model `x` does not exist.","type":"NotFoundError","param":"model","code":404}}"#,
        r#"{"error":{"message":"model not found","code":"model_not_found"}}"#,
        r#"{"error":"model 'x' not found"}"#,
    ] {
        let counted = answered(&config, 404, answer);
        assert_eq!(counted.head.status, 404, "{answer}");
        let error: Value = serde_json::from_slice(&counted.body).unwrap();
        assert_eq!(error["error"]["type"], "not_found_error", "{answer}");
    }
    // No such endpoint.
    for answer in [r#"{"detail":"Not Found"}"#, "404 page not found", "<html>Not Found</html>", ""]
    {
        assert_eq!(tokens(&answered(&config, 404, answer)), estimate(), "{answer}");
    }
}

#[test]
fn where_the_upstream_cannot_be_reached_the_estimate_is_the_answer() {
    let config = config(json!({"profile": "vllm"}));
    let counted = |head: Option<creole::Head>, exchange: &Exchange, out: &[u8]| {
        assert_eq!((head.unwrap().status, exchange.is_ended()), (200, true));
        assert_eq!(out, format!("{{\"input_tokens\":{}}}", estimate()).as_bytes());
        assert!(exchange.report().warnings.header().unwrap().contains("count_estimated"));
    };
    for failure in [
        Failure::NoRoute,
        Failure::Unreachable(Unreachable::Refused),
        Failure::NoHealthyUpstream,
        Failure::Timeout,
    ] {
        let (mut exchange, _) = asked(&config, &body());
        let mut out = Vec::new();
        let head = exchange.failed(failure, NOW, &mut out);
        counted(head, &exchange, &out);
    }
    let (mut exchange, _) = asked(&config, &body());
    let mut out = Vec::new();
    let head = exchange.end(End::Aborted, NOW, &mut out);
    counted(head, &exchange, &out);
    // It is silent.
    let (mut exchange, _) = asked(&config, &body());
    let mut out = Vec::new();
    let due = exchange.poll_timeout().unwrap();
    let head = exchange.timeout(due, &mut out);
    counted(head, &exchange, &out);
    // What is the gateway's own business stays an error.
    let (mut exchange, _) = asked(&config, &body());
    let head = exchange.failed(Failure::Overloaded, NOW, &mut Vec::new()).unwrap();
    assert_eq!(head.status, 529);
}

#[test]
fn other_refusals_are_errors_of_the_messages_api() {
    let config = config(json!({"profile": "vllm"}));
    for (status, kind) in
        [(400, "invalid_request_error"), (401, "authentication_error"), (429, "rate_limit_error")]
    {
        let answer = answered(&config, status, r#"{"error": {"message": "no"}}"#);
        let value: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!((answer.head.status, &value["error"]["type"]), (status, &json!(kind)));
    }
}

#[test]
fn an_answer_beyond_the_limit_is_not_read() {
    let document = json!({
        "count_tokens": "upstream", "response_bytes_max": 1024, "upstreams": {"u": {"profile": "vllm"}}
    });
    let config = drive::config(&document.to_string());
    let (exchange, _) = asked(&config, &body());
    let text = format!(r#"{{"tokens": [{}1], "count": 42}}"#, "1, ".repeat(1000));
    let answer = drive::respond(exchange, 200, &[], [text.as_bytes()], End::Complete);
    assert_eq!((tokens(&answer), warns(&answer)), (estimate(), true));
}

#[test]
fn without_a_tokenizer_or_with_another_setting_nobody_is_asked() {
    for document in [
        json!({"count_tokens": "upstream"}),
        json!({"count_tokens": "upstream", "upstreams": {"u": {"profile": "openai-chat"}}}),
        json!({"count_tokens": "estimate", "upstreams": {"u": {"profile": "vllm"}}}),
        json!({"upstreams": {"u": {"protocol": "anthropic"}}}),
    ] {
        let config = drive::config(&document.to_string());
        let Err(answer) = drive::request(&config, PATH, &[], &body()) else {
            panic!("asked with {document}");
        };
        assert_eq!((tokens(&answer), warns(&answer)), (estimate(), true));
    }
}

#[test]
fn what_could_not_be_sent_can_still_be_counted() {
    // A guard would answer in place of the upstream.
    let document = json!({
        "count_tokens": "upstream", "upstreams": {"u": {"profile": "vllm"}},
        "guards": {"tool_turns_max": 1, "tool_turns_action": "end"},
    });
    let config = drive::config(&document.to_string());
    let Err(answer) = drive::request(&config, PATH, &[], &body()) else {
        panic!("sent, although the guard ends the turn");
    };
    assert_eq!((tokens(&answer), warns(&answer)), (estimate(), true));
    assert!(answer.report.warnings.guards().is_empty());
}

#[test]
fn a_request_that_is_not_one_is_refused_before_anybody_is_asked() {
    let config = config(json!({"profile": "vllm"}));
    for bad in [&b"{"[..], b"{\"model\":\"m\",\"messages\":[]}", b"\xff"] {
        let Err(answer) = drive::request(&config, PATH, &[], bad) else { panic!("asked") };
        assert_eq!(answer.head.status, 400);
    }
}

#[test]
fn a_tokenizer_whose_connection_stays_open_has_answered() {
    let config = config(json!({"profile": "vllm"}));
    for (status, said, counted) in
        [(200, "{\"count\": 42}", 42), (200, "{\"count\": 4", estimate()), (404, "", estimate())]
    {
        let (mut exchange, _) = asked(&config, &body());
        let mut out = Vec::new();
        exchange.handle_call_head(status, &[], NOW);
        exchange.piece(said.as_bytes(), NOW, &mut out);
        let due = exchange.poll_timeout().unwrap();
        let head = exchange.timeout(due, &mut out).unwrap();
        assert_eq!((head.status, due), (200, NOW + 10_000), "{said}");
        assert_eq!(String::from_utf8(out).unwrap(), format!("{{\"input_tokens\":{counted}}}"));
    }
}
