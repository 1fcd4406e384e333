//! Output of an exchange: head and bytes for the client, and the ways in which an exchange ends.

use std::borrow::Cow;
use std::mem;

use super::seam::Head;
use super::steps::Steps;
use super::{Exchange, JSON};
use crate::Millis;
use crate::error::{Error, ErrorKind, Rejection};
use crate::headers::{self, Header};
use crate::observe::report::{Cause, Outcome, served_model};
use crate::protocols::messages::write_error;
use crate::upstream_error;

/// Status, headers and bytes for the client, until the host takes them.
#[derive(Debug)]
pub(super) struct Output {
    head: HeadState,
    pub(super) body: Vec<u8>,
}

#[derive(Debug)]
enum HeadState {
    /// The head is not known. The headers are those that the upstream's head gave for the client.
    Held(Vec<Header>),
    /// The head is known, and the host has not taken it.
    Due(Head, Body),
    /// The host has taken the head, which promised such a body.
    Sent(Body),
}

/// Kind of body that a head promises the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body {
    Json,
    /// Events, of which the client has none yet: it has comments. The upstream may be called again.
    Comments,
    Events,
}

impl Body {
    fn content_type(self) -> &'static str {
        match self {
            Self::Json => JSON,
            Self::Comments | Self::Events => "text/event-stream; charset=utf-8",
        }
    }
}

impl Output {
    pub(super) fn new() -> Self {
        Self { head: HeadState::Held(Vec::new()), body: Vec::new() }
    }

    /// Returns true if no head has been made for the client.
    pub(super) fn is_held(&self) -> bool {
        matches!(self.head, HeadState::Held(_))
    }

    /// Returns true if the client has nothing of an answer: no head, or one with nothing but
    /// comments behind it.
    pub(super) fn is_blank(&self) -> bool {
        matches!(self.promised(), None | Some(Body::Comments))
    }

    /// Returns the kind of body that the client was promised, if there is a head.
    pub(super) fn promised(&self) -> Option<Body> {
        match self.head {
            HeadState::Held(_) => None,
            HeadState::Due(_, body) | HeadState::Sent(body) => Some(body),
        }
    }

    /// Keeps the headers of an upstream's head for the client's head.
    pub(super) fn hold(&mut self, headers: Vec<Header>) {
        if self.is_held() {
            self.head = HeadState::Held(headers);
        }
    }

    pub(super) fn take_head(&mut self) -> Option<Head> {
        let HeadState::Due(head, body) = &mut self.head else { return None };
        let (head, body) = (mem::take(head), *body);
        self.head = HeadState::Sent(body);
        Some(head)
    }

    /// Moves the bytes for the client to `out`; they are copied only if `out` has some.
    pub(super) fn take_body(&mut self, out: &mut Vec<u8>) {
        if out.is_empty() {
            mem::swap(out, &mut self.body);
        } else {
            out.append(&mut self.body);
        }
    }
}

impl Exchange {
    /// Makes the head of a stream of events.
    pub(super) fn begin_stream(&mut self) {
        self.begin_events(Body::Events);
    }

    /// Makes the head of a stream that begins with comments, and perhaps goes on with events.
    pub(super) fn begin_comments(&mut self) {
        self.begin_events(Body::Comments);
    }

    fn begin_events(&mut self, body: Body) {
        let mut head = self.make_head(200, body);
        // Proxies that compress or rewrite a body collect it first, and the stream stands still.
        head.add("cache-control", "no-cache, no-transform".to_owned());
        head.add("x-accel-buffering", "no".to_owned());
        self.output.head = HeadState::Due(head, body);
    }

    /// Forgets the client's body where a stream that began with comments has events now: the
    /// upstream cannot be called again.
    fn end_comments(&mut self) {
        if let HeadState::Due(_, body) | HeadState::Sent(body) = &mut self.output.head
            && *body == Body::Comments
        {
            *body = Body::Events;
            self.client.body = Vec::new();
        }
    }

    /// Makes the head of a message that is sent as a whole.
    pub(super) fn begin_message(&mut self, upstream_id: Option<String>) {
        let mut head = self.make_head(200, Body::Json);
        if let Some(id) = upstream_id.filter(|id| headers::is_value(id)) {
            head.add("x-creole-upstream-id", id);
        }
        self.output.head = HeadState::Due(head, Body::Json);
    }

    /// Makes the head of a JSON body that is no message.
    pub(super) fn begin_json(&mut self) {
        let head = self.make_head(200, Body::Json);
        self.output.head = HeadState::Due(head, Body::Json);
    }

    /// Makes the head of an error, whose words follow as the body.
    pub(super) fn begin_error(&mut self, error: &Error) {
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
        self.output.head = HeadState::Due(head, Body::Json);
    }

    /// Makes a head with the headers that every answer has.
    fn make_head(&mut self, status: u16, body: Body) -> Head {
        let mut head = Head { status, headers: Vec::new() };
        head.add("content-type", body.content_type().to_owned());
        head.add("request-id", self.report.request_id.clone());
        let answer = self.answer().map_or(&self.report.answer, |answer| answer.report());
        // A header says what was known when the message began, however the upstream's bytes were
        // cut.
        let asked = &self.report.upstream_model;
        let model = if answer.began_unnamed { asked } else { served_model(asked, answer) };
        if headers::is_value(model) {
            head.add("x-creole-model", model.to_owned());
        }
        if let Some(judge) = self.report.judge.as_ref().filter(|it| headers::is_value(&it.model)) {
            head.add("x-creole-judge", judge.model.clone());
        }
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
        if let HeadState::Held(upstream) = &mut self.output.head {
            head.headers.append(upstream);
        }
        if body != Body::Comments {
            // The upstream cannot be called again.
            self.client.body = Vec::new();
        }
        head
    }

    /// Writes a whole answer that is JSON.
    pub(super) fn answer_json(&mut self, body: &[u8]) {
        if self.output.is_held() {
            self.begin_json();
        }
        self.output.body.extend_from_slice(body);
        self.count_bytes(body.len());
    }

    // Five verbs end an exchange: settle what a call gave: the head, if there are bytes for it; an
    // error goes to `fail`. fail an error of an upstream or a host: told as a reply or as the
    // `error` event; then `finish`. refuse an error of a request, which no upstream gets: told as
    // `fail` does; then `end`. finish what the answer counted, and the time, go into the report;
    // then `end`. end outcome and status go into the report, those of the first call.

    /// Finishes an event before which the output had `before` bytes: makes the head if the event
    /// gave the first bytes, and turns an error into what the client can still be told.
    pub(super) fn settle(&mut self, result: Result<(), Error>, before: usize, now: Millis) {
        match result {
            Ok(()) => {
                self.hold_end(before);
                if self.output.body.len() == before {
                    return;
                }
                self.end_comments();
                if self.output.is_held()
                    && let Some(answer) = self.state.round().and_then(|round| round.events())
                {
                    let id = answer.report().upstream_id.clone();
                    if answer.is_stream() { self.begin_stream() } else { self.begin_message(id) }
                }
            }
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
                self.note_reason(&error);
                self.fail(&error, now);
            }
        }
        self.count_bytes_since(before);
        self.watchdog.sent(now);
    }

    /// Ends the exchange with an error: an HTTP error where the client has seen nothing, else the
    /// `error` event, also behind comments alone. The open block is not closed before it: Claude
    /// Code runs every tool call whose block was closed.
    fn fail(&mut self, error: &Error, now: Millis) {
        let answer = self.answer();
        let started = answer.is_some_and(|answer| answer.is_stream() && answer.has_started());
        self.finish(Outcome::Failed(error.kind, error.fault()), error.status, now);
        if self.output.is_held() && started {
            self.begin_stream();
        }
        self.write_error(error);
    }

    /// Writes an error in the form that the client was promised, by default as a reply.
    fn write_error(&mut self, error: &Error) {
        if self.output.is_held() {
            self.begin_error(error);
        }
        self.end_comments();
        let (id, out) = (&self.report.request_id, &mut self.output.body);
        match self.output.head {
            HeadState::Due(_, Body::Events) | HeadState::Sent(Body::Events) => {
                write_error::event(error, id, out);
            }
            _ => write_error::body(error, id, out),
        }
    }

    /// Refuses a request, perhaps one that follows a refusal.
    pub(super) fn refuse(&mut self, error: &Error) {
        self.note_reason(error);
        if error.should_retry == Some(false) && !self.report.warnings.guards().is_empty() {
            self.report.failed_by.get_or_insert(Cause::Guard);
        }
        if error.kind == ErrorKind::RequestTooLarge {
            self.report.failed_by.get_or_insert(Cause::RequestTooLarge);
        }
        self.end(Outcome::Failed(error.kind, error.fault()), error.status);
        let before = self.output.body.len();
        self.write_error(error);
        self.count_bytes_since(before);
    }

    /// Ends an answer that is over or given up, and puts its counts into the report.
    pub(super) fn finish(&mut self, outcome: Outcome, status: u16, now: Millis) {
        self.report = self.report();
        if outcome == Outcome::Answered && self.report.outcome == Outcome::Open {
            self.remember_help(now);
        }
        self.end(outcome, status);
        self.report.ended_at = Some(now);
    }

    /// Sets the outcome of the exchange and its status; only the first call counts.
    pub(super) fn end(&mut self, outcome: Outcome, status: u16) {
        if self.report.outcome == Outcome::Open {
            self.report.outcome = outcome;
            self.report.status = status;
        }
        self.client.body = Vec::new();
        self.steps = Steps::default();
        self.state.end();
    }

    /// Writes an error for a client that should have been told something and was not.
    pub(super) fn tell_nothing_came(&mut self) {
        self.write_error(&Error::answer_empty());
    }

    /// Keeps for the log why the exchange failed.
    fn note_reason(&mut self, error: &Error) {
        self.report.reason = error.reason_for_log();
        let codes = error.rejection().map(|rejection| rejection.codes.join(","));
        self.report.upstream_codes = codes.filter(|codes| !codes.is_empty()).map(|mut codes| {
            self.hide_credentials(&mut codes);
            codes
        });
    }

    /// Removes credentials from an upstream's words, which can quote the credential that it got. It
    /// need not look like one.
    pub(super) fn hide_credentials(&self, message: &mut String) {
        let Some(upstream) = self.upstream() else { return };
        let Ok(sent) = self.upstream_headers(upstream, false) else { return };
        upstream_error::hide(message, headers::credentials(&sent, &upstream.headers));
    }

    /// Counts the bytes behind `before` as bytes for the client.
    pub(super) fn count_bytes_since(&mut self, before: usize) {
        debug_assert!(self.output.body.len() >= before, "bytes for the client were lost");
        self.count_bytes(self.output.body.len().saturating_sub(before));
    }

    /// Adds to the number of bytes for the client in the report.
    pub(super) fn count_bytes(&mut self, bytes: usize) {
        self.report.response_bytes = self.report.response_bytes.saturating_add(bytes);
    }
}
