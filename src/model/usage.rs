//! Token counts that upstreams report, under all the member names in use.

use crate::json::{Error, Number, Reader, ValueKind};

/// Token counts that an upstream reported. `None` means unknown: servers send `null` for counts
/// that are not ready yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Input tokens, including cached tokens.
    pub prompt: Option<u64>,
    /// Input tokens without cached tokens, as the Messages API counts them; only from a server that
    /// does not send `prompt_tokens`.
    pub input: Option<u64>,
    /// Output tokens. Most servers include the reasoning tokens.
    pub completion: Option<u64>,
    /// Total number of tokens, as the server reports it.
    pub total: Option<u64>,
    /// Input tokens that were read from a cache.
    pub cache_read: Option<u64>,
    /// Input tokens that were written to a cache.
    pub cache_written: Option<u64>,
    /// Output tokens spent on reasoning.
    pub reasoning: Option<u64>,
}

/// Counts from the `*_details` objects. They take precedence over members of the same name outside.
#[derive(Default)]
struct UsageDetails {
    cached: Option<u64>,
    written: [Option<u64>; 3],
    reasoning: Option<u64>,
}

impl Usage {
    /// Reads a usage object. Returns `None` if the value is no object or has no counts.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Option<Self>, Error> {
        if !reader.object_or_skip()? {
            return Ok(None);
        }
        let mut usage = Self::default();
        let mut details = UsageDetails::default();
        let (mut input, mut input_includes_cache) = (None, false);
        let (mut hit, mut cached, mut read) = (None, None, None);
        let mut written = [None; 3];
        while let Some(key) = reader.next_key()? {
            match key.raw() {
                "prompt_tokens" => usage.prompt = number(reader)?,
                "input_tokens" => input = number(reader)?,
                "completion_tokens" => usage.completion = number(reader)?.or(usage.completion),
                "output_tokens" => {
                    let output = number(reader)?;
                    usage.completion = usage.completion.or(output);
                }
                "total_tokens" => usage.total = number(reader)?,
                "prompt_cache_hit_tokens" => hit = number(reader)?,
                "cached_tokens" => cached = number(reader)?,
                "cache_read_input_tokens" => read = number(reader)?,
                "reasoning_tokens" => usage.reasoning = number(reader)?,
                "prompt_tokens_details" => details.read(reader)?,
                "input_tokens_details" => {
                    input_includes_cache = true;
                    details.read(reader)?;
                }
                "completion_tokens_details" | "output_tokens_details" => details.read(reader)?,
                key => {
                    if let Some(slot) = written_slot(&mut written, key) {
                        *slot = number(reader)?;
                    } else {
                        reader.skip()?;
                    }
                }
            }
        }
        let spelled_as_messages = read.is_some() || written.iter().any(Option::is_some);
        if usage.prompt.is_none() {
            if spelled_as_messages && !input_includes_cache {
                usage.input = input;
            } else {
                usage.prompt = input;
            }
        }
        usage.cache_read = details.cached.or(hit).or(cached).or(read);
        usage.cache_written = details.written.into_iter().chain(written).flatten().next();
        usage.reasoning = details.reasoning.or(usage.reasoning);
        Ok((usage != Self::default()).then_some(usage))
    }

    /// Merges this usage report with an `earlier` one. Reports are totals, so this report wins;
    /// only its missing counts are filled from the earlier one.
    #[must_use]
    pub(crate) fn after(self, earlier: Option<Self>) -> Self {
        let Some(earlier) = earlier else { return self };
        // Zeros in both counts mean that the server does not know them at this time.
        if self.prompt == Some(0) && matches!(self.completion, None | Some(0)) {
            return earlier;
        }
        // A prompt count of zero does not replace a known count either.
        let is_known = |it: &Self| it.prompt.or(it.input).is_some_and(|tokens| tokens > 0);
        let cached = self.cache_read.or(self.cache_written).is_some_and(|tokens| tokens > 0);
        let has_input = is_known(&self)
            || (self.prompt.or(self.input).is_some() && (cached || !is_known(&earlier)));
        Self {
            prompt: if has_input { self.prompt } else { earlier.prompt },
            input: if has_input { self.input } else { earlier.input },
            cache_read: if has_input { self.cache_read } else { earlier.cache_read },
            cache_written: if has_input { self.cache_written } else { earlier.cache_written },
            completion: match self.completion {
                None | Some(0) => earlier.completion.or(self.completion),
                some => some,
            },
            reasoning: self.reasoning.or(earlier.reasoning),
            total: self.total,
        }
    }
}

fn written_slot<'w>(written: &'w mut [Option<u64>; 3], key: &str) -> Option<&'w mut Option<u64>> {
    let [write, creation, creation_input] = written;
    match key {
        // The name `caching_tokens` is Requesty's.
        "cache_write_tokens" | "caching_tokens" => Some(write),
        // The name `cached_creation_tokens` is new-api's.
        "cache_creation_tokens" | "cached_creation_tokens" | "created_cache_tokens" => {
            Some(creation)
        }
        "cache_creation_input_tokens" => Some(creation_input),
        _ => None,
    }
}

impl UsageDetails {
    fn read(&mut self, reader: &mut Reader<'_>) -> Result<(), Error> {
        if !reader.object_or_skip()? {
            return Ok(());
        }
        while let Some(key) = reader.next_key()? {
            match key.raw() {
                "cached_tokens" => self.cached = number(reader)?,
                "reasoning_tokens" | "thinking_tokens" => self.reasoning = number(reader)?,
                key => {
                    if let Some(slot) = written_slot(&mut self.written, key) {
                        *slot = number(reader)?;
                    } else {
                        reader.skip()?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Reads a count or an index, also if written as `3.0` or `"3"`. Any other value counts as absent.
///
/// # Errors
///
/// The value is not JSON.
pub(crate) fn number(reader: &mut Reader<'_>) -> Result<Option<u64>, Error> {
    let text = match reader.kind()? {
        ValueKind::Number => reader.number()?,
        ValueKind::String => reader.string()?.raw(),
        _ => {
            reader.skip()?;
            return Ok(None);
        }
    };
    let real = || Number::read(text).and_then(|number| number.whole_part());
    Ok(text.parse().ok().or_else(real))
}

#[cfg(test)]
mod tests;
