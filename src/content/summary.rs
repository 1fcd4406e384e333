//! Statements of an upstream about an answer as a whole: model, token counts and finish reason.

use crate::assemble::BrokenOff;
use crate::json::Str;
use crate::model::counts;
use crate::model::request_context::RequestContext;
use crate::model::usage::Usage;
use crate::profile::ResponseModel;

/// Model, service tier, token counts and finish reason of one answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Summary {
    /// Name of the model, as reported by the upstream.
    model: Option<String>,
    service_tier: Option<&'static str>,
    usage: Option<Usage>,
    /// Latest finish reason sent by the upstream.
    finish_reason: Option<String>,
    /// Stop sequence at which the model stopped, if the upstream names the sequence.
    stop_sequence: Option<String>,
    /// Number of web searches that the upstream ran.
    searches: u64,
}

impl Summary {
    /// Records the statements of one part of the answer: the first model name, the last service
    /// tier, and all token counts.
    #[inline]
    pub(crate) fn take(
        &mut self,
        model: Option<Str<'_>>,
        service_tier: Option<Str<'_>>,
        usage: Option<Usage>,
    ) {
        if let (None, Some(model)) = (&self.model, model) {
            self.model = Some(model.decode().into_owned());
        }
        if let Some(tier) = service_tier {
            self.service_tier = Some(counts::service_tier(tier.raw()));
        }
        if let Some(usage) = usage {
            self.usage = Some(usage.after(self.usage));
        }
    }

    /// Sets the upstream's finish reason.
    pub(crate) fn set_finish_reason(&mut self, word: &str) {
        self.finish_reason = Some(word.to_owned());
    }

    /// Clears the upstream's finish reason, because the answer ends for another reason.
    pub(crate) fn clear_finish_reason(&mut self) {
        self.finish_reason = None;
    }

    /// Sets the stop sequence at which the upstream stopped.
    pub(crate) fn set_stop_sequence(&mut self, text: &str) {
        self.stop_sequence = Some(text.to_owned());
    }

    /// Counts a web search that the upstream ran.
    pub(crate) fn count_search(&mut self) {
        self.searches = self.searches.saturating_add(1);
    }

    /// Returns the name of the model that the client gets.
    pub(crate) fn model_for<'a>(&'a self, context: &'a RequestContext) -> &'a str {
        match (&self.model, context.profile.response_model) {
            (Some(model), ResponseModel::Upstream) => model,
            _ => &context.model,
        }
    }

    pub(crate) fn service_tier(&self) -> Option<&'static str> {
        self.service_tier
    }

    pub(crate) fn usage(&self) -> Option<Usage> {
        self.usage
    }

    /// Returns the number of tokens of the prompt, if the upstream has counted them. Zero means not
    /// counted yet.
    pub(crate) fn prompt_tokens(&self) -> Option<u64> {
        self.usage.and_then(|usage| usage.prompt.or(usage.input)).filter(|tokens| *tokens > 0)
    }

    /// Returns the upstream's latest finish reason.
    pub(crate) fn finish_reason(&self) -> Option<&str> {
        self.finish_reason.as_deref()
    }

    pub(crate) fn stop_sequence(&self) -> Option<&str> {
        self.stop_sequence.as_deref()
    }

    /// Returns whether the answer was cut off or is a refusal, according to the upstream's finish
    /// reason.
    pub(crate) fn broken_off(&self) -> BrokenOff {
        BrokenOff::of(self.finish_reason())
    }

    pub(crate) fn searches(&self) -> u64 {
        self.searches
    }
}
