//! Framing of streams: input event by event, and output byte by byte.

use super::*;

#[test]
fn the_events_are_exactly_these() {
    let sse = done(&[
        text("Hi"),
        call(0, "call_a", "w", "{\"a\":"),
        call(0, "", "", "1}"),
        json!({"finish": "tool_calls"}),
        json!({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5}}),
    ]);
    let out = case().stream(&sse).out;
    let id = Ids::new(7).message();
    let expected = format!(
        r#"event: message_start
data: {{"type":"message_start","message":{{"id":"{id}","type":"message","role":"assistant","model":"claude","content":[],"stop_reason":null,"stop_sequence":null,"stop_details":null,"container":null,"usage":{{"input_tokens":7,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0,"service_tier":null}}}}}}

event: ping
data: {{"type":"ping"}}

event: content_block_start
data: {{"type":"content_block_start","index":0,"content_block":{{"type":"text","text":""}}}}

event: content_block_delta
data: {{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"Hi"}}}}

event: content_block_stop
data: {{"type":"content_block_stop","index":0}}

event: content_block_start
data: {{"type":"content_block_start","index":1,"content_block":{{"type":"tool_use","id":"toolu_a","name":"w","input":{{}},"caller":{{"type":"direct"}}}}}}

event: content_block_delta
data: {{"type":"content_block_delta","index":1,"delta":{{"type":"input_json_delta","partial_json":"{{\"a\":"}}}}

event: content_block_delta
data: {{"type":"content_block_delta","index":1,"delta":{{"type":"input_json_delta","partial_json":"1}}"}}}}

event: content_block_stop
data: {{"type":"content_block_stop","index":1}}

event: message_delta
data: {{"type":"message_delta","delta":{{"stop_reason":"tool_use","stop_sequence":null,"stop_details":null,"container":null}},"usage":{{"input_tokens":10,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":5,"output_tokens_details":null}}}}

event: message_stop
data: {{"type":"message_stop"}}

"#
    );
    assert_eq!(out, expected);
}

#[test]
fn a_message_has_every_field() {
    let body = json!({"id": "c1", "service_tier": "default", "choices": [{"message": {"content": "Hi",
        "tool_calls": [{"id": "call_a", "function": {"name": "w", "arguments": "{\"n\": 12345678901234567890, \"f\": 1.10}"}}]},
        "finish_reason": "stop"}], "usage": {"prompt_tokens": 10, "completion_tokens": 5,
        "completion_tokens_details": {"reasoning_tokens": 2}}});
    let out = case().whole(false, &body.to_string()).out;
    let id = Ids::new(7).message();
    assert_eq!(
        out,
        format!(
            r#"{{"id":"{id}","type":"message","role":"assistant","model":"claude","content":[{{"type":"text","text":"Hi"}},{{"type":"tool_use","id":"toolu_a","name":"w","caller":{{"type":"direct"}},"input":{{"n": 12345678901234567890, "f": 1.10}}}}],"stop_reason":"tool_use","stop_sequence":null,"stop_details":null,"container":null,"diagnostics":null,"usage":{{"input_tokens":10,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"cache_creation":null,"output_tokens":5,"output_tokens_details":{{"thinking_tokens":2}},"server_tool_use":null,"service_tier":"standard","speed":null,"inference_geo":null}}}}"#
        )
    );
}

#[test]
fn an_answer_ends_with_done_or_after_a_finish_reason() {
    let c = case();
    c.gives(&done(&[text("Hi")]), "text \"Hi\"; end_turn");
    c.gives(&sse(&[text("Hi"), json!({"finish": "stop"})], ""), "text \"Hi\"; end_turn");
    c.gives(
        &sse(&[text("Hi"), json!({"finish": "stop"})], "data: [DONE]"),
        "text \"Hi\"; end_turn",
    );
    c.gives(&sse(&[text("Hi")], ""), "502 api_error");
    c.gives(&sse(&[call(0, "a", "w", "{\"x\"")], ""), "502 api_error");
    c.gives("", "502 api_error");
    c.gives("data: [DONE]\n\n", "502 api_error");
    c.gives(": only a comment\n\n", "502 api_error");
    c.gives(&done(&[json!({"choices": [], "usage": {"prompt_tokens": 1}})]), "502 api_error");
    // What comes after the end is ignored, what comes after the finish reason is not.
    let late = sse(&[text("H"), json!({"finish": "stop"}), text("i")], "data: [DONE]\n\n{oops\n\n");
    c.gives(&late, "text \"Hi\"; end_turn");
}

#[test]
fn signs_of_life_are_no_content() {
    let stream = "data: null\n\ndata: {\"type\":\"ping\"}\n\ndata: []\n\n: x\n\n".to_owned()
        + &done(&[json!({}), json!({"role": "assistant", "content": ""}), text("Hi")]);
    case().gives(&stream, "text \"Hi\"; end_turn");
}

#[test]
fn an_error_is_told_by_its_own_code_and_closes_nothing() {
    let c = case();
    for (event, expected) in [
        (r#"{"error":{"message":"slow down","code":429}}"#, "429 rate_limit_error"),
        (r#"{"error":"try later"}"#, "502 api_error"),
        (r#"[{"error":{"code":503,"message":"x"}}]"#, "529 overloaded_error"),
        (r#"{"object":"error","message":"bad","code":400}"#, "400 invalid_request_error"),
        (r#"{"choices":null,"base_resp":{"status_code":1008,"status_msg":"no"}}"#, "502 api_error"),
        (r#"{"choices":[{"delta":{},"finish_reason":"error"}]}"#, "502 api_error"),
        (
            r#"{"choices":[{"delta":{},"finish_reason":"insufficient_system_resource"}]}"#,
            "529 overloaded_error",
        ),
        (
            r#"{"choices":[{"error":{"code":429,"message":"x"},"finish_reason":"error"}]}"#,
            "429 rate_limit_error",
        ),
        ("{not json", "502 api_error"),
        ("nonsense", "502 api_error"),
    ] {
        let start = sse(&[text("Par")], "");
        let stream = format!("{start}data: {event}\n\ndata: [DONE]\n\n");
        let outcome = c.gives(&stream, expected);
        assert!(!outcome.out.contains("content_block_stop"), "{event}");
        // Before any content, nothing at all was said.
        let first = c.stream(&format!("data: {event}\n\n"));
        assert!(!first.out.contains("content_block_start"), "{event}");
    }
    let named = sse(&[text("Par")], "event: error\ndata: it broke\n\n");
    let outcome = c.gives(&named, "502 api_error");
    assert!(outcome.error.unwrap().message.contains("it broke"));
    // An `error` without content is none.
    c.gives(
        "data: {\"error\":null,\"choices\":[{\"delta\":{\"content\":\"a\"},\"error\":{}}]}\n\ndata: [DONE]\n\n",
        "text \"a\"; end_turn",
    );
}

#[test]
fn limits_hold() {
    let c = case().with(|_, settings| {
        settings.waiting_bytes_max = 3000;
        settings.event_bytes_max = 2000;
        settings.response_bytes_max = 5000;
    });
    let big = "x".repeat(900);
    let mut chunks = vec![call(0, "a", "w", "{\"a\":\"")];
    chunks.extend((1..6).map(|index| call(index, &format!("b{index}"), "t", &format!("\"{big}"))));
    c.gives(&done(&chunks), "502 api_error");
    c.gives(&done(&[text(&"y".repeat(3000))]), "502 api_error");
    // Text that has been sent does not wait; a message has its own limit.
    let long: Vec<Value> = (0..9).map(|_| text(&big)).collect();
    assert_eq!(c.stream(&done(&long)).error, None);
    assert!(c.run(false, [done(&long).as_bytes()]).error.is_some());
    let many: Vec<Value> = (0..2000).map(|index| call(index, "", "w", "{}")).collect();
    assert!(case().run(true, [done(&many).as_bytes()]).error.is_some());
}

#[test]
fn text_that_was_sent_behind_reasoning_of_its_chunk_does_not_wait() {
    let c = case().with(|_, settings| settings.waiting_bytes_max = 6000);
    let both = json!({"choices": [{"delta": {"reasoning": "r", "content": "y".repeat(600)}}]});
    assert_eq!(c.run(true, [done(&vec![both; 9]).as_bytes()]).error, None);
}

#[test]
fn white_space_that_may_yet_begin_reasoning_waits() {
    let c = case().with(|_, settings| settings.waiting_bytes_max = 3000);
    let blank = json!({"choices": [{"delta": {"reasoning_content": " ".repeat(400)}}]});
    let error = |count| c.run(true, [done(&vec![blank.clone(); count]).as_bytes()]).error;
    assert_eq!(error(5), None);
    assert!(error(9).unwrap().message.contains("too large"));
}

#[test]
fn white_space_that_was_left_out_does_not_wait() {
    let c = case().with(|_, settings| settings.waiting_bytes_max = 6000);
    let id = |index: usize| format!("call_{index}");
    let chunks = (0..10)
        .flat_map(|index| [text(&" ".repeat(600)), call(index, &id(index as usize), "w", "{}")]);
    assert_eq!(c.stream(&done(&chunks.collect::<Vec<_>>())).error, None);
}

#[test]
fn what_stands_between_the_objects_of_an_event_costs_none_of_them() {
    let chunk = |content: &str, more: &str| {
        format!("{{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{content}\"}}{more}}}]}}")
    };
    let (a, b) = (chunk("a", ""), chunk("b", ",\"finish_reason\":\"stop\""));
    let odd = chunk("a", ",\"logprobs\":{\"x\":NaN,\"y\":[-Infinity]}");
    for (data, warnings) in [
        (format!("{odd}{b}"), &["upstream_json_repaired"] as &[_]),
        (format!("{odd} {b}[DONE]"), &["upstream_json_repaired"]),
        (format!("{odd}}}{b}"), &["upstream_json_repaired", "upstream_event_dropped"]),
        (format!("{a}}} {b}"), &["upstream_event_dropped"]),
        (format!("INFO: {a}<br>{b}<br>"), &["upstream_event_dropped"]),
        (format!("{a};{b};[DONE]"), &["upstream_event_dropped"]),
    ] {
        let warnings: String = warnings.iter().map(|code| format!(" !{code}")).collect();
        let expected = format!("text \"ab\"; end_turn{warnings}");
        case().gives(&format!("data: {data}\n\n"), &expected);
    }
    // A whole body is read in the same way.
    for stream in [true, false] {
        let body = format!("{odd}\n{b}\n");
        let repaired = "end_turn !upstream_json_repaired";
        assert_eq!(show(&case().whole(stream, &body)), format!("text \"ab\"; {repaired}"));
        let body = "{\"choices\":[{\"message\":{\"content\":\"a\"},\"p\":NaN,\"finish_reason\":\"stop\"}]}\n</html>";
        let expected = format!("text \"a\"; {repaired} !upstream_event_dropped");
        assert_eq!(show(&case().whole(stream, body)), expected);
    }
}

#[test]
fn what_cannot_be_read_is_an_error_and_not_silence() {
    let a = json!({"choices": [{"index": 0, "delta": {"content": "a"}}]}).to_string();
    for data in [
        // A piece of the answer may have been in it.
        format!("{a}{{\"choices\":[{{\"delta\":{{\"content\":\"b"),
        format!("{{\"choices\":oops}}{a}"),
        // Text with something in it that looks like a part of an answer.
        "Internal Server Error {} [DONE]".to_owned(),
        "oh \"no\" [DONE]".to_owned(),
        "the rest\"}}]}".to_owned(),
    ] {
        let outcome = case().stream(&format!("data: {data}\n\ndata: [DONE]\n\n"));
        let error = outcome.error.expect(&data);
        assert!(error.message.contains("invalid response"), "{data}: {}", error.message);
    }
    let said =
        case().stream("data: Error: {\"error\":{\"message\":\"it broke\",\"code\":500}}\n\n");
    assert!(said.error.unwrap().message.contains("it broke"));
}

#[test]
fn plain_text_in_an_event_of_another_name_is_dropped() {
    let (a, end) = (sse(&[text("a")], ""), done(&[]));
    for name in ["status", "info", "metadata", "done", "end", "close"] {
        let note = format!("event: {name}\ndata: thinking...\n\n");
        let expected = "text \"a\"; end_turn !upstream_event_dropped";
        case().gives(&format!("{a}{note}{end}"), expected);
        case().gives(&format!("{note}{a}{end}"), expected);
        case().gives(&format!("data: thinking...\nevent: {name}\n\n{a}{end}"), expected);
    }
    for name in ["message", "error", ""] {
        let note = format!("event: {name}\ndata: thinking...\n\n");
        assert!(case().stream(&format!("{a}{note}{end}")).error.is_some(), "{name}");
    }
    // JSON counts under any name, and what is cut off is missed.
    case().gives(&format!("event: chunk\n{a}{end}"), "text \"a\"; end_turn");
    assert!(case().stream(&format!("event: chunk\ndata: {{\"cho\n\n{end}")).error.is_some());
}

#[test]
fn json_that_was_repaired_is_counted_in_a_whole_body_as_in_an_event() {
    let body = "{\"choices\":[{\"message\":{\"content\":\"a\"},\"logprobs\":NaN}]}";
    let expected = "text \"a\"; end_turn !upstream_json_repaired";
    assert_eq!(show(&case().whole(false, body)), expected);
    assert_eq!(show(&case().whole(true, body)), expected);
}
