//! Readers of a Responses server's answers: responses, and the events of a stream.
//!
//! Reading is tolerant: an unknown member, or a known one of another type, is skipped; only a text
//! that is not JSON is an error. Strings stay borrowed and escaped. Nothing here decides anything.

mod event;
mod item;
mod kind;
mod pattern;
mod response;

pub(crate) use event::Event;
pub(crate) use item::{Arguments, Item, ItemKind, Part, PartKind, write_with};
pub(crate) use kind::{EventKind, Of, ThoughtKind};
pub(crate) use pattern::Pattern;
pub(crate) use response::{Response, Status};

use crate::json::{Error, Reader, Str, ValueKind};

/// Reads a string; one that is blank, or no string, counts as absent.
fn filled<'a>(reader: &mut Reader<'a>) -> Result<Option<Str<'a>>, Error> {
    Ok(reader.string_or_skip()?.filter(|text| !text.is_blank()))
}

/// Reads a text; an empty one counts as absent.
fn text<'a>(reader: &mut Reader<'a>) -> Result<Option<Str<'a>>, Error> {
    Ok(reader.string_or_skip()?.filter(|text| !text.is_empty()))
}

/// Reads an object as it was written; anything else counts as absent.
fn object<'a>(reader: &mut Reader<'a>) -> Result<Option<&'a str>, Error> {
    let is_object = reader.kind()? == ValueKind::Object;
    let raw = reader.skip()?;
    Ok(is_object.then_some(raw))
}

/// Reads a list as it was written; anything else counts as absent.
fn list<'a>(reader: &mut Reader<'a>) -> Result<Option<&'a str>, Error> {
    let is_list = reader.kind()? == ValueKind::Array;
    let raw = reader.skip()?;
    Ok(is_list.then_some(raw))
}

/// Reads an error as it was written; an empty or null one counts as absent.
fn error<'a>(reader: &mut Reader<'a>) -> Result<Option<&'a str>, Error> {
    let raw = reader.skip()?;
    Ok((!matches!(raw, "null" | "false" | "\"\"" | "{}" | "[]" | "0")).then_some(raw))
}
