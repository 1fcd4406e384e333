//! Parts of a request that an upstream refuses, each of which has a change that avoids the refusal.

use std::mem;

use crate::error::{ContextLimit, Parameter, Reason};
use crate::model::request_context::RequestContext;
use crate::profile::{Effort, EmptyAssistantContent};

/// Part of a request that an upstream refuses. The part stays in the conversation or in the
/// client's settings, so every later request would be refused, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Pairing of calls and results, which the upstream refuses although the pairing is correct.
    /// Calls named in the error message are written as text, or all calls if the message names
    /// none.
    Calls(String),
    /// Images, which the model does not support and which are left out.
    Images,
    /// PDF documents in the conversation, which are left out.
    Documents,
    /// Reasoning in the history, which is left out.
    Reasoning,
    /// Parameter `response_format`, whose schema is written as text instead.
    ResponseFormat,
    /// Limit of the answer, which is lowered to this maximum number of tokens of the upstream.
    MaxTokens(u64),
    /// Limit of the answer, which is lowered to the tokens that the prompt leaves in the context
    /// window.
    Space(WindowSpace),
    /// Parameter `stream_options`, which is left out. The upstream then sends no token counts in
    /// streams.
    StreamOptions,
    /// Effort of reasoning: the nearest of these values is sent, or none.
    Effort(Vec<Effort>),
    /// Number of stop sequences beyond this limit: Creole itself cuts the text at the further
    /// sequences.
    StopCount(usize),
    /// Form of an assistant message without text: the given form is sent instead.
    EmptyContent(EmptyAssistantContent),
    /// Adjacent messages of one role, or a first message that is not the user's.
    Neighbours,
    /// Kind of the response that is refused: if true, a stream; a whole response is requested
    /// instead. If false, the reverse.
    Streaming(bool),
    /// List of texts as the content of a message: the texts are joined to one.
    JoinedTexts,
    /// List as the result of a call: the list becomes a text, and its other parts follow in a user
    /// message.
    ResultsAsText,
    /// Form of call ids, which are replaced by ids of nine alphanumeric characters.
    Ids,
    /// Assistant message without reasoning, which gets blank reasoning.
    ReasoningInEachTurn,
    /// Flag `strict` of tools and schemas, which is left out.
    StrictTools,
    /// Value of `tool_choice` that forces a call: only the forced tool is offered, and the model is
    /// free to call it.
    ForcedTool,
    /// Names of tools, which are shortened and reduced to the characters that OpenAI allows.
    Names,
    /// Length of tool descriptions, which are cut.
    Descriptions,
    /// Extensions of the Messages API that other servers do not support: all are left out.
    Extensions,
    /// Marks of prompt caching (`cache_control`), which are left out.
    CacheMarks,
    /// Parameter of another kind, which is left out, or sent under its other name. If `stop` is
    /// left out, Creole cuts the text itself; if `parallel_tool_calls` is, only the answer's first
    /// call is kept.
    Parameter(Parameter),
}

/// Part of a context window that a prompt leaves for the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowSpace {
    /// Maximum number of tokens of the answer that fit beside the prompt.
    pub answer: u64,
    /// Tokens of the prompt, as counted by the upstream.
    pub prompt: u64,
    /// Tokens of the prompt, as estimated by Creole.
    pub estimate: u64,
}

impl WindowSpace {
    /// Minimum number of tokens for an answer; fewer hardly hold a whole tool call. If less space
    /// is left, the client gets the error and compacts the history.
    pub(crate) const LEAST: u64 = 1024;

    /// Returns the space that the prompt leaves for the answer, if at least [`Self::LEAST`] tokens
    /// are left.
    fn of(limit: ContextLimit, context: &RequestContext) -> Option<Self> {
        let ContextLimit::Sum { prompt, answer, window } = limit else { return None };
        // The new limit of the answer must be below the refused limit, even if the refused limit
        // would fit by the counts in the error.
        let refused = if context.limits.max_tokens == 0 {
            answer
        } else {
            answer.min(context.limits.max_tokens)
        };
        let answer = window.checked_sub(prompt)?.min(refused.checked_sub(1)?);
        let space = Self { answer, prompt, estimate: context.input_estimate };
        (answer >= Self::LEAST).then_some(space)
    }

    /// Returns true if the upstream's count of tokens may belong to this request's prompt, whose
    /// tokens are estimated. An error may contain other numbers, such as those of a quoted text.
    #[must_use]
    pub(crate) fn is_of(self, estimate: u64) -> bool {
        let known = estimate / 8..=estimate.saturating_mul(8);
        estimate == 0 || known.contains(&self.prompt)
    }

    /// Returns the tokens of prompt and answer together: the context window.
    #[must_use]
    pub(crate) fn window(self) -> u64 {
        self.prompt.saturating_add(self.answer)
    }

    /// Returns the maximum number of tokens for the answer to a prompt with this estimate. The
    /// estimate is scaled by the ratio of count to estimate at the refused prompt. `None` if no
    /// space is left for an answer, since the upstream may count differently.
    #[must_use]
    pub(crate) fn beside(self, estimate: u64) -> Option<u64> {
        // The real count of the difference to the refused prompt is unknown, so an eighth is added
        // to be safe.
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

/// Minimum value of an answer limit in an error that is believed, in tokens. No model has a lower
/// limit; smaller numbers are limits of images, tools or the temperature.
pub(crate) const ANSWER_MOST_LEAST: u64 = 256;

impl Refused {
    /// Returns the part of the request that a reason is about. `message`: the upstream's error
    /// message.
    pub(crate) fn of(reason: &Reason, message: &str, context: &RequestContext) -> Option<Self> {
        let less = |most: u64| {
            let is_less = (ANSWER_MOST_LEAST..context.limits.max_tokens).contains(&most);
            is_less.then_some(Self::MaxTokens(most))
        };
        Some(match reason {
            Reason::Pairing => Self::Calls(message.to_owned()),
            Reason::Images => Self::Images,
            // An image that a tool gave, or that is older than the last question, is in each later
            // request, too. A new image is for the user to change.
            Reason::OneImage if !context.refusable.new_image => Self::Images,
            Reason::Documents => Self::Documents,
            Reason::ResponseFormat => Self::ResponseFormat,
            Reason::Reasoning | Reason::ReasoningUnread { .. } => Self::Reasoning,
            Reason::ContextTooLong(limit) | Reason::RateTooLow(limit) => {
                Self::Space(WindowSpace::of(*limit, context)?)
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

    /// Returns true if both refusals demand the same kind of change, regardless of numbers, values
    /// or texts.
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
