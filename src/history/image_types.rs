//! Correction of wrong image types. Servers refuse an image whose media type does not fit its data,
//! and a tool's image comes again with each request.

use crate::json::Str;
use crate::model::{Block, DocumentSource, ImageSource, image_type};
use crate::observe::warning::Warnings;

/// Sets the media type of each base64 image in a block to the type that its first bytes show. An
/// image with unknown first bytes stays unchanged.
pub(super) fn correct(block: &mut Block<'_>, warnings: &mut Warnings) {
    match block {
        Block::Image(image) => {
            let named = image.source.known_type();
            if let ImageSource::Base64 { media_type, data } = &mut image.source
                && let Some(found) = image_type::of(*data)
                && named != Some(found)
            {
                *media_type = Str::plain(found);
                warnings.add("media_type_corrected");
            }
        }
        Block::ToolResult(result) => {
            result.content.iter_mut().for_each(|block| correct(block, warnings));
        }
        Block::Document(document) => {
            if let DocumentSource::Content(inner) = &mut document.source {
                inner.iter_mut().for_each(|block| correct(block, warnings));
            }
        }
        _ => {}
    }
}
