//! Kinds of server tools that Creole runs: a row for each.

use super::job::{Begun, OwnOutput};
use super::{fetch, mcp, search, tool_search};
use crate::model::event::ServerCall;
use crate::model::own_tool::OwnTool;
use crate::steps::See;

/// Function that begins the work for a call of a tool, or returns the output for an input that the
/// tool cannot use.
pub(super) type BeginCall = fn(&OwnTool, &ServerCall, &See<'_>) -> Result<Begun, OwnOutput>;

/// Begins the work for a call of `tool`.
///
/// # Errors
/// The output for an input that the tool cannot use.
pub(super) fn begin(tool: &OwnTool, call: &ServerCall, see: &See<'_>) -> Result<Begun, OwnOutput> {
    match tool {
        OwnTool::WebSearch(tool) => search::begin(tool, &call.input, see),
        OwnTool::WebFetch(tool) => fetch::begin(tool, &call.input, see),
        OwnTool::Mcp(tool) => mcp::begin(tool, &call.input, see),
        OwnTool::ToolSearch(method) => tool_search::begin(*method, &call.input, see),
    }
}
