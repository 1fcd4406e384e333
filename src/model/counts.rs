//! Token counts of an answer, as the client gets them.

use super::usage::Usage;

/// Token counts as the Messages API has them: input tokens are without those of the cache.
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
    /// True if some of the counts are estimates.
    pub estimated: bool,
}

/// Estimated tokens of a request and its answer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Estimate {
    /// Tokens of the request.
    pub(crate) input: u64,
    /// Tokens of the answer.
    pub(crate) output: u64,
}

impl Counts {
    /// Returns the counts that the upstream gave, and `estimate` for counts that it did not give.
    pub(crate) fn of(usage: Option<Usage>, estimate: Estimate) -> Self {
        let usage = usage.unwrap_or_default();
        let cache_read = usage.cache_read.unwrap_or(0);
        let cache_creation = usage.cache_written.unwrap_or(0);
        let cached = cache_read.saturating_add(cache_creation);
        // Portkey counts the cache of Claude beside the prompt, as its sum shows.
        let beside = || usage.total?.checked_sub(usage.completion?)?.checked_sub(cached);
        let without_cache = |prompt: u64| match beside() {
            Some(alone) if alone == prompt => prompt,
            _ => prompt.saturating_sub(cached),
        };
        let input = usage.prompt.map(without_cache).or(usage.input);
        // Some count the prompt and the sum only.
        let difference = || usage.total?.checked_sub(usage.prompt?).filter(|output| *output > 0);
        // Google counts thinking in the sum alone. A cache beside the prompt would look like it.
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
            // xAI counts reasoning beside the completion, everybody else inside of it.
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

    /// Returns counts as [`Counts::of`] does, for a server on which 0 tokens of a prompt or a text
    /// mean that it did not count: some local servers send zeros.
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

/// Returns the service tier in the words of the Messages API.
pub(crate) fn service_tier(tier: &str) -> &'static str {
    if matches!(tier, "priority" | "fast") { "priority" } else { "standard" }
}

#[cfg(test)]
mod tests;
