//! Positions of images in the JSON text of a request: image blocks, and texts of tool results that
//! may contain images.
//!
//! An image can be replaced there, and the text around it stays the same, byte for byte.

use std::ops::Range;

use super::hidden_images;
use crate::json::{self, Str, Writer};
use crate::model::limits::Many;
use crate::model::{Block, Image, ImageSource, image_type};

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

/// Element of a request that contains a block: a message, a tool result or a document.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Parent {
    Message,
    Result,
    Document,
}

/// Returns the positions of images in users' messages, in order. Their number is limited like that
/// of a request's blocks.
pub(crate) fn places(body: &str, with_blocks: bool, with_texts: bool) -> Vec<ImagePlace> {
    let mut looking =
        Looking { body, with_blocks, with_texts, is_in_error: false, places: Vec::new() };
    for message in json::elements(json::member(body, "messages").unwrap_or_default()) {
        if is(message, "role", "user") {
            let content = json::member(message, "content").unwrap_or_default();
            looking.content(content, Parent::Message);
        }
    }
    looking.places
}

fn is(object: &str, name: &str, word: &str) -> bool {
    json::member(object, name).and_then(json::string).is_some_and(|it| it == *word)
}

struct Looking<'b> {
    body: &'b str,
    with_blocks: bool,
    with_texts: bool,
    is_in_error: bool,
    places: Vec<ImagePlace>,
}

impl Looking<'_> {
    fn content(&mut self, content: &str, parent: Parent) {
        let takes_texts = self.with_texts && parent == Parent::Result;
        if takes_texts && json::string(content).is_some_and(hidden_images::may_hide) {
            self.add(content, Kind::Content);
        }
        for block in json::elements(content) {
            let Some(kind) = json::member(block, "type").and_then(json::string) else { continue };
            match (&*kind.decode(), parent) {
                ("image", _) if self.with_blocks => self.add(block, Kind::Image),
                ("text", _) if takes_texts => {
                    let text = json::member(block, "text").and_then(json::string);
                    if text.is_some_and(hidden_images::may_hide) {
                        self.add(block, Kind::Text);
                    }
                }
                ("tool_result", Parent::Message) => {
                    let content = json::member(block, "content").unwrap_or_default();
                    self.is_in_error = json::member(block, "is_error") == Some("true");
                    self.content(content, Parent::Result);
                    self.is_in_error = false;
                }
                ("document", Parent::Message | Parent::Result) => {
                    let source = json::member(block, "source").unwrap_or_default();
                    let content = json::member(source, "content").unwrap_or_default();
                    self.content(content, Parent::Document);
                }
                _ => {}
            }
        }
    }

    fn add(&mut self, part: &str, kind: Kind) {
        if self.places.len() >= Many::Blocks.most() as usize {
            return;
        }
        if let Some(start) = json::offset_in(self.body, part) {
            let range = start..start.saturating_add(part.len());
            self.places.push(ImagePlace { range, kind, is_in_error: self.is_in_error });
        }
    }
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
    let source = match (text("data"), text("url")) {
        (Some(data), _) if is(source, "type", "base64") => {
            let known = image_type::of(data).map(Str::plain);
            let media_type = known.or_else(|| text("media_type")).unwrap_or_default();
            ImageSource::Base64 { media_type, data }
        }
        (_, Some(url)) if is(source, "type", "url") => ImageSource::Url(url),
        _ => ImageSource::File,
    };
    Image { at: 0, source, cached: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_no_more_places_than_it_may_have_blocks() {
        let most = Many::Blocks.most() as usize;
        let blocks = vec![r#"{"type":"image"}"#; most + 9].join(",");
        let body = format!(r#"{{"messages":[{{"role":"user","content":[{blocks}]}}]}}"#);
        assert_eq!(places(&body, true, true).len(), most);
    }
}
