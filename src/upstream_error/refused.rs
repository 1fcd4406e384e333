//! What an upstream refuses of a request, and what is left of its profile without that.

use crate::dialect::profile::{
    self, Effort, EmptyAssistantContent, IdStyle, ImageParts, Profile, ReasoningHistory,
    ReasoningSummary, ResponseFormat, StoreField, ToolChoiceAny, ToolChoiceNamed, ToolContentParts,
    ToolOutputParts, UserId,
};
use crate::error::Parameter::{
    self, MaxTokensField, ParallelToolCalls, PromptCacheKey, Sampling, ServiceTier, Stop, Thinking,
    ThinkingBudget, ThinkingSwitch, TopK, User,
};
use crate::error::{ContextLimit, Error, Reason};
use crate::model::request_context::{Display, RequestContext};
use crate::observe::warning::Warnings;

/// What an upstream refuses. In a conversation it stays, and clients send their settings with each request, so
/// every later one would be refused, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// How calls and results are paired, although they fit: those that this message names, or all where it names
    /// none, are written as words.
    Calls(String),
    /// Images, which the model cannot see: they are left out.
    Images,
    /// PDFs that stand in the conversation, which are left out.
    Documents,
    /// Reasoning, which is left out.
    Reasoning,
    /// `response_format`, whose schema is written as words.
    ResponseFormat,
    /// The limit of the answer, for which it gives so many tokens at most.
    MaxTokens(u64),
    /// The limit of the answer, for which there is no space in the context window beside the prompt.
    Space(Space),
    /// `stream_options`, in each stream: the answer's tokens are not known.
    StreamOptions,
    /// The effort: of these values the nearest is sent, or none.
    Effort(Vec<Effort>),
    /// More than so many stop sequences: the text is cut here at the others.
    StopCount(usize),
    /// How a message of the assistant without words is sent: so it is sent instead.
    EmptyContent(EmptyAssistantContent),
    /// Neighbouring messages of one role, or a beginning that is not the user's.
    Neighbours,
    /// The kind of the answer: a stream where the client wants a whole one, or the other way round.
    Streaming,
    /// A list of texts as content: they are one text.
    JoinedTexts,
    /// A list as the result of a call: it is a text, and what else it has follows in a message of the user.
    ResultsAsText,
    /// The form of ids of calls: they are nine letters and digits.
    Ids,
    /// A turn of the assistant without reasoning: it has a blank one.
    ReasoningInEachTurn,
    /// `strict` of tools and schemas.
    StrictTools,
    /// `tool_choice` that forces a call: the model gets that tool alone, and is free to call it.
    ForcedTool,
    /// Another parameter, which is left out, or sent under its other name. Without `stop` the text is cut here;
    /// without `parallel_tool_calls` an answer keeps its first call only.
    Parameter(Parameter),
}

/// How much of a context window a prompt left for the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// The most tokens that the answer may have.
    pub answer: u64,
    /// Tokens of the prompt, as the upstream counted them.
    pub prompt: u64,
    /// Tokens of the prompt, as Creole estimates them.
    pub estimate: u64,
}

impl Space {
    /// In fewer tokens hardly a call is written to its end. Clients compact where they read of such a window.
    pub(crate) const LEAST: u64 = 1024;

    /// The space beside a prompt, if the answer fits into some of it.
    fn of(limit: ContextLimit, context: &RequestContext) -> Option<Self> {
        let ContextLimit::Sum { prompt, answer, window } = limit else { return None };
        // What was refused is too much, even where it would fit by these numbers.
        let refused = if context.limits.max_tokens == 0 {
            answer
        } else {
            answer.min(context.limits.max_tokens)
        };
        let answer = window.checked_sub(prompt)?.min(refused.checked_sub(1)?);
        let space = Self { answer, prompt, estimate: context.input_estimate };
        (answer >= Self::LEAST).then_some(space)
    }

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
    /// was another one. `None` where there is no space for an answer: the upstream may count otherwise.
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
const STREAMING: &str = "stream_refused";
const STREAM_OPTIONS: &str = "stream_options_refused";
/// The warning's code for a refused parameter; the profile's key that saves the first try follows it.
const PARAMETER: &str = "parameter_refused";

/// No model gives less. Images, tools and values of temperature have bounds below.
pub(crate) const ANSWER_MOST_LEAST: u64 = 256;

impl Refused {
    /// The part of the request that a reason is about. `message`: the upstream's words.
    pub(crate) fn of(reason: &Reason, message: &str, context: &RequestContext) -> Option<Self> {
        let less = |most: u64| {
            let is_less = (ANSWER_MOST_LEAST..context.limits.max_tokens).contains(&most);
            is_less.then_some(Self::MaxTokens(most))
        };
        Some(match reason {
            Reason::Pairing => Self::Calls(message.to_owned()),
            Reason::Images => Self::Images,
            // An image that a tool gave, or that is older than the last question, comes again with each request. A new
            // image of the user is the user's to mend.
            Reason::OneImage if !context.refusable.new_image => Self::Images,
            Reason::Documents => Self::Documents,
            Reason::ResponseFormat => Self::ResponseFormat,
            Reason::Reasoning | Reason::ReasoningUnread { .. } => Self::Reasoning,
            Reason::ContextTooLong(limit) | Reason::RateTooLow(limit) => {
                Self::Space(Space::of(*limit, context)?)
            }
            Reason::AnswerTooLong { most, .. } | Reason::AnswerLimit(most) => less(*most)?,
            Reason::StreamOptions => Self::StreamOptions,
            Reason::Neighbours => Self::Neighbours,
            Reason::StopCount(most) => Self::StopCount(*most),
            Reason::NullContent => Self::EmptyContent(EmptyAssistantContent::Empty),
            Reason::EmptyContent => Self::EmptyContent(EmptyAssistantContent::Null),
            Reason::Effort { taken, .. } => {
                use Effort::{High, Low, Max, Medium, Minimal, Xhigh};
                let all = [Effort::None, Minimal, Low, Medium, High, Xhigh, Max].into_iter();
                Self::Effort(all.filter(|effort| taken.contains(&effort.word())).collect())
            }
            Reason::Parameter(parameter) => Self::Parameter(*parameter),
            _ => return None,
        })
    }

    /// The code of the warning, and its name.
    #[must_use]
    pub fn code(&self) -> (&'static str, &'static str) {
        match self {
            Self::Calls(_) => (PAIRING, ""),
            Self::Images => (IMAGES, ""),
            Self::Documents => (DOCUMENTS, ""),
            Self::Reasoning => (REASONING, ""),
            Self::ResponseFormat => (RESPONSE_FORMAT, ""),
            Self::MaxTokens(_) | Self::Space(_) => (MAX_TOKENS, ""),
            Self::StreamOptions => (STREAM_OPTIONS, ""),
            Self::Effort(_) => (PARAMETER, "reasoning_effort_values"),
            Self::StopCount(_) => (PARAMETER, "max_stop"),
            Self::EmptyContent(_) => (PARAMETER, "empty_assistant_content"),
            Self::Neighbours => (PARAMETER, "alternating_roles"),
            Self::Streaming => (STREAMING, ""),
            Self::JoinedTexts => (PARAMETER, "joined_texts"),
            Self::ResultsAsText => (PARAMETER, "tool_output_parts"),
            Self::Ids => (PARAMETER, "id_style"),
            Self::ReasoningInEachTurn => (PARAMETER, "reasoning_history"),
            Self::StrictTools => (PARAMETER, "strict_tools"),
            Self::ForcedTool => (PARAMETER, "tool_choice_any"),
            Self::Parameter(parameter) => (PARAMETER, key(*parameter)),
        }
    }

    /// Whether a Chat Completions request can have it. Where it has not, an error that names it means something else.
    #[must_use]
    pub(crate) fn may_be_in(&self, context: &RequestContext) -> bool {
        let has = &context.refusable;
        match self {
            Self::StopCount(most) => context.limits.stop_sequences.len() > *most,
            Self::EmptyContent(_) => context.counts.has_calls(),
            Self::Neighbours => has.neighbours,
            Self::Effort(_) => has.thinking,
            Self::Parameter(parameter) => match parameter {
                Thinking | ThinkingSwitch | ThinkingBudget => has.thinking,
                Sampling => has.sampling,
                TopK => has.top_k,
                Stop => !context.limits.stop_sequences.is_empty(),
                ParallelToolCalls => !context.tools.is_empty(),
                ServiceTier => has.service_tier,
                User => has.user,
                MaxTokensField | PromptCacheKey => true,
                // Those of Responses.
                Parameter::ReasoningSummary
                | Parameter::Include
                | Parameter::OutputLimit
                | Parameter::Store
                | Parameter::Phase => false,
            },
            _ => true,
        }
    }

    /// Whether a Responses request can have it.
    #[must_use]
    pub(crate) fn may_be_in_responses(&self, context: &RequestContext) -> bool {
        match self {
            Self::StopCount(_) | Self::EmptyContent(_) => false,
            Self::Parameter(parameter) => match parameter {
                ThinkingSwitch | ThinkingBudget | Stop | MaxTokensField => false,
                Parameter::ReasoningSummary => context.thinking.display == Display::Shown,
                Parameter::Include
                | Parameter::OutputLimit
                | Parameter::Store
                | Parameter::Phase => true,
                _ => self.may_be_in(context),
            },
            _ => self.may_be_in(context),
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
                | Self::Space(_)
                | Self::Effort(_)
                | Self::Parameter(Thinking | ThinkingSwitch | Sampling | TopK | ServiceTier | User)
        )
    }

    /// Whether this repeats an older refusal, or shows that it was wrong: a server whose window is named as its limit
    /// then refuses an answer as long as that.
    #[must_use]
    pub(crate) fn replaces(&self, older: &Self) -> bool {
        match (self, older) {
            (Self::Space(space), Self::MaxTokens(most)) => *most >= space.window(),
            (Self::MaxTokens(_), Self::Space(_)) => false,
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
            // It is the conversation that changes, or the answer.
            Self::Calls(_) | Self::Streaming => {}
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
            Self::Space(space) => {
                if let Some(most) = space.beside(estimate()) {
                    limit(profile, most);
                }
            }
            Self::StreamOptions => {
                profile.stream_usage = false;
                profile.obfuscation = true;
            }
            Self::Effort(values) => {
                if values.is_empty() {
                    warnings.dropped("output_config.effort")?;
                }
                if profile.thinking_switch == profile::ThinkingSwitch::EffortNone {
                    // Then it is one of the values, or nothing.
                    profile.thinking_switch = profile::ThinkingSwitch::None;
                }
                profile.reasoning_effort_values.clone_from(values);
            }
            Self::StopCount(most) => profile.max_stop = *most,
            Self::EmptyContent(content) => profile.empty_assistant_content = *content,
            Self::Neighbours => profile.alternating_roles = true,
            Self::JoinedTexts => profile.joined_texts = true,
            Self::ResultsAsText => {
                profile.tool_content_parts = ToolContentParts::No;
                profile.tool_output_parts = ToolOutputParts::Text;
            }
            Self::Ids => profile.id_style = IdStyle::Mistral9,
            Self::ReasoningInEachTurn => profile.reasoning_history = ReasoningHistory::Required,
            Self::StrictTools => profile.strict_tools = false,
            Self::ForcedTool => {
                profile.tool_choice_any = ToolChoiceAny::Auto;
                profile.tool_choice_named = ToolChoiceNamed::OnlyTool;
            }
            Self::Parameter(parameter) => narrow_parameter(*parameter, profile, warnings)?,
        }
        Ok(())
    }
}

/// The key of the profile that saves the first try without a parameter.
fn key(parameter: Parameter) -> &'static str {
    match parameter {
        MaxTokensField => "max_tokens_field",
        Thinking => "reasoning_effort_values",
        ThinkingSwitch => "thinking_switch",
        ThinkingBudget => "thinking_budget",
        Sampling => "sampling",
        TopK => "top_k",
        Stop => "stop",
        ParallelToolCalls => "parallel_tool_calls",
        PromptCacheKey => "prompt_cache_key",
        ServiceTier => "service_tier",
        User => "user_id",
        Parameter::ReasoningSummary => "reasoning_summary",
        Parameter::Include => "include_encrypted",
        Parameter::OutputLimit => "output_limit",
        Parameter::Store => "store_field",
        Parameter::Phase => "message_phase",
    }
}

/// Changes the profile to that of an upstream that does not take a parameter.
fn narrow_parameter(
    parameter: Parameter,
    profile: &mut Profile,
    warnings: &mut Warnings,
) -> Result<(), Error> {
    match parameter {
        MaxTokensField => {
            profile.max_tokens_field = match profile.max_tokens_field {
                profile::MaxTokensField::MaxTokens => profile::MaxTokensField::MaxCompletionTokens,
                profile::MaxTokensField::MaxCompletionTokens => profile::MaxTokensField::MaxTokens,
            };
        }
        Thinking => {
            warnings.dropped("thinking")?;
            profile.thinking_switch = profile::ThinkingSwitch::None;
            profile.thinking_budget = false;
            profile.reasoning_summary = ReasoningSummary::None;
            profile.reasoning_effort_values.clear();
        }
        ThinkingSwitch => {
            warnings.dropped("thinking")?;
            profile.thinking_switch = profile::ThinkingSwitch::None;
            profile.reasoning_effort_values.retain(|effort| *effort != Effort::None);
        }
        ThinkingBudget => {
            warnings.dropped("thinking.budget_tokens")?;
            profile.thinking_budget = false;
        }
        Sampling => profile.sampling = false,
        TopK => profile.top_k = false,
        Stop => profile.stop = false,
        ParallelToolCalls => profile.parallel_tool_calls = false,
        PromptCacheKey => profile.prompt_cache_key = false,
        ServiceTier => profile.service_tier = false,
        User => profile.user_id = UserId::Drop,
        Parameter::ReasoningSummary => profile.reasoning_summary = ReasoningSummary::None,
        Parameter::Include => profile.include_encrypted = false,
        Parameter::OutputLimit => profile.output_limit = false,
        Parameter::Store => profile.store_field = StoreField::Omit,
        Parameter::Phase => profile.message_phase = false,
    }
    Ok(())
}

/// Lowers the limit of the answer.
fn limit(profile: &mut Profile, most: u64) {
    let known = profile.max_tokens_max;
    profile.max_tokens_max = if known == 0 { most } else { known.min(most) };
}

#[cfg(test)]
mod tests;
