//! One request and its response: the only type that a host drives.
//!
//! ```text
//!  host                               Exchange
//!   │  handle_request_head ──────────▶  ours? translate, pass through, or answer at once
//!   │  handle_request ───────────────▶  the body for the upstream, or an answer at once
//!   │  handle_response_head ─────────▶
//!   │  handle_response_body … ───────▶  bytes for the client, as they are ready
//!   │  handle_response_end ──────────▶  the last bytes
//!   │  handle_timeout ───────────────▶  a ping, or the end of a stalled upstream
//! ```
//!
//! The head of the response is held back until the first byte of the body is known, so that an
//! error in an upstream's first event still becomes an HTTP error. Whichever call makes the first
//! byte ready also gives the [`Head`], once.
//!
//! There is no I/O, no clock and no entropy in here: bytes and times come in as arguments, ids come
//! from the seed. The same arguments give the same bytes on every host.

use std::sync::Arc;

use crate::Millis;
use crate::asked::Asked;
use crate::config::{Config, Key};
use crate::error::{Error, Fault, Kind};
use crate::ids::Ids;
use crate::report::{Outcome, Report};
use crate::stream::Answer;
use crate::stream::watchdog::{Due, Watchdog};
use crate::translate::headers::{self, Header, Headers};
use crate::translate::{self, Translated};
use crate::warning::Warnings;

/// Status and headers for the client. Names are in lower case; `content-length` is the host's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// HTTP status.
    pub status: u16,
    /// All headers that the client gets from Creole.
    pub headers: Vec<Header>,
}

/// A whole response that needs no upstream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// Status and headers.
    pub head: Head,
    /// The body; empty for `HEAD`.
    pub body: Vec<u8>,
}

/// What to do with a request, by its head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestHead {
    /// Collect the body and give it to [`Exchange::handle_request`].
    Translate,
    /// Not ours: send it on untouched, and send the answer back untouched.
    PassThrough,
    /// Answer at once.
    Reply(Reply),
}

/// The request for the upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamRequest {
    /// The upstream's name in the configuration.
    pub upstream: String,
    /// Path with the upstream's `base_path`; the method is `POST`.
    pub path: String,
    /// All headers to send, beside `host` and `content-length`. The client's own are not sent.
    pub headers: Vec<Header>,
    /// The body.
    pub body: Vec<u8>,
}

/// What to do with a response, by its head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseHead {
    /// Give the body to [`Exchange::handle_response_body`].
    Translate,
    /// Send it back untouched.
    PassThrough,
}

/// How the upstream's body ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// As HTTP says it should.
    Complete,
    /// The connection broke.
    Aborted,
}

/// What a host can know of failures that no upstream answered for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The client's body is larger than `request_bytes_max`.
    RequestTooLarge,
    /// All exchanges together hold `buffered_bytes_max`.
    Overloaded,
    /// Connect, TLS or DNS failed, or the connection broke before an answer. The text must not
    /// hold an address that clients should not know.
    Unreachable(String),
    /// The host knows that no server is healthy, or its queues are full.
    NoHealthyUpstream,
    /// The host's own timeout, before the head.
    Timeout,
    /// The host has no route for the request.
    NoRoute,
    /// The client's body broke off.
    RequestIncomplete,
}

/// Whether the host can send bytes to the client while the upstream is silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pings {
    /// It has timers and may write at any time.
    Sent,
    /// It writes only when the upstream does.
    No,
}

/// One request and its response. See the module's documentation.
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
}

#[derive(Debug)]
enum State {
    /// The request is not complete.
    Requested,
    /// The upstream has the request and has not answered.
    Waiting(Box<Asked>),
    /// The upstream answered with an error status; its body is collected.
    Refused { asked: Box<Asked>, status: u16, body: Vec<u8> },
    /// The upstream answers, and nothing tells yet whether its body is one JSON text or a stream.
    Undecided { answer: Box<Answer>, seen: Vec<u8> },
    /// The body is one JSON text, which is collected.
    Whole { answer: Box<Answer>, body: Vec<u8> },
    /// The body is a stream of events.
    Events { answer: Box<Answer> },
    /// Everything has been said; whatever still comes is dropped.
    Ended,
    /// Not ours.
    PassThrough,
}

#[derive(Debug)]
enum HeadState {
    /// Not sent; these are the headers that the upstream's head gave.
    Held(Vec<Header>),
    Sent,
}

/// An upstream's error body is read up to here; the rest would not be shown anyway.
const ERROR_BODY_BYTES_MAX: usize = 256 << 10;

impl Exchange {
    /// Starts an exchange. `seed` must differ for each exchange on all replicas together: ids are
    /// made of it.
    #[must_use]
    pub fn new(config: Arc<Config>, seed: u128, pings: Pings) -> Self {
        let ids = Ids::new(seed);
        let warnings = Warnings::new(config.settings.strict);
        Self {
            report: Report { request_id: ids.request(), warnings, ..Report::default() },
            watchdog: Watchdog::new(&config.settings, pings == Pings::Sent),
            config,
            ids,
            pings,
            client: Client::default(),
            state: State::Requested,
            head: HeadState::Held(Vec::new()),
        }
    }

    /// What happened so far.
    #[must_use]
    pub fn report(&self) -> Report {
        let mut report = self.report.clone();
        if let State::Undecided { answer, .. }
        | State::Whole { answer, .. }
        | State::Events { answer } = &self.state
        {
            report.answer = answer.report().clone();
            report.warnings.merge(answer.warnings().clone());
        }
        report
    }

    /// Whether the client has everything; the upstream can be dropped.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        matches!(self.state, State::Ended)
    }

    /// The configuration of this exchange.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The head of a request has come. `path` may have a query.
    pub fn handle_request_head(
        &mut self,
        method: &str,
        path: &str,
        headers: &[Header],
    ) -> RequestHead {
        let path = path.split(['?', '#']).next().unwrap_or_default();
        match self.route(method, path, headers) {
            Ok(RequestHead::PassThrough) => {
                self.state = State::PassThrough;
                RequestHead::PassThrough
            }
            Ok(RequestHead::Translate) => {
                self.client.headers = headers::kept(headers);
                RequestHead::Translate
            }
            Ok(RequestHead::Reply(reply)) => {
                self.end(Outcome::Answered, reply.head.status);
                RequestHead::Reply(reply)
            }
            Err(error) => {
                let mut reply = self.refuse(&error);
                if method == "HEAD" {
                    reply.body.clear();
                }
                RequestHead::Reply(reply)
            }
        }
    }

    fn route(
        &mut self,
        method: &str,
        path: &str,
        headers: &[Header],
    ) -> Result<RequestHead, Error> {
        let probe = matches!(method, "GET" | "HEAD");
        self.client.path = match path {
            "/v1/messages" => Path::Messages,
            "/v1/messages/count_tokens" => Path::CountTokens,
            "/" | "/api/hello" if probe => return Ok(RequestHead::Reply(self.hello(method))),
            "/v1/models" if probe => {
                return Ok(RequestHead::Reply(
                    self.json_reply(translate::models::list(&self.config), method),
                ));
            }
            _ if path.starts_with("/v1/models/") && probe => {
                let id = path.strip_prefix("/v1/models/").unwrap_or_default();
                let body = translate::models::one(&self.config, id)?;
                return Ok(RequestHead::Reply(self.json_reply(body, method)));
            }
            _ if path.starts_with("/v1/messages/") => {
                return Err(Error::new(
                    Fault::Client,
                    Kind::NotFound,
                    format!("{method} {path}: not found"),
                ));
            }
            _ => return Ok(RequestHead::PassThrough),
        };
        if method != "POST" {
            return Err(
                Error::invalid(format!("{method}: only POST is allowed here")).with_status(405)
            );
        }
        let length = headers.value("content-length").and_then(|text| text.parse::<usize>().ok());
        if length.is_some_and(|length| length > self.config.settings.request_bytes_max) {
            return Err(request_too_large());
        }
        match headers.value("content-encoding") {
            None | Some("" | "identity") => Ok(RequestHead::Translate),
            Some(encoding) => Err(Error::invalid(format!(
                "content-encoding: expected identity, but found {encoding:?}"
            ))
            .with_code("request_body_encoding_unsupported")),
        }
    }

    /// The body of a request is complete: gives the request for the upstream, or the answer where
    /// none is needed.
    ///
    /// # Errors
    /// The reply that the client gets: an error, or an answer that needs no upstream (a token
    /// count).
    pub fn handle_request(
        &mut self,
        body: &[u8],
        now: Millis,
    ) -> Result<UpstreamRequest, Box<Reply>> {
        self.report.requested_at = now;
        self.report.request_bytes = body.len();
        self.translate_request(body, now).map_err(Box::new)
    }

    fn translate_request(&mut self, body: &[u8], now: Millis) -> Result<UpstreamRequest, Reply> {
        if body.len() > self.config.settings.request_bytes_max {
            return Err(self.refuse(&request_too_large()));
        }
        let Ok(text) = std::str::from_utf8(body) else {
            let error = Error::invalid("The request body is not valid JSON: it is not UTF-8");
            return Err(self.refuse(&error));
        };
        if self.client.path == Path::CountTokens {
            return Err(match translate::count_tokens(text, &self.config) {
                Ok(tokens) => {
                    self.report.warnings.add("count_estimated");
                    self.end(Outcome::Answered, 200);
                    self.json_reply(format!("{{\"input_tokens\":{tokens}}}").into_bytes(), "POST")
                }
                Err(error) => self.refuse(&error),
            });
        }
        let mut warnings = std::mem::take(&mut self.report.warnings);
        let translated =
            translate::request(text, &self.config, &self.client.headers, &mut warnings);
        self.report.warnings = warnings;
        match translated {
            Ok(Translated::Send { upstream, body, asked, guards }) => {
                self.report.guards = guards;
                self.report.model.clone_from(&asked.model);
                self.report.stream = asked.stream;
                self.report.upstream.clone_from(&upstream);
                self.send(upstream, body, asked, now)
            }
            Ok(Translated::Answer { asked, text, stop_reason, guards }) => {
                self.report.guards = guards;
                self.report.model.clone_from(&asked.model);
                self.report.stream = asked.stream;
                let mut answer = Answer::new(asked, &self.config.settings, self.ids);
                let mut body = Vec::new();
                answer.write_own(&text, stop_reason, &mut body);
                let head = self.answer_head(&answer);
                self.report.answer = answer.report().clone();
                self.end(Outcome::Answered, 200);
                Err(Reply { head, body })
            }
            Err(error) => Err(self.refuse(&error)),
        }
    }

    fn send(
        &mut self,
        upstream: String,
        body: Vec<u8>,
        asked: Box<Asked>,
        now: Millis,
    ) -> Result<UpstreamRequest, Reply> {
        let Some(target) = self.config.upstreams.get(&upstream) else {
            let error = Error::new(Fault::Operator, Kind::Api, "No such upstream is configured.");
            return Err(self.refuse(&error));
        };
        let headers = match headers::to_upstream(&self.client.headers, &target.key, asked.stream) {
            Ok(headers) => headers,
            Err(error) => return Err(self.refuse(&error)),
        };
        let path = format!("{}/chat/completions", target.base_path);
        self.watchdog.start(now);
        self.state = State::Waiting(asked);
        Ok(UpstreamRequest { upstream, path, headers, body })
    }

    /// The head of the upstream's response has come.
    pub fn handle_response_head(
        &mut self,
        status: u16,
        headers: &[Header],
        now: Millis,
    ) -> ResponseHead {
        let asked = match std::mem::replace(&mut self.state, State::Ended) {
            State::Waiting(asked) => asked,
            State::PassThrough => {
                self.state = State::PassThrough;
                return ResponseHead::PassThrough;
            }
            other => {
                // A second head, or one for a request that was answered here.
                self.state = other;
                return ResponseHead::PassThrough;
            }
        };
        self.report.head_at = Some(now);
        self.watchdog.byte(now);
        self.report.upstream_request_id = headers.value("x-request-id").map(str::to_owned);
        self.head = HeadState::Held(headers::to_client(headers, now));
        let encoding = headers.value("content-encoding").unwrap_or_default();
        self.state = if !matches!(encoding, "" | "identity") {
            // The request asked for `identity`. What it says cannot be read; the status can.
            self.report.warnings.add("upstream_encoding");
            let status = if status < 400 { 502 } else { status };
            let message = "Upstream sent an invalid response: its content-encoding cannot be read";
            let body = format!("{{\"error\":{{\"message\":\"{message}\"}}}}").into_bytes();
            State::Refused { asked, status, body }
        } else if (200..300).contains(&status) {
            let answer = Box::new(Answer::new(asked, &self.config.settings, self.ids));
            State::Undecided { answer, seen: Vec::new() }
        } else {
            State::Refused { asked, status, body: Vec::new() }
        };
        ResponseHead::Translate
    }

    /// For a host that cannot hold the head back: the head as far as it is known now. Later errors
    /// can then only be told in the body.
    pub fn take_head(&mut self) -> Option<Head> {
        if !matches!(self.head, HeadState::Held(_)) {
            return None;
        }
        match &self.state {
            State::Refused { status, .. } => {
                let (kind, status) = translate::error::of_status(*status);
                let error = Error::new(Fault::Upstream, kind, "").with_status(status);
                Some(self.error_head(&error))
            }
            State::Undecided { answer, .. }
            | State::Whole { answer, .. }
            | State::Events { answer } => {
                let stream = answer.is_stream();
                Some(self.success_head(stream, None))
            }
            State::Requested | State::Waiting(_) | State::Ended | State::PassThrough => None,
        }
    }

    /// A piece of the upstream's body has come. Bytes for the client are appended to `out`.
    pub fn handle_response_body(
        &mut self,
        piece: &[u8],
        now: Millis,
        out: &mut Vec<u8>,
    ) -> Option<Head> {
        if piece.is_empty() {
            return None;
        }
        self.report.response_bytes = self.report.response_bytes.saturating_add(piece.len());
        self.watchdog.byte(now);
        let before = out.len();
        let result = self.take_piece(piece, out);
        if let Some(progress) = self.progress() {
            self.watchdog.progress(progress, now);
        }
        let head = self.settle(result, before, now, out);
        if out.len() == before && self.may_ping() && self.watchdog.ping_is_due(now) {
            return self.ping(now, out);
        }
        head
    }

    fn take_piece(&mut self, piece: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        match &mut self.state {
            State::Undecided { seen, .. } => {
                seen.extend_from_slice(piece);
                let Some(first) = first_of_body(seen) else { return Ok(()) };
                // Content types lie: servers send streams as text/plain, and errors and whole
                // answers as text/event-stream. The first byte does not.
                let whole = matches!(first, b'{' | b'[' | b'<');
                let State::Undecided { mut answer, seen } =
                    std::mem::replace(&mut self.state, State::Ended)
                else {
                    return Ok(());
                };
                if whole {
                    self.state = State::Whole { answer, body: seen };
                    return Ok(());
                }
                let result = answer.handle_piece(&seen, out);
                self.state = State::Events { answer };
                result
            }
            State::Events { answer } => answer.handle_piece(piece, out),
            State::Whole { body, .. } => {
                body.extend_from_slice(piece);
                if body.len() > self.config.settings.response_bytes_max {
                    return Err(Error::misbehaved("Upstream sent an answer that is too large"));
                }
                Ok(())
            }
            State::Refused { body, .. } => {
                let room = ERROR_BODY_BYTES_MAX.saturating_sub(body.len());
                body.extend_from_slice(piece.get(..room).unwrap_or(piece));
                Ok(())
            }
            State::Requested | State::Waiting(_) | State::Ended | State::PassThrough => Ok(()),
        }
    }

    /// The upstream's body is over.
    pub fn handle_response_end(
        &mut self,
        end: End,
        now: Millis,
        out: &mut Vec<u8>,
    ) -> Option<Head> {
        let before = out.len();
        let result = match std::mem::replace(&mut self.state, State::Ended) {
            State::PassThrough => {
                self.state = State::PassThrough;
                return None;
            }
            State::Ended | State::Requested => return None,
            State::Waiting(_) => Err(unreachable_upstream("it closed the connection")),
            State::Refused { asked, status, body } => {
                match translate::error::from_upstream(status, &body, &asked, self.edge_key()) {
                    translate::error::Refusal::Error(error) => Err(error),
                    translate::error::Refusal::ContentFilter => {
                        let mut answer = Answer::new(asked, &self.config.settings, self.ids);
                        answer.write_own("", "refusal", out);
                        self.state = State::Events { answer: Box::new(answer) };
                        Ok(())
                    }
                }
            }
            State::Undecided { mut answer, seen } => {
                let result = match end {
                    End::Complete if first_of_body(&seen).is_none() => {
                        Err(Error::misbehaved("Upstream sent an empty response"))
                    }
                    _ => answer.handle_end(end == End::Complete, out),
                };
                self.state = State::Events { answer };
                result
            }
            State::Whole { mut answer, body } => {
                let result = match end {
                    End::Complete => answer.handle_whole(&body, self.edge_key(), out),
                    End::Aborted => answer.handle_end(false, out),
                };
                self.state = State::Events { answer };
                result
            }
            State::Events { mut answer } => {
                let result = answer.handle_end(end == End::Complete, out);
                self.state = State::Events { answer };
                result
            }
        };
        let head = self.settle(result, before, now, out);
        if let State::Events { answer } = std::mem::replace(&mut self.state, State::Ended) {
            self.report.answer = answer.report().clone();
            self.report.warnings.merge(answer.warnings().clone());
            self.end(Outcome::Answered, 200);
        }
        self.report.ended_at = Some(now);
        head
    }

    /// A failure that no upstream answered for.
    pub fn handle_failure(
        &mut self,
        failure: Failure,
        now: Millis,
        out: &mut Vec<u8>,
    ) -> Option<Head> {
        if matches!(self.state, State::Ended) {
            return None;
        }
        let error = match failure {
            Failure::RequestTooLarge => request_too_large(),
            Failure::Overloaded => Error::new(
                Fault::Operator,
                Kind::Overloaded,
                "This gateway is holding as much as it may. Try again.",
            ),
            Failure::Unreachable(reason) => unreachable_upstream(&reason),
            Failure::NoHealthyUpstream => {
                Error::new(Fault::Upstream, Kind::Overloaded, "No upstream is healthy. Try again.")
            }
            Failure::Timeout => {
                Error::new(Fault::Upstream, Kind::Timeout, "Upstream did not answer in time.")
            }
            Failure::NoRoute => {
                Error::new(Fault::Operator, Kind::NotFound, "This gateway has no such route.")
            }
            Failure::RequestIncomplete => {
                Error::invalid("The request body is not valid JSON: it broke off")
            }
        };
        self.watchdog.byte(now);
        let before = out.len();
        self.settle(Err(error), before, now, out)
    }

    /// The client is gone. Nothing can be sent any more.
    pub fn handle_client_gone(&mut self, now: Millis) {
        if !matches!(self.state, State::Ended | State::PassThrough) {
            self.report = self.report();
            self.end(Outcome::Abandoned, 499);
            self.report.ended_at = Some(now);
        }
    }

    /// The time of [`Exchange::poll_timeout`] has come: sends a ping, or gives up on an upstream
    /// that has stalled.
    pub fn handle_timeout(&mut self, now: Millis, out: &mut Vec<u8>) -> Option<Head> {
        let before = out.len();
        let waiting = matches!(self.state, State::Waiting(_));
        match self.watchdog.due(now, waiting) {
            Due::Nothing => None,
            Due::Ping => {
                if self.may_ping() {
                    return self.ping(now, out);
                }
                self.watchdog.sent(now);
                None
            }
            Due::Stalled(what) => {
                let error = Error::new(Fault::Upstream, Kind::Timeout, what);
                self.report.guards.push("stall");
                self.settle(Err(error), before, now, out)
            }
        }
    }

    /// When [`Exchange::handle_timeout`] wants to be called, or never.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Millis> {
        match self.state {
            State::Requested | State::Ended | State::PassThrough => None,
            State::Waiting(_) => Some(self.watchdog.next(true, false)),
            _ => Some(self.watchdog.next(false, self.may_ping() && self.pings == Pings::Sent)),
        }
    }

    fn progress(&self) -> Option<u64> {
        match &self.state {
            State::Events { answer } => Some(answer.report().progress),
            // Whatever comes of a whole answer is content.
            State::Whole { body, .. } => Some(body.len() as u64),
            _ => None,
        }
    }

    /// Pings are events, so they need a stream whose head the client has.
    fn may_ping(&self) -> bool {
        match &self.state {
            State::Events { answer } => answer.is_stream() && answer.has_started(),
            State::Undecided { answer, .. } | State::Whole { answer, .. } => {
                answer.is_stream() && matches!(self.head, HeadState::Sent)
            }
            _ => false,
        }
    }

    fn ping(&mut self, now: Millis, out: &mut Vec<u8>) -> Option<Head> {
        out.extend_from_slice(b"event: ping\ndata: {\"type\":\"ping\"}\n\n");
        self.watchdog.sent(now);
        None
    }

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
                    let stream = answer.is_stream();
                    let id = answer.report().upstream_id.clone();
                    Some(self.success_head(stream, id))
                }
                _ => None,
            },
            Err(error) => self.fail(&error, before, out),
        };
        self.watchdog.sent(now);
        self.report.first_byte_at.get_or_insert(now);
        head
    }

    /// The exchange ends with an error.
    fn fail(&mut self, error: &Error, before: usize, out: &mut Vec<u8>) -> Option<Head> {
        let stream = match &self.state {
            State::Undecided { answer, .. }
            | State::Whole { answer, .. }
            | State::Events { answer } => {
                self.report.answer = answer.report().clone();
                self.report.warnings.merge(answer.warnings().clone());
                answer.is_stream()
            }
            State::Waiting(asked) | State::Refused { asked, .. } => asked.stream,
            _ => self.report.stream,
        };
        self.end(Outcome::Failed(error.kind, error.fault), error.status);
        if matches!(self.head, HeadState::Held(_)) {
            // Events that this very call made were never seen: the error replaces them, unless they
            // hold content.
            let events = out.get(before..).unwrap_or_default();
            if !stream || !has_content(events) {
                out.truncate(before);
                let head = self.error_head(error);
                error.write(out, &self.report.request_id);
                return Some(head);
            }
            let head = self.success_head(true, None);
            self.write_error_event(error, out);
            return Some(head);
        }
        if stream {
            self.write_error_event(error, out);
        } else {
            error.write(out, &self.report.request_id);
        }
        None
    }

    fn write_error_event(&self, error: &Error, out: &mut Vec<u8>) {
        out.extend_from_slice(b"event: error\ndata: ");
        error.write(out, &self.report.request_id);
        out.extend_from_slice(b"\n\n");
    }

    fn end(&mut self, outcome: Outcome, status: u16) {
        if self.report.outcome == Outcome::Open {
            self.report.outcome = outcome;
            self.report.status = status;
        }
        self.state = State::Ended;
    }

    fn edge_key(&self) -> bool {
        let upstream = self.config.upstreams.get(&self.report.upstream);
        upstream.is_some_and(|upstream| matches!(upstream.key, Key::Secret(_)))
    }

    fn refuse(&mut self, error: &Error) -> Reply {
        self.end(Outcome::Failed(error.kind, error.fault), error.status);
        let head = self.error_head(error);
        let mut body = Vec::new();
        error.write(&mut body, &self.report.request_id);
        Reply { head, body }
    }

    fn hello(&mut self, method: &str) -> Reply {
        self.json_reply(b"{}".to_vec(), method)
    }

    fn json_reply(&mut self, body: Vec<u8>, method: &str) -> Reply {
        let head = self.make_head(200, "application/json");
        Reply { head, body: if method == "HEAD" { Vec::new() } else { body } }
    }

    fn answer_head(&mut self, answer: &Answer) -> Head {
        self.success_head(answer.is_stream(), None)
    }

    fn success_head(&mut self, stream: bool, upstream_id: Option<String>) -> Head {
        if !stream {
            let mut head = self.make_head(200, "application/json");
            if let Some(id) = upstream_id.filter(|id| headers::is_value(id)) {
                head.headers.push(("x-creole-upstream-id".to_owned(), id));
            }
            return head;
        }
        let mut head = self.make_head(200, "text/event-stream; charset=utf-8");
        head.headers.push(("cache-control".to_owned(), "no-cache".to_owned()));
        head.headers.push(("x-accel-buffering".to_owned(), "no".to_owned()));
        head
    }

    fn error_head(&mut self, error: &Error) -> Head {
        let mut head = self.make_head(error.status, "application/json");
        if let Some(retry) = error.should_retry {
            head.headers.retain(|(name, _)| name != "x-should-retry");
            head.headers.push(("x-should-retry".to_owned(), retry.to_string()));
        }
        head
    }

    /// The head with what every answer carries. From here on it counts as sent.
    fn make_head(&mut self, status: u16, content_type: &str) -> Head {
        let mut headers = vec![
            ("content-type".to_owned(), content_type.to_owned()),
            ("request-id".to_owned(), self.report.request_id.clone()),
        ];
        if let Some(codes) = self.report().warnings.header() {
            headers.push(("x-creole-warnings".to_owned(), codes));
        }
        if !self.report.guards.is_empty() {
            headers.push(("x-creole-guard".to_owned(), self.report.guards.join(",")));
        }
        if let HeadState::Held(upstream) = std::mem::replace(&mut self.head, HeadState::Sent) {
            headers.extend(upstream);
        }
        Head { status, headers }
    }
}

fn request_too_large() -> Error {
    Error::new(Fault::Client, Kind::RequestTooLarge, "Request exceeds the maximum size")
}

fn unreachable_upstream(reason: &str) -> Error {
    Error::new(Fault::Upstream, Kind::Api, format!("Upstream could not be reached: {reason}"))
        .with_status(502)
}

/// The first byte of a body that says something: after a byte order mark and white space. `None`
/// while that is not known.
fn first_of_body(seen: &[u8]) -> Option<u8> {
    const MARK: &[u8] = b"\xef\xbb\xbf";
    let rest = match seen.strip_prefix(MARK) {
        Some(rest) => rest,
        None if MARK.starts_with(seen) => return None,
        None => seen,
    };
    rest.iter().copied().find(|byte| !byte.is_ascii_whitespace())
}

/// Whether events for the client hold more than the announcement of a message.
fn has_content(events: &[u8]) -> bool {
    memchr::memmem::find(events, b"event: content_block_start").is_some()
}
