//! Reachability of upstreams, by the last request to each.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use creole::config::Upstream;
use creole::{Config, Failure, Unreachable};
use tokio::sync::Notify;

/// Reachability of all upstreams of a configuration, shared by all workers.
#[derive(Debug, Default)]
pub(crate) struct Reach {
    upstreams: Mutex<BTreeMap<String, KnownUpstream>>,
    /// Signal that an upstream could not be reached.
    lost: Notify,
}

/// Upstream, and whether the last request reached it; `None` before the first request.
#[derive(Debug)]
struct KnownUpstream {
    upstream: Upstream,
    is_reachable: Option<bool>,
}

impl Reach {
    /// Takes the upstreams of a configuration. What is known of an upstream is kept if its address
    /// is the same.
    pub(crate) fn take(&self, config: &Config) {
        let mut known = self.upstreams();
        let before = std::mem::take(&mut *known);
        for upstream in config.upstreams.values().cloned() {
            let same = before.get(&upstream.name).filter(|it| it.upstream.url == upstream.url);
            let is_reachable = same.and_then(|known| known.is_reachable);
            known.insert(upstream.name.clone(), KnownUpstream { upstream, is_reachable });
        }
    }

    /// Notes whether a request reached an upstream.
    pub(crate) fn note(&self, name: &str, is_reachable: bool) {
        if let Some(known) = self.upstreams().get_mut(name) {
            known.is_reachable = Some(is_reachable);
        }
        if !is_reachable {
            self.lost.notify_one();
        }
    }

    /// Notes that a request did not reach an upstream. A failure of the gateway itself, or after
    /// the connection was made, says nothing about the upstream.
    pub(crate) fn note_failure(&self, name: &str, failure: &Failure) {
        let says_nothing = [Unreachable::NoFiles, Unreachable::Closed, Unreachable::NotHttp]
            .map(Failure::Unreachable);
        if !says_nothing.contains(failure) {
            self.note(name, false);
        }
    }

    /// Waits until an upstream could not be reached.
    pub(crate) async fn lost(&self) {
        self.lost.notified().await;
    }

    /// Returns the upstreams that the last request could not reach.
    pub(crate) fn unreachable(&self) -> Vec<Upstream> {
        let known = self.upstreams();
        let lost = known.values().filter(|known| known.is_reachable == Some(false));
        lost.map(|known| known.upstream.clone()).collect()
    }

    /// Returns the names of all upstreams, each with whether the last request reached it.
    pub(crate) fn all(&self) -> Vec<(String, Option<bool>)> {
        let known = self.upstreams();
        known.iter().map(|(name, known)| (name.clone(), known.is_reachable)).collect()
    }

    fn upstreams(&self) -> MutexGuard<'_, BTreeMap<String, KnownUpstream>> {
        self.upstreams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_of_an_upstream_lasts_until_its_address_changes() {
        let config = |url: &str| {
            let text = format!(r#"{{"upstreams": {{"a": {{"url": "{url}"}}, "b": {{}}}}}}"#);
            Config::from_json(&text, |_| None).unwrap()
        };
        let reach = Reach::default();
        reach.take(&config("http://one"));
        reach.note("a", false);
        reach.note("unknown", true);
        let known = |is_a| vec![("a".to_owned(), is_a), ("b".to_owned(), None)];
        assert_eq!(reach.all(), known(Some(false)));
        reach.take(&config("http://one"));
        assert_eq!(reach.all(), known(Some(false)));
        assert_eq!(reach.unreachable().len(), 1);
        reach.take(&config("http://two"));
        assert_eq!(reach.all(), known(None));
        assert!(reach.unreachable().is_empty());
    }
}
