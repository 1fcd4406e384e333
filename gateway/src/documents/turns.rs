//! Turns of the processes that read documents: large documents of some clients must not keep others waiting.
//!
//! There are two readers. One is for requests whose documents have taken little time so far, so that a usual document
//! is read at once. The other one goes on with whatever takes longer; it takes the documents of clients in turn, first
//! of those who have used least of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use creole::Owner;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::Instant;

/// Time that the documents of one request may take on the first reader. A usual document takes a tenth of it.
pub(super) const FIRST_MAX: Duration = Duration::from_millis(400);

/// Time after which used time is forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);

/// Readers of documents, and the clients that wait for them.
#[derive(Debug)]
pub(super) struct Turns {
    first: Arc<Semaphore>,
    others: Arc<Mutex<Others>>,
}

/// The reader of documents that take long.
#[derive(Debug)]
struct Others {
    is_busy: bool,
    /// Clients that wait, in the order in which they came.
    waiting: Vec<(Owner, oneshot::Sender<Turn>)>,
    /// Time that clients used since.
    used: BTreeMap<Owner, Duration>,
    since: Instant,
}

/// Permission to run one reader, until it is dropped.
#[derive(Debug)]
#[expect(dead_code, reason = "a turn is given back when it is dropped")]
pub(super) enum Turn {
    First(OwnedSemaphorePermit),
    Other(Used),
}

/// Time in which a client uses the reader of documents that take long.
#[derive(Debug)]
pub(super) struct Used {
    others: Arc<Mutex<Others>>,
    owner: Owner,
    began: Instant,
}

impl Turns {
    pub(super) fn new() -> Self {
        let others = Others {
            is_busy: false,
            waiting: Vec::new(),
            used: BTreeMap::new(),
            since: Instant::now(),
        };
        Self { first: Arc::new(Semaphore::new(1)), others: Arc::new(Mutex::new(others)) }
    }

    /// Waits for the first reader.
    pub(super) async fn first(&self) -> Option<Turn> {
        Arc::clone(&self.first).acquire_owned().await.ok().map(Turn::First)
    }

    /// Waits for the reader of documents that take long.
    pub(super) async fn other(&self, owner: Owner) -> Option<Turn> {
        let turn = {
            let mut others = locked(&self.others);
            let (sender, turn) = oneshot::channel();
            others.waiting.push((owner, sender));
            turn
        };
        Others::give(&self.others);
        turn.await.ok()
    }
}

impl Others {
    /// Gives the reader, if it is free, to the client that has used least.
    fn give(others: &Arc<Mutex<Self>>) {
        let mut state = locked(others);
        state.waiting.retain(|(_, waiting)| !waiting.is_closed());
        if state.is_busy {
            return;
        }
        let Self { waiting, used, .. } = &*state;
        let used = |owner| used.get(owner).copied().unwrap_or_default();
        let next = (0..).zip(waiting).min_by_key(|(_, (owner, _))| used(owner));
        let Some((next, _)) = next else { return };
        let (owner, sender) = state.waiting.remove(next);
        state.is_busy = true;
        drop(state);
        // A client that leaves in this moment drops its turn, and the next one gets it.
        let (others, began) = (Arc::clone(others), Instant::now());
        drop(sender.send(Turn::Other(Used { others, owner, began })));
    }
}

impl Drop for Used {
    fn drop(&mut self) {
        let mut others = locked(&self.others);
        others.is_busy = false;
        if others.since.elapsed() >= FORGOTTEN_AFTER {
            others.used.clear();
            others.since = Instant::now();
        }
        let used = others.used.entry(self.owner).or_default();
        *used = used.saturating_add(self.began.elapsed());
        drop(others);
        Others::give(&self.others);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_has_used_least_is_next() {
        let turns = Arc::new(Turns::new());
        let running = turns.other(Owner::of_connection(1)).await.unwrap();
        let order = Arc::<Mutex<Vec<u64>>>::default();
        let wait = |owner| {
            let (turns, order) = (Arc::clone(&turns), Arc::clone(&order));
            tokio::spawn(async move {
                let turn = turns.other(Owner::of_connection(owner)).await.unwrap();
                locked(&order).push(owner);
                tokio::time::sleep(Duration::from_secs(1)).await;
                drop(turn);
            })
        };
        let mut tasks = Vec::new();
        for owner in [1, 1, 2, 3] {
            tasks.push(wait(owner));
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        drop(running);
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(*locked(&order), [2, 3, 1, 1]);
    }

    #[tokio::test(start_paused = true)]
    async fn clients_that_leave_do_not_keep_the_reader() {
        let turns = Turns::new();
        let running = turns.other(Owner::of_connection(1)).await.unwrap();
        for number in 0..1000 {
            let waiting = turns.other(Owner::of_connection(number));
            assert!(tokio::time::timeout(Duration::from_millis(1), waiting).await.is_err());
        }
        drop(running);
        assert!(turns.other(Owner::of_connection(7)).await.is_some());
        assert!(locked(&turns.others).waiting.is_empty());
    }
}
