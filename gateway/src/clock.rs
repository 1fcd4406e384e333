//! Clock with Unix milliseconds that never go back within one exchange, although the system clock
//! may be corrected meanwhile. Each exchange has its own clock, because the monotonic clock stops
//! while a laptop sleeps.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use creole::Millis;
use tokio::time::Instant;

/// Clock that reads the system time once, and then adds monotonic time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    unix: Millis,
    instant: Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { unix: millis(unix), instant: Instant::now() }
    }

    pub(crate) fn now(&self) -> Millis {
        self.unix.saturating_add(millis(self.instant.elapsed()))
    }

    /// Returns the instant for a timer that fires at the time `at`, plus one millisecond: `now` is
    /// rounded down, and a timer that fires too early would be set again at once.
    pub(crate) fn instant(&self, at: Millis) -> Instant {
        let after = at.saturating_sub(self.unix).saturating_add(1);
        let far = Duration::from_secs(86_400);
        self.instant.checked_add(Duration::from_millis(after)).unwrap_or_else(|| {
            // The platform's clock cannot represent the time: a timer in a day is as good as never.
            let now = Instant::now();
            now.checked_add(far).unwrap_or(now)
        })
    }
}

fn millis(duration: Duration) -> Millis {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
