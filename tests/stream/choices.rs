//! Several choices: parts of one answer, answers of their own, or chunks that are counted.

use super::*;

/// A chunk with these choices, by their numbers.
fn chunk(choices: &[(u64, Value, Option<&str>)]) -> Value {
    let choice = |(index, delta, finish): &(u64, Value, Option<&str>)| json!({"index": index, "delta": delta, "finish_reason": finish});
    json!({"choices": choices.iter().map(choice).collect::<Vec<_>>()})
}

fn one(index: u64, delta: Value) -> Value {
    chunk(&[(index, delta, None)])
}

fn over(index: u64, word: &str) -> Value {
    chunk(&[(index, json!({}), Some(word))])
}

fn whole_of(choices: &[(Value, &str)]) -> String {
    let choice = |(index, (message, finish)): (usize, &(Value, &str))| json!({"index": index, "message": message, "finish_reason": finish});
    json!({"choices": choices.iter().enumerate().map(choice).collect::<Vec<_>>()}).to_string()
}

#[track_caller]
fn gives_whole(choices: &[(Value, &str)], expected: &str) {
    for stream in [false, true] {
        assert_eq!(show(&case().whole(stream, &whole_of(choices))), expected, "{choices:?}");
    }
}

#[test]
fn the_text_of_another_answer_is_not_mixed_into_the_first() {
    let role = || json!({"role": "assistant", "content": ""});
    let expected = "text \"Hello\"; end_turn !choice_dropped";
    for chunks in [
        vec![one(0, text("Hello")), one(1, text("ALT")), over(0, "stop"), over(1, "stop")],
        vec![one(0, text("Hello")), one(1, text("ALT")), over(0, "stop")],
        vec![one(0, text("Hello")), one(1, text("ALT"))],
        vec![one(0, text("Hel")), one(1, text("AL")), one(0, text("lo")), one(1, text("T"))],
        vec![one(0, role()), one(1, role()), one(0, text("Hello")), one(1, text("ALT"))],
        vec![one(0, role()), one(0, text("Hello")), one(1, role()), one(1, text("ALT"))],
        vec![one(0, text("Hel")), one(0, text("lo")), one(1, text("ALT")), over(0, "stop")],
        // One after the other.
        vec![
            chunk(&[(0, text("Hello"), Some("stop"))]),
            chunk(&[(1, text("ALT"), Some("length"))]),
        ],
        vec![one(0, text("Hello")), over(0, "stop"), one(1, text("ALT")), over(1, "length")],
        // Side by side.
        vec![
            chunk(&[(0, text("Hel"), None), (1, text("AL"), None)]),
            chunk(&[(0, text("lo"), Some("stop")), (1, text("T"), Some("length"))]),
        ],
        vec![
            one(0, text("Hello")),
            one(1, text("ALT")),
            chunk(&[(0, json!({}), Some("stop")), (1, json!({}), Some("length"))]),
        ],
    ] {
        case().gives(&done(&chunks), expected);
    }
    let message = |content: &str| json!({"role": "assistant", "content": content});
    gives_whole(&[(message("Hello"), "stop"), (message("ALT"), "length")], expected);
    gives_whole(&[(message(""), "stop"), (message("ALT"), "stop")], "text \"ALT\"; end_turn");
}

#[test]
fn neither_calls_nor_thoughts_nor_the_end_of_another_answer_count() {
    let expected = "thinking \"Hm.\", text \"Hello\"; end_turn !choice_dropped !choice_dropped";
    let thought = |text: &str| json!({"reasoning_content": text});
    let first = [one(0, json!({"role": "assistant"})), one(0, thought("Hm."))];
    let other = [one(1, thought("Oh.")), one(1, text("ALT")), one(1, call(0, "b", "t", "{}"))];
    let chunks = [
        &first[..],
        &[one(0, text("Hello"))],
        &other,
        &[over(0, "stop")],
        &[over(1, "tool_calls")],
    ]
    .concat();
    case().gives(&done(&chunks), &expected.replacen(" !choice_dropped", "", 1));
    let both = |thought: &str, content: &str, calls: Value| json!({"reasoning_content": thought, "content": content, "tool_calls": calls});
    let calls = call(0, "b", "t", "{}")["tool_calls"].clone();
    gives_whole(
        &[(both("Hm.", "Hello", json!([])), "stop"), (both("Oh.", "ALT", calls), "tool_calls")],
        &expected.replacen(" !choice_dropped", "", 1),
    );
}

#[test]
fn parts_of_one_answer_are_joined_whatever_their_choices() {
    let called = "text \"Hi\", tool_use r_a w {\"a\":1}; tool_use";
    let w = || call(0, "a", "w", "{\"a\":1}");
    for chunks in [
        vec![one(0, text("Hi")), one(1, w()), over(0, "stop"), over(1, "tool_calls")],
        vec![one(0, text("H")), one(0, text("i")), one(1, w()), over(1, "tool_calls")],
        vec![chunk(&[(0, text("Hi"), Some("tool_calls")), (1, w(), Some("tool_calls"))])],
        vec![one(0, w()), one(1, text("Hi")), over(1, "stop")],
    ] {
        let expected = match chunks[0]["choices"][0]["delta"].get("content") {
            Some(_) => called.to_owned(),
            None => "tool_use r_a w {\"a\":1}, text \"Hi\"; tool_use".to_owned(),
        };
        case().gives(&done(&chunks), &expected);
    }
    let thought = json!({"reasoning_content": "Hm."});
    let chunks = [one(0, thought), one(1, text("Hi")), one(2, w()), over(0, "tool_calls")];
    case().gives(&done(&chunks), &format!("thinking \"Hm.\", {called}"));
    let calls = || json!({"content": null, "tool_calls": w()["tool_calls"]});
    gives_whole(&[(text("Hi"), "tool_calls"), (calls(), "tool_calls")], called);
    gives_whole(&[(text("Hi"), "stop"), (calls(), "stop")], called);
    gives_whole(
        &[(text(" "), "stop"), (text("Hi"), "stop"), (calls(), "tool_calls")],
        &called.replace("\"Hi\"", "\" Hi\""),
    );
    // The first says that it calls, and has no call: the rest of it is in the second.
    let mut both = calls();
    both["content"] = json!("there");
    gives_whole(
        &[(text("Hi "), "tool_calls"), (both, "tool_calls")],
        &called.replace("Hi", "Hi there"),
    );
}

#[test]
fn numbers_that_count_chunks_tear_no_answer_apart() {
    let words = ["Hel", "lo", " to", " you", ", my", " friend", "."];
    let said = words.concat();
    for first in [0, 1, 7] {
        for count in 1..=words.len() {
            let mut chunks: Vec<Value> =
                (first..).zip(&words[..count]).map(|(at, word)| one(at, text(word))).collect();
            let said = words[..count].concat();
            chunks.push(over(first + count as u64, "stop"));
            case().gives(&done(&chunks), &format!("text {}; end_turn", json!(said)));
            // The last word and the reason in one.
            chunks.pop();
            chunks.last_mut().unwrap()["choices"][0]["finish_reason"] = json!("length");
            case().gives(&done(&chunks), &format!("text {}; max_tokens", json!(said)));
        }
    }
    // With a role and reasoning before it.
    let mut chunks = vec![
        one(0, json!({"role": "assistant"})),
        one(1, json!({"reasoning": "Hm"})),
        one(2, json!({"reasoning": "."})),
    ];
    chunks.extend((3..).zip(words).map(|(at, word)| one(at, text(word))));
    case().gives(&done(&chunks), &format!("thinking \"Hm.\", text {}; end_turn", json!(said)));
}

#[test]
fn the_texts_of_another_answer_are_not_kept() {
    let long = "y".repeat(600);
    let mut chunks = vec![one(0, text("Hello")), one(0, json!({}))];
    chunks.extend((0..50).map(|_| one(1, text(&long))));
    chunks.push(over(0, "stop"));
    let small = case().with(|_, settings| settings.waiting_bytes_max = 3000);
    let outcome = small.run(true, [done(&chunks).as_bytes()]);
    assert_eq!(show(&outcome), "text \"Hello\"; end_turn !choice_dropped");
}
