//! How many bytes all requests of an isolate hold together: `buffered_bytes_max`.
//!
//! Counted are the clients' bodies while they are read and translated, and answers while they are
//! collected. A stream that flows holds one piece at a time.
//!
//! The runtime may drop a request whose client has gone without telling anybody: what it held would
//! count for ever. So whatever has not changed for [`FORGOTTEN_MS`] is no longer counted.

use std::cell::RefCell;
use std::rc::Rc;

use creole::Millis;

/// Longer than any silence that the core allows by default, which is 590 s before the head of an answer.
const FORGOTTEN_MS: Millis = 600_000;

/// What every request holds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Budget(Rc<RefCell<Counts>>);

#[derive(Debug, Default)]
struct Counts {
    last: u64,
    held: Vec<Holding>,
}

/// What is counted for one request.
#[derive(Debug)]
struct Holding {
    number: u64,
    bytes: usize,
    at: Millis,
}

/// What one request holds; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    budget: Budget,
    number: u64,
}

impl Budget {
    pub(crate) fn hold(&self) -> Held {
        let mut counts = self.0.borrow_mut();
        counts.last = counts.last.wrapping_add(1);
        Held { budget: self.clone(), number: counts.last }
    }

    /// How much is held.
    fn bytes(&self) -> usize {
        self.0.borrow().held.iter().fold(0, |sum, holding| sum.saturating_add(holding.bytes))
    }
}

impl Held {
    /// Takes `bytes` more. `false`: all together would hold more than `max`.
    #[must_use]
    pub(crate) fn grow(&self, bytes: usize, max: usize, now: Millis) -> bool {
        let fits = || self.budget.bytes().saturating_add(bytes) <= max;
        if !fits() {
            let mut counts = self.budget.0.borrow_mut();
            counts.held.retain(|holding| now < holding.at.saturating_add(FORGOTTEN_MS));
        }
        if !fits() {
            return false;
        }
        let held = &mut self.budget.0.borrow_mut().held;
        match held.iter_mut().find(|holding| holding.number == self.number) {
            Some(holding) => {
                holding.bytes = holding.bytes.saturating_add(bytes);
                holding.at = now;
            }
            None => held.push(Holding { number: self.number, bytes, at: now }),
        }
        true
    }

    /// Gives everything back.
    pub(crate) fn release(&self) {
        self.budget.0.borrow_mut().held.retain(|holding| holding.number != self.number);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests;
