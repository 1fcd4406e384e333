//! Refusals in words that no row knows, of upstreams that speak Messages.

use super::host::request;
use super::*;
use support::fold;

const LONG: &str = "toolu_r_chatcmpl-tool-0123456789abcdef0123456789abcdef";

fn config(more: &str) -> Arc<Config> {
    drive::config(&format!(r#"{{"upstreams": {{"a": {{"protocol": "anthropic"}}}}{more}}}"#))
}

/// A conversation with calls, and members that nobody here knows.
fn conversation(more: Value) -> Value {
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "look", "input": {"n": 1.0}, "x": 1});
    let result = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": "A page."});
    let tool = |name: &str| json!({"name": name, "input_schema": {"type": "object"}});
    let mut body = request(
        "m",
        json!({
            "max_tokens": 4000, "future": {"a": [1]},
            "tools": [tool("other"), tool("look")],
            "messages": [
                {"role": "user", "content": "Look"},
                {"role": "assistant", "content": [call(LONG), call("Abcdefgh9"),
                    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
                    {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}]},
                {"role": "user", "content": [result("Abcdefgh9"), result(LONG)]},
            ],
        }),
    );
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

/// An answer of every kind of block, some of which nobody here knows.
fn message() -> Value {
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
            {"type": "redacted_thinking", "data": "x"},
            {"type": "text", "text": "Hi, \u{e4}"},
            {"type": "future_block", "data": {"a": [1]}},
            {"type": "tool_use", "id": "Zyxwvuts1", "name": "look", "input": {"n": 1}},
        ],
        "stop_reason": "tool_use", "stop_sequence": null, "stop_details": null, "container": null,
        "usage": {"input_tokens": 3, "output_tokens": 4, "vendor": {"x": 1}},
    })
}

/// The answer of every kind of block, as a stream.
fn events() -> String {
    let of = message();
    let mut head = of.clone();
    head["content"] = json!([]);
    head["stop_reason"] = Value::Null;
    let mut events =
        vec![json!({"type": "message_start", "message": head}), json!({"type": "ping"})];
    for (index, block) in of["content"].as_array().unwrap().iter().enumerate() {
        let (mut start, mut deltas) = (block.clone(), Vec::new());
        let mut moved = |name: &str, blank: Value, delta: Value| {
            start[name] = blank;
            deltas.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        };
        match block["type"].as_str().unwrap() {
            "thinking" => {
                moved("thinking", json!(""), json!({"type": "thinking_delta", "thinking": "hm"}));
                moved(
                    "signature",
                    json!(""),
                    json!({"type": "signature_delta", "signature": "c2ln"}),
                );
            }
            "text" => {
                moved("text", json!(""), json!({"type": "text_delta", "text": block["text"]}));
            }
            "tool_use" => {
                let json = block["input"].to_string();
                let delta = json!({"type": "input_json_delta", "partial_json": json});
                moved("input", json!({}), delta);
            }
            _ => {}
        }
        events.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
        events.append(&mut deltas);
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events.push(json!({"type": "message_delta", "usage": of["usage"],
        "delta": {"stop_reason": "tool_use", "stop_sequence": null}}));
    events.push(json!({"type": "message_stop"}));
    let lines = events
        .iter()
        .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()));
    lines.collect()
}

/// Asks an upstream that refuses with this body for as long as `is_in` finds in the request what it
/// refuses. Gives the exchange after that, and the requests.
fn asked(
    config: &Arc<Config>,
    body: &Value,
    refusal: &str,
    is_in: &dyn Fn(&Value) -> bool,
) -> (Exchange, Vec<Value>) {
    let can = HostCan { ask_again: true, ..HostCan::default() };
    let mut exchange = Exchange::new(Arc::clone(config), SEED, can);
    exchange.decide("POST", "/v1/messages", &headers(&[("x-api-key", "k")]));
    let mut call = Some(exchange.request(body.to_string().as_bytes(), NOW).unwrap());
    let mut asked: Vec<Value> = Vec::new();
    while let Some(sent) = call {
        asked.push(serde_json::from_slice(&sent.body).unwrap());
        let accepts = sent.headers.iter().find(|(name, _)| name == "accept").unwrap();
        assert_eq!(accepts.1 == "text/event-stream", asked.last().unwrap()["stream"] == true);
        if !is_in(asked.last().unwrap()) {
            break;
        }
        let mut out = Vec::new();
        exchange.handle_call_head(400, &[], NOW);
        exchange.piece(refusal.as_bytes(), NOW, &mut out);
        exchange.end(End::Complete, NOW, &mut out);
        call = exchange.poll_call(NOW);
    }
    (exchange, asked)
}

/// The message that a client gets in these pieces, and the warnings of its head.
fn answered(exchange: Exchange, stream: bool, pieces: Vec<&[u8]>) -> (Value, String, Vec<u8>) {
    let got = drive::respond(exchange, 200, &[], pieces, End::Complete);
    let warnings = header(&got.head, "x-creole-warnings").unwrap_or_default().to_owned();
    let rules = Rules { foreign_blocks: true, ..Rules::default() };
    let message = if stream {
        fold::fold(&grammar::check_stream(&got.body, rules).unwrap()).message
    } else {
        serde_json::from_slice(&got.body).unwrap()
    };
    (message, warnings, got.body)
}

/// Returns the upstream's answer to a request: events or a message.
fn answer(sent: &Value) -> String {
    if sent["stream"] == true { events() } else { message().to_string() }
}

#[test]
fn an_upstream_that_serves_one_kind_of_answers_is_asked_for_that() {
    for (stream, refusal) in [
        (true, r#"{"error": {"message": "Verify first.", "param": "stream"}}"#),
        (true, "ValidationException: This model doesn't support tool use in streaming mode."),
        (false, "Stream must be set to true"),
        (false, "parameter.enable_thinking must be set to false for non-streaming calls"),
    ] {
        let body = conversation(json!({"stream": stream}));
        let is_in = |sent: &Value| (sent["stream"] == true) == stream;
        let run = || {
            let (exchange, asked) = asked(&config(""), &body, refusal, &is_in);
            assert_eq!(asked.len(), 2, "{refusal}");
            (exchange, asked[1].clone())
        };
        let (exchange, sent) = run();
        let mut expected = body.clone();
        match stream {
            true => drop(expected.as_object_mut().unwrap().remove("stream")),
            false => expected["stream"] = json!(true),
        }
        assert_eq!(sent, expected);
        let answer = answer(&sent);
        let (got, warnings, bytes) = answered(exchange, stream, vec![answer.as_bytes()]);
        assert_eq!(got, message());
        assert_eq!(warnings, "stream_refused");
        let cuts =
            (1..answer.len()).map(|at| answer.as_bytes().split_at(at)).map(|(a, b)| vec![a, b]);
        for pieces in cuts.chain([answer.as_bytes().chunks(1).collect()]) {
            assert_eq!(answered(run().0, stream, pieces).2, bytes);
        }
    }
}

#[test]
fn a_tool_of_another_name_keeps_its_own_for_the_client() {
    let long = "mcp__a_server_with_a_long_name.and_dots__a_tool_with_a_name_that_is_as_long";
    let tool = json!({"name": long, "input_schema": {"type": "object"}});
    let body = |stream: bool| {
        let mut body = conversation(json!({"tools": [tool], "stream": stream,
            "tool_choice": {"type": "tool", "name": long}}));
        body["messages"][1]["content"][0]["name"] = json!(long);
        body
    };
    let is_in = |sent: &Value| sent.to_string().contains(long);
    let refusal = "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'";
    for stream in [false, true] {
        let run = || {
            let (exchange, asked) = asked(&config(""), &body(stream), refusal, &is_in);
            assert_eq!(asked.len(), 2);
            (exchange, asked[1].clone())
        };
        let (exchange, sent) = run();
        let short = sent["tools"][0]["name"].as_str().unwrap();
        assert!(short.len() <= 64 && !short.contains('.'), "{short}");
        let mut expected = body(stream);
        for place in ["/tools/0/name", "/tool_choice/name", "/messages/1/content/0/name"] {
            *expected.pointer_mut(place).unwrap() = json!(short);
        }
        assert_eq!(sent, expected);
        let answer = answer(&sent).replace("\"look\"", &format!("{short:?}"));
        let (got, warnings, bytes) = answered(exchange, stream, vec![answer.as_bytes()]);
        assert_eq!(
            (&got["content"][4]["name"], &*warnings),
            (&json!(long), "parameter_refused:max_tool_name")
        );
        let cuts =
            (1..answer.len()).map(|at| answer.as_bytes().split_at(at)).map(|(a, b)| vec![a, b]);
        for pieces in cuts.chain([answer.as_bytes().chunks(1).collect()]) {
            assert_eq!(answered(run().0, stream, pieces).2, bytes);
        }
    }
}

#[test]
fn extensions_are_left_out_wherever_they_stand_and_nothing_else_is() {
    let mark = |scope: &str| json!({"type": "ephemeral", "scope": scope, "ttl": "1h"});
    let schema = json!({"type": "object", "properties": {"scope": {"type": "string"}}});
    let mut body = conversation(json!({
        "system": [{"type": "text", "text": "a \"scope\": b", "cache_control": mark("global")}],
        "tools": [{"name": "look", "input_schema": schema, "cache_control": mark("org"), "defer_loading": true}],
        "context_management": {"edits": []}, "inference_geo": "eu",
    }));
    body["messages"][1]["content"][0]["input"] = json!({"scope": 1, "caller": 2});
    let mut expected = body.clone();
    let mut without = |at: &str, name: &str| {
        drop(expected.pointer_mut(at).unwrap().as_object_mut().unwrap().remove(name));
    };
    for (at, name) in [
        ("/system/0/cache_control", "scope"),
        ("/system/0/cache_control", "ttl"),
        ("/tools/0/cache_control", "scope"),
        ("/tools/0/cache_control", "ttl"),
        ("/tools/0", "defer_loading"),
        ("", "context_management"),
    ] {
        without(at, name);
    }
    let is_in = |sent: &Value| !sent["context_management"].is_null();
    for told in [
        "system.0.cache_control.ephemeral.scope: Extra inputs are not permitted",
        "system.0.text.cache_control.ephemeral.ttl: Extra inputs are not permitted",
        "json: unknown field \"context_management\"",
        "Error from provider (Anthropic): context_management: Extra inputs are not permitted.",
    ] {
        let (_, asked) = asked(&config(""), &body, told, &is_in);
        assert_eq!((asked.len(), asked.last().unwrap()), (2, &expected), "{told}");
    }
    // What strict mode does not allow, what is no extension, what only repeats the request, and
    // what no server refuses.
    body["messages"][0]["content"] = json!("Set \"context_management\" in the file");
    for (more, told) in [
        (r#", "strict": true"#, "json: unknown field \"context_management\""),
        ("", "inference_geo: Extra inputs are not permitted"),
        ("", "messages.1.content.0.tool_use.x: Extra inputs are not permitted"),
        ("", "messages.1.content: Extra inputs are not permitted"),
        ("", "tools.0.name: unrecognized tool"),
        ("", "Not allowed (Set \"context_management\" in the file)"),
        ("", "The field \"context_management\" is the wrong one"),
    ] {
        let (_, asked) = asked(&config(more), &body, told, &|_| true);
        assert!(asked.iter().all(|sent| *sent == asked[0]), "{told}");
    }
}

#[test]
fn names_stay_where_they_would_meet_or_cannot_all_be_changed() {
    let long = "mcp__a_server_with_a_long_name.and_dots__a_tool_with_a_name_that_is_as_long";
    let tool = |name: &str| json!({"name": name, "input_schema": {"type": "object"}});
    let is_in = |sent: &Value| sent.to_string().contains(long);
    let refusal = "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'";
    let body = conversation(json!({"tools": [tool(long)]}));
    let (_, sent) = asked(&config(""), &body, refusal, &is_in);
    let short = sent[1]["tools"][0]["name"].as_str().unwrap();
    for more in [
        json!({"tools": [tool(long), tool(short)]}),
        json!({"tools": [tool(long)], "context_management": {"edits": [{"exclude_tools": [long]}]}}),
        json!({"tools": [tool(long)], "thread": {"id": "t"}}),
    ] {
        let (_, sent) = asked(&config(""), &conversation(more.clone()), refusal, &|_| true);
        assert!(sent.iter().all(|sent| sent["tools"][0]["name"] == long), "{more}");
    }
    // A request that Creole does not understand keeps its names for the client, too.
    let body = conversation(json!({"tools": [tool(long)], "top_k": "5"}));
    let (exchange, sent) = asked(&config(""), &body, refusal, &is_in);
    assert_eq!(sent.len(), 2);
    let answer = message().to_string().replace("\"look\"", &format!("{short:?}"));
    let (got, ..) = answered(exchange, false, vec![answer.as_bytes()]);
    assert_eq!(got["content"][4]["name"], long);
}

#[test]
fn two_refusals_of_members_are_two() {
    // The path says what is refused, and its numbers do not.
    let body = conversation(json!({
        "context_management": {"edits": []},
        "tools": [{"name": "look", "input_schema": {"type": "object"}, "cache_control": {"type": "ephemeral"}}],
    }));
    let can = HostCan { ask_again: true, ..HostCan::default() };
    let config = config("");
    let refusals = Arc::new(creole::Refusals::default());
    for turn in 0..3 {
        let mut exchange = Exchange::new(Arc::clone(&config), SEED, can);
        exchange.remember(Arc::clone(&refusals));
        exchange.decide("POST", "/v1/messages", &headers(&[("x-api-key", "k")]));
        let mut call = exchange.request(body.to_string().as_bytes(), NOW + turn).unwrap();
        let mut out = Vec::new();
        let (mut asked, mut status) = (0, 0);
        while status != 200 && asked < 6 {
            let sent: Value = serde_json::from_slice(&call.body).unwrap();
            asked += 1;
            let refusal = if !sent["context_management"].is_null() {
                Some("context_management: Extra inputs are not permitted")
            } else if !sent["tools"][0]["cache_control"].is_null() {
                Some("tools.0.custom.cache_control: Extra inputs are not permitted")
            } else {
                None
            };
            status = if refusal.is_some() { 400 } else { 200 };
            let answer = refusal.map_or_else(|| message().to_string(), str::to_owned);
            exchange.handle_call_head(status, &[], NOW + turn);
            exchange.piece(answer.as_bytes(), NOW + turn, &mut out);
            exchange.end(End::Complete, NOW + turn, &mut out);
            if let Some(again) = exchange.poll_call(NOW + turn) {
                call = again;
            }
        }
        assert_eq!((status, asked), (200, if turn == 0 { 3 } else { 1 }), "turn {turn}");
    }
}

#[test]
fn a_stream_that_was_not_wanted_and_breaks_off_is_no_message() {
    let body = conversation(json!({}));
    let is_in = |sent: &Value| sent["stream"] != true;
    for cut in ["content_block_stop", "message_delta"] {
        let (exchange, _) = asked(&config(""), &body, "Stream must be set to true", &is_in);
        let events = events();
        let at = events.find(&format!("event: {cut}")).unwrap();
        let got = drive::respond(exchange, 200, &[], [&events.as_bytes()[..at]], End::Complete);
        assert!(got.head.status >= 500, "{}", got.head.status);
        error_of(&got.body);
    }
}

#[test]
fn a_tool_that_cannot_be_forced_is_the_only_one_that_is_offered() {
    let forced =
        |sent: &Value| matches!(sent["tool_choice"]["type"].as_str(), Some("any" | "tool"));
    let warned = "dropped:tool_choice,parameter_refused:tool_choice_any";
    for stream in [false, true] {
        for refusal in [
            "Thinking mode does not support this tool_choice",
            r#"{"error": {"message": "Nope", "param": "tool_choice.type"}}"#,
        ] {
            for (choice, wanted, tools) in [
                (json!({"type": "any"}), json!({"type": "auto"}), &[0, 1][..]),
                (json!({"type": "tool", "name": "look"}), json!({"type": "auto"}), &[1]),
                (
                    json!({"type": "tool", "name": "look", "disable_parallel_tool_use": true}),
                    json!({"type": "auto", "disable_parallel_tool_use": true}),
                    &[1],
                ),
                // The upstream has a tool that this request has not, or it will say so.
                (json!({"type": "tool", "name": "unknown"}), json!({"type": "auto"}), &[0, 1]),
            ] {
                let body = conversation(json!({"stream": stream, "tool_choice": choice}));
                let (exchange, asked) = asked(&config(""), &body, refusal, &forced);
                let mut expected = body.clone();
                expected["tool_choice"] = wanted;
                expected["tools"] = tools.iter().map(|at| body["tools"][*at].clone()).collect();
                assert_eq!(asked, [body, expected]);
                let answer = answer(&asked[1]);
                let (got, warnings, _) = answered(exchange, stream, vec![answer.as_bytes()]);
                assert_eq!((got, &*warnings), (message(), warned));
            }
        }
    }
}

#[test]
fn other_tools_stay_where_the_conversation_is_bound_to_them() {
    let forced = |sent: &Value| sent["tool_choice"]["type"] == "tool";
    let choice = json!({"type": "tool", "name": "look"});
    let mut found = conversation(json!({"tool_choice": choice}));
    found["messages"][2]["content"][0]["content"] =
        json!([{"type": "tool_reference", "tool_name": "other"}]);
    let mut thought = conversation(json!({"tool_choice": choice, "model": "claude-x"}));
    let thinking = json!({"type": "thinking", "thinking": "", "signature": "c2ln"});
    thought["messages"][1]["content"].as_array_mut().unwrap().insert(0, thinking);
    for body in [found, thought] {
        let (_, asked) = asked(&config(""), &body, "tool_choice is not supported", &forced);
        assert_eq!(asked.len(), 2);
        assert_eq!(asked[1]["tool_choice"], json!({"type": "auto"}));
        assert_eq!(asked[1]["tools"], body["tools"]);
    }
}

#[test]
fn thinking_is_given_up_before_a_forced_tool() {
    let forced = |sent: &Value| sent["tool_choice"]["type"] == "any";
    let both = |sent: &Value| forced(sent) && sent.get("thinking").is_some();
    let body = conversation(json!({"tool_choice": {"type": "any"},
        "thinking": {"type": "enabled", "budget_tokens": 2000}}));
    let refusal = "Thinking may not be enabled when tool_choice forces tool use.";
    let (_, sent) = asked(&config(""), &body, refusal, &both);
    assert_eq!(sent.len(), 2);
    assert!(forced(&sent[1]) && sent[1].get("thinking").is_none());
    let (_, sent) = asked(&config(""), &body, refusal, &forced);
    assert_eq!(sent.len(), 3);
    assert!(forced(&sent[1]) && sent[2]["tool_choice"] == json!({"type": "auto"}));
}

#[test]
fn ids_that_are_refused_get_nine_letters_and_digits() {
    let nine = |id: &Value| {
        let id = id.as_str().unwrap();
        id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    let long = |sent: &Value| !nine(&sent["messages"][1]["content"][0]["id"]);
    for stream in [false, true] {
        for (refusal, strict) in [
            (
                "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
                "",
            ),
            (r#"{"error": {"message": "No.", "param": "messages[2].content[1].tool_use_id"}}"#, ""),
            (
                "Tool call id was toolu_r_x but must be a-z, A-Z, 0-9, with a length of 9.",
                r#", "strict": true"#,
            ),
        ] {
            let body = conversation(json!({"stream": stream}));
            let body = if strict.is_empty() { body } else { known(body) };
            let (exchange, sent) = asked(&config(strict), &body, refusal, &long);
            assert_eq!(sent.len(), 2, "{refusal}");
            let short = &sent[1]["messages"][1]["content"][0]["id"];
            let mut expected = body.clone();
            expected["messages"][1]["content"][0]["id"] = short.clone();
            expected["messages"][2]["content"][1]["tool_use_id"] = short.clone();
            assert_eq!(sent[1], expected);
            assert_ne!(short, "Abcdefgh9");
            let answer = answer(&sent[1]);
            let (got, warnings, _) = answered(exchange, stream, vec![answer.as_bytes()]);
            assert_eq!((&got, &*warnings), (&message(), "parameter_refused:id_style"));

            // The next turn has the same ids, and that of the answer as the upstream gave it.
            let mut body = body.clone();
            let messages = body["messages"].as_array_mut().unwrap();
            let call = got["content"][4].clone();
            let result = json!({"type": "tool_result", "tool_use_id": call["id"], "content": "b"});
            messages.push(json!({"role": "assistant", "content": [call]}));
            messages.push(json!({"role": "user", "content": [result]}));
            let (_, again) = asked(&config(strict), &body, refusal, &long);
            let known = |sent: &Value| sent["messages"].as_array().unwrap()[..3].to_vec();
            assert_eq!(known(&again[1]), known(&sent[1]));
            assert_eq!(
                again[1]["messages"].as_array().unwrap()[3..],
                body["messages"].as_array().unwrap()[3..]
            );
        }
    }
}

/// The conversation without what no API has.
fn known(mut body: Value) -> Value {
    body.as_object_mut().unwrap().remove("future");
    body["messages"][1]["content"].as_array_mut().unwrap().iter_mut().for_each(|block| {
        block.as_object_mut().unwrap().remove("x");
    });
    body
}

#[test]
fn an_answers_id_is_told_from_one_that_was_made_up() {
    let long = |sent: &Value| sent["messages"][1]["content"][0]["id"].as_str().unwrap().len() > 9;
    let refusal = r#"{"error": {"message": "No.", "param": "messages[1].content[0].id"}}"#;
    let mut body = conversation(json!({}));
    let (_, sent) = asked(&config(""), &body, refusal, &long);
    let short = sent[1]["messages"][1]["content"][0]["id"].clone();
    // A model repeats the id that it was shown.
    let messages = body["messages"].as_array_mut().unwrap();
    let call = json!({"type": "tool_use", "id": short, "name": "look", "input": {}});
    messages.push(json!({"role": "assistant", "content": [call]}));
    let result = json!({"type": "tool_result", "tool_use_id": short, "content": "b"});
    messages.push(json!({"role": "user", "content": [result]}));
    let (_, sent) = asked(&config(""), &body, refusal, &long);
    let id = &sent[1]["messages"][3]["content"][0]["id"];
    assert_eq!(sent[1]["messages"][1]["content"][0]["id"], short);
    assert_ne!(*id, short);
    assert_eq!(sent[1]["messages"][4]["content"][0]["tool_use_id"], *id);
}

#[test]
fn results_of_a_thread_keep_the_ids_that_its_server_knows() {
    let body = json!({"model": "m", "max_tokens": 9, "thread": {"id": "t"}, "messages": [
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": LONG, "content": "b"}]}]});
    let refusal = r#"{"error": {"message": "No.", "param": "messages[0].content[0].tool_use_id"}}"#;
    let (_, sent) = asked(&config(""), &body, refusal, &|_| true);
    assert_eq!(sent.len(), 1);
}

#[test]
fn one_change_after_the_other_is_made() {
    let is_forced = |sent: &Value| sent["tool_choice"]["type"] == "tool";
    let is_long = |sent: &Value| sent["messages"][1]["content"][0]["id"] == LONG;
    for stream in [false, true] {
        let body = conversation(
            json!({"stream": stream, "tool_choice": {"type": "tool", "name": "look"}}),
        );
        let is_in =
            |sent: &Value| (sent["stream"] == true) == stream || is_forced(sent) || is_long(sent);
        let refusal = r#"{"error": {"message": "Only the other kind of stream and of tool_choice.",
            "param": "messages[1].content[0].id"}}"#;
        let (exchange, sent) = asked(&config(""), &body, refusal, &is_in);
        assert_eq!(sent.len(), 4);
        let answer = answer(&sent[3]);
        let (got, warnings, _) = answered(exchange, stream, vec![answer.as_bytes()]);
        assert_eq!(got, message());
        for warning in ["stream_refused", "tool_choice_any", "id_style", "dropped:tool_choice"] {
            assert!(warnings.contains(warning), "{warnings}");
        }
    }
}

#[test]
fn an_upstream_that_refuses_everything_keeps_its_words() {
    let body = conversation(json!({"tool_choice": {"type": "any"}, "stream": true}));
    for refusal in [
        "stream, tool_choice and tool_use_id: not supported, too long",
        "This model supports no streaming: it is not supported, nor is tool_choice",
    ] {
        let (mut exchange, sent) = asked(&config(""), &body, refusal, &|_| true);
        assert!((2..=5).contains(&sent.len()), "{}", sent.len());
        let mut out = Vec::new();
        exchange.poll_body(&mut out);
        assert!(exchange.report().status == 400, "{}", exchange.report().status);
    }
}
