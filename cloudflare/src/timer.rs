//! Timer for an exchange, restarted only when it has fired or must fire earlier.
//!
//! Every chunk of the upstream moves the exchange's next timeout, and a new timer for each chunk
//! would add a fifth to the cost of a chunk. So a running timer is left alone: if it fires too
//! early, it is set again for the remaining time.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker, ready};
use std::time::Duration;

use creole::Millis;
use futures_util::task::AtomicWaker;
use worker::Delay;

use crate::environment;

/// Longest delay that JavaScript's timers support, in milliseconds.
const LONGEST_MS: Millis = i32::MAX as Millis;

#[derive(Default)]
pub(crate) struct Timer {
    running: Option<(Millis, Pin<Box<Delay>>)>,
    relay: Arc<Relay>,
}

/// Waker that wakes the task that polled last. A [`Delay`] wakes the task that polled first, but
/// each pull of a stream is a task of its own.
#[derive(Default)]
struct Relay(AtomicWaker);

impl Wake for Relay {
    fn wake(self: Arc<Self>) {
        self.0.wake();
    }
}

impl Timer {
    /// Polls the timer: ready when the time `at` has come; `None` means never.
    pub(crate) fn poll(&mut self, at: Option<Millis>, context: &Context<'_>) -> Poll<()> {
        let Some(at) = at else { return Poll::Pending };
        self.relay.0.register(context.waker());
        loop {
            let now = environment::now();
            if now >= at {
                return Poll::Ready(());
            }
            match &mut self.running {
                Some((fires, delay)) if *fires <= at => {
                    let waker = Waker::from(Arc::clone(&self.relay));
                    ready!(delay.as_mut().poll(&mut Context::from_waker(&waker)));
                    self.running = None;
                }
                _ => {
                    let wait = at.saturating_sub(now).min(LONGEST_MS);
                    let delay = Box::pin(Delay::from(Duration::from_millis(wait)));
                    self.running = Some((now.saturating_add(wait), delay));
                }
            }
        }
    }
}
