//! Tool calls: their ids and names, and those that are broken, too many or forbidden.

use super::*;

#[test]
fn ids_are_unique_in_the_conversation_and_in_the_answer() {
    let c = case().with(|context, _| {
        context.ids_used.add("toolu_a".to_owned());
    });
    c.gives(
        &done(&[call(0, "call_a", "w", "{}"), call(1, "call_a", "w", "{\"a\":1}")]),
        "tool_use u2_a w {}, tool_use u3_a w {\"a\":1}; tool_use",
    );
    // In a whole answer, each entry is a call, whatever its id.
    let call = json!({"id": "call_a", "function": {"name": "w", "arguments": {"a": 1}}});
    let body = json!({"choices": [{"message": {"tool_calls": [call, call]}}]}).to_string();
    for stream in [true, false] {
        let outcome = case().whole(stream, &body);
        assert_eq!(show(&outcome), "tool_use a w {\"a\":1}, tool_use u2_a w {\"a\":1}; tool_use");
    }
}

#[test]
fn names_are_those_of_the_client() {
    let c = case();
    c.gives(
        &done(&[call(0, "call_a", "browser_click", "{}")]),
        "tool_use a browser.click {}; tool_use",
    );
    c.gives(
        &done(&[call(0, "call_a", "Get Weather", "{}")]),
        "tool_use a get_weather {}; tool_use !tool_name_repaired",
    );
    // Other signs behind the markup of the model's own functions, as in a call that it writes as
    // text.
    for name in ["functions.getWeather", "functions.get-weather", "default_api:Get Weather"] {
        c.gives(
            &done(&[call(0, "call_a", name, "{}")]),
            "tool_use a get_weather {}; tool_use !tool_name_repaired",
        );
    }
    c.gives(
        &done(&[call(0, "call_a", "Bassh", "{}")]),
        "tool_use a Bassh {}; tool_use !tool_unknown",
    );
    c.gives(&done(&[call(0, "call_a", "", "{}")]), "502 api_error !tool_unknown");
    c.gives(
        &done(&[text("Hi"), call(0, "call_a", "", "{}")]),
        "text \"Hi\"; end_turn !tool_unknown",
    );
}

#[test]
fn old_and_custom_calls_are_calls() {
    let c = case();
    let old = |name: Value, arguments: &str| json!({"function_call": {"name": name, "arguments": arguments}});
    c.gives(
        &done(&[old(json!("w"), ""), old(Value::Null, "{\"a\":"), old(json!(""), "1}")]),
        "tool_use minted w {\"a\":1}; tool_use",
    );
    // Both forms of one call, one after the other.
    let whole = old(json!("w"), "{\"a\":1}");
    let pieces = [call(0, "", "w", ""), call(0, "", "", "{\"a\""), call(0, "", "", ":1}")];
    for second in [&[call(0, "", "w", "{\"a\":1}")][..], &pieces] {
        c.gives(
            &done(&[std::slice::from_ref(&whole), second].concat()),
            "tool_use minted w {\"a\":1}; tool_use",
        );
    }
    let custom = |input: &str| {
        json!({"tool_calls": [{"index": 0, "id": "call_a", "type": "custom",
            "custom": {"name": "w", "input": input}}]})
    };
    // A text that is no JSON is never half of it, so such a call is complete without an end mark,
    // too.
    let pieces = [custom("{ls "), custom("-l"), json!({"finish": "tool_calls"})];
    for answer in [done(&pieces), sse(&pieces, "")] {
        c.gives(&answer, "tool_use a w {\"input\":\"{ls -l\"}; tool_use");
    }
}

#[test]
fn a_call_that_is_not_json_is_visible() {
    let c = case();
    let broken = [call(0, "call_a", "w", "{'city': 'Paris',}"), json!({"finish": "tool_calls"})];
    let expected =
        "tool_use a w {\"INVALID_JSON\":\"{'city': 'Paris',}\"}; tool_use !tool_input_invalid";
    c.gives(&done(&broken), expected);
    // What has been sent cannot be taken back.
    let later = [call(0, "call_a", "w", "{\"a\":"), call(0, "", "", "x}")];
    c.streams(&done(&later), "tool_use a w \"{\\\"a\\\":x}\"; tool_use !tool_input_invalid");
    let buffered = case().with(|_, settings| settings.tool_stream = ToolStream::Buffered);
    buffered.gives(
        &done(&later),
        "tool_use a w {\"INVALID_JSON\":\"{\\\"a\\\":x}\"}; tool_use !tool_input_invalid",
    );

    let hold = case().with(|_, settings| settings.invalid_tool_call = InvalidToolCall::Hold);
    hold.gives(&done(&broken), "502 api_error !tool_input_invalid !tool_call_withheld");
    let mut with_text = vec![text("Hi")];
    with_text.extend(broken);
    hold.gives(&done(&with_text), "text \"Hi\"; end_turn !tool_input_invalid !tool_call_withheld");
    hold.gives(
        &done(&[call(0, "a", "rm", "{}"), call(1, "call_b", "w", "{}")]),
        "tool_use b w {}; tool_use !tool_unknown",
    );
    let repair = case().with(|_, settings| {
        settings.invalid_tool_call = InvalidToolCall::Repair;
        settings.tool_stream = ToolStream::Buffered;
    });
    let echo = [call(0, "call_a", "w", "{\"a\":\"id\",\"id\":\"toolu_x\"}")];
    repair.gives(&done(&echo), "tool_use a w {\"a\":\"id\"}; tool_use !tool_input_repaired");
    // Gemini, Kimi
    let bare = [call(0, "call_a", "w", "{\"a\":\"x\ny\","), call(0, "", "", "\"b\\\\\":\"\t\"}")];
    repair.gives(
        &done(&bare),
        r#"tool_use a w {"a":"x\ny","b\\":"\t"}; tool_use !tool_input_repaired"#,
    );
    repair.gives(
        &done(&[call(0, "call_a", "w", "{\"a\":\"x\ny\"} {")]),
        "tool_use a w {\"INVALID_JSON\":\"{\\\"a\\\":\\\"x\\ny\\\"} {\"}; tool_use !tool_input_invalid",
    );
}

#[test]
fn repair_takes_what_the_schema_wants_out_of_strings() {
    let schema = json!({"properties": {"todos": {"type": "array"}, "note": {"type": "string"}}});
    let repair = case().with(|context, settings| {
        let schema = Some(schema.to_string().into());
        context.tools.push(Tool {
            outgoing: "todo".into(),
            name: "todo".into(),
            schema,
            ..Tool::default()
        });
        settings.invalid_tool_call = InvalidToolCall::Repair;
        settings.tool_stream = ToolStream::Buffered;
    });
    // GLM, MiniMax, Qwen
    let quoted = [call(0, "call_a", "todo", r#"{"todos":"[{\"a\": 1}]","note":"[1]"}"#)];
    repair.gives(
        &done(&quoted),
        r#"tool_use a todo {"note":"[1]","todos":[{"a":1}]}; tool_use !tool_input_repaired"#,
    );
    let broken = [call(0, "call_a", "todo", r#"{"todos":"[{"}"#)];
    repair.gives(
        &done(&broken),
        r#"tool_use a todo {"todos":"[{"}; tool_use !tool_input_violates_schema"#,
    );
    let pass = repair.with(|_, settings| settings.invalid_tool_call = InvalidToolCall::Pass);
    pass.gives(
        &done(&quoted),
        r#"tool_use a todo {"note":"[1]","todos":"[{\"a\": 1}]"}; tool_use !tool_input_violates_schema"#,
    );
}

#[test]
fn an_input_may_come_as_several_objects() {
    let c = case();
    let object = |id: &str, arguments: Value| {
        let mut chunk = call(0, id, if id.is_empty() { "" } else { "w" }, "");
        chunk["tool_calls"][0]["function"]["arguments"] = arguments;
        chunk
    };
    let paris = "tool_use a w {\"city\":\"Paris\",\"unit\":\"C\"}; tool_use";
    for arguments in [
        [json!({"city": "Par"}), json!({"city": "is", "unit": "C"})],
        [json!({"city": "Paris"}), json!({"unit": "C"})],
        [json!({"city": "Par"}), json!({"city": "Paris", "unit": "C"})],
    ] {
        let [first, second] = arguments;
        c.gives(&done(&[object("call_a", first), object("", second)]), paris);
    }
    // With the name again it may be another call with the same id: a path that nobody wrote must
    // not be run.
    let two = [
        object("call_a", json!({"path": "/a", "limit": 5})),
        object("call_a", json!({"path": "/b"})),
    ];
    let invalid = c.stream(&done(&two));
    assert!(show(&invalid).contains("INVALID_JSON"), "{}", show(&invalid));
    let more = [
        object("call_a", json!({"city": "Par"})),
        object("call_a", json!({"city": "Paris", "unit": "C"})),
    ];
    c.gives(&done(&more), paris);
    let contradiction = [object("call_a", json!({"n": 1})), object("", json!({"n": 2}))];
    c.gives(
        &done(&contradiction),
        "tool_use a w {\"INVALID_JSON\":\"{\\\"n\\\":1}{\\\"n\\\":2}\"}; tool_use !tool_input_conflict \
         !tool_input_invalid",
    );
}

#[test]
fn several_inputs_in_one_text_are_no_input() {
    let written = "{\"path\":\"/a\"}{\"path\":\"/b\"}";
    let invalid = format!(
        "tool_use a w {}; tool_use !tool_input_conflict !tool_input_invalid",
        json!({"INVALID_JSON": written})
    );
    let pieces = |arguments: &[&str]| {
        let mut chunks = vec![call(0, "call_a", "w", "")];
        chunks.extend(arguments.iter().map(|piece| call(0, "", "", piece)));
        chunks.push(json!({"finish": "tool_calls"}));
        done(&chunks)
    };
    let c = case();
    c.gives(&pieces(&[written]), &invalid);
    // A call behind it waits until it is over.
    let two = [call(0, "call_a", "w", written), call(1, "call_b", "t", "{}")];
    c.gives(&done(&two), &invalid.replace("; ", ", tool_use b t {}; "));
    let arguments = json!({"id": "call_a", "function": {"name": "w", "arguments": written}});
    let body = json!({"choices": [{"message": {"tool_calls": [arguments]}}]}).to_string();
    for stream in [true, false] {
        assert_eq!(show(&c.whole(stream, &body)), invalid);
    }
    let buffered = case().with(|_, settings| settings.tool_stream = ToolStream::Buffered);
    let hold = case().with(|_, settings| settings.invalid_tool_call = InvalidToolCall::Hold);
    hold.gives(
        &pieces(&[written]),
        "502 api_error !tool_input_conflict !tool_input_invalid !tool_call_withheld",
    );
    for at in 1..written.len() {
        let (left, right) = written.split_at(at);
        if right == "{\"path\":\"/b\"}" {
            // Two whole inputs, one after the other: the later one counts.
            continue;
        }
        buffered.gives(&pieces(&[left, right]), &invalid);
    }
    // What the client has seen cannot be taken back.
    let first = "tool_use a w {\"path\":\"/a\"}; tool_use !tool_input_conflict";
    c.streams(&pieces(&["{\"path\"", ":\"/a\"}{\"pa", "th\":\"/b\"}"]), first);
    // The same once more, and a placeholder, are no other inputs.
    let one = "tool_use a w {\"a\":1}; tool_use";
    for written in ["{\"a\":1}{\"a\":1}", "{}{\"a\":1}", "{\"a\":1}\n{\"a\": 1}\n"] {
        c.gives(&pieces(&[written]), one);
        buffered.gives(&pieces(&[written]), one);
    }
}

#[test]
fn the_mark_between_a_name_and_its_input_belongs_to_neither() {
    let expected = "tool_use a w {\"a\":1}; tool_use";
    let c = case();
    c.gives(
        &done(&[call(0, "call_a", "w[ARGS]", "{\"a\":1}")]),
        &format!("{expected} !tool_name_repaired"),
    );
    c.gives(&done(&[call(0, "call_a", "w", "[ARGS]{\""), call(0, "", "", "a\":1}")]), expected);
    c.gives(&done(&[call(0, "call_a", "w", "[ARGS]"), call(0, "", "", "{\"a\":1}")]), expected);
}

#[test]
fn a_call_that_the_length_limit_cut_is_never_run() {
    let cut = [
        call(0, "call_a", "w", "{\"a\":1}"),
        call(1, "call_b", "t", "{\"b\":\"x"),
        json!({"finish": "length"}),
    ];
    let live = "tool_use a w {\"a\":1}, tool_use b t \"{\\\"b\\\":\\\"x\"; max_tokens";
    let buffered = case().with(|_, settings| settings.tool_stream = ToolStream::Buffered);
    // Not every server sends an end mark, and such a call is as complete as it gets.
    for cut in [done(&cut), sse(&cut, "")] {
        case().streams(&cut, live);
        buffered.gives(&cut, "tool_use a w {\"a\":1}; max_tokens !tool_call_cut_off");
    }
    case().streams(
        &done(&[call(0, "call_a", "w", ""), json!({"finish": "length"})]),
        "tool_use a w {}; max_tokens",
    );
}

#[test]
fn one_call_is_kept_where_the_client_takes_one() {
    let c = case().with(|context, _| context.limits.one_tool_call = true);
    let sse = done(&[
        call(0, "call_a", "w", "{\"a\":"),
        call(1, "call_b", "t", "{}"),
        call(0, "", "", "1}"),
        call(1, "", "", "{\"x\":1}"),
    ]);
    c.gives(&sse, "tool_use a w {\"a\":1}; tool_use !parallel_cut");
}

#[test]
fn a_waiting_call_shows_progress_as_soon_as_it_can() {
    let mut answer = answer(RequestContext { stream: true, ..case().context });
    let mut out = Vec::new();
    let mut feed = |chunk: Value| {
        out.clear();
        answer.handle_piece(sse(&[chunk], "").as_bytes(), &mut out).unwrap();
        let progress = answer.report().progress;
        (String::from_utf8(out.clone()).unwrap(), progress)
    };
    for nothing in [json!({"role": "assistant"}), json!({"content": ""}), json!({"content": ""})] {
        assert_eq!(feed(nothing), (String::new(), 0));
    }
    // A known name is enough to start; a start of one is not.
    let (events, _) = feed(call(0, "call_a", "w", ""));
    assert!(events.contains("message_start") && events.contains("content_block_start"));
    let (events, progress) = feed(call(0, "", "", "{\"a\":"));
    assert!(events.contains("input_json_delta") && progress == 1);
    assert_eq!(feed(call(1, "call_b", "t", "{")).0, "");
    assert!(feed(call(0, "", "", "1}")).0.contains("\"index\":1,\"content_block\""));
}

#[test]
fn a_call_without_arguments_is_cut_off_only_if_it_is_the_last_thing() {
    let [ping, other] = [call(0, "call_a", "t", ""), call(1, "call_b", "w", "{}")];
    let finish = |word: &str| json!({"finish": word});
    for (chunks, expected) in [
        (
            vec![ping.clone(), other.clone(), finish("length")],
            "tool_use a t {}, tool_use b w {}; max_tokens",
        ),
        (
            vec![ping.clone(), text("Hi"), finish("length")],
            "tool_use a t {}, text \"Hi\"; max_tokens",
        ),
        (
            vec![ping.clone(), other.clone(), finish("content_filter")],
            "tool_use a t {}, tool_use b w {}; refusal",
        ),
        (
            vec![ping.clone(), text("Hi"), finish("content_filter")],
            "tool_use a t {}, text \"Hi\"; refusal",
        ),
        // Nobody says that it is complete.
        (
            vec![
                json!({"function_call": {"name": "t", "arguments": ""}}),
                finish("content_filter"),
            ],
            "; refusal !tool_call_cut_off",
        ),
        (vec![call(0, "", "t", ""), finish("content_filter")], "; refusal !tool_call_cut_off"),
    ] {
        case().gives(&done(&chunks), expected);
    }
    let one = case().with(|context, _| context.limits.one_tool_call = true);
    one.gives(
        &done(&[ping.clone(), other, finish("length")]),
        "tool_use a t {}; max_tokens !parallel_cut",
    );
    let cut = done(&[ping, finish("content_filter")]);
    assert_eq!(show(&case().stream(&cut)), "502 api_error");
}

#[test]
fn a_refusal_has_no_call_whose_input_is_not_one() {
    for arguments in ["{\"n\":1}{\"n\":2}", "{'n': 1}", "nullnull"] {
        let called = call(0, "call_a", "w", arguments);
        let body = |finish: &str| {
            json!({"choices": [{"message": called, "finish_reason": finish}]}).to_string()
        };
        for stream in [true, false] {
            let outcome = show(&case().whole(stream, &body("content_filter")));
            assert!(outcome.starts_with("; refusal !"), "{arguments}: {outcome}");
            // Elsewhere it is shown: the model can mend it.
            let outcome = show(&case().whole(stream, &body("tool_calls")));
            assert!(outcome.contains("INVALID_JSON"), "{arguments}: {outcome}");
        }
        let chunks = done(&[called.clone(), json!({"finish": "content_filter"})]);
        let seen = show(&case().stream(&chunks));
        assert!(seen.starts_with("502 api_error"), "{arguments}: {seen}");
    }
}

#[test]
fn a_withheld_tool_is_known_by_the_same_spellings_as_others() {
    let names =
        || Withheld::These(["get_time", "read", "my_tool", "My-Tool"].map(str::to_owned).to_vec());
    let c = case().with(|context, _| {
        context.withheld = names();
        context.tools.push(Tool {
            outgoing: "Read".into(),
            name: "Read".into(),
            ..Tool::default()
        });
    });
    for name in ["get_time", "functions.get_time", "getTime", "get_time:0", "read", "mytool"] {
        let outcome = c.stream(&done(&[text("Hi"), call(0, "call_a", name, "{}")]));
        // A person would take the last words of the model for a promise.
        let told = "text \"[The model called a tool that is withheld, because it went on without getting \
                    anywhere. Say what to do next.]\"";
        let expected = format!("text \"Hi\", {told}; end_turn !withheld_tool_called");
        assert_eq!(show(&outcome), expected, "{name}");
    }
    for name in ["Read", "w"] {
        let expected = format!("tool_use a {name} {{}}; tool_use");
        c.gives(&done(&[call(0, "call_a", name, "{}")]), &expected);
    }
}

#[test]
fn a_call_that_the_request_forbids_goes_no_further() {
    let c = case().with(|context, _| context.withheld = Withheld::Forbidden);
    let calls = [call(0, "call_a", "w", "{}"), json!({"finish": "tool_calls"})];
    let expected = "text \"[The model called a tool, which this request forbids.]\"; end_turn \
                    !withheld_tool_called";
    c.gives(&done(&calls), expected);
    let body = json!({"choices": [{"message": calls[0], "finish_reason": "tool_calls"}]});
    assert_eq!(show(&c.whole(false, &body.to_string())), expected);
    let [calls, finish] = calls;
    let said = done(&[text("Hi"), calls, finish]);
    c.gives(&said, "text \"Hi\"; end_turn !withheld_tool_called");
}
