//! A client's body, while it is collected: how large it may be, and how slowly it may come.
//!
//! The core's [`Pace`] says when a body is too slow.

use bytes::Bytes;
use creole::config::Settings;
use creole::{Failure, Pace};
use http_body::Body;
use http_body_util::BodyExt as _;
use tokio::time::timeout_at;

use crate::clock::Clock;
use crate::server::budget::Held;

/// Collects a body, whose memory is taken from the budget. It ends at once where others get its memory.
pub(crate) async fn collect<B>(
    body: &mut B,
    settings: &Settings,
    held: &mut Held,
    clock: Clock,
) -> Result<Vec<u8>, Failure>
where
    B: Body<Data = Bytes> + Unpin,
{
    // A length is a claim: nothing is reserved for it.
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

#[cfg(test)]
mod tests;
