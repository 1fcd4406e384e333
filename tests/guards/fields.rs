//! Upstreams that refuse how much is asked for.

use super::*;

/// Sends one request for so many tokens, in strict mode too, to a model that gives `most`.
fn limited(wanted: u64, most: u64, refusal: &str, retries: bool) -> [Turn; 2] {
    [false, true].map(|strict| {
        let mut body = request(&[user("q")], &[]);
        body["max_tokens"] = json!(wanted);
        let upstream = |body: &Value| match body["max_tokens"].as_u64() > Some(most) {
            true => (400, json!({"error": {"message": refusal}})),
            false => (200, says("fine")),
        };
        let config = drive::config(&json!({"strict": strict}).to_string());
        ask(&config, &body, &upstream, retries)
    })
}

const GROQ: &str = "`max_completion_tokens` must be less than or equal to `65536`, the maximum value for `max_completion_tokens` is less than the `context_window` for this model";

#[test]
fn a_model_that_gives_fewer_tokens_is_asked_once_more_for_as_many_as_it_gives() {
    for (most, refusal) in [
        (65_536, GROQ),
        (8_192, "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]"),
        (
            8_192,
            "max_tokens: 128000 > 8192, which is the maximum allowed number of output tokens for m",
        ),
    ] {
        for turn in limited(128_000, most, refusal, true) {
            assert_eq!((turn.head.status, turn.asked), (200, 2), "{refusal}");
            assert_eq!(turn.sent["max_tokens"], most);
            assert_eq!(turn.header("x-creole-warnings"), "max_tokens_refused");
        }
    }
}

#[test]
fn an_account_is_asked_for_as_much_as_it_can_afford() {
    let refusal = |most| {
        format!(
            "This request requires more credits, or fewer max_tokens. You requested up to 32000 tokens, but can only afford {most}. To increase, visit x"
        )
    };
    for (most, asked) in [(9200, 2), (120, 1)] {
        let mut body = request(&[user("q")], &[]);
        body["max_tokens"] = json!(32_000);
        let upstream = |body: &Value| match body["max_tokens"].as_u64() > Some(most) {
            true => (402, json!({"error": {"message": refusal(most), "code": 402}})),
            false => (200, says("fine")),
        };
        let turn = ask(&drive::config("{}"), &body, &upstream, true);
        let status = if asked == 2 { 200 } else { 402 };
        assert_eq!((turn.head.status, turn.asked), (status, asked));
    }
}

#[test]
fn a_limit_that_helps_nobody_is_told_as_it_is() {
    for (wanted, refusal, retries) in [
        (128_000, GROQ, false),
        // So few no model gives.
        (128_000, "max_tokens must be less than or equal to 2", true),
        (128_000, "temperature must be less than or equal to 2", true),
        (65_536, GROQ, true),
        (
            2_000,
            "max_tokens: 128000 > 8192, which is the maximum allowed number of output tokens for m",
            true,
        ),
    ] {
        for turn in limited(wanted, 1024, refusal, retries) {
            assert_eq!((turn.head.status, turn.asked), (400, 1), "{refusal}");
        }
    }
    // Nor is a second one.
    for turn in limited(128_000, 1024, GROQ, true) {
        assert_eq!((turn.head.status, turn.asked), (400, 2));
    }
}

/// Clients send these with each request.
fn settings(profile: &Value) -> Arc<Config> {
    drive::config(
        &json!({"upstreams": {"u": {"url": "http://u", "profile_overrides": profile}}}).to_string(),
    )
}

fn full_request() -> Value {
    let mut body = request(&[user("q")], &[tool("look", &[])]);
    body["temperature"] = json!(0.2);
    body["top_k"] = json!(40);
    body["stop_sequences"] = json!(["END"]);
    body["thinking"] = json!({"type": "enabled", "budget_tokens": 1024});
    body["output_config"] = json!({"effort": "max"});
    body["tool_choice"] = json!({"type": "auto", "disable_parallel_tool_use": true});
    body["metadata"] = json!({"user_id": "u_session_s1"});
    body["service_tier"] = json!("standard_only");
    body
}

/// Refuses each member for its reason, the first one first.
fn refusing(refusals: &[(&'static str, &'static str)]) -> impl Fn(&Value) -> (u16, Value) {
    move |body| {
        let refused = refusals.iter().find(|(name, _)| body.get(*name).is_some());
        match refused {
            Some((_, message)) => (400, json!({"error": {"message": message}})),
            None => (200, says("fine")),
        }
    }
}

#[test]
fn a_parameter_that_a_model_does_not_take_is_left_out() {
    let profile = json!({"top_k": true, "reasoning_effort_values": ["none", "low", "high"],
        "thinking_switch": "chat_template_kwargs", "service_tier": true, "prompt_cache_key": true,
        "thinking_budget": "thinking_token_budget"});
    for (name, message, warnings) in [
        (
            "temperature",
            "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.",
            "dropped:temperature,parameter_refused:sampling",
        ),
        ("top_k", "top_k: Extra inputs are not permitted", "dropped:top_k,parameter_refused:top_k"),
        (
            "stop",
            "Unsupported parameter: 'stop' is not supported with this model.",
            "parameter_refused:stop",
        ),
        (
            "reasoning_effort",
            "Unrecognized request argument supplied: reasoning_effort",
            "dropped:output_config.effort,parameter_refused:reasoning_effort_values",
        ),
        (
            "chat_template_kwargs",
            "Unrecognized request argument supplied: chat_template_kwargs",
            "dropped:thinking,parameter_refused:thinking_switch",
        ),
        (
            "thinking_token_budget",
            "thinking_token_budget: Extra inputs are not permitted",
            "dropped:thinking.budget_tokens,parameter_refused:thinking_budget",
        ),
        (
            "parallel_tool_calls",
            "Unsupported parameter: 'parallel_tool_calls' is not supported with this model.",
            "parameter_refused:parallel_tool_calls",
        ),
        (
            "prompt_cache_key",
            "Unknown name \"prompt_cache_key\": Cannot find field.",
            "parameter_refused:prompt_cache_key",
        ),
        (
            "service_tier",
            "property 'service_tier' is unsupported",
            "parameter_refused:service_tier",
        ),
        (
            "user",
            "body.user: Extra inputs are not permitted, field: 'user'",
            "parameter_refused:user_id",
        ),
    ] {
        let refusal = [(name, message)];
        let (config, body) = (settings(&profile), full_request());
        let turn = ask(&config, &body, &refusing(&refusal), true);
        assert_eq!((turn.head.status, turn.asked), (200, 2), "{message}: {}", turn.body);
        assert_eq!(turn.header("x-creole-warnings"), warnings);
        let turn = ask(&config, &body, &refusing(&refusal), false);
        assert_eq!((turn.head.status, turn.asked), (400, 1));
    }
}

#[test]
fn the_limit_of_the_answer_has_two_names() {
    for (profile, refused, other) in [
        (json!({}), "max_tokens", "max_completion_tokens"),
        (
            json!({"max_tokens_field": "max_completion_tokens"}),
            "max_completion_tokens",
            "max_tokens",
        ),
    ] {
        let message =
            format!("Unsupported parameter: '{refused}' is not supported. Use '{other}' instead.");
        let upstream = |body: &Value| match body.get(refused) {
            Some(_) => (400, json!({"error": {"message": message}})),
            None => (200, says("fine")),
        };
        let turn = ask(&settings(&profile), &full_request(), &upstream, true);
        assert_eq!((turn.head.status, turn.asked), (200, 2));
        assert_eq!(turn.sent[other], full_request()["max_tokens"]);
    }
}

#[test]
fn an_effort_that_is_refused_becomes_one_that_is_listed() {
    let profile = json!({"reasoning_effort_values": ["none", "low", "high", "max"],
        "thinking_switch": "effort_none"});
    let message = "Unsupported value: 'reasoning_effort' does not support this value with this model. Supported values are: 'minimal', 'low', and 'medium'.";
    let upstream = |body: &Value| match body["reasoning_effort"].as_str() {
        None | Some("minimal" | "low" | "medium") => (200, says("fine")),
        Some(_) => (400, json!({"error": {"message": message}})),
    };
    let mut off = full_request();
    off["thinking"] = json!({"type": "disabled"});
    for (body, effort) in [(full_request(), json!("medium")), (off, Value::Null)] {
        let turn = ask(&settings(&profile), &body, &upstream, true);
        assert_eq!((turn.head.status, turn.asked), (200, 2));
        assert_eq!(turn.sent["reasoning_effort"], effort);
        let warnings = turn.header("x-creole-warnings");
        assert!(warnings.contains("parameter_refused:reasoning_effort_values"), "{warnings}");
    }
}

#[test]
fn what_is_refused_one_after_the_other_is_left_out_one_after_the_other() {
    // OpenAI's reasoning models, with a profile for another server.
    let refusals = [
        (
            "max_tokens",
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        ),
        ("temperature", "Unsupported value: 'temperature' does not support 0.2 with this model."),
        ("stop", "Unsupported parameter: 'stop' is not supported with this model."),
        (
            "parallel_tool_calls",
            "Unsupported parameter: 'parallel_tool_calls' is not supported with this model.",
        ),
        ("user", "Unknown parameter: 'user'."),
    ];
    let config = settings(&json!({}));
    let turn = ask(&config, &full_request(), &refusing(&refusals[..4]), true);
    assert_eq!((turn.head.status, turn.asked), (200, 5));
    let warnings = turn.header("x-creole-warnings");
    for name in ["max_tokens_field", "sampling", "stop", "parallel_tool_calls"] {
        assert!(warnings.contains(&format!("parameter_refused:{name}")), "{warnings}");
    }
    // There is an end to that, and none where the same is refused again.
    let turn = ask(&config, &full_request(), &refusing(&refusals), true);
    assert_eq!((turn.head.status, turn.asked, turn.message()), (400, 5, refusals[4].1));
    let always = |_: &Value| (400, json!({"error": {"message": refusals[2].1}}));
    let turn = ask(&config, &full_request(), &always, true);
    assert_eq!((turn.head.status, turn.asked), (400, 2));
}

#[test]
fn what_was_not_sent_is_not_left_out() {
    let body = request(&[user("q")], &[]);
    for message in [
        "Unsupported value: 'temperature' does not support 0.2 with this model.",
        "Unsupported parameter: 'stop' is not supported with this model.",
        "Unknown parameter: 'user'.",
    ] {
        let upstream = |_: &Value| (400, json!({"error": {"message": message}}));
        let turn = ask(&settings(&json!({})), &body, &upstream, true);
        assert_eq!((turn.head.status, turn.asked, turn.message()), (400, 1, message));
        assert_eq!(turn.header("x-creole-warnings"), "");
    }
}

#[test]
fn a_parameter_that_is_named_beside_the_message_is_left_out() {
    let error = json!({"message": "Unsupported value: this is not supported with this model.",
        "param": "temperature", "type": "invalid_request_error", "code": "unsupported_value"});
    let upstream = |body: &Value| match body.get("temperature") {
        Some(_) => (400, json!({"error": error})),
        None => (200, says("fine")),
    };
    let turn = ask(&settings(&json!({})), &full_request(), &upstream, true);
    assert_eq!((turn.head.status, turn.asked), (200, 2));
}

#[test]
fn tools_that_are_taken_without_effort_only_are_sent_so() {
    let message = "Function tools with reasoning_effort are not supported for gpt-5.6 in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.";
    let upstream = |body: &Value| match body["reasoning_effort"].as_str() {
        Some("none") => (200, says("fine")),
        _ => (400, json!({"error": {"message": message}})),
    };
    let config =
        drive::config(r#"{"upstreams": {"u": {"url": "http://u", "profile": "openai-chat"}}}"#);
    for body in [full_request(), request(&[user("q")], &[tool("look", &[])])] {
        let turn = ask(&config, &body, &upstream, true);
        assert_eq!((turn.head.status, turn.asked), (200, 2));
    }
}

#[test]
fn in_strict_mode_nothing_is_left_out() {
    let config = drive::config(
        &json!({"strict": true, "upstreams": {"u": {"url": "http://u",
            "profile_overrides": {"top_k": true}}}})
        .to_string(),
    );
    let mut body = request(&[user("q")], &[]);
    body["top_k"] = json!(40);
    let refusal = [("top_k", "Unknown parameter: 'top_k'.")];
    let turn = ask(&config, &body, &refusing(&refusal), true);
    assert_eq!((turn.head.status, turn.asked, turn.message()), (400, 1, refusal[0].1));
}

#[test]
fn a_pdf_that_stays_in_the_conversation_does_not_end_it() {
    let pdf = || {
        json!({"type": "document", "source":
            {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}})
    };
    let of_tool = vec![
        user("Read it"),
        call("toolu_1", "look", json!({})),
        answered(json!({"type": "tool_result", "tool_use_id": "toolu_1", "content": [pdf()]})),
    ];
    let just_given = vec![user(json!([{"type": "text", "text": "Read it"}, pdf()]))];
    let upstream = |body: &Value| match body.to_string().contains("JVBER") {
        true => (400, json!({"error": {"message": "This model does not support PDF files."}})),
        false => (200, says("fine")),
    };
    for (messages, status, asked) in [(of_tool, 200, 2), (just_given, 400, 1)] {
        let body = request(&messages, &[tool("look", &[])]);
        let turn = ask(&settings(&json!({"file_parts": true})), &body, &upstream, true);
        assert_eq!((turn.head.status, turn.asked), (status, asked));
        let warnings = turn.header("x-creole-warnings");
        assert_eq!(warnings.contains("documents_refused"), status == 200, "{warnings}");
    }
}
