//! Thread pool for slow jobs, on which the threads that serve connections must not wait.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;

use tokio::sync::oneshot;

type Job = Box<dyn FnOnce() + Send>;

/// Fixed number of threads that run jobs in order.
#[derive(Clone, Debug)]
pub(crate) struct ThreadPool {
    jobs: mpsc::Sender<Job>,
}

impl ThreadPool {
    /// Starts a pool with this number of threads.
    ///
    /// # Errors
    /// The system gives no more threads.
    pub(crate) fn start(name: &str, threads: usize) -> io::Result<Self> {
        let (jobs, waiting) = mpsc::channel::<Job>();
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..threads {
            let waiting = Arc::clone(&waiting);
            let work = move || {
                // The lock of the job queue is free again when the job begins.
                while let Ok(job) = {
                    let waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
                    waiting.recv()
                } {
                    job();
                }
            };
            thread::Builder::new().name(name.to_owned()).spawn(work)?;
        }
        Ok(Self { jobs })
    }

    /// Runs a job on the pool and waits for its result. A panic in the job continues in the waiting
    /// task.
    pub(crate) async fn run<R: Send + 'static>(
        &self,
        job: impl FnOnce() -> R + Send + 'static,
    ) -> R {
        let (done, result) = oneshot::channel();
        self.give(move || {
            let _ = done.send(catch_unwind(AssertUnwindSafe(job)));
        });
        match result.await {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            // The pool ends only with the process, which also ends this wait.
            Err(_) => std::future::pending().await,
        }
    }

    /// Runs a job on the pool without waiting for its result.
    pub(crate) fn give(&self, job: impl FnOnce() + Send + 'static) {
        // A thread ends only when all who could give it a job are gone.
        let _ = self.jobs.send(Box::new(job));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_job_that_panics_takes_no_thread_with_it() {
        let pool = ThreadPool::start("test", 1).unwrap();
        let panicking = pool.clone();
        let panicked = tokio::spawn(async move { panicking.run(|| panic!("on purpose")).await });
        assert!(panicked.await.unwrap_err().is_panic());
        assert_eq!(pool.run(|| 7).await, 7);
    }
}
