//! Decision which server tools of a request Creole runs.

use crate::config::{Citations, ServerTools, ToolSearch};
use crate::model::Request;
use crate::model::own_tool::ToolsRunHere;
use crate::model::tool::ToolDefinition;
use crate::profile::{Mcp, Profile};
use crate::tokens::tokens_of;
use crate::tools::{mcp_here, server_tool_name};

/// Number of deferred tools up to which all of them are sent at once.
const DEFERRED_MAX: usize = 30;

/// Estimated size of deferred tools up to which all of them are sent at once, in tokens.
const DEFERRED_TOKENS_MAX: u64 = 10_000;

/// Returns the server tools that the request offers and Creole runs.
pub(crate) fn runs_here(
    settings: &ServerTools,
    request: &Request<'_>,
    profile: &Profile,
) -> ToolsRunHere {
    let has_servers = request.tools.iter().any(|tool| tool.tool_type == "mcp_toolset");
    let mcp = has_servers && calls_mcp(settings, profile);
    // Marks in a text that is JSON would cut the JSON into blocks.
    let asks_for_marks = settings.citations == Citations::Marks && request.output_schema.is_none();
    let mut runs = ToolsRunHere { mcp, asks_for_marks, ..ToolsRunHere::default() };
    for tool in &request.tools {
        match server_tool_name(tool) {
            Some("web_search") => runs.web_search = settings.searches(),
            Some("web_fetch") => runs.web_fetch = settings.fetches(),
            Some(name) if name.starts_with("tool_search") => runs.tool_search = true,
            _ => {}
        }
    }
    // The tools are measured only if the request has a tool that searches them.
    runs.tool_search = runs.tool_search
        && match settings.tool_search {
            ToolSearch::SendAll => false,
            ToolSearch::Run => true,
            ToolSearch::Auto => is_worth_a_search(request, profile, settings),
        };
    runs
}

/// Returns true if Creole calls the MCP servers of a request. An upstream that calls them by itself
/// is left to it.
pub(crate) fn calls_mcp(settings: &ServerTools, profile: &Profile) -> bool {
    settings.mcp.is_on() && profile.mcp != Mcp::Mcp
}

/// Returns true if the deferred tools are too many to be sent at once.
fn is_worth_a_search(request: &Request<'_>, profile: &Profile, settings: &ServerTools) -> bool {
    let deferred = || request.tools.iter().filter(|tool| tool.defer_loading);
    let is_above_max = profile.max_tools > 0 && request.tools.len() > profile.max_tools;
    let bytes = |tool: &ToolDefinition<'_>| {
        let description = tool.description.map_or(0, |text| text.raw().len());
        let schema = tool.input_schema.map_or(0, |schema| schema.text().len());
        description.saturating_add(schema) as u64
    };
    let of_servers = mcp_here::deferred(request, &settings.mcp);
    let more =
        of_servers.iter().map(|tool| tool.description.len().saturating_add(tool.schema.len()));
    let sizes = deferred().map(bytes).chain(more.map(|bytes| bytes as u64));
    let count = deferred().count().saturating_add(of_servers.len());
    count > DEFERRED_MAX
        || count > 0 && is_above_max
        || tokens_of(sizes.fold(0, u64::saturating_add)) > DEFERRED_TOKENS_MAX
}
