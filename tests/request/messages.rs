//! Translation of messages and their blocks.

use super::*;

#[test]
fn a_blank_text_between_two_of_the_assistant_is_their_line_end() {
    let said = |blocks: Value| {
        messages(json!([user("q"), assistant(blocks), user("r")]))[1]["content"].clone()
    };
    let blank = text("\n\n");
    let cited = json!({"type": "text", "text": "One.", "citations": [{"type": "char_location"}]});
    assert_eq!(said(json!([cited, blank, text("## Two")])), "One.\n\n## Two");
    assert_eq!(said(json!([text("- a"), text("\n"), text(""), text(" "), text("b")])), "- a\n b");
    let thinking = json!({"type": "thinking", "thinking": "t", "signature": "s"});
    assert_eq!(said(json!([text("a"), blank, thinking, text("b")])), "a\n\nb");
    // At the ends it says nothing.
    assert_eq!(said(json!([blank, text("a"), blank])), "a");
    assert_eq!(said(json!([blank, blank])), "\n\n\n\n");
    let called = json!([
        user("q"),
        assistant(json!([blank, text("a"), blank, call("toolu_1")])),
        user(json!([result("toolu_1", "r")])),
        assistant(json!([blank, call("toolu_2")])),
        user(json!([result("toolu_2", "r")])),
    ]);
    let sent = messages(called);
    assert_eq!((&sent[1]["content"], &sent[3]["content"]), (&json!("a"), &json!(null)));
}

#[test]
fn messages_that_say_nothing_are_left_out() {
    let history = json!([
        user("a"),
        assistant(json!([{"type": "redacted_thinking", "data": "x"}, text("")])),
        user(json!([text("  "), text("b")])),
        assistant(json!([])),
    ]);
    assert_eq!(messages(history), json!([user(json!([text("a"), text("b")]))]));
    assert_eq!(messages(json!([user("  ")])), json!([user("  ")]));
    assert_eq!(
        refused(json!({"messages": [user("")]})),
        "messages: text content blocks must be non-empty"
    );
}

#[test]
fn tool_results_come_first_and_in_the_order_of_the_calls() {
    let history = json!([
        user("q"),
        assistant(json!([text("I look."), call("toolu_1"), call("toolu_2")])),
        user(json!([
            text("note"),
            result("toolu_2", "two"),
            result("toolu_1", [text("o"), text("ne")])
        ])),
    ]);
    assert_eq!(
        messages(history.clone()),
        json!([
            user("q"),
            {"role": "assistant", "content": "I look.", "tool_calls": tool_calls(&["call_1", "call_2"])},
            tool("call_1", "o\nne"),
            tool("call_2", "two"),
            user("note"),
        ])
    );
    let merged =
        messages_to(json!({"text_after_tool_results": "merge_into_last_tool"}), history.clone());
    assert_eq!(merged[3], tool("call_2", "two\n\nnote"));
    assert_eq!(merged.as_array().unwrap().len(), 4);
    let single = messages_to(json!({"single_tool_call": true}), history);
    assert_eq!(
        single,
        json!([
            user("q"),
            {"role": "assistant", "content": "I look.", "tool_calls": tool_calls(&["call_1"])},
            tool("call_1", "o\nne"),
            calling(&["call_2"]),
            tool("call_2", "two"),
            user("note"),
        ])
    );
}

#[test]
fn failures_and_empty_results_can_be_told_apart() {
    let with = |content: Value, is_error: bool, overrides| {
        let mut result = result("toolu_1", content);
        result["is_error"] = json!(is_error);
        let history =
            json!([user("q"), assistant(json!([call("toolu_1")])), user(json!([result]))]);
        messages_to(overrides, history)[2]["content"].take()
    };
    assert_eq!(with(json!("boom"), true, json!({})), "Error: boom");
    assert_eq!(with(json!("ERROR: boom"), true, json!({})), "ERROR: boom");
    let later = json!([text(""), text("error: boom")]);
    assert_eq!(with(later, true, json!({})), "error: boom");
    assert_eq!(with(json!("boom"), false, json!({})), "boom");
    assert_eq!(with(json!(null), false, json!({})), "");
    assert_eq!(with(json!([]), false, json!({"empty_tool_content": "(no output)"})), "(no output)");
}

#[test]
fn search_results_references_and_browser_states_become_texts() {
    let found = json!({"type": "search_result", "source": "S", "title": "T", "content": [text("a"), text("b")]});
    assert_eq!(
        messages(json!([user([found])])),
        json!([user("<search_result title=\"T\" source=\"S\">a\nb</search_result>")])
    );
    let blocks = json!([
        {"type": "tool_reference", "tool_name": "WebFetch"},
        {"type": "browser_state", "tabs": [
            {"tab_id": "1", "url": "https://a", "title": "A", "active": true},
            {"tab_id": "2", "title": "B", "url": "https://b"},
        ], "state_changes": [{"type": "tab_opened", "tab_id": "2"}]},
    ]);
    let history =
        json!([user("q"), assistant(json!([call("t")])), user(json!([result("t", blocks)]))]);
    assert_eq!(
        messages(history)[2]["content"],
        "Tool loaded: WebFetch\n* 1 A https://a (active)\n* 2 B https://b\ntab_opened: 2"
    );
    // Whatever the kind of a change is, it stands within a string.
    for (kind, line) in [(json!("x\""), "x\":"), (json!({"a": "b"}), "*"), (json!(null), "*")] {
        let blocks =
            json!([{"type": "browser_state", "tabs": [], "state_changes": [{"type": kind}]}]);
        let called = assistant(json!([call("t")]));
        let history = json!([user("q"), called, user(json!([result("t", blocks)]))]);
        assert_eq!(messages(history)[2]["content"], line);
    }
}

#[test]
fn server_tools_in_the_history_are_texts() {
    let history = json!([
        user("q"),
        assistant(json!([
            text("Let me see."),
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x y"}},
            {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [
                {"type": "web_search_result", "title": "T", "url": "https://t", "encrypted_content": "SECRET"},
            ]},
            text("So "), text("it is."),
        ])),
        user("r"),
    ]);
    assert_eq!(
        messages(history.clone())[1]["content"],
        "Let me see.\n[web_search {\"query\":\"x y\"}]\nT https://t\nSo it is."
    );
    let dropped = messages_to(json!({"server_history": "drop"}), history);
    assert_eq!(dropped[1]["content"], "Let me see.So it is.");
    let failed = json!([
        user("q"),
        assistant(json!([
            {"type": "mcp_tool_use", "id": "m", "name": "find", "server_name": "s", "input": {}},
            {"type": "mcp_tool_result", "tool_use_id": "m", "is_error": true, "content": [text("boom")]},
        ])),
        user("r"),
    ]);
    assert_eq!(messages(failed)[1]["content"], "[find {}]\nError: boom");
}

#[test]
fn a_server_tools_result_of_which_nothing_can_be_read_is_no_turn() {
    for (kind, content) in [
        ("web_search_tool_result", json!([])),
        (
            "advisor_tool_result",
            json!({"type": "advisor_redacted_result", "encrypted_content": "E"}),
        ),
    ] {
        let block = json!({"type": kind, "tool_use_id": "srvtoolu_1", "content": content});
        let alone = assistant(json!([block.clone()]));
        let history = json!([user("a"), alone, user("b")]);
        assert_eq!(messages(history), json!([user(json!([text("a"), text("b")]))]), "{kind}");
        assert_eq!(messages(json!([user("a"), alone])), json!([user("a")]), "{kind}");
        // That the tool failed is something.
        let mut failed = block;
        failed["is_error"] = json!(true);
        let history = json!([user("a"), assistant(json!([failed])), user("b")]);
        assert_eq!(messages(history)[1]["content"], "Error: ", "{kind}");
    }
}

#[test]
fn compactions_are_summaries_of_the_user() {
    let compaction = |content: Value| json!({"type": "compaction", "content": content, "encrypted_content": "E"});
    assert_eq!(
        messages(json!([
            user("a"),
            assistant(json!([compaction(json!("S")), text("b")])),
            user("c")
        ])),
        json!([user(json!([text("a"), text("<summary>S</summary>")])), assistant("b"), user("c")])
    );
    assert_eq!(messages(json!([user([compaction(json!(null)), text("a")])])), json!([user("a")]));
}

#[test]
fn a_block_of_a_system_message_that_is_not_known_is_left_out() {
    let novel = json!({"type": "novel", "x": 1});
    let system = |content: Value| json!({"role": "system", "content": content});
    let request = json!({"messages": [user("q"), system(json!([novel, text("S")]))]});
    assert_eq!(warned(request.clone()), "unknown_block:novel");
    assert_eq!(
        sent(request.clone())["messages"],
        sent(json!({"messages": [user("q"), system(json!([text("S")]))]}))["messages"]
    );
    assert_eq!(
        refused_strictly(request),
        "messages.1.content.0: Input tag 'novel' found using 'type' does not match any of the \
         expected tags: 'text', 'tool_addition', 'tool_removal'"
    );
}

#[test]
fn blocks_that_are_not_known_are_refused_where_the_user_would_lose_something() {
    let novel = json!({"type": "novel", "x": 1});
    assert!(refused(json!({"messages": [user([novel.clone()])]})).starts_with(
        "messages.0.content.0: Input tag 'novel' found using 'type' does not match any of the expected tags: "
    ));
    let request = json!({"messages": [user("q"), assistant(json!([novel, text("a")])), user("r")]});
    assert_eq!(warned(request.clone()), "unknown_block:novel");
    assert_eq!(sent(request)["messages"][1], assistant("a"));
    let upload = json!({"messages": [user(json!([{"type": "container_upload", "file_id": "f"}]))]});
    assert_eq!(
        refused(upload),
        "messages[0].content[0]: container_upload is not supported by this gateway"
    );
    assert_eq!(
        refused(json!({"messages": [assistant(json!([result("t", "x")]))]})),
        "messages.0.content.0: `tool_result` blocks can only be in `user` messages"
    );
}

#[test]
fn a_prefill_is_sent_or_refused() {
    let request = json!({"messages": [user("q"), assistant("The answer is")]});
    assert_eq!(warned(request.clone()), "prefill");
    let config = config("default", json!({"strip_prefill_echo": true}), json!({}));
    let (body, asked) = try_with(&config, &whole(request.clone())).0.unwrap();
    assert_eq!(body["messages"][1], assistant("The answer is"));
    assert_eq!(asked.prefill, "The answer is");
    assert!(
        refused_strictly(request)
            .starts_with("This model does not support assistant message prefill.")
    );
}

#[test]
fn n8n_may_echo_the_id_in_the_input() {
    let request = json!({
        "tools": [{"name": "agent", "input_schema": {"type": "object", "properties": {"p": {"type": "string"}}}}],
        "messages": [
            user("q"),
            assistant(json!([{"type": "tool_use", "id": "toolu_1", "name": "agent", "input": {"p": "x", "id": "toolu_1"}}])),
            user(json!([result("toolu_1", "ok")])),
        ],
    });
    let body = sent(request);
    assert_eq!(body["messages"][1]["tool_calls"][0]["function"]["arguments"], "{\"p\":\"x\"}");
}

#[test]
fn an_input_that_was_lost_or_put_into_a_string_is_mended() {
    for (input, arguments) in [
        (Some(json!(null)), "{}"),
        (None, "{}"),
        (Some(json!("{\"a\": 1}")), "{\"a\":1}"),
        (Some(json!("[1]")), "{}"),
        (Some(json!([{}])), "{}"),
    ] {
        let mut call = call("toolu_1");
        match input {
            Some(input) => call["input"] = input,
            None => drop(call.as_object_mut().unwrap().remove("input")),
        }
        let history = json!({"messages": [
            user("q"), assistant(json!([call])), user(json!([result("toolu_1", "ok")])),
        ]});
        let (sent, warned) = try_with(&Config::default(), &whole(history.clone()));
        let sent = sent.unwrap().0;
        assert_eq!(sent["messages"][1]["tool_calls"][0]["function"]["arguments"], arguments);
        assert_eq!(warned, "tool_input_not_object", "{call}");
        assert!(refused_strictly(history).starts_with("messages[1].content[0].input: "));
    }
}

#[test]
fn an_input_that_is_not_an_object_becomes_an_empty_one() {
    let history = json!([
        user("q"),
        assistant(json!([{"type": "tool_use", "id": "toolu_1", "name": "w", "input": "oops"}])),
        user(json!([result("toolu_1", "ok")])),
    ]);
    assert_eq!(messages(history.clone())[1], calling(&["call_1"]));
    assert_eq!(warned(json!({"messages": history})), "tool_input_not_object");
    assert_eq!(
        refused_strictly(json!({"messages": history})),
        "messages[1].content[0].input: expected an object, but found a string"
    );
}

#[test]
fn a_message_with_calls_only_has_the_content_that_the_upstream_wants() {
    let called = assistant(json!([call("toolu_1")]));
    let history = json!([user("q"), called, user(json!([result("toolu_1", "r")]))]);
    let content =
        |mode| messages_to(json!({"empty_assistant_content": mode}), history.clone())[1].take();
    assert_eq!(content("null")["content"], Value::Null);
    assert_eq!(content("empty")["content"], "");
    assert_eq!(content("absent").get("content"), None);
}

#[test]
fn half_characters_do_not_reach_the_upstream() {
    let body = r#"{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"a\ud83c \ud83c\udf89 \u0000"}]}"#;
    let (sent, _) = try_with(&Config::default(), body).0.unwrap();
    assert_eq!(sent["messages"][0]["content"], "a\u{fffd} 🎉 \0");
}

#[test]
fn tools_come_and_go_with_the_conversation() {
    let deferred = |name: &str| json!({"name": name, "defer_loading": true, "input_schema": {"type": "object", "properties": {}}});
    let change = |kind: &str, name: &str| json!({"type": kind, "tool": {"type": "tool_reference", "name": name}});
    let reference = json!([{"type": "tool_reference", "tool_name": "b"}]);
    let request = json!({
        "tools": [deferred("a"), deferred("b"), deferred("c"), {"name": "d", "input_schema": {"type": "object", "properties": {}}}],
        "messages": [
            user("q"),
            {"role": "system", "content": [change("tool_addition", "c"), change("tool_removal", "d")]},
            assistant(json!([call("toolu_1")])),
            user(json!([result("toolu_1", reference), text("Tool loaded.")])),
        ],
    });
    let body = sent(request.clone());
    let names: Vec<&str> = body["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["function"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["c", "b"]);
    assert_eq!(body["messages"][2], tool("call_1", "Tool loaded: b\n\nTool loaded."));
    let mut unknown = request;
    unknown["messages"][1]["content"][1] = change("tool_removal", "x");
    let error = try_with(&Config::default(), &whole(unknown)).0.unwrap_err();
    assert_eq!(error.code.as_deref(), Some("tool_reference_unresolved"));
    assert!(error.message.starts_with("messages[1].content[1].tool"), "{error}");
}

#[test]
fn a_change_in_a_compaction_is_named_by_its_place() {
    let change = json!({"type": "tool_removal", "tool": {"type": "tool_reference", "name": "x"}});
    let compaction = json!({"type": "compaction", "content": "So far.", "tool_changes": [change]});
    let request = json!({"messages": [assistant(json!([compaction])), user("hi")]});
    let error = try_with(&Config::default(), &whole(request)).0.unwrap_err();
    assert_eq!(
        error.message,
        "messages[0].content[0].tool_changes[0].tool: Tool reference 'x' not found in available tools"
    );
}

#[test]
fn ids_of_the_history_are_those_of_the_upstream() {
    let history = json!([
        user("q"),
        assistant(json!([call("toolu_01ABCDEFGHIJ"), call("toolu_01ABCDEFGHIK")])),
        user(json!([result("toolu_01ABCDEFGHIJ", "a"), result("toolu_01ABCDEFGHIK", "b")])),
    ]);
    let sent = sent_to("mistral", json!({}), json!({"messages": history}))["messages"].take();
    let ids: Vec<&str> =
        [0, 1].map(|at| sent[1]["tool_calls"][at]["id"].as_str().unwrap()).to_vec();
    assert_ne!(ids[0], ids[1]);
    for (at, id) in ids.iter().enumerate() {
        assert!(id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{id}");
        assert_eq!(sent[at + 2]["tool_call_id"], *id);
    }
}
