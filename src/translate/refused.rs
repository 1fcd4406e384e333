//! What an upstream refuses of a request, and what is left of its profile without that.

use crate::asked::Asked;
use crate::error::Error;
use crate::profile::{
    Effort, ImageParts, MaxTokensField, Profile, ReasoningHistory, ResponseFormat, ThinkingSwitch,
    UserId,
};
use crate::warning::Warnings;

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

/// What is counted.
const PAIRING: &str = "pairing_refused";
const IMAGES: &str = "images_refused";
const DOCUMENTS: &str = "documents_refused";
const REASONING: &str = "reasoning_refused";
const RESPONSE_FORMAT: &str = "response_format_refused";
const MAX_TOKENS: &str = "max_tokens_refused";
const STREAM_OPTIONS: &str = "stream_options_refused";
/// The same, with the name of the profile's key that saves the first try.
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
            Self::MaxTokens(_) => (MAX_TOKENS, ""),
            Self::StreamOptions => (STREAM_OPTIONS, ""),
            Self::MaxTokensField => (PARAMETER, "max_tokens_field"),
            Self::Effort(_) => (PARAMETER, "reasoning_effort_values"),
            Self::Thinking => (PARAMETER, "reasoning_effort_values"),
            Self::ThinkingSwitch => (PARAMETER, "thinking_switch"),
            Self::ThinkingBudget => (PARAMETER, "thinking_budget"),
            Self::Sampling => (PARAMETER, "sampling"),
            Self::TopK => (PARAMETER, "top_k"),
            Self::Stop => (PARAMETER, "stop"),
            Self::ParallelToolCalls => (PARAMETER, "parallel_tool_calls"),
            Self::PromptCacheKey => (PARAMETER, "prompt_cache_key"),
            Self::ServiceTier => (PARAMETER, "service_tier"),
            Self::User => (PARAMETER, "user_id"),
            Self::Neighbours => (PARAMETER, "alternating_roles"),
        }
    }

    /// Whether a Chat Completions request can have it. Where it has not, an error that names it means something else.
    #[must_use]
    pub(crate) fn may_be_in(&self, asked: &Asked) -> bool {
        let has = asked.parameters;
        match self {
            Self::Effort(_) | Self::Thinking | Self::ThinkingSwitch | Self::ThinkingBudget => {
                has.thinking
            }
            Self::Sampling => has.sampling,
            Self::TopK => has.top_k,
            Self::Stop => !asked.stop_sequences.is_empty(),
            Self::ParallelToolCalls => !asked.tools.is_empty(),
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
                | Self::Effort(_)
                | Self::Thinking
                | Self::ThinkingSwitch
                | Self::Sampling
                | Self::TopK
                | Self::ServiceTier
                | Self::User
        )
    }

    /// Changes the profile to that of an upstream that does not take this.
    ///
    /// # Errors
    /// The configuration allows nothing to be left out.
    pub(super) fn narrow(
        &self,
        profile: &mut Profile,
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
            Self::MaxTokens(most) => profile.max_tokens_max = *most,
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
            Self::ParallelToolCalls => profile.parallel_tool_calls = false,
            Self::PromptCacheKey => profile.prompt_cache_key = false,
            Self::ServiceTier => profile.service_tier = false,
            Self::User => profile.user_id = UserId::Drop,
            Self::Neighbours => profile.alternating_roles = true,
        }
        Ok(())
    }
}
