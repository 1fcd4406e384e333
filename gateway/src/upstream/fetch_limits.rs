//! Limits on simultaneous downloads from the web, in total and for each host. Clients choose the
//! URLs, and a request of two kilobytes may name twenty large images. Pages count as well.
//!
//! Clients get permits for downloads in turn. `fetch_images.timeout_ms` is the maximum time that a
//! client waits for all images of a request, including the wait for permits. A new image without a
//! permit by then is a client error: "it did not come in time".

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use creole::Owner;
use hyper::Uri;

use crate::fair_semaphore::{FairSemaphore, Permit};

/// Maximum number of simultaneous downloads in total.
const FETCHES_MAX: usize = 16;

/// Maximum number of simultaneous downloads from one host.
const FETCHES_OF_HOST_MAX: usize = 4;

/// Permits of a download, from its host and in total, which are kept until the download has ended.
pub(crate) type DownloadPermits = (Permit, Permit);

/// Semaphores for all downloads of the gateway, and for each host.
#[derive(Debug)]
pub(crate) struct FetchLimits {
    all: Arc<FairSemaphore>,
    hosts: Mutex<HashMap<String, Weak<FairSemaphore>>>,
}

impl FetchLimits {
    pub(crate) fn new() -> Self {
        Self { all: FairSemaphore::new(FETCHES_MAX), hosts: Mutex::default() }
    }

    /// Waits until a client may start one more download from the host of a URL.
    pub(crate) async fn begin(&self, owner: Owner, url: &str) -> Option<DownloadPermits> {
        let of_host = self.host(url).begin(owner).await?;
        Some((of_host, self.all.begin(owner).await?))
    }

    fn host(&self, url: &str) -> Arc<FairSemaphore> {
        let uri: Option<Uri> = url.parse().ok();
        let name = uri.as_ref().and_then(Uri::host).unwrap_or_default().to_ascii_lowercase();
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(host) = hosts.get(&name).and_then(Weak::upgrade) {
            return host;
        }
        hosts.retain(|_, host| host.strong_count() > 0);
        let host = FairSemaphore::new(FETCHES_OF_HOST_MAX);
        hosts.insert(name, Arc::downgrade(&host));
        host
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    async fn begins(fetches: &FetchLimits, owner: u64, url: &str) -> Option<DownloadPermits> {
        let begin = fetches.begin(Owner(owner), url);
        tokio::time::timeout(Duration::from_secs(1), begin).await.ok().flatten()
    }

    #[tokio::test(start_paused = true)]
    async fn so_many_are_fetched_from_a_host_and_in_all_at_one_time() {
        let fetches = FetchLimits::new();
        let mut running = Vec::new();
        for host in 0..8 {
            let url = format!("https://Images{}.example/a.png", host % 4);
            for owner in [2 * host, 2 * host + 1] {
                running.push(begins(&fetches, owner, &url).await.unwrap());
            }
        }
        assert!(begins(&fetches, 99, "https://images0.example/a.png").await.is_none());
        assert!(begins(&fetches, 99, "https://other.example/a.png").await.is_none());
        running.pop();
        assert!(begins(&fetches, 99, "https://images0.example/a.png").await.is_none());
        assert!(begins(&fetches, 99, "https://other.example/a.png").await.is_some());
        running.clear();
        assert!(begins(&fetches, 99, "https://images0.example/").await.is_some());
        assert!(fetches.hosts.lock().unwrap().len() <= 2, "hosts are forgotten");
    }

    #[tokio::test(start_paused = true)]
    async fn one_client_leaves_places_of_a_host_and_in_all_to_others() {
        let fetches = FetchLimits::new();
        let mut running = Vec::new();
        for number in 0..20 {
            let url = format!("https://images{}.example/a.png", number / 4);
            running.extend(begins(&fetches, 1, &url).await);
        }
        assert_eq!(running.len(), 8);
        assert!(begins(&fetches, 2, "https://images0.example/a.png").await.is_some());
    }
}
