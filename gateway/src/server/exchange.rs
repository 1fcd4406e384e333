//! An exchange while it lives; it is counted, and written to the log, when it ends.
//!
//! That happens when the value is dropped, whoever drops it: the service when it has answered, or
//! hyper when the client has gone. So there is exactly one line for each request.

use std::sync::Arc;
use std::time::{Duration, Instant};

use creole::observe::log::Request;
use creole::{Config, Exchange, Failure, Head, HostCan, Pings};
use hyper::header::CONTENT_LENGTH;

use crate::clock::Clock;
use crate::headers;
use crate::server::budget::Held;
use crate::server::load::Counted;
use crate::server::records::Records;
use crate::server::response_body::Body;

/// Interval at which an exchange reports its progress to the page: a report is a copy of many
/// texts.
const SHOW_INTERVAL: Duration = Duration::from_millis(250);

#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) exchange: Exchange,
    pub(crate) clock: Clock,
    pub(crate) request: Request,
    records: Arc<Records>,
    /// The exchange's in the records.
    number: u64,
    /// Time of the last report to the page, and whether there was content then.
    shown: Option<(Instant, bool)>,
    /// Time spent inside the exchange, reported as its translation time.
    spent: Duration,
    /// Memory of the exchange and of its client's head, once the head is let in.
    pub(crate) held: Option<Held>,
    _counted: Counted,
}

impl Live {
    pub(crate) fn new(
        config: Arc<Config>,
        seed: u128,
        clock: Clock,
        records: Arc<Records>,
        method: &str,
        path: &str,
        counted: Counted,
    ) -> Self {
        let (method, path) = (method.to_owned(), path.to_owned());
        let can = HostCan {
            ping: Pings::Sent,
            ask_again: true,
            list_models: true,
            fetch: true,
            read_documents: true,
            serve_others: false,
        };
        Self {
            exchange: Exchange::new(config, seed, can),
            clock,
            request: Request { method, path, began: clock.now(), ..Request::default() },
            number: records.begin(),
            records,
            shown: None,
            spent: Duration::ZERO,
            held: None,
            _counted: counted,
        }
    }

    /// Calls what translates, and measures it.
    pub(crate) fn timed<R>(&mut self, call: impl FnOnce(&mut Exchange) -> R) -> R {
        let began = Instant::now();
        let result = call(&mut self.exchange);
        self.spent = self.spent.saturating_add(began.elapsed());
        let has_content = self.exchange.has_content();
        let is_due = self.shown.is_none_or(|(last, had_content)| {
            has_content != had_content || began.saturating_duration_since(last) >= SHOW_INTERVAL
        });
        if is_due && !self.exchange.is_ended() {
            self.shown = Some((began, has_content));
            self.show();
        }
        result
    }

    /// Tells the page how far the exchange is.
    pub(crate) fn show(&self) {
        if let Some(board) = &self.records.board {
            board.show(self.number, &self.request, &self.exchange.report());
        }
    }

    /// Waits until the exchange wants [`Exchange::handle_timeout`] to be called.
    pub(crate) async fn timeout(&self) {
        match self.exchange.poll_timeout() {
            Some(at) => tokio::time::sleep_until(self.clock.instant(at)).await,
            None => std::future::pending().await,
        }
    }

    /// The answer to a failure before the head.
    pub(crate) fn fail(&mut self, failure: Failure) -> hyper::Response<Body> {
        self.exchange.handle_failure(failure, self.clock.now());
        self.reply()
    }

    /// Returns the answer of an exchange that has ended, which is held until it has left.
    pub(crate) fn reply(&mut self) -> hyper::Response<Body> {
        let reply = self.exchange.poll_reply().unwrap_or_default();
        let body = match &mut self.held {
            Some(held) => {
                held.complete();
                let _ = held.set(reply.body.len());
                held.with(reply.body)
            }
            None => reply.body.into(),
        };
        response(reply.head, Body::Whole(body))
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let now = self.clock.now();
        // Nothing changes where everything was said.
        self.exchange.handle_client_gone(now);
        if !self.spent.is_zero() {
            let spent_us = u64::try_from(self.spent.as_micros()).unwrap_or(u64::MAX);
            self.exchange.add_translation_us(spent_us);
        }
        let report = self.exchange.report();
        self.records.end(self.number, &self.request, &report, self.exchange.config(), now);
    }
}

/// A response with a head of the exchange.
pub(crate) fn response(head: Head, body: Body) -> hyper::Response<Body> {
    let mut response = hyper::Response::new(body);
    *response.status_mut() =
        hyper::StatusCode::from_u16(head.status).unwrap_or(hyper::StatusCode::BAD_GATEWAY);
    *response.headers_mut() = headers::map(head.headers);
    response
}

/// Takes the body out of an answer to `HEAD` where the body is known as a whole. hyper leaves it
/// out in HTTP/1 alone; in HTTP/2 clients take one for an error of the protocol.
pub(crate) fn without_body(mut response: hyper::Response<Body>) -> hyper::Response<Body> {
    if let Body::Whole(bytes) = response.body_mut()
        && !bytes.is_empty()
    {
        let length = std::mem::take(bytes).len();
        response.headers_mut().insert(CONTENT_LENGTH, length.into());
    }
    response
}
