//! Properties that hold for every request.

use proptest::prelude::*;

use super::support::chat;
use super::*;

/// Blocks and messages that clients could send, right and wrong ones.
fn any_history() -> impl Strategy<Value = Vec<Value>> {
    let id = prop_oneof![Just("toolu_a"), Just("toolu_b"), Just("toolu_c"), Just("bad id\u{e9}")];
    let of_user = prop_oneof![
        3 => id.clone().prop_map(|id| result(id, "r")),
        1 => id.clone().prop_map(|id| result(id, [image(), text("x")])),
        2 => ".{0,6}".prop_map(|words| text(&words)),
        1 => Just(image()),
        1 => Just(json!({"type": "compaction", "content": "S"})),
    ];
    let of_assistant = prop_oneof![
        3 => id.prop_map(call),
        2 => ".{0,6}".prop_map(|words| text(&words)),
        1 => Just(json!({"type": "thinking", "thinking": "t", "signature": "s"})),
        1 => Just(json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}})),
    ];
    let message = prop_oneof![
        4 => prop::collection::vec(of_user, 0..4).prop_map(user),
        4 => prop::collection::vec(of_assistant, 0..4).prop_map(assistant),
        1 => Just(json!({"role": "system", "content": "note"})),
    ];
    prop::collection::vec(message, 1..9)
}

/// A conversation in which every call has its result, in the order of the calls.
fn right_history() -> impl Strategy<Value = Vec<Value>> {
    prop::collection::vec((0usize..4, any::<bool>()), 1..6).prop_map(|turns| {
        let mut history = vec![user("begin")];
        let mut number = 0;
        for (count, speaks) in turns {
            let ids: Vec<String> = (0..count).map(|at| format!("toolu_{}", number + at)).collect();
            number += count;
            let mut said: Vec<Value> = ids.iter().map(|id| call(id)).collect();
            if speaks || said.is_empty() {
                said.insert(0, text("I say"));
            }
            history.push(assistant(said));
            let mut back: Vec<Value> = ids.iter().map(|id| result(id, "r")).collect();
            if speaks || back.is_empty() {
                back.push(text("you say"));
            }
            history.push(user(back));
        }
        history
    })
}

/// Whether a message may hold nothing that is sent.
fn says_nothing(message: &Value) -> bool {
    let nothing = |block: &Value| match block["type"].as_str().unwrap() {
        "text" => block["text"] == "",
        // Upstreams that do not take them get none.
        "thinking" | "server_tool_use" => true,
        _ => false,
    };
    message["content"].as_array().unwrap().iter().all(nothing)
}

fn presets() -> impl Strategy<Value = Config> {
    let profile = prop::sample::select(creole::profile::presets::PRESETS);
    let overrides = prop::sample::select(vec![
        json!({}),
        json!({"single_tool_call": true, "alternating_roles": true}),
        json!({"mid_system": "in_place", "system_role": "user"}),
        json!({"mid_system": "merge_to_top", "text_after_tool_results": "merge_into_last_tool"}),
        json!({"foreign_thinking": "forward", "server_history": "drop", "cache_breakpoints": "prompt_cache_breakpoint"}),
        json!({"tool_content_parts": "images", "empty_assistant_content": "absent"}),
        json!({"tool_content_parts": "text", "cache_breakpoints": "cache_control"}),
    ]);
    (profile, overrides).prop_map(|(profile, overrides)| config(profile, overrides, json!({})))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_history_is_repaired(history in any_history(), config in presets()) {
        let body = whole(json!({"system": "S", "messages": history}));
        let (outcome, _) = try_with(&config, &body);
        let rules = chat::Rules { tool_choice_any: true, ..chat::Rules::default() };
        match outcome {
            Ok((sent, _)) => prop_assert_eq!(chat::check(&sent, rules), Ok(()), "{}", sent),
            Err(error) => {
                let only_system = history.iter().all(|message| message["role"] == "system");
                let expected = match only_system {
                    true => "messages: first message must use the \"user\" role",
                    false => "messages: text content blocks must be non-empty",
                };
                prop_assert_eq!(&error.message, expected);
                // All else must be repaired.
                let speaks = |message: &&Value| message["role"] != "system";
                let nobody = history.iter().filter(speaks).all(says_nothing);
                let last = history.iter().rfind(speaks);
                let silent_end = last.is_some_and(|last| last["role"] == "user" && says_nothing(last));
                prop_assert!(only_system || nobody || silent_end, "refused: {:?}", history);
            }
        }
    }

    #[test]
    fn a_right_history_is_not_touched(history in right_history(), wrong in any_history()) {
        is_not_touched(&history);
        needs_no_repair_if_accepted(&wrong);
    }

    #[test]
    fn damaged_bodies_never_panic_and_never_give_broken_json(
        history in any_history(), cut in any::<prop::sample::Index>(), byte in 0u8..128, strict in any::<bool>()
    ) {
        let body = whole(json!({
            "system": [text("S")], "messages": history, "thinking": {"type": "adaptive"},
            "metadata": {"user_id": "{\"session_id\":\"s\"}"}, "stop_sequences": ["x"],
        }));
        let config = config("openai-chat", json!({}), json!({"strict": strict}));
        let mut bytes = body.clone().into_bytes();
        let at = cut.index(bytes.len());
        bytes[at] = byte;
        if let Ok(damaged) = String::from_utf8(bytes) {
            // Broken JSON makes `try_with` panic.
            let _ = try_with(&config, &damaged);
        }
        if let Some(cut) = body.get(..at) {
            prop_assert!(try_with(&config, cut).0.is_err());
        }
    }
}

#[test]
fn errors_do_not_repeat_what_the_client_said() {
    let secret = "private words";
    let body = whole(
        json!({"messages": [user(json!([text(secret), {"type": "text", "text": [secret]}]))]}),
    );
    let error = try_with(&Config::default(), &body).0.unwrap_err();
    assert_eq!(error.message, "messages[0].content[1].text: expected a string, but found an array");
}

/// The configuration of a guard that pairs calls with results in a way. The breaker is off: it
/// speaks up where a right history repeats itself.
fn pairing(how: &str) -> Config {
    let guards = json!({"pairing": how, "breaker": {"failures_max": 0}});
    config("default", json!({}), json!({"guards": guards}))
}

fn is_not_touched(history: &[Value]) {
    let body = whole(json!({"messages": history}));
    let (repaired, warnings) = try_with(&pairing("repair"), &body);
    assert_eq!(warnings, "");
    let repaired = repaired.unwrap().0;
    assert_eq!(repaired, try_with(&pairing("off"), &body).0.unwrap().0);
    assert_eq!(repaired, try_with(&pairing("reject"), &body).0.unwrap().0);
}

fn needs_no_repair_if_accepted(history: &[Value]) {
    let body = whole(json!({"messages": history}));
    if try_with(&pairing("reject"), &body).0.is_ok() {
        let (_, warnings) = try_with(&pairing("repair"), &body);
        assert!(!warnings.contains("tool_result"), "{warnings}");
    }
}

#[test]
fn a_call_that_is_made_again_and_again_is_not_touched() {
    let mut history = vec![user("begin")];
    for id in ["toolu_0", "toolu_1", "toolu_2"] {
        history.extend([assistant([call(id)]), user([result(id, "r")])]);
    }
    is_not_touched(&history);
}

#[test]
fn two_results_of_a_call_with_an_unusual_id_are_not_accepted_unrepaired() {
    let id = "bad id\u{e9}";
    let results = [result(id, [image(), text("x")]), text(""), result(id, "r")];
    needs_no_repair_if_accepted(&[assistant([call(id)]), user(results)]);
}
