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
    let got = after_a_search(&[Turn::AsksForPause(429, "11"), done]).once(false);
    assert_eq!((got.status, got.times.len()), (429, 2));
}

#[test]
fn a_later_round_that_was_refused_is_not_asked_again_with_the_same_request() {
    for status in [400, 401, 403, 404] {
        let got = after_a_search(&[Turn::Fails(status, r#"{"error":{"message":"no"}}"#)]);
        assert_eq!(got.once(false).times.len(), 2);
    }
}

#[test]
fn the_first_round_is_left_to_the_client_to_repeat() {
    let got = Session::new(&[Turn::Fails(503, "{}")], &[]).once(false);
    assert_eq!((got.message["type"].as_str(), got.times.len()), (Some("error"), 1));
}

#[test]
fn a_client_gets_pings_while_a_round_pauses() {
    let mut session = after_a_search(&[Turn::AsksForPause(429, "10"), turn("Done.", &[])]);
    session.config = support::drive::config(
        r#"{"upstreams": {"main": {"key": "none"}}, "ping_interval_ms": 4000, "server_tools": {
            "web_search": {"kind": "searxng", "url": "http://search"}}}"#,
    );
    let stream = session.stream_of_failure();
    let stream = String::from_utf8(stream).unwrap();
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
