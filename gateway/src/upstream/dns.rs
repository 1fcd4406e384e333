//! DNS look-ups of upstream names, on separate threads and with a time limit.
//!
//! The system's own look-up blocks its thread, for up to a minute if a name server does not answer.
//! All requests for the same name share one look-up, so that a name that hangs blocks only one
//! thread.

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use std::vec;

use creole::config::{IpNetwork, is_public};
use hyper_util::client::legacy::connect::dns::Name;
use tokio::sync::watch;
use tower_service::Service;

use crate::thread_pool::ThreadPool;

/// Number of threads that look up names of upstreams. All of them hang only if no name server
/// answers.
const THREADS: usize = 8;

/// Number of threads that look up names chosen by clients, which may hang on purpose.
const PUBLIC_THREADS: usize = 8;

/// Maximum number of names given by clients that are looked up or wait to be looked up. Further
/// names are refused.
const PUBLIC_WAITING_MAX: usize = 64;

/// Maximum time of a look-up: two tries of five seconds, the default of `resolv.conf`.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Result of a look-up. The error is a text, because system errors cannot be shared between the
/// requests that wait.
type LookedUp = Result<Vec<SocketAddr>, String>;

type Waiting = watch::Receiver<Option<LookedUp>>;

type Lookup = fn(&str) -> io::Result<vec::IntoIter<SocketAddr>>;

/// Resolver of host names to addresses.
#[derive(Clone, Debug)]
pub(crate) struct Resolver {
    pool: ThreadPool,
    lookup: Lookup,
    /// Look-ups that are in progress, by host name.
    waiting: Arc<Mutex<HashMap<String, Waiting>>>,
    /// Maximum number of look-ups in progress at one time.
    waiting_max: usize,
    /// Networks to which names may be resolved beside public addresses; `None` if any address may
    /// be found.
    private: Option<Arc<[IpNetwork]>>,
}

impl Resolver {
    /// Starts a resolver for the host names of upstreams.
    ///
    /// # Errors
    /// The system gives no more threads.
    pub(crate) fn start() -> io::Result<Self> {
        Self::with(|name| (name, 0).to_socket_addrs())
    }

    fn with(lookup: Lookup) -> io::Result<Self> {
        let pool = ThreadPool::start("names", THREADS)?;
        let waiting = Arc::default();
        Ok(Self { pool, lookup, waiting, waiting_max: usize::MAX, private: None })
    }

    /// Returns a resolver that returns only public addresses, and those in `private` networks.
    /// Callers must connect to an address from this resolver, since a second look-up might return
    /// another address. Clients choose these names, so separate threads look them up and do not
    /// delay look-ups of upstreams.
    ///
    /// # Errors
    /// The system gives no more threads.
    pub(crate) fn only_public(&self, private: &[IpNetwork]) -> io::Result<Self> {
        let pool = ThreadPool::start("public-names", PUBLIC_THREADS)?;
        let (lookup, waiting) = (self.lookup, Arc::default());
        let private = Some(Arc::from(private));
        Ok(Self { pool, lookup, waiting, waiting_max: PUBLIC_WAITING_MAX, private })
    }

    /// Returns the pending look-up of a host name, or starts a new look-up.
    fn look_up(&self, name: &str) -> Waiting {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = waiting.get(name) {
            return found.clone();
        }
        if waiting.len() >= self.waiting_max {
            let (_, refused) = watch::channel(Some(Err("too many names are looked up".to_owned())));
            return refused;
        }
        let (done, found) = watch::channel(None);
        waiting.insert(name.to_owned(), found.clone());
        let (name, lookup, waiting) = (name.to_owned(), self.lookup, Arc::clone(&self.waiting));
        self.pool.give(move || {
            let result = lookup(&name).map(|found| in_order(&name, found.collect()));
            let result = result.map_err(|error| error.to_string());
            waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&name);
            done.send_replace(Some(result));
        });
        found
    }
}

/// Sorts the IPv4 addresses of `localhost` first. A server of this machine usually listens at
/// 127.0.0.1, and another user may then listen at `::1`.
fn in_order(name: &str, mut found: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    if name == "localhost" || name.ends_with(".localhost") {
        found.sort_by_key(SocketAddr::is_ipv6);
    }
    found
}

async fn found(
    mut waiting: Waiting,
    private: Option<Arc<[IpNetwork]>>,
) -> io::Result<vec::IntoIter<SocketAddr>> {
    let found = tokio::time::timeout(TIMEOUT, waiting.wait_for(Option::is_some)).await;
    let found = found.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?;
    let found = found.map_err(io::Error::other)?.clone();
    let mut found = found.unwrap_or_else(|| Ok(Vec::new())).map_err(io::Error::other)?;
    if let Some(private) = private {
        found.retain(|address| is_public(address.ip(), &private));
        if found.is_empty() {
            let reason = "the name has no public address";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
        }
    }
    Ok(found.into_iter())
}

impl Service<Name> for Resolver {
    type Response = vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        Box::pin(found(self.look_up(name.as_str()), self.private.clone()))
    }
}

#[cfg(test)]
mod tests;
