//! Tests of `log.rs`.

use super::*;
use crate::error::ErrorKind;
use crate::observe::report::Cause;

fn read(line: Option<String>) -> serde_json::Value {
    serde_json::from_str(&line.unwrap()).unwrap()
}

#[test]
fn a_line_is_one_json_object_whatever_the_client_chose() {
    let request = LoggedRequest {
        method: "POST\n".to_owned(),
        path: "/v1/\"x\u{1b}[31m?key=sk-1".to_owned(),
        began: 1000,
        ..LoggedRequest::default()
    };
    let mut report = Report {
        status: 504,
        outcome: Outcome::Failed(ErrorKind::Timeout, Fault::Upstream),
        model: "é".repeat(200),
        failed_by: Some(Cause::Stall),
        ..Report::default()
    };
    report.warnings.acted("stall");
    let line = line(&request, &report, Log::Info, 1250);
    let text = line.clone().unwrap();
    assert!(!text.contains(['\n', '\u{1b}']) && !text.contains("sk-1"), "{text}");
    let read = read(line);
    assert_eq!((&read["duration_ms"], &read["status"]), (&250.into(), &504.into()));
    assert_eq!((&read["level"], &read["error"]), (&"warn".into(), &"timeout_error".into()));
    assert_eq!(read["cause"], "stall");
    assert_eq!(read["model"].as_str().unwrap().len(), 100);
    assert_eq!(read["shape"], serde_json::Value::Null);
}

#[test]
fn a_line_is_one_line_to_terminals_and_readers_of_unicode_too() {
    let model = "a\u{7f}b\u{85}c\u{9b}31m\u{2028}d\u{2029}e\u{202e}f\u{2066}g\u{61c} \u{a0}é…";
    let report = Report { model: model.to_owned(), ..Report::default() };
    let line = line(&LoggedRequest::default(), &report, Log::Info, 0);
    let text = line.clone().unwrap();
    let bad = "\u{2028}\u{2029}\u{202e}\u{2066}\u{61c}";
    assert!(!text.contains(|it: char| it.is_control() || bad.contains(it)));
    assert_eq!(read(line)["model"], "a�b�c�31m�d�e�f�g� \u{a0}é…");
}

#[test]
fn the_setting_log_keeps_quiet_what_is_less_urgent() {
    let fails = |kind, fault, status| Report {
        outcome: Outcome::Failed(kind, fault),
        status,
        ..Report::default()
    };
    let answered = Report { outcome: Outcome::Answered, ..Report::default() };
    for (report, level) in [
        (answered, Level::Info),
        (fails(ErrorKind::InvalidRequest, Fault::Client, 400), Level::Info),
        (fails(ErrorKind::Overloaded, Fault::Upstream, 529), Level::Warn),
        (fails(ErrorKind::Overloaded, Fault::Operator, 529), Level::Warn),
        (fails(ErrorKind::Api, Fault::Operator, 500), Level::Error),
    ] {
        for log in [Log::Off, Log::Error, Log::Warn, Log::Info, Log::Debug] {
            let line = line(&LoggedRequest::default(), &report, log, 5);
            assert_eq!(line.is_some(), log >= level.setting(), "{log:?} {report:?}");
        }
    }
}

#[test]
fn a_client_that_leaves_before_a_passed_answer_went_away() {
    let mut request = LoggedRequest::default();
    assert_eq!(read(line(&request, &Report::default(), Log::Info, 5))["status"], 499);
    request.passed = Some((201, "u".to_owned()));
    assert_eq!(read(line(&request, &Report::default(), Log::Info, 5))["status"], 201);
}

#[test]
fn debug_adds_the_shape_of_the_request() {
    let mut report = Report { outcome: Outcome::Answered, ..Report::default() };
    report.counts.messages = 3;
    let counts = |report: &Report| {
        read(line(&LoggedRequest::default(), report, Log::Debug, 5))["shape"].clone()
    };
    assert_eq!(counts(&report)["messages"], 3);
    report.counts.messages = 0;
    assert_eq!(counts(&report), serde_json::Value::Null, "it was refused before");
}

#[test]
fn calls_of_server_tools_are_counted_by_kind_and_never_by_a_name_of_a_request() {
    let mut tools = ToolsReport { turns: 3, duration_ms: 20, ..ToolsReport::default() };
    for (kind, is_failure) in
        [("web_search", false), ("mcp", true), ("web_search", true), ("mcp__a__secret", false)]
    {
        tools.calls.add(kind, is_failure);
    }
    let report = Report { tools: Some(Box::new(tools)), ..Report::default() };
    let read = read(line(&LoggedRequest::default(), &report, Log::Info, 0));
    let expected = serde_json::json!({"turns": 3, "calls": 3, "failed": 2,
        "by_tool": {"web_search": 2, "mcp": 1}, "duration_ms": 20});
    assert_eq!(read["server_tools"], expected);
}
