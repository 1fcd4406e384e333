//! Failures and limits: each call gets one result, and each loop ends.

use super::*;
use crate::session::config;
use creole::observe::report::CallCount;

const A: (&str, &str, &str) = ("https://a.example/x", "A", "Alpha.");

fn search(query: &str) -> Turn {
    turn("", &[("web_search", &json!({"query": query}).to_string())])
}

fn one_search(answer: Search) -> Session {
    Session::new(&[search("alpha"), turn("Done.", &[])], &[answer])
}

#[test]
fn a_search_that_fails_is_a_result_and_the_answer_goes_on() {
    let empty = json!({"results": [], "unresponsive_engines": [["x", "timeout"]]}).to_string();
    for (answer, code) in [
        (Search::Gives(429, String::new()), "too_many_requests"),
        (Search::Gives(413, String::new()), "request_too_large"),
        (Search::Gives(500, "{}".to_owned()), "unavailable"),
        (Search::Gives(302, String::new()), "unavailable"),
        (Search::Gives(200, "<html>".to_owned()), "unavailable"),
        (Search::Gives(200, empty), "unavailable"),
        (Search::Fails, "unavailable"),
    ] {
        let got = one_search(answer.clone()).run();
        assert_eq!((got.status, got.codes()), (200, vec![code]), "{answer:?}");
        let told = got.asked[1]["messages"][2]["content"].as_str().unwrap();
        assert!(told.starts_with(&format!("Error: {code}. Go on without it")), "{told}");
        assert_eq!(got.searched.len(), 1, "a search is not repeated");
        assert_eq!(got.message["stop_reason"], "end_turn");
        let warned = got.report.warnings.header().unwrap();
        assert!(warned.contains("server_tool_failed:web_search"), "{warned}");
    }
}

#[test]
fn a_search_that_finds_nothing_is_no_failure() {
    let got = one_search(found(&[])).run();
    assert_eq!(got.codes(), [""]);
    assert_eq!(got.message["content"][1]["content"], json!([]));
    assert_eq!(got.asked[1]["messages"][2]["content"], "Nothing was found.");
    assert_eq!(got.message["usage"]["server_tool_use"]["web_search_requests"], 1);
}

#[test]
fn an_input_without_a_query_is_answered_without_a_search() {
    for (input, code) in [
        ("{}", "invalid_tool_input"),
        (r#"{"query": 7}"#, "invalid_tool_input"),
        (r#"{"query": " "}"#, "invalid_tool_input"),
        ("not json", "invalid_tool_input"),
    ] {
        let turns = [turn("", &[("web_search", input)]), turn("Done.", &[])];
        let got = Session::new(&turns, &[]).run();
        assert_eq!(got.codes(), [code], "{input}");
        assert_eq!((got.searched.len(), got.asked.len()), (0, 2));
    }
    let long = "x".repeat(401);
    let got = Session::new(&[search(&long), turn("Done.", &[])], &[]).run();
    assert_eq!((got.codes(), got.searched.len()), (vec!["query_too_long"], 0));
}

#[test]
fn uses_are_limited_as_the_client_says() {
    let calls = [("web_search", r#"{"query":"one"}"#), ("web_search", r#"{"query":"three"}"#)];
    let tools = json!([{"type": "web_search_20250305", "name": "web_search", "max_uses": 1}]);
    let turns = [turn("", &calls), turn("Done.", &[])];
    let got = Session::new(&turns, &[found(&[A])]).with("tools", tools).run();
    assert_eq!(got.codes(), ["", "max_uses_exceeded"]);
    assert_eq!(got.searched.len(), 1);
    let told = got.asked[1]["messages"][3]["content"].as_str().unwrap();
    assert_eq!(told, "Error: max_uses_exceeded. Answer from what you have.");
}

#[test]
fn calls_are_limited_as_the_operator_says() {
    let turns = [search("one"), search("three"), turn("Done.", &[])];
    let mut session = Session::new(&turns, &[found(&[A])]);
    session.config = config(r#", "calls_max": 1"#);
    assert_eq!(session.run().codes(), ["", "too_many_requests"]);
}

#[test]
fn each_call_is_in_the_report_by_kind_with_its_failure() {
    let turns = [search("one"), search("two"), search("two"), turn("Done.", &[])];
    let got = Session::new(&turns, &[found(&[A]), Search::Fails]).run();
    assert_eq!(got.codes(), ["", "unavailable", "unavailable"]);
    let tools = got.report.tools.unwrap();
    let counts: Vec<_> = tools.calls.iter().collect();
    assert_eq!(counts, [("web_search", CallCount { calls: 3, failed: 2 })]);
    assert_eq!((tools.turns, tools.calls.total().calls), (4, 3));
}

#[test]
fn ten_rounds_are_the_most_and_the_last_one_must_answer() {
    let mut turns: Vec<Turn> = (0..9).map(|at| search(&format!("query {at}"))).collect();
    turns.push(turn("That is all.", &[]));
    let searches: Vec<Search> = (0..9).map(|_| found(&[A])).collect();
    let got = Session::new(&turns, &searches).run();
    assert_eq!((got.asked.len(), got.searched.len()), (10, 9));
    assert_eq!(got.asked[8].get("tool_choice"), None);
    assert_eq!(got.asked[9]["tool_choice"], "none");
    assert_eq!(got.asked[9]["tools"], got.asked[0]["tools"]);
    assert_eq!(got.message["stop_reason"], "end_turn");
    assert_eq!(got.header("x-creole-tool-turn"), Some("10/10"));
    assert_eq!(got.header("x-creole-guard"), Some("server_turns"));
    assert_eq!(got.report.tools.unwrap().turns, 10);
}

#[test]
fn a_model_that_searches_for_ever_is_stopped() {
    let turns: Vec<Turn> = (0..10).map(|at| search(&format!("query {at}"))).collect();
    let searches: Vec<Search> = (0..9).map(|_| found(&[A])).collect();
    let got = Session::new(&turns, &searches).run();
    assert_eq!((got.asked.len(), got.searched.len()), (10, 9));
    assert_ne!(got.message["stop_reason"], "tool_use", "the client cannot run the call");
}

#[test]
fn an_equal_search_is_answered_from_the_first_and_the_third_ends_the_loop() {
    let turns = [search("alpha"), search(" alpha "), search("alpha"), turn("Done.", &[])];
    let got = Session::new(&turns, &[found(&[A])]).run();
    assert_eq!((got.searched.len(), got.asked.len()), (1, 4));
    let blocks = got.message["content"].as_array().unwrap();
    assert_eq!(blocks[1]["content"], blocks[3]["content"]);
    assert_eq!(got.asked[2].get("tool_choice"), None);
    assert_eq!(got.asked[3]["tool_choice"], "none");
    assert_eq!(got.message["usage"]["server_tool_use"]["web_search_requests"], 1);
}

#[test]
fn a_call_that_is_cut_off_is_not_run() {
    let mut cut = turn("", &[("web_search", r#"{"query":"al"#)]);
    if let Turn::Says(_, reason, _) = &mut cut {
        *reason = "length";
    }
    let got = Session::new(&[cut], &[]).run();
    assert_eq!((got.searched.len(), got.asked.len()), (0, 1));
    assert_eq!(got.message["stop_reason"], "max_tokens");
}

#[test]
fn a_later_round_that_fails_is_an_error_and_never_a_silent_end() {
    let broken = Turn::Fails(500, r#"{"error":{"message":"broken"}}"#);
    let turns = [search("alpha"), broken.clone(), broken.clone(), broken];
    let session = Session::new(&turns, &[found(&[A])]);
    let whole = session.once(false);
    assert_eq!(whole.status, 500);
    assert_eq!(whole.message["error"]["type"], "api_error");
    let stream = String::from_utf8(session.stream_of_failure()).unwrap();
    assert!(stream.contains("web_search_tool_result"));
    assert!(stream.contains("event: error"), "{stream}");
    assert!(!stream.contains("message_stop"));
}

#[test]
fn a_first_round_that_fails_is_an_http_error() {
    let got = Session::new(&[Turn::Fails(429, "{}")], &[]).run();
    assert_eq!(got.status, 429);
}

#[test]
fn wrong_domains_are_refused_before_anything_is_asked() {
    for (tool, message) in [
        (
            json!({"allowed_domains": ["a.example"], "blocked_domains": ["b.example"]}),
            "tools[0]: allowed_domains and blocked_domains cannot be used together",
        ),
        (
            json!({"allowed_domains": ["https://a.example"]}),
            "tools[0].allowed_domains[0]: expected a host without scheme, but found \"https://a.example\"",
        ),
    ] {
        let mut tools = json!([{"type": "web_search_20250305", "name": "web_search"}]);
        tools[0].as_object_mut().unwrap().extend(tool.as_object().unwrap().clone());
        let got = Session::new(&[], &[]).with("tools", tools).run();
        assert_eq!((got.status, got.asked.len()), (400, 0));
        assert_eq!(got.message["error"]["message"], message);
    }
}

#[test]
fn domains_are_asked_for_and_whatever_comes_back_is_filtered() {
    let tools = json!([{"type": "web_search_20250305", "name": "web_search",
        "allowed_domains": ["a.example"]}]);
    let pages = [A, ("https://docs.a.example/y", "Docs", ""), ("https://nota.example/", "N", "")];
    let turns = [search("alpha"), turn("Done.", &[])];
    let got = Session::new(&turns, &[found(&pages)]).with("tools", tools).run();
    assert!(got.searched[0].contains("site%3Aa.example"), "{:?}", got.searched);
    let titles: Vec<&Value> = got.message["content"][1]["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["title"])
        .collect();
    assert_eq!(titles, ["A", "Docs"]);
}

#[test]
fn an_input_that_breaks_after_it_was_sent_is_answered_and_the_loop_goes_on() {
    // The first half was sent before the rest showed that the input is no JSON.
    let turns =
        [turn("", &[("web_search", r#"{"query": "best "rust" books"}"#)]), turn("Done.", &[])];
    let session = Session::new(&turns, &[]);
    let got = session.run();
    assert_eq!((got.codes(), got.asked.len()), (vec!["invalid_tool_input"], 2));
    assert_eq!(got.message["stop_reason"], "end_turn");
}

#[test]
fn a_last_round_with_a_call_alone_is_a_pause() {
    let turns: Vec<Turn> = (0..10).map(|at| search(&format!("query {at}"))).collect();
    let searches: Vec<Search> = (0..9).map(|_| found(&[A])).collect();
    let tools = json!([{"type": "web_search_20250305", "name": "web_search"},
        {"name": "run", "input_schema": {"type": "object"}}]);
    for session in
        [Session::new(&turns, &searches), Session::new(&turns, &searches).with("tools", tools)]
    {
        let got = session.run();
        assert_eq!(got.message["stop_reason"], "pause_turn");
        assert_eq!(got.kinds().last(), Some(&"web_search_tool_result"));
    }
}

#[test]
fn thinking_has_a_budget_of_what_is_left() {
    let turns = [search("alpha"), turn("Done.", &[])];
    let got = Session::new(&turns, &[found(&[A])])
        .with("thinking", json!({"type": "enabled", "budget_tokens": 2999}))
        .with("max_tokens", json!(3000))
        .run();
    assert_eq!((got.status, got.asked.len()), (200, 2));
}

#[test]
fn an_answer_whose_body_was_dropped_ends_as_a_pause_that_can_be_gone_on_with() {
    let session = Session { forgets: true, ..Session::new(&[search("alpha")], &[]) };
    let got = session.run();
    assert_eq!((got.kinds(), got.searched.len()), (vec!["server_tool_use"], 0));
    assert_eq!(got.message["stop_reason"], "pause_turn");
    assert_eq!(got.message["usage"]["output_tokens"], 5);
}

#[test]
fn a_model_that_repeats_itself_to_the_end_is_stopped_with_a_text() {
    let turns = [search("alpha"), search("alpha"), search("alpha"), search("alpha")];
    let got = Session::new(&turns, &[found(&[A])]).run();
    assert_eq!(got.message["stop_reason"], "end_turn");
    let last = got.message["content"].as_array().unwrap().last().unwrap();
    assert!(last["text"].as_str().unwrap().contains("withheld"), "{last}");
}

#[test]
fn tools_that_nobody_runs_do_not_keep_a_model_from_answering() {
    let mut turns: Vec<Turn> = (0..9).map(|at| search(&format!("query {at}"))).collect();
    turns.push(turn("That is all.", &[]));
    let searches: Vec<Search> = (0..9).map(|_| found(&[A])).collect();
    let tools = json!([{"type": "web_search_20250305", "name": "web_search"},
        {"type": "web_fetch_20250910", "name": "web_fetch"}]);
    let got = Session::new(&turns, &searches).with("tools", tools).run();
    assert_eq!(got.asked[9]["tool_choice"], "none");
}
