//! Waits of the loop: servers that never answer, and later rounds that fail for a while.

use super::session::{Search, Session, Turn, found, turn};
use super::*;

const A: (&str, &str, &str) = ("https://a.example/", "A", "Text of A");

fn search(query: &str) -> Turn {
    turn("", &[("web_search", &json!({"query": query}).to_string())])
}

fn after_a_search(later: &[Turn]) -> Session {
    Session::new(&[&[search("alpha")], later].concat(), &[found(&[A])])
}

#[test]
fn a_later_round_whose_failure_may_pass_is_asked_again_after_a_pause() {
    for failure in [
        Turn::Fails(500, r#"{"error":{"message":"broken"}}"#),
        Turn::Fails(503, ""),
        Turn::Fails(429, "{}"),
        Turn::Fails(408, "{}"),
        Turn::Undecodable(503),
        Turn::Breaks,
    ] {
        let got = after_a_search(&[failure.clone(), failure, turn("Done.", &[])]).run();
        assert_eq!(got.times, [0, 0, 500, 1_500]);
        assert_eq!(got.asked[1], got.asked[3]);
        assert_eq!(got.kinds(), ["server_tool_use", "web_search_tool_result", "text"]);
        assert_eq!(got.message["stop_reason"], "end_turn");
        assert_eq!(got.report.retries, 2);
        assert_eq!(got.report.failed_by, None);
    }
}

#[test]
fn a_pause_is_as_long_as_the_upstream_asks_unless_nobody_waits_that_long() {
    let done = turn("Done.", &[]);
    let got = after_a_search(&[Turn::AsksForPause(429, "7"), done.clone()]).run();
    assert_eq!(got.times, [0, 0, 7_000]);
    let got = after_a_search(&[Turn::AsksForPause(429, "0"), done.clone()]).run();
    assert_eq!(got.times, [0, 0, 500]);
    for pause in ["11", "10.5"] {
        let got = after_a_search(&[Turn::AsksForPause(429, pause), done.clone()]).once(false);
        assert_eq!((got.status, got.times.len()), (429, 2));
    }
}

#[test]
fn a_later_round_that_was_refused_is_not_asked_again_with_the_same_request() {
    let pairing = r#"{"error":{"message":"An assistant message with 'tool_calls' must be followed by tool messages"}}"#;
    for (status, body) in [
        (400, r#"{"error":{"message":"no"}}"#),
        (400, pairing),
        (401, "{}"),
        (403, "{}"),
        (404, "{}"),
    ] {
        let session = after_a_search(&[Turn::Fails(status, body)]);
        for stream in [false, true] {
            assert_eq!(session.times_of_failure(stream).len(), 2, "{status} {body}");
        }
    }
    let session = after_a_search(&[Turn::IsFinal]);
    assert_eq!(session.times_of_failure(true).len(), 2);
}

#[test]
fn an_answer_has_two_repeats_in_all() {
    let busy = Turn::Fails(503, "{}");
    let turns = [search("a"), busy.clone(), search("b"), busy.clone(), search("c"), busy];
    let session = Session::new(&turns, &[found(&[A]), found(&[A]), found(&[A])]);
    assert_eq!(session.times_of_failure(true), [0, 0, 500, 500, 1_500, 1_500]);
}

#[test]
fn a_later_round_that_is_not_answered_in_time_is_asked_again_while_there_is_time() {
    let mut session = after_a_search(&[Turn::Hangs, turn("Done.", &[])]);
    session.config = with(r#""first_byte_timeout_ms": 20000"#, "");
    assert_eq!(session.run().times, [0, 0, 20_500]);
    session.config = with(r#""first_byte_timeout_ms": 20000"#, r#", "duration_max_ms": 20000"#);
    assert_eq!(session.times_of_failure(true), [0, 0]);
}

#[test]
fn a_call_for_which_no_time_is_left_waits_for_the_client_to_go_on() {
    let late = [search("alpha"), Turn::AsksForPause(429, "7"), search("beta")];
    let mut session = Session::new(&late, &[found(&[A])]);
    session.config = session::config(r#", "duration_max_ms": 7000"#);
    let got = session.run();
    assert_eq!(got.kinds(), ["server_tool_use", "web_search_tool_result", "server_tool_use"]);
    assert_eq!((&got.message["stop_reason"], got.searched.len()), (&json!("pause_turn"), 1));
    let mut messages = session.body["messages"].as_array().unwrap().clone();
    messages.push(json!({"role": "assistant", "content": got.message["content"]}));
    let after = Session::new(&[turn("Done.", &[])], &[found(&[A])])
        .with("messages", json!(messages.clone()))
        .run();
    assert_eq!(after.kinds(), ["web_search_tool_result", "text"]);
    assert_eq!(after.message["content"][0]["tool_use_id"], got.message["content"][2]["id"]);
    assert_eq!(after.searched, ["http://search/search?q=beta&format=json"]);
    // A call that was forced was run, and is not forced for ever.
    let forced = json!({"type": "tool", "name": "web_search"});
    let after = Session::new(&[turn("Done.", &[])], &[found(&[A])])
        .with("messages", json!(messages))
        .with("tool_choice", forced)
        .run();
    assert_eq!(after.asked[0]["tool_choice"], "auto");
}

#[test]
fn a_client_that_leaves_in_a_pause_ends_the_exchange() {
    let session = after_a_search(&[Turn::Fails(503, "{}")]);
    assert!(session.leaves_in_the_pause());
}

/// Configuration with these settings, and more keys of `server_tools`.
fn with(settings: &str, more: &str) -> std::sync::Arc<creole::Config> {
    support::drive::config(&format!(
        r#"{{"upstreams": {{"main": {{"key": "none"}}}}, {settings}, "server_tools": {{
            "web_search": {{"kind": "searxng", "url": "http://search"}}{more}}}}}"#
    ))
}

#[test]
fn the_first_round_is_left_to_the_client_to_repeat() {
    let got = Session::new(&[Turn::Fails(503, "{}")], &[]).once(false);
    assert_eq!((got.message["type"].as_str(), got.times.len()), (Some("error"), 1));
}

#[test]
fn a_client_gets_pings_while_a_search_is_silent() {
    let turns = [search("alpha"), turn("Done.", &[])];
    let mut session = Session::new(&turns, &[Search::Hangs]);
    session.config = with(r#""ping_interval_ms": 4000"#, "");
    let got = session.run();
    assert_eq!((got.codes(), got.times.as_slice()), (vec!["unavailable"], &[0, 15_000][..]));
    let stream = String::from_utf8(session.once(true).bytes).unwrap();
    let (_, after) = stream.split_once("server_tool_use").unwrap();
    let (meanwhile, _) = after.split_once("web_search_tool_result").unwrap();
    assert_eq!(meanwhile.matches("event: ping").count(), 3, "{stream}");
}

#[test]
fn a_client_that_leaves_in_a_search_ends_the_exchange() {
    let session = Session::new(&[search("alpha")], &[Search::Hangs]);
    assert!(session.leaves_in_the_search());
}

#[test]
fn a_client_gets_pings_while_a_round_pauses() {
    let mut session = after_a_search(&[Turn::AsksForPause(429, "10"), turn("Done.", &[])]);
    session.config = with(r#""ping_interval_ms": 4000"#, "");
    let stream = String::from_utf8(session.once(true).bytes).unwrap();
    assert_eq!(stream.matches("event: ping").count(), 1 + 2, "{stream}");
}

#[test]
fn a_server_that_never_answers_takes_no_time_of_others() {
    let calls: Vec<String> =
        (0..6).map(|n| json!({"query": format!("q{n}")}).to_string()).collect();
    let calls: Vec<(&str, &str)> = calls.iter().map(|call| ("web_search", call.as_str())).collect();
    let answers =
        [vec![Search::Hangs], (1..6).map(|_| found(&[A])).collect::<Vec<Search>>()].concat();
    let got = Session::new(&[turn("", &calls), turn("Done.", &[])], &answers).run();
    assert_eq!(got.searched.len(), 6);
    assert_eq!(got.codes(), ["unavailable", "", "", "", "", ""]);
    // The time of one search, by default.
    assert_eq!(got.times, [0, 15_000]);
}

#[test]
fn servers_that_never_answer_are_waited_for_together() {
    let calls: Vec<String> =
        (0..6).map(|n| json!({"query": format!("q{n}")}).to_string()).collect();
    let calls: Vec<(&str, &str)> = calls.iter().map(|call| ("web_search", call.as_str())).collect();
    let got = Session::new(&[turn("", &calls), turn("Done.", &[])], &vec![Search::Hangs; 6]).run();
    assert_eq!(got.codes(), ["unavailable"; 6]);
    assert_eq!(got.times, [0, 30_000]);
}
