//! How blocks are read. `type` may be the last member of a block, so it is looked for first; what follows
//! knows which members belong to that kind of block.

use super::{
    Block, Document, DocumentSource, Image, ImageSource, SearchResult, Text, ToolResult, ToolUse,
};
use crate::anthropic::source::{Read, Source, bad_tag, expected, required};
use crate::anthropic::tool::ToolChange;
use crate::json::{Kind, Raw, Str};

/// Where a block stands, which decides what may be in it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::anthropic) enum Place {
    /// In a message.
    Message,
    /// In a tool result.
    Result,
    /// In a document: only texts and images. So blocks cannot be nested any deeper.
    Document,
    /// In a search result: only texts.
    SearchResult,
}

impl Place {
    /// The types that the real API would name in its error.
    pub(in crate::anthropic) fn tags(self) -> &'static str {
        match self {
            Self::Message => {
                "'document', 'image', 'redacted_thinking', 'search_result', 'server_tool_use', \
                 'text', 'thinking', 'tool_result', 'tool_use', 'web_search_tool_result'"
            }
            Self::Result => "'document', 'image', 'search_result', 'text', 'tool_reference'",
            Self::Document => "'image', 'text'",
            Self::SearchResult => "'text'",
        }
    }
}

impl<'a> Source<'a, '_> {
    /// A string, which is one text block, or an array of blocks.
    pub(in crate::anthropic) fn content(&mut self, place: Place) -> Read<Vec<Block<'a>>> {
        match self.reader.kind()? {
            Kind::String => {
                let text = self.string()?;
                if place == Place::Message && text.is_empty() {
                    return Ok(Vec::new());
                }
                Ok(vec![Block::Text(Text { text, cached: false, cited: false })])
            }
            Kind::Array => {
                let mut blocks = Vec::new();
                self.array(|source| {
                    blocks.push(source.block(place)?);
                    Ok(())
                })?;
                Ok(blocks)
            }
            found => Err(expected("a string or an array", found).into()),
        }
    }

    pub(in crate::anthropic) fn block(&mut self, place: Place) -> Read<Block<'a>> {
        let tag = self.tag()?;
        let at = self.reader.offset();
        let name = tag.decode();
        match (name.as_ref(), place) {
            ("text", _) => Ok(Block::Text(self.text()?)),
            (_, Place::SearchResult) => Err(bad_tag(tag, place.tags()).into()),
            ("image", _) => Ok(Block::Image(self.image(at)?)),
            (_, Place::Document) => Err(bad_tag(tag, place.tags()).into()),
            ("document", _) => Ok(Block::Document(self.document(at)?)),
            ("search_result", _) => self.search_result(),
            ("tool_reference", _) => self.tool_reference(),
            ("browser_state", _) => self.browser_state(),
            // The other blocks cannot be results of a client's tool.
            (_, Place::Result) => Err(bad_tag(tag, place.tags()).into()),
            ("tool_use", _) => self.tool_use(at),
            ("tool_result", _) => self.tool_result(),
            ("thinking", _) => self.thinking(),
            ("redacted_thinking", _) => {
                let mut data = Str::default();
                self.object(|source, key| {
                    match key {
                        "type" => return source.ignore(Kind::String),
                        "data" => data = source.string()?,
                        _ => return Ok(false),
                    }
                    Ok(true)
                })?;
                Ok(Block::RedactedThinking(data))
            }
            ("server_tool_use" | "mcp_tool_use", _) => self.server_tool_use(),
            ("compaction", _) => self.compaction(),
            ("tool_addition" | "tool_removal", _) => self.tool_change(),
            ("container_upload", _) => {
                self.raw()?;
                Ok(Block::ContainerUpload)
            }
            ("fallback" | "mcp_tool_listing", _) => {
                self.raw()?;
                Ok(Block::Note)
            }
            (name, _) if name.ends_with("_tool_result") => self.server_tool_result(name),
            _ => {
                self.raw()?;
                Ok(Block::Unknown(tag))
            }
        }
    }

    fn text(&mut self) -> Read<Text<'a>> {
        let (mut text, mut cached, mut cited) = (None, false, false);
        self.object(|source, key| {
            match key {
                "type" => return source.ignore(Kind::String),
                "text" => text = Some(source.string()?),
                "cache_control" => cached = source.cache_control()?,
                "citations" => {
                    let array = source.raw_of(Kind::Array)?;
                    cited = array.bytes().any(|byte| byte == b'{');
                }
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(Text { text: required(text, "text")?, cached, cited })
    }

    fn image(&mut self, at: usize) -> Read<Image<'a>> {
        let (mut image, mut cached) = (None, false);
        self.object(|source, key| {
            match key {
                "type" => return source.ignore(Kind::String),
                "source" => image = Some(source.image_source()?),
                "cache_control" => cached = source.cache_control()?,
                "transformations" => return source.ignore(Kind::Object),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(Image { at, source: required(image, "source")?, cached })
    }

    fn image_source(&mut self) -> Read<ImageSource<'a>> {
        let tag = self.tag()?;
        match tag.decode().as_ref() {
            "base64" => {
                let (media_type, data) = self.base64()?;
                Ok(ImageSource::Base64 { media_type, data })
            }
            "url" => {
                let mut url = None;
                self.object(|source, key| {
                    match key {
                        "type" => return source.ignore(Kind::String),
                        "url" => url = Some(source.string()?),
                        _ => return Ok(false),
                    }
                    Ok(true)
                })?;
                Ok(ImageSource::Url(required(url, "url")?))
            }
            "file" => {
                self.raw()?;
                Ok(ImageSource::File)
            }
            _ => Err(bad_tag(tag, "'base64', 'file', 'url'").into()),
        }
    }

    fn base64(&mut self) -> Read<(Str<'a>, Str<'a>)> {
        let (mut media_type, mut data) = (None, None);
        self.object(|source, key| {
            match key {
                "type" => return source.ignore(Kind::String),
                "media_type" => media_type = Some(source.string()?),
                "data" => data = Some(source.string()?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok((required(media_type, "media_type")?, required(data, "data")?))
    }

    fn document(&mut self, at: usize) -> Read<Document<'a>> {
        let (mut document, mut title, mut context, mut cached) = (None, None, None, false);
        self.object(|source, key| {
            match key {
                "type" => return source.ignore(Kind::String),
                "source" => document = Some(source.document_source()?),
                "title" => title = Some(source.string()?),
                "context" => context = Some(source.string()?),
                "cache_control" => cached = source.cache_control()?,
                "citations" => return source.ignore(Kind::Object),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(Document { at, source: required(document, "source")?, title, context, cached })
    }

    fn document_source(&mut self) -> Read<DocumentSource<'a>> {
        let tag = self.tag()?;
        match tag.decode().as_ref() {
            "base64" => {
                let (media_type, data) = self.base64()?;
                Ok(DocumentSource::Base64 { media_type, data })
            }
            "text" => Ok(DocumentSource::Text(self.base64()?.1)),
            "content" => {
                let mut content = None;
                self.object(|source, key| {
                    match key {
                        "type" => return source.ignore(Kind::String),
                        "content" => content = Some(source.content(Place::Document)?),
                        _ => return Ok(false),
                    }
                    Ok(true)
                })?;
                Ok(DocumentSource::Content(required(content, "content")?))
            }
            "url" => {
                self.raw()?;
                Ok(DocumentSource::Url)
            }
            "file" => {
                self.raw()?;
                Ok(DocumentSource::File)
            }
            _ => Err(bad_tag(tag, "'base64', 'content', 'file', 'text', 'url'").into()),
        }
    }

    fn search_result(&mut self) -> Read<Block<'a>> {
        let (mut found_at, mut title, mut content) = (None, None, None);
        self.object(|source, key| {
            match key {
                "type" => return source.ignore(Kind::String),
                "source" => found_at = Some(source.string()?),
                "title" => title = Some(source.string()?),
                "content" => content = Some(source.content(Place::SearchResult)?),
                "cache_control" => return source.cache_control(),
                "citations" => return source.ignore(Kind::Object),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(Block::SearchResult(SearchResult {
            source: required(found_at, "source")?,
            title: required(title, "title")?,
            content: required(content, "content")?,
        }))
    }

    fn tool_reference(&mut self) -> Read<Block<'a>> {
        let mut name = None;
        self.object(|source, key| {
            match key {
                "type" => return source.ignore(Kind::String),
                "tool_name" => name = Some(source.string()?),
                "cache_control" => return source.cache_control(),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(Block::ToolReference(required(name, "tool_name")?))
    }

    fn browser_state(&mut self) -> Read<Block<'a>> {
        let (mut tabs, mut changes) = ("", "");
        self.object(|source, key| {
            match key {
                "type" => return source.ignore(Kind::String),
                "tabs" => tabs = source.raw_of(Kind::Array)?,
                "state_changes" => changes = source.raw_of(Kind::Array)?,
                "cache_control" => return source.cache_control(),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(Block::BrowserState { tabs, changes })
    }

    fn tool_use(&mut self, at: usize) -> Read<Block<'a>> {
        let (mut id, mut name, mut toolset, mut input) = (None, None, None, None);
        self.object(|source, key| {
            match key {
                "type" => return source.ignore(Kind::String),
                "id" => id = Some(source.string()?),
                "name" => name = Some(source.string()?),
                "toolset_name" => toolset = Some(source.string()?),
                "input" => input = Some(source.reader.raw()?),
                "cache_control" => return source.cache_control(),
                "caller" => return source.ignore(Kind::Object),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        let (id, name) = (required(id, "id")?, required(name, "name")?);
        if input.is_none() && !self.warnings.strict() {
            self.warnings.add("tool_input_not_object");
            input = Some(Raw::of("{}"));
        }
        let input = required(input, "input")?;
        Ok(Block::ToolUse(ToolUse { at, id, name, toolset, input }))
    }

    fn tool_result(&mut self) -> Read<Block<'a>> {
        let (mut id, mut content, mut is_error) = (None, Vec::new(), false);
        let mut cached = false;
        self.object(|source, key| {
            match key {
                "type" | "toolset_name" => return source.ignore(Kind::String),
                "tool_use_id" => id = Some(source.string()?),
                "content" => content = source.content(Place::Result)?,
                "is_error" => is_error = source.reader.bool()?,
                "cache_control" => cached = source.cache_control()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        // The prompt ends with the last block either way.
        if let Some(Block::Text(last)) = content.last_mut() {
            last.cached |= cached;
        }
        Ok(Block::ToolResult(ToolResult { id: required(id, "tool_use_id")?, content, is_error }))
    }

    fn thinking(&mut self) -> Read<Block<'a>> {
        let (mut thinking, mut signature) = (None, Str::default());
        self.object(|source, key| {
            match key {
                "type" => return source.ignore(Kind::String),
                "thinking" => thinking = Some(source.string()?),
                // Absent where a client keeps only what it shows.
                "signature" => signature = source.string()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        // Some clients keep only what came in deltas: the signature of a block that is not shown.
        if thinking.is_none() && !signature.is_empty() && !self.warnings.strict() {
            thinking = Some(Str::default());
        }
        Ok(Block::Thinking { thinking: required(thinking, "thinking")?, signature })
    }

    fn server_tool_use(&mut self) -> Read<Block<'a>> {
        let (mut name, mut input) = (None, "{}");
        self.object(|source, key| {
            match key {
                "type" | "id" | "server_name" => return source.ignore(Kind::String),
                "name" => name = Some(source.string()?),
                "input" => input = source.raw()?,
                "cache_control" => return source.cache_control(),
                "caller" => return source.ignore(Kind::Object),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(Block::ServerToolUse { name: required(name, "name")?, input })
    }

    fn server_tool_result(&mut self, tag: &str) -> Read<Block<'a>> {
        let (mut content, mut is_error) = ("", false);
        self.object(|source, key| {
            match key {
                "type" | "tool_use_id" => return source.ignore(Kind::String),
                "content" => content = source.raw()?,
                "is_error" => is_error = source.reader.bool()?,
                "cache_control" => return source.cache_control(),
                "caller" => return source.ignore(Kind::Object),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        let tool_search = tag == "tool_search_tool_result";
        Ok(Block::ServerToolResult { content, tool_search, is_error })
    }

    fn compaction(&mut self) -> Read<Block<'a>> {
        let (mut content, mut changes) = (None, Vec::new());
        self.object(|source, key| {
            match key {
                "type" | "encrypted_content" | "signature" => return source.ignore(Kind::String),
                "content" => content = Some(source.string()?),
                "tool_changes" => source.array(|source| {
                    source.tag()?;
                    if let Block::ToolChange(change) = source.tool_change()? {
                        changes.push(*change);
                    }
                    Ok(())
                })?,
                "cache_control" => return source.cache_control(),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(Block::Compaction { content, changes })
    }

    fn tool_change(&mut self) -> Read<Block<'a>> {
        let tag = self.tag()?;
        let addition = tag == "tool_addition";
        if !addition && tag != "tool_removal" {
            return Err(bad_tag(tag, "'tool_addition', 'tool_removal'").into());
        }
        let mut change = None;
        self.object(|source, key| {
            match key {
                "type" => return source.ignore(Kind::String),
                "tool" => change = Some(ToolChange::read(source, addition)?),
                "cache_control" => return source.cache_control(),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(Block::ToolChange(Box::new(required(change, "tool")?)))
    }
}
