//! Unix milliseconds that never go back in one exchange: the core compares times, and a laptop's
//! clock is corrected while streams run. Each exchange has a clock of its own, because the steady
//! one stands still while a laptop sleeps.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use creole::Millis;
use tokio::time::Instant;

/// The system's clock, read once, and a steady one since.
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

    /// The moment for a timer of `at`. One millisecond later than that, because `now` is rounded
    /// down and a timer that comes too early would be set again at once.
    pub(crate) fn instant(&self, at: Millis) -> Instant {
        let after = at.saturating_sub(self.unix).saturating_add(1);
        let far = Duration::from_secs(86_400);
        self.instant.checked_add(Duration::from_millis(after)).unwrap_or_else(|| {
            // Beyond what the platform's clock can name: a day is as good as never.
            let now = Instant::now();
            now.checked_add(far).unwrap_or(now)
        })
    }
}

fn millis(duration: Duration) -> Millis {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
