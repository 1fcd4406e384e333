//! Requests that ask for one search and nothing else, as Claude Code's `WebSearch` sends them.

use super::*;

const A: (&str, &str, &str) = ("https://a.example/x", "A", "Alpha is 1. [[1]]");

/// The request of Claude Code, with this setting for it.
fn asking(side_query: &str, turns: &[Turn], searches: &[Search]) -> Session {
    let text = "Perform a web search for the query: rust 2026";
    let messages = json!([{"role": "user", "content": [{"type": "text", "text": text}]}]);
    let mut session = Session::new(turns, searches)
        .with("messages", messages)
        .with("tool_choice", json!({"type": "auto", "disable_parallel_tool_use": true}));
    session.config = support::drive::config(&format!(
        r#"{{"upstreams": {{"main": {{"key": "none"}}}}, "server_tools": {{"web_search":
            {{"kind": "searxng", "url": "http://search", "side_query": "{side_query}"}}}}}}"#
    ));
    session
}

#[test]
fn the_results_can_be_the_answer_without_any_model() {
    let pages = [A, ("https://b.example/", "B", "")];
    let got = asking("results", &[], &[found(&pages)]).run();
    assert_eq!(got.kinds(), ["server_tool_use", "web_search_tool_result", "text"]);
    let list = "1. A\nhttps://a.example/x\nAlpha is 1. [[1]]\n\n2. B\nhttps://b.example/";
    assert_eq!(got.message["content"][2], json!({"type": "text", "text": list}));
    assert_eq!((got.asked.len(), &got.message["stop_reason"]), (0, &"end_turn".into()));
    let usage = &got.message["usage"];
    assert_eq!((&usage["input_tokens"], &usage["output_tokens"]), (&0.into(), &0.into()));
    assert_eq!(usage["server_tool_use"]["web_search_requests"], 1);
    assert_eq!(got.report.tools.unwrap().turns, 0, "no model was asked");
}

#[test]
fn a_search_without_results_says_why_in_its_text() {
    for (search, text) in
        [(found(&[]), "Nothing was found."), (Search::Fails, "The search failed.")]
    {
        let got = asking("results", &[], &[search]).run();
        assert_eq!(got.message["content"][2]["text"], text);
        assert_eq!(got.message["stop_reason"], "end_turn");
    }
}

#[test]
fn the_model_can_be_forced_to_search_in_the_first_round() {
    let turns = [turn("", &[("web_search", r#"{"query":"rust"}"#)]), turn("Summary.", &[])];
    let got = asking("model", &turns, &[found(&[A])]).run();
    assert_eq!(got.kinds(), ["server_tool_use", "web_search_tool_result", "text"]);
    assert_eq!(got.searched, ["http://search/search?q=rust&format=json"]);
    assert_eq!(got.asked[0]["tool_choice"]["function"]["name"], "web_search");
    assert_eq!(got.asked[0]["parallel_tool_calls"], false);
    assert_eq!(got.asked[1]["tool_choice"], "auto");
}

#[test]
fn other_requests_are_left_as_they_are() {
    for setting in ["results", "model"] {
        let mut session = asking(setting, &[turn("Hi.", &[])], &[]);
        session.body["tool_choice"] = json!({"type": "none"});
        let got = session.run();
        assert_eq!((got.kinds(), got.asked.len()), (vec!["text"], 1));
        let mut session = asking(setting, &[turn("Hi.", &[])], &[]);
        session.body["messages"][0]["content"] = "Search the web".into();
        let got = session.run();
        assert_eq!((got.kinds(), &got.asked[0]["tool_choice"]), (vec!["text"], &"auto".into()));
    }
}
