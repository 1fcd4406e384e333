//! Responses with a body that is known as a whole: replies of exchanges that have ended, and
//! answers to `HEAD`.

use creole::Failure;
use hyper::Response;
use hyper::header::CONTENT_LENGTH;

use crate::headers;
use crate::server::exchange::Live;
use crate::server::response_body::Body;

impl Live {
    /// The answer to a failure before the head.
    pub(crate) fn fail(&mut self, failure: Failure) -> Response<Body> {
        self.exchange.handle_failure(failure, self.clock.now());
        self.reply()
    }

    /// Returns the answer of an exchange that has ended, which is held until it has left.
    pub(crate) fn reply(&mut self) -> Response<Body> {
        let reply = self.exchange.poll_reply().unwrap_or_default();
        let body = match &mut self.held {
            Some(held) => {
                held.complete();
                let _ = held.set(reply.body.len());
                held.with(reply.body)
            }
            None => reply.body.into(),
        };
        headers::response(reply.head, Body::Whole(body))
    }
}

/// Takes the body out of an answer to `HEAD` where the body is known as a whole. hyper leaves it
/// out in HTTP/1 alone; in HTTP/2 clients take one for an error of the protocol.
pub(crate) fn without_body(mut response: Response<Body>) -> Response<Body> {
    if let Body::Whole(bytes) = response.body_mut()
        && !bytes.is_empty()
    {
        let length = std::mem::take(bytes).len();
        response.headers_mut().insert(CONTENT_LENGTH, length.into());
    }
    response
}
