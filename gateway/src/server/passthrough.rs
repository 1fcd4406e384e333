//! Requests for paths that Creole does not translate: `/v1/*` is passed unchanged to the first
//! upstream, with that upstream's key. Any other path is not found.

use std::pin::pin;
use std::sync::Arc;

use creole::{Config, Failure, PassedHead};
use http_body_util::{Either, Full};
use hyper::body::{Body as _, Incoming};
use hyper::http::request::Parts;
use hyper::{Request, Response, Uri};
use tokio::sync::oneshot;

use crate::headers;
use crate::server::budget::Held;
use crate::server::connections::{Busy, Stage};
use crate::server::exchange::LiveExchange;
use crate::server::request_body::{collect, discard, discard_sent};
use crate::server::response_body::Body;
use crate::upstream::call::Caller;
use crate::upstream::client;
use crate::upstream::paced_body::Paced;

/// A request for an untranslated path, which is passed on to an upstream unchanged.
pub(crate) struct Passing {
    pub(crate) live: LiveExchange,
    pub(crate) held: Held,
    pub(crate) head: Parts,
    pub(crate) body: Incoming,
}

/// Sends a request on to the first upstream, and returns the response for the client.
pub(crate) async fn pass(
    config: &Config,
    caller: &Caller,
    asked: Passing,
    busy: &mut Busy,
) -> Response<Body> {
    let Passing { mut live, held, head, mut body } = asked;
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
    let path = &*creole::with_version(path);
    let target = creole::passed(config, path).and_then(|(upstream, path)| {
        let uri = format!("{}{path}", upstream.url).parse::<Uri>().ok()?;
        Some((upstream, uri))
    });
    let Some((upstream, uri)) = target else {
        discard_sent(&head, body, busy);
        return live.fail(Failure::NoRoute);
    };
    let name = upstream.name.clone();
    let mut sent = head.headers;
    let change = PassedHead::of_request(headers::pairs(&sent), upstream);
    headers::change(&mut sent, change);
    let (settings, clock) = (&config.settings, live.clock);
    let (end, mut whole) = oneshot::channel();
    let body = if body.is_end_stream() {
        Either::Left(Full::default())
    } else if let Ok(place) = Arc::clone(&busy.client.passing).try_acquire_owned() {
        Either::Right(Paced::new(body, settings, clock, (end, place)))
    } else {
        // One more body that its upstream does not read would make other streams wait.
        let mut rest = held.part();
        match collect(&mut body, settings, &mut rest, clock).await {
            Ok(collected) => {
                busy.reach(Stage::Whole);
                Either::Left(Full::new(rest.with(collected)))
            }
            Err(failure) => {
                discard(head.version, body, busy);
                return live.fail(failure);
            }
        }
    };
    // A body that passes is not kept in memory, and its pace limits its time.
    held.complete();
    let mut request = Request::new(body);
    *request.method_mut() = head.method;
    *request.uri_mut() = uri;
    *request.headers_mut() = sent;
    let mut answered = pin!(caller.client.pass(request));
    let mut is_whole = false;
    let answered = loop {
        tokio::select! {
            biased;
            _ = &mut whole, if !is_whole => {
                busy.reach(Stage::Whole);
                is_whole = true;
            }
            answered = &mut answered => break answered,
        }
    };
    // The rest of the request's body concerns only the upstream.
    busy.reach(Stage::Whole);
    live.held = Some(held);
    let of_client = answered.as_ref().err().and_then(client::of_client);
    match of_client.map_or_else(|| caller.noted(&name, answered), Err) {
        Ok(response) => passed(response, name, live),
        Err(failure) => live.fail(failure),
    }
}

/// Converts an upstream's response to the response for the client.
fn passed(
    response: Response<Incoming>,
    upstream: String,
    mut live: LiveExchange,
) -> Response<Body> {
    live.request.passed = Some((response.status().as_u16(), upstream));
    live.show();
    live.begin_stream();
    let (mut head, upstream) = response.into_parts();
    let change = PassedHead::of_answer(headers::connection(&head.headers));
    headers::change(&mut head.headers, change);
    head.version = hyper::Version::default();
    Response::from_parts(head, Body::Passed { upstream, live: Box::new(live) })
}
