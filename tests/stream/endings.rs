//! Ends of answers, and the effects of a profile's flags.

use super::*;

#[test]
fn stop_sequences_are_named() {
    let c =
        case().with(|context, _| context.limits.stop_sequences = vec!["</a>".into(), "END".into()]);
    let native = |key: &str, value: Value| {
        done(&[
            text("hi"),
            json!({"choices": [{"delta": {}, "finish_reason": "stop", key: value}]}),
        ])
    };
    c.gives(&native("stop_reason", json!("</a>")), "text \"hi\"; stop_sequence \"</a>\"");
    c.gives(&native("matched_stop", json!("END")), "text \"hi\"; stop_sequence \"END\"");
    c.gives(&native("stop_reason", json!("other")), "text \"hi\"; end_turn");
    c.gives(&native("stop_reason", json!(128_009)), "text \"hi\"; end_turn");
    // Whether the upstream knew it or not.
    let cut = [
        text("a E"),
        text("N"),
        text("D b"),
        call(0, "call_a", "w", "{}"),
        json!({"finish": "length"}),
    ];
    c.gives(&done(&cut), "text \"a \"; stop_sequence \"END\"");
    c.gives(
        &done(&[text("a EN"), call(0, "call_a", "w", "{}")]),
        "text \"a EN\", tool_use a w {}; tool_use",
    );
}

#[test]
fn a_stop_sequence_that_the_upstream_ignores_ends_the_text_here() {
    // The classifier of Claude Code, which reads nothing but what comes before.
    let c = case().with(|context, _| context.limits.stop_sequences = vec!["</block>".into()]);
    let ignored = [text("<block>yes</bl"), text("ock><category>"), json!({"finish": "length"})];
    c.gives(&done(&ignored), "text \"<block>yes\"; stop_sequence \"</block>\"");
    let kept = [text("<block>yes"), json!({"finish": "stop"})];
    c.gives(&done(&kept), "text \"<block>yes\"; end_turn");
}

#[test]
fn profile_flags_change_answers() {
    let twice = [json!({"reasoning": "a"}), json!({"reasoning": "a"}), json!({"reasoning": "b"})];
    case().gives(&done(&twice), "thinking \"aab\"; end_turn");
    let c = case().with(|context, _| context.profile.response_model = ResponseModel::Upstream);
    let body = json!({"model": "up", "choices": [{"message": {"content": "a"}}]}).to_string();
    assert_eq!(message(&c.whole(true, &body))["model"], "up");
    assert_eq!(message(&c.whole(false, &body))["model"], "up");
    let c = case().with(|context, _| context.profile.inline_think = true);
    c.gives(
        &done(&[text("<thi"), text("nk>Hm"), text("m.</th"), text("ink>\n\nHi")]),
        "thinking \"Hmm.\", text \"Hi\"; end_turn",
    );
}

#[test]
fn calls_in_text_are_read_only_where_there_is_no_doubt() {
    let c = case().with(|context, _| context.profile.text_tool_calls = TextToolCalls::Hermes);
    let markup = "<tool_call>{\"name\":\"w\",\"arguments\":{\"a\":1}}</tool_call>";
    let call_only = "tool_use minted w {\"a\":1}; tool_use";
    c.gives(&done(&[text(markup)]), call_only);
    c.gives(&done(&[text("\n"), text(markup), text("\n")]), call_only);
    c.gives(
        &done(&[text(&format!("Let me see.\n{markup}"))]),
        "text \"Let me see.\\n\", tool_use minted w {\"a\":1}; tool_use",
    );
    for doubtful in [
        format!("Use {markup}"),
        format!("{markup} like this"),
        format!("```\n{markup}\n```"),
        format!("```xml\n{markup}"),
        format!("`{markup}`"),
        markup.replace('w', "rm"),
        "<tool_call>{\"name\":\"w\"".to_owned(),
        "<tool_ca".to_owned(),
    ] {
        let expected = format!("text {}; end_turn", json!(doubtful));
        c.gives(&done(&[text(&doubtful)]), &expected);
    }
    let expected = format!("text {}, tool_use b t {{}}; tool_use", json!(markup));
    c.gives(&done(&[text(markup), call(0, "call_b", "t", "{}")]), &expected);
    case().gives(&done(&[text(markup)]), &format!("text {}; end_turn", json!(markup)));

    let kimi = case().with(|context, _| context.profile.text_tool_calls = TextToolCalls::Kimi);
    let markup = "I see.<|tool_calls_section_begin|><|tool_call_begin|>functions.w:0<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>";
    kimi.gives(
        &done(&[text(markup)]),
        "text \"I see.\", tool_use x_functions-dw-c0 w {}; tool_use",
    );
}

#[test]
fn a_content_filters_error_inside_an_answer_is_a_refusal() {
    let error = json!({"error": {"code": "content_filter", "message": "no", "status": 400}});
    let c = case();
    c.gives(&done(std::slice::from_ref(&error)), "; refusal");
    c.gives(&format!("event: error\ndata: {error}\n\n"), "; refusal");
    c.gives(&done(&[text("He"), error.clone()]), "text \"He\"; refusal");
    let in_choice = json!({"choices": [{"delta": {}, "error": error["error"]}]});
    c.gives(&done(&[text("He"), in_choice]), "text \"He\"; refusal");
    for stream in [true, false] {
        assert_eq!(show(&c.whole(stream, &error.to_string())), "; refusal");
    }
}

#[test]
fn an_error_that_there_is_no_room_for_a_word_is_an_answer() {
    let error = json!({"error": {"message": "Could not finish the message because max_tokens or model output limit \
        was reached. Please try again with higher max_tokens."}});
    case().gives(&done(std::slice::from_ref(&error)), "; max_tokens");
    case().gives(&done(&[text("He"), error.clone()]), "text \"He\"; max_tokens");
    for stream in [true, false] {
        assert_eq!(show(&case().whole(stream, &error.to_string())), "; max_tokens");
    }
    let begun = call(0, "c0", "w", "{\"a\":\"rm -rf /tmp");
    assert!(case().stream(&done(&[begun, error])).error.is_some());
}

#[test]
fn what_an_upstream_says_of_the_gateways_key_stays_here_in_a_stream_too() {
    let denied = json!({"error": {"code": 401, "message": "key of acme-corp was revoked"}});
    let messages = json!({"type": "message_start", "message": {"content": []}});
    let later = done(&[text("He"), denied.clone()]);
    for sse in [
        done(std::slice::from_ref(&denied)),
        later,
        format!("event: error\ndata: {denied}\n\n"),
        format!("event: message_start\ndata: {messages}\n\nevent: error\ndata: {denied}\n\n"),
    ] {
        let own = case().with(|context, _| context.edge_key = true);
        for stream in [true, false] {
            let error = own.run(stream, [sse.as_bytes()]).error.unwrap();
            assert_eq!(error.message, "Upstream rejected the gateway's credentials.", "{sse}");
            let error = case().run(stream, [sse.as_bytes()]).error.unwrap();
            assert!(error.message.contains("acme-corp"), "{sse}: {}", error.message);
        }
    }
}

#[test]
fn a_content_filters_error_inside_a_call_closes_nothing() {
    let begun = call(0, "c0", "w", "{\"a\":\"rm -rf /tmp");
    let error = json!({"error": {"code": "content_filter", "message": "no", "status": 400}});
    let found = case().stream(&done(&[begun, error]));
    assert!(found.error.is_some(), "{}", found.out);
    assert!(!found.out.contains("content_block_stop"), "{}", found.out);
}

#[test]
fn a_content_filter_behind_a_whole_call_is_a_refusal() {
    for (input, expected) in
        [("null", "{}"), ("{\"a\":1}", "{\"a\":1}"), ("\"{\\\"a\\\":1}\"", "{\"a\":1}")]
    {
        let chunks = [call(0, "c0", "w", input), json!({"finish": "content_filter"})];
        case().gives(&done(&chunks), &format!("tool_use r_c0 w {expected}; refusal"));
    }
}

#[test]
fn events_without_blank_lines_are_all_read_at_the_end() {
    let chunk = |delta: Value, finish: Value| json!({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
    let (first, last) = (chunk(text("Hello"), Value::Null), chunk(json!({}), json!("stop")));
    case().gives(&format!("data: {first}\ndata: {last}"), "text \"Hello\"; end_turn");
}

#[test]
fn opaque_reasoning_without_end_is_too_large() {
    let c = case().with(|_, settings| settings.waiting_bytes_max = 10_000);
    let endless: [&dyn Fn(usize) -> Value; 2] = [
        &|at| json!({"reasoning_details": [{"type": "reasoning.encrypted", "index": at, "data": "x".repeat(999)}]}),
        &|_| {
            let extra = json!({"google": {"thought_signature": "x".repeat(999)}});
            let mut call = call(0, "c0", "w", "");
            call["tool_calls"][0]["extra_content"] = extra;
            call
        },
    ];
    for chunk in endless {
        let chunks: Vec<Value> = (0..40).map(chunk).collect();
        let error = c.run(true, [done(&chunks).as_bytes()]).error.expect("an error");
        assert!(error.message.contains("too large"), "{error:?}");
    }
}

#[test]
fn a_name_without_end_ends_where_no_tool_has_a_longer_one() {
    let chunks: Vec<Value> = (100..400)
        .map(|at| call(0, "c0", &at.to_string(), if at == 399 { "{\"a\":1}" } else { "" }))
        .collect();
    let outcome = case().run(true, [done(&chunks).as_bytes()]);
    let name: String = (100..270).map(|at| at.to_string()).collect();
    assert!(outcome.out.contains(&format!("\"name\":\"{name}\"")), "{}", outcome.out);
    assert!(outcome.warnings.iter().any(|it| it == "tool_name_conflict"), "{:?}", outcome.warnings);
}

#[test]
fn a_message_that_says_that_all_is_well_is_no_error() {
    let c = case();
    let usage = json!({"prompt_tokens": 3, "completion_tokens": 2});
    let hi = "text \"Hi\"; end_turn";
    let status = |mut members: Value| {
        members["choices"] = members["choices"].take();
        members["usage"] = usage.clone();
        members
    };
    for members in [
        json!({"choices": [], "message": "success"}),
        json!({"choices": [], "msg": "Request completed", "code": 10000}),
        json!({"message": "done", "code": null}),
    ] {
        let chunk = status(members.clone());
        let outcome = c.gives(&done(&[text("Hi"), json!({"finish": "stop"}), chunk.clone()]), hi);
        assert!(outcome.out.contains("\"output_tokens\":2"), "{}", outcome.out);
        c.gives(&done(&[chunk, text("Hi"), json!({"finish": "stop"})]), hi);
        // Without its usage, after the end.
        let mut bare = members;
        bare["choices"] = json!([]);
        c.gives(&done(&[text("Hi"), json!({"finish": "stop"}), bare]), hi);
    }
    for failed in [
        json!({"choices": [], "message": "Overloaded"}),
        json!({"choices": [], "message": "Overloaded", "code": 503, "usage": usage}),
    ] {
        let outcome = c.run(true, [done(&[text("Hi"), failed]).as_bytes()]);
        assert_eq!(outcome.error.unwrap().message, "Overloaded");
    }
}

#[test]
fn calls_written_in_harmony_begin_at_the_first_marker() {
    let c = case().with(|context, _| context.profile.text_tool_calls = TextToolCalls::Harmony);
    let pieces = [
        "Now. <|start|>assistant<|channel|>",
        "commentary<|message|>I look.<|end|><|start|>assistant<|channel|>commentary ",
        "to=functions.w <|constrain|>json<|message|>{\"a\":1}<|call|>",
    ];
    let expected = "text \"Now. I look.\", tool_use minted w {\"a\":1}; tool_use";
    c.gives(&done(&pieces.map(text)), expected);
    c.gives(&done(&[text(&pieces.concat())]), expected);
}

#[test]
fn an_error_is_read_under_the_names_that_servers_give_it() {
    let c = case();
    for body in [
        json!({"error_code": 17, "error_msg": "Daily limit reached"}),
        json!({"errcode": 40001, "errmsg": "Daily limit reached"}),
        json!({"StatusCode": 40001, "Message": "Daily limit reached"}),
        json!({"x_groq": {"id": "r", "error": "Daily limit reached"}}),
    ] {
        for outcome in [
            c.whole(false, &body.to_string()),
            c.run(true, [format!("data: {body}\n\ndata: [DONE]\n\n").as_bytes()]),
            c.run(true, [format!("{}data: {body}\n\n", sse(&[text("Hi")], "")).as_bytes()]),
        ] {
            assert_eq!(outcome.error.expect("an error").message, "Daily limit reached", "{body}");
        }
    }
    for well in [json!({"errcode": 0, "errmsg": "ok"}), json!({"errcode": 0, "errmsg": "Done"})] {
        let chunks = format!("{}data: {well}\n\n", sse(&[text("Hi")], ""));
        c.gives(&(chunks + &done(&[json!({"finish": "stop"})])), "text \"Hi\"; end_turn");
    }
}

#[test]
fn nothing_after_a_stop_sequence_of_the_client_counts() {
    let c = case().with(|context, _| context.limits.stop_sequences = vec!["STOP".into()]);
    let expected = "text \"one \"; stop_sequence \"STOP\"";
    let parts = json!([{"type": "text", "text": "one STOP"}, {"type": "text", "text": " two"}]);
    let delta = json!({"content": parts, "refusal": "No.", "tool_calls": [
        {"index": 0, "id": "call_a", "function": {"name": "w", "arguments": "{}"}}]});
    c.gives(&done(std::slice::from_ref(&delta)), expected);
    let body = json!({"choices": [{"message": delta, "finish_reason": "stop"}]}).to_string();
    assert_eq!(show(&c.whole(true, &body)), expected);
    assert_eq!(show(&c.whole(false, &body)), expected);
    let said = sse(&[text("one STOP"), text(" two")], "");
    for after in [
        "data: {\"error\":{\"message\":\"no\",\"code\":500}}\n\n",
        "data: {\"error\":{\"code\":\"content_filter\",\"message\":\"no\"}}\n\n",
        "event: error\ndata: no\n\n",
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"error\"}]}\n\n",
        "data: {\"choices\":[{\"delta\":{},\"error\":{\"code\":500,\"message\":\"x\"}}]}\n\n",
        "",
    ] {
        c.gives(&format!("{said}{after}"), expected);
    }
    let expected = format!("{expected} !upstream_event_dropped");
    for after in ["data: {\"choices\":[{\"del\n\n", "data: oh no\n\n"] {
        c.gives(&format!("{said}{after}"), &expected);
    }
}

#[test]
fn counts_at_the_end_are_as_good_as_a_finish_reason() {
    let counts = json!({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5}});
    let whole_call = call(0, "call_a", "w", "{\"a\":1}");
    let with_counts = |chunks: &[Value]| sse(&[chunks, std::slice::from_ref(&counts)].concat(), "");
    case().gives(&with_counts(&[text("Hi")]), "text \"Hi\"; end_turn");
    case()
        .gives(&with_counts(std::slice::from_ref(&whole_call)), "tool_use a w {\"a\":1}; tool_use");
    let early = "502 api_error";
    for chunks in [
        // Half a call, nothing but reasoning, nothing at all, and what goes on.
        sse(&[call(0, "call_a", "w", "{\"a\":"), counts.clone()], ""),
        sse(&[json!({"reasoning_content": "Hm"}), counts.clone()], ""),
        sse(std::slice::from_ref(&counts), ""),
        sse(&[text("Hi"), counts.clone(), text(" you")], ""),
        // Counts that others send with every chunk, or before the first word.
        sse(
            &[
                text("Hi"),
                json!({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 0}}),
            ],
            "",
        ),
        sse(
            &[text("Hi"), json!({"choices": [{"delta": {}}], "usage": {"completion_tokens": 5}})],
            "",
        ),
        sse(&[text("Hi"), counts.clone()], "data: [ERROR] Net\n\n"),
        sse(&[text("Hi"), counts.clone()], "data: {\"choices\":[{\"del\n\n"),
        sse(&[text("Hi"), counts.clone()], "data: {\"choices\":[{\"del"),
    ] {
        assert_eq!(show(&case().stream(&chunks)), early, "{chunks}");
    }
    let context = RequestContext { stream: true, ..case().context };
    let mut answer = answer(context);
    let mut out = Vec::new();
    answer.handle_piece(with_counts(&[text("Hi")]).as_bytes(), &mut out).unwrap();
    answer.break_off();
    assert!(answer.handle_end(&mut out).is_err(), "the connection broke");
}

#[test]
fn a_finish_reason_may_be_spelt_in_other_ways() {
    for (finish, expected) in [
        (json!({"type": "length", "length": 5}), "max_tokens"),
        (json!({"type": "stop", "matched": 7}), "end_turn"),
        (json!("content-filter"), "refusal"),
        (json!("contentFilter"), "refusal"),
        (json!("max-tokens"), "max_tokens"),
        (json!("maxTokens"), "max_tokens"),
        (json!("MAX_TOKENS"), "max_tokens"),
        (json!("endTurn"), "end_turn"),
    ] {
        let end = json!({"choices": [{"delta": {}, "finish_reason": finish}]});
        case().gives(&sse(&[text("hi"), end], ""), &format!("text \"hi\"; {expected}"));
    }
    let abort = json!({"choices": [{"delta": {}, "finish_reason": {"type": "abort"}}]});
    assert_eq!(show(&case().stream(&done(&[text("hi"), abort]))), "502 api_error");
}

#[test]
fn an_error_that_says_success_is_none() {
    let answer =
        |error: Value| json!({"error": error, "choices": [{"message": {"content": "Hi"}}]});
    for well in [
        json!({"code": 0, "message": "success"}),
        json!({"code": 200, "message": "OK"}),
        json!({"code": "200", "message": ""}),
        json!("success"),
    ] {
        let outcome = case().whole(false, &answer(well.clone()).to_string());
        assert_eq!(show(&outcome), "text \"Hi\"; end_turn", "{well}");
        let chunk = json!({"error": well, "choices": [{"delta": {"content": "Hi"}}]});
        case().gives(&done(&[chunk]), "text \"Hi\"; end_turn");
    }
    for error in
        [json!({"code": 0, "message": "no"}), json!({"code": 429}), json!(true), json!("true")]
    {
        let chunk = json!({"error": error, "choices": [{"delta": {"content": "Hi"}}]});
        assert!(case().stream(&done(&[chunk])).error.is_some(), "{error}");
    }
}

#[test]
fn a_stream_does_not_begin_with_a_count_of_zero() {
    let usage = |prompt: u64, completion: u64| {
        json!({"choices": [{"delta": {"content": "a"}}],
               "usage": {"prompt_tokens": prompt, "completion_tokens": completion}})
    };
    let outcome = case().stream(&done(&[usage(0, 0), usage(10, 5)]));
    let start = outcome.out.split_once("\n\n").unwrap().0;
    assert!(start.contains("\"input_tokens\":7,"), "{start}");
    let message = message(&outcome);
    assert_eq!(message["usage"]["input_tokens"], 10);
    assert_eq!(message["usage"]["output_tokens"], 5);
}

/// The codes that say that an answer has nothing to go on with.
fn nothing(c: &Case, chunks: &[Value]) -> Vec<String> {
    let of = |outcome: Outcome| {
        let codes = outcome.warnings.into_iter();
        codes.filter(|code| code.starts_with("answer_") || code == "tool_call_missing").collect()
    };
    let streamed: Vec<String> = of(c.stream(&done(chunks)));
    assert_eq!(of(c.run(false, [done(chunks).as_bytes()])), streamed);
    streamed
}

#[test]
fn an_answer_that_says_nothing_leaves_a_trace() {
    let finish = |word: &str| json!({"finish": word});
    let thought = json!({"reasoning_content": "The answer is 4."});
    let hidden = case().with(|context, _| {
        context.thinking.display = Display::Hidden;
        context.thinking.returns = false;
    });
    for c in [case(), hidden] {
        assert_eq!(nothing(&c, &[finish("stop")]), ["answer_empty"]);
        assert_eq!(nothing(&c, &[text("\n\n"), finish("stop")]), ["answer_empty"]);
        assert_eq!(nothing(&c, &[thought.clone(), finish("stop")]), ["answer_only_reasoning"]);
        for word in ["tool_calls", "function_call", "TOOL_CALLS"] {
            assert_eq!(nothing(&c, &[thought.clone(), finish(word)]), ["tool_call_missing"]);
            assert_eq!(nothing(&c, &[text("Hi"), finish(word)]), ["tool_call_missing"]);
        }
    }
    let body = json!({"choices": [{"message": {"content": null}, "finish_reason": "stop"}]});
    let whole = case().whole(false, &body.to_string());
    assert!(whole.warnings.contains(&"answer_empty".to_owned()), "{:?}", whole.warnings);
    // All of these have an answer.
    for chunks in [
        vec![text("Hi"), finish("stop")],
        vec![thought.clone(), call(0, "call_a", "w", "{}"), finish("tool_calls")],
        vec![call(0, "call_a", "w", "{}"), finish("stop")],
    ] {
        assert!(nothing(&case(), &chunks).is_empty(), "{chunks:?}");
    }
}

#[test]
fn an_answer_that_says_nothing_for_a_known_reason_leaves_no_trace() {
    let finish = |word: &str| json!({"finish": word});
    let thought = json!({"reasoning_content": "Hm"});
    for word in ["length", "content_filter", "model_length"] {
        assert!(nothing(&case(), &[finish(word)]).is_empty(), "{word}");
        assert!(nothing(&case(), &[thought.clone(), finish(word)]).is_empty(), "{word}");
    }
    assert!(nothing(&case(), &[json!({"refusal": "No."}), finish("stop")]).is_empty());
    // Of Claude Code's classifier, which stops at once.
    let c = case().with(|context, _| context.limits.stop_sequences = vec!["</a>".into()]);
    assert!(nothing(&c, &[text("</a>"), finish("stop")]).is_empty());
    let native =
        json!({"choices": [{"delta": {}, "finish_reason": "stop", "stop_reason": "</a>"}]});
    assert!(nothing(&c, &[native]).is_empty());
    // A call that came and was not passed on.
    let called = [call(0, "call_a", "w", "{}"), finish("tool_calls")];
    let c = case().with(|context, _| context.withheld = Withheld::All);
    assert!(nothing(&c, &called).is_empty());
    let held = case().with(|_, settings| settings.invalid_tool_call = InvalidToolCall::Hold);
    let unknown = [text("Hi"), call(0, "call_a", "ghost", "{}"), finish("tool_calls")];
    assert!(nothing(&held, &unknown).is_empty());
    // What came is nothing that Creole can pass on, and says so.
    let image = json!({"images": [{"type": "image_url", "image_url": {"url": "data:,"}}]});
    let outcome = case().stream(&done(&[image, finish("stop")]));
    assert_eq!(outcome.warnings, ["content_dropped"]);
}

#[test]
fn tokens_that_nobody_counted_are_estimated_from_the_text_and_not_from_its_escapes() {
    let letters = "文".repeat(300);
    let plain = done(&[text(&letters)]);
    let escaped = plain.replace('文', "\\u6587");
    let tokens =
        |sse: &str| message(&case().run(false, [sse.as_bytes()]))["usage"]["output_tokens"].clone();
    assert!(tokens(&plain).as_u64().unwrap() > 100);
    assert_eq!(tokens(&plain), tokens(&escaped));
}
