//! Tests of `request_body.rs`.

use super::*;

use std::convert::Infallible;
use std::iter;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http_body::Frame;
use tokio::time::{Instant, Sleep};

use std::sync::Arc;
use std::time::Duration;

use creole::Owner;

use crate::server::budget::Budget;

/// Body that sends each piece after a number of seconds, and ends.
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

/// Collects a body. Returns the seconds until the end, and the body's size or the failure.
async fn read_all(
    pieces: impl Iterator<Item = (u64, usize)> + Unpin,
) -> (u64, Result<usize, Failure>) {
    let mut held = Budget::new(1 << 30).begin(Owner::of_connection(1), Arc::default());
    let mut body = Sent { pieces, next: None };
    let since = Instant::now();
    let collected = collect(&mut body, &Settings::default(), &mut held, Clock::start()).await;
    (since.elapsed().as_secs(), collected.map(|body| body.len()))
}

/// Returns the seconds until an endless body fails, with `first` bytes and then `then` bytes each
/// `seconds` seconds.
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
    // Fewer bytes are missing than come in ten seconds at the minimum rate.
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
    // Each piece of 100 kB comes after a second, and each tenth piece after a pause.
    let pieces = (0..50).map(|index| (if index % 10 == 5 { 28 } else { 1 }, 100_000));
    assert_eq!(read_all(pieces).await, (45 + 5 * 28, Ok(5_000_000)));
    // The last bytes come in small pieces, at the minimum rate and after a pause.
    let tail = iter::repeat_n((1, 8000), 5).chain([(25, 10_000), (1, 8000), (1, 8000)]);
    let pieces = iter::once((0, 3_000_000)).chain(tail);
    assert_eq!(read_all(pieces).await, (32, Ok(3_066_000)));
}

#[tokio::test(start_paused = true)]
async fn a_large_document_on_a_slow_line_is_read_to_its_end() {
    let pieces = iter::repeat_n((1, 64 << 10), 400);
    assert_eq!(read_all(pieces).await, (400, Ok(25 << 20)));
}

#[tokio::test(start_paused = true)]
async fn a_body_whose_memory_others_get_ends_at_once() {
    let budget = Budget::new(16 << 20);
    let begin = |connection| budget.begin(Owner::of_connection(connection), Arc::default());
    let (mut held, mut other) = (begin(1), begin(2));
    let mut body = Sent { pieces: [(0, 1000), (20, 9 << 20), (20, 1000)].into_iter(), next: None };
    let settings = Settings::default();
    let collected = collect(&mut body, &settings, &mut held, Clock::start());
    let take = async {
        tokio::time::sleep(Duration::from_secs(25)).await;
        assert!(other.grow(8 << 20));
        Instant::now()
    };
    let (collected, taken) = tokio::join!(async { (collected.await, Instant::now()) }, take);
    assert_eq!(collected, (Err(Failure::Overloaded), taken));
}
