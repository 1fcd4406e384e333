//! Blocks as parts of Chat Completions.

use crate::error::Error;
use crate::json::{Str, Writer, escape};
use crate::model::{Block, Document, DocumentSource, ImageSource};
use crate::protocols::words::{DOCUMENT_END, Words, push, push_document_start};

impl Words<'_, '_> {
    /// Writes an image or file as a part.
    pub(crate) fn write_attachment(
        &self,
        json: &mut Writer<'_>,
        block: &Block<'_>,
        breakpoint: bool,
    ) -> Result<(), Error> {
        match block {
            Block::Image(image) => {
                self.check_image(image)?;
                json.begin_object().kind("image_url");
                json.key("image_url").begin_object().key("url");
                match &image.source {
                    ImageSource::Base64 { media_type, data } => {
                        write_data(json, *media_type, *data)
                    }
                    ImageSource::Url(url) => {
                        json.str(*url);
                    }
                    // Refused by the check.
                    ImageSource::File => {
                        json.null();
                    }
                }
            }
            Block::Document(document) => {
                self.check_document(document)?;
                let DocumentSource::Base64 { media_type, data } = &document.source else {
                    return Ok(());
                };
                // A file part has no place for it.
                if let Some(context) = document.context.filter(|context| !context.is_blank()) {
                    json.begin_object().kind("text");
                    json.key("text").str(context).end_object();
                }
                json.begin_object().kind("file");
                json.key("file").begin_object();
                let name = document.title.filter(|title| !title.is_blank());
                json.key("filename").str(name.unwrap_or(Str::plain("document.pdf")));
                write_data(json.key("file_data"), *media_type, *data);
            }
            _ => return Ok(()),
        }
        json.end_object();
        write_breakpoint(json, breakpoint);
        json.end_object();
        Ok(())
    }

    /// Writes a document with images as texts and images in turn.
    pub(crate) fn write_document(
        &self,
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
            if self.is_block_text(block) {
                if !std::mem::take(&mut first) {
                    escape(json.out(), "\n");
                }
                self.push_text(json.out(), block)?;
            } else {
                match json.out().len() == from {
                    true => json.out().truncate(before),
                    false => end_text(json, false),
                }
                self.write_attachment(json, block, false)?;
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
}

fn write_data(json: &mut Writer<'_>, media_type: Str<'_>, data: Str<'_>) {
    json.string(|out| {
        out.extend_from_slice(b"data:");
        push(out, media_type);
        out.extend_from_slice(b";base64,");
        push(out, data);
    });
}

/// Opens a text part; the text follows as the inside of a JSON string.
pub(crate) fn begin_text(json: &mut Writer<'_>) {
    json.begin_object().kind("text");
    json.key("text").value().out().push(b'"');
}

/// Closes a text part.
pub(crate) fn end_text(json: &mut Writer<'_>, breakpoint: bool) {
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
