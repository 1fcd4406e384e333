//! Health check of an upstream for the web page: the upstream is asked for its models and their
//! context windows, but only while a page is open.

use std::time::Duration;

use bytes::Bytes;
use creole::PassedHead;
use creole::config::Upstream;
use hyper::{HeaderMap, Method};

use super::board::CheckResult;
use crate::headers;
use crate::log::figures;
use crate::probe::ask::{self, NoAnswer};
use crate::probe::models;
use crate::upstream::client::UpstreamClient;

/// Maximum time to wait for the response to a health check.
const PROBE_TIME: Duration = Duration::from_secs(5);

/// Checks an upstream once. Returns the result, and the names of the models in the upstream's list
/// with the sizes of their context windows.
pub(crate) async fn ask(
    client: &UpstreamClient,
    upstream: &Upstream,
) -> (CheckResult, Vec<(String, u64)>) {
    let url = format!("{}{}/models", upstream.url, upstream.base_path);
    // The request has the operator's key and headers, like a request that is passed on.
    let change = PassedHead::of_request(std::iter::empty(), upstream);
    let mut sent = HeaderMap::new();
    headers::change(&mut sent, change);
    let missing = |reason: String| (CheckResult::Missing(reason), Vec::new());
    match ask::ask(client, Method::GET, &url, (sent, Bytes::new()), PROBE_TIME).await {
        Ok(got) => {
            let list = models::read(&got.headers, &got.body);
            let mut listed = list.map(|list| list.models).unwrap_or_default();
            models::complete(client, upstream.preset, &upstream.url, &mut listed).await;
            let windows = listed.into_iter().filter_map(|model| Some((model.name, model.window?)));
            (CheckResult::Status(got.status.as_u16()), windows.collect())
        }
        Err(NoAnswer::NotUrl) => missing("its address cannot be used".to_owned()),
        Err(NoAnswer::Unreachable(reason)) => missing(figures::text(reason.words())),
        Err(NoAnswer::Late(_)) => missing("no answer within 5 s".to_owned()),
    }
}
