//! How many connections there may be. Where there is no room for one more, that one is closed which has been silent or
//! idle for longest.
//!
//! The system's limit of descriptors is for clients and upstreams together. Each client may need a connection to an
//! upstream, so that clients get half of them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// Most connections of clients, however many descriptors there are: each has buffers.
const CLIENTS_MAX: usize = 8192;

/// Descriptors for the log, the listeners, and what opens files for a moment.
const OWN_FILES: usize = 32;

/// What each thread has: its queue of events, and what wakes it.
const FILES_OF_THREAD: usize = 4;

/// How often a connection is looked at for answers that do not go on.
const LOOK_INTERVAL: Duration = Duration::from_secs(30);

/// Most connections, and those that there are.
#[derive(Debug)]
pub(crate) struct Connections {
    /// Most of clients.
    clients_max: usize,
    /// Most of clients and upstreams together.
    max: usize,
    upstreams: AtomicUsize,
    clients: Mutex<Clients>,
}

#[derive(Debug, Default)]
struct Clients {
    open: usize,
    /// Those without a request: first those that never had one, then by time.
    waiting: BTreeMap<Waiting, Arc<Notify>>,
    /// Numbers the times at which connections begin to wait.
    now: u64,
}

type Waiting = (HadRequest, u64);

/// Whether a connection has had a request.
type HadRequest = bool;

/// A client's connection; it counts until this is dropped.
#[derive(Debug)]
pub(crate) struct Client {
    all: Arc<Connections>,
    state: Mutex<State>,
    close: Arc<Notify>,
}

#[derive(Debug)]
struct State {
    /// All until now.
    begun: u64,
    /// Those that it has, by their numbers.
    requests: BTreeMap<u64, Arc<Progress>>,
    /// The socket takes no more of what is to be written.
    unwritten: bool,
    /// Under which it waits.
    waiting: Option<Waiting>,
}

/// A request of a client, until its answer has left the connection's buffers.
#[derive(Debug)]
pub(crate) struct Busy {
    client: Arc<Client>,
    number: u64,
    progress: Arc<Progress>,
}

/// How an answer leaves.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Pieces that have not left.
    pieces: AtomicUsize,
    /// Numbers what left.
    moved: AtomicUsize,
}

/// What had left of each answer that did not go on, and since when it does not.
type Stopped = BTreeMap<u64, (usize, Instant)>;

/// A connection to an upstream; it counts until this is dropped.
#[derive(Debug)]
pub(crate) struct ToUpstream(Arc<Connections>);

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Connections {
    /// As many as this process may have descriptors for.
    pub(crate) fn of_system(threads: usize) -> Arc<Self> {
        let own = OWN_FILES.saturating_add(threads.saturating_mul(FILES_OF_THREAD));
        let max = files_max().saturating_sub(own).max(2);
        Self::new(CLIENTS_MAX.min(max / 2), max)
    }

    pub(crate) fn new(clients_max: usize, max: usize) -> Arc<Self> {
        let (upstreams, clients) = (AtomicUsize::new(0), Mutex::default());
        Arc::new(Self { clients_max, max, upstreams, clients })
    }

    /// Most connections of clients.
    pub(crate) fn clients_max(&self) -> usize {
        self.clients_max
    }

    /// Lets a client in. If there are too many, another one goes; `None` where each of them waits for an answer.
    pub(crate) fn client(self: &Arc<Self>) -> Option<Arc<Client>> {
        let mut clients = locked(&self.clients);
        let upstreams = self.upstreams.load(Ordering::Relaxed);
        if clients.open >= self.clients_max || clients.open.saturating_add(upstreams) >= self.max {
            clients.close_one().then_some(())?;
        }
        clients.open = clients.open.saturating_add(1);
        let close = Arc::<Notify>::default();
        let waiting = clients.wait(false, &close);
        let state =
            State { begun: 0, requests: BTreeMap::new(), unwritten: false, waiting: Some(waiting) };
        let state = Mutex::new(state);
        Some(Arc::new(Client { all: Arc::clone(self), state, close }))
    }

    /// Counts a connection to an upstream. An idle client goes where there is no room.
    pub(crate) fn upstream(self: &Arc<Self>) -> ToUpstream {
        let upstreams = self.upstreams.fetch_add(1, Ordering::Relaxed);
        let mut clients = locked(&self.clients);
        if clients.open.saturating_add(upstreams) >= self.max {
            let _ = clients.close_one();
        }
        ToUpstream(Arc::clone(self))
    }

    /// Closes the connection that has waited for longest. `false`: there is none.
    pub(crate) fn close_one(&self) -> bool {
        locked(&self.clients).close_one()
    }
}

impl Clients {
    fn wait(&mut self, had_request: HadRequest, close: &Arc<Notify>) -> Waiting {
        self.now = self.now.saturating_add(1);
        let waiting = (had_request, self.now);
        self.waiting.insert(waiting, Arc::clone(close));
        waiting
    }

    fn close_one(&mut self) -> bool {
        let Some((_, close)) = self.waiting.pop_first() else { return false };
        close.notify_one();
        true
    }
}

impl Client {
    /// A request has come.
    pub(crate) fn begin(self: &Arc<Self>) -> Busy {
        let mut state = locked(&self.state);
        state.begun = state.begun.saturating_add(1);
        let (number, progress) = (state.begun, Arc::<Progress>::default());
        state.requests.insert(number, Arc::clone(&progress));
        self.settle(&mut state);
        Busy { client: Arc::clone(self), number, progress }
    }

    /// Whether some of an answer waits for the socket.
    pub(crate) fn set_unwritten(&self, unwritten: bool) {
        let mut state = locked(&self.state);
        state.unwritten = unwritten;
        self.settle(&mut state);
    }

    /// Lets it wait while there is nothing to do for it.
    fn settle(&self, state: &mut State) {
        if !state.is_idle() {
            if let Some(waiting) = state.waiting.take() {
                locked(&self.all.clients).waiting.remove(&waiting);
            }
        } else if state.waiting.is_none() {
            let had_request = state.begun > 0;
            state.waiting = Some(locked(&self.all.clients).wait(had_request, &self.close));
        }
    }

    /// How many requests it had.
    pub(crate) fn requests(&self) -> u64 {
        locked(&self.state).begun
    }

    /// Whether it has a request now.
    pub(crate) fn is_busy(&self) -> bool {
        !locked(&self.state).requests.is_empty()
    }

    /// Ends when this connection is to be closed for others.
    pub(crate) async fn closed(&self) {
        loop {
            self.close.notified().await;
            if locked(&self.state).is_idle() {
                return;
            }
            // A request came meanwhile, or the end of an answer is still to be written.
        }
    }

    /// Ends when an answer has been there for so long and none of it left: what a client does not take of one stream of
    /// HTTP/2 does not show at the socket.
    pub(crate) async fn stopped(&self, time: Duration) {
        let mut stopped = Stopped::new();
        loop {
            tokio::time::sleep(LOOK_INTERVAL).await;
            let now = Instant::now();
            stopped = locked(&self.state).stopped(&stopped, now);
            if stopped.values().any(|(_, since)| now.saturating_duration_since(*since) >= time) {
                return;
            }
        }
    }
}

impl State {
    fn is_idle(&self) -> bool {
        self.requests.is_empty() && !self.unwritten
    }

    /// Those whose answers did not go on since they were looked at.
    fn stopped(&self, before: &Stopped, now: Instant) -> Stopped {
        let waits = |progress: &Progress| progress.pieces.load(Ordering::Relaxed) > 0;
        let waiting = self.requests.iter().filter(|(_, progress)| waits(progress));
        let stopped = waiting.map(|(number, progress)| {
            let moved = progress.moved.load(Ordering::Relaxed);
            let same = before.get(number).filter(|(before, _)| *before == moved);
            (*number, (moved, same.map_or(now, |(_, since)| *since)))
        });
        stopped.collect()
    }
}

impl Busy {
    /// A piece of the answer is there.
    pub(crate) fn add(&self) {
        self.progress.pieces.fetch_add(1, Ordering::Relaxed);
    }

    /// Some of a piece has left.
    pub(crate) fn moved(&self) {
        self.progress.moved.fetch_add(1, Ordering::Relaxed);
    }

    /// A piece is gone.
    pub(crate) fn remove(&self) {
        self.progress.pieces.fetch_sub(1, Ordering::Relaxed);
        self.moved();
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut state = locked(&self.client.state);
        state.requests.remove(&self.number);
        self.client.settle(&mut state);
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let waiting = locked(&self.state).waiting.take();
        let mut clients = locked(&self.all.clients);
        clients.open = clients.open.saturating_sub(1);
        if let Some(waiting) = waiting {
            clients.waiting.remove(&waiting);
        }
    }
}

impl Drop for ToUpstream {
    fn drop(&mut self) {
        self.0.upstreams.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How many descriptors this process may have. The system's default is for programs of long ago, and each may raise it
/// as far as its operator allows.
#[cfg(unix)]
fn files_max() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // Not to infinity, which some systems refuse.
    let wanted = maximum.unwrap_or(u64::MAX).min(FILES_WANTED);
    let limit = match current {
        Some(current) if current < wanted => {
            let raised = Rlimit { current: Some(wanted), maximum };
            if setrlimit(Resource::Nofile, raised).is_ok() { wanted } else { current }
        }
        current => current.unwrap_or(u64::MAX),
    };
    usize::try_from(limit).unwrap_or(usize::MAX)
}

/// For all clients, and for the streams of their HTTP/2 connections.
#[cfg(unix)]
const FILES_WANTED: u64 = 65_536;

#[cfg(not(unix))]
fn files_max() -> usize {
    usize::MAX
}

#[cfg(test)]
mod tests;
