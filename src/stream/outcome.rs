//! What the upstream says of its answer as a whole, beside the content.

use super::finish::Finish;
use super::{counts, stop_reason};
use crate::dialect::profile::ResponseModel;
use crate::json::Str;
use crate::model::request_context::RequestContext;
use crate::protocols::chat::wire::{Choice, Chunk, Usage};

/// Model, counts, and why it stopped.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// The upstream's name of the model.
    pub(super) model: Option<String>,
    pub(super) service_tier: Option<&'static str>,
    pub(super) usage: Option<Usage>,
    /// The last chunk was the first with counts.
    counts_first: bool,
    /// The last `finish_reason`.
    pub(super) finish_reason: Option<String>,
    /// When there was one, and whether it is to be believed.
    pub(super) finish: Finish,
    /// The upstream stopped at this text.
    pub(super) stop_sequence: Option<String>,
    /// What the model said as it refused, the first kilobyte.
    pub(super) refusal: String,
}

impl Outcome {
    /// Takes what a chunk says beside its choices.
    pub(super) fn take_chunk(&mut self, chunk: &Chunk<'_>) {
        if let (None, Some(model)) = (&self.model, chunk.model) {
            self.model = Some(model.decode().into_owned());
        }
        if let Some(tier) = chunk.service_tier {
            self.service_tier = Some(counts::service_tier(tier.raw()));
        }
        self.counts_first = self.usage.is_none() && chunk.usage.is_some();
        if let Some(usage) = chunk.usage {
            self.usage = Some(usage.after(self.usage));
        }
    }

    /// Takes why the model stopped, if a choice says so.
    pub(super) fn take_choice(&mut self, choice: &Choice<'_>) {
        if let Some(finish) = choice.finish_reason {
            let before = self.finish_reason.as_deref().unwrap_or_default();
            if !stop_reason::outlasts(before, &finish.decode()) {
                set(&mut self.finish_reason, finish);
            }
        }
        if let Some(stop) = choice.stop_sequence {
            set(&mut self.stop_sequence, stop);
        }
    }

    /// Notes whether a chunk says that the answer is over, as `finishes` tells of its choices. `before`: how much had
    /// come before it, `progress`: how much with it.
    pub(super) fn take_finish(
        &mut self,
        chunk: &Chunk<'_>,
        finishes: bool,
        before: u64,
        progress: u64,
    ) {
        if finishes {
            self.finish.finished(before, progress, self.counts_first);
        } else if chunk.usage.is_some() && progress == before {
            self.finish.counted(progress);
        }
        if chunk.choices.is_empty() && chunk.usage.is_some_and(|it| it.completion > Some(0)) {
            self.finish.totalled(progress);
        }
    }

    /// The name of the model that the client is told.
    pub(super) fn model_for<'a>(&'a self, context: &'a RequestContext) -> &'a str {
        match (&self.model, context.profile.response_model) {
            (Some(model), ResponseModel::Upstream) => model,
            _ => &context.model,
        }
    }

    /// Whether the model was stopped in the middle.
    pub(super) fn is_cut_off(&self) -> bool {
        self.finish_reason.as_deref().is_some_and(stop_reason::is_cut_off)
    }

    /// Whether the answer is a refusal.
    pub(super) fn is_refusal(&self) -> bool {
        self.finish_reason.as_deref().is_some_and(stop_reason::is_refusal)
    }
}

fn set(slot: &mut Option<String>, text: Str<'_>) {
    *slot = Some(text.decode().into_owned());
}
