//! Content blocks: those of requests, and those of answers, which clients send back.

mod read;

use super::cache_mark::CacheMark;
use super::image_type;
use super::tool::ToolChange;
use crate::json::{Raw, Str};
use crate::text::words;
pub(crate) use read::BlockParent;

/// One content block. A request can have many small ones, so what is large stands elsewhere.
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
    /// `tool_reference`: the name of a tool that a search found.
    ToolReference(Str<'a>),
    /// `browser_state`: its tabs and state changes, as they were written.
    BrowserState {
        /// An array; empty if there is none.
        tabs: &'a str,
        /// An array; empty if there is none.
        changes: &'a str,
    },
    /// `thinking`
    Thinking {
        /// The text that the client was shown.
        thinking: Str<'a>,
        /// Whose reasoning it is.
        signature: Str<'a>,
    },
    /// `redacted_thinking`
    RedactedThinking(Str<'a>),
    /// `server_tool_use`, `mcp_tool_use`
    ServerToolUse {
        /// The tool.
        name: Str<'a>,
        /// Its input, as it was written.
        input: &'a str,
    },
    /// The result of a tool that ran at the server: `web_search_tool_result`, `mcp_tool_result`, …
    ServerToolResult {
        /// Its content, as it was written.
        content: &'a str,
        /// Whether it is the result of a tool search.
        tool_search: bool,
        /// Whether the tool failed, where the result says so beside its content.
        is_error: bool,
    },
    /// `compaction`
    Compaction {
        /// The summary.
        content: Option<Str<'a>>,
        /// What became of the tools before it.
        changes: Vec<ToolChange<'a>>,
    },
    /// `tool_addition`, `tool_removal`
    ToolChange(Box<ToolChange<'a>>),
    /// `container_upload`
    ContainerUpload,
    /// `fallback`, `mcp_tool_listing`: notes of the server to itself.
    Note,
    /// Of a type that this version does not know.
    Unknown(Str<'a>),
}

/// A text.
#[derive(Clone, Debug)]
pub(crate) struct Text<'a> {
    /// The text.
    pub text: Str<'a>,
    /// The client wants the prompt cached up to here.
    pub cached: Option<CacheMark>,
    /// Whether it has citations.
    pub cited: bool,
}

/// An image.
#[derive(Debug)]
pub(crate) struct Image<'a> {
    /// Where it starts in the body, for errors.
    pub at: usize,
    /// Where it comes from.
    pub source: ImageSource<'a>,
    /// The client wants the prompt cached up to here.
    pub cached: Option<CacheMark>,
}

/// Where an image comes from.
#[derive(Debug)]
pub(crate) enum ImageSource<'a> {
    /// It is here.
    Base64 {
        /// `image/png`
        media_type: Str<'a>,
        /// The image.
        data: Str<'a>,
    },
    /// It is on the web.
    Url(Str<'a>),
    /// It is at Anthropic.
    File,
}

impl ImageSource<'_> {
    /// Whether the image is on the web, and not in its address.
    pub(crate) fn is_remote(&self) -> bool {
        matches!(self, Self::Url(url) if !words::begins(url.raw(), "data:"))
    }

    /// Whether the image is of a type that the Messages API knows, by whatever name, or nothing says of which.
    pub(crate) fn is_of_known_type(&self) -> bool {
        let is_here = matches!(self, Self::Base64 { .. } | Self::Url(_)) && !self.is_remote();
        !is_here || self.known_type().is_some()
    }

    /// The type that the client says, where it is one that the Messages API knows, by whatever name.
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

/// A document.
#[derive(Debug)]
pub(crate) struct Document<'a> {
    /// Where it starts in the body, for errors.
    pub at: usize,
    /// Where it comes from.
    pub source: DocumentSource<'a>,
    /// Its title.
    pub title: Option<Str<'a>>,
    /// What the client says about it.
    pub context: Option<Str<'a>>,
    /// The client wants the prompt cached up to here.
    pub cached: Option<CacheMark>,
}

/// Where a document comes from.
#[derive(Debug)]
pub(crate) enum DocumentSource<'a> {
    /// It is here, as base64; in practice a PDF.
    Base64 {
        /// `application/pdf`
        media_type: Str<'a>,
        /// The document.
        data: Str<'a>,
    },
    /// It is here, as text.
    Text(Str<'a>),
    /// It is here, as texts and images.
    Content(Vec<Block<'a>>),
    /// It is on the web.
    Url(Str<'a>),
    /// It is at Anthropic.
    File,
}

/// A search result of the client's own.
#[derive(Debug)]
pub(crate) struct SearchResult<'a> {
    /// Where it was found.
    pub source: Str<'a>,
    /// Its title.
    pub title: Str<'a>,
    /// What it says.
    pub content: Vec<Block<'a>>,
}

/// A tool call of the assistant.
#[derive(Debug)]
pub(crate) struct ToolUse<'a> {
    /// Where it starts in the body, for errors.
    pub at: usize,
    /// Its id.
    pub id: Str<'a>,
    /// The tool.
    pub name: Str<'a>,
    /// The tool's toolset.
    pub toolset: Option<Str<'a>>,
    /// The input, as it was written. Not necessarily an object.
    pub input: Raw<'a>,
    /// The model is not to see the input.
    pub cleared: bool,
}

/// The result of a tool call.
#[derive(Debug)]
pub(crate) struct ToolResult<'a> {
    /// The id of the call.
    pub id: Str<'a>,
    /// The blocks that the tool gave; a string is one text.
    pub content: Vec<Block<'a>>,
    /// Whether the tool failed.
    pub is_error: bool,
    /// The model is not to see the content.
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
