//! Services of server tools for `cargo xtask run --with`: installed below `.creole/services`, and
//! started on ports of this machine.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::children::Children;
use crate::clients::install::{locked, path};
use crate::http;
use crate::run::Service;
use crate::workspace::{self, step};

/// Maximum time for a service to start. SearXNG reads its engines, which takes some seconds.
const START_TIME: Duration = Duration::from_secs(60);

/// Installs and starts services, and waits until each answers. Returns their addresses.
pub(crate) fn start(
    wanted: &[Service],
    children: &mut Children,
) -> Result<Vec<(Service, SocketAddr)>> {
    wanted.iter().map(|service| Ok((*service, one(*service, children)?))).collect()
}

/// Returns the path of a service's log. SearXNG's log has each query, in a line of its own.
pub(crate) fn log(service: Service) -> PathBuf {
    installed(service).join("log")
}

fn folder(service: Service) -> &'static str {
    match service {
        Service::Search => "search",
        Service::Mcp => "mcp",
    }
}

fn installed(service: Service) -> PathBuf {
    workspace::own().join("services").join(folder(service))
}

fn one(service: Service, children: &mut Children) -> Result<SocketAddr> {
    let (name, page) = match service {
        Service::Search => ("SearXNG", "/"),
        Service::Mcp => ("the MCP server", "/mcp"),
    };
    let sources = workspace::root().join("harness/services").join(folder(service));
    let installed = installed(service);
    locked(name, &sources, &installed, None)?;
    let address = http::free_port()?;
    let mut command = match service {
        Service::Search => search(&sources, &installed, address),
        Service::Mcp => mcp(&sources, &installed, address)?,
    };
    let log = log(service);
    step(&format!("starting {name}"), || {
        children.start(name, &mut command, &log)?;
        children.wait_until(name, START_TIME, || http::status(address, page).is_ok())
    })?;
    eprintln!("{name} listens at http://{address}, with its log in {}", log.display());
    Ok(address)
}

fn search(sources: &Path, installed: &Path, at: SocketAddr) -> Command {
    let mut command = Command::new(installed.join("python/bin/python"));
    command.arg("-B").arg(sources.join("start.py"));
    command.arg(installed).arg(workspace::root().join("docs")).arg(at.to_string());
    command
}

fn mcp(sources: &Path, installed: &Path, at: SocketAddr) -> Result<Command> {
    let mut command = Command::new("node");
    command.arg(sources.join("start.mjs")).arg(installed).arg(at.port().to_string());
    command.env("PATH", path(installed)?);
    Ok(command)
}
