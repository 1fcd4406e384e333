//! Parsing of one chunk of a stream, or of a whole answer.

use crate::json;
use crate::json::{Error, Reader, Str, ValueKind};
use crate::protocols::chat::wire::limits::{Allowance, List};
use crate::protocols::chat::wire::{Delta, Few, Usage, filled, number, text};
use crate::text::says::{says_something, says_well, something, unquoted};

/// Parsed `chat.completion.chunk` of a stream, or a whole `chat.completion`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chunk<'a> {
    /// The server's id of the answer.
    pub id: Option<Str<'a>>,
    /// The server's name of the model.
    pub model: Option<Str<'a>>,
    /// Value of `type`, a member that only answers of the Messages API have.
    pub kind: Option<Str<'a>>,
    /// Service tier in which the upstream processed the request.
    pub service_tier: Option<Str<'a>>,
    /// Choices of the answer. Several choices can be parts of one answer.
    pub choices: Few<Choice<'a>>,
    /// Token counts, from any of the members in which servers send them.
    pub usage: Option<Usage>,
    /// True if the chunk has a non-empty `error`, or a `base_resp` whose `status_code` is not 0.
    pub error: bool,
    /// True if the chunk reports a failed request in another form than `error`. Only relevant if
    /// the chunk has no `choices`.
    pub failed: bool,
    /// True if the chunk reports success, for example in `success` or `code`.
    pub well: bool,
    /// True if the chunk has a message, such as `detail`, and does not report success. Only
    /// relevant if nothing else shows that the chunk is an answer.
    pub complains: bool,
    /// Name of the list that had more items than the maximum. The items above the maximum are not
    /// in the chunk.
    pub exceeded: Option<&'static str>,
}

/// Parsed element of `choices` in an answer or a chunk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Choice<'a> {
    /// Index of the choice; tool calls count from 0 in each choice.
    pub index: u64,
    /// Content that is new in this chunk.
    pub delta: Option<Delta<'a>>,
    /// Content of the whole answer so far; some servers repeat the content beside the delta.
    pub message: Option<Delta<'a>>,
    /// Reason why the model stopped, as the value of `finish_reason` that the server sent.
    pub finish_reason: Option<Str<'a>>,
    /// Stop sequence at which the model stopped (vLLM `stop_reason`, SGLang `matched_stop`).
    pub stop_sequence: Option<Str<'a>>,
    /// Raw JSON of the `error` of a router such as OpenRouter, from the choice or from the choice's
    /// delta.
    pub error: Option<&'a str>,
    pub(crate) usage: Option<Usage>,
}

impl<'a> Chunk<'a> {
    /// Reads a chunk or an answer from the text of a JSON object.
    ///
    /// # Errors
    /// Fails if `text` is not a JSON object.
    pub(crate) fn read(text: &'a str) -> Result<Self, Error> {
        let mut chunk = Self::default();
        chunk.fill(text)?;
        Ok(chunk)
    }

    /// Returns true if the chunk is an answer, a part of an answer, or an error.
    #[must_use]
    pub(crate) fn says_something(&self) -> bool {
        let answers = !self.choices.is_empty() || self.usage.is_some();
        answers || self.kind.is_some() || self.error || self.failed || self.complains
    }

    /// Reads a JSON object into this empty chunk. A chunk is a kilobyte large, so filling it in
    /// place saves a move.
    ///
    /// # Errors
    /// Fails if `text` is not a JSON object, like [`Chunk::read`].
    // Long: a branch for each member, in one pass over the bytes of a chunk.
    pub(crate) fn fill(&mut self, text: &'a str) -> Result<(), Error> {
        let mut reader = Reader::of(text);
        let (chunk, reader) = (self, &mut reader);
        let (mut other_usage, mut finish_reason) = (None, None);
        let (mut complains, mut succeeded, mut refused) = (false, false, false);
        let mut numbered = false;
        let mut allowance = Allowance::new();
        reader.begin_object()?;
        while let Some(key) = reader.next_key()? {
            match key.raw() {
                "id" => chunk.id = filled(reader)?,
                "model" => chunk.model = filled(reader)?,
                "type" => chunk.kind = reader.string_or_skip()?,
                "service_tier" => chunk.service_tier = filled(reader)?,
                "choices" => Choice::read_all(&mut chunk.choices, reader, &mut allowance)?,
                "usage" => chunk.usage = Usage::read(reader)?,
                "finish_reason" => finish_reason = finish(reader)?,
                "x_groq" => {
                    if reader.object_or_skip()? {
                        while let Some(key) = reader.next_key()? {
                            match key.raw() {
                                "usage" => other_usage = Usage::read(reader)?,
                                "error" => chunk.error |= says_something(reader.skip()?),
                                _ => drop(reader.skip()?),
                            }
                        }
                    }
                }
                "error" => chunk.error |= says_something(reader.skip()?),
                "object" => {
                    chunk.failed |= reader.string_or_skip()?.is_some_and(|text| text == "error")
                }
                "message" | "detail" | "msg" | "errors" | "error_msg" | "errmsg" | "Message"
                | "error_message" | "errorMessage" | "error_description" | "err" | "Error"
                | "exception" | "fault" => {
                    let raw = reader.skip()?;
                    let is_well = says_well(raw);
                    chunk.well |= is_well;
                    complains |= says_something(raw) && !is_well;
                }
                // Some servers report success in each chunk.
                "code" | "success" | "error_code" | "errcode" | "StatusCode" => {
                    let raw = reader.skip()?;
                    succeeded |= says_well(raw);
                    let code = unquoted(raw).parse::<u64>().ok();
                    refused |= code.is_some_and(|code| (400..600).contains(&code));
                    numbered |= code.is_some() && key.raw().starts_with("err");
                }
                "base_resp" => {
                    if reader.object_or_skip()? {
                        while let Some(key) = reader.next_key()? {
                            if key.raw() == "status_code" {
                                chunk.error |= number(reader)?.is_some_and(|code| code != 0);
                            } else {
                                reader.skip()?;
                            }
                        }
                    }
                }
                _ => drop(reader.skip()?),
            }
        }
        reader.end()?;
        chunk.exceeded = allowance.exceeded;
        chunk.well |= succeeded;
        chunk.complains = complains && !succeeded;
        chunk.failed |= chunk.complains && refused;
        // FastChat reports a failure in `text`, beside an error number of its own.
        let speaks = || json::member(text, "text").is_some_and(says_something);
        chunk.failed |= numbered && !succeeded && speaks();
        chunk.failed |= chunk.kind.is_some_and(|kind| kind.raw() == "error");
        // A server with one choice may put the finish reason beside the list of choices.
        if let (Some(word), Some(choice)) = (finish_reason, chunk.choices.last_mut()) {
            choice.finish_reason.get_or_insert(word);
        }
        let of_choice = || chunk.choices.iter().find_map(|choice| choice.usage);
        chunk.usage = chunk.usage.or(other_usage).or_else(of_choice);
        Ok(())
    }
}

impl<'a> Choice<'a> {
    /// Returns true if the choice has a text, a refusal or a call. Reasoning alone is no answer.
    #[must_use]
    pub(crate) fn answers(&self) -> bool {
        let says = |delta: &Option<Delta<'a>>| delta.as_ref().is_some_and(Delta::answers);
        says(&self.delta) || says(&self.message)
    }

    /// Returns true if the choice has content. A role, with which many streams begin, and a finish
    /// reason are no content.
    #[must_use]
    pub(crate) fn says_something(&self) -> bool {
        let says = |delta: &Option<Delta<'a>>| delta.as_ref().is_some_and(|it| !it.is_empty());
        says(&self.delta) || says(&self.message)
    }

    /// Reads all elements of `choices`. Of the elements without content and finish reason, only the
    /// first is kept.
    fn read_all(
        choices: &mut Few<Self>,
        reader: &mut Reader<'a>,
        allowance: &mut Allowance,
    ) -> Result<(), Error> {
        *choices = Few::default();
        // Some servers send a single choice without the list around it.
        if reader.kind()? == ValueKind::Object {
            reader.begin_object()?;
            return choices.add().read(reader, allowance);
        }
        if !reader.array_or_skip()? {
            return Ok(());
        }
        while reader.next_element()? {
            if allowance.exceeded.is_some() {
                reader.skip()?;
            } else if reader.object_or_skip()? {
                let is_first = choices.is_empty();
                let choice = choices.add();
                choice.read(reader, allowance)?;
                if !is_first && (choice.is_silent() || !allowance.take(List::Choices)) {
                    choices.pop();
                }
            }
        }
        Ok(())
    }

    /// Returns true if the choice has no role, content, finish reason, error or usage.
    fn is_silent(&self) -> bool {
        let is_silent = |delta: &Option<Delta<'a>>| {
            delta
                .as_ref()
                .is_none_or(|it| it.is_empty() && it.role.is_none() && !it.content_dropped)
        };
        is_silent(&self.delta)
            && is_silent(&self.message)
            && self.finish_reason.is_none()
            && self.stop_sequence.is_none()
            && self.error.is_none()
            && self.usage.is_none()
    }

    /// Reads the members of a choice; `reader` has already entered the object.
    fn read(&mut self, reader: &mut Reader<'a>, allowance: &mut Allowance) -> Result<(), Error> {
        let choice = self;
        let (mut matched, mut completion, mut messages) = (None, None, None);
        let mut dropped = false;
        while let Some(key) = reader.next_key()? {
            match key.raw() {
                "index" => choice.index = number(reader)?.unwrap_or(0),
                "delta" => Delta::read(&mut choice.delta, reader, allowance)?,
                "message" => Delta::read(&mut choice.message, reader, allowance)?,
                "messages" => messages = Some(reader.skip()?),
                "text" => completion = text(reader)?,
                "finish_reason" => choice.finish_reason = finish(reader)?,
                "stop_reason" => {
                    choice.stop_sequence = reader.string_or_skip()?.filter(|text| !text.is_empty());
                }
                "matched_stop" => {
                    matched = reader.string_or_skip()?.filter(|text| !text.is_empty())
                }
                "usage" => choice.usage = Usage::read(reader)?,
                "error" => choice.error = something(reader)?,
                "tool_calls" | "tool_call" | "function_call" => {
                    dropped |= says_something(reader.skip()?);
                }
                _ => drop(reader.skip()?),
            }
        }
        if let (Some(raw), None, None, None) =
            (messages, &choice.message, &choice.delta, completion)
        {
            choice.message = Delta::read_messages(raw, allowance)?;
        }
        if dropped {
            let delta = match &mut choice.message {
                Some(message) => message,
                None => choice.delta.get_or_insert_default(),
            };
            delta.content_dropped = true;
        }
        choice.stop_sequence = choice.stop_sequence.or(matched);
        for delta in [&choice.delta, &choice.message].into_iter().flatten() {
            choice.finish_reason = choice.finish_reason.or(delta.finish_reason);
            choice.error = choice.error.or(delta.error);
        }
        // A server for text completions may answer on the path for chats.
        if let (None, Some(text)) = (&choice.delta, completion)
            && choice.message.as_ref().is_none_or(Delta::is_empty)
        {
            choice.delta = Some(Delta::of_text(text));
        }
        Ok(())
    }
}

/// Reads a `finish_reason`. SGLang's own API sends an object, and some servers a list; the string
/// `null` counts as absent, like the JSON value null.
pub(crate) fn finish<'a>(reader: &mut Reader<'a>) -> Result<Option<Str<'a>>, Error> {
    let word = match reader.kind()? {
        ValueKind::Object => {
            json::member(reader.skip()?, "type").and_then(|word| Reader::new(word, 1).string().ok())
        }
        ValueKind::Array => {
            reader.begin_array()?;
            let mut last = None;
            while reader.next_element()? {
                last = filled(reader)?.or(last);
            }
            last
        }
        _ => filled(reader)?,
    };
    Ok(word.filter(|word| word.raw() != "null"))
}

#[cfg(test)]
mod tests;
