//! Load of each thread that serves connections, and other counts of what is in progress.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of what is in progress. The load of a worker thread is the number of its connections and
/// of the requests on them: a connection may be idle, or have a thousand streams.
#[derive(Clone, Debug, Default)]
pub(crate) struct Load(Arc<AtomicUsize>);

/// Unit of a load. The unit counts until this value is dropped.
#[derive(Debug)]
pub(crate) struct LoadUnit(Load);

impl Load {
    pub(crate) fn count(&self) -> LoadUnit {
        self.0.fetch_add(1, Ordering::Relaxed);
        LoadUnit(self.clone())
    }

    pub(crate) fn now(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for LoadUnit {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
