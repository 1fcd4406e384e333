//! Limit of connections. Where there is no place for one more, one without a request that was let
//! in is closed: the oldest stranger where strangers have more than their part of all places, else
//! the oldest one of the first [`Class`]. So a client with a key that keeps all places takes from
//! nobody the time to send a head. A request that was refused, or is not let in yet, raises no
//! class. Where all have requests, an upload is closed once a request of the new connection is let
//! in.
//!
//! The system's limit of descriptors is for clients and upstreams together. Each client may need a
//! connection to an upstream, so that clients get half of them.

use std::collections::BTreeMap;
use std::ops::{RangeBounds, RangeFrom};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use creole::Owner;
use tokio::sync::{Notify, Semaphore};
use tokio::time::sleep;

use crate::server::budget::{Budget, Held};

/// Maximum number of clients' connections, however many descriptors there are: each has buffers.
const CLIENTS_MAX: usize = 8192;

/// Part of all places that strangers have for themselves.
const STRANGERS_PART: usize = 8;

/// Descriptors for the log, the listeners, and what opens files for a moment.
const OWN_FILES: usize = 32;

/// Descriptors of a thread: its queue of events, and what wakes it.
const FILES_OF_THREAD: usize = 4;

/// Time between two looks at a connection. A new connection may take as long to send a request's
/// head.
const LOOK_INTERVAL: Duration = Duration::from_secs(30);

/// Looks until an answer that its client does not take is given up: five minutes. A laptop that
/// sleeps for longer has lost its stream anyway.
const UNREAD_LOOKS_MAX: u32 = 10;

/// Maximum number of small answers in flight that are part of a connection's own memory: the budget
/// counts the others.
const SMALL_ANSWERS_MAX: usize = 64;

/// Maximum size of the body of a small answer.
const SMALL_ANSWER_BYTES: usize = 4 << 10;

/// Memory of an answer beside its body, as a part of that of an exchange: its head, its stream, and
/// its task.
const ANSWER_PART: usize = 4;

/// Maximum number of bodies of one connection that pass at the pace of their upstream. They leave
/// half of HTTP/2's window to the bodies of other streams, even if no upstream takes them.
pub(crate) const PASSING_MAX: usize = 8;

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
    /// Connections that may be closed, in the order in which they are.
    closable: BTreeMap<Place, Arc<Notify>>,
    /// Number of times at which a connection got a place.
    count: u64,
}

/// Class of a connection that may be closed for others; the first class goes first where strangers
/// are few.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    /// Requests have been let in, and none of them is in flight.
    Idle,
    /// No request has been let in until now.
    Stranger,
    /// Requests that were let in are in flight, and none of their bodies is whole.
    Uploading,
}

/// Class of a connection, and the number of the time at which it got this place.
type Place = (Class, u64);

/// Places of connections with uploads.
const UPLOADS: RangeFrom<Place> = (Class::Uploading, 0)..;

/// Progress of a request in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// The head has come. Nobody knows yet who sent it, or it was refused.
    Begun,
    /// The client may come in, and its body is still to come.
    LetIn,
    /// The client may come in, and its body is whole.
    Whole,
}

/// A client's connection; it counts until this is dropped.
#[derive(Debug)]
pub(crate) struct Client {
    all: Arc<Connections>,
    /// Owner of requests without a client's key.
    pub(crate) owner: Owner,
    state: Mutex<State>,
    /// Signal that closes the connection, unless a request that was let in and whose body is whole
    /// is in flight.
    pub(crate) close: Arc<Notify>,
    /// Signal that others need the memory of refusals and of unfinished heads: closes the
    /// connection unless a request that was let in is in flight.
    pub(crate) yields: Arc<Notify>,
    /// Permits for bodies that pass at the pace of their upstream.
    pub(crate) passing: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct State {
    /// Number of all requests until now.
    begun: u64,
    /// Requests in flight, by number.
    requests: BTreeMap<u64, Arc<AtomicU32>>,
    /// Number of requests in flight that were let in and whose bodies are not whole.
    uploads: usize,
    /// Number of requests in flight that were let in and whose bodies are whole.
    whole: usize,
    /// Number of small answers in flight that the budget does not count.
    small_answers: usize,
    place: Option<Place>,
    /// True if no connection was closed for this one, because all had requests.
    owes_place: bool,
}

/// A request of a client, until the last piece of its answer has left.
#[derive(Debug)]
pub(crate) struct Busy {
    pub(crate) client: Arc<Client>,
    number: u64,
    /// Looks since a piece of the answer was given to hyper, or [`TAKEN`].
    looks: Arc<AtomicU32>,
    stage: Stage,
    memory: Memory,
}

/// Place of the memory of an answer in flight.
#[derive(Debug)]
enum Memory {
    /// Memory of an exchange, or none: there is no answer yet.
    Elsewhere,
    /// Memory of the connection itself, with other small answers.
    Connection,
    /// Memory that the budget counts.
    Budget(#[expect(dead_code, reason = "it is held until it is dropped")] Held),
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

    /// Gives a new connection its place. If there are too many, another one is closed, now or
    /// later; `None` where each of them has a request in flight that was let in and whose body is
    /// whole.
    pub(crate) fn client(self: &Arc<Self>) -> Option<Arc<Client>> {
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
        Some(Arc::new(Client {
            all: Arc::clone(self),
            owner: Owner::of_connection(place.1),
            state: Mutex::new(State { place: Some(place), owes_place, ..State::default() }),
            close,
            yields: Arc::default(),
            passing: Arc::new(Semaphore::new(PASSING_MAX)),
        }))
    }

    /// Closes the first connection without a request in flight that was let in. Returns false if
    /// there is none.
    pub(crate) fn close_one(&self) -> bool {
        locked(&self.clients).close_one(self.strangers_max())
    }

    /// Returns the number of strangers above which one of them goes first.
    fn strangers_max(&self) -> usize {
        (self.clients_max / STRANGERS_PART).max(1)
    }
}

impl Clients {
    fn place(&mut self, class: Class, close: &Arc<Notify>) -> Place {
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

    fn close_first(&mut self, places: impl RangeBounds<Place>) -> bool {
        let first = self.closable.range(places).next().map(|(place, _)| *place);
        let closed = first.and_then(|place| self.closable.remove(&place));
        closed.inspect(|close| close.notify_one()).is_some()
    }
}

impl Client {
    /// Begins a request, whose client may not be let in.
    pub(crate) fn begin(self: &Arc<Self>) -> Busy {
        let mut state = locked(&self.state);
        state.begun = state.begun.saturating_add(1);
        let (number, looks) = (state.begun, Arc::new(AtomicU32::new(TAKEN)));
        state.requests.insert(number, Arc::clone(&looks));
        let (stage, memory) = (Stage::Begun, Memory::Elsewhere);
        Busy { client: Arc::clone(self), number, looks, stage, memory }
    }

    /// Gives the connection, which has had a request that was let in, its place among those that
    /// may be closed.
    fn settle(&self, state: &mut State) {
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

/// Looks at an answer. Returns true if the client has taken nothing of it for too long: in a stream
/// of HTTP/2 that does not show at the socket.
fn is_unread(looks: &Arc<AtomicU32>) -> bool {
    let next = |looks: u32| (looks != TAKEN).then(|| looks.saturating_add(1));
    let before = looks.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
    before.is_ok_and(|before| before >= UNREAD_LOOKS_MAX)
}

impl Busy {
    /// Notes that the request was let in, or that its body is whole, too: then the connection is
    /// not closed for others until the answer has left.
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

    /// Counts an answer whose memory is not an exchange's. Returns false if there is not so much
    /// memory. Where others need it later, the connection is closed if it may be.
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

    /// Notes whether hyper was given a piece of the answer, or waits for one.
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

impl Drop for Client {
    fn drop(&mut self) {
        let place = locked(&self.state).place.take();
        let mut clients = locked(&self.all.clients);
        clients.open = clients.open.saturating_sub(1);
        if let Some(place) = place {
            clients.closable.remove(&place);
        }
    }
}

/// Returns the number of descriptors that this process may have, and raises it where it is low. The
/// system's default is for programs of long ago, and each may raise it as far as its operator
/// allows.
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

/// Number of descriptors wanted for all clients, and for the streams of their HTTP/2 connections.
#[cfg(unix)]
const FILES_WANTED: u64 = 65_536;

#[cfg(not(unix))]
fn files_max() -> usize {
    usize::MAX
}

#[cfg(test)]
mod tests;
