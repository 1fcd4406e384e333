//! Client body that is passed on to an upstream, with the same minimum rate as a collected body.
//!
//! Only the time during which the upstream waits for the client counts. The limit on the total time
//! of a large body restarts from time to time. So a body that keeps its minimum rate may take
//! hours, because none of it is kept in memory.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use creole::config::Settings;
use creole::{Millis, Pace};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::Sleep;

use crate::clock::Clock;

/// Time after which the limits on a body's rate restart. A small body must be complete before.
const ANEW_AFTER_MS: Millis = 300_001;

/// Body that is passed on, with an error if its client sends too slowly.
#[derive(Debug)]
pub(crate) struct Paced<B = Incoming> {
    body: B,
    clock: Clock,
    /// State of the rate check when the body began.
    first: Pace,
    pace: Pace,
    began: Millis,
    /// Time, in milliseconds, that does not count for the body's rate, because the upstream did not
    /// read or the limits restarted.
    uncounted: Millis,
    /// Time since which the upstream has not asked for more bytes; its connection may be slow.
    given: Option<Millis>,
    passed: usize,
    timer: Pin<Box<Sleep>>,
    /// Signal that the body is complete, and the permit to pass the body on. Both are dropped at
    /// the body's end.
    until_whole: Option<(oneshot::Sender<()>, OwnedSemaphorePermit)>,
}

/// Reason for which a body does not reach its upstream completely.
#[derive(Debug)]
pub(crate) enum Unpassed {
    TooSlow,
    BrokenOff(Box<dyn Error + Send + Sync>),
}

impl<B> Paced<B> {
    pub(crate) fn new(
        body: B,
        settings: &Settings,
        clock: Clock,
        until_whole: (oneshot::Sender<()>, OwnedSemaphorePermit),
    ) -> Self {
        let began = clock.now();
        let pace = Pace::start(settings, began);
        Self {
            body,
            clock,
            first: pace,
            pace,
            began,
            uncounted: 0,
            given: Some(began),
            passed: 0,
            timer: Box::pin(tokio::time::sleep_until(clock.instant(began))),
            until_whole: Some(until_whole),
        }
    }

    /// Notes bytes of the body that arrived. Returns false if the bytes arrived too slowly.
    fn goes_on(&mut self, bytes: usize, now: Millis) -> bool {
        self.passed = self.passed.saturating_add(bytes);
        let counted = now.saturating_sub(self.uncounted);
        let goes_on = self.pace.goes_on(bytes, self.passed, counted);
        if counted.saturating_sub(self.began) >= ANEW_AFTER_MS {
            (self.pace, self.uncounted) = (self.first, now.saturating_sub(self.began));
        }
        goes_on
    }
}

impl<B> Body for Paced<B>
where
    B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Unpin,
{
    type Data = Bytes;
    type Error = Unpassed;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Unpassed>>> {
        let this = self.get_mut();
        let now = this.clock.now();
        if let Some(given) = this.given.take() {
            this.uncounted = this.uncounted.saturating_add(now.saturating_sub(given));
        }
        let Poll::Ready(polled) = Pin::new(&mut this.body).poll_frame(context) else {
            let end = this.pace.end(this.passed).saturating_add(this.uncounted);
            let end = this.clock.instant(end);
            if this.timer.deadline() != end {
                this.timer.as_mut().reset(end);
            }
            ready!(this.timer.as_mut().poll(context));
            return Poll::Ready(Some(Err(Unpassed::TooSlow)));
        };
        let frame = match polled {
            Some(Ok(frame)) => frame,
            Some(Err(error)) => return Poll::Ready(Some(Err(Unpassed::BrokenOff(error.into())))),
            None => {
                this.until_whole = None;
                return Poll::Ready(None);
            }
        };
        if this.body.is_end_stream() {
            this.until_whole = None;
        } else if !this.goes_on(frame.data_ref().map_or(0, Bytes::len), now) {
            return Poll::Ready(Some(Err(Unpassed::TooSlow)));
        }
        this.given = Some(now);
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl fmt::Display for Unpassed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooSlow => out.write_str("the client's body came too slowly"),
            Self::BrokenOff(error) => write!(out, "the client's body broke off: {error}"),
        }
    }
}

impl Error for Unpassed {}

#[cfg(test)]
mod tests;
