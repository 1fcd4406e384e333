//! The memory that all requests of a host hold together, and which request gives its memory up when
//! there is no more.
//!
//! Only bytes that have come count, never a length that somebody claims. Each request belongs to an
//! [`Owner`]: a connection, a client key, or an address. Nobody holds more than what is left for
//! others, except for a single request. The last sixteenth is a reserve: of it nobody holds more
//! than a thirty-second part of what is left, so that small requests are served beside many greedy
//! owners. A request whose answer has begun counts as a single one, so that its owner's share does
//! not break it.
//!
//! Where memory is full of requests that are let in, those without a whole body go first: one from
//! which nothing has come for [`BODY_GRACE_MS`]; else the oldest one of the owner that holds most,
//! if that is more than the asking owner would have; else the oldest one that began before
//! [`BODY_GRACE_MS`]. Where only the share of the asking owner is full, its own old ones go. A
//! request with a whole body is never given up: its upstream works for it.
//!
//! Strangers' requests, which are not let in, are given up before all others: what they hold counts
//! for no owner's share, and is free for every request that is let in. For them, only old strangers
//! are given up.
//!
//! `pace.rs` limits the time of a body.

mod owner;
mod pace;

pub use owner::Owner;
pub use pace::Pace;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;

use crate::Millis;

/// Time after which a request without a whole body may be given up for any other request.
const BODY_GRACE_MS: Millis = 2000;

/// Number of bytes that must come before the upload of a body counts as in progress.
const PROGRESS_BYTES: usize = 1 << 10;

/// Part of the limit that is for small requests.
const RESERVED_PART: usize = 16;

/// Divisor: one owner may hold at most this part of the free reserve.
const SMALL_PART: usize = 32;

/// Maximum number of owners, the largest first, whose memory that can be given up is summed.
const LARGEST_OWNERS: usize = 256;

/// A request that holds memory. Numbers rise with time and do not repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Holding(u64);

/// Error: there is not enough memory for this request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// Bytes that all requests hold together, up to a limit.
#[derive(Debug)]
pub struct Budget {
    bytes_max: usize,
    bytes: usize,
    begun: u64,
    requests: BTreeMap<Holding, Request>,
    owners: BTreeMap<Owner, Share>,
    /// Requests that are not let in, the oldest first.
    strangers: BTreeSet<Holding>,
    /// Bytes of all requests that are not let in.
    stranger_bytes: usize,
    /// Requests without a whole body, the oldest first.
    incomplete: BTreeSet<Holding>,
    /// Requests without a whole body, by the time at which bytes came last.
    by_silence: BTreeSet<(Millis, Holding)>,
    /// Owners of requests without a whole body, by the bytes that they hold.
    by_share: BTreeSet<(usize, Owner)>,
    /// The last request without a whole body that is old: it began [`BODY_GRACE_MS`] ago.
    last_old: Holding,
    /// Bytes of all old requests without a whole body.
    old_bytes: usize,
    /// Requests given up and not yet told to the host.
    given_up: VecDeque<Holding>,
}

#[derive(Clone, Copy, Debug)]
struct Request {
    owner: Owner,
    state: State,
    bytes: usize,
    began: Millis,
    /// Time at which [`PROGRESS_BYTES`] had come last.
    came_at: Millis,
    /// Bytes that came since then.
    came: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    /// State: the client is not authenticated yet, or was refused. No other state follows.
    Stranger,
    /// State: the client is authenticated, and its body is not whole.
    Incomplete,
    /// State: the client's body is whole, or is passed through.
    Whole,
    /// State: the head of the answer has been sent to the client, or is sent now.
    Answered,
}

/// Memory and requests of one owner.
#[derive(Debug, Default)]
struct Share {
    /// Bytes of requests that are let in.
    bytes: usize,
    /// Bytes of requests that are not let in.
    stranger_bytes: usize,
    requests: usize,
    /// Requests without a whole body, the oldest first.
    incomplete: BTreeSet<Holding>,
    /// Bytes of requests without a whole body.
    incomplete_bytes: usize,
    /// Bytes of old requests without a whole body.
    old_bytes: usize,
}

/// A request that is to hold so many bytes more.
#[derive(Clone, Copy, Debug)]
struct Asking {
    holding: Holding,
    request: Request,
    more: usize,
}

/// Result of asking for memory for the bytes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Space {
    Free,
    /// There is free memory, but the owner already holds its share.
    ShareFull,
    MemoryFull,
}

impl Request {
    fn hear(&mut self, bytes: usize, now: Millis) {
        self.came = self.came.saturating_add(bytes);
        if self.came >= PROGRESS_BYTES {
            (self.came, self.came_at) = (0, now);
        }
    }
}

impl Budget {
    /// Returns a budget of `bytes_max` bytes.
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

    /// Changes the limit. Requests that already hold more keep their memory.
    pub fn set_limit(&mut self, bytes_max: usize) {
        self.bytes_max = bytes_max;
    }

    /// Begins a request that is let in. It holds nothing yet and has no whole body.
    pub fn begin(&mut self, owner: Owner, now: Millis) -> Holding {
        self.begin_as(State::Incomplete, owner, now)
    }

    /// Begins a request of a client that is not authenticated yet, or was refused. Only old
    /// requests of this kind are given up for such a request. It is itself given up before any
    /// request of an authenticated client.
    pub fn begin_stranger(&mut self, owner: Owner, now: Millis) -> Holding {
        self.begin_as(State::Stranger, owner, now)
    }

    fn begin_as(&mut self, state: State, owner: Owner, now: Millis) -> Holding {
        self.begun = self.begun.saturating_add(1);
        let holding = Holding(self.begun);
        let request = Request { owner, state, bytes: 0, began: now, came_at: now, came: 0 };
        self.requests.insert(holding, request);
        self.count(holding, request, true);
        holding
    }

    /// Sets the bytes that a request holds. Requests that are given up for it come from
    /// [`poll_given_up`].
    ///
    /// # Errors
    /// There is not so much memory, or the request was given up. What it holds has not changed.
    ///
    /// [`poll_given_up`]: Self::poll_given_up
    pub fn set(&mut self, holding: Holding, bytes: usize, now: Millis) -> Result<(), Full> {
        let request = *self.requests.get(&holding).ok_or(Full)?;
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

    /// Notes that bytes of a body have come into memory that its request held before.
    pub fn note_bytes(&mut self, holding: Holding, bytes: usize, now: Millis) {
        self.change(holding, |request| request.hear(bytes, now));
    }

    /// Notes that the body of a request is whole: it is not given up any more.
    pub fn complete(&mut self, holding: Holding) {
        self.advance(holding, State::Whole);
    }

    /// Notes that the answer to a request begins: only the reserve and all other requests limit it
    /// from now on.
    pub fn begin_answer(&mut self, holding: Holding) {
        self.advance(holding, State::Answered);
    }

    /// Ends a request, and frees what it holds.
    pub fn end(&mut self, holding: Holding) {
        if let Some(request) = self.requests.remove(&holding) {
            self.count(holding, request, false);
        }
    }

    /// Removes a request that was given up for others. Its host frees its memory at once, and then
    /// refuses it.
    pub fn poll_given_up(&mut self) -> Option<Holding> {
        self.given_up.pop_front()
    }

    /// Returns the bytes that all requests hold.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.bytes
    }

    /// Gives requests up until there is place. Nobody who is let in is given up for a request that
    /// is refused.
    fn make_place(&mut self, asking: Asking, now: Millis) -> Result<(), Full> {
        if self.place(asking, 0, 0) == Space::Free {
            return Ok(());
        }
        self.age(now);
        let first = self.place(asking, self.stranger_bytes, 0);
        let is_let_in = asking.request.state != State::Stranger;
        if is_let_in && !self.can_make(first, asking) {
            return Err(Full);
        }
        loop {
            let place = self.place(asking, 0, 0);
            let larger = || self.silent(asking, now).or_else(|| self.of_largest(asking));
            let stranger = self.strangers.iter().find(|one| **one != asking.holding).copied();
            let victim = match (place, first) {
                (Space::Free, _) => return Ok(()),
                _ if !is_let_in => stranger.filter(|one| self.is_old(*one, now)),
                _ if stranger.is_some() => stranger,
                (Space::MemoryFull, _) => larger().or_else(|| self.old(&self.incomplete, asking)),
                (_, Space::MemoryFull) => larger().or_else(|| self.old_of_own(asking)),
                _ => self.old_of_own(asking),
            };
            let victim = victim.ok_or(Full)?;
            self.end(victim);
            self.given_up.push_back(victim);
        }
    }

    /// Returns true if giving up requests can free enough memory. It reads sums, so that many
    /// refused requests cost little.
    fn can_make(&self, first: Space, asking: Asking) -> bool {
        let Asking { holding, request, more } = asking;
        let strangers = self.stranger_bytes;
        let is_old = request.state == State::Incomplete && holding <= self.last_old;
        let besides = if is_old { request.bytes } else { 0 };
        let own = self.owners.get(&request.owner).map_or(0, |share| share.old_bytes);
        let (own, old) = (own.saturating_sub(besides), self.old_bytes.saturating_sub(besides));
        match first {
            Space::Free => return true,
            Space::ShareFull => {
                return self.place(asking, own.saturating_add(strangers), own) == Space::Free;
            }
            Space::MemoryFull => {}
        }
        let larger = self.bytes_of_larger(asking);
        // Old requests of others go only until the reserve is free.
        let with_reserve = self.bytes.saturating_add(more).saturating_add(self.reserve());
        let short = with_reserve.saturating_sub(strangers).saturating_sub(self.bytes_max);
        [short.min(old.max(larger)), larger]
            .into_iter()
            .any(|freed| self.place(asking, freed.saturating_add(strangers), own) == Space::Free)
    }

    /// Returns whether there is place once so many bytes are freed, and so many of them are the
    /// owner's own.
    fn place(&self, asking: Asking, freed: usize, own: usize) -> Space {
        let bytes = self.bytes.saturating_add(asking.more).saturating_sub(freed);
        let Some(left) = self.bytes_max.checked_sub(bytes) else { return Space::MemoryFull };
        let is_answered = asking.request.state == State::Answered;
        let would_hold = if is_answered {
            asking.request.bytes.saturating_add(asking.more)
        } else {
            self.would_hold(asking).saturating_sub(own)
        };
        if left < self.reserve() {
            let is_small = would_hold <= left / SMALL_PART;
            return if is_small { Space::Free } else { Space::MemoryFull };
        }
        let share = self.owners.get(&asking.request.owner);
        let is_single = is_answered || share.is_some_and(|share| share.requests == 1);
        if is_single || would_hold <= left { Space::Free } else { Space::ShareFull }
    }

    fn reserve(&self) -> usize {
        self.bytes_max / RESERVED_PART
    }

    /// Returns the bytes that the owner of a request would hold with all of its requests: those of
    /// strangers count only for a stranger.
    fn would_hold(&self, asking: Asking) -> usize {
        let share = self.owners.get(&asking.request.owner);
        let is_stranger = asking.request.state == State::Stranger;
        let held = |share: &Share| {
            let besides = if is_stranger { share.stranger_bytes } else { 0 };
            share.bytes.saturating_add(besides)
        };
        share.map_or(0, held).saturating_add(asking.more)
    }

    /// Returns the bytes that can be given up by owners who hold more than the asking owner would.
    fn bytes_of_larger(&self, asking: Asking) -> usize {
        let would_hold = self.would_hold(asking);
        let largest = self.by_share.iter().rev().take(LARGEST_OWNERS);
        let larger = largest.take_while(|(bytes, _)| *bytes > would_hold);
        larger.fold(0_usize, |sum, (bytes, owner)| {
            let incomplete = self.owners.get(owner).map_or(0, |share| share.incomplete_bytes);
            sum.saturating_add(incomplete.min(bytes.saturating_sub(would_hold)))
        })
    }

    /// Returns the request that has waited longest for more of its body, if it has waited at least
    /// [`BODY_GRACE_MS`].
    fn silent(&self, asking: Asking, now: Millis) -> Option<Holding> {
        let (at, holding) =
            self.by_silence.iter().find(|(_, holding)| *holding != asking.holding)?;
        (now.saturating_sub(*at) >= BODY_GRACE_MS).then_some(*holding)
    }

    /// Returns the oldest request without a whole body of the owner that holds most, if that is
    /// more than the asking owner would.
    fn of_largest(&self, asking: Asking) -> Option<Holding> {
        let (bytes, owner) = self.by_share.last()?;
        let share = self.owners.get(owner).filter(|_| *bytes > self.would_hold(asking))?;
        share.incomplete.first().copied()
    }

    fn old_of_own(&self, asking: Asking) -> Option<Holding> {
        self.old(&self.owners.get(&asking.request.owner)?.incomplete, asking)
    }

    /// Returns the oldest request of `incomplete` but the asking one, if that request is old.
    fn old(&self, incomplete: &BTreeSet<Holding>, asking: Asking) -> Option<Holding> {
        let oldest = incomplete.iter().find(|holding| **holding != asking.holding)?;
        (*oldest <= self.last_old).then_some(*oldest)
    }

    /// Marks requests as old whose body is still incomplete after [`BODY_GRACE_MS`].
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

    fn advance(&mut self, holding: Holding, state: State) {
        let advances = |request: &Request| (State::Incomplete..state).contains(&request.state);
        if self.requests.get(&holding).is_some_and(advances) {
            self.change(holding, |request| request.state = state);
        }
    }

    fn change(&mut self, holding: Holding, change: impl FnOnce(&mut Request)) {
        let Some(request) = self.requests.get_mut(&holding) else { return };
        let before = *request;
        change(request);
        let after = *request;
        self.count(holding, before, false);
        self.count(holding, after, true);
    }

    /// Puts a request into all sums and orders, or takes it out of them.
    fn count(&mut self, holding: Holding, request: Request, is_in: bool) {
        let sum = if is_in { usize::saturating_add } else { usize::saturating_sub };
        let Request { owner, bytes, .. } = request;
        self.bytes = sum(self.bytes, bytes);
        let share = self.owners.entry(owner).or_default();
        self.by_share.remove(&(share.bytes, owner));
        share.requests = sum(share.requests, 1);
        if request.state == State::Stranger {
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
        if request.state == State::Incomplete {
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
