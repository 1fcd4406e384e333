//! Requests to upstreams that could not be reached, until they answer again. A gateway that is not
//! ready gets no requests of clients, by which it would notice.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch::Receiver;

use super::look;
use crate::upstream::client::UpstreamClient;
use crate::upstream::reach::Reach;

/// Pause between two requests to an upstream, and the longest wait for its answer.
const PAUSE: Duration = Duration::from_secs(5);

/// Asks the upstreams that could not be reached, for ever.
pub(crate) async fn ask(client: Receiver<UpstreamClient>, reach: Arc<Reach>) {
    loop {
        reach.lost().await;
        loop {
            tokio::time::sleep(PAUSE).await;
            let lost = reach.unreachable();
            if lost.is_empty() {
                break;
            }
            // A new configuration has a new client.
            let client = client.borrow().clone();
            for upstream in lost {
                if look::answers(&client, &upstream, PAUSE).await {
                    tracing::info!("upstream {} answers again", upstream.name);
                    reach.note(&upstream.name, true);
                }
            }
        }
    }
}
