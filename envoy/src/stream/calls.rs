//! Calls of a stream besides its own request: questions of the exchange's steps, and later rounds
//! of the answer.
//!
//! Before the request, calls are made while the request is held ([`StreamState::Preparing`]).
//! Behind the upstream's first answer, the end of the stream is held: what the client has not got
//! then is one last write. Envoy gives the answer to a call whole, and never in the callback that
//! made the call.

use creole::config::{Address, request_path, url_parts};
use creole::{Call, CallId, End, Failure, Head, Header, Millis, To, Unreachable};

use super::{CLOSE_DELAY_MS, Delivered, LINGER_MS, Stream, StreamState, When, drain};
use crate::action::{Action, Decision, Flow, HttpCall, Side};
use crate::deferred::Deferred;
use crate::heads;

/// Time that Envoy waits for an answer longer than the exchange does, in milliseconds. The exchange
/// gives a call up first, and says so in the right words.
const TIMEOUT_MS_MORE: Millis = 2000;

/// Calls of a stream that are open.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// True if the configuration names clusters for calls.
    are_on: bool,
    /// True if the end of the upstream's first answer is held, because calls follow the answer.
    are_behind: bool,
    open: Vec<OpenCall>,
    /// Calls that Envoy did not take. The next tick tells the exchange, because the callback that
    /// made the calls has its result already.
    failed: Vec<(CallId, Failure)>,
    /// Cluster to which the stream's own request went, once the host has reported it.
    cluster: String,
    /// Authority in the client's head.
    authority: String,
}

#[derive(Debug)]
struct OpenCall {
    id: CallId,
    /// Size of the request's body, in bytes.
    bytes: usize,
}

impl Calls {
    pub(super) fn new(are_on: bool) -> Self {
        Self { are_on, ..Self::default() }
    }

    /// Returns true if the end of the upstream's first answer is held.
    pub(super) fn are_behind(&self) -> bool {
        self.are_behind
    }

    /// Returns true if an answer is awaited, or the failure of a call has to be told.
    pub(super) fn are_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Returns true if the next tick should come at once.
    pub(super) fn has_failed(&self) -> bool {
        !self.failed.is_empty()
    }

    /// Notes the authority that the client named.
    pub(super) fn note_client(&mut self, authority: &str) {
        if self.are_on {
            authority.clone_into(&mut self.authority);
        }
    }

    /// Notes the cluster to which the stream's own request went.
    pub(super) fn note_cluster(&mut self, cluster: &str) {
        if self.are_on {
            cluster.clone_into(&mut self.cluster);
        }
    }

    /// Returns the number of bytes of requests whose answers are awaited.
    pub(super) fn held_bytes(&self) -> usize {
        self.open.iter().map(|call| call.bytes).fold(0, usize::saturating_add)
    }

    pub(super) fn clear(&mut self) {
        (self.open, self.failed) = (Vec::new(), Vec::new());
    }

    /// Removes an open call. Returns false if the call is not open.
    fn end(&mut self, id: CallId) -> bool {
        let before = self.open.len();
        self.open.retain(|call| call.id != id);
        self.open.len() < before
    }
}

impl Stream {
    /// Makes the calls that are due. Returns the call of the client's answer that goes the way of
    /// the client's request, because no request was sent yet.
    pub(super) fn make_calls(&mut self, actions: &mut Vec<Action>, now: Millis) -> Option<Call> {
        let is_first = self.call.is_none() && !self.is_answering();
        while let Some(call) = self.exchange.poll_call(now) {
            if is_first && self.exchange.is_for_client(call.id) {
                return Some(call);
            }
            match self.written(&call, now) {
                Ok(request) => {
                    self.calls.open.push(OpenCall { id: call.id, bytes: call.body.len() });
                    actions.push(Action::Call(HttpCall { body: call.body, ..request }));
                }
                Err(failure) => self.exchange.handle_call_failure(call.id, failure, now),
            }
        }
        None
    }

    pub(super) fn is_answering(&self) -> bool {
        matches!(self.state, StreamState::Answering { .. })
    }

    /// Returns the request for a call, without its body.
    fn written(&self, call: &Call, now: Millis) -> Result<HttpCall, Failure> {
        let (cluster, headers) = match &call.to {
            To::Service(service) => (&service.cluster, head_for(call, &service.url)?),
            To::Web(fetch) => (&fetch.cluster, head_for(call, &fetch.url)?),
            To::Upstream(name) => {
                let upstream = self.config.upstreams.get(name).ok_or(Failure::NoRoute)?;
                // The route has led the first request to this cluster, and the guard has let it
                // pass.
                let is_clients = self.exchange.is_for_client(call.id);
                let (scheme, authority) = match Address::parse(&upstream.url) {
                    Ok(address) => of_address(address),
                    Err(_) if is_clients => ("http", self.calls.authority.as_str()),
                    // The client must not choose a host behind a cluster that its route does not
                    // lead to.
                    Err(_) => ("http", upstream.cluster.as_str()),
                };
                let cluster = if is_clients { &self.calls.cluster } else { &upstream.cluster };
                (cluster, heads::for_call(call, (scheme, authority), &call.path))
            }
            To::Document { .. } => return Err(Failure::NoRoute),
        };
        if cluster.is_empty() {
            return Err(Failure::NoRoute);
        }
        let wait_ms = self.exchange.call_until(call.id).unwrap_or(now).saturating_sub(now);
        Ok(HttpCall {
            id: call.id,
            cluster: cluster.clone(),
            headers,
            body: Vec::new(),
            timeout_ms: wait_ms.saturating_add(TIMEOUT_MS_MORE).try_into().unwrap_or(u32::MAX),
        })
    }

    /// Notes a call that Envoy did not take.
    pub fn note_refused_call(&mut self, id: CallId, failure: Failure) {
        if self.calls.open.iter().any(|call| call.id == id) {
            self.calls.failed.push((id, failure));
        }
    }

    /// Returns the maximum number of bytes to read of the answer to a call.
    #[must_use]
    pub fn call_bytes_max(&self, id: CallId) -> usize {
        self.exchange.call_bytes_max(id)
    }

    /// Handles the whole answer to a call; without a head, the call has failed. `is_whole` is false
    /// if the body was cut. `fits` reserves memory for all that this stream holds.
    pub fn on_call_response(
        &mut self,
        id: CallId,
        head: &[Header],
        (body, is_whole): (&[u8], bool),
        fits: &mut dyn FnMut(usize) -> bool,
        now: Millis,
    ) -> Decision {
        if !self.calls.end(id) {
            return Decision::pass();
        }
        let status = heads::status(head);
        let failure = if !fits(self.held_bytes().saturating_add(body.len())) {
            Some(Failure::Overloaded)
        } else if head.is_empty() {
            Some(Failure::Unreachable(Unreachable::Closed))
        } else {
            failure_of_envoy(status, body)
        };
        if let Some(failure) = failure {
            self.exchange.handle_call_failure(id, failure, now);
        } else {
            self.exchange.handle_call_head(id, status, head, now);
            self.exchange.handle_call_body(id, body, now);
            let end = if is_whole { End::Complete } else { End::Aborted };
            self.exchange.handle_call_end(id, end, now);
        }
        Decision::go_on(self.follow(now))
    }

    /// Tells the exchange of the calls that Envoy did not take.
    pub(super) fn tell_failed(&mut self, now: Millis) -> Vec<Action> {
        for (id, failure) in std::mem::take(&mut self.calls.failed) {
            if self.calls.end(id) {
                self.exchange.handle_call_failure(id, failure, now);
            }
        }
        self.follow(now)
    }

    /// Goes on after an event of a call: forgets cancelled calls, makes the calls that are due, and
    /// sends the request, or the rest of the answer, if nothing is awaited any more.
    pub(super) fn follow(&mut self, now: Millis) -> Vec<Action> {
        let mut actions = Vec::new();
        let first = self.make_calls(&mut actions, now);
        self.forget_cancelled();
        if matches!(self.state, StreamState::Preparing { .. }) {
            actions.append(&mut self.go_on_before(first, now));
        } else {
            actions.append(&mut self.go_on_behind(now));
        }
        actions
    }

    pub(super) fn forget_cancelled(&mut self) {
        while let Some((id, _)) = self.exchange.poll_cancel() {
            self.calls.end(id);
        }
    }

    /// Sends the held request, or the exchange's own answer.
    fn go_on_before(&mut self, first: Option<Call>, now: Millis) -> Vec<Action> {
        let StreamState::Preparing { head, is_over } = &mut self.state else { return Vec::new() };
        if let Some(call) = first {
            let head = std::mem::take(head);
            self.state = StreamState::Waiting;
            let mut actions = self.sent(Some(&head), call);
            actions.push(Action::ContinueRequest);
            return actions;
        }
        let when = When::of(*is_over);
        if self.exchange.is_ended() {
            return self.reply(when, Vec::new(), now).actions;
        }
        Vec::new()
    }

    /// Gives the rest of the answer to the client, once the exchange has ended.
    fn go_on_behind(&mut self, now: Millis) -> Vec<Action> {
        let is_ended = self.exchange.is_ended();
        if is_ended {
            self.calls.clear();
        }
        if self.deferred_mut().is_some() {
            let out = self.polled();
            if let Some(deferred) = self.deferred_mut() {
                deferred.push(&out, false);
            }
            if is_ended {
                self.release_end(now);
            }
            return Vec::new();
        }
        if is_ended && (self.is_answering() || matches!(self.state, StreamState::Waiting)) {
            return self.reply(When::Now, Vec::new(), now).actions;
        }
        Vec::new()
    }

    /// Lets the end of the stream be written.
    fn release_end(&mut self, now: Millis) {
        let Some(deferred) = self.deferred_mut() else { return };
        let has_ended = deferred.has_ended();
        if !deferred.release_end() {
            let event = self.exchange.replace_rest(Failure::RestTooLarge, now);
            // An event in the middle of another one would not be read.
            if !self.deferred_mut().is_some_and(|deferred| deferred.replace(event)) {
                self.close_at = Some(now);
            }
        }
        if !has_ended && self.close_at.is_none() {
            let delay = if self.is_answered() { LINGER_MS } else { CLOSE_DELAY_MS };
            self.close_at = Some(now.saturating_add(delay));
        }
    }

    /// Begins the calls behind the upstream's first answer. Returns true if any is open, so that
    /// the end of the answer has to be held.
    pub(super) fn begin_behind(&mut self, actions: &mut Vec<Action>, now: Millis) -> bool {
        if !self.calls.are_on || !self.exchange.is_call_due() {
            return false;
        }
        // The first call is over for the exchange. What still comes of it is thrown away.
        self.call = None;
        self.make_calls(actions, now);
        self.forget_cancelled();
        self.calls.are_behind = self.calls.are_open();
        self.calls.are_behind
    }

    /// Holds the end of an answer behind which calls are open, in the callback of a chunk. `end` is
    /// true if the chunk was the last.
    pub(super) fn hold_end(
        &mut self,
        head: Option<Head>,
        piece: &[u8],
        end: bool,
        mut calls: Vec<Action>,
    ) -> Decision {
        let out = self.polled();
        let mut actions = drain(Side::Response, piece);
        match (&mut self.state, head) {
            // The whole answer comes from this filter, in the place of the upstream's.
            (StreamState::Answering { sent: Delivered::Nothing, .. }, None) => {}
            (StreamState::Answering { sent: Delivered::Nothing, .. }, Some(head)) => {
                actions = self.defer(heads::for_client(head, None), &out).actions;
            }
            (StreamState::Answering { sent: Delivered::Deferred(deferred), .. }, _) => {
                deferred.push(&out, false);
            }
            _ => {
                let mut deferred = Deferred::default();
                deferred.push(&out, false);
                self.set_sent(Delivered::Deferred(deferred));
            }
        }
        if let Some(deferred) = self.deferred_mut() {
            deferred.hold_end();
        }
        actions.append(&mut calls);
        Decision { actions, flow: self.held(end) }
    }

    /// Holds the end of an answer that a timer has ended, behind which calls are open.
    pub(super) fn hold_end_by_timer(&mut self, calls: Vec<Action>, now: Millis) -> Vec<Action> {
        if matches!(self.state, StreamState::Answering { sent: Delivered::Head, .. }) {
            // Nothing can be written outside of the callback of a chunk.
            self.calls.clear();
            self.exchange.handle_failure(Failure::BrokeOff, now);
            return vec![Action::CloseStream];
        }
        if self.deferred_mut().is_some() {
            let out = self.polled();
            if let Some(deferred) = self.deferred_mut() {
                deferred.push(&out, false);
                deferred.hold_end();
            }
        }
        calls
    }

    /// Handles a chunk of the upstream's answer that comes after the exchange has read the answer.
    pub(super) fn go_on_behind_chunk(&mut self, piece: &[u8], end: bool) -> Decision {
        Decision { actions: drain(Side::Response, piece), flow: self.held(end) }
    }

    /// Returns the flow that holds a chunk, and notes the end of the upstream's answer.
    fn held(&mut self, end: bool) -> Flow {
        match self.deferred_mut() {
            Some(deferred) => {
                if end {
                    deferred.push(b"", true);
                }
                Flow::Pause
            }
            None if end => Flow::Pause,
            None => Flow::Stop,
        }
    }

    /// Handles the trailers of an upstream's answer behind which calls are open.
    pub(super) fn hold_trailers(&mut self, calls: Vec<Action>) -> Decision {
        let is_ended = self.exchange.is_ended();
        match &mut self.state {
            StreamState::Answering { sent: Delivered::Deferred(deferred), .. } => {
                if !is_ended {
                    deferred.hold_end();
                }
                deferred.push(b"", true);
                Decision::stop(calls)
            }
            StreamState::Answering { sent: Delivered::Nothing, .. } => Decision::stop(calls),
            // Nothing can be written any more.
            _ => {
                self.calls.clear();
                self.state = StreamState::HandsOff;
                Decision::stop(vec![Action::CloseStream])
            }
        }
    }
}

/// Returns the failure that an answer of Envoy's own tells of. Its words may have addresses, so the
/// client does not get them.
fn failure_of_envoy(status: u16, body: &[u8]) -> Option<Failure> {
    match status {
        503 if body.starts_with(b"upstream connect error or disconnect/reset") => {
            Some(Failure::Unreachable(Unreachable::NotConnected))
        }
        503 if body == b"no healthy upstream" => Some(Failure::NoHealthyUpstream),
        504 if body == b"upstream request timeout" => Some(Failure::Timeout),
        _ => None,
    }
}

/// Returns the scheme and the authority of an address.
fn of_address(Address { tls, authority }: Address<'_>) -> (&'static str, &str) {
    (if tls { "https" } else { "http" }, authority)
}

/// Returns the head of a call at this URL.
fn head_for(call: &Call, url: &str) -> Result<Vec<Header>, Failure> {
    let (server, rest) = url_parts(url);
    let address = Address::parse(server).map_err(|_| Failure::NoRoute)?;
    Ok(heads::for_call(call, of_address(address), &request_path(rest)))
}
