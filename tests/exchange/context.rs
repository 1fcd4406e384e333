//! Reports to clients: what was cleared of their history, and what was written to a cache.

use super::*;
use support::fold::fold;

/// A history of six tool uses, all but three of which are cleared, and an old thought.
fn edited(stream: bool) -> Value {
    let mut messages = vec![
        json!({"role": "user", "content": "q"}),
        json!({"role": "assistant", "content": [
            {"type": "thinking", "thinking": "one two three", "signature": "s"}, {"type": "text", "text": "a"}]}),
        json!({"role": "user", "content": "r"}),
    ];
    for at in 0..6 {
        let id = format!("toolu_{at}");
        messages.push(json!({"role": "assistant", "content": [
            {"type": "thinking", "thinking": "four", "signature": "s"},
            {"type": "tool_use", "id": id, "name": "read", "input": {"path": at}}]}));
        let text = "word ".repeat(100);
        messages.push(json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": id, "content": text}]}));
    }
    json!({
        "model": "claude-test", "max_tokens": 100, "stream": stream, "messages": messages,
        "context_management": {"edits": [
            {"type": "clear_thinking_20251015", "keep": {"type": "thinking_turns", "value": 1}},
            {"type": "clear_tool_uses_20250919", "trigger": {"type": "tool_uses", "value": 5}},
        ]},
    })
}

fn config(protocol: &str) -> Arc<Config> {
    let up = json!({"up": {"url": "http://127.0.0.1:1", "protocol": protocol}});
    drive::config(&json!({"upstreams": up}).to_string())
}

fn said(protocol: &str) -> Value {
    match protocol {
        "responses" => json!({"id": "r", "object": "response", "status": "completed", "output": [
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]}],
            "usage": {"input_tokens": 1, "output_tokens": 1}}),
        _ => json!({"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1}}),
    }
}

fn answered(protocol: &str, request: &Value) -> (String, Value) {
    let body = request.to_string();
    let (exchange, _) =
        drive::request(&config(protocol), "/v1/messages", &[], body.as_bytes()).unwrap();
    let upstream = said(protocol).to_string();
    let answer = drive::respond(exchange, 200, &[], [upstream.as_bytes()], End::Complete);
    let body = String::from_utf8(answer.body).unwrap();
    let message = match request["stream"] == true {
        true => fold(&grammar::check_stream(body.as_bytes(), Rules::default()).unwrap()).message,
        false => serde_json::from_str(&body).unwrap(),
    };
    (body, message)
}

#[test]
fn a_client_that_asks_for_edits_is_told_of_those_that_were_made() {
    for protocol in ["openai", "responses"] {
        let told = [true, false].map(|stream| {
            let (_, message) = answered(protocol, &edited(stream));
            message["context_management"]["applied_edits"].clone()
        });
        assert_eq!(told[0], told[1], "{protocol}");
        let [thinking, tools] = [&told[0][0], &told[0][1]];
        assert_eq!(thinking["type"], "clear_thinking_20251015");
        assert_eq!(
            (&thinking["cleared_thinking_turns"], &thinking["cleared_input_tokens"]),
            (&json!(1), &json!(3))
        );
        assert_eq!(tools["type"], "clear_tool_uses_20250919");
        assert_eq!(tools["cleared_tool_uses"], 3);
        let tokens = tools["cleared_input_tokens"].as_u64().unwrap();
        assert!((250..330).contains(&tokens), "{tokens}");
    }
}

#[test]
fn an_edit_that_clears_nothing_is_told_as_an_empty_list_and_no_edit_is_not_told() {
    for stream in [true, false] {
        let mut request = edited(stream);
        let edit = json!({"type": "clear_tool_uses_20250919"});
        request["context_management"] = json!({"edits": [edit]});
        let (body, message) = answered("openai", &request);
        assert_eq!(message["context_management"], json!({"applied_edits": []}));
        assert_eq!(body.matches("context_management").count(), 1, "{body}");
        // As Claude Code sends it.
        let edit = json!({"type": "clear_thinking_20251015", "keep": "all"});
        for none in [json!({"edits": [edit]}), Value::Null] {
            request["context_management"] = none;
            assert!(!answered("openai", &request).0.contains("context_management"));
        }
    }
}

/// The answer to a request for a count. `counted`: what the upstream's tokenizer says.
fn count(config: &Arc<Config>, counted: Option<&str>) -> Value {
    let mut body = edited(false);
    body.as_object_mut().unwrap().remove("stream");
    let (path, body) = ("/v1/messages/count_tokens", body.to_string());
    let body = match (drive::request(config, path, &[], body.as_bytes()), counted) {
        (Ok((exchange, _)), Some(counted)) => {
            drive::respond(exchange, 200, &[], [counted.as_bytes()], End::Complete).body
        }
        (Err(answer), None) => answer.body,
        _ => panic!("the upstream is asked without need, or not asked"),
    };
    serde_json::from_slice(&body).unwrap()
}

#[test]
fn a_count_tells_the_tokens_before_anything_was_cleared() {
    let estimate = count(&config("openai"), None);
    let original = estimate["context_management"]["original_input_tokens"].as_u64().unwrap();
    let cleared = original - estimate["input_tokens"].as_u64().unwrap();
    assert!((250..330).contains(&cleared), "{estimate}");
    let exact = |upstream: Value, counted: &str| {
        let up = json!({"count_tokens": "upstream", "upstreams": {"up": upstream}});
        count(&drive::config(&up.to_string()), Some(counted))
    };
    let vllm = json!({"url": "http://127.0.0.1:1", "profile": "vllm"});
    assert_eq!(
        exact(vllm, r#"{"count":500}"#),
        json!({"input_tokens": 500, "context_management": {"original_input_tokens": 500 + cleared}})
    );
    // One that clears by itself knows both.
    let anthropic = json!({"url": "http://127.0.0.1:1", "protocol": "anthropic"});
    let both = r#"{"input_tokens":12,"context_management":{"original_input_tokens":20}}"#;
    assert_eq!(
        exact(anthropic, both).to_string(),
        serde_json::from_str::<Value>(both).unwrap().to_string()
    );
}

#[test]
fn an_upstream_of_messages_gets_the_edits_and_nothing_is_cleared_here() {
    let request = edited(true).to_string();
    let (_, call) =
        drive::request(&config("anthropic"), "/v1/messages", &[], request.as_bytes()).unwrap();
    let sent: Value = serde_json::from_slice(&call.body).unwrap();
    assert_eq!(sent["context_management"], edited(true)["context_management"]);
    assert!(!sent.to_string().contains("was cleared"), "{sent}");
}

#[test]
fn tokens_that_were_written_to_a_cache_are_told_by_how_long_they_stay() {
    let request = ask(false);
    for (written, told) in [
        (8, json!({"ephemeral_5m_input_tokens": 8, "ephemeral_1h_input_tokens": 0})),
        (0, Value::Null),
    ] {
        let (exchange, _) =
            drive::request(&config("openai"), "/v1/messages", &[], &request).unwrap();
        let mut upstream = said("openai");
        upstream["usage"]["prompt_tokens"] = 9.into();
        upstream["usage"]["prompt_tokens_details"] = json!({"cache_write_tokens": written});
        let upstream = upstream.to_string();
        let answer = drive::respond(exchange, 200, &[], [upstream.as_bytes()], End::Complete);
        let usage = serde_json::from_slice::<Value>(&answer.body).unwrap()["usage"].take();
        assert_eq!(usage["cache_creation"], told);
        assert_eq!(usage["cache_creation_input_tokens"], written);
    }
}
