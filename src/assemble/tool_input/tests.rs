//! Tests of `tool_input.rs`: inputs in all forms, and the text that a client gets.

use super::*;

/// Returns the pieces that were sent while fragments came, the final input, and the conflicts.
fn receive(fragments: &[&str]) -> (Vec<String>, FinalInput, u32) {
    let mut input = ToolInput::default();
    let mut sent = Vec::new();
    for fragment in fragments {
        if let Some(raw) = fragment.strip_prefix("json:") {
            input.receive_json(raw, false);
        } else {
            let mut raw = Vec::new();
            json::escape(&mut raw, fragment);
            input.receive(std::str::from_utf8(&raw).unwrap(), &mut String::new());
        }
        let piece = input.send();
        if !piece.is_empty() {
            sent.push(piece.to_owned());
        }
    }
    let end = input.finish(false);
    if let FinalInput::Object(object) = &end {
        assert!(object.starts_with(&sent.concat()), "{sent:?} is no prefix of {object}");
    }
    let conflicts = input.take_conflicts();
    (sent, end, conflicts)
}

/// Returns the final input, if nothing is sent before the end, and the conflicts.
fn receive_buffered(fragments: &[&str]) -> (FinalInput, u32) {
    let mut input = ToolInput::default();
    for fragment in fragments {
        let mut raw = Vec::new();
        json::escape(&mut raw, fragment);
        input.receive(std::str::from_utf8(&raw).unwrap(), &mut String::new());
    }
    (input.finish(false), input.take_conflicts())
}

#[track_caller]
fn is(fragments: &[&str], sent: &[&str], object: &str, conflicts: u32) {
    let expected = (
        sent.iter().map(|piece| (*piece).to_owned()).collect(),
        FinalInput::Object(object.to_owned()),
        conflicts,
    );
    assert_eq!(receive(fragments), expected, "{fragments:?}");
}

#[test]
fn deltas_are_sent_as_they_come() {
    is(&["", "{\"a\"", ":", "1}"], &["{\"a\"", ":", "1}"], r#"{"a":1}"#, 0);
    is(&[" ", "\n{", "\"a\":1", " }", " "], &["{\"a\":1", " }"], "{\"a\":1 }", 0);
    is(&["{\"a\":\"x", "x", "x", "\"}"], &["{\"a\":\"x", "x", "x", "\"}"], "{\"a\":\"xxx\"}", 0);
}

#[test]
fn a_call_without_arguments_has_an_empty_object() {
    for fragments in [
        &[] as &[&str],
        &[""],
        &[" ", "\n"],
        &["null"],
        &["[]"],
        &["json:[]"],
        &["\"null\""],
        &["\"\""],
        &["{}"],
        &["{", "}"],
        &["json:{}"],
    ] {
        let (sent, end, conflicts) = receive(fragments);
        assert_eq!((end, conflicts), (FinalInput::Object("{}".to_owned()), 0), "{fragments:?}");
        assert!(sent.concat().is_empty() || sent.concat() == "{}");
    }
}

#[test]
fn a_whole_input_that_comes_again_counts_once() {
    let whole = r#"{"city":"Paris"}"#;
    is(&[whole], &[], whole, 0);
    is(&[whole, whole], &[], whole, 0);
    is(&[whole, "{\"city\":", "\"Paris\"}"], &[], whole, 0);
    is(&[whole, "{\"city\":", " \"Paris\" }\n", whole], &[], whole, 0);
    is(&["{\"city\":", "\"Paris\"}", whole], &["{\"city\":", "\"Paris\"}"], whole, 0);
    is(
        &["{\"city\":", "\"Paris\"}", "json:{\"city\": \"Paris\"}"],
        &["{\"city\":", "\"Paris\"}"],
        whole,
        0,
    );
    is(&["json:{\"city\": \"Paris\"}", "{\"city\":", "\"Paris\"}"], &[], whole, 0);
}

#[test]
fn a_placeholder_gives_way() {
    is(&["{}", "{\"a\":1}"], &[], r#"{"a":1}"#, 0);
    is(&["{}", "{\"a\":", "1}"], &["{\"a\":", "1}"], r#"{"a":1}"#, 0);
    is(&["{}", " ", "{\"a\":", "1}"], &["{\"a\":", "1}"], r#"{"a":1}"#, 0);
    is(&["json:{}", "{\"a\":", "1}"], &["{\"a\":", "1}"], r#"{"a":1}"#, 0);
    is(&["null", "{\"a\":1}"], &[], r#"{"a":1}"#, 0);
    is(&["[", "]", "{\"a\":1}"], &[], r#"{"a":1}"#, 0);
    is(&["nu", "ll ", "{\"a\":", "1}"], &["{\"a\":", "1}"], r#"{"a":1}"#, 0);
    is(&["{}", "\"{\\\"a\\\"", ":1}\""], &[], r#"{"a":1}"#, 0);
    // A placeholder stays if the text behind it begins no input.
    is(&["{}", "}"], &[], "{}", 1);
    is(&["{}", "<|im_end|>"], &[], "{}", 1);
    is(&["{", "}", "}"], &[], "{}", 1);
    // A placeholder never replaces an input.
    is(&["{\"a\":1}", "{}"], &[], r#"{"a":1}"#, 1);
}

#[test]
fn cumulative_fragments_are_told_from_nested_ones() {
    is(
        &["{\"city\"", "{\"city\":\"Pa", "{\"city\":\"Paris\"}"],
        &["{\"city\"", ":\"Pa", "ris\"}"],
        r#"{"city":"Paris"}"#,
        0,
    );
    is(&["{", "{\"a\":1}"], &["{\"a\":1}"], r#"{"a":1}"#, 0);
    is(&["{\"a\":", "{\"a\":1}}"], &["{\"a\":", "{\"a\":1}}"], r#"{"a":{"a":1}}"#, 0);
    // Both interpretations (delta and cumulative) stay possible until the end or the next fragment.
    is(&["{\"a\":", "{\"a\":1}"], &["{\"a\":"], r#"{"a":1}"#, 0);
    is(&["{\"a\":", "{\"a\":1", "}", "}"], &["{\"a\":", "{\"a\":1}}"], r#"{"a":{"a":1}}"#, 0);
    is(&["{\"a\":", "{\"a\":1", "{\"a\":12}"], &["{\"a\":", "12}"], r#"{"a":12}"#, 0);
    is(&["{\"a\":", "json:{\"a\":1}"], &["{\"a\":", "1}"], r#"{"a":1}"#, 0);
}

#[test]
fn another_value_wins_only_while_nothing_was_sent() {
    is(&["{\"a\":1}", "{\"a\":2}"], &[], r#"{"a":2}"#, 1);
    is(&["{\"a\":", "1}", "{\"a\":2}"], &["{\"a\":", "1}"], r#"{"a":1}"#, 1);
    is(&["{\"a\":", "1}", "}", "}"], &["{\"a\":", "1}"], r#"{"a":1}"#, 1);
    is(&["{\"a\":1}", "{\"a\":"], &[], r#"{"a":1}"#, 1);
    is(&["{\"a\":", "json:{\"b\":1}", "1}"], &["{\"a\":", "1}"], r#"{"a":1}"#, 1);
}

#[test]
fn objects_in_place_of_texts_are_put_together() {
    let paris = r#"{"city":"Paris","unit":"C"}"#;
    for fragments in [
        &[r#"json:{"city":"Par"}"#, r#"json:{"city":"is"}"#, r#"json:{"unit":"C"}"#] as &[&str],
        &[r#"json:{}"#, r#"json:{"city":"Paris"}"#, r#"json:{"unit":"C"}"#],
        &["{}", r#"json:{"city":"Paris"}"#, r#"json:{"unit":"C"}"#],
        &[r#"json:{"city":null}"#, r#"json:{"city":"Paris"}"#, r#"json:{"unit":"C"}"#],
        // Objects that are cumulative as a whole, or in each member.
        &[
            r#"json:{"city":"Par"}"#,
            r#"json:{"city":"Paris"}"#,
            r#"json:{"city":"Paris","unit":"C"}"#,
        ],
        &[r#"json:{"city":"Par"}"#, r#"json:{"city":"Paris"}"#, r#"json:{"unit":"C"}"#],
        // The last object repeats all members.
        &[
            r#"json:{"city":"Pa"}"#,
            r#"json:{"city":"ris"}"#,
            r#"json:{"unit":"C"}"#,
            r#"json:{"city": "Paris","unit":"C"}"#,
        ],
        &[r#"json:{"city":"Pa"}"#, r#"json:{"city":"ris","unit":"C"}"#, paris],
    ] {
        is(fragments, &[], paris, 0);
    }
    // Two equal deltas are no repetition: a text can repeat itself by chance.
    is(&["json:{\"a\":\"ha\"}", "json:{\"a\":\"ha\"}"], &[], r#"{"a":"ha"}"#, 0);
    is(
        &["json:{\"a\":\"ha\"}", "json:{\"a\":\"ha\"}", "json:{\"a\":\"!\"}"],
        &[],
        r#"{"a":"haha!"}"#,
        0,
    );
    is(
        &[r#"json:{"a":[{"b":"x"}],"n":1}"#, r#"json:{"a":[{"b":"xy"},{}],"n":1}"#],
        &[],
        r#"{"a":[{"b":"xy"},{}],"n":1}"#,
        0,
    );
    // An escape at the end of a fragment stays whole.
    is(&[r#"json:{"a":"\""}"#, r#"json:{"a":"\\"}"#], &[], r#"{"a":"\"\\"}"#, 0);
}

#[test]
fn a_null_takes_nothing_from_what_was_there() {
    let fragments = [
        r#"json:{"p":"Par","u":null}"#,
        r#"json:{"p":"is","u":null}"#,
        r#"json:{"p":null,"u":"C"}"#,
    ];
    is(&fragments, &[], r#"{"p":"Paris","u":"C"}"#, 0);
    is(
        &[r#"json:{"p":"/a","n":1}"#, r#"json:{"p":"/ab","n":null}"#],
        &[],
        r#"{"p":"/ab","n":1}"#,
        0,
    );
}

#[test]
fn cumulative_objects_are_held_once() {
    let mut input = ToolInput::default();
    for length in 1..2_000 {
        input.receive_json(&format!("{{\"text\":\"{}\"}}", "x".repeat(length)), false);
    }
    assert!(input.held_bytes() < 10_000, "{}", input.held_bytes());
}

#[test]
fn of_objects_that_contradict_each_other_none_is_run() {
    for (fragments, text) in [
        (["json:{\"n\":1}", "json:{\"n\":2}"], r#"{"n":1}{"n":2}"#),
        (["json:{\"n\":5}", "json:{\"n\":50}"], r#"{"n":5}{"n":50}"#),
        (["json:{\"n\":{\"a\":1}}", "json:{\"n\":{\"b\":2}}"], r#"{"n":{"a":1}}{"n":{"b":2}}"#),
        (["json:{\"n\":\"1\"}", "json:{\"n\":2}"], r#"{"n":"1"}{"n":2}"#),
        (["json:{\"n\":[1]}", "json:{\"n\":\"x\"}"], r#"{"n":[1]}{"n":"x"}"#),
    ] {
        assert_eq!(receive(&fragments), (vec![], FinalInput::Invalid, 1), "{text}");
        let mut input = ToolInput::default();
        for fragment in fragments {
            input.receive_json(fragment.strip_prefix("json:").unwrap(), false);
        }
        input.finish(false);
        assert_eq!(input.rest(), text);
    }
}

#[test]
fn an_input_that_comes_again_in_another_spelling_is_one_input() {
    let input = r#"{"a":"é","b":[1]}"#;
    for again in [r#"{"a":"\u00e9","b":[1]}"#, r#"{ "b": [1], "a": "é" }"#] {
        is(&[input, again], &[], input, 0);
        is(&[&[input, again].concat()], &[], input, 0);
        for at in 1..again.len() {
            if let Some((left, right)) = again.split_at_checked(at) {
                is(&[input, left, right], &[], input, 0);
            }
        }
    }
}

#[test]
fn of_whole_inputs_that_grow_the_last_may_come_in_pieces() {
    let xyz = r#"{"a":"xyz"}"#;
    is(&[r#"{"a":"x"}"#, r#"{"a":"xy"}"#, xyz], &[], xyz, 2);
    for at in 1..xyz.len() {
        let (left, right) = xyz.split_at(at);
        is(&[r#"{"a":"x"}"#, r#"{"a":"xy"}"#, left, right], &[], xyz, 2);
    }
    let cut = [r#"{"a":"x"}"#, r#"{"a":"xy"}"#, r#"{"a":"xyz"#];
    assert_eq!(receive(&cut), (vec![], FinalInput::Invalid, 2));
}

#[test]
fn of_different_objects_in_one_text_none_is_run() {
    let (a, b) = (r#"{"a":1}"#, r#"{"b":2}"#);
    // Different objects, also behind a repetition, a placeholder or white space.
    for text in [
        r#"{"a":1}{"b":2}"#,
        "{\"a\":1}\n{\"b\":2}\n",
        r#"{"a":1}{"a": 1}{"b":2}"#,
        r#"{}{"a":1}{"b":2}"#,
    ] {
        let ends = |fragments: &[&str]| {
            let mut input = ToolInput::default();
            for fragment in fragments {
                let mut raw = Vec::new();
                json::escape(&mut raw, fragment);
                input.receive(std::str::from_utf8(&raw).unwrap(), &mut String::new());
            }
            let end = input.finish(false);
            (end, input.rest().trim().to_owned(), input.take_conflicts())
        };
        let both = || (FinalInput::Invalid, [a, b].concat(), 1);
        assert_eq!(ends(&[text]), both(), "{text}");
        let at_the_limit = {
            let mut input = ToolInput::default();
            let mut raw = Vec::new();
            json::escape(&mut raw, text);
            input.receive(std::str::from_utf8(&raw).unwrap(), &mut String::new());
            input.finish(true)
        };
        assert_eq!(at_the_limit, FinalInput::Invalid, "{text}");
        let bytes: Vec<&str> = text.split("").collect();
        assert_eq!(ends(&bytes), both(), "{text}, byte by byte");
        for at in 1..text.len() {
            let (left, right) = text.split_at(at);
            // A fragment that is a whole input replaces the input before it.
            let expected = match right.trim() == b {
                true => (FinalInput::Object(b.to_owned()), b.to_owned(), 1),
                false => both(),
            };
            assert_eq!(ends(&[left, right]), expected, "{text} cut at {at}");
        }
    }
    // All text behind the first object belongs to the invalid input that the model is shown.
    let (sent, end, conflicts) = receive(&[r#"{"a":1}{"b":2} {"c""#, ":3}", r#"{"d":4}"#]);
    assert_eq!((sent, end, conflicts), (vec![], FinalInput::Invalid, 1));
    // Input that has been sent stays unchanged.
    is(&["{\"a\":", "1}{\"b\":2}"], &["{\"a\":", "1}"], a, 1);
    is(&["{\"a\":1}{}"], &[], a, 1);
    is(&["{\"a\":1}", " {\"b\":2}\n"], &[], b, 1);
}

#[test]
fn of_different_objects_with_signs_between_them_none_is_run() {
    for text in [
        r#"{"a":1},{"b":2}"#,
        r#"{"a":1};{"b":2};"#,
        "{\"a\":1}\n---\n{\"b\":2}",
        r#"{"a":1},{"a": 1} , {"b":2}"#,
        r#"{},{"a":1},{"b":2}"#,
    ] {
        let (sent, end, conflicts) = receive(&[text]);
        assert_eq!((sent, end, conflicts), (vec![], FinalInput::Invalid, 1), "{text}");
        let bytes: Vec<&str> = text.split("").collect();
        assert_eq!(receive_buffered(&bytes), (FinalInput::Invalid, 1), "{text}, byte by byte");
        for at in 1..text.len() {
            let (left, right) = text.split_at(at);
            if !right.trim_start().starts_with("{\"b\"") {
                let ends = receive_buffered(&[left, right]);
                assert_eq!(ends, (FinalInput::Invalid, 1), "{text} cut at {at}");
            }
        }
    }
    // Separators alone do not begin another input.
    for text in [r#"{"a":1},"#, r#"{"a":1},{"a":1}"#, r#"{};{"a":1}; "#, "{\"a\":1}\n---\n"] {
        assert_eq!(receive(&[text]).1, FinalInput::Object(r#"{"a":1}"#.to_owned()), "{text}");
    }
    is(&["{\"a\":", "1},{\"b\":2}"], &["{\"a\":", "1}"], r#"{"a":1}"#, 1);
}

#[test]
fn a_second_object_that_is_not_whole_is_a_second_object() {
    for text in [
        r#"{"a":1}{"b":2"#,
        r#"{"a":1},{"b":"#,
        r#"{"a":1}{"a":2"#,
        r#"{"a":1}{"b":2]"#,
        r#"{"a":1}{"b"}{"c":3}"#,
        r#"{"a":1}{'b': 2}"#,
    ] {
        assert_eq!(receive(&[text]), (vec![], FinalInput::Invalid, 1), "{text}");
        let bytes: Vec<&str> = text.split("").collect();
        assert_eq!(receive_buffered(&bytes), (FinalInput::Invalid, 1), "{text}, byte by byte");
    }
    // The model is shown the whole invalid input.
    let mut input = ToolInput::default();
    input.receive_json(r#"{"a":1}"#, false);
    input.receive(r#"{\"b\":2]"#, &mut String::new());
    input.receive(" x", &mut String::new());
    assert_eq!((input.finish(true), input.rest()), (FinalInput::Invalid, r#"{"a":1}{"b":2] x"#));
    // Text that is cut off may be a repetition of the input.
    for text in [r#"{"a":1}{"#, "{\"a\":1}{\"a\":\n", r#"{"a":1}{"a":1"#] {
        is(&[text], &[], r#"{"a":1}"#, 1);
    }
    is(&["{\"a\":", "1}{\"b\":"], &["{\"a\":", "1}"], r#"{"a":1}"#, 1);
}

#[test]
fn what_stands_behind_an_object_is_the_same_however_it_is_cut() {
    for (text, object, conflicts) in [
        (r#"{"a":"x"}{"a":"x"}"#, r#"{"a":"x"}"#, 0),
        (r#"{}{"a":"x"}"#, r#"{"a":"x"}"#, 0),
        (r#"null {"a":"x"}"#, r#"{"a":"x"}"#, 0),
        (r#"{} {} {"a":"x"}{"a":"x"}{"a":"x"}"#, r#"{"a":"x"}"#, 0),
        (r#"{"a":"x"}}"#, r#"{"a":"x"}"#, 1),
        (r#"{"a":"x"}<|im_end|>"#, r#"{"a":"x"}"#, 1),
        (r#"{"a":"x"}{"a":"#, r#"{"a":"x"}"#, 1),
    ] {
        let expected = (FinalInput::Object(object.to_owned()), conflicts);
        let ends = |fragments: &[&str]| {
            let (_, end, conflicts) = receive(fragments);
            (end, conflicts)
        };
        assert_eq!(ends(&[text]), expected, "{text}");
        let bytes: Vec<&str> = text.split("").collect();
        assert_eq!(ends(&bytes), expected, "{text}, byte by byte");
        for at in 1..text.len() {
            let (left, right) = text.split_at(at);
            assert_eq!(ends(&[left, right]), expected, "{text} cut at {at}");
        }
    }
    // Many objects are read once each, and without recursion.
    let many = "{}".repeat(100_000);
    assert_eq!(receive(&[&many]).1, FinalInput::Object("{}".to_owned()));
}

#[test]
fn an_object_in_a_string_is_unwrapped_once() {
    is(&["\"{\\\"a\\\"", ":1}\""], &[], r#"{"a":1}"#, 0);
    for fragments in
        [["\"x\""], ["[1]"], ["5"], ["{'a': 1}"], ["a=1"], ["\"\\\"{}\\\"\""], ["json:[1]"]]
    {
        assert_eq!(receive(&fragments), (vec![], FinalInput::Invalid, 0), "{fragments:?}");
    }
}

#[test]
fn a_mark_before_the_input_is_no_part_of_it() {
    let (text, object) = (" [ARGS]{\"city\":\"[ARGS]\"}", r#"{"city":"[ARGS]"}"#);
    let input = |fragments: &[&str]| receive(fragments).1;
    assert_eq!(input(&[text]), FinalInput::Object(object.to_owned()));
    assert_eq!(input(&text.split("").collect::<Vec<_>>()), FinalInput::Object(object.to_owned()));
    for at in 1..text.len() {
        let (left, right) = text.split_at(at);
        assert_eq!(input(&[left, right]), FinalInput::Object(object.to_owned()), "cut at {at}");
    }
    assert_eq!(input(&["[ARGS]"]), FinalInput::Object("{}".to_owned()));
    assert_eq!(input(&["[ARG", "{}"]), FinalInput::Invalid);
}

#[test]
fn what_is_not_json_after_a_good_start_is_sent_as_it_came() {
    let (sent, end, _) = receive(&["{\"a\":", "'x'", "}"]);
    assert_eq!((sent.concat().as_str(), end), ("{\"a\":'x'}", FinalInput::Invalid));
}

#[test]
fn an_input_that_broke_off_is_cut_off_only_by_the_length_limit() {
    for (text, cut) in [("{\"a\":\"b", true), ("", true), ("[1]", false), ("{\"a\":1}", false)] {
        let mut input = ToolInput::default();
        let mut raw = Vec::new();
        json::escape(&mut raw, text);
        input.receive(std::str::from_utf8(&raw).unwrap(), &mut String::new());
        assert_eq!(input.finish(true) == FinalInput::CutOff, cut, "{text}");
    }
}

#[test]
fn a_pair_of_escapes_may_be_cut() {
    let mut input = ToolInput::default();
    let scratch = &mut String::new();
    input.receive(r#"{\"s\":\"\ud83c"#, scratch);
    assert_eq!(input.send(), "{\"s\":\"");
    input.receive(r#"\udf89\"}"#, scratch);
    assert_eq!(input.send(), "🎉\"}");
    let mut input = ToolInput::default();
    input.receive(r#"{\"s\":\"\\ud83c"#, scratch);
    input.receive(r#"\\udf89\"}"#, scratch);
    assert_eq!(input.finish(false), FinalInput::Object("{\"s\":\"\\ud83c\\udf89\"}".to_owned()));
}

#[test]
fn the_text_of_a_custom_tool_becomes_a_member() {
    let mut input = ToolInput::default();
    input.set_custom();
    input.receive("{ls", &mut String::new());
    assert_eq!(input.send(), "");
    assert_eq!(input.finish(false), FinalInput::Object("{\"input\":\"{ls\"}".to_owned()));
}
