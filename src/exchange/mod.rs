//! One request and its response: the only type that a host drives. The crate's page has the order of the calls.
//!
//! There is no I/O, no clock and no entropy in here: bytes and times come in as arguments, ids come
//! from the seed. The same arguments give the same bytes on every host.

mod base;
mod count;
mod door;
mod memory;
mod models;
mod pass;
mod request;
mod response;
mod retry;
mod seam;
mod unreachable;

use std::borrow::Cow;
use std::sync::Arc;

pub use base::with_version;
pub use memory::Refusals;
pub use pass::{PassedHead, passed};
pub use seam::{End, Failure, Head, Pings, Reply, RequestHead, ResponseHead, UpstreamRequest};
pub use unreachable::Unreachable;

use count::Count;

use crate::Millis;
use crate::config::{Config, Protocol, Upstream};
use crate::error::{Error, ErrorKind, Fault, Rejection};
use crate::headers::{self, Header};
use crate::ids::Ids;
use crate::model::request_context::RequestContext;
use crate::observe::report::{Cause, Outcome, Report};
use crate::observe::warning::Warnings;
use crate::protocols::Refused;
use crate::stream::watchdog::{Due, Ending, Watchdog};
use crate::stream::{self, Answer};
use crate::text::words;
use crate::upstream_error;

/// One request and its response. The [crate's page](crate) has the order of the calls.
#[derive(Debug)]
pub struct Exchange {
    config: Arc<Config>,
    ids: Ids,
    pings: Pings,
    report: Report,
    client: Client,
    state: State,
    watchdog: Watchdog,
    /// What the client has seen of the head.
    head: HeadState,
    /// The host keeps the client's body, and asks [`Exchange::wants_retry`].
    keeps_body: bool,
    /// What is not Creole's is somebody else's, and not sent on by the host.
    leaves_others: bool,
    /// The host can ask the upstream for its models.
    asks_for_models: bool,
    /// What upstreams refused of late, and what of that this request is one of.
    refusals: Option<Arc<Refusals>>,
    remembered: Vec<Refused>,
    /// What the upstream refused, and what it was then asked without.
    refused: Vec<Refused>,
    /// How often it was asked again.
    retries: usize,
    /// The answer was ended here, while the upstream goes on.
    leaves_upstream: bool,
}

/// What is kept of the request's head.
#[derive(Debug, Default)]
struct Client {
    path: Path,
    headers: Vec<Header>,
}

/// The paths that are ours and take a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Path {
    #[default]
    Messages,
    CountTokens,
    Models,
}

#[derive(Debug)]
enum State {
    /// The request is not complete.
    Requested,
    /// The upstream has the request and has not answered; `count` if it was asked for one.
    Waiting { context: Box<RequestContext>, count: Option<Count> },
    /// The upstream answered with an error status; its body is collected.
    Refused { context: Box<RequestContext>, status: u16, body: Vec<u8> },
    /// The upstream's answer is an error that a second request without what it refuses may mend, and nothing of it was
    /// sent. The error is what the client is told if there is no such request; `scope` are the requests of which the
    /// same is refused, if that is known.
    Failed { error: Error, refused: Refused, scope: Option<memory::RefusalScope> },
    /// The upstream was asked for its models; `status` is that of its answer, whose body is collected.
    Listing { status: Option<u16>, body: Vec<u8> },
    /// The upstream's tokenizer answers; its body is collected.
    Counting { count: Count, status: u16, body: Vec<u8> },
    /// The upstream answers, and nothing tells yet whether its body is one JSON text or a stream.
    Undecided { answer: Box<Answer>, seen: Vec<u8> },
    /// The body is one JSON text, which is collected.
    Whole { answer: Box<Answer>, body: Vec<u8>, ending: Ending },
    /// The body is a stream of events.
    Events { answer: Box<Answer> },
    /// Everything has been said; whatever still comes is dropped.
    Ended,
    /// Not ours.
    PassThrough,
}

impl State {
    /// The answer, while one is made.
    fn answer(&self) -> Option<&Answer> {
        match self {
            Self::Undecided { answer, .. }
            | Self::Whole { answer, .. }
            | Self::Events { answer } => Some(answer),
            _ => None,
        }
    }
}

#[derive(Debug)]
enum HeadState {
    /// Not sent; these are the headers that the upstream's head gave.
    Held(Vec<Header>),
    /// The client was promised such a body.
    Sent(Body),
}

/// What a client can be promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Body {
    Json,
    Events,
}

impl Body {
    fn content_type(self) -> &'static str {
        match self {
            Self::Json => JSON,
            Self::Events => "text/event-stream; charset=utf-8",
        }
    }
}

const JSON: &str = "application/json";

impl Exchange {
    /// Starts an exchange. `seed` must differ for each exchange on all replicas together: ids are
    /// made of it.
    #[must_use]
    pub fn new(config: Arc<Config>, seed: u128, pings: Pings) -> Self {
        let ids = Ids::new(seed);
        let warnings = Warnings::new(config.settings.strict);
        Self {
            report: Report { request_id: ids.request(), warnings, ..Report::default() },
            watchdog: Watchdog::new(&config.settings, pings != Pings::No),
            config,
            ids,
            pings,
            client: Client::default(),
            state: State::Requested,
            head: HeadState::Held(Vec::new()),
            keeps_body: false,
            leaves_others: false,
            asks_for_models: false,
            refusals: None,
            remembered: Vec::new(),
            refused: Vec::new(),
            retries: 0,
            leaves_upstream: false,
        }
    }

    /// What happened so far.
    #[must_use]
    pub fn report(&self) -> Report {
        let mut report = self.report.clone();
        if let Some(answer) = self.state.answer() {
            report.answer = answer.report().clone();
        }
        report.warnings = self.warnings();
        report
    }

    /// Those of the request and of the answer so far.
    fn warnings(&self) -> Warnings {
        let mut warnings = self.report.warnings.clone();
        if let Some(answer) = self.state.answer() {
            warnings.merge(answer.warnings());
        }
        warnings
    }

    /// The host spent so many microseconds more on this exchange. The core has no clock: whoever
    /// measures around the calls of this type tells it, for the report.
    pub fn add_translation_us(&mut self, spent_us: u64) {
        let sum = self.report.translation_us.unwrap_or_default().saturating_add(spent_us);
        self.report.translation_us = Some(sum);
    }

    /// Whether the client has everything; the upstream can be dropped.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        matches!(self.state, State::Ended)
    }

    /// Whether the exchange has ended in the middle of the upstream's answer: the text was cut at a stop sequence that
    /// the upstream does not know. It goes on to generate what nobody reads, so its connection is to be closed at once.
    #[must_use]
    pub fn leaves_upstream(&self) -> bool {
        self.leaves_upstream
    }

    /// The answer that a call made at once, as a whole.
    #[must_use]
    pub fn whole_reply(&self, head: Option<Head>, body: Vec<u8>) -> Reply {
        match head {
            Some(head) => Reply { head, body },
            None => self.reply_without_head(),
        }
    }

    /// The answer where the exchange has ended and given no head: waiting for more would hang the client.
    #[must_use]
    pub fn reply_without_head(&self) -> Reply {
        let error = Error::answer_empty();
        Reply::of(&error, self.report.request_id.clone())
    }

    /// The whole answer to a failure, where the client has no head yet.
    pub fn reply_to(&mut self, failure: Failure, now: Millis) -> Reply {
        let mut body = Vec::new();
        let head = self.handle_failure(failure, now, &mut body);
        self.whole_reply(head, body)
    }

    /// The configuration of this exchange.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// A failure that no upstream answered for.
    pub fn handle_failure(
        &mut self,
        failure: Failure,
        now: Millis,
        out: &mut Vec<u8>,
    ) -> Option<Head> {
        if self.is_ended() {
            return None;
        }
        if failure.is_of_upstream() {
            let head = self.end_unanswered(now, out);
            if self.is_ended() {
                return head;
            }
        }
        let has_no_path = failure == Failure::NoRoute && matches!(self.state, State::PassThrough);
        let (cause, mut error) = failure.into_error();
        if has_no_path {
            error.message.push_str(base::HINT);
        }
        self.watchdog.byte(now);
        self.report.failed_by.get_or_insert(cause);
        let before = out.len();
        self.settle(Err(error), before, now, out)
    }

    /// The client is gone. Nothing can be sent any more.
    pub fn handle_client_gone(&mut self, now: Millis) {
        if !matches!(self.state, State::Ended | State::PassThrough) {
            self.finish(Outcome::Abandoned, 499, now);
        }
    }

    /// The time of [`Exchange::poll_timeout`] has come: sends a ping, or gives up on an upstream
    /// that has stalled.
    pub fn handle_timeout(&mut self, now: Millis, out: &mut Vec<u8>) -> Option<Head> {
        // Nothing is due after the end, even for a host whose timer still runs.
        self.poll_timeout()?;
        let before = out.len();
        let mut due = self.watchdog.due(now);
        if let (Due::End, State::Whole { body, .. }) = (due, &self.state)
            && !stream::is_whole(body)
        {
            self.watchdog.ending(Ending::Open, now);
            due = self.watchdog.due(now);
        }
        match due {
            Due::Nothing => None,
            Due::Ping => {
                if self.may_ping_unasked() {
                    return self.ping(now, out);
                }
                self.watchdog.sent(now);
                None
            }
            Due::End => self.end_early(now, out),
            Due::Stalled(what) => {
                if let State::Events { answer } = &mut self.state {
                    answer.break_off();
                    if answer.is_complete() {
                        return self.handle_response_end(End::Aborted, now, out);
                    }
                }
                let head = self.end_unanswered(now, out);
                if self.is_ended() {
                    return head;
                }
                let error = Error::new(Fault::Upstream, ErrorKind::Timeout, what);
                self.report.warnings.acted("stall");
                self.report.failed_by.get_or_insert(Cause::Stall);
                self.settle(Err(error), before, now, out)
            }
        }
    }

    /// When [`Exchange::handle_timeout`] wants to be called, or never.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Millis> {
        match self.state {
            State::Requested | State::Ended | State::PassThrough => None,
            _ => Some(self.watchdog.next(self.may_ping_unasked())),
        }
    }

    /// Whether a whole answer is being collected: it is held until it is complete, though a client that was
    /// kept waiting may have its head.
    #[must_use]
    pub fn is_collecting(&self) -> bool {
        matches!(self.state, State::Whole { .. })
    }

    /// Bytes of the upstream's body that are kept in memory: what is collected, events that are not complete, and
    /// blocks and calls that wait for their turn. A host counts them towards `buffered_bytes_max`.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        match &self.state {
            State::Refused { body, .. }
            | State::Counting { body, .. }
            | State::Listing { body, .. } => body.len(),
            State::Undecided { seen, .. } => seen.len(),
            State::Whole { body, .. } => body.len(),
            State::Events { answer } => answer.held_bytes(),
            _ => 0,
        }
    }

    /// Pings are events, so the client must have been promised events, or be promised them with the first
    /// one: while the upstream only keeps its connection alive, Creole must keep the client's alive too.
    fn may_ping(&self) -> bool {
        match &self.state {
            State::Events { answer } | State::Undecided { answer, .. } => match self.head {
                // An upstream that speaks Messages sends its own `message_start`.
                HeadState::Held(_) => answer.is_stream() && self.speaks_chat(),
                HeadState::Sent(body) => body == Body::Events,
            },
            State::Whole { .. } => matches!(self.head, HeadState::Sent(Body::Events)),
            _ => false,
        }
    }

    /// Whether the host can write one while the upstream sends nothing.
    fn may_ping_unasked(&self) -> bool {
        let can_write = match self.pings {
            Pings::Sent => true,
            Pings::AfterHead => !matches!(self.head, HeadState::Held(_)),
            Pings::No => false,
        };
        can_write && self.may_ping()
    }

    /// The upstream that has the request.
    fn upstream(&self) -> Option<&Upstream> {
        self.config.upstreams.get(&self.report.upstream)
    }

    fn speaks_chat(&self) -> bool {
        self.upstream().is_some_and(|upstream| upstream.protocol == Protocol::Openai)
    }

    fn ping(&mut self, now: Millis, out: &mut Vec<u8>) -> Option<Head> {
        let before = out.len();
        let mut head = None;
        if let (HeadState::Held(_), State::Events { answer } | State::Undecided { answer, .. }) =
            (&self.head, &mut self.state)
        {
            // A message begins with a ping.
            answer.begin(out);
            head = Some(self.stream_head());
        } else {
            out.extend_from_slice(stream::PING);
        }
        self.count_bytes(out.len().saturating_sub(before));
        self.watchdog.sent(now);
        head
    }

    // Six verbs end an exchange:
    //   settle     what a call gave: the head, if there are bytes for it; an error goes to `fail`.
    //   fail       an error of an upstream or a host: told as a reply or as the `error` event; then `finish`.
    //   refuse     an error of a request, which no upstream gets: told as a reply; then `end`.
    //   end_count  a count that the upstream gave, or the estimate in its place; then `finish`.
    //   finish     what the answer counted, and the time, go into the report; then `end`.
    //   end        outcome and status go into the report, those of the first call.

    /// What an event did: gives the head if this was the first byte, and turns an error into what
    /// the client can still be told.
    fn settle(
        &mut self,
        result: Result<(), Error>,
        before: usize,
        now: Millis,
        out: &mut Vec<u8>,
    ) -> Option<Head> {
        let head = match result {
            Ok(()) if out.len() == before => return None,
            Ok(()) => match (&self.head, &self.state) {
                (HeadState::Held(_), State::Events { answer }) => {
                    let id = answer.report().upstream_id.clone();
                    Some(if answer.is_stream() {
                        self.stream_head()
                    } else {
                        self.message_head(id)
                    })
                }
                _ => None,
            },
            Err(mut error) => {
                self.hide_credentials(&mut error.message);
                if let Some(Cow::Owned(code)) = &mut error.code {
                    self.hide_credentials(code);
                }
                if let Some(hidden) = error.rejection().and_then(Rejection::hidden) {
                    let mut message = hidden.to_owned();
                    self.hide_credentials(&mut message);
                    self.report.upstream_message = Some(message);
                }
                self.fail(&error, now, out)
            }
        };
        self.count_bytes(out.len().saturating_sub(before));
        self.watchdog.sent(now);
        head
    }

    /// The exchange ends with an error: an HTTP error where the client has seen nothing, else the
    /// `error` event. The open block is not closed before it: Claude Code runs every tool call whose
    /// block was closed.
    fn fail(&mut self, error: &Error, now: Millis, out: &mut Vec<u8>) -> Option<Head> {
        let answer = self.state.answer();
        let started = answer.is_some_and(|answer| answer.is_stream() && answer.has_started());
        self.finish(Outcome::Failed(error.kind, error.fault()), error.status, now);
        match self.head {
            HeadState::Held(_) if started => {
                let head = self.stream_head();
                self.write_error_event(error, out);
                Some(head)
            }
            HeadState::Held(_) => {
                let head = self.error_head(error);
                error.write(out, &self.report.request_id);
                Some(head)
            }
            HeadState::Sent(Body::Events) => {
                self.write_error_event(error, out);
                None
            }
            HeadState::Sent(Body::Json) => {
                error.write(out, &self.report.request_id);
                None
            }
        }
    }

    /// What an upstream says can quote the credential that it got, which need not look like one.
    fn hide_credentials(&self, message: &mut String) {
        let Some(upstream) = self.upstream() else { return };
        let Ok(sent) = self.upstream_headers(upstream, false) else { return };
        upstream_error::hide(message, headers::credentials(&sent, &upstream.headers));
    }

    /// So many bytes more go to the client.
    fn count_bytes(&mut self, bytes: usize) {
        self.report.response_bytes = self.report.response_bytes.saturating_add(bytes);
    }

    /// An event has no status: opencode, pi, openclaw and others know by its words alone whether it pays to ask again.
    fn write_error_event(&self, error: &Error, out: &mut Vec<u8>) {
        let words = match error.kind {
            // The real API's.
            ErrorKind::Api if error.should_retry != Some(false) => "Internal server error",
            ErrorKind::Timeout => "Stream timed out",
            _ => "",
        };
        let mut error = error.clone();
        if !words::begins(&error.message, words) {
            error.message = [words, ": ", &error.message].concat();
        }
        out.extend_from_slice(b"event: error\ndata: ");
        error.write(out, &self.report.request_id);
        out.extend_from_slice(b"\n\n");
    }

    /// The answer is over, or given up: what it counted goes into the report.
    fn finish(&mut self, outcome: Outcome, status: u16, now: Millis) {
        self.report = self.report();
        self.end(outcome, status);
        self.report.ended_at = Some(now);
    }

    /// How it ended; of several the first counts.
    fn end(&mut self, outcome: Outcome, status: u16) {
        if self.report.outcome == Outcome::Open {
            self.report.outcome = outcome;
            self.report.status = status;
        }
        self.state = State::Ended;
    }

    fn message_head(&mut self, upstream_id: Option<String>) -> Head {
        let mut head = self.make_head(200, Body::Json);
        if let Some(id) = upstream_id.filter(|id| headers::is_value(id)) {
            head.add("x-creole-upstream-id", id);
        }
        head
    }

    fn stream_head(&mut self) -> Head {
        let mut head = self.make_head(200, Body::Events);
        // Proxies that compress or rewrite a body collect it first, and the stream stands still.
        head.add("cache-control", "no-cache, no-transform".to_owned());
        head.add("x-accel-buffering", "no".to_owned());
        head
    }

    fn error_head(&mut self, error: &Error) -> Head {
        let mut head = self.make_head(error.status, Body::Json);
        if let Some(retry) = error.should_retry {
            head.headers.retain(|(name, _)| name != "x-should-retry");
            head.add("x-should-retry", retry.to_string());
        }
        if let Some(seconds) = error.retry_after
            && !head.headers.iter().any(|(name, _)| name.starts_with("retry-after"))
        {
            head.add("retry-after", seconds.to_string());
        }
        if let Some(methods) = &error.allow {
            head.add("allow", methods.clone());
        }
        head
    }

    /// The head with what every answer carries. From here on it counts as sent.
    fn make_head(&mut self, status: u16, body: Body) -> Head {
        let mut head = Head { status, headers: Vec::new() };
        head.add("content-type", body.content_type().to_owned());
        head.add("request-id", self.report.request_id.clone());
        let warnings = self.warnings();
        if let Some(codes) = warnings.header() {
            head.add("x-creole-warnings", codes);
        }
        if !warnings.guards().is_empty() {
            head.add("x-creole-guard", warnings.guards().join(","));
        }
        if let Some((turn, most)) = warnings.tool_turn() {
            head.add("x-creole-tool-turn", format!("{turn}/{most}"));
        }
        let sent = HeadState::Sent(body);
        if let HeadState::Held(upstream) = std::mem::replace(&mut self.head, sent) {
            head.headers.extend(upstream);
        }
        head
    }
}
