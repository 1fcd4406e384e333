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

mod answer;
mod list;
mod over;

use std::sync::Arc;

use creole::config::Config;
use creole::headers::Headers;
use creole::observe::log::Request;
use creole::{
    Cancel, Exchange, Failure, Header, HostCan, Millis, Pings, Refusals, Reply, RequestHead,
};

use crate::action::{Action, Decision, LocalResponse, Side};
use crate::collected::Collected;
use crate::deferred::Deferred;
use crate::heads;

/// Between an error event in the middle of a stream and the reset: what is written right before a
/// reset is lost on HTTP/2.
const CLOSE_DELAY_MS: u64 = 200;

/// How long an upstream has after a whole message to end its answer. A reset is the only end that can be
/// given to the client from here, and to some clients a broken stream is a failure whatever it said.
const LINGER_MS: u64 = 3000;

/// How long an upstream may go on behind a stop sequence which it does not know. It ends by itself, mostly soon,
/// and each answer of a client that uses such a sequence would break.
const CUT_LINGER_MS: u64 = 30_000;

/// How long an error waits for the end of the upstream's answer.
const HOLD_MS: u64 = 200;

/// One HTTP stream.
#[derive(Debug)]
pub struct Stream {
    exchange: Exchange,
    config: Arc<Config>,
    state: StreamState,
    /// Bytes of a body that is collected: here or in the exchange.
    collected_bytes: usize,
    /// When a stream that has said everything is reset.
    close_at: Option<Millis>,
    /// For the line in the log.
    request: Request,
    /// How long the callbacks of bodies took, in nanoseconds.
    spent_ns: u64,
    /// Where the request went, if the host knows clusters.
    route: Option<Route>,
    /// Nobody looked at where the request went, and it was to be looked at.
    was_unchecked: bool,
}

/// Where a translated request went.
#[derive(Clone, Debug)]
pub struct Route {
    /// The cluster of the route that its head has chosen.
    pub cluster: String,
    /// Whether `creole-guard` has looked at it.
    pub is_checked: bool,
}

#[derive(Debug)]
enum StreamState {
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
    Answering { sent: Delivered, length: Option<usize>, received: usize },
}

/// What the client has of an answer.
#[derive(Debug)]
enum Delivered {
    Nothing,
    /// The head. What follows is written as it comes.
    Head,
    /// The head. The timer writes what follows.
    Deferred(Deferred),
    /// Nothing yet of this answer, though it is complete: the one whose place it takes is not.
    Held(Held),
}

/// A whole answer that waits for the end of the upstream's. So it goes through the filters in front like every other
/// one, and the connection to the upstream stays whole; an answer from here would do neither.
#[derive(Debug)]
struct Held {
    reply: Reply,
    /// Until when.
    until: Millis,
}

/// When the client gets an answer from here.
#[derive(Clone, Copy, Debug)]
enum When {
    Now,
    /// Once it has sent everything: see [`StreamState::Refusing`].
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
            collected_bytes: 0,
            close_at: None,
            request: Request::default(),
            spent_ns: 0,
            route: None,
            was_unchecked: false,
        }
    }

    /// Whether callbacks of this side need what they are about.
    #[must_use]
    pub fn reads(&self, side: Side) -> bool {
        match self.state {
            StreamState::HandsOff => false,
            StreamState::Collecting { .. } | StreamState::Refusing { .. } => true,
            StreamState::Waiting | StreamState::Answering { .. } => side == Side::Response,
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
        if is_probe(method, path) && !heads::is_of_client(&head) {
            return Decision::pass();
        }
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
            RequestHead::Answered => return self.reply(when, Vec::new()),
            RequestHead::Translate => {}
        }
        if let Some(failure) = failure {
            return self.fail(failure, when, now, Vec::new());
        }
        if end_of_stream {
            self.exchange.handle_request_body(Vec::new(), now);
            return match self.exchange.poll_call(now) {
                None => self.reply(when, Vec::new()),
                // The upstream is asked for its models.
                Some(call) if call.body.is_empty() => self.send_head(&head, call),
                Some(_) => self.fail(Failure::RequestIncomplete, when, now, Vec::new()),
            };
        }
        let body = Collected::new(heads::length(&head));
        if paused {
            self.state = StreamState::Collecting { head: Some(head), body };
            return Decision::stop(Vec::new());
        }
        self.state = StreamState::Collecting { head: None, body };
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
            StreamState::Collecting { body, .. } => body,
            StreamState::Refusing { rest_bytes, .. } => {
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
        if matches!(self.state, StreamState::Refusing { .. }) {
            return self.refuse(Vec::new());
        }
        if matches!(self.state, StreamState::Collecting { .. }) {
            // Envoy has no buffer here that the body could be written to. Only a request with
            // trailers and without a content-length gets here.
            return self.fail(Failure::RequestIncomplete, When::Now, now, Vec::new());
        }
        Decision::pass()
    }

    /// The request's body is complete. `refusal`: when the client is told that it is refused.
    fn send(&mut self, refusal: When, mut actions: Vec<Action>, now: Millis) -> Decision {
        let StreamState::Collecting { head, body, .. } =
            std::mem::replace(&mut self.state, StreamState::Waiting)
        else {
            return Decision::go_on(actions);
        };
        self.collected_bytes = 0;
        self.exchange.handle_request_body(body.into_bytes(), now);
        let Some(call) = self.exchange.poll_call(now) else { return self.reply(refusal, actions) };
        actions.clear();
        if let (Some(head), Some(upstream)) = (head, self.config.upstreams.get(&call.upstream)) {
            let length = Some(call.body.len());
            let head = heads::for_upstream(&head, upstream, &call.path, call.headers, length);
            actions.push(Action::ReplaceHeaders(Side::Request, head));
        }
        actions.push(Action::ReplaceBody(Side::Request, call.body));
        Decision::go_on(actions)
    }

    /// Time passes.
    pub fn on_tick(&mut self, now: Millis) -> Vec<Action> {
        if self.close_at.is_some_and(|at| at <= now) {
            self.close_at = None;
            return vec![Action::CloseStream];
        }
        if let Some(reply) = self.take_held(Some(now)) {
            return self.reply_with(reply, When::Now, Vec::new()).actions;
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
            _ if is_ended => self.reply(When::Now, Vec::new()).actions,
            _ => Vec::new(),
        }
    }

    /// The bytes for the client.
    fn polled(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        self.exchange.poll_body(&mut out);
        out
    }

    /// Whether the next tick is to come at once.
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
        self.reply(when, actions)
    }

    /// Gives the answer of an exchange that has ended.
    fn reply(&mut self, when: When, actions: Vec<Action>) -> Decision {
        let reply = self.exchange.poll_reply().unwrap_or_default();
        self.reply_with(reply, when, actions)
    }

    fn reply_with(&mut self, reply: Reply, when: When, mut actions: Vec<Action>) -> Decision {
        self.collected_bytes = 0;
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
                StreamState::Refusing { response, rest_bytes }
            }
        };
        Decision::stop(actions)
    }
}

fn pings(config: &Config) -> Pings {
    if config.settings.deferred_flush { Pings::AfterHead } else { Pings::No }
}

/// Whether the path of a request is one that clients try before they begin. Where a web site is behind the
/// listener, too, these are its home page, and somebody's greeting.
fn is_probe(method: &str, path: &str) -> bool {
    let path = creole::text::words::before(path, b"?#");
    matches!(method, "GET" | "HEAD") && matches!(path, "/" | "/api/hello")
}

/// Takes a piece out of Envoy's hands.
fn drain(side: Side, piece: &[u8]) -> Vec<Action> {
    if piece.is_empty() { Vec::new() } else { vec![Action::ReplaceBody(side, Vec::new())] }
}
