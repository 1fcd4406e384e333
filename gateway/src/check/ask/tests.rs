//! Tests of `ask.rs`.

use super::*;

fn read(body: &str) -> ModelReply {
    ModelReply::of(&ReceivedResponse {
        status: 200,
        body: body.to_owned(),
        ..ReceivedResponse::default()
    })
}

#[test]
fn a_stream_and_a_whole_answer_are_read_alike() {
    let whole = read(
        r#"{"type":"message","content":[{"type":"thinking","thinking":"Hm"},{"type":"text","text":"Hi"},
            {"type":"tool_use","id":"t","name":"get_weather","input":{"city":"Paris"}}],"stop_reason":"tool_use"}"#,
    );
    let events = [
        r#"{"type":"message_start","message":{"content":[]}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm"}}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Hi"}}"#,
        r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t","name":"get_weather","input":{}}}"#,
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"city\":"}}"#,
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"\"Paris\"}"}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#,
    ];
    let stream: String = events.map(|event| format!("event: x\ndata: {event}\n\n")).concat();
    let mut stream = read(&stream);
    assert_eq!(stream.pieces, 2);
    stream.pieces = 0;
    assert!(stream.calls.iter().all(Call::is_right));
    let input = whole.calls.first().unwrap().input.clone();
    assert_eq!(stream.calls.first().unwrap().input.replace(' ', ""), input);
    assert_eq!(whole, stream);
}

#[test]
fn an_answer_that_is_none_says_why() {
    let error = |answer: ModelReply| answer.error.unwrap();
    let received =
        r#"{"type":"error","error":{"type":"api_error","message":"No."},"request_id":"r"}"#;
    assert_eq!(error(read(received)), "No.");
    assert_eq!(error(read(&format!("event: error\ndata: {received}\n\n"))), "No.");
    assert_eq!(error(read("")), "the answer has no end");
    assert_eq!(error(ModelReply::of(&ReceivedResponse::default())), "no answer came in time");
}

#[test]
fn a_call_must_have_the_tools_name_and_an_input_that_fits() {
    let call = |name: &str, input: &str| {
        Call { id: "t".to_owned(), name: name.to_owned(), input: input.to_owned() }.is_right()
    };
    assert!(call(TOOL, r#"{"city":"Paris"}"#));
    for input in ["", "{}", r#"{"city":7}"#, r#"{"city":"Paris""#, "[]"] {
        assert!(!call(TOOL, input), "{input}");
    }
    assert!(!call("weather", r#"{"city":"Paris"}"#));
}

#[test]
fn what_is_asked_is_json() {
    let call = Call { id: "a\"b".to_owned(), name: TOOL.to_owned(), input: "{}".to_owned() };
    let model = "a\"model";
    for body in [
        answer(model),
        stream(model),
        super::call(model, true),
        result(model, &call),
        reasoning(model),
        image(model),
        count(model),
    ] {
        let body: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert_eq!(body["model"], model);
    }
}
