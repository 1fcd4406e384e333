//! End of a stream: counting and logging.

use creole::observe::log::RefusedLines;
use creole::observe::metrics::Counters;
use creole::{End, Failure, Millis};

use super::{Delivered, Stream, StreamState};
use crate::action::Action;
use crate::details::{self, Break};
use crate::observe;

impl Stream {
    /// Counts and logs a stream that has ended, with or without an error.
    pub fn on_log(
        &mut self,
        details: &str,
        counters: &mut Counters,
        lines: &mut RefusedLines,
        now: Millis,
    ) -> Vec<Action> {
        let mut actions = Vec::new();
        self.is_over = true;
        // An exchange that passed through stays open, and is neither counted nor logged here.
        if matches!(self.state, StreamState::HandsOff) && !self.exchange.is_ended() {
            return actions;
        }
        if details == details::WRITE_TOO_LARGE && self.calls.are_behind() {
            self.exchange.replace_rest(Failure::RestTooLarge, now);
        }
        if !self.exchange.is_ended() {
            // No more bytes can be sent to the client.
            let complete = !matches!(self.state, StreamState::Collecting { .. });
            match details::broken_by(details, complete) {
                Break::Client => self.exchange.handle_client_gone(now),
                Break::Upstream
                    if matches!(
                        self.state,
                        StreamState::Answering { sent: Delivered::Nothing, .. }
                    ) =>
                {
                    // Envoy discards an answer of which no byte was sent, even a complete one.
                    self.handle_failure(Failure::BrokeOff, now);
                }
                // The rest of the answer, which calls were to give, was never written.
                Break::Upstream if self.call.is_none() => {
                    self.exchange.replace_rest(Failure::BrokeOff, now);
                }
                Break::Upstream => {
                    self.end_call(End::Aborted, now);
                }
                Break::Timeout if self.calls.are_behind() => {
                    self.exchange.replace_rest(Failure::Timeout, now);
                }
                Break::Timeout => {
                    let failure =
                        if complete { Failure::Timeout } else { Failure::RequestIncomplete };
                    self.handle_failure(failure, now);
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
        let request = &self.request;
        observe::finished(&report, request, &self.config, (counters, lines), now, &mut actions);
        actions
    }
}
