//! Tool calls without results, results without calls, and the real API's rules.

use super::*;

#[test]
fn a_missing_result_is_made_up() {
    assert_eq!(
        messages(json!([
            user("q"),
            assistant(json!([call("toolu_1"), call("toolu_2")])),
            user(json!([result("toolu_2", "r"), text("go on")]))
        ])),
        json!([
            user("q"),
            calling(&["call_1", "call_2"]),
            tool("call_1", "Error: Tool result is missing."),
            tool("call_2", "r"),
            user("go on"),
        ])
    );
    let last = json!({"messages": [user("q"), assistant(json!([call("toolu_1")]))]});
    assert_eq!(warned(last.clone()), "tool_result_missing");
    assert_eq!(sent(last)["messages"][2], tool("call_1", "Error: Tool result is missing."));
    let then = messages(json!([user("q"), assistant(json!([call("toolu_1")])), user("stop")]));
    assert_eq!(then[2]["role"], "tool");
    assert_eq!(then[3], user("stop"));
}

#[test]
fn a_result_elsewhere_is_moved() {
    let later = json!({"messages": [
        user("q"), assistant(json!([call("toolu_1")])), user("hm"), assistant("wait"), user(json!([result("toolu_1", "r")])),
    ]});
    assert_eq!(warned(later.clone()), "tool_result_moved");
    assert_eq!(
        sent(later)["messages"],
        json!([
            user("q"),
            calling(&["call_1"]),
            tool("call_1", "r"),
            user("hm"),
            assistant("wait"),
            // Else the model would go on with its own words.
            user("[The result of an earlier tool call has come. It stands with its call.]"),
        ])
    );
    // Nor would the model begin.
    let first = messages(json!([
        user(json!([result("toolu_1", "r")])),
        assistant(json!([call("toolu_1")])),
        user("x"),
    ]));
    assert_eq!(
        first,
        json!([
            user("[The result of an earlier tool call has come. It stands with its call.]"),
            calling(&["call_1"]),
            tool("call_1", "r"),
            user("x"),
        ])
    );
    let split = messages(json!([
        user("q"),
        assistant(json!([call("toolu_1")])),
        assistant(json!([call("toolu_2")])),
        user(json!([result("toolu_1", "a")])),
        user(json!([result("toolu_2", "b")])),
    ]));
    assert_eq!(
        split,
        json!([
            user("q"),
            calling(&["call_1", "call_2"]),
            tool("call_1", "a"),
            tool("call_2", "b")
        ])
    );
}

/// Returns the messages sent for the whole history, and asserts that they begin with those sent for
/// its first messages.
#[track_caller]
fn grown(history: &Value, first: usize) -> Value {
    let all = history.as_array().unwrap();
    let before = messages(json!(all[..first]));
    let after = messages(history.clone());
    let before = before.as_array().unwrap();
    assert_eq!(after.as_array().unwrap().get(..before.len()), Some(&before[..]), "{after}");
    after
}

#[test]
fn where_a_late_result_came_the_user_has_spoken_ever_after() {
    let moved = user("[The result of an earlier tool call has come. It stands with its call.]");
    let history = json!([
        user("q"),
        assistant(json!([call("toolu_1"), call("toolu_2")])),
        user(json!([result("toolu_1", "a")])),
        assistant("One is missing."),
        user(json!([result("toolu_2", "b")])),
        assistant("Both are there."),
        user("thanks"),
    ]);
    assert_eq!(
        grown(&history, 5),
        json!([
            user("q"),
            calling(&["call_1", "call_2"]),
            tool("call_1", "a"),
            tool("call_2", "b"),
            assistant("One is missing."),
            moved,
            assistant("Both are there."),
            user("thanks"),
        ])
    );
    // With a system message behind it, and at the beginning.
    let history = json!([
        user(json!([result("toolu_1", "a")])),
        assistant(json!([call("toolu_1")])),
        user("x"),
        assistant(json!([call("toolu_2")])),
        user("y"),
        assistant("I wait."),
        user(json!([result("toolu_2", "b")])),
        {"role": "system", "content": "S"},
        user("z"),
    ]);
    let config = config("openai-chat", json!({}), json!({}));
    let up = |messages: &[Value]| {
        let (sent, _) = try_with(&config, &whole(json!({"messages": messages}))).0.unwrap();
        sent["messages"].as_array().unwrap().clone()
    };
    let all = history.as_array().unwrap();
    let (before, after) = (up(&all[..7]), up(all));
    assert_eq!((&before[0], &before[8]), (&moved, &moved));
    assert_eq!(after[..9], before[..]);
    assert_eq!(after[9..], [json!({"role": "system", "content": "S"}), user("z")]);
}

#[test]
fn a_users_turn_without_a_word_still_stands_between_two_of_the_assistant() {
    let empties = [json!(""), json!([]), json!([text("")])];
    let note = json!({"role": "system", "content": ""});
    for (empty, system) in empties.iter().flat_map(|empty| [(empty, false), (empty, true)]) {
        let mut history = json!([
            user("q"),
            assistant(json!([call("toolu_1")])),
            user(empty.clone()),
            assistant(json!([text("Trying again."), call("toolu_2")])),
            user(json!([result("toolu_2", "r")])),
        ]);
        if system {
            history.as_array_mut().unwrap().insert(3, note.clone());
        }
        let mut again = calling(&["call_2"]);
        again["content"] = json!("Trying again.");
        assert_eq!(
            grown(&history, 3),
            json!([
                user("q"),
                calling(&["call_1"]),
                tool("call_1", "Error: Tool result is missing."),
                again,
                tool("call_2", "r"),
            ])
        );
    }
    // At the end it is none to which a model could answer.
    let off = config("default", json!({}), json!({"guards": {"pairing": "off"}}));
    let last = json!([user("q"), assistant(json!([call("toolu_1")])), user("")]);
    let error = try_with(&off, &whole(json!({"messages": last}))).0.unwrap_err();
    assert_eq!(error.message, "messages: text content blocks must be non-empty");
}

#[test]
fn orphans_become_words_and_the_last_of_two_results_counts() {
    let orphan =
        json!({"messages": [user("q"), user(json!([result("toolu_9", [text("lost"), image()])]))]});
    assert_eq!(warned(orphan.clone()), "tool_result_orphan");
    assert_eq!(
        sent(orphan)["messages"],
        json!([user(json!([text("[Tool result without a call: lost]"), image_part(), text("q")]))])
    );
    let twice = json!({"messages": [user("q"), assistant(json!([call("toolu_1")])), user(json!([result("toolu_1", "a"), result("toolu_1", "b")]))]});
    assert_eq!(warned(twice.clone()), "tool_result_duplicate");
    let expected = json!([user("q"), calling(&["call_1"]), tool("call_1", "b")]);
    assert_eq!(sent(twice)["messages"], expected);
}

#[test]
fn orphans_stand_as_they_were_written() {
    let history = json!([
        assistant(json!([call("toolu_7")])),
        user(json!([result("toolu_7", "0")])),
        assistant("a"),
        user(json!([
            result("toolu_9", "1"),
            result("toolu_3", "2"),
            result("toolu_7", "3"),
            result("toolu_3", "4"),
            text("b"),
        ])),
    ]);
    let orphan = |said: &str| text(&format!("[Tool result without a call: {said}]"));
    let words = json!([orphan("1"), orphan("2"), orphan("3"), orphan("4"), text("b")]);
    assert_eq!(messages(history)[3], user(words));
}

#[test]
fn ids_that_repeat_belong_to_the_call_before_them() {
    let history = json!([
        user("q"),
        assistant(json!([call("toolu_1")])),
        user(json!([result("toolu_1", "a")])),
        assistant(json!([call("toolu_1")])),
        user(json!([result("toolu_1", "b")])),
    ]);
    assert_eq!(warned(json!({"messages": history})), "");
    let sent = messages(history);
    assert_eq!((&sent[2]["content"], &sent[4]["content"]), (&json!("a"), &json!("b")));
}

#[test]
fn strict_mode_and_reject_say_what_the_real_api_says() {
    let pair = |second: Value| {
        json!([user("q"), assistant(json!([call("t1"), call("t2")])), user(second)])
    };
    let reject = config("default", json!({}), json!({"guards": {"pairing": "reject"}}));
    for (history, message) in [
        (
            pair(json!("no")),
            "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: t1, t2. Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
        ),
        (
            pair(json!([result("t1", "a"), text("first"), result("t2", "b")])),
            "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: t2. Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
        ),
        (
            pair(json!([result("t1", "a"), result("t2", "b"), result("t3", "c")])),
            "messages.2.content.2: unexpected `tool_use_id` found in `tool_result` blocks: t3. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.",
        ),
        (
            pair(json!([result("t1", "a"), result("t2", "b"), result("t1", "c")])),
            "messages.2.content.2: each tool_use must have a single result. Found multiple `tool_result` blocks with id: t1",
        ),
        (
            json!([
                user("q"),
                assistant(json!([call("t1"), call("t1")])),
                user(json!([result("t1", "a")]))
            ]),
            "messages.1.content.1: `tool_use` ids must be unique",
        ),
        (
            json!([user("q"), assistant("a"), user(json!([call("t1")]))]),
            "messages.2.content.0: `tool_use` blocks can only be in `assistant` messages",
        ),
        (
            json!([user("q"), assistant(json!([result("t1", "a")])), user("b")]),
            "messages.1.content.0: `tool_result` blocks can only be in `user` messages",
        ),
    ] {
        assert_eq!(refused_strictly(json!({"messages": history})), message);
        let error = try_with(&reject, &whole(json!({"messages": history}))).0.unwrap_err();
        assert_eq!(error.message, message);
    }
    let good = json!({"messages": pair(json!([result("t2", "a"), result("t1", "b"), text("c")]))});
    assert!(try_with(&reject, &whole(good)).0.is_ok());
}

#[test]
fn a_call_is_answered_in_the_message_after_it_and_no_later() {
    let reject = config("default", json!({}), json!({"guards": {"pairing": "reject"}}));
    let round = |id: &str| [assistant(json!([call(id)])), user(json!([result(id, "r")]))];
    let [[one, of_one], [two, of_two]] = [round("t1"), round("t2")];
    let good = json!({"messages": [user("q"), one, of_one, two, of_two]});
    assert!(try_with(&reject, &whole(good)).0.is_ok());
    let late = json!({"messages": [user("q"), one, of_one, assistant("a"), of_one]});
    let error = try_with(&reject, &whole(late.clone())).0.unwrap_err();
    assert!(
        error.message.starts_with("messages.4.content.0: unexpected `tool_use_id`"),
        "{error:?}"
    );
    assert_eq!(refused_strictly(late), error.message);
}

/// A tool loop whose messages of the assistant begin with these blocks.
fn tool_loop(first: &[Option<Value>]) -> Value {
    let mut messages = vec![user("q")];
    for (at, first) in first.iter().enumerate() {
        let id = format!("t{at}");
        let blocks: Vec<Value> = first.iter().cloned().chain([call(&id)]).collect();
        messages.extend([assistant(blocks), user(json!([result(&id, "r")]))]);
    }
    json!({
        "max_tokens": 4096,
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "messages": messages,
    })
}

fn loops_need_thinking() {
    let thinking = json!({"type": "thinking", "thinking": "t", "signature": "s"});
    let message = |at: usize, kind: &str| {
        format!(
            "messages.{at}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{kind}`. When \
             `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding \
             the lastmost set of `tool_use` and `tool_result` blocks). To avoid this requirement, disable \
             `thinking`."
        )
    };
    assert_eq!(refused_strictly(tool_loop(&[Some(text("a"))])), message(1, "text"));
    assert_eq!(refused_strictly(tool_loop(&[None, None])), message(3, "tool_use"));
    let strict = config("default", json!({}), json!({"strict": true}));
    let mut over = tool_loop(&[None]);
    over["messages"].as_array_mut().unwrap().push(assistant("a"));
    over["messages"].as_array_mut().unwrap().push(user("r"));
    let mut adaptive = tool_loop(&[None]);
    adaptive["thinking"] = json!({"type": "adaptive"});
    for good in [
        tool_loop(&[Some(thinking.clone())]),
        tool_loop(&[Some(thinking), None]),
        tool_loop(&[Some(json!({"type": "redacted_thinking", "data": "d"}))]),
        over,
        adaptive,
    ] {
        assert_eq!(try_with(&strict, &whole(good)).0.map(drop), Ok(()));
    }
}

#[test]
fn strict_mode_allows_four_blocks_with_cache_control() {
    let cached = |mut block: Value| {
        block["cache_control"] = json!({"type": "ephemeral"});
        block
    };
    let request = |system: usize| {
        let tool = json!({"name": "w", "input_schema": {"type": "object", "properties": {}}});
        let mut plain = tool.clone();
        plain["name"] = json!("x");
        plain["cache_control"] = json!(null);
        json!({
            "cache_control": {"type": "ephemeral"},
            "tools": [cached(tool), plain],
            "system": vec![cached(text("s")); system],
            "messages": [
                user(json!([cached(text("q"))])),
                assistant(json!([call("t")])),
                user(json!([cached(result("t", "r"))])),
            ],
        })
    };
    assert_eq!(
        refused_strictly(request(2)),
        "A maximum of 4 blocks with cache_control may be provided. Found 5."
    );
    let strict = config("default", json!({}), json!({"strict": true}));
    assert_eq!(try_with(&strict, &whole(request(1))).0.map(drop), Ok(()));
    assert_eq!(warned(request(2)), "");
}

#[test]
fn strict_mode_enforces_the_rules_of_the_conversation() {
    for (request, message) in [
        (json!({"messages": []}), "messages: at least one message is required"),
        (
            json!({"messages": [assistant("a"), user("b")]}),
            "messages: first message must use the \"user\" role",
        ),
        (
            json!({"messages": [user(json!([])), assistant("a")]}),
            "messages.0: all messages must have non-empty content except for the optional final assistant message",
        ),
        (
            json!({"messages": [user("q"), assistant(""), user("r")]}),
            "messages.1: all messages must have non-empty content except for the optional final assistant message",
        ),
        (
            json!({"messages": [user([text("")])]}),
            "messages: text content blocks must be non-empty",
        ),
        (
            json!({"messages": [user(" \n")]}),
            "messages: text content blocks must contain non-whitespace text",
        ),
        (
            json!({"messages": [user("q"), assistant("a ")]}),
            "messages: final assistant content cannot end with trailing whitespace",
        ),
        (
            json!({"messages": [user("q"), assistant(json!([call("a.b")])), user(json!([result("a.b", "r")]))]}),
            "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
        ),
        (
            json!({"max_tokens": 1024, "thinking": {"type": "enabled", "budget_tokens": 1024}}),
            "`max_tokens` must be greater than `thinking.budget_tokens`",
        ),
        (
            json!({"max_tokens": 4096, "thinking": {"type": "enabled", "budget_tokens": 1024},
                   "tools": [{"name": "w", "input_schema": {"type": "object", "properties": {}}}], "tool_choice": {"type": "any"}}),
            "Thinking may not be enabled when tool_choice forces tool use.",
        ),
    ] {
        assert_eq!(refused_strictly(request), message);
    }
    loops_need_thinking();
    let compaction = json!({"type": "compaction", "content": "S"});
    let config = config("default", json!({}), json!({"strict": true}));
    let compacted = whole(json!({"messages": [assistant(json!([compaction])), user("b")]}));
    assert!(try_with(&config, &compacted).0.is_ok());
}
