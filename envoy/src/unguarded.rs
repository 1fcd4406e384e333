//! Hosts with requests that `creole-guard` did not look at: for some time nothing is sent for them.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use creole::headers::Headers as _;
use creole::{Header, Millis};

/// Time for which nothing is sent for a host with an unguarded route. Then one request tries it
/// again, because the filters of a listener can change without a word to this one.
const HOST_MS: u64 = 60_000;

/// Time for which nothing is sent for any host while the guard was never seen. It is shorter, so
/// that a host whose routes are guarded gets its turn before the unguarded one is tried again.
const ALL_MS: u64 = 30_000;

/// Most hosts that are remembered; beyond, the oldest is forgotten and tried anew.
const HOSTS_MAX: usize = 64;

/// The host that a client named, by which Envoy chooses a virtual host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Host(u64);

impl Host {
    /// Returns the host of a request's head.
    pub(crate) fn of(head: &[Header]) -> Self {
        let mut hasher = DefaultHasher::new();
        let name = head.value(":authority").unwrap_or_default();
        name.bytes().for_each(|byte| hasher.write_u8(byte.to_ascii_lowercase()));
        name.len().hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// Observations of a plugin about the guard.
#[derive(Debug, Default)]
pub(crate) struct Unguarded {
    /// True if the guard looked at some request: it is there, and a route without it is an
    /// exception.
    has_guard: bool,
    all_until: Millis,
    hosts: Vec<(Host, Millis)>,
}

impl Unguarded {
    /// Notes that the guard looked at a request.
    pub(crate) fn note_guard(&mut self) {
        self.has_guard = true;
        self.all_until = 0;
    }

    /// Notes that a request of this host was sent, and that the guard had not looked at it.
    pub(crate) fn note(&mut self, host: Host, now: Millis) {
        if !self.has_guard {
            self.all_until = now.saturating_add(ALL_MS);
        }
        self.hosts.retain(|(known, until)| *known != host && now < *until);
        if self.hosts.len() >= HOSTS_MAX {
            self.hosts.remove(0);
        }
        self.hosts.push((host, now.saturating_add(HOST_MS)));
    }

    /// Returns true if nothing is sent for this host now.
    pub(crate) fn refuses(&self, host: Host, now: Millis) -> bool {
        now < self.all_until
            || self.hosts.iter().any(|(known, until)| *known == host && now < *until)
    }
}
