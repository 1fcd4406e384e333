//! Parsing of the `content` of a message, which is a string or a list of parts.

use crate::json;
use crate::json::{Error, Reader, Str, ValueKind};
use crate::protocols::chat::wire::limits::{Allowance, List};
use crate::protocols::chat::wire::{Few, text};

/// Part of the content of a message, by type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContentPart<'a> {
    /// Part with plain text of the answer.
    Text(Str<'a>),
    /// Part of type `thinking`, which holds reasoning (Mistral).
    Thinking(Str<'a>),
    /// Part of type `reasoning`, which holds reasoning (Databricks).
    Reasoning(Str<'a>),
    /// Part with the text of a refusal.
    Refusal(Str<'a>),
}

impl<'a> ContentPart<'a> {
    /// Returns the text of the part, of any type.
    #[must_use]
    pub(crate) fn text(&self) -> Str<'a> {
        match self {
            Self::Text(text)
            | Self::Thinking(text)
            | Self::Reasoning(text)
            | Self::Refusal(text) => *text,
        }
    }

    /// Returns a part of the same type with another text.
    #[must_use]
    pub(crate) fn saying<'b>(&self, text: Str<'b>) -> ContentPart<'b> {
        match self {
            Self::Text(_) => ContentPart::Text(text),
            Self::Thinking(_) => ContentPart::Thinking(text),
            Self::Reasoning(_) => ContentPart::Reasoning(text),
            Self::Refusal(_) => ContentPart::Refusal(text),
        }
    }

    /// Returns true if both parts are of the same type.
    #[must_use]
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// Reads the value of `content` into `parts`. Returns true if some of the content is of an unknown
/// type.
pub(crate) fn read_content<'a>(
    reader: &mut Reader<'a>,
    parts: &mut Few<ContentPart<'a>>,
    allowance: &mut Allowance,
) -> Result<bool, Error> {
    if reader.kind()? != ValueKind::Array {
        return read_item(reader, parts, allowance);
    }
    let mut dropped = false;
    reader.begin_array()?;
    while reader.next_element()? {
        dropped |= read_item(reader, parts, allowance)?;
    }
    Ok(dropped)
}

/// Adds a part to `parts`, unless the maximum number of parts is reached.
fn keep<'a>(part: ContentPart<'a>, parts: &mut Few<ContentPart<'a>>, allowance: &mut Allowance) {
    if allowance.take(List::Parts) {
        parts.push(part);
    }
}

fn read_item<'a>(
    reader: &mut Reader<'a>,
    parts: &mut Few<ContentPart<'a>>,
    allowance: &mut Allowance,
) -> Result<bool, Error> {
    match reader.kind()? {
        ValueKind::String => {
            if let Some(text) = text(reader)? {
                keep(ContentPart::Text(text), parts, allowance);
            }
            Ok(false)
        }
        ValueKind::Object => read_part(reader, parts, allowance),
        // Some servers write a token such as `5` or `true` without quotes. But `false` stands for
        // missing content.
        kind => {
            let raw = reader.skip()?;
            let is_token = kind == ValueKind::Number || raw == "true";
            if is_token {
                keep(ContentPart::Text(Str::plain(raw)), parts, allowance);
            }
            Ok(!is_token && says(raw))
        }
    }
}

/// Returns true if a JSON value is not `null`, `false`, an empty list or an empty object.
fn says(raw: &str) -> bool {
    !matches!(raw, "null" | "false" | "[]" | "{}")
}

// Not inlined, because few servers send parts and the code for strings must stay fast.
#[inline(never)]
fn read_part<'a>(
    reader: &mut Reader<'a>,
    parts: &mut Few<ContentPart<'a>>,
    allowance: &mut Allowance,
) -> Result<bool, Error> {
    let (mut kind, mut plain, mut content, mut refusal) = (None, None, None, None);
    let (mut others, mut lost) = (false, false);
    let mut thinking = None;
    reader.begin_object()?;
    while let Some(key) = reader.next_key()? {
        match key.raw() {
            "type" => kind = reader.string_or_skip()?,
            "text" if reader.kind()? == ValueKind::Object => {
                let value = json::member(reader.skip()?, "value");
                plain = value.and_then(|value| Reader::new(value, 1).string().ok());
            }
            "text" if reader.kind()? == ValueKind::String => plain = text(reader)?,
            "text" => lost = says(reader.skip()?),
            "content" if reader.kind()? == ValueKind::String => content = text(reader)?,
            "refusal" => refusal = text(reader)?,
            // The member holds texts and nothing else.
            "thinking" | "summary" | "reasoning" => thinking = Some(reader.skip()?),
            _ => others |= says(reader.skip()?),
        }
    }
    let plain = plain.or(content).filter(|text| !text.is_empty());
    match kind.map(|kind| kind.raw()) {
        None | Some("text" | "output_text" | "input_text" | "markdown") => {
            if let Some(text) = plain {
                keep(ContentPart::Text(text), parts, allowance);
            }
            return Ok(plain.is_none() && (kind.is_none() && others || lost));
        }
        Some(kind @ ("thinking" | "reasoning")) => {
            let part =
                if kind == "thinking" { ContentPart::Thinking } else { ContentPart::Reasoning };
            if let Some(raw) = thinking {
                read_thinking(raw, part, parts, allowance)?;
            }
            if let Some(text) = plain {
                keep(part(text), parts, allowance);
            }
        }
        Some("refusal") => {
            if let Some(text) = refusal {
                keep(ContentPart::Refusal(text), parts, allowance);
            }
        }
        Some(_) => return Ok(true),
    }
    Ok(false)
}

/// Reads reasoning texts, each as a part.
///
/// A text is a string, an object with a `text` or a `thinking` (as in blocks of the Messages API),
/// or an object that holds such an object (as in Bedrock's Converse API). `raw` is a single text or
/// a list of texts.
#[inline(never)]
pub(crate) fn read_thinking<'a>(
    raw: &'a str,
    part: fn(Str<'a>) -> ContentPart<'a>,
    parts: &mut Few<ContentPart<'a>>,
    allowance: &mut Allowance,
) -> Result<(), Error> {
    let reader = &mut Reader::of(raw);
    if reader.kind()? != ValueKind::Array {
        return read_thought(reader, part, parts, allowance);
    }
    reader.begin_array()?;
    while reader.next_element()? {
        read_thought(reader, part, parts, allowance)?;
    }
    Ok(())
}

#[inline(never)]
fn read_thought<'a>(
    reader: &mut Reader<'a>,
    part: fn(Str<'a>) -> ContentPart<'a>,
    parts: &mut Few<ContentPart<'a>>,
    allowance: &mut Allowance,
) -> Result<(), Error> {
    let mut said = None;
    if reader.kind()? == ValueKind::String {
        said = text(reader)?;
    } else if reader.object_or_skip()? {
        while let Some(key) = reader.next_key()? {
            match key.raw() {
                "text" | "thinking" => said = text(reader)?.or(said),
                "reasoningContent" | "reasoningText" => {
                    read_thought(reader, part, parts, allowance)?
                }
                _ => {
                    reader.skip()?;
                }
            }
        }
    }
    if let Some(text) = said {
        keep(part(text), parts, allowance);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
