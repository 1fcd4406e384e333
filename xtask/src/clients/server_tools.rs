//! Check of the server tools with the newest official SDKs: real MCP servers, a search service, and
//! the demo model, whose calls a script decides. `harness/server-tools` has the checks.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::{Protocol, install};
use crate::children::{Children, Stop};
use crate::hosts::Host;
use crate::http::{self, Url};
use crate::run;
use crate::workspace;

/// Services of `harness/server-tools/services.py`, each with its path.
const SERVICES: &[(&str, &str)] = &[
    ("mcp-json", "/mcp"),
    ("mcp-events", "/mcp"),
    ("mcp-json-session", "/mcp"),
    ("mcp-events-session", "/mcp"),
    ("mcp-sse", "/sse"),
    ("fastmcp-json", "/mcp"),
    ("fastmcp-events-session", "/mcp"),
    ("fastmcp-sse", "/sse"),
    ("notebook", "/mcp"),
    ("search", ""),
];

/// Name of an MCP server that a check starts and ends by itself.
const DOOMED: &str = "doomed";

/// Name of the configuration without server tools.
const OFF: &str = "off";

/// Transports of `server-everything`, each with the server's name in the plan, and its path.
const EVERYTHING: &[(&str, &str, &str)] =
    &[("everything", "streamableHttp", "/mcp"), ("everything-sse", "sse", "/sse")];

/// Maximum time for the services to start. Importing their packages takes some seconds.
const START_TIME: Duration = Duration::from_secs(60);

/// Runs the checks on the gateway, in front of a model that speaks Chat Completions and then in
/// front of one that speaks Responses. `each` runs a command and counts its tests.
pub(crate) fn test(mut each: impl FnMut(&mut Command) -> Result<()>) -> Result<()> {
    let mut children = Children::new(Stop::shared()?);
    let sources = workspace::root().join("harness/server-tools");
    let installed = workspace::own().join("server-tools");
    install::locked("the SDKs and MCP servers", &sources, &installed, None)?;
    let python = installed.join("python/bin/python");
    let mut services = start_services(&python, &sources, &installed, &mut children)?;
    services.extend(start_everything(&installed, &mut children)?);
    services.insert(DOOMED.to_owned(), format!("http://{}/mcp", http::free_port()?).into());
    let mut demo = None;
    let mut outcome = Ok(());
    for protocol in [Protocol::Openai, Protocol::Responses] {
        let gateways = start_gateways(protocol, &services, &mut demo, &mut children)?;
        let model = demo.as_ref().map(|demo| format!("http://{}:{}", demo.host, demo.port));
        let plan = json!({"gateways": gateways, "services": services, "demo": model}).to_string();
        let mut command = Command::new(&python);
        let of_python = each(command.arg("-B").arg(sources.join("checks.py")).arg(&plan));
        let mut command = Command::new("node");
        command.current_dir(&installed).arg(sources.join("checks.mjs")).arg(&plan);
        // Each script runs, whatever became of the one before.
        let of_node = each(&mut command);
        outcome = outcome.and(of_python).and(of_node);
    }
    outcome
}

/// Starts a gateway with each configuration in front of the same demo model, which the first one
/// starts. Returns their URLs by name.
fn start_gateways(
    protocol: Protocol,
    services: &Map<String, Value>,
    demo: &mut Option<Url>,
    children: &mut Children,
) -> Result<Map<String, Value>> {
    let mut gateways = Map::new();
    for (name, mut document) in configurations(services) {
        let mut profile = None;
        if protocol == Protocol::Responses {
            // An upstream of Responses may have server tools of its own.
            if name == OFF {
                continue;
            }
            run::speak(&mut document, protocol.word())?;
            profile = Some("openai");
        }
        let (given, document) = (demo.clone(), Value::Object(document));
        let serving = run::start_anywhere(Host::Gateway, given, document, profile, children)?;
        gateways.insert(name.to_owned(), format!("http://{}", serving.listen).into());
        *demo = Some(serving.upstream);
    }
    Ok(gateways)
}

/// Starts the services that are written in Python. Returns their addresses by name.
fn start_services(
    python: &Path,
    sources: &Path,
    installed: &Path,
    children: &mut Children,
) -> Result<Map<String, Value>> {
    let mut command = Command::new(python);
    command.arg("-B").arg(sources.join("services.py"));
    let mut places = Map::new();
    let mut waiting = Vec::new();
    for (name, path) in SERVICES {
        let address = http::free_port()?;
        command.arg(format!("{name}={}", address.port()));
        places.insert((*name).to_owned(), format!("http://{address}{path}").into());
        waiting.push(address);
    }
    children.start("the services", &mut command, &installed.join("services.log"))?;
    for address in waiting {
        children.wait_until("a service", START_TIME, || http::status(address, "/seen").is_ok())?;
    }
    Ok(places)
}

/// Starts `server-everything` with each of its transports. Returns the addresses by name.
fn start_everything(installed: &Path, children: &mut Children) -> Result<Map<String, Value>> {
    let script = workspace::root().join("harness/services/mcp/start.mjs");
    let mut places = Map::new();
    for (name, transport, path) in EVERYTHING {
        let address = http::free_port()?;
        let mut command = Command::new("node");
        command.arg(&script).arg(installed).arg(address.port().to_string()).arg(transport);
        let log = installed.join(format!("{name}.log"));
        children.start("server-everything", &mut command, &log)?;
        wait_for_port(address, children)?;
        places.insert((*name).to_owned(), format!("http://{address}{path}").into());
    }
    Ok(places)
}

fn wait_for_port(address: SocketAddr, children: &mut Children) -> Result<()> {
    // Any status will do, because only the port is waited for.
    children.wait_until("server-everything", START_TIME, || http::status(address, "/none").is_ok())
}

/// Returns the configurations by name: with all server tools, with low limits, and without any.
fn configurations(services: &Map<String, Value>) -> [(&'static str, Map<String, Value>); 3] {
    let mut servers = Map::new();
    for (name, url) in services.iter().filter(|(name, _)| *name != "search") {
        let mut server = json!({"url": url});
        // Without a named revision, the Python packages answer the newest one, which has neither
        // sessions nor streams.
        let revision = match name.as_str() {
            "mcp-events" => Some("2025-06-18"),
            "mcp-json-session" | "mcp-events-session" => Some("2025-11-25"),
            "fastmcp-events-session" => Some("2025-03-26"),
            _ => None,
        };
        if let (Some(revision), Some(server)) = (revision, server.as_object_mut()) {
            server.insert("revision".to_owned(), revision.into());
        }
        if let ("notebook", Some(server)) = (name.as_str(), server.as_object_mut()) {
            server.insert("key".to_owned(), "client".into());
        }
        servers.insert(name.clone(), server);
    }
    let redirecting = services.get("mcp-json").and_then(Value::as_str).unwrap_or_default();
    servers.insert("redirecting".to_owned(), json!({"url": format!("{redirecting}/")}));
    let search = services.get("search").cloned().unwrap_or_default();
    let json_search = json!({
        "kind": "json", "url": search,
        "request": {"path": "/find", "query": {"text": "{query}", "n": "{count}"}},
        "response": {"results": "hits", "url": "link", "title": "name", "content": "summary"},
    });
    let mcp = json!({"servers": servers});
    let on = json!({"web_search": json_search, "web_fetch": {}, "mcp": mcp});
    let short = json!({
        "web_search": {"kind": "searxng", "url": search}, "mcp": mcp, "tool_search": "run",
        "turns_max": 3, "duration_max_ms": 1500,
    });
    let with = |tools| Map::from_iter([("server_tools".to_owned(), tools)]);
    [("on", with(on)), ("short", with(short)), (OFF, Map::new())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mcp_server_of_the_checks_is_in_the_configurations_and_the_search_is_not() {
        let names = SERVICES.iter().map(|(name, _)| *name);
        let services = names.map(|name| (name.to_owned(), json!(name))).collect();
        let [(_, on), (_, short), (_, off)] = configurations(&services);
        for document in [on, short] {
            let servers = &document["server_tools"]["mcp"]["servers"];
            assert_eq!(servers["mcp-json"], json!({"url": "mcp-json"}));
            assert_eq!(servers["redirecting"], json!({"url": "mcp-json/"}));
            assert_eq!(servers.as_object().unwrap().len(), SERVICES.len());
            assert_eq!(servers.get("search"), None);
            assert_eq!(document["server_tools"]["web_search"]["url"], "search");
        }
        assert_eq!(off, Map::new());
    }
}
