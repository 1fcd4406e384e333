//! Pings, which keep a client's connection open while nothing comes of its answer.
//!
//! | the client has | a ping is |
//! |---|---|
//! | nothing, and the upstream may be called again, or was asked for a whole answer | a comment |
//! | nothing, and the upstream is not called again | `message_start` with a `ping` event |
//! | comments | a comment |
//! | some of the message | a `ping` event |
//!
//! Readers of events skip comments. A `ping` event in front of `message_start` would confuse
//! clients.

use super::output::Body;
use super::{Exchange, Pings};
use crate::Millis;
use crate::protocols::messages::write_answer::PING;

/// Comment of an event stream, which serves as a ping in front of the first event.
const COMMENT: &[u8] = b": ping\n\n";

impl Exchange {
    /// Returns true if the client may get a ping: it must have been promised events, or be promised
    /// them with the first ping. While the upstream only keeps its connection alive, Creole must
    /// keep the client's alive too.
    pub(super) fn may_ping(&self) -> bool {
        if self.state.ask_open().is_some() {
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

    /// Returns true if the client wants a stream of an upstream that was asked for a whole answer,
    /// whose head may come no sooner than its end.
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

    /// Writes a ping for the client, which may begin its stream.
    pub(super) fn ping(&mut self, now: Millis) {
        let before = self.output.body.len();
        if self.output.promised() == Some(Body::Events) && self.state.round().is_none() {
            self.output.body.extend_from_slice(PING);
        } else if self.pings_by_comment() {
            self.output.body.extend_from_slice(COMMENT);
            if self.output.is_held() {
                self.begin_comments();
            }
        } else if self.output.is_held()
            && let Some(answer) = self.state.round_mut().and_then(|round| round.answer_mut())
        {
            // A message begins with a ping.
            answer.begin(&mut self.output.body);
            self.begin_stream();
        } else if let Some(answer) = self.state.round().and_then(|round| round.answer()) {
            answer.ping(&mut self.output.body);
        }
        self.count_bytes_since(before);
        self.watchdog.sent(now);
    }
}
