//! How hard the model thinks, and whether.

use super::fields;
use crate::config;
use crate::dialect::profile::{Effort, Profile, SHARED_MEMBERS, ThinkingSwitch};
use crate::error::Error;
use crate::json::{Str, Writer};
use crate::model::request_context::Display;
use crate::model::{Request, Thinking, ThinkingMode};
use crate::observe::warning::Warnings;

/// What the conversation says about thinking in this turn.
pub(crate) struct Turn<'a> {
    /// The effort that the last system message in the middle asks for.
    pub effort: Option<Str<'a>>,
    /// Whether the model must call a tool.
    pub forced: bool,
    /// Whether the answer continues a prefill.
    pub prefilled: bool,
}

/// What the upstream is told about thinking.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Effective {
    effort: Option<Effort>,
    switch: Option<bool>,
    budget: Option<u64>,
}

impl Effective {
    /// Decides. Servers that think by default refuse a forced call and a prefill, unless thinking is
    /// switched off.
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
            // Models of Qwen that also think by default refuse an answer that is JSON, and one without a stream.
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
        let mut wanted = word.and_then(effort_of);
        if word.is_some() && wanted.is_none() {
            warnings.dropped("output_config.effort")?;
        }
        let mut budget = None;
        if let Some(ThinkingMode::Enabled(tokens)) = mode {
            budget =
                profile.thinking_budget.then(|| fields::thinking_budget(tokens, request, profile));
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

    pub(crate) fn write(&self, profile: &Profile, json: &mut Writer<'_>) {
        if let Some(effort) = self.effort {
            json.key("reasoning_effort").text(effort.word());
        }
        if let (ThinkingSwitch::EnableThinking, Some(on)) = (profile.thinking_switch, self.switch) {
            json.key("enable_thinking").bool(on);
        }
        for name in SHARED_MEMBERS {
            let switch = profile.thinking_switch.member().filter(|(within, _)| *within == name);
            let switch = switch.map(|(_, key)| key).zip(self.switch);
            let added = profile.added_to(name);
            if switch.is_none() && added.is_none() {
                continue;
            }
            json.key(name).begin_object();
            match switch {
                Some(("type", true)) => drop(json.kind("enabled")),
                Some(("type", false)) => drop(json.kind("disabled")),
                Some((key, on)) => drop(json.key(key).bool(on)),
                None => {}
            }
            if let Some(added) = added {
                added.write_into(&[], json);
            }
            json.end_object();
        }
        let field = profile.thinking_budget_field.word();
        if let Some(tokens) = self.budget.filter(|_| profile.extra_body.get(field).is_none()) {
            json.key(field).u64(tokens);
        }
    }
}

/// The value that an upstream with these takes in place of an effort, if it has one.
pub(crate) fn nearest_of(word: Str<'_>, values: &[Effort]) -> Option<Effort> {
    nearest(effort_of(word)?, values)
}

fn effort_of(word: Str<'_>) -> Option<Effort> {
    let all = [Effort::Low, Effort::Medium, Effort::High, Effort::Xhigh, Effort::Max];
    all.into_iter().find(|effort| word == effort.word())
}

/// The value that the upstream takes: the wanted one, else the next lower one, else the lowest that
/// still thinks. `none` only where there is nothing else.
fn nearest(wanted: Effort, values: &[Effort]) -> Option<Effort> {
    let thinking = || values.iter().copied().filter(|value| *value != Effort::None);
    let lower = thinking().filter(|value| *value <= wanted).max();
    lower.or_else(|| thinking().min()).or_else(|| values.first().copied())
}

/// What the client is shown of the reasoning.
pub(crate) fn shown(thinking: Option<Thinking>, reasoning: config::Reasoning) -> Display {
    let wanted = matches!(
        thinking.map(|thinking| thinking.mode),
        Some(ThinkingMode::Adaptive | ThinkingMode::Enabled(_))
    );
    let omitted = thinking.is_some_and(|thinking| thinking.omitted);
    match reasoning {
        config::Reasoning::Never => Display::Hidden,
        config::Reasoning::OnRequest if !wanted => Display::Hidden,
        config::Reasoning::OnRequest | config::Reasoning::Always if omitted => Display::Omitted,
        config::Reasoning::OnRequest | config::Reasoning::Always => Display::Shown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_effort_that_is_not_there_becomes_the_next_lower_one() {
        use Effort::{High, Low, Max, Medium, Minimal, None, Xhigh};
        for (wanted, values, expected) in [
            (Xhigh, &[None, Minimal, Low, Medium, High, Xhigh, Max][..], Some(Xhigh)),
            (Xhigh, &[Low, High, Max], Some(High)),
            (Max, &[Low, Medium, High], Some(High)),
            (Medium, &[Low, High, Max], Some(Low)),
            (Low, &[None, High], Some(High)),
            (Low, &[None], Some(None)),
            (High, &[], Option::None),
        ] {
            assert_eq!(nearest(wanted, values), expected, "{wanted:?} {values:?}");
        }
    }
}
