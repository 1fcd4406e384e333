//! How many bytes all exchanges hold together: `buffered_bytes_max`.
//!
//! Counted are the clients' bodies while they are collected, the translated requests until the
//! upstream answers, and answers while they are collected. A stream that flows holds no more than its
//! sockets do, and its client's pace slows its upstream.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The bytes that are left.
#[derive(Debug)]
pub(crate) struct Budget {
    left: AtomicUsize,
}

/// What one exchange holds; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Budget {
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { left: AtomicUsize::new(max) })
    }

    pub(crate) fn hold(self: &Arc<Self>) -> Held {
        Held { budget: Arc::clone(self), bytes: 0 }
    }
}

impl Held {
    /// Takes `bytes` more. `false`: there are not so many.
    #[must_use]
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        let left = &self.budget.left;
        let taken =
            left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
        if taken.is_ok() {
            self.bytes = self.bytes.saturating_add(bytes);
        }
        taken.is_ok()
    }

    /// Gives everything back.
    pub(crate) fn release(&mut self) {
        self.budget.left.fetch_add(self.bytes, Ordering::Relaxed);
        self.bytes = 0;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_exchange_gives_back_another_can_take() {
        let budget = Budget::new(10);
        let mut first = budget.hold();
        assert!(first.grow(6) && first.grow(4));
        let mut second = budget.hold();
        assert!(!second.grow(1));
        drop(first);
        assert!(second.grow(10));
        second.release();
        assert!(second.grow(10) && !second.grow(1));
    }
}
