//! Whole messages.

use creole::End;
use serde_json::{Value, json};

use super::*;

/// Returns the body for a client that wants no stream, and the message for one that wants a stream.
#[track_caller]
fn answers(body: &str) -> (String, Value) {
    let config = config();
    let kind = (200, "application/json");
    let whole = answered(&config, false, kind, [body.as_bytes()], End::Complete);
    let streamed = answered(&config, true, kind, body.as_bytes().chunks(3), End::Complete);
    let text = String::from_utf8(streamed.body).unwrap();
    let folded = message_in(&text).unwrap_or_else(|wrong| panic!("{wrong}\n{text}"));
    (String::from_utf8(whole.body).unwrap(), folded)
}

fn message() -> Value {
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "kimi",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "sig"},
            {"type": "text", "text": "Hi", "citations": [{"type": "char_location"}]},
            {"type": "tool_use", "id": "functions.w:0", "name": "w", "input": {"a": 1}},
            {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
        ],
        "stop_reason": "tool_use", "stop_sequence": null,
        "usage": {"input_tokens": 3, "output_tokens": 4, "vendor": {"x": 1}}, "vendor": [1],
    })
}

/// Removes the members that are null.
fn comparable(mut message: Value) -> Value {
    message.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    message
}

#[test]
fn a_right_message_is_passed_on_byte_for_byte() {
    let body = serde_json::to_string_pretty(&message()).unwrap();
    let (whole, folded) = answers(&body);
    assert_eq!(whole, body);
    assert_eq!(comparable(folded), comparable(message()));
}

#[test]
fn what_is_wrong_in_a_message_is_repaired() {
    type Change = fn(&mut Value);
    let cases: &[(Change, &str, Value)] = &[
        (|m| m["stop_reason"] = "end_turn".into(), "/stop_reason", json!("tool_use")),
        (|m| m["stop_reason"] = Value::Null, "/stop_reason", json!("tool_use")),
        (|m| m["stop_reason"] = "length".into(), "/stop_reason", json!("max_tokens")),
        (|m| m["role"] = Value::Null, "/role", json!("assistant")),
        (|m| m["model"] = Value::Null, "/model", json!("claude")),
        (
            |m| m["usage"] = json!({"prompt_tokens": 1, "completion_tokens": 8}),
            "/usage/output_tokens",
            json!(8),
        ),
        (|m| m["content"][2]["input"] = json!("{\"a\":2}"), "/content/2/input", json!({"a": 2})),
        (|m| m["content"][2]["input"] = Value::Null, "/content/2/input", json!({})),
        (|m| m["content"] = "plain".into(), "/content/0/text", json!("plain")),
        (|m| m["content"][1] = json!({"text": "untyped"}), "/content/1/type", json!("text")),
        (|m| m["id"] = Value::Null, "/type", json!("message")),
        // Ollama
        (
            |m| m["content"][0] = json!({"type": "thinking", "thinking": "hm"}),
            "/content/0/signature",
            json!(""),
        ),
    ];
    for (number, (change, path, expected)) in cases.iter().enumerate() {
        let mut body = message();
        change(&mut body);
        let (whole, folded) = answers(&body.to_string());
        let whole: Value = serde_json::from_str(&whole).unwrap();
        assert_eq!(whole.pointer(path), Some(expected), "case {number}: {whole}");
        assert_eq!(comparable(folded), comparable(whole.clone()), "case {number}");
        assert!(whole["usage"]["input_tokens"].is_u64(), "{whole}");
        assert_eq!(whole["vendor"], json!([1]));
    }
    let mut body = message();
    let call = body["content"][2].clone();
    body["content"].as_array_mut().unwrap().push(call);
    let whole: Value = serde_json::from_str(&answers(&body.to_string()).0).unwrap();
    assert_eq!(whole["content"][2]["id"], "functions.w:0");
    assert_ne!(whole["content"][4]["id"], "functions.w:0");
}

#[test]
fn the_client_sees_the_model_that_it_asked_for() {
    let body = message().to_string();
    let config = config_with(Some("kimi-k2"), "");
    let kind = (200, "application/json");
    let whole = answered(&config, false, kind, [body.as_bytes()], End::Complete);
    let whole: Value = serde_json::from_slice(&whole.body).unwrap();
    assert_eq!(whole["model"], "claude");
    assert_eq!(whole["content"], message()["content"]);
}

#[test]
fn a_message_in_an_event_is_a_message() {
    let (streamed, whole) = both(&format!("data: {}\n\n", message()));
    let folded = message_in(&String::from_utf8(streamed.body).unwrap()).unwrap();
    assert_eq!(comparable(folded), comparable(message()));
    assert_eq!(serde_json::from_slice::<Value>(&whole.body).unwrap(), message());
}

#[test]
fn an_answer_in_the_other_protocol_is_translated() {
    let body = json!({"id": "1", "object": "chat.completion", "model": "kimi", "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hi"}}]});
    let whole: Value = serde_json::from_str(&answers(&body.to_string()).0).unwrap();
    assert_eq!(whole["content"], json!([{"type": "text", "text": "Hi"}]));
}

#[test]
fn reasoning_is_always_shown_in_the_other_protocol_even_if_the_request_cannot_be_read() {
    let config = config_with(None, r#","reasoning":"always""#);
    let request = r#"{"model":"claude","messages":"not a list"}"#;
    let request = drive::request(&config, "/v1/messages", &[], request.as_bytes());
    let (exchange, _) = request.unwrap_or_else(|_| panic!("it is refused"));
    let message = json!({"role": "assistant", "reasoning_content": "hm", "content": "Hi"});
    let choice = json!({"index": 0, "finish_reason": "stop", "message": message});
    let body = json!({"object": "chat.completion", "choices": [choice]}).to_string();
    let headers = drive::headers(&[("content-type", "application/json")]);
    let answer = drive::respond(exchange, 200, &headers, [body.as_bytes()], End::Complete);
    let whole: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(whole["content"][0]["thinking"], "hm");
}

#[test]
fn a_message_that_does_not_say_that_it_is_one_is_one() {
    let mut bare = message();
    bare.as_object_mut().unwrap().remove("type");
    let (whole, folded) = answers(&bare.to_string());
    let whole: Value = serde_json::from_str(&whole).unwrap();
    assert_eq!(whole, message());
    assert_eq!(comparable(folded), comparable(message()));
}

#[test]
fn a_message_made_of_a_stream_has_its_compaction_and_what_became_of_the_context() {
    let delta = json!({"type": "content_block_delta", "index": 0, "delta":
        {"type": "compaction_delta", "content": "so far", "encrypted_content": "e"}});
    let mut last = ending("end_turn");
    last["context_management"] = json!({"applied_edits": [{"type": "compact_20260112"}]});
    let mut first = start();
    first["message"]["context_management"] = Value::Null;
    let compaction = json!({"type": "compaction", "content": null});
    let events = [
        first,
        open(0, &compaction),
        delta,
        stop(0),
        open_text(1),
        text(1, "x"),
        stop(1),
        last,
        end(),
    ];
    let stream = sse(&events);
    let (streamed, whole) = both(&stream);
    assert_eq!(String::from_utf8(streamed.body).unwrap(), stream);
    let text = String::from_utf8(whole.body).unwrap();
    assert_eq!(text.matches("context_management").count(), 1, "{text}");
    let message: Value = serde_json::from_str(&text).unwrap();
    let applied = json!({"applied_edits": [{"type": "compact_20260112"}]});
    assert_eq!(message["context_management"], applied);
    let told = json!({"type": "compaction", "content": "so far", "encrypted_content": "e"});
    assert_eq!(message["content"], json!([told, {"type": "text", "text": "x"}]));
}

#[test]
fn what_a_message_says_of_itself_at_its_end_stands_at_the_end_of_a_stream() {
    let mut body = message();
    body["safeguard_results"] = json!([{"type": "dangerous_tool_use"}]);
    body["context_management"] = json!({"applied_edits": []});
    let kind = (200, "application/json");
    let body = body.to_string();
    let streamed = answered(&config(), true, kind, body.as_bytes().chunks(3), End::Complete);
    let text = String::from_utf8(streamed.body).unwrap();
    let event = |name: &str| {
        let data =
            text.lines().find(|line| line.contains(&format!("\"type\":\"{name}\""))).unwrap();
        serde_json::from_str::<Value>(data.strip_prefix("data: ").unwrap()).unwrap()
    };
    let (first, last) = (event("message_start"), event("message_delta"));
    for key in ["safeguard_results", "context_management"] {
        assert!(first["message"].get(key).is_none(), "{first}");
    }
    assert_eq!(last["delta"]["safeguard_results"], json!([{"type": "dangerous_tool_use"}]));
    assert_eq!(last["context_management"], json!({"applied_edits": []}));
    assert_eq!(
        comparable(answers(&body).1),
        serde_json::from_str::<Value>(&body).map(comparable).unwrap()
    );
    // And nothing is made up.
    let plain = message().to_string();
    let streamed = answered(&config(), true, kind, [plain.as_bytes()], End::Complete);
    let text = String::from_utf8(streamed.body).unwrap();
    assert!(!text.contains("safeguard_results") && !text.contains("context_management"), "{text}");
}

#[test]
fn a_message_with_the_empty_choices_of_a_gateways_form_is_a_message() {
    for choices in [json!(null), json!([]), json!([null])] {
        let mut given = message();
        given["choices"] = choices.clone();
        let (whole, folded) = answers(&given.to_string());
        assert_eq!(whole, given.to_string(), "{choices}");
        assert_eq!(folded["content"], message()["content"], "{choices}");
    }
}
