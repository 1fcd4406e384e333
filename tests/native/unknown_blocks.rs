//! Blocks of types that a newer API may have.

use serde_json::{Value, json};

use super::*;

#[test]
fn a_block_of_a_type_that_nobody_knows_takes_the_deltas_of_its_index() {
    let delta = |index: u64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let signature = json!({"type": "signature_delta", "signature": "s"});
    let said = |kind: &str, field: &str, text: &str| json!({"type": kind, field: text});
    for (block, deltas, expected) in [
        (
            json!({"type": "connector_text", "connector_text": "", "signature": ""}),
            vec![
                said("connector_text_delta", "connector_text", "I lo"),
                said("connector_text_delta", "connector_text", "ok \u{e9}\n"),
                signature.clone(),
            ],
            json!({"type": "connector_text", "connector_text": "I look \u{e9}\n", "signature": "s"}),
        ),
        (
            json!({"type": "compaction", "content": null}),
            vec![
                json!({"type": "compaction_delta", "content": "so far", "encrypted_content": "e",
                    "signature": "early", "tool_changes": [{"a": 1}]}),
                signature.clone(),
            ],
            json!({"type": "compaction", "content": "so far", "encrypted_content": "e",
                "signature": "s", "tool_changes": [{"a": 1}]}),
        ),
        (
            json!({"type": "progress_note", "text": "a", "n": 1}),
            vec![said("text_delta", "text", "b"), said("thinking_delta", "thinking", "c")],
            json!({"type": "progress_note", "text": "ab", "n": 1, "thinking": "c"}),
        ),
        (
            json!({"type": "agent_use", "id": "a", "name": "helper", "input": {}}),
            vec![
                said("input_json_delta", "partial_json", "{\"a\""),
                said("input_json_delta", "partial_json", ":1}"),
            ],
            json!({"type": "agent_use", "id": "a", "name": "helper", "input": {"a": 1}}),
        ),
    ] {
        let mut events = vec![start(), open_text(0), text(0, "Hi"), stop(0), open(1, &block)];
        events.extend(deltas.iter().map(|it| delta(1, it.clone())));
        events.extend([stop(1), open_call(2, "toolu_1", &json!({})), input(2, "{\"a\":1}")]);
        events.extend([stop(2), ending("tool_use"), end()]);
        let (streamed, _) = both(&sse(&events));
        assert_eq!(String::from_utf8(streamed.body).unwrap(), sse(&events));
        let (message, repaired) = message_of(&sse(&events));
        let said = json!({"type": "text", "text": "Hi"});
        let call = json!({"type": "tool_use", "id": "toolu_1", "name": "w", "input": {"a": 1}});
        assert_eq!(message["content"], json!([said, expected, call]));
        assert!(repaired.is_empty(), "{repaired:?}");
    }
    // What is known to come whole takes none: a text at its index has lost its start.
    for kind in ["redacted_thinking", "web_search_tool_result", "fallback"] {
        let block = json!({"type": kind, "data": "x"});
        let events = [start(), open(0, &block), text(0, "Hi"), stop(0), ending("end_turn"), end()];
        let (message, _) = message_of(&sse(&events));
        assert_eq!(message["content"], json!([block, {"type": "text", "text": "Hi"}]));
    }
    // Without a name, what it has says what it is.
    let block = json!({"type": "", "text": ""});
    let events = [start(), open(0, &block), text(0, "Hi"), stop(0), ending("end_turn"), end()];
    let (message, _) = message_of(&sse(&events));
    assert_eq!(message["content"], json!([{"type": "text", "text": "Hi"}]));
}

#[test]
fn a_message_has_the_text_of_a_delta_from_the_member_of_another() {
    let block = json!({"type": "thinking", "thinking": "", "signature": ""});
    let delta = json!({"type": "thinking_delta", "text": "hm"});
    let delta = json!({"type": "content_block_delta", "index": 0, "delta": delta});
    let events = [start(), open(0, &block), delta, stop(0), ending("end_turn"), end()];
    let message: Value = serde_json::from_slice(&both(&sse(&events)).1.body).unwrap();
    assert_eq!(message["content"][0]["thinking"], "hm");
}
