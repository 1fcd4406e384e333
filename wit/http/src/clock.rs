//! Clock in Unix milliseconds that never goes back: the wall clock is read once, and the monotonic
//! clock measures the time since.

use creole::Millis;
use wasip2::clocks::{monotonic_clock, wall_clock};
use wasip2::io::poll::Pollable;

const NANOS: u64 = 1_000_000;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    unix: Millis,
    /// Reading of the monotonic clock at the moment `unix`, in nanoseconds.
    nanos: u64,
}

impl Clock {
    pub(crate) fn start() -> Self {
        let now = wall_clock::now();
        let millis = u64::from(now.nanoseconds) / NANOS;
        Self {
            unix: now.seconds.saturating_mul(1000).saturating_add(millis),
            nanos: monotonic_clock::now(),
        }
    }

    pub(crate) fn now(&self) -> Millis {
        let since = monotonic_clock::now().saturating_sub(self.nanos);
        self.unix.saturating_add(since / NANOS)
    }

    /// Returns a pollable that is ready a millisecond after `at`. `now` is rounded down, so a timer
    /// for `at` itself would fire too early and be set again.
    pub(crate) fn timer(&self, at: Millis) -> Pollable {
        let after = at.saturating_sub(self.unix).saturating_add(1);
        let nanos = self.nanos.saturating_add(after.saturating_mul(NANOS));
        monotonic_clock::subscribe_instant(nanos)
    }
}
