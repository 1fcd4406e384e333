//! Conversations that begin with the assistant.

use super::host::{Host, request};
use super::*;

fn calls() -> Value {
    json!({"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "read", "input": {"p": "a"}}]})
}

fn result() -> Value {
    json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "ra"}]})
}

/// Qwen's template wants somebody to ask.
fn qwen(sent: &Value) -> Option<&'static str> {
    let messages = sent["messages"].as_array().unwrap();
    let asks = messages.iter().any(|it| it["role"] == "user");
    (!asks).then_some("Error: Jinja Exception: No user query found in messages.")
}

#[test]
fn a_conversation_without_a_user_is_sent_with_one() {
    let host = Host::new(true, &qwen);
    let empty = json!({"role": "user", "content": ""});
    for messages in [json!([calls(), result()]), json!([empty, calls(), result()])] {
        let got = host.ask(&request("m", json!({"messages": messages, "system": "S"})), NOW);
        assert_eq!((got.status(), got.asked.len()), ((200, None), 1));
        let roles = |it: &Value| it["role"].as_str().unwrap().to_owned();
        let roles: Vec<_> =
            got.asked[0]["messages"].as_array().unwrap().iter().map(roles).collect();
        assert_eq!(roles, ["system", "user", "assistant", "tool"]);
        assert_eq!(got.warnings(), "beginning_missing");
    }
}

#[test]
fn a_server_that_wants_the_user_first_gets_that_from_then_on() {
    for message in [
        "A conversation must start with a user message. Try again with a conversation that starts with a user message.",
        "messages: first message must use the \"user\" role",
        "Please ensure that multiturn requests begin with a user turn",
    ] {
        let refuses = |sent: &Value| (sent["messages"][0]["role"] != "user").then_some(message);
        let host = Host::new(true, &refuses);
        let messages = json!([calls(), result(), {"role": "assistant", "content": "b"},
            {"role": "user", "content": "c"}]);
        for asked in [2, 1] {
            let got = host.ask(&request("m", json!({"messages": messages})), NOW);
            assert_eq!((got.status(), got.asked.len()), ((200, None), asked), "{message}");
            let warnings = got.warnings();
            assert!(warnings.contains("parameter_refused:alternating_roles"), "{warnings}");
            assert!(warnings.contains("beginning_missing"), "{warnings}");
        }
        // Where the user begins, it means something else.
        let always = |_: &Value| Some(message);
        let host = Host::new(true, &always);
        let got = host.ask(&request("m", json!({})), NOW);
        assert_eq!((got.status().0, got.asked.len()), (400, 1), "{message}");
    }
}
