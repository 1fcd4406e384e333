//! Detection of images in the texts of tool results. Many clients and bridges pass an MCP server's
//! result on as JSON text, or an image as a `data:` URL. A model cannot see the image in such a
//! text, which costs as many tokens as a book.
//!
//! A text is converted only if the whole text has one of these shapes, so that no words are lost:
//!
//! - an item of MCP's content, `{"type": "image", "data": "…", "mimeType": "…"}`, or an array of
//!   items;
//! - an object with an array of items as its `content`, and no other members than those that MCP
//!   defines;
//! - a `data:` URL of an image, also in quotes, that is longer than [`URL_MIN`].
//!
//! The conversion of a text depends on the text alone. So the beginning of a later request equals
//! the earlier request, and the upstream's prompt cache stays valid.

use std::borrow::Cow;

use super::blanks::is_blank;
use crate::config::Settings;
use crate::json::{Error, Reader, Str, unescape};
use crate::model::{
    Block, CacheMark, Image, ImageSource, Request, Role, Text, ToolResult, image_type,
};
use crate::observe::warning::Warnings;
use crate::text::words;

/// Minimum length of a `data:` URL that counts as an image. A shorter URL may be an icon in a
/// tool's text about a page.
const URL_MIN: usize = 8_192;

/// Maximum number of items in an array. No server sends more; a longer array stays a text.
const ITEMS_MAX: usize = 1_000;

/// Minimum length of an image in base64. Only an image that a tool has cut off may be shorter.
const DATA_MIN: usize = 32;

/// Number of bytes at the beginning of a text that are inspected to rule the text out. The brackets
/// and the first name fit in.
const START: usize = 96;

/// Names of the members with which an MCP object can begin.
const NAMES: [&str; 8] =
    ["type", "data", "mimeType", "text", "content", "isError", "annotations", "_meta"];

/// Texts of tool results that are images, found in one request.
#[derive(Default)]
pub(crate) struct Hidden<'a>(Vec<InResult<'a>>);

/// Texts of one tool result that are images.
struct InResult<'a> {
    message: usize,
    block: usize,
    is_error: bool,
    /// Index of each text in the result's content, and the text, in order.
    texts: Vec<(usize, Cow<'a, str>)>,
}

impl<'a> Hidden<'a> {
    /// Finds texts that are images in the tool results of a request, unless the configuration turns
    /// the search off.
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

    /// Removes texts of tool results that report an error, in which the Messages API allows only
    /// texts.
    pub(crate) fn outside_errors(mut self) -> Self {
        self.0.retain(|found| !found.is_error);
        self
    }

    /// Replaces the texts that are images by image blocks.
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

/// Returns the texts of a tool result that are images, with their indexes in its content.
fn texts<'a>(result: &ToolResult<'a>) -> Vec<(usize, Cow<'a, str>)> {
    let blocks = result.content.iter().enumerate();
    let texts = blocks.filter_map(|(at, block)| match block {
        Block::Text(text) if may_hide(text.text) => Some((at, text.text.decode())),
        _ => None,
    });
    texts.filter(|(_, text)| read(text).is_some()).collect()
}

/// Returns true if a text may contain images. Nearly all texts are ruled out by their first byte,
/// and nearly all JSON by its first name.
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

/// Returns true if a text's first bytes, before JSON escapes are decoded, fit a text that may
/// contain images.
fn may_begin(mut raw: &[u8]) -> bool {
    loop {
        raw = match raw {
            // An escape `\u…` may stand for any character, also one with which an image's text
            // begins.
            [b'\\', b'u', ..] => return true,
            // Quotes and line ends are written as JSON escapes.
            [b'\\', _, rest @ ..] | [b'[' | b'{' | b' ', rest @ ..] => rest,
            _ => break,
        };
    }
    // Fast path: only one byte is compared for nearly all texts.
    let begins =
        |name: &str| name.as_bytes().first() == raw.first() && raw.starts_with(name.as_bytes());
    begins("data:") || NAMES.iter().any(|name| begins(name))
}

/// Parses a text into blocks. Returns `None` if the text has no image, or more than images and the
/// texts beside them.
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
        // Strict servers refuse half a surrogate pair. Within the JSON text, the escape is
        // harmless.
        return None;
    }
    let has_image = blocks.iter().any(|block| matches!(block, Block::Image(_)));
    (is_known && has_image).then_some(blocks)
}

/// Returns the image of a `data:` URL, which may be in quotes.
fn url(text: &str) -> Option<Block<'_>> {
    let url = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    let (head, data) = words::split_once(url, ",")?;
    // PHP escapes slashes within quotes.
    let head = Str::inside(head)?.decode();
    let is_image = words::begins(&head, "data:image/") && head.ends_with(";base64");
    let is_long = url.len() > URL_MIN && head.len() < START;
    if is_image && is_long { image(Str::inside(data)?) } else { None }
}

/// Reads an array of MCP content items. Returns false if the array has anything else.
fn items<'t>(reader: &mut Reader<'t>, blocks: &mut Vec<Block<'t>>) -> Result<bool, Error> {
    reader.begin_array()?;
    let mut count: usize = 0;
    while reader.next_element()? {
        if count == ITEMS_MAX {
            return Ok(false);
        }
        count = count.saturating_add(1);
        let Some(block) = McpObject::read(reader, None)?.and_then(McpObject::item) else {
            return Ok(false);
        };
        // Strict servers refuse blank texts.
        if !is_blank(&block) {
            blocks.push(block);
        }
    }
    Ok(true)
}

/// Reads an MCP content item, or an object with a list of items. Returns false for anything else.
fn object<'t>(reader: &mut Reader<'t>, blocks: &mut Vec<Block<'t>>) -> Result<bool, Error> {
    let Some(object) = McpObject::read(reader, Some(blocks))? else { return Ok(false) };
    if object.is_list {
        return Ok(object.kind.is_none() && object.data.is_none() && object.text.is_none());
    }
    let item = object.item();
    let is_item = item.is_some();
    blocks.extend(item);
    Ok(is_item)
}

/// Members of an object that MCP defines.
#[derive(Default)]
struct McpObject<'t> {
    kind: Option<Str<'t>>,
    data: Option<Str<'t>>,
    text: Option<Str<'t>>,
    /// True if the object has a member `content`.
    is_list: bool,
}

impl<'t> McpObject<'t> {
    /// Reads an object, and adds the blocks of its `content` to `blocks` if `content` is allowed.
    /// Returns `None` if the object has an unknown member.
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
                // An error result stays a text, so that nothing is lost.
                "isError" if !reader.bool()? => continue,
                "annotations" | "_meta" => {
                    reader.skip()?;
                    continue;
                }
                "content" => {
                    // An item cannot contain items, and an object has at most one list.
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

    /// Returns the block for an MCP content item.
    fn item(self) -> Option<Block<'t>> {
        let Self { kind, data, text, is_list: false } = self else { return None };
        match (&*kind?.decode(), data, text) {
            ("image", Some(data), None) => image(data),
            ("text", None, Some(text)) => {
                Some(Block::Text(Text { text, cached: None, citations: None }))
            }
            _ => None,
        }
    }
}

/// Returns an image block for base64 data, if its first bytes are those of a supported image type.
fn image(data: Str<'_>) -> Option<Block<'_>> {
    let media_type = Str::plain(image_type::of(data)?);
    is_base64(&data.decode()).then(|| {
        // The offset is only used for errors about a URL.
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

/// Returns the `cache_control` mark of a text block, if any.
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
