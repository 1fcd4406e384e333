//! Limit on the memory that all requests of a host hold together. If memory is full, some requests
//! are evicted: they end, and their memory goes to others.
//!
//! Only received bytes count, never an announced length. Each request belongs to an [`Owner`]: a
//! connection, a client key, or an address. No owner may hold more memory than is left for others,
//! except with a single request. The last sixteenth of the limit is a reserve. In the reserve, an
//! owner may hold at most a thirty-second part of the free memory, so that small requests are
//! served although other owners are greedy. A request whose answer has begun counts as a single
//! request, so that its owner's share does not end the answer.
//!
//! Requests without a complete body are evicted in this order if authenticated requests fill the
//! memory. First goes a request that received nothing for [`BODY_GRACE_MS`]. Next goes the oldest
//! request of the owner that holds most, if that owner holds more than the requesting owner would.
//! Last goes the oldest request that began at least [`BODY_GRACE_MS`] ago. If only the share of the
//! requesting owner is full, its own old requests are evicted. A request with a complete body is
//! never evicted, because its upstream already works for it.
//!
//! Requests of strangers (clients that are not authenticated) are evicted before all others. Their
//! memory counts for no owner's share, and any authenticated request can have it. A request of a
//! stranger evicts only old requests of strangers.
//!
//! The file `pace.rs` limits the time that a client may need to send a body.

mod owner;
mod pace;

pub use owner::Owner;
pub use pace::Pace;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;

use crate::Millis;

/// Time after which a request with an incomplete body may be evicted for any other request.
const BODY_GRACE_MS: Millis = 2000;

/// Number of bytes that must arrive before the upload of a body counts as in progress.
const PROGRESS_BYTES: usize = 1 << 10;

/// Divisor: this part of the memory limit is a reserve for small requests.
const RESERVED_PART: usize = 16;

/// Divisor: one owner may hold at most this part of the free memory once only the reserve is left.
const SMALL_PART: usize = 32;

/// Maximum number of owners, largest first, whose evictable memory is summed.
const LARGEST_OWNERS: usize = 256;

/// Number of a request that holds memory. Later requests have higher numbers, and no number is used
/// twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Holding(u64);

/// Error: there is not enough memory for this request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryFull;

/// Budget of memory, in bytes, that all requests of a host share.
#[derive(Debug)]
pub struct Budget {
    bytes_max: usize,
    bytes: usize,
    begun: u64,
    requests: BTreeMap<Holding, MemoryRequest>,
    owners: BTreeMap<Owner, Share>,
    /// Requests of clients that are not authenticated, oldest first.
    strangers: BTreeSet<Holding>,
    /// Sum of the bytes that requests of unauthenticated clients hold.
    stranger_bytes: usize,
    /// Authenticated requests with an incomplete body, oldest first.
    incomplete: BTreeSet<Holding>,
    /// Authenticated requests with an incomplete body, by the time at which their last bytes
    /// arrived.
    by_silence: BTreeSet<(Millis, Holding)>,
    /// Owners of requests with an incomplete body, by the bytes that each owner holds.
    by_share: BTreeSet<(usize, Owner)>,
    /// Newest request with an incomplete body that is old: the request began at least
    /// [`BODY_GRACE_MS`] ago.
    last_old: Holding,
    /// Sum of the bytes of all old requests with an incomplete body.
    old_bytes: usize,
    /// Evicted requests of which the host has not been notified yet.
    given_up: VecDeque<Holding>,
}

#[derive(Clone, Copy, Debug)]
struct MemoryRequest {
    owner: Owner,
    state: BudgetState,
    bytes: usize,
    began: Millis,
    /// Time at which [`PROGRESS_BYTES`] bytes had arrived since the previous such time.
    came_at: Millis,
    /// Number of bytes that arrived since `came_at`.
    came: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum BudgetState {
    /// State of a request whose client is not authenticated yet, or was refused. No other state
    /// follows.
    Stranger,
    /// State of a request whose client is authenticated and whose body is incomplete.
    Incomplete,
    /// State of a request whose body is complete, or is passed through to an upstream.
    Whole,
    /// State of a request whose response head has been sent to the client, or is being sent.
    Answered,
}

/// Memory and number of the requests of one owner.
#[derive(Debug, Default)]
struct Share {
    /// Number of bytes that the owner's authenticated requests hold in memory.
    bytes: usize,
    /// Number of bytes that the owner's other requests hold in memory.
    stranger_bytes: usize,
    requests: usize,
    /// The owner's authenticated requests with an incomplete body, oldest first.
    incomplete: BTreeSet<Holding>,
    /// Bytes of the owner's requests with an incomplete body.
    incomplete_bytes: usize,
    /// Bytes of the owner's old requests with an incomplete body.
    old_bytes: usize,
}

/// A request that asks the budget for `more` bytes of memory.
#[derive(Clone, Copy, Debug)]
struct Asking {
    holding: Holding,
    request: MemoryRequest,
    more: usize,
}

/// Result of asking for memory for the bytes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MemoryAnswer {
    Free,
    /// There is free memory, but the owner of the request already holds its share.
    ShareFull,
    MemoryFull,
}

impl MemoryRequest {
    fn hear(&mut self, bytes: usize, now: Millis) {
        self.came = self.came.saturating_add(bytes);
        if self.came >= PROGRESS_BYTES {
            (self.came, self.came_at) = (0, now);
        }
    }
}

impl Budget {
    /// Returns a budget with a limit of `bytes_max` bytes.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            bytes: 0,
            begun: 0,
            requests: BTreeMap::new(),
            owners: BTreeMap::new(),
            strangers: BTreeSet::new(),
            stranger_bytes: 0,
            incomplete: BTreeSet::new(),
            by_silence: BTreeSet::new(),
            by_share: BTreeSet::new(),
            last_old: Holding(0),
            old_bytes: 0,
            given_up: VecDeque::new(),
        }
    }

    /// Changes the limit of the budget. Requests that already hold more keep their memory.
    pub fn set_limit(&mut self, bytes_max: usize) {
        self.bytes_max = bytes_max;
    }

    /// Registers a request of an authenticated client. The request holds no memory yet, and its
    /// body is incomplete.
    pub fn begin(&mut self, owner: Owner, now: Millis) -> Holding {
        self.begin_as(BudgetState::Incomplete, owner, now)
    }

    /// Registers a request of a client that is not authenticated yet, or was refused. Only old
    /// requests of such clients are evicted to give the request memory. The request is itself
    /// evicted before any request of an authenticated client.
    pub fn begin_stranger(&mut self, owner: Owner, now: Millis) -> Holding {
        self.begin_as(BudgetState::Stranger, owner, now)
    }

    fn begin_as(&mut self, state: BudgetState, owner: Owner, now: Millis) -> Holding {
        self.begun = self.begun.saturating_add(1);
        let holding = Holding(self.begun);
        let request = MemoryRequest { owner, state, bytes: 0, began: now, came_at: now, came: 0 };
        self.requests.insert(holding, request);
        self.count(holding, request, true);
        holding
    }

    /// Sets the number of bytes that a request holds. [`poll_given_up`] returns the requests that
    /// were evicted for the memory.
    ///
    /// # Errors
    /// There is not enough memory, or the request was evicted. The number of bytes that the request
    /// holds has not changed.
    ///
    /// [`poll_given_up`]: Self::poll_given_up
    pub fn set(&mut self, holding: Holding, bytes: usize, now: Millis) -> Result<(), MemoryFull> {
        let request = *self.requests.get(&holding).ok_or(MemoryFull)?;
        let more = bytes.saturating_sub(request.bytes);
        if more > 0 {
            self.make_place(Asking { holding, request, more }, now)?;
        }
        self.change(holding, |request| {
            request.bytes = bytes;
            request.hear(more, now);
        });
        Ok(())
    }

    /// Notes that bytes of a body arrived in memory that the request already held.
    pub fn note_bytes(&mut self, holding: Holding, bytes: usize, now: Millis) {
        self.change(holding, |request| request.hear(bytes, now));
    }

    /// Notes that the body of a request is complete: the request cannot be evicted any more.
    pub fn complete(&mut self, holding: Holding) {
        self.advance(holding, BudgetState::Whole);
    }

    /// Notes that the answer to a request begins. Its owner's share does not limit the request any
    /// more; the reserve and the total limit do.
    pub fn begin_answer(&mut self, holding: Holding) {
        self.advance(holding, BudgetState::Answered);
    }

    /// Ends a request, and frees the memory that the request holds.
    pub fn end(&mut self, holding: Holding) {
        if let Some(request) = self.requests.remove(&holding) {
            self.count(holding, request, false);
        }
    }

    /// Removes and returns a request that was evicted. The host must free the request's memory at
    /// once, and then refuse the request.
    pub fn poll_given_up(&mut self) -> Option<Holding> {
        self.given_up.pop_front()
    }

    /// Returns the number of bytes that all requests hold together.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.bytes
    }

    /// Evicts requests until the asking request has enough memory. An authenticated request is
    /// evicted only if the asking request can then be admitted.
    fn make_place(&mut self, asking: Asking, now: Millis) -> Result<(), MemoryFull> {
        if self.place(asking, 0, 0) == MemoryAnswer::Free {
            return Ok(());
        }
        self.age(now);
        let first = self.place(asking, self.stranger_bytes, 0);
        let is_let_in = asking.request.state != BudgetState::Stranger;
        if is_let_in && !self.can_make(first, asking) {
            return Err(MemoryFull);
        }
        loop {
            let place = self.place(asking, 0, 0);
            let larger = || self.silent(asking, now).or_else(|| self.of_largest(asking));
            let stranger = self.strangers.iter().find(|one| **one != asking.holding).copied();
            let victim = match (place, first) {
                (MemoryAnswer::Free, _) => return Ok(()),
                _ if !is_let_in => stranger.filter(|one| self.is_old(*one, now)),
                _ if stranger.is_some() => stranger,
                (MemoryAnswer::MemoryFull, _) => {
                    larger().or_else(|| self.old(&self.incomplete, asking))
                }
                (_, MemoryAnswer::MemoryFull) => larger().or_else(|| self.old_of_own(asking)),
                _ => self.old_of_own(asking),
            };
            let victim = victim.ok_or(MemoryFull)?;
            self.end(victim);
            self.given_up.push_back(victim);
        }
    }

    /// Returns true if evicting requests can free enough memory. The answer comes from sums, so
    /// that many refused requests cost little.
    fn can_make(&self, first: MemoryAnswer, asking: Asking) -> bool {
        let Asking { holding, request, more } = asking;
        let strangers = self.stranger_bytes;
        let is_old = request.state == BudgetState::Incomplete && holding <= self.last_old;
        let besides = if is_old { request.bytes } else { 0 };
        let own = self.owners.get(&request.owner).map_or(0, |share| share.old_bytes);
        let (own, old) = (own.saturating_sub(besides), self.old_bytes.saturating_sub(besides));
        match first {
            MemoryAnswer::Free => return true,
            MemoryAnswer::ShareFull => {
                return self.place(asking, own.saturating_add(strangers), own)
                    == MemoryAnswer::Free;
            }
            MemoryAnswer::MemoryFull => {}
        }
        let larger = self.bytes_of_larger(asking);
        // Old requests of other owners are evicted only until the reserve is free.
        let with_reserve = self.bytes.saturating_add(more).saturating_add(self.reserve());
        let short = with_reserve.saturating_sub(strangers).saturating_sub(self.bytes_max);
        [short.min(old.max(larger)), larger].into_iter().any(|freed| {
            self.place(asking, freed.saturating_add(strangers), own) == MemoryAnswer::Free
        })
    }

    /// Returns the answer to a request for memory once `freed` bytes are freed, `own` of which
    /// belong to the request's owner.
    fn place(&self, asking: Asking, freed: usize, own: usize) -> MemoryAnswer {
        let bytes = self.bytes.saturating_add(asking.more).saturating_sub(freed);
        let Some(left) = self.bytes_max.checked_sub(bytes) else { return MemoryAnswer::MemoryFull };
        let is_answered = asking.request.state == BudgetState::Answered;
        let would_hold = if is_answered {
            asking.request.bytes.saturating_add(asking.more)
        } else {
            self.would_hold(asking).saturating_sub(own)
        };
        if left < self.reserve() {
            let is_small = would_hold <= left / SMALL_PART;
            return if is_small { MemoryAnswer::Free } else { MemoryAnswer::MemoryFull };
        }
        let share = self.owners.get(&asking.request.owner);
        let is_single = is_answered || share.is_some_and(|share| share.requests == 1);
        if is_single || would_hold <= left { MemoryAnswer::Free } else { MemoryAnswer::ShareFull }
    }

    fn reserve(&self) -> usize {
        self.bytes_max / RESERVED_PART
    }

    /// Returns the bytes that the owner would hold with all its requests. Its unauthenticated
    /// requests count only if the asking request is not authenticated.
    fn would_hold(&self, asking: Asking) -> usize {
        let share = self.owners.get(&asking.request.owner);
        let is_stranger = asking.request.state == BudgetState::Stranger;
        let held = |share: &Share| {
            let besides = if is_stranger { share.stranger_bytes } else { 0 };
            share.bytes.saturating_add(besides)
        };
        share.map_or(0, held).saturating_add(asking.more)
    }

    /// Returns the number of evictable bytes of owners that hold more than the asking owner would.
    fn bytes_of_larger(&self, asking: Asking) -> usize {
        let would_hold = self.would_hold(asking);
        let largest = self.by_share.iter().rev().take(LARGEST_OWNERS);
        let larger = largest.take_while(|(bytes, _)| *bytes > would_hold);
        larger.fold(0_usize, |sum, (bytes, owner)| {
            let incomplete = self.owners.get(owner).map_or(0, |share| share.incomplete_bytes);
            sum.saturating_add(incomplete.min(bytes.saturating_sub(would_hold)))
        })
    }

    /// Returns the request that has received nothing for the longest time, if that time is at least
    /// [`BODY_GRACE_MS`].
    fn silent(&self, asking: Asking, now: Millis) -> Option<Holding> {
        let (at, holding) =
            self.by_silence.iter().find(|(_, holding)| *holding != asking.holding)?;
        (now.saturating_sub(*at) >= BODY_GRACE_MS).then_some(*holding)
    }

    /// Returns the oldest incomplete request of the owner that holds most, if that owner holds more
    /// than the asking owner would.
    fn of_largest(&self, asking: Asking) -> Option<Holding> {
        let (bytes, owner) = self.by_share.last()?;
        let share = self.owners.get(owner).filter(|_| *bytes > self.would_hold(asking))?;
        share.incomplete.first().copied()
    }

    fn old_of_own(&self, asking: Asking) -> Option<Holding> {
        self.old(&self.owners.get(&asking.request.owner)?.incomplete, asking)
    }

    /// Returns the oldest request of `incomplete` except the asking request, if that request began
    /// at least [`BODY_GRACE_MS`] ago.
    fn old(&self, incomplete: &BTreeSet<Holding>, asking: Asking) -> Option<Holding> {
        let oldest = incomplete.iter().find(|holding| **holding != asking.holding)?;
        (*oldest <= self.last_old).then_some(*oldest)
    }

    /// Marks requests as old if their body is still incomplete after [`BODY_GRACE_MS`].
    fn age(&mut self, now: Millis) {
        loop {
            let younger = (Bound::Excluded(self.last_old), Bound::Unbounded);
            let next = self.incomplete.range(younger).next().copied();
            let Some(next) = next.filter(|next| self.is_old(*next, now)) else { return };
            let Some(request) = self.requests.get(&next).copied() else { return };
            self.count(next, request, false);
            self.last_old = next;
            self.count(next, request, true);
        }
    }

    fn is_old(&self, holding: Holding, now: Millis) -> bool {
        let request = self.requests.get(&holding);
        request.is_some_and(|request| now.saturating_sub(request.began) >= BODY_GRACE_MS)
    }

    fn advance(&mut self, holding: Holding, state: BudgetState) {
        let advances =
            |request: &MemoryRequest| (BudgetState::Incomplete..state).contains(&request.state);
        if self.requests.get(&holding).is_some_and(advances) {
            self.change(holding, |request| request.state = state);
        }
    }

    fn change(&mut self, holding: Holding, change: impl FnOnce(&mut MemoryRequest)) {
        let Some(request) = self.requests.get_mut(&holding) else { return };
        let before = *request;
        change(request);
        let after = *request;
        self.count(holding, before, false);
        self.count(holding, after, true);
    }

    /// Adds a request to all sums and ordered sets, or removes the request from them.
    fn count(&mut self, holding: Holding, request: MemoryRequest, is_in: bool) {
        let sum = if is_in { usize::saturating_add } else { usize::saturating_sub };
        let MemoryRequest { owner, bytes, .. } = request;
        self.bytes = sum(self.bytes, bytes);
        let share = self.owners.entry(owner).or_default();
        self.by_share.remove(&(share.bytes, owner));
        share.requests = sum(share.requests, 1);
        if request.state == BudgetState::Stranger {
            share.stranger_bytes = sum(share.stranger_bytes, bytes);
            self.stranger_bytes = sum(self.stranger_bytes, bytes);
            if is_in {
                self.strangers.insert(holding);
            } else {
                self.strangers.remove(&holding);
            }
        } else {
            share.bytes = sum(share.bytes, bytes);
        }
        if request.state == BudgetState::Incomplete {
            let by_silence = (request.came_at, holding);
            if is_in {
                self.incomplete.insert(holding);
                self.by_silence.insert(by_silence);
                share.incomplete.insert(holding);
            } else {
                self.incomplete.remove(&holding);
                self.by_silence.remove(&by_silence);
                share.incomplete.remove(&holding);
            }
            share.incomplete_bytes = sum(share.incomplete_bytes, bytes);
            if holding <= self.last_old {
                share.old_bytes = sum(share.old_bytes, bytes);
                self.old_bytes = sum(self.old_bytes, bytes);
            }
        }
        if !share.incomplete.is_empty() {
            self.by_share.insert((share.bytes, owner));
        }
        if share.requests == 0 {
            self.owners.remove(&owner);
        }
    }
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects)]
mod tests;
