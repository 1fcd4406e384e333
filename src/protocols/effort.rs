//! Reasoning effort, and limits of the tokens for thinking and for the answer.

use crate::error::Error;
use crate::json::Str;
use crate::model::{Request, ThinkingMode};
use crate::observe::warning::Warnings;
use crate::profile::effort::{nearest, of_word};
use crate::profile::{Effort, Profile, ThinkingBudget, ThinkingSwitch};

/// State of the conversation that affects thinking in this turn.
pub(crate) struct EffortTurn<'a> {
    /// Effort requested by the last system message in the middle of the conversation.
    pub effort: Option<Str<'a>>,
    /// True if the request forces the model to call a tool.
    pub forced: bool,
    /// True if the answer continues a prefill, a final assistant message of the request.
    pub prefilled: bool,
}

/// Thinking settings in the upstream's request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Effective {
    /// Reasoning effort, as the upstream's keyword.
    pub effort: Option<Effort>,
    /// True if thinking is turned on, false if turned off, `None` if the client does not choose.
    pub switch: Option<bool>,
    /// Maximum number of thinking tokens.
    pub budget: Option<u64>,
}

impl Effective {
    /// Chooses the thinking settings. Servers that think by default refuse a forced tool call and a
    /// prefill, unless thinking is turned off.
    pub(crate) fn new(
        request: &Request<'_>,
        turn: EffortTurn<'_>,
        profile: &Profile,
        warnings: &mut Warnings,
    ) -> Result<Self, Error> {
        let mode = request.thinking.map(|thinking| thinking.mode);
        let has_none = profile.reasoning_effort_values.contains(&Effort::None);
        let is_off = matches!(mode, Some(ThinkingMode::Disabled | ThinkingMode::BetweenTools));
        let must_be_off = match profile.thinking_switch {
            ThinkingSwitch::ThinkingType => turn.forced,
            // Qwen models that think by default also refuse JSON answers, and answers without a
            // stream.
            ThinkingSwitch::EnableThinking => {
                turn.forced || request.output_schema.is_some() || !request.stream && mode.is_none()
            }
            ThinkingSwitch::ChatTemplateKwargs | ThinkingSwitch::ChatTemplateThinking => {
                turn.prefilled
            }
            _ => false,
        };
        if is_off || must_be_off {
            let none = has_none || profile.thinking_switch == ThinkingSwitch::EffortNone;
            let effort = none.then_some(Effort::None);
            return Ok(Self { effort, switch: Some(false), budget: None });
        }
        let word = turn.effort.or(request.effort);
        let mut wanted = word.and_then(of_word);
        if word.is_some() && wanted.is_none() {
            warnings.dropped("output_config.effort")?;
        }
        let mut budget = None;
        if let Some(ThinkingMode::Enabled(tokens)) = mode {
            let is_sent = profile.thinking_budget != ThinkingBudget::None;
            budget = is_sent.then(|| thinking_budget(tokens, request, profile));
            wanted = wanted.or(Some(match tokens {
                4096.. => Effort::High,
                2048.. => Effort::Medium,
                _ => Effort::Low,
            }));
        }
        let values = &profile.reasoning_effort_values;
        if *values == [Effort::None] {
            // If `none` is the only effort value, tools cannot be used with another effort.
            wanted = wanted.or(Some(Effort::Low));
        }
        let effort = wanted.and_then(|wanted| nearest(wanted, values));
        Ok(Self { effort, switch: mode.map(|_| true), budget })
    }
}

/// Returns the maximum number of tokens for the answer.
pub(crate) fn limited(wanted: u64, profile: &Profile) -> u64 {
    if profile.max_tokens_max == 0 { wanted } else { wanted.min(profile.max_tokens_max) }
}

/// Returns the maximum number of tokens for thinking. If the answer's limit was lowered, half of
/// the new limit is left for the answer's text.
fn thinking_budget(wanted: u64, request: &Request<'_>, profile: &Profile) -> u64 {
    let context = request.max_tokens.unwrap_or(u64::MAX);
    let limit = limited(context, profile);
    if limit < context { wanted.min(limit / 2) } else { wanted }
}
