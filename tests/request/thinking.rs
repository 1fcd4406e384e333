//! Effort, reasoning in the history, structured outputs.

use creole::model::request_context::Display;

use creole::carry::signature::{Signature, SignatureField, fnv1a64};

use super::*;

#[test]
fn effort_and_switch_follow_the_profile() {
    let with = |profile: &str, overrides: Value, request: Value| {
        let body = sent_to(profile, overrides, request);
        let mut keys = serde_json::Map::new();
        for key in [
            "reasoning_effort",
            "thinking",
            "chat_template_kwargs",
            "enable_thinking",
            "thinking_budget_tokens",
        ] {
            if let Some(value) = body.get(key) {
                keys.insert(key.to_owned(), value.clone());
            }
        }
        Value::Object(keys)
    };
    let none = json!({});
    let xhigh = json!({"output_config": {"effort": "xhigh"}, "thinking": {"type": "adaptive"}});
    assert_eq!(
        with("openai-chat", none.clone(), xhigh.clone()),
        json!({"reasoning_effort": "xhigh"})
    );
    assert_eq!(
        with("vllm", none.clone(), xhigh.clone()),
        json!({"reasoning_effort": "high", "chat_template_kwargs": {"enable_thinking": true}})
    );
    assert_eq!(with("default", none.clone(), xhigh), none);
    let disabled = json!({"thinking": {"type": "disabled"}, "output_config": {"effort": "high"}});
    assert_eq!(
        with("openai-chat", none.clone(), disabled.clone()),
        json!({"reasoning_effort": "none"})
    );
    assert_eq!(
        with("deepseek", none.clone(), disabled.clone()),
        json!({"thinking": {"type": "disabled"}})
    );
    assert_eq!(
        with("default", json!({"thinking_switch": "enable_thinking"}), disabled),
        json!({"enable_thinking": false})
    );
    let budget = |tokens: u64| json!({"thinking": {"type": "enabled", "budget_tokens": tokens}});
    for (tokens, effort) in [(1024, "low"), (2048, "medium"), (4096, "high"), (31_999, "high")] {
        assert_eq!(
            with("openai-chat", none.clone(), budget(tokens)),
            json!({"reasoning_effort": effort})
        );
    }
    assert_eq!(
        with("llama.cpp", none.clone(), budget(5000)),
        json!({"reasoning_effort": "high", "chat_template_kwargs": {"enable_thinking": true},
            "thinking_budget_tokens": 5000})
    );
    assert_eq!(with("vllm", none.clone(), json!({})), none);
}

#[test]
fn a_limit_that_is_lowered_leaves_room_for_an_answer_behind_the_thinking() {
    let budget = |limit: u64, most: u64, budget: u64| {
        let request = json!({
            "max_tokens": most, "thinking": {"type": "enabled", "budget_tokens": budget}
        });
        sent_to("llama.cpp", json!({"max_tokens_max": limit}), request)["thinking_budget_tokens"]
            .take()
    };
    assert_eq!(budget(4096, 64_000, 31_999), 2048);
    assert_eq!(budget(4096, 4097, 4096), 2048);
    // It has room.
    assert_eq!(budget(4096, 64_000, 1024), 1024);
    // What the client asked for is its own affair.
    assert_eq!(budget(4096, 4096, 4095), 4095);
    assert_eq!(budget(0, 64_000, 31_999), 31_999);
}

#[test]
fn the_budget_of_thinking_has_the_name_that_the_server_knows() {
    let enabled = json!({"thinking": {"type": "enabled", "budget_tokens": 5000}});
    let flags = json!({"thinking_budget": "thinking_token_budget"});
    let body = sent_to("vllm", flags, enabled.clone());
    assert_eq!(body["thinking_token_budget"], 5000);
    assert_eq!(body.get("thinking_budget_tokens"), None);
    let off = sent_to("vllm", json!({}), enabled);
    assert_eq!(off.get("thinking_token_budget"), None);
}

#[test]
fn qwen_does_not_think_where_its_service_refuses_it() {
    let switch = |request: Value| {
        let overrides = json!({"thinking_switch": "enable_thinking"});
        sent_to("default", overrides, request).get("enable_thinking").cloned()
    };
    let tools = json!([{"name": "w", "input_schema": {"type": "object"}}]);
    let format = json!({"format": {"type": "json_schema", "schema": {"type": "object"}}});
    let adaptive = json!({"type": "adaptive"});
    let (on, off) = (Some(json!(true)), Some(json!(false)));
    assert_eq!(switch(json!({"stream": true})), None);
    assert_eq!(switch(json!({"stream": true, "tools": tools})), None);
    // A forced tool.
    for choice in [json!({"type": "any"}), json!({"type": "tool", "name": "w"})] {
        let request =
            json!({"stream": true, "tools": tools, "tool_choice": choice, "thinking": adaptive});
        assert_eq!(switch(request), off, "{choice}");
    }
    // An answer that is JSON.
    assert_eq!(switch(json!({"stream": true, "output_config": format})), off);
    assert_eq!(switch(json!({"stream": true, "output_config": format, "thinking": adaptive})), off);
    // A whole answer; newer models can think for one.
    assert_eq!(switch(json!({})), off);
    assert_eq!(switch(json!({"thinking": adaptive})), on);
}

#[test]
fn thinking_is_shown_when_it_was_asked_for() {
    let shown = |mode: &str, thinking: Value| {
        let config = config("default", json!({}), json!({"reasoning": mode}));
        try_with(&config, &whole(json!({"thinking": thinking}))).0.unwrap().1.thinking.display
    };
    let adaptive = json!({"type": "adaptive", "display": "updates"});
    assert_eq!(shown("on_request", adaptive.clone()), Display::Shown);
    assert_eq!(
        shown("on_request", json!({"type": "adaptive", "display": "omitted"})),
        Display::Omitted
    );
    assert_eq!(shown("on_request", json!({"type": "between_tools"})), Display::Hidden);
    assert_eq!(shown("on_request", json!(null)), Display::Hidden);
    assert_eq!(shown("always", json!(null)), Display::Shown);
    assert_eq!(shown("never", adaptive), Display::Hidden);
}

#[test]
fn foreign_thinking_does_not_go_to_another_model() {
    let history = json!([
        user("q"),
        assistant(
            json!([{"type": "thinking", "thinking": "Need tool", "signature": "EqoB"}, call("toolu_1")])
        ),
        user(json!([result("toolu_1", "ok")])),
    ]);
    let to = |profile: &str, overrides| {
        sent_to(profile, overrides, json!({"messages": history}))["messages"][1].take()
    };
    assert_eq!(to("openai-chat", json!({})), calling(&["call_1"]));
    assert_eq!(to("deepseek", json!({}))["reasoning_content"], "");
    assert_eq!(
        to("deepseek", json!({"foreign_thinking": "forward"}))["reasoning_content"],
        "Need tool"
    );
}

#[test]
fn once_there_are_tools_every_message_has_the_field_that_is_required() {
    let history = json!([
        user("q"),
        assistant("a"),
        user("q"),
        assistant(json!([call("toolu_1")])),
        user(json!([result("toolu_1", "ok")])),
    ]);
    let reasoning = |overrides: Value, tools: Value| {
        let request = json!({"messages": history, "tools": tools});
        let body = sent_to("deepseek", overrides, request);
        [1, 3].map(|at| body["messages"][at].get("reasoning_content").cloned())
    };
    let tools = json!([{"name": "w", "input_schema": {"type": "object"}}]);
    let empty = Some(json!(""));
    assert_eq!(reasoning(json!({}), tools.clone()), [empty.clone(), empty.clone()]);
    assert_eq!(reasoning(json!({}), json!([])), [None, empty]);
    // For Kimi and DeepSeek V4 Pro, an empty text is none.
    let required = json!({"reasoning_history": "required"});
    let space = Some(json!(" "));
    assert_eq!(reasoning(required.clone(), tools), [space.clone(), space.clone()]);
    assert_eq!(reasoning(required.clone(), json!([])), [None, space]);
    let mut hidden = signature(SignatureField::ReasoningContent, "");
    hidden.full_text = Some(String::new());
    assert_eq!(returned(&hidden, "", "deepseek", required.clone())["reasoning_content"], " ");
    let other = signature(SignatureField::Reasoning, "a");
    assert_eq!(returned(&other, "a", "deepseek", required)["reasoning_content"], "a");
}

#[test]
fn a_schema_for_the_answer_takes_the_form_that_the_upstream_knows() {
    let schema =
        json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false});
    let request = json!({"system": "S", "output_config": {"format": {"type": "json_schema", "schema": schema}}});
    let openai = sent_to("openai-chat", json!({}), request.clone());
    assert_eq!(
        openai["response_format"],
        json!({"type": "json_schema", "json_schema": {"name": "output", "schema": schema, "strict": true}})
    );
    let object = sent_to("default", json!({"response_format": "json_object"}), request.clone());
    assert_eq!(object["response_format"], json!({"type": "json_object"}));
    let system = object["messages"][0]["content"].as_str().unwrap();
    assert!(system.starts_with("S\n\n") && system.ends_with(&schema.to_string()), "{system}");
    let none = config("default", json!({"response_format": "none"}), json!({}));
    let error = try_with(&none, &whole(request)).0.unwrap_err();
    assert!(error.message.starts_with("output_config.format: "));
    let both = json!({
        "output_format": {"type": "json_schema", "schema": {"title": "old"}},
        "output_config": {"format": {"type": "json_schema", "schema": {"title": "new"}}},
    });
    assert_eq!(sent(both)["response_format"]["json_schema"]["schema"]["title"], "new");
}

/// A thinking block as Creole gave it to the client, and the message in which it comes back.
fn returned(signature: &Signature, shown: &str, profile: &str, overrides: Value) -> Value {
    let block = json!({"type": "thinking", "thinking": shown, "signature": signature.encode().0});
    let history = json!([
        user("q"),
        assistant(json!([block, call("toolu_1")])),
        user(json!([result("toolu_1", "ok")])),
    ]);
    sent_to(profile, overrides, json!({"messages": history}))["messages"][1].take()
}

pub(super) fn signature(field: SignatureField, shown: &str) -> Signature {
    Signature::of(field, fnv1a64(shown.as_bytes()))
}

#[test]
fn a_call_that_lost_its_input_gets_it_back_from_the_thinking_beside_it() {
    let inputs = [
        ("toolu_1", "{\"q\":\"x\"}"),
        ("toolu_2", "{\"q\":\"y\"}"),
        ("toolu_3", "{\"q\":"),
        ("toolu_4", &["{\"q\":", &"[".repeat(200), &"]".repeat(200), "}"].concat()),
    ];
    let thinking = Signature {
        full_text: Some("R".to_owned()),
        call_inputs: inputs.map(|(id, input)| (id.to_owned(), input.to_owned())).to_vec(),
        ..signature(SignatureField::Reasoning, "")
    };
    let arguments_beside = |thinking: Value, id: &str, input: Value| {
        let history = json!([
            user("q"),
            assistant(json!([
                thinking,
                {"type": "tool_use", "id": id, "name": "w", "input": input},
            ])),
            user(json!([result(id, "ok")])),
        ]);
        let body = sent_to("vllm", json!({}), json!({"messages": history}));
        let message = &body["messages"][1];
        message["tool_calls"][0]["function"]["arguments"].as_str().unwrap().to_owned()
    };
    let arguments = |signature: &str, id: &str, input: Value| {
        let thinking = json!({"type": "thinking", "thinking": "", "signature": signature});
        arguments_beside(thinking, id, input)
    };
    let own = thinking.encode().0;
    assert_eq!(arguments(&own, "toolu_1", json!({})), "{\"q\":\"x\"}");
    let redacted = json!({"type": "redacted_thinking", "data": own});
    assert_eq!(arguments_beside(redacted, "toolu_1", json!({})), "{\"q\":\"x\"}");
    assert_eq!(arguments(&own, "toolu_2", json!({})), "{\"q\":\"y\"}");
    // What the client says counts, and nothing is made up.
    assert_eq!(arguments(&own, "toolu_1", json!({"q": "z"})), "{\"q\":\"z\"}");
    for id in ["toolu_3", "toolu_4", "toolu_5"] {
        assert_eq!(arguments(&own, id, json!({})), "{}", "{id}");
    }
    assert_eq!(arguments("EqoB", "toolu_1", json!({})), "{}");
}

#[test]
fn thinking_that_is_not_shown_returns_in_each_form_that_clients_keep_it_in() {
    let own =
        Signature { full_text: Some("R".to_owned()), ..signature(SignatureField::Reasoning, "") }
            .encode()
            .0;
    for block in [
        json!({"type": "thinking", "thinking": "", "signature": own}),
        // LangChain, which keeps what came in deltas.
        json!({"type": "thinking", "signature": own, "index": 0}),
        json!({"type": "thinking", "thinking": null, "signature": own}),
        // The C# SDK.
        json!({"type": "redacted_thinking", "data": own}),
    ] {
        let call = json!({"type": "tool_use", "id": "toolu_1", "name": "w", "input": {}});
        let history =
            [user("q"), assistant(json!([block, call])), user(json!([result("toolu_1", "ok")]))];
        let body = sent_to("vllm", json!({}), json!({"messages": history}));
        assert_eq!(body["messages"][1]["reasoning"], "R", "{block}");
    }
    let foreign = json!({"type": "redacted_thinking", "data": "EqoB"});
    let history = [user("q"), assistant(json!([foreign, text("a")])), user("r")];
    let body = sent_to("vllm", json!({}), json!({"messages": history}));
    assert_eq!(body["messages"][1], json!({"role": "assistant", "content": "a"}));
}

#[test]
fn reasoning_goes_to_no_other_upstream() {
    let config = Config::from_json(
        &json!({
            "upstreams": {
                "a": {"url": "http://127.0.0.1:1", "profile": "deepseek"},
                "b": {"url": "http://127.0.0.1:2", "profile": "default"},
                "a2": {"url": "http://127.0.0.1:1", "profile": "vllm"},
                "c": {"url": "http://127.0.0.1:1", "base_path": "/other-vendor/v1"},
            },
            "models": {
                "to-a": {"upstream": "a"}, "to-b": {"upstream": "b"}, "to-a2": {"upstream": "a2"},
                "to-c": {"upstream": "c"}
            },
        })
        .to_string(),
        |_| None,
    )
    .unwrap();
    let sent = |model: &str, signature: &str| {
        let block = json!({"type": "thinking", "thinking": "hm", "signature": signature});
        let messages = [user("q"), assistant(json!([block, text("a")])), user("q2")];
        let request = whole(json!({"model": model, "messages": messages}));
        let (mut body, asked) = try_with(&config, &request).0.unwrap();
        (body["messages"][1].take(), asked.thinking.upstream_mark)
    };
    let mark = sent("to-a", "").1;
    assert_eq!(
        (mark.len(), sent("to-a2", "").1 == mark, sent("to-b", "").1 == mark),
        (8, true, false)
    );
    assert_ne!(sent("to-c", "").1, mark, "another path of the same gateway");
    let unmarked = signature(SignatureField::ReasoningContent, "hm");
    let marked = Signature { upstream: mark, ..unmarked.clone() }.encode().0;
    let answer = json!({"role": "assistant", "content": "a"});
    assert_eq!(sent("to-b", &marked).0, answer);
    let mut with_reasoning = answer;
    with_reasoning["reasoning_content"] = json!("hm");
    assert_eq!(sent("to-a2", &marked).0, with_reasoning);
    // Signed before there was a second upstream.
    assert_eq!(sent("to-b", &unmarked.encode().0).0, with_reasoning);
    // With one upstream there is nothing to tell apart.
    assert_eq!(
        try_with(&Config::default(), &whole(json!({}))).0.unwrap().1.thinking.upstream_mark,
        ""
    );
}

#[test]
fn own_reasoning_goes_back_where_it_came_from() {
    let none = json!({});
    let content = signature(SignatureField::ReasoningContent, "a\nb");
    let message = returned(&content, "a\nb", "deepseek", none.clone());
    assert_eq!(message["reasoning_content"], "a\nb");
    assert_eq!(message["tool_calls"], tool_calls(&["call_1"]));
    let reasoning = signature(SignatureField::Reasoning, "a");
    assert_eq!(returned(&reasoning, "a", "vllm", none.clone())["reasoning"], "a");
    let in_text = signature(SignatureField::ReasoningText, "a");
    assert_eq!(returned(&in_text, "a", "default", none.clone())["reasoning_text"], "a");
    // OpenAI has no field for it.
    assert_eq!(returned(&content, "a\nb", "openai-chat", none.clone()), calling(&["call_1"]));
    let parts = signature(SignatureField::Parts, "a");
    let auto = json!({"reasoning_history": "auto"});
    assert_eq!(
        returned(&parts, "a", "mistral", auto)["content"],
        json!([{"type": "thinking", "thinking": [text("a")]}])
    );
}

#[test]
fn reasoning_of_another_upstream_goes_back_in_the_field_that_is_required() {
    let none = json!({});
    for field in [
        SignatureField::Reasoning,
        SignatureField::ReasoningText,
        SignatureField::Thinking,
        SignatureField::Parts,
        SignatureField::Marked,
    ] {
        let message = returned(&signature(field, "a"), "a", "deepseek", none.clone());
        let expected = json!({"reasoning_content": "a", "content": null});
        let mut found = message.clone();
        found.as_object_mut().unwrap().retain(|key, _| key != "role" && key != "tool_calls");
        assert_eq!(found, expected, "{field:?}");
    }
    // A router that gives them may want the items too.
    let mut details = signature(SignatureField::ReasoningDetails, "a");
    details.opaque = Some(r#"[{"type":"reasoning.encrypted","data":"E"}]"#.to_owned());
    let message = returned(&details, "a", "deepseek", none);
    assert_eq!(message["reasoning_content"], "a");
    assert_eq!(message["reasoning_details"], json!([{"type": "reasoning.encrypted", "data": "E"}]));
}

#[test]
fn what_the_client_was_not_shown_is_in_the_signature() {
    let mut hidden = signature(SignatureField::ReasoningContent, "");
    hidden.full_text = Some("all of it \"".to_owned());
    assert_eq!(returned(&hidden, "", "default", json!({}))["reasoning_content"], "all of it \"");
    let mut details = signature(SignatureField::ReasoningDetails, "a");
    details.opaque = Some(r#"[{"type":"reasoning.encrypted","data":"E"}]"#.to_owned());
    details.call_signatures = vec![("toolu_1".to_owned(), "sig".to_owned())];
    let message = returned(&details, "a", "default", json!({}));
    assert_eq!(message["reasoning_details"], json!([{"type": "reasoning.encrypted", "data": "E"}]));
    assert_eq!(
        message["tool_calls"][0]["extra_content"],
        json!({"google": {"thought_signature": "sig"}})
    );
}

#[test]
fn a_calls_signature_goes_back_to_the_place_where_it_came() {
    for (carried, place) in [
        ("S", "/extra_content/google/thought_signature"),
        ("vertex\0S", "/extra_content/vertex/thought_signature"),
        ("function\0S", "/function/thought_signature"),
        ("call\0S", "/thought_signature"),
    ] {
        let mut own = signature(SignatureField::ReasoningContent, "a");
        own.call_signatures = vec![("toolu_1".to_owned(), carried.to_owned())];
        let message = returned(&own, "a", "default", json!({}));
        let call = &message["tool_calls"][0];
        assert_eq!(call.pointer(place), Some(&json!("S")), "{call}");
        assert_eq!(call.to_string().matches("thought_signature").count(), 1, "{call}");
    }
}

#[test]
fn a_calls_signature_goes_back_with_an_id_that_the_profile_asks_for() {
    let long = "b".repeat(50);
    for profile in
        [json!({"max_id_length": 40}), json!({"id_style": "mistral9"}), json!({"id_style": "kimi"})]
    {
        let mut own = signature(SignatureField::ReasoningContent, "a");
        let id = format!("toolu_{long}");
        own.call_signatures = vec![(id.clone(), "S".to_owned())];
        let thinking = json!({"type": "thinking", "thinking": "a", "signature": own.encode().0});
        let history = json!([
            user("q"),
            assistant(json!([thinking, call(&id)])),
            user(json!([result(&id, "ok")])),
        ]);
        let body = sent_to("default", profile, json!({"messages": history}));
        let call = &body["messages"][1]["tool_calls"][0];
        assert_ne!(call["id"], format!("call_{long}"));
        assert_eq!(call["extra_content"], json!({"google": {"thought_signature": "S"}}), "{call}");
    }
}

#[test]
fn calls_with_one_upstream_id_get_each_its_own_signature() {
    for (signed, expected) in [
        (&["toolu_a"][..], [Some("toolu_a"), None]),
        (&["toolu_u2_a"], [None, Some("toolu_u2_a")]),
        (&["toolu_a", "toolu_u2_a"], [Some("toolu_a"), Some("toolu_u2_a")]),
    ] {
        let mut own = signature(SignatureField::ReasoningContent, "a");
        let value = |id: &&str| ((*id).to_owned(), (*id).to_owned());
        own.call_signatures = signed.iter().map(value).collect();
        let thinking = json!({"type": "thinking", "thinking": "a", "signature": own.encode().0});
        let history = json!([
            user("q"),
            assistant(json!([thinking, call("toolu_a"), call("toolu_u2_a")])),
            user(json!([result("toolu_a", "ok"), result("toolu_u2_a", "ok")])),
        ]);
        let body = sent_to("default", json!({}), json!({"messages": history}));
        let calls = body["messages"][1]["tool_calls"].as_array().unwrap();
        let sent = [0, 1].map(|at| {
            calls[at].pointer("/extra_content/google/thought_signature").and_then(Value::as_str)
        });
        assert_eq!(sent, expected, "{calls:?}");
    }
}

#[test]
fn a_call_that_gemini_did_not_sign_says_so() {
    let gemini = json!({"tool_schema": "gemini"});
    let extra = |signature: &str| json!({"google": {"thought_signature": signature}});
    let history = json!([
        user("q"),
        assistant(json!([call("toolu_1"), call("toolu_2")])),
        user(json!([result("toolu_1", "ok"), result("toolu_2", "ok")])),
    ]);
    let body = sent_to("default", gemini.clone(), json!({"messages": history}));
    let calls = &body["messages"][1]["tool_calls"];
    assert_eq!(calls[0]["extra_content"], extra("skip_thought_signature_validator"));
    // Gemini signs the first of several.
    assert_eq!(calls[1].get("extra_content"), None);
    let mut own = signature(SignatureField::ReasoningContent, "a");
    own.call_signatures = vec![("toolu_1".to_owned(), "S".to_owned())];
    let message = returned(&own, "a", "default", gemini);
    assert_eq!(message["tool_calls"][0]["extra_content"], extra("S"));
}

#[test]
fn reasoning_that_the_client_changed_is_dropped() {
    let own = signature(SignatureField::ReasoningContent, "a");
    assert_eq!(returned(&own, "b", "deepseek", json!({}))["reasoning_content"], "");
    let block = json!({"type": "thinking", "thinking": "b", "signature": own.encode().0});
    let history = json!([user("q"), assistant(json!([block, text("x")])), user("r")]);
    assert_eq!(warned(json!({"messages": history})), "thinking_modified");
    let block = json!({"type": "thinking", "thinking": "b", "signature": own.encode().0});
    let history = json!([user("q"), assistant(json!([block, text("x")])), user("r")]);
    assert_eq!(
        refused_strictly(json!({"messages": history})),
        "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response."
    );
    // Without its text goes what the upstream signed or encrypted.
    for mut signed in
        [signature(SignatureField::Marked, "a\n"), signature(SignatureField::Reasoning, "a\n")]
    {
        signed.opaque = Some(r#"[{"type":"reasoning.encrypted","data":"E"}]"#.to_owned());
        signed.call_signatures = vec![("toolu_1".to_owned(), "sig".to_owned())];
        let message = returned(&signed, "a", "default", json!({}));
        let google = json!({"google": {"thought_signature": "sig"}});
        assert_eq!(message["tool_calls"][0]["extra_content"], google);
        let items = json!([{"type": "reasoning.encrypted", "data": "E"}]);
        assert_eq!(message["reasoning_details"], items);
        assert_eq!(message.get("reasoning"), None);
    }
}

#[test]
fn items_go_back_beside_the_text_that_came_in_another_field() {
    for field in [SignatureField::Reasoning, SignatureField::ReasoningContent] {
        let mut own = signature(field, "a");
        own.opaque = Some(r#"[{"type":"reasoning.encrypted","data":"E"}]"#.to_owned());
        let message = returned(&own, "a", "default", json!({}));
        assert_eq!(message[field.name()], "a");
        let items = json!([{"type": "reasoning.encrypted", "data": "E"}]);
        assert_eq!(message["reasoning_details"], items);
    }
}

#[test]
fn copilots_opaque_reasoning_goes_back_under_its_name() {
    let mut own = signature(SignatureField::ReasoningText, "a");
    own.opaque = Some(r#"["first","la\\st"]"#.to_owned());
    let message = returned(&own, "a", "default", json!({}));
    assert_eq!(message["reasoning_text"], "a");
    assert_eq!(message["reasoning_opaque"], "la\\st");
    assert_eq!(message.get("reasoning_details"), None);
}

#[test]
fn signed_blocks_go_back_beside_the_text_under_their_own_name() {
    let mut own = signature(SignatureField::ReasoningContent, "a");
    let blocks = [
        json!({"type": "thinking", "thinking": "a", "signature": "S"}),
        json!({"type": "redacted_thinking", "data": "D"}),
    ];
    let other = json!({"type": "reasoning.encrypted", "data": "E"});
    own.opaque = Some(json!([blocks[0], other, blocks[1]]).to_string());
    let message = returned(&own, "a", "default", json!({}));
    assert_eq!(message["reasoning_content"], "a");
    assert_eq!(message["thinking_blocks"], json!(blocks));
    assert_eq!(message["reasoning_details"], json!([other]));
    // Another model at the same server would be refused for them: `returned` asks for m.
    own.upstream = "m::m".to_owned();
    assert_eq!(returned(&own, "a", "default", json!({})), message);
    own.upstream = "m::another".to_owned();
    let message = returned(&own, "a", "default", json!({}));
    assert_eq!((message.get("thinking_blocks"), message.get("reasoning_content")), (None, None));
}

#[test]
fn reasoning_from_the_text_goes_back_into_the_text() {
    let own = signature(SignatureField::Inline, "a \"b\"");
    let message = returned(&own, "a \"b\"", "default", json!({}));
    assert_eq!(message["content"], "<think>a \"b\"</think>\n\n");
    assert_eq!(message.get("reasoning_content"), None);
    let block = json!({"type": "thinking", "thinking": "a \"b\"", "signature": own.encode().0});
    let said = |block: &Value| {
        let answer = assistant(json!([block, text("Hi")]));
        messages(json!([user("q"), answer, user("r")]))[1].take()
    };
    assert_eq!(said(&block)["content"], "<think>a \"b\"</think>\n\nHi");
    // DeepSeek has a field for it.
    let required = returned(&own, "a \"b\"", "deepseek", json!({}));
    assert_eq!(required["reasoning_content"], "a \"b\"");
    // What no server takes back is no message.
    let marked = signature(SignatureField::Marked, "m").encode().0;
    let block = json!({"type": "thinking", "thinking": "m", "signature": marked});
    assert_eq!(said(&block), json!({"role": "assistant", "content": "Hi"}));
    let nothing_else = json!([user("q"), assistant(json!([block])), user("r")]);
    let roles: Vec<Value> = messages(nothing_else)
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].clone())
        .collect();
    assert!(!roles.contains(&json!("assistant")), "{roles:?}");
}
