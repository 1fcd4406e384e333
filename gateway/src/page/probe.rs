//! Health check of an upstream for the web page: the upstream is asked for its models, but only
//! while a page is open.

use std::time::Duration;

use bytes::Bytes;
use creole::PassedHead;
use creole::config::Upstream;
use http_body_util::Full;
use hyper::{Request, Uri};

use super::board::CheckResult;
use crate::headers;
use crate::log::figures;
use crate::upstream::client::{self, UpstreamClient};

/// Maximum time to wait for the response to a health check.
const PROBE_TIME: Duration = Duration::from_secs(5);

/// Checks an upstream once.
pub(crate) async fn ask(client: &UpstreamClient, upstream: &Upstream) -> CheckResult {
    let uri = format!("{}{}/models", upstream.url, upstream.base_path).parse::<Uri>();
    let Ok(uri) = uri else { return CheckResult::Missing("its address cannot be used".to_owned()) };
    let mut request = Request::new(Full::<Bytes>::default());
    *request.uri_mut() = uri;
    // The request has the operator's key and headers, like a request that is passed on.
    let change = PassedHead::of_request(std::iter::empty(), upstream);
    headers::change(request.headers_mut(), change);
    match tokio::time::timeout(PROBE_TIME, client.send(request)).await {
        Ok(Ok(response)) => CheckResult::Status(response.status().as_u16()),
        Ok(Err(error)) => CheckResult::Missing(figures::text(client::reason(&error).words())),
        Err(_) => CheckResult::Missing("no answer within 5 s".to_owned()),
    }
}
