//! Whole bodies, other protocols, answers of our own.

use creole::StopReason;

use super::*;

#[test]
fn a_whole_body_becomes_what_the_client_asked_for() {
    let body = json!({"id": "c1", "choices": [
        {"index": 0, "message": {"content": "Let me look.", "reasoning": "Hm"}, "finish_reason": "tool_calls"},
        {"index": 1, "message": {"content": null, "tool_calls": [
            {"id": "call_a", "function": {"name": "w", "arguments": "\"{\\\"a\\\":1}\""}}]}}]});
    for stream in [true, false] {
        let outcome = case().whole(stream, &body.to_string());
        assert_eq!(
            show(&outcome),
            "thinking \"Hm\", text \"Let me look.\", tool_use a w {\"a\":1}; tool_use"
        );
    }
    for (body, expected) in [
        ("", "502 api_error"),
        ("<html>", "502 api_error"),
        ("{\"choices\":[]}", "502 api_error"),
        ("{}", "502 api_error"),
        ("[{\"error\":{\"code\":404,\"message\":\"x\"}}]", "404 not_found_error"),
        ("{\"error\":{\"code\":404,\"message\":\"x\"}}", "404 not_found_error"),
        ("{\"detail\":\"x\"}", "502 api_error"),
        (
            "{\"choices\":[{\"message\":{\"content\":null},\"finish_reason\":\"MALFORMED\"}]}",
            "502 api_error",
        ),
    ] {
        for stream in [true, false] {
            assert_eq!(show(&case().whole(stream, body)), expected, "{body}");
        }
    }
}

#[test]
fn signatures_of_calls_in_a_whole_body_are_in_its_first_thinking() {
    let call = |id: &str| {
        json!({"id": id, "function": {"name": "w", "arguments": "{}"},
            "extra_content": {"google": {"thought_signature": id}}})
    };
    let calls = "tool_use a w {}, tool_use b w {}; tool_use";
    for (thinking, reasoning, expected) in [
        (Display::Shown, "Hm", format!("thinking \"Hm\", text \"Ok\", {calls}")),
        (Display::Omitted, "Hm", format!("thinking \"\", text \"Ok\", {calls}")),
        (Display::Hidden, "Hm", format!("text \"Ok\", thinking \"\", {calls}")),
        (Display::Shown, "", format!("text \"Ok\", thinking \"\", {calls}")),
        (Display::Hidden, "", format!("text \"Ok\", thinking \"\", {calls}")),
    ] {
        let body = json!({"choices": [{"message": {"content": "Ok", "reasoning_content": reasoning,
            "tool_calls": [call("call_a"), call("call_b")]}, "finish_reason": "tool_calls"}]});
        for stream in [true, false] {
            let case = case().with(|context, _| context.thinking.display = thinking);
            let outcome = case.whole(stream, &body.to_string());
            assert_eq!(show(&outcome), expected);
            let own = blocks::signature(&outcome).call_signatures;
            let of = |id: &str| (format!("toolu_{id}"), format!("call_{id}"));
            assert_eq!(own, ["a", "b"].map(of), "{expected}");
        }
    }
    // Of a stream, the next chunk may send the first block.
    let chunk = json!({"reasoning_content": "Hm", "content": "Ok", "tool_calls": [call("call_a")]});
    case().gives(
        &done(&[chunk]),
        "thinking \"Hm\", text \"Ok\", thinking \"\", tool_use a w {}; tool_use",
    );
}

#[test]
fn an_answer_may_be_wrapped_in_an_envelope() {
    let answer = json!({"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]});
    for name in ["data", "result"] {
        for stream in [true, false] {
            let body = json!({"success": true, "code": 0, name: answer}).to_string();
            assert_eq!(show(&case().whole(stream, &body)), "text \"Hi\"; end_turn", "{body}");
            let body = json!({"error": {"message": "x", "code": 404}, name: answer}).to_string();
            assert_eq!(show(&case().whole(stream, &body)), "404 not_found_error", "{body}");
            let body = json!({"data": null, "result": answer}).to_string();
            assert_eq!(show(&case().whole(stream, &body)), "text \"Hi\"; end_turn", "{body}");
            let empty = json!({"choices": [{"message": {"content": ""}, "finish_reason": "stop"}]});
            let body = json!({"success": false, "message": "quota", name: empty}).to_string();
            assert_eq!(show(&case().whole(stream, &body)), "502 api_error", "{body}");
            assert!(super::answer(RequestContext::default()).is_whole(body.as_bytes()));
        }
    }
}

#[test]
fn choices_make_an_answer_of_this_protocol_whatever_type_it_says_it_has() {
    let choices = r#""choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]"#;
    for body in [
        format!(r#"{{"type":"message",{choices}}}"#),
        // Of equal names the last one counts.
        format!(r#"{{"choices":[{{"message":{{"content":"Oh"}}}}],{choices}}}"#),
    ] {
        for stream in [true, false] {
            assert_eq!(show(&case().whole(stream, &body)), "text \"Hi\"; end_turn", "{body}");
        }
    }
}

#[test]
fn a_message_instead_of_deltas_counts_once() {
    let chunk = |content: &str| json!({"choices": [{"message": {"role": "assistant", "content": content}}]});
    case().gives(&done(&[chunk("Hi"), chunk("Hi")]), "text \"Hi\"; end_turn");
    case().gives(&done(&[text("Hi"), chunk("Hi")]), "text \"Hi\"; end_turn");
}

#[test]
fn all_of_the_text_once_more_in_a_delta_counts_once() {
    // Rapid-MLX, RAGFlow and LocalAI, the last of these beside each fragment of a call.
    let all = "I will look into the file, and then mend it.";
    let (first, second) = all.split_at(20);
    let finish =
        json!({"choices": [{"index": 0, "delta": {"content": all}, "finish_reason": "stop"}]});
    let said = "text \"I will look into the file, and then mend it.\"";
    case().gives(&done(&[text(first), text(second), finish]), &format!("{said}; end_turn"));
    let mut beside = call(0, "call_a", "w", "{\"a\":1}");
    beside["content"] = json!(all);
    let mut more = call(0, "", "", "");
    more["content"] = json!(all);
    case().gives(
        &done(&[text(first), text(second), beside, more]),
        &format!("{said}, tool_use a w {{\"a\":1}}; tool_use"),
    );
    let thought =
        |text: &str| json!({"choices": [{"index": 0, "delta": {"reasoning_content": text}}]});
    case().gives(
        &done(&[thought(first), thought(second), thought(all), text("Hi")]),
        &format!("{}, text \"Hi\"; end_turn", said.replace("text", "thinking")),
    );
    // A text that only begins like it, or has nothing but one character, can be a piece.
    let (one, two) = ("a".repeat(40), ["a".repeat(40), "X".repeat(10)].concat());
    let three = ["a".repeat(80), "Y".repeat(10)].concat();
    case().gives(
        &done(&[text(&one), text(&two), text(&three)]),
        &format!("text \"{one}{two}{three}\"; end_turn"),
    );
    let (rule, twice) = ("=".repeat(16), "=".repeat(32));
    case().gives(
        &done(&[text(&rule), text(&rule), text(&twice)]),
        &format!("text \"{}\"; end_turn", "=".repeat(64)),
    );
    // A short one can be a piece, and so can any that is not as long as all before it.
    case().gives(&done(&[text("ha"), text("ha"), text("haha")]), "text \"hahahaha\"; end_turn");
    let line = "=".repeat(40);
    case().gives(
        &done(&[text(&line), text(&line), text(&line)]),
        &format!("text \"{}\"; end_turn", line.repeat(3)),
    );
}

#[test]
fn a_long_text_comes_once_more_only_if_its_end_is_the_same() {
    // (How it is cut into pieces of the connection is the same as for a short one, and would take
    // seconds.)
    let said = |deltas: &[Value]| show(&case().run(true, [done(deltas).as_bytes()]));
    // The ends that are compared are longer than a piece, and shorter than one; the text is longer
    // than what is kept.
    for (size, pieces, other) in [(90, 6, 539), (30, 10, 260)] {
        let letter = |at: usize| char::from(b'a' + u8::try_from(at * at % 23).unwrap());
        let all: String = (0..size * pieces).map(letter).collect();
        let mut deltas: Vec<_> =
            all.as_bytes().chunks(size).map(|it| text(std::str::from_utf8(it).unwrap())).collect();
        deltas.push(text(&all));
        assert_eq!(said(&deltas), format!("text \"{all}\"; end_turn"));
        let mut changed = all.clone();
        changed.replace_range(other..=other, "X");
        deltas.pop();
        deltas.push(text(&changed));
        assert_eq!(said(&deltas), format!("text \"{all}{changed}\"; end_turn"));
    }
}

fn messages(messages: &[Value]) -> String {
    let last = messages.last().unwrap();
    let chunks = messages.iter().map(|message| {
        let finish = std::ptr::eq(message, last).then_some("stop");
        json!({"choices": [{"index": 0, "message": message, "finish_reason": finish}]})
    });
    done(&chunks.collect::<Vec<_>>())
}

#[test]
fn messages_in_a_stream_bring_the_next_piece_or_all_so_far() {
    let texts = |texts: &[&str]| {
        let all: Vec<_> = texts.iter().map(|text| json!({"content": text})).collect();
        messages(&all)
    };
    for pieces in [
        &["It is", " sunny", " today."] as &[&str],
        &["It is", "It is sunny", "It is sunny today."],
        &["It is", "It is sunny", "It is sunny today", "It is sunny today."],
        &["It is", " sunny", " today.", "It is sunny today."],
        &["It is", " sunny", "It is sunny today."],
        &["It is sunny today.", "", "It is sunny today.", ""],
        &["It ", "It ", "It is", "It is sunny today.", "It is sunny today."],
    ] {
        case().gives(&texts(pieces), "text \"It is sunny today.\"; end_turn");
    }
    // What was changed is not lost.
    case().gives(&texts(&["a", "ab", "abc", "xyz"]), "text \"abcxyz\"; end_turn");
}

#[test]
fn messages_in_a_stream_bring_reasoning_and_calls_too() {
    let call = |input: &str| json!({"id": "call_a", "function": {"name": "w", "arguments": input}});
    let other = json!({"id": "call_b", "function": {"name": "t", "arguments": "{}"}});
    let expected = "thinking \"Let me see.\", text \"I look.\", tool_use a w {\"a\":1}, tool_use b t {}; tool_use";
    let so_far = [
        json!({"reasoning": "Let"}),
        json!({"reasoning": "Let me see."}),
        json!({"reasoning": "Let me see.", "content": "I"}),
        json!({"reasoning": "Let me see.", "content": "I look."}),
        json!({"reasoning": "Let me see.", "content": "I look.", "tool_calls": [call("{\"a\"")]}),
        json!({"reasoning": "Let me see.", "content": "I look.", "tool_calls": [call("{\"a\":1}")]}),
        json!({"reasoning": "Let me see.", "content": "I look.", "tool_calls": [call("{\"a\":1}"), other]}),
    ];
    case().gives(&messages(&so_far), expected);
    let pieces = [
        json!({"reasoning": "Let"}),
        json!({"reasoning": " me see."}),
        json!({"content": "I"}),
        json!({"content": " look."}),
        json!({"tool_calls": [call("{\"a\"")]}),
        json!({"tool_calls": [{"function": {"arguments": ":1}"}}]}),
        json!({"tool_calls": [other]}),
    ];
    case().gives(&messages(&pieces), expected);
    // Without ids, calls are known by their places.
    let nameless = |name: &str| json!({"function": {"name": name, "arguments": "{}"}});
    let both = json!({"tool_calls": [nameless("w"), nameless("t")]});
    let outcome = case().stream(&messages(&[both.clone(), both]));
    assert_eq!(message(&outcome)["content"].as_array().unwrap().len(), 2);
}

#[test]
fn white_space_in_one_field_of_a_message_hides_no_reasoning_in_another() {
    let blank = |more: Value| {
        let mut message = json!({"reasoning_content": "\n"});
        message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        message
    };
    for answer in [
        [blank(json!({"reasoning": "Hm."})), blank(json!({"reasoning": "Hm.", "content": "Hi"}))],
        [json!({"reasoning_content": "", "reasoning": "Hm."}), json!({"content": "Hi"})],
        [blank(json!({"content": [{"type": "thinking", "thinking": "Hm."}]})), text("Hi")],
    ] {
        case().gives(&messages(&answer), "thinking \"Hm.\", text \"Hi\"; end_turn");
    }
    // The white space may come alone, too, and the field is chosen by what says something.
    let later = [blank(json!({})), blank(json!({"reasoning": "Hm."})), json!({"reasoning": "Ah."})];
    case().gives(&messages(&later), "thinking \"\\nHm.Ah.\"; end_turn");
}

#[test]
fn refusals_in_messages_are_refusals() {
    for refusals in [["I can", "I can't."], ["I can", "'t."]] {
        let chunks: Vec<_> = refusals.iter().map(|refusal| json!({"refusal": refusal})).collect();
        case().gives(&messages(&chunks), "text \"I can't.\"; refusal");
    }
}

#[test]
fn a_message_after_deltas_brings_what_they_had_not() {
    let delta = |delta: Value| json!({"choices": [{"index": 0, "delta": delta}]});
    let last = json!({"choices": [{"index": 0, "finish_reason": "stop", "message": {
        "content": "Hi!", "reasoning_content": "Hm", "tool_calls": [
            {"id": "call_a", "function": {"name": "w", "arguments": "{}"}}]}}]});
    let all = "thinking \"Hm\", text \"Hi!\", tool_use a w {}; tool_use";
    let reasoning = delta(json!({"reasoning_content": "Hm"}));
    case().gives(&done(&[reasoning.clone(), last.clone()]), all);
    case().gives(&done(&[reasoning, text("Hi"), text("!"), last.clone()]), all);
    case().gives(&done(&[delta(json!({"role": "assistant"})), last]), all);
}

#[test]
fn an_upstream_that_speaks_the_messages_api_is_passed_on() {
    let body = json!({"id": "msg_up", "type": "message", "role": "assistant", "model": "m",
        "content": [{"type": "thinking", "thinking": "Hm", "signature": "S"}, {"type": "text", "text": "Hi"},
            {"type": "tool_use", "id": "toolu_1", "name": "w", "input": {"a": 1}, "caller": {"type": "direct"}}],
        "stop_reason": "tool_use", "stop_sequence": null, "stop_details": null, "container": null,
        "usage": {"input_tokens": 1, "output_tokens": 2}});
    let parsed = |outcome: &Outcome| serde_json::from_str::<Value>(&outcome.out).unwrap();
    assert_eq!(parsed(&case().whole(false, &body.to_string())), body);
    let events = case().whole(true, &body.to_string());
    let rules = Rules { foreign_blocks: true, ..RULES };
    assert_eq!(fold(&grammar::check_stream(events.out.as_bytes(), rules).unwrap()).message, body);
    // And its events become events, or the message.
    let again = case().stream(&events.out);
    assert_eq!(again.out, events.out);
    assert_eq!(parsed(&case().run(false, [events.out.as_bytes()])), body);
    let (cut, _) = events.out.split_once("event: message_delta").unwrap();
    assert_eq!(case().stream(cut).error.unwrap().status, 502);
}

#[test]
fn an_answer_of_our_own_is_a_message_like_any_other() {
    for (stream, own, reason, expected) in [
        (true, "say \"no\"", StopReason::EndTurn, "text \"say \\\"no\\\"\"; end_turn"),
        (false, "say \"no\"", StopReason::EndTurn, "text \"say \\\"no\\\"\"; end_turn"),
        (true, "", StopReason::Refusal, "; refusal"),
        (false, "", StopReason::Refusal, "; refusal"),
    ] {
        let context = RequestContext { stream, ..case().context };
        let mut answer = answer(context);
        let mut out = Vec::new();
        answer.write_own(own, reason, &mut out);
        assert_eq!(show(&outcome(&mut answer, out, Ok(()))), expected);
        assert_eq!(answer.report().stop_reason, Some(reason));
    }
}

#[test]
fn an_error_around_an_empty_answer_is_an_error() {
    let body = |message: Value| {
        json!({"error": {"message": "Rate limited", "code": 429},
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
        .to_string()
    };
    for stream in [true, false] {
        for message in [json!({"role": "assistant", "content": ""}), Value::Null] {
            let outcome = case().whole(stream, &body(message));
            assert_eq!(show(&outcome), "429 rate_limit_error");
            assert_eq!(outcome.error.unwrap().message, "Rate limited");
        }
        // What came before it is no answer unless something says that it ended.
        for finish in [Value::Null, json!("")] {
            let unfinished = json!({"error": {"message": "Rate limited", "code": 429},
                "choices": [{"index": 0, "message": {"content": "Hi"}, "finish_reason": finish}]});
            let outcome = case().whole(stream, &unfinished.to_string());
            assert_eq!(show(&outcome), "429 rate_limit_error");
        }
        let outcome = case().whole(stream, &body(json!({"content": "Hi"})));
        assert_eq!(show(&outcome), "text \"Hi\"; end_turn !upstream_event_dropped");
    }
}

#[test]
fn a_call_that_a_messages_upstream_did_not_end_is_told_of_in_one_message() {
    let events = |input: &str, reason: &str| {
        [
            json!({"type": "message_start", "message": {"id": "m", "type": "message",
                "role": "assistant", "model": "k", "content": [], "stop_reason": null,
                "usage": {"input_tokens": 1, "output_tokens": 1}}}),
            json!({"type": "content_block_start", "index": 0, "content_block":
                {"type": "tool_use", "id": "toolu_a", "name": "w", "input": {}}}),
            json!({"type": "content_block_delta", "index": 0, "delta":
                {"type": "input_json_delta", "partial_json": input}}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "delta": {"stop_reason": reason},
                "usage": {"output_tokens": 1}}),
            json!({"type": "message_stop"}),
        ]
        .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()))
        .concat()
    };
    for (input, reason, code) in [
        ("{\"a\":", "max_tokens", Some("tool_call_cut_off")),
        ("{\"a\":", "tool_use", Some("tool_input_invalid")),
        ("{\"a\":1}", "tool_use", None),
    ] {
        let outcome = case().run(false, [events(input, reason).as_bytes()]);
        let codes: Vec<&str> = outcome.warnings.iter().map(String::as_str).collect();
        assert_eq!(codes, code.into_iter().collect::<Vec<_>>(), "{input} {reason}");
    }
}

#[test]
fn a_whole_answer_that_was_cut_in_a_call_shows_no_markup() {
    let half = "<tool_call>\n{\"name\": \"w\", \"arguments\": {\"a";
    let call = "<tool_call>\n{\"name\": \"t\", \"arguments\": {}}\n</tool_call>\n";
    let body = |content: &str, finish: &str| {
        json!({"choices": [{"message": {"reasoning": "Hm.", "content": content}, "finish_reason": finish}]}).to_string()
    };
    let gives = |c: &Case, content: &str, finish: &str, expected: &str| {
        for stream in [true, false] {
            let outcome = c.whole(stream, &body(content, finish));
            assert_eq!(show(&outcome), format!("thinking \"Hm.\"{expected}"), "{content}");
        }
    };
    let cut_off = "; max_tokens !tool_call_cut_off";
    for c in [case(), text_calls::with(TextToolCalls::Hermes)] {
        gives(&c, half, "length", cut_off);
        gives(&c, &format!("\n\n{half}"), "length", cut_off);
        let told = format!(", text \"Let me look.\"{cut_off}");
        gives(&c, &format!("\n\nLet me look.\n{half}"), "length", &told);
        gives(&c, &format!("Let me look.\n{call}{half}"), "max_tokens", &told);
        // Only the limit cuts a call, and only of tools that there are.
        gives(&c, half, "stop", &format!(", text {}; end_turn", json!(half)));
        let other = half.replace("\"w\"", "\"rm\"");
        gives(&c, &other, "length", &format!(", text {}; max_tokens", json!(other)));
    }
    let c =
        case().with(|context, _| context.tools = creole::model::request_context::Tools::default());
    gives(&c, half, "length", &format!(", text {}; max_tokens", json!(half)));
}
