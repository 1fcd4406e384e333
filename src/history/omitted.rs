//! Words that stand where something is left out that the model does not take and the client sends
//! again each time.

use crate::json::Str;
use crate::model::{Block, Document, DocumentSource, Text};
use crate::observe::warning::Warnings;
use crate::profile::{ImageParts, Profile};

/// The words in place of an image, for a model without eyes.
pub(crate) const IMAGE_OMITTED: &str = "[image omitted: this model does not take images]";
/// The words in place of a PDF.
pub(crate) const PDF_OMITTED: &str = "[document omitted: this model does not take PDF documents]";
/// The words in place of a PDF that the assistant shows: Chat Completions has no place for it.
pub(super) const SHOWN_PDF_OMITTED: &str =
    "[document omitted: an assistant message cannot have a PDF document]";
/// The words in place of an image of which there is only the address.
pub(super) const URL_OMITTED: &str = "[image omitted: this model does not take image URLs]";
/// The words in place of an image that no model takes, such as SVG: models refuse the whole
/// request.
pub(super) const TYPE_OMITTED: &str = "[image omitted: it is no JPEG, PNG, GIF or WebP]";

/// Puts words in place of what the model does not take and the client sends again with each
/// request. What the user has just given is refused, where that is seen at once.
pub(super) fn replace(
    block: &mut Block<'_>,
    in_result: bool,
    profile: &Profile,
    warnings: &mut Warnings,
) {
    match block {
        Block::Document(document) if is_pdf(document) && !profile.file_parts => {
            *block = words("document", PDF_OMITTED, warnings);
        }
        Block::Image(image)
            if image.source.is_remote() && profile.image_parts == ImageParts::Data =>
        {
            *block = words("image", URL_OMITTED, warnings);
        }
        // What a user attached and the assistant answered, the model has taken.
        Block::Image(image)
            if in_result
                && profile.image_parts != ImageParts::None
                && !image.source.is_of_known_type() =>
        {
            *block = words("image", TYPE_OMITTED, warnings);
        }
        Block::Document(document) => {
            if let DocumentSource::Content(inner) = &mut document.source {
                inner.iter_mut().for_each(|block| replace(block, in_result, profile, warnings));
            }
        }
        _ => {}
    }
}

/// Words that stand where something was left out.
pub(super) fn words<'a>(what: &str, words: &'static str, warnings: &mut Warnings) -> Block<'a> {
    warnings.add_named("dropped", what);
    Block::Text(Text { text: Str::plain(words), cached: None, cited: false })
}

/// Whether a document is a PDF that is in the request.
pub(super) fn is_pdf(document: &Document<'_>) -> bool {
    matches!(document.source, DocumentSource::Base64 { media_type, .. } if media_type == "application/pdf")
}
