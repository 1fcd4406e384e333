//! Paths that are not Creole's: `/v1/*` goes to the first upstream as it is, with that upstream's key;
//! nothing else is served.

use creole::{Failure, PassedHead};
use hyper::body::Incoming;
use hyper::http::request::Parts;
use hyper::{Request, Response, Uri};

use crate::answer::Body;
use crate::budget::Held;
use crate::connections::Busy;
use crate::headers;
use crate::live::Live;
use crate::reach;
use crate::service::{Gateway, discard_sent};

pub(crate) async fn pass(
    gateway: &Gateway,
    mut live: Live,
    (held, busy): (Held, &Busy),
    head: Parts,
    body: Incoming,
) -> Response<Body> {
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
    let path = &*creole::with_version(path);
    let target = creole::passed(live.exchange.config(), path).and_then(|(upstream, path)| {
        let uri = format!("{}{path}", upstream.url).parse::<Uri>().ok()?;
        Some((upstream, uri))
    });
    let Some((upstream, uri)) = target else {
        discard_sent(&head, body);
        return live.fail(Failure::NoRoute);
    };
    let name = upstream.name.clone();
    let mut sent = head.headers;
    let change = PassedHead::of_request(headers::pairs(&sent), upstream);
    headers::change(&mut sent, change);
    let mut request = Request::new(body);
    *request.method_mut() = head.method;
    *request.uri_mut() = uri;
    *request.headers_mut() = sent;
    let answered = tokio::select! {
        biased;
        () = held.given_up() => return live.fail(Failure::Overloaded),
        answered = gateway.caller.client.pass(request) => answered,
    };
    held.complete();
    busy.set_whole();
    live.held = Some(held);
    match answered {
        Ok(response) => {
            live.request.passed = Some((response.status().as_u16(), name));
            live.show();
            let (mut head, upstream) = response.into_parts();
            let change = PassedHead::of_answer(headers::connection(&head.headers));
            headers::change(&mut head.headers, change);
            head.version = hyper::Version::default();
            let body = Body::Passed { upstream, live: Box::new(live) };
            Response::from_parts(head, body)
        }
        Err(error) if reach::is_of_client(&error) => live.fail(Failure::RequestIncomplete),
        Err(error) => live.fail(reach::unreachable(&name, &error)),
    }
}
