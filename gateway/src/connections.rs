//! Limit of connections. Where there is no place for one more, the connection is closed that has been silent for
//! longest, or else idle. A connection whose requests have no whole body counts as idle since the last of them began.
//!
//! The system's limit of descriptors is for clients and upstreams together. Each client may need a connection to an
//! upstream, so that clients get half of them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use creole::Owner;
use tokio::sync::Notify;
use tokio::time::sleep;

/// Maximum number of clients' connections, however many descriptors there are: each has buffers.
const CLIENTS_MAX: usize = 8192;

/// Descriptors for the log, the listeners, and what opens files for a moment.
const OWN_FILES: usize = 32;

/// Descriptors of a thread: its queue of events, and what wakes it.
const FILES_OF_THREAD: usize = 4;

/// Time between two looks at a connection. A new connection may take as long to send a request's head.
const LOOK_INTERVAL: Duration = Duration::from_secs(30);

/// Looks until an answer that its client does not take is given up: five minutes. A laptop that sleeps for longer has
/// lost its stream anyway.
const UNREAD_LOOKS_MAX: u32 = 10;

/// State of an answer of which hyper has asked for more, and which has no more yet.
const TAKEN: u32 = u32::MAX;

/// Number of connections, and their limits.
#[derive(Debug)]
pub(crate) struct Connections {
    /// Maximum number of clients' connections.
    clients_max: usize,
    clients: Mutex<Clients>,
}

#[derive(Debug, Default)]
struct Clients {
    open: usize,
    /// Idle connections, in the order in which they are closed.
    idle: BTreeMap<Idle, Arc<Notify>>,
    /// Number of times at which a connection became idle.
    count: u64,
}

/// Whether a connection has had a request, and the number of the time at which it became idle.
type Idle = (bool, u64);

/// A client's connection; it counts until this is dropped.
#[derive(Debug)]
pub(crate) struct Client {
    all: Arc<Connections>,
    /// Owner of requests without a client's key.
    pub(crate) owner: Owner,
    state: Mutex<State>,
    /// Signal that closes the connection while it is idle.
    pub(crate) close: Arc<Notify>,
}

#[derive(Debug, Default)]
struct State {
    /// Number of all requests until now.
    begun: u64,
    /// Requests in flight, by number.
    requests: BTreeMap<u64, Arc<AtomicU32>>,
    /// Number of requests in flight whose bodies are whole.
    whole: usize,
    idle: Option<Idle>,
}

/// A request of a client, until the last piece of its answer has left.
#[derive(Debug)]
pub(crate) struct Busy {
    pub(crate) client: Arc<Client>,
    number: u64,
    /// Looks since a piece of the answer was given to hyper, or [`TAKEN`].
    looks: Arc<AtomicU32>,
    is_whole: AtomicBool,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Connections {
    /// Returns limits for as many connections as this process may have descriptors for.
    pub(crate) fn of_system(threads: usize) -> Arc<Self> {
        let own = OWN_FILES.saturating_add(threads.saturating_mul(FILES_OF_THREAD));
        let max = files_max().saturating_sub(own).max(2);
        Self::new(CLIENTS_MAX.min(max / 2))
    }

    pub(crate) fn new(clients_max: usize) -> Arc<Self> {
        Arc::new(Self { clients_max, clients: Mutex::default() })
    }

    /// Returns the maximum number of clients' connections.
    pub(crate) fn clients_max(&self) -> usize {
        self.clients_max
    }

    /// Lets a client in. If there are too many, an idle one goes; `None` where each of them waits for an answer.
    pub(crate) fn client(self: &Arc<Self>) -> Option<Arc<Client>> {
        let mut clients = locked(&self.clients);
        if clients.open >= self.clients_max {
            clients.close_one().then_some(())?;
        }
        clients.open = clients.open.saturating_add(1);
        let close = Arc::<Notify>::default();
        let idle = clients.note_idle(false, &close);
        Some(Arc::new(Client {
            all: Arc::clone(self),
            owner: Owner::of_connection(idle.1),
            state: Mutex::new(State { idle: Some(idle), ..State::default() }),
            close,
        }))
    }

    /// Closes the connection that has been idle for longest. Returns false if there is none.
    pub(crate) fn close_one(&self) -> bool {
        locked(&self.clients).close_one()
    }
}

impl Clients {
    fn note_idle(&mut self, had_request: bool, close: &Arc<Notify>) -> Idle {
        self.count = self.count.saturating_add(1);
        let idle = (had_request, self.count);
        self.idle.insert(idle, Arc::clone(close));
        idle
    }

    fn close_one(&mut self) -> bool {
        let Some((_, close)) = self.idle.pop_first() else { return false };
        close.notify_one();
        true
    }
}

impl Client {
    /// Begins a request, whose body may still have to come.
    pub(crate) fn begin(self: &Arc<Self>) -> Busy {
        let mut state = locked(&self.state);
        state.begun = state.begun.saturating_add(1);
        let (number, looks) = (state.begun, Arc::new(AtomicU32::new(TAKEN)));
        state.requests.insert(number, Arc::clone(&looks));
        if state.whole == 0 {
            self.settle(&mut state);
        }
        Busy { client: Arc::clone(self), number, looks, is_whole: AtomicBool::new(false) }
    }

    /// Lets the connection be closed for others while no request has a whole body.
    fn settle(&self, state: &mut State) {
        let mut clients = locked(&self.all.clients);
        if let Some(idle) = state.idle.take() {
            clients.idle.remove(&idle);
        }
        if state.whole == 0 {
            state.idle = Some(clients.note_idle(true, &self.close));
        }
    }

    /// Returns the number of all requests until now, and true if there is one in flight.
    pub(crate) fn requests(&self) -> (u64, bool) {
        let state = locked(&self.state);
        (state.begun, !state.requests.is_empty())
    }

    /// Waits until the connection is to be closed, and returns the reason.
    pub(crate) async fn ended(&self) -> &'static str {
        loop {
            tokio::select! {
                // The rest of a request may have come meanwhile.
                () = self.close.notified() => if locked(&self.state).whole == 0 {
                    return "others need its place";
                },
                () = sleep(LOOK_INTERVAL) => {
                    let state = locked(&self.state);
                    if state.begun == 0 {
                        return "no request came";
                    }
                    if state.requests.values().any(is_unread) {
                        return "an answer is not read";
                    }
                }
            }
        }
    }
}

/// Looks at an answer. Returns true if the client has taken nothing of it for too long: in a stream of HTTP/2 that does
/// not show at the socket.
fn is_unread(looks: &Arc<AtomicU32>) -> bool {
    let next = |looks: u32| (looks != TAKEN).then(|| looks.saturating_add(1));
    let before = looks.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
    before.is_ok_and(|before| before >= UNREAD_LOOKS_MAX)
}

impl Busy {
    /// Notes that the body of the request is whole: the connection is not closed for others until the answer has left.
    pub(crate) fn set_whole(&self) {
        if self.is_whole.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut state = locked(&self.client.state);
        state.whole = state.whole.saturating_add(1);
        if state.whole == 1 {
            self.client.settle(&mut state);
        }
    }

    /// Notes whether hyper was given a piece of the answer, or waits for one.
    pub(crate) fn set_given(&self, is_given: bool) {
        self.looks.store(if is_given { 0 } else { TAKEN }, Ordering::Relaxed);
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut state = locked(&self.client.state);
        state.requests.remove(&self.number);
        if *self.is_whole.get_mut() {
            state.whole = state.whole.saturating_sub(1);
            if state.whole == 0 {
                self.client.settle(&mut state);
            }
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let idle = locked(&self.state).idle.take();
        let mut clients = locked(&self.all.clients);
        clients.open = clients.open.saturating_sub(1);
        if let Some(idle) = idle {
            clients.idle.remove(&idle);
        }
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
