//! Token counts of an answer.

use crate::json::Writer;
use crate::model::request_context::RequestContext;
use crate::protocols::chat::wire::Usage;
use crate::tokens::tokens_of;

/// Token counts as the Messages API has them: input tokens are without those of the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// `input_tokens`
    pub(super) input: u64,
    /// `cache_read_input_tokens`
    pub(super) cache_read: u64,
    /// `cache_creation_input_tokens`
    pub(super) cache_creation: u64,
    /// `output_tokens`
    pub(super) output: u64,
    /// `thinking_tokens`, where the upstream tells them apart.
    pub(super) thinking: Option<u64>,
    /// Some of it is an estimate.
    pub(super) estimated: bool,
}

impl Counts {
    /// The counts that the upstream gave, and estimates for what it did not: of the request, and of
    /// `output_bytes` of answer.
    pub(super) fn of(usage: Option<Usage>, context: &RequestContext, output_bytes: u64) -> Self {
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
        let output = output.unwrap_or_else(|| tokens_of(output_bytes));
        Self {
            input: input.unwrap_or(context.input_tokens),
            cache_read,
            cache_creation,
            output,
            thinking: usage.reasoning.map(|reasoning| reasoning.min(output)),
            estimated,
        }
    }

    /// The counts of an answer in Chat Completions. A prompt or a text of 0 tokens was not counted: some local servers
    /// count nothing and send zeros.
    pub(super) fn of_chat(
        usage: Option<Usage>,
        context: &RequestContext,
        output_bytes: u64,
    ) -> Self {
        let is_cached = |usage: &Usage| usage.cache_read.max(usage.cache_written) > Some(0);
        let usage = usage.map(|usage| Usage {
            prompt: usage.prompt.filter(|tokens| *tokens > 0 || is_cached(&usage)),
            input: usage.input.filter(|tokens| *tokens > 0 || is_cached(&usage)),
            completion: usage.completion.filter(|tokens| *tokens > 0 || output_bytes == 0),
            ..usage
        });
        Self::of(usage, context, output_bytes)
    }

    /// The counts of `message_delta`.
    pub(super) fn write_delta(&self, json: &mut Writer<'_>) {
        json.begin_object();
        json.key("input_tokens").u64(self.input);
        json.key("cache_creation_input_tokens").u64(self.cache_creation);
        json.key("cache_read_input_tokens").u64(self.cache_read);
        json.key("output_tokens").u64(self.output);
        self.write_details(json);
        json.end_object();
    }

    /// The counts of a whole message, with every field of the format.
    pub(super) fn write_message(&self, service_tier: Option<&str>, json: &mut Writer<'_>) {
        json.begin_object();
        json.key("input_tokens").u64(self.input);
        json.key("cache_creation_input_tokens").u64(self.cache_creation);
        json.key("cache_read_input_tokens").u64(self.cache_read);
        json.key("cache_creation").null();
        json.key("output_tokens").u64(self.output);
        self.write_details(json);
        json.key("server_tool_use").null();
        match service_tier {
            Some(tier) => json.key("service_tier").text(tier),
            None => json.key("service_tier").null(),
        };
        json.key("speed").null();
        json.key("inference_geo").null();
        json.end_object();
    }

    fn write_details(&self, json: &mut Writer<'_>) {
        json.key("output_tokens_details");
        match self.thinking {
            Some(thinking) => {
                json.begin_object().key("thinking_tokens").u64(thinking).end_object();
            }
            None => {
                json.null();
            }
        }
    }
}

/// The tier in the words of the Messages API.
pub(super) fn service_tier(tier: &str) -> &'static str {
    if matches!(tier, "priority" | "fast") { "priority" } else { "standard" }
}

#[cfg(test)]
mod tests;
