//! Errors where an answer should be, and in the middle of one.

use super::*;

fn failing(content: &str, word: &str) -> Value {
    json!({"choices": [{"delta": {"content": content}, "finish_reason": word}]})
}

#[test]
fn what_a_failing_chunk_says_is_the_error_and_not_the_answer() {
    let c = case();
    let failed = failing("Throttling: TPM(1/1)", "error_finish");
    let begun = call(0, "c0", "w", "{\"a\":\"Ro");
    for before in [text("Let me look. "), begun] {
        let found = c.stream(&done(&[before.clone(), failed.clone()]));
        let error = found.error.clone().expect("an error");
        assert_eq!((error.status, error.kind.word()), (429, "rate_limit_error"));
        assert_eq!(error.message, "Throttling: TPM(1/1)");
        assert!(!found.out.contains("Throttling"), "{}", found.out);
        assert!(!found.out.contains("content_block_stop"), "{}", found.out);
    }
    let whole =
        json!({"choices": [{"message": {"content": "Broken"}, "finish_reason": "error_finish"}]});
    // Of a whole answer nobody knows where the model's own words end.
    let error = c.whole(false, &whole.to_string()).error.expect("an error");
    assert_eq!((error.status, &*error.message), (502, "Upstream stopped: error_finish"));
    let silent = c.stream(&done(&[text("a"), failing("", "error_finish")])).error.unwrap();
    assert_eq!((silent.status, &*silent.message), (502, "Upstream stopped: error_finish"));
    // Other words end an answer that may have said something.
    let found = c.stream(&done(&[text("Let"), failing(" me", "error")]));
    assert!(found.out.contains(" me"), "{}", found.out);
    assert_eq!(found.error.unwrap().message, "Upstream stopped: error");
}

#[test]
fn the_type_of_an_error_in_place_of_a_finish_reason_leaves_nothing_that_looks_complete() {
    let c = case();
    let failed = failing("", "overloaded_error");
    for before in
        [text("Let me"), call(0, "c0", "w", "{\"a\":\"rm -rf /tmp"), call(0, "c0", "w", "{}")]
    {
        let found = c.stream(&done(&[before, failed.clone()]));
        let error = found.error.clone().expect("an error");
        assert_eq!((error.status, error.kind.word()), (529, "overloaded_error"));
        assert_eq!(error.message, "Upstream stopped: overloaded_error");
        assert!(!found.out.contains("message_stop"), "{}", found.out);
    }
    let found = c.stream(&done(&[json!({"role": "assistant", "content": ""}), failed]));
    assert_eq!((found.error.unwrap().status, found.out), (529, String::new()));
    let c = c.with(|context, _| context.edge_key = true);
    let found = c.stream(&done(&[text("a"), failing("", "authentication_error")]));
    assert_eq!(found.error.unwrap().message, "Upstream rejected the gateway's credentials.");
}

#[test]
fn a_failure_that_is_known_before_the_first_byte_is_no_answer() {
    let c = case();
    for (message, finish, status) in [
        (json!({"content": ""}), "insufficient_system_resource", 529),
        (json!({"content": "part"}), "error", 502),
        (json!({"content": "part"}), "rate_limit_error", 429),
        (json!({"content": "", "tool_calls": [{"function": {"arguments": "{}"}}]}), "stop", 502),
    ] {
        let body = json!({"choices": [{"message": message, "finish_reason": finish}]}).to_string();
        for stream in [true, false] {
            let found = c.whole(stream, &body);
            assert_eq!((found.error.unwrap().status, found.out), (status, String::new()), "{body}");
        }
    }
    let found = c.stream(&done(&[failing("", "insufficient_system_resource")]));
    assert_eq!((found.error.unwrap().status, found.out), (529, String::new()));
}

#[test]
fn a_word_that_nobody_knows_and_no_content_is_an_error_with_its_status() {
    let role = json!({"role": "assistant", "content": ""});
    for word in ["MALFORMED_FUNCTION_CALL", "function_call_filter: MALFORMED_FUNCTION_CALL", "x"] {
        let finish = json!({"finish": word});
        let counts = json!({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 0}});
        for chunks in [
            vec![finish.clone()],
            vec![role.clone(), finish.clone(), counts],
            vec![json!({"choices": [{"delta": role, "finish_reason": word}]})],
        ] {
            let found = case().stream(&done(&chunks));
            assert_eq!((show(&found), &*found.out), ("502 api_error".to_owned(), ""), "{word}");
            assert_eq!(found.error.unwrap().message, format!("Upstream stopped: {word}"));
        }
        let body = json!({"choices": [{"message": role, "finish_reason": word}]}).to_string();
        for stream in [true, false] {
            let found = case().whole(stream, &body);
            assert_eq!((show(&found), &*found.out), ("502 api_error".to_owned(), ""), "{word}");
        }
        // It may go on, or have stopped where the client context.
        let unknown = "text \"Hi\"; end_turn !finish_reason_unknown";
        case().gives(&done(&[finish.clone(), text("Hi")]), unknown);
        case().gives(
            &done(&[finish.clone(), text("Hi"), json!({"finish": "stop"})]),
            "text \"Hi\"; end_turn",
        );
        let c = case().with(|context, _| context.limits.stop_sequences = vec!["END".into()]);
        let native =
            json!({"choices": [{"delta": {}, "finish_reason": word, "stop_reason": "END"}]});
        c.gives(&done(&[native]), "; stop_sequence \"END\" !finish_reason_unknown");
    }
    // A word that is known begins the message at once.
    let mut answer = answer(RequestContext { stream: true, ..case().context });
    let mut out = Vec::new();
    answer.handle_piece(sse(&[json!({"finish": "stop"})], "").as_bytes(), &mut out).unwrap();
    assert!(answer.has_started());
}

#[test]
fn the_word_in_front_of_an_errors_text_is_a_code() {
    let c = case();
    for (error, status) in [
        (json!({"code": "Throttling.AllocationQuota", "message": "quota"}), 429),
        (json!({"error": {"code": "ThrottlingException", "message": "slow down"}}), 429),
        (json!({"error": {"message": "overloaded_error: try again"}}), 529),
        (json!({"error": "Forbidden: no such thing"}), 403),
        (json!({"error": "it is: not"}), 502),
    ] {
        let found = c.stream(&format!("event: error\ndata: {error}\n\n"));
        assert_eq!(found.error.unwrap().status, status, "{error}");
    }
}

#[test]
fn an_object_of_another_kind_is_an_error_or_is_counted() {
    let c = case();
    for object in [
        json!({"id": "", "choices": null, "error_type": "BadRequestError", "error_message": "boom"}),
        json!({"err": "boom"}),
        json!({"errorMessage": "boom"}),
        json!({"Error": "boom"}),
        json!({"exception": "boom"}),
        json!({"fault": {"faultstring": "boom"}}),
        json!({"type": "error", "reason": "boom"}),
    ] {
        let found =
            c.stream(&format!("{}data: {object}\n\ndata: [DONE]\n\n", sse(&[text("a")], "")));
        assert!(found.error.is_some(), "{object}");
        assert!(c.stream(&format!("data: {object}\n\n")).error.is_some(), "{object}");
        assert!(c.whole(false, &object.to_string()).error.is_some(), "{object}");
    }
    let other = json!({"status": "error", "reason": "boom"});
    let before = format!("{}data: {other}\n\n", sse(&[text("a")], ""));
    let after = done(&[json!({"finish": "stop"})]);
    c.gives(&format!("{before}{after}"), "text \"a\"; end_turn !upstream_event_dropped");
    for silent in [json!({}), json!({"choices": []}), json!({"msg": "ok"}), json!({"type": "ping"})]
    {
        let chunks = format!("{}data: {silent}\n\n{after}", sse(&[text("a")], ""));
        c.gives(&chunks, "text \"a\"; end_turn");
    }
}

#[test]
fn an_error_beside_an_answer_counts_where_the_answer_is_none() {
    let body = |message: Value, finish: &str| {
        json!({"error": {"message": "Rate limited", "code": 429},
            "choices": [{"index": 0, "message": message, "finish_reason": finish}]})
        .to_string()
    };
    let call = json!([{"id": "call_a", "function": {"name": "w", "arguments": "{}"}}]);
    for stream in [true, false] {
        for (message, finish) in [
            (json!({"content": "part"}), "error"),
            (json!({"content": "", "reasoning_content": "Hm"}), "stop"),
            (json!({"content": " \n"}), "stop"),
            (json!({"content": [{"type": "thinking", "thinking": "Hm"}]}), "stop"),
        ] {
            let found = case().whole(stream, &body(message, finish));
            assert_eq!(show(&found), "429 rate_limit_error");
            assert_eq!(found.error.unwrap().message, "Rate limited");
        }
        let found = case().whole(stream, &body(json!({"content": "Hi"}), "stop"));
        assert_eq!(show(&found), "text \"Hi\"; end_turn !upstream_event_dropped");
        let found = case().whole(stream, &body(json!({"tool_calls": call}), "stop"));
        assert_eq!(show(&found), "tool_use a w {}; tool_use !upstream_event_dropped");
    }
}

#[test]
fn an_error_inside_a_delta_or_a_message_is_one() {
    let error = json!({"code": 429, "message": "slow"});
    let chunk = |key: &str, error: &Value| json!({"choices": [{key: {"content": "", "error": error}, "finish_reason": "stop"}]});
    for key in ["delta", "message"] {
        let found = case().stream(&done(&[text("He"), chunk(key, &error)]));
        assert_eq!(show(&found), "429 rate_limit_error", "{key}");
        assert_eq!(found.error.unwrap().message, "slow");
        for stream in [true, false] {
            let found = case().whole(stream, &chunk(key, &error).to_string());
            assert_eq!(show(&found), "429 rate_limit_error", "{key}");
        }
        for none in [json!(null), json!({}), json!("")] {
            case().gives(&done(&[text("He"), chunk(key, &none)]), "text \"He\"; end_turn");
        }
    }
}

#[test]
fn an_error_in_several_lines_without_a_field_is_one() {
    let error = json!({"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}});
    let lines = serde_json::to_string_pretty(&error).unwrap();
    for lines in [lines.clone(), format!("[{lines}\n]"), format!("[\n{lines}\n]")] {
        for end in ["", "\n", "\n\ndata: [DONE]\n\n", "\r\ndata: [DONE]\n\n"] {
            let found = case().stream(&format!("{}{lines}{end}", sse(&[text("a")], "")));
            assert_eq!(show(&found), "529 overloaded_error", "{lines}{end}");
            assert_eq!(found.error.unwrap().message, "The model is overloaded.");
        }
    }
    // What is cut off with its connection says nothing.
    let half = lines.split_once(',').unwrap().0;
    let cut = case().stream(&format!("{}{half}", sse(&[text("a")], "")));
    assert_eq!(cut.error.unwrap().message, "Upstream stream ended before completion.");
    // A field before the first line is enough.
    let found = case().stream(&format!("{}data: {lines}\n\n", sse(&[text("a")], "")));
    assert_eq!(show(&found), "529 overloaded_error");
}

#[test]
fn plain_text_in_place_of_an_answer_says_what_failed() {
    for (said, status) in [
        ("[ERROR] Net", 502),
        ("error: Net", 502),
        ("Internal Server Error", 502),
        ("Throttling: slow down", 429),
        ("prompt is too long", 400),
    ] {
        for before in [String::new(), sse(&[text("a")], "")] {
            let found = case().stream(&format!("{before}data: {said}\n\ndata: [DONE]\n\n"));
            let error = found.error.expect(said);
            assert_eq!((error.status, &*error.message), (status, said));
            assert!(!found.out.contains("message_stop"), "{}", found.out);
        }
        // In a body that claims to be a stream.
        for body in [said.to_owned(), format!(": ping\n\n{said}\n\n")] {
            let error = case().stream(&body).error.expect(said);
            assert_eq!((error.status, &*error.message), (status, said), "{body:?}");
        }
        for stream in [true, false] {
            let error = case().whole(stream, said).error.expect(said);
            assert_eq!((error.status, &*error.message), (status, said));
        }
    }
    for said in ["\u{1f}\u{8b}\u{8}bytes", "a part of the \"answer\"", "\u{fffd}"] {
        for found in [case().stream(said), case().whole(true, said)] {
            let error = found.error.expect(said);
            assert_eq!((error.status, &*error.message), (502, "Upstream sent an invalid response"));
        }
    }
    // What is no event says nothing behind one that is.
    let broken = case().stream(&format!("{}Net\n", sse(&[text("a")], "")));
    assert_eq!(broken.error.unwrap().message, "Upstream stream ended before completion.");
    let found = case().stream("event: exception\ndata: Net\n\n");
    assert_eq!(found.error.unwrap().message, "Net");
    let after = format!("{}data: [ERROR] Net\n\n", done(&[text("a"), json!({"finish": "stop"})]));
    case().gives(&after, "text \"a\"; end_turn");
}
