//! What the upstream says of its answer as a whole, beside the content.

use crate::answer::Output;
use crate::assemble::BrokenOff;
use crate::content::Told;
use crate::dialect::profile::LengthStatus;
use crate::model::request_context::RequestContext;
use crate::model::stop_reason;
use crate::protocols::responses::wire::{Response, Status};

/// Model, counts, and why it stopped.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) told: Told,
    /// Why it stopped, in a word that [`stop_reason`] knows.
    word: Option<String>,
}

impl Outcome {
    /// Takes what a response says beside its items.
    pub(super) fn take(&mut self, response: &Response<'_>, to: &mut Output<'_>) {
        to.report.name(response.id, response.model);
        self.told.take(response.model, response.service_tier, response.usage);
    }

    /// Takes why the answer is over. `is_cut_off`: the event says so, whatever the response says.
    pub(super) fn end(&mut self, response: &Response<'_>, is_cut_off: bool, to: &Output<'_>) {
        let reason = response.reason.map(|reason| reason.decode());
        let is_incomplete = is_cut_off || response.status == Status::Incomplete;
        let word = match reason.as_deref() {
            _ if !is_incomplete => {
                if self.reaches_limit(to.context) {
                    "length"
                } else {
                    "stop"
                }
            }
            // The user went on before the model was done.
            Some("steered") => "stop",
            Some(reason) if stop_reason::is_cut_off(reason) => reason,
            _ => "length",
        };
        self.set_word(Some(word));
    }

    /// Whether the answer has as many tokens as it could have, at a server that does not say that it was cut off.
    fn reaches_limit(&self, context: &RequestContext) -> bool {
        let tokens = self.told.usage().and_then(|usage| usage.completion).unwrap_or(0);
        context.profile.length_status == LengthStatus::Inferred
            && context.max_tokens > 0
            && tokens >= context.max_tokens
    }

    /// Puts a word in the place of the upstream's.
    pub(super) fn set_word(&mut self, word: Option<&str>) {
        self.word = word.map(str::to_owned);
    }

    pub(super) fn word(&self) -> Option<&str> {
        self.word.as_deref()
    }

    /// How the answer was broken off.
    pub(super) fn broken_off(&self) -> BrokenOff {
        BrokenOff::of(self.word())
    }
}
