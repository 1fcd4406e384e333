//! Fields of the body that are not the conversation.

use creole::error::ErrorKind;

use super::*;

#[test]
fn the_plain_case_is_plain() {
    let body = sent(json!({"system": "S", "stream": true}));
    assert_eq!(
        body,
        json!({
            "model": "m",
            "messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "q"}],
            "max_tokens": 64,
            "stream": true,
            "stream_options": {"include_usage": true},
        })
    );
    let mistral = sent_to("mistral", json!({}), json!({"stream": true}));
    assert_eq!(mistral.get("stream_options"), None);
}

#[test]
fn a_model_that_is_not_in_the_map_is_not_found() {
    let config = Config::from_json(r#"{"models": {"claude-*": {"model": "gpt"}}}"#, |_| None);
    let config = config.unwrap();
    let error = try_with(&config, &whole(json!({"model": "other"}))).0.unwrap_err();
    assert_eq!((error.kind, error.status), (ErrorKind::NotFound, 404));
    assert_eq!(error.message, "model: other (this gateway's \"models\" have no entry for it)");
    let (body, asked) = try_with(&config, &whole(json!({"model": "claude-x"}))).0.unwrap();
    assert_eq!((&body["model"], asked.model.as_str()), (&json!("gpt"), "claude-x"));
}

#[test]
fn the_output_limit_has_the_upstreams_name_and_maximum() {
    let limited = sent_to("openai-chat", json!({"max_tokens_max": 50}), json!({}));
    assert_eq!(limited["max_completion_tokens"], 50);
    assert_eq!(limited.get("max_tokens"), None);
}

#[test]
fn no_output_is_answered_at_once() {
    let (answer, asked) =
        try_with(&Config::default(), &whole(json!({"max_tokens": 0, "stream": true}))).0.unwrap();
    assert_eq!(answer, json!({"answer": "", "stop_reason": "max_tokens"}));
    assert!(asked.stream && asked.model == "m");
    assert_eq!(asked.input_tokens, 0);
}

#[test]
fn of_equal_names_the_last_one_counts() {
    let body = r#"{"model":"m","max_tokens":1,"stop_sequences":["a"],"tools":[{"name":"t","input_schema":{"type":"object"}}],
        "mcp_servers":[{"type":"url"}],"messages":[{"role":"user","content":"q"}],
        "stop_sequences":["b"],"tools":[{"name":"t","input_schema":{"type":"object"}}],"mcp_servers":[]}"#;
    let (sent, _) = try_with(&Config::default(), body).0.unwrap();
    assert_eq!(sent["stop"], json!(["b"]));
    assert_eq!(sent["tools"].as_array().unwrap().len(), 1);
}

#[test]
fn a_last_message_without_a_word_is_refused_and_not_left_out() {
    for nothing in [json!(""), json!([]), json!([text("")])] {
        let messages = json!({"messages": [user("a"), assistant("b"), user(nothing)]});
        assert!(refused(messages).contains("text content blocks must be non-empty"));
    }
    let prefill = json!({"messages": [user("a"), assistant("b")]});
    assert_eq!(warned(prefill), "prefill");
}

#[test]
fn a_system_message_is_nothing_to_answer_to() {
    let system = |words: &str| json!({"role": "system", "content": words});
    let refusal = "messages: text content blocks must be non-empty";
    for profile in ["openai-chat", "deepseek"] {
        let config = config(profile, json!({}), json!({}));
        let up = |messages: Value| try_with(&config, &whole(json!({"messages": messages}))).0;
        for nothing in [json!(""), json!([]), json!([text("")])] {
            for messages in [
                json!([user(nothing.clone()), system("S")]),
                json!([user("a"), assistant("b"), user(nothing), system("")]),
            ] {
                assert_eq!(up(messages).unwrap_err().message, refusal);
            }
        }
        let prefill = up(json!([user("a"), assistant("b"), system("")])).unwrap().0;
        assert_eq!(prefill["messages"].as_array().unwrap().len(), 2);
        let asked = up(json!([user("a"), system("S")])).unwrap().0;
        assert_eq!(asked["messages"], json!([user("a"), system("S")]));
    }
}

#[test]
fn a_conversation_needs_a_user() {
    let system = json!([{"role": "system", "content": "sys"}]);
    assert_eq!(
        refused(json!({"messages": system})),
        "messages: first message must use the \"user\" role"
    );
}

#[test]
fn a_thread_is_refused_with_the_code_that_sdks_act_on() {
    let request = whole(json!({"thread": {"type": "create"}}));
    let error = try_with(&Config::default(), &request).0.unwrap_err();
    assert_eq!((error.status, error.code.as_deref()), (400, Some("thread_unsupported_request")));
}

#[test]
fn promises_that_cannot_be_kept_are_refused() {
    for (field, value) in [
        ("compaction", json!({"type": "summarize"})),
        ("container", json!("c")),
        ("container", json!({"id": "c"})),
        ("mcp_servers", json!([{"type": "url", "name": "n", "url": "https://u"}])),
        ("inference_geo", json!("eu")),
    ] {
        let message = refused(json!({field: value}));
        assert_eq!(message, format!("{field}: this is not supported by this gateway"));
    }
    let policy = json!({"billing_policy": {"type": "billing_policy", "bill_to": "user_profile"}});
    assert!(refused(policy).starts_with("billing_policy.bill_to: "));
}

#[test]
fn what_has_no_counterpart_is_dropped_with_a_warning_or_without() {
    for (field, value, warning) in [
        ("fallbacks", json!("default"), "dropped:fallbacks"),
        ("fallbacks", json!([{"model": "m"}]), "dropped:fallbacks"),
        ("fallbacks", json!([]), ""),
        ("fallback_credit_token", json!("t"), "dropped:fallback_credit_token"),
        ("speed", json!("fast"), "dropped:speed"),
        ("speed", json!("standard"), ""),
        ("top_k", json!(4), "dropped:top_k"),
        (
            "output_config",
            json!({"task_budget": {"type": "tokens", "total": 5}}),
            "dropped:output_config.task_budget",
        ),
        ("context_management", json!({"edits": [{"type": "clear_tool_uses_20250919"}]}), ""),
        (
            "context_management",
            json!({"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}),
            "",
        ),
        (
            "context_management",
            json!({"edits": [{"type": "clear_thinking_20251015", "keep": {"type": "thinking_turns", "value": 2}}]}),
            "",
        ),
        (
            "context_management",
            json!({"edits": [{"type": "clear_all_20991231"}]}),
            "dropped:context_management",
        ),
        ("context_management", json!({}), ""),
        ("context_management", json!({"edits": null}), ""),
        ("diagnostics", json!({"previous_message_id": "msg_1"}), ""),
        ("cache_control", json!({"type": "ephemeral", "ttl": "1h"}), ""),
        ("cache_control", json!({"type": "ephemeral", "scope": "global"}), ""),
        ("billing_policy", json!({"type": "billing_policy", "bill_to": "self"}), ""),
        ("service_tier", json!("auto"), ""),
        ("service_tier", json!("standard_only"), ""),
        ("inference_geo", json!(null), ""),
        ("inference_geo", json!("global"), ""),
        ("thinking", json!({"block_binding": {"prefix_mismatch_behavior": "drop_block"}}), ""),
        ("container", json!(null), ""),
        ("mcp_servers", json!([]), ""),
        ("thread", json!(null), ""),
        ("betas", json!(["b"]), ""),
        ("safeguards", json!([{"type": "auto_mode"}]), "dropped:safeguards"),
        ("novel_field", json!([1]), "unknown_field:novel_field"),
    ] {
        assert_eq!(warned(json!({field: value})), warning, "{field}");
        let body = sent(json!({field: value}));
        assert_eq!(body, sent(json!({})), "{field}");
    }
}

#[test]
fn strict_mode_refuses_what_would_be_dropped() {
    let source = json!({"type": "base64", "media_type": "image/png", "data": "AA=="});
    let image = json!({"type": "image", "source": source});
    let shown = json!([user("q"), assistant(json!([text("a"), image])), user("r")]);
    assert_eq!(warned(json!({"messages": shown})), "dropped:assistant_image");
    for (request, message) in [
        (
            json!({"messages": shown}),
            "messages[1].content[1]: image is not supported by this gateway",
        ),
        (json!({"novel": 1}), "novel: Extra inputs are not permitted"),
        (json!({"fallbacks": "default"}), "fallbacks: this is not supported by this gateway"),
        (json!({"top_k": 4}), "top_k: this is not supported by this gateway"),
    ] {
        assert_eq!(refused_strictly(request), message);
    }
    // Claude Code's own, which it can do without.
    let strict = config("default", json!({}), json!({"strict": true}));
    let (result, warnings) = try_with(&strict, &whole(json!({"safeguards": []})));
    assert_eq!((result.is_ok(), warnings.as_str()), (true, "dropped:safeguards"));
}

#[test]
fn tiers_and_speed_go_to_upstreams_that_have_them() {
    let openai = |request| sent_to("openai-chat", json!({}), request)["service_tier"].take();
    assert_eq!(openai(json!({"service_tier": "standard_only"})), "default");
    assert_eq!(openai(json!({"speed": "fast", "service_tier": "standard_only"})), "fast");
    assert_eq!(openai(json!({"service_tier": "auto", "speed": "standard"})), Value::Null);
}

#[test]
fn user_ids_are_hashed_and_sessions_are_cache_keys() {
    let id = r#"{"device_id":"d","account_uuid":"secret","session_id":"s-1"}"#;
    let request = json!({"metadata": {"user_id": id}});
    let openai = sent_to("openai-chat", json!({}), request.clone());
    let hash = openai["safety_identifier"].as_str().unwrap();
    assert_eq!(hash.len(), 64);
    assert!(hash.bytes().all(|byte| byte.is_ascii_hexdigit()));
    assert_eq!(openai["prompt_cache_key"], "s-1");
    assert!(!openai.to_string().contains("secret"));
    // As Claude Code wrote it until 2025.
    let older = json!({"metadata": {"user_id": "user_5e1f_account_secret_session_s-2"}});
    assert_eq!(sent_to("openai-chat", json!({}), older)["prompt_cache_key"], "s-2");
    let nested = json!({"metadata": {"user_id": r#"{"session_id":"s","parent_session_id":"p"}"#}});
    assert_eq!(sent_to("openai-chat", json!({}), nested)["prompt_cache_key"], "s");
    let other = sent(request.clone());
    assert_eq!((&other["user"], other.get("prompt_cache_key")), (&json!(hash), None));
    let dropped = sent_to("default", json!({"user_id": "drop"}), request);
    assert_eq!(dropped, sent(json!({})));
    // A plain user id names a person, not a conversation.
    let plain = sent_to("openai-chat", json!({}), json!({"metadata": {"user_id": "u"}}));
    assert_eq!(plain.get("prompt_cache_key"), None);
    // The header wins, and a long one is hashed.
    let config = config("openai-chat", json!({}), json!({}));
    let header = [("x-claude-code-session-id".to_owned(), "x".repeat(65))];
    let mut warnings = Warnings::new(false);
    let body = whole(json!({"metadata": {"user_id": id}}));
    let Ok(Translated::Send { body, .. }) =
        translate::request(&body, &config, &header, &mut warnings)
    else {
        panic!()
    };
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body["prompt_cache_key"].as_str().unwrap().len(), 64);
}

#[test]
fn every_header_that_tells_the_session_gives_the_cache_key() {
    let key = |headers: &[(&str, &str)], request: Value| {
        let headers: Vec<_> =
            headers.iter().map(|(name, id)| ((*name).into(), (*id).into())).collect();
        let config = config("openai-chat", json!({}), json!({}));
        let mut warnings = Warnings::new(false);
        let Ok(Translated::Send { body, .. }) =
            translate::request(&whole(request), &config, &headers, &mut warnings)
        else {
            panic!()
        };
        serde_json::from_slice::<Value>(&body).unwrap()["prompt_cache_key"].take()
    };
    for name in ["x-claude-code-session-id", "x-session-affinity", "x-session-id", "session-id"] {
        assert_eq!(key(&[(name, "s-1")], json!({})), "s-1", "{name}");
        let user_id = json!({"metadata": {"user_id": "user_1_session_s-2"}});
        assert_eq!(key(&[(name, "s-1")], user_id.clone()), "s-1", "{name}");
        assert_eq!(key(&[(name, " ")], user_id), "s-2", "{name}");
    }
    let both = [("session-id", "codex"), ("x-claude-code-session-id", "claude")];
    assert_eq!(key(&both, json!({})), "claude");
    // A sub-agent has another prompt than its session.
    let agent = [("x-session-id", "s-1"), ("x-claude-code-agent-id", "a")];
    assert_ne!(key(&agent, json!({})), "s-1");
    assert_eq!(key(&[("x-thread-id", "s-1")], json!({})), Value::Null);
}

#[test]
fn numbers_keep_their_digits() {
    let body = r#"{"model":"m","max_tokens":1,"temperature":1.0,"top_p":1E-1,"messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"w","input":{ "a": 1.10, "b": 123456789012345678901234567890, "a": "\u00e9\/" }}]}]}"#;
    let mut warnings = Warnings::new(false);
    let sent = translate::request(body, &Config::default(), &[], &mut warnings).unwrap();
    let Translated::Send { body, .. } = sent else { panic!() };
    let body = String::from_utf8(body).unwrap();
    assert!(body.contains(r#""temperature":1.0,"top_p":1E-1"#), "{body}");
    let arguments =
        r#""arguments":"{\"a\":1.10,\"b\":123456789012345678901234567890,\"a\":\"\\u00e9\\/\"}""#;
    assert!(body.contains(arguments), "{body}");
}

#[test]
fn sampling_is_left_out_where_the_model_has_none() {
    let request = json!({"temperature": 0.7, "top_p": 0.9, "top_k": 40});
    let vllm = sent_to("vllm", json!({}), request.clone());
    assert_eq!((&vllm["temperature"], &vllm["top_k"]), (&json!(0.7), &json!(40)));
    let none = sent_to("openai-chat", json!({"sampling": false}), request);
    for key in ["temperature", "top_p", "top_k"] {
        assert_eq!(none.get(key), None);
    }
}

#[test]
fn top_p_says_nothing_where_the_likeliest_token_is_always_taken() {
    let sent = |temperature: &str, strict: bool| {
        let body = format!(
            r#"{{"model":"m","max_tokens":1,"temperature":{temperature},"top_p":0.95,"messages":[{{"role":"user","content":"q"}}]}}"#
        );
        let (sent, warnings) =
            try_with(&config("mistral", json!({}), json!({"strict": strict})), &body);
        assert_eq!(warnings, "");
        let sent = sent.unwrap().0;
        assert!(sent.get("temperature").is_some());
        sent.get("top_p").is_some()
    };
    for strict in [false, true] {
        for zero in ["0", "0.0", "-0", "0e5", "0.00E-1"] {
            assert!(!sent(zero, strict), "{zero}");
        }
        for other in ["1", "0.01", "1e-9", "1.0", "0.5E0"] {
            assert!(sent(other, strict), "{other}");
        }
    }
    // It is left out with the temperature, and that is said.
    let none = config("default", json!({"sampling": false}), json!({}));
    let warnings = try_with(&none, &whole(json!({"temperature": 0, "top_p": 0.9}))).1;
    assert_eq!(warnings, "dropped:temperature,dropped:top_p");
}

#[test]
fn a_negative_top_k_or_top_p_is_not_set() {
    // LangChain.js and n8n.
    let request = json!({"top_k": -1, "top_p": -1, "temperature": 0.7});
    for profile in ["default", "vllm"] {
        let config = config(profile, json!({}), json!({}));
        let (sent, warnings) = try_with(&config, &whole(request.clone()));
        let sent = sent.unwrap().0;
        assert_eq!((sent.get("top_k"), sent.get("top_p")), (None, None));
        assert_eq!((&sent["temperature"], warnings.as_str()), (&json!(0.7), ""));
    }
    // Of equal names the last one counts.
    let body = r#"{"model":"m","max_tokens":1,"top_p":0.5,"messages":[{"role":"user","content":"q"}],"top_p":-1.0}"#;
    assert_eq!(try_with(&Config::default(), body).0.unwrap().0.get("top_p"), None);
    let counted = json!({"model": "m", "messages": [user("x")], "top_k": -1}).to_string();
    assert!(translate::count_tokens(&counted, &Config::default()).is_ok());
    let refusal = "top_k: Input should be greater than or equal to 0";
    assert_eq!(refused_strictly(request), refusal);
    assert!(refused(json!({"top_p": "-1"})).starts_with("top_p: "));
}

#[test]
fn stop_sequences_beyond_the_limit_are_cut_here() {
    let request = json!({"stop_sequences": ["a!", "b!", "c!", "\n!", "e!"]});
    let config = config("openai-chat", json!({}), json!({}));
    let (body, asked) = try_with(&config, &whole(request)).0.unwrap();
    assert_eq!(body["stop"], json!(["a!", "b!", "c!", "\n!"]));
    assert_eq!(asked.limits.stop_sequences.len(), 5);
    assert_eq!(sent(json!({"stop_sequences": []})).get("stop"), None);
    assert!(refused(json!({"stop_sequences": ["x", " \n"]})).starts_with("stop_sequences[1]: "));
    let stops = |count: usize| json!({"stop_sequences": vec!["x"; count]});
    assert!(refused(stops(257)).starts_with("stop_sequences: at most 256 "));
    assert_eq!(sent(stops(256))["stop"].as_array().map(Vec::len), Some(256));
}

#[test]
fn no_stop_sequence_goes_where_the_model_refuses_them() {
    let request = json!({"stop_sequences": ["</block>"]});
    let config = config("openai-chat", json!({"stop": false}), json!({}));
    let ((body, asked), warnings) = {
        let (sent, warnings) = try_with(&config, &whole(request));
        (sent.unwrap(), warnings)
    };
    assert_eq!((body.get("stop"), warnings.as_str()), (None, ""));
    assert_eq!(asked.limits.stop_sequences, ["</block>"]);
}

#[test]
fn tokens_are_counted_without_an_upstream() {
    let body = json!({"model": "m", "messages": [user("one two three four")]}).to_string();
    let counted = translate::count_tokens(&body, &Config::default()).unwrap();
    assert_eq!((counted.input, counted.original), (4 + 4, None));
    let off = config("default", json!({}), json!({"count_tokens": "off"}));
    assert_eq!(translate::count_tokens(&body, &off).unwrap_err().status, 404);
    let thread = json!({"model": "m", "messages": [user("x")], "thread": {"type": "create"}});
    assert!(translate::count_tokens(&thread.to_string(), &Config::default()).is_err());
}

#[test]
fn strict_mode_knows_what_the_newest_version_has_no_longer() {
    let strict = config("default", json!({}), json!({"strict": true}));
    let refusal = |version: &str, request: Value| {
        let headers = [("anthropic-version".to_owned(), version.to_owned())];
        let mut warnings = Warnings::new(true);
        let result = translate::request(&whole(request), &strict, &headers, &mut warnings);
        result.err().map(|error| error.message.clone())
    };
    let warm = json!({"temperature": 0.5});
    let expected = "temperature: Extra inputs are not permitted";
    assert_eq!(refusal("2026-10-21", warm.clone()).as_deref(), Some(expected));
    assert_eq!(refusal("2023-06-01", warm), None);
    let cited = json!({"type": "text", "text": "a", "citations": [{"type": "char_location"}]});
    let expected = "messages.0.content.0.citations: Extra inputs are not permitted";
    let found = json!({
        "type": "search_result", "source": "s", "title": "t", "content": [text("a"), cited]
    });
    let cited = json!({"messages": [user([cited])]});
    assert_eq!(refusal("2026-10-21", cited).as_deref(), Some(expected));
    let expected = "messages.0.content.0.content.1.citations: Extra inputs are not permitted";
    let found = json!({"messages": [user([found])]});
    assert_eq!(refusal("2026-10-21", found.clone()).as_deref(), Some(expected));
    assert_eq!(refusal("2023-06-01", found), None);
}
