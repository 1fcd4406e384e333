//! The response's way through an exchange.

use super::models::LIST_BYTES_MAX;
use super::seam::{ENCODING_UNREADABLE, unreachable_upstream};
use super::unreachable::Unreachable;
use super::{Body, End, Exchange, Head, HeadState, Pings, ResponseHead, State, count};
use crate::Millis;
use crate::error::{self, Error, Fault, Rejection};
use crate::headers::{self, Header, Headers};
use crate::observe::report::{Cause, Outcome};
use crate::stream::watchdog::Ending;
use crate::stream::{self, Answer};
use crate::text::words::BYTE_ORDER_MARK;
use crate::upstream_error;

/// An upstream's error body is read up to here; the rest would not be shown anyway.
const ERROR_BODY_BYTES_MAX: usize = 256 << 10;

impl Exchange {
    /// The head of the upstream's response has come.
    pub fn handle_response_head(
        &mut self,
        status: u16,
        headers: &[Header],
        now: Millis,
    ) -> ResponseHead {
        let (context, count) = match std::mem::replace(&mut self.state, State::Ended) {
            State::Waiting { context, count } => (context, count),
            State::Listing { status: None, body } => {
                self.report.head_at = Some(now);
                self.report.upstream_status = Some(status);
                self.head = HeadState::Held(headers::to_client(headers, now));
                // The time for the list goes on: it is one for head and body.
                self.state = State::Listing { status: Some(status), body };
                return ResponseHead::Translate;
            }
            other => {
                // Not ours, a second head, or one for a request that was answered here.
                self.state = other;
                return ResponseHead::PassThrough;
            }
        };
        self.report.head_at = Some(now);
        self.report.upstream_status = Some(status);
        self.report.upstream_request_id = headers::request_id(headers).map(str::to_owned);
        self.head = HeadState::Held(headers::to_client(headers, now));
        let encoding = headers.value("content-encoding").unwrap_or_default();
        // Words for no encoding at all: `none` is set on purpose against compression (Next.js).
        let plain = ["", "identity", "none", "utf-8", "utf8"];
        self.state = if let Some(count) = count.filter(|count| count.takes(status)) {
            State::Counting { count, status, body: Vec::new() }
        } else if !plain.iter().any(|plain| encoding.trim().eq_ignore_ascii_case(plain)) {
            // The request asked for `identity`. What it says cannot be read; the status can.
            self.report.warnings.add("upstream_encoding");
            let status = if status < 400 { 502 } else { status };
            let message = ENCODING_UNREADABLE;
            let body = format!("{{\"error\":{{\"message\":\"{message}\"}}}}").into_bytes();
            State::Refused { context, status, body }
        } else if (200..300).contains(&status) {
            let mut answer = Box::new(Answer::new(context, &self.config.settings, self.ids));
            if self.pings == Pings::AfterHead {
                answer.begin_early();
            }
            State::Undecided { answer, seen: Vec::new() }
        } else {
            State::Refused { context, status, body: Vec::new() }
        };
        let is_whole =
            matches!(&self.state, State::Undecided { answer, .. } if !answer.is_stream());
        self.watchdog.head(!is_whole, now);
        if !matches!(self.state, State::Undecided { .. }) {
            // The status decides already; the body only adds words, so it is not waited for long.
            self.watchdog.ending(Ending::Sure, now);
        }
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
                let (kind, status) = error::of_status(*status);
                let error = Error::new(Fault::Upstream, kind, "").with_status(status);
                Some(self.error_head(&error))
            }
            State::Counting { .. } | State::Listing { status: Some(_), .. } => {
                Some(self.make_head(200, Body::Json))
            }
            state if state.answer()?.is_stream() => Some(self.stream_head()),
            _ => Some(self.message_head(None)),
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
        self.report.upstream_response_bytes =
            self.report.upstream_response_bytes.saturating_add(piece.len());
        self.watchdog.byte(now);
        let before = out.len();
        // Cut the piece at the limit, so that the same bytes are read however the body was split.
        let piece = piece.get(..self.room()).unwrap_or(piece);
        let mut result = self.take_piece(piece, out);
        if result.is_err() {
            result = match std::mem::replace(&mut self.state, State::Ended) {
                State::Events { answer } => self.conclude(answer, result),
                state => {
                    self.state = state;
                    result
                }
            };
        }
        let heard = match &self.state {
            State::Events { answer } => {
                Some((answer.report().progress, answer.spoken(), answer.ending()))
            }
            // Whatever comes of a whole answer is content.
            State::Whole { body, ending, .. } => {
                let size = body.len() as u64;
                Some((size, size, *ending))
            }
            _ => None,
        };
        if let Some((progress, spoken, ending)) = heard {
            self.watchdog.progress(spoken, now);
            self.watchdog.ending(ending, now);
            if progress > 0 {
                self.report.content_at.get_or_insert(now);
            }
        }
        if self.room() == 0 {
            return self.handle_response_end(End::Complete, now, out);
        }
        let head = self.settle(result, before, now, out);
        if matches!(&self.state, State::Events { answer } if answer.is_done()) {
            // `[DONE]`: a server that keeps the connection open must not keep the client waiting.
            self.finish(Outcome::Answered, 200, now);
            return head;
        }
        if self.watchdog.is_cut_over(now) && matches!(self.state, State::Events { .. }) {
            let late = self.end_early(now, out);
            return head.or(late);
        }
        if out.len() == before && self.may_ping() && self.watchdog.ping_is_due(now) {
            return self.ping(now, out);
        }
        head
    }

    fn take_piece(&mut self, piece: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        match &mut self.state {
            State::Undecided { seen, .. } => {
                let known = seen.len();
                seen.extend_from_slice(piece);
                // White space can go on for long, and is not looked at again.
                let found = if known > BYTE_ORDER_MARK.len() {
                    first_of(piece)
                } else {
                    first_of_body(seen)
                };
                let Some(first) = found else {
                    let size = seen.len();
                    return self.check_size(size);
                };
                // Content types lie: servers send streams as text/plain, and errors and whole
                // answers as text/event-stream. The first byte does not.
                let whole = matches!(first, b'{' | b'[' | b'<' | b'"');
                let State::Undecided { mut answer, seen } =
                    std::mem::replace(&mut self.state, State::Ended)
                else {
                    return Ok(());
                };
                if whole {
                    let size = seen.len();
                    let ending = ending_of(&seen).unwrap_or(Ending::Open);
                    self.state = State::Whole { answer, body: seen, ending };
                    return self.check_size(size);
                }
                let result = answer.handle_piece(&seen, out);
                self.state = State::Events { answer };
                result
            }
            State::Events { answer } => answer.handle_piece(piece, out),
            State::Whole { body, ending, .. } => {
                *ending = ending_of(piece).unwrap_or(*ending);
                body.extend_from_slice(piece);
                let size = body.len();
                self.check_size(size)
            }
            State::Refused { body, .. }
            | State::Counting { body, .. }
            | State::Listing { body, .. } => {
                body.extend_from_slice(piece);
                Ok(())
            }
            State::Requested
            | State::Waiting { .. }
            | State::Failed { .. }
            | State::Ended
            | State::PassThrough => Ok(()),
        }
    }

    /// How much more of the body is read, where the rest would not matter: an error is told by its
    /// beginning, and what is too long for an answer is no count.
    fn room(&self) -> usize {
        let (body, max) = match &self.state {
            State::Refused { body, .. } => (body, ERROR_BODY_BYTES_MAX),
            State::Counting { body, .. } => (body, self.config.settings.response_bytes_max),
            State::Listing { body, .. } => (body, LIST_BYTES_MAX),
            _ => return usize::MAX,
        };
        max.saturating_sub(body.len())
    }

    fn check_size(&self, size: usize) -> Result<(), Error> {
        if size > self.config.settings.response_bytes_max {
            return Err(Error::answer_too_large());
        }
        Ok(())
    }

    /// Ends an answer of which nothing is missing but the end of the upstream's body.
    pub(super) fn end_early(&mut self, now: Millis, out: &mut Vec<u8>) -> Option<Head> {
        let answer = self.state.answer();
        self.leaves_upstream = answer.is_some_and(|answer| answer.ending() == Ending::Cut);
        self.handle_response_end(End::Complete, now, out)
    }

    /// The upstream's body is over.
    pub fn handle_response_end(
        &mut self,
        end: End,
        now: Millis,
        out: &mut Vec<u8>,
    ) -> Option<Head> {
        let head = self.end_unanswered(now, out);
        if self.is_ended() {
            return head;
        }
        let before = out.len();
        let cause;
        let result = match std::mem::replace(&mut self.state, State::Ended) {
            State::PassThrough => {
                self.state = State::PassThrough;
                return None;
            }
            // A list has ended above.
            State::Ended | State::Requested | State::Listing { .. } => return None,
            State::Waiting { .. } => {
                cause = Some(Cause::Unreachable);
                Err(unreachable_upstream(&Unreachable::Closed))
            }
            State::Refused { mut context, status, body } => {
                cause = Some(Cause::UpstreamRefused);
                let error = upstream_error::from_upstream(status, &body, &context);
                if let Some(stop_reason) = upstream_error::stop_reason(status, &error) {
                    // Nobody counted the prompt.
                    context.input_tokens = 0;
                    let mut answer = Answer::new(context, &self.config.settings, self.ids);
                    answer.write_own("", stop_reason, out);
                    self.state = State::Events { answer: Box::new(answer) };
                    Ok(())
                } else {
                    let error = self.with_path(error, status);
                    self.take_refusal(&context, error)
                }
            }
            State::Failed { error, .. } => {
                let refused = self.report.upstream_status.is_some_and(|status| status >= 400);
                cause = refused.then_some(Cause::UpstreamRefused);
                Err(error)
            }
            State::Counting { count, status, body } => match count::unknown_model(status, &body) {
                Some(error) => {
                    cause = Some(Cause::UpstreamRefused);
                    Err(error)
                }
                None => return self.end_count(count, count::readable(status, &body), now, out),
            },
            State::Undecided { mut answer, seen } => {
                cause = Some(Cause::UpstreamBrokeOff);
                let result = match end {
                    End::Complete if first_of_body(&seen).is_none() => Err(Error::answer_empty()),
                    _ => answer.handle_end(out),
                };
                self.conclude(answer, result)
            }
            State::Whole { mut answer, body, .. } => {
                cause = (end == End::Aborted).then_some(Cause::UpstreamBrokeOff);
                let result = if end == End::Complete || stream::is_whole(&body) {
                    answer.handle_whole(&body, out)
                } else {
                    answer.handle_end(out)
                };
                self.conclude(answer, result)
            }
            State::Events { mut answer } => {
                cause = Some(Cause::UpstreamBrokeOff);
                if end == End::Aborted {
                    answer.break_off();
                }
                let result = answer.handle_end(out);
                self.conclude(answer, result)
            }
        };
        if self.wants_retry() {
            return None;
        }
        let is_cause = |error: &Error| match cause {
            // The upstream may have told an error before it broke off.
            Some(Cause::UpstreamBrokeOff) => error.is_broken_off(),
            _ => true,
        };
        if let (Err(error), Some(cause)) = (&result, cause)
            && is_cause(error)
        {
            self.report.failed_by.get_or_insert(cause);
        }
        let head = self.settle(result, before, now, out);
        // If there was an error, that is how it ended.
        self.finish(Outcome::Answered, 200, now);
        head
    }

    /// An error with the path that the upstream does not serve, if that is what it says.
    fn with_path(&self, mut error: Error, status: u16) -> Error {
        let has_no_path = error.rejection().is_some_and(Rejection::has_no_path);
        if let Some(upstream) = self.upstream().filter(|_| has_no_path) {
            let (path, words) = (self.upstream_path(upstream), &error.message);
            error.message = format!(
                "Upstream does not serve {path} (HTTP {status}); check url and base_path of upstream {}: {words}",
                upstream.name
            );
        }
        error
    }

    /// Goes on with an answer of which a part was taken, or with what its error asks for if nothing came before that:
    /// routers give their status before they have asked the server behind them.
    fn conclude(&mut self, answer: Box<Answer>, result: Result<(), Error>) -> Result<(), Error> {
        let result = match result {
            Err(error) if !answer.has_started() => self.take_refusal(answer.context(), error),
            result => result,
        };
        if self.wants_retry() {
            // There may be no other request, and then this is what the error is told with.
            self.report.answer = answer.report().clone();
            self.report.warnings.merge(answer.warnings());
        } else {
            self.state = State::Events { answer };
        }
        result
    }
}

/// A bracket may be the end of a whole answer. Only `handle_timeout` reads the body to be sure, so that an
/// answer that ends by itself is read once. A piece of white space says nothing.
fn ending_of(piece: &[u8]) -> Option<Ending> {
    match piece.trim_ascii_end().last()? {
        b'}' | b']' | b'"' => Some(Ending::Sure),
        _ => Some(Ending::Open),
    }
}

/// The first byte of a body that says something: after a byte order mark and white space. `None`
/// while that is not known.
fn first_of_body(seen: &[u8]) -> Option<u8> {
    let rest = match seen.strip_prefix(BYTE_ORDER_MARK) {
        Some(rest) => rest,
        None if BYTE_ORDER_MARK.starts_with(seen) => return None,
        None => seen,
    };
    first_of(rest)
}

fn first_of(text: &[u8]) -> Option<u8> {
    text.iter().copied().find(|byte| !byte.is_ascii_whitespace())
}
