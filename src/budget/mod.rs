//! The memory that all requests of a host hold together, and which request gives its memory up when there is no more.
//!
//! Only bytes that have come count, never a length that somebody claims. Each request belongs to an [`Owner`]: a
//! connection, a client key, or an address. Nobody holds more than what is left for others, except for a single
//! request. The last sixteenth is a reserve: of it nobody holds more than a thirty-second part of what is left, so that
//! small requests are served beside many greedy owners.
//!
//! Where a request does not fit, others go first: the oldest request without a whole body of the owner that holds most,
//! if that is more than the asking owner would have; else the oldest request whose body has not come for
//! [`BODY_GRACE_MS`]. A request with a whole body is never given up: its upstream works for it.
//!
//! `pace.rs` limits the time of a body.

mod pace;

pub use pace::Pace;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher as _};

use crate::Millis;

/// Time after which a request without a whole body may be given up for any other request.
const BODY_GRACE_MS: Millis = 2000;

/// Part of the limit that is for small requests.
const RESERVED_PART: usize = 16;

/// Part of what is left of the reserve that one owner may hold.
const SMALL_PART: usize = 32;

/// A connection, a client key or an address, as a number that the host chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner(pub u64);

impl Owner {
    /// Returns the owner for a client key, by its name in the configuration.
    #[must_use]
    pub fn of_client_key(name: &str) -> Self {
        Self::hashed(("key", name))
    }

    /// Returns the owner for a connection, by a number that the host gave it.
    #[must_use]
    pub fn of_connection(number: u64) -> Self {
        Self::hashed(("connection", number))
    }

    /// Returns the owner for a client's address.
    #[must_use]
    pub fn of_address(address: &str) -> Self {
        Self::hashed(("address", address))
    }

    fn hashed(owner: impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        owner.hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// A request that holds memory. Numbers rise with time and do not repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Holding(u64);

/// There is not so much memory for this request.
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
    /// Requests without a whole body, the oldest first.
    incomplete: BTreeSet<Holding>,
    /// Owners of requests without a whole body, by the bytes that they hold.
    by_share: BTreeSet<(usize, Owner)>,
    /// Requests given up and not yet told to the host.
    given_up: VecDeque<Holding>,
}

#[derive(Debug)]
struct Request {
    owner: Owner,
    bytes: usize,
    began: Millis,
}

/// Memory and requests of one owner.
#[derive(Debug, Default)]
struct Share {
    bytes: usize,
    requests: usize,
    /// Requests without a whole body, the oldest first.
    incomplete: BTreeSet<Holding>,
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
            incomplete: BTreeSet::new(),
            by_share: BTreeSet::new(),
            given_up: VecDeque::new(),
        }
    }

    /// Changes the limit. Requests that hold more by then keep it.
    pub fn set_limit(&mut self, bytes_max: usize) {
        self.bytes_max = bytes_max;
    }

    /// Begins a request, which holds nothing yet and has no whole body.
    pub fn begin(&mut self, owner: Owner, now: Millis) -> Holding {
        self.begun = self.begun.saturating_add(1);
        let holding = Holding(self.begun);
        self.requests.insert(holding, Request { owner, bytes: 0, began: now });
        self.incomplete.insert(holding);
        self.change(owner, |share| {
            share.requests = share.requests.saturating_add(1);
            share.incomplete.insert(holding);
        });
        holding
    }

    /// Sets the bytes that a request holds. Requests that are given up for it come from [`poll_given_up`].
    ///
    /// # Errors
    /// There is not so much memory, or the request was given up. What it holds has not changed.
    ///
    /// [`poll_given_up`]: Self::poll_given_up
    pub fn set(&mut self, holding: Holding, bytes: usize, now: Millis) -> Result<(), Full> {
        let request = self.requests.get(&holding).ok_or(Full)?;
        let (owner, before) = (request.owner, request.bytes);
        if let Some(more) = bytes.checked_sub(before).filter(|more| *more > 0) {
            self.make_place(holding, owner, more, now)?;
        }
        self.bytes = self.bytes.saturating_sub(before).saturating_add(bytes);
        self.change(owner, |share| {
            share.bytes = share.bytes.saturating_sub(before).saturating_add(bytes);
        });
        if let Some(request) = self.requests.get_mut(&holding) {
            request.bytes = bytes;
        }
        Ok(())
    }

    /// Notes that the body of a request is whole: it is not given up any more.
    pub fn complete(&mut self, holding: Holding) {
        self.incomplete.remove(&holding);
        if let Some(owner) = self.requests.get(&holding).map(|request| request.owner) {
            self.change(owner, |share| {
                share.incomplete.remove(&holding);
            });
        }
    }

    /// Ends a request, and frees what it holds.
    pub fn end(&mut self, holding: Holding) {
        self.remove(holding);
    }

    /// Removes a request that was given up for others. Its host frees its memory at once, and then refuses it.
    pub fn poll_given_up(&mut self) -> Option<Holding> {
        self.given_up.pop_front()
    }

    /// Returns the bytes that all requests hold.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.bytes
    }

    /// Gives requests up until an owner may hold so many bytes more.
    fn make_place(
        &mut self,
        asking: Holding,
        owner: Owner,
        more: usize,
        now: Millis,
    ) -> Result<(), Full> {
        let mut removed = Vec::new();
        while !self.fits(owner, more) {
            let victim = self.victim(asking, owner, more, now);
            let Some(victim) = victim.and_then(|victim| Some((victim, self.remove(victim)?)))
            else {
                // Nobody is given up for a request that is refused all the same.
                for (holding, request) in removed {
                    self.restore(holding, request);
                }
                return Err(Full);
            };
            removed.push(victim);
        }
        self.given_up.extend(removed.into_iter().map(|(holding, _)| holding));
        Ok(())
    }

    fn remove(&mut self, holding: Holding) -> Option<Request> {
        let request = self.requests.remove(&holding)?;
        self.bytes = self.bytes.saturating_sub(request.bytes);
        self.incomplete.remove(&holding);
        self.change(request.owner, |share| {
            share.bytes = share.bytes.saturating_sub(request.bytes);
            share.requests = share.requests.saturating_sub(1);
            share.incomplete.remove(&holding);
        });
        Some(request)
    }

    /// Takes the removal of a request without a whole body back.
    fn restore(&mut self, holding: Holding, request: Request) {
        self.bytes = self.bytes.saturating_add(request.bytes);
        self.incomplete.insert(holding);
        self.change(request.owner, |share| {
            share.bytes = share.bytes.saturating_add(request.bytes);
            share.requests = share.requests.saturating_add(1);
            share.incomplete.insert(holding);
        });
        self.requests.insert(holding, request);
    }

    /// Returns true if an owner may hold so many bytes more.
    fn fits(&self, owner: Owner, more: usize) -> bool {
        let Some(left) = self.bytes_max.checked_sub(self.bytes.saturating_add(more)) else {
            return false;
        };
        let Some(share) = self.owners.get(&owner) else { return false };
        let would_hold = share.bytes.saturating_add(more);
        if left >= self.bytes_max / RESERVED_PART {
            share.requests == 1 || would_hold <= left
        } else {
            would_hold <= left / SMALL_PART
        }
    }

    /// Chooses the request that is given up so that `asking` may hold more.
    fn victim(&self, asking: Holding, owner: Owner, more: usize, now: Millis) -> Option<Holding> {
        let would_hold = self.owners.get(&owner)?.bytes.saturating_add(more);
        let largest = self.by_share.last().filter(|(bytes, _)| *bytes > would_hold);
        let of_largest = largest.and_then(|(_, largest)| self.oldest(*largest));
        let victim = of_largest.or_else(|| {
            let oldest = self.incomplete.first()?;
            let began = self.requests.get(oldest)?.began;
            (now.saturating_sub(began) >= BODY_GRACE_MS).then_some(*oldest)
        })?;
        (victim != asking).then_some(victim)
    }

    /// Returns an owner's oldest request without a whole body.
    fn oldest(&self, owner: Owner) -> Option<Holding> {
        self.owners.get(&owner)?.incomplete.first().copied()
    }

    /// Changes an owner's share, and keeps the order of shares.
    fn change(&mut self, owner: Owner, change: impl FnOnce(&mut Share)) {
        let share = self.owners.entry(owner).or_default();
        let before = (!share.incomplete.is_empty()).then_some((share.bytes, owner));
        change(share);
        let after = (!share.incomplete.is_empty()).then_some((share.bytes, owner));
        if share.requests == 0 {
            self.owners.remove(&owner);
        }
        if before != after {
            if let Some(before) = before {
                self.by_share.remove(&before);
            }
            if let Some(after) = after {
                self.by_share.insert(after);
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects)]
mod tests;
