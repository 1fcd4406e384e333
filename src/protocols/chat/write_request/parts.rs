//! Blocks to texts and parts of Chat Completions.
//!
//! Texts are written as the inside of a JSON string, straight from the client's escaped text.

use crate::dialect::profile::{ImageParts, Profile};
use crate::error::Error;
use crate::history::omitted::IMAGE_OMITTED;
use crate::json::{self, Reader, Str, Writer, escape};
use crate::model::{Block, Document, DocumentSource, Image, ImageSource, path_at};

/// What the parts of one request have in common.
#[derive(Clone, Copy)]
pub(crate) struct Parts<'p, 'a> {
    pub(crate) profile: &'p Profile,
    /// The client's body, for the paths of errors.
    pub(crate) body: &'a str,
}

/// Whether a block can be put in words, all of it by [`push_text`].
pub(crate) fn is_text(block: &Block<'_>, profile: &Profile) -> bool {
    match block {
        Block::Image(_) => profile.image_parts == ImageParts::None,
        Block::Document(document) => match &document.source {
            DocumentSource::Content(blocks) => blocks.iter().all(|block| is_text(block, profile)),
            DocumentSource::Base64 { .. } => false,
            DocumentSource::Text(_) | DocumentSource::Url | DocumentSource::File => true,
        },
        _ => true,
    }
}

/// The images and files among `blocks`, also those inside documents.
pub(crate) fn attachments<'b, 'a>(
    blocks: &'b [Block<'a>],
    profile: &Profile,
) -> Vec<&'b Block<'a>> {
    let mut found = Vec::new();
    collect_attachments(blocks, profile, &mut found);
    found
}

fn collect_attachments<'b, 'a>(
    blocks: &'b [Block<'a>],
    profile: &Profile,
    found: &mut Vec<&'b Block<'a>>,
) {
    for block in blocks.iter().filter(|block| !is_text(block, profile)) {
        match block {
            Block::Document(document) => match &document.source {
                DocumentSource::Content(inner) => collect_attachments(inner, profile, found),
                _ => found.push(block),
            },
            _ => found.push(block),
        }
    }
}

pub(crate) fn push(out: &mut Vec<u8>, text: Str<'_>) {
    out.extend_from_slice(text.raw().as_bytes());
}

/// A text in an attribute.
fn push_attribute(out: &mut Vec<u8>, name: &str, value: Str<'_>) {
    escape(out, &format!(" {name}=\""));
    // A quote can be written as `\u0022`, as .NET and Symfony do.
    if value.is_escaped() {
        escape(out, &value.decode().replace('"', "&quot;"));
    } else {
        push(out, value);
    }
    escape(out, "\"");
}

impl Parts<'_, '_> {
    /// Appends what a block says in words, as the inside of a JSON string. Images and files are
    /// left to [`Parts::write_attachment`].
    pub(crate) fn push_text(&self, out: &mut Vec<u8>, block: &Block<'_>) -> Result<(), Error> {
        match block {
            Block::Text(text) => push(out, text.text),
            Block::Image(image) => {
                self.check_image(image)?;
                if self.profile.image_parts == ImageParts::None {
                    escape(out, IMAGE_OMITTED);
                }
            }
            Block::Document(document) => {
                self.check_document(document)?;
                if matches!(document.source, DocumentSource::Base64 { .. }) {
                    return Ok(());
                }
                push_document_start(out, document);
                match &document.source {
                    DocumentSource::Text(text) => push(out, *text),
                    DocumentSource::Content(blocks) => self.push_lines(out, blocks)?,
                    _ => {}
                }
                escape(out, DOCUMENT_END);
            }
            Block::SearchResult(result) => {
                escape(out, "<search_result");
                push_attribute(out, "title", result.title);
                push_attribute(out, "source", result.source);
                escape(out, ">");
                self.push_lines(out, &result.content)?;
                escape(out, "</search_result>");
            }
            Block::ToolReference(name) => {
                escape(out, "Tool loaded: ");
                push(out, *name);
            }
            Block::BrowserState { tabs, changes } => push_browser_state(out, tabs, changes),
            _ => {}
        }
        Ok(())
    }

    /// Appends what blocks say in words, one below the other.
    pub(crate) fn push_lines(&self, out: &mut Vec<u8>, blocks: &[Block<'_>]) -> Result<(), Error> {
        let start = out.len();
        for block in blocks {
            let before = out.len();
            if before > start {
                escape(out, "\n");
            }
            let from = out.len();
            self.push_text(out, block)?;
            if out.len() == from {
                out.truncate(before);
            }
        }
        Ok(())
    }

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
            if is_text(block, self.profile) {
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

    fn check_image(&self, image: &Image<'_>) -> Result<(), Error> {
        match &image.source {
            ImageSource::File => Err(self.no_source(image.at, "the source type file")),
            source if source.is_remote() && self.profile.image_parts == ImageParts::Data => {
                Err(Error::invalid(format!(
                    "{}: image URLs are not supported by this model; send the image as base64",
                    self.source_of(image.at)
                )))
            }
            ImageSource::Url(_) | ImageSource::Base64 { .. } => Ok(()),
        }
    }

    fn check_document(&self, document: &Document<'_>) -> Result<(), Error> {
        match &document.source {
            DocumentSource::Url => Err(self.no_source(document.at, "the source type url")),
            DocumentSource::File => Err(self.no_source(document.at, "the source type file")),
            DocumentSource::Base64 { media_type, .. } if *media_type != "application/pdf" => {
                Err(Error::invalid(format!(
                    "{}.media_type: Input should be 'application/pdf'",
                    self.source_of(document.at)
                )))
            }
            DocumentSource::Base64 { .. } if !self.profile.file_parts => {
                Err(Error::invalid(format!(
                    "{}: as configured, this model does not support PDF input",
                    self.source_of(document.at)
                )))
            }
            _ => Ok(()),
        }
    }

    fn no_source(&self, at: usize, kind: &str) -> Error {
        Error::unsupported_kind(&self.source_of(at), kind)
    }

    fn source_of(&self, at: usize) -> String {
        format!("{}.source", path_at(self.body, at))
    }
}

const DOCUMENT_END: &str = "\n</document>";

fn push_document_start(out: &mut Vec<u8>, document: &Document<'_>) {
    escape(out, "<document");
    if let Some(title) = document.title.filter(|title| !title.is_empty()) {
        push_attribute(out, "title", title);
    }
    escape(out, ">\n");
    if let Some(context) = document.context.filter(|context| !context.is_empty()) {
        push(out, context);
        escape(out, "\n");
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

/// One line for each tab and for each change.
fn push_browser_state(out: &mut Vec<u8>, tabs: &str, changes: &str) {
    let start = out.len();
    for (array, is_tab) in [(tabs, true), (changes, false)] {
        for raw in json::elements(array) {
            if out.len() > start {
                escape(out, "\n");
            }
            push_state_line(out, raw, is_tab);
        }
    }
}

/// `* id title url (active)` for a tab; `tab_opened: id` for a change.
fn push_state_line(out: &mut Vec<u8>, raw: &str, is_tab: bool) {
    let mut reader = Reader::of(raw);
    let (mut active, mut kind, mut words) = (false, None, Vec::new());
    if reader.begin_object().is_err() {
        return;
    }
    const ORDER: [&str; 7] =
        ["tab_id", "download_id", "title", "url", "path", "size_bytes", "error"];
    while let Ok(Some(key)) = reader.next_key() {
        let key = key.decode();
        let Ok(value) = reader.skip() else { break };
        match key.as_ref() {
            "active" => active = value == "true",
            "type" => kind = json::string(value),
            key => {
                if let Some(position) = ORDER.iter().position(|known| *known == key) {
                    words.push((position, value));
                }
            }
        }
    }
    match kind {
        Some(kind) if !is_tab => {
            out.extend_from_slice(kind.raw().as_bytes());
            out.push(b':');
        }
        _ => out.push(b'*'),
    }
    let in_order = (0..ORDER.len()).flat_map(|at| words.iter().filter(move |word| word.0 == at));
    for (_, value) in in_order {
        // Strings and numbers only; anything else is not a word.
        let mut reader = Reader::new(value, 1);
        let Ok(word) = reader.string().map(|text| text.raw()).or_else(|_| reader.number()) else {
            continue;
        };
        out.push(b' ');
        out.extend_from_slice(word.as_bytes());
    }
    if active {
        escape(out, " (active)");
    }
}
