//! Minimum rate at which a client must send the body of a request.
//!
//! The bytes of an incomplete body use memory that other requests could use. So a client may pause
//! only for a short time, a large body has a minimum rate, and every body has a maximum duration.
//! Networks stall and recover: a large body may be behind its rate for as long as the client may
//! pause, and later bytes make up for the delay.

use crate::Millis;
use crate::config::Settings;

/// Maximum pause within a client's body, and maximum delay of a large body against its minimum
/// rate.
const PAUSE_MAX_MS: Millis = 30_000;

/// Maximum duration of the upload of a small body.
const SMALL_TIME_MAX_MS: Millis = 300_000;

/// Maximum duration of the upload of a large body that keeps its minimum rate.
const TIME_MAX_MS: Millis = 600_000;

/// Size from which a body has a minimum rate.
const SMALL_BYTES: usize = 64 << 10;

/// Minimum rate of a large body, as microseconds for each byte: 8000 bytes per second.
const MICROS_OF_BYTE: u64 = 125;

/// Progress of one body against its minimum rate, while the body is collected.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    pause: Millis,
    began: Millis,
    /// Time at which the last bytes arrived.
    last: Millis,
    /// Time, in microseconds, at which a large body is too far behind its minimum rate.
    behind_us: u64,
}

impl Pace {
    /// Returns the pace of a body of which no byte has arrived.
    #[must_use]
    pub fn start(settings: &Settings, now: Millis) -> Self {
        let pause = PAUSE_MAX_MS.min(settings.stall_after_ms(true));
        let behind_us = micros(now.saturating_add(PAUSE_MAX_MS));
        Self { pause, began: now, last: now, behind_us }
    }

    /// Returns the time at which a body of `collected` bytes becomes too slow if no more bytes
    /// arrive.
    #[must_use]
    pub fn end(&self, collected: usize) -> Millis {
        let pause = self.last.saturating_add(self.pause);
        if collected < SMALL_BYTES {
            pause.min(self.began.saturating_add(SMALL_TIME_MAX_MS))
        } else {
            pause.min(self.began.saturating_add(TIME_MAX_MS)).min(self.behind_us / 1000)
        }
    }

    /// Notes that `bytes` more bytes arrived, `collected` in total. Returns false if they arrived
    /// too slowly.
    pub fn goes_on(&mut self, bytes: usize, collected: usize, now: Millis) -> bool {
        if bytes > 0 {
            self.last = now;
            let most = micros(now.saturating_add(PAUSE_MAX_MS));
            let was_small = collected.saturating_sub(bytes) < SMALL_BYTES;
            let time = MICROS_OF_BYTE.saturating_mul(bytes as u64);
            let kept_up = self.behind_us.max(micros(now)).saturating_add(time);
            self.behind_us = if was_small { most } else { kept_up.min(most) };
        }
        now < self.end(collected)
    }
}

fn micros(at: Millis) -> u64 {
    at.saturating_mul(1000)
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects)]
mod tests {
    use super::*;

    const BEGAN: Millis = 1_790_000_000_000;

    /// Simulates a body whose pieces arrive each after a number of seconds. Returns the seconds
    /// until the body is complete or too slow, and the body's size if complete.
    fn read(pieces: impl IntoIterator<Item = (u64, usize)>) -> (u64, Option<usize>) {
        let mut pace = Pace::start(&Settings::default(), BEGAN);
        let (mut now, mut collected) = (BEGAN, 0);
        let seconds = |at: Millis| (at - BEGAN) / 1000;
        for (wait, bytes) in pieces {
            let end = pace.end(collected);
            now += wait * 1000;
            if now >= end {
                return (seconds(end), None);
            }
            collected += bytes;
            if !pace.goes_on(bytes, collected, now) {
                return (seconds(now), None);
            }
        }
        (seconds(now), Some(collected))
    }

    /// Simulates a body with a first piece and then equal pieces without end. Returns the seconds
    /// until the body is too slow.
    fn endless(first: usize, then: usize, wait: u64) -> u64 {
        let (read, whole) =
            read(std::iter::once((0, first)).chain(std::iter::repeat((wait, then))));
        assert_eq!(whole, None);
        read
    }

    #[test]
    fn a_large_body_that_trickles_is_too_slow_within_a_minute() {
        for (then, wait) in [(1, 1), (1, 20), (4000, 1), (30_000, 9)] {
            let read = endless(30_000_000, then, wait);
            assert!((30..=60).contains(&read), "{then} bytes each {wait} s: {read} s");
        }
        assert_eq!(endless(32 * (1 << 20) - 70_000, 1, 5), 30);
    }

    #[test]
    fn no_body_takes_longer_than_its_time_and_none_pauses_for_long() {
        assert_eq!((endless(1000, 100, 1), endless(1000, 9000, 1)), (300, 600));
        assert_eq!((endless(1000, 1, 40), endless(1_000_000, 1_000_000, 40)), (30, 30));
    }

    #[test]
    fn a_body_that_stalls_now_and_then_or_comes_on_a_slow_line_is_read_to_its_end() {
        let pieces = (0..50).map(|index| (if index % 10 == 5 { 28 } else { 1 }, 100_000));
        assert_eq!(read(pieces), (45 + 5 * 28, Some(5_000_000)));
        let tail = std::iter::repeat_n((1, 8000), 5).chain([(25, 10_000), (1, 8000), (1, 8000)]);
        let pieces = std::iter::once((0, 3_000_000)).chain(tail);
        assert_eq!(read(pieces), (32, Some(3_066_000)));
        assert_eq!(read(std::iter::repeat_n((1, 64 << 10), 400)), (400, Some(25 << 20)));
    }
}
