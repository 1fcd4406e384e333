//! Words that stand where something is left out that the model does not take and the client sends again each time.

/// The words in place of an image, for a model without eyes.
pub(crate) const IMAGE_OMITTED: &str = "[image omitted: this model does not take images]";
/// The words in place of a PDF.
pub(crate) const PDF_OMITTED: &str = "[document omitted: this model does not take PDF documents]";
/// The words in place of a PDF that the assistant shows: Chat Completions has no place for it.
pub(super) const SHOWN_PDF_OMITTED: &str =
    "[document omitted: an assistant message cannot have a PDF document]";
/// The words in place of an image of which there is only the address.
pub(super) const URL_OMITTED: &str = "[image omitted: this model does not take image URLs]";
/// The words in place of an image that no model takes, such as SVG: models refuse the whole request.
pub(super) const TYPE_OMITTED: &str = "[image omitted: it is no JPEG, PNG, GIF or WebP]";
