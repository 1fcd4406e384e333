//! Semaphore whose permits clients get in turn, for reading documents and downloading from the web.
//! No client may keep the others waiting.
//!
//! A free permit goes to the waiting client that held permits for the shortest time recently. A
//! client gets a permit only while more are free than it already holds, so that some are left for
//! others.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use creole::Owner;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Interval at which the recorded permit time of each client is halved.
const HALVED_AFTER: Duration = Duration::from_secs(60);

/// Recorded permit time below which a client is forgotten.
const FORGOTTEN: Duration = Duration::from_millis(1);

/// Semaphore with a fixed number of permits, which clients get in turn.
#[derive(Debug)]
pub(crate) struct FairSemaphore {
    places: usize,
    clients: Mutex<WaitingClients>,
}

#[derive(Debug)]
struct WaitingClients {
    /// Clients that wait for a permit, in the order of their arrival.
    waiting: Vec<(Owner, oneshot::Sender<Permit>)>,
    /// Clients that hold a permit, each with the time at which it got the permit.
    running: Vec<(Owner, Instant)>,
    /// Time for which each client held permits that it has returned.
    used: BTreeMap<Owner, Duration>,
    halved: Instant,
}

/// Permit of a client. Dropping the permit returns it to the semaphore.
#[derive(Debug)]
pub(crate) struct Permit {
    semaphore: Arc<FairSemaphore>,
    owner: Owner,
    began: Instant,
}

impl FairSemaphore {
    pub(crate) fn new(places: usize) -> Arc<Self> {
        let clients = WaitingClients {
            waiting: Vec::new(),
            running: Vec::new(),
            used: BTreeMap::new(),
            halved: Instant::now(),
        };
        Arc::new(Self { places, clients: Mutex::new(clients) })
    }

    /// Waits for a permit for the client `owner`.
    pub(crate) async fn begin(self: &Arc<Self>, owner: Owner) -> Option<Permit> {
        let (sender, permit) = oneshot::channel();
        self.clients().waiting.push((owner, sender));
        self.give();
        permit.await.ok()
    }

    /// Returns the number of clients that wait for a permit, and of those that hold one.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let clients = self.clients();
        let waiting = clients.waiting.iter().filter(|(_, waiting)| !waiting.is_closed()).count();
        (waiting, clients.running.len())
    }

    /// Hands out all permits that waiting clients may have now.
    fn give(self: &Arc<Self>) {
        loop {
            let next = self.clients().next(self.places);
            let Some((owner, sender, began)) = next else { return };
            // A client that leaves at this moment drops its permit, and the next client gets the
            // permit.
            drop(sender.send(Permit { semaphore: Arc::clone(self), owner, began }));
        }
    }

    fn clients(&self) -> MutexGuard<'_, WaitingClients> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WaitingClients {
    /// Removes the next client from the queue, if any waiting client may get a free permit.
    fn next(&mut self, places: usize) -> Option<(Owner, oneshot::Sender<Permit>, Instant)> {
        self.waiting.retain(|(_, waiting)| !waiting.is_closed());
        let free = places.saturating_sub(self.running.len());
        let now = Instant::now();
        let of = |owner: Owner| self.running.iter().filter(move |(running, _)| *running == owner);
        let used = |owner: &Owner| {
            let ended = self.used.get(owner).copied().unwrap_or_default();
            of(*owner).fold(ended, |sum, (_, began)| sum.saturating_add(now.duration_since(*began)))
        };
        let waiting = (0..).zip(&self.waiting).filter(|(_, (owner, _))| of(*owner).count() < free);
        let (next, _) = waiting.min_by_key(|(_, (owner, _))| used(owner))?;
        let (owner, sender) = self.waiting.remove(next);
        self.running.push((owner, now));
        Some((owner, sender, now))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut clients = self.semaphore.clients();
        let own = (self.owner, self.began);
        if let Some(at) = clients.running.iter().position(|running| *running == own) {
            clients.running.swap_remove(at);
        }
        let used = clients.used.entry(self.owner).or_default();
        *used = used.saturating_add(self.began.elapsed());
        if clients.halved.elapsed() >= HALVED_AFTER {
            clients.halved = Instant::now();
            clients.used.retain(|_, used| {
                *used = used.checked_div(2).unwrap_or_default();
                *used > FORGOTTEN
            });
        }
        drop(clients);
        self.semaphore.give();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(number: u64) -> Owner {
        Owner::of_connection(number)
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_used_least_is_next() {
        let turns = FairSemaphore::new(1);
        let running = turns.begin(owner(1)).await.unwrap();
        let order = Arc::<Mutex<Vec<u64>>>::default();
        let wait = |number| {
            let (turns, order) = (Arc::clone(&turns), Arc::clone(&order));
            tokio::spawn(async move {
                let turn = turns.begin(owner(number)).await.unwrap();
                order.lock().unwrap().push(number);
                tokio::time::sleep(Duration::from_secs(1)).await;
                drop(turn);
            })
        };
        let mut tasks = Vec::new();
        for number in [1, 1, 2, 3] {
            tasks.push(wait(number));
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        drop(running);
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(*order.lock().unwrap(), [2, 3, 1, 1]);
    }

    #[tokio::test(start_paused = true)]
    async fn one_client_leaves_places_to_others() {
        let turns = FairSemaphore::new(16);
        let waits = |number| {
            let turns = Arc::clone(&turns);
            async move {
                let turn = turns.begin(owner(number));
                tokio::time::timeout(Duration::from_millis(1), turn).await.ok().flatten()
            }
        };
        let mut running = Vec::new();
        for (number, places) in [(1, 8), (2, 4), (3, 2), (4, 1), (5, 1), (6, 0)] {
            for _ in 0..places {
                running.push(waits(number).await.unwrap());
            }
            assert!(waits(number).await.is_none(), "{number}");
        }
        running.pop();
        assert!(waits(1).await.is_none());
        assert!(waits(6).await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn used_time_is_forgotten() {
        let turns = FairSemaphore::new(1);
        for number in 0..100 {
            let turn = turns.begin(owner(number)).await;
            tokio::time::sleep(Duration::from_secs(1)).await;
            drop(turn);
        }
        for _ in 0..12 {
            tokio::time::sleep(HALVED_AFTER).await;
            drop(turns.begin(owner(7)).await);
        }
        assert!(turns.clients().used.is_empty(), "{:?}", turns.clients());
    }

    #[tokio::test(start_paused = true)]
    async fn clients_that_leave_do_not_keep_a_place() {
        let turns = FairSemaphore::new(1);
        let running = turns.begin(owner(1)).await.unwrap();
        for number in 0..1000 {
            let waiting = turns.begin(owner(number));
            assert!(tokio::time::timeout(Duration::from_millis(1), waiting).await.is_err());
        }
        drop(running);
        assert!(turns.begin(owner(7)).await.is_some());
        assert!(turns.clients().waiting.is_empty() && turns.clients().running.is_empty());
    }
}
