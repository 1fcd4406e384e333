//! The system prompt, and system messages in the middle.

use super::*;

#[test]
fn system_blocks_are_joined_with_a_blank_line() {
    let system = json!([
        text("x-anthropic-billing-header: cc_version=2; cch=1;"),
        {"type": "text", "text": "A", "cache_control": {"type": "ephemeral"}},
        text(""),
        text("B"),
    ]);
    let request = json!({"system": system});
    assert_eq!(sent(request.clone())["messages"][0]["content"], "A\n\nB");
    let kept = sent_to("default", json!({"strip_billing_header": false}), request.clone());
    assert!(kept["messages"][0]["content"].as_str().unwrap().starts_with("x-anthropic"));
    let parts = sent_to(
        "default",
        json!({"cache_breakpoints": "prompt_cache_breakpoint"}),
        request.clone(),
    );
    assert_eq!(
        parts["messages"][0]["content"],
        json!([
            {"type": "text", "text": "A", "prompt_cache_breakpoint": {"mode": "explicit"}},
            text("B"),
        ])
    );
    let developer = sent_to("default", json!({"system_role": "developer"}), request.clone());
    assert_eq!(developer["messages"][0]["role"], "developer");
    let as_user = sent_to("default", json!({"system_role": "user"}), request);
    assert_eq!(as_user["messages"], json!([user("A\n\nB\n\nq")]));
    assert_eq!(sent(json!({"system": [text("")]}))["messages"], json!([user("q")]));
}

#[test]
fn a_billing_line_goes_without_what_stands_below_it() {
    let line = "x-anthropic-billing-header: cc_version=2.1; cch=1;";
    let sent = |system: Value| sent(json!({"system": system}))["messages"].take();
    let system = |text: &str| json!({"role": "system", "content": text});
    let below = format!("{line}\nYou are \"Claude\" Code.\nLong rules.");
    let expected = json!([system("You are \"Claude\" Code.\nLong rules."), user("q")]);
    assert_eq!(sent(json!(below)), expected);
    assert_eq!(sent(json!([text(&below)])), expected);
    assert_eq!(sent(json!(line)), json!([user("q")]));
    assert_eq!(sent(json!([text(line), text("A")])), json!([system("A"), user("q")]));
}

#[test]
fn system_messages_in_the_middle_have_the_role_of_the_system_prompt() {
    let history = json!([user("x"), {"role": "system", "content": "B"}, assistant("y"), user("z")]);
    let roles = |role: &str| {
        let flags = json!({"mid_system": "in_place", "system_role": role});
        let sent = sent_to("default", flags, json!({"system": "A", "messages": history}));
        let roles = sent["messages"].as_array().unwrap().iter();
        roles.map(|message| message["role"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(roles("system"), ["system", "user", "system", "assistant", "user"]);
    assert_eq!(roles("developer"), ["developer", "user", "developer", "assistant", "user"]);
    assert_eq!(roles("user"), ["user", "assistant", "user"]);
}

#[test]
fn a_system_message_in_the_middle_goes_where_the_upstream_can_take_it() {
    let history = json!([user("x"), {"role": "system", "content": "B"}, user("y")]);
    let request = json!({"system": "A", "messages": history});
    let to =
        |mode| sent_to("default", json!({"mid_system": mode}), request.clone())["messages"].take();
    let system = |text: &str| json!({"role": "system", "content": text});
    assert_eq!(to("in_place"), json!([system("A"), user("x"), system("B"), user("y")]));
    assert_eq!(to("merge_to_top"), json!([system("A\n\nB"), user(json!([text("x"), text("y")]))]));
    assert_eq!(
        to("as_user"),
        json!([
            system("A"),
            user(json!([text("x"), text("<system-message>\nB\n</system-message>"), text("y")])),
        ])
    );
}

#[test]
fn system_messages_beside_results_alone_stand_in_the_last_of_them() {
    let note = |text: &str| json!({"role": "system", "content": text});
    let told = |text: &str| format!("<system-message>\n{text}\n</system-message>");
    let calls = assistant(json!([call("toolu_1"), call("toolu_2")]));
    let mut failed = result("toolu_2", "boom");
    failed["is_error"] = json!(true);
    // Before, between and behind the results.
    let history = json!([
        user("x"),
        calls,
        note("A"),
        user(json!([result("toolu_1", "r")])),
        note("B"),
        user(json!([failed])),
        note("C"),
    ]);
    let last = tool("call_2", &["Error: boom", &told("A"), &told("B"), &told("C")].join("\n\n"));
    let expected = json!([user("x"), calling(&["call_1", "call_2"]), tool("call_1", "r"), last]);
    for overrides in [
        json!({}),
        json!({"alternating_roles": true}),
        json!({"text_after_tool_results": "merge_into_last_tool"}),
        json!({"mid_system": "in_place", "system_role": "user"}),
    ] {
        assert_eq!(messages_to(overrides, history.clone()), expected);
    }
    let single = messages_to(json!({"single_tool_call": true}), history);
    let (first, second) = (calling(&["call_1"]), calling(&["call_2"]));
    assert_eq!(single, json!([user("x"), first, tool("call_1", "r"), second, last]));
    // The result that is missing says so, and then the rest.
    let missing = messages(json!([user("x"), assistant(json!([call("toolu_1")])), note("A")]));
    let missing = missing[2]["content"].as_str().unwrap();
    assert!(missing.starts_with("Error: ") && missing.ends_with(&told("A")), "{missing}");
    // Whoever else speaks ends the loop.
    let words = json!([
        user("x"),
        assistant(json!([call("toolu_1")])),
        user(json!([result("toolu_1", "r"), text("y")])),
        note("A")
    ]);
    let apart = user(json!([text("y"), text(&told("A"))]));
    assert_eq!(messages(words).as_array().unwrap()[2..], [tool("call_1", "r"), apart]);
}

#[test]
fn system_messages_stand_before_the_images_of_a_result() {
    let history = json!([
        user("x"),
        assistant(json!([call("toolu_1")])),
        user(json!([result("toolu_1", json!([image()]))])),
        {"role": "system", "content": "A"},
    ]);
    let told = "<system-message>\nA\n</system-message>";
    let shown = messages_to(json!({"tool_content_parts": "images"}), history.clone());
    assert_eq!(shown[2]["content"], json!([text(told), image_part()]));
    let apart = messages(history.clone());
    assert_eq!(apart[2], tool("call_1", &format!("[image attached below]\n\n{told}")));
    let images = user(json!([text("Image from tool result call_1:"), image_part()]));
    assert_eq!(apart.as_array().unwrap()[3..], [images]);
    let bridged = messages_to(json!({"text_after_tool_results": "merge_into_last_tool"}), history);
    assert_eq!((&bridged[2], &bridged[4]), (&apart[2], &apart[3]));
}

#[test]
fn what_was_sent_is_sent_again_whatever_system_messages_follow() {
    let note = |text: &str| json!({"role": "system", "content": text});
    let back = |id: &str| user(json!([result(id, "r")]));
    let history = [
        user("x"),
        assistant(json!([call("toolu_1")])),
        back("toolu_1"),
        note("A"),
        assistant(json!([call("toolu_2"), call("toolu_3")])),
        user(json!([
            result("toolu_2", json!([image()])),
            result("toolu_3", json!([text("r"), text("s")]))
        ])),
        note("B"),
        note("C"),
        assistant("y"),
        user("z"),
        note("D"),
        assistant(json!([call("toolu_4")])),
        user(json!([result("toolu_4", "r"), text("w")])),
        note("E"),
        assistant(json!([call("toolu_5")])),
        back("toolu_5"),
    ];
    for overrides in [
        json!({}),
        json!({"single_tool_call": true, "alternating_roles": true}),
        json!({"tool_content_parts": "images", "cache_breakpoints": "prompt_cache_breakpoint"}),
        json!({"text_after_tool_results": "merge_into_last_tool"}),
    ] {
        let mut before = Vec::new();
        for end in 1..=history.len() {
            let answers = history.get(end).is_none_or(|next| next["role"] == "assistant");
            if history[end - 1]["role"] == "assistant" || !answers {
                continue;
            }
            let sent = messages_to(overrides.clone(), json!(history[..end]));
            let sent = sent.as_array().unwrap().clone();
            assert_eq!(sent.get(..before.len()), Some(before.as_slice()), "{overrides}");
            before = sent;
        }
    }
}

#[test]
fn a_system_message_never_stands_between_a_call_and_its_result() {
    let history = json!([
        user("x"),
        assistant(json!([call("toolu_1")])),
        {"role": "system", "content": [text("B"), text("C")]},
        user(json!([result("toolu_1", "r"), text("y")])),
    ]);
    let system = json!({"role": "system", "content": "B\n\nC"});
    assert_eq!(
        messages_to(json!({"mid_system": "in_place"}), history.clone()),
        json!([user("x"), calling(&["call_1"]), tool("call_1", "r"), user("y"), system])
    );
    assert_eq!(
        messages(history),
        json!([
            user("x"),
            calling(&["call_1"]),
            tool("call_1", "r"),
            user(json!([text("<system-message>\nB\n\nC\n</system-message>"), text("y")])),
        ])
    );
}

#[test]
fn a_system_message_for_one_turn_goes_when_the_user_speaks_again() {
    let note = json!({"role": "system", "content": "B", "clear_at": "next_user_message"});
    assert_eq!(
        messages(json!([user("x"), note, assistant("a"), user("y")])),
        json!([user("x"), assistant("a"), user("y")])
    );
    let shown = messages(json!([user("x"), note]));
    assert!(shown.to_string().contains("system-message"));
}

#[test]
fn the_last_system_message_decides_the_effort() {
    let request = json!({
        "output_config": {"effort": "low"},
        "messages": [user("x"), {"role": "system", "output_config": {"effort": "high"}}],
    });
    assert_eq!(sent_to("vllm", json!({}), request)["reasoning_effort"], "high");
}

#[test]
fn so_do_words_that_clients_write_by_themselves() {
    let beside = |words: &str| {
        let turn = user(json!([result("toolu_1", "r"), text(words)]));
        let sent = messages(json!([user("x"), assistant(json!([call("toolu_1")])), turn]));
        sent.as_array().unwrap()[2..].to_vec()
    };
    for words in [
        "Tool loaded.",
        "<system-reminder>\nThe task tools were not used.\n</system-reminder>",
        "<environment_details>\n# Time\nnoon\n</environment_details>",
        "[Image: source: a.png]",
    ] {
        assert_eq!(beside(words), [tool("call_1", &format!("r\n\n{words}"))]);
    }
    // What the user sent meanwhile is a person's, as a system message too.
    let meanwhile = "The user sent a new message while you were working:\nStop";
    let note = json!({"role": "system", "content": meanwhile});
    let turn = user(json!([result("toolu_1", "r")]));
    let sent = messages(json!([user("x"), assistant(json!([call("toolu_1")])), turn, note]));
    let told = format!("<system-message>\n{meanwhile}\n</system-message>");
    assert_eq!(sent.as_array().unwrap()[2..], [tool("call_1", "r"), user(&*told)]);
    for words in [
        "Go on",
        // Agents wrap what a person wrote.
        "<user_message>\nNow delete it\n</user_message>",
        "<environment_details>\nnoon\n</environment_details>\n<task>Delete it</task>",
        "<system-reminder>\nx\n</system-reminder>\nGo on",
        "<system-reminder>\nThe user sent a new message while you were working:\nStop\n</system-reminder>",
    ] {
        assert_eq!(beside(words), [tool("call_1", "r"), user(words)]);
    }
}
