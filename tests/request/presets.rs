//! The presets: what the servers were seen to refuse is not sent to them (decision 0008).

use super::*;
use creole::profile::presets::PRESETS;
use std::collections::BTreeSet;

fn weather(mut request: Value) -> Value {
    let tool = |name: &str| json!({"name": name, "input_schema": {"type": "object"}});
    request["tools"] = json!([tool("w"), tool("x")]);
    request
}

#[test]
fn mistral_gets_no_user_id() {
    let request = json!({"metadata": {"user_id": "u"}});
    assert!(sent_to("mistral", json!({}), request.clone()).get("user").is_none());
    assert!(sent_to("vllm", json!({}), request)["user"].is_string());
}

#[test]
fn ollama_gets_an_effort_only_where_the_configuration_names_the_words() {
    let request = json!({"output_config": {"effort": "xhigh"}, "thinking": {"type": "adaptive"}});
    let effort = |overrides, request: &Value| {
        let mut body = sent_to("ollama", overrides, request.clone());
        body["reasoning_effort"].take()
    };
    assert_eq!(effort(json!({}), &request), json!(null));
    let words = json!({"reasoning_effort_values": ["low", "medium", "high"]});
    assert_eq!(effort(words, &request), "high");
    let off = json!({"output_config": {"effort": "high"}, "thinking": {"type": "disabled"}});
    assert_eq!(effort(json!({}), &off), "none");
}

#[test]
fn an_effort_becomes_none_only_where_there_is_no_other_word() {
    let with = |values: Value, request: Value| {
        let overrides = json!({"reasoning_effort_values": values});
        sent_to("openai-chat", overrides, request)["reasoning_effort"].take()
    };
    let effort = |values: Value| with(values, json!({"output_config": {"effort": "low"}}));
    assert_eq!(effort(json!(["none"])), "none");
    assert_eq!(effort(json!(["none", "high"])), "high");
    assert_eq!(effort(json!([])), json!(null));
    // Said even where no effort is asked for.
    assert_eq!(with(json!(["none"]), json!({})), "none");
    assert_eq!(with(json!(["none", "high"]), json!({})), json!(null));
}

#[test]
fn deepseek_is_asked_for_json_in_words_and_gets_no_image() {
    let schema = json!({"type": "object", "properties": {}});
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}});
    let body = sent_to(
        "deepseek",
        json!({}),
        json!({
            "messages": [user(json!([text("q"), image]))],
            "output_config": {"format": {"type": "json_schema", "schema": schema}},
        }),
    );
    assert_eq!(body["response_format"], json!({"type": "json_object"}));
    assert!(body["messages"][0]["content"].as_str().unwrap().contains(&schema.to_string()));
    assert!(!body.to_string().contains("image_url"), "{body}");
}

#[test]
fn a_forced_tool_switches_thinking_off_where_the_server_thinks_by_default() {
    let thinking = |choice: Value, overrides: Value, profile: &str| {
        let body = sent_to(
            profile,
            overrides,
            weather(json!({
                "tool_choice": choice,
                "thinking": {"type": "adaptive"},
                "output_config": {"effort": "high"},
            })),
        );
        json!([body["thinking"]["type"], body["reasoning_effort"]])
    };
    let any = json!({"type": "any"});
    let one = json!({"type": "tool", "name": "w"});
    let none = json!({});
    let auto = json!({"type": "auto"});
    assert_eq!(thinking(any.clone(), none.clone(), "deepseek"), json!(["disabled", null]));
    assert_eq!(thinking(one.clone(), none.clone(), "deepseek"), json!(["disabled", null]));
    let only = json!({"tool_choice_named": "only_tool"});
    assert_eq!(thinking(one, only, "deepseek"), json!(["disabled", null]));
    assert_eq!(thinking(auto, none.clone(), "deepseek"), json!(["enabled", "high"]));
    // What is sent as `auto` forces nothing.
    let weak = json!({"tool_choice_any": "auto"});
    assert_eq!(thinking(any.clone(), weak, "deepseek"), json!(["enabled", "high"]));
    assert_eq!(thinking(any.clone(), none, "openai-chat"), json!([null, "high"]));
    let bare = weather(json!({"tool_choice": any}));
    let body = sent_to("deepseek", json!({}), bare);
    assert_eq!(body["thinking"], json!({"type": "disabled"}));
}

#[test]
fn words_that_the_answer_continues_switch_thinking_off_where_the_template_thinks() {
    let prefilled = json!([user("Give JSON"), assistant("{")]);
    for thinking in [
        json!(null),
        json!({"type": "adaptive"}),
        json!({"type": "enabled", "budget_tokens": 2000}),
    ] {
        let request = json!({"messages": prefilled, "thinking": thinking, "max_tokens": 4000});
        let sent = sent_to("llama.cpp", json!({}), request);
        assert_eq!(sent["chat_template_kwargs"], json!({"enable_thinking": false}), "{thinking}");
        assert_eq!(sent.get("thinking_budget_tokens"), None);
    }
    // Not where a call is the last word, nor where the switch is another.
    let called = json!({"messages": [user("q"), assistant(json!([call("toolu_1")]))]});
    assert_eq!(sent_to("llama.cpp", json!({}), called).get("chat_template_kwargs"), None);
    let plain = sent_to("default", json!({}), json!({"messages": prefilled}));
    assert_eq!(plain.get("chat_template_kwargs"), None);
}

#[test]
fn an_image_that_the_model_does_not_see_is_told() {
    let document = json!({"type": "document", "source": {"type": "content", "content": [image()]}});
    for content in [
        json!([text("look"), image()]),
        json!([document]),
        json!([result("toolu_1", json!([image()]))]),
    ] {
        let history =
            json!([user("q"), assistant(json!([call("toolu_1")])), user(content.clone())]);
        let body = whole(json!({"messages": history}));
        let blind = |strict: bool| {
            let flags = json!({"image_parts": "none"});
            try_with(&config("default", flags, json!({"strict": strict})), &body)
        };
        assert!(blind(false).1.contains("dropped:image"), "{content}");
        assert!(!try_with(&config("default", json!({}), json!({})), &body).1.contains("dropped"));
    }
    let strict = config("deepseek", json!({}), json!({"strict": true}));
    let seen = whole(json!({"messages": [user(json!([image()]))]}));
    let error = try_with(&strict, &seen).0.unwrap_err();
    assert!(error.message.contains("messages[0].content[0]"), "{}", error.message);
}

#[test]
fn a_server_that_reads_no_object_as_tool_choice_gets_the_one_tool_and_a_word() {
    for profile in ["llama.cpp", "ollama"] {
        let forced = weather(json!({"tool_choice": {"type": "tool", "name": "x"}}));
        let body = sent_to(profile, json!({}), forced);
        assert_eq!(body["tool_choice"], "required", "{profile}");
        assert_eq!(body["tools"].as_array().unwrap().len(), 1, "{profile}");
        assert_eq!(body["tools"][0]["function"]["name"], "x", "{profile}");
    }
    let none = weather(json!({"tool_choice": {"type": "none"}}));
    let ollama = sent_to("ollama", json!({}), none.clone());
    assert!(ollama.get("tools").is_none() && ollama.get("tool_choice").is_none(), "{ollama}");
    assert_eq!(sent_to("llama.cpp", json!({}), none)["tool_choice"], "none");
}

#[test]
fn an_answer_knows_that_the_client_forbids_calls() {
    // Ollama does not read it, and gets the tools all the same for the call in the history.
    let history =
        json!([user("q"), assistant(json!([call("t")])), user(json!([result("t", "r")]))]);
    let request = json!({"tool_choice": {"type": "none"}, "messages": history});
    for profile in ["ollama", "default"] {
        let config = config(profile, json!({}), json!({}));
        let (body, asked) = try_with(&config, &whole(weather(request.clone()))).0.unwrap();
        assert_eq!((&body["tool_choice"], body.get("tools").is_some()), (&json!("none"), true));
        assert_eq!(asked.withheld, Withheld::Forbidden, "{profile}");
        let free = weather(json!({"messages": history}));
        assert_eq!(try_with(&config, &whole(free)).0.unwrap().1.withheld, Withheld::Nothing);
    }
}

#[test]
fn mistral_goes_on_with_the_last_words_of_the_assistant() {
    let request = json!({"messages": [user("q"), assistant("a"), user("r"), assistant("{")]});
    let body = sent_to("mistral", json!({}), request.clone());
    let said = |text: &str| json!({"role": "assistant", "content": text});
    assert_eq!(body["messages"][1], said("a"));
    assert_eq!(body["messages"][3], json!({"role": "assistant", "content": "{", "prefix": true}));
    assert_eq!(sent(request.clone())["messages"][3], said("{"));
    let config = config("mistral", json!({}), json!({}));
    let (taken, warned) = try_with(&config, &whole(request));
    assert_eq!((taken.unwrap().1.prefill.as_str(), warned.as_str()), ("{", ""));
    // A call at the end is none: its result was lost, and is made up.
    let call = json!({"messages": [user("q"), assistant(json!([call("t")]))]});
    let body = sent_to("mistral", json!({}), call);
    assert!(!body.to_string().contains("prefix"), "{body}");
}

#[test]
fn members_of_the_operators_own_are_added_to_each_request() {
    let extra = json!({"min_p": 0.05, "provider": {"order": ["a"]}});
    let plain = sent_to("vllm", json!({}), json!({}));
    let mut body = sent_to("vllm", json!({"extra_body": extra}), json!({}));
    assert_eq!(body["min_p"].take(), json!(0.05));
    assert_eq!(body["provider"].take(), json!({"order": ["a"]}));
    body.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    assert_eq!(body, plain);
}

#[test]
fn what_is_added_to_an_object_stands_beside_the_switch_of_thinking() {
    let off = json!({"thinking": {"type": "disabled"}});
    let kwargs = |switch: &str, added: Value, thinking: &Value| {
        let overrides =
            json!({"thinking_switch": switch, "extra_body": {"chat_template_kwargs": added}});
        sent_to("vllm", overrides, thinking.clone())["chat_template_kwargs"].clone()
    };
    let keep = json!({"preserve_thinking": true});
    for (switch, thinking, expected) in [
        (
            "chat_template_kwargs",
            &off,
            json!({"enable_thinking": false, "preserve_thinking": true}),
        ),
        ("chat_template_thinking", &off, json!({"thinking": false, "preserve_thinking": true})),
        // The client says nothing of thinking; the operator does.
        ("chat_template_kwargs", &json!({}), keep.clone()),
        ("none", &off, keep.clone()),
    ] {
        assert_eq!(kwargs(switch, keep.clone(), thinking), expected, "{switch}");
    }
    assert_eq!(kwargs("none", json!({"thinking": true}), &off), json!({"thinking": true}));
    let zai = json!({"thinking_switch": "thinking_type",
        "extra_body": {"thinking": {"clear_thinking": false}}});
    let body = sent_to("default", zai, off);
    assert_eq!(body["thinking"], json!({"type": "disabled", "clear_thinking": false}));
    for (switch, object, key) in [
        ("thinking_type", "thinking", "type"),
        ("chat_template_kwargs", "chat_template_kwargs", "enable_thinking"),
        ("chat_template_thinking", "chat_template_kwargs", "thinking"),
    ] {
        for (added, end) in [
            (
                json!({key: 1}),
                format!("{object}.{key}: expected no member that Creole writes itself"),
            ),
            (json!(7), format!("{object}: expected an object, but found a number")),
        ] {
            let profile = json!({"thinking_switch": switch, "extra_body": {object: added}});
            let text = json!({"upstreams": {"a": {"profile_overrides": profile}}}).to_string();
            let error = Config::from_json(&text, |_| None).unwrap_err().to_string();
            let path = "configuration: upstreams.a.profile_overrides.extra_body.";
            assert_eq!(error, [path, &end].concat());
        }
    }
}

#[test]
fn no_member_that_creole_writes_can_be_added() {
    let schema = json!({"type": "object", "properties": {}});
    let request = weather(json!({
        "stream": true, "stop_sequences": ["x"], "temperature": 0.5, "top_p": 0.5, "top_k": 4,
        "metadata": {"user_id": "{\"session_id\":\"s\"}"}, "service_tier": "standard_only",
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "tool_choice": {"type": "any", "disable_parallel_tool_use": true},
        "output_config": {"effort": "high", "format": {"type": "json_schema", "schema": schema}},
    }));
    let mut found = BTreeSet::new();
    for preset in PRESETS {
        for thinking_switch in ["none", "thinking_type", "chat_template_kwargs", "enable_thinking"]
        {
            let overrides = json!({"thinking_switch": thinking_switch});
            let body = sent_to(preset, overrides, request.clone());
            found.extend(body.as_object().unwrap().keys().cloned());
        }
    }
    // And whatever a flag adds, alone and with all that can be switched on.
    let page: Value =
        serde_json::from_str(include_str!("../../docs/configuration.schema.json")).unwrap();
    let place =
        "/properties/upstreams/additionalProperties/properties/profile_overrides/properties";
    let flags = page.pointer(place).unwrap().as_object().unwrap();
    let is_switch = |(_, schema): &(&String, &Value)| schema["type"] == "boolean";
    let switched: Value =
        flags.iter().filter(is_switch).map(|(flag, _)| (flag.clone(), json!(true))).collect();
    for (flag, schema) in flags {
        let mut values = vec![json!(true), json!(false), json!(7)];
        let words = schema["oneOf"].as_array().into_iter().flatten();
        values.extend(words.map(|word| word["const"].clone()));
        for value in values {
            for base in [json!({}), switched.clone()] {
                let mut overrides = base;
                overrides[flag] = value.clone();
                let upstream = json!({"url": "http://a", "profile_overrides": overrides});
                let text = json!({"upstreams": {"a": upstream}}).to_string();
                // Some values are not of this flag, and some refuse this request.
                let Ok(config) = Config::from_json(&text, |_| None) else { continue };
                if let Ok((body, _)) = try_with(&config, &whole(request.clone())).0 {
                    found.extend(body.as_object().unwrap().keys().cloned());
                }
            }
        }
    }
    assert!(found.len() >= 24, "{found:?}");
    // To these can be added.
    assert!(found.remove("thinking") && found.remove("chat_template_kwargs"), "{found:?}");
    for name in found {
        let text = json!({"upstreams": {"a": {"profile_overrides": {"extra_body": {&name: 1}}}}});
        let error = Config::from_json(&text.to_string(), |_| None).unwrap_err().to_string();
        let expected = "expected no member that Creole writes itself";
        let path = format!("configuration: upstreams.a.profile_overrides.extra_body.{name}: ");
        assert_eq!(error, [&path, expected].concat());
    }
}

#[test]
fn results_name_their_tools_where_that_is_wanted() {
    let history = json!([
        user("q"),
        assistant(json!([
            {"type": "tool_use", "id": "toolu_1", "name": "w", "input": {}},
            {"type": "tool_use", "id": "toolu_2", "name": "a b", "input": {}},
        ])),
        user(json!([result("toolu_1", "1"), result("toolu_2", "2")])),
    ]);
    let names = |overrides: Value| {
        let body = sent_to("default", overrides, json!({"messages": history}));
        let messages = body["messages"].as_array().unwrap().clone();
        let calls = messages[1]["tool_calls"].as_array().unwrap().iter();
        let called: Vec<Value> = calls.map(|call| call["function"]["name"].clone()).collect();
        let results = messages.iter().filter(|message| message["role"] == "tool");
        (called, results.map(|message| message["name"].clone()).collect::<Vec<_>>())
    };
    let (called, named) = names(json!({"tool_result_name": true}));
    assert_eq!(named, called);
    assert_eq!(names(json!({})).1, [json!(null), json!(null)]);
}

#[test]
fn claude_code_says_that_thinking_is_off_by_an_effort_without_it() {
    let beta = |name: &str| vec![("anthropic-beta".to_owned(), name.to_owned())];
    let off = json!({"chat_template_kwargs": {"enable_thinking": false}});
    let high = json!({"reasoning_effort": "high"});
    let effort = || json!({"output_config": {"effort": "high"}});
    let mut adaptive = effort();
    adaptive["thinking"] = json!({"type": "adaptive"});
    for (headers, request, expected) in [
        (beta("claude-code-20250219,effort-2025-11-24"), effort(), off),
        (beta("effort-2025-11-24"), effort(), high.clone()),
        (
            beta("claude-code-20250219"),
            adaptive,
            json!({"reasoning_effort": "high", "chat_template_kwargs": {"enable_thinking": true}}),
        ),
        // Versions that know no effort leave it to the server.
        (beta("claude-code-20250219"), json!({}), json!({})),
    ] {
        let config = config("vllm", json!({}), json!({}));
        let mut warnings = Warnings::new(false);
        let body = whole(request);
        let translated = translate::request(&body, &config, &headers, &mut warnings).unwrap();
        let Translated::Send { body, .. } = translated else { panic!("it is sent") };
        let sent: Value = serde_json::from_slice(&body).unwrap();
        for key in ["reasoning_effort", "chat_template_kwargs"] {
            assert_eq!(sent.get(key), expected.get(key), "{sent}");
        }
    }
}

#[test]
fn a_server_that_renders_a_template_is_told_to_continue_the_last_message() {
    let to = |preset: &str, overrides: Value, messages: Value| {
        let body = sent_to(preset, overrides, json!({"messages": messages}));
        [&body["continue_final_message"], &body["add_generation_prompt"]].map(Value::clone)
    };
    let open = [json!(true), json!(false)];
    let none = [Value::Null, Value::Null];
    let prefilled = json!([user("Give JSON"), assistant("{")]);
    for (preset, overrides, messages, expected) in [
        ("vllm", json!({}), prefilled.clone(), &open),
        ("sglang", json!({}), prefilled.clone(), &open),
        ("llama.cpp", json!({}), prefilled.clone(), &none),
        ("vllm", json!({"prefill": "send"}), prefilled, &none),
        ("vllm", json!({}), json!([user("q")]), &none),
        ("vllm", json!({}), json!([user("q"), assistant("")]), &none),
        ("vllm", json!({}), json!([user("q"), assistant(json!([call("toolu_1")]))]), &none),
    ] {
        assert_eq!(&to(preset, overrides, messages.clone()), expected, "{preset} {messages}");
    }
}

#[test]
fn a_template_gets_texts_with_a_gap_between_them() {
    let content = json!([text("a"), text("b"), image(), text("c"), text("d")]);
    let history = json!([user("x"), user("y"), assistant("z"), user(content)]);
    let to =
        |preset: &str| sent_to(preset, json!({}), json!({"messages": history}))["messages"].take();
    let url = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}});
    let parts = |sent: &Value| -> Vec<Value> {
        let parts = sent[2]["content"].as_array().unwrap().iter();
        parts.map(|part| part.get("text").cloned().unwrap_or_else(|| url.clone())).collect()
    };
    for preset in ["vllm", "sglang", "llama.cpp"] {
        let sent = to(preset);
        assert_eq!(sent[0], user("x\n\ny"));
        assert_eq!(parts(&sent), [json!("a\n\nb"), url.clone(), json!("c\n\nd")]);
    }
    let sent = to("default");
    assert_eq!(sent[0], user(json!([text("x"), text("y")])));
    assert_eq!(parts(&sent), [json!("a"), json!("b"), url.clone(), json!("c"), json!("d")]);
}

#[test]
fn a_tool_without_a_description_has_an_empty_one_where_templates_raise_an_error() {
    let request = json!({"tools": [{"name": "t", "input_schema": {"type": "object"}}]});
    for (preset, expected) in
        [("vllm", Some("")), ("sglang", Some("")), ("llama.cpp", None), ("openai-chat", None)]
    {
        let body = sent_to(preset, json!({}), request.clone());
        let description = &body["tools"][0]["function"].get("description");
        assert_eq!(description.map(|it| it.as_str().unwrap()), expected, "{preset}");
    }
}

#[test]
fn vllm_gets_four_stop_sequences_and_the_answer_is_cut_at_the_others() {
    let stops = json!(["a", "b", "c", "d", "e", "f"]);
    let request = || json!({"stop_sequences": stops});
    let four = json!(["a", "b", "c", "d"]);
    assert_eq!(sent_to("vllm", json!({}), request())["stop"], four);
    assert_eq!(sent_to("vllm", json!({"max_stop": 0}), request())["stop"], stops);
    assert_eq!(sent_to("sglang", json!({}), request())["stop"], stops);
    let (_, asked) = try_with(&config("vllm", json!({}), json!({})), &whole(request())).0.unwrap();
    assert_eq!(json!(asked.limits.stop_sequences), stops);
}

#[test]
fn strict_tools_go_to_servers_that_make_a_grammar_of_any_schema_as_they_are() {
    // Not in OpenAI's subset: a property is optional, and the object is open.
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}, "s": {}}, "required": ["n"]});
    let request = json!({
        "tools": [
            {"name": "w", "strict": true, "input_schema": schema},
            {"name": "x", "strict": false, "input_schema": schema},
        ],
        "output_config": {"format": {"type": "json_schema", "schema": schema}},
    });
    for (preset, strict) in
        [("vllm", true), ("sglang", true), ("openai-chat", false), ("default", false)]
    {
        let body = sent_to(preset, json!({}), request.clone());
        let function = |at: usize| &body["tools"][at]["function"];
        assert_eq!(function(0).get("strict"), strict.then_some(&json!(true)), "{preset}");
        assert_eq!(function(1).get("strict"), None, "{preset}");
        assert_eq!(function(0)["parameters"], schema, "{preset}");
        let output = &body["response_format"]["json_schema"];
        assert_eq!(output.get("strict").unwrap_or(&json!(false)), strict, "{preset}");
    }
}

#[test]
fn reasoning_of_another_model_goes_into_the_field_that_the_server_reads() {
    let block = json!({"type": "thinking", "thinking": "R", "signature": "EqoB"});
    let history = json!([user("q"), assistant(json!([block, text("a")])), user("r")]);
    let forward = json!({"foreign_thinking": "forward"});
    for (preset, field) in [
        ("vllm", "reasoning"),
        ("sglang", "reasoning_content"),
        ("llama.cpp", "reasoning_content"),
        ("default", "reasoning_content"),
    ] {
        let body = sent_to(preset, forward.clone(), json!({"messages": history}));
        let expected = json!({"role": "assistant", "content": "a", field: "R"});
        assert_eq!(body["messages"][1], expected, "{preset}");
    }
}

#[test]
fn only_an_upstream_that_speaks_responses_may_get_the_mcp_servers_of_clients() {
    for protocol in ["openai", "anthropic", "responses"] {
        let upstream = json!({"protocol": protocol, "profile_overrides": {"mcp": "mcp"}});
        let text = json!({"upstreams": {"a": upstream}}).to_string();
        let read = Config::from_json(&text, |_| None);
        let path = "configuration: upstreams.a.profile_overrides.mcp: ";
        match read {
            Ok(_) => assert_eq!(protocol, "responses"),
            Err(error) => assert!(error.to_string().starts_with(path), "{protocol}: {error}"),
        }
        let text = text.replace("\"mcp\":\"mcp\"", "\"mcp\":\"reject\"");
        assert!(Config::from_json(&text, |_| None).is_ok(), "{protocol}");
    }
}
