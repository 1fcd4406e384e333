//! Answers whose content stands in other shapes, places and under other names.

use super::*;

/// Tests one answer, as a stream of one delta and as a whole body.
#[track_caller]
fn both(delta: &Value, expected: &str) {
    let chunk = |key: &str| json!({"choices": [{key: delta, "finish_reason": "stop"}]});
    case().gives(&done(&[chunk("delta")]), expected);
    for stream in [true, false] {
        let whole = case().whole(stream, &chunk("message").to_string());
        assert_eq!(show(&whole), expected, "whole: {delta}");
    }
}

#[test]
fn the_input_of_a_call_is_read_under_other_names() {
    let input = json!({"city": "Paris"});
    for name in ["arguments", "args", "arguments_json", "parameters", "input"] {
        for input in [input.clone(), json!(input.to_string())] {
            for call in
                [json!({"name": "w", name: input}), json!({"function": {"name": "w", name: input}})]
            {
                let expected = "tool_use minted w {\"city\":\"Paris\"}; tool_use";
                both(&json!({"tool_calls": [call]}), expected);
            }
        }
    }
}

#[test]
fn tokens_may_come_without_their_quotes() {
    let tokens = [json!("line "), json!(7), json!(": $"), json!(0.005), json!(" is "), json!(true)];
    let chunks = tokens.map(|token| json!({"content": token}));
    case().gives(&done(&chunks), "text \"line 7: $0.005 is true\"; end_turn");
    both(&json!({"content": 42}), "text \"42\"; end_turn");
    // What stands for nothing.
    both(&json!({"content": false, "reasoning": "Hm"}), "thinking \"Hm\"; end_turn");
    both(&json!({"content": "Hi", "refusal": 0}), "text \"Hi\"; end_turn");
    let typed = json!({"content": "Hi", "reasoning_details": [{"type": "thinking", "text": "Hm"}]});
    both(&typed, "thinking \"Hm\", text \"Hi\"; end_turn");
    both(&json!({"content": "Hi", "reasoning": 42}), "thinking \"42\", text \"Hi\"; end_turn");
}

#[test]
fn reasoning_may_be_a_list_of_texts_or_an_object() {
    for name in ["reasoning", "reasoning_content", "reasoning_text", "thinking"] {
        for texts in [
            json!([{"type": "text", "text": "Hm"}, {"type": "text", "text": "m."}]),
            json!(["Hm", "m."]),
            json!([{"text": "Hmm."}]),
            json!({"text": "Hmm."}),
        ] {
            both(
                &json!({"content": "Hi", name: texts}),
                "thinking \"Hmm.\", text \"Hi\"; end_turn",
            );
        }
    }
    for delta in [
        json!({"thinking_blocks": [{"type": "thinking", "thinking": "Hmm.", "signature": "s"}]}),
        json!({"reasoning_details": "Hmm."}),
        json!({"content": [{"type": "thinking", "text": "Hmm."}]}),
        json!({"content": [{"type": "thinking", "content": "Hmm."}]}),
        // What comes twice counts once.
        json!({"reasoning_content": "Hmm.", "thinking_blocks": [{"thinking": "Hmm."}]}),
        json!({"reasoning": ["Hmm."], "thinking": ["Hmm."]}),
    ] {
        both(&delta, "thinking \"Hmm.\"; end_turn");
    }
    let unknown = json!({"content": "Hi", "thinking_blocks": [{"thinking": "", "signature": "s"}]});
    both(&unknown, "text \"Hi\"; end_turn");
    // In a stream as in one message.
    let chunk = |text: &str| json!({"reasoning": [{"text": text}]});
    case().gives(&done(&[chunk("Hm"), chunk("m.")]), "thinking \"Hmm.\"; end_turn");
}

#[test]
fn what_is_in_no_shape_that_is_read_is_counted() {
    for lost in [
        json!({"refusal": {"reason": "no"}}),
        json!({"reasoning": {"a": "Hmm."}}),
        json!({"content": [{"type": "text", "text": 5}]}),
        json!({"tool_calls": "[{\"name\":\"w\"}]"}),
        json!({"tool_calls": [[{"name": "w"}]]}),
        json!({"tool_calls": ["w"]}),
        json!({"tool_call": {"name": "w"}}),
        json!({"function_call": "w"}),
        json!({"function_call": [{"name": "w"}]}),
    ] {
        let mut delta = lost.clone();
        both(&delta, "; end_turn !content_dropped");
        if lost.get("content").is_none() {
            delta["content"] = json!("Hi");
            both(&delta, "text \"Hi\"; end_turn !content_dropped");
        }
    }
    for nothing in [
        json!({"refusal": {}, "reasoning": [], "thinking": {}, "thinking_blocks": []}),
        json!({"tool_calls": "", "function_call": []}),
        json!({"tool_calls": [null, {}], "tool_call": null}),
    ] {
        let mut delta = nothing.clone();
        delta["content"] = json!("Hi");
        both(&delta, "text \"Hi\"; end_turn");
    }
    for name in ["tool_calls", "tool_call", "function_call"] {
        let beside = json!({"choices": [{"message": {"content": "Hi"}, name: [{"name": "w"}]}]});
        let whole = case().whole(false, &beside.to_string());
        assert_eq!(show(&whole), "text \"Hi\"; end_turn !content_dropped", "{name}");
    }
}

#[test]
fn a_text_beside_an_empty_message_is_the_answer() {
    let body = json!({"choices": [{"message": {"content": ""}, "text": "Hi"}]}).to_string();
    for stream in [true, false] {
        assert_eq!(show(&case().whole(stream, &body)), "text \"Hi\"; end_turn");
    }
}

#[test]
fn the_result_of_a_tool_that_the_server_ran_is_not_what_the_model_said() {
    let c = case();
    let result = json!({"role": "tool", "tool_call_id": "x1", "content": "RESULT"});
    let after = json!({"content": "RESULT", "tool_call_id": "x1", "role": "tool"});
    for result in [&result, &after] {
        let said = [
            json!({"role": "assistant", "content": "I look."}),
            result.clone(),
            result.clone(),
            json!({"role": "assistant", "content": " Found."}),
            json!({"role": "tool", "content": ""}),
            json!({"finish": "stop"}),
        ];
        c.gives(&done(&said), "text \"I look. Found.\"; end_turn !content_dropped");
    }
    // A role holds until another one comes.
    let said = [
        json!({"role": "assistant", "content": "I look."}),
        json!({"role": "tool", "content": "RESULT "}),
        json!({"role": "", "content": "and "}),
        json!({"content": "more "}),
        json!({"content": "of it"}),
        json!({"role": "assistant", "content": " Found."}),
        json!({"content": " It."}),
        json!({"finish": "stop"}),
    ];
    c.gives(&done(&said), "text \"I look. Found. It.\"; end_turn !content_dropped");
    // A call with that role is a call.
    let mut odd = call(0, "call_a", "w", "{}");
    odd["role"] = json!("tool");
    c.gives(&done(&[odd]), "tool_use a w {}; tool_use");
}

#[test]
fn messages_in_place_of_a_message_are_what_the_model_said() {
    let call = |id: &str| json!([{"id": id, "function": {"name": "w", "arguments": "{}"}}]);
    let looked = json!({"role": "assistant", "content": "I look.", "tool_calls": call("x1")});
    let result = json!({"role": "tool", "tool_call_id": "x1", "content": "RESULT"});
    let found = json!({"role": "assistant", "content": " Found."});
    let thinking = json!({"type": "thinking", "thinking": [{"type": "text", "text": "A"}]});
    let thinks = json!({"content": [thinking, {"type": "text", "text": "I look."}]});
    let asks = json!({"role": "assistant", "content": "", "tool_calls": call("call_a")});
    for (messages, expected) in [
        (json!([looked, result, found]), "text \"I look. Found.\"; end_turn !content_dropped"),
        (
            json!([looked, result, asks]),
            "text \"I look.\", tool_use a w {}; tool_use !content_dropped",
        ),
        (json!([found]), "text \" Found.\"; end_turn"),
        // Without a role it is the model's, too.
        (
            json!([{"role": null, "content": "I look."}, result, {"role": "", "content": " Found."}]),
            "text \"I look. Found.\"; end_turn !content_dropped",
        ),
        (
            json!([thinks, result, {"content": [{"type": "text", "text": "Hi"}]}]),
            "thinking \"A\", text \"I look.Hi\"; end_turn !content_dropped",
        ),
    ] {
        let choice = json!({"index": 0, "finish_reason": "stop", "messages": messages});
        let body = json!({"choices": [choice]}).to_string();
        for stream in [true, false] {
            assert_eq!(show(&case().whole(stream, &body)), expected, "{messages}");
        }
        // A message says all of it itself.
        let mut choice = choice;
        choice["message"] = json!({"role": "assistant", "content": "Hi"});
        let body = json!({"choices": [choice]}).to_string();
        assert_eq!(show(&case().whole(false, &body)), "text \"Hi\"; end_turn");
    }
}
