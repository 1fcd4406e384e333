//! Ends of a connection, and whether the answer before it is complete.

use super::*;

#[test]
fn a_broken_connection_becomes_an_error_event_that_closes_nothing() {
    let (exchange, _) = started(&drive::config("{}"), Pings::Sent, &ask(true));
    let piece = concat!(r#"data: {"choices":[{"index":0,"delta":{"content":"Hel"}}]}"#, "\n\n");
    let answer = drive::respond(exchange, 200, &[], [piece.as_bytes()], End::Aborted);
    assert_eq!(answer.head.status, 200);
    let events = grammar::check_stream(&answer.body, Rules::default()).unwrap();
    assert_eq!(events.last().unwrap().name, "error");
    assert!(events.iter().all(|event| event.name != "content_block_stop"));
}

#[test]
fn a_connection_that_breaks_off_ends_no_answer_whose_chunks_all_say_that_it_is_over() {
    let pieces = [stopped("I "), stopped("look")].concat();
    let half = json!({"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "call_a",
        "function": {"name": "w", "arguments": "{\"c\":"}}]}, "finish_reason": "stop"});
    let half = format!("data: {}\n\n", json!({"choices": [half]})).into_bytes();
    let cut = [(pieces.clone(), false), (half, false)];
    let done = [[pieces, b"data: [DONE]\n\n".to_vec()].concat(), stopped("all of it")];
    for (upstream, whole) in cut.into_iter().chain(done.map(|upstream| (upstream, true))) {
        let (mut exchange, _) = started(&drive::config("{}"), Pings::Sent, &ask(true));
        let mut body = Vec::new();
        exchange.handle_call_head(200, &[], NOW);
        exchange.piece(&upstream, NOW, &mut body);
        let end = if whole { End::Complete } else { End::Aborted };
        exchange.end(end, NOW, &mut body);
        let events = grammar::check_stream(&body, Rules::default()).unwrap();
        let last = if whole { "message_stop" } else { "error" };
        assert_eq!(events.last().unwrap().name, last, "{}", String::from_utf8_lossy(&upstream));
    }
}

#[test]
fn a_finish_reason_that_comes_twice_is_believed_where_the_connection_ends_as_it_should() {
    let delta = |delta: Value, finish: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        format!("data: {}\n\n", json!({"choices": [choice]}))
    };
    let call = json!({"tool_calls": [{"index": 0, "id": "call_a",
        "function": {"name": "w", "arguments": "{}"}}]});
    let text = || String::from_utf8(stopped("I look.")).unwrap();
    // In a chunk of its own it is believed even after a break, in each chunk only after a clean
    // end.
    let own = [text(), delta(call.clone(), Value::Null), delta(json!({}), json!("tool_calls"))];
    let each = [text(), delta(call, json!("tool_calls"))];
    for (upstream, end, last) in [
        (own.concat(), End::Complete, "message_stop"),
        (own.concat(), End::Aborted, "message_stop"),
        (each.concat(), End::Complete, "message_stop"),
        (each.concat(), End::Aborted, "error"),
    ] {
        let (mut exchange, _) = started(&drive::config("{}"), Pings::Sent, &ask(true));
        let mut body = Vec::new();
        exchange.handle_call_head(200, &[], NOW);
        exchange.piece(upstream.as_bytes(), NOW, &mut body);
        exchange.end(end, NOW, &mut body);
        let events = grammar::check_stream(&body, Rules::default()).unwrap();
        assert_eq!(events.last().unwrap().name, last, "{upstream}");
    }
}

#[test]
fn clients_that_leave_end_the_exchange() {
    let (mut exchange, _) = started(&drive::config("{}"), Pings::Sent, &ask(true));
    exchange.handle_client_gone(NOW);
    assert!(exchange.is_ended());
    assert_eq!(exchange.poll_timeout(), None);
    assert_eq!(exchange.report().status, 499);
}

#[test]
fn a_whole_answer_that_is_complete_counts_however_its_connection_ends() {
    let choice =
        r#""index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop""#;
    let native = r#"{"type":"message","role":"assistant","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}"#;
    let last = r#"{"choices":[{"delta":{"content":"i"},"finish_reason":"stop"}]}"#;
    for body in [
        format!("\u{feff} {{\"choices\":[{{{choice}}}]}}\r\n"),
        native.to_owned(),
        last.replace("\"i\"", "\"Hi\""),
        format!(r#"[{{"choices":[{{"delta":{{"content":"H"}}}}]}},{last}]"#),
    ] {
        for stream in [false, true] {
            let (exchange, _) = started(&drive::config("{}"), Pings::Sent, &ask(stream));
            let answer = drive::respond(exchange, 200, &[], [body.as_bytes()], End::Aborted);
            let text = String::from_utf8(answer.body).unwrap();
            assert_eq!(answer.head.status, 200, "{body}: {text}");
            assert!(text.contains("end_turn") && !text.contains("error"), "{body}: {text}");
        }
        let (exchange, _) = started(&drive::config("{}"), Pings::Sent, &ask(false));
        let cut = body.trim_end().strip_suffix(['}', ']']).unwrap();
        let answer = drive::respond(exchange, 200, &[], [cut.as_bytes()], End::Aborted);
        let said = "Upstream stream ended before completion.";
        assert_eq!((answer.head.status, &error_of(&answer.body)["message"]), (502, &json!(said)));
    }
    // An error says what it says, and a chunk may be the first of several.
    for (body, said) in [
        (r#"{"error":{"message":"busy","code":503}}"#, "busy"),
        (r#"[{"error":{"message":"busy","code":503}}]"#, "busy"),
        (r#"{"choices":[{"delta":{"content":"Hi"}}]}"#, "Upstream stream ended before completion."),
    ] {
        let (exchange, _) = started(&drive::config("{}"), Pings::Sent, &ask(true));
        let answer = drive::respond(exchange, 200, &[], [body.as_bytes()], End::Aborted);
        assert!(answer.head.status > 500);
        assert_eq!(error_of(&answer.body)["message"], said);
    }
}

#[test]
fn an_event_that_is_cut_off_is_an_answer_that_is_cut_off() {
    let whole = r#"data: {"choices":[{"delta":{"content":"Hi"}}]}"#;
    let ended = "Upstream stream ended before completion.";
    for (last, said) in [
        (r#"data: {"choices":[{"delta":{"conte"#, ended),
        (r#"{"choices":[{"delta":{"content":"a}"#, ended),
        ("data: {\"choices\":[\n", ended),
        // Not what is complete, and no less wrong.
        ("data: {\"choices\":[{\n\n", "Upstream sent an invalid response"),
    ] {
        let body = format!("{whole}\n\n{last}");
        for (end, stream) in
            [End::Complete, End::Aborted].into_iter().flat_map(|end| [(end, true), (end, false)])
        {
            let (exchange, _) = started(&drive::config("{}"), Pings::Sent, &ask(stream));
            let answer = drive::respond(exchange, 200, &[], [body.as_bytes()], end);
            let text = String::from_utf8(answer.body).unwrap();
            assert!(text.contains(said), "{last} {stream}: {text}");
        }
    }
}
