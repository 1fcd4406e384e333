//! Limit on the memory that all requests of an isolate hold together: `buffered_bytes_max`, in
//! [`creole::Budget`].
//!
//! The count includes each exchange with its head, the client's body as it arrives, the translated
//! request until the upstream answers, and buffered parts of an answer: a whole answer, an
//! incomplete event, tool calls that wait, bytes that the client has not read.
//!
//! A request that is given up for others belongs to another context of the runtime, and may not be
//! polled in this one. So [`Held::collect`] takes a function that frees the request's memory and
//! resolves the promise that the request waits for.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use creole::{Holding, Millis, Owner};

/// Divisor of the limit: each exchange counts as the limit divided by this number, which is 8 KiB
/// by default.
const EXCHANGES: usize = 2048;

/// Granularity in which held bytes are counted, so that not every chunk of a stream changes the
/// budget.
const STEP_BYTES: usize = 1024;

/// Shared account of the memory that all requests of an isolate hold.
#[derive(Clone)]
pub(crate) struct Budget(Rc<Shared>);

struct Shared {
    budget: RefCell<creole::Budget>,
    /// Functions that give up requests whose bodies are being collected, by the requests' entries
    /// in the budget.
    collecting: RefCell<BTreeMap<Holding, Box<dyn FnOnce()>>>,
    exchange: usize,
}

/// Memory held by one request, which is freed when this value is dropped.
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

    /// Registers a request, which holds no memory yet.
    pub(crate) fn begin(&self, owner: Owner, now: Millis) -> Held {
        let holding = self.0.budget.borrow_mut().begin(owner, now);
        Held { budget: self.clone(), holding, bytes: Cell::new(0) }
    }

    /// Frees the memory of requests that were given up for others.
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
    /// Sets the number of bytes that the request holds in addition to its exchange. Returns false
    /// if the budget does not have enough bytes left.
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

    /// Notes that the request's body is being collected. `give_up` is called if the request is
    /// given up for others.
    pub(crate) fn collect(&self, give_up: impl FnOnce() + 'static) {
        self.budget.0.collecting.borrow_mut().insert(self.holding, Box::new(give_up));
    }

    /// Notes that the request's body is complete, or passes through uncollected. From now on the
    /// request is not given up for others.
    pub(crate) fn complete(&self) {
        self.budget.0.budget.borrow_mut().complete(self.holding);
        self.budget.0.collecting.borrow_mut().remove(&self.holding);
    }

    /// Notes that the answer begins: from now on the share of the request's owner does not limit
    /// its memory.
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
