//! Calls whose fragments change or repeat what names a call: what a server has done before tells
//! what it means.

use super::*;

#[test]
fn fragments_whose_indices_rise_are_one_call() {
    let pieces = ["{\"todos\":", " [", "{\"c\"", ":1}", ", ", "{\"c\":2}", "]}"];
    let mut chunks = vec![call(0, "call_a", "w", "")];
    for (piece, index) in pieces.iter().zip(1..) {
        chunks.push(call(index, "", "", piece));
    }
    case().gives(&done(&chunks), "tool_use a w {\"todos\":[{\"c\":1},{\"c\":2}]}; tool_use");
}

#[test]
fn fragments_with_a_new_index_and_a_new_id_each_are_one_call() {
    // gpt-oss on Oracle's cloud, as langchain-oracle#163 has it.
    let pieces = ["{\n", " ", " \"", "c", "\":", " ", "1", "}"];
    let mut chunks = vec![call(0, "call_a", "w", "")];
    for (piece, index) in pieces.iter().zip(1..) {
        chunks.push(call(index, &format!("unused-{index}"), "", piece));
    }
    chunks.push(call(9, "call_b", "t", "{\"d\":2}"));
    let both = "tool_use a w {\"c\":1}, tool_use b t {\"d\":2}; tool_use";
    case().gives(&done(&chunks), both);
    // A whole input that nobody names, behind a call that has none.
    let nameless = [call(0, "call_a", "w", ""), call(1, "call_c", "", "{\"c\":1}")];
    case().gives(&done(&nameless), "tool_use a w {\"c\":1}; tool_use !tool_unknown");
    let named = [&nameless[..], &[call(1, "", "t", "")]].concat();
    case().gives(&done(&named), "tool_use a w {}, tool_use c t {\"c\":1}; tool_use");
    // The name with each: nothing that begins like this is an input.
    for id in ["", "call_c"] {
        let pieces =
            [call(0, "call_a", "w", "{\"c\":"), call(1, id, "w", "1"), call(2, id, "w", "}")];
        case().gives(&done(&pieces), "tool_use a w {\"c\":1}; tool_use");
    }
}

#[test]
fn a_name_begins_a_second_call_of_one_tool_though_ids_change_with_each_fragment() {
    for index in [true, false] {
        let entry = |id: &str, name: &str, arguments: &str| {
            let chunk = call(0, id, name, arguments);
            if index { chunk } else { without_index(chunk) }
        };
        let one = [entry("call_a", "w", ""), entry("a2", "", "{\"c\":"), entry("a3", "", "1}")];
        let two = [entry("call_b", "w", ""), entry("b2", "", "{\"c\":"), entry("b3", "", "2}")];
        let both = "tool_use a w {\"c\":1}, tool_use b w {\"c\":2}; tool_use";
        case().gives(&done(&[&one[..], &two].concat()), both);
        if index {
            // With an index of its own it is a call.
            let own = [&one[..], &[call(1, "call_d", "w", "")]].concat();
            case().gives(&done(&own), "tool_use a w {\"c\":1}, tool_use d w {}; tool_use");
            // Where indices are right, a last chunk may repeat the names of all.
            let other = [call(1, "call_c", "t", ""), call(1, "c2", "", "{\"d\":2}")];
            let mut last = call(0, "e", "w", "");
            let again = call(1, "f", "t", "")["tool_calls"][0].take();
            last["tool_calls"].as_array_mut().unwrap().push(again);
            let all = [&one[..], &other, &[last]].concat();
            case().gives(&done(&all), "tool_use a w {\"c\":1}, tool_use c t {\"d\":2}; tool_use");
        }
        // Behind the end, a name alone may be only a repetition.
        let repeated = [&one[..], &[entry("call_b", "w", "")]].concat();
        case().gives(&done(&repeated), "tool_use a w {\"c\":1}; tool_use");
    }
}

#[test]
fn an_input_begins_a_second_call_where_each_fragment_has_the_name_and_none_an_id() {
    let inputs = ["{\"c\":", "1}", "{\"c\":", "2}"];
    let chunks = inputs.map(|input| call(0, "", "w", input));
    let both = "tool_use minted w {\"c\":1}, tool_use minted w {\"c\":2}; tool_use";
    case().gives(&done(&chunks), both);
}

#[test]
fn an_object_within_an_input_is_no_call_where_each_fragment_has_another_id_and_the_name() {
    let gives = |inputs: &[&str], expected: &str| {
        let entry = |(at, input): (usize, &&str)| {
            let id = if at == 0 { "call_a".to_owned() } else { format!("other-{at}") };
            without_index(call(0, &id, "w", input))
        };
        let chunks: Vec<Value> = inputs.iter().enumerate().map(entry).collect();
        case().gives(&done(&chunks), expected);
    };
    gives(&["{\"c\":", "{\"d\":1}", "}"], "tool_use a w {\"c\":{\"d\":1}}; tool_use");
    gives(&["{\"c\":\"", "{1", "\"}"], "tool_use a w {\"c\":\"{1\"}; tool_use");
    // The first tokens of another call, of which each server has its own id.
    let c = case();
    let entry = |id: &str, input: &str| without_index(call(0, id, "w", input));
    let turns = [
        entry("call_a", "{\""),
        entry("call_b", "{"),
        entry("call_a", "c\":1}"),
        entry("call_b", "\"c\":2}"),
    ];
    c.gives(&done(&turns), "tool_use a w {\"c\":1}, tool_use b w {\"c\":2}; tool_use");
    let bare =
        [entry("call_a", ""), entry("call_b", "{\"c\":"), without_index(call(0, "", "", "2}"))];
    c.gives(&done(&bare), "tool_use a w {}, tool_use b w {\"c\":2}; tool_use");
}

#[test]
fn a_name_that_comes_twice_alone_is_two_calls() {
    let nameless = || json!({"tool_calls": [{"function": {"name": "w", "arguments": ""}}]});
    let found = case().run(true, [done(&[nameless(), nameless()]).as_bytes()]);
    assert_eq!(found.out.matches("\"type\":\"tool_use\"").count(), 2, "{}", found.out);
}

#[test]
fn what_the_fragments_of_a_call_repeat_begins_no_other_call() {
    let c = case();
    for index in [true, false] {
        let entry = |id: &str, name: &str, arguments: &str| {
            let chunk = call(0, id, name, arguments);
            if index { chunk } else { without_index(chunk) }
        };
        for last in ["", "\n", "{\"c\":1}", "{\"c\": 1}"] {
            // Another id with each fragment.
            for (second, third) in [("w", "w"), ("", "w"), ("w", ""), ("", "")] {
                let chunks = [
                    entry("call_a", "w", "{\"c\":"),
                    entry("call_b", second, "1}"),
                    entry("call_c", third, last),
                ];
                c.gives(&done(&chunks), "tool_use a w {\"c\":1}; tool_use");
            }
            // The name with each, and no id.
            let chunks = [entry("", "w", "{\"c\":"), entry("", "w", "1}"), entry("", "w", last)];
            c.gives(&done(&chunks), "tool_use minted w {\"c\":1}; tool_use");
        }
        // What is not repeated is another call's.
        let chunks = [
            entry("call_a", "w", "{\"c\":"),
            entry("call_b", "w", "1}"),
            entry("call_c", "w", "{\"c\":"),
            entry("call_d", "w", "2}"),
        ];
        c.gives(&done(&chunks), "tool_use a w {\"c\":1}, tool_use c w {\"c\":2}; tool_use");
    }
}

#[test]
fn a_name_begins_a_call_where_only_first_fragments_have_one() {
    let one = [call(0, "", "w", ""), call(0, "", "", "{\"c\":"), call(0, "", "", "1}")];
    let two = [call(0, "", "w", ""), call(0, "", "", "{\"c\":"), call(0, "", "", "2}")];
    let both = "tool_use minted w {\"c\":1}, tool_use minted w {\"c\":2}; tool_use";
    case().gives(&done(&[one.clone(), two].concat()), both);
    let pieces = [call(0, "", "w", "{\"c\":"), call(0, "", "", "2}")];
    case().gives(&done(&[&one[..], &pieces].concat()), both);
    // All of it once more.
    let again = [&one[..], &[call(0, "", "w", "{\"c\":1}")]].concat();
    case().gives(&done(&again), "tool_use minted w {\"c\":1}; tool_use");
}
