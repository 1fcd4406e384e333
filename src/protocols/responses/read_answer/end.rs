//! Handling of the end of a Responses answer: a final response, an error, or a stream that ends
//! without either.

use super::machine::{ResponsesMachine, UNTOLD};
use super::names::EventNames;
use super::place::TextPlace;
use crate::answer::ReaderOutput;
use crate::error::Error;
use crate::json;
use crate::model::stop_reason;
use crate::profile::LengthStatus;
use crate::protocols::responses::wire::{EventKind, ItemKind, Of, Response, Status};

impl ResponsesMachine {
    /// Handles a whole answer, which arrived as one body or one event. `raw`: the JSON of the
    /// answer.
    pub(super) fn handle_whole(
        &mut self,
        response: &Response<'_>,
        raw: &str,
        to: &mut ReaderOutput<'_>,
    ) -> Result<(), Error> {
        self.take_summary(response, to);
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
        self.content_mut().set_whole();
        self.finish(response, false, to)
    }

    /// Handles the event that ends a stream, with a final response. `raw`: the JSON of the
    /// response.
    pub(super) fn take_end(
        &mut self,
        kind: EventKind,
        raw: &str,
        to: &mut ReaderOutput<'_>,
    ) -> Result<(), Error> {
        let response = Response::read(raw)?;
        self.take_summary(&response, to);
        let has_failed = kind == EventKind::Failed || response.status == Status::Failed;
        if has_failed || response.error.is_some() {
            let error = response.error.map(str::to_owned);
            let has_code = error.as_deref().is_some_and(|it| json::member(it, "code").is_some());
            let failure = if has_code { None } else { self.take_failure() };
            let Some(failure) = failure.or(error) else {
                // A later event may describe the failure.
                self.note_failure(UNTOLD);
                return Ok(());
            };
            return self.fail(&failure, to);
        }
        // The name of the event alone does not make an answer complete.
        let goes_on = kind == EventKind::Completed && response.status == Status::Running;
        if goes_on && !self.content().text().is_cut() {
            return Err(Error::misbehaved("Upstream ended an answer that is not complete"));
        }
        self.finish(&response, kind == EventKind::Incomplete, to)
    }

    /// Ends the answer with the final response. `is_cut_off`: the type of the event says that the
    /// answer was cut off.
    fn finish(
        &mut self,
        response: &Response<'_>,
        is_cut_off: bool,
        to: &mut ReaderOutput<'_>,
    ) -> Result<(), Error> {
        self.take_reason(response, is_cut_off, to);
        note_withheld(response, to);
        let end = self.content().summary().broken_off();
        self.content_mut().set_end(end);
        self.content_mut().set_ends_early(end.is_cut_off);
        self.take_output(response.output.unwrap_or("[]"), to)?;
        if let Some(text) = response.output_text.filter(|_| !self.content().answers()) {
            let slot = self.slots_mut().open(ItemKind::Message, EventNames::default())?;
            self.complete(TextPlace { slot, of: Of::Text, part: 0 }, text, to)?;
        }
        self.end_answer(to)
    }

    /// Handles an error of the upstream. A content-filter error, or an error about too little space
    /// in the context window, ends the answer with a `stop_reason`.
    pub(super) fn fail(&mut self, raw: &str, to: &mut ReaderOutput<'_>) -> Result<(), Error> {
        if self.content().text().is_cut() {
            return self.end_answer(to);
        }
        self.content_mut().take_failure(raw, to)?;
        self.end_answer(to)
    }

    /// Handles the end of a stream that sent no end event.
    pub(super) fn end(&mut self, to: &mut ReaderOutput<'_>) -> Result<(), Error> {
        if self.content().text().is_cut() {
            return self.end_answer(to);
        }
        match self.take_failure() {
            Some(raw) => self.fail(&raw, to),
            // Without an end event, more of the answer may have been missing.
            None => Err(Error::answer_broke_off()),
        }
    }

    /// Ends the answer: sends the remaining content and the stop reason to the client.
    fn end_answer(&mut self, to: &mut ReaderOutput<'_>) -> Result<(), Error> {
        let end = self.content_mut().reach_end()?;
        self.carry_thought(to);
        if end.is_cut_off {
            self.leave_out_half_calls(to);
        }
        self.content_mut().end(to)
    }

    /// Stores the members of a response other than items: id, model, service tier and token counts.
    pub(super) fn take_summary(&mut self, response: &Response<'_>, to: &mut ReaderOutput<'_>) {
        to.report.name(response.id, response.model);
        let summary = self.content_mut().summary_mut();
        summary.take(response.model, response.service_tier, response.usage);
    }

    /// Stores the reason why the answer ended. `is_cut_off`: the answer was cut off according to
    /// the event's type, whatever the response's status is.
    fn take_reason(&mut self, response: &Response<'_>, is_cut_off: bool, to: &ReaderOutput<'_>) {
        let reason = response.reason.map(|reason| reason.decode());
        let is_incomplete = is_cut_off || response.status == Status::Incomplete;
        let word = match reason.as_deref() {
            _ if !is_incomplete && self.reaches_limit(to) => "length",
            _ if !is_incomplete => "stop",
            // The user sent a new message before the model was done.
            Some("steered") => "stop",
            Some(reason) if stop_reason::is_cut_off(reason) => reason,
            _ => "length",
        };
        self.content_mut().summary_mut().set_finish_reason(word);
    }

    /// Returns true if the answer has as many tokens as allowed, and the upstream is known not to
    /// report answers that were cut off.
    fn reaches_limit(&self, to: &ReaderOutput<'_>) -> bool {
        let usage = self.content().summary().usage();
        let tokens = usage.and_then(|usage| usage.completion).unwrap_or(0);
        to.context.profile.length_status == LengthStatus::Inferred
            && to.context.limits.max_tokens > 0
            && tokens >= to.context.limits.max_tokens
    }
}

/// Warns of reasoning of earlier turns that the upstream withheld from the model.
///
/// No warning is given if the upstream's reason is `turn_boundary`: models normally forget the
/// reasoning before an answer that the user has seen.
fn note_withheld(response: &Response<'_>, to: &mut ReaderOutput<'_>) {
    for raw in response.withheld.into_iter().flat_map(json::elements) {
        let reason = json::member(raw, "reason").and_then(json::string).map(|it| it.decode());
        let reason = reason.unwrap_or_default();
        if reason != "turn_boundary" {
            to.warn_named("reasoning_withheld", &reason);
        }
    }
}
