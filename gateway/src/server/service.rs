//! Service of one client request: the request is collected, translated and sent to an upstream, and
//! the answer is translated on its way back.
//!
//! If the client closes its connection, hyper drops the future or the body, and so also closes the
//! connection to the upstream.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use creole::{Config, Failure, Header, Owner, Refusals, RequestHead};
use hyper::body::{Body as _, Incoming};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, Version};
use rustls::ServerConfig;

use crate::clock::Clock;
use crate::headers;
use crate::metrics;
use crate::page;
use crate::server::budget::{Budget, Held};
use crate::server::connections::{Busy, Stage};
use crate::server::driver::Driver;
use crate::server::exchange::LiveExchange;
use crate::server::health::ServerHealth;
use crate::server::load::Load;
use crate::server::open_calls::Means;
use crate::server::origin::Callers;
use crate::server::passthrough::{self, Passing};
use crate::server::records::Records;
use crate::server::reply::without_body;
use crate::server::request_body::{collect, discard, discard_sent};
use crate::server::response_body::Body;
use crate::server::watched_body::WatchedBody;
use crate::telemetry::Telemetry;

/// State that the requests of one thread share. Except for the upstream connections and the load,
/// other threads share it too.
#[derive(Debug)]
pub(crate) struct Gateway {
    pub(crate) config: Arc<Config>,
    pub(crate) means: Arc<Means>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) seeds: Arc<Seeds>,
    pub(crate) records: Arc<Records>,
    pub(crate) refusals: Arc<Refusals>,
    pub(crate) callers: Arc<Callers>,
    pub(crate) health: Arc<ServerHealth>,
    /// True if only this machine can reach the gateway's address.
    pub(crate) is_local: bool,
    /// True if `/metrics` is served on the address of clients.
    pub(crate) shows_metrics: bool,
    /// TLS towards clients; `None` if clients connect without.
    pub(crate) tls: Option<Arc<ServerConfig>>,
    /// Sender of spans; `None` if spans are off.
    pub(crate) telemetry: Option<Arc<Telemetry>>,
    pub(crate) load: Load,
}

/// Source of the random seeds, one for each exchange.
#[derive(Debug)]
pub(crate) enum Seeds {
    /// Random start value, and the number of seeds that were given out.
    Fresh(u128, AtomicU64),
    /// Fixed seed that is the same for all exchanges.
    Fixed(u128),
}

/// Decision about a request after its head was read.
enum Decided {
    /// The request is answered at once.
    Answered(Response<Body>),
    Passes(Box<Passing>),
    Translated(Box<Translating>),
}

/// A request that is translated once its body has been collected.
struct Translating {
    live: LiveExchange,
    /// Memory of the request's body.
    held: Held,
    owner: Owner,
    version: Version,
    body: Incoming,
}

impl Seeds {
    fn next(&self) -> u128 {
        match self {
            Self::Fresh(start, count) => {
                start.wrapping_add(u128::from(count.fetch_add(1, Ordering::Relaxed)))
            }
            Self::Fixed(seed) => *seed,
        }
    }
}

impl Gateway {
    /// Answers a request. The decision by the head is made at once, so that many heads in one
    /// HTTP/2 packet are each counted before the next head is read.
    ///
    /// # Errors
    /// There is no memory for the answer to an HTTP/2 request: its stream is reset.
    pub(crate) fn answer(
        self: &Arc<Self>,
        request: Request<Incoming>,
        mut busy: Busy,
    ) -> impl Future<Output = io::Result<Response<WatchedBody>>> + use<> {
        let is_head = request.method() == Method::HEAD;
        // A connection of HTTP/1 has only one answer at a time, so its answers are not counted.
        let is_counted = request.version() == Version::HTTP_2;
        let gateway = Arc::clone(self);
        let decided = gateway.decide(request, &mut busy);
        async move {
            let (response, is_own) = match decided {
                Decided::Answered(response) => (response, true),
                // The two futures below are boxed, so that a request that is answered at once holds
                // no memory for them.
                Decided::Passes(asked) => (
                    Box::pin(passthrough::pass(
                        &gateway.config,
                        &gateway.means.caller,
                        *asked,
                        &mut busy,
                    ))
                    .await,
                    false,
                ),
                Decided::Translated(asked) => {
                    (Box::pin(gateway.translate(*asked, &mut busy)).await, false)
                }
            };
            if let Body::Whole(bytes) = response.body()
                && is_counted
                && !busy.count_answer(if is_own { bytes.len() } else { 0 }, &gateway.budget)
            {
                return Err(io::Error::from(io::ErrorKind::OutOfMemory));
            }
            let response = if is_head { without_body(response) } else { response };
            Ok(response.map(|body| WatchedBody::new(body, busy)))
        }
    }

    /// Decides about a request by its head: answer at once, pass on, or translate.
    fn decide(&self, request: Request<Incoming>, busy: &mut Busy) -> Decided {
        let (head, body) = request.into_parts();
        let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
        let method = head.method.as_str();
        let refused = self.callers.refuse(&head);
        let list = headers::list(&head.headers);
        if self.shows_metrics
            && refused.is_none()
            && head.uri.path() == metrics::PATH
            // The exchange refuses a request for the metrics without a client key.
            && self.config.lets_in(&list)
        {
            busy.reach(Stage::Whole);
            return Decided::Answered(
                self.records.metrics.response(&head.headers).map(Body::whole),
            );
        }
        if refused.is_none()
            && let Some(response) = self.health.answer(&head, self.is_private(&head, &list))
        {
            return Decided::Answered(response.map(Body::whole));
        }
        if refused.is_none()
            && let Some(response) = self.page(&head, &list, busy)
        {
            return Decided::Answered(response);
        }
        let mut live = self.begin(method, path);
        live.spans = self.telemetry.as_ref().map(|spans| spans.begin(method, &head.headers));
        if let Some(reason) = refused {
            discard_sent(&head, body, busy);
            return Decided::Answered(live.fail(Failure::Forbidden(reason)));
        }
        let decided = live.exchange.handle_request_head(method, &creole::with_version(path), &list);
        drop(list);
        let key = live.exchange.client_key();
        if key.is_some() || self.config.client_keys.is_empty() {
            busy.reach(if body.is_end_stream() { Stage::Whole } else { Stage::LetIn });
        }
        if let RequestHead::Answered = decided {
            discard_sent(&head, body, busy);
            return Decided::Answered(live.reply());
        }
        let owner = key.map_or(busy.client.owner, Owner::of_client_key);
        let mut held = self.budget.begin(owner, Arc::default());
        let own = self.budget.exchange();
        if body.is_end_stream() {
            held.complete();
        }
        if !held.set(own.saturating_add(headers::bytes(&head))) {
            discard_sent(&head, body, busy);
            return Decided::Answered(live.fail(Failure::Overloaded));
        }
        if let RequestHead::PassThrough = decided {
            return Decided::Passes(Box::new(Passing { live, held, head, body }));
        }
        // The exchange has copied everything that it needs from the request's head.
        let version = head.version;
        drop(head);
        let _ = held.set(own.saturating_add(live.exchange.head_bytes()));
        let rest = held.part();
        live.held = Some(held);
        Decided::Translated(Box::new(Translating { live, held: rest, owner, version, body }))
    }

    /// Returns true if the sender may know the names of the upstreams.
    fn is_private(&self, head: &Parts, list: &[Header]) -> bool {
        self.is_local && !page::is_forwarded(&head.headers) && self.config.lets_in(list)
    }

    /// Answers a request for the web page, if the sender may read the page.
    fn page(&self, head: &Parts, list: &[Header], busy: &mut Busy) -> Option<Response<Body>> {
        let wanted = page::wanted(head)?;
        let source = page::Source {
            board: self.records.board.clone()?,
            config: Arc::clone(&self.config),
            client: self.means.caller.client.clone(),
        };
        let sent = (&head.headers, list);
        let response = page::respond(wanted, source, self.is_local, sent, || {
            busy.reach(Stage::Whole);
        })?;
        Some(response.map(|content| match content {
            page::Content::Whole(text) => Body::whole(text),
            page::Content::Events(events) => Body::Events(events),
        }))
    }

    fn begin(&self, method: &str, path: &str) -> LiveExchange {
        let (config, records) = (Arc::clone(&self.config), Arc::clone(&self.records));
        let (seed, counted) = (self.seeds.next(), self.load.count());
        LiveExchange::new(config, seed, Clock::start(), records, method, path, counted)
    }

    async fn translate(&self, asked: Translating, busy: &mut Busy) -> Response<Body> {
        let Translating { mut live, mut held, owner, version, mut body } = asked;
        live.exchange.remember(Arc::clone(&self.refusals));
        let settings = &self.config.settings;
        let collected = match collect(&mut body, settings, &mut held, live.clock).await {
            Ok(collected) => collected,
            Err(failure) => {
                discard(version, body, busy);
                return live.fail(failure);
            }
        };
        drop(body);
        held.complete();
        busy.reach(Stage::Whole);
        let now = live.clock.now();
        live.exchange.handle_request_body(collected, now);
        let driver = Driver::new(live, held, owner, Arc::clone(&self.means));
        Body::translated(Box::new(driver)).await
    }
}

#[cfg(test)]
pub(crate) mod tests;
