//! How much each of the threads that serve connections has to do.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How much a worker has to do: its connections, and what is asked on them. A connection may be idle, or have a
/// thousand streams.
#[derive(Clone, Debug, Default)]
pub(crate) struct Load(Arc<AtomicUsize>);

/// Counts one for as long as it lives.
#[derive(Debug)]
pub(crate) struct Counted(Load);

impl Load {
    pub(crate) fn count(&self) -> Counted {
        self.0.fetch_add(1, Ordering::Relaxed);
        Counted(self.clone())
    }

    pub(crate) fn now(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
