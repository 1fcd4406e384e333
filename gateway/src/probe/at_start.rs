//! Check of all upstreams at the start of `creole serve`. The check runs in the background and
//! delays nothing.

use std::sync::Arc;
use std::time::Duration;

use creole::Config;
use creole::config::Key;

use super::look::{self, Looked};
use super::models::{self, Model};
use super::window;
use crate::upstream::client::UpstreamClient;
use crate::upstream::reach::Reach;

/// Maximum time of each request to an upstream.
const PATIENCE: Duration = Duration::from_secs(5);

/// Maximum number of models of an upstream whose context windows are logged.
const MODELS_MAX: usize = 8;

/// Checks each upstream, and writes a log line about each problem.
pub(crate) fn look_at_all(client: &UpstreamClient, config: &Arc<Config>, reach: &Arc<Reach>) {
    for upstream in config.upstreams.values().cloned() {
        let (client, config, reach) = (client.clone(), Arc::clone(config), Arc::clone(reach));
        tokio::spawn(async move {
            let name = &upstream.name;
            let looked = look::look(&client, &upstream, PATIENCE).await;
            let is_reachable = !matches!(looked, Looked::Wrong(_))
                || look::answers(&client, &upstream, PATIENCE).await;
            reach.note(name, is_reachable);
            match looked {
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
                Looked::Models(mut list) => {
                    tracing::debug!("upstream {name} lists {} models", list.models.len());
                    let (preset, url) = (upstream.preset, &upstream.url);
                    models::complete(&client, preset, url, &mut list.models).await;
                    for (model, window) in windows(&config, name, &list.models) {
                        match window::advice(window, Some(preset)) {
                            Some(text) => tracing::warn!("upstream {name}: {model}: {text}"),
                            None => tracing::info!(
                                "upstream {name}: {model} has a window of {window} tokens"
                            ),
                        }
                    }
                }
            }
        });
    }
}

/// Returns the names and the context windows of the models that clients of this upstream get: those
/// that the configuration names, else the only one that can be meant.
fn windows(config: &Config, upstream: &str, listed: &[Model]) -> Vec<(String, u64)> {
    let mut named: Vec<&str> = config.models_of(upstream).collect();
    if named.is_empty() {
        named.extend(models::only(listed).map(|model| model.name.as_str()));
    }
    let window = |name: &str| models::named(listed, name)?.window;
    let known = named.into_iter().filter_map(|name| Some((name.to_owned(), window(name)?)));
    known.take(MODELS_MAX).collect()
}
