//! Fragments of tool calls: which call each one belongs to.

use super::*;

#[test]
fn interleaved_calls_become_one_block_after_another() {
    let sse = done(&[
        call(0, "call_a", "w", "{\"a\":"),
        call(1, "call_b", "t", "{\"b\":"),
        text("then"),
        call(0, "", "", "1}"),
        call(1, "", "", "2}"),
        json!({"finish": "tool_calls"}),
    ]);
    case().gives(&sse, "tool_use a w {\"a\":1}, tool_use b t {\"b\":2}, text \"then\"; tool_use");
}

#[test]
fn fragments_of_one_call_in_one_list_are_one_call() {
    let list = |entries: &[Value]| {
        let all: Vec<Value> = entries.iter().map(|entry| entry["tool_calls"][0].clone()).collect();
        json!({"tool_calls": all})
    };
    let one = "tool_use a w {\"a\":1}; tool_use";
    for entries in [
        [call(0, "call_a", "w", "{\"a\""), call(0, "call_a", "w", ":1}")],
        [call(0, "call_a", "w", "{\"a\""), call(0, "", "w", ":1}")],
        [call(0, "call_a", "w", ""), call(0, "call_a", "w", "{\"a\":1}")],
        [call(0, "call_a", "w", "{\"a\":1"), call(0, "call_a", "", "}")],
    ] {
        case().gives(&done(&[list(&entries), json!({"finish": "tool_calls"})]), one);
    }
    let nested = [call(0, "call_a", "w", "{\"a\":"), call(0, "call_a", "w", "{\"b\":1}}")];
    let one = "tool_use a w {\"a\":{\"b\":1}}; tool_use";
    case().gives(&done(&[list(&nested), json!({"finish": "tool_calls"})]), one);
    // Two calls of one tool.
    let two = "tool_use a w {}, tool_use b w {\"a\":1}; tool_use";
    for (first, id) in [("", "call_b"), ("{}", "call_b")] {
        let entries = [call(0, "call_a", "w", first), call(0, id, "w", "{\"a\":1}")];
        case().gives(&done(&[list(&entries), json!({"finish": "tool_calls"})]), two);
    }
}

#[test]
fn two_calls_in_one_list_stay_two_whatever_they_share() {
    for entries in [
        [call(0, "call_a", "w", ""), call(0, "call_a", "w", "")],
        [call(0, "w", "w", ""), call(0, "w", "w", "")],
        [call(0, "call_a", "w", "null"), call(0, "call_a", "w", "null")],
        [call(0, "call_a", "w", "{\"a\":1"), call(0, "call_a", "w", "{\"a\":2}")],
        [call(0, "call_a", "w", "{\"a\":"), call(0, "call_b", "w", "{\"a\":2}")],
    ] {
        let all: Vec<Value> = entries.iter().map(|entry| entry["tool_calls"][0].clone()).collect();
        let sse = done(&[json!({"tool_calls": all}), json!({"finish": "tool_calls"})]);
        let message = message(&case().stream(&sse));
        let blocks = message["content"].as_array().unwrap();
        let calls = blocks.iter().filter(|block| block["type"] == "tool_use").count();
        assert_eq!(calls, 2, "{all:?}: {message}");
    }
}

#[test]
fn fragments_find_their_call() {
    let c = case();
    let no_index =
        |id: &str, name: &str, arguments: &str| without_index(call(0, id, name, arguments));
    let both = "tool_use a w {\"a\":1}, tool_use b t {\"b\":2}; tool_use";
    for chunks in [
        // The same index for every call.
        vec![call(0, "call_a", "w", "{\"a\":1}"), call(0, "call_b", "t", "{\"b\":2}")],
        vec![
            call(0, "call_a", "w", "{\"a\":"),
            call(0, "", "", "1}"),
            call(0, "call_b", "t", "{\"b\":2}"),
        ],
        // Index from 1, with gaps.
        vec![call(1, "call_a", "w", "{\"a\":1}"), call(7, "call_b", "t", "{\"b\":2}")],
        // No index.
        vec![
            no_index("call_a", "w", "{\"a\""),
            no_index("", "", ":1}"),
            no_index("call_b", "t", "{\"b\":2}"),
        ],
        vec![
            no_index("call_a", "w", "{\"a\""),
            no_index("call_b", "t", "{\"b\":2}"),
            no_index("call_a", "", ":1}"),
        ],
        // Blank ids and names mean nothing; a name may be repeated, an id may change.
        vec![
            call(0, "call_a", "w", ""),
            call(0, " ", " ", "{\"a\":"),
            call(0, "call_x", "", "1}"),
            call(1, "call_b", "t", "{\"b\""),
            call(1, "call_b", "t", ":2}"),
        ],
        // The id comes late.
        vec![
            call(0, "", "w", ""),
            call(0, "call_a", "", "{\"a\":1}"),
            call(1, "call_b", "t", "{\"b\":2}"),
        ],
    ] {
        c.gives(&done(&chunks), both);
    }
    let minted = "tool_use minted w {\"a\":1}, tool_use minted t {\"b\":2}; tool_use";
    c.gives(&done(&[no_index("", "w", "{\"a\":1}"), no_index("", "t", "{\"b\":2}")]), minted);
    c.gives(&done(&[call(0, "", "w", "{\"a\":1}"), call(0, "", "t", "{\"b\":2}")]), minted);
    c.gives(
        &done(&[call(0, "a", "get_", ""), call(0, "", "weather", "{}")]),
        "tool_use r_a get_weather {}; tool_use",
    );
}

#[test]
fn calls_with_one_id_and_an_index_each_are_told_apart_by_the_index() {
    let c = case();
    let two = "tool_use a w {\"c\":1}, tool_use u2_a w {\"c\":2}; tool_use";
    let heads = [call(0, "call_a", "w", ""), call(1, "call_a", "w", "")];
    for (id, name) in [("", ""), ("call_a", ""), ("call_a", "w")] {
        let inputs = [call(0, id, name, "{\"c\":1}"), call(1, id, name, "{\"c\":2}")];
        c.gives(&done(&[&heads[..], &inputs[..]].concat()), two);
    }
    c.gives(&done(&heads), "tool_use a w {}, tool_use u2_a w {}; tool_use");
}

#[test]
fn an_index_may_come_late_or_change() {
    let c = case();
    let one = "tool_use a w {\"c\":1}; tool_use";
    for first in
        [call(0, "call_a", "w", "{\"c\":"), without_index(call(0, "call_a", "w", "{\"c\":"))]
    {
        for more in [
            call(1, "", "", "1}"),
            call(1, "call_a", "", "1}"),
            call(1, "call_a", "w", "1}"),
            without_index(call(0, "call_a", "w", "1}")),
            without_index(call(0, "", "", "1}")),
        ] {
            c.gives(&done(&[first.clone(), more]), one);
        }
        let pieces = [first, call(1, "", "", "1"), call(1, "", "", "}")];
        c.gives(&done(&pieces), one);
    }
    c.gives(&done(&[call(0, "call_a", "w", ""), call(1, "", "", "{\"c\":1}")]), one);
    // The same id twice is two calls all the same, if each is complete.
    let whole = |index, input: &str| call(index, "call_a", "w", input);
    c.gives(
        &done(&[whole(0, "{\"c\":1}"), whole(1, "{\"c\":2}")]),
        "tool_use a w {\"c\":1}, tool_use u2_a w {\"c\":2}; tool_use",
    );
    // Another call may begin before its name comes.
    c.gives(
        &done(&[
            call(0, "call_a", "w", "{\"c\":"),
            call(1, "", "", "{\"d\":2}"),
            call(1, "call_b", "t", ""),
            call(0, "", "", "1}"),
        ]),
        "tool_use a w {\"c\":1}, tool_use b t {\"d\":2}; tool_use",
    );
    // A server that leaves out the index where it is 0.
    let mut calls = call(1, "call_b", "t", "");
    let first = without_index(call(0, "call_a", "w", ""))["tool_calls"][0].take();
    calls["tool_calls"].as_array_mut().unwrap().insert(0, first);
    let mut inputs = call(1, "", "", "{\"d\":2}");
    inputs["tool_calls"]
        .as_array_mut()
        .unwrap()
        .insert(0, json!({"function": {"arguments": "{\"c\":1}"}}));
    c.gives(&done(&[calls, inputs]), "tool_use a w {\"c\":1}, tool_use b t {\"d\":2}; tool_use");
}

#[test]
fn a_name_without_an_id_begins_no_call_where_calls_have_ids() {
    let c = case();
    let no_index =
        |id: &str, name: &str, arguments: &str| without_index(call(0, id, name, arguments));
    let one = "tool_use a1 w {\"c\":1}; tool_use";
    for first in ["", "{}"] {
        for last in ["", "\n", "{\"c\":1}", "{\"c\": 1}"] {
            let chunks = [
                no_index("call_a1", "w", first),
                no_index("", "w", "{\"c\":1}"),
                no_index("", "w", last),
            ];
            c.gives(&done(&chunks), one);
        }
    }
    let pieces = [
        no_index("call_a1", "w", ""),
        no_index(" ", "w", "{\"c\":"),
        no_index(" ", "w", "1}"),
        no_index(" ", "w", ""),
    ];
    c.gives(&done(&pieces), one);
    // Another input is another call's.
    c.gives(
        &done(&[no_index("call_a1", "w", "{\"c\":1}"), no_index("", "w", "{\"c\":2}")]),
        "tool_use a1 w {\"c\":1}, tool_use minted w {\"c\":2}; tool_use",
    );
}

#[test]
fn a_call_may_follow_an_input_whose_fragments_repeat_it_from_the_start() {
    let c = case();
    let both = "tool_use a w {\"c\":1}, tool_use b t {\"d\":2}; tool_use";
    for rest in [
        vec![call(0, "call_b", "t", "{\"d\":2}")],
        vec![call(0, "call_b", "t", ""), call(0, "", "", "{\"d\":2}")],
        vec![call(0, "call_b", "t", "{\"d\""), call(0, "", "", "{\"d\":2}")],
    ] {
        let mut chunks = vec![call(0, "call_a", "w", "{\"c\":"), call(0, "", "", "{\"c\":1}")];
        chunks.extend(rest);
        c.gives(&done(&chunks), both);
    }
    // All of it so far each time, whatever its id.
    for index in [without_index, |chunk| chunk] {
        let whole = ["{\"c\"", "{\"c\":", "{\"c\":1}"];
        let chunks: Vec<Value> = ["call_a", "call_b", "call_c"]
            .iter()
            .zip(whole)
            .map(|(id, input)| index(call(0, id, "w", input)))
            .collect();
        c.gives(&done(&chunks), "tool_use a w {\"c\":1}; tool_use");
    }
    // What only looks like it goes on, whatever its id.
    c.gives(
        &done(&[
            call(0, "call_a", "w", "{\"c\":"),
            call(0, "call_b", "w", "{\"c\":1}"),
            call(0, "call_c", "w", "}"),
        ]),
        "tool_use a w {\"c\":{\"c\":1}}; tool_use",
    );
}

/// A case with more tools.
fn with_tools(names: &'static [&'static str]) -> Case {
    case().with(|context, _| {
        for name in names {
            context.tools.push(Tool {
                outgoing: (*name).into(),
                name: (*name).into(),
                ..Tool::default()
            });
        }
    })
}

#[test]
fn a_piece_of_a_name_may_be_the_name_of_another_tool() {
    let c = with_tools(&["Read", "mcp__fs__Read_file", "Bash"]);
    let pieces = |names: &[&str]| {
        let mut chunks: Vec<Value> = names.iter().map(|name| call(0, "a", name, "")).collect();
        chunks.push(call(0, "", "", "{\"p\":1}"));
        done(&chunks)
    };
    c.gives(
        &pieces(&["mcp__fs__", "Read", "_file"]),
        "tool_use r_a mcp__fs__Read_file {\"p\":1}; tool_use",
    );
    // The block of a whole name may have begun: a stream and a message say the same.
    c.gives(&pieces(&["Bash", "_v2"]), "tool_use r_a Bash {\"p\":1}; tool_use !tool_name_conflict");
}

#[test]
fn a_name_in_pieces_waits_for_the_rest_whatever_comes_after_it() {
    let start = |names: [&str; 2]| {
        json!({"tool_calls": [
            {"index": 0, "id": "call_a", "function": {"name": names[0]}},
            {"index": 1, "id": "call_b", "function": {"name": names[1]}},
        ]})
    };
    let rest = |names: [&str; 2]| {
        json!({"tool_calls": [
            {"index": 0, "function": {"name": names[0]}}, {"index": 1, "function": {"name": names[1]}},
        ]})
    };
    let inputs = [call(0, "", "", "{\"a\":1}"), call(1, "", "", "{\"b\":2}")];
    let c = with_tools(&["Bash", "Read", "Read_all"]);
    for (first, more, expected) in [
        (["get_", "Ba"], ["weather", "sh"], ["get_weather", "Bash"]),
        (["Read", "Read"], ["_all", "_all"], ["Read_all", "Read_all"]),
        (["no_", "Ba"], ["tool", "sh"], ["no_tool", "Bash"]),
    ] {
        let expected = format!(
            "tool_use a {} {{\"a\":1}}, tool_use b {} {{\"b\":2}}; tool_use{}",
            expected[0],
            expected[1],
            if expected[0] == "no_tool" { " !tool_unknown" } else { "" }
        );
        let mut chunks = vec![start(first), rest(more)];
        chunks.extend(inputs.clone());
        c.gives(&done(&chunks), &expected);
    }
    c.gives(
        &done(&[
            call(0, "call_a", "get_", ""),
            text("Let me see."),
            call(0, "", "weather", ""),
            call(0, "", "", "{\"a\":1}"),
        ]),
        "tool_use a get_weather {\"a\":1}, text \"Let me see.\"; tool_use",
    );
}

#[test]
fn no_tool_gets_the_input_of_another() {
    let c = case();
    let old = |name: &str, arguments: &str| json!({"function_call": {"name": name, "arguments": arguments}});
    let both = "tool_use a w {\"c\":1}, tool_use u2_a t {\"d\":2}; tool_use";
    // The same id for two calls.
    let pieces = [
        call(0, "call_a", "w", "{\"c\":"),
        call(0, "", "", "1}"),
        call(0, "call_a", "t", "{\"d\":"),
        call(0, "", "", "2}"),
    ];
    let whole = [call(0, "call_a", "w", "{\"c\":1}"), call(0, "call_a", "t", "{\"d\":2}")];
    for chunks in [&pieces[..], &whole] {
        c.gives(&done(chunks), both);
        let chunks: Vec<Value> = chunks.iter().cloned().map(without_index).collect();
        c.gives(&done(&chunks), both);
    }
    // An id for the first one alone.
    c.gives(
        &done(&[call(0, "call_a", "w", "{\"c\":1}"), call(0, "", "t", "{\"d\":2}")]),
        "tool_use a w {\"c\":1}, tool_use minted t {\"d\":2}; tool_use",
    );
    // A call without an input.
    c.gives(
        &done(&[call(0, "call_a", "w", ""), call(0, "call_a", "t", "{\"d\":2}")]),
        "tool_use a w {}, tool_use u2_a t {\"d\":2}; tool_use",
    );
    c.gives(
        &done(&[old("w", "{\"c\":1}"), old("t", "{\"d\":2}")]),
        "tool_use minted w {\"c\":1}, tool_use minted t {\"d\":2}; tool_use",
    );
    // An id that is the name of the tool.
    for index in [without_index, |chunk| chunk] {
        c.gives(
            &done(&[
                index(call(0, "w", "w", "{\"city\":\"Paris\"}")),
                index(call(0, "w", "w", "{\"city\":\"Rome\"}")),
            ]),
            "tool_use r_w w {\"city\":\"Paris\"}, tool_use u2_r_w w {\"city\":\"Rome\"}; tool_use",
        );
    }
    // In the middle of an input.
    c.streams(
        &done(&[call(0, "call_a", "w", "{\"c\":"), call(0, "call_a", "t", "{\"d\":2}")]),
        "tool_use a w \"{\\\"c\\\":\", tool_use u2_a t {\"d\":2}; tool_use !tool_input_invalid",
    );
    // After an input that is no object, or one in a string.
    let quoted = "\"{\\\"c\\\":1}\"";
    for index in [without_index, |chunk| chunk] {
        for (first, input) in [
            ("{'c': 1}", "{\"INVALID_JSON\":\"{'c': 1}\"}"),
            ("[1]", "{\"INVALID_JSON\":\"[1]\"}"),
            (quoted, "{\"c\":1}"),
        ] {
            for (name, second) in [("t", "{\"d\":2}"), ("w", "{\"d\":2}"), ("w", quoted)] {
                let expected = if second == quoted { "{\"c\":1}" } else { second };
                let chunks =
                    [index(call(0, "call_a", "w", first)), index(call(0, "call_b", name, second))];
                let shown = show(&c.stream(&done(&chunks)));
                let both = format!("tool_use a w {input}, tool_use b {name} {expected}; tool_use");
                assert!(shown.starts_with(&both), "{shown}");
            }
        }
    }
    // An id without a name begins no call where there is room for its input.
    let chunks = [
        without_index(call(0, "call_a", "w", "{}")),
        without_index(call(0, "call_b", "", "{\"c\":1}")),
    ];
    c.gives(&done(&chunks), "tool_use a w {\"c\":1}; tool_use");
}

#[test]
fn late_fragments_never_reach_a_closed_block() {
    let c = case();
    let start = [call(0, "call_a", "w", "{\"a\":1}"), call(1, "call_b", "t", "{\"b\":")];
    let with = |late: &str| {
        let mut chunks = start.to_vec();
        chunks.extend([call(0, "", "", late), call(1, "", "", "2}")]);
        done(&chunks)
    };
    let both = "tool_use a w {\"a\":1}, tool_use b t {\"b\":2}; tool_use";
    c.streams(&with("{\"a\":1}"), both);
    c.streams(&with(" \n"), both);
    c.streams(&with("{\"a\":2}"), &format!("{both} !late_tool_fragment"));
    c.streams(&with("}"), &format!("{both} !late_tool_fragment"));
    c.streams(&with("{\"a"), &format!("{both} !late_tool_fragment"));
}

#[test]
fn the_word_null_is_no_name_and_no_id() {
    let last = || call(0, "null", "null", "");
    let chunks = [
        call(0, "call_a", "w", ""),
        call(0, "", "null", "{\"c\":"),
        call(0, "null", "null", "1}"),
        last(),
    ];
    case().gives(&done(&chunks), "tool_use a w {\"c\":1}; tool_use");
    // Two calls of one tool, each of which goes on so.
    let more = |arguments: &str| call(0, "null", "", arguments);
    let chunks = [
        call(0, "call_a", "w", ""),
        more("{\"c\":1}"),
        call(0, "call_b", "w", ""),
        more("{\"c\":2}"),
    ];
    case().gives(&done(&chunks), "tool_use a w {\"c\":1}, tool_use b w {\"c\":2}; tool_use");
}

#[test]
fn an_entry_that_says_nothing_is_no_call() {
    let empty = json!({"index": 0, "id": "", "type": "function",
        "function": {"name": "", "arguments": ""}});
    for entry in [empty, json!({"index": 0}), json!({}), json!({"id": "null"})] {
        let beside = |text: &str| json!({"content": text, "tool_calls": [entry]});
        let c = case().with(|context, _| context.profile.inline_think = true);
        let chunks = [beside("<thi"), beside("nk>Hm"), beside("</think>Hi"), beside(" you")];
        let streamed = c.gives(&done(&chunks), "thinking \"Hm\", text \"Hi you\"; end_turn");
        // Each word as it comes.
        assert_eq!(streamed.out.matches("text_delta").count(), 2, "{}", streamed.out);
    }
}

#[test]
fn calls_with_one_index_get_the_inputs_of_their_ids() {
    let heads = [call(0, "call_a", "w", "{}"), call(0, "call_b", "w", "{}")];
    let inputs = [call(0, "call_a", "", "{\"a\":1}"), call(0, "call_b", "", "{\"b\":2}")];
    let chunks: Vec<_> = heads.into_iter().chain(inputs).collect();
    case().gives(&done(&chunks), "tool_use a w {\"a\":1}, tool_use b w {\"b\":2}; tool_use");
}

#[test]
fn calls_with_one_id_and_an_index_each_are_kept_apart_by_their_names() {
    for (first, second) in [("functions.t", "w"), ("t", "functions.w"), ("x1", "x2"), ("T", "W")] {
        let (a, b) = (call(0, "c", first, ""), call(1, "c", second, r#"{"city":"Oslo"}"#));
        let both = json!({"tool_calls": [a["tool_calls"][0], b["tool_calls"][0]]});
        let bare = without_indices(both.clone());
        for chunks in [vec![a, b], vec![both], vec![bare]] {
            let shown = show(&case().stream(&done(&chunks)));
            assert_eq!(shown.matches("r_c ").count(), 2, "{first}, {second}: {shown}");
            assert!(shown.contains(r#"{"city":"Oslo"}"#) && !shown.contains("x1x2"), "{shown}");
        }
    }
    // The same index, and a name that means another tool.
    let same = [call(0, "c", "functions.t", ""), call(0, "c", "w", "{}")];
    assert_eq!(show(&case().stream(&done(&same))).matches("r_c ").count(), 2);
    // A name in pieces goes on.
    let pieces =
        [call(0, "c", "get_", ""), call(1, "c", "weather", ""), call(1, "", "", "{\"a\":1}")];
    with_tools(&["get_weather"])
        .gives(&done(&pieces), "tool_use r_c get_weather {\"a\":1}; tool_use");
    let pieces = [call(0, "c", "get_", ""), call(1, "c", "weather", "{}")];
    let shown = show(&with_tools(&["get_weather"]).stream(&done(&pieces)));
    assert_eq!(shown.matches("r_c ").count(), 1, "{shown}");
}

#[test]
fn a_call_with_the_same_id_and_input_under_other_indices_is_one_call() {
    // LocalAI.
    let again = |index| call(index, "call_a", "w", "{\"c\":1}");
    case().gives(
        &done(&[again(0), again(1), call(2, "call_b", "t", "{}"), again(3)]),
        "tool_use a w {\"c\":1}, tool_use b t {}; tool_use",
    );
}

fn without_indices(mut chunk: Value) -> Value {
    for call in chunk["tool_calls"].as_array_mut().unwrap() {
        call.as_object_mut().unwrap().remove("index");
    }
    chunk
}
