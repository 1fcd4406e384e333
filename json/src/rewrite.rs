//! Rewriting of some values in a JSON text. The text is read with the functions for members and
//! elements.

use std::borrow::Cow;
use std::ops::Range;

use crate::{Writer, elements, members};

/// Rewrites an object: each member becomes what `rewrite` returns for it, and is left out if
/// `rewrite` returns `None`. The text stays the same if all members stay.
///
/// # Errors
/// Errors of `rewrite`.
pub fn rewrite_object<'b, E>(
    text: &'b str,
    mut rewrite: impl FnMut(&str, &'b str) -> Result<Option<Cow<'b, str>>, E>,
) -> Result<Cow<'b, str>, E> {
    let mut same = true;
    // Starts without capacity: values are nested, and each level has its own buffer.
    let mut out = Vec::new();
    let mut json = Writer::new(&mut out);
    json.begin_object();
    for (key, value) in members(text) {
        let rewritten = rewrite(&key.decode(), value)?;
        same &= rewritten.as_deref() == Some(value);
        if let Some(value) = rewritten {
            json.key_str(key).raw(&value);
        }
    }
    json.end_object();
    Ok(if same { text.into() } else { String::from_utf8(out).unwrap_or_default().into() })
}

/// Rewrites an array: each element becomes what `rewrite` returns for it, and is left out if
/// `rewrite` returns `None`. The text stays the same if all elements stay.
///
/// # Errors
/// Errors of `rewrite`.
pub fn rewrite_array<'b, E>(
    text: &'b str,
    mut rewrite: impl FnMut(&'b str) -> Result<Option<Cow<'b, str>>, E>,
) -> Result<Cow<'b, str>, E> {
    let mut same = true;
    let mut out = Vec::new();
    let mut json = Writer::new(&mut out);
    json.begin_array();
    for element in elements(text) {
        let rewritten = rewrite(element)?;
        same &= rewritten.as_deref() == Some(element);
        if let Some(element) = rewritten {
            json.raw(&element);
        }
    }
    json.end_array();
    Ok(if same { text.into() } else { String::from_utf8(out).unwrap_or_default().into() })
}

/// Returns the text with the given ranges replaced; the ranges come in the order of their starts. A
/// range inside of a replaced range is replaced with it.
#[must_use]
pub fn replaced(text: &str, edits: &[(Range<usize>, String)]) -> Vec<u8> {
    let added = edits.iter().fold(0_usize, |sum, (_, new)| sum.saturating_add(new.len()));
    let mut out = Vec::with_capacity(text.len().saturating_add(added));
    let mut from = 0_usize;
    for (range, new) in edits {
        let Some(between) = text.get(from..range.start) else { continue };
        out.extend_from_slice(between.as_bytes());
        out.extend_from_slice(new.as_bytes());
        from = range.end;
    }
    out.extend_from_slice(text.get(from..).unwrap_or_default().as_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::replaced;

    #[test]
    fn ranges_are_replaced_and_what_is_inside_of_them_too() {
        let edit = |range, new: &str| (range, new.to_owned());
        let edits = [edit(1..1, "1"), edit(1..1, "2"), edit(2..4, "3"), edit(3..3, "no")];
        assert_eq!(replaced("abcde", &edits), b"a12b3e");
        assert_eq!(replaced("abc", &[]), b"abc");
    }
}
