//! Server tools that Creole runs: their definitions, and the functions that the model gets in their
//! place.

use super::typed::ToolKind;
use super::{web_fetch, web_search};
use crate::error::Error;
use crate::model::own_tool::{OwnTool, ToolSearchMethod, ToolsRunHere};
use crate::model::tool::ToolDefinition;

/// Parts of the function that the model gets in place of a server tool. Constant texts keep the
/// upstream's prompt cache.
pub(super) struct OwnFunction {
    pub(super) description: &'static str,
    /// JSON Schema of the function's parameters.
    pub(super) parameters: &'static str,
    /// Text that is appended to the description.
    pub(super) remark: String,
}

/// Text that tells the model what a search for tools does.
const TOOL_SEARCH: &str =
    "Search the tools that are not loaded yet. Tools that are found can be called from then on.";

const REGEX_PARAMETERS: &str = r#"{"type":"object","properties":{"pattern":{"type":"string","description":"Regular expression, matched against names and descriptions of tools and their arguments"},"limit":{"type":"integer","description":"Most tools to load"}},"required":["pattern"],"additionalProperties":false}"#;

const BM25_PARAMETERS: &str = r#"{"type":"object","properties":{"query":{"type":"string","description":"What the tool should do"},"limit":{"type":"integer","description":"Most tools to load"}},"required":["query"],"additionalProperties":false}"#;

impl OwnFunction {
    pub(super) fn of(tool: &OwnTool) -> Self {
        match tool {
            OwnTool::WebSearch(search) => Self {
                description: web_search::description(search),
                parameters: web_search::PARAMETERS,
                remark: web_search::remark(search),
            },
            OwnTool::WebFetch(_) => Self {
                description: web_fetch::DESCRIPTION,
                parameters: web_fetch::PARAMETERS,
                remark: String::new(),
            },
            OwnTool::ToolSearch(method) => Self {
                description: TOOL_SEARCH,
                parameters: match method {
                    ToolSearchMethod::Regex => REGEX_PARAMETERS,
                    ToolSearchMethod::Bm25 => BM25_PARAMETERS,
                },
                remark: String::new(),
            },
            // The server describes its tools.
            OwnTool::Mcp(_) => Self { description: "", parameters: "{}", remark: String::new() },
        }
    }
}

/// Returns the server tool of a definition, or the error of the definition; `None` if Creole does
/// not run the tool. `body` is the request's body, for the paths in errors.
pub(super) fn own_tool(
    definition: &ToolDefinition<'_>,
    body: &str,
    runs: ToolsRunHere,
) -> Option<Result<OwnTool, Error>> {
    let name = name_of(definition).filter(|name| runs.has(name))?;
    Some(Ok(match name {
        "web_search" => {
            let search = web_search::read(definition, body, runs.asks_for_marks);
            return Some(search.map(OwnTool::WebSearch));
        }
        "web_fetch" => return Some(web_fetch::read(definition, body).map(OwnTool::WebFetch)),
        "tool_search_tool_regex" => OwnTool::ToolSearch(ToolSearchMethod::Regex),
        _ => OwnTool::ToolSearch(ToolSearchMethod::Bm25),
    }))
}

/// Returns the name of the server tool that a definition stands for; `None` for other tools.
pub(crate) fn name_of(definition: &ToolDefinition<'_>) -> Option<&'static str> {
    match ToolKind::of(&definition.tool_type, false)? {
        (ToolKind::Server(name), _) => Some(name),
        _ => None,
    }
}
