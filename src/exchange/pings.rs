//! Pings, which keep a client's connection open while no content arrives for its answer.
//!
//! | received by the client | ping |
//! |---|---|
//! | nothing, and a retry is possible or the upstream was asked for a whole answer | a comment |
//! | nothing, and no retry is possible | `message_start` with a `ping` event |
//! | comments | a comment |
//! | a part of the message | a `ping` event |
//!
//! Parsers of event streams skip comments. A `ping` event before `message_start` would confuse
//! clients.

use super::output::Body;
use super::{Exchange, Pings};
use crate::Millis;

/// Comment of an event stream, which serves as a ping before the first event.
const COMMENT: &[u8] = b": ping\n\n";

impl Exchange {
    /// Returns true if the client may get a ping: its response is an event stream, or becomes an
    /// event stream with the first ping. While the upstream only keeps its connection alive, Creole
    /// must keep the client's connection alive too.
    pub(super) fn may_ping(&self) -> bool {
        if !self.state.asks().is_empty() || self.state.paused_until().is_some() {
            return self.output.promised().is_some_and(|body| body != Body::Json);
        }
        let Some(round) = self.state.round() else { return false };
        match self.output.promised() {
            Some(body) => body != Body::Json,
            None if self.collects_for_stream() => true,
            None => round.answer().is_some_and(|answer| {
                !round.is_collecting() && answer.is_stream() && self.protocol().begins_in_silence()
            }),
        }
    }

    /// Returns true if the host can write a ping while the upstream sends nothing.
    pub(super) fn may_ping_unasked(&self) -> bool {
        let can_write = match self.can.ping {
            Pings::Sent => true,
            Pings::AfterHead => !self.output.is_held(),
            Pings::No => false,
        };
        can_write && self.may_ping()
    }

    /// Returns true if the client wants a stream, but the upstream was asked for one JSON text,
    /// which may arrive all at once.
    fn collects_for_stream(&self) -> bool {
        let context = self.state.round().and_then(|round| round.context());
        self.can.ping == Pings::Sent
            && context.is_some_and(|context| context.stream && !context.upstream_stream)
    }

    /// Returns true if the next ping is a comment.
    fn pings_by_comment(&self) -> bool {
        match self.output.promised() {
            Some(body) => body == Body::Comments,
            None => {
                self.can.ping == Pings::Sent && (self.keeps_body() || self.collects_for_stream())
            }
        }
    }

    /// Writes a ping for the client, which may begin the client's stream.
    pub(super) fn ping(&mut self, now: Millis) {
        let before = self.output.body.len();
        if self.output.promised() == Some(Body::Events) && self.answer().is_none() {
            self.output.body.extend_from_slice(self.client.protocol.ping());
        } else if self.pings_by_comment() {
            self.output.body.extend_from_slice(COMMENT);
            if self.output.is_held() {
                self.begin_comments();
            }
        } else if self.output.is_held()
            && let Some(answer) = self.state.round_mut().and_then(|round| round.answer_mut())
        {
            // The start of a message includes a ping.
            answer.begin(&mut self.output.body);
            self.begin_stream();
        } else if let Some(answer) = self.state.round().and_then(|round| round.answer()) {
            answer.ping(&mut self.output.body);
        }
        self.count_bytes_since(before);
        self.watchdog.sent(now);
    }
}
