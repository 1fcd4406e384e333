//! Writes images and files as content parts of Chat Completions.

use crate::error::Error;
use crate::json::Writer;
use crate::model::{Block, DocumentSource};
use crate::protocols::breakpoints::Breakpoint;
use crate::protocols::words::{PartForms, Words, write_file, write_image};

/// Form in which content parts of Chat Completions are written.
pub(super) static PARTS: PartForms =
    PartForms { text: "text", file_urls: false, cache_control: true, attachment };

fn attachment(
    words: Words<'_, '_>,
    json: &mut Writer<'_>,
    block: &Block<'_>,
    breakpoint: Option<Breakpoint>,
) -> Result<(), Error> {
    match block {
        Block::Image(image) => {
            words.check_image(image)?;
            json.begin_object().kind("image_url");
            json.key("image_url").begin_object().key("url");
            write_image(json, image);
        }
        Block::Document(document) => {
            words.check_document(document)?;
            let DocumentSource::Base64 { media_type, data } = &document.source else {
                return Ok(());
            };
            // A file part has no member for the document's context, so the context becomes a text
            // part.
            if let Some(context) = document.context.filter(|context| !context.is_blank()) {
                json.begin_object().kind("text");
                json.key("text").str(context).end_object();
            }
            json.begin_object().kind("file");
            json.key("file").begin_object();
            write_file(json, document.title, *media_type, *data);
        }
        _ => return Ok(()),
    }
    json.end_object();
    if let Some(breakpoint) = breakpoint {
        breakpoint.write(json);
    }
    json.end_object();
    Ok(())
}
