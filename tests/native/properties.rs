//! Properties of relayed Messages: right answers go through byte for byte, and whatever comes, the
//! grammar holds.

use creole::End;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

use super::*;

/// A JSON object with what JSON can hold.
fn object() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[ -~é漢🎉\n\"\\\\]{0,12}".prop_map(Value::from),
    ];
    let value = leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            proptest::collection::btree_map("[a-z{}]{1,4}", inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    });
    proptest::collection::btree_map("[a-z\"]{1,4}", value, 0..4)
        .prop_map(|map| Value::Object(map.into_iter().collect()))
}

#[derive(Clone, Debug)]
enum Block {
    Text(Vec<String>),
    Thinking(Vec<String>, String),
    /// The input, as it is cut.
    Call(Value, Vec<Index>),
    Server(Value),
}

fn pieces() -> impl Strategy<Value = Vec<String>> {
    proptest::collection::vec("[ -~é🎉\n]{1,8}", 1..4)
}

fn block() -> impl Strategy<Value = Block> {
    prop_oneof![
        pieces().prop_map(Block::Text),
        (pieces(), "[A-Za-z0-9+/]{8}")
            .prop_map(|(texts, signature)| Block::Thinking(texts, signature)),
        (object(), proptest::collection::vec(any::<Index>(), 0..5))
            .prop_map(|(input, cuts)| Block::Call(input, cuts)),
        object().prop_map(Block::Server),
    ]
}

fn parts(text: &str, cuts: &[Index]) -> Vec<String> {
    let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let mut at: Vec<usize> = cuts.iter().map(|cut| ends[cut.index(ends.len())]).collect();
    at.extend([0, text.len()]);
    at.sort_unstable();
    at.windows(2).map(|pair| text[pair[0]..pair[1]].to_owned()).collect()
}

/// The events of a right answer, in the form in which the API sends them.
fn events(blocks: &[Block]) -> Vec<Value> {
    let mut events = vec![start(), json!({"type": "ping"})];
    let mut calls = false;
    for (at, block) in blocks.iter().enumerate() {
        let index = at as u64;
        let delta =
            |delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
        match block {
            Block::Text(texts) => {
                events.push(open_text(index));
                events.extend(texts.iter().map(|said| text(index, said)));
            }
            Block::Thinking(texts, signature) => {
                let block = json!({"type": "thinking", "thinking": "", "signature": ""});
                events.push(open(index, &block));
                let said =
                    |text: &String| delta(json!({"type": "thinking_delta", "thinking": text}));
                events.extend(texts.iter().map(said));
                events.push(delta(json!({"type": "signature_delta", "signature": signature})));
            }
            Block::Call(said, cuts) => {
                calls = true;
                events.push(open_call(index, &format!("functions.w:{at}"), &json!({})));
                events.push(input(index, ""));
                let fragments = parts(&said.to_string(), cuts);
                events.extend(fragments.iter().map(|part| input(index, part)));
            }
            Block::Server(value) => {
                let block =
                    json!({"type": "web_fetch_tool_result", "tool_use_id": "x", "content": value});
                events.push(open(index, &block));
            }
        }
        events.push(stop(index));
    }
    events.extend([ending(if calls { "tool_use" } else { "end_turn" }), end()]);
    events
}

fn mutated(mut events: Vec<Value>, changes: &[(Index, u8)]) -> String {
    for (at, change) in changes {
        let at = at.index(events.len());
        match change % 7 {
            0 => drop(events.remove(at)),
            1 => events.insert(at, events[at].clone()),
            2 if events[at].get("index").is_some() => events[at]["index"] = (change / 7 % 3).into(),
            3 => {
                let other = usize::from(*change) % events.len();
                events.swap(at, other);
            }
            4 => events[at]["delta"] = Value::Null,
            5 => events[at]["content_block"]["input"] = json!({"a": change}),
            _ => events[at]["content_block"]["text"] = "ab".into(),
        }
        if events.is_empty() {
            break;
        }
    }
    sse(&events)
}

/// The message as a stream would show it: an input that is JSON and no object has no other form
/// there.
fn as_in_a_stream(mut message: Value) -> Value {
    for block in message["content"].as_array_mut().unwrap() {
        let text = block["input"]["INVALID_JSON"].as_str().map(str::to_owned);
        if let Some(value) = text.and_then(|text| serde_json::from_str(&text).ok()) {
            block["input"] = value;
        }
    }
    message
}

#[test]
fn an_input_that_is_no_object_is_shown_in_a_whole_message() {
    let value = json!({"id": "t", "content": [{"input": {"INVALID_JSON": "-4"}}, {"text": "x"}]});
    let shown = json!({"id": "t", "content": [{"input": -4}, {"text": "x"}]});
    assert_eq!(as_in_a_stream(value), shown);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_right_stream_is_passed_on_byte_for_byte(
        blocks in proptest::collection::vec(block(), 0..5), size in 1usize..200, padded: bool
    ) {
        let mut stream = sse(&events(&blocks));
        if padded {
            // The API hides the lengths of texts so.
            stream = stream.replace("}\n\n", "    }\n\n");
        }
        let kind = (200, "text/event-stream");
        let pieces = stream.as_bytes().chunks(size);
        let answer = answered(&config(), true, kind, pieces, End::Complete);
        prop_assert_eq!(String::from_utf8(answer.body).unwrap(), stream);
        let codes: Vec<_> = answer.report.warnings.iter().collect();
        prop_assert!(codes.is_empty(), "{:?}", codes);
    }

    #[test]
    fn a_stream_and_a_message_say_the_same(blocks in proptest::collection::vec(block(), 0..4)) {
        let stream = sse(&events(&blocks));
        let folded = message_in(&stream).unwrap();
        let kind = (200, "text/event-stream");
        let answer = answered(&config(), false, kind, [stream.as_bytes()], End::Complete);
        prop_assert_eq!(serde_json::from_slice::<Value>(&answer.body).unwrap(), folded);
    }

    #[test]
    fn whatever_comes_the_grammar_holds(
        blocks in proptest::collection::vec(block(), 0..4),
        changes in proptest::collection::vec((any::<Index>(), any::<u8>()), 1..6),
        size in 1usize..100,
    ) {
        let stream = mutated(events(&blocks), &changes);
        let kind = (200, "text/event-stream");
        let run = |pieces: Vec<&[u8]>| answered(&config(), true, kind, pieces, End::Complete);
        let whole = run(vec![stream.as_bytes()]);
        let cut = run(stream.as_bytes().chunks(size).collect());
        prop_assert_eq!(&cut.body, &whole.body);
        let text = String::from_utf8(whole.body).unwrap();
        match text.contains("event: error\n") {
            // Clients act on what came before it, too.
            true => {
                let folded = message_in(&text);
                prop_assert!(folded.is_ok(), "{:?}\n{}\n{}", folded, stream, text);
            }
            false if text.starts_with("{") => prop_assert!(text.contains("\"error\""), "{}", text),
            false => {
                let folded = message_in(&text);
                prop_assert!(folded.is_ok(), "{:?}\n{}\n{}", folded, stream, text);
                let answer = answered(&config(), false, kind, [stream.as_bytes()], End::Complete);
                let message: Value = serde_json::from_slice(&answer.body).unwrap();
                let cut_off = message["stop_reason"] == "max_tokens";
                let is_same = as_in_a_stream(message.clone()) == folded.unwrap();
                prop_assert!(cut_off || is_same, "{}\n{}", stream, message);
            }
        }
    }

    #[test]
    fn a_right_request_goes_up_byte_for_byte(
        turns in proptest::collection::vec((object(), proptest::collection::vec(object(), 0..3)), 1..4),
        pretty: bool, field in object(),
    ) {
        let mut messages = vec![json!({"role": "user", "content": "go"})];
        for (turn, (extra, inputs)) in turns.iter().enumerate() {
            let id = |at: usize| format!("functions.w:{turn}.{at}");
            let mut said = vec![json!({"type": "text", "text": "x", "vendor": extra})];
            said.extend(inputs.iter().enumerate().map(|(at, input)| {
                json!({"type": "tool_use", "id": id(at), "name": "w", "input": input})
            }));
            let mut answers: Vec<Value> = (0..inputs.len())
                .rev()
                // The same results over and over would be the breaker's.
                .map(|at| json!({"type": "tool_result", "tool_use_id": id(at), "content": id(at)}))
                .collect();
            answers.push(json!({"type": "newer", "x": extra}));
            messages.push(json!({"role": "assistant", "content": said}));
            messages.push(json!({"role": "user", "content": answers, "vendor": extra}));
        }
        let body = json!({"model": "claude", "max_tokens": 9, "messages": messages, "newer": field});
        let body = if pretty { serde_json::to_string_pretty(&body).unwrap() } else { body.to_string() };
        prop_assert_eq!(String::from_utf8(sent(&config(), &body).body).unwrap(), body);
    }

    #[test]
    fn a_repaired_history_needs_no_more_repair(
        order in proptest::collection::vec((0u8..6, 0u8..3), 1..8)
    ) {
        needs_one_repair(&order);
    }
}

#[test]
fn a_call_that_comes_again_is_repaired_once() {
    needs_one_repair(&[(0, 0), (0, 1), (2, 0), (0, 1), (2, 0), (0, 0), (0, 1)]);
}

fn needs_one_repair(order: &[(u8, u8)]) {
    let block = |(kind, id): &(u8, u8)| match kind {
        0 | 1 => (
            "assistant",
            json!({"type": "tool_use", "id": format!("i.{id}"), "name": "w", "input": {}}),
        ),
        2 | 3 => {
            let content = format!("said {id}");
            let id = format!("i.{id}");
            ("user", json!({"type": "tool_result", "tool_use_id": id, "content": content}))
        }
        4 => ("user", json!({"type": "text", "text": format!("t{id}")})),
        _ => ("assistant", json!({"type": "text", "text": format!("a{id}")})),
    };
    let message = |it: &(u8, u8)| {
        let (role, block) = block(it);
        json!({"role": role, "content": [block]})
    };
    let messages: Vec<Value> = order.iter().map(message).collect();
    let body = json!({"model": "claude", "max_tokens": 9, "messages": messages}).to_string();
    let once = String::from_utf8(sent(&config(), &body).body).unwrap();
    let twice = String::from_utf8(sent(&config(), &once).body).unwrap();
    assert_eq!(twice, once);
    // Everything in the history is still there.
    for (kind, id) in order {
        let words = match kind {
            0 | 1 => format!("\"id\":\"i.{id}\""),
            2 | 3 => format!("said {id}"),
            4 => format!("\"t{id}\""),
            _ => format!("\"a{id}\""),
        };
        assert!(once.contains(&words), "{words} is lost: {once}");
    }
}
