//! Statements of an upstream about an answer as a whole, beside the content.

use crate::assemble::BrokenOff;
use crate::json::Str;
use crate::model::counts;
use crate::model::request_context::RequestContext;
use crate::model::usage::Usage;
use crate::profile::ResponseModel;

/// Model and counts, and why it stopped.
#[derive(Clone, Debug, Default)]
pub(crate) struct Summary {
    /// The upstream's name of the model.
    model: Option<String>,
    service_tier: Option<&'static str>,
    usage: Option<Usage>,
    /// Last word of the upstream for why the model stopped.
    finish_reason: Option<String>,
    /// Text at which the model stopped.
    stop_sequence: Option<String>,
    /// Number of web searches that the upstream did.
    searches: u64,
}

impl Summary {
    /// Takes what a part of the answer says: the first name counts, the last tier, and all counts.
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

    /// Takes a word for why the model stopped.
    pub(crate) fn set_finish_reason(&mut self, word: &str) {
        self.finish_reason = Some(word.to_owned());
    }

    /// The upstream's word for why the model stopped does not count.
    pub(crate) fn clear_finish_reason(&mut self) {
        self.finish_reason = None;
    }

    /// Takes the text at which the upstream stopped.
    pub(crate) fn set_stop_sequence(&mut self, text: &str) {
        self.stop_sequence = Some(text.to_owned());
    }

    /// The upstream searched the web.
    pub(crate) fn count_search(&mut self) {
        self.searches = self.searches.saturating_add(1);
    }

    /// The name of the model for the client.
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

    /// The tokens of the prompt, if the upstream has counted them: a zero stands for a count that
    /// it does not have yet.
    pub(crate) fn prompt_tokens(&self) -> Option<u64> {
        self.usage.and_then(|usage| usage.prompt.or(usage.input)).filter(|tokens| *tokens > 0)
    }

    /// The upstream's last word for why the model stopped.
    pub(crate) fn finish_reason(&self) -> Option<&str> {
        self.finish_reason.as_deref()
    }

    pub(crate) fn stop_sequence(&self) -> Option<&str> {
        self.stop_sequence.as_deref()
    }

    /// Returns how the answer was broken off, by the upstream's word for why the model stopped.
    pub(crate) fn broken_off(&self) -> BrokenOff {
        BrokenOff::of(self.finish_reason())
    }

    pub(crate) fn searches(&self) -> u64 {
        self.searches
    }
}
