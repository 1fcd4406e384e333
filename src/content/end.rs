//! How an answer ends: why the model stopped, and what it counted.

use super::Content;
use crate::answer::Output;
use crate::dialect::profile::ResponseModel;
use crate::error::Error;
use crate::json::Str;
use crate::model::counts::{self, Counts, Estimate};
use crate::model::event::Stop;
use crate::model::request_context::{RequestContext, Withheld};
use crate::model::stop_reason::{self, Facts};
use crate::model::usage::Usage;
use crate::observe::warning::Warning;
use crate::tokens::tokens_of;

/// What the client reads where a model only calls tools that a guard withheld.
const WITHHELD: &str = "[The model called a tool that is withheld, because it went on without getting \
                        anywhere. Say what to do next.]";
/// In place of an answer that consists of a call, where the client forbids calls.
const FORBIDDEN: &str = "[The model called a tool, which this request forbids.]";

/// What an upstream says of an answer as a whole.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    /// The upstream's name of the model.
    model: Option<String>,
    service_tier: Option<&'static str>,
    usage: Option<Usage>,
}

impl Told {
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

    /// The name of the model for the client.
    pub(crate) fn model_for<'a>(&'a self, context: &'a RequestContext) -> &'a str {
        match (&self.model, context.profile.response_model) {
            (Some(model), ResponseModel::Upstream) => model,
            _ => &context.model,
        }
    }

    pub(crate) fn usage(&self) -> Option<Usage> {
        self.usage
    }

    /// The tokens of the prompt, if the upstream has counted them: a zero stands for a count that it does not have yet.
    pub(crate) fn prompt_tokens(&self) -> Option<u64> {
        self.usage.and_then(|usage| usage.prompt.or(usage.input)).filter(|tokens| *tokens > 0)
    }
}

/// All that was said in an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End<'a> {
    pub(crate) content: &'a Content,
    /// The upstream's word for why it stopped.
    pub(crate) finish_reason: Option<&'a str>,
    /// The text at which the upstream stopped.
    pub(crate) stop_sequence: Option<&'a str>,
    pub(crate) told: &'a Told,
    /// How often the upstream searched the web.
    pub(crate) searches: u64,
}

impl End<'_> {
    /// The text of Creole's own for an answer whose calls a guard withheld or the client forbids, where the model says
    /// nothing else, or no more than what it would do: the client needs an end, and a person a reason.
    pub(crate) fn own_text(self, to: &Output<'_>) -> Option<&'static str> {
        let withheld = &to.context.withheld;
        let stops_midway = to.report.tool_calls == 0 && matches!(withheld, Withheld::These(_));
        let assembly = self.content.assembly();
        let needs = assembly.calls().left_out().by_guard && (!assembly.has_said() || stops_midway);
        let text = if *withheld == Withheld::Forbidden { FORBIDDEN } else { WITHHELD };
        needs.then_some(text)
    }

    /// Whether the model stopped by itself with nothing but reasoning, which is to be a text then.
    pub(crate) fn is_reasoning_alone(self, to: &Output<'_>) -> bool {
        let content = self.content;
        content.reasoning.as_text().is_some()
            && !content.answers()
            && !content.assembly().has_said()
            && self.reason(to).is_ok_and(|reason| reason == "end_turn")
    }

    /// Why the model stopped.
    ///
    /// # Errors
    /// It failed without saying anything.
    pub(crate) fn reason(self, to: &Output<'_>) -> Result<&'static str, Error> {
        stop_reason::of(Facts {
            finish_reason: self.finish_reason,
            refused: !self.content.text().refusal().trim().is_empty(),
            has_tool_use: to.report.tool_calls > 0,
            has_block: self.content.assembly().has_block(),
            at_stop_sequence: self.sequence(to.context).is_some(),
        })
    }

    /// Sends how the message ended.
    pub(crate) fn write(self, reason: &'static str, to: &mut Output<'_>) {
        if self.finish_reason.is_some_and(stop_reason::is_unknown) {
            to.warn("finish_reason_unknown");
        }
        if reason == "end_turn" && !self.content.has_calls() {
            self.note_what_is_missing(to);
        }
        let output = tokens_of(self.content.bytes());
        let estimate = Estimate { input: to.context.input_tokens, output };
        let counts = Counts::of_nonzero(self.told.usage, estimate);
        if counts.estimated {
            to.warn("usage_estimated");
        }
        let sequence = self.sequence(to.context).filter(|_| reason == "stop_sequence");
        let stop = Stop {
            reason,
            sequence,
            explanation: self.content.text().refusal(),
            model: self.told.model_for(to.context),
            counts,
            searches: self.searches,
            service_tier: self.told.service_tier,
            cleared: to.context.cleared,
        };
        to.stop(&stop, self.content.assembly().has_block());
    }

    /// The client's stop sequence at which the answer ends, whether this cut it there or the upstream did.
    fn sequence(self, context: &RequestContext) -> Option<&str> {
        let sequences = &context.stop_sequences;
        let sequence = match (self.content.text().cut_at(), self.stop_sequence) {
            (Some(at), _) => sequences.get(at),
            (None, Some(native)) => sequences.iter().find(|sequence| *sequence == native),
            (None, None) => None,
        };
        sequence.map(String::as_str)
    }

    /// An agent stops at an answer that gives it nothing to go on with, and its log must tell whether the model was
    /// done or a parser in front of it took the answer for something else. Not an error: after a tool that was the
    /// answer, there may be nothing to say.
    fn note_what_is_missing(self, to: &mut Output<'_>) {
        let is_dropped = |warning: &Warning| warning.code == "content_dropped";
        let assembly = self.content.assembly();
        let explained = assembly.has_said() || to.warnings.iter().any(is_dropped);
        let has_thought = assembly.has_block() || self.content.reasoning_field().is_some();
        if self.finish_reason.is_some_and(stop_reason::says_call) {
            to.warn("tool_call_missing");
        } else if !explained && has_thought {
            to.warn("answer_only_reasoning");
        } else if !explained {
            to.warn("answer_empty");
        }
    }
}
