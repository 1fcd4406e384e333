//! Output of an exchange: head and bytes for the client, and the methods that end an exchange.

use std::borrow::Cow;
use std::mem;

use super::seam::{Failure, Head};
use super::steps::Steps;
use super::{Exchange, JSON};
use crate::Millis;
use crate::error::{Error, ErrorKind, Rejection};
use crate::headers::{self, Header};
use crate::observe::report::{Cause, Outcome, served_model};
use crate::upstream_error;

/// Status, headers and bytes for the client, until the host polls them.
#[derive(Debug)]
pub(super) struct Output {
    head: HeadState,
    pub(super) body: Vec<u8>,
}

#[derive(Debug)]
enum HeadState {
    /// State: the response head is not known yet. The headers are the upstream's headers to
    /// forward.
    Held(Vec<Header>),
    /// State: the response head is known, and the host has not polled the head.
    Due(Head, Body),
    /// State: the host has polled the response head, which announced this kind of body.
    Sent(Body),
}

/// Kind of body that a response head announces to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body {
    Json,
    /// Event stream that has sent only comments up to now. The upstream may still be called again.
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

    /// Returns true if no response head has been made for the client.
    pub(super) fn is_held(&self) -> bool {
        matches!(self.head, HeadState::Held(_))
    }

    /// Returns true if the client has received nothing of an answer: no head, or a head with
    /// nothing but comments after it.
    pub(super) fn is_blank(&self) -> bool {
        matches!(self.promised(), None | Some(Body::Comments))
    }

    /// Returns the kind of body announced to the client, if a response head was made.
    pub(super) fn promised(&self) -> Option<Body> {
        match self.head {
            HeadState::Held(_) => None,
            HeadState::Due(_, body) | HeadState::Sent(body) => Some(body),
        }
    }

    /// Keeps the forwarded headers of an upstream's head for the client's head.
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

    /// Moves the bytes for the client to `out`. The bytes are copied only if `out` is not empty.
    pub(super) fn take_body(&mut self, out: &mut Vec<u8>) {
        if out.is_empty() {
            mem::swap(out, &mut self.body);
        } else {
            out.append(&mut self.body);
        }
    }
}

impl Exchange {
    /// Makes the response head of an event stream.
    pub(super) fn begin_stream(&mut self) {
        self.begin_events(Body::Events);
    }

    /// Makes the response head of a stream that begins with comments and may continue with events.
    pub(super) fn begin_comments(&mut self) {
        self.begin_events(Body::Comments);
    }

    fn begin_events(&mut self, body: Body) {
        let mut head = self.make_head(200, body);
        // Proxies that compress or rewrite a body buffer it first, which stalls the stream.
        head.add("cache-control", "no-cache, no-transform".to_owned());
        head.add("x-accel-buffering", "no".to_owned());
        self.output.head = HeadState::Due(head, body);
    }

    /// Drops the client's body once a stream that began with comments gets its first event, because
    /// the upstream cannot be called again.
    fn end_comments(&mut self) {
        if let HeadState::Due(_, body) | HeadState::Sent(body) = &mut self.output.head
            && *body == Body::Comments
        {
            *body = Body::Events;
            self.drop_request_body();
        }
    }

    /// Makes the response head of a message that is sent as one JSON text.
    pub(super) fn begin_message(&mut self, upstream_id: Option<String>) {
        let mut head = self.make_head(200, Body::Json);
        if let Some(id) = upstream_id.filter(|id| headers::is_value(id)) {
            head.add("x-creole-upstream-id", id);
        }
        self.output.head = HeadState::Due(head, Body::Json);
    }

    /// Makes the response head of a JSON body that is not a message.
    pub(super) fn begin_json(&mut self) {
        let head = self.make_head(200, Body::Json);
        self.output.head = HeadState::Due(head, Body::Json);
    }

    /// Makes the head of an error response, whose body follows.
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

    /// Makes a response head with the headers common to all answers.
    fn make_head(&mut self, status: u16, body: Body) -> Head {
        let mut head = Head { status, headers: Vec::new() };
        head.add("content-type", body.content_type().to_owned());
        head.add("request-id", self.report.request_id.clone());
        let answer = self.answer().map_or(&self.report.answer, |answer| answer.report());
        // The header must not depend on how the upstream's bytes were split, so only data known
        // when the message began counts.
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
        if body != Body::Comments && !self.steps.goes_on() {
            // Drop the client's body, because the upstream cannot be called again.
            self.client.body = Vec::new();
        }
        head
    }

    /// Writes a complete JSON response for the client.
    pub(super) fn answer_json(&mut self, body: &[u8]) {
        if self.output.is_held() {
            self.begin_json();
        }
        self.output.body.extend_from_slice(body);
        self.count_bytes(body.len());
    }

    // Five methods end an exchange. `settle` finishes the output of a call, makes the head if bytes
    // were written, and passes an error to `fail`. `fail` reports an error of an upstream or a
    // host, as a reply or as the `error` event, and calls `finish`. `refuse` reports an error of a
    // request that no upstream gets, and calls `end`. `finish` copies the answer's counts and the
    // time into the report, and calls `end`. `end` copies the outcome and status of its first call
    // into the report.

    /// Finishes one input event, before which the output had `before` bytes. Makes the head if
    /// these are the first bytes, and turns an error into a form that the client can still receive.
    pub(super) fn settle(&mut self, result: Result<(), Error>, before: usize, now: Millis) {
        match result {
            Err(error) if self.begin_pause(&error, now) => return,
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

    /// Ends the exchange with an error: an HTTP error if the client has received nothing, else the
    /// `error` event, also after comments alone. The open block is not closed first, because Claude
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

    /// Returns the `error` event with which the host ends a stream whose rest it cannot send, even
    /// if the exchange has ended. The report names the failure.
    pub fn replace_rest(&mut self, failure: Failure, now: Millis) -> Vec<u8> {
        let (cause, error) = failure.into_error();
        let outcome = Outcome::Failed(error.kind, error.fault());
        if !self.is_ended() {
            self.finish(outcome, error.status, now);
        }
        self.report.outcome = outcome;
        self.report.status = error.status;
        self.report.failed_by = Some(cause);
        let mut event = Vec::new();
        self.client.protocol.write_error_event(&error, &self.report.request_id, &mut event);
        self.output.body.clear();
        self.count_bytes(event.len());
        event
    }

    /// Writes an error in the format announced to the client, by default as a JSON response.
    fn write_error(&mut self, error: &Error) {
        if self.output.is_held() {
            self.begin_error(error);
        }
        self.end_comments();
        let (id, out) = (&self.report.request_id, &mut self.output.body);
        let protocol = self.client.protocol;
        match self.output.head {
            HeadState::Due(_, Body::Events) | HeadState::Sent(Body::Events) => {
                protocol.write_error_event(error, id, out);
            }
            _ => protocol.write_error(error, id, out),
        }
    }

    /// Refuses a client request, including a retry that could not be sent.
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

    /// Ends an answer that is complete or abandoned, and copies the answer's counts into the
    /// report.
    pub(super) fn finish(&mut self, outcome: Outcome, status: u16, now: Millis) {
        self.report = self.report();
        if outcome == Outcome::Answered && self.report.outcome == Outcome::Open {
            self.remember_help(now);
        }
        self.end(outcome, status);
        self.report.ended_at = Some(now);
    }

    /// Sets the outcome and status of the exchange; only the first call has an effect.
    pub(super) fn end(&mut self, outcome: Outcome, status: u16) {
        if self.report.outcome == Outcome::Open {
            self.report.outcome = outcome;
            self.report.status = status;
        }
        self.client.body = Vec::new();
        self.steps = Steps::default();
        self.state.end();
    }

    /// Writes an error for a client that would otherwise get an empty response.
    pub(super) fn tell_nothing_came(&mut self) {
        self.write_error(&Error::answer_empty());
    }

    /// Stores the reason and the error codes of a failure in the report for the log.
    fn note_reason(&mut self, error: &Error) {
        self.report.reason = error.reason_for_log();
        let codes = error.rejection().map(|rejection| rejection.codes.join(","));
        self.report.upstream_codes = codes.filter(|codes| !codes.is_empty()).map(|mut codes| {
            self.hide_credentials(&mut codes);
            codes
        });
    }

    /// Removes credentials from an upstream's error text, which can quote the credential that the
    /// upstream received. The search does not rely on the usual format of credentials.
    pub(super) fn hide_credentials(&self, message: &mut String) {
        let Some(upstream) = self.upstream() else { return };
        let Ok(sent) = self.upstream_headers(upstream, false) else { return };
        upstream_error::hide(message, headers::credentials(&sent, &upstream.headers));
    }

    /// Adds the output bytes after index `before` to the count of bytes for the client.
    pub(super) fn count_bytes_since(&mut self, before: usize) {
        debug_assert!(self.output.body.len() >= before, "bytes for the client were lost");
        self.count_bytes(self.output.body.len().saturating_sub(before));
    }

    /// Adds `bytes` to the number of response bytes in the report, which is logged.
    pub(super) fn count_bytes(&mut self, bytes: usize) {
        self.report.response_bytes = self.report.response_bytes.saturating_add(bytes);
    }
}
