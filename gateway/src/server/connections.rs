//! Limit on the number of client connections. If the limit is reached, a new connection closes an
//! old one without an authenticated request in flight.
//!
//! If strangers (connections that never had an authenticated request) have more than their part of
//! all connections, the oldest stranger is closed. Otherwise the oldest connection of the first
//! [`Class`] is closed. So a client with a key that keeps all connections busy cannot prevent
//! others from sending a head. A request that was refused, or is not authenticated yet, does not
//! change the class. If all connections have requests, a connection with an upload is closed once a
//! request of the new connection is authenticated.
//!
//! The system's limit on file descriptors covers both clients and upstreams. Each client may need a
//! connection to an upstream, so clients get half of the descriptors.

use std::collections::BTreeMap;
use std::ops::{RangeBounds, RangeFrom};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use creole::Owner;
use tokio::sync::{Notify, Semaphore};
use tokio::time::sleep;

use crate::server::budget::{Budget, Held};

/// Maximum number of client connections, whatever the number of file descriptors: each connection
/// has buffers.
const CLIENTS_MAX: usize = 8192;

/// Divisor: strangers may keep at least this part of all client connections.
const STRANGERS_PART: usize = 8;

/// Number of file descriptors for the log, the listeners, and files that are opened briefly.
const OWN_FILES: usize = 32;

/// Number of file descriptors of one thread: for its event queue and its wake-up signal.
const FILES_OF_THREAD: usize = 4;

/// Interval between two checks of a connection. A new connection has the same time to send the head
/// of a request.
const LOOK_INTERVAL: Duration = Duration::from_secs(30);

/// Number of checks after which an answer that the client does not read is given up: five minutes.
/// The stream of a laptop that sleeps longer is lost anyway.
const UNREAD_LOOKS_MAX: u32 = 10;

/// Maximum number of small answers in flight that count as memory of the connection itself. The
/// budget counts further answers.
const SMALL_ANSWERS_MAX: usize = 64;

/// Maximum size, in bytes, of the body of a small answer.
const SMALL_ANSWER_BYTES: usize = 4 << 10;

/// Divisor: an answer without its body needs this part of an exchange's memory, for its head, its
/// stream and its task.
const ANSWER_PART: usize = 4;

/// Maximum number of bodies of one connection that are passed on at the speed of their upstream.
/// They leave half of the HTTP/2 window to other streams, even if no upstream reads them.
pub(crate) const PASSING_MAX: usize = 8;

/// Value of `looks` if hyper asked for the next chunk of an answer and no chunk was ready.
const TAKEN: u32 = u32::MAX;

/// Limit on client connections, and the connections that are open.
#[derive(Debug)]
pub(crate) struct Connections {
    /// Maximum number of open client connections.
    clients_max: usize,
    clients: Mutex<OpenClients>,
}

#[derive(Debug, Default)]
struct OpenClients {
    open: usize,
    /// Connections that may be closed for others, in the order in which they are closed.
    closable: BTreeMap<ClosingPlace, Arc<Notify>>,
    /// Counter from which connections get the second part of their `ClosingPlace`, so that
    /// positions are ordered by time.
    count: u64,
}

/// Class of a connection that may be closed for others. Connections of the first class are closed
/// first, unless there are many strangers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    /// The connection had authenticated requests, and none of them is in flight.
    Idle,
    /// The connection never had an authenticated request.
    Stranger,
    /// Authenticated requests are in flight on the connection, and none of their bodies is
    /// complete.
    Uploading,
}

/// Position of a connection in the closing order: its class, and a number that rises with time.
type ClosingPlace = (Class, u64);

/// Range of the positions of connections with uploads.
const UPLOADS: RangeFrom<ClosingPlace> = (Class::Uploading, 0)..;

/// Progress of a request that is in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// The head has arrived. The client is not authenticated yet, or the request was refused.
    Begun,
    /// The client is authenticated, and the request's body is incomplete.
    LetIn,
    /// The client is authenticated, and the request's body is complete.
    Whole,
}

/// An open client connection. It counts as open until this value is dropped.
#[derive(Debug)]
pub(crate) struct ClientConnection {
    all: Arc<Connections>,
    /// Owner, in the memory budget, of the connection's requests without a client key.
    pub(crate) owner: Owner,
    state: Mutex<ConnectionsState>,
    /// Signal to close the connection, unless an authenticated request with a complete body is in
    /// flight.
    pub(crate) close: Arc<Notify>,
    /// Signal that others need the memory of refusals and incomplete heads. Closes the connection
    /// unless an authenticated request is in flight.
    pub(crate) yields: Arc<Notify>,
    /// Permits for bodies that are passed on at the speed of their upstream.
    pub(crate) passing: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct ConnectionsState {
    /// Number of all requests that the connection has had.
    begun: u64,
    /// Requests in flight, by number, with the number of checks since their last chunk.
    requests: BTreeMap<u64, Arc<AtomicU32>>,
    /// Number of authenticated requests in flight whose bodies are incomplete.
    uploads: usize,
    /// Number of authenticated requests in flight whose bodies are complete.
    whole: usize,
    /// Number of small answers in flight that the memory budget does not count.
    small_answers: usize,
    place: Option<ClosingPlace>,
    /// True if no other connection was closed for this connection, because all had requests in
    /// flight.
    owes_place: bool,
}

/// A request of a client, until the last chunk of its answer has been written.
#[derive(Debug)]
pub(crate) struct Busy {
    pub(crate) client: Arc<ClientConnection>,
    number: u64,
    /// Number of checks since hyper got a chunk of the answer, or [`TAKEN`].
    looks: Arc<AtomicU32>,
    stage: Stage,
    memory: Memory,
}

/// Holder of the memory of an answer in flight.
#[derive(Debug)]
enum Memory {
    /// The memory of the answer belongs to an exchange, or there is no answer yet.
    Elsewhere,
    /// The memory of the answer belongs to the connection itself, together with other small
    /// answers.
    Connection,
    /// The memory of the answer is counted in the budget.
    Budget(#[expect(dead_code, reason = "it is held until it is dropped")] Held),
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Connections {
    /// Returns limits that fit the number of file descriptors that this process may have.
    pub(crate) fn of_system(threads: usize) -> Arc<Self> {
        let own = OWN_FILES.saturating_add(threads.saturating_mul(FILES_OF_THREAD));
        let max = files_max().saturating_sub(own).max(2);
        Self::new(CLIENTS_MAX.min(max / 2))
    }

    pub(crate) fn new(clients_max: usize) -> Arc<Self> {
        Arc::new(Self { clients_max, clients: Mutex::default() })
    }

    /// Returns the maximum number of client connections.
    pub(crate) fn clients_max(&self) -> usize {
        self.clients_max
    }

    /// Returns the number of open client connections.
    pub(crate) fn open(&self) -> usize {
        locked(&self.clients).open
    }

    /// Registers a new connection. If there are too many, another connection is closed, now or
    /// later. Returns `None` if every connection has an authenticated request with a complete body
    /// in flight.
    pub(crate) fn client(self: &Arc<Self>) -> Option<Arc<ClientConnection>> {
        let mut clients = locked(&self.clients);
        let is_full = clients.open >= self.clients_max;
        let owes_place = is_full && !clients.close_one(self.strangers_max());
        if owes_place {
            let most = self.clients_max.saturating_add(self.strangers_max());
            clients.closable.range(UPLOADS).next().filter(|_| clients.open < most)?;
        }
        clients.open = clients.open.saturating_add(1);
        let close = Arc::<Notify>::default();
        let place = clients.place(Class::Stranger, &close);
        Some(Arc::new(ClientConnection {
            all: Arc::clone(self),
            owner: Owner::of_connection(place.1),
            state: Mutex::new(ConnectionsState {
                place: Some(place),
                owes_place,
                ..ConnectionsState::default()
            }),
            close,
            yields: Arc::default(),
            passing: Arc::new(Semaphore::new(PASSING_MAX)),
        }))
    }

    /// Closes the first connection that has no authenticated request in flight. Returns false if no
    /// connection can be closed.
    pub(crate) fn close_one(&self) -> bool {
        locked(&self.clients).close_one(self.strangers_max())
    }

    /// Returns the number of strangers (connections without an authenticated request) above which a
    /// stranger is closed first.
    fn strangers_max(&self) -> usize {
        (self.clients_max / STRANGERS_PART).max(1)
    }
}

impl OpenClients {
    fn place(&mut self, class: Class, close: &Arc<Notify>) -> ClosingPlace {
        self.count = self.count.saturating_add(1);
        let place = (class, self.count);
        self.closable.insert(place, Arc::clone(close));
        place
    }

    fn close_one(&mut self, strangers_max: usize) -> bool {
        let strangers = self.closable.range((Class::Stranger, 0)..UPLOADS.start);
        let is_over = strangers.take(strangers_max.saturating_add(1)).count() > strangers_max;
        let class = if is_over { Class::Stranger } else { Class::Idle };
        self.close_first((class, 0)..UPLOADS.start)
    }

    fn close_first(&mut self, places: impl RangeBounds<ClosingPlace>) -> bool {
        let first = self.closable.range(places).next().map(|(place, _)| *place);
        let closed = first.and_then(|place| self.closable.remove(&place));
        closed.inspect(|close| close.notify_one()).is_some()
    }
}

impl ClientConnection {
    /// Registers a request, whose client is not authenticated yet.
    pub(crate) fn begin(self: &Arc<Self>) -> Busy {
        let mut state = locked(&self.state);
        state.begun = state.begun.saturating_add(1);
        let (number, looks) = (state.begun, Arc::new(AtomicU32::new(TAKEN)));
        state.requests.insert(number, Arc::clone(&looks));
        let (stage, memory) = (Stage::Begun, Memory::Elsewhere);
        Busy { client: Arc::clone(self), number, looks, stage, memory }
    }

    /// Updates the position in the closing order of this connection, which has had an authenticated
    /// request.
    fn settle(&self, state: &mut ConnectionsState) {
        let mut clients = locked(&self.all.clients);
        if let Some(place) = state.place.take() {
            clients.closable.remove(&place);
        }
        if std::mem::take(&mut state.owes_place) {
            clients.close_first(UPLOADS);
        }
        if state.whole == 0 {
            let class = if state.uploads == 0 { Class::Idle } else { Class::Uploading };
            state.place = Some(clients.place(class, &self.close));
        }
    }

    /// Returns the number of all requests of the connection, and true if a request is in flight.
    pub(crate) fn requests(&self) -> (u64, bool) {
        let state = locked(&self.state);
        (state.begun, !state.requests.is_empty())
    }

    /// Waits until the connection has to be closed, and returns the reason.
    pub(crate) async fn ended(&self) -> &'static str {
        loop {
            tokio::select! {
                // The rest of the request's body may have come meanwhile.
                () = self.close.notified() => if locked(&self.state).whole == 0 {
                    return "others need its place";
                },
                () = self.yields.notified() => {
                    let state = locked(&self.state);
                    if state.uploads == 0 && state.whole == 0 {
                        return "others need its memory";
                    }
                }
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

/// Checks an answer. Returns true if the client has read no chunk of the answer for too long; in an
/// HTTP/2 stream the socket does not show that.
fn is_unread(looks: &Arc<AtomicU32>) -> bool {
    let next = |looks: u32| (looks != TAKEN).then(|| looks.saturating_add(1));
    let before = looks.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
    before.is_ok_and(|before| before >= UNREAD_LOOKS_MAX)
}

impl Busy {
    /// Notes that the request is authenticated, or that its body is complete, too. A connection
    /// with such a complete request is not closed for others until the answer has been written.
    pub(crate) fn reach(&mut self, stage: Stage) {
        if stage > self.stage {
            self.set_stage(stage);
        }
    }

    fn set_stage(&mut self, stage: Stage) {
        let before = std::mem::replace(&mut self.stage, stage);
        let mut state = locked(&self.client.state);
        let changed = |count: usize, counted| {
            let more = count.saturating_add(usize::from(stage == counted));
            more.saturating_sub(usize::from(before == counted))
        };
        let was_whole = state.whole > 0;
        state.uploads = changed(state.uploads, Stage::LetIn);
        state.whole = changed(state.whole, Stage::Whole);
        if !(was_whole && state.whole > 0) {
            self.client.settle(&mut state);
        }
    }

    /// Counts the memory of an answer without an exchange. Returns false if there is not enough
    /// memory. If others need the memory later, the connection is closed, unless a request in
    /// flight protects the connection.
    #[must_use]
    pub(crate) fn count_answer(&mut self, body_bytes: usize, budget: &Arc<Budget>) -> bool {
        let mut state = locked(&self.client.state);
        if body_bytes <= SMALL_ANSWER_BYTES && state.small_answers < SMALL_ANSWERS_MAX {
            state.small_answers = state.small_answers.saturating_add(1);
            self.memory = Memory::Connection;
            return true;
        }
        let is_closable = state.whole == 0;
        drop(state);
        let client = &self.client;
        let mut held = match self.stage {
            Stage::Begun => budget.begin_stranger(client.owner, Arc::clone(&client.yields)),
            Stage::LetIn | Stage::Whole => budget.begin(client.owner, Arc::clone(&client.close)),
        };
        let is_counted = held.set((budget.exchange() / ANSWER_PART).saturating_add(body_bytes));
        if !is_closable && self.stage > Stage::Begun {
            held.complete();
        }
        self.memory = Memory::Budget(held);
        is_counted
    }

    /// Notes if hyper got a chunk of the answer, or waits for a chunk.
    pub(crate) fn set_given(&self, is_given: bool) {
        self.looks.store(if is_given { 0 } else { TAKEN }, Ordering::Relaxed);
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        if self.stage > Stage::Begun {
            self.set_stage(Stage::Begun);
        }
        let mut state = locked(&self.client.state);
        state.requests.remove(&self.number);
        if let Memory::Connection = self.memory {
            state.small_answers = state.small_answers.saturating_sub(1);
        }
    }
}

impl Drop for ClientConnection {
    fn drop(&mut self) {
        let place = locked(&self.state).place.take();
        let mut clients = locked(&self.all.clients);
        clients.open = clients.open.saturating_sub(1);
        if let Some(place) = place {
            clients.closable.remove(&place);
        }
    }
}

/// Returns the number of file descriptors that this process may have, and raises the limit if it is
/// low. The system's default is for programs of long ago; a process may raise it as far as its
/// operator allows.
#[cfg(unix)]
fn files_max() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // The limit is not raised to infinity, which some systems refuse.
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

/// Number of file descriptors wanted for all clients, and for the streams of their HTTP/2
/// connections.
#[cfg(unix)]
const FILES_WANTED: u64 = 65_536;

#[cfg(not(unix))]
fn files_max() -> usize {
    usize::MAX
}

#[cfg(test)]
mod tests;
