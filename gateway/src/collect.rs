//! A client's body, while it is collected: how large it may be, and how slowly it may come.
//!
//! What a client has sent is held against others while it sends no more. So a body may not pause for long, a large one
//! has a least rate, and each has a time in which it must be complete. Networks stall and recover: a large body may be
//! behind its rate for as long as it may pause, and makes up for it with what comes next.

use std::time::Duration;

use bytes::Bytes;
use creole::Failure;
use creole::config::Settings;
use http_body::Body;
use http_body_util::BodyExt as _;
use tokio::time::{Instant, timeout_at};

use crate::budget::Held;

/// How long a client may pause in the middle of its body, and how far a large body may be behind its rate.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// How long a body may take as a whole, while it is small.
const SMALL_TIME_MAX: Duration = Duration::from_secs(300);

/// How long a large body may take, which keeps to its rate.
const TIME_MAX: Duration = Duration::from_secs(600);

/// From this size on a body must come at a least rate.
const SMALL_BYTES: usize = 64 << 10;

/// The least rate: 8000 bytes in a second.
const TIME_OF_BYTE: Duration = Duration::from_micros(125);

/// When a body is too slow.
struct Pace {
    pause: Duration,
    began: Instant,
    /// When bytes came.
    last: Instant,
    /// When a large body is too far behind its rate.
    behind: Instant,
}

impl Pace {
    fn start(settings: &Settings) -> Self {
        let now = Instant::now();
        let pause = PAUSE_MAX.min(Duration::from_millis(settings.stall_after_ms(true)));
        Self { pause, began: now, last: now, behind: later(now, PAUSE_MAX) }
    }

    /// When it is too slow, if nothing comes.
    fn end(&self, collected: usize) -> Instant {
        let pause = later(self.last, self.pause);
        if collected < SMALL_BYTES {
            pause.min(later(self.began, SMALL_TIME_MAX))
        } else {
            pause.min(later(self.began, TIME_MAX)).min(self.behind)
        }
    }

    /// Notes that so many bytes came, which makes `collected` of them. `false`: they came too slowly.
    fn goes_on(&mut self, bytes: usize, collected: usize) -> bool {
        let now = Instant::now();
        if bytes > 0 {
            self.last = now;
            let most = later(now, PAUSE_MAX);
            let was_small = collected.saturating_sub(bytes) < SMALL_BYTES;
            let count = u32::try_from(bytes).unwrap_or(u32::MAX);
            let kept_up = later(self.behind.max(now), TIME_OF_BYTE.saturating_mul(count));
            self.behind = if was_small { most } else { kept_up.min(most) };
        }
        now < self.end(collected)
    }
}

fn later(from: Instant, by: Duration) -> Instant {
    from.checked_add(by).unwrap_or(from)
}

/// Collects a body, whose memory is taken from the budget. It ends at once where others get its memory.
pub(crate) async fn collect<B>(
    body: &mut B,
    settings: &Settings,
    held: &mut Held,
) -> Result<Vec<u8>, Failure>
where
    B: Body<Data = Bytes> + Unpin,
{
    // A length is a claim: nothing is reserved for it.
    let mut collected = Vec::new();
    let mut pace = Pace::start(settings);
    loop {
        let polled = tokio::select! {
            biased;
            () = held.given_up() => return Err(Failure::Overloaded),
            polled = timeout_at(pace.end(collected.len()), body.frame()) => polled,
        };
        let piece = match polled {
            Ok(None) => return Ok(collected),
            Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
            Ok(Some(Err(_))) => return Err(Failure::RequestIncomplete),
            Err(_) => return Err(Failure::RequestTooSlow),
        };
        if collected.len().saturating_add(piece.len()) > settings.request_bytes_max {
            return Err(Failure::RequestTooLarge);
        }
        if !held.grow(piece.len()) {
            return Err(Failure::Overloaded);
        }
        collected.extend_from_slice(&piece);
        if !pace.goes_on(piece.len(), collected.len()) {
            return Err(Failure::RequestTooSlow);
        }
    }
}

#[cfg(test)]
mod tests;
