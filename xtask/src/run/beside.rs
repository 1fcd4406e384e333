//! Services of server tools that are started beside the host, so that a search or a tool of an MCP
//! server can be seen without an account.

use std::net::SocketAddr;

use anyhow::{Context as _, Result, bail};
use serde_json::{Map, Value, json};

use crate::hosts::Host;

/// Name of the MCP server in the configuration and in the printed commands.
const MCP_SERVER: &str = "everything";

/// Service of a server tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Service {
    /// SearXNG, which searches the project's own documents.
    Search,
    /// The MCP server `server-everything`.
    Mcp,
}

impl Service {
    /// Returns the settings of the service that listens at `address`, with their keys.
    fn settings(self, address: SocketAddr, host: Host) -> (&'static str, Value) {
        let (cluster, mut own) = match self {
            Self::Search => {
                ("search", json!({"kind": "searxng", "url": format!("http://{address}")}))
            }
            Self::Mcp => (MCP_SERVER, json!({"url": format!("http://{address}/mcp")})),
        };
        if let (Host::Envoy, Some(own)) = (host, own.as_object_mut()) {
            own.insert("cluster".to_owned(), cluster.into());
        }
        match self {
            Self::Search => ("web_search", own),
            Self::Mcp => ("mcp", json!({"servers": {MCP_SERVER: own}})),
        }
    }
}

/// Writes the settings of the services into the configuration of a host. Envoy calls services
/// through clusters alone, whose names are in these settings.
///
/// # Errors
/// The configuration has settings of such a service already.
pub(crate) fn configure(
    document: &mut Map<String, Value>,
    services: &[(Service, SocketAddr)],
    host: Host,
) -> Result<()> {
    if services.is_empty() {
        return Ok(());
    }
    let tools = document.entry("server_tools").or_insert_with(|| Map::new().into());
    let tools = tools.as_object_mut().context("server_tools: expected an object")?;
    for (service, address) in services {
        let (key, settings) = service.settings(*address, host);
        if tools.insert(key.to_owned(), settings).is_some() {
            bail!("the configuration has server_tools.{key} already: leave it out, or --with");
        }
    }
    Ok(())
}

/// Returns a command for each service that shows its work. `model` is the name of the model, and
/// `is_demo` is true for the demo model.
pub(super) fn commands(
    services: &[Service],
    listen: SocketAddr,
    key: &str,
    (model, is_demo): (&str, bool),
) -> String {
    let mut text = String::new();
    for service in services {
        let (title, more, prompt) = match service {
            Service::Search => (
                "A search",
                r#""tools": [{"type": "web_search_20250305", "name": "web_search"}]"#.to_owned(),
                if is_demo {
                    "demo:search context window"
                } else {
                    "Search the web for: context window"
                },
            ),
            Service::Mcp => (
                "A call of a tool of an MCP server",
                format!(
                    r#""mcp_servers": [{{"type": "url", "name": "{MCP_SERVER}", "url": "mcp:{MCP_SERVER}"}}],
      "tools": [{{"type": "mcp_toolset", "mcp_server_name": "{MCP_SERVER}"}}]"#
                ),
                if is_demo { "demo:mcp" } else { "Call the tool echo with the message: Hello" },
            ),
        };
        text.push_str(&format!(
            r#"{title}:

  curl http://{listen}/v1/messages \
    -H 'content-type: application/json' -H 'anthropic-version: 2023-06-01' \
    -H "x-api-key: {key}" -d '{{
      "model": "{model}", "max_tokens": 1000,
      {more},
      "messages": [{{"role": "user", "content": "{prompt}"}}]}}'

"#
        ));
    }
    if services.contains(&Service::Search) {
        let prompt =
            if is_demo { "demo:search context window" } else { "Search the web for: Creole" };
        text.push_str(&format!(
            "Claude Code with a search: put ENABLE_TOOL_SEARCH=false before its variables above, and\n  \
             --allowedTools WebSearch -p '{prompt}' behind `claude`\n\n"
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: [Service; 2] = [Service::Search, Service::Mcp];

    fn address() -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 8888))
    }

    #[test]
    fn the_services_become_settings_unless_the_configuration_has_some() {
        let mut made = Map::new();
        configure(&mut made, &BOTH.map(|service| (service, address())), Host::Worker).unwrap();
        let wanted = json!({"server_tools": {
            "web_search": {"kind": "searxng", "url": "http://127.0.0.1:8888"},
            "mcp": {"servers": {"everything": {"url": "http://127.0.0.1:8888/mcp"}}}}});
        assert_eq!(Value::Object(made.clone()), wanted);
        let error =
            configure(&mut made, &[(Service::Search, address())], Host::Worker).unwrap_err();
        assert!(error.to_string().contains("server_tools.web_search already"), "{error}");
        let mut none = Map::new();
        configure(&mut none, &[], Host::Worker).unwrap();
        assert_eq!(none, Map::new());
    }

    #[test]
    fn envoy_calls_the_services_through_clusters() {
        let mut made = Map::new();
        configure(&mut made, &BOTH.map(|service| (service, address())), Host::Envoy).unwrap();
        let wanted = json!({"server_tools": {
            "web_search": {"kind": "searxng", "url": "http://127.0.0.1:8888", "cluster": "search"},
            "mcp": {"servers": {"everything": {
                "url": "http://127.0.0.1:8888/mcp", "cluster": "everything"}}}}});
        assert_eq!(Value::Object(made), wanted);
    }

    #[test]
    fn each_printed_command_has_a_body_of_json() {
        for model in [("demo", true), ("MODEL", false)] {
            let text = commands(&BOTH, address(), "demo", model);
            let bodies: Vec<Value> = text
                .split("-d '")
                .skip(1)
                .map(|rest| serde_json::from_str(rest.split('\'').next().unwrap()).unwrap())
                .collect();
            let [search, mcp] = bodies.as_slice() else { panic!("{text}") };
            assert_eq!(search["tools"][0]["name"], "web_search");
            assert_eq!(mcp["mcp_servers"][0]["name"], mcp["tools"][0]["mcp_server_name"]);
        }
    }
}
