//! MCP servers whose tools the upstream calls by itself, as elements of `tools` of the Responses
//! API.

use std::borrow::Cow;
use std::fmt;

use super::definition::left_out;
use crate::error::Error;
use crate::json::{self, Reader, Str, written};
use crate::model::mcp_servers::McpServers;
use crate::model::path_at;
use crate::model::tool::ToolDefinition;
use crate::observe::warning::Warnings;
use crate::text::names::Names;

/// Element of `tools` for an MCP server, as JSON text. The text holds the client's token for that
/// server, so `Debug` does not show it.
pub(super) struct McpTool(String);

impl McpTool {
    pub(super) fn json(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for McpTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("McpTool")
    }
}

/// Returns the elements of `tools` for the MCP servers in `servers`; `toolsets` select the tools of
/// each server. Without a toolset, a server's own `tool_configuration` applies, as in the first
/// version of the API.
///
/// # Errors
///
/// A server or a toolset lacks a required member, or a toolset names no server.
pub(super) fn tools(
    servers: McpServers<'_>,
    toolsets: &[ToolDefinition<'_>],
    body: &str,
    warnings: &mut Warnings,
) -> Result<Vec<McpTool>, Error> {
    let mut waiting = Names::default();
    for toolset in toolsets {
        let path = || path_at(body, toolset.at);
        for limit in &toolset.rare().limits {
            if !matches!(*limit, "mcp_server_name" | "default_config" | "tools") {
                left_out(warnings, body, toolset.at, limit)?;
            }
        }
        let name = toolset.rare().mcp().server_name.and_then(json::string);
        let missing = || json::Error::value("Field required").in_key("mcp_server_name");
        let name = name.ok_or_else(|| missing().in_key(&path()))?;
        if waiting.insert(name.decode(), Some(toolset)).is_some() {
            let path = path();
            let error = format!("{path}.mcp_server_name: another toolset has this server");
            return Err(Error::invalid(error));
        }
    }
    let mut tools = Vec::new();
    let mut known = Names::default();
    for (at, raw) in servers.elements().enumerate() {
        let path = format!("mcp_servers[{at}]");
        let server = McpServer::read(raw, &path, warnings)?;
        let name = server.name.decode();
        if known.insert(name.clone(), ()).is_some() {
            return Err(Error::invalid(format!("{path}.name: another server has this name")));
        }
        let allowed = match waiting.get_mut(&name).and_then(Option::take) {
            Some(toolset) => allowed_by(toolset, body)?,
            None => server.allowed.clone(),
        };
        if !matches!(&allowed, Allowed::These(names) if names.is_empty()) {
            tools.push(McpTool(server.written(&allowed)));
        }
    }
    let unserved = |toolset: &&ToolDefinition<'_>| {
        let name = toolset.rare().mcp().server_name.and_then(json::string);
        name.is_some_and(|name| known.get(&name.decode()).is_none())
    };
    match toolsets.iter().find(unserved) {
        Some(toolset) => {
            let path = path_at(body, toolset.at);
            Err(Error::invalid(format!(
                "{path}.mcp_server_name: no server in `mcp_servers` has this name"
            )))
        }
        None => Ok(tools),
    }
}

/// Tools of an MCP server that the upstream may call.
#[derive(Clone)]
pub(super) enum Allowed<'a> {
    All,
    These(Vec<Cow<'a, str>>),
}

/// Element of the request member `mcp_servers`: one MCP server.
pub(super) struct McpServer<'a> {
    pub(super) name: Str<'a>,
    pub(super) url: Str<'a>,
    pub(super) token: Option<Str<'a>>,
    /// Tools that the server's own `tool_configuration` allows.
    pub(super) allowed: Allowed<'a>,
}

impl<'a> McpServer<'a> {
    pub(super) fn read(raw: &'a str, path: &str, warnings: &mut Warnings) -> Result<Self, Error> {
        let (mut name, mut url, mut token, mut configuration) = (None, None, None, "{}");
        for (key, value) in json::members(raw).filter(|(_, value)| *value != "null") {
            let key = key.decode();
            let place = match key.as_ref() {
                "name" => &mut name,
                "url" => &mut url,
                "authorization_token" => &mut token,
                "tool_configuration" => {
                    configuration = value;
                    continue;
                }
                "type" => continue,
                _ => {
                    warnings.unknown_field(path, &key)?;
                    continue;
                }
            };
            let text = Reader::of(value).string();
            *place = Some(text.map_err(|error| error.in_key(&key).in_key(path))?);
        }
        let missing = |key| json::Error::value("Field required").in_key(key).in_key(path);
        Ok(Self {
            name: name.ok_or_else(|| missing("name"))?,
            url: url.ok_or_else(|| missing("url"))?,
            token: token.filter(|token| !token.is_empty()),
            allowed: configured(configuration)
                .map_err(|error| error.in_key("tool_configuration").in_key(path))?,
        })
    }

    fn written(&self, allowed: &Allowed<'_>) -> String {
        written(|json| {
            json.begin_object().kind("mcp");
            json.key("server_label").str(self.name);
            json.key("server_url").str(self.url);
            if let Some(token) = self.token {
                json.key("authorization").str(token);
            }
            if let Allowed::These(names) = allowed {
                json.key("allowed_tools").begin_array();
                for name in names {
                    json.text(name);
                }
                json.end_array();
            }
            // Approvals are never required, because the client's API has none.
            json.key("require_approval").text("never").end_object();
        })
    }
}

/// Reads a `tool_configuration`, and returns the tools that it allows.
fn configured(raw: &str) -> Result<Allowed<'_>, json::Error> {
    let mut reader = Reader::of(raw);
    let (mut allowed, mut enabled) = (Allowed::All, true);
    reader.begin_object()?;
    while let Some(key) = reader.next_key()? {
        match key.decode().as_ref() {
            _ if reader.null()? => {}
            "enabled" => enabled = reader.bool()?,
            "allowed_tools" => {
                let mut names = Vec::new();
                reader.begin_array()?;
                while reader.next_element()? {
                    names.push(reader.string()?.decode());
                }
                allowed = Allowed::These(names);
            }
            _ => drop(reader.skip()?),
        }
    }
    Ok(if enabled { allowed } else { Allowed::These(Vec::new()) })
}

/// Returns the tools that an MCP toolset enables. Deferred tools are enabled, too, because no tool
/// search could load them.
fn allowed_by<'t>(toolset: &'t ToolDefinition<'_>, body: &str) -> Result<Allowed<'t>, Error> {
    let path = || path_at(body, toolset.at);
    let rare = toolset.rare();
    let default = rare.mcp().default_config.and_then(|config| json::member(config, "enabled"));
    let default = default.filter(|enabled| *enabled != "null").map(|it| Reader::of(it).bool());
    let default = default
        .unwrap_or(Ok(true))
        .map_err(|error| error.in_key("enabled").in_key("default_config").in_key(&path()))?;
    let mut switched = Names::default();
    for config in &rare.configs {
        if let Some(enabled) = config.enabled {
            switched.insert(config.name.as_str(), enabled);
        }
    }
    if let Some(listed) = rare.mcp().tools {
        let names = json::elements(listed).filter_map(|tool| json::member(tool, "name"));
        let names = names.filter_map(json::string).map(|name| name.decode());
        let is_on = |name: &Cow<'_, str>| switched.get(name).copied().unwrap_or(default);
        return Ok(Allowed::These(names.filter(is_on).collect()));
    }
    if !default {
        let on = rare.configs.iter().map(|config| config.name.as_str());
        let on = on.filter(|name| switched.get(name) == Some(&true));
        return Ok(Allowed::These(on.map(Cow::Borrowed).collect()));
    }
    // The Responses API has no list of forbidden tools.
    match rare.configs.iter().find(|config| switched.get(&config.name) == Some(&false)) {
        Some(config) => {
            let path = format!("{}.configs.{}.enabled", path(), config.name);
            let kind = "switching off one tool of an MCP server";
            Err(Error::unsupported_kind(&path, kind))
        }
        None => Ok(Allowed::All),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_of_a_server_is_sent_and_never_shown() {
        let list = r#"[{"name": "s", "url": "u", "authorization_token": "a-secret"}]"#;
        let servers = McpServers::new(list);
        let sent = tools(servers, &[], "", &mut Warnings::new(false)).unwrap();
        assert!(sent.iter().any(|tool| tool.json().contains("\"authorization\":\"a-secret\"")));
        for shown in [format!("{servers:?}"), format!("{sent:?}")] {
            assert!(!shown.contains("a-secret"), "{shown}");
        }
    }
}
