//! The memory that all requests hold together, `buffered_bytes_max`: the core's [`creole::Budget`]
//! behind one lock.
//!
//! Counted are each exchange and its head, the client's body while it is collected, the translated
//! request until the upstream answers, the judge's as well, what is kept of an answer (a whole one,
//! an event that is not complete, calls that wait), an answer that its client has not read, and
//! heads that are not complete. A stream that flows holds no more than its sockets do, and its
//! client's pace slows its upstream.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use creole::{Holding, Millis, Owner};
use tokio::sync::Notify;
use tokio::time::Instant;

/// Most memory of an exchange beside its bodies: its state, its tasks and buffers.
const EXCHANGE_BYTES: usize = 16 << 10;

/// Steps in which the memory of an exchange is counted: the lock is rarely taken for small growths.
const STEPS_OF_EXCHANGE: usize = 4;

/// Memory of all requests.
#[derive(Debug)]
pub(crate) struct Budget {
    shared: Mutex<Shared>,
    /// Bytes that each exchange takes for itself.
    exchange: usize,
    step: usize,
    began: Instant,
}

#[derive(Debug)]
struct Shared {
    core: creole::Budget,
    /// Requests without a whole body, and the signal that one of them is given up.
    incomplete: BTreeMap<Holding, Arc<Notify>>,
}

/// Part of the memory of a request; freed when it is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    request: Arc<Request>,
    bytes: usize,
}

/// A request in the budget. It ends with the last part of its memory.
#[derive(Debug)]
struct Request {
    budget: Arc<Budget>,
    holding: Holding,
    amount: Mutex<Amount>,
    given_up: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Amount {
    /// Sum of all parts.
    bytes: usize,
    /// Bytes that the budget counts: the sum, rounded up to a step.
    counted: usize,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Budget {
    pub(crate) fn new(max: usize) -> Arc<Self> {
        let exchange = EXCHANGE_BYTES.min(max / 16_384);
        let shared = Shared { core: creole::Budget::new(max), incomplete: BTreeMap::new() };
        Arc::new(Self {
            shared: Mutex::new(shared),
            exchange,
            step: (exchange / STEPS_OF_EXCHANGE).max(1),
            began: Instant::now(),
        })
    }

    /// Begins a request that is let in and holds nothing yet. `given_up` is notified when others
    /// get its memory.
    pub(crate) fn begin(self: &Arc<Self>, owner: Owner, given_up: Arc<Notify>) -> Held {
        self.begin_by(creole::Budget::begin, owner, given_up)
    }

    /// Begins a request that is not let in, or not yet: nobody is given up for it, and it is given
    /// up before others.
    pub(crate) fn begin_stranger(self: &Arc<Self>, owner: Owner, given_up: Arc<Notify>) -> Held {
        self.begin_by(creole::Budget::begin_stranger, owner, given_up)
    }

    fn begin_by(
        self: &Arc<Self>,
        begin: fn(&mut creole::Budget, Owner, Millis) -> Holding,
        owner: Owner,
        given_up: Arc<Notify>,
    ) -> Held {
        let now = self.now();
        let mut shared = locked(&self.shared);
        let holding = begin(&mut shared.core, owner, now);
        shared.incomplete.insert(holding, Arc::clone(&given_up));
        drop(shared);
        let (budget, amount) = (Arc::clone(self), Mutex::default());
        Held { request: Arc::new(Request { budget, holding, amount, given_up }), bytes: 0 }
    }

    /// Returns the bytes that each exchange takes for itself, with as much of its answer.
    pub(crate) fn exchange(&self) -> usize {
        self.exchange
    }

    fn now(&self) -> Millis {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn set(&self, holding: Holding, bytes: usize) -> bool {
        let now = self.now();
        let mut shared = locked(&self.shared);
        let is_set = shared.core.set(holding, bytes, now).is_ok();
        while let Some(victim) = shared.core.poll_given_up() {
            if let Some(given_up) = shared.incomplete.remove(&victim) {
                given_up.notify_one();
            }
        }
        is_set
    }
}

impl Request {
    /// Changes the size of one part. Returns false if there is not so much memory, and then nothing
    /// changed.
    fn change(&self, before: usize, after: usize) -> bool {
        let mut amount = locked(&self.amount);
        let bytes = amount.bytes.saturating_sub(before).saturating_add(after);
        let counted = bytes.checked_next_multiple_of(self.budget.step).unwrap_or(bytes);
        if counted != amount.counted && !self.budget.set(self.holding, counted) && after > before {
            return false;
        }
        *amount = Amount { bytes, counted };
        true
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        let mut shared = locked(&self.budget.shared);
        shared.core.end(self.holding);
        shared.incomplete.remove(&self.holding);
    }
}

impl Held {
    /// Takes `bytes` more. Returns false if there are not so many.
    #[must_use]
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        self.set(self.bytes.saturating_add(bytes))
    }

    /// Holds so much from now on. Returns false if there is not so much, and then nothing changed.
    #[must_use]
    pub(crate) fn set(&mut self, bytes: usize) -> bool {
        let is_set = bytes == self.bytes || self.request.change(self.bytes, bytes);
        if is_set {
            self.bytes = bytes;
        }
        is_set
    }

    /// Frees everything.
    pub(crate) fn release(&mut self) {
        let _ = self.set(0);
    }

    /// Returns the bytes of an answer that are held by the exchange itself.
    pub(crate) fn free(&self) -> usize {
        self.request.budget.exchange
    }

    /// Returns another part of the same request, which holds nothing yet.
    pub(crate) fn part(&self) -> Self {
        Self { request: Arc::clone(&self.request), bytes: 0 }
    }

    /// Moves what is held to another part.
    pub(crate) fn take(&mut self) -> Self {
        let bytes = std::mem::take(&mut self.bytes);
        Self { request: Arc::clone(&self.request), bytes }
    }

    /// Holds what is held for as long as somebody has these bytes.
    pub(crate) fn with(&mut self, bytes: Vec<u8>) -> Bytes {
        if self.bytes == 0 {
            return bytes.into();
        }
        Bytes::from_owner(Owned { bytes, _held: self.take() })
    }

    /// Notes that the body of the request is whole: the request is not given up any more.
    pub(crate) fn complete(&self) {
        let holding = self.request.holding;
        let mut shared = locked(&self.request.budget.shared);
        shared.core.complete(holding);
        shared.incomplete.remove(&holding);
    }

    /// Notes that the answer to the request begins: its owner's share does not limit it any more.
    pub(crate) fn begin_answer(&self) {
        locked(&self.request.budget.shared).core.begin_answer(self.request.holding);
    }

    /// Waits until the request is given up for others.
    pub(crate) async fn given_up(&self) {
        self.request.given_up.notified().await;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.release();
    }
}

/// Bytes that are held until they are dropped.
struct Owned {
    bytes: Vec<u8>,
    _held: Held,
}

impl AsRef<[u8]> for Owned {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests;
