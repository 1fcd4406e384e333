//! Server tools in the history: what was answered before, mixed turns, and calls without a result.

use super::*;

const A: (&str, &str, &str) = ("https://a.example/x", "A", "Alpha is 1.");

fn searched() -> session::Outcome {
    let turns =
        [turn("Let me see.", &[("web_search", r#"{"query":"alpha"}"#)]), turn("It is 1.", &[])];
    Session::new(&turns, &[found(&[A])]).run()
}

/// The messages of a conversation that goes on after `got`.
fn after(got: &session::Outcome, next: Value) -> Value {
    json!([{"role": "user", "content": "Q"},
        {"role": "assistant", "content": got.message["content"]},
        {"role": "user", "content": next}])
}

#[test]
fn an_answer_that_comes_back_is_the_same_conversation_for_the_upstream() {
    let got = searched();
    let turns = [turn("", &[("web_search", r#"{"query":"beta"}"#)]), turn("It is 2.", &[])];
    let b = ("https://b.example/", "B", "Beta is 2.");
    let next = Session::new(&turns, &[found(&[b])])
        .with("messages", after(&got, json!("And beta?")))
        .run();
    let before = got.asked[1]["messages"].as_array().unwrap();
    let now = next.asked[0]["messages"].as_array().unwrap();
    assert_eq!(before[..], now[..before.len()], "the prompt cache of the upstream stays valid");
    assert_eq!(now[3], json!({"role": "assistant", "content": "It is 1."}));
    assert_eq!(now[4]["content"], "And beta?");
    let result = next.asked[1]["messages"][6]["content"].as_str().unwrap();
    assert!(result.contains("[2] B"), "pages are numbered over the conversation: {result}");
}

#[test]
fn an_upstream_with_ids_of_its_own_form_gets_the_same_ids_in_each_request() {
    let config = support::drive::config(
        r#"{"upstreams": {"main": {"url": "http://main", "key": "none", "profile": "mistral"}},
            "server_tools": {"web_search": {"kind": "searxng", "url": "http://search"}}}"#,
    );
    let of_mistral = |turns: &[Turn], searches: &[Search]| {
        let mut session = Session::new(turns, searches);
        session.config = std::sync::Arc::clone(&config);
        session
    };
    let turns = [turn("", &[("web_search", r#"{"query":"alpha"}"#)]), turn("It is 1.", &[])];
    let got = of_mistral(&turns, &[found(&[A])]).run();
    let call = &got.asked[1]["messages"][1]["tool_calls"][0]["id"];
    let id = call.as_str().unwrap();
    assert!(id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{id}");
    assert_eq!(&got.asked[1]["messages"][2]["tool_call_id"], call);
    let next =
        of_mistral(&[turn("Yes.", &[])], &[]).with("messages", after(&got, json!("Sure?"))).run();
    assert_eq!(
        next.asked[0]["messages"].as_array().unwrap()[1..3],
        got.asked[1]["messages"].as_array().unwrap()[1..3]
    );
}

#[test]
fn calls_of_a_tool_that_the_request_no_longer_has_are_told_in_words() {
    let got = searched();
    let tools = json!([{"name": "run", "input_schema": {"type": "object"}}]);
    let next = Session::new(&[turn("Yes.", &[])], &[])
        .with("messages", after(&got, json!("Sure?")))
        .with("tools", tools)
        .run();
    let messages = next.asked[0]["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 3);
    assert!(
        messages[1]["content"].as_str().unwrap().contains("[web_search {\"query\":\"alpha\"}]")
    );
}

fn with_run() -> Value {
    json!([{"type": "web_search_20250305", "name": "web_search"},
        {"name": "run", "input_schema": {"type": "object"}}])
}

fn mixed() -> session::Outcome {
    let calls = [("web_search", r#"{"query":"alpha"}"#), ("run", "{}")];
    Session::new(&[turn("", &calls)], &[]).with("tools", with_run()).run()
}

#[test]
fn a_turn_with_calls_of_both_sides_waits_for_the_client() {
    let got = mixed();
    assert_eq!(got.kinds(), ["server_tool_use", "tool_use"]);
    assert_eq!((&got.message["stop_reason"], got.searched.len()), (&"tool_use".into(), 0));
}

#[test]
fn a_turn_with_calls_of_both_sides_can_be_run_at_once() {
    let calls = [("web_search", r#"{"query":"alpha"}"#), ("run", "{}")];
    let mut session =
        Session::new(&[turn("Wait.", &calls)], &[found(&[A])]).with("tools", with_run());
    session.config = session::config(r#", "mixed_turns": "run""#);
    let got = session.run();
    assert_eq!(got.kinds(), ["text", "server_tool_use", "tool_use", "web_search_tool_result"]);
    assert_eq!((&got.message["stop_reason"], got.asked.len()), (&"tool_use".into(), 1));
    let usage = &got.message["usage"];
    assert_eq!(
        (&usage["output_tokens"], &usage["server_tool_use"]["web_search_requests"]),
        (&5.into(), &1.into())
    );
    let id = got.message["content"][2]["id"].clone();
    let results = json!([{"type": "tool_result", "tool_use_id": id, "content": "ran"}]);
    session.turns = vec![turn("It is 1. [[1]]", &[])];
    let next =
        Session { searches: Vec::new(), ..session }.with("messages", after(&got, results)).run();
    assert_eq!(next.kinds(), ["text"]);
    let messages = next.asked[0]["messages"].as_array().unwrap();
    let roles: Vec<&str> = messages.iter().map(|it| it["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "tool"]);
    assert!(messages[2]["content"].as_str().unwrap().contains("[1] A"));
    assert_eq!(next.message["content"][0]["citations"][0]["title"], "A");
}

#[test]
fn a_pending_search_is_run_once_the_client_has_answered() {
    let before = mixed();
    let run = before.message["content"][1]["id"].clone();
    let results = json!([{"type": "tool_result", "tool_use_id": run, "content": "ran"}]);
    let got = Session::new(&[turn("It is 1.", &[])], &[found(&[A])])
        .with("tools", with_run())
        .with("messages", after(&before, results.clone()))
        .run();
    assert_eq!(got.kinds(), ["web_search_tool_result", "text"]);
    let search = &before.message["content"][0]["id"];
    assert_eq!(&got.message["content"][0]["tool_use_id"], search);
    let messages = got.asked[0]["messages"].as_array().unwrap();
    let roles: Vec<&str> = messages.iter().map(|it| it["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "tool"]);
    assert!(messages[2]["content"].as_str().unwrap().contains("[1] A"));
    assert_eq!(messages[3]["content"], "ran");
    // Over two messages of the assistant, calls and results still belong together.
    let mut later = after(&before, results);
    let later = later.as_array_mut().unwrap();
    later.push(json!({"role": "assistant", "content": got.message["content"]}));
    later.push(json!({"role": "user", "content": "Thanks"}));
    let last = Session::new(&[turn("Bye.", &[])], &[])
        .with("tools", with_run())
        .with("messages", later.clone().into())
        .run();
    assert_eq!(last.searched.len(), 0);
    assert_eq!(last.asked[0]["messages"].as_array().unwrap()[..4], messages[..4]);
}

#[test]
fn a_pending_search_is_dropped_when_the_user_goes_past_it() {
    let before = mixed();
    let run = before.message["content"][1]["id"].clone();
    let results = json!([{"type": "tool_result", "tool_use_id": run, "content": "ran"},
        {"type": "text", "text": "Never mind."}]);
    let mut session = Session::new(&[turn("Fine.", &[])], &[])
        .with("tools", with_run())
        .with("messages", after(&before, results));
    let got = session.run();
    assert_eq!((got.kinds(), got.searched.len()), (vec!["text"], 0));
    let messages = got.asked[0]["messages"].as_array().unwrap();
    assert_eq!(messages[2]["content"], "The call was not run.");
    assert_eq!(messages[3]["content"], "ran");
    assert!(got.report.warnings.iter().any(|warning| warning.code == "server_call_dropped"));
    // A gateway that is to refuse what the real API refuses, says so in its words.
    session.config = session::config(r#"}, "guards": {"pairing": "reject""#);
    let refused = session.run();
    let words = "was found without a corresponding `web_search_tool_result` block";
    let message = refused.message["error"]["message"].as_str().unwrap();
    assert!(refused.status == 400 && message.contains(words), "{message}");
}

#[test]
fn a_pause_is_gone_on_with() {
    let content = json!([{"type": "server_tool_use", "id": "srvtoolu_01Abc", "name": "web_search",
        "input": {"query": "alpha"}, "caller": {"type": "direct"}}]);
    let messages = json!([{"role": "user", "content": "Q"},
        {"role": "assistant", "content": content}]);
    let got =
        Session::new(&[turn("It is 1.", &[])], &[found(&[A])]).with("messages", messages).run();
    assert_eq!(got.kinds(), ["web_search_tool_result", "text"]);
    assert_eq!(got.message["content"][0]["tool_use_id"], "srvtoolu_01Abc");
    assert_eq!(got.asked[0]["messages"][1]["tool_calls"][0]["id"], "call_01Abc");
}

#[test]
fn the_search_of_claude_code_is_run_before_its_model_is_asked() {
    let text = "Perform a web search for the query: rust 2026";
    let messages = json!([{"role": "user", "content": [{"type": "text", "text": text}]}]);
    for choice in [json!({"type": "auto"}), json!({"type": "tool", "name": "web_search"})] {
        let got = Session::new(&[turn("Summary.", &[])], &[found(&[A])])
            .with("messages", messages.clone())
            .with("tool_choice", choice)
            .run();
        assert_eq!(got.kinds(), ["server_tool_use", "web_search_tool_result", "text"]);
        assert_eq!(got.searched, ["http://search/search?q=rust%202026&format=json"]);
        assert_eq!(got.message["content"][0]["input"]["query"], "rust 2026");
        assert_eq!(got.asked.len(), 1);
        assert_eq!(got.asked[0]["tool_choice"], "auto");
        assert_eq!(got.message["usage"]["server_tool_use"]["web_search_requests"], 1);
    }
}

#[test]
fn a_client_that_changed_sealed_texts_loses_them_and_nothing_else() {
    let mut got = searched();
    for sealed in ["", "EpwBCioIChABGAIqQA==", "not base64"] {
        got.message["content"][2]["content"][0]["encrypted_content"] = sealed.into();
        let next = Session::new(&[turn("Yes.", &[])], &[])
            .with("messages", after(&got, json!("Sure?")))
            .run();
        let result = next.asked[0]["messages"][2]["content"].as_str().unwrap();
        assert!(result.ends_with("[1] A\nhttps://a.example/x"), "{result}");
    }
}
