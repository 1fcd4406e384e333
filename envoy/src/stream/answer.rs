//! Handling of the response in a stream: head, body and trailers.

use creole::observe::log::Level;
use creole::observe::report::Outcome;
use creole::{End, Failure, Head, Header, Millis, Reply, Unreachable, json};

use super::{
    CLOSE_DELAY_MS, CUT_LINGER_MS, Delivered, HOLD_MS, Held, LINGER_MS, Route, Stream, StreamState,
    When, drain,
};
use crate::action::{Action, Decision, Side};
use crate::deferred::Deferred;
use crate::details::{self, Origin};
use crate::heads;

impl Stream {
    /// Returns true if a translated request was sent, so that the host should report its route.
    #[must_use]
    pub fn awaits_route(&self) -> bool {
        matches!(self.state, StreamState::Waiting | StreamState::Collecting { head: None, .. })
    }

    /// Notes the route that the request took.
    pub fn note_route(&mut self, route: Route) {
        self.calls.note_cluster(&route.cluster);
        self.route = Some(route);
    }

    /// Returns true if `creole-guard` should have checked the request's route, but did not.
    #[must_use]
    pub fn was_unchecked(&self) -> bool {
        self.was_unchecked
    }

    /// Returns a log line about the request's route, if the route was refused or not checked.
    fn told_of_route(&mut self, details: &str) -> Option<String> {
        let route = self.route.take()?;
        if details == details::REFUSED_ROUTE {
            let cluster = json::quoted(&route.cluster);
            return Some(format!(
                "route check: a translated request would have gone to the cluster {cluster}, which creole-guard \
                 does not list"
            ));
        }
        let is_sent = details == details::VIA_UPSTREAM;
        if !is_sent || route.is_checked || !self.config.settings.check_route {
            return None;
        }
        self.was_unchecked = true;
        Some(
            "route check: nothing behind this filter looks at where translated requests go: add creole-guard \
             (creole envoy-config prints it), or set check_route to false"
                .to_owned(),
        )
    }

    /// Handles the response's head, from the upstream or Envoy. The filter's own answer also passes
    /// here.
    pub fn on_response_headers(
        &mut self,
        head: &[Header],
        end_of_stream: bool,
        details: &str,
        now: Millis,
    ) -> Decision {
        let status = heads::status(head);
        let collecting = match self.state {
            StreamState::HandsOff | StreamState::Answering { .. } => return Decision::pass(),
            // Envoy or another filter answered before the body was read: send the kept refusal.
            StreamState::Refusing { .. } => return self.refuse(Vec::new()),
            StreamState::Collecting { .. } | StreamState::Preparing { .. } => true,
            StreamState::Waiting => false,
        };
        let mut actions = Vec::new();
        if let Some(line) = self.told_of_route(details) {
            actions.push(Action::Log(Level::Error, line));
        }
        if self.was_unchecked {
            return self.fail(Failure::Misconfigured, When::Now, now, actions);
        }
        let is_complete = !matches!(self.state, StreamState::Collecting { .. });
        match details::origin(details, status, is_complete) {
            Origin::Envoy(failure) => {
                // A reply that replaces Envoy's response has details of its own.
                details.clone_into(&mut self.request.details);
                if end_of_stream || collecting || !self.config.settings.pause_headers {
                    return self.fail(failure, When::Now, now, actions);
                }
                self.handle_failure(failure, now);
                self.state = StreamState::Answering {
                    sent: Delivered::Nothing,
                    length: heads::length(head),
                    received: 0,
                };
                let reply = self.exchange.poll_reply().unwrap_or_default();
                return self.hold(reply, now, actions);
            }
            Origin::Upstream if collecting => {
                // The upstream answered before the request was complete, which needs heads that are
                // not paused.
                let failure = match status {
                    413 => Failure::RequestTooLarge,
                    503 => Failure::NoHealthyUpstream,
                    _ => Failure::Unreachable(Unreachable::TooEarly),
                };
                return self.fail(failure, When::Now, now, Vec::new());
            }
            Origin::Upstream => {}
        }
        let Some(call) = self.call else { return Decision::pass() };
        self.exchange.handle_call_head(call, status, head, now);
        self.state = StreamState::Answering {
            sent: Delivered::Nothing,
            length: heads::length(head),
            received: 0,
        };
        if end_of_stream {
            return self.end_without_body(now);
        }
        if self.config.settings.pause_headers {
            return Decision::stop(Vec::new());
        }
        self.exchange.release_head();
        let Some(head) = self.exchange.poll_head() else { return Decision::pass() };
        self.set_sent(Delivered::Head);
        let head = heads::for_client(head, None);
        Decision::go_on(vec![Action::ReplaceHeaders(Side::Response, head)])
    }

    /// Ends an upstream's response that has no body.
    fn end_without_body(&mut self, now: Millis) -> Decision {
        self.end_call(End::Complete, now);
        let mut calls = Vec::new();
        if self.begin_behind(&mut calls, now) {
            return Decision::stop(calls);
        }
        self.reply(When::Now, calls, now)
    }

    /// Handles a chunk of the response's body. `fits` reserves memory for all that this stream
    /// holds.
    pub fn on_response_body(
        &mut self,
        piece: &[u8],
        end_of_stream: bool,
        fits: &mut dyn FnMut(usize) -> bool,
        now: Millis,
    ) -> Decision {
        let StreamState::Answering { sent, length, received } = &mut self.state else {
            return Decision::pass();
        };
        if self.calls.are_behind() {
            return self.go_on_behind_chunk(piece, end_of_stream);
        }
        *received = received.saturating_add(piece.len());
        let complete = end_of_stream || *length == Some(*received);
        if matches!(sent, Delivered::Held(_)) {
            return self.go_on_held(piece, complete);
        }
        let head_sent = !matches!(sent, Delivered::Nothing);
        if let Some(call) = self.call {
            self.exchange.handle_call_body(call, piece, now);
        }
        let mut head = self.exchange.poll_head();
        let is_overloaded = !fits(self.held_bytes());
        if is_overloaded {
            self.exchange.handle_failure(Failure::Overloaded, now);
        } else if complete {
            self.end_call(End::Complete, now);
        }
        let mut calls = Vec::new();
        let is_behind = self.begin_behind(&mut calls, now);
        head = head.or_else(|| self.exchange.poll_head());
        if is_behind {
            return self.hold_end(head, piece, end_of_stream, calls);
        }
        let out = self.polled();
        let cut = self.exchange.is_ended() && !complete;
        if head_sent {
            if cut && self.close_at.is_none() {
                let delay = if self.is_answered() { self.linger_ms() } else { CLOSE_DELAY_MS };
                self.close_at = Some(now.saturating_add(delay));
            }
            return self.go_on(piece, end_of_stream, out);
        }
        let Some(head) = head else { return Decision::stop(drain(Side::Response, piece)) };
        if !cut && self.config.settings.deferred_flush && !complete {
            return self.defer(heads::for_client(head, None), &out);
        }
        if cut && !self.is_answered() {
            let (reply, drained) = (Reply { head, body: out }, drain(Side::Response, piece));
            if is_overloaded {
                return self.reply_with(reply, When::Now, drained, now);
            }
            return self.hold(reply, now, drained);
        }
        if cut {
            // With a content-length, the answer is complete for the client, who need not wait for
            // the upstream.
            self.close_at = Some(now.saturating_add(self.linger_ms()));
        }
        let length = (cut || complete).then_some(out.len());
        self.give(head, length, out)
    }

    /// Returns the decision to send the head and the first bytes of the answer to the client.
    fn give(&mut self, head: Head, length: Option<usize>, out: Vec<u8>) -> Decision {
        self.set_sent(Delivered::Head);
        Decision::go_on(vec![
            Action::ReplaceHeaders(Side::Response, heads::for_client(head, length)),
            Action::ReplaceBody(Side::Response, out),
        ])
    }

    /// Returns the time that an upstream has to end its response after the message is complete, in
    /// milliseconds.
    fn linger_ms(&mut self) -> u64 {
        if self.is_cut() { CUT_LINGER_MS } else { LINGER_MS }
    }

    pub(super) fn is_answered(&self) -> bool {
        self.exchange.report().outcome == Outcome::Answered
    }

    /// Keeps a complete answer until the upstream's response ends. No part of that response was
    /// sent to the client.
    fn hold(&mut self, reply: Reply, now: Millis, actions: Vec<Action>) -> Decision {
        self.set_sent(Delivered::Held(Held { reply, until: now.saturating_add(HOLD_MS) }));
        Decision::stop(actions)
    }

    /// Handles a chunk of an upstream's response that a held answer replaces.
    fn go_on_held(&mut self, piece: &[u8], complete: bool) -> Decision {
        let held = if complete { self.take_held(None) } else { None };
        let Some(reply) = held else { return Decision::stop(drain(Side::Response, piece)) };
        self.give(reply.head, Some(reply.body.len()), reply.body)
    }

    /// Returns the held answer and removes it from the state. With `now`, only if the answer has
    /// waited for too long.
    pub(super) fn take_held(&mut self, now: Option<Millis>) -> Option<Reply> {
        let StreamState::Answering { sent, .. } = &mut self.state else { return None };
        match std::mem::replace(sent, Delivered::Nothing) {
            Delivered::Held(held) if now.is_none_or(|now| held.until <= now) => Some(held.reply),
            other => {
                *sent = other;
                None
            }
        }
    }

    /// Returns the decision to send `out`, the translation of `piece`, to a client that has the
    /// head.
    fn go_on(&mut self, piece: &[u8], end_of_stream: bool, out: Vec<u8>) -> Decision {
        if let Some(deferred) = self.deferred_mut() {
            deferred.push(&out, end_of_stream);
            return Decision::pause(drain(Side::Response, piece));
        }
        if piece.is_empty() && out.is_empty() {
            return Decision::pass();
        }
        Decision::go_on(vec![Action::ReplaceBody(Side::Response, out)])
    }

    /// Handles response trailers, which end the body if it has not ended otherwise.
    pub fn on_response_trailers(&mut self, now: Millis) -> Decision {
        if let Some(reply) = self.take_held(None) {
            return self.reply_with(reply, When::Now, Vec::new(), now);
        }
        if !matches!(self.state, StreamState::Answering { .. }) {
            return Decision::pass();
        }
        if self.calls.are_behind() {
            return self.hold_trailers(Vec::new());
        }
        self.end_call(End::Complete, now);
        let mut calls = Vec::new();
        if self.begin_behind(&mut calls, now) {
            return self.hold_trailers(calls);
        }
        if matches!(self.state, StreamState::Answering { sent: Delivered::Nothing, .. }) {
            return self.reply(When::Now, Vec::new(), now);
        }
        let out = self.polled();
        if let Some(deferred) = self.deferred_mut() {
            deferred.push(&out, true);
            return Decision::stop(Vec::new());
        }
        if out.is_empty() {
            return Decision::pass();
        }
        // The missing part cannot be written any more. Clients retry a stream that breaks, but
        // believe a stream that ends early.
        self.state = StreamState::HandsOff;
        Decision::stop(vec![Action::CloseStream])
    }

    /// Sends the head of the answer to the client, and leaves all further writing to the timer.
    pub(super) fn defer(&mut self, head: Vec<Header>, out: &[u8]) -> Decision {
        let mut deferred = Deferred::default();
        deferred.push(out, false);
        self.set_sent(Delivered::Deferred(deferred));
        Decision::pause(vec![
            Action::ReplaceHeaders(Side::Response, head),
            Action::ReplaceBody(Side::Response, Vec::new()),
        ])
    }
}
