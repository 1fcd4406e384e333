//! Readers of content blocks, one for each kind of block. A first pass finds the member `type`,
//! which may come last in a block.

use super::{
    Block, DocumentBlock, DocumentSource, Image, ImageSource, SearchResult, ServerResultKind,
    ServerToolResult, ServerToolUse, Text, TextCitations, ToolResult, ToolUse,
};
use crate::json::{Raw, Str, ValueKind};
use crate::model::limits::Many;
use crate::model::source::{BodySource, Read, bad_tag, expected, required};
use crate::model::tool::ToolChange;

/// Number of blocks in one list above which the list's unused capacity is freed.
const MANY_BLOCKS: usize = 1_000;

/// Container of a block, which decides what types of blocks are allowed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockParent {
    /// Block in a message.
    Message,
    /// Block in a tool result.
    Result,
    /// Block in a document. Only texts and images are allowed, so blocks cannot be nested any
    /// deeper.
    Document,
    /// Block in a search result. Only texts are allowed.
    SearchResult,
}

impl BlockParent {
    /// Returns the allowed block types, as the real Messages API lists them in its error message.
    pub(crate) fn tags(self) -> &'static str {
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

impl<'a> BodySource<'a, '_> {
    /// Reads a `content` member: a string, which becomes one text block, or an array of blocks.
    pub(crate) fn content(&mut self, place: BlockParent) -> Read<Vec<Block<'a>>> {
        match self.reader.kind()? {
            ValueKind::String => {
                let text = self.reader.string()?;
                if place == BlockParent::Message && text.is_empty() {
                    return Ok(Vec::new());
                }
                Ok(vec![Block::Text(Text { text, cached: None, citations: None })])
            }
            ValueKind::Array => {
                let mut blocks = Vec::new();
                self.array(Many::Blocks, |source| {
                    blocks.push(source.block(place)?);
                    Ok(())
                })?;
                if blocks.len() > MANY_BLOCKS {
                    blocks.shrink_to_fit();
                }
                Ok(blocks)
            }
            found => Err(expected("a string or an array", found)),
        }
    }

    fn content_into(&mut self, to: &mut Option<Vec<Block<'a>>>, place: BlockParent) -> Read<bool> {
        *to = Some(self.content(place)?);
        Ok(true)
    }

    pub(crate) fn block(&mut self, place: BlockParent) -> Read<Block<'a>> {
        let tag = self.tag()?;
        let start = self.retry_from();
        match self.block_of(tag, place) {
            // Tool calls and tool results without ids cannot be paired.
            Err(error) if !(tag == "tool_use" || tag == "tool_result") => {
                self.skip_unread(start, error).map(|_| Block::Unknown(tag))
            }
            block => block,
        }
    }

    fn block_of(&mut self, tag: Str<'a>, place: BlockParent) -> Read<Block<'a>> {
        let at = self.reader.offset();
        let name = tag.decode();
        match (name.as_ref(), place) {
            ("text", _) => self.text(),
            (_, BlockParent::SearchResult) => Err(bad_tag(tag, place.tags())),
            ("image", _) => self.image(at),
            (_, BlockParent::Document) => Err(bad_tag(tag, place.tags())),
            ("document", _) => self.document(at),
            ("search_result", _) => self.search_result(),
            ("tool_reference", _) => self.tool_reference(),
            ("browser_state", _) => self.browser_state(),
            // Blocks of all other types are not allowed in the result of a client's tool.
            (_, BlockParent::Result) => Err(bad_tag(tag, place.tags())),
            ("tool_use", _) => self.tool_use(at),
            ("tool_result", _) => self.tool_result(at),
            ("thinking", _) => self.thinking(),
            ("redacted_thinking", _) => {
                let mut data = None;
                self.tagged(|source, key| match key {
                    "data" => source.string(&mut data),
                    _ => Ok(false),
                })?;
                Ok(Block::RedactedThinking(data.unwrap_or_default()))
            }
            ("server_tool_use", _) => self.server_tool_use(at, false),
            ("mcp_tool_use", _) => self.server_tool_use(at, true),
            ("compaction", _) => self.compaction(),
            ("tool_addition" | "tool_removal", _) => self.tool_change(),
            ("container_upload", _) => self.skip().map(|_| Block::ContainerUpload),
            ("fallback" | "mcp_tool_listing", _) => self.skip().map(|_| Block::Note),
            (name, _) if name.ends_with("_tool_result") => self.server_tool_result(name),
            _ => self.skip().map(|_| Block::Unknown(tag)),
        }
    }

    fn text(&mut self) -> Read<Block<'a>> {
        let (mut text, mut citations) = (None, None);
        let mut cached = None;
        self.tagged(|source, key| match key {
            "text" => source.string(&mut text),
            "citations" => {
                let json = source.raw_of(ValueKind::Array)?;
                let has_some = json.bytes().any(|byte| byte == b'{');
                citations = has_some.then(|| Box::new(TextCitations { json, marks: Vec::new() }));
                Ok(true)
            }
            _ => source.cacheable(key, &mut cached),
        })?;
        Ok(Block::Text(Text { text: required(text, "text")?, cached, citations }))
    }

    fn image(&mut self, at: usize) -> Read<Block<'a>> {
        let mut image = None;
        let mut cached = None;
        self.tagged(|source, key| match key {
            "source" => {
                image = Some(source.image_source()?);
                Ok(true)
            }
            "transformations" => source.ignore(ValueKind::Object),
            _ => source.cacheable(key, &mut cached),
        })?;
        let source = required(image, "source")?;
        Ok(Block::Image(Box::new(Image { at, source, cached })))
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
                self.tagged(|source, key| match key {
                    "url" => source.string(&mut url),
                    _ => Ok(false),
                })?;
                Ok(ImageSource::Url(required(url, "url")?))
            }
            "file" => self.skip().map(|_| ImageSource::File),
            _ => Err(bad_tag(tag, "'base64', 'file', 'url'")),
        }
    }

    fn base64(&mut self) -> Read<(Str<'a>, Str<'a>)> {
        let (mut media_type, mut data) = (None, None);
        self.tagged(|source, key| match key {
            "media_type" => source.string(&mut media_type),
            "data" => source.string(&mut data),
            _ => Ok(false),
        })?;
        Ok((required(media_type, "media_type")?, required(data, "data")?))
    }

    fn document(&mut self, at: usize) -> Read<Block<'a>> {
        let (mut document, mut title, mut context) = (None, None, None);
        let mut cached = None;
        self.tagged(|source, key| match key {
            "source" => {
                document = Some(source.document_source()?);
                Ok(true)
            }
            "title" => source.string(&mut title),
            "context" => source.string(&mut context),
            "citations" => source.ignore(ValueKind::Object),
            _ => source.cacheable(key, &mut cached),
        })?;
        let source = required(document, "source")?;
        Ok(Block::Document(Box::new(DocumentBlock { at, source, title, context, cached })))
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
                self.tagged(|source, key| match key {
                    "content" => source.content_into(&mut content, BlockParent::Document),
                    _ => Ok(false),
                })?;
                Ok(DocumentSource::Content(required(content, "content")?))
            }
            "url" => {
                let mut url = None;
                self.tagged(|source, key| match key {
                    "url" => source.string(&mut url),
                    _ => Ok(false),
                })?;
                Ok(DocumentSource::Url(required(url, "url")?))
            }
            "file" => self.skip().map(|_| DocumentSource::File),
            _ => Err(bad_tag(tag, "'base64', 'content', 'file', 'text', 'url'")),
        }
    }

    fn search_result(&mut self) -> Read<Block<'a>> {
        let (mut found_at, mut title, mut content) = (None, None, None);
        self.tagged(|source, key| match key {
            "source" => source.string(&mut found_at),
            "title" => source.string(&mut title),
            "content" => source.content_into(&mut content, BlockParent::SearchResult),
            "citations" => source.ignore(ValueKind::Object),
            _ => source.cacheable(key, &mut None),
        })?;
        Ok(Block::SearchResult(Box::new(SearchResult {
            source: required(found_at, "source")?,
            title: required(title, "title")?,
            content: required(content, "content")?,
        })))
    }

    fn tool_reference(&mut self) -> Read<Block<'a>> {
        let mut name = None;
        self.tagged(|source, key| match key {
            "tool_name" => source.string(&mut name),
            _ => source.cacheable(key, &mut None),
        })?;
        Ok(Block::ToolReference(required(name, "tool_name")?))
    }

    fn browser_state(&mut self) -> Read<Block<'a>> {
        let (mut tabs, mut changes) = ("", "");
        self.tagged(|source, key| {
            match key {
                "tabs" => tabs = source.raw_of(ValueKind::Array)?,
                "state_changes" => changes = source.raw_of(ValueKind::Array)?,
                _ => return source.cacheable(key, &mut None),
            }
            Ok(true)
        })?;
        Ok(Block::BrowserState { tabs, changes })
    }

    fn tool_use(&mut self, at: usize) -> Read<Block<'a>> {
        self.count(Many::Calls, at)?;
        let (mut id, mut name, mut toolset, mut input) = (None, None, None, None);
        self.tagged(|source, key| match key {
            "id" => source.string(&mut id),
            "name" => source.string(&mut name),
            "toolset_name" => source.string(&mut toolset),
            "input" => {
                input = Some(source.reader.raw()?);
                Ok(true)
            }
            "caller" => source.ignore(ValueKind::Object),
            _ => source.cacheable(key, &mut None),
        })?;
        if name.is_none() && self.is_lenient {
            self.has_unread = true;
            name = Some(Str::default());
        }
        let (id, name) = (required(id, "id")?, required(name, "name")?);
        if input.is_none() && !self.warnings.strict() {
            self.warnings.add("tool_input_not_object");
            input = Some(Raw::of("{}"));
        }
        let input = required(input, "input")?;
        let call = ToolUse { at, id, name, toolset, input, cleared: false, is_server: false };
        Ok(Block::ToolUse(Box::new(call)))
    }

    fn tool_result(&mut self, at: usize) -> Read<Block<'a>> {
        self.count(Many::Results, at)?;
        let (mut id, mut content, mut is_error) = (None, None, false);
        let mut cached = None;
        self.tagged(|source, key| match key {
            "toolset_name" => source.ignore(ValueKind::String),
            "tool_use_id" => source.string(&mut id),
            "content" => source.content_into(&mut content, BlockParent::Result),
            "is_error" => source.bool(&mut is_error),
            _ => source.cacheable(key, &mut cached),
        })?;
        let mut content = content.unwrap_or_default();
        // Move a `cache_control` of the result to its last block: both mark the same end of the
        // prompt.
        if let Some(Block::Text(last)) = content.last_mut() {
            last.cached = cached.or(last.cached);
        }
        let id = required(id, "tool_use_id")?;
        Ok(Block::ToolResult(Box::new(ToolResult { id, content, is_error, cleared: false })))
    }

    fn thinking(&mut self) -> Read<Block<'a>> {
        let (mut thinking, mut signature) = (None, None);
        self.tagged(|source, key| match key {
            "thinking" => source.string(&mut thinking),
            "signature" => source.string(&mut signature),
            _ => Ok(false),
        })?;
        // The signature of thinking is absent if a client keeps only what it shows to the user.
        let signature = signature.unwrap_or_default();
        // Clients may store only what came in deltas: for hidden thinking, the signature without
        // text.
        if thinking.is_none() && !signature.is_empty() && !self.warnings.strict() {
            thinking = Some(Str::default());
        }
        Ok(Block::Thinking { thinking: required(thinking, "thinking")?, signature })
    }

    fn server_tool_use(&mut self, at: usize, is_mcp: bool) -> Read<Block<'a>> {
        let (mut id, mut name, mut server, mut input) = (None, None, None, "{}");
        self.tagged(|source, key| match key {
            "id" => source.string(&mut id),
            "server_name" => source.string(&mut server),
            "name" => source.string(&mut name),
            "input" => source.raw(&mut input),
            "caller" => source.ignore(ValueKind::Object),
            _ => source.cacheable(key, &mut None),
        })?;
        let (id, name) = (id.unwrap_or_default(), required(name, "name")?);
        let (server, input) = (is_mcp.then(|| server.unwrap_or_default()), Raw::of(input));
        Ok(Block::ServerToolUse(Box::new(ServerToolUse { at, id, name, server, input })))
    }

    fn server_tool_result(&mut self, tag: &str) -> Read<Block<'a>> {
        let (mut id, mut content, mut is_error) = (None, "", false);
        self.tagged(|source, key| match key {
            "tool_use_id" => source.string(&mut id),
            "content" => source.raw(&mut content),
            "is_error" => source.bool(&mut is_error),
            "caller" => source.ignore(ValueKind::Object),
            _ => source.cacheable(key, &mut None),
        })?;
        let kind = match tag {
            "web_search_tool_result" => ServerResultKind::WebSearch,
            "web_fetch_tool_result" => ServerResultKind::WebFetch,
            "mcp_tool_result" => ServerResultKind::Mcp,
            "tool_search_tool_result" => ServerResultKind::ToolSearch,
            _ => ServerResultKind::Other,
        };
        let id = id.unwrap_or_default();
        let result = ServerToolResult { id, kind, content, is_error, first_page: 0 };
        Ok(Block::ServerToolResult(Box::new(result)))
    }

    fn compaction(&mut self) -> Read<Block<'a>> {
        let (mut content, mut changes) = (None, Vec::new());
        self.tagged(|source, key| match key {
            "encrypted_content" | "signature" => source.ignore(ValueKind::String),
            "content" => source.string(&mut content),
            "tool_changes" => {
                source.array(Many::Blocks, |source| {
                    source.tag()?;
                    if let Block::ToolChange(change) = source.tool_change()? {
                        changes.push(*change);
                    }
                    Ok(())
                })?;
                Ok(true)
            }
            _ => source.cacheable(key, &mut None),
        })?;
        Ok(Block::Compaction { content, changes })
    }

    fn tool_change(&mut self) -> Read<Block<'a>> {
        let tag = self.tag()?;
        let addition = tag == "tool_addition";
        if !addition && tag != "tool_removal" {
            return Err(bad_tag(tag, "'tool_addition', 'tool_removal'"));
        }
        let mut change = None;
        self.tagged(|source, key| match key {
            "tool" => {
                change = Some(ToolChange::read(source, addition)?);
                Ok(true)
            }
            _ => source.cacheable(key, &mut None),
        })?;
        Ok(Block::ToolChange(Box::new(required(change, "tool")?)))
    }
}
