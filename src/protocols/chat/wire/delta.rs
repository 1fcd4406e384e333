//! Parsing of one `delta` or `message` of a choice.

use crate::json::{Error, Reader, Str, ValueKind};
use crate::protocols::chat::wire::call::read_extra;
use crate::protocols::chat::wire::chunk::finish;
use crate::protocols::chat::wire::content::{read_content, read_thinking};
use crate::protocols::chat::wire::limits::{Allowance, List};
use crate::protocols::chat::wire::{ContentPart, DeltaRole, Detail, Few, ToolCall, filled, text};
use crate::text::says::{says_something, something};

/// Parsed `delta` or `message` of a choice.
#[derive(Clone, Debug, Default)]
pub(crate) struct Delta<'a> {
    /// Value of `role`, if not empty. A role also applies to the deltas that follow.
    pub role: Option<DeltaRole>,
    /// Value of `reasoning_content`, a field for reasoning.
    pub reasoning_content: Option<Str<'a>>,
    /// Value of `reasoning`, a field for reasoning.
    pub reasoning: Option<Str<'a>>,
    /// Value of `reasoning_text`, a field for reasoning.
    pub reasoning_text: Option<Str<'a>>,
    /// Value of `thinking`, a field for reasoning.
    pub thinking: Option<Str<'a>>,
    /// True if `extra_content.google.thought` is true: the content is reasoning (Vertex AI).
    pub is_thought: bool,
    /// Value of `finish_reason`, if the server sends the member in the delta instead of in the
    /// choice.
    pub(crate) finish_reason: Option<Str<'a>>,
    /// Raw JSON of `error`, if the server sends the member in the delta.
    pub(crate) error: Option<&'a str>,
    /// Reasoning details: items of `reasoning_details`, blocks of `thinking_blocks`, and
    /// `reasoning_opaque`.
    pub reasoning_details: Few<Detail<'a>>,
    /// Parts of `content`; a string is kept as a single part.
    pub content: Few<ContentPart<'a>>,
    /// True if content was dropped because a Messages client cannot display that type of content,
    /// or because the type is unknown.
    pub content_dropped: bool,
    /// Raw JSON of `annotations`: the sources of the text.
    pub annotations: Option<&'a str>,
    /// Value of `refusal`: the text with which the model refuses to answer.
    pub refusal: Option<Str<'a>>,
    /// Entries of `tool_calls`: tool calls or fragments of tool calls.
    pub tool_calls: Few<ToolCall<'a>>,
    /// Call in `function_call`, the deprecated form of a single tool call.
    pub function_call: Option<ToolCall<'a>>,
}

impl<'a> Delta<'a> {
    pub(crate) fn of_text(text: Str<'a>) -> Self {
        let mut delta = Self::default();
        delta.content.push(ContentPart::Text(text));
        delta
    }

    // Long: a branch for each member, in one pass over the bytes of a delta.
    pub(crate) fn read(
        slot: &mut Option<Self>,
        reader: &mut Reader<'a>,
        allowance: &mut Allowance,
    ) -> Result<(), Error> {
        *slot = None;
        if reader.kind()? == ValueKind::String {
            *slot = text(reader)?.map(Self::of_text);
            return Ok(());
        }
        if reader.kind()? == ValueKind::Array {
            let content_dropped = says_something(reader.skip()?);
            *slot = content_dropped.then(|| Self { content_dropped, ..Self::default() });
            return Ok(());
        }
        if !reader.object_or_skip()? {
            return Ok(());
        }
        let delta = slot.insert(Self::default());
        let (mut plain, mut thoughts, mut blocks, mut refused) = (None, None, None, None);
        while let Some(key) = reader.next_key()? {
            match key.raw() {
                "reasoning_content" => {
                    delta.reasoning_content = text_or(reader, &mut thoughts)?;
                }
                "reasoning" => delta.reasoning = text_or(reader, &mut thoughts)?,
                "reasoning_text" => delta.reasoning_text = text_or(reader, &mut thoughts)?,
                "reasoning_details" if reader.kind()? == ValueKind::String => {
                    thoughts = thoughts.or(something(reader)?);
                }
                "reasoning_details" => {
                    Detail::read_all(reader, false, &mut delta.reasoning_details, allowance)?;
                }
                "reasoning_opaque" if reader.kind()? == ValueKind::String => {
                    let detail = Detail::opaque(reader)?;
                    if allowance.take(List::Details) {
                        delta.reasoning_details.push(detail);
                    }
                }
                "thinking" => delta.thinking = text_or(reader, &mut thoughts)?,
                // LiteLLM repeats the text of `reasoning_content` in `thinking_blocks`.
                "thinking_blocks" => blocks = Some(reader.skip()?),
                "extra_content" => delta.is_thought = read_extra(reader)?.1,
                "finish_reason" => delta.finish_reason = finish(reader)?,
                "error" => delta.error = something(reader)?,
                "content" => {
                    // If a name repeats, the last member counts.
                    delta.content = Few::default();
                    delta.content_dropped |= read_content(reader, &mut delta.content, allowance)?;
                }
                "role" => delta.role = filled(reader)?.map(|role| DeltaRole::of(role.raw())),
                "text" => plain = text(reader)?,
                "annotations" => delta.annotations = something(reader)?,
                "refusal" if reader.kind()? == ValueKind::Number => drop(reader.skip()?),
                "refusal" => delta.refusal = text_or(reader, &mut refused)?,
                "tool_calls" => {
                    delta.tool_calls = Few::default();
                    // Some servers send a single call without the list around it.
                    if reader.kind()? == ValueKind::Array {
                        reader.begin_array()?;
                        while reader.next_element()? {
                            delta.read_call(reader, allowance)?;
                        }
                    } else {
                        delta.read_call(reader, allowance)?;
                    }
                }
                "function_call" if reader.kind()? == ValueKind::Object => {
                    delta.function_call.insert(ToolCall::default()).read(reader)?;
                }
                // Content that a Messages client cannot display, or in a form that no known server
                // sends.
                "images" | "audio" | "tool_call" | "function_call" => {
                    delta.content_dropped |= says_something(reader.skip()?);
                }
                _ => drop(reader.skip()?),
            }
        }
        if let Some(text) = plain.filter(|_| delta.content.is_empty()) {
            delta.content.push(ContentPart::Text(text));
        }
        if let Some(raw) = thoughts.or(blocks) {
            delta.content_dropped |= !delta.think(raw, allowance)? && thoughts.is_some();
        }
        if let Some(raw) = blocks {
            let reader = &mut Reader::of(raw);
            Detail::read_all(reader, true, &mut delta.reasoning_details, allowance)?;
        }
        delta.content_dropped |= refused.is_some();
        if delta.role == Some(DeltaRole::Tool) && !delta.content.is_empty() {
            delta.content = Few::default();
            delta.content_dropped = true;
        }
        Ok(())
    }

    /// Reads an entry of `tool_calls`. An empty entry is not kept: some servers send an empty entry
    /// with each delta.
    fn read_call(
        &mut self,
        reader: &mut Reader<'a>,
        allowance: &mut Allowance,
    ) -> Result<(), Error> {
        if reader.kind()? != ValueKind::Object || allowance.exceeded.is_some() {
            self.content_dropped |= says_something(reader.skip()?);
            return Ok(());
        }
        let call = self.tool_calls.add();
        call.read(reader)?;
        if call.is_empty() || !allowance.take(List::Calls) {
            self.tool_calls.pop();
        }
        Ok(())
    }

    /// Reads the list `messages` that Mistral sends instead of a single message if the server ran
    /// tools itself.
    ///
    /// The returned message has the content of all messages of the model, including reasoning, and
    /// the calls of the last message; the server has already run the earlier calls.
    #[inline(never)]
    pub(crate) fn read_messages(
        raw: &'a str,
        allowance: &mut Allowance,
    ) -> Result<Option<Self>, Error> {
        let reader = &mut Reader::of(raw);
        let mut last: Option<Self> = None;
        if reader.kind()? != ValueKind::Array {
            return Ok(None);
        }
        reader.begin_array()?;
        while reader.next_element()? {
            let mut message = None;
            Self::read(&mut message, reader, allowance)?;
            let mut message = message.unwrap_or_default();
            if message.role.is_some_and(|role| role != DeltaRole::Assistant) {
                message = Self { content_dropped: true, ..Self::default() };
            }
            if let Some(before) = last {
                message.content_dropped |= before.content_dropped || !before.tool_calls.is_empty();
                let mut parts = before.content;
                message.content.iter().for_each(|part| parts.push(*part));
                message.content = parts;
            }
            last = Some(message);
        }
        Ok(last)
    }

    /// Inserts the reasoning texts of `raw`, a text or a list of texts, before the content of the
    /// delta. Returns true if `raw` has any text.
    #[inline(never)]
    fn think(&mut self, raw: &'a str, allowance: &mut Allowance) -> Result<bool, Error> {
        let mut parts = Few::default();
        read_thinking(raw, ContentPart::Reasoning, &mut parts, allowance)?;
        let says = !parts.is_empty();
        self.content.iter().for_each(|part| parts.push(*part));
        self.content = parts;
        Ok(says)
    }

    pub(crate) fn answers(&self) -> bool {
        let is_said = |part: &ContentPart<'a>| matches!(part, ContentPart::Text(text) | ContentPart::Refusal(text) if !text.is_blank());
        self.content.iter().any(is_said)
            || self.refusal.is_some()
            || !self.tool_calls.iter().all(ToolCall::is_empty)
            || self.function_call.is_some()
    }

    /// Returns true if the delta has no content, for example only a role.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        !self.has_reasoning()
            && self.content.is_empty()
            && self.refusal.is_none()
            && self.tool_calls.iter().all(ToolCall::is_empty)
            && self.function_call.is_none()
    }

    /// Returns true if the delta has a non-empty field for reasoning.
    #[must_use]
    pub(crate) fn has_reasoning(&self) -> bool {
        self.reasoning_content.is_some()
            || self.reasoning.is_some()
            || self.reasoning_text.is_some()
            || self.thinking.is_some()
            || !self.reasoning_details.is_empty()
    }
}

/// Reads a string, or a number as its digits. A non-empty list or object is stored in `other`.
fn text_or<'a>(
    reader: &mut Reader<'a>,
    other: &mut Option<&'a str>,
) -> Result<Option<Str<'a>>, Error> {
    match reader.kind()? {
        ValueKind::Array | ValueKind::Object => *other = other.or(something(reader)?),
        ValueKind::Number => return Ok(Some(Str::plain(reader.number()?))),
        _ => return text(reader),
    }
    Ok(None)
}
