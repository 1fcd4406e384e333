//! How many bytes all exchanges hold together: `buffered_bytes_max`.
//!
//! Counted are each exchange and its head, the client's body while it is collected, the translated request until the
//! upstream answers, the judge's as well, what is kept of an answer (a whole one, an event that is not complete, calls
//! that wait), and an answer that its client has not read. A stream that flows holds no more than its sockets do, and
//! its client's pace slows its upstream.
//!
//! The last sixteenth is for what is small. Large bodies that come slowly cannot take it, so that ordinary requests are
//! served beside them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

/// What an exchange costs at most beside its bodies: its state, its tasks and buffers.
const EXCHANGE_BYTES: usize = 16 << 10;

/// The bytes that are left.
#[derive(Debug)]
pub(crate) struct Budget {
    left: AtomicUsize,
    /// What each exchange takes for itself.
    exchange: usize,
    /// Holders of more than this leave the reserve alone.
    small: usize,
    reserve: usize,
}

/// What one holder has of the budget; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Budget {
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self {
            left: AtomicUsize::new(max),
            exchange: EXCHANGE_BYTES.min(max / 16_384),
            small: max / 512,
            reserve: max / 16,
        })
    }

    pub(crate) fn hold(self: &Arc<Self>) -> Held {
        Held { budget: Arc::clone(self), bytes: 0 }
    }

    /// What each exchange takes for itself, with as much of its answer.
    pub(crate) fn exchange(&self) -> usize {
        self.exchange
    }
}

impl Held {
    /// Takes `bytes` more. `false`: there are not so many.
    #[must_use]
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        if bytes == 0 {
            return true;
        }
        let held = self.bytes.saturating_add(bytes);
        let kept = if held > self.budget.small { self.budget.reserve } else { 0 };
        let take = |left: usize| left.checked_sub(bytes).filter(|left| *left >= kept);
        let left = &self.budget.left;
        let taken = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok();
        if taken {
            self.bytes = held;
        }
        taken
    }

    /// Holds so much from now on. `false`: there is not so much, and nothing changed.
    #[must_use]
    pub(crate) fn set(&mut self, bytes: usize) -> bool {
        if let Some(less) = self.bytes.checked_sub(bytes) {
            if less > 0 {
                self.budget.left.fetch_add(less, Ordering::Relaxed);
                self.bytes = bytes;
            }
            return true;
        }
        self.grow(bytes.saturating_sub(self.bytes))
    }

    /// Gives everything back.
    pub(crate) fn release(&mut self) {
        let _ = self.set(0);
    }

    /// So much of an answer is held by the exchange itself.
    pub(crate) fn free(&self) -> usize {
        self.budget.exchange
    }

    /// What is held, in another hand.
    pub(crate) fn take(&mut self) -> Self {
        let bytes = std::mem::take(&mut self.bytes);
        Self { budget: Arc::clone(&self.budget), bytes }
    }

    /// What is held goes on with these bytes, until nobody has them any more.
    pub(crate) fn with(&mut self, bytes: Vec<u8>) -> Bytes {
        if self.bytes == 0 {
            return bytes.into();
        }
        Bytes::from_owner(Owned { bytes, _held: self.take() })
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
