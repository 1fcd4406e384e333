//! Server tools that the upstream runs by itself, such as web search.

use super::choice::SentChoice;
use super::definition::left_out;
use super::mcp::McpTool;
use super::offer::ServerTool;
use crate::error::Error;
use crate::json::{self, Reader, Str, Writer};
use crate::model::path_at;
use crate::model::tool::{ChoiceMode, ToolDefinition};
use crate::observe::warning::Warnings;
use crate::profile::{Profile, WebSearch};
use crate::text::words;

/// Server tools that the upstream runs by itself, in the form in which they are sent.
#[derive(Debug, Default)]
pub(super) struct Hosted {
    /// Member `web_search_options` of Chat Completions.
    pub(super) options: Option<String>,
    /// Elements of `tools` in a Responses request.
    pub(super) tools: Vec<String>,
    /// Member `max_tool_calls` of Responses, which does not count calls of functions.
    pub(super) calls_max: Option<u64>,
    /// MCP servers whose tools the upstream calls, as elements of `tools` of Responses.
    pub(super) mcp: Vec<McpTool>,
}

/// Parts of a request that decide on its server tools.
#[derive(Clone, Copy)]
pub(super) struct Beside<'b> {
    /// Request body, for the paths in errors.
    pub(super) body: &'b str,
    pub(super) mode: Option<&'b ChoiceMode<'b>>,
    /// True if the request also has functions or MCP servers.
    pub(super) others: bool,
}

impl Hosted {
    /// Returns the web search that the upstream runs; all other server tools are left out.
    ///
    /// # Errors
    ///
    /// A server tool that is left out is forced by `tool_choice`, or is the only tool.
    pub(super) fn new(
        servers: &[ServerTool<'_>],
        beside: Beside<'_>,
        profile: &Profile,
        warnings: &mut Warnings,
    ) -> Result<Self, Error> {
        let Beside { body, mode, others } = beside;
        let mut hosted = Self::default();
        let searches = profile.web_search == WebSearch::Responses
            && servers.iter().any(|server| server.name == "web_search");
        for server in servers {
            let forced = matches!(mode, Some(ChoiceMode::Tool(name)) if *name == server.name);
            match (server.name, profile.web_search) {
                ("web_search", WebSearch::WebSearchOptions) if !forced => {
                    let options = web_search_options(&server.definition, body, warnings)?;
                    hosted.options = Some(options);
                }
                // If web search is one of several tools, Responses cannot force it.
                ("web_search", WebSearch::Responses) if !forced || !others => {
                    hosted.tools.push(web_search_tool(&server.definition, body, warnings)?);
                    hosted.calls_max = server.definition.rare().search().max_uses;
                }
                // The upstream's web search opens pages by itself.
                ("web_fetch", _) if searches && !forced => {}
                _ => leave_out(server, body, forced || !others && !searches, warnings)?,
            }
        }
        if mode == Some(&ChoiceMode::None) {
            hosted = Self::default();
        }
        Ok(hosted)
    }

    /// Adds MCP servers whose tools the upstream calls. The limit on web searches is dropped,
    /// because it would limit these calls, too.
    pub(super) fn add_mcp(
        &mut self,
        mcp: Vec<McpTool>,
        mode: Option<&ChoiceMode<'_>>,
        warnings: &mut Warnings,
    ) -> Result<(), Error> {
        if mcp.is_empty() || mode == Some(&ChoiceMode::None) {
            return Ok(());
        }
        self.mcp = mcp;
        match self.calls_max.take() {
            Some(_) => warnings.dropped("max_uses"),
            None => Ok(()),
        }
    }

    /// Returns the choice to send if all tools of the request are run by the upstream.
    pub(super) fn choice(
        &self,
        mode: Option<&ChoiceMode<'_>>,
        profile: &Profile,
    ) -> Option<SentChoice> {
        let is_meant = match mode? {
            ChoiceMode::Any => !self.is_empty(),
            // Responses cannot force one of several tools that it runs.
            ChoiceMode::Tool(_) => !self.tools.is_empty() && self.mcp.is_empty(),
            ChoiceMode::Auto | ChoiceMode::None => false,
        };
        is_meant.then(|| SentChoice::any(profile))
    }

    /// Returns true if no server tool goes into `tools` of Responses.
    pub(super) fn is_empty(&self) -> bool {
        self.tools.is_empty() && self.mcp.is_empty()
    }

    /// Returns true if the upstream may search the web.
    pub(super) fn searches(&self) -> bool {
        self.options.is_some() || !self.tools.is_empty()
    }
}

/// Returns the element of `tools` for the web search tool `definition`.
fn web_search_tool(
    definition: &ToolDefinition<'_>,
    body: &str,
    warnings: &mut Warnings,
) -> Result<String, Error> {
    let rare = definition.rare();
    for limit in &rare.limits {
        if !matches!(*limit, "allowed_domains" | "max_uses") {
            left_out(warnings, body, definition.at, limit)?;
        }
    }
    let mut out = Vec::new();
    let mut json = Writer::new(&mut out);
    json.begin_object().kind("web_search");
    if let Some(domains) = rare.search().allowed_domains.filter(|domains| *domains != "null") {
        let in_path = |error: json::Error| {
            error.in_key("allowed_domains").in_key(&path_at(body, definition.at))
        };
        let domains = read_domains(domains).map_err(in_path)?;
        if !domains.is_empty() {
            json.key("filters").begin_object().key("allowed_domains").begin_array();
            for domain in domains {
                json.str(domain);
            }
            json.end_array().end_object();
        }
    }
    if let Some(location) = rare.search().user_location {
        json.key("user_location").begin_object().kind("approximate");
        copy_location(location, &mut json)
            .map_err(|error| error.in_key("user_location").in_key(&path_at(body, definition.at)))?;
        json.end_object();
    }
    json.end_object();
    Ok(words::lossy(&out).into_owned())
}

fn read_domains(array: &str) -> Result<Vec<Str<'_>>, json::Error> {
    let mut reader = Reader::new(array, 2);
    let mut domains = Vec::new();
    reader.begin_array()?;
    while reader.next_element()? {
        domains.push(reader.string()?);
    }
    Ok(domains)
}

/// Leaves a server tool out with a warning. A `needed` tool is an error, because the client would
/// wait for it in vain.
fn leave_out(
    server: &ServerTool<'_>,
    body: &str,
    needed: bool,
    warnings: &mut Warnings,
) -> Result<(), Error> {
    if needed || warnings.strict() {
        let path = path_at(body, server.definition.at);
        let name = server.name;
        if name == "web_search" {
            // Claude Code shows this to its user, in place of the results of its search.
            return Err(Error::invalid(format!(
                "{path}: the server tool {name} is not supported by this gateway without a search \
                 service: --search URL, or server_tools.web_search in its configuration"
            )));
        }
        return Err(Error::unsupported_kind(&path, &format!("the server tool {name}")));
    }
    warnings.add_named("dropped", &server.definition.tool_type);
    Ok(())
}

/// Returns the value of `web_search_options` for the web search tool `definition`. The tool's
/// limits have no counterpart in Chat Completions.
fn web_search_options(
    definition: &ToolDefinition<'_>,
    body: &str,
    warnings: &mut Warnings,
) -> Result<String, Error> {
    for limit in &definition.rare().limits {
        left_out(warnings, body, definition.at, limit)?;
    }
    let mut out = Vec::new();
    let mut json = Writer::new(&mut out);
    json.begin_object();
    if let Some(location) = definition.rare().search().user_location {
        json.key("user_location").begin_object().kind("approximate");
        json.key("approximate").begin_object();
        copy_location(location, &mut json)
            .map_err(|error| error.in_key("user_location").in_key(&path_at(body, definition.at)))?;
        json.end_object().end_object();
    }
    json.end_object();
    Ok(words::lossy(&out).into_owned())
}

fn copy_location(location: &str, json: &mut Writer<'_>) -> Result<(), json::Error> {
    let mut reader = Reader::new(location, 2);
    reader.begin_object()?;
    while let Some(key) = reader.next_key()? {
        let name = match key.decode().as_ref() {
            "city" => "city",
            "country" => "country",
            "region" => "region",
            "timezone" => "timezone",
            _ => {
                reader.skip()?;
                continue;
            }
        };
        if !reader.null()? {
            json.key(name).str(reader.string().map_err(|error| error.in_key(name))?);
        }
    }
    Ok(())
}
