//! Threads for translations. Short translations run on the thread that serves the connection. Long
//! translations run on separate threads, so that no stream waits for them.
//!
//! A translation needs up to eight times its body's memory. At most a quarter of the threads
//! translate large bodies at one time, so that this memory is bounded.

use std::io;
use std::num::NonZero;
use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::server::load::Load;
use crate::thread_pool::ThreadPool;

/// Size, in bytes, from which a body is translated on another thread: a hundred kilobytes of tool
/// calls need some milliseconds.
pub(crate) const APART_BYTES: usize = 64 << 10;

/// Size, in bytes, from which bodies wait for one of few permits, because their translation needs
/// much memory.
const LARGE_BYTES: usize = 2 << 20;

/// Size, in bytes, below which a body is translated at once on the connection's thread, without
/// waiting for other translations.
pub(crate) const TURN_BYTES: usize = 4 << 10;

/// Maximum number of translation threads, whatever the number of processors: each may work on a
/// body of [`LARGE_BYTES`].
const THREADS_MAX: usize = 8;

/// Threads for long translations, shared by all workers.
#[derive(Clone, Debug)]
pub(crate) struct Offload {
    pool: ThreadPool,
    large: Arc<Semaphore>,
    /// Number of translations that wait for a thread.
    pub(crate) waiting: Load,
}

/// Runs the translations of one worker.
#[derive(Debug)]
pub(crate) struct Translations {
    apart: Offload,
    /// Permit to translate on the worker's own thread: one translation for each time that the
    /// thread polls its sockets.
    turn: Semaphore,
}

impl Offload {
    /// Starts the threads for long translations.
    ///
    /// # Errors
    /// The system gives no more threads.
    pub(crate) fn start(processors: NonZero<usize>) -> io::Result<Self> {
        // With one thread, a large body would hold up all others.
        let threads = processors.get().clamp(2, THREADS_MAX);
        let pool = ThreadPool::start("translate", threads)?;
        Ok(Self {
            pool,
            large: Arc::new(Semaphore::new(threads.div_ceil(4))),
            waiting: Load::default(),
        })
    }

    /// Runs a long job on another thread. `bytes` is the size of the translated body.
    pub(crate) async fn run<R: Send + 'static>(
        &self,
        bytes: usize,
        job: impl FnOnce() -> R + Send + 'static,
    ) -> R {
        let waits = self.waiting.count();
        let turn = match bytes {
            0..LARGE_BYTES => None,
            // The semaphore for large bodies is never closed.
            _ => Arc::clone(&self.large).acquire_owned().await.ok(),
        };
        let job = move || {
            drop(waits);
            let result = job();
            // The permit is kept until the job has ended, even if its caller does not wait any
            // more.
            drop(turn);
            result
        };
        self.pool.run(job).await
    }
}

impl Translations {
    pub(crate) fn new(apart: Offload) -> Self {
        Self { apart, turn: Semaphore::new(1) }
    }

    /// Runs a translation of `bytes` bytes, on the connection's thread or on a separate thread.
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
                // Sockets and their streams are polled before the next translation.
                tokio::task::yield_now().await;
                result
            }
            _ => self.apart.run(bytes, job).await,
        }
    }
}

#[cfg(test)]
mod tests;
