//! Tests of a real host for operators and against attacks, with the scripts in
//! `harness/hosts/operation` and `harness/attacks`.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::children::{Children, Stop};
use crate::clients::install;
use crate::hosts::{Host, envoy, gateway};
use crate::http::{self, Url};
use crate::run::{self, Serving};
use crate::{build, setup, worker, workspace};

/// Tests the logs and metrics of one host. `each` runs a command and counts its tests.
pub(crate) fn observe(host: Host, each: impl FnOnce(&mut Command) -> Result<()>) -> Result<()> {
    let mut children = Children::new(Stop::shared()?);
    // The level `debug` logs most, and even these lines must not have contents of messages.
    let config = json!({
        "log": "debug", "stall_timeout_ms": 5000, "server_tools": {"tool_search": "run"}
    });
    let mut command = script("observe.py", host, config, &mut children)?;
    command.arg(workspace::root().join("envoy/deploy/grafana.json"));
    each(&mut command)
}

/// Tests one host under mixed load with faults.
pub(crate) fn chaos(
    host: Host,
    seconds: u64,
    each: impl FnOnce(&mut Command) -> Result<()>,
) -> Result<()> {
    let mut children = Children::new(Stop::shared()?);
    let config = json!({"log": "warn", "stall_timeout_ms": 2000});
    let mut command = script("chaos.py", host, config, &mut children)?;
    each(command.arg(seconds.to_string()))
}

/// Tests Envoy while its configuration changes under load, and while one of its VMs traps.
pub(crate) fn faults(each: impl FnOnce(&mut Command) -> Result<()>) -> Result<()> {
    let hooks = build::filter_with_hooks()?;
    let folder = workspace::own().join("run/faults");
    let path = workspace::root().join("harness/hosts/operation/faults.py");
    let mut command = Command::new(setup::python_with_yaml()?);
    command.arg("-B").arg(path).arg(workspace::root());
    command.args([setup::envoy()?, build::ready(&build::FILTER)?, hooks, folder]);
    each(&mut command)
}

/// Size of the attacks, in time and data.
#[derive(Clone, Copy)]
pub(crate) enum Size {
    /// Size for everyday tests: a minute, and less than a gigabyte.
    Small,
    /// Size that takes gigabytes, as a harmful attack would.
    Large,
}

/// Runs the attacks of hostile clients and upstreams in `harness/attacks`. The scripts start their
/// hosts themselves.
pub(crate) fn attacks(
    host: Host,
    size: Size,
    each: impl FnOnce(&mut Command) -> Result<()>,
) -> Result<()> {
    let folder = workspace::own().join("run").join(format!("attacks-{}", host.name()));
    let mut command = Command::new(setup::python_with_yaml()?);
    let script = |name: &str| workspace::root().join("harness/attacks").join(name);
    command.arg("-B");
    match host {
        Host::Gateway => command.arg(script("gateway.py")).arg(gateway::binary()?),
        Host::Envoy => {
            command.arg(script("envoy.py")).arg(setup::envoy()?).arg(build::ready(&build::FILTER)?);
            command.arg(workspace::root().join("envoy/envoy.yaml"))
        }
        Host::Component => {
            let wasi_http = build::ready(&build::WASI_HTTP)?;
            command.arg(script("component.py")).arg(setup::wasmtime()?).arg(wasi_http)
        }
        Host::Worker => {
            command
                .arg(script("worker.py"))
                .arg(setup::workerd()?)
                .arg(worker::ready_with_hooks()?);
            command.arg(workspace::root().join("cloudflare/wrangler.toml"))
        }
    };
    let size = match size {
        Size::Small => "small",
        Size::Large => "large",
    };
    each(command.arg(folder).arg(size))
}

/// Checks the deployment manifests, as far as one machine can.
pub(crate) fn manifests(each: impl FnOnce(&mut Command) -> Result<()>) -> Result<()> {
    let path = workspace::root().join("harness/hosts/operation/manifests.py");
    let mut command = Command::new(setup::python_with_yaml()?);
    command.arg("-B").arg(path).arg(workspace::root());
    command.args([gateway::binary()?, setup::envoy()?, build::ready(&build::FILTER)?]);
    // TLS settings as `cargo xtask run` gives them to Envoy.
    let authorities = envoy::authorities();
    let upstream = Url::parse("https://api.openai.com/v1")?;
    command.args([envoy::transport(&upstream, &authorities), authorities]);
    each(&mut command)
}

/// Checks the chart of the gateway and the alert rules, and starts the chart's container with the
/// tasks of an operator's day.
pub(crate) fn deployment(mut each: impl FnMut(&mut Command) -> Result<()>) -> Result<()> {
    let (creole, helm, promtool) = (gateway::binary()?, setup::helm()?, setup::promtool()?);
    let python = setup::python_with_kubernetes()?;
    let mut run = |name: &str, programs: &[&PathBuf]| {
        let path = workspace::root().join("harness/hosts/operation").join(name);
        each(Command::new(&python).arg("-B").arg(path).arg(workspace::root()).args(programs))
    };
    run("chart.py", &[&creole, &helm])?;
    run("alerts.py", &[&promtool])?;
    run("day.py", &[&creole, &helm, &promtool])
}

/// Starts a host in front of a scripted upstream. Returns the port on which the test script must
/// start that upstream.
fn start(host: Host, config: Value, children: &mut Children) -> Result<(Serving, u16)> {
    let upstream = http::free_port()?;
    let url = Url::parse(&format!("http://{upstream}/v1"))?;
    let serving = run::start_anywhere(host, Some(url), config, None, children)?;
    Ok((serving, upstream.port()))
}

/// Starts a host, and returns the command of the script that tests the host.
fn script(name: &str, host: Host, config: Value, children: &mut Children) -> Result<Command> {
    let (serving, upstream) = start(host, config, children)?;
    let path: PathBuf = workspace::root().join("harness/hosts/operation").join(name);
    let mut command = Command::new(setup::python_with_prometheus()?);
    command.arg("-B").arg(path);
    command.args([host.name(), &serving.listen.to_string(), &upstream.to_string()]);
    command.arg(serving.logs.first().context("the host has no log")?);
    command.arg(serving.metrics.as_deref().unwrap_or("-"));
    Ok(command)
}

/// Tests the gateway's page in a real browser, with the scripts in `harness/page`.
pub(crate) fn page(each: impl FnOnce(&mut Command) -> Result<()>) -> Result<()> {
    let mut command = page_script()?;
    each(&mut command)
}

/// Draws the pictures of the page for the documentation.
pub(crate) fn page_pictures() -> Result<()> {
    let pictures = workspace::root().join("docs/page");
    std::fs::create_dir_all(&pictures)?;
    setup::run(page_script()?.arg(pictures))
}

fn page_script() -> Result<Command> {
    let sources = workspace::root().join("harness/page");
    let folder = workspace::own().join("page");
    install::locked("the page's browser driver", &sources, &folder, None)?;
    let mut command = Command::new("node");
    command.arg(sources.join("page.mjs"));
    command.args([gateway::binary()?, setup::chromium()?, folder]);
    Ok(command)
}
