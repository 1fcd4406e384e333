//! Record of hosts whose requests `creole-guard` did not check. For some time no requests are sent
//! for these hosts.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use creole::headers::Headers as _;
use creole::{Header, Millis};

/// Time for which no requests are sent for a host with an unguarded route, in milliseconds.
/// Afterwards one request tries again, because a listener's filters can change without notice to
/// this filter.
const HOST_MS: u64 = 60_000;

/// Time for which no requests are sent for any host while the guard was never seen, in
/// milliseconds. The time is shorter, so that a host with guarded routes is tried before the
/// unguarded host is tried again.
const ALL_MS: u64 = 30_000;

/// Maximum number of remembered hosts. Beyond it, the oldest host is forgotten and tried anew.
const HOSTS_MAX: usize = 64;

/// Hash of the host that a client named, by which Envoy chooses a virtual host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Host(u64);

impl Host {
    /// Returns the host in a request's head.
    pub(crate) fn of(head: &[Header]) -> Self {
        let mut hasher = DefaultHasher::new();
        let name = head.value(":authority").unwrap_or_default();
        name.bytes().for_each(|byte| hasher.write_u8(byte.to_ascii_lowercase()));
        name.len().hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// Observations of a plugin about the filter `creole-guard`.
#[derive(Debug, Default)]
pub(crate) struct Unguarded {
    /// True if the guard has checked any request. It is then installed, and a route without the
    /// guard is an exception.
    has_guard: bool,
    all_until: Millis,
    hosts: Vec<(Host, Millis)>,
}

impl Unguarded {
    /// Notes that the guard has checked a request.
    pub(crate) fn note_guard(&mut self) {
        self.has_guard = true;
        self.all_until = 0;
    }

    /// Notes that a request for this host was sent without a check by the guard.
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

    /// Returns true if no requests may be sent for this host now.
    pub(crate) fn refuses(&self, host: Host, now: Millis) -> bool {
        now < self.all_until
            || self.hosts.iter().any(|(known, until)| *known == host && now < *until)
    }
}
