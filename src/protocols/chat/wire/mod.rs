//! Parsing of answers of a Chat Completions server: whole bodies and the chunks of a stream.
//!
//! Whole answers and chunks are read into the same types, because a whole answer is like one chunk
//! with all content. Parsing is tolerant, because servers deviate from the format in many ways. An
//! unknown field, or a known field of another type, is skipped; only text that is not JSON is an
//! error. Strings stay borrowed and escaped. This module only parses; decisions are made in
//! `read_answer`.

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
pub(crate) use content::ContentPart;
pub(crate) use delta::Delta;
pub(crate) use few::Few;
pub(crate) use pattern::ChunkPattern;
pub(crate) use role::DeltaRole;

use crate::json::{Error, Reader, Str};

/// Reads a string. A blank string, or a value that is not a string, counts as absent, because some
/// servers send `"id": ""` with each fragment.
fn filled<'a>(reader: &mut Reader<'a>) -> Result<Option<Str<'a>>, Error> {
    Ok(reader.string_or_skip()?.filter(|text| !text.is_blank()))
}

/// Reads a string; an empty string counts as absent.
fn text<'a>(reader: &mut Reader<'a>) -> Result<Option<Str<'a>>, Error> {
    Ok(reader.string_or_skip()?.filter(|text| !text.is_empty()))
}
