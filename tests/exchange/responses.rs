//! Upstreams that speak Responses: reasoning that comes back, and what they refuse of it.

use super::host::{Host, request};
use super::*;
use support::fold;

/// A configuration with one upstream that speaks Responses.
fn responses() -> Arc<Config> {
    drive::config(r#"{"upstreams": {"a": {"profile": "openai", "protocol": "responses"}}}"#)
}

/// The reasoning item of a turn, written as no serializer here would.
fn item(turn: usize) -> String {
    format!(
        r#"{{"type":"reasoning", "id":"rs_{turn}","summary":[{{"type":"summary_text","text":"Step {turn}."}}],"encrypted_content":"gAAAA\/{turn}", "status":null}}"#
    )
}

fn call(turn: usize) -> String {
    format!(
        r#"{{"type":"function_call","id":"fc_{turn}","call_id":"call_{turn}","name":"step","arguments":"{{\"n\":{turn}.50}}","status":"completed"}}"#
    )
}

/// The answer of a turn, as a stream or as a whole.
fn answer(turn: usize, stream: bool) -> String {
    let response = format!(
        r#"{{"id":"resp_{turn}","object":"response","status":"completed","model":"m","output":[{},{}],"usage":{{"input_tokens":9,"output_tokens":5,"total_tokens":14}}}}"#,
        item(turn),
        call(turn)
    );
    if !stream {
        return response;
    }
    let mut body = String::new();
    let mut event = |kind: &str, rest: &str| {
        body.push_str(&format!("event: {kind}\ndata: {{\"type\":\"{kind}\",{rest}}}\n\n"));
    };
    event("response.created", r#""response":{"id":"resp","status":"in_progress","output":[]}"#);
    for (at, item) in [item(turn), call(turn)].into_iter().enumerate() {
        event("response.output_item.done", &format!("\"output_index\":{at},\"item\":{item}"));
    }
    event("response.completed", &format!("\"response\":{response}"));
    body
}

#[test]
fn a_loop_of_tools_keeps_each_reasoning_item_and_all_that_was_sent_before() {
    let config = responses();
    for stream in [true, false] {
        let mut body = request(
            "m",
            json!({
                "stream": stream, "thinking": {"type": "adaptive"},
                "tools": [{"name": "step", "input_schema": {"type": "object"}}],
            }),
        );
        let mut before: Option<String> = None;
        for turn in 0..10 {
            let (exchange, sent) =
                drive::request(&config, "/v1/messages", &[], body.to_string().as_bytes()).unwrap();
            assert_eq!(sent.path, "/v1/responses");
            let sent = String::from_utf8(sent.body).unwrap();
            if let Some(before) = before.replace(sent.clone()) {
                let known = before.strip_suffix("]}").unwrap();
                assert!(sent.starts_with(known), "{sent}\n--- is no extension of\n{before}");
            }
            for known in 0..turn {
                assert_eq!(sent.matches(&item(known)).count(), 1, "{sent}");
                let led_to = format!("{},{{\"type\":\"function_call\"", item(known));
                assert!(sent.contains(&led_to), "{sent}");
            }
            support::responses::check(&serde_json::from_str(&sent).unwrap()).unwrap();
            let said = answer(turn, stream);
            let got = drive::respond(exchange, 200, &[], [said.as_bytes()], End::Complete);
            let message = if stream {
                let events = grammar::check_stream(&got.body, Rules::default()).unwrap();
                fold::fold(&events).message
            } else {
                serde_json::from_slice(&got.body).unwrap()
            };
            let content = message["content"].as_array().unwrap();
            assert_eq!(content[0]["thinking"], format!("Step {turn}."), "{message}");
            let id = &content.last().unwrap()["id"];
            let result = json!([{"type": "tool_result", "tool_use_id": id, "content": "ok"}]);
            let messages = body["messages"].as_array_mut().unwrap();
            messages.push(json!({"role": "assistant", "content": content}));
            messages.push(json!({"role": "user", "content": result}));
        }
    }
}

/// A conversation whose first answer was thought by the model.
fn thought() -> Value {
    let config = responses();
    let mut body = request(
        "m",
        json!({
            "thinking": {"type": "adaptive"},
            "tools": [{"name": "step", "input_schema": {"type": "object"}}],
        }),
    );
    let (exchange, _) =
        drive::request(&config, "/v1/messages", &[], body.to_string().as_bytes()).unwrap();
    let got = drive::respond(exchange, 200, &[], [answer(0, false).as_bytes()], End::Complete);
    let message: Value = serde_json::from_slice(&got.body).unwrap();
    let id = &message["content"][1]["id"];
    let messages = body["messages"].as_array_mut().unwrap();
    messages.push(json!({"role": "assistant", "content": message["content"]}));
    messages.push(json!({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": id, "content": "ok"}]}));
    body
}

#[test]
fn reasoning_that_cannot_be_read_is_left_out_of_this_conversation_alone() {
    for message in [
        "The encrypted content gAAA... could not be verified. Reason: Encrypted content could not be decrypted or parsed.",
        "Item 'rs_0' of type 'reasoning' was provided without its required following item.",
        "Item with id 'rs_0' not found. Items are not persisted when `store` is set to false.",
    ] {
        let refuses =
            |sent: &Value| sent.to_string().contains("\"type\":\"reasoning\"").then_some(message);
        // An item that was not stored is not found.
        let statuses = if message.contains("not found") { &[400, 404][..] } else { &[400] };
        for status in statuses.iter().chain(statuses) {
            let host = Host { config: responses(), status: *status, ..Host::new(true, &refuses) };
            let got = host.ask(&thought(), NOW);
            // Nothing of it is remembered: other conversations have reasoning that can be read.
            assert_eq!((got.status().0, got.asked.len()), (200, 2), "{message}");
            assert_eq!(got.warnings(), "dropped:reasoning,reasoning_refused");
            assert!(got.asked[1].to_string().contains("function_call_output"));
        }
        // Claude Code reads these words, and sends the conversation again without thinking.
        let host = Host { config: responses(), ..Host::new(false, &refuses) };
        let got = host.ask(&thought(), NOW);
        assert_eq!((got.status().0, got.asked.len()), (400, 1));
        let error = error_of(&got.body);
        let words = error["message"].as_str().unwrap();
        let known = "messages.1.content.0: Invalid `signature` in `thinking` block";
        assert!(words.starts_with(known) && words.contains(message), "{words}");
    }
}

#[test]
fn what_a_server_of_responses_refuses_is_left_out() {
    let stream = json!({"stream": true, "thinking": {"type": "adaptive"},
        "metadata": {"user_id": "u_session_7"},
        "messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"},
            {"role": "user", "content": "r"}]});
    for (pointer, message, key) in [
        (
            "/reasoning/summary",
            "reasoning.summary: Your organization must be verified to generate reasoning summaries.",
            "reasoning_summary",
        ),
        ("/include", "Encrypted content is not supported with this model.", "include_encrypted"),
        ("/max_output_tokens", "Unsupported parameter: max_output_tokens", "output_limit"),
        (
            "/temperature",
            "Unsupported parameter: 'temperature' is not supported with this model.",
            "sampling",
        ),
        ("/store", "Unsupported parameter: store", "store_field"),
        ("/safety_identifier", "Unknown parameter: 'safety_identifier'.", "user_id"),
        ("/prompt_cache_key", "Unknown parameter: 'prompt_cache_key'.", "prompt_cache_key"),
        ("/input/1/phase", "Unknown parameter: 'phase'.", "message_phase"),
    ] {
        let refuses = |sent: &Value| sent.pointer(pointer).is_some().then_some(message);
        let host = Host { config: responses(), ..Host::new(true, &refuses) };
        for asked in [2, 1] {
            let mut body = request("m", json!({}));
            body.as_object_mut().unwrap().extend(stream.as_object().unwrap().clone());
            body["stream"] = json!(false);
            let got = host.ask(&body, NOW);
            assert_eq!((got.status().0, got.asked.len()), (200, asked), "{message}");
            assert!(
                got.warnings().contains(&format!("parameter_refused:{key}")),
                "{}",
                got.warnings()
            );
        }
    }
    // `stream_options` of Responses only ask for less padding.
    let refuses =
        |sent: &Value| sent.get("stream_options").map(|_| "Unknown parameter: 'stream_options'.");
    let host = Host { config: responses(), ..Host::new(true, &refuses) };
    let got = host.ask(&request("m", stream), NOW);
    assert_eq!((got.status().0, got.asked.len()), (200, 2));
}

#[test]
fn a_request_that_was_to_be_stored_is_refused_by_the_configuration() {
    for (name, value) in [("store", "true"), ("previous_response_id", "\"r\""), ("input", "[]")] {
        let document = format!(
            r#"{{"upstreams": {{"a": {{"protocol": "responses", "profile_overrides": {{"extra_body": {{"{name}": {value}}}}}}}}}}}"#
        );
        let error = Config::from_json(&document, |_| None).unwrap_err().to_string();
        assert!(error.contains(&format!("extra_body.{name}")), "{error}");
    }
    let document = r#"{"upstreams": {"a": {"protocol": "responses", "profile_overrides":
        {"extra_body": {"text": {"verbosity": "low"}, "reasoning": {"context": "auto"}}}}}}"#;
    let (_, sent) = drive::request(
        &drive::config(document),
        "/v1/messages",
        &[],
        request("m", json!({})).to_string().as_bytes(),
    )
    .unwrap();
    let sent: Value = serde_json::from_slice(&sent.body).unwrap();
    assert_eq!(sent["text"], json!({"verbosity": "low"}));
    assert_eq!(sent["reasoning"], json!({"context": "auto"}));
}

#[test]
fn errors_of_responses_have_the_status_that_their_codes_mean() {
    for (code, status, kind) in [
        ("context_length_exceeded", 400, "invalid_request_error"),
        ("insufficient_quota", 402, "billing_error"),
        ("usage_not_included", 402, "billing_error"),
        ("usage_limit_reached", 402, "billing_error"),
        ("rate_limit_exceeded", 429, "rate_limit_error"),
        ("slow_down", 529, "overloaded_error"),
        ("server_is_overloaded", 529, "overloaded_error"),
        ("invalid_base64_image", 400, "invalid_request_error"),
        ("unsupported_value", 400, "invalid_request_error"),
        ("model_not_found", 404, "not_found_error"),
        ("server_error", 502, "api_error"),
        ("vector_store_timeout", 502, "api_error"),
    ] {
        let failed = json!({"id": "resp_1", "object": "response", "status": "failed", "output": [],
            "error": {"code": code, "message": "No."}});
        let (exchange, _) = drive::request(
            &responses(),
            "/v1/messages",
            &[],
            request("m", json!({})).to_string().as_bytes(),
        )
        .unwrap();
        let body = failed.to_string();
        let got = drive::respond(exchange, 200, &[], [body.as_bytes()], End::Complete);
        let error = error_of(&got.body);
        assert_eq!((got.head.status, error["type"].as_str()), (status, Some(kind)), "{code}");
    }
}

/// The answer with these items as a stream, or as a whole. `at_end`: those that the end event has.
fn answer_of(items: &[Value], at_end: &[Value], stream: bool) -> String {
    let response = json!({"id": "resp_1", "object": "response", "status": "completed", "model": "m",
        "output": at_end, "usage": {"input_tokens": 9, "output_tokens": 5, "total_tokens": 14}});
    if !stream {
        return response.to_string();
    }
    let mut body = String::new();
    let mut event = |kind: &str, mut more: Value| {
        more["type"] = json!(kind);
        body.push_str(&format!("event: {kind}\ndata: {more}\n\n"));
    };
    event(
        "response.created",
        json!({"response": {"id": "resp_1", "status": "in_progress", "output": []}}),
    );
    for (at, item) in items.iter().enumerate() {
        let mut begun = item.clone();
        match item["type"].as_str() {
            Some("message") => begun["content"] = json!([]),
            Some("reasoning") => {
                if let Some(begins) = item.get("begins") {
                    begun = begins.clone();
                }
            }
            _ => begun["arguments"] = json!(""),
        }
        let mut done = item.clone();
        done.as_object_mut().unwrap().remove("begins");
        event("response.output_item.added", json!({"output_index": at, "item": begun}));
        if let Some(text) = item.pointer("/content/0/text") {
            let id = &item["id"];
            event(
                "response.output_text.delta",
                json!({"output_index": at, "item_id": id, "content_index": 0, "delta": text}),
            );
        }
        event("response.output_item.done", json!({"output_index": at, "item": done}));
    }
    event("response.completed", json!({"response": response}));
    body
}

/// The items that go back with the turn after such an answer, by their kinds, ids and texts, for
/// each way in which the answer can be cut. `thinks`: the client asks for thinking.
fn next_items(answer: &str, stream: bool, thinks: bool) -> Vec<String> {
    let config = responses();
    let mut body = request(
        "m",
        json!({"stream": stream, "tools": [{"name": "step", "input_schema": {"type": "object"}}]}),
    );
    if thinks {
        body["thinking"] = json!({"type": "adaptive"});
    }
    let bytes = answer.as_bytes();
    let cuts = (0..bytes.len()).map(|at| vec![&bytes[..at], &bytes[at..]]);
    let all = [bytes.chunks(1).collect::<Vec<_>>()].into_iter().chain(cuts).map(|pieces| {
        let (exchange, _) =
            drive::request(&config, "/v1/messages", &[], body.to_string().as_bytes()).unwrap();
        let got = drive::respond(exchange, 200, &[], pieces, End::Complete);
        let message = if stream {
            fold::fold(&grammar::check_stream(&got.body, Rules::default()).unwrap()).message
        } else {
            serde_json::from_slice(&got.body).unwrap()
        };
        let mut next = body.clone();
        let calls = message["content"].as_array().unwrap().iter().filter_map(|it| it.get("id"));
        let results: Vec<_> = calls
            .map(|id| json!({"type": "tool_result", "tool_use_id": id, "content": "ok"}))
            .collect();
        let messages = next["messages"].as_array_mut().unwrap();
        messages.push(json!({"role": "assistant", "content": message["content"]}));
        messages.push(json!({"role": "user", "content": results}));
        let (_, sent) =
            drive::request(&config, "/v1/messages", &[], next.to_string().as_bytes()).unwrap();
        let sent: Value = serde_json::from_slice(&sent.body).unwrap();
        support::responses::check(&sent).unwrap();
        let items = sent["input"].as_array().unwrap()[1..].iter();
        let items = items.filter(|item| item["type"] != "function_call_output");
        items
            .map(|item| match item["type"].as_str() {
                Some("reasoning") => format!("{}={}", item["id"], item["encrypted_content"]),
                Some("message") => item["content"].to_string(),
                _ => item["arguments"].to_string(),
            })
            .map(|text| text.replace(['"', '\\'], ""))
            .collect::<Vec<_>>()
    });
    let mut all = all.collect::<Vec<_>>();
    all.dedup();
    assert_eq!(all.len(), 1, "cuts differ: {all:?}");
    all.remove(0)
}

fn thought_item(turn: usize, encrypted: Option<&str>) -> Value {
    json!({"type": "reasoning", "id": format!("rs_{turn}"), "summary": [], "encrypted_content": encrypted})
}

fn text_item(turn: usize) -> Value {
    json!({"type": "message", "id": format!("msg_{turn}"), "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": format!("Text {turn}."), "annotations": []}]})
}

fn call_item(turn: usize) -> Value {
    json!({"type": "function_call", "id": format!("fc_{turn}"), "call_id": format!("call_{turn}"),
        "name": "step", "arguments": format!("{{n:{turn}}}").replace('n', "\"n\""), "status": "completed"})
}

#[test]
fn reasoning_texts_and_calls_go_back_in_the_order_in_which_they_came() {
    let (thought, text, call) = (|turn| thought_item(turn, Some("gAAA")), text_item, call_item);
    for (items, expected) in [
        (vec![thought(1), text(1), call(1)], "rs_1=gAAA Text 1. {n:1}"),
        (vec![text(1), thought(1), call(1)], "Text 1. rs_1=gAAA {n:1}"),
        (vec![text(1), thought(1), text(2), call(1)], "Text 1. rs_1=gAAA Text 2. {n:1}"),
        (
            vec![thought(1), text(1), thought(2), text(2), call(1)],
            "rs_1=gAAA Text 1. rs_2=gAAA Text 2. {n:1}",
        ),
        (
            vec![thought(1), text(1), call(1), thought(2), text(2), call(2)],
            "rs_1=gAAA Text 1. {n:1} rs_2=gAAA Text 2. {n:2}",
        ),
        (vec![thought(1), call(1), call(2)], "rs_1=gAAA {n:1} {n:2}"),
    ] {
        for (stream, thinks) in [(true, true), (true, false), (false, true), (false, false)] {
            let answer = answer_of(&items, &items, stream);
            let next = next_items(&answer, stream, thinks).join(" ");
            assert_eq!(next, expected, "stream {stream}, thinks {thinks}");
        }
    }
}

#[test]
fn encrypted_reasoning_goes_back_wherever_it_comes_and_nothing_else_by_its_id() {
    let [bare, full] = [None, Some("gAAA")].map(|encrypted| {
        let mut item = thought_item(1, encrypted);
        item["summary"] = json!([{"type": "summary_text", "text": "Hm."}]);
        item
    });
    let mut only_begun = bare.clone();
    only_begun["begins"] = full.clone();
    for thinks in [true, false] {
        let next = |items: &[Value], at_end: &[Value], stream| {
            next_items(&answer_of(items, at_end, stream), stream, thinks).join(" ")
        };
        let with_call = |item: &Value| [item.clone(), call_item(1)];
        // With the beginning, with the item's own end, and with the end of an answer that has
        // nothing else.
        let begun = with_call(&only_begun);
        assert_eq!(next(&begun, &with_call(&bare), true), "rs_1=gAAA {n:1}");
        let whole = with_call(&full);
        assert_eq!(next(&whole, &whole, true), "rs_1=gAAA {n:1}");
        assert_eq!(next(&[], &whole, true), "rs_1=gAAA {n:1}");
        assert_eq!(next(&[], &whole, false), "rs_1=gAAA {n:1}");
        // After its block, with what comes later of the same answer.
        let later = [full.clone(), text_item(1), thought_item(2, Some("gBBB")), call_item(1)];
        let late = next(&[bare.clone(), text_item(1)], &later, true);
        assert_eq!(late, "Text 1. null=gAAA rs_2=gBBB {n:1}");
        // After the call, or never.
        assert_eq!(next(&with_call(&bare), &whole, true), "{n:1}");
        assert_eq!(next(&[], &with_call(&bare), false), "{n:1}");
    }
}

/// The warnings of an answer that has these events before its end.
fn warned(events: &[Value]) -> String {
    let mut body = String::new();
    let end = json!({"type": "response.completed", "response": {"status": "completed"}});
    for event in events.iter().chain([&end]) {
        body.push_str(&format!("data: {event}\n\n"));
    }
    let request = request("m", json!({"stream": true, "thinking": {"type": "adaptive"}}));
    let (exchange, _) =
        drive::request(&responses(), "/v1/messages", &[], request.to_string().as_bytes()).unwrap();
    let got = drive::respond(exchange, 200, &[], [body.as_bytes()], End::Complete);
    grammar::check_stream(&got.body, Rules::default()).unwrap();
    got.report.warnings.header().unwrap_or_default()
}

#[test]
fn what_comes_too_late_or_otherwise_is_counted() {
    let item = json!({"type": "message", "id": "msg_1", "role": "assistant", "content": []});
    let conflict = warned(&[
        json!({"type": "response.output_item.added", "output_index": 0, "item": item}),
        json!({"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "delta": "abc"}),
        json!({"type": "response.output_text.done", "item_id": "msg_1", "output_index": 0, "text": "xyz"}),
    ]);
    assert!(conflict.contains("text_conflict"), "{conflict}");
    let reasoning = |blob: Value| json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": blob});
    let late = warned(&[
        json!({"type": "response.output_item.added", "output_index": 0, "item": reasoning(Value::Null)}),
        json!({"type": "response.reasoning_summary_text.delta", "item_id": "rs_1", "output_index": 0, "summary_index": 0, "delta": "hm"}),
        json!({"type": "response.output_item.added", "output_index": 1, "item": item}),
        json!({"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 1, "delta": "abc"}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": reasoning(json!("gAAA"))}),
    ]);
    assert!(late.contains("reasoning_item_late"), "{late}");
}

#[test]
fn signs_of_life_of_a_search_become_pings_and_no_block() {
    let (mut exchange, _) = started(&responses(), Pings::Sent, &ask(true));
    let mut body = Vec::new();
    exchange.handle_call_head(200, &[], NOW);
    let mut send = |second: u64, event: Value| {
        let now = NOW + second * 1000;
        while let Some(due) = exchange.poll_timeout().filter(|due| *due <= now) {
            exchange.timeout(due, &mut body);
        }
        exchange.piece(format!("data: {event}\n\n").as_bytes(), now, &mut body);
        body.clone()
    };
    let running = json!({"id": "resp_1", "status": "in_progress", "output": []});
    send(0, json!({"type": "response.created", "response": running}));
    let item = json!({"id": "ws_1", "type": "web_search_call", "status": "in_progress"});
    send(0, json!({"type": "response.output_item.added", "output_index": 0, "item": item}));
    for second in (1..=40).step_by(3) {
        send(second, json!({"type": "keepalive", "sequence_number": second}));
        send(second, json!({"type": "response.web_search_call.searching", "item_id": "ws_1"}));
    }
    let waiting = send(40, json!({"type": "keepalive"}));
    let names: Vec<_> = grammar::events(&waiting).unwrap().into_iter().map(|it| it.name).collect();
    assert_eq!(names, ["message_start", "ping", "ping"]);
    let text = json!({"type": "output_text", "text": "Hi", "annotations": []});
    let item = json!({"id": "msg_1", "type": "message", "role": "assistant", "content": [text]});
    let over = json!({"id": "resp_1", "status": "completed", "output": [item]});
    let body = send(41, json!({"type": "response.completed", "response": over}));
    let events = grammar::check_stream(&body, Rules::default()).unwrap();
    assert_eq!(fold::fold(&events).message["content"], json!([{"type": "text", "text": "Hi"}]));
}
