//! Token counts of an answer.

use crate::json::Writer;
use crate::openai::Usage;
use crate::request_context::RequestContext;
use crate::translate::count::tokens_of;

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
mod tests {
    use super::*;

    fn counts(usage: Usage) -> Counts {
        Counts::of_chat(
            Some(usage),
            &RequestContext { input_tokens: 7, ..RequestContext::default() },
            36,
        )
    }

    #[test]
    fn the_cache_is_not_counted_twice_and_never_below_zero() {
        let usage = Usage {
            prompt: Some(10),
            completion: Some(5),
            cache_read: Some(6),
            cache_written: Some(3),
            ..Usage::default()
        };
        assert_eq!(counts(usage).input, 1);
        assert_eq!(counts(Usage { cache_read: Some(40), ..usage }).input, 0);
        assert_eq!(counts(Usage { prompt: None, input: Some(10), ..usage }).input, 10);
    }

    #[test]
    fn a_cache_that_the_total_has_beside_the_prompt_is_no_part_of_it() {
        for (prompt, cache_read, cache_written, total, input) in [
            (10, Some(5000), Some(200), Some(5260), 10),
            (6000, Some(5000), Some(0), Some(11_050), 6000),
            (6000, Some(5000), None, Some(11_050), 6000),
            (0, None, Some(200), Some(250), 0),
            // Inside of it, or nobody knows.
            (6000, Some(5000), Some(200), Some(6050), 800),
            (6000, Some(5000), Some(200), Some(11_050), 800),
            (6000, Some(5000), None, None, 1000),
            // Google's thinking.
            (6000, Some(5000), None, Some(6950), 1000),
        ] {
            let completion = Some(50);
            let prompt = Some(prompt);
            let usage =
                Usage { prompt, completion, total, cache_read, cache_written, ..Usage::default() };
            let found = counts(usage);
            assert_eq!(found.input, input, "{usage:?}");
            assert_eq!(found.output, if total == Some(6950) { 950 } else { 50 }, "{usage:?}");
            assert_eq!(found.cache_read, cache_read.unwrap_or(0));
        }
        let unknown =
            Usage { prompt: Some(10), cache_read: Some(6), total: Some(16), ..Usage::default() };
        assert_eq!(counts(unknown).input, 4);
    }

    #[test]
    fn reasoning_is_added_only_where_the_total_says_so() {
        let usage = Usage {
            prompt: Some(10),
            completion: Some(5),
            total: Some(35),
            reasoning: Some(20),
            ..Usage::default()
        };
        assert_eq!((counts(usage).output, counts(usage).thinking), (25, Some(20)));
        let inside = Usage { completion: Some(25), ..usage };
        assert_eq!((counts(inside).output, counts(inside).thinking), (25, Some(20)));
        let unclear = Usage { total: Some(15), ..usage };
        assert_eq!((counts(unclear).output, counts(unclear).thinking), (5, Some(5)));
    }

    #[test]
    fn thinking_that_only_the_total_has_is_output() {
        // Google's endpoint.
        let usage =
            Usage { prompt: Some(20), completion: Some(198), total: Some(623), ..Usage::default() };
        assert_eq!((counts(usage).output, counts(usage).thinking), (603, None));
        let cached = Usage { cache_read: Some(15), ..usage };
        assert_eq!((counts(cached).input, counts(cached).output), (5, 603));
        for (cache_read, cache_written, prompt, reasoning) in [
            // The cache is counted beside the prompt.
            (Some(405), None, 20, None),
            (Some(10), Some(405), 500, None),
            (Some(5), Some(400), 500, None),
            (Some(30), None, 20, None),
            // The prompt is not known.
            (None, None, 0, None),
            // All is told.
            (None, None, 20, Some(0)),
            (None, None, 425, None),
            (None, None, 623, None),
        ] {
            let total = Some(if prompt == 500 { 500 + 198 + 405 } else { 623 });
            let prompt = Some(prompt);
            let usage = Usage { cache_read, cache_written, prompt, reasoning, total, ..usage };
            assert_eq!(counts(usage).output, 198, "{usage:?}");
        }
    }

    #[test]
    fn what_is_missing_is_estimated() {
        let none = counts(Usage::default());
        assert_eq!((none.input, none.output, none.estimated), (7, 10, true));
        let half = counts(Usage { prompt: Some(3), ..Usage::default() });
        assert_eq!((half.input, half.output, half.estimated), (3, 10, true));
        let difference = counts(Usage { prompt: Some(3), total: Some(8), ..Usage::default() });
        assert_eq!((difference.input, difference.output, difference.estimated), (3, 5, false));
        // Servers that count nothing say zero, though nothing has no tokens.
        let zero = counts(Usage { prompt: Some(0), completion: Some(0), ..Usage::default() });
        assert_eq!((zero.input, zero.output, zero.estimated), (7, 10, true));
        let cached =
            Usage { prompt: Some(0), cache_read: Some(3), completion: Some(1), ..Usage::default() };
        assert_eq!((counts(cached).input, counts(cached).estimated), (0, false));
        let written = Usage { cache_read: None, cache_written: Some(3), ..cached };
        assert_eq!((counts(written).input, counts(written).estimated), (0, false));
        let messages = counts(Usage { input: Some(0), completion: Some(1), ..Usage::default() });
        assert_eq!((messages.input, messages.estimated), (7, true));
        for total in [2, 3] {
            let none = counts(Usage { prompt: Some(3), total: Some(total), ..Usage::default() });
            assert_eq!((none.output, none.estimated), (10, true), "{total}");
        }
    }
}
