//! Images and files as parts of the items of Responses.

use crate::error::Error;
use crate::json::{Str, Writer};
use crate::model::{Block, DocumentSource, ImageSource};
use crate::protocols::breakpoints::Breakpoint;
use crate::protocols::words::{Parts, Words, end_text, push, write_data};

/// The parts of Responses.
pub(super) static PARTS: Parts =
    Parts { text: "input_text", file_urls: true, cache_control: false, attachment };

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
            match &image.source {
                ImageSource::Base64 { media_type, data } => write_data(json, *media_type, *data),
                ImageSource::Url(url) => {
                    json.str(*url);
                }
                // Refused by the check.
                ImageSource::File => {
                    json.null();
                }
            }
            json.key("detail").text("auto");
        }
        Block::Document(document) => {
            words.check_document(document)?;
            // A file part has no place for it.
            if let Some(context) = document.context.filter(|context| !context.is_blank()) {
                words.begin_text(json);
                push(json.out(), context);
                end_text(json, None);
            }
            json.begin_object().kind("input_file");
            match &document.source {
                DocumentSource::Base64 { media_type, data } => {
                    let name = document.title.filter(|title| !title.is_blank());
                    json.key("filename").str(name.unwrap_or(Str::plain("document.pdf")));
                    write_data(json.key("file_data"), *media_type, *data);
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
