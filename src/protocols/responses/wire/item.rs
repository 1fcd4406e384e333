//! Parser of one output item of an answer and of the item's parts.

use super::{filled, list, object, text};
use crate::json::{self, Error, Reader, Str, ValueKind, Writer};
use crate::text::words;

/// Output item of an answer, such as a message, reasoning or a call.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Item<'a> {
    /// JSON text of the whole item, as received.
    pub(crate) raw: &'a str,
    /// Kind of the item, read from `type`.
    pub(crate) kind: ItemKind,
    /// Value of `type`, as the upstream sent it.
    pub(crate) kind_name: Option<Str<'a>>,
    /// Upstream's id of the item.
    pub(crate) id: Option<Str<'a>>,
    /// Value of `call_id`, by which a tool result refers to the call.
    pub(crate) call_id: Option<Str<'a>>,
    /// Name of the called tool.
    pub(crate) name: Option<Str<'a>>,
    /// Arguments of a function, or the input of a custom tool.
    pub(crate) arguments: ItemArguments<'a>,
    /// True if the item was cut off: the `status` is `incomplete`.
    pub(crate) is_incomplete: bool,
    /// True if the item failed: the `status` is `failed`.
    pub(crate) has_failed: bool,
    /// JSON list of the parts of `content`.
    pub(crate) content: Option<&'a str>,
    /// Value of `content`, if the value is a string.
    pub(crate) content_text: Option<Str<'a>>,
    /// JSON list of the parts of `summary`.
    pub(crate) summary: Option<&'a str>,
    /// Value of `encrypted_content`: encrypted reasoning.
    pub(crate) encrypted: Option<Str<'a>>,
    /// JSON of a web search's action, with queries and sources.
    pub(crate) action: Option<&'a str>,
}

/// Kind of an output item of a Responses answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ItemKind {
    /// Message of the model. Items without a `type` count as messages.
    #[default]
    Message,
    /// Reasoning item: the reasoning of the model.
    Reasoning,
    /// Call of a function tool, with JSON arguments.
    Function,
    /// Call of a custom tool, with a plain text as input.
    Custom,
    /// Web search that the upstream ran itself.
    WebSearch,
    /// MCP tool call that the upstream ran itself.
    Mcp,
    /// Output item of any other type.
    Other,
}

/// Input of a tool call, in the form in which the upstream sent the input.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum ItemArguments<'a> {
    /// No input: the item has no arguments yet.
    #[default]
    None,
    /// Input as a string, which for functions is JSON text.
    Text(Str<'a>),
    /// Input as a JSON object instead of a string.
    Json(&'a str),
}

impl<'a> Item<'a> {
    /// Parses an output item from text that is known to be JSON.
    ///
    /// # Errors
    /// Fails if the text is not an object.
    pub(crate) fn read(raw: &'a str) -> Result<Self, Error> {
        let mut reader = Reader::of(raw);
        let reader = &mut reader;
        let mut item = Self { raw, ..Self::default() };
        reader.begin_object()?;
        while let Some(key) = reader.next_key()? {
            match key.raw() {
                "type" => item.kind_name = filled(reader)?,
                "id" => item.id = filled(reader)?.or(item.id),
                // vLLM sends `item_id` beside an `id` that is null.
                "item_id" => item.id = item.id.or(filled(reader)?),
                "call_id" => item.call_id = filled(reader)?,
                "name" => item.name = filled(reader)?,
                "arguments" | "input" => match reader.kind()? {
                    ValueKind::Object => item.arguments = ItemArguments::Json(reader.skip()?),
                    _ => {
                        item.arguments =
                            text(reader)?.map_or(ItemArguments::None, ItemArguments::Text)
                    }
                },
                "status" => {
                    let status = reader.string_or_skip()?;
                    item.is_incomplete = status.is_some_and(|status| status == "incomplete");
                    item.has_failed = status.is_some_and(|status| status == "failed");
                }
                "content" => match reader.kind()? {
                    ValueKind::String => item.content_text = text(reader)?,
                    _ => item.content = list(reader)?,
                },
                "summary" => item.summary = list(reader)?,
                "encrypted_content" => item.encrypted = text(reader)?,
                "action" => item.action = object(reader)?,
                _ => drop(reader.skip()?),
            }
        }
        reader.end()?;
        item.kind = item.kind_name.map_or(ItemKind::Message, |name| ItemKind::of(&name.decode()));
        Ok(item)
    }

    /// Returns an iterator over the text parts of content and summary. Each part comes with its
    /// position among the parts of the same kind.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (u64, ItemPart<'a>)> {
        let parts = |list: Option<&'a str>| {
            let mut counts = [0u64; 4];
            list.into_iter().flat_map(json::elements).filter_map(move |raw| {
                let part = ItemPart::read(raw)?;
                let count = counts.get_mut(part.kind as usize)?;
                let at = *count;
                *count = at.saturating_add(1);
                Some((at, part))
            })
        };
        let text = self.content_text.map(|text| {
            let kind =
                if self.kind == ItemKind::Reasoning { PartKind::Raw } else { PartKind::Text };
            (0, ItemPart { kind, text: Some(text), annotations: None })
        });
        parts(self.summary).chain(parts(self.content)).chain(text)
    }

    /// Returns true if the item is translated to a content block. A message or reasoning needs a
    /// text or encrypted reasoning.
    pub(crate) fn says_something(&self) -> bool {
        match self.kind {
            ItemKind::Message | ItemKind::Reasoning => {
                self.encrypted.is_some() || self.parts().any(|(_, part)| part.text.is_some())
            }
            _ => true,
        }
    }

    /// Returns true if a part of the item has a text that is not blank.
    pub(crate) fn has_text(&self) -> bool {
        self.parts().any(|(_, part)| part.text.is_some_and(|text| !text.is_blank()))
    }
}

/// Writes a copy of a JSON object in which the member `name` has another value or is left out.
pub(crate) fn write_with(
    object: &str,
    name: &'static str,
    value: Option<Str<'_>>,
    json: &mut Writer<'_>,
) {
    json.begin_object();
    for (key, value) in json::members(object).filter(|(key, _)| *key != name) {
        json.key_str(key).raw(value);
    }
    if let Some(value) = value {
        json.key(name).str(value);
    }
    json.end_object();
}

impl ItemKind {
    /// Returns the kind of an output item whose `type` is `name`.
    fn of(name: &str) -> Self {
        match name {
            "message" => Self::Message,
            "reasoning" => Self::Reasoning,
            "function_call" | "tool_call" => Self::Function,
            "custom_tool_call" => Self::Custom,
            "web_search_call" => Self::WebSearch,
            "mcp_call" => Self::Mcp,
            _ => Self::Other,
        }
    }
}

/// Part of an item's content or summary.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ItemPart<'a> {
    /// Kind of the part's text: answer, refusal, summary or full reasoning.
    pub(crate) kind: PartKind,
    /// Text of the part, or `None` if the text is empty.
    pub(crate) text: Option<Str<'a>>,
    /// JSON list of the annotations: sources of the text.
    pub(crate) annotations: Option<&'a str>,
}

/// Kind of the text in a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PartKind {
    /// Text of the answer for the user.
    Text,
    /// Text with which the model refuses to answer.
    Refusal,
    /// Part of a summary of the model's reasoning.
    Summary,
    /// Reasoning of the model in full, not summarized.
    Raw,
}

impl<'a> ItemPart<'a> {
    /// Parses a part. Returns `None` if the part is not of a type with text.
    pub(crate) fn read(raw: &'a str) -> Option<Self> {
        let mut reader = Reader::of(raw);
        let reader = &mut reader;
        let (mut kind, mut said, mut annotations) = (None, None, None);
        reader.begin_object().ok()?;
        while let Some(key) = reader.next_key().ok()? {
            match key.raw() {
                "type" => kind = filled(reader).ok()?,
                "text" | "refusal" => said = text(reader).ok()?.or(said),
                "annotations" => annotations = list(reader).ok()?,
                _ => drop(reader.skip().ok()?),
            }
        }
        let kind = match kind?.decode().as_ref() {
            "output_text" | "text" => PartKind::Text,
            "refusal" => PartKind::Refusal,
            "summary_text" => PartKind::Summary,
            name if words::has(name, "reasoning") => PartKind::Raw,
            _ => return None,
        };
        Some(Self { kind, text: said, annotations })
    }
}
