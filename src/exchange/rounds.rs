//! Rounds of an answer: after a round that ends with calls of tools that Creole runs, a step gets
//! the results, and the next round continues the client's message.

use super::Exchange;
use super::repeat::LaterRound;
use super::round::{Round, RoundRequest};
use super::seam::Call;
use super::steps::{BETWEEN, WRITER, When, see, sharing};
use crate::Millis;
use crate::StopReason;
use crate::json;
use crate::model::event::{Event, Stop};
use crate::model::request_context::RequestContext;
use crate::protocols::{AnswerWriter, Translated};
use crate::steps::{Change, EndedRound, Limit};
use crate::text::words;

impl Exchange {
    /// Prepares the rounds of an answer, if Creole runs tools of the request.
    pub(super) fn begin_rounds(&mut self, context: &RequestContext, now: Millis) {
        let see = see(&self.config, self.can, self.ids, &self.client, b"", None, now);
        if self.steps.between.is_none() {
            self.steps.between = BETWEEN(&see, context);
        }
        if self.steps.between.is_some() || !self.steps.opening.is_empty() {
            let opening = std::mem::take(&mut self.steps.opening);
            self.writer = Some(WRITER(&see, context, opening));
        }
    }

    /// Begins the step between two rounds, if the round ended with calls of tools that Creole runs.
    pub(super) fn begin_between(&mut self, now: Millis) -> bool {
        if self.is_ended() || self.steps.between.is_none() {
            return false;
        }
        let answer = self.state.round_mut().and_then(|round| round.answer_mut());
        let writer = answer.map(|answer| answer.writer_mut());
        let of_writer = |writer: &mut dyn AnswerWriter| (writer.take_calls(), writer.is_mixed());
        let (calls, is_mixed) = writer.map(of_writer).unwrap_or_default();
        let Some(mut step) = self.steps.between.take_if(|_| !calls.is_empty()) else {
            return false;
        };
        let output_tokens = self.answer().map_or(0, |answer| answer.report().output_tokens);
        let places = self.answer().map(|answer| answer.context().places.clone());
        let places = places.unwrap_or_default();
        let since_ms = now.saturating_sub(self.report.requested_at);
        self.report = self.report();
        let earlier = self.report.answer.clone();
        self.later = Some(Box::new(LaterRound::new(earlier, self.later.as_deref())));
        self.writer = self.state.take_round().and_then(Round::into_writer);
        let is_late = since_ms >= self.config.settings.server_tools.duration_max_ms;
        if self.client.body.is_empty() || is_late {
            // The host needed the memory, or no time is left. The client's next request brings the
            // calls again, and they are run then.
            let reason = if is_mixed { StopReason::ToolUse } else { StopReason::PauseTurn };
            self.stop(reason, now);
            return true;
        }
        let body = &self.client.body;
        let mut see = see(&self.config, self.can, self.ids, &self.client, body, None, now);
        see = sharing(see, self.refusals.as_ref(), &self.steps);
        step.take_round(EndedRound { calls, is_mixed, output_tokens, since_ms, places }, &see);
        self.steps.current = Some(self.run(step, When::Between, now));
        self.tell_results(now);
        self.state.make_ask_due();
        true
    }

    /// Writes the results of the running step's calls that are known for the client.
    pub(super) fn tell_results(&mut self, now: Millis) {
        let before = self.output.body.len();
        let Some(writer) = &mut self.writer else { return };
        while let Some(result) = self.steps.next_result() {
            writer.write(Event::ServerResult(result), &mut self.output.body);
        }
        if self.output.body.len() > before {
            self.count_bytes_since(before);
            self.watchdog.sent(now);
        }
    }

    /// Returns the call for the next question of the step between two rounds; after the last
    /// question, the call of the next round.
    pub(super) fn ask_between(&mut self, now: Millis) -> Option<Call> {
        let body = std::mem::take(&mut self.client.body);
        let call = self.ask_next(&body, now);
        if call.is_some() || self.is_waiting() {
            self.client.body = body;
            return call;
        }
        // A question that cannot be asked has its result at once.
        self.steps.settle();
        self.tell_results(now);
        let said = self.writer.as_mut().map(|writer| writer.take_blocks()).unwrap_or_default();
        match self.end_step(&body, (&said, now)) {
            Ok(Some(Change::Round(next))) => {
                self.steps.between = Some(next.step);
                self.client.body = next.body;
                if let Some(later) = &mut self.later {
                    later.limit = next.limit;
                }
                self.next_round(now)
            }
            Ok(Some(Change::Stop(reason))) => {
                self.stop(reason, now);
                None
            }
            Ok(_) => {
                debug_assert!(false, "a step between rounds changes the round, or ends the answer");
                self.stop(StopReason::PauseTurn, now);
                None
            }
            Err(error) => {
                self.settle(Err(error), self.output.body.len(), now);
                None
            }
        }
    }

    /// Returns the upstream call of the next round, or of its repeat.
    pub(super) fn next_round(&mut self, now: Millis) -> Option<Call> {
        let limit = self.later.as_ref().and_then(|later| later.limit);
        let body = std::mem::take(&mut self.client.body);
        let mut warnings = self.steps.warnings(self.config.settings.strict);
        let text = words::utf8(&body).unwrap_or_default();
        let translated = self.translated(&self.refused, text, &mut warnings);
        let called = translated.and_then(|translated| {
            self.report.warnings.merge_new(&warnings);
            match translated {
                Translated::Send { upstream, body, context } => {
                    let request = RoundRequest { upstream, body, context };
                    let mut request = self.without_remembered(text, request, now);
                    match limit {
                        Some(Limit::Rounds) => request.context.withholds_own_tools = true,
                        Some(Limit::Repeats) => request.context.withhold_own_tools(),
                        None => {}
                    }
                    self.call(request, None, now).map(Some)
                }
                Translated::Answer { text, stop_reason, .. } => {
                    self.say(&text);
                    self.stop(stop_reason, now);
                    Ok(None)
                }
            }
        });
        if !self.is_ended() {
            self.client.body = body;
        }
        called.unwrap_or_else(|error| {
            self.settle(Err(error), self.output.body.len(), now);
            None
        })
    }

    /// Writes a text of Creole's own for the client, as a block.
    fn say(&mut self, text: &str) {
        let Some(writer) = self.writer.as_mut().filter(|_| !text.is_empty()) else { return };
        let out = &mut self.output.body;
        writer.write(Event::TextBegins, out);
        writer.write(Event::Text(&json::escaped(text)), out);
        writer.write(Event::BlockEnds, out);
    }

    /// Ends the client's message without another round.
    fn stop(&mut self, reason: StopReason, now: Millis) {
        let before = self.output.body.len();
        let model = self.report.model.clone();
        let stop = Stop { reason, model: &model, ..Stop::default() };
        if let Some(writer) = &mut self.writer {
            writer.write(Event::Stopped(&stop), &mut self.output.body);
        }
        self.report.answer.stop_reason = Some(reason);
        self.hold_end(before);
        self.send_end(before, now);
    }
}
