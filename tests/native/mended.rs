//! Arguments that a client would refuse and can do without, from an upstream that speaks Messages.

use super::*;

const TOOLS: &str = r#"[{"name":"w","input_schema":{"type":"object","properties":{
    "path":{"type":"string"},"limit":{"type":"integer","minimum":1,"default":9},"note":{"type":"string"}},"required":["path"]}}]"#;

/// Returns the answer that a client with this tool gets for an upstream answer in these pieces.
fn answer<'a>(
    config: &Arc<Config>,
    stream: bool,
    content_type: &str,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Answer {
    let tools: Value = serde_json::from_str(TOOLS).unwrap();
    let body = json!({
        "model": "claude", "max_tokens": 9, "stream": stream, "tools": tools,
        "messages": [{"role": "user", "content": "hi"}],
    });
    let request = drive::request(config, "/v1/messages", &[], body.to_string().as_bytes());
    let (exchange, _) = request.unwrap_or_else(|_| panic!("it is refused"));
    let headers = drive::headers(&[("content-type", content_type)]);
    drive::respond(exchange, 200, &headers, pieces, End::Complete)
}

fn mended_count(answer: &Answer) -> u32 {
    let warnings = answer.report.warnings.iter();
    warnings.filter(|it| it.text() == "tool_argument_mended:w").map(|it| it.count).sum()
}

/// The input that a client gets for this stream, however it is cut; as a stream and as a message.
#[track_caller]
fn input_of(sse: &str, mended: u32) -> Value {
    let kind = "text/event-stream";
    let whole = answer(&config(), true, kind, [sse.as_bytes()]);
    for size in [1, 2, 7, 64] {
        let cut = answer(&config(), true, kind, sse.as_bytes().chunks(size));
        assert_eq!(cut.body, whole.body, "in pieces of {size}");
    }
    assert_eq!(mended_count(&whole), mended);
    let text = String::from_utf8(whole.body).unwrap();
    let message = message_in(&text).unwrap_or_else(|wrong| panic!("{wrong}\n{text}"));
    let folded = answer(&config(), false, kind, [sse.as_bytes()]);
    assert_eq!(serde_json::from_slice::<Value>(&folded.body).unwrap(), message);
    message["content"][0]["input"].clone()
}

#[test]
fn deltas_are_mended_while_they_pass() {
    for deltas in [
        vec![r#"{"path":"","limit":"","note":null}"#],
        vec![r#"{"path":"""#, r#","li"#, r#"mit":0"#, r#" , "note":"#, "null", "}"],
        vec!["", r#"{"limit":0,"path":""#, r#"","note":nu"#, "ll", "}"],
    ] {
        let mut events = vec![start(), open_call(0, "call_1", &json!({}))];
        events.extend(deltas.iter().map(|delta| input(0, delta)));
        events.extend([stop(0), ending("tool_use"), end()]);
        assert_eq!(input_of(&sse(&events), 2), json!({"path": ""}), "{deltas:?}");
    }
}

#[test]
fn an_input_in_the_start_of_its_block_is_mended() {
    let call = open_call(0, "call_1", &json!({"path": "a", "limit": null, "note": ""}));
    let events = [start(), call, stop(0), ending("tool_use"), end()];
    assert_eq!(input_of(&sse(&events), 1), json!({"path": "a", "note": ""}));
}

#[test]
fn deltas_without_anything_to_mend_pass_byte_for_byte() {
    let call = open_call(0, "call_1", &json!({}));
    let mut events = vec![start(), call];
    events.extend(["{\"path\":", "\"a", "b\"", "}"].map(|delta| input(0, delta)));
    events.extend([stop(0), ending("tool_use"), end()]);
    let sse = sse(&events);
    let answer = answer(&config(), true, "text/event-stream", [sse.as_bytes()]);
    let text = String::from_utf8(answer.body).unwrap();
    for event in events.iter().filter(|event| event["type"] == "content_block_delta") {
        assert!(text.contains(&format!("data: {event}\n")), "{event}: {text}");
    }
    let message = message_in(&text).unwrap();
    assert_eq!(message["content"][0]["input"], json!({"path": "ab"}));
}

#[test]
fn a_whole_message_is_mended_and_a_right_one_is_not_touched() {
    let body = |input: Value| {
        json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "kimi",
            "content": [{"type": "tool_use", "id": "call_1", "name": "w", "input": input}],
            "stop_reason": "tool_use", "stop_sequence": null,
            "usage": {"input_tokens": 3, "output_tokens": 4}, "vendor": [1],
        })
        .to_string()
    };
    let json = "application/json";
    let bad = body(json!({"path": "", "limit": 0, "note": "", "other": null}));
    let whole = answer(&config(), false, json, [bad.as_bytes()]);
    let message: Value = serde_json::from_slice(&whole.body).unwrap();
    assert_eq!(message["content"][0]["input"], json!({"path": "", "note": "", "other": null}));
    assert_eq!(mended_count(&whole), 1);
    let streamed = answer(&config(), true, json, [bad.as_bytes()]);
    let text = String::from_utf8(streamed.body).unwrap();
    assert_eq!(message_in(&text).unwrap()["content"], message["content"]);

    let right = body(json!({"path": "", "limit": 3}));
    assert_eq!(answer(&config(), false, json, [right.as_bytes()]).body, right.as_bytes());
    let pass = config_with(None, r#","tool_arguments":"pass""#);
    assert_eq!(answer(&pass, false, json, [bad.as_bytes()]).body, bad.as_bytes());
}
