//! How many bytes all exchanges hold together: `buffered_bytes_max`.
//!
//! Counted are each exchange and its head, the client's body while it is collected, the translated request until the
//! upstream answers, what is kept of an answer (a whole one, an event that is not complete, calls that wait), and an
//! answer that its client has not read. A stream that flows holds no more than its sockets do, and its client's pace
//! slows its upstream.
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
mod tests {
    use super::*;

    #[test]
    fn what_one_exchange_gives_back_another_can_take() {
        let budget = Budget::new(8000);
        let mut first = budget.hold();
        assert!(first.grow(4000) && first.grow(3000));
        let mut second = budget.hold();
        assert!(!second.grow(600));
        drop(first);
        assert!(second.grow(7500));
        second.release();
        assert!(second.grow(7500) && !second.grow(1));
        assert!(second.set(10) && !second.set(8000) && second.set(7500));
    }

    #[test]
    fn what_is_small_has_room_beside_all_that_is_large() {
        let budget = Budget::new(8000);
        let mut large: Vec<_> = (0..9).map(|_| budget.hold()).collect();
        for held in &mut large {
            while held.grow(10) {}
        }
        let mut small: Vec<_> = (0..25).map(|_| budget.hold()).collect();
        assert!(small.iter_mut().all(|held| held.grow(15)), "{budget:?}");
        assert!(!small[0].grow(1), "it is not small any more: {budget:?}");
    }

    #[test]
    fn bytes_on_their_way_are_held_until_they_are_gone() {
        let budget = Budget::new(8000);
        let mut held = budget.hold();
        assert!(held.grow(7000));
        let bytes = held.with(vec![1; 10]);
        assert!(!held.grow(7000));
        let rest = bytes.slice(5..);
        drop(bytes);
        assert!(!held.grow(7000));
        drop(rest);
        assert!(held.grow(7000));
    }
}
