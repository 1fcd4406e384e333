//! Limit on the memory that all requests hold together, `buffered_bytes_max`: the core's
//! [`creole::Budget`] behind a lock.
//!
//! Memory that counts: each exchange and its head; the client's body while it is collected; the
//! translated request until the upstream answers; the judge's request. Of an answer, these parts
//! count: a whole answer, an incomplete event, delayed tool calls, and bytes that the client has
//! not read yet. Incomplete heads count as well. A stream that flows holds no more than its sockets
//! do, and a slow client slows its upstream.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use creole::{Holding, Millis, Owner};
use tokio::sync::Notify;
use tokio::time::Instant;

/// Maximum memory of an exchange, without its bodies: its state, its tasks and its buffers.
const EXCHANGE_BYTES: usize = 16 << 10;

/// Divisor: the memory of an exchange is counted in steps of this part, so that small growths
/// rarely need the lock.
const STEPS_OF_EXCHANGE: usize = 4;

/// Budget of memory, in bytes, for all requests of this process.
#[derive(Debug)]
pub(crate) struct Budget {
    shared: Mutex<Shared>,
    /// Number of bytes that are counted for each exchange, without its bodies.
    exchange: usize,
    step: usize,
    began: Instant,
}

#[derive(Debug)]
struct Shared {
    core: creole::Budget,
    /// Requests with an incomplete body, each with the signal that the request was evicted.
    incomplete: BTreeMap<Holding, Arc<Notify>>,
}

/// Share of a request's memory, in bytes. The memory is freed when the value is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    request: Arc<Request>,
    bytes: usize,
}

/// A request that is registered in the budget. The request ends when the last `Held` part of its
/// memory is dropped.
#[derive(Debug)]
struct Request {
    budget: Arc<Budget>,
    holding: Holding,
    amount: Mutex<Amount>,
    given_up: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Amount {
    /// Sum of the bytes of all parts of a request's memory.
    bytes: usize,
    /// Number of bytes that the budget counts: the sum of the parts, rounded up to a step.
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

    /// Registers an authenticated request that holds no memory yet. `given_up` is notified if the
    /// request is evicted for others.
    pub(crate) fn begin(self: &Arc<Self>, owner: Owner, given_up: Arc<Notify>) -> Held {
        self.begin_by(creole::Budget::begin, owner, given_up)
    }

    /// Registers a request that is not authenticated, or not yet. No authenticated request is
    /// evicted for its memory, and it is evicted before authenticated requests.
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

    /// Returns the number of bytes that count for each exchange. An answer of up to the same size
    /// is included and does not count separately.
    pub(crate) fn exchange(&self) -> usize {
        self.exchange
    }

    /// Returns the number of bytes that all requests hold.
    pub(crate) fn held_bytes(&self) -> usize {
        locked(&self.shared).core.held_bytes()
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
    /// Changes the size of one part of the request's memory. Returns false if there is not enough
    /// memory; the size then stays as it was.
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
    /// Adds `bytes` bytes to this part of the request's memory. Returns false if there is not
    /// enough memory.
    #[must_use]
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        self.set(self.bytes.saturating_add(bytes))
    }

    /// Sets the number of bytes that this part of the request's memory holds. Returns false if
    /// there is not enough memory; the number then stays as it was.
    #[must_use]
    pub(crate) fn set(&mut self, bytes: usize) -> bool {
        let is_set = bytes == self.bytes || self.request.change(self.bytes, bytes);
        if is_set {
            self.bytes = bytes;
        }
        is_set
    }

    /// Frees all bytes that this part of the request's memory holds.
    pub(crate) fn release(&mut self) {
        let _ = self.set(0);
    }

    /// Returns the number of bytes of an answer that need not be counted, because the exchange's
    /// own memory covers them.
    pub(crate) fn free(&self) -> usize {
        self.request.budget.exchange
    }

    /// Returns another part of the same request's memory, which holds no bytes yet.
    pub(crate) fn part(&self) -> Self {
        Self { request: Arc::clone(&self.request), bytes: 0 }
    }

    /// Moves the held bytes into a new part of the same request's memory.
    pub(crate) fn take(&mut self) -> Self {
        let bytes = std::mem::take(&mut self.bytes);
        Self { request: Arc::clone(&self.request), bytes }
    }

    /// Returns `bytes` as `Bytes` that hold this part's memory until their last copy is dropped.
    pub(crate) fn with(&mut self, bytes: Vec<u8>) -> Bytes {
        if self.bytes == 0 {
            return bytes.into();
        }
        Bytes::from_owner(Owned { bytes, _held: self.take() })
    }

    /// Notes that the body of the request is complete: the request cannot be evicted any more.
    pub(crate) fn complete(&self) {
        let holding = self.request.holding;
        let mut shared = locked(&self.request.budget.shared);
        shared.core.complete(holding);
        shared.incomplete.remove(&holding);
    }

    /// Notes that the answer to the request begins: the share of the request's owner does not limit
    /// the request any more.
    pub(crate) fn begin_answer(&self) {
        locked(&self.request.budget.shared).core.begin_answer(self.request.holding);
    }

    /// Waits until the request is evicted to give its memory to others.
    pub(crate) async fn given_up(&self) {
        self.request.given_up.notified().await;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.release();
    }
}

/// Bytes whose memory counts in the budget until they are dropped.
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
