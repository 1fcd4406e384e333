//! Parsers of a Responses server's answers: responses, and the events of a stream.
//!
//! Parsing is tolerant: an unknown member, or a known member of another type, is skipped; only text
//! that is not JSON is an error. Strings stay borrowed and escaped. This module only parses;
//! decisions are made in `read_answer`.

mod event;
mod item;
mod kind;
mod pattern;
mod response;

pub(crate) use event::WireEvent;
pub(crate) use item::{Item, ItemArguments, ItemKind, ItemPart, PartKind, write_with};
pub(crate) use kind::{EventKind, Of, ThoughtKind};
pub(crate) use pattern::EventPattern;
pub(crate) use response::{Response, Status};

use crate::json::{Error, Reader, Str, ValueKind};

/// Reads a string. A blank string, or a value that is not a string, counts as absent.
fn filled<'a>(reader: &mut Reader<'a>) -> Result<Option<Str<'a>>, Error> {
    Ok(reader.string_or_skip()?.filter(|text| !text.is_blank()))
}

/// Reads a string; an empty string counts as absent.
fn text<'a>(reader: &mut Reader<'a>) -> Result<Option<Str<'a>>, Error> {
    Ok(reader.string_or_skip()?.filter(|text| !text.is_empty()))
}

/// Returns the raw JSON of an object; any other value counts as absent.
fn object<'a>(reader: &mut Reader<'a>) -> Result<Option<&'a str>, Error> {
    let is_object = reader.kind()? == ValueKind::Object;
    let raw = reader.skip()?;
    Ok(is_object.then_some(raw))
}

/// Returns the raw JSON of a list; any other value counts as absent.
fn list<'a>(reader: &mut Reader<'a>) -> Result<Option<&'a str>, Error> {
    let is_list = reader.kind()? == ValueKind::Array;
    let raw = reader.skip()?;
    Ok(is_list.then_some(raw))
}

/// Returns the raw JSON of an error; an empty value, null, false and 0 count as absent.
fn error<'a>(reader: &mut Reader<'a>) -> Result<Option<&'a str>, Error> {
    let raw = reader.skip()?;
    Ok((!matches!(raw, "null" | "false" | "\"\"" | "{}" | "[]" | "0")).then_some(raw))
}
