//! Sender of an exchange's calls, to upstreams, web servers and services.

use std::sync::Arc;

use bytes::Bytes;
use creole::config::Upstream;
use creole::{Call, Config, Failure, To};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::{Method, Request, Response, Uri};

use crate::headers;
use crate::upstream::client::{self, Unanswered, UpstreamClient};
use crate::upstream::connection::Connector;
use crate::upstream::fetch::Fetcher;
use crate::upstream::reach::Reach;

/// Sender of calls, to the upstreams and services of a configuration and to web servers.
#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) config: Arc<Config>,
    pub(crate) client: UpstreamClient,
    pub(crate) reach: Arc<Reach>,
    web: Fetcher,
}

impl Caller {
    /// Returns a caller with its own connections.
    pub(crate) fn new(config: &Arc<Config>, connector: &Connector, reach: &Arc<Reach>) -> Self {
        let (client, web) = (UpstreamClient::new(connector), Fetcher::new(connector));
        Self { config: Arc::clone(config), client, reach: Arc::clone(reach), web }
    }

    /// Sends a call, and returns the response when its head has arrived.
    ///
    /// # Errors
    /// The configuration has no upstream for the call, or the upstream does not answer.
    pub(crate) async fn send(&self, call: Call) -> Result<Response<Incoming>, Failure> {
        let upstream = match &call.to {
            To::Upstream(name) => self.config.upstreams.get(name).ok_or(Failure::NoRoute)?,
            To::Web(fetch) => return self.web.send(fetch, call.headers).await,
            To::Service(service) => {
                let method = call.method();
                return self.web.call(service, method, call.headers, call.body).await;
            }
            To::Document { .. } => return Err(Failure::NoRoute),
        };
        let name = &upstream.name;
        let request = request(upstream, call).ok_or(Failure::NoRoute)?;
        let answered = self.client.send(request).await;
        self.noted(name, answered)
    }

    /// Notes whether a request reached an upstream.
    ///
    /// # Errors
    /// The upstream could not be reached.
    pub(crate) fn noted(
        &self,
        name: &str,
        answered: Result<Response<Incoming>, Unanswered>,
    ) -> Result<Response<Incoming>, Failure> {
        let answered = answered.map_err(|error| client::unreachable(name, &error));
        match &answered {
            Ok(_) => self.reach.note(name, true),
            Err(failure) => self.reach.note_failure(name, failure),
        }
        answered
    }
}

fn request(upstream: &Upstream, call: Call) -> Option<Request<Full<Bytes>>> {
    let uri: Uri = format!("{}{}", upstream.url, call.path).parse().ok()?;
    let method = Method::from_bytes(call.method().as_bytes()).ok()?;
    let mut sent = Request::new(Full::new(Bytes::from(call.body)));
    *sent.method_mut() = method;
    *sent.uri_mut() = uri;
    *sent.headers_mut() = headers::map(call.headers);
    Some(sent)
}
