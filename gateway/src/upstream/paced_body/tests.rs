//! Tests of `paced_body.rs`.

use super::*;

use std::convert::Infallible;
use std::iter;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt as _;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};

/// Body that gives each piece after a number of seconds, and ends.
struct Pieces<I: Iterator> {
    pieces: iter::Peekable<I>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl<I: Iterator<Item = (u64, usize)> + Unpin> Body for Pieces<I> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some((seconds, bytes)) = self.pieces.peek().copied() else { return Poll::Ready(None) };
        let timer = || Box::pin(sleep(Duration::from_secs(seconds)));
        ready!(self.timer.get_or_insert_with(timer).as_mut().poll(context));
        (self.timer, _) = (None, self.pieces.next());
        Poll::Ready(Some(Ok(Frame::data(vec![b' '; bytes].into()))))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.size_hint() == (0, Some(0))
    }
}

type Whole = oneshot::Receiver<()>;

fn paced<I>(pieces: I) -> (Paced<Pieces<I>>, Whole)
where
    I: Iterator<Item = (u64, usize)> + Unpin,
{
    let (end, whole) = oneshot::channel();
    let place = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
    let body = Pieces { pieces: pieces.peekable(), timer: None };
    (Paced::new(body, &Settings::default(), Clock::start(), (end, place)), whole)
}

/// Reads a body at once. Returns the seconds until its end, and whether it is whole.
async fn read(pieces: impl Iterator<Item = (u64, usize)> + Unpin) -> (u64, bool) {
    let (mut body, since) = (paced(pieces).0, Instant::now());
    while let Some(frame) = body.frame().await {
        if let Err(error) = frame {
            assert!(matches!(error, Unpassed::TooSlow), "{error}");
            return (since.elapsed().as_secs(), false);
        }
    }
    (since.elapsed().as_secs(), true)
}

#[tokio::test(start_paused = true)]
async fn a_passed_body_that_comes_too_slowly_ends_as_a_collected_one_does() {
    let endless = |first, then, wait| iter::once((0, first)).chain(iter::repeat((wait, then)));
    assert_eq!(read(endless(1000, 1, 40)).await, (30, false));
    assert_eq!(read(endless(1_000_000, 1_000_000, 40)).await, (30, false));
    assert_eq!(read(endless(1000, 100, 1)).await, (300, false));
    for (then, wait) in [(1, 1), (4000, 1), (30_000, 9)] {
        let (seconds, is_whole) = read(endless(30_000_000, then, wait)).await;
        assert!((30..=60).contains(&seconds) && !is_whole, "{then} bytes each {wait} s: {seconds}");
    }
    assert_eq!(read(iter::repeat_n((1, 100_000), 10_000)).await, (10_000, true));
}

#[tokio::test(start_paused = true)]
async fn time_in_which_the_upstream_takes_nothing_is_not_the_clients() {
    let (mut body, mut whole) = paced(iter::repeat_n((1, 100_000), 10));
    for taken in 1..=10 {
        assert!(whole.try_recv() == Err(oneshot::error::TryRecvError::Empty), "{taken}");
        // The time before the first piece is the time to connect.
        sleep(Duration::from_secs(1000)).await;
        assert!(body.frame().await.unwrap().is_ok(), "{taken}");
    }
    assert_eq!(whole.try_recv(), Err(oneshot::error::TryRecvError::Closed), "the body is whole");
    assert!(body.frame().await.is_none());
}
