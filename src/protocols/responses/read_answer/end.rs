//! How an answer ends: with a response, an error, or without either.

use super::machine::{Machine, UNTOLD};
use super::place::Place;
use super::slots::Named;
use crate::answer::Output;
use crate::content::End;
use crate::error::{Error, Rejection};
use crate::json;
use crate::protocols::responses::wire::{EventKind, ItemKind, Of, Response, Status};

impl Machine {
    /// Takes a whole answer.
    pub(super) fn handle_whole(
        &mut self,
        response: &Response<'_>,
        raw: &str,
        to: &mut Output<'_>,
    ) -> Result<(), Error> {
        self.outcome.take(response, to);
        to.report.chunks = to.report.chunks.saturating_add(1);
        if let Some(raw) = response.error {
            return self.fail(raw, to);
        }
        if response.output.is_none() && response.output_text.is_none() {
            return match response.complains && !response.is_named {
                true => self.fail(raw, to),
                false => Err(Error::misbehaved("Upstream sent an answer without output")),
            };
        }
        match response.status {
            Status::Failed => return self.fail(UNTOLD, to),
            Status::Running => {
                return Err(Error::misbehaved("Upstream sent an answer that is not complete"));
            }
            Status::Unsaid | Status::Completed | Status::Incomplete => {}
        }
        self.content.set_whole();
        self.finish(response, false, to)
    }

    /// Takes the end event of a stream.
    pub(super) fn take_end(
        &mut self,
        kind: EventKind,
        raw: &str,
        to: &mut Output<'_>,
    ) -> Result<(), Error> {
        let response = Response::read(raw, to.rules.depth_max)?;
        self.outcome.take(&response, to);
        let has_failed = kind == EventKind::Failed || response.status == Status::Failed;
        if has_failed || response.error.is_some() {
            let told = response.error.map(str::to_owned);
            let has_code = told.as_deref().is_some_and(|it| json::member(it, "code").is_some());
            let failure = if has_code { None } else { self.failure.take() };
            let Some(failure) = failure.or(told) else {
                // What failed may stand behind it.
                self.failure = Some(UNTOLD.to_owned());
                return Ok(());
            };
            return self.fail(&failure, to);
        }
        // The name of the event alone does not make an answer complete.
        let goes_on = kind == EventKind::Completed && response.status == Status::Running;
        if goes_on && !self.content.text().is_cut() {
            return Err(Error::misbehaved("Upstream ended an answer that is not complete"));
        }
        self.finish(&response, kind == EventKind::Incomplete, to)
    }

    /// The answer is over, with this response.
    fn finish(
        &mut self,
        response: &Response<'_>,
        is_cut_off: bool,
        to: &mut Output<'_>,
    ) -> Result<(), Error> {
        self.outcome.end(response, is_cut_off, to);
        note_withheld(response, to);
        let end = self.outcome.broken_off();
        self.content.set_end(end);
        self.content.set_ends_early(end.is_cut_off);
        self.take_output(response.output.unwrap_or("[]"), to)?;
        if let Some(text) = response.output_text.filter(|_| !self.content.answers()) {
            let slot = self.slots.open(ItemKind::Message, Named::default())?;
            self.complete(Place { slot, of: Of::Text, part: 0 }, text, to)?;
        }
        self.end_answer(to)
    }

    /// The upstream reports an error. Some are answers: a content filter's, and that there is no room for one.
    pub(super) fn fail(&mut self, raw: &str, to: &mut Output<'_>) -> Result<(), Error> {
        if self.content.text().is_cut() {
            return self.end_answer(to);
        }
        let error = to.error_of(raw);
        // A call of which the client has seen a part must not look complete.
        let is_in_call = self.content.assembly().is_in_call();
        let answer = error.rejection().and_then(Rejection::stop_reason);
        let Some(stop_reason) = answer.filter(|_| !is_in_call) else { return Err(error) };
        self.outcome.set_word(Some(stop_reason));
        self.end_answer(to)
    }

    /// The stream is over without an end event.
    pub(super) fn end(&mut self, to: &mut Output<'_>) -> Result<(), Error> {
        if self.content.text().is_cut() {
            return self.end_answer(to);
        }
        match self.failure.take() {
            Some(raw) => self.fail(&raw, to),
            // Nothing says that no more was coming.
            None => Err(Error::answer_broke_off()),
        }
    }

    /// The answer is over: sends the rest and how it ended.
    fn end_answer(&mut self, to: &mut Output<'_>) -> Result<(), Error> {
        let end = self.outcome.broken_off();
        if end.is_refusal && self.content.assembly().is_in_call() {
            // It must not look complete, and this end would say so.
            return Err(Error::misbehaved("Upstream's content filter cut a tool call off"));
        }
        self.content.set_end(end);
        self.carry_thought(to);
        if end.is_cut_off {
            self.leave_out_half_calls(to);
        }
        self.content.finish(to)?;
        if self.content.text().is_cut() {
            // What the model said after a stop sequence of the client, it did not say.
            self.outcome.set_word(None);
        }
        if let Some(text) = self.as_end().own_text(to) {
            self.start(to);
            self.content.send_own_text(text, to);
        }
        if self.as_end().is_reasoning_alone(to) {
            self.start(to);
            self.content.send_reasoning_as_text(to);
        }
        let assembly = self.content.assembly();
        if !assembly.has_said() && assembly.calls().left_out().invalid {
            return Err(Error::misbehaved("Model produced an invalid tool call"));
        }
        let reason = self.as_end().reason(to)?;
        // Where nothing was said, only now: there is an answer.
        self.start(to);
        self.as_end().write(reason, to);
        Ok(())
    }

    fn as_end(&self) -> End<'_> {
        End {
            content: &self.content,
            finish_reason: self.outcome.word(),
            stop_sequence: None,
            told: &self.outcome.told,
            searches: self.searches,
        }
    }
}

/// Notes reasoning of earlier turns that the upstream kept from the model, unless that is the rule: it forgets what led
/// to an answer that the user has seen.
fn note_withheld(response: &Response<'_>, to: &mut Output<'_>) {
    for raw in response.withheld.into_iter().flat_map(json::elements) {
        let reason = json::member(raw, "reason").and_then(json::string).map(|it| it.decode());
        let reason = reason.unwrap_or_default();
        if reason != "turn_boundary" {
            to.warn_named("reasoning_withheld", &reason);
        }
    }
}
