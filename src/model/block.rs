//! Content blocks of the Messages API: those of requests, and those of answers, which clients send
//! back.

mod read;

use super::cache_mark::CacheMark;
use super::image_type;
use super::tool::ToolChange;
use crate::json::{Raw, Str};
use crate::text::words;
pub(crate) use read::BlockParent;

/// Content block. A request can have many small ones, so large variants are boxed.
#[derive(Debug)]
pub(crate) enum Block<'a> {
    /// `text`
    Text(Text<'a>),
    /// `image`
    Image(Box<Image<'a>>),
    /// `document`
    Document(Box<Document<'a>>),
    /// `search_result`
    SearchResult(Box<SearchResult<'a>>),
    /// `tool_use`
    ToolUse(Box<ToolUse<'a>>),
    /// `tool_result`
    ToolResult(Box<ToolResult<'a>>),
    /// `tool_reference`: name of a tool that a search found.
    ToolReference(Str<'a>),
    /// `browser_state`: tabs and state changes of a browser, as JSON text.
    BrowserState {
        /// JSON array of tabs; empty if absent.
        tabs: &'a str,
        /// JSON array of state changes; empty if absent.
        changes: &'a str,
    },
    /// `thinking`
    Thinking {
        /// Reasoning text that the client was shown.
        thinking: Str<'a>,
        /// Signature, which tells whose reasoning the block holds; empty if the client dropped it.
        signature: Str<'a>,
    },
    /// `redacted_thinking`
    RedactedThinking(Str<'a>),
    /// `server_tool_use`, `mcp_tool_use`
    ServerToolUse {
        /// Name of the tool.
        name: Str<'a>,
        /// Input of the call, as JSON text.
        input: &'a str,
    },
    /// Result of a tool that ran at the server: `web_search_tool_result`, `mcp_tool_result`, …
    ServerToolResult {
        /// Content of the result, as JSON text.
        content: &'a str,
        /// True if the result is that of a tool search.
        tool_search: bool,
        /// True if the tool failed, where the result says so beside its content.
        is_error: bool,
    },
    /// `compaction`
    Compaction {
        /// Summary of the compacted messages.
        content: Option<Str<'a>>,
        /// Changes of the tools in the compacted messages (`tool_changes`).
        changes: Vec<ToolChange<'a>>,
    },
    /// `tool_addition`, `tool_removal`
    ToolChange(Box<ToolChange<'a>>),
    /// `container_upload`
    ContainerUpload,
    /// `fallback`, `mcp_tool_listing`: notes of the server to itself.
    Note,
    /// Block of a type that this version does not know; holds the `type`.
    Unknown(Str<'a>),
}

/// `text` block.
#[derive(Clone, Debug)]
pub(crate) struct Text<'a> {
    /// Text of the block.
    pub text: Str<'a>,
    /// `cache_control`: the client wants the prompt cached up to this text.
    pub cached: Option<CacheMark>,
    /// True if the text has citations.
    pub cited: bool,
}

/// `image` block.
#[derive(Debug)]
pub(crate) struct Image<'a> {
    /// Byte offset of the block in the request's body.
    pub at: usize,
    /// Data of the image, or the place that it is loaded from.
    pub source: ImageSource<'a>,
    /// `cache_control`: the client wants the prompt cached up to this image.
    pub cached: Option<CacheMark>,
}

/// Data of an image, or the place that it is loaded from.
#[derive(Debug)]
pub(crate) enum ImageSource<'a> {
    /// Image whose data stands in the request.
    Base64 {
        /// Media type, as the client wrote it: `image/png`.
        media_type: Str<'a>,
        /// Data of the image, in base64.
        data: Str<'a>,
    },
    /// Image at an address on the web, or in a `data:` URL.
    Url(Str<'a>),
    /// Image in a file that is stored at Anthropic.
    File,
}

impl ImageSource<'_> {
    /// Returns true if the image is on the web, and not in a `data:` URL.
    pub(crate) fn is_remote(&self) -> bool {
        matches!(self, Self::Url(url) if !words::begins(url.raw(), "data:"))
    }

    /// Returns true if the image is of a type that the Messages API knows, by whatever name, or its
    /// type is not in the request.
    pub(crate) fn is_of_known_type(&self) -> bool {
        let is_here = matches!(self, Self::Base64 { .. } | Self::Url(_)) && !self.is_remote();
        !is_here || self.known_type().is_some()
    }

    /// Returns the type that the client gives the image, where the Messages API knows it, by
    /// whatever name.
    pub(crate) fn known_type(&self) -> Option<&'static str> {
        let written = match self {
            Self::Base64 { media_type, .. } => media_type.decode(),
            // PHP writes `image\/png`.
            Self::Url(url) if !self.is_remote() => {
                let url = url.decode();
                words::before(&url, b",").get("data:".len()..).unwrap_or_default().to_owned().into()
            }
            Self::Url(_) | Self::File => return None,
        };
        let media_type = words::before(written.trim(), b";").trim();
        words::after_start(media_type, "image/").and_then(image_type::named)
    }
}

/// `document` block.
#[derive(Debug)]
pub(crate) struct Document<'a> {
    /// Byte offset of the block in the request's body.
    pub at: usize,
    /// Content of the document, or the place that it is loaded from.
    pub source: DocumentSource<'a>,
    /// Title of the document.
    pub title: Option<Str<'a>>,
    /// Text by which the client describes the document.
    pub context: Option<Str<'a>>,
    /// `cache_control`: the client wants the prompt cached up to this document.
    pub cached: Option<CacheMark>,
}

/// Content of a document, or the place that it is loaded from.
#[derive(Debug)]
pub(crate) enum DocumentSource<'a> {
    /// Document in base64 in the request; in practice a PDF.
    Base64 {
        /// Media type, as the client wrote it: `application/pdf`.
        media_type: Str<'a>,
        /// Data of the document, in base64.
        data: Str<'a>,
    },
    /// Document that stands in the request as text.
    Text(Str<'a>),
    /// Document that stands in the request as text and image blocks.
    Content(Vec<Block<'a>>),
    /// Document at an address on the web.
    Url(Str<'a>),
    /// Document in a file that is stored at Anthropic.
    File,
}

/// `search_result` block: a search result of the client's own.
#[derive(Debug)]
pub(crate) struct SearchResult<'a> {
    /// Place where the client found the text, such as an address.
    pub source: Str<'a>,
    /// Title of the found page or document.
    pub title: Str<'a>,
    /// Text blocks that were found.
    pub content: Vec<Block<'a>>,
}

/// `tool_use` block: a tool call of the assistant.
#[derive(Debug)]
pub(crate) struct ToolUse<'a> {
    /// Byte offset of the block in the request's body, for errors.
    pub at: usize,
    /// `id` of the call, which its result names.
    pub id: Str<'a>,
    /// Name of the tool.
    pub name: Str<'a>,
    /// Name of the toolset that the tool belongs to.
    pub toolset: Option<Str<'a>>,
    /// Input of the call, as JSON text; not necessarily an object.
    pub input: Raw<'a>,
    /// True if the model is not to see the input (`context_management`).
    pub cleared: bool,
}

/// `tool_result` block: the result of a tool call.
#[derive(Debug)]
pub(crate) struct ToolResult<'a> {
    /// `tool_use_id`: id of the call.
    pub id: Str<'a>,
    /// Blocks that the tool gave; a string is one text block.
    pub content: Vec<Block<'a>>,
    /// True if the tool failed.
    pub is_error: bool,
    /// True if the model is not to see the content (`context_management`).
    pub cleared: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_small_because_a_request_can_have_many() {
        assert!(size_of::<Block<'_>>() <= 56, "{}", size_of::<Block<'_>>());
        assert!(size_of::<ToolChange<'_>>() <= 48, "{}", size_of::<ToolChange<'_>>());
        let definition = size_of::<crate::model::tool::ToolDefinition<'_>>();
        assert!(definition <= 128, "{definition}");
    }
}
