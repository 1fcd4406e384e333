//! One request: collected, translated, sent on, and its answer translated on the way back.
//!
//! A client that goes away makes hyper drop the future or the body in here, and with it the
//! upstream's connection.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use creole::{Call, Config, Failure, Owner, Refusals, RequestHead};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use hyper::header::EXPECT;
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, Version};

use crate::answer::{Answered, Answering, Body};
use crate::apart::Translations;
use crate::budget::{Budget, Held};
use crate::call::Caller;
use crate::callers::Callers;
use crate::clock::Clock;
use crate::collect::collect;
use crate::connections::Busy;
use crate::documents::{Documents, Wanted};
use crate::fetches::Fetches;
use crate::headers;
use crate::inflate;
use crate::live::{self, Live};
use crate::load::Load;
use crate::metrics;
use crate::page;
use crate::pass;
use crate::records::Records;

/// Time for which a refused body is read.
const DISCARD_TIME: Duration = Duration::from_secs(2);

/// What all requests of a thread share: with those of the others, but for the way to the upstreams and the load.
#[derive(Debug)]
pub(crate) struct Gateway {
    pub(crate) config: Arc<Config>,
    pub(crate) caller: Arc<Caller>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) translations: Translations,
    pub(crate) documents: Arc<Documents>,
    pub(crate) fetches: Arc<Fetches>,
    pub(crate) seeds: Arc<Seeds>,
    pub(crate) records: Arc<Records>,
    pub(crate) refusals: Arc<Refusals>,
    pub(crate) callers: Arc<Callers>,
    /// Only this machine reaches it.
    pub(crate) is_local: bool,
    /// Clients may read the metrics.
    pub(crate) shows_metrics: bool,
    pub(crate) load: Load,
}

/// A seed for each exchange.
#[derive(Debug)]
pub(crate) enum Seeds {
    /// A random start, and how many were given.
    Fresh(u128, AtomicU64),
    /// Always the same.
    Fixed(u128),
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
    pub(crate) async fn answer(&self, request: Request<Incoming>, busy: &Busy) -> Response<Body> {
        let is_head = request.method() == Method::HEAD;
        if request.body().is_end_stream() {
            busy.set_whole();
        }
        let response = self.respond(request, busy).await;
        if is_head { live::without_body(response) } else { response }
    }

    async fn respond(&self, request: Request<Incoming>, busy: &Busy) -> Response<Body> {
        let (head, body) = request.into_parts();
        let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
        let method = head.method.as_str();
        let refused = self.callers.refuse(&head);
        let list = headers::list(&head.headers);
        if self.shows_metrics
            && refused.is_none()
            && head.uri.path() == metrics::PATH
            // Without one of the keys the exchange refuses it.
            && self.config.lets_in(&list)
        {
            return self.records.metrics.response();
        }
        if refused.is_none()
            && let Some(response) = page::respond(self, &head, &list)
        {
            return response;
        }
        let mut live = self.begin(method, path);
        if let Some(reason) = refused {
            discard_sent(&head, body);
            return live.fail(Failure::Forbidden(reason));
        }
        let decided = live.exchange.handle_request_head(method, &creole::with_version(path), &list);
        drop(list);
        if let RequestHead::Answered = decided {
            discard_sent(&head, body);
            return live.reply();
        }
        let owner = live.exchange.client_key().map(Owner::of_client_key);
        let owner = owner.unwrap_or(busy.client.owner);
        let mut held = self.budget.begin(owner, Arc::default());
        let own = self.budget.exchange();
        if body.is_end_stream() {
            held.complete();
        }
        if !held.set(own.saturating_add(headers::bytes(&head))) {
            discard_sent(&head, body);
            return live.fail(Failure::Overloaded);
        }
        if let RequestHead::PassThrough = decided {
            return pass::pass(self, live, (held, busy), head, body).await;
        }
        // The exchange has what it needs of the head.
        let version = head.version;
        drop(head);
        let _ = held.set(own.saturating_add(live.exchange.head_bytes()));
        let rest = held.part();
        live.held = Some(held);
        self.translate(live, (version, body), (rest, owner), busy).await
    }

    fn begin(&self, method: &str, path: &str) -> Live {
        let (config, records) = (Arc::clone(&self.config), Arc::clone(&self.records));
        let (seed, counted) = (self.seeds.next(), self.load.count());
        Live::new(config, seed, Clock::start(), records, method, path, counted)
    }

    async fn translate(
        &self,
        mut live: Live,
        (version, mut body): (Version, Incoming),
        (mut held, owner): (Held, Owner),
        busy: &Busy,
    ) -> Response<Body> {
        live.exchange.remember(Arc::clone(&self.refusals));
        let settings = &self.config.settings;
        let collected = match collect(&mut body, settings, &mut held, live.clock).await {
            Ok(collected) => collected,
            Err(failure) => {
                discard(version, body);
                return live.fail(failure);
            }
        };
        drop(body);
        held.complete();
        busy.set_whole();
        let now = live.clock.now();
        live.exchange.handle_request_body(collected, now);
        let mut reading = Duration::ZERO;
        loop {
            // What it holds is held until it is translated, even if the client goes: on another thread that goes on.
            let bytes = live.exchange.held_bytes();
            let config = Arc::clone(&self.config);
            let translate = move || {
                let now = live.clock.now();
                let call = live.timed(|exchange| exchange.poll_call(now));
                let wanted = match &call {
                    None => live.exchange.poll_document(),
                    Some(_) => None,
                };
                let limits = &config.settings.read_documents;
                (live, held, call, wanted.map(|document| Wanted::new(document, limits)))
            };
            let (call, wanted);
            (live, held, call, wanted) = self.translations.run(bytes, translate).await;
            match (call, wanted) {
                (Some(call), _) => match self.call(live, call, (held, owner)).await {
                    Answered::Response(response) => return response,
                    Answered::Due(due, kept) => (live, held) = (*due, kept),
                },
                (None, Some(wanted)) => {
                    if !held.set(live.exchange.held_bytes().saturating_add(wanted.bytes())) {
                        return live.fail(Failure::Overloaded);
                    }
                    let until = live.clock.instant(wanted.until());
                    let limits = &self.config.settings.read_documents;
                    let reader = (owner, &mut reading);
                    let text = self.documents.read(wanted, limits, until, reader).await;
                    live.exchange.handle_document(text);
                }
                (None, None) => return live.reply(),
            }
        }
    }

    /// One call of an upstream, up to the head for the client.
    async fn call(&self, mut live: Live, call: Call, (mut held, owner): (Held, Owner)) -> Answered {
        if !held.set(live.exchange.held_bytes().saturating_add(call.body.len())) {
            return Answered::Response(live.fail(Failure::Overloaded));
        }
        let url = call.fetch.as_ref().map(|fetch| fetch.url.clone());
        let mut sent = pin!(async {
            let fetching = match url {
                Some(url) => self.fetches.begin(owner, &url).await,
                None => None,
            };
            (self.caller.send(call).await, fetching)
        });
        // An image is read to its end in here.
        let (answered, _fetching) = loop {
            tokio::select! {
                biased;
                answered = &mut sent => break answered,
                () = live.timeout() => {
                    live.exchange.handle_timeout(live.clock.now());
                    if live.exchange.is_ended() || live.exchange.is_call_due() {
                        return without_answer(live, held);
                    }
                }
            }
        };
        let response = match answered {
            Ok(response) => response,
            Err(failure) => {
                live.exchange.handle_failure(failure, live.clock.now());
                return without_answer(live, held);
            }
        };
        let (head, upstream) = response.into_parts();
        let mut list = headers::list(&head.headers);
        let upstream = inflate::Answer::new(upstream, &mut list);
        live.exchange.handle_call_head(head.status.as_u16(), &list, live.clock.now());
        // The request is sent; what may be needed again is held on.
        let _ = held.set(live.exchange.held_bytes());
        if live.exchange.is_call_due() {
            return without_answer(live, held);
        }
        let (apart, caller) = (self.translations.apart().clone(), Arc::clone(&self.caller));
        Answering::new(live, (apart, caller), upstream, held).respond().await
    }
}

/// Reads on in a refused body, unless its client waits for `100 Continue` and sends nothing.
pub(crate) fn discard_sent(head: &Parts, body: Incoming) {
    if !head.headers.contains_key(EXPECT) {
        discard(head.version, body);
    }
}

/// Reads on in a refused body for a short time, and keeps nothing of it. The answer does not wait for that. HTTP/2
/// resets the stream behind the answer. HTTP/1 closes the connection, which can destroy the answer while the client
/// writes.
fn discard(version: Version, mut body: Incoming) {
    if version < Version::HTTP_2 && !body.is_end_stream() {
        let read = async move { while let Some(Ok(_)) = body.frame().await {} };
        tokio::spawn(tokio::time::timeout(DISCARD_TIME, read));
    }
}

/// A call whose answer is not the client's: another one is due, for which an image that cannot be fetched makes no
/// difference, or the exchange has ended.
fn without_answer(mut live: Live, held: Held) -> Answered {
    if live.exchange.is_call_due() {
        return Answered::Due(Box::new(live), held);
    }
    Answered::Response(live.reply())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::net::SocketAddr;
    use std::num::NonZero;
    use std::time::{SystemTime, UNIX_EPOCH};

    use crate::apart::Apart;
    use crate::log::Format;
    use crate::reach;

    pub(crate) fn gateway(address: SocketAddr, load: Load) -> Gateway {
        Gateway {
            config: Arc::new(Config::default()),
            caller: Arc::new(Caller::new(&Arc::default(), &reach::connector().unwrap())),
            budget: Budget::new(1 << 20),
            translations: Translations::new(Apart::start(NonZero::<usize>::MIN).unwrap()),
            documents: Arc::new(Documents::new()),
            fetches: Arc::new(Fetches::new()),
            seeds: Arc::new(Seeds::Fixed(1)),
            records: Arc::new(Records::new(Format::Json, None)),
            refusals: Arc::default(),
            callers: Arc::new(Callers::new(address, &[], false)),
            is_local: true,
            shows_metrics: false,
            load,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_goes_by_the_systems_clock_as_it_is_when_it_comes() {
        let gateway = gateway(SocketAddr::from(([127, 0, 0, 1], 1)), Load::default());
        // The two clocks move apart, as after sleep or when the time is set.
        tokio::time::advance(Duration::from_secs(3600)).await;
        let live = gateway.begin("GET", "/");
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
        assert!(live.clock.now().abs_diff(unix) < 60_000);
    }
}
