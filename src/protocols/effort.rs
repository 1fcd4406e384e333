//! Effort of the model's thinking, and limits of the tokens for thinking and for the answer.

use crate::error::Error;
use crate::json::Str;
use crate::model::{Request, ThinkingMode};
use crate::observe::warning::Warnings;
use crate::profile::effort::{nearest, of_word};
use crate::profile::{Effort, Profile, ThinkingBudget, ThinkingSwitch};

/// State of the conversation that decides about thinking in this turn.
pub(crate) struct Turn<'a> {
    /// The effort that the last system message in the middle asks for.
    pub effort: Option<Str<'a>>,
    /// Whether the model must call a tool.
    pub forced: bool,
    /// Whether the answer continues a prefill.
    pub prefilled: bool,
}

/// The settings of thinking in the upstream's request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Effective {
    /// Word for the effort.
    pub effort: Option<Effort>,
    /// Whether the model thinks, where the client says so.
    pub switch: Option<bool>,
    /// Number of tokens that the model may think for.
    pub budget: Option<u64>,
}

impl Effective {
    /// Decides how the model thinks. Servers that think by default refuse a forced call and a
    /// prefill, unless thinking is switched off.
    pub(crate) fn new(
        request: &Request<'_>,
        turn: Turn<'_>,
        profile: &Profile,
        warnings: &mut Warnings,
    ) -> Result<Self, Error> {
        let mode = request.thinking.map(|thinking| thinking.mode);
        let has_none = profile.reasoning_effort_values.contains(&Effort::None);
        let is_off = matches!(mode, Some(ThinkingMode::Disabled | ThinkingMode::BetweenTools));
        let must_be_off = match profile.thinking_switch {
            ThinkingSwitch::ThinkingType => turn.forced,
            // Models of Qwen that also think by default refuse an answer that is JSON, and one
            // without a stream.
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
            // Where that is the only word, there is no other way to use tools.
            wanted = wanted.or(Some(Effort::Low));
        }
        let effort = wanted.and_then(|wanted| nearest(wanted, values));
        Ok(Self { effort, switch: mode.map(|_| true), budget })
    }
}

/// Returns the number of tokens that the answer may have.
pub(crate) fn limited(wanted: u64, profile: &Profile) -> u64 {
    if profile.max_tokens_max == 0 { wanted } else { wanted.min(profile.max_tokens_max) }
}

/// Returns the number of tokens that the model may think for. The client left tokens for an answer
/// below its own limit; where that is lowered, half of the new one is left.
fn thinking_budget(wanted: u64, request: &Request<'_>, profile: &Profile) -> u64 {
    let context = request.max_tokens.unwrap_or(u64::MAX);
    let limit = limited(context, profile);
    if limit < context { wanted.min(limit / 2) } else { wanted }
}
