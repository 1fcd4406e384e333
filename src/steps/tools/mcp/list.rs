//! Pages of a list of tools. The texts come from a server that nobody here trusts, so they are cut
//! and counted.

use super::mirror;
use crate::json::{self, Reader};
use crate::model::mcp::ListedTool;
use crate::observe::warning::Warnings;
use crate::text::names::NameSet;
use crate::text::names::is_tool_name;
use crate::text::words;

/// Maximum number of pages of a list.
const PAGES_MAX: u32 = 20;

/// Maximum length of a tool's description, in bytes.
const DESCRIPTION_BYTES_MAX: usize = 4096;

/// Maximum length of a tool's schema, in bytes.
const SCHEMA_BYTES_MAX: usize = 128 << 10;

/// Maximum length of a cursor, in bytes.
const CURSOR_BYTES_MAX: usize = 8 << 10;

/// Time for which the list of a legacy server is kept, in milliseconds.
const LEGACY_TTL_MS: u64 = 60_000;

/// Tools of one MCP server, in the server's order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct McpList {
    pub(crate) tools: Vec<ListedTool>,
    /// Time for which the list may be kept, in milliseconds.
    pub(crate) ttl_ms: u64,
    /// True if the list is the same for all clients of the server.
    pub(crate) is_public: bool,
}

impl McpList {
    pub(crate) fn held_bytes(&self) -> usize {
        self.tools.iter().map(ListedTool::held_bytes).fold(0, usize::saturating_add)
    }
}

/// Reader of a list of tools, page by page.
#[derive(Debug)]
pub(super) struct ListReader {
    list: McpList,
    names: NameSet<'static>,
    pages: u32,
    tools_max: usize,
    bytes_max: usize,
    /// Cursor of the next page; `None` before the first page.
    pub(super) cursor: Option<String>,
}

impl ListReader {
    /// Creates the reader of a list of which at most `tools_max` tools with `bytes_max` bytes are
    /// kept.
    pub(super) fn new(tools_max: usize, bytes_max: usize) -> Self {
        Self {
            list: McpList { ttl_ms: u64::MAX, is_public: true, ..McpList::default() },
            names: NameSet::default(),
            pages: 0,
            tools_max,
            bytes_max,
            cursor: None,
        }
    }

    /// Reads a page. Returns the list if the page is the last one that is read.
    pub(super) fn take_page(
        &mut self,
        result: &str,
        is_legacy: bool,
        warnings: &mut Warnings,
    ) -> Option<McpList> {
        self.pages = self.pages.saturating_add(1);
        self.cursor = None;
        let (mut tools, mut ttl_ms, mut is_public) = ("", None, false);
        for (key, value) in json::members(result) {
            match key.decode().as_ref() {
                "tools" => tools = value,
                "nextCursor" => self.cursor = json::string(value).map(|it| it.decode().into()),
                "ttlMs" => ttl_ms = value.parse().ok(),
                "cacheScope" => is_public = value == "\"public\"",
                _ => {}
            }
        }
        let ttl_ms = if is_legacy { LEGACY_TTL_MS } else { ttl_ms.unwrap_or(0) };
        self.list.ttl_ms = self.list.ttl_ms.min(ttl_ms);
        self.list.is_public &= is_public && !is_legacy;
        let is_full = self.take_tools(tools, warnings);
        let is_usable = |cursor: &String| {
            !cursor.is_empty() && cursor.len() <= CURSOR_BYTES_MAX && self.pages < PAGES_MAX
        };
        self.cursor = self.cursor.take().filter(is_usable).filter(|_| !is_full);
        self.cursor.is_none().then(|| std::mem::take(&mut self.list))
    }

    /// Reads the tools of a page. Returns true if there is no room for more.
    fn take_tools(&mut self, tools: &str, warnings: &mut Warnings) -> bool {
        let mut bytes = self.list.held_bytes();
        for raw in json::elements(tools) {
            if self.list.tools.len() >= self.tools_max || bytes >= self.bytes_max {
                warnings.add("mcp_tool_dropped");
                return true;
            }
            let name = json::member(raw, "name").and_then(json::string);
            let name = name.map(|name| name.decode().into_owned()).unwrap_or_default();
            match tool_of(raw, &name).filter(|_| !self.names.contains(&name)) {
                Some(tool) => {
                    bytes = bytes.saturating_add(tool.held_bytes());
                    self.names.add(name);
                    self.list.tools.push(tool);
                }
                None => warnings.add_named("mcp_tool_dropped", &name),
            }
        }
        false
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.list.held_bytes()
    }
}

/// Maximum depth of a schema. The schema is read again inside of a request, at a greater depth.
const SCHEMA_DEPTH_MAX: u32 = 100;

/// Returns true if the server runs a tool only as a task, which is more than one call.
fn needs_task(raw: &str) -> bool {
    let execution = json::member(raw, "execution").unwrap_or_default();
    json::member(execution, "taskSupport") == Some("\"required\"")
}

/// Reads a tool of a list; `None` if the tool cannot be offered to models.
fn tool_of(raw: &str, name: &str) -> Option<ListedTool> {
    let description = json::member(raw, "description").and_then(json::string);
    let description = description.map(|it| it.decode()).unwrap_or_default();
    let schema = json::member(raw, "inputSchema").unwrap_or("{\"type\":\"object\"}");
    let is_fine = is_tool_name(name)
        && !needs_task(raw)
        && schema.len() <= SCHEMA_BYTES_MAX
        && Reader::new(schema, SCHEMA_DEPTH_MAX).is_object()
        && mirror::is_valid(schema);
    is_fine.then(|| ListedTool {
        name: name.to_owned(),
        description: words::beginning(&description, DESCRIPTION_BYTES_MAX).to_owned(),
        input_schema: json::compacted(schema),
    })
}
