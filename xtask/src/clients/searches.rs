//! Test of web searches of a real Claude Code on each host, with a real SearXNG.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use anyhow::Result;
use serde_json::{Map, Value};

use super::{Client, install};
use crate::catalog;
use crate::children::{Children, Stop};
use crate::hosts::Host;
use crate::run::{self, Service};

/// Hosts that call services of server tools.
const HOSTS: [Host; 4] = [Host::Gateway, Host::Worker, Host::Envoy, Host::Component];

/// Runs the test script on each host. `start_services` starts a SearXNG, which writes each query to
/// `log`; `each` runs the command and counts its tests.
pub(crate) fn test(
    start_services: impl FnOnce(&[Service], &mut Children) -> Result<Vec<(Service, SocketAddr)>>,
    log: &Path,
    mut each: impl FnMut(&mut Command) -> Result<()>,
) -> Result<()> {
    let client = catalog::read::<Client>("claude-code")?;
    install::install(&client)?;
    let mut children = Children::new(Stop::shared()?);
    let services = start_services(&[Service::Search], &mut children)?;
    let folder = client.installed();
    for host in HOSTS {
        let mut document = Map::new();
        run::configure_services(&mut document, &services, host)?;
        let document = Value::Object(document);
        let serving = run::start_anywhere(host, None, document, None, &mut children)?;
        let demo = &serving.upstream;
        let mut command = Command::new(install::program(&client));
        command.current_dir(&folder).env("PATH", install::path(&folder)?);
        command.arg(client.sources().join("searches.py"));
        command.arg(format!("http://{}", serving.listen));
        command.arg(format!("http://{}:{}", demo.host, demo.port));
        each(command.arg(&folder).arg(host.name()).arg(log))?;
    }
    Ok(())
}
