//! Blocks as parts of the items of Responses.

use crate::error::Error;
use crate::json::{Str, Writer, escape};
use crate::model::{Block, Document, DocumentSource, ImageSource};
use crate::protocols::words::{DOCUMENT_END, Words, push, push_document_start};

/// Opens a text part; the text follows as the inside of a JSON string.
pub(super) fn begin_text(json: &mut Writer<'_>) {
    json.begin_object().kind("input_text");
    json.key("text").value().out().push(b'"');
}

/// Closes a text part.
pub(super) fn end_text(json: &mut Writer<'_>, breakpoint: bool) {
    json.out().push(b'"');
    write_breakpoint(json, breakpoint);
    json.end_object();
}

fn write_breakpoint(json: &mut Writer<'_>, due: bool) {
    if due {
        json.key("prompt_cache_breakpoint").begin_object();
        json.key("mode").text("explicit").end_object();
    }
}

/// Writes an image or file as a part.
pub(super) fn write_attachment(
    words: Words<'_, '_>,
    json: &mut Writer<'_>,
    block: &Block<'_>,
    breakpoint: bool,
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
                begin_text(json);
                push(json.out(), context);
                end_text(json, false);
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
    write_breakpoint(json, breakpoint);
    json.end_object();
    Ok(())
}

/// Writes a document with images as texts and images in turn.
pub(super) fn write_document(
    words: Words<'_, '_>,
    json: &mut Writer<'_>,
    document: &Document<'_>,
    blocks: &[Block<'_>],
    breakpoint: bool,
) -> Result<(), Error> {
    // Where the last text began; between two images there may be none.
    let mut before = json.out().len();
    begin_text(json);
    let mut from = json.out().len();
    push_document_start(json.out(), document);
    let mut first = true;
    for block in blocks {
        if words.is_block_text(block) {
            if !std::mem::take(&mut first) {
                escape(json.out(), "\n");
            }
            words.push_text(json.out(), block)?;
        } else {
            match json.out().len() == from {
                true => json.out().truncate(before),
                false => end_text(json, false),
            }
            write_attachment(words, json, block, false)?;
            before = json.out().len();
            begin_text(json);
            from = json.out().len();
            first = true;
        }
    }
    escape(json.out(), DOCUMENT_END);
    end_text(json, breakpoint);
    Ok(())
}

fn write_data(json: &mut Writer<'_>, media_type: Str<'_>, data: Str<'_>) {
    json.string(|out| {
        out.extend_from_slice(b"data:");
        push(out, media_type);
        out.extend_from_slice(b";base64,");
        push(out, data);
    });
}
