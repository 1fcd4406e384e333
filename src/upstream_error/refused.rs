//! Parts of a request that an upstream refuses: the subjects of changes.

use std::mem;

use crate::error::{ContextLimit, Parameter, Reason};
use crate::model::request_context::RequestContext;
use crate::profile::{Effort, EmptyAssistantContent};

/// Part of a request that an upstream refuses. It stays in the conversation, and clients send their
/// settings with each request, so every later one would be refused, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Pairing of calls and results, although they fit. The calls that this message names are
    /// written as words, or all if it names none.
    Calls(String),
    /// Images, which the model cannot see: they are left out.
    Images,
    /// PDFs that stand in the conversation, which are left out.
    Documents,
    /// Reasoning, which is left out.
    Reasoning,
    /// `response_format`, whose schema is written as words.
    ResponseFormat,
    /// Limit of the answer, for which the upstream gives at most so many tokens.
    MaxTokens(u64),
    /// Limit of the answer, for which there is no space in the context window beside the prompt.
    Space(Space),
    /// `stream_options` of any stream: left out. Then the upstream sends no token counts of the
    /// answer.
    StreamOptions,
    /// Effort of reasoning: the nearest of these values is sent, or none.
    Effort(Vec<Effort>),
    /// Number of stop sequences above this one: Creole cuts the text at the others itself.
    StopCount(usize),
    /// Form in which a message of the assistant without words is sent. This other form is sent
    /// instead.
    EmptyContent(EmptyAssistantContent),
    /// Neighbouring messages of one role, or a beginning that is not the user's.
    Neighbours,
    /// Kind of the answer: a stream (true), in place of which a whole answer is asked for, or the
    /// other way round.
    Streaming(bool),
    /// List of texts as content, which is joined to one text.
    JoinedTexts,
    /// List as the result of a call. It becomes a text, and its other parts follow in a message of
    /// the user.
    ResultsAsText,
    /// Form of the ids of calls, which become nine letters and digits.
    Ids,
    /// Turn of the assistant without reasoning, which gets a blank one.
    ReasoningInEachTurn,
    /// `strict` of tools and schemas.
    StrictTools,
    /// `tool_choice` that forces a call: the model gets that tool alone, and is free to call it.
    ForcedTool,
    /// Names of tools, which become as short and plain as OpenAI's rules want them.
    Names,
    /// Length of descriptions of tools, which are cut.
    Descriptions,
    /// Extensions of the Messages API that other servers do not know: all of them are left out.
    Extensions,
    /// Marks for the cache of prompts, which are left out.
    CacheMarks,
    /// Any other parameter, which is left out, or sent under its other name. Without `stop` Creole
    /// cuts the text itself; without `parallel_tool_calls` an answer keeps its first call only.
    Parameter(Parameter),
}

/// Part of a context window that a prompt leaves for the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// Maximum number of tokens of the answer.
    pub answer: u64,
    /// Tokens of the prompt, as the upstream counted them.
    pub prompt: u64,
    /// Tokens of the prompt, as Creole estimates them.
    pub estimate: u64,
}

impl Space {
    /// Minimum number of tokens for an answer: fewer hardly hold a whole tool call. Clients compact
    /// the history when they read of such a window.
    pub(crate) const LEAST: u64 = 1024;

    /// Returns the space that the prompt leaves for the answer, if it is at least [`Self::LEAST`]
    /// tokens.
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

    /// Returns true if the upstream's count may be that of the request's own prompt, whose tokens
    /// are estimated. An error may contain other numbers, such as those of a quoted text.
    #[must_use]
    pub(crate) fn is_of(self, estimate: u64) -> bool {
        let known = estimate / 8..=estimate.saturating_mul(8);
        estimate == 0 || known.contains(&self.prompt)
    }

    /// Returns the tokens of prompt and answer together.
    #[must_use]
    pub(crate) fn window(self) -> u64 {
        self.prompt.saturating_add(self.answer)
    }

    /// Returns the maximum number of tokens for the answer to a prompt with this estimate, scaled
    /// by what the upstream counted for another estimate. `None` if there is no space for an
    /// answer: the upstream may count otherwise.
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

/// Minimum limit of an answer, in tokens, that is believed: no model gives less. Images, tools and
/// values of temperature have bounds below.
pub(crate) const ANSWER_MOST_LEAST: u64 = 256;

impl Refused {
    /// Returns the part of the request that a reason is about. `message`: the upstream's words.
    pub(crate) fn of(reason: &Reason, message: &str, context: &RequestContext) -> Option<Self> {
        let less = |most: u64| {
            let is_less = (ANSWER_MOST_LEAST..context.limits.max_tokens).contains(&most);
            is_less.then_some(Self::MaxTokens(most))
        };
        Some(match reason {
            Reason::Pairing => Self::Calls(message.to_owned()),
            Reason::Images => Self::Images,
            // An image that a tool gave, or that is older than the last question, comes again with
            // each request. A new image of the user is the user's to mend.
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

    /// Returns true if both are the same change, with whatever number, values or words.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Parameter(one), Self::Parameter(other)) => one == other,
            (Self::EmptyContent(one), Self::EmptyContent(other)) => one == other,
            _ => mem::discriminant(self) == mem::discriminant(other),
        }
    }
}

#[cfg(test)]
mod tests;
