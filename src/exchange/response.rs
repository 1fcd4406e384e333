//! Results of a call: the upstream's answer, a failure of the host's, or a timeout.

use super::seam::{End, Failure};
use super::watchdog::Due;
use super::{Exchange, base};
use crate::Millis;
use crate::answer::Ending;
use crate::error::{self, Error, ErrorKind, Fault};
use crate::headers::{self, Header};
use crate::observe::report::Cause;

impl Exchange {
    /// Takes the head of the upstream's answer.
    pub fn handle_call_head(&mut self, status: u16, headers: &[Header], now: Millis) {
        if self.handle_ask_head(status, headers, now) {
            return;
        }
        // Not ours, a second head, or one for a request that was answered here.
        let Some(round) = self.state.round_mut().filter(|round| round.awaits_head()) else {
            return;
        };
        round.handle_head(status, headers, &mut self.report.warnings);
        self.report.head_at = Some(now);
        self.report.upstream_status = Some(status);
        self.output.hold(headers::to_client(headers, now));
        self.report.upstream_request_id = headers::request_id(headers).map(str::to_owned);
        let is_whole = round.answer().is_some_and(|answer| !answer.is_stream());
        self.watchdog.head(!is_whole, now);
        if round.answer().is_none() {
            // The status decides already; the body only adds words, so it is not waited for long.
            self.watchdog.ending(Ending::Sure, now);
        }
        if !self.may_call_again() {
            self.forget_request_body();
        }
    }

    /// Makes the client's head of what is known now, for a host that cannot hold it back. Later
    /// errors can then only be told in the body.
    pub fn release_head(&mut self) {
        if !self.output.is_held() {
            return;
        }
        if self.state.ask_open().is_some_and(|ask| ask.is_of_client() && ask.has_head()) {
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

    /// Takes a piece of the upstream's body, which may be cut anywhere.
    pub fn handle_call_body(&mut self, piece: &[u8], now: Millis) {
        if piece.is_empty() || self.handle_ask_piece(piece, now) {
            return;
        }
        let Some(round) = self.state.round_mut() else { return };
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
            return self.end_call(End::Complete, false, now);
        }
        self.settle(result, before, now);
        let Some(answer) = self.state.round().map(super::round::Round::events) else { return };
        if answer.is_some_and(|answer| answer.is_done()) {
            // `[DONE]`: a server that keeps the connection open must not keep the client waiting.
            self.end_answer(false, now);
        } else if answer.is_some() && self.watchdog.is_cut_over(now) {
            self.end_early(now);
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

    /// Takes the end of the upstream's body.
    pub fn handle_call_end(&mut self, end: End, now: Millis) {
        self.end_call(end, false, now);
    }

    /// Ends the call. `is_cut`: the upstream goes on with what nobody reads.
    fn end_call(&mut self, end: End, is_cut: bool, now: Millis) {
        if self.state.ask_open().is_some() {
            return self.end_ask(end, is_cut, now);
        }
        let before = self.output.body.len();
        let Some(round) = self.state.round_mut() else { return };
        let (result, cause) = round.handle_end(end, &mut self.output.body);
        let Some(result) = self.conclude(result) else { return };
        if let (Err(error), Some(cause)) = (&result, cause)
            // The upstream may have told an error before it broke off.
            && (cause != Cause::UpstreamBrokeOff || error.is_broken_off())
        {
            self.report.failed_by.get_or_insert(cause);
        }
        self.settle(result, before, now);
        // If there was an error, that is how it ended.
        self.end_answer(is_cut, now);
    }

    /// Returns the result that the client is told, or nothing if the upstream is called again for
    /// what its error asks for. Such an error comes even after a good status: routers send theirs
    /// before they have asked the server behind them.
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
                // There may be no other request, and then this is what the error is told with.
                if let Some(answer) = round.answer() {
                    self.report.answer = answer.report().clone();
                    self.report.warnings.merge(answer.warnings());
                }
                self.state.retry(refusal);
                None
            }
            Err(error) => {
                self.state.call(round);
                Some(Err(error))
            }
        }
    }

    /// Names in an error the address of the request, if what answered there is not the API.
    fn name_address(&self, error: &mut Error) {
        let (Some(upstream), Some(rejection)) = (self.upstream(), error.rejection()) else {
            return;
        };
        let Some(wrong) = rejection.wrong_address() else { return };
        let (path, status) =
            (self.upstream_path(upstream), self.report.upstream_status.unwrap_or_default());
        error.message = wrong.words_with(&path, status, &upstream.name, &rejection.message);
    }

    /// Ends an answer of which nothing is missing but the end of the upstream's body.
    fn end_early(&mut self, now: Millis) {
        let is_cut = self.answer().is_some_and(|answer| answer.ending() == Ending::Cut);
        self.end_call(End::Complete, is_cut, now);
    }

    /// Takes a failure that no upstream answered for.
    pub fn handle_failure(&mut self, failure: Failure, now: Millis) {
        // Behind the answer nothing fails but its end.
        if self.steps.is_behind() || self.is_step_asking() && failure.is_of_call() {
            return self.handle_step_failure(&failure, now);
        }
        if failure.is_of_upstream() {
            self.end_without_upstream(now);
        }
        let status = self.report.upstream_status;
        if failure == Failure::Undecodable && status.is_some_and(|status| status >= 400) {
            // The status says more.
            self.handle_call_end(End::Complete, now);
            if self.state.is_due() {
                return;
            }
        }
        if self.is_ended() {
            return;
        }
        let has_no_path = failure == Failure::NoRoute && self.state.is_passed();
        let (cause, mut error) = failure.into_error();
        if has_no_path {
            error.message.push_str(base::HINT);
        }
        self.watchdog.byte(now);
        self.report.failed_by.get_or_insert(cause);
        self.settle(Err(error), self.output.body.len(), now);
    }

    /// Does what is due at the time of [`Exchange::poll_timeout`]: sends a ping, ends a complete
    /// answer, or gives up on an upstream that has stalled. A call before that time does no harm.
    pub fn handle_timeout(&mut self, now: Millis) {
        if self.state.is_ask_due() && self.steps.is_behind() {
            if self.steps.until().is_some_and(|until| now >= until) {
                self.give_up_step(now);
            }
            return;
        }
        // Nothing is due after the end, even for a host whose timer still runs.
        if self.state.round().is_none() && self.state.ask_open().is_none() {
            return;
        }
        let mut due = self.watchdog.due(now);
        if due == Due::End && self.state.round().is_some_and(|round| round.lacks_end()) {
            self.watchdog.ending(Ending::Open, now);
            due = self.watchdog.due(now);
        }
        match due {
            Due::Nothing => {}
            Due::Ping if self.may_ping_unasked() => self.ping(now),
            Due::Ping => self.watchdog.sent(now),
            Due::End => self.end_early(now),
            Due::Stalled(reason) => self.give_up(reason, now),
        }
    }

    /// Returns true if a question of a step is open.
    fn is_step_asking(&self) -> bool {
        self.state.ask_open().is_some_and(|ask| !ask.is_of_client())
    }

    /// Gives up on an upstream that has stalled.
    fn give_up(&mut self, reason: &str, now: Millis) {
        if self.is_step_asking() {
            return self.give_up_step(now);
        }
        if let Some(round) = self.state.round_mut().filter(|round| round.events().is_some())
            && let Some(answer) = round.answer_mut()
        {
            answer.break_off();
            if answer.is_complete() {
                return self.handle_call_end(End::Aborted, now);
            }
        }
        self.end_without_upstream(now);
        if self.is_ended() {
            return;
        }
        let error = Error::new(Fault::Upstream, ErrorKind::Timeout, reason);
        self.report.warnings.acted("stall");
        self.report.failed_by.get_or_insert(Cause::Stall);
        self.settle(Err(error), self.output.body.len(), now);
    }
}
