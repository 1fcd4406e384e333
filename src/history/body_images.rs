//! Positions of images in the JSON text of a request: image blocks, and texts of tool results that
//! may contain images.
//!
//! An image can be replaced there, and the text around it stays the same, byte for byte.

use std::ops::Range;

use super::hidden_images::{self, may_hide};
use crate::json::{self, Reader, Str, Writer};
use crate::model::request::raw_blocks;
use crate::model::{Block, DocumentSource, Image, ImageSource, Message, image_type};

/// Byte range in a request's JSON text that is an image, or a text that may contain images. The
/// text is decoded only when its images are read or replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ImagePlace {
    pub(crate) range: Range<usize>,
    kind: Kind,
    /// True if the byte range is in a tool result that reports an error, where the Messages API
    /// allows only texts.
    pub(crate) is_in_error: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Image block.
    Image,
    /// Text block of a tool result, whose text may contain images.
    Text,
    /// Content of a tool result as one string, which may contain images.
    Content,
}

/// Returns the positions of images in messages of a body, in order: image blocks if `with_blocks`,
/// and texts of tool results that may contain images if `with_texts`.
pub(crate) fn places<'m, 'b: 'm>(
    body: &str,
    messages: impl Iterator<Item = &'m Message<'b>>,
    with_blocks: bool,
    with_texts: bool,
) -> Vec<ImagePlace> {
    let mut looking = Looking { body, with_blocks, with_texts, places: Vec::new() };
    for message in messages {
        // The JSON text of a block is only looked for in messages with such texts.
        if message.content.iter().any(|block| looking.is_hiding(block)) {
            for (raw, block) in raw_blocks(message.raw).zip(&message.content) {
                looking.hiding_block(raw, block);
            }
        } else {
            message.content.iter().for_each(|block| looking.block(block, false));
        }
    }
    looking.places
}

struct Looking<'b> {
    body: &'b str,
    with_blocks: bool,
    with_texts: bool,
    places: Vec<ImagePlace>,
}

impl Looking<'_> {
    /// Returns true if a block is a tool result with a text that may contain images.
    fn is_hiding(&self, block: &Block<'_>) -> bool {
        let Block::ToolResult(result) = block else { return false };
        let hides = |it: &Block<'_>| matches!(it, Block::Text(it) if may_hide(it.text));
        self.with_texts && result.content.iter().any(hides)
    }

    /// Finds the images of a block whose JSON text is `raw`.
    fn hiding_block(&mut self, raw: &str, block: &Block<'_>) {
        let Block::ToolResult(result) = block else { return self.block(block, false) };
        for (raw, block) in raw_blocks(raw).zip(&result.content) {
            match block {
                Block::Text(text) if may_hide(text.text) => {
                    let kind = if raw.starts_with('"') { Kind::Content } else { Kind::Text };
                    let start = json::offset_in(self.body, raw).unwrap_or_default();
                    self.add(start..start.saturating_add(raw.len()), kind, result.is_error);
                }
                block => self.block(block, result.is_error),
            }
        }
    }

    /// Finds the image blocks in a block.
    fn block(&mut self, block: &Block<'_>, is_in_error: bool) {
        match block {
            Block::Image(image) if self.with_blocks => {
                self.add(span(self.body, image.at), Kind::Image, is_in_error);
            }
            Block::ToolResult(result) => {
                result.content.iter().for_each(|block| self.block(block, result.is_error));
            }
            Block::Document(document) => {
                if let DocumentSource::Content(inner) = &document.source {
                    inner.iter().for_each(|block| self.block(block, is_in_error));
                }
            }
            _ => {}
        }
    }

    fn add(&mut self, range: Range<usize>, kind: Kind, is_in_error: bool) {
        self.places.push(ImagePlace { range, kind, is_in_error });
    }
}

/// Returns the byte range of the JSON value that begins at index `at`.
pub(crate) fn span(body: &str, at: usize) -> Range<usize> {
    let value = body.get(at..).and_then(|rest| Reader::of(rest).skip().ok());
    let begin = value.and_then(|value| json::offset_in(body, value)).unwrap_or(at);
    begin..begin.saturating_add(value.map_or(0, str::len))
}

/// Function that writes an image or its replacement. The last argument is the client's
/// `cache_control` for this position.
pub(crate) type WriteImage<'f> = dyn FnMut(&mut Writer<'_>, &Image<'_>, Option<&str>) + 'f;

impl ImagePlace {
    /// Returns true if the byte range is a text that may contain images.
    pub(crate) fn is_text(&self) -> bool {
        self.kind != Kind::Image
    }

    /// Calls `give` with each image in the byte range.
    pub(crate) fn images(&self, body: &str, mut give: impl FnMut(&Image<'_>)) {
        self.read(body, |blocks, _| {
            for block in blocks {
                if let Block::Image(image) = block {
                    give(&image);
                }
            }
        });
    }

    /// Returns the JSON that replaces the byte range, with the output of `write` for each image.
    pub(crate) fn rewritten(&self, body: &str, write: &mut WriteImage<'_>) -> Option<String> {
        self.read(body, |blocks, mark| {
            let array = json::written(|json| {
                json.begin_array();
                let mut blocks = blocks.into_iter().peekable();
                while let Some(block) = blocks.next() {
                    let mark = mark.filter(|_| blocks.peek().is_none());
                    match block {
                        Block::Image(image) => write(json, &image, mark),
                        Block::Text(text) => {
                            write_text(json, mark, |json| {
                                json.str(text.text);
                            });
                        }
                        _ => {}
                    }
                }
                json.end_array();
            });
            match self.kind {
                Kind::Content => array,
                // Image blocks and text blocks are already in an array of the client's request.
                Kind::Image | Kind::Text => {
                    let inside = array.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
                    inside.unwrap_or_default().to_owned()
                }
            }
        })
    }

    fn read<T>(
        &self,
        body: &str,
        then: impl FnOnce(Vec<Block<'_>>, Option<&str>) -> T,
    ) -> Option<T> {
        let part = body.get(self.range.clone())?;
        let mark = json::member(part, "cache_control");
        let text = match self.kind {
            Kind::Image => return Some(then(vec![Block::Image(Box::new(image_of(part)))], mark)),
            Kind::Text => json::member(part, "text")?,
            Kind::Content => part,
        };
        let text = json::string(text)?.decode();
        hidden_images::read(&text).map(|blocks| then(blocks, mark))
    }
}

/// Writes a text block.
pub(crate) fn write_text(
    json: &mut Writer<'_>,
    mark: Option<&str>,
    write: impl FnOnce(&mut Writer<'_>),
) {
    json.begin_object().kind("text").key("text");
    write(json);
    end_block(json, mark);
}

/// Writes a text block that replaces a block and keeps the block's `cache_control`.
pub(crate) fn text_for(block: &str, text: &str) -> String {
    let mark = json::member(block, "cache_control");
    json::written(|json| {
        write_text(json, mark, |json| {
            json.text(text);
        });
    })
}

/// Writes an image block.
pub(crate) fn write_image(json: &mut Writer<'_>, image: &Image<'_>, mark: Option<&str>) {
    json.begin_object().kind("image").key("source");
    write_source(json, &image.source);
    end_block(json, mark);
}

/// Writes the `source` member of an image block.
pub(crate) fn write_source(json: &mut Writer<'_>, source: &ImageSource<'_>) {
    json.begin_object();
    match source {
        ImageSource::Base64 { media_type, data } => {
            json.kind("base64").key("media_type").str(*media_type).key("data").str(*data);
        }
        ImageSource::Url(url) => {
            json.kind("url").key("url").str(*url);
        }
        ImageSource::File => {}
    }
    json.end_object();
}

fn end_block(json: &mut Writer<'_>, mark: Option<&str>) {
    if let Some(mark) = mark {
        json.key("cache_control").raw(mark);
    }
    json.end_object();
}

/// Returns the image of an image block, with the media type detected from its bytes.
fn image_of(block: &str) -> Image<'_> {
    let source = json::member(block, "source").unwrap_or_default();
    let text = |name| json::member(source, name).and_then(json::string);
    let kind = text("type");
    let source = match (text("data"), text("url")) {
        (Some(data), _) if kind.is_some_and(|kind| kind == "base64") => {
            let known = image_type::of(data).map(Str::plain);
            let media_type = known.or_else(|| text("media_type")).unwrap_or_default();
            ImageSource::Base64 { media_type, data }
        }
        (_, Some(url)) if kind.is_some_and(|kind| kind == "url") => ImageSource::Url(url),
        _ => ImageSource::File,
    };
    Image { at: 0, source, cached: None }
}
