//! Detection of errors about a single image that a model cannot process, or about too many images.

use super::quoted::own_words;
use super::wordings::{FETCHING, FOR_MORE, ONE_IMAGE, PhraseRole, SPOILT_IMAGE, TAKEN_IMAGES};
use crate::model::request_context::RequestContext;
use crate::text::words;

/// Returns true if an error message refuses one of the images, or the number of images.
/// `parameter`: the parameter that the error names in a separate member.
pub(super) fn is_one_image(
    message: &str,
    parameter: Option<&str>,
    context: &RequestContext,
) -> bool {
    let text = own_words(message);
    if SPOILT_IMAGE.any(&text) {
        return true;
    }
    if ONE_IMAGE.has(PhraseRole::Other, &text) {
        return false;
    }
    if context.refusable.image_hosts.iter().any(|host| fails_at(&text, host)) {
        return true;
    }
    // The text after a phrase of `TAKEN_IMAGES` names images that the server accepts.
    let end = TAKEN_IMAGES.first_place(&text).unwrap_or(text.len());
    let subject = text.get(..end).unwrap_or(&text);
    let named = parameter.is_some_and(|name| names_image(&name.to_ascii_lowercase()));
    (named || names_image(subject) || ONE_IMAGE.has(PhraseRole::Subject, subject))
        && ONE_IMAGE.has(PhraseRole::Refusal, &text)
}

/// Number of bytes before a URL that belong to the same clause, and around a URL that refer to it.
const CLAUSE_BYTES: usize = 48;
const AROUND_BYTES: usize = 240;

/// Returns true if a message says that a file could not be fetched from a host. A link to a
/// server's documentation does not count.
fn fails_at(text: &str, host: &str) -> bool {
    words::names(text, host).any(|at| {
        let (before, behind) = text.split_at_checked(at).unwrap_or_default();
        let clause = ending(before, CLAUSE_BYTES);
        !FOR_MORE.any(clause)
            && (FETCHING.any(ending(before, AROUND_BYTES))
                || FETCHING.any(words::beginning(behind, AROUND_BYTES)))
    })
}

/// Returns at most the last `bytes` of a text.
fn ending(text: &str, bytes: usize) -> &str {
    let start = text.len().saturating_sub(bytes);
    (start..=text.len()).find_map(|start| text.get(start..)).unwrap_or_default()
}

/// Returns true if the text names an image. Names such as `generate_image`, `gpt-image-1`,
/// `image_gen` or `Imagen` do not count.
fn names_image(text: &str) -> bool {
    const BEHIND: [&str; 8] = ["url", "_url", "data", "_data", "size", "_size", "_file", "config"];
    words::places(text, "image").any(|at| {
        let (before, behind) = text.split_at_checked(at).unwrap_or_default();
        let behind = behind.get("image".len()..).unwrap_or_default();
        let behind = behind.strip_prefix('s').unwrap_or(behind);
        let is_word = behind.bytes().next().is_none_or(|byte| !words::is_name_byte(byte));
        !before.bytes().last().is_some_and(words::is_name_byte)
            && (is_word || BEHIND.iter().any(|word| behind.starts_with(word)))
    })
}

#[cfg(test)]
mod tests;
