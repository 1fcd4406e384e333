//! Conversations that were broken and would be refused for ever.

use super::*;

fn through(config: &Arc<Config>, messages: &[Value]) -> Turn {
    let body = request(messages, &[tool("look", &[])]);
    ask(config, &body, &strict(|_| says("ok")), false)
}

/// Tests that each history is refused as it is, and accepted once it is repaired.
#[test]
fn every_broken_history_is_accepted_after_its_repair() {
    let look = |id| use_of(id, "look", json!({}));
    let assistant = |blocks: &[Value]| json!({"role": "assistant", "content": blocks});
    let results = |blocks: &[Value]| json!({"role": "user", "content": blocks});
    let (a, b) = ("toolu_a", "toolu_b");
    for (what, history) in [
        ("no result", vec![user("q"), assistant(&[look(a)]), user("go on")]),
        (
            "some results",
            vec![user("q"), assistant(&[look(a), look(b)]), results(&[result(b, "r")])],
        ),
        (
            "a result in a later message",
            vec![
                user("q"),
                assistant(&[look(a)]),
                user("hm"),
                json!({"role": "assistant", "content": "wait"}),
                results(&[result(a, "r")]),
            ],
        ),
        ("an orphan", vec![user("q"), results(&[result(a, "r")])]),
        (
            "two results",
            vec![user("q"), assistant(&[look(a)]), results(&[result(a, "r"), result(a, "s")])],
        ),
        (
            "a result before its call",
            vec![user("q"), results(&[result(a, "r")]), assistant(&[look(a)]), user("x")],
        ),
        ("an open call at the end", vec![user("q"), assistant(&[look(a)])]),
        (
            "an interrupted parallel branch",
            vec![
                user("q"),
                assistant(&[look(a), look(b)]),
                results(&[
                    result(a, "r"),
                    json!({"type": "text", "text": "[Request interrupted by user]"}),
                ]),
            ],
        ),
    ] {
        let before = through(&off(), &history);
        assert_eq!(before.head.status, 400, "{what}");
        let after = through(&config(json!({})), &history);
        assert_eq!(after.head.status, 200, "{what}: {}", after.body);
        assert_eq!(after.header("x-creole-guard"), "pairing", "{what}");
        assert!(after.header("x-creole-warnings").contains("tool_result_"), "{what}");
    }
}

#[test]
fn calls_over_several_messages_and_n8n_pairs_need_no_repair() {
    let (a, b) = ("toolu_a", "toolu_b");
    for history in [
        // n8n makes pairs of calls that were made at once.
        vec![
            user("q"),
            call(a, "look", json!({"q": 1, "id": a})),
            answered(result(a, "[{\"error\":\"x\"}]")),
            call(b, "look", json!({"q": 2, "id": b})),
            answered(result(b, "r")),
        ],
        vec![
            user("q"),
            call(a, "look", json!({})),
            call(b, "look", json!({})),
            answered(result(a, "r")),
            answered(result(b, "r")),
        ],
    ] {
        let turn = through(&config(json!({})), &history);
        assert_eq!((turn.head.status, turn.header("x-creole-guard")), (200, ""));
        assert!(!turn.sent.to_string().contains("toolu_"), "{}", turn.sent);
    }
}

#[test]
fn a_conversation_that_ends_with_a_late_result_still_ends_with_the_user() {
    let late = [
        user("q"),
        call("toolu_a", "look", json!({})),
        user("go on"),
        json!({"role": "assistant", "content": "meanwhile"}),
        answered(result("toolu_a", "r")),
    ];
    let turn = through(&config(json!({})), &late);
    assert_eq!(turn.header("x-creole-warnings"), "tool_result_moved");
    let roles: Vec<_> = turn.sent["messages"].as_array().unwrap().iter().collect();
    assert_eq!(roles.last().unwrap()["role"], "user", "{:?}", turn.sent);
    assert_eq!(turn.tool_texts(), ["r"]);
}

#[test]
fn of_two_calls_with_one_id_the_first_keeps_the_first_result() {
    let calls =
        [use_of("toolu_a", "look", json!({"q": 1})), use_of("toolu_a", "look", json!({"q": 2}))];
    let history = [
        user("q"),
        json!({"role": "assistant", "content": calls}),
        json!({"role": "user", "content": [result("toolu_a", "one"), result("toolu_a", "two")]}),
    ];
    let turn = through(&config(json!({})), &history);
    assert_eq!(turn.tool_texts(), ["one"]);
    assert_eq!(turn.header("x-creole-warnings"), "tool_use_duplicate,tool_result_duplicate");
}

#[test]
fn a_failure_that_is_told_in_words_is_still_one() {
    let turn = through(&config(json!({})), &[user("q"), answered(failed("toolu_a", "boom"))]);
    let sent = turn.sent["messages"].to_string();
    assert!(sent.contains("[Tool result without a call: Error: boom]"), "{sent}");
}

#[test]
fn a_history_that_pairing_rejects_is_refused_as_by_any_other_guard() {
    let orphan = [json!({"role": "user", "content": [result("toolu_9", "r")]})];
    let rejects = json!({"guards": {"pairing": "reject"}});
    let is_strict = json!({"strict": true});
    for document in [rejects, is_strict] {
        for protocol in ["openai", "anthropic"] {
            let mut document = document.clone();
            document["upstreams"] = json!({"u": {"url": "http://u", "protocol": protocol}});
            let turn = through(&drive::config(&document.to_string()), &orphan);
            assert_eq!((turn.head.status, turn.asked), (400, 0), "{document}");
            assert!(turn.message().contains("unexpected `tool_use_id`"), "{}", turn.message());
            assert_eq!(turn.header("x-should-retry"), "false", "{document}");
            assert_eq!(turn.header("x-creole-guard"), "pairing", "{document}");
            assert_eq!(turn.report.warnings.guards(), ["pairing"]);
            assert_eq!(turn.report.failed_by, Some(Cause::Guard));
        }
    }
}
