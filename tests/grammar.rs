//! The checkers check: valid samples pass, and each single fault is found.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

mod support;

use serde_json::{Value, json};

use support::fold::{comparable, fold};
use support::grammar::{Event, Rules, check, check_message, check_stream, error_body, events};
use support::{chat, tool_id};

const STREAM: &str = concat!(
    r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"stop_details":null,"container":null,"usage":{"input_tokens":9,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0,"service_tier":null}}}"#,
    "\n",
    r#"{"type":"ping"}"#,
    "\n",
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
    "\n",
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm."}}"#,
    "\n",
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"VFhT"}}"#,
    "\n",
    r#"{"type":"content_block_stop","index":0}"#,
    "\n",
    r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#,
    "\n",
    r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"He"}}"#,
    "\n",
    r#"{"type":"ping"}"#,
    "\n",
    r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"llo"}}"#,
    "\n",
    r#"{"type":"content_block_stop","index":1}"#,
    "\n",
    r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_a","name":"w","input":{},"caller":{"type":"direct"}}}"#,
    "\n",
    r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}"#,
    "\n",
    r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"1}"}}"#,
    "\n",
    r#"{"type":"content_block_stop","index":2}"#,
    "\n",
    r#"{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null,"stop_details":null,"container":null},"usage":{"input_tokens":10,"cache_creation_input_tokens":0,"cache_read_input_tokens":4,"output_tokens":5,"output_tokens_details":{"thinking_tokens":2}}}"#,
    "\n",
    r#"{"type":"message_stop"}"#,
);

const ERROR: &str =
    r#"{"type":"error","error":{"type":"api_error","message":"It broke."},"request_id":"req_1"}"#;

fn sample(lines: &str) -> Vec<Event> {
    lines
        .lines()
        .map(|line| {
            let data: Value = serde_json::from_str(line).unwrap();
            Event { name: data["type"].as_str().unwrap().to_owned(), data }
        })
        .collect()
}

fn on_the_wire(events: &[Event]) -> String {
    events.iter().map(|event| format!("event: {}\ndata: {}\n\n", event.name, event.data)).collect()
}

/// The sample with the first line that contains `old` changed.
fn changed(old: &str, new: &str) -> Vec<Event> {
    assert!(STREAM.contains(old), "{old}");
    sample(&STREAM.replacen(old, new, 1))
}

fn line_of(part: &str) -> usize {
    STREAM.lines().position(|line| line.contains(part)).unwrap_or_else(|| panic!("{part}"))
}

fn without(part: &str) -> Vec<Event> {
    let mut events = sample(STREAM);
    events.remove(line_of(part));
    events
}

fn twice(part: &str) -> Vec<Event> {
    let mut events = sample(STREAM);
    let at = line_of(part);
    events.insert(at, events[at].clone());
    events
}

#[test]
fn a_valid_stream_passes_and_folds_to_its_message() {
    let wire = on_the_wire(&sample(STREAM));
    let events = check_stream(wire.as_bytes(), Rules::default()).unwrap();
    let folded = fold(&events);
    assert_eq!(folded.error, None);
    check_message(&folded.message).unwrap();
    assert_eq!(
        comparable(&folded.message),
        json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "m",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "VFhT"},
                {"type": "text", "text": "Hello"},
                {"type": "tool_use", "id": "toolu_a", "name": "w", "input": {"a": 1}, "caller": {"type": "direct"}},
            ],
            "stop_reason": "tool_use",
            "usage": {
                "input_tokens": 10, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 4,
                "output_tokens": 5, "output_tokens_details": {"thinking_tokens": 2},
            },
        })
    );
}

#[test]
fn citations_fold_into_their_text() {
    let delta = |number: u64| {
        let citation = json!({"type": "char_location", "start_char_index": number});
        let delta = json!({"type": "citations_delta", "citation": citation});
        let data = json!({"type": "content_block_delta", "index": 1, "delta": delta});
        Event { name: "content_block_delta".to_owned(), data }
    };
    let mut events = sample(STREAM);
    let at = line_of(r#""text":"llo""#);
    events.splice(at..at, [delta(1), delta(2)]);
    check(&events, Rules { foreign_blocks: true, ..Rules::default() }).unwrap();
    let text = &fold(&events).message["content"][1];
    assert_eq!(text["text"], "Hello");
    assert_eq!(text["citations"].as_array().unwrap().len(), 2);
    assert_eq!(text["citations"][1]["start_char_index"], 2);
}

#[test]
fn each_single_fault_of_a_stream_is_found() {
    // What is done, what the checker says of it, and the events.
    let faults: Vec<(&str, &str, Vec<Event>)> = vec![
        ("no message_start", "expected message_start first", without("message_start")),
        ("two message_starts", "not expected in phase Blocks", twice("message_start")),
        ("no message_stop", "stops in phase Stopping", without("message_stop")),
        ("something after the end", "something comes after the end", {
            let mut events = sample(STREAM);
            events.extend(sample(r#"{"type":"ping"}"#));
            events
        }),
        (
            "no message_delta",
            "(message_stop): not expected in phase Blocks",
            without("message_delta"),
        ),
        (
            "two message_deltas",
            "(message_delta): not expected in phase Stopping",
            twice("message_delta"),
        ),
        ("a block is not opened", "no block is open", without(r#""content_block":{"type":"text""#)),
        (
            "a block is not closed",
            "the block before is still open",
            without(r#""content_block_stop","index":1"#),
        ),
        ("a block is closed twice", "expected index 2", twice(r#""content_block_stop","index":1"#)),
        (
            "an index is skipped",
            "expected index 2",
            changed(r#""index":2,"content_block""#, r#""index":3,"content_block""#),
        ),
        (
            "a delta for another block",
            "expected index 1",
            changed(r#""index":1,"delta""#, r#""index":0,"delta""#),
        ),
        (
            "an index is missing",
            "index is missing",
            changed(r#","index":1,"delta""#, r#","delta""#),
        ),
        (
            "an unknown event",
            "(turn_start): not expected",
            changed(r#"{"type":"ping"}"#, r#"{"type":"turn_start"}"#),
        ),
        ("an unknown delta", "does not fit a text block", changed("text_delta", "other_delta")),
        (
            "a delta that does not fit",
            "does not fit a text block",
            changed(
                r#"{"type":"text_delta","text":"He"}"#,
                r#"{"type":"thinking_delta","thinking":"He"}"#,
            ),
        ),
        ("an empty delta", "an empty delta", changed(r#""text":"He""#, r#""text":"""#)),
        (
            "text at the start of a block",
            "text: expected",
            changed(r#"{"type":"text","text":""}"#, r#"{"type":"text","text":"He"}"#),
        ),
        (
            "input at the start of a block",
            "input: expected {}",
            changed(r#""input":{}"#, r#""input":{"a":1}"#),
        ),
        ("white space alone", "only white space", {
            let mut events = without(r#""text":"llo""#);
            let at = line_of(r#""text":"He""#);
            events[at].data["delta"]["text"] = " ".into();
            events
        }),
        ("no signature", "a thinking block without a signature", without("signature_delta")),
        ("two signatures", "a delta after the signature", twice("signature_delta")),
        ("thinking after the signature", "a delta after the signature", {
            let mut events = sample(STREAM);
            let at = line_of("signature_delta");
            events.swap(at, at - 1);
            events
        }),
        ("input that is cut", "not one JSON object", without(r#""partial_json":"1}""#)),
        (
            "input that comes twice",
            "not one JSON object",
            changed(r#""partial_json":"1}""#, r#""partial_json":"1}{\"a\":1}""#),
        ),
        ("input that is no object", "not one JSON object", {
            let mut events = changed(r#""partial_json":"{\"a\":""#, r#""partial_json":"[""#);
            events[line_of(r#""partial_json":"1}""#)].data["delta"]["partial_json"] = "1]".into();
            events
        }),
        ("a call without any delta", "not one JSON object: \"\"", {
            let mut events = without(r#""partial_json":"1}""#);
            events.remove(line_of(r#""partial_json":"{"#));
            events
        }),
        (
            "a call that is cut before another block, whatever the end says",
            "not one JSON object",
            {
                let mut events = without(r#""partial_json":"1}""#);
                let text = sample(&STREAM.replace(r#""index":1"#, r#""index":3"#));
                let text = text[line_of(r#"{"type":"text""#)..line_of("tool_use")].to_vec();
                let end = events.len() - 2;
                events[end].data["delta"]["stop_reason"] = "max_tokens".into();
                events.splice(end..end, text);
                events
            },
        ),
        ("tool_use without a call", "stop_reason tool_use without a call", {
            let mut events = sample(STREAM);
            events.drain(line_of(r#""id":"toolu_a""#)..line_of("message_delta"));
            events
        }),
        ("a block after message_delta", "(content_block_start): not expected in phase Stopping", {
            let mut events = sample(STREAM);
            let late = r#"{"type":"content_block_start","index":3,"content_block":{"type":"text","text":""}}"#;
            events.insert(line_of("message_stop"), sample(late).remove(0));
            events
        }),
        ("the same id twice", "comes twice", {
            let mut events = sample(STREAM);
            let at = line_of("message_delta");
            let call = sample(&STREAM.replace(r#""index":2"#, r#""index":3"#));
            events.splice(at..at, call[line_of(r#""id":"toolu_a""#)..at].to_vec());
            events
        }),
        ("an empty text beside others", "an empty text block beside others", {
            let mut events = without(r#""text":"llo""#);
            events.remove(line_of(r#""text":"He""#));
            events
        }),
        (
            "a call without a name",
            "a call without a name",
            changed(r#""name":"w""#, r#""name":"""#),
        ),
        ("a call without an id", "bad tool_use id", changed("toolu_a", "")),
        ("an id that clients refuse", "bad tool_use id", changed("toolu_a", "toolu_a:1")),
        (
            "a call without its caller",
            "caller is missing",
            changed(r#","caller":{"type":"direct"}"#, ""),
        ),
        (
            "usage is missing at the start",
            "usage is missing",
            changed(
                r#","usage":{"input_tokens":9,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0,"service_tier":null}"#,
                "",
            ),
        ),
        (
            "usage is null at the end",
            "but found null",
            changed(
                r#""usage":{"input_tokens":10,"cache_creation_input_tokens":0,"cache_read_input_tokens":4,"output_tokens":5,"output_tokens_details":{"thinking_tokens":2}}"#,
                r#""usage":null"#,
            ),
        ),
        (
            "output_tokens is missing",
            "output_tokens is missing",
            changed(r#""output_tokens":5,"#, ""),
        ),
        (
            "a count is negative",
            "input_tokens is not a count",
            changed(r#""input_tokens":10"#, r#""input_tokens":-1"#),
        ),
        (
            "more thinking than output",
            "more thinking_tokens than output_tokens",
            changed(r#""thinking_tokens":2"#, r#""thinking_tokens":6"#),
        ),
        ("an unknown stop_reason", "unknown stop_reason", {
            let mut events = sample(STREAM);
            events.drain(line_of(r#""id":"toolu_a""#)..line_of("message_delta"));
            let end = events.len() - 2;
            events[end].data["delta"]["stop_reason"] = "stop".into();
            events
        }),
        (
            "no stop_reason",
            "no stop_reason",
            changed(r#""stop_reason":"tool_use""#, r#""stop_reason":null"#),
        ),
        (
            "a call and end_turn",
            "stop_reason end_turn with a call",
            changed(r#""stop_reason":"tool_use""#, r#""stop_reason":"end_turn""#),
        ),
        (
            "a stop_sequence without its reason",
            "stop_sequence does not fit",
            changed(
                r#""stop_sequence":null,"stop_details":null,"container":null},"usage":{"input_tokens":10"#,
                r#""stop_sequence":"x","stop_details":null,"container":null},"usage":{"input_tokens":10"#,
            ),
        ),
        (
            "a refusal without details",
            "but found null",
            changed(r#""stop_reason":"tool_use""#, r#""stop_reason":"refusal""#),
        ),
        (
            "an undocumented field",
            "x is not documented here",
            changed(r#"{"type":"message_stop"}"#, r#"{"type":"message_stop","x":1}"#),
        ),
        (
            "content in message_start",
            "content: expected []",
            changed(r#""content":[]"#, r#""content":[{"type":"text","text":"x"}]"#),
        ),
        ("an id that is not one of a message", "bad message id", changed("msg_1", "chatcmpl-1")),
        ("the event line is another", "the event line is not data.type", {
            let mut events = sample(STREAM);
            events[0].name = "message".into();
            events
        }),
    ];
    for (fault, said, events) in &faults {
        let error = check(events, Rules::default()).expect_err(fault);
        assert!(error.contains(said), "{fault}: {error}");
    }
    assert!(faults.len() > 40);
}

#[test]
fn an_error_ends_a_stream_and_leaves_an_open_call_open() {
    let until = |part: &str| {
        let mut events = sample(STREAM);
        events.truncate(line_of(part));
        events
    };
    let with_error = |mut events: Vec<Event>| {
        events.extend(sample(ERROR));
        events
    };
    check(&with_error(until(r#""partial_json":"1}""#)), Rules::default()).unwrap();
    check(&with_error(until("message_delta")), Rules::default()).unwrap();
    let mut closed = until(r#""partial_json":"1}""#);
    closed.extend(sample(r#"{"type":"content_block_stop","index":2}"#));
    assert!(check(&with_error(closed), Rules::default()).is_err());
    assert!(check(&sample(ERROR), Rules::default()).is_err());
    check(&sample(ERROR), Rules { head_sent_early: true, ..Rules::default() }).unwrap();
    for broken in ["api_error", "It broke.", "req_1"] {
        let body: Value = serde_json::from_str(&ERROR.replace(broken, "")).unwrap();
        assert!(error_body(&body).is_err(), "{broken}");
    }
}

#[test]
fn only_the_last_call_may_be_cut_and_only_where_the_answer_is() {
    let mut cut = without(r#""partial_json":"1}""#);
    let end = cut.len() - 2;
    for reason in ["max_tokens", "model_context_window_exceeded"] {
        cut[end].data["delta"]["stop_reason"] = reason.into();
        check(&cut, Rules::default()).unwrap();
    }
    assert_eq!(fold(&cut).message["content"][2]["input"], json!({"partial_json": "{\"a\":"}));
}

#[test]
fn the_framing_is_one_event_line_and_one_data_line() {
    let wire = on_the_wire(&sample(STREAM));
    for pings in ["", ": ping\n\n", ": ping\n\n: ping\n\n"] {
        let wire = format!("{pings}{wire}");
        assert_eq!(events(wire.as_bytes()).unwrap().len(), STREAM.lines().count());
    }
    for broken in [
        wire.replacen("\n\n", "\n\n: ping\n\n", 1),
        format!(": ping\n{wire}"),
        wire.replacen("event: message_start\n", "", 1),
        wire.replacen("event: ", "event:", 1),
        wire.replacen("data: ", "id: 1\ndata: ", 1),
        wire.replacen("\n\n", "\n\n\n", 1),
        wire.trim_end().to_owned(),
        wire.replacen("data: {", "data: {{", 1),
        String::new(),
    ] {
        assert!(events(broken.as_bytes()).is_err(), "{broken}");
    }
    assert!(check_stream(b": ping\n\n", Rules::default()).is_err());
}

fn chat_request() -> Value {
    json!({
        "model": "m", "max_tokens": 10, "stream": true, "stream_options": {"include_usage": true},
        "messages": [
            {"role": "system", "content": "S"},
            {"role": "user", "content": [{"type": "text", "text": "q"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "w", "arguments": "{}"}},
                {"id": "c2", "type": "function", "function": {"name": "w", "arguments": "{\"a\":1}"}},
            ]},
            {"role": "tool", "tool_call_id": "c2", "content": ""},
            {"role": "tool", "tool_call_id": "c1", "content": "ok"},
            {"role": "user", "content": "go on"},
        ],
        "tools": [{"type": "function", "function": {"name": "w", "parameters": {"type": "object", "properties": {}}}}],
        "tool_choice": {"type": "function", "function": {"name": "w"}},
    })
}

#[test]
fn each_single_fault_of_a_chat_request_is_found() {
    chat::check(&chat_request(), chat::Rules::default()).unwrap();
    let set = |pointer: &str, value: Value| {
        let mut body = chat_request();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        match body.pointer_mut(parent).unwrap() {
            Value::Array(items) => items[key.parse::<usize>().unwrap()] = value,
            parent => parent[key] = value,
        }
        body
    };
    let moved = |from: usize, to: usize| {
        let mut body = chat_request();
        let messages = body["messages"].as_array_mut().unwrap();
        let message = messages.remove(from);
        messages.insert(to, message);
        body
    };
    let dropped = |at: usize| {
        let mut body = chat_request();
        body["messages"].as_array_mut().unwrap().remove(at);
        body
    };
    let faults = [
        ("a result is missing", dropped(3)),
        ("the call is missing", dropped(2)),
        ("something between call and result", moved(5, 4)),
        ("a result before its call", moved(3, 2)),
        ("messages is empty", set("/messages", json!([]))),
        ("an unknown role", set("/messages/0/role", "tools".into())),
        ("an unknown field", set("/metadata", json!({"user_id": "x"}))),
        ("a field of Messages in a message", set("/messages/0/cache_control", json!({}))),
        ("both limits", set("/max_completion_tokens", 5.into())),
        ("a null", set("/temperature", Value::Null)),
        ("an id twice", set("/messages/2/tool_calls/1/id", "c1".into())),
        (
            "arguments that are no text",
            set("/messages/2/tool_calls/0/function/arguments", json!({})),
        ),
        ("arguments that are empty", set("/messages/2/tool_calls/0/function/arguments", "".into())),
        (
            "arguments that are no object",
            set("/messages/2/tool_calls/0/function/arguments", "[]".into()),
        ),
        ("a name with a space", set("/tools/0/function/name", "a b".into())),
        ("a name too long", set("/tools/0/function/name", "x".repeat(65).into())),
        ("no properties", set("/tools/0/function/parameters", json!({"type": "object"}))),
        ("an empty list of tools", set("/tools", json!([]))),
        ("a choice that is no tool", set("/tool_choice/function/name", "t".into())),
        ("the word of another API", set("/tool_choice", "any".into())),
        ("options without stream", set("/stream", false.into())),
        ("an empty stop", set("/stop", json!([]))),
        ("an empty part", set("/messages/1/content/0/text", "".into())),
        ("a part of Messages", set("/messages/1/content/1/type", "image".into())),
        ("an empty user message", set("/messages/5/content", "".into())),
        (
            "no content and no calls",
            set("/messages/5", json!({"role": "assistant", "content": null})),
        ),
    ];
    for (fault, body) in faults {
        assert!(chat::check(&body, chat::Rules::default()).is_err(), "not found: {fault}");
    }
}

#[test]
fn client_ids_lead_back_to_upstream_ids() {
    for (client, upstream) in [
        ("toolu_abc123", Some("call_abc123")),
        ("toolu_c_u2_abc", Some("call_u2_abc")),
        ("toolu_r_D681PevKs", Some("D681PevKs")),
        ("toolu_x_functions-dget_weather-c0", Some("functions.get_weather:0")),
        ("toolu_u2_0", Some("call_0")),
        ("toolu_u3_r_a-b", Some("a-b")),
        ("toolu_x_-xc3-xa9", Some("é")),
        ("call_abc", None),
    ] {
        assert_eq!(tool_id::decode(client).as_deref(), upstream, "{client}");
    }
    assert!(tool_id::is_minted("call_0123456789abcdefABCDEFGH"));
    assert!(!tool_id::is_minted("call_a"));
}

#[test]
fn of_another_server_is_asked_what_clients_need_and_no_more() {
    let rules = Rules { foreign_blocks: true, ..Rules::default() };
    let wire = concat!(
        r#"{"type":"message_start","more":1,"message":{"id":"1","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":9,"output_tokens":0}}}"#,
        "\n",
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"call_1","name":"w","input":{}}}"#,
        "\n",
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":""}}"#,
        "\n",
        r#"{"type":"content_block_stop","index":0}"#,
        "\n",
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"server_tool_use","id":"1","name":"s","input":{}}}"#,
        "\n",
        r#"{"type":"content_block_stop","index":1}"#,
        "\n",
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":5}}"#,
        "\n",
        r#"{"type":"message_stop"}"#,
    );
    check(&sample(wire), rules).unwrap();
    assert!(check(&sample(wire), Rules::default()).is_err());
    for (old, new) in [
        (r#""input_tokens":9,"#, ""),
        (r#""model":"m""#, r#""model":"""#),
        (r#""content":[]"#, r#""content":[1]"#),
        (r#""id":"call_1""#, r#""id":"""#),
        (r#""name":"w""#, r#""name":"""#),
        (r#""partial_json":"""#, r#""partial_json":"[]""#),
        (r#""type":"input_json_delta""#, r#""type":"text_delta""#),
        (r#""type":"server_tool_use""#, r#""kind":"server_tool_use""#),
        (r#""index":1,"content_block""#, r#""index":2,"content_block""#),
        (r#""stop_reason":"tool_use""#, r#""stop_reason":"end_turn""#),
        (r#""stop_reason":"tool_use""#, r#""stop_reason":null"#),
        (r#","usage":{"output_tokens":5}"#, ""),
    ] {
        assert!(wire.contains(old), "{old}");
        assert!(check(&sample(&wire.replacen(old, new, 1)), rules).is_err(), "{new}");
    }
}
