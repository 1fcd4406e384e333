//! Threads for translations: short ones run on the thread that serves the connection, long ones on
//! threads of their own, so that no stream waits for them.
//!
//! A translation takes up to eight times its body's memory. Large bodies take turns, and the others
//! are as many at one time as there are threads, so that this memory is bounded by numbers.

use std::io;
use std::num::NonZero;
use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::thread_pool::Pool;

/// Size from which a body is translated on another thread: a hundred kilobytes of calls take some
/// milliseconds.
pub(crate) const APART_BYTES: usize = 64 << 10;

/// Size from which bodies take turns, because their translations take much memory.
const LARGE_BYTES: usize = 2 << 20;

/// Below this size a body takes no turn on the thread of its connection: it is done sooner than the
/// turn.
const TURN_BYTES: usize = 4 << 10;

/// Maximum number of threads, whatever the number of processors: each may have a body of
/// [`LARGE_BYTES`].
const THREADS_MAX: usize = 8;

/// The threads for long translations, which all workers share.
#[derive(Clone, Debug)]
pub(crate) struct Apart {
    pool: Pool,
    large: Arc<Semaphore>,
}

/// The translations of one worker.
#[derive(Debug)]
pub(crate) struct Translations {
    apart: Apart,
    /// Turn to translate on this thread: one translation for each time that the thread looks at its
    /// sockets.
    turn: Semaphore,
}

impl Apart {
    /// # Errors
    /// The system gives no more threads.
    pub(crate) fn start(processors: NonZero<usize>) -> io::Result<Self> {
        // With one thread, a large body would hold up all others.
        let threads = processors.get().clamp(2, THREADS_MAX);
        let pool = Pool::start("translate", threads)?;
        Ok(Self { pool, large: Arc::new(Semaphore::new(threads.div_ceil(4))) })
    }

    /// Does a long job with so many bytes on another thread.
    pub(crate) async fn run<R: Send + 'static>(
        &self,
        bytes: usize,
        job: impl FnOnce() -> R + Send + 'static,
    ) -> R {
        let turn = match bytes {
            0..LARGE_BYTES => None,
            // It is never closed.
            _ => Arc::clone(&self.large).acquire_owned().await.ok(),
        };
        let job = move || {
            let result = job();
            // Kept until here, even if nobody waits any more.
            drop(turn);
            result
        };
        self.pool.run(job).await
    }
}

impl Translations {
    pub(crate) fn new(apart: Apart) -> Self {
        Self { apart, turn: Semaphore::new(1) }
    }

    /// Translates `bytes` bytes, here or on another thread.
    pub(crate) async fn run<R: Send + 'static>(
        &self,
        bytes: usize,
        job: impl FnOnce() -> R + Send + 'static,
    ) -> R {
        match bytes {
            0..TURN_BYTES => job(),
            TURN_BYTES..APART_BYTES => {
                let _turn = self.turn.acquire().await;
                let result = job();
                // Sockets are looked at before this goes on, and streams with them.
                tokio::task::yield_now().await;
                result
            }
            _ => self.apart.run(bytes, job).await,
        }
    }

    /// Returns the threads of long translations, for callers that poll a translation as a future.
    pub(crate) fn apart(&self) -> &Apart {
        &self.apart
    }
}

#[cfg(test)]
mod tests;
