//! HTTP stream of Envoy: an [`Exchange`], and the state of the request's and the response's head.
//!
//! ```text
//!                body complete          upstream's head
//!   Collecting ────────────────▶ Waiting ─────────────▶ Answering
//!    │  │   └── refused ──▶ Refusing │                    │
//!    │  └─ calls ─▶ Preparing ─ ─ ─ ▶│                    │
//!    │    client has sent all │       │                    │
//!    └────────────────────────┴───────┴────────────────────┴─▶ HandsOff: answered from here
//! ```
//!
//! Invariants: a chunk that was read is always removed from Envoy's buffer in the same callback;
//! [`Stop`](crate::action::Flow::Stop) is returned for a chunk only while the head of its direction
//! is held, or while the request is collected; nothing is written outside of the callback of a
//! chunk, unless the stream is deferred (`deferred`): then nothing is written inside of such a
//! callback.

mod answer;
mod calls;
mod list;
mod over;
mod request;

use std::sync::Arc;

use creole::config::Config;
use creole::observe::log::LoggedRequest;
use creole::{
    CallId, Cancel, End, Exchange, Failure, Header, HostCan, Millis, Pace, Pings, Refusals, Reply,
};

use calls::Calls;

use crate::action::{Action, Decision, LocalResponse, Side};
use crate::collected::Collected;
use crate::deferred::Deferred;
use crate::heads;

/// Time between an error event in the middle of a stream and the reset, in milliseconds. Bytes
/// written right before a reset are lost on HTTP/2.
const CLOSE_DELAY_MS: u64 = 200;

/// Time that an upstream has to end its response after the message is complete, in milliseconds.
/// Afterwards the stream is reset, since the filter cannot end it otherwise. Some clients treat a
/// reset stream as a failure, even after a complete message.
const LINGER_MS: u64 = 3000;

/// Time that an upstream may continue after a stop sequence that it does not support, in
/// milliseconds. It usually ends by itself soon; an early reset would break each answer of a client
/// that uses such a sequence.
const CUT_LINGER_MS: u64 = 30_000;

/// Maximum time that an error response waits for the end of the upstream's response, in
/// milliseconds.
const HOLD_MS: u64 = 200;

/// Maximum number of bytes of an incomplete event that a stream may keep, while the pieces of its
/// answer are passed on at once, without a count towards the budget. The fixed memory counted for
/// each stream covers these bytes.
const FLOWING_BYTES_MAX: usize = 4 << 10;

/// Maximum number of calls that a stream makes at the same time.
const CALLS_AT_ONCE: u8 = 4;

/// Maximum time for which a refused request may continue its body before the client gets the error,
/// in milliseconds. A client that is answered during its upload may see its connection break
/// instead; the limit ends endless uploads.
const REFUSAL_MS: u64 = 1000;

/// HTTP stream of Envoy, with its exchange.
#[derive(Debug)]
pub struct Stream {
    exchange: Exchange,
    config: Arc<Config>,
    state: StreamState,
    /// Id of the upstream call, once the request was sent and until its answer is read.
    call: Option<CallId>,
    calls: Calls,
    /// True once Envoy has ended the stream.
    is_over: bool,
    /// Time at which a stream whose answer is complete gets reset.
    close_at: Option<Millis>,
    /// Facts about the request, for the line in the log.
    request: LoggedRequest,
    /// Time spent in the callbacks of bodies, in nanoseconds.
    spent_ns: u64,
    /// Route of the request, if the host knows clusters.
    route: Option<Route>,
    /// True if `creole-guard` should have checked the request's route, but did not.
    was_unchecked: bool,
}

/// Route that a translated request took through Envoy.
#[derive(Clone, Debug)]
pub struct Route {
    /// Name of the cluster that the route selects.
    pub cluster: String,
    /// True if `creole-guard` has checked the request's route.
    pub is_checked: bool,
}

#[derive(Debug)]
enum StreamState {
    /// State: the stream is not Creole's, or was already answered by this filter, so everything
    /// passes unchanged. The filter's own answer passes the response callbacks again.
    HandsOff,
    /// State: the request's body is being collected. `head` holds the headers for the upstream
    /// while the head is paused; `None` if the head was already sent.
    Collecting { head: Option<Vec<Header>>, body: Collected, pace: Pace },
    /// State: the request is refused. Its body is thrown away, up to `rest_bytes` bytes and until
    /// `until`, before the client gets the answer: see [`REFUSAL_MS`].
    Refusing { response: LocalResponse, rest_bytes: usize, until: Millis },
    /// State: the request is complete, and waits until steps of the exchange have asked what they
    /// need: see `calls`. `is_over` is true if the client has sent the end of its body.
    Preparing { head: Vec<Header>, is_over: bool },
    /// State: the request was sent, and the upstream has not answered yet.
    Waiting,
    /// State: the upstream's response is arriving. `length` is the length of the upstream's body.
    Answering { sent: Delivered, length: Option<usize>, received: usize },
}

/// Part of an answer that was delivered to the client.
#[derive(Debug)]
enum Delivered {
    Nothing,
    /// Head delivered: the body is written as it arrives.
    Head,
    /// Head delivered: the timer writes the body.
    Deferred(Deferred),
    /// Not delivered yet: a complete answer waits for the end of the upstream's response, which it
    /// replaces.
    Held(Held),
}

/// Complete answer that waits for the end of the upstream's response, which it replaces. Compared
/// with an answer from the filter, it passes the other filters as usual, and the upstream's
/// connection can be reused.
#[derive(Debug)]
struct Held {
    reply: Reply,
    /// Time until which the answer waits; then the filter sends it as a local response.
    until: Millis,
}

/// Progress of a stream, for the account of its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Progress: the client's body is being collected.
    Collects,
    /// Progress: the request is refused, and the client's body is being thrown away.
    Refuses,
    /// Progress: the request was sent, and the client has no part of the answer yet.
    Waits,
    /// Progress: the client has the head of the answer.
    Answers,
    /// Progress: the stream passes unchanged, or was answered by this filter.
    Ended,
}

/// Moment at which the client gets an answer from this filter.
#[derive(Clone, Copy, Debug)]
enum When {
    Now,
    /// Moment after the client has sent its whole request: see [`StreamState::Refusing`].
    AfterRequest,
}

impl When {
    fn of(is_now: bool) -> Self {
        if is_now { Self::Now } else { Self::AfterRequest }
    }

    fn is_now(self) -> bool {
        matches!(self, Self::Now)
    }
}

impl Stream {
    /// Returns a new stream. `seed` must differ for each stream of all replicas.
    #[must_use]
    pub fn new(config: Arc<Config>, refusals: Arc<Refusals>, seed: u128) -> Self {
        // A head that has left cannot wait for calls.
        let calls = Some(config.cluster_calls()).filter(|_| config.settings.pause_headers);
        let calls = calls.unwrap_or_default();
        let can = HostCan {
            ping: pings(&config),
            list_models: true,
            serve_others: true,
            ask_again: calls.any(),
            fetch: calls.fetches,
            call_services: calls.services,
            calls_at_once: if calls.any() { CALLS_AT_ONCE } else { 0 },
            later_answers_whole: calls.any(),
            ..HostCan::default()
        };
        let calls = Calls::new(calls.any());
        let mut exchange = Exchange::new(Arc::clone(&config), seed, can);
        exchange.remember(refusals);
        Self {
            exchange,
            config,
            state: StreamState::HandsOff,
            call: None,
            calls,
            is_over: false,
            close_at: None,
            request: LoggedRequest::default(),
            spent_ns: 0,
            route: None,
            was_unchecked: false,
        }
    }

    /// Returns true if the held head and body of this direction may still go on. Envoy crashes if a
    /// filter continues a stream that a limit has ended.
    #[must_use]
    pub fn may_continue(&self, side: Side) -> bool {
        let is_held = match side {
            Side::Request => matches!(self.state, StreamState::Waiting),
            Side::Response => self.deferred().is_some(),
        };
        is_held && !self.is_over
    }

    /// Returns true if callbacks in this direction need the head or chunk that they are about.
    #[must_use]
    pub fn reads(&self, side: Side) -> bool {
        match self.state {
            StreamState::HandsOff => false,
            StreamState::Collecting { .. }
            | StreamState::Preparing { .. }
            | StreamState::Refusing { .. } => true,
            StreamState::Waiting | StreamState::Answering { .. } => side == Side::Response,
        }
    }

    /// Adds the duration of a callback to the time spent on the stream.
    pub fn add_spent(&mut self, spent_ns: u64) {
        self.spent_ns = self.spent_ns.saturating_add(spent_ns);
    }

    /// Returns the number of body bytes that this stream and its exchange keep. The few bytes that
    /// a flowing stream keeps for its next event do not count, because the fixed memory counted for
    /// each stream covers them.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        let mut kept = self.exchange.held_bytes();
        let own = match &self.state {
            StreamState::Collecting { body, .. } => body.held_bytes(),
            StreamState::Answering { sent, .. } => {
                let flows = matches!(sent, Delivered::Head | Delivered::Deferred(_));
                if flows && kept <= FLOWING_BYTES_MAX && !self.exchange.is_collecting() {
                    kept = 0;
                }
                match sent {
                    Delivered::Nothing | Delivered::Head => 0,
                    Delivered::Deferred(deferred) => deferred.held_bytes(),
                    Delivered::Held(held) => held.reply.body.len(),
                }
            }
            StreamState::HandsOff
            | StreamState::Preparing { .. }
            | StreamState::Refusing { .. }
            | StreamState::Waiting => 0,
        };
        own.saturating_add(kept).saturating_add(self.calls.held_bytes())
    }

    /// Returns the number of bytes of the client's head that this stream and its exchange keep.
    #[must_use]
    pub fn head_bytes(&self) -> usize {
        let own = match &self.state {
            StreamState::Collecting { head: Some(head), .. }
            | StreamState::Preparing { head, .. } => heads::bytes(head),
            _ => 0,
        };
        own.saturating_add(self.exchange.head_bytes())
    }

    /// Returns true if Creole handles the request of this stream: translates it, or answers it.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        !matches!(self.state, StreamState::HandsOff) || self.exchange.is_ended()
    }

    /// Returns the stream's progress.
    #[must_use]
    pub fn progress(&self) -> Progress {
        match &self.state {
            StreamState::Collecting { .. } => Progress::Collects,
            StreamState::Refusing { .. } => Progress::Refuses,
            StreamState::Answering { sent: Delivered::Head | Delivered::Deferred(_), .. } => {
                Progress::Answers
            }
            StreamState::Preparing { .. }
            | StreamState::Waiting
            | StreamState::Answering { .. } => Progress::Waits,
            StreamState::HandsOff => Progress::Ended,
        }
    }

    /// Returns the name of the client's key.
    #[must_use]
    pub fn client_key(&self) -> Option<&str> {
        self.exchange.client_key()
    }

    /// Gives up the request because memory is scarce, and frees its memory at once. The error
    /// response is sent now in a callback of this stream (`is_callback`), else with the next tick.
    pub fn give_up(&mut self, is_callback: bool, now: Millis) -> Decision {
        if !matches!(self.state, StreamState::Refusing { .. }) {
            self.exchange.handle_failure(Failure::Overloaded, now);
            self.reply(When::AfterRequest, Vec::new(), now);
        }
        if is_callback {
            return self.refuse(Vec::new());
        }
        if let StreamState::Refusing { until, .. } = &mut self.state {
            *until = now;
        }
        Decision::pass()
    }

    /// Handles a tick: returns the actions that are due now.
    pub fn on_tick(&mut self, now: Millis) -> Vec<Action> {
        if self.close_at.is_some_and(|at| at <= now) {
            self.close_at = None;
            return vec![Action::CloseStream];
        }
        if let Some(reply) = self.take_held(Some(now)) {
            return self.reply_with(reply, When::Now, Vec::new(), now).actions;
        }
        if matches!(self.state, StreamState::Refusing { until, .. } if until <= now) {
            return self.refuse(Vec::new()).actions;
        }
        if let StreamState::Collecting { body, pace, .. } = &self.state
            && pace.end(body.size()) <= now
        {
            return self.fail(Failure::RequestTooSlow, When::Now, now, Vec::new()).actions;
        }
        if self.calls.has_failed() {
            return self.tell_failed(now);
        }
        if self.exchange.poll_timeout().is_none_or(|at| at > now) {
            return self.flush();
        }
        self.exchange.handle_timeout(now);
        // A round that is repeated after a pause has no open call meanwhile.
        if self.calls.are_open() || self.calls.are_behind() {
            return self.follow(now);
        }
        let mut calls = Vec::new();
        if self.is_answering() && self.begin_behind(&mut calls, now) {
            return self.hold_end_by_timer(calls, now);
        }
        let is_ended = self.exchange.is_ended();
        if self.deferred_mut().is_some() {
            let out = self.polled();
            if let Some(deferred) = self.deferred_mut() {
                deferred.push(&out, false);
            }
            if is_ended {
                let delay = if self.is_cut() { CUT_LINGER_MS } else { CLOSE_DELAY_MS };
                self.close_at = Some(now.saturating_add(delay));
            }
            return self.flush();
        }
        match self.state {
            // Envoy gives no way to write an error event here.
            StreamState::Answering { sent: Delivered::Head, .. } if is_ended => {
                vec![Action::CloseStream]
            }
            _ if is_ended => self.reply(When::Now, Vec::new(), now).actions,
            _ => Vec::new(),
        }
    }

    /// Returns the bytes that the exchange has for the client, and removes them from the exchange.
    fn polled(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        self.exchange.poll_body(&mut out);
        out
    }

    /// Returns true if these actions may end the stream while they are executed.
    #[must_use]
    pub fn ends_by(&self, actions: &[Action]) -> bool {
        let is_last = self.deferred().is_some_and(Deferred::has_ended);
        actions.iter().any(|action| match action {
            Action::ContinueRequest => true,
            Action::ContinueResponse => is_last,
            action => action.ends_stream(),
        })
    }

    /// Returns true if the next tick should come at once.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.calls.has_failed() || self.deferred().is_some_and(Deferred::is_due)
    }

    fn flush(&mut self) -> Vec<Action> {
        self.deferred_mut().map_or_else(Vec::new, Deferred::flush)
    }

    fn deferred(&self) -> Option<&Deferred> {
        match &self.state {
            StreamState::Answering { sent: Delivered::Deferred(deferred), .. } => Some(deferred),
            _ => None,
        }
    }

    fn deferred_mut(&mut self) -> Option<&mut Deferred> {
        match &mut self.state {
            StreamState::Answering { sent: Delivered::Deferred(deferred), .. } => Some(deferred),
            _ => None,
        }
    }

    /// Returns the decision to send the error response that a refused request keeps.
    fn refuse(&mut self, mut actions: Vec<Action>) -> Decision {
        if let StreamState::Refusing { response, .. } =
            std::mem::replace(&mut self.state, StreamState::HandsOff)
        {
            actions.push(Action::SendLocalResponse(response));
        }
        Decision::stop(actions)
    }

    fn set_sent(&mut self, now: Delivered) {
        if let StreamState::Answering { sent, .. } = &mut self.state {
            *sent = now;
        }
    }

    fn fail(
        &mut self,
        failure: Failure,
        when: When,
        now: Millis,
        actions: Vec<Action>,
    ) -> Decision {
        self.handle_failure(failure, now);
        self.reply(when, actions, now)
    }

    /// Reports a failure to the exchange: a failure of the upstream call if the request was sent,
    /// else a failure of the request.
    fn handle_failure(&mut self, failure: Failure, now: Millis) {
        match self.call {
            Some(call) => self.exchange.handle_call_failure(call, failure, now),
            None => self.exchange.handle_failure(failure, now),
        }
    }

    /// Ends the upstream call, if the request was sent.
    fn end_call(&mut self, end: End, now: Millis) {
        if let Some(call) = self.call {
            self.exchange.handle_call_end(call, end, now);
        }
    }

    /// Returns true if the upstream goes on sending an answer that is not read any more.
    fn is_cut(&mut self) -> bool {
        matches!(self.exchange.poll_cancel(), Some((_, Cancel::Cut)))
    }

    /// Returns the decision to send the answer of an exchange that has ended.
    fn reply(&mut self, when: When, actions: Vec<Action>, now: Millis) -> Decision {
        let reply = self.exchange.poll_reply().unwrap_or_default();
        self.reply_with(reply, when, actions, now)
    }

    fn reply_with(
        &mut self,
        reply: Reply,
        when: When,
        mut actions: Vec<Action>,
        now: Millis,
    ) -> Decision {
        let response = LocalResponse {
            status: reply.head.status,
            headers: reply.head.headers,
            body: reply.body,
        };
        self.calls.clear();
        self.state = match when {
            When::Now => {
                actions.push(Action::SendLocalResponse(response));
                StreamState::HandsOff
            }
            When::AfterRequest => {
                // The client may continue its body only up to this limit.
                let rest_bytes = self.config.settings.discarded_bytes_max();
                let until = now.saturating_add(REFUSAL_MS);
                StreamState::Refusing { response, rest_bytes, until }
            }
        };
        Decision::stop(actions)
    }
}

fn pings(config: &Config) -> Pings {
    if config.settings.deferred_flush { Pings::AfterHead } else { Pings::No }
}

/// Returns the action that removes a chunk from Envoy's buffer.
fn drain(side: Side, piece: &[u8]) -> Vec<Action> {
    if piece.is_empty() { Vec::new() } else { vec![Action::ReplaceBody(side, Vec::new())] }
}
