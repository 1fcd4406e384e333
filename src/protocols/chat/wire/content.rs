//! The content of a message: a string, or parts.

use crate::json;
use crate::json::{Error, Reader, Str, ValueKind};
use crate::protocols::chat::wire::limits::{Allowance, List};
use crate::protocols::chat::wire::{Few, text};

/// A part of the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    /// Text.
    Text(Str<'a>),
    /// Reasoning, of the kind `thinking` (Mistral).
    Thinking(Str<'a>),
    /// Reasoning, of the kind `reasoning` (Databricks).
    Reasoning(Str<'a>),
    /// A refusal.
    Refusal(Str<'a>),
}

impl<'a> Part<'a> {
    /// Returns the text of the part, whatever its kind.
    #[must_use]
    pub(crate) fn text(&self) -> Str<'a> {
        match self {
            Self::Text(text)
            | Self::Thinking(text)
            | Self::Reasoning(text)
            | Self::Refusal(text) => *text,
        }
    }

    /// Returns a part of this kind with another text.
    #[must_use]
    pub(crate) fn saying<'b>(&self, text: Str<'b>) -> Part<'b> {
        match self {
            Self::Text(_) => Part::Text(text),
            Self::Thinking(_) => Part::Thinking(text),
            Self::Reasoning(_) => Part::Reasoning(text),
            Self::Refusal(_) => Part::Refusal(text),
        }
    }

    /// Returns true if both parts are of one kind.
    #[must_use]
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// Reads a `content`. Returns true if some of it is of an unknown kind.
pub(crate) fn read_content<'a>(
    reader: &mut Reader<'a>,
    parts: &mut Few<Part<'a>>,
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

/// Keeps a part.
fn keep<'a>(part: Part<'a>, parts: &mut Few<Part<'a>>, allowance: &mut Allowance) {
    if allowance.take(List::Parts) {
        parts.push(part);
    }
}

fn read_item<'a>(
    reader: &mut Reader<'a>,
    parts: &mut Few<Part<'a>>,
    allowance: &mut Allowance,
) -> Result<bool, Error> {
    match reader.kind()? {
        ValueKind::String => {
            if let Some(text) = text(reader)? {
                keep(Part::Text(text), parts, allowance);
            }
            Ok(false)
        }
        ValueKind::Object => read_part(reader, parts, allowance),
        // Some servers write a token that looks so without its quotes. But `false` is what others
        // write where there is no content.
        kind => {
            let raw = reader.skip()?;
            let is_token = kind == ValueKind::Number || raw == "true";
            if is_token {
                keep(Part::Text(Str::plain(raw)), parts, allowance);
            }
            Ok(!is_token && says(raw))
        }
    }
}

/// Returns true if a value is more than `null`, `false` or empty.
fn says(raw: &str) -> bool {
    !matches!(raw, "null" | "false" | "[]" | "{}")
}

// Few servers send parts, and a string should not have to pass by it.
#[inline(never)]
fn read_part<'a>(
    reader: &mut Reader<'a>,
    parts: &mut Few<Part<'a>>,
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
            // Texts again; nothing else can be inside.
            "thinking" | "summary" | "reasoning" => thinking = Some(reader.skip()?),
            _ => others |= says(reader.skip()?),
        }
    }
    let plain = plain.or(content).filter(|text| !text.is_empty());
    match kind.map(|kind| kind.raw()) {
        None | Some("text" | "output_text" | "input_text" | "markdown") => {
            if let Some(text) = plain {
                keep(Part::Text(text), parts, allowance);
            }
            return Ok(plain.is_none() && (kind.is_none() && others || lost));
        }
        Some(kind @ ("thinking" | "reasoning")) => {
            let part = if kind == "thinking" { Part::Thinking } else { Part::Reasoning };
            if let Some(raw) = thinking {
                read_thinking(raw, part, parts, allowance)?;
            }
            if let Some(text) = plain {
                keep(part(text), parts, allowance);
            }
        }
        Some("refusal") => {
            if let Some(text) = refusal {
                keep(Part::Refusal(text), parts, allowance);
            }
        }
        Some(_) => return Ok(true),
    }
    Ok(false)
}

/// Reads texts, each as a part of its own: a string, an object with a `text` (or a `thinking`, as
/// blocks of the Messages API; or such an object within, as Bedrock's Converse API has it), or a
/// list of both.
#[inline(never)]
pub(crate) fn read_thinking<'a>(
    raw: &'a str,
    part: fn(Str<'a>) -> Part<'a>,
    parts: &mut Few<Part<'a>>,
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
    part: fn(Str<'a>) -> Part<'a>,
    parts: &mut Few<Part<'a>>,
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
