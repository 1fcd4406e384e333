//! Report of a finished exchange to Envoy: statistics, and one line in the log.

use creole::Millis;
use creole::config::Config;
use creole::observe::log::{self, Level, LoggedRequest, RefusedLines};
use creole::observe::metrics::{Counters, MetricKind, Sample};
use creole::observe::report::Report;

use crate::action::Action;

/// Initial capacity for a statistic's name, in bytes; enough for most names.
const NAME_BYTES: usize = 128;

/// Counts and logs an exchange that has ended.
pub fn finished(
    report: &Report,
    request: &LoggedRequest,
    config: &Config,
    (counters, lines): (&mut Counters, &mut RefusedLines),
    now: Millis,
    actions: &mut Vec<Action>,
) {
    counters.count(report, config.models.entry(&report.model), now, |sample| {
        let (name, value) = (statistic(&sample), sample.value);
        actions.push(match sample.metric.kind {
            MetricKind::Counter => Action::Count { name, by: value },
            MetricKind::Histogram => Action::Record { name, value },
        });
    });
    let Some(left_out) = lines.admit(report, now) else { return };
    if left_out > 0 {
        let line = format!("{left_out} refused requests before this one have no line");
        actions.push(Action::Log(Level::Warn, line));
    }
    if let Some(line) = log::line(request, report, config.settings.log, now) {
        actions.push(Action::Log(log::level(report), line));
    }
}

/// Returns the name of a statistic. Envoy's statistics have no labels, so labels are part of the
/// name, and `stats_tags` in `envoy.yaml` extracts them.
fn statistic(sample: &Sample<'_>) -> String {
    let mut name = String::with_capacity(NAME_BYTES);
    name.push_str(sample.metric.name);
    name.push('.');
    for (label, value) in sample.pairs() {
        for part in [label, "=", value, ";"] {
            name.push_str(part);
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use creole::error::{ErrorKind, Fault};
    use creole::observe::report::Outcome;

    #[test]
    fn labels_stand_in_the_names_of_statistics() {
        let report = Report {
            status: 529,
            outcome: Outcome::Failed(ErrorKind::Overloaded, Fault::Upstream),
            upstream: "big one".to_owned(),
            upstream_request_bytes: 1,
            ..Report::default()
        };
        let (mut counters, mut actions) = (Counters::default(), Vec::new());
        let request =
            LoggedRequest { details: "via_upstream".to_owned(), ..LoggedRequest::default() };
        let mut lines = RefusedLines::default();
        let kept = (&mut counters, &mut lines);
        finished(&report, &request, &Config::default(), kept, 5, &mut actions);
        let name = "creole_requests_total.outcome=failed_upstream;status=529;upstream=big_one;";
        assert_eq!(actions.first(), Some(&Action::Count { name: name.to_owned(), by: 1 }));
        let name = "creole_request_duration_milliseconds.upstream=big_one;".to_owned();
        assert!(actions.contains(&Action::Record { name, value: 5 }), "{actions:?}");
        let Some(Action::Log(Level::Warn, line)) = actions.last() else { panic!("{actions:?}") };
        assert!(line.contains(r#""details":"via_upstream""#), "{line}");
    }
}
