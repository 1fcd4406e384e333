//! What a Chat Completions server answers: whole bodies and the chunks of a stream.
//!
//! Both are read into the same types, because a whole answer is one chunk that says everything.
//! Reading is tolerant: servers of this format agree on little. An unknown field, or a known one of
//! another type, is skipped; only a text that is not JSON is an error. Strings stay borrowed and
//! escaped. Nothing here decides anything.
//!
//! This is a package of its own because a profile of Cargo knows packages: it is compiled for speed where
//! everything else is compiled for size.
#![forbid(unsafe_code)]

mod call;
mod chunk;
mod content;
mod delta;
mod detail;
mod few;
pub(crate) mod limits;
mod pattern;
mod role;
mod says;
mod usage;

pub(crate) use call::{Arguments, ToolCall};
pub(crate) use chunk::{Choice, Chunk};
pub(crate) use content::Part;
pub(crate) use delta::Delta;
pub(crate) use detail::Detail;
pub(crate) use few::Few;
pub(crate) use pattern::Pattern;
pub(crate) use role::Role;
pub(crate) use usage::Usage;

use crate::json;
use crate::json::{Error, Reader, Str, ValueKind};

/// Reads a string; one that is blank, or no string, counts as absent. Servers send `"id": ""` with each
/// fragment.
fn filled<'a>(reader: &mut Reader<'a>) -> Result<Option<Str<'a>>, Error> {
    Ok(reader.string_or_skip()?.filter(|text| !text.is_blank()))
}

/// Reads a text; an empty one counts as absent.
fn text<'a>(reader: &mut Reader<'a>) -> Result<Option<Str<'a>>, Error> {
    Ok(reader.string_or_skip()?.filter(|text| !text.is_empty()))
}

/// Reads a count or index, also one written as `3.0` or `"3"`; anything else counts as absent.
///
/// # Errors
/// It is not JSON.
pub(crate) fn number(reader: &mut Reader<'_>) -> Result<Option<u64>, Error> {
    let text = match reader.kind()? {
        ValueKind::Number => reader.number()?,
        ValueKind::String => reader.string()?.raw(),
        _ => {
            reader.skip()?;
            return Ok(None);
        }
    };
    let real = || json::Number::read(text).and_then(|number| number.whole_part());
    Ok(text.parse().ok().or_else(real))
}
