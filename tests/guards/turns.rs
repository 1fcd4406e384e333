//! The limit of turns with tool calls.

use creole::carry::signature::{Signature, SignatureField, fnv1a64};

use super::*;

fn looks(count: usize) -> Vec<Value> {
    rounds(count, |at, id| (call(id, "look", json!({"n": at})), result(id, format!("r{at}"))))
}

fn limited(action: &str) -> Arc<Config> {
    config(json!({"tool_turns_max": 3, "tool_turns_action": action}))
}

fn sent(config: &Arc<Config>, messages: &[Value]) -> Turn {
    let body = request(messages, &[tool("look", &[])]);
    ask(config, &body, &|_| (200, says("ok")), false)
}

#[test]
fn a_header_counts_the_turns_since_a_person_wrote() {
    let config = limited("wind_down");
    assert_eq!(sent(&config, &looks(0)).header("x-creole-tool-turn"), "0/3");
    let two = sent(&config, &looks(2));
    assert_eq!((two.header("x-creole-tool-turn"), two.header("x-creole-guard")), ("2/3", ""));
    assert_eq!(two.tools(), ["look"]);
    let mut messages = looks(5);
    messages.push(user("And now this"));
    messages.extend(looks(1).split_off(1));
    assert_eq!(sent(&config, &messages).header("x-creole-tool-turn"), "1/3");
    // Off by default: no header.
    assert_eq!(sent(&super::config(json!({})), &looks(5)).header("x-creole-tool-turn"), "");
}

#[test]
fn the_calls_that_n8n_took_apart_are_one_turn() {
    let mut messages = looks(4);
    let ids = messages.iter().filter_map(|it| it["content"][0]["tool_use_id"].as_str());
    let call_inputs = ids.map(|id| (id.to_owned(), "{}".to_owned())).collect();
    let own = Signature {
        full_text: Some("hm".to_owned()),
        call_inputs,
        ..Signature::of(SignatureField::Reasoning, fnv1a64(b""))
    };
    let thinking = json!({"type": "thinking", "thinking": "", "signature": own.encode().0});
    for message in messages.iter_mut().filter(|it| it["role"] == "assistant") {
        message["content"].as_array_mut().unwrap().insert(0, thinking.clone());
    }
    let turn = sent(&limited("wind_down"), &messages);
    assert_eq!((turn.header("x-creole-tool-turn"), turn.tools().len()), ("1/3", 1));
    assert_eq!(turn.tool_texts(), ["r0", "r1", "r2", "r3"]);
}

#[test]
fn at_the_limit_the_model_answers_without_tools() {
    let turn = sent(&limited("wind_down"), &looks(3));
    assert!(turn.tools().is_empty() && turn.sent.get("tool_choice").is_none());
    assert_eq!(turn.header("x-creole-tool-turn"), "3/3");
    assert_eq!(turn.header("x-creole-guard"), "tool_turns");
    assert_eq!(turn.body["stop_reason"], "end_turn");
    let mut body = request(&looks(3), &[tool("look", &[])]);
    body["tool_choice"] = json!({"type": "tool", "name": "look"});
    let imitates = |_: &Value| (200, calls("look", &json!({})));
    let turn = ask(&limited("wind_down"), &body, &imitates, false);
    assert_eq!(turn.body["stop_reason"], "end_turn");
    assert_eq!(turn.body["content"][0]["type"], "text");
}

#[test]
fn at_the_limit_an_agent_keeps_the_tool_by_which_it_answers() {
    for name in ["format_final_json_response", "final_result_city", "StructuredOutput"] {
        let body = request(&looks(3), &[tool("look", &[]), tool(name, &[])]);
        let answers = |_: &Value| (200, calls(name, &json!({})));
        let turn = ask(&limited("wind_down"), &body, &answers, false);
        assert_eq!(turn.tools(), [name]);
        assert_eq!(turn.sent["tool_choice"], "required");
        assert_eq!(turn.body["stop_reason"], "tool_use");
        for other in ["look", "made_up"] {
            let goes_on = |_: &Value| (200, calls(other, &json!({})));
            let turn = ask(&limited("wind_down"), &body, &goes_on, false);
            assert_eq!(turn.body["stop_reason"], "end_turn", "{other}");
        }
    }
    let mut body = request(&looks(3), &[tool("look", &[]), tool("final_results_lookup", &[])]);
    let turn = ask(&limited("wind_down"), &body, &|_| (200, says("ok")), false);
    assert!(turn.tools().is_empty());
    // What the client chose stands.
    body["tools"] = json!([tool("final_result_a", &[]), tool("final_result_b", &[])]);
    body["tool_choice"] = json!({"type": "tool", "name": "final_result_b"});
    let turn = ask(&limited("wind_down"), &body, &|_| (200, says("ok")), false);
    assert_eq!(turn.sent["tool_choice"]["function"]["name"], "final_result_b");
    body["tool_choice"] = json!({"type": "none"});
    let calls_it = |_: &Value| (200, calls("final_result_a", &json!({})));
    let turn = ask(&limited("wind_down"), &body, &calls_it, false);
    assert_eq!(
        (turn.sent.get("tool_choice"), &turn.body["stop_reason"]),
        (None, &json!("end_turn"))
    );
}

#[test]
fn at_the_limit_the_turn_can_be_ended_or_refused() {
    let end = sent(&limited("end"), &looks(3));
    assert_eq!((end.head.status, end.asked), (200, 0));
    assert_eq!(end.body["stop_reason"], "end_turn");
    assert_eq!(
        end.body["content"][0]["text"],
        "Stopped after 3 turns with tool calls: this gateway allows 3 between two messages of a person (guards.tool_turns_max)."
    );
    let refuse = sent(&limited("error"), &looks(4));
    assert_eq!((refuse.head.status, refuse.asked), (400, 0));
    assert_eq!(refuse.header("x-should-retry"), "false");
    assert_eq!(refuse.header("x-creole-tool-turn"), "4/3");
    assert!(refuse.message().ends_with("failure_class=deterministic"), "{}", refuse.message());
    assert_eq!(refuse.report.warnings.guards(), ["tool_turns"]);
}

#[test]
fn a_request_without_tools_is_not_limited() {
    for action in ["wind_down", "end", "error"] {
        let body = request(&looks(5), &[]);
        let turn = ask(&limited(action), &body, &|_| (200, says("ok")), false);
        assert_eq!((turn.head.status, turn.asked), (200, 1));
        assert_eq!(turn.header("x-creole-guard"), "");
    }
}

#[test]
fn an_agent_that_calls_without_end_comes_to_an_end() {
    let count = std::cell::Cell::new(0);
    let run = |_: &Value| {
        count.set(count.get() + 1);
        (format!("something new: {}", count.get()), false)
    };
    let model = strict(stubborn("look", json!({})));
    let tools = [tool("look", &[])];
    assert_eq!(agent(&off(), &tools, &model, &run, 40).len(), 40);
    let config = config(json!({"tool_turns_max": 10}));
    let turns = agent(&config, &tools, &model, &run, 40);
    assert_eq!(turns.len(), 11);
    assert_eq!(turns[10].header("x-creole-tool-turn"), "10/10");
    assert_eq!(turns[10].body["stop_reason"], "end_turn");
}

#[test]
fn an_upstream_can_have_a_limit_of_its_own() {
    let config = drive::config(
        r#"{"upstreams":{"code":{},"flow":{"guards":{"tool_turns_max":2}}},
            "models":{"m":{"upstream":"flow"},"*":{"upstream":"code"}}}"#,
    );
    let limited = sent(&config, &looks(2));
    assert_eq!(limited.header("x-creole-tool-turn"), "2/2");
    assert!(limited.tools().is_empty());
    let mut body = request(&looks(2), &[tool("look", &[])]);
    body["model"] = json!("other");
    let free = ask(&config, &body, &|_| (200, says("ok")), false);
    assert_eq!((free.header("x-creole-tool-turn"), free.tools()), ("", vec!["look"]));
}
