//! Requests for URLs on the web that clients name, such as images. They never use connections or
//! addresses that are meant for upstreams only.

use std::net::IpAddr;

use bytes::Bytes;
use creole::{Failure, Fetch, Header, Unreachable};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::{Request, Response, Uri};

use crate::headers;
use crate::upstream::client::{self, UpstreamClient};
use crate::upstream::connection::Connector;

/// Sender of requests for URLs on the web that clients name.
#[derive(Debug)]
pub(crate) struct Fetcher {
    /// Client for servers that the configuration names with their scheme, at any address.
    named: UpstreamClient,
    /// Client that connects only to public addresses.
    public: UpstreamClient,
}

impl Fetcher {
    /// Returns a fetcher with its own connections.
    pub(crate) fn new(connector: &Connector) -> Self {
        let public = UpstreamClient::new(&connector.to_public_names());
        Self { named: UpstreamClient::new(connector), public }
    }

    /// Sends a request for a URL that a client named.
    ///
    /// # Errors
    /// The server is not allowed, or does not answer.
    pub(crate) async fn send(
        &self,
        fetch: &Fetch,
        sent: Vec<Header>,
    ) -> Result<Response<Incoming>, Failure> {
        let (client, uri) = self.way(fetch).ok_or(Failure::Unreachable(Unreachable::NotAllowed))?;
        let mut request = Request::new(Full::new(Bytes::new()));
        *request.uri_mut() = uri;
        *request.headers_mut() = headers::map(sent);
        client.send(request).await.map_err(|error| {
            let reason = client::reason(&error);
            // The log gets only the reason, because the source of the client's error may contain
            // the URL.
            tracing::debug!("an image could not be fetched: {}", reason.words());
            Failure::Unreachable(reason)
        })
    }

    fn way(&self, fetch: &Fetch) -> Option<(&UpstreamClient, Uri)> {
        let uri: Uri = fetch.url.parse().ok()?;
        if fetch.may_be_private {
            return Some((&self.named, uri));
        }
        // A numeric address is not looked up, so the resolver would not check it.
        let host = uri.host()?.trim_start_matches('[').trim_end_matches(']');
        if host.parse::<IpAddr>().is_ok() {
            return None;
        }
        Some((&self.public, uri))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests;
