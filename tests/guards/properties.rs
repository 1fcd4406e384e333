//! Properties of the guards that hold for every conversation.

use creole::observe::warning::Warnings;
use creole::protocols as translate;
use creole::protocols::{Refused, Translated};
use proptest::prelude::*;

use super::*;

/// Conversations, right and wrong ones, with few ids so that they meet.
fn any_history() -> impl Strategy<Value = Vec<Value>> {
    let id = || prop::sample::select(vec!["toolu_aaaa", "toolu_bbbb", "toolu_cccc"]);
    let words =
        || prop::sample::select(vec!["", "fine", "Error: no", "[{\"error\":\"x\"}]", "must"]);
    let input = prop::sample::select(vec![json!({}), json!({"command": "ls"}), json!({"id": 1})]);
    let name = prop::sample::select(vec!["shell", "look", "gone"]);
    let of_user = prop_oneof![
        6 => (id(), words(), any::<bool>()).prop_map(|(id, words, is_error)| {
            if is_error { failed(id, words) } else { result(id, words) }
        }),
        1 => words().prop_map(|words| json!({"type": "text", "text": words})),
    ];
    let of_assistant = prop_oneof![
        6 => (id(), name, input).prop_map(|(id, name, input)| use_of(id, name, input)),
        1 => words().prop_map(|words| json!({"type": "text", "text": words})),
    ];
    let message = prop_oneof![
        prop::collection::vec(of_user, 0..4).prop_map(user),
        prop::collection::vec(of_assistant, 0..4)
            .prop_map(|content| json!({"role": "assistant", "content": content})),
    ];
    prop::collection::vec(message, 1..16)
}

/// Calls with one result each; those of one turn differ.
fn right_history() -> impl Strategy<Value = Vec<Value>> {
    prop::collection::vec((1usize..4, any::<bool>(), any::<bool>()), 1..8).prop_map(|turns| {
        let mut messages = vec![user("begin")];
        let mut number = 0;
        for (count, speaks, backwards) in turns {
            let ids: Vec<String> =
                (number..number + count).map(|at| format!("toolu_{at}")).collect();
            number += count;
            let input = |id: &String| json!({"command": format!("for {id}")});
            let calls = ids.iter().map(|id| use_of(id, "shell", input(id)));
            messages.push(json!({"role": "assistant", "content": calls.collect::<Vec<_>>()}));
            let mut back: Vec<Value> =
                ids.iter().map(|id| result(id, format!("said {id}"))).collect();
            if backwards {
                back.reverse();
            }
            if speaks {
                back.push(json!({"type": "text", "text": "go on"}));
            }
            messages.push(user(back));
        }
        messages
    })
}

fn tools() -> Vec<Value> {
    vec![tool("shell", &["command"]), tool("look", &[])]
}

/// Whether a message holds nothing that could be sent.
fn says_nothing(message: &Value) -> bool {
    let blocks = message["content"].as_array().unwrap();
    blocks.iter().all(|block| block["type"] == "text" && block["text"] == "")
}

fn translated(
    config: &Config,
    messages: &[Value],
    refusal: Option<&str>,
) -> Option<(Vec<u8>, Warnings)> {
    let body = request(messages, &tools()).to_string();
    let mut warnings = Warnings::new(false);
    let translated = match refusal {
        None => translate::request(&body, config, &[], &mut warnings),
        Some(refusal) => {
            let refused = [Refused::Calls(refusal.to_owned())];
            translate::request_without(&refused, &body, config, &[], &mut warnings)
        }
    };
    match translated {
        Ok(Translated::Send { body, .. }) => Some((body, warnings)),
        Ok(Translated::Answer { .. }) => panic!("nothing is answered here"),
        Err(error) => {
            assert_eq!(error.message, "messages: text content blocks must be non-empty");
            // All else must be repaired.
            let silent_end =
                messages.last().is_some_and(|last| last["role"] == "user" && says_nothing(last));
            assert!(silent_end || messages.iter().all(says_nothing), "refused: {messages:?}");
            None
        }
    }
}

/// A Chat Completions conversation as the client that made it would write it.
fn back(sent: &Value) -> Vec<Value> {
    let mut messages: Vec<Value> = Vec::new();
    for message in sent["messages"].as_array().unwrap() {
        let block = match message["role"].as_str().unwrap() {
            "tool" => {
                vec![result(&client_id(&message["tool_call_id"]), message["content"].clone())]
            }
            _ => {
                let calls = message["tool_calls"].as_array().into_iter().flatten();
                let mut blocks = match &message["content"] {
                    Value::String(text) if !text.is_empty() => {
                        vec![json!({"type": "text", "text": text})]
                    }
                    Value::Array(parts) => parts.clone(),
                    _ => Vec::new(),
                };
                blocks.extend(calls.map(|call| {
                    let function = &call["function"];
                    let input = serde_json::from_str(function["arguments"].as_str().unwrap());
                    let name = function["name"].as_str().unwrap();
                    use_of(&client_id(&call["id"]), name, input.unwrap())
                }));
                blocks
            }
        };
        let role = if message["role"] == "assistant" { "assistant" } else { "user" };
        messages.push(json!({"role": role, "content": block}));
    }
    messages
}

fn client_id(id: &Value) -> String {
    format!("toolu_{}", id.as_str().unwrap().strip_prefix("call_").unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn what_is_sent_passes_the_strict_checker(history in any_history()) {
        for guards in [json!({}), json!({"tool_turns_max": 2}), json!({"breaker": {"failures_max": 1, "withhold_after": 2, "action": "answer"}})] {
            if let Some((body, _)) = translated(&config(guards), &history, None) {
                let sent: Value = serde_json::from_slice(&body).unwrap();
                let checked = chat::check(&sent, chat::Rules::default());
                prop_assert_eq!(checked, Ok(()), "{}", sent);
            }
        }
    }

    #[test]
    fn repair_is_idempotent(history in any_history()) {
        let guards = config(json!({"breaker": {"failures_max": 0}}));
        if let Some((once, _)) = translated(&guards, &history, None) {
            let once: Value = serde_json::from_slice(&once).unwrap();
            let (twice, warnings) = translated(&guards, &back(&once), None).unwrap();
            let twice: Value = serde_json::from_slice(&twice).unwrap();
            prop_assert_eq!(&once["messages"], &twice["messages"]);
            prop_assert!(!warnings.guards().contains(&"pairing"), "{:?}", warnings);
        }
    }

    #[test]
    fn valid_pairs_survive_what_is_broken_around_them(
        history in right_history(), at in any::<prop::sample::Index>(), how in 0..3
    ) {
        let mut broken = history;
        let at = at.index(broken.len());
        match how {
            0 => broken.insert(at, answered(result("toolu_nobody", "lost"))),
            1 => broken.insert(at, call("toolu_unanswered", "look", json!({}))),
            _ => { broken.truncate(at + 1); }
        }
        let ids: Vec<String> = broken.iter().filter(|message| message["role"] == "user")
            .flat_map(|message| message["content"].as_array().cloned().unwrap_or_default())
            .filter_map(|block| Some(block["tool_use_id"].as_str()?.to_owned()))
            .filter(|id| id != "toolu_nobody")
            .collect();
        let (body, _) = translated(&config(json!({})), &broken, None).unwrap();
        let sent: Value = serde_json::from_slice(&body).unwrap();
        chat::check(&sent, chat::Rules::default()).unwrap();
        for id in ids {
            let upstream = id.replace("toolu_", "call_");
            let messages = sent["messages"].as_array().unwrap();
            let found = messages.iter().find(|message| message["tool_call_id"] == upstream.as_str());
            prop_assert_eq!(&found.unwrap()["content"], &json!(format!("said {id}")));
        }
    }

    #[test]
    fn a_request_in_which_nothing_is_wrong_is_not_changed(history in right_history()) {
        let on = config(json!({"tool_turns_max": 1000}));
        let (guarded, warnings) = translated(&on, &history, None).unwrap();
        prop_assert_eq!(warnings.header(), None);
        prop_assert!(warnings.guards().is_empty());
        let (plain, _) = translated(&off(), &history, None).unwrap();
        prop_assert_eq!(guarded, plain);
    }

    #[test]
    fn a_second_request_passes_the_checker_without_the_calls(history in any_history(), some in any::<bool>()) {
        let refusal = if some { "tool_call_id call_aaaa not found" } else { "no id" };
        if let Some((body, _)) = translated(&config(json!({})), &history, Some(refusal)) {
            let sent: Value = serde_json::from_slice(&body).unwrap();
            prop_assert_eq!(chat::check(&sent, chat::Rules::default()), Ok(()), "{}", sent);
            let text = sent["messages"].to_string();
            let offending = if some { "\"call_aaaa\"" } else { "tool_calls" };
            prop_assert!(!text.contains(offending), "{}", text);
        }
    }
}
