//! Host: the Worker in workerd, Cloudflare's runtime.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result};

use super::{Plan, Prepared, Started};
use crate::children::Children;
use crate::{setup, worker, workspace};

/// Paths of the files that the Worker in workerd needs.
pub(crate) struct Worker {
    binary: PathBuf,
    modules: PathBuf,
}

pub(super) fn prepare() -> Result<Worker> {
    let binary = setup::workerd()?;
    let modules = worker::ready()?;
    Ok(Worker { binary, modules })
}

impl Prepared for Worker {
    fn start(&self, plan: &Plan, children: &mut Children) -> Result<Started> {
        // `SSL_CERT_FILE` may name a private authority, such as a company's proxy, as for other
        // programs.
        let authorities = match std::env::var_os("SSL_CERT_FILE") {
            Some(path) => fs::read_to_string(&path)
                .with_context(|| format!("SSL_CERT_FILE: {}", path.to_string_lossy()))?,
            None => String::new(),
        };
        let rendered = plan.folder.join("workerd.capnp");
        fs::write(&rendered, configuration(plan, &compatibility()?, &authorities)?)?;
        let log = plan.folder.join("workerd.log");
        let mut command = Command::new(&self.binary);
        command.args(["serve", "--import-path"]).arg(&self.modules).arg(&rendered);
        children.start("workerd", &mut command, &log)?;
        let notes = vec![format!("workerd's configuration: {}", rendered.display())];
        Ok(Started { log, metrics: None, notes })
    }
}

/// Returns the compatibility date and flags for workerd's configuration, the same as in the
/// deployed Worker.
pub(crate) fn compatibility() -> Result<String> {
    let wrangler = workspace::root().join("cloudflare/wrangler.toml");
    let wrangler = fs::read_to_string(&wrangler).with_context(|| wrangler.display().to_string())?;
    let value = |key: &str| {
        let line = wrangler.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "));
        line.with_context(|| format!("cloudflare/wrangler.toml has no {key}"))
    };
    let (date, flags) = (value("compatibility_date")?, value("compatibility_flags")?);
    Ok(format!("compatibilityDate = {date},\n  compatibilityFlags = {flags},"))
}

fn configuration(plan: &Plan, compatibility: &str, authorities: &str) -> Result<String> {
    let mut bindings = format!("(name = \"CREOLE_CONFIG\", text = {})", quote(&plan.config));
    for name in &plan.secrets {
        let name = quote(name);
        write!(bindings, ",\n    (name = {name}, fromEnvironment = {name})")?;
    }
    const END: &str = "-----END CERTIFICATE-----";
    let authorities: Vec<String> = authorities
        .split_inclusive(END)
        .filter(|part| part.ends_with(END))
        .map(|part| quote(part.trim_start()))
        .collect();
    Ok(format!(
        r#"# Made by `cargo xtask run`.
using Workerd = import "/workerd/workerd.capnp";
using Modules = import "/modules.capnp";

const config :Workerd.Config = (
  services = [
    (name = "creole", worker = .creole),
    (name = "internet", network = (
      allow = ["public", "private", "local"],
      tlsOptions = (trustBrowserCas = true, trustedCertificates = [{authorities}]),
    )),
  ],
  sockets = [(name = "http", address = "{listen}", http = (), service = "creole")],
);

const creole :Workerd.Worker = (
  modules = Modules.modules,
  {compatibility}
  bindings = [
    {bindings},
  ],
);
"#,
        authorities = authorities.join(", "),
        listen = plan.listen,
    ))
}

/// Returns a text as a Cap'n Proto literal.
fn quote(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", text.replace('\n', "\\n").replace('\r', "\\r"))
}

#[cfg(test)]
mod tests;
