//! MCP servers of a request that Creole calls: checks, lists of tools, and the functions that the
//! model gets.
//!
//! ```text
//!  request ──▶ McpPlan::read ──▶ servers to list ──▶ McpPlan::pinned ──▶ request whose toolsets
//!                                                                        carry their tools
//!  toolset with tools ──▶ functions ──▶ mcp__SERVER__TOOL
//! ```
//!
//! A step lists the tools before the call, and writes them into the toolsets of the request, where
//! clients may also pin them. The translation then needs no state.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use super::definition::Availability;
use super::function::Function;
use super::mcp::{Allowed, McpServer};
use super::names::NameRules;
use crate::config::{McpConnector, McpFromRequests, McpKey, McpServerSettings};
use crate::error::{Error, ErrorKind, Fault};
use crate::json::{self, Reader, Writer};
use crate::model::Request;
use crate::model::mcp::{ListedTool, McpTarget, function_name};
use crate::model::mcp_servers::McpServers;
use crate::model::own_tool::{McpToolName, OwnTool};
use crate::model::path_at;
use crate::model::tool::ToolDefinition;
use crate::observe::warning::Warnings;
use crate::text::names::is_tool_name;
use crate::text::names::{NameSet, Names};
use crate::text::words;

/// Longest wait for a result of a server that only a request names, in milliseconds.
const TIMEOUT_MS: u64 = 60_000;

/// Prefix of the `url` of a server by its name in the configuration.
const BY_NAME: &str = "mcp:";

/// Betas of the MCP connector in which each server needs a toolset.
const WITH_TOOLSETS: [&str; 2] = ["mcp-client-2025-11-20", "mcp-client-2026-09-15"];

/// Maximum number of MCP servers of one request.
const SERVERS_MAX: usize = 20;

/// Maximum number of bytes of a server's name in an error.
const NAME_BYTES_MAX: usize = 100;

/// MCP servers of a request that Creole calls.
#[derive(Debug, Default)]
pub(crate) struct McpPlan {
    pub(crate) servers: Vec<PlannedServer>,
}

/// MCP server of a request that Creole calls.
pub(crate) struct PlannedServer {
    pub(crate) target: Arc<McpTarget>,
    /// Index of the server in `mcp_servers`; `None` for a server that the operator offers.
    pub(crate) at: Option<usize>,
    /// Source of the server's tools.
    pub(crate) tools: McpTools,
    /// Index in `tools` of the server's toolset, if the request has one.
    toolset: Option<usize>,
    /// Tools that the `tool_configuration` of the first version allows; `None` for all.
    allowed: Option<Vec<String>>,
}

// The listed tools are texts of a server.
impl fmt::Debug for PlannedServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlannedServer").field("at", &self.at).finish_non_exhaustive()
    }
}

/// Source of the tools of an MCP server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum McpTools {
    /// Source: the server must be asked.
    Asked,
    /// Source: the toolset in the request.
    Toolset,
    /// Source: an earlier list in the conversation.
    Listing(Vec<ListedTool>),
}

impl PlannedServer {
    /// Returns true if the server must be asked for its tools.
    pub(crate) fn is_asked(&self) -> bool {
        self.tools == McpTools::Asked
    }

    /// Returns the error of a request whose server did not list its tools. `status`: 400, 502 or
    /// 504.
    pub(crate) fn unavailable(&self, reason: &str, status: u16) -> Error {
        let name = shown(&self.target.name);
        let path = self.at.map(|at| format!("mcp_servers[{at}]: ")).unwrap_or_default();
        let message = format!("{path}server \"{name}\" did not give its tools: {reason}");
        match status {
            400 => Error::invalid(message),
            504 => Error::new(Fault::Upstream, ErrorKind::Timeout, message),
            _ => Error::misbehaved(message),
        }
    }
}

impl McpPlan {
    /// Reads and checks the MCP servers of a request. `betas`: the value of the request's
    /// `anthropic-beta` header.
    ///
    /// # Errors
    ///
    /// A server may not be used, or lacks a required member, or does not have exactly one toolset;
    /// a toolset names no server.
    pub(crate) fn read(
        request: &Request<'_>,
        body: &str,
        betas: &str,
        settings: &McpConnector,
    ) -> Result<Self, Error> {
        let toolsets = toolsets(&request.tools, body)?;
        let needs_toolsets =
            !toolsets.is_empty() || WITH_TOOLSETS.iter().any(|beta| words::has(betas, beta));
        let mut listings = listings(body);
        let mut known = Names::default();
        let mut plan = Self::default();
        for (at, raw) in request.mcp_servers.elements().enumerate() {
            if at >= SERVERS_MAX {
                let reason = format!("mcp_servers: expected at most {SERVERS_MAX} servers");
                return Err(Error::invalid(reason));
            }
            let path = format!("mcp_servers[{at}]");
            let server = McpServer::read(raw, &path, &mut Warnings::new(false))?;
            let name = server.name.decode();
            if known.insert(name.clone(), ()).is_some() {
                return Err(Error::invalid(format!("{path}.name: another server has this name")));
            }
            let target = target(&server, &path, settings)?;
            let mut own = toolsets.iter().filter(|toolset| toolset.server == name);
            let (toolset, second) = (own.next(), own.next());
            if second.is_some() || needs_toolsets && toolset.is_none() {
                let name = shown(&name);
                let reason = format!("{path}: server \"{name}\" needs exactly one mcp_toolset");
                return Err(Error::invalid(reason));
            }
            let listing = listings.get_mut(&name).and_then(Option::take);
            let tools = match (toolset, listing) {
                (Some(toolset), _) if toolset.is_pinned => McpTools::Toolset,
                (_, Some(listing)) => McpTools::Listing(listed(listing)),
                _ => McpTools::Asked,
            };
            let allowed = match server.allowed {
                Allowed::These(names) if toolset.is_none() => {
                    Some(names.into_iter().map(Cow::into_owned).collect())
                }
                _ => None,
            };
            let (target, toolset) = (Arc::new(target), toolset.map(|toolset| toolset.place));
            plan.servers.push(PlannedServer { target, at: Some(at), tools, toolset, allowed });
        }
        if let Some(toolset) = toolsets.iter().find(|it| known.get(&it.server).is_none()) {
            let (path, name) = (path_at(body, toolset.at), shown(&toolset.server));
            let reason = format!("{path}.mcp_server_name: no server \"{name}\" in mcp_servers");
            return Err(Error::invalid(reason));
        }
        plan.add_offered(settings, &mut listings);
        Ok(plan)
    }

    /// Adds the servers that the operator offers to every client, unless the request has them.
    fn add_offered(&mut self, settings: &McpConnector, listings: &mut Names<'_, Option<&str>>) {
        for (name, server) in settings.servers.iter().filter(|(_, server)| server.offer) {
            let is_same =
                |one: &PlannedServer| one.target.name == name || one.target.url == server.url;
            if self.servers.iter().any(is_same) {
                continue;
            }
            let listing = listings.get_mut(name).and_then(Option::take);
            let tools = listing.map_or(McpTools::Asked, |it| McpTools::Listing(listed(it)));
            let target = Arc::new(configured_target(name, None, server));
            self.servers.push(PlannedServer {
                target,
                at: None,
                tools,
                toolset: None,
                allowed: None,
            });
        }
    }

    /// Returns the server that the request calls `name`.
    pub(crate) fn target(&self, name: &str) -> Option<&Arc<McpTarget>> {
        self.servers.iter().map(|server| &server.target).find(|target| target.name == name)
    }

    /// Returns the request with the tools of each server in its toolset. `lists`: the lists of the
    /// servers that were asked, in their order; a server without a list has no tools.
    pub(crate) fn pinned(&self, body: &str, lists: &[&[ListedTool]]) -> Vec<u8> {
        let mut lists = lists.iter();
        let tools: Vec<(&PlannedServer, Option<&[ListedTool]>)> = self
            .servers
            .iter()
            .map(|server| match &server.tools {
                McpTools::Toolset => (server, None),
                McpTools::Listing(tools) => (server, Some(tools.as_slice())),
                McpTools::Asked => (server, Some(lists.next().copied().unwrap_or_default())),
            })
            .collect();
        let (mut old_tools, mut old_servers) = ("[]", "[]");
        let mut out = Vec::with_capacity(body.len());
        let mut json = Writer::new(&mut out);
        json.begin_object();
        for (key, value) in json::members(body) {
            match key.decode().as_ref() {
                "tools" => old_tools = value,
                "mcp_servers" => old_servers = value,
                _ => {
                    json.key_str(key).raw(value);
                }
            }
        }
        json.key("tools").begin_array();
        for (place, tool) in json::elements(old_tools).enumerate() {
            let pinned = tools.iter().find(|(server, _)| server.toolset == Some(place));
            match pinned {
                Some((_, Some(listed))) => write_toolset(&mut json, tool, listed),
                _ => {
                    json.raw(tool);
                }
            }
        }
        let mut taken = NameSet::default();
        for name in json::elements(old_tools).filter_map(|tool| json::member(tool, "name")) {
            taken.add(json::string(name).unwrap_or_default().decode());
        }
        for (server, listed) in tools.iter().filter(|(server, _)| server.toolset.is_none()) {
            server.write_new_toolset(&mut json, listed.unwrap_or_default(), &taken);
        }
        json.end_array();
        json.key("mcp_servers").begin_array();
        for server in json::elements(old_servers) {
            json.raw(server);
        }
        for server in self.servers.iter().filter(|server| server.at.is_none()) {
            let name = &server.target.name;
            json.begin_object().kind("url").key("name").text(name);
            json.key("url").text(&[BY_NAME, name].concat()).end_object();
        }
        json.end_array().end_object();
        out
    }
}

impl PlannedServer {
    /// Writes a toolset for a server without one. Tools of the operator's servers whose functions
    /// have the name of a tool of the client (`taken`) are left out.
    fn write_new_toolset(&self, json: &mut Writer<'_>, listed: &[ListedTool], taken: &NameSet<'_>) {
        json.begin_object().kind("mcp_toolset");
        json.key("mcp_server_name").text(&self.target.name);
        let is_allowed = |tool: &&ListedTool| {
            let is_free = || !taken.contains(&function_name(&self.target.name, &tool.name));
            self.allowed.as_ref().is_none_or(|names| names.contains(&tool.name))
                && (self.at.is_some() || is_free())
        };
        write_tools(json, listed.iter().filter(is_allowed));
        json.end_object();
    }
}

/// Writes the toolset of a request, with its tools.
fn write_toolset(json: &mut Writer<'_>, toolset: &str, listed: &[ListedTool]) {
    json.begin_object();
    for (key, value) in json::members(toolset).filter(|(key, _)| *key != "tools") {
        json.key_str(key).raw(value);
    }
    write_tools(json, listed.iter());
    json.end_object();
}

fn write_tools<'t>(json: &mut Writer<'_>, tools: impl Iterator<Item = &'t ListedTool>) {
    json.key("tools").begin_array();
    for tool in tools {
        json.make_room();
        tool.write(json);
    }
    json.end_array();
}

/// MCP toolset of a request.
struct McpToolsetPlace<'a> {
    server: Cow<'a, str>,
    /// Index of the toolset in `tools`.
    place: usize,
    /// Byte offset of the toolset in the request's body.
    at: usize,
    /// True if the toolset carries the tools of its server.
    is_pinned: bool,
}

fn toolsets<'a>(
    tools: &[ToolDefinition<'a>],
    body: &str,
) -> Result<Vec<McpToolsetPlace<'a>>, Error> {
    let mut toolsets = Vec::new();
    for (place, tool) in tools.iter().enumerate().filter(|(_, it)| it.tool_type == "mcp_toolset") {
        let mcp = tool.rare().mcp();
        let server = mcp.server_name.and_then(json::string).map(|name| name.decode());
        let missing = || json::Error::value("Field required").in_key("mcp_server_name");
        let server = server.ok_or_else(|| missing().in_key(&path_at(body, tool.at)))?;
        let is_pinned = mcp.tools.is_some_and(|tools| tools != "null");
        toolsets.push(McpToolsetPlace { server, place, at: tool.at, is_pinned });
    }
    Ok(toolsets)
}

/// Returns the tools in each `mcp_tool_listing` of the conversation, as JSON text, by the name of
/// their server. The last listing of a server counts.
fn listings(body: &str) -> Names<'_, Option<&str>> {
    let mut listings = Names::default();
    if !words::has(body, "\"mcp_tool_listing\"") {
        return listings;
    }
    let messages = json::member(body, "messages").unwrap_or_default();
    let contents = json::elements(messages).filter_map(|it| json::member(it, "content"));
    for block in contents.flat_map(json::elements) {
        if json::member(block, "type") == Some("\"mcp_tool_listing\"")
            && let Some(name) = json::member(block, "mcp_server_name").and_then(json::string)
        {
            listings.insert(name.decode(), json::member(block, "tools"));
        }
    }
    listings
}

fn listed(tools: &str) -> Vec<ListedTool> {
    pinned_tools(tools)
        .map(|tool| ListedTool {
            name: tool.name.into_owned(),
            description: tool.description.decode().into_owned(),
            input_schema: tool.schema.to_owned(),
        })
        .collect()
}

/// Tool in the member `tools` of a toolset or of a listing.
struct PinnedTool<'a> {
    name: Cow<'a, str>,
    description: json::Str<'a>,
    schema: &'a str,
}

/// Returns the tools of a list in a request. Tools without a usable name are left out.
fn pinned_tools(tools: &str) -> impl Iterator<Item = PinnedTool<'_>> {
    json::elements(tools).filter_map(|tool| {
        let (mut name, mut description, mut schema) = (None, None, None);
        for (key, value) in json::members(tool) {
            match key.decode().as_ref() {
                "name" => name = json::string(value),
                "description" => description = json::string(value),
                "input_schema" => schema = Some(value).filter(|value| value.starts_with('{')),
                _ => {}
            }
        }
        let name = name?.decode();
        is_tool_name(&name).then(|| PinnedTool {
            name,
            description: description.unwrap_or_default(),
            schema: schema.unwrap_or("{}"),
        })
    })
}

/// Returns the server that a request names, with its token.
///
/// # Errors
///
/// The gateway may not use the server.
fn target(server: &McpServer<'_>, path: &str, settings: &McpConnector) -> Result<McpTarget, Error> {
    let (name, url) = (server.name.decode(), server.url.decode());
    let token = server.token.map(|token| token.decode().into_owned());
    if let Some(own) = configured(&url, settings) {
        return Ok(configured_target(&name, token, own));
    }
    if !settings.from_requests.permits(&url) {
        let reason = "this server is not among those that this gateway may use";
        return Err(Error::invalid(format!("{path}.url: {reason}")));
    }
    if token.as_ref().is_some_and(|token| !token.bytes().all(|byte| byte.is_ascii_graphic())) {
        let reason = "expected visible ASCII characters";
        return Err(Error::invalid(format!("{path}.authorization_token: {reason}")));
    }
    let (name, url) = (name.into_owned(), url.into_owned());
    // Hosts that the operator lists may be private.
    let is_public = settings.from_requests == McpFromRequests::Public;
    Ok(McpTarget {
        name,
        url,
        token,
        revision: None,
        timeout_ms: TIMEOUT_MS,
        is_public,
        cluster: settings.cluster.clone(),
    })
}

/// Returns the operator's settings of the server at this URL, or of the server `mcp:NAME`.
pub(super) fn configured<'c>(
    url: &str,
    settings: &'c McpConnector,
) -> Option<&'c McpServerSettings> {
    let name = url.strip_prefix(BY_NAME);
    let is_it =
        |(known, server): &(&str, &McpServerSettings)| name == Some(*known) || server.url == url;
    settings.servers.iter().find(is_it).map(|(_, server)| server)
}

/// Returns a server of the operator. The `token` of the request is used only if the operator says
/// so.
pub(crate) fn configured_target(
    name: &str,
    token: Option<String>,
    own: &McpServerSettings,
) -> McpTarget {
    let is_plain = |token: &String| token.bytes().all(|byte| byte.is_ascii_graphic());
    McpTarget {
        name: name.to_owned(),
        url: own.url.clone(),
        token: match &own.key {
            McpKey::None => None,
            McpKey::Client => token.filter(is_plain),
            McpKey::Own(key) => key.secret().map(str::to_owned),
        },
        revision: own.revision.version(),
        timeout_ms: own.timeout_ms,
        is_public: false,
        cluster: own.cluster.clone(),
    }
}

/// Returns the beginning of a server's name, for an error.
fn shown(name: &str) -> &str {
    words::beginning(name, NAME_BYTES_MAX)
}

/// Returns the functions of a toolset that carries its tools, with their availability: the enabled
/// tools that the operator permits. `servers`: the member `mcp_servers` of the request.
pub(super) fn functions<'a>(
    toolset: &ToolDefinition<'a>,
    servers: McpServers<'_>,
    settings: &McpConnector,
    rules: NameRules,
) -> Vec<(Function<'a>, Availability)> {
    let mcp = toolset.rare().mcp();
    let Some(server) = mcp.server_name.and_then(json::string) else { return Vec::new() };
    let server = server.decode();
    let own = url_of(&server, servers).and_then(|url| configured(&url, settings));
    let mut configs = Names::default();
    for config in &toolset.rare().configs {
        configs.insert(config.name.as_str(), config);
    }
    let default = |name| {
        let value = mcp.default_config.and_then(|config| json::member(config, name))?;
        Reader::of(value).bool().ok()
    };
    let is_on = default("enabled").unwrap_or(true);
    let is_deferred = default("defer_loading").unwrap_or(toolset.defer_loading);
    let mut functions = Vec::new();
    for tool in pinned_tools(mcp.tools.unwrap_or_default()) {
        let config = configs.get(&tool.name);
        let is_on = config.and_then(|config| config.enabled).unwrap_or(is_on);
        if !is_on || own.is_some_and(|own| !own.permits(&tool.name)) {
            continue;
        }
        let is_deferred = config.and_then(|config| config.defer_loading).unwrap_or(is_deferred);
        let name = McpToolName::new(&server, &tool.name);
        let mut function = Function::mcp(name, (tool.description, tool.schema), rules);
        function.cached = toolset.cached;
        functions.push((function, Availability::first(is_deferred, false)));
    }
    functions
}

/// Returns the functions of all toolsets of a request, as [`functions`] does.
fn offered<'r, 'a>(
    request: &'r Request<'a>,
    settings: &'r McpConnector,
) -> impl Iterator<Item = (Function<'a>, Availability)> + use<'r, 'a> {
    let toolsets = request.tools.iter().filter(|tool| tool.tool_type == "mcp_toolset");
    let rules = NameRules::plain();
    toolsets.flat_map(move |it| functions(it, request.mcp_servers, settings, rules))
}

/// Returns the tools of MCP servers that a request offers, and whose servers Creole calls.
pub(super) fn own_tools(request: &Request<'_>, settings: &McpConnector) -> Vec<Arc<OwnTool>> {
    offered(request, settings).filter_map(|(function, _)| function.own).collect()
}

/// Returns true if the operator permits a tool of a server.
pub(crate) fn permits(settings: &McpConnector, target: &McpTarget, tool: &str) -> bool {
    configured(&target.url, settings).is_none_or(|own| own.permits(tool))
}

/// Deferred tool of an MCP server in a request.
pub(crate) struct DeferredMcpTool {
    /// Name of the tool's function.
    pub(crate) function: String,
    pub(crate) description: String,
    /// JSON Schema of the tool's arguments.
    pub(crate) schema: String,
}

/// Returns the deferred tools of the MCP servers of a request.
pub(crate) fn deferred(request: &Request<'_>, settings: &McpConnector) -> Vec<DeferredMcpTool> {
    let deferred = offered(request, settings).filter(|(_, state)| *state == Availability::Deferred);
    let tool = |(function, _): (Function<'_>, Availability)| DeferredMcpTool {
        description: function.description_text(),
        schema: function.schema.into_owned(),
        function: function.name.into_owned(),
    };
    deferred.map(tool).collect()
}

/// Returns the schema of a tool in the toolsets of a request, as the server listed it.
pub(crate) fn schema_in<'b>(body: &'b str, name: &McpToolName) -> Option<&'b str> {
    let toolsets = json::elements(json::member(body, "tools")?);
    let is_of_server = |toolset: &&str| {
        let server = json::member(toolset, "mcp_server_name").and_then(json::string);
        server.is_some_and(|server| server == *name.server)
    };
    let mut tools = toolsets.filter(is_of_server).filter_map(|it| json::member(it, "tools"));
    let mut tools = pinned_tools(tools.next()?);
    tools.find(|tool| tool.name == name.tool).map(|tool| tool.schema)
}

/// Returns the URL of the server that a request calls `name`. The members of the server are read as
/// they are for its calls.
fn url_of<'s>(name: &str, servers: McpServers<'s>) -> Option<Cow<'s, str>> {
    servers.elements().take(SERVERS_MAX).find_map(|raw| {
        let server = McpServer::read(raw, "", &mut Warnings::new(false)).ok()?;
        (server.name == *name).then(|| server.url.decode())
    })
}

#[cfg(test)]
mod tests;
