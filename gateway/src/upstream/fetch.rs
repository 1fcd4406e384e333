//! Requests for URLs on the web that clients name, such as images, and requests to services that
//! the configuration names, such as a web search. They never use connections or addresses that are
//! meant for upstreams only.

use std::net::IpAddr;

use bytes::Bytes;
use creole::{Failure, Fetch, Header, Service, Unreachable};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::{Method, Request, Response, Uri};

use crate::headers;
use crate::upstream::client::{self, UpstreamClient};
use crate::upstream::connection::Connector;

/// Words in the log line about a service that could not be called, between the name and the reason.
pub(crate) const UNCALLED: &str = " could not be called: ";

/// Sender of requests for URLs on the web that clients name, and of requests to services.
#[derive(Debug)]
pub(crate) struct Fetcher {
    /// Client for servers and services that the configuration names with their scheme, at any
    /// address.
    named: UpstreamClient,
    /// Client that connects only to public addresses.
    public: UpstreamClient,
}

impl Fetcher {
    /// Returns a fetcher with its own connections.
    pub(crate) fn new(connector: &Connector) -> Self {
        let public = UpstreamClient::new(&connector.to_public_names());
        Self { named: UpstreamClient::new(&connector.without_certificates()), public }
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
        let way = self.way(&fetch.url, fetch.may_be_private);
        let (client, uri) = way.ok_or(Failure::Unreachable(Unreachable::NotAllowed))?;
        let mut request = Request::new(Full::new(Bytes::new()));
        *request.uri_mut() = uri;
        *request.headers_mut() = headers::map(sent);
        client.send(request).await.map_err(|error| {
            let reason = client::reason(&error);
            // The log gets only the reason, because the source of the client's error may contain
            // the URL.
            tracing::debug!("an image or a page could not be fetched: {}", reason.words());
            Failure::Unreachable(reason)
        })
    }

    /// Sends a request to a service: at any address if the configuration names the service, else at
    /// a public one.
    ///
    /// # Errors
    /// The service cannot be called, or does not answer.
    pub(crate) async fn call(
        &self,
        service: &Service,
        method: &str,
        sent: Vec<Header>,
        body: Vec<u8>,
    ) -> Result<Response<Incoming>, Failure> {
        let (client, uri) = self
            .way(&service.url, !service.is_public)
            .ok_or(Failure::Unreachable(Unreachable::NotAllowed))?;
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() =
            Method::from_bytes(method.as_bytes()).map_err(|_| Failure::NoRoute)?;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers::map(sent);
        client.send(request).await.map_err(|error| {
            let reason = client::reason(&error);
            // The URL contains words of the user, so the log gets only the name and the reason.
            tracing::debug!("service {}{UNCALLED}{}", service.name, reason.words());
            Failure::Unreachable(reason)
        })
    }

    fn way(&self, url: &str, may_be_private: bool) -> Option<(&UpstreamClient, Uri)> {
        let uri: Uri = url.parse().ok()?;
        if may_be_private {
            return Some((&self.named, uri));
        }
        // A numeric address is not looked up, so the resolver would not check it.
        let host = uri.host()?.trim_start_matches('[').trim_end_matches(']');
        if host.parse::<IpAddr>().is_ok() {
            return None;
        }
        // A proxy may look names up where the gateway does not see what they mean: `localhost`, and
        // numbers such as 0x7f.1.
        let last = host.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
        if last.eq_ignore_ascii_case("localhost")
            || last.starts_with(|it: char| it.is_ascii_digit())
        {
            return None;
        }
        Some((&self.public, uri))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests;
