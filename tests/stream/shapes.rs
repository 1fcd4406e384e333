//! Answers whose content stands in other shapes, places and under other names.

use super::*;

/// The same answer, as a stream of one delta and as a whole body.
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
