//! Check of all upstreams at the start of `creole serve`. The check runs in the background and
//! delays nothing.

use std::sync::Arc;
use std::time::Duration;

use creole::Config;
use creole::config::Key;

use super::look::{self, Looked};
use crate::upstream::client::UpstreamClient;

/// Maximum time of each request to an upstream.
const PATIENCE: Duration = Duration::from_secs(5);

/// Checks each upstream, and writes a log line about each problem.
pub(crate) fn look_at_all(client: &UpstreamClient, config: &Arc<Config>) {
    for upstream in config.upstreams.values().cloned() {
        let client = client.clone();
        tokio::spawn(async move {
            let name = &upstream.name;
            match look::look(&client, &upstream, PATIENCE).await {
                Looked::Wrong(problem)
                    if problem.code == "no_key" && upstream.key == Key::Client =>
                {
                    tracing::info!(
                        "upstream {name}: {} asks for a key: clients' own keys go there; --key-env NAME gives it one",
                        upstream.url
                    );
                }
                Looked::Wrong(problem) => tracing::warn!("upstream {name}: {}", problem.text),
                Looked::NoList => {
                    tracing::debug!("upstream {name} answers, without a list of models")
                }
                Looked::Models(list) => {
                    tracing::debug!("upstream {name} lists {} models", list.models.len());
                }
            }
        });
    }
}
