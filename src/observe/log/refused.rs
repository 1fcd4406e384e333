//! Limit on the number of log lines about refused requests, so that a client without a key cannot
//! fill the log.

use crate::Millis;
use crate::observe::report::{Cause, Outcome, Report};

/// Period for which the number of log lines about refused requests is limited.
const PERIOD_MS: Millis = 10_000;

/// Maximum number of log lines about refused requests in each period.
const LINES_MAX: u32 = 100;

/// Counter of the log lines about refused requests. Each host has one counter for all its requests.
#[derive(Debug, Default)]
pub struct RefusedLines {
    since: Millis,
    written: u32,
    left_out: u64,
}

impl RefusedLines {
    /// Returns `None` if the log line of a finished exchange is to be left out, else the number of
    /// log lines that were left out and not reported yet.
    pub fn admit(&mut self, report: &Report, now: Millis) -> Option<u64> {
        if !is_refused(report) {
            return Some(0);
        }
        // A clock may be set back.
        if now < self.since || now.saturating_sub(self.since) >= PERIOD_MS {
            (self.since, self.written) = (now, 0);
        }
        if self.written >= LINES_MAX {
            self.left_out = self.left_out.saturating_add(1);
            return None;
        }
        self.written = self.written.saturating_add(1);
        Some(std::mem::take(&mut self.left_out))
    }
}

/// Returns true if a client caused this log line and the request was sent to no upstream.
fn is_refused(report: &Report) -> bool {
    match report.outcome {
        Outcome::Abandoned => report.requested_at == 0,
        Outcome::Failed(..) => matches!(
            report.failed_by,
            Some(
                Cause::Forbidden
                    | Cause::Loop
                    | Cause::Overloaded
                    | Cause::RequestIncomplete
                    | Cause::RequestTooLarge
                    | Cause::RequestTooSlow
                    | Cause::Unauthorized
            )
        ),
        Outcome::Open | Outcome::Answered => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{ErrorKind, Fault};

    #[test]
    fn lines_of_refused_requests_are_limited_and_counted_and_others_are_not() {
        let outcome = Outcome::Failed(ErrorKind::Authentication, Fault::Client);
        let failed_by = Some(Cause::Unauthorized);
        let refused = Report { outcome, failed_by, ..Report::default() };
        let gone = Report { outcome: Outcome::Abandoned, ..Report::default() };
        let answered = Report { outcome: Outcome::Answered, ..Report::default() };
        let late = Report { requested_at: 1, ..gone.clone() };
        let mut lines = RefusedLines::default();
        let written = (0..500).filter(|now| lines.admit(&refused, 20_000 + now).is_some()).count();
        assert_eq!(written, 100);
        assert_eq!(lines.admit(&gone, 20_500), None);
        assert_eq!(
            (lines.admit(&answered, 20_500), lines.admit(&late, 20_500)),
            (Some(0), Some(0))
        );
        assert_eq!(lines.admit(&refused, 30_000), Some(401));
        assert_eq!(lines.admit(&refused, 30_000), Some(0));
    }
}
