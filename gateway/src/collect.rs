//! A client's body, while it is collected: how large it may be, and how slowly it may come.
//!
//! What a client has sent is held against others while it sends no more. So a body may not pause for long, a large one
//! has a least rate, and each has a time in which it must be complete.

use std::time::Duration;

use bytes::Bytes;
use creole::Failure;
use creole::config::Settings;
use http_body::Body;
use http_body_util::BodyExt as _;
use tokio::time::{Instant, timeout_at};

use crate::budget::Held;

/// A body's length is a claim until its bytes are here: no more than this is reserved for it.
const RESERVED_MAX: usize = 1 << 20;

/// How long a client may pause in the middle of its body.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// How long a body may take as a whole.
const TIME_MAX: Duration = Duration::from_secs(300);

/// From this size on a body must come at a least rate.
const SMALL_BYTES: usize = 64 << 10;

/// For how long the rate is measured.
const WINDOW: Duration = Duration::from_secs(10);

/// So much must come in each [`WINDOW`].
const WINDOW_BYTES_MIN: usize = 80 << 10;

/// When a body is too slow.
struct Pace {
    pause: Duration,
    /// When it must be complete.
    end: Instant,
    last: Instant,
    window: Instant,
    in_window: usize,
}

impl Pace {
    fn start(settings: &Settings) -> Self {
        let now = Instant::now();
        let pause = PAUSE_MAX.min(Duration::from_millis(settings.stall_after_ms(true)));
        Self { pause, end: later(now, TIME_MAX), last: now, window: now, in_window: 0 }
    }

    /// When to look at it next, if nothing comes.
    fn next(&self, collected: usize) -> Instant {
        let pause = later(self.last, self.pause);
        let window = if collected < SMALL_BYTES { pause } else { later(self.window, WINDOW) };
        self.end.min(pause).min(window)
    }

    /// Notes that so many bytes came, or that none did. `false`: it is too slow.
    fn goes_on(&mut self, bytes: usize, collected: usize) -> bool {
        let now = Instant::now();
        let paused = now.saturating_duration_since(self.last);
        if now >= self.end || paused >= self.pause {
            return false;
        }
        if bytes > 0 {
            self.last = now;
        }
        self.in_window = self.in_window.saturating_add(bytes);
        if now.saturating_duration_since(self.window) < WINDOW {
            return true;
        }
        let enough = self.in_window >= WINDOW_BYTES_MIN;
        (self.window, self.in_window) = (now, 0);
        enough || collected < SMALL_BYTES
    }
}

fn later(from: Instant, by: Duration) -> Instant {
    from.checked_add(by).unwrap_or(from)
}

/// Collects a body; what it holds is taken from the budget.
pub(crate) async fn collect<B>(
    body: &mut B,
    settings: &Settings,
    held: &mut Held,
) -> Result<Vec<u8>, Failure>
where
    B: Body<Data = Bytes> + Unpin,
{
    let claimed = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    let mut collected = Vec::with_capacity(claimed.min(RESERVED_MAX));
    let mut pace = Pace::start(settings);
    loop {
        let piece = match timeout_at(pace.next(collected.len()), body.frame()).await {
            Ok(None) => return Ok(collected),
            Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
            Ok(Some(Err(_))) => return Err(Failure::RequestIncomplete),
            Err(_) => Bytes::new(),
        };
        if collected.len().saturating_add(piece.len()) > settings.request_bytes_max {
            return Err(Failure::RequestTooLarge);
        }
        if !held.grow(piece.len()) {
            return Err(Failure::Overloaded);
        }
        collected.extend_from_slice(&piece);
        if !pace.goes_on(piece.len(), collected.len()) {
            return Err(Failure::RequestIncomplete);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::{Context, Poll, ready};

    use http_body::Frame;

    use crate::budget::Budget;

    /// First so many bytes at once, then so many each time.
    struct Trickle {
        first: usize,
        then: usize,
        each: tokio::time::Interval,
    }

    impl Body for Trickle {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            let first = std::mem::take(&mut self.first);
            if first == 0 {
                ready!(self.each.poll_tick(context));
            }
            let length = if first > 0 { first } else { self.then };
            let piece = (length > 0).then(|| Ok(Frame::data(vec![b' '; length].into())));
            Poll::Ready(piece)
        }
    }

    /// How long a body is read that comes so, and why no longer.
    async fn read(first: usize, then: usize, seconds: u64) -> (u64, Failure) {
        let mut each = tokio::time::interval(Duration::from_secs(seconds));
        each.tick().await;
        let mut body = Trickle { first, then, each };
        let mut held = Budget::new(1 << 30).hold();
        let since = Instant::now();
        let failure = collect(&mut body, &Settings::default(), &mut held).await.unwrap_err();
        (since.elapsed().as_secs(), failure)
    }

    #[tokio::test(start_paused = true)]
    async fn a_large_body_that_trickles_is_given_up_within_two_windows() {
        for (then, seconds) in [(1, 1), (1, 20), (4000, 1), (70_000, 9)] {
            let (read, failure) = read(30_000_000, then, seconds).await;
            assert_eq!(failure, Failure::RequestIncomplete);
            assert!((10..=20).contains(&read), "{then} bytes each {seconds} s: {read} s");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn no_body_takes_longer_than_its_time() {
        for (then, seconds) in [(100, 1), (100_000, 1)] {
            let (read, failure) = read(1000, then, seconds).await;
            assert_eq!((read, failure), (300, Failure::RequestIncomplete), "{then}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_pauses_is_given_up() {
        assert_eq!(read(1000, 1, 40).await, (30, Failure::RequestIncomplete));
    }
}
