//! Unix milliseconds that never go back: the wall clock, read once, and the monotonic one since.

use creole::Millis;
use wasip2::clocks::{monotonic_clock, wall_clock};
use wasip2::io::poll::Pollable;

const NANOS: u64 = 1_000_000;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    unix: Millis,
    /// The monotonic clock at that time, in nanoseconds.
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

    /// Returns a pollable that is ready a millisecond after `at`: `now` is rounded down, and a
    /// timer that comes too early would be set again at once.
    pub(crate) fn timer(&self, at: Millis) -> Pollable {
        let after = at.saturating_sub(self.unix).saturating_add(1);
        let nanos = self.nanos.saturating_add(after.saturating_mul(NANOS));
        monotonic_clock::subscribe_instant(nanos)
    }
}
