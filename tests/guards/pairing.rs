//! Conversations that were broken and would be refused for ever.

use super::*;

fn through(config: &Arc<Config>, messages: &[Value]) -> Turn {
    let body = request(messages, &[tool("look", &[])]);
    ask(config, &body, &strict(|_| says("ok")), false)
}

/// Each history is refused as it is, and accepted once it is repaired.
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
