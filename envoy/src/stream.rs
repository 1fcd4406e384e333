//! An HTTP stream of Envoy: an [`Exchange`], and the state of its two heads.
//!
//! ```text
//!                body complete          upstream's head
//!   Collecting ────────────────▶ Waiting ─────────────▶ Answering
//!    │      └── refused ──▶ Refusing │                    │
//!    │    client has sent all │       │                    │
//!    └────────────────────────┴───────┴────────────────────┴─▶ HandsOff: answered from here
//! ```
//!
//! Invariants: a piece that was read is always taken out of Envoy's buffer in the same callback;
//! [`Stop`](crate::action::Flow::Stop) is answered to a piece only while the head of its side is
//! held, or while the request is collected; nothing is written outside of the callback of a piece,
//! unless the stream is deferred (`deferred`): then nothing is written inside of one.

mod answer;
mod list;
mod over;
mod request;

use std::sync::Arc;

use creole::config::Config;
use creole::observe::log::Request;
use creole::{Cancel, Exchange, Failure, Header, HostCan, Millis, Pace, Pings, Refusals, Reply};

use crate::action::{Action, Decision, LocalResponse, Side};
use crate::collected::Collected;
use crate::deferred::Deferred;
use crate::heads;

/// Time between an error event in the middle of a stream and the reset: what is written right
/// before a reset is lost on HTTP/2.
const CLOSE_DELAY_MS: u64 = 200;

/// Time that an upstream has after a whole message to end its answer. A reset is the only end that
/// can be given to the client from here, and to some clients a broken stream is a failure whatever
/// it said.
const LINGER_MS: u64 = 3000;

/// Time that an upstream may go on behind a stop sequence which it does not know. It ends by
/// itself, mostly soon, and each answer of a client that uses such a sequence would break.
const CUT_LINGER_MS: u64 = 30_000;

/// Time that an error waits for the end of the upstream's answer.
const HOLD_MS: u64 = 200;

/// Bytes that each stream that flows may keep for its next event: a part of what the filter counts
/// for each stream.
const FLOWING_BYTES_MAX: usize = 4 << 10;

/// Time for which a refused request may go on to send its body before it is answered. A client that
/// is answered while it uploads may see its connection break instead, and a stream without an end
/// must not be kept for ever.
const REFUSAL_MS: u64 = 1000;

/// An HTTP stream of Envoy, with its exchange.
#[derive(Debug)]
pub struct Stream {
    exchange: Exchange,
    config: Arc<Config>,
    state: StreamState,
    /// Time when the stream, which has said everything, is reset.
    close_at: Option<Millis>,
    /// Facts about the request, for the line in the log.
    request: Request,
    /// Time spent in the callbacks of bodies, in nanoseconds.
    spent_ns: u64,
    /// Route of the request, if the host knows clusters.
    route: Option<Route>,
    /// True if `creole-guard` should have checked where the request went, and nobody did.
    was_unchecked: bool,
}

/// Route that a translated request took.
#[derive(Clone, Debug)]
pub struct Route {
    /// Name of the cluster of the route that the request's head has chosen.
    pub cluster: String,
    /// True if `creole-guard` has looked at the request.
    pub is_checked: bool,
}

#[derive(Debug)]
enum StreamState {
    /// The stream is not ours, or was answered from here: whatever passes is right as it is. An
    /// answer from here passes the response callbacks again.
    HandsOff,
    /// The request's body is collected. `head` is what the upstream needs of the client's head
    /// while that is paused; `None`: it has left.
    Collecting { head: Option<Vec<Header>>, body: Collected, pace: Pace },
    /// The request is refused. Its body is thrown away, up to so many bytes and until this time,
    /// before the client gets the answer: see [`REFUSAL_MS`].
    Refusing { response: LocalResponse, rest_bytes: usize, until: Millis },
    /// The upstream has the request.
    Waiting,
    /// The upstream answers. `length`: of the upstream's body.
    Answering { sent: Delivered, length: Option<usize>, received: usize },
}

/// The part of an answer that the client has.
#[derive(Debug)]
enum Delivered {
    Nothing,
    /// The client has the head. What follows is written as it comes.
    Head,
    /// The client has the head. The timer writes what follows.
    Deferred(Deferred),
    /// The client has nothing. Its answer is complete, but waits for the end of the upstream's
    /// answer, whose place it takes.
    Held(Held),
}

/// A whole answer that waits for the end of the upstream's. So it goes through the filters in front
/// like every other one, and the connection to the upstream stays whole; an answer from here would
/// do neither.
#[derive(Debug)]
struct Held {
    reply: Reply,
    /// Time until which the answer waits; then it is sent from this filter.
    until: Millis,
}

/// Progress of a stream, for the count of its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The client's body is collected.
    Collects,
    /// The client's body is thrown away before a refusal.
    Refuses,
    /// The upstream has the request, and the client nothing of the answer.
    Waits,
    /// The client has the head of the answer.
    Answers,
    /// The stream passes, or was answered from here.
    Ended,
}

/// Moment at which the client gets an answer from this filter.
#[derive(Clone, Copy, Debug)]
enum When {
    Now,
    /// Once the client has sent everything: see [`StreamState::Refusing`].
    AfterRequest,
}

impl When {
    fn of(is_now: bool) -> Self {
        if is_now { Self::Now } else { Self::AfterRequest }
    }
}

impl Stream {
    /// Returns a stream that nothing is known of yet. `seed` must differ for each stream of all
    /// replicas.
    #[must_use]
    pub fn new(config: Arc<Config>, refusals: Arc<Refusals>, seed: u128) -> Self {
        let can = HostCan {
            ping: pings(&config),
            list_models: true,
            serve_others: true,
            ..HostCan::default()
        };
        let mut exchange = Exchange::new(Arc::clone(&config), seed, can);
        exchange.remember(refusals);
        Self {
            exchange,
            config,
            state: StreamState::HandsOff,
            close_at: None,
            request: Request::default(),
            spent_ns: 0,
            route: None,
            was_unchecked: false,
        }
    }

    /// Returns true if callbacks of this side need what they are about.
    #[must_use]
    pub fn reads(&self, side: Side) -> bool {
        match self.state {
            StreamState::HandsOff => false,
            StreamState::Collecting { .. } | StreamState::Refusing { .. } => true,
            StreamState::Waiting | StreamState::Answering { .. } => side == Side::Response,
        }
    }

    /// Adds the time that a callback took.
    pub fn add_spent(&mut self, spent_ns: u64) {
        self.spent_ns = self.spent_ns.saturating_add(spent_ns);
    }

    /// Returns the bytes of bodies that are kept here and in the exchange. Of a stream that flows
    /// the little that waits for its next event does not count: each stream counts for more than
    /// that.
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
            StreamState::HandsOff | StreamState::Refusing { .. } | StreamState::Waiting => 0,
        };
        own.saturating_add(kept)
    }

    /// Returns the bytes of the client's head that are kept here and in the exchange.
    #[must_use]
    pub fn head_bytes(&self) -> usize {
        let own = match &self.state {
            StreamState::Collecting { head: Some(head), .. } => heads::bytes(head),
            _ => 0,
        };
        own.saturating_add(self.exchange.head_bytes())
    }

    /// Returns true if requests of this stream are Creole's: it translates them, or answers them.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        !matches!(self.state, StreamState::HandsOff) || self.exchange.is_ended()
    }

    /// Returns how far the stream is.
    #[must_use]
    pub fn progress(&self) -> Progress {
        match &self.state {
            StreamState::Collecting { .. } => Progress::Collects,
            StreamState::Refusing { .. } => Progress::Refuses,
            StreamState::Answering { sent: Delivered::Head | Delivered::Deferred(_), .. } => {
                Progress::Answers
            }
            StreamState::Waiting | StreamState::Answering { .. } => Progress::Waits,
            StreamState::HandsOff => Progress::Ended,
        }
    }

    /// Returns the name of the client's key.
    #[must_use]
    pub fn client_key(&self) -> Option<&str> {
        self.exchange.client_key()
    }

    /// Gives up the request because memory is scarce: frees all of it at once. The answer goes out
    /// now or, where this is no callback of the stream, with the next tick.
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

    /// Lets time pass: returns what is due now.
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
        if self.exchange.poll_timeout().is_none_or(|at| at > now) {
            return self.flush();
        }
        self.exchange.handle_timeout(now);
        let is_ended = self.exchange.is_ended();
        if self.deferred_mut().is_some() {
            let out = self.polled();
            if let Some(deferred) = self.deferred_mut() {
                deferred.push(&out, false);
            }
            if is_ended {
                let cut = self.exchange.poll_cancel() == Some(Cancel::Cut);
                let delay = if cut { CUT_LINGER_MS } else { CLOSE_DELAY_MS };
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

    /// Takes the bytes that the exchange has for the client.
    fn polled(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        self.exchange.poll_body(&mut out);
        out
    }

    /// Returns true if the next tick is to come at once.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.deferred().is_some_and(Deferred::is_due)
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

    /// Gives the answer that was kept.
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
        self.exchange.handle_failure(failure, now);
        self.reply(when, actions, now)
    }

    /// Gives the answer of an exchange that has ended.
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
        self.state = match when {
            When::Now => {
                actions.push(Action::SendLocalResponse(response));
                StreamState::HandsOff
            }
            When::AfterRequest => {
                // Not all of the rest is waited for.
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

/// Takes a piece out of Envoy's hands.
fn drain(side: Side, piece: &[u8]) -> Vec<Action> {
    if piece.is_empty() { Vec::new() } else { vec![Action::ReplaceBody(side, Vec::new())] }
}
