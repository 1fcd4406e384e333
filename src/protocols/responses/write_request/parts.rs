//! Writes images and files as content parts of Responses items.

use crate::error::Error;
use crate::json::Writer;
use crate::model::{Block, DocumentSource};
use crate::protocols::breakpoints::Breakpoint;
use crate::protocols::words::{PartForms, Words, end_text, push, write_file, write_image};

/// Form in which content parts of Responses are written.
pub(super) static PARTS: PartForms =
    PartForms { text: "input_text", file_urls: true, cache_control: false, attachment };

fn attachment(
    words: Words<'_, '_>,
    json: &mut Writer<'_>,
    block: &Block<'_>,
    breakpoint: Option<Breakpoint>,
) -> Result<(), Error> {
    match block {
        Block::Image(image) => {
            words.check_image(image)?;
            json.begin_object().kind("input_image");
            json.key("image_url");
            write_image(json, image);
            json.key("detail").text("auto");
        }
        Block::Document(document) => {
            words.check_document(document)?;
            // A file part has no member for the document's context, so the context becomes a text
            // part.
            if let Some(context) = document.context.filter(|context| !context.is_blank()) {
                words.begin_text(json);
                push(json.out(), context);
                end_text(json, None);
            }
            json.begin_object().kind("input_file");
            match &document.source {
                DocumentSource::Base64 { media_type, data } => {
                    write_file(json, document.title, *media_type, *data);
                }
                DocumentSource::Url(url) => {
                    json.key("file_url").str(*url);
                }
                _ => {}
            }
        }
        _ => return Ok(()),
    }
    if let Some(breakpoint) = breakpoint {
        breakpoint.write(json);
    }
    json.end_object();
    Ok(())
}
