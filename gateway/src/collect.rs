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

/// A body's length is a claim until its bytes are here: no more than this is reserved for it.
const RESERVED_MAX: usize = 1 << 20;

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
        let piece = match timeout_at(pace.end(collected.len()), body.frame()).await {
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
mod tests {
    use super::*;

    use std::convert::Infallible;
    use std::iter;
    use std::pin::Pin;
    use std::task::{Context, Poll, ready};

    use http_body::Frame;
    use tokio::time::Sleep;

    use crate::budget::Budget;

    /// Sends each piece after so many seconds, and ends.
    struct Sent<I> {
        pieces: I,
        next: Option<(Pin<Box<Sleep>>, usize)>,
    }

    impl<I: Iterator<Item = (u64, usize)> + Unpin> Body for Sent<I> {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            if self.next.is_none() {
                let Some((seconds, length)) = self.pieces.next() else { return Poll::Ready(None) };
                let wait = tokio::time::sleep(Duration::from_secs(seconds));
                self.next = Some((Box::pin(wait), length));
            }
            let (wait, length) = self.next.as_mut().unwrap();
            ready!(wait.as_mut().poll(context));
            let piece = Frame::data(vec![b' '; *length].into());
            self.next = None;
            Poll::Ready(Some(Ok(piece)))
        }
    }

    /// What a body comes to, and after how many seconds.
    async fn read_all(
        pieces: impl Iterator<Item = (u64, usize)> + Unpin,
    ) -> (u64, Result<usize, Failure>) {
        let mut held = Budget::new(1 << 30).hold();
        let mut body = Sent { pieces, next: None };
        let since = Instant::now();
        let collected = collect(&mut body, &Settings::default(), &mut held).await;
        (since.elapsed().as_secs(), collected.map(|body| body.len()))
    }

    /// How long a body is read that comes so, without end.
    async fn read(first: usize, then: usize, seconds: u64) -> u64 {
        let pieces = iter::once((0, first)).chain(iter::repeat((seconds, then)));
        let (read, collected) = read_all(pieces).await;
        assert_eq!(collected, Err(Failure::RequestTooSlow), "{then} bytes each {seconds} s");
        read
    }

    #[tokio::test(start_paused = true)]
    async fn a_large_body_that_trickles_is_given_up_within_a_minute() {
        for (then, seconds) in [(1, 1), (1, 20), (4000, 1), (30_000, 9)] {
            let read = read(30_000_000, then, seconds).await;
            assert!((30..=60).contains(&read), "{then} bytes each {seconds} s: {read} s");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_a_large_body_has_the_rate_of_the_rest() {
        // Less is missing than comes in ten seconds.
        let read = read(32 * (1 << 20) - 70_000, 1, 5).await;
        assert_eq!(read, 30);
    }

    #[tokio::test(start_paused = true)]
    async fn no_body_takes_longer_than_its_time() {
        assert_eq!(read(1000, 100, 1).await, 300);
        assert_eq!(read(1000, 9000, 1).await, 600);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_pauses_is_given_up() {
        assert_eq!(read(1000, 1, 40).await, 30);
        assert_eq!(read(1_000_000, 1_000_000, 40).await, 30);
    }

    #[tokio::test(start_paused = true)]
    async fn an_upload_that_stalls_now_and_then_is_read_to_its_end() {
        // Each second 100 kB, and each tenth of them after a pause.
        let pieces = (0..50).map(|index| (if index % 10 == 5 { 28 } else { 1 }, 100_000));
        assert_eq!(read_all(pieces).await, (45 + 5 * 28, Ok(5_000_000)));
        // The last of it comes in small pieces, at the rate and after a pause.
        let tail = iter::repeat_n((1, 8000), 5).chain([(25, 10_000), (1, 8000), (1, 8000)]);
        let pieces = iter::once((0, 3_000_000)).chain(tail);
        assert_eq!(read_all(pieces).await, (32, Ok(3_066_000)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_large_document_on_a_slow_line_is_read_to_its_end() {
        let pieces = iter::repeat_n((1, 64 << 10), 400);
        assert_eq!(read_all(pieces).await, (400, Ok(25 << 20)));
    }
}
