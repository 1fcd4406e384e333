//! Refusals in words that no row knows: what they are about is found in the request that was sent.

use super::host::{Got, Host, request};
use super::*;
use support::fold;

const PIXEL: &str = "iVBORw0KGgo=";

/// An upstream of this protocol.
fn of(protocol: &str) -> Arc<Config> {
    drive::config(&format!(r#"{{"upstreams": {{"a": {{"protocol": "{protocol}"}}}}}}"#))
}

/// A request with most of what can be refused, and an image that a tool gave.
fn rich(more: Value) -> Value {
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}});
    let id = "toolu_r_chatcmpl-tool-0123456789abcdef0123456789abcdef";
    let mut body = request(
        "m",
        json!({
            "max_tokens": 4000,
            "tools": [{"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "Look"}, {"type": "text", "text": "here"}]},
                {"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "look", "input": {"path": "a"}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id,
                    "content": [{"type": "text", "text": "A page."}, image]}]},
            ],
        }),
    );
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

/// Asks an upstream that refuses with this body for as long as `is_in` finds in the request what it
/// refuses.
fn refused(config: &Arc<Config>, body: &Value, refusal: &str, is_in: fn(&Value) -> bool) -> Got {
    let refuses = |sent: &Value| is_in(sent).then_some(refusal);
    Host { config: Arc::clone(config), ..Host::new(true, &refuses) }.ask(body, NOW)
}

#[test]
fn what_is_refused_in_unknown_words_is_changed() {
    fn has(sent: &Value, text: &str) -> bool {
        sent.to_string().contains(text)
    }
    fn is_forced(sent: &Value) -> bool {
        sent.get("tool_choice").is_some_and(|choice| choice != "auto")
    }
    fn has_output_list(sent: &Value) -> bool {
        sent["input"].as_array().unwrap().iter().any(|item| item["output"].is_array())
    }
    fn has_long_id(sent: &Value) -> bool {
        sent.pointer("/messages/1/tool_calls/0/id").unwrap().as_str().unwrap().len() > 40
    }
    let images: fn(&Value) -> bool = |sent| has(sent, "image_url");
    let lists: fn(&Value) -> bool = |sent| sent["messages"][0]["content"].is_array();
    let blank: fn(&Value) -> bool = |sent| sent["messages"][1]["reasoning_content"].is_null();
    let tools: fn(&Value) -> bool = |sent| sent.get("tools").is_none() && has(sent, "tool_calls");
    let schema: fn(&Value) -> bool = |sent| sent.get("response_format").is_some();
    let forced = json!({"tool_choice": {"type": "any"}});
    let named = json!({"tool_choice": {"type": "tool", "name": "look"}});
    let titled = json!({"output_config": {"format": {"type": "json_schema", "schema":
        {"type": "object", "properties": {"title": {"type": "string"}}}}}});
    let none = json!({});
    for (protocol, more, is_in, refusal, warning) in [
        (
            "openai",
            &none,
            images,
            "seeing is not available: no vision on this plan of yours",
            "images_refused",
        ),
        (
            "openai",
            &none,
            images,
            r#"{"error": {"message": "Wrong.", "param": "messages.3.content.1.image_url"}}"#,
            "images_refused",
        ),
        (
            "openai",
            &none,
            lists,
            "oneOf at '/' not met, Type mismatch of '/messages/0/content', 'array' not in 'string'",
            "joined_texts",
        ),
        (
            "openai",
            &none,
            lists,
            "json: cannot unmarshal array into Go struct field .content of type string",
            "joined_texts",
        ),
        (
            "openai",
            &none,
            has_long_id,
            r#"{"error": {"message": "No.", "param": "messages[1].tool_calls[0].id"}}"#,
            "id_style",
        ),
        (
            "openai",
            &forced,
            is_forced,
            "Thinking mode does not support this tool_choice",
            "tool_choice_any",
        ),
        (
            "openai",
            &named,
            is_forced,
            r#"[{"error": {"message": "Nope", "param": "tool_choice"}}]"#,
            "tool_choice_any",
        ),
        (
            "openai",
            &none,
            blank,
            "The `reasoning_content` in the thinking mode must be passed back to the API.",
            "reasoning_history",
        ),
        (
            "openai",
            &titled,
            schema,
            "The provided JSON schema has features that xgrammar has not.",
            "response_format_refused",
        ),
        (
            "responses",
            &none,
            has_output_list,
            r#"{"error": {"message": "Invalid type for 'input'.", "param": "input"}}"#,
            "tool_output_parts",
        ),
        (
            "responses",
            &none,
            has_output_list,
            "Output of tool call should be 'Input text'",
            "tool_output_parts",
        ),
    ] {
        let got = refused(&of(protocol), &rich(more.clone()), refusal, is_in);
        let warnings = got.warnings();
        assert!(got.status().0 == 200 && got.asked.len() <= 3, "{refusal}: {}", got.asked.len());
        assert!(warnings.contains(warning), "{refusal}: {warnings}");
        assert!(got.report.retries_by_evidence > 0, "{refusal}");
    }
    let mut without = rich(json!({}));
    without.as_object_mut().unwrap().remove("tools");
    let refusal =
        "UnsupportedParams: it doesn't support tool calling without `tools=` param specified.";
    assert_eq!(refused(&of("openai"), &without, refusal, tools).status().0, 200);
}

#[test]
fn what_loses_nothing_is_tried_before_an_image_is_lost() {
    let got = refused(&of("openai"), &rich(json!({})), "Input should be a valid string", |sent| {
        sent["messages"][0]["content"].is_array()
    });
    assert_eq!((got.status().0, got.asked.len()), (200, 2));
    assert!(got.asked[1].to_string().contains("image_url"));
}

#[test]
fn an_upstream_that_serves_one_kind_of_answers_is_asked_for_that() {
    let whole = json!({"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1}});
    let pieces = [
        json!({"choices": [{"index": 0, "delta": {"role": "assistant", "content": "Hi"}}]}),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
    ];
    let events: String = pieces.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    for (stream, refusal) in [
        (true, r#"{"error": {"message": "Verify first.", "param": "stream"}}"#),
        (true, "Cannot use tools with stream"),
        (true, "This model doesn't support streaming."),
        (false, "Stream must be set to true"),
        (false, "400: expected true at params.stream"),
        (false, "This model only supports streaming"),
    ] {
        let answer = if stream { whole.to_string() } else { format!("{events}data: [DONE]\n\n") };
        let answer = answer.as_bytes();
        let cuts = (0..answer.len()).map(|at| vec![&answer[..at], &answer[at..]]);
        for pieces in cuts.chain([answer.chunks(1).collect()]) {
            let can = HostCan { ask_again: true, ..HostCan::default() };
            let mut exchange = Exchange::new(of("openai"), SEED, can);
            exchange.decide("POST", "/v1/messages", &headers(&[("x-api-key", "k")]));
            let body = request("m", json!({"stream": stream}));
            let first = exchange.request(body.to_string().as_bytes(), NOW).unwrap();
            let asks = |call: &Call| {
                serde_json::from_slice::<Value>(&call.body).unwrap()["stream"] == true
            };
            assert_eq!(asks(&first), stream);
            exchange.handle_call_head(400, &[], NOW);
            let mut out = Vec::new();
            exchange.piece(refusal.as_bytes(), NOW, &mut out);
            exchange.end(End::Complete, NOW, &mut out);
            let second = exchange.poll_call(NOW).unwrap_or_else(|| panic!("{refusal}"));
            assert_eq!(asks(&second), !stream, "{refusal}");
            let got = drive::respond(exchange, 200, &[], pieces, End::Complete);
            let warnings = header(&got.head, "x-creole-warnings").unwrap_or_default();
            assert!(warnings.contains("stream_refused"), "{warnings}");
            let message = if stream {
                fold::fold(&grammar::check_stream(&got.body, Rules::default()).unwrap()).message
            } else {
                serde_json::from_slice(&got.body).unwrap()
            };
            assert_eq!(message["content"], json!([{"type": "text", "text": "Hi"}]), "{message}");
            assert_eq!(message["stop_reason"], "end_turn");
        }
    }
}

#[test]
fn in_strict_mode_only_what_loses_nothing_is_changed() {
    let strict = drive::config(r#"{"strict": true, "upstreams": {"a": {}}}"#);
    let body = rich(json!({"tool_choice": {"type": "any"}}));
    for (refusal, asked) in [
        ("Type mismatch of '/messages/0/content', 'array' not in 'string'", 2..=5),
        ("Thinking mode does not support this tool_choice", 1..=1),
        ("Seeing is not possible: no vision, it is not available.", 1..=1),
    ] {
        let got = refused(&strict, &body, refusal, |_| true);
        assert!(asked.contains(&got.asked.len()), "{refusal}: {}", got.asked.len());
        assert_eq!(got.asked.last().unwrap().to_string().matches("image_url").count(), 2);
    }
}

#[test]
fn an_upstream_that_refuses_everything_is_asked_four_times_more_and_its_words_pass() {
    for refusal in
        ["Input should be a valid string", "no image, no thinking, no tool_choice, not supported"]
    {
        let got = refused(&of("openai"), &rich(json!({})), refusal, |_| true);
        assert!(got.status().0 == 400 && got.asked.len() <= 5, "{}", got.asked.len());
        assert!(String::from_utf8_lossy(&got.body).contains(refusal));
    }
}

#[test]
fn where_each_change_is_refused_the_client_reads_the_first_error() {
    let number = std::cell::Cell::new(0);
    let words = ["temperature", "tool_choice", "user", "stop", "nothing"];
    let refuses = |_: &Value| {
        let at = number.replace(number.get() + 1);
        let message = format!("refusal {at}");
        Some(json!({"error": {"message": message, "param": words[at]}}).to_string())
    };
    let more = json!({"temperature": 0.5, "tool_choice": {"type": "any"}, 
        "metadata": {"user_id": "u"}, "stop_sequences": ["x"]});
    let got = Host { config: of("openai"), ..Host::new(true, &refuses) }.ask(&rich(more), NOW);
    assert_eq!((got.status().0, got.asked.len()), (400, 5), "{:?}", got.asked.last());
    assert_eq!(error_of(&got.body)["message"], "refusal 0");
}

#[test]
fn a_fault_of_the_server_that_names_the_request_each_time_is_not_worth_a_repetition() {
    for (parameter, retry) in [("temperature", Some("false")), ("", None)] {
        let refusal = json!({"error": {"message": "Oops", "param": parameter}}).to_string();
        let refuses = |_: &Value| Some(refusal.clone());
        let host = Host { config: of("openai"), status: 500, ..Host::new(true, &refuses) };
        assert_eq!(host.ask(&rich(json!({})), NOW).status(), (500, retry), "{parameter}");
    }
}

#[test]
fn what_an_error_repeats_of_the_request_is_no_evidence() {
    let echoed = [
        "vision and multimodal things are incompatible here",
        "please show the grammar of the json schema",
        "tool_choice and tool choice are two forced tool words",
        "messages[0].content is a path that leads somewhere",
    ];
    for text in echoed {
        let mut body = rich(json!({"tool_choice": {"type": "any"}}));
        body["messages"][0]["content"][0]["text"] = json!(format!("I say: {text}, or not."));
        for (before, after) in [
            ("Invalid request: ", ""),
            ("Bad input '", "'"),
            ("Cannot parse \"", "\""),
            ("", " (400)"),
        ] {
            let refusal =
                json!({"error": {"message": format!("{before}{text}{after}")}}).to_string();
            let got = refused(&of("openai"), &body, &refusal, |_| true);
            assert_eq!(
                (got.status().0, got.asked.len()),
                (400, 1),
                "{refusal}: {}",
                got.warnings()
            );
        }
    }
    // Words without spaces, or beside signs, are repeated as well.
    for (text, refusal) in [
        ("这个视觉功能怎么不支持旋转", "无法处理输入：这个视觉功能怎么不支持旋转"),
        ("look at my vision", "Cannot parse input: look at my (vision)"),
        ("open vision-viewer now", "Cannot parse: open vision-viewer"),
    ] {
        let mut body = rich(json!({}));
        body["messages"][0]["content"][0]["text"] = json!(text);
        let got = refused(&of("openai"), &body, refusal, |_| true);
        assert_eq!((got.status().0, got.asked.len()), (400, 1), "{refusal}: {}", got.warnings());
    }
    // A tool's own name is none either.
    for name in ["vision", "strict", "grammar", "vision-edit"] {
        let mut body = rich(json!({}));
        body["tools"][0]["name"] = json!(name);
        body["messages"][1]["content"][0]["name"] = json!(name);
        let refusal = format!("The function '{name}' is not supported");
        let got = refused(&of("openai"), &body, &refusal, |_| true);
        assert_eq!((got.status().0, got.asked.len()), (400, 1), "{refusal}: {}", got.warnings());
    }
}

#[test]
fn what_is_vetoed_by_words_or_codes_is_not_asked_again_whatever_it_names() {
    let long =
        format!("vision is not supported {} Your quota is exceeded", "and so on ".repeat(300));
    for (protocol, refusal) in [
        (
            "openai",
            r#"{"error": {"message": "Your request violates our usage policies.", "param": "messages[0].content"}}"#,
        ),
        (
            "openai",
            r#"{"error": {"message": "Refused for safety.", "param": "messages[3].content[1].image_url"}}"#,
        ),
        ("openai", r#"{"error": {"message": "vision not available", "code": "quota_exceeded"}}"#),
        (
            "openai",
            r#"{"error": {"message": "vision not available", "code": "AccessDenied.Unpurchased"}}"#,
        ),
        ("openai", "The user/organization has no such thing."),
        ("openai", "Stopped, see example.com/tool_choice or docs.example.com/stop for details"),
        ("responses", "See help.example.com/store and docs.example.com/api/reasoning"),
        ("openai", "The key is disabled, tool_choice was read and is not supported"),
        ("openai", "SignatureDoesNotMatch: the request signature is invalid"),
        ("openai", &long),
    ] {
        let body = rich(
            json!({"tool_choice": {"type": "any"}, "metadata": {"user_id": "u"}, "stop_sequences": ["x"]}),
        );
        let got = refused(&of(protocol), &body, refusal, |_| true);
        assert_eq!((got.status().0, got.asked.len()), (400, 1), "{refusal}: {}", got.warnings());
    }
}

#[test]
fn what_no_change_mends_is_not_asked_again() {
    let rows = [
        include_str!("../refusals/never-shown.jsonl"),
        include_str!("../refusals/never-sealed.jsonl"),
    ];
    let rows = rows.into_iter().flat_map(str::lines);
    let (mut tried, mut wrong) = (0, Vec::new());
    for row in rows.map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let protocol = match row["protocol"].as_str().unwrap() {
            "chat" => "openai",
            "messages" => "anthropic",
            protocol => protocol,
        };
        let refusal = row["body"].as_str().unwrap();
        let status = row["status"].as_u64().map_or(400, |status| u16::try_from(status).unwrap());
        let refuses = |_: &Value| Some(refusal);
        let host = Host { config: of(protocol), status, ..Host::new(true, &refuses) };
        let got = host.ask(&rich(json!({"tool_choice": {"type": "any"}})), NOW);
        let same = got.asked.iter().all(|sent| {
            let without = |sent: &Value| {
                let mut sent = sent.clone();
                for name in ["max_tokens", "max_output_tokens"] {
                    sent.as_object_mut().unwrap().remove(name);
                }
                sent
            };
            without(sent) == without(&got.asked[0])
        });
        tried += 1;
        if !same {
            wrong.push((row["id"].clone(), got.warnings().to_owned()));
        }
    }
    assert_eq!((tried, wrong), (150, vec![]));
}

#[test]
fn paths_lists_and_quotations_without_end_are_read_in_bounded_time() {
    let deep = "messages.0.".repeat(100_000);
    let many = "messages.-1.content messages.99999999999999999999.content: wrong; ".repeat(5000);
    let list: Vec<_> = (0..10_000).map(|at| json!({"loc": ["body", "messages", at, "content"], "msg": "Input should be a valid string"})).collect();
    let body = rich(json!({"tool_choice": {"type": "any"}}));
    let whole = body.to_string().repeat(50);
    let mut large = body.clone();
    large["messages"][0]["content"][0]["text"] = json!("some words of a user ".repeat(100_000));
    let quotes: String = (0..200).map(|at| format!("only 'vision {at}' ")).collect();
    for refusal in [&*quotes, &*"vision only ".repeat(160), &*".a ".repeat(600)] {
        let began = std::time::Instant::now();
        let got = refused(&of("openai"), &large, refusal, |_| true);
        assert!(got.asked.len() <= 5);
        assert!(began.elapsed().as_secs() < 5, "{:?}", began.elapsed());
    }
    for refusal in [
        json!({"error": {"message": "no", "param": deep}}).to_string(),
        json!({"error": {"message": many}}).to_string(),
        json!({"detail": list}).to_string(),
        json!({"error": {"message": whole}}).to_string(),
    ] {
        let began = std::time::Instant::now();
        let got = refused(&of("openai"), &body, &refusal, |_| true);
        assert!(got.asked.len() <= 5);
        assert!(began.elapsed().as_secs() < 5, "{:?}", began.elapsed());
    }
}
