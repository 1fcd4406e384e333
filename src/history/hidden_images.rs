//! Images in the texts of results. Many clients and bridges write what an MCP server gave as JSON,
//! or an image as a `data:` URL. A model sees nothing in that, and each of them costs as much as a
//! book.
//!
//! Only a text that is one of these shapes as a whole is taken for images, so that no words are
//! lost:
//!
//! - an item of MCP's content, `{"type": "image", "data": "…", "mimeType": "…"}`, or an array of
//!   items;
//! - an object with such an array as its `content`, and beside it no more than MCP's own words
//!   about it;
//! - a `data:` URL of an image, also in quotes, that is longer than [`URL_MIN`].
//!
//! What becomes of a text depends on the text alone, so a later request has the earlier one as its
//! beginning.

use std::borrow::Cow;

use super::blanks::is_blank;
use crate::config::Settings;
use crate::json::{Error, Reader, Str, unescape};
use crate::model::{
    Block, CacheMark, Image, ImageSource, Request, Role, Text, ToolResult, image_type,
};
use crate::observe::warning::Warnings;
use crate::text::words;

/// A shorter URL may be an icon in what a tool says about a page.
const URL_MIN: usize = 8_192;

/// More items than any server gives: they stay a text.
const ITEMS_MAX: usize = 1_000;

/// Minimum length of an image in base64, which is that of its beginning. Only an image that a tool
/// has cut off may be shorter.
const DATA_MIN: usize = 32;

/// Number of bytes of a text that are looked at to dismiss it. It has room for the brackets and the
/// first name.
const START: usize = 96;

/// The names with which an object can begin.
const NAMES: [&str; 8] =
    ["type", "data", "mimeType", "text", "content", "isError", "annotations", "_meta"];

/// The texts of results that are images.
pub(crate) struct Hidden<'a>(Vec<InResult<'a>>);

/// Texts of one result that are images.
struct InResult<'a> {
    message: usize,
    block: usize,
    is_error: bool,
    /// Their places in the result, in order.
    texts: Vec<(usize, Cow<'a, str>)>,
}

impl<'a> Hidden<'a> {
    /// Looks for them in the results of a request, unless the configuration leaves them as they
    /// are.
    pub(crate) fn find(request: &Request<'a>, settings: &Settings) -> Self {
        let mut found = Vec::new();
        if !settings.shows_hidden_images() {
            return Self(found);
        }
        for (message, said) in request.messages.iter().enumerate() {
            if said.role != Role::User {
                continue;
            }
            for (block, part) in said.content.iter().enumerate() {
                if let Block::ToolResult(result) = part {
                    let texts = texts(result);
                    if !texts.is_empty() {
                        let is_error = result.is_error;
                        found.push(InResult { message, block, is_error, texts });
                    }
                }
            }
        }
        Self(found)
    }

    /// Removes the texts of results that tell of an error, in which the Messages API takes nothing
    /// but texts.
    pub(crate) fn outside_errors(mut self) -> Self {
        self.0.retain(|found| !found.is_error);
        self
    }

    /// Puts images in place of them.
    pub(crate) fn show<'s>(&'s self, request: &mut Request<'s>, warnings: &mut Warnings) {
        for InResult { message, block, texts, .. } in &self.0 {
            let message = request.messages.get_mut(*message);
            let block = message.and_then(|message| message.content.get_mut(*block));
            let Some(Block::ToolResult(result)) = block else { continue };
            let mut texts = texts.iter().peekable();
            for (at, block) in std::mem::take(&mut result.content).into_iter().enumerate() {
                let hidden = texts.next_if(|(place, _)| *place == at);
                match hidden.and_then(|(_, text)| read(text)) {
                    Some(mut blocks) => {
                        warnings.add("image_in_text");
                        if let Some(last) = blocks.last_mut() {
                            mark(last, mark_of(&block));
                        }
                        result.content.append(&mut blocks);
                    }
                    None => result.content.push(block),
                }
            }
        }
    }
}

/// The texts of a result that are images, with their places.
fn texts<'a>(result: &ToolResult<'a>) -> Vec<(usize, Cow<'a, str>)> {
    let blocks = result.content.iter().enumerate();
    let texts = blocks.filter_map(|(at, block)| match block {
        Block::Text(text) if may_hide(text.text) => Some((at, text.text.decode())),
        _ => None,
    });
    texts.filter(|(_, text)| read(text).is_some()).collect()
}

/// Whether a text may be one of the shapes. Nearly all are dismissed by their first byte, and
/// nearly all other JSON by its first name.
pub(super) fn may_hide(text: Str<'_>) -> bool {
    let raw = text.raw();
    if !may_begin(raw.as_bytes()) {
        return false;
    }
    let Some(start) = (0..4).find_map(|less| raw.get(..raw.len().min(START).saturating_sub(less)))
    else {
        return false;
    };
    let mut decoded = String::new();
    unescape(&mut decoded, start);
    let start = decoded.trim_start();
    if words::begins(words::trim_start(start, b"\""), "data:image") {
        return text.decoded_len() > URL_MIN;
    }
    let item = start.strip_prefix('[').unwrap_or(start).trim_start();
    let Some(name) = item.strip_prefix('{').and_then(|item| item.trim_start().strip_prefix('"'))
    else {
        return false;
    };
    let name = words::before(name, b"\"");
    NAMES.contains(&name) && words::has(raw, "image")
}

/// Whether a text begins as one of the shapes, as far as it shows before anything is decoded.
fn may_begin(mut raw: &[u8]) -> bool {
    loop {
        raw = match raw {
            // Whatever this stands for.
            [b'\\', b'u', ..] => return true,
            // Quotes and line ends are escapes.
            [b'\\', _, rest @ ..] | [b'[' | b'{' | b' ', rest @ ..] => rest,
            _ => break,
        };
    }
    // Of nearly all texts one byte is compared.
    let begins =
        |name: &str| name.as_bytes().first() == raw.first() && raw.starts_with(name.as_bytes());
    begins("data:") || NAMES.iter().any(|name| begins(name))
}

/// The blocks that a text is. `None` if it is no image, or more than images and the words beside
/// them.
pub(super) fn read(text: &str) -> Option<Vec<Block<'_>>> {
    let text = text.trim();
    let mut reader = Reader::of(text);
    let mut blocks = Vec::new();
    let is_known = match text.as_bytes().first()? {
        b'[' => items(&mut reader, &mut blocks).ok()?,
        b'{' => object(&mut reader, &mut blocks).ok()?,
        _ => return url(text).map(|image| vec![image]),
    };
    reader.end().ok()?;
    if reader.has_halves() {
        // Strict servers refuse half a surrogate pair. In the text it is words about one.
        return None;
    }
    let has_image = blocks.iter().any(|block| matches!(block, Block::Image(_)));
    (is_known && has_image).then_some(blocks)
}

/// The image of a `data:` URL, which may stand in quotes.
fn url(text: &str) -> Option<Block<'_>> {
    let url = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    let (head, data) = words::split_once(url, ",")?;
    // In quotes PHP escapes slashes.
    let head = Str::inside(head)?.decode();
    let is_image = words::begins(&head, "data:image/") && head.ends_with(";base64");
    let is_long = url.len() > URL_MIN && head.len() < START;
    if is_image && is_long { image(Str::inside(data)?) } else { None }
}

/// Reads an array of items; `false` if there is something else in it.
fn items<'t>(reader: &mut Reader<'t>, blocks: &mut Vec<Block<'t>>) -> Result<bool, Error> {
    reader.begin_array()?;
    let mut count: usize = 0;
    while reader.next_element()? {
        if count == ITEMS_MAX {
            return Ok(false);
        }
        count = count.saturating_add(1);
        let Some(block) = Object::read(reader, None)?.and_then(Object::item) else {
            return Ok(false);
        };
        // Strict servers refuse a text that says nothing.
        if !is_blank(&block) {
            blocks.push(block);
        }
    }
    Ok(true)
}

/// Reads an item, or an object that has items; `false` if it is something else.
fn object<'t>(reader: &mut Reader<'t>, blocks: &mut Vec<Block<'t>>) -> Result<bool, Error> {
    let Some(object) = Object::read(reader, Some(blocks))? else { return Ok(false) };
    if object.is_list {
        return Ok(object.kind.is_none() && object.data.is_none() && object.text.is_none());
    }
    let item = object.item();
    let is_item = item.is_some();
    blocks.extend(item);
    Ok(is_item)
}

/// The members of an object that MCP knows.
#[derive(Default)]
struct Object<'t> {
    kind: Option<Str<'t>>,
    data: Option<Str<'t>>,
    text: Option<Str<'t>>,
    /// True if the object has `content`.
    is_list: bool,
}

impl<'t> Object<'t> {
    /// Reads an object; its `content` goes to `blocks`, where it may have one. `None` if it has a
    /// member more or one of another type.
    fn read(
        reader: &mut Reader<'t>,
        mut blocks: Option<&mut Vec<Block<'t>>>,
    ) -> Result<Option<Self>, Error> {
        let mut object = Self::default();
        reader.begin_object()?;
        while let Some(key) = reader.next_key()? {
            let to = match &*key.decode() {
                "type" => &mut object.kind,
                "data" => &mut object.data,
                "text" => &mut object.text,
                "mimeType" => {
                    reader.string()?;
                    continue;
                }
                // Of a failure nothing is to be lost.
                "isError" if !reader.bool()? => continue,
                "annotations" | "_meta" => {
                    reader.skip()?;
                    continue;
                }
                "content" => {
                    // No item has items, and no object has them twice.
                    let Some(blocks) = blocks.take() else { return Ok(None) };
                    if !items(reader, blocks)? {
                        return Ok(None);
                    }
                    object.is_list = true;
                    continue;
                }
                _ => return Ok(None),
            };
            if to.replace(reader.string()?).is_some() {
                return Ok(None);
            }
        }
        Ok(Some(object))
    }

    /// The block of an item.
    fn item(self) -> Option<Block<'t>> {
        let Self { kind, data, text, is_list: false } = self else { return None };
        match (&*kind?.decode(), data, text) {
            ("image", Some(data), None) => image(data),
            ("text", None, Some(text)) => {
                Some(Block::Text(Text { text, cached: None, cited: false }))
            }
            _ => None,
        }
    }
}

/// An image of base64, if its first bytes are those of one that models take.
fn image(data: Str<'_>) -> Option<Block<'_>> {
    let media_type = Str::plain(image_type::of(data)?);
    is_base64(&data.decode()).then(|| {
        // Only an address has an error to name its place in.
        let source = ImageSource::Base64 { media_type, data };
        Block::Image(Box::new(Image { at: 0, source, cached: None }))
    })
}

/// Returns true if `data` is base64 of a length that an image can have.
fn is_base64(data: &str) -> bool {
    if data.len() < DATA_MIN || !data.len().is_multiple_of(4) {
        return false;
    }
    let bare = data.strip_suffix("==").or_else(|| data.strip_suffix('=')).unwrap_or(data);
    bare.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
}

/// Whether and how the client wants the prompt cached up to a text.
fn mark_of(block: &Block<'_>) -> Option<CacheMark> {
    if let Block::Text(text) = block { text.cached } else { None }
}

fn mark(block: &mut Block<'_>, mark: Option<CacheMark>) {
    match block {
        Block::Text(text) => text.cached = mark,
        Block::Image(image) => image.cached = mark,
        _ => {}
    }
}
