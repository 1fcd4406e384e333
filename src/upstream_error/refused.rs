//! What an upstream refuses of a request, and what is left of its profile without that.

use crate::dialect::profile::{
    Effort, EmptyAssistantContent, ImageParts, MaxTokensField, Profile, ReasoningHistory,
    ResponseFormat, ThinkingSwitch, UserId,
};
use crate::error::Error;
use crate::model::request_context::RequestContext;
use crate::observe::warning::Warnings;

/// What an upstream refuses. In a conversation it stays, and clients send their settings with each request, so
/// every later one would be refused, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// How calls and results are paired, although they fit: those that this message names, or all where it names
    /// none, are told in words.
    Calls(String),
    /// Images, which the model cannot see: they are left out.
    Images,
    /// PDFs that stand in the conversation, which are left out.
    Documents,
    /// Reasoning, which is left out.
    Reasoning,
    /// `response_format`, whose schema is told in words.
    ResponseFormat,
    /// The limit of the answer, for which it gives so many tokens at most.
    MaxTokens(u64),
    /// The limit of the answer, for which there is no room in the context window beside the prompt.
    Room(Room),
    /// `stream_options`, in each stream: the answer's tokens are not told.
    StreamOptions,
    /// The name of the limit: the other one is sent.
    MaxTokensField,
    /// The effort: of these values the nearest is sent, or none.
    Effort(Vec<Effort>),
    /// Whatever tells the model to think, which it cannot.
    Thinking,
    /// The switch of thinking.
    ThinkingSwitch,
    /// How much it may think.
    ThinkingBudget,
    /// `temperature` or `top_p`: both are left out.
    Sampling,
    /// `top_k`
    TopK,
    /// `stop`: the text is cut here.
    Stop,
    /// More than so many stop sequences: the text is cut here at the others.
    StopCount(usize),
    /// How a message of the assistant without words is sent: so it is sent instead.
    EmptyContent(EmptyAssistantContent),
    /// `parallel_tool_calls`: an answer keeps its first call only, as wherever that is not sent.
    ParallelToolCalls,
    /// `prompt_cache_key`
    PromptCacheKey,
    /// `service_tier`
    ServiceTier,
    /// `user` or `safety_identifier`
    User,
    /// Neighbouring messages of one role, or a beginning that is not the user's.
    Neighbours,
}

/// How much of a context window a prompt left for the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// The most tokens that the answer may have.
    pub answer: u64,
    /// Tokens of the prompt, as the upstream counted them.
    pub prompt: u64,
    /// Tokens of the prompt, as Creole estimates them.
    pub estimate: u64,
}

impl Room {
    /// In fewer tokens hardly a call is written to its end. Clients compact where they are told of such a window.
    pub(crate) const LEAST: u64 = 1024;

    /// Whether the upstream may have counted the request's own prompt, whose tokens are estimated. An error may have
    /// other numbers in it: those of a text that it quotes.
    #[must_use]
    pub(crate) fn is_of(self, estimate: u64) -> bool {
        let known = estimate / 8..=estimate.saturating_mul(8);
        estimate == 0 || known.contains(&self.prompt)
    }

    /// Tokens of prompt and answer together.
    #[must_use]
    pub(crate) fn window(self) -> u64 {
        self.prompt.saturating_add(self.answer)
    }

    /// The most tokens for the answer to a prompt with this estimate, by what the upstream counted where its estimate
    /// was another one. `None` where there is no room for an answer: the upstream may count otherwise.
    #[must_use]
    pub(crate) fn beside(self, estimate: u64) -> Option<u64> {
        // What is not known is rather counted too high: an eighth.
        let share = |tokens: u64, of: u64, eighths: u128| {
            let parts = u128::from(self.estimate.max(1)).saturating_mul(8);
            let tokens = u128::from(tokens).saturating_mul(u128::from(of)).saturating_mul(eighths);
            u64::try_from(tokens.checked_div(parts).unwrap_or_default()).unwrap_or(u64::MAX)
        };
        let prompt = if estimate >= self.estimate {
            let more = estimate.saturating_sub(self.estimate);
            self.prompt.saturating_add(share(more, self.prompt.max(self.estimate), 9))
        } else {
            let fewer = self.estimate.saturating_sub(estimate);
            self.prompt.saturating_sub(share(fewer, self.prompt.min(self.estimate), 7))
        };
        self.window().checked_sub(prompt).filter(|answer| *answer >= Self::LEAST)
    }
}

/// What is counted.
const PAIRING: &str = "pairing_refused";
const IMAGES: &str = "images_refused";
const DOCUMENTS: &str = "documents_refused";
const REASONING: &str = "reasoning_refused";
const RESPONSE_FORMAT: &str = "response_format_refused";
const MAX_TOKENS: &str = "max_tokens_refused";
const STREAM_OPTIONS: &str = "stream_options_refused";
/// The warning's code for a refused parameter; the profile's key that saves the first try follows it.
const PARAMETER: &str = "parameter_refused";

impl Refused {
    /// The code of the warning, and its name.
    #[must_use]
    pub fn code(&self) -> (&'static str, &'static str) {
        match self {
            Self::Calls(_) => (PAIRING, ""),
            Self::Images => (IMAGES, ""),
            Self::Documents => (DOCUMENTS, ""),
            Self::Reasoning => (REASONING, ""),
            Self::ResponseFormat => (RESPONSE_FORMAT, ""),
            Self::MaxTokens(_) | Self::Room(_) => (MAX_TOKENS, ""),
            Self::StreamOptions => (STREAM_OPTIONS, ""),
            Self::MaxTokensField => (PARAMETER, "max_tokens_field"),
            Self::Effort(_) => (PARAMETER, "reasoning_effort_values"),
            Self::Thinking => (PARAMETER, "reasoning_effort_values"),
            Self::ThinkingSwitch => (PARAMETER, "thinking_switch"),
            Self::ThinkingBudget => (PARAMETER, "thinking_budget"),
            Self::Sampling => (PARAMETER, "sampling"),
            Self::TopK => (PARAMETER, "top_k"),
            Self::Stop => (PARAMETER, "stop"),
            Self::StopCount(_) => (PARAMETER, "max_stop"),
            Self::EmptyContent(_) => (PARAMETER, "empty_assistant_content"),
            Self::ParallelToolCalls => (PARAMETER, "parallel_tool_calls"),
            Self::PromptCacheKey => (PARAMETER, "prompt_cache_key"),
            Self::ServiceTier => (PARAMETER, "service_tier"),
            Self::User => (PARAMETER, "user_id"),
            Self::Neighbours => (PARAMETER, "alternating_roles"),
        }
    }

    /// Whether a Chat Completions request can have it. Where it has not, an error that names it means something else.
    #[must_use]
    pub(crate) fn may_be_in(&self, context: &RequestContext) -> bool {
        let has = context.parameters;
        match self {
            Self::Effort(_) | Self::Thinking | Self::ThinkingSwitch | Self::ThinkingBudget => {
                has.thinking
            }
            Self::Sampling => has.sampling,
            Self::TopK => has.top_k,
            Self::Stop => !context.stop_sequences.is_empty(),
            Self::StopCount(most) => context.stop_sequences.len() > *most,
            Self::EmptyContent(_) => context.counts.has_calls(),
            Self::ParallelToolCalls => !context.tools.is_empty(),
            Self::ServiceTier => has.service_tier,
            Self::User => has.user,
            Self::Neighbours => has.neighbours,
            _ => true,
        }
    }

    /// Whether it is part of a Messages request, too, where the upstream speaks that.
    #[must_use]
    pub fn is_of_messages(&self) -> bool {
        // Calls are not: such a conversation is not rebuilt in words.
        matches!(
            self,
            Self::Images
                | Self::Documents
                | Self::Reasoning
                | Self::MaxTokens(_)
                | Self::Room(_)
                | Self::Effort(_)
                | Self::Thinking
                | Self::ThinkingSwitch
                | Self::Sampling
                | Self::TopK
                | Self::ServiceTier
                | Self::User
        )
    }

    /// Whether this one says what an older one said, or that it was wrong: a server whose window is named as its limit
    /// then refuses an answer as long as that.
    #[must_use]
    pub(crate) fn replaces(&self, older: &Self) -> bool {
        match (self, older) {
            (Self::Room(room), Self::MaxTokens(most)) => *most >= room.window(),
            (Self::MaxTokens(_), Self::Room(_)) => false,
            _ => self.code() == older.code(),
        }
    }

    /// Changes the profile to that of an upstream that does not take this. `estimate`: the tokens of the prompt.
    ///
    /// # Errors
    /// The configuration allows nothing to be left out.
    pub(crate) fn narrow(
        &self,
        profile: &mut Profile,
        estimate: impl FnOnce() -> u64,
        warnings: &mut Warnings,
    ) -> Result<(), Error> {
        match self {
            // It is the conversation that changes.
            Self::Calls(_) => {}
            // Each image is named where it is left out, and so are most parameters.
            Self::Images => profile.image_parts = ImageParts::None,
            Self::Documents => profile.file_parts = false,
            Self::Reasoning => {
                warnings.dropped("reasoning")?;
                profile.reasoning_history = ReasoningHistory::Never;
            }
            Self::ResponseFormat => {
                // Words hold no model to a schema.
                warnings.dropped("output_config.format")?;
                profile.response_format = ResponseFormat::None;
            }
            Self::MaxTokens(most) => limit(profile, *most),
            Self::Room(room) => {
                if let Some(most) = room.beside(estimate()) {
                    limit(profile, most);
                }
            }
            Self::StreamOptions => profile.stream_usage = false,
            Self::MaxTokensField => {
                profile.max_tokens_field = match profile.max_tokens_field {
                    MaxTokensField::MaxTokens => MaxTokensField::MaxCompletionTokens,
                    MaxTokensField::MaxCompletionTokens => MaxTokensField::MaxTokens,
                };
            }
            Self::Effort(values) => {
                if values.is_empty() {
                    warnings.dropped("output_config.effort")?;
                }
                if profile.thinking_switch == ThinkingSwitch::EffortNone {
                    // Then it is one of the values, or nothing.
                    profile.thinking_switch = ThinkingSwitch::None;
                }
                profile.reasoning_effort_values.clone_from(values);
            }
            Self::Thinking => {
                warnings.dropped("thinking")?;
                profile.thinking_switch = ThinkingSwitch::None;
                profile.thinking_budget = false;
                profile.reasoning_effort_values.clear();
            }
            Self::ThinkingSwitch => {
                warnings.dropped("thinking")?;
                profile.thinking_switch = ThinkingSwitch::None;
                profile.reasoning_effort_values.retain(|effort| *effort != Effort::None);
            }
            Self::ThinkingBudget => {
                warnings.dropped("thinking.budget_tokens")?;
                profile.thinking_budget = false;
            }
            Self::Sampling => profile.sampling = false,
            Self::TopK => profile.top_k = false,
            Self::Stop => profile.stop = false,
            Self::StopCount(most) => profile.max_stop = *most,
            Self::EmptyContent(content) => profile.empty_assistant_content = *content,
            Self::ParallelToolCalls => profile.parallel_tool_calls = false,
            Self::PromptCacheKey => profile.prompt_cache_key = false,
            Self::ServiceTier => profile.service_tier = false,
            Self::User => profile.user_id = UserId::Drop,
            Self::Neighbours => profile.alternating_roles = true,
        }
        Ok(())
    }
}

/// Lowers the limit of the answer.
fn limit(profile: &mut Profile, most: u64) {
    let known = profile.max_tokens_max;
    profile.max_tokens_max = if known == 0 { most } else { known.min(most) };
}

#[cfg(test)]
mod tests;
