//! Time limits of the judge, and what happens while it is awaited.

use creole::observe::report::Outcome;
use creole::{End, Failure};

use super::results::two_calls;
use super::support::drive::{Exchange, NOW};
use super::*;

/// The judge has been asked.
fn waiting(session: &Session) -> (Exchange, Vec<u8>) {
    let mut exchange = session.begin();
    exchange.handle_call_head(200, &[], NOW);
    exchange.handle_call_body(two_calls().as_bytes(), NOW);
    let mut out = Vec::new();
    exchange.poll_body(&mut out);
    assert!(exchange.poll_call(NOW).is_some());
    (exchange, out)
}

#[test]
fn a_stream_gets_pings_while_the_judge_thinks_and_its_end_at_the_timeout() {
    let (mut exchange, mut out) = waiting(&Session::new());
    out.clear();
    let mut times = Vec::new();
    while let Some(at) = exchange.poll_timeout() {
        exchange.handle_timeout(at);
        let mut piece = Vec::new();
        exchange.poll_body(&mut piece);
        let name = String::from_utf8(piece).unwrap();
        times.push((at - NOW, name.split('\n').next().unwrap().to_owned()));
    }
    let of = |name: &str| format!("event: {name}");
    assert_eq!(times, [(15_000, of("ping")), (30_000, of("message_delta"))]);
    assert!(exchange.is_ended());
    assert_eq!(exchange.report().judge.unwrap().duration_ms, Some(30_000));
}

#[test]
fn a_whole_answer_gets_nothing_before_its_end() {
    let (mut exchange, out) = waiting(&Session::new().whole());
    assert!(out.is_empty());
    exchange.handle_timeout(NOW + 20_000);
    assert!(exchange.poll_head().is_none() && !exchange.is_ended());
    exchange.handle_timeout(NOW + 30_000);
    assert_eq!(exchange.poll_reply().unwrap().head.status, 200);
}

#[test]
fn a_host_that_never_asks_for_the_judges_call_does_not_hang_the_client() {
    let mut exchange = Session::new().begin();
    exchange.handle_call_head(200, &[], NOW);
    exchange.handle_call_body(two_calls().as_bytes(), NOW);
    assert!(exchange.is_call_due());
    assert_eq!(exchange.poll_timeout(), Some(NOW + 30_000));
    exchange.handle_timeout(NOW + 29_999);
    assert!(!exchange.is_ended());
    exchange.handle_timeout(NOW + 30_000);
    assert!(exchange.is_ended() && exchange.poll_call(NOW + 30_000).is_none());
    let mut out = Vec::new();
    exchange.poll_body(&mut out);
    let out = String::from_utf8(out).unwrap();
    assert!(out.contains("\"timeout\"") && !out.contains("evaluated"), "{out}");
    assert!(out.contains("event: message_stop"));
}

#[test]
fn an_answer_of_the_judge_that_is_broken_off_counts_for_nothing() {
    let [one, two] = session::ids();
    let said = json!({"verdicts": [{"id": one, "verdict": "not_flagged"}, {"id": two, "verdict": "not_flagged"}]});
    let answer =
        json!({"choices": [{"message": {"content": said.to_string()}, "finish_reason": "stop"}]});
    for (end, passes) in [(End::Complete, true), (End::Aborted, false)] {
        let (mut exchange, mut out) = waiting(&Session::new());
        exchange.handle_call_head(200, &[], NOW);
        exchange.handle_call_body(answer.to_string().as_bytes(), NOW);
        exchange.handle_call_end(end, NOW);
        assert!(exchange.is_ended());
        exchange.poll_body(&mut out);
        let out = String::from_utf8(out).unwrap();
        assert_eq!(out.contains("not_flagged"), passes, "{out}");
    }
}

#[test]
fn a_judge_that_trickles_has_no_more_time() {
    let (mut exchange, _) = waiting(&Session::new());
    exchange.handle_call_head(200, &[], NOW + 10_000);
    for second in 11..30 {
        exchange.handle_call_body(b" ", NOW + second * 1_000);
    }
    assert!(!exchange.is_ended());
    exchange.handle_timeout(NOW + 30_000);
    assert!(exchange.is_ended());
}

#[test]
fn the_second_request_for_the_judge_has_what_the_first_left_of_the_time() {
    let (mut exchange, _) = waiting(&Session::new());
    exchange.handle_call_head(400, &[], NOW + 20_000);
    exchange.handle_call_body(
        br#"{"error":{"message":"response_format is not supported"}}"#,
        NOW + 20_000,
    );
    exchange.handle_call_end(End::Complete, NOW + 20_000);
    assert!(exchange.poll_call(NOW + 20_000).is_some());
    exchange.handle_timeout(NOW + 30_000);
    assert!(exchange.is_ended());
}

#[test]
fn a_client_that_goes_ends_the_judges_call() {
    let (mut exchange, _) = waiting(&Session::new());
    exchange.handle_client_gone(NOW + 5);
    assert!(exchange.is_ended() && exchange.poll_call(NOW + 5).is_none());
    assert!(exchange.poll_cancel().is_some());
    assert_eq!(exchange.report().outcome, Outcome::Abandoned);
    let mut out = Vec::new();
    exchange.poll_body(&mut out);
    assert!(out.is_empty(), "no verdict is made up");
}

#[test]
fn what_comes_late_of_either_upstream_changes_nothing() {
    let (mut exchange, _) = waiting(&Session::new());
    exchange.handle_failure(Failure::BrokeOff, NOW + 5);
    let mut out = Vec::new();
    exchange.poll_body(&mut out);
    let told = out.clone();
    exchange.handle_call_body(b"{}", NOW + 6);
    exchange.handle_call_end(End::Complete, NOW + 6);
    exchange.poll_body(&mut out);
    assert_eq!(out, told);
}

#[test]
fn the_text_of_the_configuration_says_how_a_judge_is_described() {
    let refused = |safeguards: Value, upstreams: Value| {
        let text = json!({"upstreams": upstreams, "safeguards": safeguards}).to_string();
        let read = creole::Config::from_json(&text, |_| Some("k".to_owned()));
        read.map(|_| ()).map_err(|error| error.to_string())
    };
    let own = json!({"a": {}, "b": {"key": {"env": "K"}}});
    for (safeguards, upstreams, expected) in [
        (json!({"model": "m"}), json!({"a": {}}), ""),
        (json!({"model": "m", "upstream": "b"}), own.clone(), ""),
        (
            json!({"model": "m", "upstream": "c"}),
            own.clone(),
            "upstream: expected a name in upstreams, but found \"c\"",
        ),
        (
            json!({"model": "m"}),
            own.clone(),
            "upstream: expected the name of an upstream, because there are several",
        ),
        (
            json!({"upstream": "b"}),
            own.clone(),
            "model: expected the name of a model, as upstream is given",
        ),
        (
            json!({"model": "m", "upstream": "a"}),
            own.clone(),
            "upstream: expected an upstream with a key of its own or \"none\": clients send theirs for another one",
        ),
        (
            json!({"model": "m", "timeout_ms": 1}),
            json!({"a": {}}),
            "timeout_ms: expected at least 10 ms, but found 1",
        ),
    ] {
        let expected = match expected {
            "" => Ok(()),
            reason => Err(format!("configuration: safeguards.{reason}")),
        };
        assert_eq!(refused(safeguards, upstreams), expected);
    }
}
