//! Results of an upstream call: the answer, a failure in the host, or a timeout.

use super::ask::Ask;
use super::round::Round;
use super::seam::{CallId, Cancel, End, Failure};
use super::watchdog::DueAction;
use super::{Exchange, base};
use crate::Millis;
use crate::answer::Ending;
use crate::error::{self, Error, ErrorKind, Fault};
use crate::headers::{self, Header};
use crate::observe::report::Cause;
use crate::steps::{Came, Nothing};

impl Exchange {
    /// Handles the head of the answer to a call.
    pub fn handle_call_head(&mut self, id: CallId, status: u16, headers: &[Header], now: Millis) {
        if self.handle_ask_head(id, status, headers, now) {
            return;
        }
        // Ignore a second head, or a head for a request that is already answered.
        let Some(round) = self.state.round_of(id).filter(|round| round.awaits_head()) else {
            return;
        };
        round.handle_head(status, headers, &mut self.report.warnings);
        self.report.head_at.get_or_insert(now);
        self.report.upstream_status = Some(status);
        self.output.hold(headers::to_client(headers, now));
        self.report.upstream_request_id = headers::request_id(headers).map(str::to_owned);
        let is_whole = round.answer().is_some_and(|answer| !answer.is_stream());
        self.watchdog.head(!is_whole, now);
        if round.answer().is_none() {
            // An error status decides the result of the call; the body only adds text, so the wait
            // for the body is short.
            self.watchdog.ending(Ending::Sure, now);
        }
        self.note_later_head(headers, now);
        if !self.may_call_again() {
            self.drop_request_body();
        }
    }

    /// Makes the response head for the client from the data known now, for a host that cannot hold
    /// back the head. Later errors can then appear only in the body.
    pub fn release_head(&mut self) {
        if !self.output.is_held() {
            return;
        }
        if self.state.asks().iter().any(|ask| ask.is_of_client() && ask.has_head()) {
            return self.begin_json();
        }
        let Some(round) = self.state.round() else { return };
        if let Some(status) = round.refusal_status() {
            let (kind, status) = error::of_status(status);
            self.begin_error(&Error::new(Fault::Upstream, kind, "").with_status(status));
        } else if let Some(answer) = round.answer() {
            if answer.is_stream() { self.begin_stream() } else { self.begin_message(None) }
        }
    }

    /// Handles a piece of the body of an answer, which may be split at any byte.
    pub fn handle_call_body(&mut self, id: CallId, piece: &[u8], now: Millis) {
        if piece.is_empty() || self.handle_ask_piece(id, piece, now) {
            return;
        }
        let Some(round) = self.state.round_of(id) else { return };
        let received = &mut self.report.upstream_response_bytes;
        *received = received.saturating_add(piece.len());
        self.watchdog.byte(now);
        let before = self.output.body.len();
        // Cut the piece at the limit, so that the same bytes are read however the body was split.
        let piece = piece.get(..round.bytes_left()).unwrap_or(piece);
        let mut result = round.handle_piece(piece, &mut self.output.body);
        if result.is_err() {
            let Some(told) = self.conclude(result) else { return };
            result = told;
        }
        self.note_progress(now);
        let Some(round) = self.state.round() else { return };
        if round.bytes_left() == 0 {
            return self.end_call(id, End::Complete, Cancel::ReadOut, now);
        }
        self.settle(result, before, now);
        let Some(answer) = self.state.round().map(Round::events) else { return };
        if answer.is_some_and(|answer| answer.is_done()) {
            // A server that keeps the connection open after `[DONE]` must not keep the client
            // waiting.
            self.end_answer(now);
        } else if answer.is_some() && self.watchdog.is_cut_over(now) {
            self.end_early(id, now);
        } else if self.output.body.len() == before
            && self.may_ping()
            && self.watchdog.ping_is_due(now)
        {
            self.ping(now);
        }
    }

    fn note_progress(&mut self, now: Millis) {
        let heard = self.state.round().and_then(|round| round.heard());
        let Some((progress, spoken, ending)) = heard else { return };
        if progress > 0 {
            self.watchdog.begun();
        }
        self.watchdog.progress(spoken, now);
        self.watchdog.ending(ending, now);
        if progress > 0 {
            self.report.content_at.get_or_insert(now);
        }
    }

    /// Handles the end of the body of an answer.
    pub fn handle_call_end(&mut self, id: CallId, end: End, now: Millis) {
        self.state.end_call(id);
        self.end_call(id, end, Cancel::ReadOut, now);
    }

    /// Ends a call. `cancel`: the way to end the call if the host has not ended it.
    fn end_call(&mut self, id: CallId, end: End, cancel: Cancel, now: Millis) {
        self.end_ask(id, end, cancel, now);
        let before = self.output.body.len();
        let Some(round) = self.state.round_of(id) else { return };
        let (result, cause) = round.handle_end(end, &mut self.output.body);
        self.state.cancel_call(id, cancel);
        let Some(result) = self.conclude(result) else { return };
        if let (Err(error), Some(cause)) = (&result, cause)
            // The upstream may have sent an error before it broke off.
            && (cause != Cause::UpstreamBrokeOff || error.is_broken_off())
        {
            self.report.failed_by.get_or_insert(cause);
        }
        self.settle(result, before, now);
        // Ending the answer has no effect if an error has already ended the exchange.
        if self.state.paused_until().is_none() {
            self.end_answer(now);
        }
    }

    /// Returns the result of a call for the client, or `None` if the upstream is called again with
    /// a change that its error asks for. Such an error may follow even a status 200: routers send
    /// their status before they call the server behind them.
    fn conclude(&mut self, result: Result<(), Error>) -> Option<Result<(), Error>> {
        let Err(mut error) = result else { return Some(Ok(())) };
        let Some(round) = self.state.take_round() else { return Some(Err(error)) };
        let taken = match round.refused_context() {
            Some(context) => {
                self.name_address(&mut error);
                self.take_refusal(context, error)
            }
            None => Err(error),
        };
        match taken {
            Ok(refusal) => {
                // The retry may turn out to be impossible, and then the error is reported with the
                // data of this answer.
                if let Some(answer) = round.answer() {
                    self.report.answer = answer.report().clone();
                    self.report.warnings.merge(answer.warnings());
                }
                self.writer = round.into_writer();
                self.state.retry(refusal);
                None
            }
            Err(error) => {
                self.state.call(round);
                Some(Err(error))
            }
        }
    }

    /// Adds the address of the request to an error, if the server at the address is not the API.
    fn name_address(&self, error: &mut Error) {
        let (Some(upstream), Some(rejection)) = (self.upstream(), error.rejection()) else {
            return;
        };
        let Some(wrong) = rejection.wrong_address() else { return };
        let (path, status) =
            (self.upstream_path(upstream), self.report.upstream_status.unwrap_or_default());
        error.message = wrong.words_with(&path, status, &upstream.name, &rejection.message);
    }

    /// Ends an answer that is complete, except that the upstream's body has not ended.
    fn end_early(&mut self, id: CallId, now: Millis) {
        let is_cut = self.answer().is_some_and(|answer| answer.ending() == Ending::Cut);
        let cancel = if is_cut { Cancel::Cut } else { Cancel::ReadOut };
        self.end_call(id, End::Complete, cancel, now);
    }

    /// Handles the failure of a call in the host. The exchange may go on without the call's answer.
    pub fn handle_call_failure(&mut self, id: CallId, failure: Failure, now: Millis) {
        self.state.end_call(id);
        if self.state.ask_mut(id).is_some_and(|ask| !ask.is_of_client()) {
            self.state.take_ask(id);
            return self.handle_came(id, Came::Nothing(failure.as_nothing()), now);
        }
        if self.state.ask_mut(id).is_none() && self.state.round_of(id).is_none() {
            return;
        }
        if failure.is_of_upstream() {
            self.end_without_upstream(now);
        }
        let status = self.report.upstream_status;
        if failure == Failure::Undecodable && status.is_some_and(|status| status >= 400) {
            // The error status of the upstream's response is more informative than the failure.
            self.handle_call_end(id, End::Complete, now);
            if self.state.is_due() || self.state.paused_until().is_some() {
                return;
            }
        }
        self.handle_failure(failure, now);
    }

    /// Handles a failure of the whole exchange in the host. The client gets an error, unless its
    /// answer is complete.
    pub fn handle_failure(&mut self, failure: Failure, now: Millis) {
        // Only the step that holds the answer's end can fail once the answer is complete.
        if self.steps.is_behind() {
            return self.give_up_step(failure.as_nothing(), now);
        }
        if self.is_ended() {
            return;
        }
        let has_no_path = failure == Failure::NoRoute && self.state.is_passed();
        let (cause, mut error) = failure.into_error();
        if has_no_path {
            // The client asked for a path that there is not.
            error = error.caused_by_client();
            error.message.push_str(base::HINT);
        }
        self.watchdog.byte(now);
        self.report.failed_by.get_or_insert(cause);
        self.settle(Err(error), self.output.body.len(), now);
    }

    /// Performs the action that is due at the time of [`Exchange::poll_timeout`]: sends a ping,
    /// ends a complete answer, or abandons an upstream that has stalled. A call before that time
    /// has no effect.
    pub fn handle_timeout(&mut self, now: Millis) {
        if self.state.asks().is_empty() && self.steps.is_behind() {
            if self.steps.until().is_some_and(|until| now >= until) {
                self.give_up_step(Nothing::TimedOut, now);
            }
            return;
        }
        if let Some(until) = self.state.paused_until() {
            if now >= until {
                self.state.end_pause();
            } else if self.may_ping_unasked() && self.watchdog.ping_is_due(now) {
                self.ping(now);
            }
            return;
        }
        // No action is due after the end, even for a host whose timer still runs.
        if !self.has_timeout() {
            return;
        }
        let mut due = self.watchdog.due(now);
        if due == DueAction::End && self.state.round().is_some_and(|round| round.lacks_end()) {
            self.watchdog.ending(Ending::Open, now);
            due = self.watchdog.due(now);
        }
        match due {
            DueAction::Nothing => {}
            DueAction::Ping if self.may_ping_unasked() => self.ping(now),
            DueAction::Ping => self.watchdog.sent(now),
            DueAction::End => {
                if let Some(id) = self.client_call() {
                    self.end_early(id, now);
                }
            }
            DueAction::Stalled(reason) => self.give_up(reason, now),
        }
    }

    /// Returns true if the answer to an open call has a timeout.
    pub(super) fn has_timeout(&self) -> bool {
        self.state.round().is_some() || self.state.asks().iter().any(|ask| !ask.is_of_host())
    }

    /// Returns the id of the call whose answer is for the client.
    pub(super) fn client_call(&self) -> Option<CallId> {
        let round = self.state.round().map(Round::id);
        round.or_else(|| self.state.asks().iter().find(|ask| ask.is_of_client()).map(Ask::id))
    }

    /// Abandons an upstream that has stalled.
    fn give_up(&mut self, reason: &str, now: Millis) {
        let Some(id) = self.client_call() else {
            return self.time_out_questions(now);
        };
        if let Some(round) = self.state.round_mut().filter(|round| round.events().is_some())
            && let Some(answer) = round.answer_mut()
        {
            answer.break_off();
            if answer.is_complete() {
                return self.end_call(id, End::Aborted, Cancel::ReadOut, now);
            }
        }
        self.end_without_upstream(now);
        if self.is_ended() {
            return;
        }
        let error = Error::new(Fault::Upstream, ErrorKind::Timeout, reason);
        if self.begin_pause(&error, now) {
            return;
        }
        self.report.warnings.acted("stall");
        self.report.failed_by.get_or_insert(Cause::Stall);
        self.settle(Err(error), self.output.body.len(), now);
    }
}
