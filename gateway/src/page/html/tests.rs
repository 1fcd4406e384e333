//! Tests of `html.rs`.

use super::*;
use crate::page::board::Board;
use creole::error::{ErrorKind, Fault};
use creole::observe::log::LoggedRequest;
use creole::observe::report::{AnswerReport, Outcome, Report, ToolsReport};
use creole::observe::warning::Warnings;

const BAD: &str = "<script>alert(\"1\")</script>'&";

fn board(name: &str) -> Board {
    let board = Board::default();
    let mut warnings = Warnings::new(false);
    warnings.add_named("dropped", name);
    warnings.acted("pairing");
    let report = Report {
        model: name.to_owned(),
        upstream: name.to_owned(),
        client_key: Some(name.to_owned()),
        status: 200,
        outcome: Outcome::Answered,
        stream: true,
        requested_at: 1_000,
        content_at: Some(1_500),
        warnings,
        answer: AnswerReport { output_tokens: 100, input_tokens: 1_000, ..AnswerReport::default() },
        ..Report::default()
    };
    let request = LoggedRequest { began: 1_000, path: name.to_owned(), ..LoggedRequest::default() };
    board.end(board.begin(), &request, &report, 2_500);
    board.show(board.begin(), &request, &report);
    board.end(board.begin(), &request, &Report { model: String::new(), ..report }, 2_500);
    board
}

#[test]
fn a_name_that_a_stranger_chose_is_text_everywhere() {
    let html = board(BAD).with(|state| page(&Config::default(), state, "n"));
    assert!(!html.contains("<script>alert"), "{html}");
    let update = board(BAD).with(|state| update(&Config::default(), state, true));
    assert!(!update.contains("<script>"), "{update}");
    for place in
        ["<td data-label=\"Model\" class=\"name\"><b>&lt;script&gt;", "<title>&lt;script&gt;"]
    {
        assert!(html.contains(place), "{place} in {html}");
    }
    let line =
        board("a\r\n\r\ndata: {}\n\n").with(|state| super::update(&Config::default(), state, true));
    assert_eq!(line.matches("data: ").count() - line.matches("data: {}").count(), 1, "{line}");
    assert_eq!(line.lines().count(), 2, "{line:?}");
}

#[test]
fn the_page_says_what_happened_without_a_script() {
    let html = board("claude-x").with(|state| page(&Config::default(), state, "n"));
    for text in [
        "<b>claude-x</b>",
        "<span class=\"good\">200</span>",
        "data-label=\"First\" class=\"number\">500 ms<",
        "data-label=\"Speed\" class=\"number\">100/s<",
        "href=\"#guard-pairing\"",
        "<b id=\"guard-pairing\">guard pairing</b>",
        "a field or tool that the upstream has no counterpart for was left out",
    ] {
        assert!(html.contains(text), "{text} in {html}");
    }
}

#[test]
fn a_model_has_its_window_and_how_full_the_longest_conversation_is() {
    let cells = |config: &Config, windows: &[(&str, u64)]| {
        let board = board("claude-x");
        let windows = windows.iter().map(|(name, window)| ((*name).to_owned(), *window)).collect();
        board.note("claude-x", CheckResult::Status(200), windows, 1);
        // A later check without a list takes nothing away.
        board.note("claude-x", CheckResult::Status(500), Vec::new(), 2);
        let html = board.with(|state| page(config, state, "n"));
        let (_, cells) = html.rsplit_once("data-label=\"Window\" class=\"number\">").unwrap();
        let cells = cells.split_once("</tr>").unwrap().0;
        cells
            .replace("</td><td data-label=\"Fullest\" class=\"number\">", ", ")
            .replace("</td>", "")
    };
    let open = Config::default();
    // 1,000 tokens came in, and 100 went out.
    assert_eq!(cells(&open, &[("other", 5), ("claude-x", 2_000)]), "2.0k, 55 %");
    assert_eq!(cells(&open, &[("claude-x:latest", 1_000)]), "1.0k, 110 %");
    assert_eq!(cells(&open, &[("other", 5)]), ", ");
    let named = r#"{"models": {"*": {"max_input_tokens": 4000}}}"#;
    let named = Config::from_json(named, |_| None).unwrap();
    assert_eq!(cells(&named, &[("claude-x", 2_000)]), "4.0k, 28 %");
}

#[test]
fn a_failure_has_its_reason_and_its_request_id_and_nothing_of_the_upstreams_message() {
    let board = Board::default();
    let report = Report {
        request_id: "req_011".to_owned(),
        status: 400,
        outcome: Outcome::Failed(ErrorKind::InvalidRequest, Fault::Client),
        reason: Some("messages[0].role: expected <one>".to_owned()),
        upstream_codes: Some("invalid_value".to_owned()),
        upstream_message: Some("canary".to_owned()),
        ..Report::default()
    };
    let request = LoggedRequest { path: "/v1/messages".to_owned(), ..LoggedRequest::default() };
    board.end(board.begin(), &request, &report, 2_500);
    let html = board.with(|state| page(&Config::default(), state, "n"));
    let wanted =
        "<span class=\"reason\">messages[0].role: expected &lt;one&gt;; invalid_value</span>";
    assert!(html.contains(wanted) && html.contains("<small>req_011</small>"), "{html}");
    assert!(!html.contains("canary"), "{html}");
    let answered = Report { status: 200, outcome: Outcome::Answered, ..report };
    let board = Board::default();
    board.end(board.begin(), &request, &answered, 2_500);
    let html = board.with(|state| page(&Config::default(), state, "n"));
    assert!(!html.contains("req_011"), "an answer needs no id: {html}");
}

#[test]
fn calls_of_server_tools_are_shown_by_kind_and_the_section_is_hidden_without_them() {
    let mut tools = ToolsReport::default();
    for (kind, is_failure) in [("web_search", false), ("web_search", true), ("mcp", false)] {
        tools.calls.add(kind, is_failure);
    }
    let report = Report {
        model: "m".to_owned(),
        status: 200,
        outcome: Outcome::Answered,
        tools: Some(Box::new(tools)),
        ..Report::default()
    };
    let board = Board::default();
    for _ in 0..2 {
        board.end(board.begin(), &LoggedRequest::default(), &report, 1);
    }
    let html = board.with(|state| page(&Config::default(), state, "n"));
    for text in [
        "<b>web_search</b></td><td data-label=\"Calls\" class=\"number\">4</td>\
         <td data-label=\"Failed\" class=\"number\">2</td>",
        "<b>mcp</b></td><td data-label=\"Calls\" class=\"number\">2</td>",
        "<span class=\"note ran\">2 web_search (1 failed)</span>",
        "<span class=\"note ran\">1 mcp</span>",
    ] {
        assert!(html.contains(text), "{text} in {html}");
    }
    let none = Board::default().with(|state| page(&Config::default(), state, "n"));
    assert!(none.contains("<div id=\"tools\"></div>"), "{none}");
}

#[test]
fn an_empty_board_makes_a_page_too() {
    let html = Board::default().with(|state| page(&Config::default(), state, "n"));
    assert!(html.contains("No client has asked yet."), "{html}");
}
