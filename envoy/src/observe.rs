//! One line of the log and the counters of a finished exchange.
//!
//! Names, counts and times: never a prompt, a tool input or a credential.

use std::fmt::Write as _;

use creole::Millis;
use creole::config::Log;
use creole::error::Fault;
use creole::report::{Outcome, Report};

use crate::action::{Action, Level};

/// Longest name that a client chose, in the log.
const NAME_CHARS_MAX: usize = 80;

/// Counts and logs an exchange that is over.
pub fn finished(report: &Report, details: &str, log: Log, now: Millis, actions: &mut Vec<Action>) {
    // Labels are in the name: `stats_tags` in envoy.yaml takes them out again.
    let (outcome, name, level) = match report.outcome {
        Outcome::Answered => ("answered", "creole.requests.outcome=answered;", Level::Info),
        Outcome::Abandoned | Outcome::Open => {
            ("abandoned", "creole.requests.outcome=abandoned;", Level::Info)
        }
        Outcome::Failed(_, Fault::Client) => {
            ("failed_client", "creole.requests.outcome=failed_client;", Level::Info)
        }
        Outcome::Failed(_, Fault::Upstream) => {
            ("failed_upstream", "creole.requests.outcome=failed_upstream;", Level::Warn)
        }
        Outcome::Failed(_, Fault::Operator) => {
            ("failed_operator", "creole.requests.outcome=failed_operator;", Level::Error)
        }
    };
    actions.push(Action::Count { name, by: 1 });
    let answer = &report.answer;
    for (name, by) in [
        ("creole.tokens.kind=input;", answer.input_tokens),
        ("creole.tokens.kind=output;", answer.output_tokens),
        ("creole.warnings", report.warnings.iter().map(|warning| u64::from(warning.count)).sum()),
    ] {
        if by > 0 {
            actions.push(Action::Count { name, by });
        }
    }
    let wanted = match log {
        Log::Off => return,
        Log::Error => Level::Error,
        Log::Warn => Level::Warn,
        Log::Info => Level::Info,
        Log::Debug => Level::Debug,
    };
    if level >= wanted {
        actions.push(Action::Log(level, line(report, outcome, details, now)));
    }
}

fn line(report: &Report, outcome: &str, details: &str, now: Millis) -> String {
    let mut line = format!("exchange request_id={} outcome={outcome}", report.request_id);
    let mut field = |name: &str, value: &dyn std::fmt::Display| {
        // Writing to a String cannot fail.
        let _ = write!(line, " {name}={value}");
    };
    if let Outcome::Failed(kind, _) = report.outcome {
        field("error", &kind.word());
    }
    field("status", &report.status);
    field("model", &clean(&report.model));
    field("upstream", &clean(&report.upstream));
    field("stream", &report.stream);
    if let Some(id) = &report.upstream_request_id {
        field("upstream_request_id", &clean(id));
    }
    field("request_bytes", &report.request_bytes);
    field("response_bytes", &report.response_bytes);
    if report.requested_at > 0 {
        let since = |at: Millis| at.saturating_sub(report.requested_at);
        if let Some(at) = report.head_at {
            field("head_ms", &since(at));
        }
        if let Some(at) = report.first_byte_at {
            field("first_byte_ms", &since(at));
        }
        field("duration_ms", &since(now));
    }
    let answer = &report.answer;
    if let Some(reason) = answer.stop_reason {
        field("stop_reason", &reason);
    }
    field("input_tokens", &answer.input_tokens);
    field("output_tokens", &answer.output_tokens);
    if answer.tool_calls > 0 {
        field("tool_calls", &answer.tool_calls);
    }
    if let Some(codes) = report.warnings.header() {
        field("warnings", &codes);
    }
    if !report.guards.is_empty() {
        field("guards", &report.guards.join(","));
    }
    field("details", &clean(details));
    line
}

/// A text from outside, made safe for one field of one line.
fn clean(text: &str) -> String {
    let clean: String = text
        .chars()
        .take(NAME_CHARS_MAX)
        .map(|char| if char.is_ascii_graphic() && char != '"' { char } else { '_' })
        .collect();
    if clean.is_empty() { "-".to_owned() } else { clean }
}

#[cfg(test)]
mod tests {
    use super::*;
    use creole::error::Kind;

    #[test]
    fn a_model_name_cannot_forge_a_line() {
        let report = Report {
            model: "x\nexchange outcome=answered".to_owned(),
            outcome: Outcome::Failed(Kind::Overloaded, Fault::Upstream),
            ..Report::default()
        };
        let mut actions = Vec::new();
        finished(&report, "via_upstream", Log::Info, 5, &mut actions);
        let Some(Action::Log(Level::Warn, line)) = actions.last() else { panic!("{actions:?}") };
        assert!(line.contains("model=x_exchange_outcome=answered "), "{line}");
        assert!(line.contains("outcome=failed_upstream error=overloaded_error"), "{line}");
    }

    #[test]
    fn the_setting_log_keeps_quiet_what_is_less_urgent() {
        let report = Report { outcome: Outcome::Answered, ..Report::default() };
        for (log, lines) in [(Log::Off, 0), (Log::Warn, 0), (Log::Info, 1), (Log::Debug, 1)] {
            let mut actions = Vec::new();
            finished(&report, "", log, 5, &mut actions);
            let found = actions.iter().filter(|action| matches!(action, Action::Log(..))).count();
            assert_eq!(found, lines, "{log:?}");
        }
    }
}
