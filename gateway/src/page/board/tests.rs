//! Tests of `board.rs`.

use super::*;
use creole::observe::report::Outcome;

fn report(status: u16) -> Report {
    Report {
        model: "m".to_owned(),
        upstream: "local".to_owned(),
        status,
        upstream_status: Some(status),
        outcome: Outcome::Answered,
        ..Report::default()
    }
}

#[test]
fn a_thousand_exchanges_take_no_more_room_than_a_hundred() {
    let board = Board::default();
    for _ in 0..1_000 {
        let number = board.begin();
        board.show(number, &LoggedRequest::default(), &report(200));
        board.end(number, &LoggedRequest::default(), &report(200), 1);
    }
    board.with(|state| {
        assert_eq!(state.rows.len(), ROWS_MAX);
        assert!(state.running.is_empty());
        assert_eq!(state.totals.exchanges, 1_000);
    });
}

#[test]
fn probes_are_not_shown_but_requests_that_failed_are() {
    let board = Board::default();
    let request = LoggedRequest { path: "/?x".to_owned(), ..LoggedRequest::default() };
    board.end(board.begin(), &request, &report(200), 1);
    assert_eq!(board.with(|state| state.rows.len()), 0);
    let refused = LoggedRequest { path: "/v1/messages".to_owned(), ..LoggedRequest::default() };
    board.end(board.begin(), &refused, &report(400), 1);
    assert_eq!(board.with(|state| state.totals.failed), 1);
}

#[test]
fn no_more_pages_are_live_than_there_is_room_for() {
    let board = Board::default();
    let mut open: Vec<Watching> = (0..WATCHERS_MAX).map(|_| board.watch().unwrap()).collect();
    assert!(board.watch().is_none());
    open.pop();
    assert!(board.watch().is_some());
    board.close();
    drop(open);
    assert!(board.watch().is_none());
}

#[test]
fn an_upstream_is_asked_once_while_what_is_known_is_fresh() {
    let board = Board::default();
    assert!(board.is_due("local", 1_000));
    assert!(!board.is_due("local", 2_000));
    board.note("local", CheckResult::Status(200), Vec::new(), 3_000);
    assert!(!board.is_due("local", 17_999));
    assert!(board.is_due("local", 18_000));
    let known = board.with(|state| state.health.get("local").map(|known| known.answer.clone()));
    assert_eq!(known, Some(CheckResult::Status(200)));
    let failed = Report { failed_by: Some(Cause::Unreachable), ..report(502) };
    board.end(board.begin(), &LoggedRequest::default(), &failed, 18_001);
    assert!(!board.is_due("local", 19_000));
}
