//! Rate limit for log lines that a client or an attacker could cause in large numbers.

use std::time::{Duration, Instant};

/// Minimum time between two log lines of one kind.
const PAUSE: Duration = Duration::from_secs(10);

/// Time at which the last log line of one kind was written.
#[derive(Debug, Default)]
pub(crate) struct RateLimit(Option<Instant>);

impl RateLimit {
    /// Returns true if a line may be written now. The next line must then wait for `PAUSE`.
    pub(crate) fn is_due(&mut self) -> bool {
        let now = Instant::now();
        let is_due = self.0.is_none_or(|last| now.saturating_duration_since(last) >= PAUSE);
        if is_due {
            self.0 = Some(now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_anyone_can_cause_is_seldom_written() {
        let mut seldom = RateLimit::default();
        assert!(seldom.is_due() && !seldom.is_due());
        seldom.0 = Instant::now().checked_sub(PAUSE);
        assert!(seldom.is_due() && !seldom.is_due());
    }
}
