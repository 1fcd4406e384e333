//! Memory that all requests of an isolate hold together: `buffered_bytes_max`, in
//! [`creole::Budget`].
//!
//! Counted are each exchange and its head, the client's body as it comes, the translated request
//! until the upstream answers, and what is kept of an answer: a whole one, an event that is not
//! complete, calls that wait, bytes that the client has not taken.
//!
//! A request that is given up for others belongs to another context of the runtime, and may not be
//! polled in this one. So [`Held::collect`] takes a function that frees its memory and keeps the
//! promise that it waits for.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use creole::{Holding, Millis, Owner};

/// Parts of the limit, of which each exchange takes one for itself: 8 KiB.
const EXCHANGES: usize = 2048;

/// Steps in which held bytes are counted, so that not every piece of a stream changes the budget.
const STEP_BYTES: usize = 1024;

/// The memory that all requests of an isolate hold.
#[derive(Clone)]
pub(crate) struct Budget(Rc<Shared>);

struct Shared {
    budget: RefCell<creole::Budget>,
    /// Function that gives up a request whose body is collected.
    collecting: RefCell<BTreeMap<Holding, Box<dyn FnOnce()>>>,
    exchange: usize,
}

/// The memory of one request; free when it is dropped.
pub(crate) struct Held {
    budget: Budget,
    holding: Holding,
    bytes: Cell<usize>,
}

impl Budget {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self(Rc::new(Shared {
            budget: RefCell::new(creole::Budget::new(bytes_max)),
            collecting: RefCell::default(),
            exchange: bytes_max / EXCHANGES,
        }))
    }

    /// Begins a request, which holds nothing yet.
    pub(crate) fn begin(&self, owner: Owner, now: Millis) -> Held {
        let holding = self.0.budget.borrow_mut().begin(owner, now);
        Held { budget: self.clone(), holding, bytes: Cell::new(0) }
    }

    /// Frees the memory of requests that were given up.
    fn give_up(&self) {
        loop {
            let Some(holding) = self.0.budget.borrow_mut().poll_given_up() else { return };
            let give_up = self.0.collecting.borrow_mut().remove(&holding);
            if let Some(give_up) = give_up {
                give_up();
            }
        }
    }
}

impl Held {
    /// Sets the bytes that the request holds beside its exchange. Returns false if there are not so
    /// many.
    #[must_use]
    pub(crate) fn set(&self, bytes: usize, now: Millis) -> bool {
        let bytes = bytes.saturating_add(self.budget.0.exchange);
        let bytes = bytes.div_ceil(STEP_BYTES).saturating_mul(STEP_BYTES);
        if bytes == self.bytes.get() {
            return true;
        }
        let set = self.budget.0.budget.borrow_mut().set(self.holding, bytes, now).is_ok();
        if set {
            self.bytes.set(bytes);
            self.budget.give_up();
        }
        set
    }

    /// Notes that the body is collected now; `give_up` is called if the request is given up for
    /// others.
    pub(crate) fn collect(&self, give_up: impl FnOnce() + 'static) {
        self.budget.0.collecting.borrow_mut().insert(self.holding, Box::new(give_up));
    }

    /// Notes that the body is whole, or passes: the request is not given up any more.
    pub(crate) fn complete(&self) {
        self.budget.0.budget.borrow_mut().complete(self.holding);
        self.budget.0.collecting.borrow_mut().remove(&self.holding);
    }

    /// Notes that the answer begins: the share of the request's owner does not limit it any more.
    pub(crate) fn begin_answer(&self) {
        self.budget.0.budget.borrow_mut().begin_answer(self.holding);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.budget.0.budget.borrow_mut().end(self.holding);
        self.budget.0.collecting.borrow_mut().remove(&self.holding);
    }
}

#[cfg(test)]
mod tests;
