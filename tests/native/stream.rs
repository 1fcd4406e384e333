//! Repairs of streams from an upstream that speaks Messages itself.

use creole::End;
use serde_json::{Value, json};

use super::*;

/// The contents of a message, and what was repaired.
#[track_caller]
fn content(events: &[Value]) -> (Value, Vec<String>) {
    let (message, repaired) = message_of(&sse(events));
    (message["content"].clone(), repaired)
}

fn call(id: &str, input: &Value) -> Value {
    json!({"type": "tool_use", "id": id, "name": "w", "input": input})
}

#[test]
fn blocks_without_end_that_wait_for_another_are_refused() {
    for (count, fits) in [(16_384, true), (16_385, false)] {
        let mut events = vec![start()];
        events.extend((0..count).map(open_text));
        let stream = sse(&events);
        let kind = (200, "text/event-stream");
        // Not at each byte: that would take minutes.
        let answer = answered(&config(), true, kind, stream.as_bytes().chunks(997), End::Complete);
        let said = String::from_utf8(answer.body).unwrap();
        assert_eq!(!said.contains("too large"), fits, "{count}");
    }
}

#[test]
fn an_input_that_comes_twice_is_sent_once() {
    let whole = json!({"a": 1});
    for (said, deltas, expected) in [
        // The deltas win when any came.
        (&whole, vec!["{\"a\"", ":1}"], &whole),
        (&whole, vec!["{\"a\":1}"], &whole),
        (&json!({"a": 2, "b": [3]}), vec!["", "{\"a\":", "1}"], &whole),
        // Else the start's.
        (&whole, vec![], &whole),
        (&whole, vec![""], &whole),
        (&whole, vec!["{}"], &whole),
        (&json!("{\"a\":1}"), vec![], &whole),
        // A placeholder is none.
        (&json!({}), vec!["{}", "{\"a\":1}"], &whole),
        (&json!(""), vec!["{\"a\":1}"], &whole),
        (&json!(null), vec!["{\"a\"", ":1}"], &whole),
        // And what repeats itself in the deltas.
        (&json!({}), vec!["{\"a\"", ":1}", "{\"a\":1}"], &whole),
        (&json!({}), vec!["{\"a\":", "{\"a\":1}"], &whole),
        (&json!({}), vec![], &json!({})),
        (&json!({}), vec![""], &json!({})),
    ] {
        let mut events = vec![start(), open_call(0, "call_w:0", said)];
        events.extend(deltas.iter().map(|delta| input(0, delta)));
        events.extend([stop(0), ending("tool_use"), end()]);
        let (content, _) = content(&events);
        assert_eq!(content, json!([call("call_w:0", expected)]), "{said} and {deltas:?}");
    }
}

#[test]
fn a_text_at_the_start_of_its_block_is_said_once() {
    for (said, deltas, expected) in [
        ("Hello you", vec!["Hel", "lo", " you"], "Hello you"),
        ("Hello", vec!["Hel", "lo", " you"], "Hello you"),
        ("Hello", vec!["Hello you"], "Hello you"),
        ("Hello", vec![], "Hello"),
        ("I", vec![" am", " here"], "I am here"),
        ("Hello", vec!["Help"], "HelloHelp"),
        ("Hello", vec!["He"], "HelloHe"),
        ("é\n\"x\"", vec!["é\n", "\"x\""], "é\n\"x\""),
    ] {
        for kind in ["text", "thinking"] {
            let mut events = vec![start(), open(0, &json!({"type": kind, (kind): said}))];
            for delta in &deltas {
                let delta = json!({"type": format!("{kind}_delta"), (kind): delta});
                events.push(json!({"type": "content_block_delta", "index": 0, "delta": delta}));
            }
            events.extend([stop(0), ending("end_turn"), end()]);
            let (content, _) = content(&events);
            assert_eq!(content[0][kind], expected, "{said:?} and {deltas:?}");
        }
    }
}

#[test]
fn a_signature_at_the_start_of_its_block_is_kept_once() {
    let block = json!({"type": "thinking", "thinking": "", "signature": "s1"});
    let signature = |text: &str| {
        let delta = json!({"type": "signature_delta", "signature": text});
        json!({"type": "content_block_delta", "index": 0, "delta": delta})
    };
    let thought = {
        let delta = json!({"type": "thinking_delta", "thinking": "hm"});
        json!({"type": "content_block_delta", "index": 0, "delta": delta})
    };
    for (more, expected) in [(None, "s1"), (Some(signature("s2")), "s2")] {
        let mut events = vec![start(), open(0, &block), thought.clone()];
        events.extend(more);
        events.extend([stop(0), ending("end_turn"), end()]);
        let (content, _) = content(&events);
        let expected = json!([{"type": "thinking", "thinking": "hm", "signature": expected}]);
        assert_eq!(content, expected);
    }
}

#[test]
fn missing_events_are_added_where_the_answer_is_complete() {
    let full = [
        start(),
        open_text(0),
        text(0, "Hi"),
        stop(0),
        open_call(1, "toolu_1", &json!({})),
        input(1, "{\"a\":1}"),
        stop(1),
        ending("tool_use"),
        end(),
    ];
    let expected = json!([{"type": "text", "text": "Hi"}, call("toolu_1", &json!({"a": 1}))]);
    for (without, repaired) in [
        (vec![0], "repaired:message_start"),
        (vec![1], "repaired:content_block_start"),
        (vec![3], "repaired:content_block_stop"),
        (vec![6], "repaired:content_block_stop"),
        (vec![3, 6], "repaired:content_block_stop"),
        (vec![7], "repaired:message_delta"),
        (vec![8], "repaired:message_stop"),
        (vec![0, 1, 3, 6, 8], "repaired:message_stop"),
    ] {
        let rest = full.iter().enumerate().filter(|(at, _)| !without.contains(at));
        let events: Vec<Value> = rest.map(|(_, event)| event.clone()).collect();
        let (content, found) = content(&events);
        assert_eq!(content, expected, "without {without:?}");
        assert!(found.iter().any(|code| code == repaired), "without {without:?}: {found:?}");
    }
}

#[test]
fn an_answer_that_broke_off_is_an_error() {
    let full = [start(), open_text(0), text(0, "Hi"), stop(0), ending("end_turn"), end()];
    for length in 0..4 {
        let (streamed, _) = both(&sse(&full[..=length]));
        let text = String::from_utf8(streamed.body).unwrap();
        assert!(text.contains("event: error\n"), "{text}");
        assert!(text.contains("Upstream stream ended before completion."), "{text}");
        assert!(!text.contains("message_stop"), "{text}");
    }
    // An open call is not closed: Claude Code would run it.
    let events = [start(), open_call(0, "toolu_1", &json!({})), input(0, "{\"a\"")];
    let (streamed, _) = both(&sse(&events));
    assert!(!String::from_utf8(streamed.body).unwrap().contains("content_block_stop"));
    // Nor does a connection that broke make a difference where the answer is complete.
    let bytes = sse(&full[..5]);
    let kind = (200, "text/event-stream");
    let cut = answered(&config(), true, kind, [bytes.as_bytes()], End::Aborted);
    message_in(&String::from_utf8(cut.body).unwrap()).unwrap();
}

#[test]
fn an_answer_that_broke_off_inside_an_event_is_the_same_error() {
    let said = sse(&[start(), open_text(0), text(0, "Hello")]);
    for end in [End::Complete, End::Aborted] {
        let cut = &said.as_bytes()[..said.find("Hello").unwrap() + 2];
        let answer = answered(&config(), true, (200, "text/event-stream"), [cut], end);
        let text = String::from_utf8(answer.body).unwrap();
        assert!(text.contains("Upstream stream ended before completion."), "{text}");
    }
}

#[test]
fn indices_are_counted_anew() {
    let number = |index: Option<u64>, mut event: Value| {
        match index {
            Some(index) => event["index"] = index.into(),
            None => drop(event.as_object_mut().unwrap().remove("index")),
        }
        event
    };
    for (first, second) in
        [(Some(0), Some(0)), (None, None), (Some(3), Some(7)), (Some(1), Some(0))]
    {
        let events = [
            start(),
            number(first, open_text(0)),
            number(first, text(0, "a")),
            number(first, text(0, "b")),
            number(first, stop(0)),
            number(second, open_call(0, "x", &json!({}))),
            number(second, input(0, "{\"a\":")),
            number(second, input(0, "1}")),
            number(second, stop(0)),
            ending("tool_use"),
            end(),
        ];
        let (content, _) = content(&events);
        let expected = json!([{"type": "text", "text": "ab"}, call("x", &json!({"a": 1}))]);
        assert_eq!(content, expected, "{first:?} and {second:?}");
    }
    // Deltas and stops may be numbered unlike the starts.
    let events = [
        start(),
        open_text(0),
        text(0, "a"),
        stop(0),
        open_call(1, "x", &json!({})),
        input(0, "{\"a\":1}"),
        stop(0),
        open_call(2, "y", &json!({})),
        input(0, "{\"b\":2}"),
        stop(0),
        ending("tool_use"),
        end(),
    ];
    let (content, _) = content(&events);
    let calls = [call("x", &json!({"a": 1})), call("y", &json!({"b": 2}))];
    assert_eq!(content, json!([{"type": "text", "text": "a"}, calls[0], calls[1]]));
}

#[test]
fn interleaved_blocks_become_one_after_another() {
    let events = [
        start(),
        open_call(0, "x", &json!({})),
        open_call(1, "y", &json!({})),
        input(1, "{\"b\":"),
        input(0, "{\"a\":"),
        open_text(2),
        text(2, "later"),
        input(0, "1}"),
        stop(0),
        input(1, "2}"),
        stop(1),
        text(2, "!"),
        stop(2),
        ending("tool_use"),
        end(),
    ];
    let (content, _) = content(&events);
    let calls = [call("x", &json!({"a": 1})), call("y", &json!({"b": 2}))];
    assert_eq!(content, json!([calls[0], calls[1], {"type": "text", "text": "later!"}]));
    // A text that goes on after the next block began is not lost.
    let events = [
        start(),
        open_text(0),
        text(0, "a"),
        open_call(1, "x", &json!({})),
        text(0, "b"),
        input(1, "{}"),
    ];
    let events: Vec<Value> =
        events.into_iter().chain([stop(0), stop(1), ending("tool_use"), end()]).collect();
    let (content, _) = content_of(&events);
    let texts = [json!({"type": "text", "text": "a"}), json!({"type": "text", "text": "b"})];
    assert_eq!(content, json!([texts[0], call("x", &json!({})), texts[1]]));
}

#[test]
fn a_block_waits_for_what_belongs_into_it_while_the_next_one_has_begun() {
    let delta = |index: u64, kind: &str, field: &str, text: &str| json!({"type": "content_block_delta", "index": index, "delta": {"type": kind, field: text}});
    let thought = |text: &str| delta(0, "thinking_delta", "thinking", text);
    let begin = [
        start(),
        open(0, &json!({"type": "thinking", "thinking": "", "signature": ""})),
        thought("hm"),
        open_text(1),
    ];
    let said = |text: &str| json!({"type": "text", "text": text});
    let rest = [
        text(1, "a"),
        thought("m"),
        delta(0, "signature_delta", "signature", "s"),
        stop(0),
        text(1, "b"),
        stop(1),
        ending("end_turn"),
        end(),
    ];
    let (content, _) = content_of(&[&begin[..], &rest].concat());
    let signed = json!({"type": "thinking", "thinking": "hmm", "signature": "s"});
    assert_eq!(content, json!([signed, said("ab")]));
    // The first text of a block may come after the next one began.
    let events = [
        start(),
        open_text(0),
        open_call(1, "x", &json!({})),
        text(0, "a"),
        input(1, "{}"),
        stop(0),
        stop(1),
        ending("tool_use"),
        end(),
    ];
    assert_eq!(content_of(&events).0, json!([said("a"), call("x", &json!({}))]));
    // Texts are never mixed.
    let events = [
        start(),
        open_text(0),
        text(0, "a1"),
        open_text(1),
        text(1, "b1"),
        text(0, "a2"),
        stop(0),
        text(1, "b2"),
        stop(1),
        ending("end_turn"),
        end(),
    ];
    let texts = ["a1", "b1", "a2", "b2"].map(said);
    assert_eq!(content_of(&events).0, json!(texts));
    // Who never says that a block is over is late by eight deltas.
    for (deltas, is_sent) in [(7, false), (8, true)] {
        let events = [&begin[..], &vec![text(1, "x"); deltas]].concat();
        let sse = sse(&events);
        let kind = (200, "text/event-stream");
        let found = answered(&config(), true, kind, [sse.as_bytes()], End::Aborted);
        let found = String::from_utf8(found.body).unwrap();
        assert_eq!(found.contains("text_delta"), is_sent, "{found}");
    }
}

#[track_caller]
fn content_of(events: &[Value]) -> (Value, Vec<String>) {
    content(events)
}

#[test]
fn a_closed_call_takes_no_late_fragments() {
    let events = [
        start(),
        open_call(0, "x", &json!({})),
        input(0, "{\"a\":1}"),
        open_call(1, "y", &json!({})),
        input(0, "{\"a\":1}"),
        input(1, "{\"b\":2}"),
        ending("tool_use"),
        end(),
    ];
    let (content, repaired) = content(&events);
    assert_eq!(content, json!([call("x", &json!({"a": 1})), call("y", &json!({"b": 2}))]));
    assert!(repaired.contains(&"repaired:late_delta".to_owned()), "{repaired:?}");
}

#[test]
fn ids_counts_and_models_are_made_up_where_there_are_none() {
    let events = [
        json!({"type": "message_start", "message": {"role": "assistant", "extra": [1.10]}}),
        open(0, &json!({"type": "tool_use", "name": "w", "input": {}, "more": 1})),
        open_call(1, "twice", &json!({"a": 1})),
        stop(1),
        open_call(2, "twice", &json!({"a": 2})),
        stop(2),
        json!({"type": "message_delta", "delta": {}}),
        end(),
    ];
    let (message, repaired) = message_of(&sse(&events));
    assert_eq!(message["model"], "claude");
    assert_eq!(message["extra"], json!([1.10]));
    assert!(message["id"].as_str().unwrap().starts_with("msg_"));
    assert_eq!(message["content"][0]["more"], 1);
    let ids: Vec<&str> = (0..3).map(|at| message["content"][at]["id"].as_str().unwrap()).collect();
    assert!(ids[0].starts_with("toolu_") && ids[1] == "twice" && ids[2].starts_with("toolu_"));
    assert_ne!(ids[0], ids[2]);
    assert_eq!(message["stop_reason"], "tool_use");
    assert!(message["usage"]["output_tokens"].as_u64().unwrap() > 0, "{message}");
    assert!(repaired.contains(&"usage_estimated:".to_owned()), "{repaired:?}");
    // Counts in the words of Chat Completions count.
    let mut last = ending("end_turn");
    last["usage"] = json!({"prompt_tokens": 3, "completion_tokens": 4});
    let (message, _) =
        message_of(&sse(&[start(), open_text(0), text(0, "x"), stop(0), last, end()]));
    assert_eq!(message["usage"]["output_tokens"], 4);
}

#[test]
fn the_reason_to_stop_fits_the_blocks() {
    let with_call = |reason: Value| {
        let mut last = ending("");
        last["delta"]["stop_reason"] = reason;
        let events = [start(), open_call(0, "x", &json!({"a": 1})), stop(0), last, end()];
        message_of(&sse(&events)).0["stop_reason"].clone()
    };
    let with_text = |reason: &str| {
        let events = [start(), open_text(0), text(0, "x"), stop(0), ending(reason), end()];
        message_of(&sse(&events)).0["stop_reason"].clone()
    };
    for reason in ["end_turn", "tool_use", "tool_calls", "stop"] {
        assert_eq!(with_call(reason.into()), "tool_use");
        assert_eq!(with_text(reason), "end_turn");
    }
    assert_eq!(with_call(Value::Null), "tool_use");
    assert_eq!(with_call("max_tokens".into()), "max_tokens");
    assert_eq!(with_text("length"), "max_tokens");
    for newer in ["pause_turn", "stop_sequence", "refusal", "some_day"] {
        assert_eq!(with_text(newer), newer);
    }
}

#[test]
fn other_events_are_dropped_and_counted() {
    let done = "data: [DONE]\n\n";
    let mut events = sse(&[start(), json!({"type": "vendor_note", "x": 1}), open_text(0)]);
    events.push_str(": comment\n\ndata: {\"choices\":[]}\n\n");
    events.push_str(&sse(&[text(0, "x"), stop(0), ending("end_turn")]));
    for tail in [done.to_owned(), sse(&[end()]) + done] {
        let (message, repaired) = message_of(&(events.clone() + &tail));
        assert_eq!(message["content"], json!([{"type": "text", "text": "x"}]));
        assert!(repaired.contains(&"repaired:unknown_event".to_owned()), "{repaired:?}");
    }
    // `[DONE]` ends nothing that is not complete.
    let events = [start(), open_text(0), text(0, "x")];
    let (streamed, _) = both(&(sse(&events) + done));
    assert!(String::from_utf8(streamed.body).unwrap().contains("event: error"));
}

#[test]
fn one_of_the_two_names_of_an_event_is_enough() {
    let events = [start(), open_text(0), text(0, "x"), stop(0), ending("end_turn"), end()];
    let expected = message_of(&sse(&events)).0;
    let unnamed: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    assert_eq!(message_of(&unnamed).0, expected);
    let untyped: String = events
        .iter()
        .map(|event| {
            let mut data = event.clone();
            data.as_object_mut().unwrap().remove("type");
            format!("event: {}\r\ndata: {data}\r\n\r\n", event["type"].as_str().unwrap())
        })
        .collect();
    assert_eq!(message_of(&untyped).0, expected);
}

#[test]
fn several_ends_are_one_and_a_content_in_the_start_counts_if_no_block_comes() {
    let mut usage = ending("");
    usage["delta"] = json!({"stop_reason": null});
    usage["usage"] = json!({"output_tokens": 3, "input_tokens": 11});
    let events =
        [start(), start(), open_text(0), text(0, "x"), stop(0), usage, ending("end_turn"), end()];
    let (message, _) = message_of(&sse(&events));
    assert_eq!(message["usage"], json!({"input_tokens": 11, "output_tokens": 7}));
    assert_eq!(message["stop_reason"], "end_turn");

    let mut whole = start();
    whole["message"]["content"] =
        json!([{"type": "text", "text": "x"}, call("c", &json!({"a": 1}))]);
    let (message, _) = message_of(&sse(&[whole.clone(), ending("tool_use"), end()]));
    assert_eq!(message["content"], whole["message"]["content"]);
    let events = [whole, open_text(0), text(0, "x"), stop(0), ending("end_turn"), end()];
    let (message, _) = message_of(&sse(&events));
    assert_eq!(message["content"], json!([{"type": "text", "text": "x"}]));
}

#[test]
fn what_an_upstream_counts_beside_input_and_output_is_reported_too() {
    let mut first = start();
    first["message"]["usage"] = json!({"input_tokens": 5, "output_tokens": 1,
        "cache_read_input_tokens": 700, "cache_creation_input_tokens": 30});
    let mut last = ending("end_turn");
    last["usage"] = json!({"output_tokens": 9, "output_tokens_details": {"thinking_tokens": 4}});
    let events = [first, open_text(0), text(0, "x"), stop(0), last, end()];
    let (streamed, folded) = both(&sse(&events));
    let kind = (200, "application/json");
    let whole = answered(&config(), false, kind, [&folded.body[..]], End::Complete);
    for answer in [&streamed, &folded, &whole] {
        let report = &answer.report.answer;
        let counted = (report.cache_read_tokens, report.cache_creation_tokens);
        assert_eq!((counted, report.thinking_tokens, report.output_tokens), ((700, 30), 4, 9));
    }
}

#[test]
fn a_call_without_a_name_is_an_error_and_one_that_is_not_json_is_visible() {
    let nameless = open(0, &json!({"type": "tool_use", "id": "x", "input": {}}));
    let (streamed, _) = both(&sse(&[start(), nameless, stop(0), ending("tool_use"), end()]));
    assert!(String::from_utf8(streamed.body).unwrap().contains("without a name"));
    for (reason, expected) in [
        ("tool_use", json!([call("x", &json!({"INVALID_JSON": "{\"a\":oops"}))])),
        ("max_tokens", json!([])),
    ] {
        let events = [
            start(),
            open_call(0, "x", &json!({})),
            input(0, "{\"a\":oops"),
            stop(0),
            ending(reason),
            end(),
        ];
        let (streamed, whole) = both(&sse(&events));
        assert_eq!(String::from_utf8(streamed.body).unwrap(), sse(&events));
        let message: Value = serde_json::from_slice(&whole.body).unwrap();
        assert_eq!(message["content"], expected);
    }
}

#[test]
fn what_waits_and_what_comes_have_limits() {
    let config = config_with(None, r#","waiting_bytes_max":4096,"response_bytes_max":4096"#);
    let long = "x".repeat(100);
    let mut waits = vec![start(), open_call(0, "x", &json!({})), open_text(1)];
    waits.extend((0..100).map(|_| text(1, &long)));
    let calls = (0..100).map(|at| open_call(at, &format!("{long}{at}"), &json!({})));
    for events in [waits, [start()].into_iter().chain(calls).collect()] {
        let bytes = sse(&events);
        let kind = (200, "text/event-stream");
        let answer = answered(&config, true, kind, bytes.as_bytes().chunks(64), End::Complete);
        let text = String::from_utf8(answer.body).unwrap();
        assert!(text.contains("too large"), "{text}");
    }
}

#[test]
fn an_input_that_waits_for_deltas_counts_among_what_waits() {
    let config = config_with(None, r#","waiting_bytes_max":4096"#);
    for (length, is_too_large) in [(1000, false), (5000, true)] {
        let said = json!({"a": "x".repeat(length)});
        let events = [start(), open_call(0, "x", &said), stop(0), ending("tool_use"), end()];
        let (bytes, kind) = (sse(&events), (200, "text/event-stream"));
        let answer = answered(&config, true, kind, [bytes.as_bytes()], End::Complete);
        let text = String::from_utf8(answer.body).unwrap();
        assert_eq!(text.contains("too large"), is_too_large, "{text}");
    }
}

#[test]
fn a_message_that_grows_without_end_is_too_large_and_a_stream_is_not() {
    let config = config_with(None, r#","response_bytes_max":4096"#);
    let mut events = vec![start(), open_text(0)];
    events.extend((0..50).map(|_| text(0, &"x".repeat(100))));
    events.extend([stop(0), ending("end_turn"), end()]);
    let (bytes, kind) = (sse(&events), (200, "text/event-stream"));
    for stream in [true, false] {
        let answer = answered(&config, stream, kind, [bytes.as_bytes()], End::Complete);
        let text = String::from_utf8(answer.body).unwrap();
        assert_eq!(text.contains("too large"), !stream, "{text}");
    }
}

#[test]
fn white_space_before_an_input_passes_as_it_came() {
    let deltas = [input(0, " {\"a\":"), input(0, "1}")];
    let mut events = vec![start(), open_call(0, "x", &json!({}))];
    events.extend(deltas);
    events.extend([stop(0), ending("tool_use"), end()]);
    let (streamed, _) = both(&sse(&events));
    assert_eq!(String::from_utf8(streamed.body).unwrap(), sse(&events));
}

#[test]
fn counts_at_the_end_of_a_stream_replace_those_of_its_start() {
    for (at_start, at_end, (input, cached)) in [
        // Z.AI and SGLang count at the end.
        (
            json!({"input_tokens": 0, "output_tokens": 0}),
            json!({"input_tokens": 5000, "cache_read_input_tokens": 700, "output_tokens": 20}),
            (5000, 700),
        ),
        (Value::Null, json!({"input_tokens": 5000, "output_tokens": 20}), (5000, 0)),
        (Value::Null, json!({"prompt_tokens": 5000, "completion_tokens": 20}), (5000, 0)),
        // Server tools: each of their rounds is one more prompt.
        (
            json!({"input_tokens": 10, "output_tokens": 1}),
            json!({"input_tokens": 5000, "output_tokens": 20}),
            (5000, 0),
        ),
        // All of it came from the cache.
        (
            json!({"input_tokens": 10, "output_tokens": 1}),
            json!({"input_tokens": 0, "cache_read_input_tokens": 9, "output_tokens": 20}),
            (0, 9),
        ),
        // No prompt is empty.
        (
            json!({"input_tokens": 10, "output_tokens": 1}),
            json!({"input_tokens": 0, "output_tokens": 20}),
            (10, 0),
        ),
    ] {
        let (mut first, mut last) = (start(), ending("end_turn"));
        first["message"]["usage"] = at_start.clone();
        last["usage"] = at_end.clone();
        let (streamed, whole) = both(&sse(&[first, open_text(0), stop(0), last, end()]));
        for answer in [streamed, whole] {
            let counts = &answer.report.answer;
            let found = (counts.input_tokens, counts.cache_read_tokens, counts.output_tokens);
            assert_eq!(found, (input, cached, 20), "{at_start} {at_end}");
        }
    }
}
