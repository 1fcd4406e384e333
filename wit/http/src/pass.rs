//! Pass-through of requests that Creole does not translate: `/v1/*` goes unchanged to the first
//! upstream, with that upstream's key.

use creole::{Failure, Head, Header, PassedHead};
use wasip2::http::types::{IncomingResponse, Method, ResponseOutparam};
use wasip2::io::streams::InputStream;

use crate::answer::Answer;
use crate::headers;
use crate::live::Live;
use crate::streams;
use crate::upstream::{self, PassedBody, Piece};

/// State of the unread part of the client's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    Nothing,
    Unread,
}

pub(crate) fn pass(
    live: &mut Live,
    method: &Method,
    mut list: Vec<Header>,
    stream: &InputStream,
) -> Rest {
    let Some((target, path)) =
        creole::passed(live.exchange.config(), &creole::with_version(&live.request.path))
    else {
        live.fail(Failure::NoRoute);
        return Rest::Unread;
    };
    let target = target.clone();
    let change = PassedHead::of_request(headers::pairs(&list), &target);
    headers::change(&mut list, change);
    // A request without a body must not become one with an empty body.
    let first = loop {
        match upstream::read(stream) {
            Piece::Bytes(piece) => break Some(piece),
            Piece::NotYet if live.client_pauses(stream) => {
                live.fail(Failure::RequestTooSlow);
                return Rest::Unread;
            }
            Piece::NotYet => {}
            Piece::End(_) => break None,
        }
    };
    let body = first.as_ref().map(|first| PassedBody { first, rest: stream });
    match upstream::pass(live, &target, &path, method, &list, body.as_ref()) {
        Ok(response) => {
            live.request.passed = Some((response.status(), target.name));
            if let Some(out) = live.take_out() {
                give(&response, out);
            }
        }
        Err(failure) => live.fail(failure),
    }
    Rest::Nothing
}

/// Sends the upstream's answer to the client. If the upstream's body breaks off, the client's
/// breaks off at the same byte.
fn give(response: &IncomingResponse, out: ResponseOutparam) {
    let mut list = headers::list(&response.headers());
    let change = PassedHead::of_answer(headers::connection(&list));
    headers::change(&mut list, change);
    let head = Head { status: response.status(), headers: list };
    let (Ok(body), Ok(answer)) = (response.consume(), Answer::start(out, &head)) else { return };
    let Ok(stream) = body.stream() else { return };
    if streams::splice(&stream, answer.stream()).is_ok() {
        answer.finish();
    }
}
