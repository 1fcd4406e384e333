//! Token counts of an answer, as they are reported to the client.

use super::usage::Usage;

/// Token counts in the form of the Messages API, in which the input count excludes cached tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Member `input_tokens`: tokens of the prompt that were not in the cache.
    pub input: u64,
    /// Member `cache_read_input_tokens`: tokens of the prompt read from the cache.
    pub cache_read: u64,
    /// Member `cache_creation_input_tokens`: tokens of the prompt written to the cache.
    pub cache_creation: u64,
    /// Member `output_tokens`: tokens of the answer.
    pub output: u64,
    /// Member `thinking_tokens`, if the upstream counts thinking separately.
    pub thinking: Option<u64>,
    /// True if any of the token counts is an estimate.
    pub estimated: bool,
}

/// Estimated numbers of tokens of a request and its answer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Estimate {
    /// Estimated number of tokens of the request.
    pub(crate) input: u64,
    /// Estimated number of tokens of the answer.
    pub(crate) output: u64,
}

impl Counts {
    /// Returns the sum of the token counts of two rounds of an answer.
    #[must_use]
    pub(crate) fn plus(&self, other: &Self) -> Self {
        let thinking = match (self.thinking, other.thinking) {
            (Some(one), Some(more)) => Some(one.saturating_add(more)),
            (one, more) => one.or(more),
        };
        Self {
            input: self.input.saturating_add(other.input),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_creation: self.cache_creation.saturating_add(other.cache_creation),
            output: self.output.saturating_add(other.output),
            thinking,
            estimated: self.estimated || other.estimated,
        }
    }

    /// Returns the token counts that the upstream reported; `estimate` replaces missing counts.
    pub(crate) fn of(usage: Option<Usage>, estimate: Estimate) -> Self {
        let usage = usage.unwrap_or_default();
        let cache_read = usage.cache_read.unwrap_or(0);
        let cache_creation = usage.cache_written.unwrap_or(0);
        let cached = cache_read.saturating_add(cache_creation);
        // Portkey counts Claude's cached tokens beside the prompt; the total shows this.
        let beside = || usage.total?.checked_sub(usage.completion?)?.checked_sub(cached);
        let without_cache = |prompt: u64| match beside() {
            Some(alone) if alone == prompt => prompt,
            _ => prompt.saturating_sub(cached),
        };
        let input = usage.prompt.map(without_cache).or(usage.input);
        // Upstreams may report only the token counts of the prompt and of the total.
        let difference = || usage.total?.checked_sub(usage.prompt?).filter(|output| *output > 0);
        // Google includes thinking tokens in the total alone. Cached tokens counted beside the
        // prompt would give the same difference.
        let with_thinking = |completion: u64| {
            let prompt = usage.prompt.filter(|prompt| *prompt > 0 && *prompt >= cached)?;
            let output = usage.total?.checked_sub(prompt)?;
            let thinking = output.checked_sub(completion)?;
            let is_cache = [cache_read, cache_creation, cached].contains(&thinking);
            (!is_cache).then_some(output)
        };
        let output = usage.completion.or_else(difference).map(|completion| {
            let Some(reasoning) = usage.reasoning else {
                return with_thinking(completion).unwrap_or(completion);
            };
            let sum = completion.saturating_add(reasoning);
            let prompt = usage.prompt.unwrap_or(0);
            // xAI counts reasoning beside the completion, all other upstreams within the
            // completion.
            if reasoning > 0 && usage.total == Some(prompt.saturating_add(sum)) {
                sum
            } else {
                completion
            }
        });
        let estimated = input.is_none() || output.is_none();
        let output = output.unwrap_or(estimate.output);
        Self {
            input: input.unwrap_or(estimate.input),
            cache_read,
            cache_creation,
            output,
            thinking: usage.reasoning.map(|reasoning| reasoning.min(output)),
            estimated,
        }
    }

    /// Returns the token counts that the upstream reported, but treats zeros for a prompt or a text
    /// as missing: some local servers send zeros instead of counts.
    pub(crate) fn of_nonzero(usage: Option<Usage>, estimate: Estimate) -> Self {
        let is_cached = |usage: &Usage| usage.cache_read.max(usage.cache_written) > Some(0);
        let usage = usage.map(|usage| Usage {
            prompt: usage.prompt.filter(|tokens| *tokens > 0 || is_cached(&usage)),
            input: usage.input.filter(|tokens| *tokens > 0 || is_cached(&usage)),
            completion: usage.completion.filter(|tokens| *tokens > 0 || estimate.output == 0),
            ..usage
        });
        Self::of(usage, estimate)
    }
}

/// Translates an OpenAI `service_tier` to the value that the Messages API uses.
pub(crate) fn service_tier(tier: &str) -> &'static str {
    if matches!(tier, "priority" | "fast") { "priority" } else { "standard" }
}

#[cfg(test)]
mod tests;
