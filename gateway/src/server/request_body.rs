//! Collection of a client's request body: maximum size, minimum rate, and the reading of refused
//! bodies.
//!
//! The core's [`Pace`] decides if a body is too slow.

use std::time::Duration;

use bytes::Bytes;
use creole::config::Settings;
use creole::{Failure, Pace};
use http_body::Body;
use http_body_util::BodyExt as _;
use hyper::Version;
use hyper::body::Incoming;
use hyper::header::EXPECT;
use hyper::http::request::Parts;
use tokio::time::timeout_at;

use crate::clock::Clock;
use crate::server::budget::Held;
use crate::server::connections::Busy;

/// Time for which a refused body is still read.
const DISCARD_TIME: Duration = Duration::from_secs(2);

/// Collects a body in memory from the budget. Fails at once if the request is evicted to give its
/// memory to others.
pub(crate) async fn collect<B>(
    body: &mut B,
    settings: &Settings,
    held: &mut Held,
    clock: Clock,
) -> Result<Vec<u8>, Failure>
where
    B: Body<Data = Bytes> + Unpin,
{
    // No memory is reserved for the announced length, which may be false.
    let mut collected = Vec::new();
    let mut pace = Pace::start(settings, clock.now());
    loop {
        let polled = tokio::select! {
            biased;
            () = held.given_up() => return Err(Failure::Overloaded),
            polled = timeout_at(clock.instant(pace.end(collected.len())), body.frame()) => polled,
        };
        let piece = match polled {
            Ok(None) => return Ok(collected),
            Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
            Ok(Some(Err(_))) => return Err(Failure::RequestIncomplete),
            Err(_) => return Err(Failure::RequestTooSlow),
        };
        if collected.len().saturating_add(piece.len()) > settings.request_bytes_max {
            return Err(Failure::RequestTooLarge);
        }
        if !held.grow(piece.len()) {
            return Err(Failure::Overloaded);
        }
        collected.extend_from_slice(&piece);
        if !pace.goes_on(piece.len(), collected.len(), clock.now()) {
            return Err(Failure::RequestTooSlow);
        }
    }
}

/// Reads and discards a refused body, unless its client waits for `100 Continue` and sends no body.
pub(crate) fn discard_sent(head: &Parts, body: Incoming, busy: &Busy) {
    if !head.headers.contains_key(EXPECT) {
        discard(head.version, body, busy);
    }
}

/// Reads and discards a refused body for a short time, while the answer is sent. HTTP/2 resets the
/// stream after the answer. HTTP/1 closes the connection, which can destroy the answer if the
/// client still writes.
pub(crate) fn discard(version: Version, mut body: Incoming, busy: &Busy) {
    if version < Version::HTTP_2 && !body.is_end_stream() {
        // Without a request in flight, the rest of the body would count as the next head.
        let reading = busy.client.begin();
        let read = async move {
            while let Some(Ok(_)) = body.frame().await {}
            drop(reading);
        };
        tokio::spawn(tokio::time::timeout(DISCARD_TIME, read));
    }
}

#[cfg(test)]
mod tests;
