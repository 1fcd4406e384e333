//! Content blocks of the Messages API: blocks of requests, and blocks of answers, which clients
//! send back.

mod read;

use super::cache_mark::CacheMark;
use super::image_type;
use super::tool::ToolChange;
use crate::json::{Raw, Str};
use crate::text::words;
pub(crate) use read::BlockParent;

/// Content block of a message. A request can have many small blocks, so large variants are boxed.
#[derive(Debug)]
pub(crate) enum Block<'a> {
    /// Block `text`: a text.
    Text(Text<'a>),
    /// Block `image`: an image.
    Image(Box<Image<'a>>),
    /// Block `document`: a document.
    Document(Box<DocumentBlock<'a>>),
    /// Block `search_result`: a search result that the client gives to the model.
    SearchResult(Box<SearchResult<'a>>),
    /// Block `tool_use`: a tool call of the assistant.
    ToolUse(Box<ToolUse<'a>>),
    /// Block `tool_result`: the result of a tool call.
    ToolResult(Box<ToolResult<'a>>),
    /// Block `tool_reference`: the name of a tool that a tool search found.
    ToolReference(Str<'a>),
    /// Block `browser_state`: tabs and state changes of a browser, as JSON text.
    BrowserState {
        /// JSON array of tabs; empty if absent.
        tabs: &'a str,
        /// JSON array of state changes; empty if absent.
        changes: &'a str,
    },
    /// Block `thinking`: reasoning of an earlier answer.
    Thinking {
        /// Reasoning text that the client was shown.
        thinking: Str<'a>,
        /// Signature, which identifies the model that wrote the reasoning; empty if the client
        /// dropped the signature.
        signature: Str<'a>,
    },
    /// Block `redacted_thinking`: encrypted reasoning of an earlier answer.
    RedactedThinking(Str<'a>),
    /// Block `server_tool_use` or `mcp_tool_use`: a call of a tool that ran at the server.
    ServerToolUse(Box<ServerToolUse<'a>>),
    /// Result of a tool that ran at the server: `web_search_tool_result`, `mcp_tool_result`, …
    ServerToolResult(Box<ServerToolResult<'a>>),
    /// Block `compaction`: a summary that replaces older messages.
    Compaction {
        /// Summary of the compacted messages.
        content: Option<Str<'a>>,
        /// Changes of the tools in the compacted messages (`tool_changes`).
        changes: Vec<ToolChange<'a>>,
    },
    /// Block `tool_addition` or `tool_removal`: a change of the tools in mid conversation.
    ToolChange(Box<ToolChange<'a>>),
    /// Block `container_upload`: a file for the code execution container.
    ContainerUpload,
    /// Block `fallback` or `mcp_tool_listing`: a note that the server wrote for itself.
    Note,
    /// Block of an unknown type; holds the value of `type`.
    Unknown(Str<'a>),
}

/// Content of a `text` block.
#[derive(Clone, Debug)]
pub(crate) struct Text<'a> {
    /// Text of the content block.
    pub text: Str<'a>,
    /// Member `cache_control`: the client wants the prompt cached up to this text.
    pub cached: Option<CacheMark>,
    /// Citations of the text (member `citations`); `None` if there are none.
    pub citations: Option<Box<TextCitations<'a>>>,
}

impl Text<'_> {
    /// Returns true if marks of citations are written behind the text.
    pub(crate) fn has_marks(&self) -> bool {
        self.citations.as_ref().is_some_and(|citations| !citations.marks.is_empty())
    }
}

/// Citations of a text, and the marks from which Creole made them.
#[derive(Clone, Debug)]
pub(crate) struct TextCitations<'a> {
    /// Array of the citations, as JSON text.
    pub json: &'a str,
    /// Numbers of the cited pages, which are written behind the text as `[[1]]`. Empty until the
    /// history is read.
    pub marks: Vec<u32>,
}

/// Content of an `image` block.
#[derive(Debug)]
pub(crate) struct Image<'a> {
    /// Byte offset of the image block in the request's body.
    pub at: usize,
    /// Data of the image, or a reference to the image.
    pub source: ImageSource<'a>,
    /// Member `cache_control`: the client wants the prompt cached up to this image.
    pub cached: Option<CacheMark>,
}

/// Data of an image, or a reference to an image.
#[derive(Debug)]
pub(crate) enum ImageSource<'a> {
    /// Image whose data is in the request.
    Base64 {
        /// Media type as the client wrote it, such as `image/png`.
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

    /// Returns true if the Messages API supports the image's type, under any of its names. An image
    /// whose type is not in the request counts as supported.
    pub(crate) fn is_of_known_type(&self) -> bool {
        let is_here = matches!(self, Self::Base64 { .. } | Self::Url(_)) && !self.is_remote();
        !is_here || self.known_type().is_some()
    }

    /// Returns the canonical media type for the type that the client wrote; `None` if the Messages
    /// API does not support that type.
    pub(crate) fn known_type(&self) -> Option<&'static str> {
        let written = match self {
            Self::Base64 { media_type, .. } => media_type.decode(),
            // JSON that PHP writes has escaped slashes: `image\/png`.
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

/// Content of a `document` block.
#[derive(Debug)]
pub(crate) struct DocumentBlock<'a> {
    /// Byte offset of the document block in the request's body.
    pub at: usize,
    /// Content of the document, or a reference to the document.
    pub source: DocumentSource<'a>,
    /// Title of the document.
    pub title: Option<Str<'a>>,
    /// Text in which the client describes the document (member `context`).
    pub context: Option<Str<'a>>,
    /// Member `cache_control`: the client wants the prompt cached up to this document.
    pub cached: Option<CacheMark>,
}

/// Content of a document, or a reference to a document.
#[derive(Debug)]
pub(crate) enum DocumentSource<'a> {
    /// Document in base64 in the request; in practice a PDF.
    Base64 {
        /// Media type as the client wrote it, such as `application/pdf`.
        media_type: Str<'a>,
        /// Data of the document, in base64.
        data: Str<'a>,
    },
    /// Document as text in the request.
    Text(Str<'a>),
    /// Document as text and image blocks in the request.
    Content(Vec<Block<'a>>),
    /// Document at an address on the web.
    Url(Str<'a>),
    /// Document in a file that is stored at Anthropic.
    File,
}

/// Content of a `search_result` block: a search result that the client gives to the model.
#[derive(Debug)]
pub(crate) struct SearchResult<'a> {
    /// Origin of the found text, such as a URL.
    pub source: Str<'a>,
    /// Title of the found page or document.
    pub title: Str<'a>,
    /// Text blocks with the found text.
    pub content: Vec<Block<'a>>,
}

/// Content of a `tool_use` block: a tool call of the assistant.
#[derive(Debug)]
pub(crate) struct ToolUse<'a> {
    /// Byte offset of the `tool_use` block in the request's body, for errors.
    pub at: usize,
    /// Id of the tool call (member `id`), which the matching `tool_result` repeats.
    pub id: Str<'a>,
    /// Name of the tool that the assistant called.
    pub name: Str<'a>,
    /// Name of the toolset that the tool belongs to (member `toolset_name`); for a call that Creole
    /// ran, the name of the MCP server.
    pub toolset: Option<Str<'a>>,
    /// Input of the tool call, as JSON text; not necessarily an object.
    pub input: Raw<'a>,
    /// True if `context_management` hides the input of the tool call from the model.
    pub cleared: bool,
    /// True if Creole ran the tool call, and not the client.
    pub is_server: bool,
}

/// Content of a `server_tool_use` or `mcp_tool_use` block: a call of a tool that ran at the server.
#[derive(Debug)]
pub(crate) struct ServerToolUse<'a> {
    /// Byte offset of the block in the request's body, for errors.
    pub at: usize,
    /// Id of the call (member `id`), which the result of the call repeats; empty if absent.
    pub id: Str<'a>,
    /// Name of the tool that ran at the server.
    pub name: Str<'a>,
    /// Name of the MCP server that the tool belongs to, if any; empty if absent.
    pub server: Option<Str<'a>>,
    /// Input of the server tool's call, as JSON text.
    pub input: Raw<'a>,
}

/// Content of a block with the result of a tool that ran at the server.
#[derive(Debug)]
pub(crate) struct ServerToolResult<'a> {
    /// Id of the call (member `tool_use_id`); empty if absent.
    pub id: Str<'a>,
    /// Tool whose result the block is.
    pub kind: ServerResultKind,
    /// Content of the server tool's result, as JSON text.
    pub content: &'a str,
    /// True if the server tool failed, according to the member `is_error` beside the content.
    pub is_error: bool,
    /// Number of the first page of a web search, counted over the whole conversation from 1; 0 if
    /// the result is not shown as the output of a call.
    pub first_page: usize,
}

/// Tool whose result a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerResultKind {
    /// Result of a web search.
    WebSearch,
    /// Result of a fetch of a page.
    WebFetch,
    /// Result of a search for tools.
    ToolSearch,
    /// Result of a tool of an MCP server.
    Mcp,
    /// Result of another tool.
    Other,
}

/// Content of a `tool_result` block: the result of a tool call.
#[derive(Debug)]
pub(crate) struct ToolResult<'a> {
    /// Id of the tool call that this result answers (member `tool_use_id`).
    pub id: Str<'a>,
    /// Blocks of the tool result's content; a plain string becomes one text block.
    pub content: Vec<Block<'a>>,
    /// True if the tool failed.
    pub is_error: bool,
    /// True if `context_management` hides the content of the tool result from the model.
    pub cleared: bool,
}

#[cfg(test)]
impl<'a> ToolUse<'a> {
    /// Returns a tool call of the client with nothing but an id, a name and an input.
    pub(crate) fn of(id: Str<'a>, name: Str<'a>, input: &'a str) -> Self {
        let (at, toolset, input) = (0, None, Raw::of(input));
        Self { at, id, name, toolset, input, cleared: false, is_server: false }
    }
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
