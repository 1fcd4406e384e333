//! Placeholder texts for images and documents that the model does not support and the client
//! repeats in each request.

use crate::json::Str;
use crate::model::{Block, DocumentBlock, DocumentSource, Text};
use crate::observe::warning::Warnings;
use crate::profile::{ImageParts, Profile};

/// Placeholder for an image, if the model supports no images.
pub(crate) const IMAGE_OMITTED: &str = "[image omitted: this model does not take images]";
/// Placeholder for a PDF document, if the model supports none.
pub(crate) const PDF_OMITTED: &str = "[document omitted: this model does not take PDF documents]";
/// Placeholder for a PDF document in an assistant message, where Chat Completions allows none.
pub(super) const SHOWN_PDF_OMITTED: &str =
    "[document omitted: an assistant message cannot have a PDF document]";
/// Placeholder for an image of which only the URL is known.
pub(super) const URL_OMITTED: &str = "[image omitted: this model does not take image URLs]";
/// Placeholder for an image of an unsupported type such as SVG, for which models refuse the whole
/// request.
pub(super) const TYPE_OMITTED: &str = "[image omitted: it is no JPEG, PNG, GIF or WebP]";

/// Replaces content that the model does not support and the client repeats in each request. New
/// content of the user is refused instead, so that the user notices.
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
        // The model has accepted an image that the user attached and the assistant answered.
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

/// Returns a placeholder text for omitted content, and adds a warning that names the content
/// `what`.
pub(super) fn words<'a>(what: &str, words: &'static str, warnings: &mut Warnings) -> Block<'a> {
    warnings.add_named("dropped", what);
    Block::Text(Text { text: Str::plain(words), cached: None, citations: None })
}

/// Returns true if a document is a PDF whose data is in the request.
pub(super) fn is_pdf(document: &DocumentBlock<'_>) -> bool {
    matches!(document.source, DocumentSource::Base64 { media_type, .. } if media_type == "application/pdf")
}
