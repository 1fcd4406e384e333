//! Rewriting of some values in a JSON text. The text is read with the functions for members and
//! elements.

use std::borrow::Cow;

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
