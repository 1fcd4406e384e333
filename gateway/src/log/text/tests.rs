//! Tests of `text.rs`.

use super::*;
use creole::observe::report::{AnswerReport, Cause, ToolsReport};
use creole::observe::warning::Warnings;

/// Returns a log line without its colours.
fn bare(line: &str) -> String {
    anstream::adapter::strip_str(line).to_string()
}

fn report() -> Report {
    Report {
        model: "claude-x".to_owned(),
        upstream: "local".to_owned(),
        stream: true,
        status: 200,
        outcome: Outcome::Answered,
        requested_at: 1_000,
        content_at: Some(1_800),
        answer: AnswerReport {
            stop_reason: Some(creole::StopReason::ToolUse),
            input_tokens: 2_300,
            cache_read_tokens: 9_800,
            output_tokens: 231,
            tool_calls: 2,
            ..AnswerReport::default()
        },
        ..Report::default()
    }
}

#[test]
fn a_line_says_what_a_person_asks_first() {
    let request = LoggedRequest { began: 1_000, ..LoggedRequest::default() };
    let mut report = report();
    assert_eq!(
        bare(&line(&request, &report, 7_100)),
        "200 claude-x @local  6.1 s  first 800 ms  12.1k in (81% cached)  231 out  44/s  2 tool calls"
    );
    let mapped = Report { upstream_model: "qwen".to_owned(), ..report.clone() };
    let shown = bare(&line(&request, &mapped, 7_100));
    assert!(shown.starts_with("200 claude-x → qwen @local  6.1 s"), "{shown}");
    let mut warnings = Warnings::new(false);
    warnings.add("tool_input_repaired");
    warnings.add_named("dropped", "top_k");
    warnings.acted("pairing");
    report = Report { warnings, retries: 1, answer: AnswerReport::default(), ..report };
    report.answer.stop_reason = Some(creole::StopReason::MaxTokens);
    assert_eq!(
        bare(&line(&request, &report, 2_000)),
        "200 claude-x @local  max_tokens  1.0 s  first 800 ms  1 retry  guard pairing  \
         tool_input_repaired dropped:top_k"
    );
}

#[test]
fn calls_of_server_tools_are_told_by_kind() {
    let mut tools = ToolsReport::default();
    for (kind, is_failure) in [("web_search", false), ("web_fetch", true), ("web_search", false)] {
        tools.calls.add(kind, is_failure);
    }
    let mut report = Report { tools: Some(Box::new(tools)), ..report() };
    report.answer.tool_calls = 0;
    let request = LoggedRequest { began: 1_000, ..LoggedRequest::default() };
    let shown = bare(&line(&request, &report, 7_100));
    assert!(shown.ends_with("44/s  2 web_search  1 web_fetch (1 failed)"), "{shown}");
}

#[test]
fn a_failure_has_its_cause_and_its_colour() {
    let request = LoggedRequest {
        began: 1_000,
        path: "/v1/x?key=secret".to_owned(),
        ..LoggedRequest::default()
    };
    let failed = Outcome::Failed(creole::error::ErrorKind::Api, creole::error::Fault::Upstream);
    let report = Report {
        outcome: failed,
        status: 502,
        failed_by: Some(Cause::Unreachable),
        content_at: None,
        answer: AnswerReport::default(),
        ..report()
    };
    let shown = line(&request, &report, 11_000);
    assert_eq!(bare(&shown), "502 claude-x @local  unreachable  10.0 s");
    assert!(shown.starts_with(&format!("{CARE}502")), "{shown:?}");
    let report = Report { model: String::new(), upstream: String::new(), ..report };
    assert_eq!(bare(&line(&request, &report, 1_003)), "502  /v1/x  unreachable  3 ms");
}

#[test]
fn a_failure_ends_with_its_reason_and_the_id_of_the_request() {
    let ended = |outcome, reason: &str, upstream_message: Option<&str>| {
        let report = Report {
            outcome,
            request_id: "req_1".to_owned(),
            reason: Some(reason.to_owned()),
            upstream_message: upstream_message.map(str::to_owned),
            ..report()
        };
        bare(&line(&LoggedRequest::default(), &report, 7_100))
    };
    let failed = Outcome::Failed(creole::error::ErrorKind::Api, creole::error::Fault::Upstream);
    let shown = ended(failed, "Upstream could not be reached", Some("not shown"));
    assert!(shown.ends_with("  2 tool calls  Upstream could not be reached  req_1"), "{shown}");
    let shown = ended(failed, "", Some("no such\n\u{1b}[31mmodel"));
    assert!(shown.ends_with("  no such��[31mmodel  req_1"), "{shown}");
    let shown = ended(failed, &"a".repeat(500), None);
    assert!(shown.ends_with(&format!("  {}…  req_1", "a".repeat(200))), "{shown}");
    let shown = ended(Outcome::Answered, "not shown", None);
    assert!(shown.ends_with("2 tool calls"), "{shown}");
}

#[test]
fn a_name_that_a_client_chose_ends_no_line_and_paints_nothing() {
    let report = Report { model: "a\u{1b}[31m\nb\u{9b}2J".to_owned(), ..report() };
    let shown = line(&LoggedRequest::default(), &report, 7_100);
    assert_eq!(shown.lines().count(), 1, "{shown:?}");
    assert!(bare(&shown).starts_with("200 a�[31m�b�2J @local"), "{shown:?}");
}
