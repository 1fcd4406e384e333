//! Answers of a Chat Completions server: whole bodies and the chunks of a stream
//!
//! Both are read into the same types, because a whole answer is one chunk that says everything.
//! Reading is tolerant: servers of this format agree on little. An unknown field, or a known one of
//! another type, is skipped; only a text that is not JSON is an error. Strings stay borrowed and
//! escaped. Nothing here decides anything.

mod call;
mod chunk;
mod content;
mod delta;
mod detail;
mod few;
pub(crate) mod limits;
mod pattern;
mod role;

pub(crate) use crate::model::reasoning::Detail;
pub(crate) use crate::model::usage::Usage;
use crate::model::usage::number;
pub(crate) use call::{Arguments, ToolCall};
pub(crate) use chunk::{Choice, Chunk};
pub(crate) use content::Part;
pub(crate) use delta::Delta;
pub(crate) use few::Few;
pub(crate) use pattern::Pattern;
pub(crate) use role::Role;

use crate::json::{Error, Reader, Str};

/// Reads a string; one that is blank, or no string, counts as absent. Servers send `"id": ""` with
/// each fragment.
fn filled<'a>(reader: &mut Reader<'a>) -> Result<Option<Str<'a>>, Error> {
    Ok(reader.string_or_skip()?.filter(|text| !text.is_blank()))
}

/// Reads a text; an empty one counts as absent.
fn text<'a>(reader: &mut Reader<'a>) -> Result<Option<Str<'a>>, Error> {
    Ok(reader.string_or_skip()?.filter(|text| !text.is_empty()))
}
