//! One HTTP stream of Envoy: an [`Exchange`], and where its two heads are.
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
//! [`Stop`](crate::action::Flow::Stop) is answered to a piece only while the head of its side is held, or while the
//! request is collected; nothing is written outside of the callback of a piece, unless the stream is
//! deferred (`deferred`): then nothing is written inside of one.

use std::sync::Arc;

use creole::config::Config;
use creole::headers::Headers;
use creole::log::Request;
use creole::metrics::Counters;
use creole::report::Outcome;
use creole::{
    End, Exchange, Failure, Head, Header, Millis, Pings, Refusals, Reply, RequestHead,
    ResponseHead, Unreachable,
};

use crate::action::{Action, Decision, LocalResponse, Side};
use crate::collected::Collected;
use crate::deferred::Deferred;
use crate::details::{self, Break, Origin};
use crate::{heads, observe};

/// Between an error event in the middle of a stream and the reset: what is written right before a
/// reset is lost on HTTP/2.
const CLOSE_DELAY_MS: u64 = 200;

/// How long an upstream has after a whole message to end its answer. A reset is the only end that can be
/// given to the client from here, and to some clients a broken stream is a failure whatever it said.
const LINGER_MS: u64 = 3000;

/// The same for an upstream that goes on behind a stop sequence which it does not know. It ends by itself, mostly soon,
/// and each answer of a client that uses such a sequence would break.
const CUT_LINGER_MS: u64 = 30_000;

/// One HTTP stream.
#[derive(Debug)]
pub struct Stream {
    exchange: Exchange,
    config: Arc<Config>,
    state: State,
    /// Bytes of a body that is collected: here or in the exchange.
    collected_bytes: usize,
    /// When a stream that has said everything is reset.
    close_at: Option<Millis>,
    /// For the line in the log.
    request: Request,
    /// How long the callbacks of bodies took, in nanoseconds.
    spent_ns: u64,
}

#[derive(Debug)]
enum State {
    /// Not ours, or answered from here: whatever passes is right as it is. An answer from here
    /// passes the response callbacks again.
    HandsOff,
    /// The request's body is collected. `head` is the client's while it is paused; `None`: it has left.
    Collecting { head: Option<Vec<Header>>, body: Collected },
    /// The request is refused, and its body is thrown away up to so many bytes before the client is
    /// told: a client that is answered while it uploads sees its connection break instead.
    Refusing { response: LocalResponse, rest_bytes: usize },
    /// The upstream has the request.
    Waiting,
    /// The upstream answers. `length`: of the upstream's body.
    Answering { sent: Sent, length: Option<usize>, received: usize },
}

/// What the client has of an answer.
#[derive(Debug)]
enum Sent {
    Nothing,
    /// The head. What follows is written as it comes.
    Head,
    /// The head. The timer writes what follows.
    Deferred(Deferred),
}

/// When the client gets an answer from here.
#[derive(Clone, Copy, Debug)]
enum When {
    Now,
    /// Once it has sent everything: see [`State::Refusing`].
    AfterRequest,
}

impl When {
    fn of(is_now: bool) -> Self {
        if is_now { Self::Now } else { Self::AfterRequest }
    }
}

impl Stream {
    /// A stream that nothing is known of yet. `seed` must differ for each stream of all replicas.
    #[must_use]
    pub fn new(config: Arc<Config>, refusals: Arc<Refusals>, seed: u128) -> Self {
        let mut exchange = Exchange::new(Arc::clone(&config), seed, pings(&config));
        exchange.remember(refusals);
        exchange.leave_others();
        Self {
            exchange,
            config,
            state: State::HandsOff,
            collected_bytes: 0,
            close_at: None,
            request: Request::default(),
            spent_ns: 0,
        }
    }

    /// Whether callbacks of this side need what they are about.
    #[must_use]
    pub fn reads(&self, side: Side) -> bool {
        match self.state {
            State::HandsOff => false,
            State::Collecting { .. } | State::Refusing { .. } => true,
            State::Waiting | State::Answering { .. } => side == Side::Response,
        }
    }

    /// A callback took so long.
    pub fn add_spent(&mut self, spent_ns: u64) {
        self.spent_ns = self.spent_ns.saturating_add(spent_ns);
    }

    /// Bytes that are kept here, for the limit of the whole VM.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        let waiting = self.deferred().map_or(0, Deferred::held_bytes);
        self.collected_bytes.saturating_add(waiting)
    }

    /// The request's head. `failure`: why it cannot be served, if it is ours.
    pub fn on_request_headers(
        &mut self,
        head: Vec<Header>,
        end_of_stream: bool,
        failure: Option<Failure>,
        now: Millis,
    ) -> Decision {
        let method = head.value(":method").unwrap_or_default();
        let path = head.value(":path").unwrap_or_default();
        self.request = Request {
            method: method.to_owned(),
            path: path.to_owned(),
            began: now,
            ..Request::default()
        };
        let paused = self.config.settings.pause_headers;
        let mut without_length = Vec::new();
        let seen = if paused {
            &head
        } else {
            // A body that is too large is refused once it is here, like every other bad body: an
            // answer to the head would break the connection of a client that uploads.
            for header in &head {
                if header.0 != "content-length" {
                    without_length.push(header.clone());
                }
            }
            &without_length
        };
        // Without paused heads, waiting here would keep the body from coming.
        let when = When::of(end_of_stream || !paused);
        match self.exchange.handle_request_head(method, path, seen) {
            RequestHead::PassThrough => return Decision::pass(),
            RequestHead::Reply(reply) => {
                return self.reply(reply, when, Vec::new());
            }
            RequestHead::Translate => {}
        }
        if let Some(failure) = failure {
            return self.fail(failure, when, now, Vec::new());
        }
        if end_of_stream {
            return match self.exchange.handle_request(&[], now) {
                Err(reply) => self.reply(*reply, when, Vec::new()),
                Ok(_) => self.fail(Failure::RequestIncomplete, when, now, Vec::new()),
            };
        }
        let body = Collected::new(heads::length(&head));
        if paused {
            self.state = State::Collecting { head: Some(head), body };
            return Decision::stop(Vec::new());
        }
        self.state = State::Collecting { head: None, body };
        let early =
            heads::for_upstream_early(&head, &self.config, &self.exchange).unwrap_or_default();
        Decision::go_on(vec![Action::ReplaceHeaders(Side::Request, early)])
    }

    /// A piece of the request's body. `room_bytes`: how much this stream may hold.
    pub fn on_request_body(
        &mut self,
        piece: Vec<u8>,
        end_of_stream: bool,
        room_bytes: usize,
        now: Millis,
    ) -> Decision {
        let drained = drain(Side::Request, &piece);
        let body = match &mut self.state {
            State::Collecting { body, .. } => body,
            State::Refusing { rest_bytes, .. } => {
                *rest_bytes = rest_bytes.saturating_sub(piece.len());
                let over = end_of_stream || *rest_bytes == 0;
                return if over { self.refuse(drained) } else { Decision::stop(drained) };
            }
            _ => return Decision::pass(),
        };
        let size = body.size().saturating_add(piece.len());
        let failure = if size > self.config.settings.request_bytes_max {
            Some(Failure::RequestTooLarge)
        } else if !body.push(piece, room_bytes) {
            Some(Failure::Overloaded)
        } else {
            None
        };
        if let Some(failure) = failure {
            return self.fail(failure, When::of(end_of_stream), now, drained);
        }
        self.collected_bytes = body.held_bytes();
        // A body that is as long as it says is complete, even if trailers follow: once they come,
        // nothing can be written any more.
        if end_of_stream || body.is_complete() {
            return self.send(When::of(end_of_stream), drained, now);
        }
        Decision::stop(drained)
    }

    /// Trailers of a request whose body has not ended otherwise.
    pub fn on_request_trailers(&mut self, now: Millis) -> Decision {
        if matches!(self.state, State::Refusing { .. }) {
            return self.refuse(Vec::new());
        }
        if matches!(self.state, State::Collecting { .. }) {
            // Envoy has no buffer here that the body could be written to. Only a request with
            // trailers and without a content-length gets here.
            return self.fail(Failure::RequestIncomplete, When::Now, now, Vec::new());
        }
        Decision::pass()
    }

    /// The request's body is complete. `refusal`: when the client is told that it is refused.
    fn send(&mut self, refusal: When, mut actions: Vec<Action>, now: Millis) -> Decision {
        let State::Collecting { head, body, .. } =
            std::mem::replace(&mut self.state, State::Waiting)
        else {
            return Decision::go_on(actions);
        };
        self.collected_bytes = 0;
        let request = match self.exchange.handle_request(body.bytes(), now) {
            Ok(request) => request,
            Err(reply) => return self.reply(*reply, refusal, actions),
        };
        drop(body);
        actions.clear();
        if let (Some(head), Some(upstream)) = (head, self.config.upstreams.get(&request.upstream)) {
            let length = Some(request.body.len());
            let head = heads::for_upstream(&head, upstream, &request.path, request.headers, length);
            actions.push(Action::ReplaceHeaders(Side::Request, head));
        }
        actions.push(Action::ReplaceBody(Side::Request, request.body));
        Decision::go_on(actions)
    }

    /// The response's head: the upstream's, or Envoy's own. An answer from here comes by as well.
    pub fn on_response_headers(
        &mut self,
        head: &[Header],
        end_of_stream: bool,
        details: &str,
        now: Millis,
    ) -> Decision {
        let status = heads::status(head);
        let collecting = match self.state {
            State::HandsOff | State::Answering { .. } => return Decision::pass(),
            // Envoy or another filter answered before the body was read: send the refusal that was kept.
            State::Refusing { .. } => return self.refuse(Vec::new()),
            State::Collecting { .. } => true,
            State::Waiting => false,
        };
        match details::origin(details, status, !collecting) {
            Origin::Envoy(failure) => {
                // The answer that takes the place of Envoy's has details of its own.
                details.clone_into(&mut self.request.details);
                return self.fail(failure, When::Now, now, Vec::new());
            }
            Origin::Upstream if collecting => {
                // Only without paused heads: it did not wait for the request.
                let failure = match status {
                    413 => Failure::RequestTooLarge,
                    503 => Failure::NoHealthyUpstream,
                    _ => Failure::Unreachable(Unreachable::TooEarly),
                };
                return self.fail(failure, When::Now, now, Vec::new());
            }
            Origin::Upstream => {}
        }
        if self.exchange.handle_response_head(status, head, now) == ResponseHead::PassThrough {
            self.state = State::HandsOff;
            return Decision::pass();
        }
        self.state =
            State::Answering { sent: Sent::Nothing, length: heads::length(head), received: 0 };
        if end_of_stream {
            let mut out = Vec::new();
            let head = self.exchange.handle_response_end(End::Complete, now, &mut out);
            return self.reply_with(head, out, Vec::new());
        }
        if self.config.settings.pause_headers {
            return Decision::stop(Vec::new());
        }
        let Some(head) = self.exchange.take_head() else { return Decision::pass() };
        self.set_sent(Sent::Head);
        let head = heads::for_client(head, None);
        Decision::go_on(vec![Action::ReplaceHeaders(Side::Response, head)])
    }

    /// A piece of the response's body. `room_bytes`: how much this stream may hold.
    pub fn on_response_body(
        &mut self,
        piece: &[u8],
        end_of_stream: bool,
        room_bytes: usize,
        now: Millis,
    ) -> Decision {
        let State::Answering { sent, length, received } = &mut self.state else {
            return Decision::pass();
        };
        let head_sent = !matches!(sent, Sent::Nothing);
        *received = received.saturating_add(piece.len());
        let complete = end_of_stream || *length == Some(*received);
        let mut out = Vec::new();
        let mut head = self.exchange.handle_response_body(piece, now, &mut out);
        // A stream flows, though some of its pieces give nothing; what it keeps has limits of its own.
        let collects = head.is_none() && (!head_sent || self.exchange.is_collecting());
        self.collected_bytes =
            if collects { self.collected_bytes.saturating_add(piece.len()) } else { 0 };
        if self.held_bytes() > room_bytes {
            let late = self.exchange.handle_failure(Failure::Overloaded, now, &mut out);
            head = head.or(late);
        } else if complete {
            let late = self.exchange.handle_response_end(End::Complete, now, &mut out);
            head = head.or(late);
        }
        let cut = self.exchange.is_ended() && !complete;
        if self.exchange.is_ended() {
            self.collected_bytes = 0;
        }
        if head_sent {
            if cut && self.close_at.is_none() {
                let whole = self.exchange.report().outcome == Outcome::Answered;
                let delay = match whole {
                    true if self.exchange.leaves_upstream() => CUT_LINGER_MS,
                    true => LINGER_MS,
                    false => CLOSE_DELAY_MS,
                };
                self.close_at = Some(now.saturating_add(delay));
            }
            return self.go_on(piece, end_of_stream, out);
        }
        match head {
            Some(head) if !cut => {
                if self.config.settings.deferred_flush && !complete {
                    return self.defer(heads::for_client(head, None), &out);
                }
                self.set_sent(Sent::Head);
                let length = complete.then_some(out.len());
                Decision::go_on(vec![
                    Action::ReplaceHeaders(Side::Response, heads::for_client(head, length)),
                    Action::ReplaceBody(Side::Response, out),
                ])
            }
            None if !complete && !cut => Decision::stop(drain(Side::Response, piece)),
            head => self.reply_with(head, out, drain(Side::Response, piece)),
        }
    }

    /// Gives `out`, which came of `piece`, to a client that has the head.
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

    /// Trailers of a response whose body has not ended otherwise.
    pub fn on_response_trailers(&mut self, now: Millis) -> Decision {
        let State::Answering { sent, .. } = &mut self.state else { return Decision::pass() };
        let mut out = Vec::new();
        let head = self.exchange.handle_response_end(End::Complete, now, &mut out);
        self.collected_bytes = 0;
        match sent {
            Sent::Nothing => self.reply_with(head, out, Vec::new()),
            Sent::Deferred(deferred) => {
                deferred.push(&out, true);
                Decision::stop(Vec::new())
            }
            Sent::Head if out.is_empty() => Decision::pass(),
            Sent::Head => {
                // What is missing cannot be written any more. A stream that breaks is retried; one that
                // ends early is believed.
                self.state = State::HandsOff;
                Decision::stop(vec![Action::CloseStream])
            }
        }
    }

    /// Time passes.
    pub fn on_tick(&mut self, now: Millis) -> Vec<Action> {
        if self.close_at.is_some_and(|at| at <= now) {
            self.close_at = None;
            return vec![Action::CloseStream];
        }
        if self.exchange.poll_timeout().is_none_or(|at| at > now) {
            return self.flush();
        }
        let mut out = Vec::new();
        let head = self.exchange.handle_timeout(now, &mut out);
        if let Some(deferred) = self.deferred_mut() {
            deferred.push(&out, false);
            if self.exchange.is_ended() {
                let cut = self.exchange.leaves_upstream();
                let delay = if cut { CUT_LINGER_MS } else { CLOSE_DELAY_MS };
                self.close_at = Some(now.saturating_add(delay));
            }
            return self.flush();
        }
        let head_sent = matches!(self.state, State::Answering { sent: Sent::Head, .. });
        match head {
            Some(head) if !head_sent => self.reply_with(Some(head), out, Vec::new()).actions,
            // Envoy gives no way to write an error event here.
            _ if self.exchange.is_ended() => vec![Action::CloseStream],
            _ => Vec::new(),
        }
    }

    /// Whether the next tick is to come at once.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.deferred().is_some_and(Deferred::is_due)
    }

    /// From here on the timer writes.
    fn defer(&mut self, head: Vec<Header>, out: &[u8]) -> Decision {
        let mut deferred = Deferred::default();
        deferred.push(out, false);
        self.set_sent(Sent::Deferred(deferred));
        Decision::pause(vec![
            Action::ReplaceHeaders(Side::Response, head),
            Action::ReplaceBody(Side::Response, Vec::new()),
        ])
    }

    fn flush(&mut self) -> Vec<Action> {
        self.deferred_mut().map_or_else(Vec::new, Deferred::flush)
    }

    fn deferred(&self) -> Option<&Deferred> {
        match &self.state {
            State::Answering { sent: Sent::Deferred(deferred), .. } => Some(deferred),
            _ => None,
        }
    }

    fn deferred_mut(&mut self) -> Option<&mut Deferred> {
        match &mut self.state {
            State::Answering { sent: Sent::Deferred(deferred), .. } => Some(deferred),
            _ => None,
        }
    }

    /// The stream is over, well or not: counts and logs.
    pub fn on_log(&mut self, details: &str, counters: &mut Counters, now: Millis) -> Vec<Action> {
        let mut actions = Vec::new();
        // An exchange that passed through stays open; it is nobody's business here.
        if matches!(self.state, State::HandsOff) && !self.exchange.is_ended() {
            return actions;
        }
        if !self.exchange.is_ended() {
            // Nothing can be sent any more.
            let mut unsent = Vec::new();
            let complete = !matches!(self.state, State::Collecting { .. });
            match details::broken_by(details, complete) {
                Break::Client => self.exchange.handle_client_gone(now),
                Break::Upstream
                    if matches!(self.state, State::Answering { sent: Sent::Nothing, .. }) =>
                {
                    // Envoy gives up an answer of which nothing was sent, even one that is complete.
                    self.exchange.handle_failure(Failure::BrokeOff, now, &mut unsent);
                }
                Break::Upstream => {
                    self.exchange.handle_response_end(End::Aborted, now, &mut unsent);
                }
                Break::Timeout => {
                    let failure =
                        if complete { Failure::Timeout } else { Failure::RequestIncomplete };
                    self.exchange.handle_failure(failure, now, &mut unsent);
                }
            }
        }
        if self.spent_ns > 0 {
            self.exchange.add_translation_us(self.spent_ns / 1000);
        }
        if self.request.details.is_empty() {
            details.clone_into(&mut self.request.details);
        }
        let report = self.exchange.report();
        observe::finished(&report, &self.request, &self.config, counters, now, &mut actions);
        actions
    }

    /// Gives the answer that was kept.
    fn refuse(&mut self, mut actions: Vec<Action>) -> Decision {
        if let State::Refusing { response, .. } =
            std::mem::replace(&mut self.state, State::HandsOff)
        {
            actions.push(Action::SendLocalResponse(response));
        }
        Decision::stop(actions)
    }

    fn set_sent(&mut self, now: Sent) {
        if let State::Answering { sent, .. } = &mut self.state {
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
        let reply = self.exchange.reply_to(failure, now);
        self.reply(reply, when, actions)
    }

    fn reply_with(&mut self, head: Option<Head>, body: Vec<u8>, actions: Vec<Action>) -> Decision {
        let reply = self.exchange.whole_reply(head, body);
        self.reply(reply, When::Now, actions)
    }

    fn reply(&mut self, reply: Reply, when: When, mut actions: Vec<Action>) -> Decision {
        self.collected_bytes = 0;
        let response = LocalResponse {
            status: reply.head.status,
            headers: reply.head.headers,
            body: reply.body,
        };
        self.state = match when {
            When::Now => {
                actions.push(Action::SendLocalResponse(response));
                State::HandsOff
            }
            When::AfterRequest => {
                // Not all of the rest is waited for.
                let rest_bytes = self.config.settings.discarded_bytes_max();
                State::Refusing { response, rest_bytes }
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
