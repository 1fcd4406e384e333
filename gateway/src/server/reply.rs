//! Responses whose whole body is known before the head is sent: replies of finished exchanges, and
//! responses to `HEAD`.

use creole::Failure;
use hyper::Response;
use hyper::header::CONTENT_LENGTH;

use crate::headers;
use crate::server::exchange::LiveExchange;
use crate::server::response_body::Body;

impl LiveExchange {
    /// Ends the exchange with a failure, and returns the error response. The head must not have
    /// been sent.
    pub(crate) fn fail(&mut self, failure: Failure) -> Response<Body> {
        self.exchange.handle_failure(failure, self.clock.now());
        self.reply()
    }

    /// Returns the reply of a finished exchange. Its memory counts until the reply has been
    /// written.
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

/// Removes the body from a response to `HEAD`, if the whole body is known. hyper does so only in
/// HTTP/1; in HTTP/2, clients treat a body as a protocol error.
pub(crate) fn without_body(mut response: Response<Body>) -> Response<Body> {
    if let Body::Whole(bytes) = response.body_mut()
        && !bytes.is_empty()
    {
        let length = std::mem::take(bytes).len();
        response.headers_mut().insert(CONTENT_LENGTH, length.into());
    }
    response
}
