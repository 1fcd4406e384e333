//! Limits of what is fetched from the web at one time, in all and from one host: clients name the URLs, and a request
//! of two kilobytes may name twenty large images.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use hyper::Uri;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Fetches at one time.
const FETCHES_MAX: usize = 16;

/// Fetches at one time from one host.
const FETCHES_OF_HOST_MAX: usize = 4;

/// Fetches of the whole gateway.
#[derive(Debug)]
pub(crate) struct Fetches {
    all: Arc<Semaphore>,
    hosts: Mutex<HashMap<String, Weak<Semaphore>>>,
}

/// Permission for one fetch, until it is dropped.
#[derive(Debug)]
#[expect(dead_code, reason = "both are given back when they are dropped")]
pub(crate) struct Fetching {
    of_host: OwnedSemaphorePermit,
    of_all: OwnedSemaphorePermit,
    /// Keeps the host known.
    host: Arc<Semaphore>,
}

impl Fetches {
    pub(crate) fn new() -> Self {
        Self { all: Arc::new(Semaphore::new(FETCHES_MAX)), hosts: Mutex::default() }
    }

    /// Waits until one more may be fetched from the host of a URL.
    pub(crate) async fn begin(&self, url: &str) -> Option<Fetching> {
        let host = self.host(url);
        let of_host = Arc::clone(&host).acquire_owned().await.ok()?;
        let of_all = Arc::clone(&self.all).acquire_owned().await.ok()?;
        Some(Fetching { of_host, of_all, host })
    }

    fn host(&self, url: &str) -> Arc<Semaphore> {
        let uri: Option<Uri> = url.parse().ok();
        let name = uri.as_ref().and_then(Uri::host).unwrap_or_default().to_ascii_lowercase();
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(host) = hosts.get(&name).and_then(Weak::upgrade) {
            return host;
        }
        hosts.retain(|_, host| host.strong_count() > 0);
        let host = Arc::new(Semaphore::new(FETCHES_OF_HOST_MAX));
        hosts.insert(name, Arc::downgrade(&host));
        host
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    async fn begins(fetches: &Fetches, url: &str) -> Option<Fetching> {
        tokio::time::timeout(Duration::from_secs(1), fetches.begin(url)).await.ok().flatten()
    }

    #[tokio::test(start_paused = true)]
    async fn so_many_are_fetched_from_a_host_and_in_all_at_one_time() {
        let fetches = Fetches::new();
        let mut running = Vec::new();
        for host in 0..4 {
            let url = format!("https://Images{host}.example/a.png");
            for _ in 0..4 {
                running.push(begins(&fetches, &url).await.unwrap());
            }
            assert!(begins(&fetches, &url.to_ascii_lowercase()).await.is_none());
        }
        assert!(begins(&fetches, "https://other.example/a.png").await.is_none());
        running.pop();
        assert!(begins(&fetches, "https://other.example/a.png").await.is_some());
        running.clear();
        assert!(begins(&fetches, "https://images0.example/").await.is_some());
        assert!(fetches.hosts.lock().unwrap().len() <= 2, "hosts are forgotten");
    }
}
